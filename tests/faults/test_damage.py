"""Files of a published run that are not what was written: readers refuse, and never guess."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from jobs.cli import main
from tests.faults.nights import DATE, Night, Nights, in_child, is_one_line, read_or_refuse
from tests.support.reports import last_pointer

pytestmark = pytest.mark.house

FLIPS_OF_REPORTS = 600
FLIPS_OF_SNAPSHOTS = 150


def files_below(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


@pytest.fixture
def night(nights: Nights, tmp_path: Path) -> Night:
    """A night that was published."""
    place = tmp_path / "night"
    place.mkdir()
    shutil.copytree(nights.before.parent / "undisturbed" / "out", place / "out")
    return Night(place, nights.dumps)


def read_all(night: Night) -> Any:
    """What readers show, the summary among it; or the refusal."""

    def read() -> Any:
        return {"tables": night.read(None), "summary": [night.reports.resolve(None).summary]}

    return read_or_refuse(read)


def test_a_flipped_bit_is_refused_or_changes_nothing_that_is_shown(night, counts):
    chance = random.Random(15)  # noqa: S311 - no secret
    before = read_all(night)
    files = files_below(night.output / "reports")
    for number in range(FLIPS_OF_REPORTS):
        # Each kind of file has its share, however many of the other kind there are.
        kind = ["parquet", "json"][number % 4 == 0]
        path = chance.choice([each for each in files if each.suffix == f".{kind}"])
        whole = path.read_bytes()
        place, bit = chance.randrange(len(whole)), chance.randrange(8)
        path.write_bytes(whole[:place] + bytes([whole[place] ^ (1 << bit)]) + whole[place + 1 :])
        after = read_all(night)
        assert isinstance(after, str) or after == before, f"{path}: bit {bit} of byte {place}"
        path.write_bytes(whole)
        counts[
            f"flips in reports: {'refused' if isinstance(after, str) else 'nothing changed'}"
        ] += 1
    counts["flips in reports: other rows without a word"] += 0


def test_a_flipped_bit_in_a_snapshot_table_is_refused_or_changes_no_report(night, nights, counts):
    chance = random.Random(15)  # noqa: S311 - no secret
    files = files_below(night.output / "snapshots")
    for _ in range(FLIPS_OF_SNAPSHOTS):
        path = chance.choice(files)
        whole = path.read_bytes()
        place, bit = chance.randrange(len(whole)), chance.randrange(8)
        path.write_bytes(whole[:place] + bytes([whole[place] ^ (1 << bit)]) + whole[place + 1 :])
        ended = night.run(command="audit")
        path.write_bytes(whole)
        if ended.code:
            assert ended.code == 4, ended
            assert is_one_line(ended), ended.text
        assert night.read() == nights.new, f"{path}: bit {bit} of byte {place}"
        counts[f"flips in snapshots: {'refused' if ended.code else 'nothing changed'}"] += 1


def commands_that_read(night: Night) -> list[list[str]]:
    reports = ["--reports", str(night.output / "reports"), "--quiet"]
    return [
        ["show", "group_health", *reports],
        ["report", *reports],
        ["alert", *reports, "--metrics", str(night.place / "metrics.prom")],
    ]


def delete(path: Path) -> None:
    path.unlink()


def empty(path: Path) -> None:
    path.write_bytes(b"")


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def swap(path: Path) -> None:
    """Its rows are those of the night before: a file that is whole, and another."""
    table = path.parents[2].name
    other = next(path.parents[3].glob("allocations/*/*/*.parquet"))
    path.write_bytes(
        other.read_bytes()
        if table != "allocations"
        else next(path.parents[3].glob("group_health/*/*/*.parquet")).read_bytes()
    )


@pytest.mark.parametrize("damage", [delete, empty, truncate, swap])
def test_a_damaged_table_is_no_all_clear(night, nights, counts, damage):
    counting = f"run={night.reports.resolve(None).run_id}"
    for path in files_below(night.output / "reports"):
        if path.suffix != ".parquet" or path.parent.name != counting:
            continue
        whole = path.read_bytes()
        damage(path)
        table = path.parents[2].name
        refused = read_or_refuse(night.read)
        assert isinstance(refused, str), f"{damage.__name__} {table}"
        assert f"table {table} of {DATE} is damaged" in refused
        assert "again" in refused
        for command in commands_that_read(night) if table == "group_health" else ():
            ended = in_child(night.place, lambda command=command: main(command))
            assert ended.code == 4, ended
            assert is_one_line(ended), ended.text
        path.write_bytes(whole)
        assert night.read() == nights.new
        counts[f"damaged tables: {damage.__name__}"] += 1


def test_a_file_that_nobody_published_is_not_read(night, nights):
    for path in files_below(night.output / "reports"):
        if path.suffix == ".parquet":
            shutil.copy(path, path.with_name("part-9.parquet"))
    assert night.read() == nights.new


def pointers(whole: bytes) -> dict[str, bytes]:
    values = json.loads(whole)
    return {
        "empty": b"",
        "cut in half": whole[: len(whole) // 2],
        "without its last byte": whole.rstrip()[:-1],
        "null": b"null",
        "a number": b"7",
        "a list": b"[]",
        "a text": b'"run"',
        "without keys": b"{}",
        "other keys": b'{"run": 1, "table": []}',
        "other types": b'{"run_id": 1, "tables": {}, "summary": [], "files": 3}',
        "a summary without keys": b'{"run_id": "x", "tables": [], "summary": {}}',
        "no digest": json.dumps({**values, "digest": None}).encode(),
        "another digest": whole.replace(b'"run_id"', b'"run_ID"'),
        "another run": whole.replace(values["run_id"].encode(), b"20260101T000000Z-aaaaaa"),
        "binary": bytes(range(256)),
        "zeros": bytes(4096),
        "nested": b"[" * 100_000,
        "a number of many digits": b"9" * 10_000,
    }


POINTERS = sorted(pointers(b'{"run_id": "x"}'))


@pytest.mark.parametrize("name", POINTERS)
def test_a_bad_pointer_is_named_in_one_line_and_the_next_run_mends_it(night, nights, counts, name):
    pointer = last_pointer(night.output / "reports", f"dt={DATE}")
    pointer.write_bytes(pointers(pointer.read_bytes())[name])
    assert night.read(None) == night.read(DATE) == nights.new
    for command in commands_that_read(night):
        ended = in_child(night.place, lambda command=command: main(command))
        assert ended.code == 0, ended
        warnings = [line for line in ended.text.splitlines() if "cannot be read" in line]
        assert len(warnings) == 1, ended.text
        assert str(pointer) in warnings[0]
        assert "Traceback" not in ended.text
    ended = night.run()
    assert ended.code == 0, ended
    assert night.read() == nights.new
    mended = last_pointer(night.output / "reports", f"dt={DATE}")
    assert mended != pointer
    assert json.loads(mended.read_bytes())["date"] == DATE
    counts["bad pointers"] += 1


@pytest.mark.parametrize("name", [*POINTERS, "a folder"])
def test_a_bad_pointer_of_an_earlier_date_does_not_stop_later_ones(night, nights, counts, name):
    pointer = last_pointer(night.output / "reports", f"dt={DATE}")
    earlier = pointer.with_name("dt=2026-11-19.000001.json")
    if name == "a folder":
        earlier.mkdir()
    else:
        earlier.write_bytes(pointers(pointer.read_bytes())[name])
    assert night.run().code == 0
    command = [*night.command("audit"), "--since", "last"]
    ended = in_child(night.place, lambda: main(command))
    assert ended.code == 0, ended
    assert night.read(None) == nights.new
    counts["bad pointers"] += 1


@pytest.mark.parametrize("name", POINTERS)
def test_a_bad_pointer_of_the_snapshots_is_as_good_as_the_last_whole_ingest(
    night, nights, counts, name
):
    pointer = last_pointer(night.output / "snapshots", "snapshots")
    pointer.write_bytes(pointers(pointer.read_bytes())[name])
    ended = night.run(command="audit")
    assert ended.code == 0, ended
    assert ended.text.count("cannot be read") == 1
    assert night.read() == nights.new
    assert night.run().code == 0
    json.loads(last_pointer(night.output / "snapshots", "snapshots").read_bytes())
    counts["bad pointers"] += 1
