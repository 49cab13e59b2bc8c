"""Slices of dumps -> lines -> pieces: in one piece or in ranges, of a file or of its bytes."""

from __future__ import annotations

import gzip
import random
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.config.bounds import DEFAULT_BOUNDS, Bounds
from jobs.dumps import unpacking
from jobs.dumps.counts import Counts
from jobs.dumps.reading import COUNTS, DumpStep, statements_of
from jobs.dumps.statement import KINDS, Statement
from jobs.dumps.statements import ENTRY_BYTES, Cache, RefusedLine, StatementReader
from jobs.dumps.unpacking import BEGINNING, Line, SliceLines, split_lines
from jobs.engines.engine import Slice
from jobs.engines.pieces import Piece, all_values, shard_of
from jobs.schemas import QUARANTINE
from tests.dumps.samples import BODIES, line

HEARTBEAT, CONNECTION, ROUTE, INFO, STATS, MODES, FLAGS, LOG, DEAD = KINDS
BOUNDS = Bounds()

# ---------------------------------------------------------------- lines


def cut(text: bytes, *places: int) -> list[bytes]:
    edges = [0, *sorted(places), len(text)]
    return [text[one:two] for one, two in pairwise(edges)]


TEXTS = st.lists(st.sampled_from([b"", b"a", b"bc\r", b"x" * 30]), max_size=8).map(b"\n".join)


@given(TEXTS, st.booleans(), st.lists(st.integers(0, 100), max_size=4))
def test_lines_are_the_same_however_the_text_comes(
    text: bytes, ends: bool, places: list[int]
) -> None:
    text += b"\n" * ends
    chunks = cut(text, *[min(place, len(text)) for place in places])
    expected = text.split(b"\n")
    if expected[-1] == b"":
        expected.pop()
    last = len(expected) - 1
    assert list(split_lines(chunks, 100)) == [
        Line(each, len(each), has_end=number < last or text.endswith(b"\n"))
        for number, each in enumerate(expected)
    ]


def test_of_a_line_that_is_too_long_the_beginning_is_kept_and_its_size() -> None:
    long = b"".join(b"%d," % number for number in range(2 * BEGINNING))
    chunks = cut(b"a\n" + long + b"\nb\n" + long, 10, 2_000, 2_500, 7_000)
    most = 2 * BEGINNING
    short = Line(long[:BEGINNING], len(long))
    last = short._replace(has_end=False)
    assert list(split_lines(chunks, most)) == [Line(b"a", 1), short, Line(b"b", 1), last]


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpacking, "_CHUNK", 16)


def lines_of(slice_: Slice, content: bytes | None = None) -> tuple[list[bytes], str | None]:
    lines = SliceLines(slice_, BOUNDS, None if content is None else pa.py_buffer(content))
    return [each.text for each in lines], lines.problem


def slice_of(path: Path, start: int = 0, stop: int = 0, number: int = 0) -> Slice:
    return Slice(number, "dump", f"file:{path}", path.stat().st_size, start, stop)


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
def test_a_file_and_its_bytes_have_the_same_lines(tmp_path: Path, name: str) -> None:
    lines = [b"%d" % number * (number % 40) for number in range(200)]
    text = b"\n".join(lines)
    packed = gzip.compress(text[:500]) + gzip.compress(b"") + gzip.compress(text[500:])
    data = packed if name.endswith(".gz") else text
    (tmp_path / name).write_bytes(data)
    slice_ = slice_of(tmp_path / name)
    assert lines_of(slice_) == lines_of(slice_, data) == (lines, None)


@pytest.mark.usefixtures("small_chunks")
def test_a_line_is_in_the_range_in_which_it_begins(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    lines = [b"", b"a", b"", b"bcdef", b"g" * 40, b"", b"h"]
    path.write_bytes(b"\n".join(lines))
    size = path.stat().st_size
    for first in range(1, size):
        for second in range(first + 1, size):
            ranges = [(0, first), (first, second), (second, size)]
            found = [lines_of(slice_of(path, *each))[0] for each in ranges]
            assert [each for part in found for each in part] == lines, ranges


@pytest.mark.usefixtures("small_chunks")
def test_a_damaged_archive_has_the_lines_before_the_damage_and_says_what_it_is(
    tmp_path: Path,
) -> None:
    random_ = random.Random(5)  # noqa: S311
    lines = [str(random_.getrandbits(64)).encode() for _ in range(300)]
    whole = gzip.compress(b"\n".join(lines) + b"\n")
    broken = bytearray(whole)
    broken[len(whole) // 2] ^= 0xFF
    for data, said in (
        (whole[: len(whole) // 2], "the gzip stream ends early"),
        (whole[:-1], "the gzip stream ends early"),
        (bytes(broken), "the gzip stream is damaged: "),
        (whole + b"appended", "the gzip stream is damaged: "),
        (b"this is not gzip\n", "it is not packed by gzip: "),
    ):
        path = tmp_path / "cut.gz"
        path.write_bytes(data)
        found, problem = lines_of(slice_of(path))
        assert (found, problem) == lines_of(slice_of(path), data)
        assert problem is not None
        assert problem.startswith(said)
        # What comes of a byte that is wrong is noticed some lines later.
        is_cut = said.endswith("early") or data.startswith(whole)
        whole_lines = max(0, len(found) - 1) if is_cut else min(100, len(found))
        assert found[:whole_lines] == lines[:whole_lines]


# ---------------------------------------------------------------- pieces


def pieces_of(path: Path, *lines: str | bytes, number: int = 0, shards: int = 4) -> list[Piece]:
    texts = [each.encode() if isinstance(each, str) else each for each in lines]
    path.write_bytes(b"".join(each + b"\n" for each in texts))
    return list(DumpStep(shards, BOUNDS)([(slice_of(path, number=number), None)]))


def said(pieces: Iterable[Piece]) -> list[Statement]:
    by_subject = statements_of(list(pieces))
    return sorted(
        (each for of_subject in by_subject.values() for each in of_subject),
        key=lambda each: each.order,
    )


def refused(pieces: Iterable[Piece]) -> list[dict[str, object]]:
    return [row for _, rows in all_values(pieces, QUARANTINE.name) for row in rows]


def counted(pieces: Iterable[Piece]) -> Counts:
    return Counts.of(all_values(pieces, COUNTS))


def read(text: str) -> list[Statement]:
    found = StatementReader(DEFAULT_BOUNDS, None).read(text.encode(), 0)
    assert not isinstance(found, RefusedLine)
    return found


def test_pieces_have_what_the_reader_says_of_each_line(tmp_path: Path) -> None:
    lines = [line(kind) for kind in KINDS]

    pieces = pieces_of(tmp_path / "a", *lines)

    found = said(pieces)
    assert [repr(each._replace(order=0)) for each in found] == [repr(read(it)[0]) for it in lines]
    assert [each.order for each in found] == sorted({each.order for each in found})
    for each in pieces:
        for statement in said([each]):
            assert each.shard == shard_of(statement.subject, 4)


def test_what_is_held_leaves_in_pieces_and_nothing_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [line(ROUTE, topic=f"T{number}") for number in range(30)] + ["bad"] * 30
    whole = pieces_of(tmp_path / "a", *lines)
    monkeypatch.setattr("jobs.dumps.reading._STATEMENTS_AT_ONCE", 4)
    monkeypatch.setattr("jobs.dumps.reading._REFUSED_AT_ONCE", 10)

    parts = pieces_of(tmp_path / "a", *lines)

    assert len(parts) > 2 * len(whole)
    assert repr(said(parts)) == repr(said(whole))
    assert refused(parts) == refused(whole)
    assert counted(parts) == counted(whole)


def test_a_log_line_says_how_far_its_print_is_ahead_and_of_which_log(tmp_path: Path) -> None:
    printed = BODIES[LOG].replace("09:00:00,000", "17:00:00,000")
    lines = [
        line(LOG),
        line(LOG, body=printed),
        line(LOG, body=printed, process=None),
        line(LOG, body=BODIES[LOG].replace("2026-01-05 09:00:00,000", "INFO"), process="other"),
        line(ROUTE),
    ]

    counts = counted(
        [
            *pieces_of(tmp_path / "a", *lines[:1], number=0),
            *pieces_of(tmp_path / "b", *lines[1:], number=1),
        ]
    )

    ahead = 8 * 3_600_000_000 - 250_000
    cluster = read(line(LOG))[0].cluster
    assert counts.ahead == {(cluster, "host-1"): ahead, (cluster, "10.0.0.1@1"): ahead}
    assert sum(number for (is_log, *_), number in counts.days.items() if is_log) == 4
    assert counts.days.total() == 5


# ---------------------------------------------------------------- rows

ROWS = [
    *(line(kind) for kind in BODIES),
    # Two answers of one moment: which of them counts must not depend on where they lie.
    line("consumer_connection", body='{"connectionSet":[]}'),
    line("consumer_connection", cluster=None),
    "no line",
    "[1]",
    "",
]


def batch(rows: list[str | None]) -> pa.RecordBatch:
    lines = [None if each is None else each.encode() for each in rows]
    columns = {"line": pa.array(lines, pa.binary()), "file": pa.array(["f"] * len(rows))}
    return pa.RecordBatch.from_pydict(columns)


def of_tasks(tasks: list[list[str | None]]) -> list[Piece]:
    """The pieces of rows that lie in tasks, two rows in a batch."""
    step = DumpStep(4, BOUNDS)
    return [
        piece
        for rows in tasks
        for piece in step.of_rows("lines", [batch(rows[n : n + 2]) for n in range(0, len(rows), 2)])
    ]


def of_rows(pieces: list[Piece]) -> dict[str, object]:
    """What an ingest makes of them."""
    statements = [
        found
        for shard in range(4)
        for _, found in sorted(statements_of([p for p in pieces if p.shard == shard]).items())
    ]
    rows = sorted(map(repr, refused(pieces)))
    return {"statements": statements, "quarantine": rows, "counts": counted(pieces)}


@given(st.permutations(ROWS), st.lists(st.integers(0, len(ROWS)), max_size=3))
def test_rows_give_the_same_however_they_lie(rows: list[str], places: list[int]) -> None:
    edges = [0, *sorted(places), len(rows)]
    tasks: list[list[str | None]] = [list(rows[one:two]) for one, two in pairwise(edges)]
    assert of_rows(of_tasks(tasks)) == of_rows(of_tasks([[*ROWS]]))


def test_rows_that_are_refused_have_their_file_and_no_number() -> None:
    pieces = of_tasks([["no line"], [None]])
    assert [(row["file"], row["line_number"]) for row in refused(pieces)] == [("f", 0)] * 2
    counts = counted(pieces)
    assert (counts.lines, counts.refused, counts.damage[0].lines) == ({0: 2}, 2, 2)
    assert counts.bytes[0] == len("no line") + 2


def test_a_memory_forgets_when_it_is_full() -> None:
    memory: Cache[int, int] = Cache(most_bytes=3 * (10 + ENTRY_BYTES))
    for number in range(4):
        assert memory.remember(number, number, 10) == number
    assert memory == {3: 3}
