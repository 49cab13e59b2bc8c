"""The machine around a run: limits, clocks that jump, links and folders where files should be."""

from __future__ import annotations

import codecs
import os
import resource
import shutil
import time
from pathlib import Path

import pytest

from jobs.cli import main
from tests.faults.nights import DATE, Night, Nights, in_child, is_one_line, read_or_refuse
from tests.support.reports import last_pointer

pytestmark = pytest.mark.house


def test_a_limit_of_the_size_of_files_leaves_the_night_before(nights: Nights, tmp_path, counts):
    # SIGXFSZ is ignored by Python: the kernel's answer is EFBIG.
    for limit in (0, 64, 256, 1024, 2048, 4096, 6000, 8000, 12_000, 16_000, 24_000, 1 << 20):
        night = nights.begin(tmp_path / str(limit))

        def limited(night: Night = night, limit: int = limit) -> int:
            # What the command writes to its output is no file of a table.
            reader, writer = os.pipe()
            os.dup2(writer, 1)
            os.dup2(writer, 2)
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
            code = main(night.command())
            os.set_blocking(reader, False)
            try:
                text = os.read(reader, 1 << 16).decode()
            except BlockingIOError:
                text = ""
            lines = text.splitlines()
            is_told = code == 0 or (len(lines) == 1 and "File too large" in text)
            return code if is_told else 98

        ended = in_child(night.place, limited)
        assert ended.code in (0, 4), (limit, ended)
        assert ended.code == 4 or limit > 4096
        assert read_or_refuse(night.read) == (nights.old if ended.code else nights.new)
        assert night.run().code == 0
        assert night.read() == nights.new
        assert night.files() == list(nights.files_after)
        counts["limits of the size of files"] += 1


def test_a_folder_that_cannot_be_written_to_is_named_in_one_line(nights, tmp_path, counts):
    if os.geteuid() != 0:
        pytest.skip("only root may become another user")
    for name in (".", "snapshots", "reports", "reports/_published", "reports/_claims"):
        night = nights.begin(tmp_path / name.replace("/", "-").replace(".", "root"))
        for path in night.output.rglob("*"):
            path.chmod(0o777 if path.is_dir() else 0o666)
        (night.output / name).chmod(0o555)
        for path in (night.place, *night.place.parents, nights.dumps, *nights.dumps.parents):
            path.chmod(path.stat().st_mode | 0o555)

        def as_nobody(night: Night = night) -> int:
            codecs.lookup("ascii")  # that user may not be able to read Python's library
            os.setgid(65534)
            os.setuid(65534)
            return main(night.command())

        ended = in_child(night.place, as_nobody)
        # Where all folders are there, the one above them need not be written to.
        assert ended.code in (0, 4), ended
        if ended.code:
            assert is_one_line(ended), ended.text
            assert "the right to it" in ended.text
        assert read_or_refuse(night.read) == (nights.old if ended.code else nights.new)
        (night.output / name).chmod(0o777)
        assert night.run().code == 0
        assert night.read() == nights.new
        counts["folders that cannot be written to"] += 1


@pytest.mark.parametrize("hours", [-48, -1, 1, 48])
def test_a_clock_that_jumped_changes_nothing_but_the_names_of_runs(nights, tmp_path, counts, hours):
    night = nights.begin(tmp_path / "night")
    moved = time.time() + hours * 3600
    for path in night.output.rglob("*"):
        os.utime(path, (moved, moved))
    assert night.run().code == 0
    assert night.read() == nights.new
    assert night.files() == list(nights.files_after)
    counts["clocks that jumped"] += 1


@pytest.mark.parametrize("hours", [-48, -1, 1, 48])
def test_a_claim_of_a_dead_run_is_broken_whatever_its_time(nights, tmp_path, counts, hours):
    night = nights.begin(tmp_path / "night")

    def die(call):
        if call.operation == "link" and f"/dt={DATE}." in call.path:
            os._exit(137)

    assert night.run(die).code == 137
    moved = time.time() + hours * 3600
    claims = list(night.output.glob("*/_claims/*/*.claim"))
    assert claims
    for claim in claims:
        os.utime(claim, (moved, moved))
    assert night.read() == nights.old
    assert night.run().code == 0
    assert night.read() == nights.new
    assert night.files() == list(nights.files_after)
    counts["clocks that jumped"] += 1


def test_the_last_whole_run_is_found_although_the_clock_went_backward(nights, tmp_path):
    """Manifests are in the order of their pointers, whatever the runs' ids."""
    night = nights.begin(tmp_path / "night")
    assert night.run().code == 0
    last_pointer(night.output / "reports", f"dt={DATE}").write_text("")
    assert night.read() == nights.new


def test_a_link_at_the_name_of_a_file_is_replaced_and_not_followed(nights, tmp_path):
    night = nights.begin(tmp_path / "night")
    precious = tmp_path / "precious"
    precious.write_text("precious")
    pointer = last_pointer(night.output / "reports", f"dt={DATE}")
    pointer.unlink()
    pointer.symlink_to(precious)
    assert night.run().code == 0
    assert night.read() == nights.new
    metrics = tmp_path / "metrics.prom"
    for name in ("metrics.prom", "metrics.prom.new", ".metrics.prom.tmp"):
        (tmp_path / name).symlink_to(precious)
    where = ["--reports", str(night.output / "reports"), "--metrics", str(metrics)]
    ended = in_child(night.place, lambda: main(["alert", *where, "--quiet"]))
    assert ended.code == 0, ended
    assert not metrics.is_symlink()
    assert precious.read_text() == "precious"


@pytest.mark.parametrize(
    "name",
    [
        f"reports/_published/dt={DATE}.000002.json",
        "snapshots/_published/snapshots.000002.json",
        "reports/_claims",
        "reports/_manifests",
        "reports/group_health",
        "snapshots/heartbeats",
    ],
)
def test_a_folder_where_a_file_should_be_or_the_other_way_round_is_one_line(
    nights, tmp_path, counts, name
):
    night = nights.begin(tmp_path / "night")
    path = night.output / name
    if path.is_dir():
        shutil.rmtree(path)
        path.write_text("in the way")
    else:
        path.unlink(missing_ok=True)
        path.mkdir()
    seen = None
    try:
        seen = read_or_refuse(night.read)
    except OSError as error:
        assert "\n" not in str(error)
    assert seen is None or isinstance(seen, str) or seen == nights.old
    ended = night.run()
    assert ended.code in (0, 3, 4), ended
    if ended.code:
        lines = ended.text.splitlines()
        assert "Traceback" not in ended.text
        assert "defect of the audit" not in ended.text
        assert len([line for line in lines if "cannot be read" not in line]) <= 1, ended.text
        path.unlink() if path.is_file() else path.rmdir()
        assert night.run().code == 0
    assert night.read() == nights.new
    counts["folders and files in the way"] += 1


@pytest.mark.parametrize("what", ["first ever", "over an older one"])
def test_an_ingest_that_died_is_not_audited_by_half(nights, tmp_path, counts, what):
    night = nights.begin(tmp_path / "night")
    if what == "first ever":
        shutil.rmtree(night.output / "snapshots")

    def die(call):
        if call.operation == "create" and "_manifests" in call.path:
            os._exit(137)

    assert night.run(die, "ingest").code == 137
    ended = night.run(command="audit")
    if what == "first ever":
        assert ended.code == 3, ended
        assert "run ingest again" in ended.text
    else:
        assert ended.code == 0, ended
    assert night.read() == nights.old
    assert night.run().code == 0
    assert night.read() == nights.new
    counts["ingests that died before they were published"] += 1


def test_a_lake_without_a_manifest_is_audited_and_said_to_be_unchecked(nights, tmp_path: Path):
    night = nights.begin(tmp_path / "night")
    snapshots = night.output / "snapshots"
    for name in ("_published", "_manifests", "_claims"):
        shutil.rmtree(snapshots / name)
    for part in list(snapshots.rglob("*.parquet")):
        part.rename(part.parents[1] / "part-0.parquet")
        part.parent.rmdir()
    command = [each for each in night.command("audit") if each != "--quiet"]
    ended = in_child(night.place, lambda: main(command))
    assert ended.code == 0, ended
    assert "have no manifest, and are not checked" in ended.text
    assert night.read() == nights.old
