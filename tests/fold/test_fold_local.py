"""The driver's fold: the same dossiers as the plain one, from rows and from ids."""

from __future__ import annotations

from datetime import timedelta

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from jobs.fold import local, numbers
from jobs.fold.runs import uses_ids
from jobs.judge.dossier import DOSSIER, read_dossiers
from jobs.schemas import BROKER_POLLS, HEARTBEATS, SNAPSHOT_TABLES, TOPIC_ROUTES
from tests.fold.fleets import EXPIRY_SECONDS, START, fleet
from tests.fold.plain import fold_plainly, parts_of
from tests.support.ids import ids_locally


def fold(tables):
    lists = local.member_runs(tables["heartbeats"], tables["broker_polls"], EXPIRY_SECONDS)
    routes = local.route_runs(tables["topic_routes"])
    return local.fold(lists, routes, tables["client_states"], tables["queue_offsets"])


@given(st.integers(0, 1 << 32))
@hypothesis_settings(max_examples=150)
def test_the_fold_is_the_plain_one(seed):
    tables = fleet(seed, groups=2)
    assert parts_of(fold(tables)) == fold_plainly(tables)


@given(st.integers(0, 1 << 32))
@hypothesis_settings(max_examples=50)
def test_ids_give_what_the_rows_give(seed):
    tables = fleet(seed, groups=2)
    ids = ids_locally(
        tables["heartbeats"], tables["broker_polls"], tables["topic_routes"], EXPIRY_SECONDS
    )
    lists = local.member_runs_by_id(ids["broker_polls"], ids["member_lists"])
    routes = local.route_runs_by_id(ids["route_polls"], ids["route_contents"])
    from_ids = local.fold(lists, routes, tables["client_states"], tables["queue_offsets"])
    assert parts_of(from_ids) == fold_plainly(tables)


def test_a_group_that_no_broker_ever_listed_has_the_routes_of_its_offsets_topics():
    dossiers = {
        (each.cluster, each.consumer_group): each
        for each in read_dossiers(fold(fleet(2, groups=4)).to_batches())
    }
    never_listed = dossiers["c", "G3"]
    assert not never_listed.list_topics
    assert "T" in never_listed.offsets
    assert "T" in never_listed.routes


def test_rows_that_come_in_small_batches_and_in_any_order_are_put_together(monkeypatch):
    tables = fleet(1, groups=2)
    monkeypatch.setattr(numbers, "_ROWS_AT_A_TIME", 3)
    assert parts_of(fold(tables)) == fold_plainly(tables)


def test_a_group_s_rows_are_next_to_each_other_as_the_judge_reads_them():
    dossiers = list(read_dossiers(fold(fleet(2, groups=3)).to_batches()))
    names = [(each.cluster, each.consumer_group) for each in dossiers]
    assert names == sorted(set(names))


def test_files_are_read_as_the_tables_are(tmp_path):
    tables = fleet(3, groups=2)
    sources = {}
    for table in SNAPSHOT_TABLES:
        if table.name in tables:
            pq.write_table(tables[table.name], tmp_path / f"{table.name}.parquet")
            sources[table.name] = numbers.open_files(
                table, [str(tmp_path / f"{table.name}.parquet")]
            )
    assert parts_of(fold(sources)) == fold_plainly(tables)


def test_a_file_may_lack_columns_that_may_be_null_and_have_times_of_another_unit(tmp_path):
    rows = fleet(4)["heartbeats"]
    nothing = pa.nulls(rows.num_rows, pa.bool_())
    place = rows.schema.get_field_index("pull_consumer")
    expected = rows.set_column(place, HEARTBEATS.schema.field("pull_consumer"), nothing)
    time = rows.schema.get_field_index("snapshot_time")
    in_nanos = rows.column("snapshot_time").cast(pa.timestamp("ns", "UTC"))
    written = rows.set_column(time, "snapshot_time", in_nanos).drop_columns("pull_consumer")
    pq.write_table(written, tmp_path / "rows.parquet")
    source = numbers.open_files(HEARTBEATS, [str(tmp_path / "rows.parquet")])
    came = local.member_runs(source, None, EXPIRY_SECONDS)
    wanted = local.member_runs(expected, None, EXPIRY_SECONDS)
    assert came.runs.sort_by("list_id").equals(wanted.runs.sort_by("list_id"))


def test_one_group_alone_is_read_from_tables_and_files(tmp_path):
    rows = fleet(5, groups=3)["heartbeats"]
    pq.write_table(rows, tmp_path / "rows.parquet")
    for source in (rows, numbers.open_files(HEARTBEATS, [str(tmp_path / "rows.parquet")])):
        runs = local.member_runs(
            numbers.only(source, cluster="c", consumer_group=["G1"]), None, EXPIRY_SECONDS
        ).runs
        assert set(runs["cluster"].to_pylist()) == {"c"}
        assert set(runs["consumer_group"].to_pylist()) == {"G1"}


def test_nothing_at_all_gives_no_dossier():
    empty = {table.name: table.schema.empty_table() for table in SNAPSHOT_TABLES}
    assert fold(empty).num_rows == 0
    assert fold(empty).schema.equals(DOSSIER)


def broker_poll(**values):
    poll = {
        "cluster": "c",
        "snapshot_time": START,
        "broker_name": "b",
        "broker_id": 0,
        "consumer_group": "G",
        "outcome": "ANSWERED",
        "connections": 0,
    }
    return pa.Table.from_pylist([poll | values], BROKER_POLLS.schema)


@pytest.mark.parametrize(
    ("outcome", "connections", "found"),
    [
        # An answer with an empty list says what NOT_ONLINE says.
        ("ANSWERED", 0, ["NOT_ONLINE"]),
        ("NOT_ONLINE", 0, ["NOT_ONLINE"]),
        ("NO_ANSWER", 0, ["NO_ANSWER"]),
        # A list that came and that is not there: the answer's time alone.
        ("ANSWERED", 2, ["ANSWERED"]),
    ],
)
def test_what_a_poll_without_rows_says(outcome, connections, found):
    polls = broker_poll(outcome=outcome, connections=connections)
    runs = local.member_runs(HEARTBEATS.schema.empty_table(), polls, EXPIRY_SECONDS).runs
    assert runs["outcome"].to_pylist() == found


def test_only_contents_that_the_runs_have_are_kept():
    tables = fleet(6, groups=2)
    ids = ids_locally(tables["heartbeats"], None, tables["topic_routes"], EXPIRY_SECONDS)
    early = ds.field("snapshot_time") < START + timedelta(seconds=60)
    polls = ids["broker_polls"].filter(early)
    lists = local.member_runs_by_id(polls, ids["member_lists"])
    assert set(lists.records) == set(lists.runs["list_id"].to_pylist())
    assert len(lists.records) < ids["member_lists"].num_rows


def test_a_nameserver_that_does_not_know_the_topic_gives_a_route_of_no_broker():
    row = {"cluster": "c", "snapshot_time": START, "namesrv_addr": "n", "topic": "T"}
    numbers_ = {"perm": 0, "read_queue_nums": 0, "write_queue_nums": 0}
    rows = pa.Table.from_pylist([row | numbers_], TOPIC_ROUTES.schema)
    assert list(local.route_runs(rows).records.values()) == [[]]


def test_ids_count_for_the_setting_that_they_were_made_with_and_where_every_list_has_one():
    with_id = ds.dataset(broker_poll(connections=1, list_id="1"))
    without = ds.dataset(broker_poll(connections=1))
    manifest = {"heartbeat_expiry_seconds": 120}
    assert uses_ids(with_id, manifest, 120)
    assert uses_ids(ds.dataset(broker_poll(outcome="NO_ANSWER")), manifest, 120)
    assert not uses_ids(with_id, manifest, 60)
    assert not uses_ids(with_id, {}, 120)
    assert not uses_ids(with_id, None, 120)
    assert not uses_ids(without, manifest, 120)
    assert not uses_ids(None, manifest, 120)
    assert not uses_ids(ds.dataset(broker_poll().drop_columns("list_id")), manifest, 120)
