"""Spark's fold: the same dossiers as the driver's, ids that are Python's, and audits that go on.

Hundreds of generated groups are in one table: a job over them costs what a job over one does.
"""

from __future__ import annotations

import warnings
from datetime import timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import strategies as st

from jobs.contents import (
    MEMBER_FACTS,
    ROUTE_FACTS,
    SUBSCRIPTION_FIELDS,
    content_id,
    content_sql,
    record_sql,
    record_text,
)
from jobs.fold import continued, local
from jobs.fold import spark as on_spark
from jobs.judge.dossier import read_dossiers
from jobs.judge.evaluation import to_row
from jobs.judge.evaluation import to_state as state_of_row
from jobs.judge.steps import situation_batches, situations_of, state_of
from jobs.judge.terms import Terms
from jobs.masking import Masking
from jobs.schemas import MEMBER_LISTS, MEMBERS, ROUTE_BROKERS
from rebalance_core import Situation, StrategyRules, evaluate
from tests.fold.fleets import EXPIRY_SECONDS, START, TEXTS, fleet
from tests.fold.plain import parts_of
from tests.support.ids import ids_locally, member_list_rows

pytestmark = pytest.mark.spark

GROUPS = 60


@pytest.fixture(scope="module")
def tables():
    return fleet(1, groups=GROUPS)


@pytest.fixture(scope="module")
def folded(tables):
    lists = local.member_runs(tables["heartbeats"], tables["broker_polls"], EXPIRY_SECONDS)
    routes = local.route_runs(tables["topic_routes"])
    dossiers = local.fold(lists, routes, tables["client_states"], tables["queue_offsets"])
    return lists, dossiers


def frames(spark, tables):
    return {name: spark.createDataFrame(rows) for name, rows in tables.items()}


def test_spark_folds_rows_as_the_driver_does(spark, tables, folded):
    rows = frames(spark, tables)
    lists = on_spark.member_runs(rows["heartbeats"], rows["broker_polls"], EXPIRY_SECONDS)
    routes = on_spark.route_runs(rows["topic_routes"])
    dossiers = on_spark.fold(lists, routes, rows["client_states"], rows["queue_offsets"])
    assert parts_of(dossiers.toArrow()) == parts_of(folded[1])


def test_spark_folds_ids_as_the_driver_does(spark, tables, folded):
    ids = ids_locally(
        tables["heartbeats"], tables["broker_polls"], tables["topic_routes"], EXPIRY_SECONDS
    )
    rows = frames(spark, tables | ids)
    lists = on_spark.member_runs_by_id(rows["broker_polls"], rows["member_lists"])
    routes = on_spark.route_runs_by_id(rows["route_polls"], rows["route_contents"])
    dossiers = on_spark.fold(lists, routes, rows["client_states"], rows["queue_offsets"])
    assert parts_of(dossiers.toArrow()) == parts_of(folded[1])


def test_lists_alone_count_where_nothing_tells_of_polls(spark, tables):
    heartbeats = spark.createDataFrame(tables["heartbeats"])
    came = on_spark.member_runs(heartbeats, None, EXPIRY_SECONDS).runs.toArrow().to_pylist()
    wanted = local.member_runs(tables["heartbeats"], None, EXPIRY_SECONDS).runs.to_pylist()
    for run in came + wanted:
        run["times"].sort(key=repr)
    assert sorted(map(repr, came)) == sorted(map(repr, wanted))


@pytest.mark.parametrize("cut", [0, 120, 300])
def test_an_audit_that_goes_on_has_what_one_over_all_rounds_has(spark, tables, folded, cut):
    rows = frames(spark, tables)
    at = f"timestamp_micros({_micros(cut)}L)"

    def of_rounds(is_wanted):
        heartbeats, polls, routes = (
            rows[name].where(is_wanted) for name in ("heartbeats", "broker_polls", "topic_routes")
        )
        return (
            on_spark.member_runs(heartbeats, polls, EXPIRY_SECONDS),
            on_spark.route_runs(routes),
        )

    # The round at the cut is on both sides.
    earlier = of_rounds(f"snapshot_time <= {at}")
    since = of_rounds(f"snapshot_time >= {at}")
    lists, routes = (continued.merge(*each) for each in zip(earlier, since, strict=True))
    dossiers = on_spark.fold(lists, routes, rows["client_states"], rows["queue_offsets"])
    assert parts_of(dossiers.toArrow()) == parts_of(folded[1])


def test_clipped_runs_are_those_of_the_window(spark, tables):
    rows = frames(spark, tables)
    since, until = (f"timestamp_micros({_micros(seconds)}L)" for seconds in (60, 180))
    window = f"snapshot_time >= {since} AND snapshot_time < {until}"
    nothing = (rows["heartbeats"].where("false"), rows["broker_polls"].where("false"))
    whole = on_spark.member_runs(rows["heartbeats"], rows["broker_polls"], EXPIRY_SECONDS)
    clipped = continued.merge(
        continued.clip(whole, _micros(60), _micros(180)),
        on_spark.member_runs(*nothing, EXPIRY_SECONDS),
    )
    wanted = on_spark.member_runs(
        rows["heartbeats"].where(window), rows["broker_polls"].where(window), EXPIRY_SECONDS
    )
    for came, expected in zip(clipped, wanted, strict=True):
        assert _as_set(came.select(expected.columns)) == _as_set(expected)


def _as_set(rows):
    found = rows.toArrow().to_pylist()
    for row in found:
        for name in ("times", "members"):
            row[name] = sorted(map(repr, row.get(name, ())))
    return sorted(map(repr, found))


def _micros(seconds):
    return int((START + timedelta(seconds=seconds)).timestamp()) * 1_000_000


RULES = StrategyRules([], "AVG")
TERMS = Terms(
    persistence_seconds=180,
    heartbeat_expiry_seconds=EXPIRY_SECONDS,
    route_max_age_seconds=90,
    warning_probability=0.1,
    critical_probability=0.5,
    masking=Masking(),
    topic_queues=100_000,
)


@pytest.fixture(scope="module")
def situations(folded):
    """(cluster, group, situation) of every one in the fleet."""
    return [
        (dossier.cluster, dossier.consumer_group, situation)
        for dossier in read_dossiers(folded[1].to_batches())
        for situation in situations_of(dossier, TERMS).distinct().values()
    ]


def situation_frames(spark, folded, wanted=None):
    """The rows of the situations, of those alone that are wanted, and of the lists."""
    rows = pa.Table.from_batches(situation_batches(TERMS)(folded[1].to_batches()))
    if wanted is not None:
        rows = rows.filter(pc.is_in(rows["situation_id"], pa.array(wanted)))
    lists = pa.Table.from_pylist(member_list_rows(folded[0]), MEMBER_LISTS.schema)
    return spark.createDataFrame(rows), spark.createDataFrame(lists)


def test_a_situation_has_the_same_records_by_spark_and_in_the_driver(
    spark, folded, situations, monkeypatch
):
    # What the core makes of a list that has one connection twice depends on their order.
    def records(*place, request_mode, **of_kind):
        kinds = {
            name: sorted(
                repr([list(v) if isinstance(v, tuple) else v for v in each]) for each in rows
            )
            for name, rows in of_kind.items()
        }
        return place, request_mode, kinds

    monkeypatch.setattr("jobs.judge.steps.make_state", records)
    monkeypatch.setattr("jobs.judge.evaluation.make_state", records)
    states = on_spark.situation_rows(*situation_frames(spark, folded), 3)
    came = {
        row["situation_id"]: state_of_row(
            {k: np.array(v, dtype=object) if isinstance(v, list) else v for k, v in row.items()}
        )
        for row in states.toArrow().to_pylist()
    }
    wanted = {
        situation.situation_id: state_of(group, situation, folded[0].records)
        for _, group, situation in situations
    }
    assert len(came) > GROUPS
    assert came == wanted


def test_the_udf_gives_what_the_core_says(spark, folded, situations):
    records = folded[0].records
    some = [each for each in situations if _is_plain(each[2], records)][:40]
    frames_ = situation_frames(spark, folded, [each[2].situation_id for each in some])
    evaluated = on_spark.evaluate(on_spark.situation_rows(*frames_, 2), [], "AVG")
    came = {row["situation_id"]: row for row in evaluated.toArrow().to_pylist()}
    assert len(came) == len(some) == 40
    for cluster, group, situation in some:
        state = state_of(group, situation, records)
        row = came[situation.situation_id]
        key = {"cluster": cluster, "consumer_group": group, "topic": situation.topic}
        assert row == to_row(evaluate(state, RULES), Situation(state, RULES)) | key | {
            "situation_id": situation.situation_id,
        }


def _is_plain(situation, records):
    lists = [records[answer] for _, answer in situation.answers if answer in records]
    return all(len({member[:2] for member in each if member[1]}) == len(each) for each in lists)


def test_what_was_evaluated_is_not_evaluated_again(spark):
    situations = spark.createDataFrame([("a",), ("b",)], "situation_id string")
    saved = spark.createDataFrame([("a",), ("gone",)], "situation_id string")
    known = continued.already_evaluated(situations, saved).toArrow()["situation_id"]
    unknown = continued.not_evaluated(situations, saved).toArrow()["situation_id"]
    assert known.to_pylist() == ["a"]
    assert unknown.to_pylist() == ["b"]


def test_what_was_saved_in_english_alone_is_evaluated_again(spark):
    """An earlier version's evaluations lack the column; nearly all of them have no text."""
    columns = "situation_id string, reason string, texts string, faults array<struct<texts:string>>"
    parts = "{}"
    saved = spark.createDataFrame(
        [
            ("healthy", "", None, [], []),
            ("of its own version", "no route", parts, [(parts,)], [(parts,)]),
            ("not audited", "no route", None, [], []),
            ("faulty", "", None, [(parts,), (None,)], []),
            ("stacked", "", None, [], [(None,)]),
        ],
        f"{columns}, stacked array<struct<texts:string>>",
    )
    kept = continued.with_parts_of_texts(saved).toArrow()["situation_id"].to_pylist()
    assert kept == ["healthy", "of its own version"]


texts = st.one_of(st.sampled_from(TEXTS), st.text(st.characters(exclude_categories=["Cs"])))


def values_of(type_):
    """Any value of the type, null among them."""
    if pa.types.is_list(type_):
        return st.none() | st.lists(values_of(type_.value_type), max_size=3)
    if pa.types.is_struct(type_):
        return st.none() | st.tuples(*[values_of(field.type) for field in type_])
    if pa.types.is_string(type_):
        return st.none() | texts
    if pa.types.is_boolean(type_):
        return st.none() | st.booleans()
    bits = type_.bit_width - 1
    return st.none() | st.integers(-(1 << bits), (1 << bits) - 1)


@pytest.mark.parametrize(
    ("facts", "type_"), [(MEMBER_FACTS, MEMBERS), (ROUTE_FACTS, ROUTE_BROKERS)]
)
def test_an_id_by_spark_is_the_id_by_python(spark, facts, type_):
    record = st.tuples(*[values_of(fact.type) for fact in facts])
    contents = _examples(st.lists(record, max_size=4), 400)
    names = [fact.name for fact in facts]
    rows = [[_as_dict(each, names) for each in content] for content in contents]
    table = pa.table({"records": pa.array(rows, type_)})
    text = content_sql(f"transform(records, r -> {record_sql(facts, 'r')})")
    ids = spark.createDataFrame(table).selectExpr(f"{text} AS id").toArrow()["id"].to_pylist()
    assert ids == [content_id(record_text(facts, each) for each in c) for c in contents]


def _examples(strategy, count):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [strategy.example() for _ in range(count)]


def _as_dict(record, names):
    values = dict(zip(names, record, strict=True))
    for name, fields in (
        ("subscriptions", SUBSCRIPTION_FIELDS),
        ("doubtful_topics", ("topic", "percent")),
    ):
        if values.get(name) is not None:
            values[name] = [each and dict(zip(fields, each, strict=True)) for each in values[name]]
    return values


def test_a_query_lets_nothing_go_that_is_persisted_and_leaves_no_view(spark):
    # spark.sql(..., name=frame) would: everything below was then computed anew at each use.
    kept = spark.range(3).selectExpr("id", "id % 2 AS k").groupBy("k").count().persist()
    rows = on_spark.query("SELECT {k} FROM {kept}", {"k": "k"}, kept=kept)
    assert kept.storageLevel.useMemory
    assert sorted(row.k for row in rows.collect()) == [0, 1]
    assert not [each for each in spark.catalog.listTables() if each.isTemporary]
    kept.unpersist()
