"""The kernel: however the snapshot tables are cut into slices, the dossiers are those of the plain
fold, each in its shard.
"""

from __future__ import annotations

import random
from collections import Counter
from datetime import timedelta
from typing import Any, NamedTuple
from unittest import mock

import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from pyarrow.fs import LocalFileSystem

from jobs.config.window import Window
from jobs.declared.contents import MEMBER_FACTS, ROUTE_FACTS
from jobs.engines.engine import Slice
from jobs.engines.pieces import (
    FOR_ALL,
    all_values,
    pack_rows,
    pack_value,
    shard_of,
    unpack_rows,
    unpack_value,
)
from jobs.fold import kernel, numbers
from jobs.fold.dossiers import group_of_nobody
from jobs.fold.kernel import Cutting, runs_of
from jobs.fold.runs import ContentIds
from jobs.fold.slice_facts import FACTS, Facts, merge_facts
from jobs.fold.slices import TableStep
from jobs.schemas import BROKER_POLLS, SNAPSHOT_TABLES
from tests.fold.fleets import EXPIRY_SECONDS, START, fleet
from tests.fold.plain import fold_plainly, parts_of
from tests.support.folding import FoldedShards, fold_slices, whole
from tests.support.ids import ids_locally

pc: Any = pyarrow.compute
seeds = st.integers(0, 1 << 32)
#: A fleet has something of everything; `make fuzz` tries more of them.
few = hypothesis_settings(max_examples=hypothesis_settings.default.max_examples // 3)


class Cuts(NamedTuple):
    """How tables are cut: into so many slices at most, where, and in what order."""

    seed: int
    slices: int
    #: ``rows``: at any row; ``scattered``: each row anywhere; ``rounds``: in time, the round at a
    #: cut on both sides.
    how: str
    #: Some slices come twice, as a file that lies in a folder under two names.
    has_copies: bool
    shards: int
    #: By how many tasks they are read, and what a task holds before it gives it away.
    tasks: int
    most_held: int


cuttings = st.builds(
    Cuts,
    seeds,
    st.integers(1, 5),
    st.sampled_from(["rows", "scattered", "rounds"]),
    st.booleans(),
    st.integers(1, 7),
    st.integers(1, 5),
    st.sampled_from([1, 20, 1 << 18]),
)


def cut(rows: pa.Table, cuts: Cuts, random_: random.Random) -> list[pa.Table]:
    number = random_.randint(1, cuts.slices)
    if cuts.how == "scattered":
        owners = [random_.randrange(number) for _ in range(rows.num_rows)]
        slices = [rows.filter(pa.array([o == each for o in owners])) for each in range(number)]
    elif cuts.how == "rounds" and "snapshot_time" in rows.schema.names:
        times = sorted(set(rows["snapshot_time"].drop_null().to_pylist()))
        edges = sorted(random_.choices(times, k=number - 1)) if times else []
        slices = _by_time(rows, edges)
    else:
        edges = sorted(random_.randint(0, rows.num_rows) for _ in range(number - 1))
        pairs = zip([0, *edges], [*edges, rows.num_rows], strict=True)
        slices = [rows.slice(start, stop - start) for start, stop in pairs]
    if cuts.has_copies:
        slices += random_.sample(slices, k=random_.randint(0, len(slices)))
    random_.shuffle(slices)
    return slices


def _by_time(rows: pa.Table, edges: list[Any]) -> list[pa.Table]:
    """The rows between the edges, of both; what has no time is in all."""
    slices = []
    time = rows["snapshot_time"]
    for since, until in zip([None, *edges], [*edges, None], strict=True):
        chosen = pc.is_null(time)
        after = pa.scalar(True) if since is None else pc.greater_equal(time, since)
        before = pa.scalar(True) if until is None else pc.less_equal(time, until)
        here = pc.and_(after, before)
        if since is None and until is None:
            slices.append(rows)
            continue
        slices.append(rows.filter(pc.or_(chosen, here.fill_null(False))))
    return slices


def sliced(tables: dict[str, pa.Table], cuts: Cuts, cutting: Cutting) -> list[tuple[str, pa.Table]]:
    random_ = random.Random(cuts.seed)  # noqa: S311
    found = [
        (table.name, rows)
        for table in cutting.tables()
        for rows in cut(tables[table.name], cuts, random_)
    ]
    random_.shuffle(found)
    return found


def folded(tables: dict[str, pa.Table], cuts: Cuts, cutting: Cutting) -> FoldedShards:
    with mock.patch("jobs.fold.runs.MOST_HELD", cuts.most_held):
        return fold_slices(sliced(tables, cuts, cutting), cutting, cuts.tasks)


def with_ids(tables: dict[str, pa.Table]) -> dict[str, pa.Table]:
    return tables | ids_locally(
        tables["heartbeats"], tables["broker_polls"], tables["topic_routes"], EXPIRY_SECONDS
    )


# ---------------------------------------------------------------- any cutting, the same dossiers


@pytest.mark.long
@pytest.mark.parametrize("has_ids", [False, True])
@few
@given(seeds, cuttings)
def test_however_the_rows_are_cut_the_dossiers_are_those_of_the_plain_fold(has_ids, seed, cuts):
    tables = fleet(seed, groups=2)
    cutting = Cutting(cuts.shards, EXPIRY_SECONDS, has_ids, has_ids)
    came = folded(with_ids(tables) if has_ids else tables, cuts, cutting)
    assert parts_of(came.all()) == fold_plainly(tables)


@pytest.mark.parametrize(("list_ids", "route_ids"), [(True, False), (False, True)])
def test_lists_may_come_by_ids_and_routes_by_rows_or_the_other_way_round(list_ids, route_ids):
    tables = fleet(7, groups=2)
    cutting = Cutting(3, EXPIRY_SECONDS, list_ids, route_ids)
    came = fold_slices(whole(with_ids(tables), cutting), cutting)
    assert parts_of(came.all()) == fold_plainly(tables)


@pytest.mark.long
@pytest.mark.parametrize("rows_at_a_time", [1, 50])
@pytest.mark.parametrize("has_ids", [False, True])
def test_small_batches_and_small_pieces_are_put_together(monkeypatch, rows_at_a_time, has_ids):
    tables = fleet(1, groups=2)
    monkeypatch.setattr(numbers, "_ROWS_AT_A_TIME", rows_at_a_time)
    monkeypatch.setattr(kernel, "_MOST_RECORDS", rows_at_a_time)
    monkeypatch.setattr("jobs.engines.pieces._PIECE_BYTES", 200)
    cutting = Cutting(3, EXPIRY_SECONDS, has_ids, has_ids)
    came = fold_slices(whole(with_ids(tables) if has_ids else tables, cutting), cutting)
    assert parts_of(came.all()) == fold_plainly(tables)


@pytest.mark.long
@few
@given(seeds, st.integers(1, 40), st.booleans(), st.booleans())
def test_files_are_cut_as_tables_are_by_row_groups_or_by_their_bytes(
    tmp_path_factory, seed, row_group_size, has_content, has_ids
):
    folder = tmp_path_factory.mktemp("tables")
    tables = fleet(seed, groups=2)
    cutting = Cutting(3, EXPIRY_SECONDS, has_ids, has_ids)
    of_files = with_ids(tables) if has_ids else tables
    slices = []
    for table in cutting.tables():
        path = str(folder / f"{table.name}.parquet")
        pq.write_table(of_files[table.name], path, row_group_size=row_group_size)
        if has_content:
            content = pa.py_buffer((folder / f"{table.name}.parquet").read_bytes())
            slices.append((table.name, numbers.open_files(table, [content])))
            continue
        groups = pq.read_metadata(path).num_row_groups
        for edges in (range(groups // 2), range(groups // 2, groups)):
            slices.append((table.name, numbers.open_files(table, [path], LocalFileSystem(), edges)))
    assert parts_of(fold_slices(slices, cutting).all()) == fold_plainly(tables)


def test_nothing_at_all_gives_no_dossier():
    for has_ids in (False, True):
        cutting = Cutting(2, EXPIRY_SECONDS, has_ids, has_ids)
        empty = {table.name: table.schema.empty_table() for table in SNAPSHOT_TABLES}
        came = fold_slices(whole(empty, cutting), cutting)
        assert came.all() == []
        assert not came.facts.rounds
        assert fold_slices([], cutting).all() == []


# ---------------------------------------------------------------- shards


@pytest.mark.long
@few
@given(seeds, cuttings, st.booleans())
def test_a_group_is_in_the_shard_of_its_name_and_a_route_where_a_group_subscribes(
    seed, cuts, has_ids
):
    tables = fleet(seed, groups=3)
    cutting = Cutting(cuts.shards, EXPIRY_SECONDS, has_ids, has_ids)
    came = folded(with_ids(tables) if has_ids else tables, cuts, cutting)
    for shard, dossiers in came.dossiers.items():
        names = [(each.cluster, each.consumer_group) for each in dossiers]
        assert {shard_of(name, cuts.shards) for _, name in names} <= {shard}
    subscribers = came.facts.subscribers()
    dealt = came.topics()
    subjects = {(row["cluster"], row["topic"]) for row in tables["topic_routes"].to_pylist()}
    for cluster, topic in subjects:
        groups = subscribers.get((cluster, topic), [group_of_nobody(topic)])
        wanted = {shard_of(group, cuts.shards) for group in groups}
        assert {shard for shard, topics in dealt.items() if (cluster, topic) in topics} == wanted


def test_a_shard_has_the_contents_that_its_runs_name_and_no_other():
    tables = with_ids(fleet(6, groups=4))
    early = tables["broker_polls"]["snapshot_time"].to_pylist()
    tables["broker_polls"] = tables["broker_polls"].filter(
        pa.array([each < START + timedelta(seconds=60) for each in early])
    )
    cutting = Cutting(3, EXPIRY_SECONDS, list_ids=True, route_ids=True)
    came = fold_slices(whole(tables, cutting), cutting)
    kept = 0
    for pieces in came.pieces.values():
        runs = runs_of(pieces)
        named = set(runs.lists.runs["list_id"].to_pylist()) - {None}
        assert set(runs.lists.records) == named
        assert set(runs.routes.records) == set(runs.routes.runs["route_id"].to_pylist())
        kept += len(named)
    assert 0 < kept < tables["member_lists"].num_rows


@pytest.mark.parametrize("has_ids", [False, True])
def test_a_task_gives_each_content_once_to_each_shard_that_names_it(has_ids):
    tables = fleet(6, groups=4)
    tables = with_ids(tables) if has_ids else tables
    cutting = Cutting(3, EXPIRY_SECONDS, has_ids, has_ids)
    given: Counter[Any] = Counter()
    for table in cutting.tables():
        rows = tables[table.name]
        halves = [rows.slice(0, rows.num_rows // 2), rows.slice(rows.num_rows // 2)]
        with mock.patch.object(numbers, "_ROWS_AT_A_TIME", 10):
            # The same file twice: its contents are no new ones.
            pieces = list(cutting.pieces(table, [*halves, *halves]))
        for kind in (kernel.LISTS, kernel.ROUTES_BY_ID):
            of_kind = [piece for piece in pieces if piece.kind == kind]
            for piece in of_kind:
                given.update((piece.shard, kind, id_) for id_ in unpack_value(piece.data))
    assert {kind for _, kind, _ in given} == {kernel.LISTS, kernel.ROUTES_BY_ID}
    assert set(given.values()) == {1}


def test_a_shard_is_the_same_in_every_process():
    # hash() would give another one in each process.
    assert [shard_of(name, 8) for name in ("G_PAY", "", "主")] == [4, 0, 2]
    assert {shard_of(f"G{number}", 16) for number in range(400)} == set(range(16))


# ---------------------------------------------------------------- what the driver has to know


@pytest.mark.long
@few
@given(seeds, cuttings, st.booleans())
def test_the_facts_of_slices_are_those_of_the_whole(seed, cuts, has_ids):
    tables = fleet(seed, groups=3)
    cutting = Cutting(cuts.shards, EXPIRY_SECONDS, has_ids, has_ids)
    tables = with_ids(tables) if has_ids else tables
    came = folded(tables, cuts, cutting).facts
    wanted = fold_slices(whole(tables, cutting), cutting).facts
    assert _told(came) == _told(wanted)
    # Rows of one list that lie in several slices are parts of it, which have ids of their own.
    assert came == wanted or not has_ids
    asked = {(row["cluster"], row["consumer_group"]) for row in tables["broker_polls"].to_pylist()}
    if not has_ids:
        asked |= {
            (row["cluster"], row["consumer_group"]) for row in tables["heartbeats"].to_pylist()
        }
    assert came.polled <= asked
    times = {micros(row["snapshot_time"]) for row in tables["broker_polls"].to_pylist()}
    assert set().union(*came.rounds.values()) <= times


def _told(facts):
    subscribers = {topic: sorted(groups) for topic, groups in facts.subscribers().items()}
    return facts.rounds, facts.polled, subscribers, facts.offsets, facts.indistinct


def micros(time):
    return int(time.timestamp()) * 1_000_000


def test_what_many_tasks_know_alike_is_merged_to_what_one_knows():
    polls = whole(fleet(3, groups=3), Cutting(2, EXPIRY_SECONDS))
    parts = [
        pack_value(FOR_ALL, FACTS, fold_slices(polls, Cutting(2, EXPIRY_SECONDS)).facts)
        for _ in range(40)
    ]
    (one,) = all_values(merge_facts(parts[:1]), FACTS)
    (merged,) = all_values(merge_facts(parts), FACTS)
    assert merged == one
    assert merged.polls.rounds.num_rows == one.polls.rounds.num_rows
    for name in ("unanswered", "refused"):
        runs = [sum(each.num_rows for each in getattr(of.polls, name)) for of in (merged, one)]
        assert runs[0] == runs[1]


def test_facts_of_nothing_and_of_one_part():
    assert Facts.of([]) == Facts()
    part = Facts({"c": {3, 5}}, {("c", "G"): {"1"}}, {"1": ("T",)})
    assert Facts.of([part]) == part
    assert Facts.of([part, Facts({"c": {4, 9}}), Facts()]).rounds["c"] >= {4, 9}
    assert part.subscribers() == {("c", "T"): ["G"]}


def test_the_dossiers_of_a_shard_come_by_the_names_of_their_groups():
    cutting = Cutting(2, EXPIRY_SECONDS)
    for dossiers in fold_slices(whole(fleet(2, groups=3), cutting), cutting).dossiers.values():
        found = [(each.cluster, each.consumer_group) for each in dossiers]
        assert found == sorted(set(found))


# ---------------------------------------------------------------- the window, and one group


def written(tmp_path, tables):
    """Each table as a file, and the slice that is this file."""
    slices = []
    for number, (name, rows) in enumerate(tables.items()):
        path = tmp_path / f"{name}.parquet"
        pq.write_table(rows, path)
        slices.append(Slice(number, name, str(path), path.stat().st_size))
    return slices


class _Made:
    """A cutting whose pieces are there already."""

    def __init__(self, shards, pieces):
        self.shards = shards
        self._made = pieces

    def pieces(self, *_):
        return self._made


@pytest.mark.parametrize("has_content", [False, True])
@pytest.mark.parametrize("has_ids", [False, True])
def test_a_window_and_a_group_are_cut_out_where_a_slice_is_read(tmp_path, has_content, has_ids):
    tables = fleet(5, groups=3)
    since, until = START + timedelta(seconds=60), START + timedelta(seconds=180)
    chosen = {}
    for name, rows in tables.items():
        kept = [
            row
            for row in rows.to_pylist()
            if _is_in(row, since - timedelta(seconds=90) * (name == "topic_routes"), until)
            and row.get("consumer_group", "G1") == "G1"
        ]
        chosen[name] = pa.Table.from_pylist(kept, rows.schema)
    cutting = Cutting(2, EXPIRY_SECONDS, has_ids, has_ids)
    step = TableStep(cutting, Window(since, until), 90, group="G1")
    every = with_ids(tables) if has_ids else tables
    pieces = []
    read = {table.name: every[table.name] for table in cutting.tables()}
    for slice_ in written(tmp_path, read):
        content = None
        if has_content:
            content = pa.py_buffer((tmp_path / f"{slice_.what}.parquet").read_bytes())
        pieces += step([(slice_, content)])

    came = fold_slices([("heartbeats", pa.table({}))], _Made(cutting.shards, pieces))
    assert parts_of(came.all()) == fold_plainly(chosen)


@pytest.mark.long
@few
@given(seeds, cuttings, st.integers(1, 9), st.booleans())
def test_rows_that_come_batch_by_batch_fold_as_whole_tables_however_they_are_cut(
    seed, cuts, rows_of_a_batch, has_ids
):
    """A list may lie in several partitions, and in several batches of one."""
    tables = fleet(seed, groups=2)
    cutting = Cutting(3, EXPIRY_SECONDS, route_ids=has_ids)
    every = with_ids(tables) if has_ids else tables
    random_ = random.Random(seed)  # noqa: S311
    step = TableStep(cutting, Window(), 90)
    pieces = [
        piece
        for table in cutting.tables()
        for partition in cut(every[table.name].select(cutting.columns(table)), cuts, random_)
        for piece in step.of_batches(table.name, iter(partition.to_batches(rows_of_a_batch)))
    ]
    came = fold_slices([("heartbeats", pa.table({}))], _Made(cutting.shards, pieces))
    assert parts_of(came.all()) == fold_plainly(tables)


def _is_in(row, since, until):
    if row.get("source") == "CLIENT_LOG":
        # What a client wrote before the window is in force in it.
        return (row["logged_at"] or row["observed_at"]) < until
    return since <= row["snapshot_time"] < until


def test_lists_alone_are_enough_where_nothing_shows_the_polls():
    tables = fleet(3)
    alone = {name: rows.schema.empty_table() for name, rows in tables.items()}
    alone["heartbeats"] = tables["heartbeats"]
    came = fold_slices([("heartbeats", tables["heartbeats"])], Cutting(2, EXPIRY_SECONDS))
    assert parts_of(came.all()) == fold_plainly(alone)
    assert came.facts.polled


def test_a_run_has_the_address_that_was_asked_and_another_address_is_another_run():
    tables = fleet(1)
    polls = tables["broker_polls"]
    addresses = [f"h:{row % 2}" for row in range(polls.num_rows)]
    place = polls.schema.get_field_index("broker_addr")
    tables["broker_polls"] = polls.set_column(
        place, polls.schema.field(place), pa.array(addresses, pa.string())
    )
    cutting = Cutting(2, EXPIRY_SECONDS)
    came = fold_slices(whole(tables, cutting), cutting)
    runs = [run for dossier in came.all() for run in dossier.polls]
    assert {run.broker_addr for run in runs} == {None, "h:0", "h:1"}  # a list has no address
    assert parts_of(came.all()) == fold_plainly(tables)
    rounds = {micros(time) for time in polls["snapshot_time"].to_pylist()}
    assert set().union(*came.facts.rounds.values()) == rounds


def test_pieces_are_packed_rows_and_nothing_is_packed_of_none(monkeypatch):
    rows = fleet(1)["broker_polls"]
    monkeypatch.setattr("jobs.engines.pieces._PIECE_BYTES", 1000)
    pieces = list(pack_rows(3, "polls", rows))
    assert len(pieces) > 1
    assert {(each.shard, each.kind) for each in pieces} == {(3, "polls")}
    assert pa.concat_tables([unpack_rows(each.data) for each in pieces]).equals(rows)
    assert list(pack_rows(3, "polls", BROKER_POLLS.schema.empty_table())) == []
    assert FOR_ALL < 0


def test_equal_records_of_other_facts_are_other_contents():
    """In Python 1 and True are equal."""
    number = next(fact for fact in ROUTE_FACTS if fact.name == "perm")
    truth = next(fact for fact in MEMBER_FACTS if fact.name == "chooses_queues")
    facts = ((number, 1), (truth, True))
    assert len({ContentIds([fact]).identify([(value,)])[0] for fact, value in facts}) == 2
