"""What of a dump file is lost is said by file, with its numbers, and an odd member is no loss."""

from __future__ import annotations

import gzip
import json
import zlib
from pathlib import Path

import pytest

from jobs.config.settings import Settings
from jobs.dumps.unpacking import SliceLines
from jobs.engines import files
from jobs.engines.engine import Slice
from jobs.engines.local import LocalEngine
from jobs.errors import QuarantineError
from jobs.pipeline.ingest import check_quarantine, read_dumps

DATA = Path(__file__).parents[1] / "data"
WHOLE = gzip.decompress((DATA / "captures" / "S5" / "dump.jsonl.gz").read_bytes())
LINES = WHOLE.splitlines(keepends=True)
SETTINGS = Settings()


class Read:
    """The gaps of some dump files, by kind, and whether so much is lost that it is an error."""

    def __init__(self, folder: Path, dumps: dict[str, bytes], settings: Settings = SETTINGS):
        folder.mkdir(exist_ok=True)
        for name, data in dumps.items():
            (folder / name).write_bytes(data)
        with LocalEngine() as engine:
            read = read_dumps(engine, engine.list_files([str(folder)]), settings)
        found = read.incomplete(settings)
        self.texts = {each.kind: str(each.text).replace(f"{folder}/", "") for each in found}
        assert len(self.texts) == len(found)
        self.is_error = False
        try:
            check_quarantine(read.counts, [], str(folder), settings)
        except QuarantineError:
            self.is_error = True


@pytest.mark.parametrize("ranges", [False, True])
def test_a_file_whose_line_feeds_are_gone_is_lost_by_its_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ranges: bool
) -> None:
    if ranges:
        monkeypatch.setattr(files, "MOST_BYTES", 1_000)
        monkeypatch.setattr(files, "_BYTES_OF_A_RANGE", 997)
    # 400 lines in one: under one percent of the lines, and most of the bytes.
    glued = b"".join(line.removesuffix(b"\n") for line in LINES[:400]) + b"\n"
    data = glued + b"".join(LINES[400:])
    read = Read(tmp_path / "dumps", {"a.jsonl": data, "b.jsonl": WHOLE})
    assert read.texts["DUMP_DAMAGED"] == (
        f"dump a.jsonl is damaged: {len(glued):,} of its {len(data):,} bytes are in 1 line that no "
        "collector wrote"
    )
    lines, size = 2 * len(LINES) - 399, len(data) + len(WHOLE)
    lost = f"1 of {lines:,} lines, {len(glued):,} of {size:,} bytes of all dumps"
    assert read.texts["LINES_LOST"].startswith(lost)
    assert read.is_error


def test_nul_bytes_are_counted(tmp_path: Path) -> None:
    data = b"".join(LINES[:90]) + b"\0" * 4_096 + b"\n" + b"".join(LINES[91:])
    read = Read(tmp_path / "dumps", {"a.jsonl": data})
    assert read.texts["NUL_BYTES"] == (
        "dump a.jsonl has 4,096 NUL bytes, as a machine's crash leaves behind: that part is lost"
    )
    # The NULs that end the members of an archive are no crash, and its end is no cut.
    archive = Read(tmp_path / "archives", {"a.tar": data + b"\0" * 4_096})
    assert archive.texts.keys() <= {"NUL_BYTES", "LINES_LOST"}
    assert archive.texts["NUL_BYTES"] == "dump a.tar is a tar archive: unpack it, and run again"


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_a_last_line_without_its_end_is_a_cut_where_it_is_none(tmp_path: Path, ending: str) -> None:
    pack = gzip.compress if ending else bytes
    data = b"".join(LINES[:90])
    cut = Read(tmp_path / "cut", {f"a.jsonl{ending}": pack(data + LINES[90][:70])})
    assert cut.texts["DUMP_CUT"] == (
        f"dump a.jsonl{ending} ends early after 91 lines: its last line has 70 bytes and no end"
    )
    assert Read(tmp_path / "whole", {f"a.jsonl{ending}": pack(data.rstrip())}).texts == {}


@pytest.mark.parametrize(
    ("name", "data"),
    [("e.jsonl", b""), ("e.jsonl.gz", b""), ("e.jsonl.gz", gzip.compress(b"", mtime=0))],
)
def test_an_empty_file_among_good_ones_is_said(tmp_path: Path, name: str, data: bytes) -> None:
    read = Read(tmp_path / "dumps", {"a.jsonl": WHOLE, name: data})
    assert read.texts == {"DUMP_EMPTY": f"dump {name} is empty (was the disk full?)"}


def test_a_line_over_its_bound_and_an_archive_over_its_bounds_are_said(tmp_path: Path) -> None:
    bounds = {"line_bytes": 100_000, "archive_lines": 50}
    long = b"x" * 100_001
    data = {"a.jsonl": WHOLE + long + b"\n", "b.jsonl.gz": gzip.compress(WHOLE)}
    read = Read(tmp_path / "dumps", data, Settings.model_validate({"bounds": bounds}))
    assert read.texts["LINE_TOO_LONG"] == (
        "dump a.jsonl: 1 line of 100,002 bytes was not read: longer than bounds.line_bytes allows"
    )
    assert read.texts["DUMP_CUT"] == (
        "dump b.jsonl.gz ends early after 51 lines: it has more text than the bounds of an archive "
        "allow"
    )


def test_what_one_odd_member_sends_is_no_new_word(tmp_path: Path) -> None:
    """They are 1.6 % of the bytes, and whole: of their kind most lines are understood."""
    infos = [n for n, line in enumerate(LINES) if b'"consumer_running_info"' in line]
    lines = list(LINES)
    for number in infos[:8]:
        odd = json.loads(lines[number]) | {"body": "{}x" * 600}
        lines[number] = f"{json.dumps(odd)}\n".encode()
    read = Read(tmp_path / "dumps", {"a.jsonl": b"".join(lines)})
    assert (read.texts, read.is_error) == ({}, False)


def test_a_cluster_of_another_time_is_said_by_name(tmp_path: Path) -> None:
    odd = [
        line.replace(b'"2026-', b'"2031-').replace(b'"cluster": "', b'"cluster": "odd-')
        for line in LINES[:7]
    ]
    assert odd[0] != LINES[0]
    read = Read(tmp_path / "dumps", {"a.jsonl": WHOLE, "odd.jsonl": b"".join(odd)})
    text = read.texts["TIMES_APART"]
    assert text.startswith("cluster odd-")
    assert ": 7 lines of 2031-" in text


def test_of_a_damaged_archive_every_line_before_the_damage_is_read(tmp_path: Path) -> None:
    """Where it is known what lies before: after 50 lines come a block that is none, and others."""
    packer = zlib.compressobj(wbits=31)
    packed = packer.compress(b"".join(LINES[:50])) + packer.flush(zlib.Z_FULL_FLUSH)
    packed += b"\xff" * 99 + packer.compress(WHOLE) + packer.flush()
    read = Read(tmp_path / "dumps", {"a.jsonl.gz": packed})
    assert read.texts["DUMP_CUT"].startswith("dump a.jsonl.gz ends early after 50 lines: the gzip")


@pytest.mark.parametrize("place", [3_000, 9_000, 15_000])
def test_a_flipped_byte_loses_no_line_that_came_before_it(tmp_path: Path, place: int) -> None:
    packed = bytearray(gzip.compress(WHOLE))
    before = zlib.decompressobj(wbits=31).decompress(packed[:place])
    packed[place] ^= 0xFF
    file = tmp_path / "a.jsonl.gz"
    file.write_bytes(packed)
    lines = SliceLines(Slice(0, "dump", str(file), len(packed)), SETTINGS.bounds)
    came = b"".join(line.text + b"\n" for line in lines)
    assert lines.problem is not None
    assert len(before) > 10_000
    assert came.startswith(before)


def test_no_dump_of_a_real_cluster_has_lost_anything(tmp_path: Path) -> None:
    dumps = sorted(DATA.glob("*/*/dump.jsonl.gz"))
    assert len(dumps) > 45
    with LocalEngine() as engine:
        listed = engine.list_files([*map(str, dumps)])
        for file in listed:
            assert read_dumps(engine, [file], SETTINGS).incomplete(SETTINGS) == [], file
