"""What every engine does: slices -> pieces -> shards -> pieces, the same on each."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from chispa import assert_df_equality
from hypothesis import given
from hypothesis import strategies as st

from jobs.engines.engine import Slice, in_tasks
from jobs.engines.local import LocalEngine
from jobs.engines.pieces import FOR_ALL, Piece, pack_value, unpack_value
from jobs.errors import InputError
from tests.engines.conftest import ENGINES, LOCAL, local_engine
from tests.engines.steps import (
    SHARDS,
    Failing,
    Squares,
    StepError,
    count,
    fail_on,
    fail_on_shard,
    in_which_task,
    nothing_at_all,
    of_even_shards,
    read_lines,
    to_next_shard,
    was_handed,
)

LINES = b"a bb ccc a dddd"


def slices_of(folder: Path, **contents: bytes) -> list[Slice]:
    return [written(folder, f"{name}.txt", data, name) for name, data in contents.items()]


def written(folder: Path, name: str, data: bytes, what: str) -> Slice:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return Slice(len(list(folder.iterdir())), what, str(path), len(data))


def collected(engine: Any, pieces: Any) -> list[Piece]:
    found = list(engine.collect(pieces))
    assert all(type(piece) is Piece and type(piece.data) is bytes for piece in found)
    return sorted(found)


def values(pieces: list[Piece], kind: str) -> list[Any]:
    return sorted(unpack_value(piece.data) for piece in pieces if piece.kind == kind)


# ---------------------------------------------------------------- slices to pieces


def test_every_slice_becomes_its_pieces(engine: Any, tmp_path: Path) -> None:
    slices = slices_of(tmp_path, x=LINES, y=b"eeeee", blank=b"\n")
    found = collected(engine, engine.map(slices, read_lines))
    lines = [(piece.shard, piece.data) for piece in found if piece.kind == "line"]
    assert lines == sorted((len(each) % SHARDS, each) for each in [*LINES.split(), b"eeeee"])
    assert values(found, "slice") == sorted(
        (each.number, each.what, each.path, each.size) for each in slices
    )


ODD_NAMES = [
    "two words",
    "100%",
    "a%20b",
    "主题-\u00e9-\U0001f600",
    "2026-11-20T10:00:00Z",
    "a#b",
    "a?b=c",
    "a+b&c",
    "{a,b}",
    "[a]*",
    "back\\slash",
    "'quoted\"",
    "new\nline",
    "name._SUCCESS",
]


def test_a_file_of_any_name_is_read_by_that_name(engine: Any, tmp_path: Path) -> None:
    slices = [written(tmp_path, f"{name}/{name}.x", name.encode(), name) for name in ODD_NAMES]
    slices += [written(tmp_path, f"{name}/x", b"-", name) for name in (".hidden", "_under")]
    # What a name must not be taken for.
    for other in ("a b.x", "a.x", "b.x", "a"):
        (tmp_path / other).write_bytes(b"another")
    found = collected(engine, engine.map(slices, read_lines))
    assert values(found, "slice") == sorted(
        (each.number, each.what, each.path, each.size) for each in slices
    )


@pytest.mark.parametrize(
    ("name", "data"), [("empty", b""), (".hidden", b"a"), ("_under", b"a"), ("a._COPYING_", b"a")]
)
def test_no_slice_is_left_out(engine: Any, tmp_path: Path, name: str, data: bytes) -> None:
    """Whoever names a file wants it read: what is hidden is left out where files are listed."""
    slices = [written(tmp_path, "plain", b"a", "plain"), written(tmp_path, name, data, "odd")]
    found = collected(engine, engine.map(slices, read_lines))
    assert [each[1] for each in values(found, "slice")] == ["plain", "odd"]


def test_a_path_may_be_a_uri(engine: Any, tmp_path: Path) -> None:
    (slice_,) = slices_of(tmp_path, x=LINES)
    as_uri = slice_._replace(path=f"file://{slice_.path}")
    found = collected(engine, engine.map([as_uri], read_lines))
    assert len([piece for piece in found if piece.kind == "line"]) == len(LINES.split())


def test_ranges_of_a_file_are_opened_where_they_are_read(engine: Any, tmp_path: Path) -> None:
    (whole,) = slices_of(tmp_path, x=LINES)
    ranges = [whole._replace(number=n, start=2 * n, stop=2 * n + 2) for n in range(3)]
    found = collected(engine, engine.map([*ranges, whole._replace(number=3)], read_lines))
    # None of the three was given the bytes of the file.
    assert values(found, "range") == [False] * 3
    assert [each[0::3] for each in values(found, "slice")] == [(0, 2), (1, 2), (2, 2), (3, 15)]
    lines = sorted(piece.data for piece in found if piece.kind == "line")
    assert lines == sorted([b"a", b"bb", b"c", *LINES.split()])


def test_nothing_comes_to_nothing(engine: Any, tmp_path: Path) -> None:
    for pieces in (
        engine.map([], read_lines),
        engine.map(slices_of(tmp_path, x=LINES), nothing_at_all),
        engine.given([]),
    ):
        assert collected(engine, pieces) == []
        assert collected(engine, engine.by_shard(pieces, count)) == []
        assert collected(engine, engine.judge_groups(pieces, Squares(0))) == []
        assert collected(engine, pieces.only("line").and_also(pieces)) == []


# ---------------------------------------------------------------- pieces


SOME = [
    Piece(0, "a", b""),
    Piece(0, "a", b"\x00\xff"),
    Piece(0, "a", b"\x00\xff"),
    Piece(1, "b", b"1"),
    Piece(FOR_ALL, "c", b"2" * 100_000),
    Piece(1 << 30, "\U0001f600", b"3"),
]


def test_pieces_that_are_given_are_there_again(engine: Any) -> None:
    assert collected(engine, engine.given(iter(SOME))) == sorted(SOME)


def test_some_kinds_and_others_beside_them(engine: Any) -> None:
    some, more = engine.given(SOME), engine.given([Piece(1, "a", b"more"), Piece(7, "d", b"")])
    of = {kind: [piece for piece in SOME if piece.kind == kind] for kind in "abc"}
    assert collected(engine, some.only("a")) == sorted(of["a"])
    assert collected(engine, some.only("a", "c", "none")) == sorted([*of["a"], *of["c"]])
    assert collected(engine, some.only()) == []
    both = some.only("b").and_also(more)
    assert collected(engine, both) == sorted([*of["b"], Piece(1, "a", b"more"), Piece(7, "d", b"")])
    three = both.and_also(some.only("c"))
    assert len(collected(engine, three)) == 4
    assert collected(engine, three.only("d", "c")) == sorted([*of["c"], Piece(7, "d", b"")])
    assert collected(engine, three.only("d", "a").only("d", "c")) == [Piece(7, "d", b"")]
    # What it was made of is as it was.
    assert collected(engine, some) == sorted(SOME)
    assert collected(engine, more.and_also(more)) == sorted(2 * collected(engine, more))


# ---------------------------------------------------------------- shards


def test_a_shard_has_all_its_pieces_at_once_wherever_they_were_made(
    engine: Any, tmp_path: Path
) -> None:
    slices = slices_of(tmp_path, **{f"x{number}": LINES for number in range(5)})
    lines = engine.map(slices, read_lines).only("line")
    shards = collected(engine, engine.by_shard(lines, count))
    assert [piece.shard for piece in shards] == [0, 1, 2]
    assert [unpack_value(piece.data) for piece in shards] == [
        [(("line", b"ccc"), 5)],
        [(("line", b"a"), 10), (("line", b"dddd"), 5)],
        [(("line", b"bb"), 5)],
    ]


def test_steps_over_shards_follow_each_other(engine: Any) -> None:
    pieces = engine.given([Piece(number % SHARDS, "n", bytes([number])) for number in range(9)])
    moved = engine.by_shard(pieces, to_next_shard)
    even = engine.by_shard(moved.and_also(engine.given([Piece(1, "n", b"odd")])), of_even_shards)
    wanted = [Piece((n + 1) % SHARDS, "n", bytes([n])) for n in range(9) if (n + 1) % SHARDS != 1]
    assert collected(engine, even) == sorted(wanted)
    counted = collected(engine, engine.by_shard(even, count))
    assert [piece.shard for piece in counted] == [0, 2]


def test_the_situations_of_a_shard_are_evaluated_and_its_groups_judged_by_the_verdicts(
    engine: Any,
) -> None:
    numbers = {0: [3, 1, 2], 5: [-1], 7: list(range(10, 110)), 8: [200, 200]}
    pieces = [
        pack_value(shard, "number", number) for shard, each in numbers.items() for number in each
    ]
    found = collected(engine, engine.judge_groups(engine.given(pieces), Squares(more=7)))
    assert values(found, "squares") == sorted(
        (sorted(each), sorted((number, number**2 + 7) for number in each if number >= 0))
        for each in numbers.values()
    )
    assert {piece.shard for piece in found if piece.kind == "squares"} == {0, 1, 2}


def test_more_input_makes_more_shards(engine: Any) -> None:
    few, many = engine.shards(0), engine.shards(10 << 30)
    assert 1 <= few < many
    assert few == engine.shards(1) <= engine.shards(1 << 20)
    # A task holds one shard at a time.
    assert (10 << 30) / many <= 64 << 20


@pytest.mark.parametrize("number", [0, 1, 40])
def test_what_the_driver_gathers_is_few_however_many_tasks_made_it(
    engine: Any, number: int
) -> None:
    engine.shards(64 << 20)
    given_ = engine.given([pack_value(FOR_ALL, "number", each) for each in range(number)])
    gathered = list(engine.gather(given_, summed))
    # In one process the driver has them already.
    assert len(gathered) <= (2 if engine.name == "spark" else number)
    assert sum(unpack_value(piece.data) for piece in gathered) == sum(range(number))


def summed(pieces: Sequence[Piece]) -> Iterator[Piece]:
    yield pack_value(FOR_ALL, "number", sum(unpack_value(each.data) for each in pieces))


@pytest.mark.spark
def test_tasks_follow_what_was_read(on_spark: Any) -> None:
    most = on_spark._most_tasks
    assert (on_spark.shards(1), on_spark._tasks) == (1, 1)
    assert (on_spark.shards(2 << 20), on_spark._tasks) == (most, min(2, most))
    for rows, groups, tasks in ((0, 0, 1), (10_000, 5, 1), (50_000, 5, 2), (9, 10_000, most)):
        on_spark.plan_tasks(rows, groups)
        assert on_spark._tasks == min(tasks, most)


def test_an_engine_has_a_name_and_versions(engine: Any) -> None:
    assert engine.name in ("local", "spark")
    assert all(engine.versions.values())


# ---------------------------------------------------------------- what only one of them has


@pytest.mark.long
@pytest.mark.parametrize("name", LOCAL)
def test_a_step_fails_with_its_own_error(
    name: str, local_engines: dict[str, LocalEngine], tmp_path: Path
) -> None:
    engine = local_engines[name]
    with pytest.raises(StepError, match=r"^x$"):
        engine.map(slices_of(tmp_path, x=LINES), fail_on)
    numbers = engine.given([pack_value(0, "number", 1)])
    with pytest.raises(StepError, match=r"^number$"):
        engine.by_shard(numbers, fail_on_shard)
    for where in ("find", "evaluate", "judge"):
        with pytest.raises(StepError, match=f"^{where}$"):
            engine.judge_groups(numbers, Failing(0, where))
    with pytest.raises(FileNotFoundError):
        engine.map([Slice(0, "x", str(tmp_path / "gone"), 1)], read_lines)
    # It goes on after an error.
    assert collected(engine, engine.judge_groups(numbers, Squares(0)))


@pytest.mark.spark
def test_the_error_of_a_step_is_in_that_of_spark(on_spark: Any, tmp_path: Path) -> None:
    from pyspark.errors import PySparkException  # noqa: PLC0415

    frame = on_spark.map(slices_of(tmp_path, x=LINES), fail_on)
    with pytest.raises(PySparkException, match="StepError: x"):
        list(on_spark.collect(frame))


@pytest.mark.parametrize("name", [each for each in ENGINES if "spill" in str(each)])
@pytest.mark.parametrize("fails", [False, True])
def test_what_was_spilled_is_gone_when_the_engine_is_closed(
    name: str, fails: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    slices = slices_of(tmp_path / "input", x=LINES, y=LINES)

    def files() -> list[Path]:
        return [path for path in (tmp_path / "temporary").rglob("*") if path.is_file()]

    def run() -> None:
        with local_engine(name) as engine:
            lines = engine.map(slices, read_lines)
            assert {path.name for path in files()} >= {"0", "1"}
            spilled = len(files())
            counted = engine.by_shard(lines, count)
            assert len(files()) > spilled
            assert len(collected(engine, counted.and_also(lines))) == 2 * (5 + 1) + 4
            if fails:
                engine.by_shard(lines, fail_on_shard)
        # The engine is there yet, so that no end of its life did it.
        assert not files()

    if fails:
        with pytest.raises(StepError):
            run()
    else:
        run()
    assert list((tmp_path / "temporary").iterdir()) == []


def test_little_is_held_in_memory_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    with LocalEngine() as engine:
        assert collected(engine, engine.given(SOME)) == sorted(SOME)
    assert not (tmp_path / "temporary").exists()


def test_an_engine_shows_what_it_goes_through(tmp_path: Path) -> None:
    shown: list[tuple[str, list[Any]]] = []

    def each(items: Any, what: str) -> Any:
        shown.append((what, []))
        for item in items:
            shown[-1][1].append(item)
            yield item

    slices = slices_of(tmp_path, x=LINES, y=b"")
    with LocalEngine(1, each) as engine:
        engine.by_shard(engine.map(slices, read_lines).only("line"), count)
    assert shown[0] == ("files", slices)
    assert shown[1][0] == "shards"
    assert set(shown[1][1]) >= {0, 1, 2}


@pytest.mark.spark
def test_pieces_are_rows_of_three_columns_and_let_go_with_the_engine(
    spark: Any, tmp_path: Path
) -> None:
    from jobs.spark.spark_engine import SparkEngine  # noqa: PLC0415

    wanted = spark.createDataFrame(
        [(len(each) % SHARDS, "line", bytearray(each)) for each in LINES.split()],
        "shard int, kind string, data binary",
    )
    with SparkEngine(spark) as engine:
        kept = engine.map(slices_of(tmp_path, x=LINES), read_lines)
        lines = kept.only("line")
        assert_df_equality(lines.rows, wanted, ignore_row_order=True, ignore_nullable=True)
        moved = engine.by_shard(lines, to_next_shard)
        assert_df_equality(
            moved.rows,
            wanted.selectExpr(f"pmod(shard + 1, {SHARDS}) AS shard", "kind", "data"),
            ignore_row_order=True,
            ignore_nullable=True,
        )
        assert kept.rows.storageLevel.useDisk
        assert moved.rows.storageLevel.useDisk
    assert not kept.rows.storageLevel.useDisk
    assert not moved.rows.storageLevel.useDisk


@pytest.mark.spark
def test_the_situations_of_one_shard_are_spread_over_all_cores(on_spark: Any) -> None:
    pieces = on_spark.given(pack_value(0, "number", number) for number in range(100))
    (tasks,) = values(collected(on_spark, on_spark.judge_groups(pieces, Squares(0))), "tasks")
    assert len(tasks) >= 2


@pytest.mark.spark
def test_the_few_situations_of_a_shard_are_evaluated_beside_it(on_spark: Any) -> None:
    pieces = on_spark.given(
        pack_value(shard, "number", number) for shard in range(3) for number in range(16)
    )
    done = on_spark.judge_groups(pieces, Squares(0))
    found = collected(on_spark, done)
    assert [len(tasks) for tasks in values(found, "tasks")] == [1, 1, 1]
    assert len(values(found, "squares")) == 3


#: Names that Spark's own reader might take for patterns or for parts of an address.
_REMOTE_NAMES = ["two words", "100%", "a%20b", "a#b", "a?b=c", "a+b&c", "{a,b}", "[a]*"]


@pytest.mark.spark
def test_spark_hands_over_the_files_of_other_file_systems(on_spark: Any, tmp_path: Path) -> None:
    conf = on_spark.spark.sparkContext._jsc.hadoopConfiguration()
    conf.set("fs.viewfs.mounttable.remote.link./data", f"file:{tmp_path}")
    here = [written(tmp_path, f"{name}.x", name.encode(), name) for name in _REMOTE_NAMES]
    there = [
        each._replace(number=100 + each.number, path=f"viewfs://remote/data/{each.what}.x")
        for each in here
    ]
    on_spark.shards(1 << 20)
    found = collected(on_spark, on_spark.map([*here, *there], was_handed))
    assert values(found, "handed") == sorted(
        (each.number, None if each in here else each.what.encode()) for each in [*here, *there]
    )


@pytest.mark.spark
def test_a_large_file_that_spark_alone_can_open_is_refused(on_spark: Any) -> None:
    large = Slice(0, "x", "viewfs://remote/data/x", 257 << 20)
    with pytest.raises(InputError, match=r"has 269,484,032 bytes.* Split the file$") as error:
        on_spark.map([large], was_handed)
    # Arrow names every place where it looked for Hadoop's library.
    assert len(str(error.value)) < 1000


@given(st.lists(st.integers(0, 50), max_size=20), st.integers(1, 6))
def test_tasks_have_all_slices_in_their_order_and_about_equally_much(
    sizes: list[int], tasks: int
) -> None:
    slices = [Slice(number, "x", "x", size) for number, size in enumerate(sizes)]
    found = list(in_tasks(slices, sum(sizes), tasks))
    assert [each for of_task in found for each in of_task] == slices
    assert len(found) <= tasks
    assert all(found)
    for of_task in found:
        read = sum(each.size for each in of_task)
        assert read <= sum(sizes) / tasks + max(sizes)


@pytest.mark.spark
def test_files_that_follow_each_other_are_opened_by_one_task(on_spark: Any, tmp_path: Path) -> None:
    slices = [written(tmp_path, f"{size}", b"x" * size, "x") for size in (1, 2, 30, 40)]
    on_spark.shards(2 << 20)
    found = collected(on_spark, on_spark.map(slices, in_which_task))
    by_task: dict[int, list[int]] = {}
    for task, size in values(found, "task"):
        by_task.setdefault(task, []).append(size)
    assert sorted(by_task.values()) == [[1, 2, 30], [40]]


@pytest.mark.spark
@pytest.mark.parametrize("pieces", [[], SOME])
def test_pieces_that_are_given_need_no_worker(spark: Any, pieces: list[Piece]) -> None:
    from jobs.spark.session import suited  # noqa: PLC0415
    from jobs.spark.spark_engine import SparkEngine  # noqa: PLC0415

    with suited(spark) as own, SparkEngine(own) as engine:
        given_ = engine.given(pieces)
        # Rows of Python would come out of a worker, as an RDD.
        assert "LocalTableScan" in given_.rows._jdf.queryExecution().executedPlan().toString()
        assert given_.most_bytes == sum(len(piece.data) for piece in pieces)
        assert collected(engine, given_) == sorted(pieces)


@pytest.mark.spark
def test_much_is_collected_part_by_part(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from jobs.spark import spark_engine as on_spark  # noqa: PLC0415

    with on_spark.SparkEngine(spark) as engine:
        pieces = engine.given(SOME)
        calls: list[int] = []
        by_parts = type(pieces.rows).toLocalIterator

        def counted(rows: Any) -> Any:
            calls.append(1)
            return by_parts(rows)

        monkeypatch.setattr(type(pieces.rows), "toLocalIterator", counted)
        assert collected(engine, pieces) == sorted(SOME)
        assert not calls
        monkeypatch.setattr(on_spark, "_COLLECTED_AT_ONCE", 10)
        assert collected(engine, pieces) == sorted(SOME)
        assert calls
