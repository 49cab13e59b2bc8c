"""The functions of columns: tables of cases, one row a case, what is expected beside it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from chispa import assert_column_equality, assert_df_equality
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs import schemas as declared
from jobs.errors import SparkError
from jobs.spark import allocate, queue_findings, register, schemas
from jobs.spark import session as sessions
from rebalance_core import (
    InvalidParameterError,
    MessageQueue,
    MissingParameterError,
    UnknownStrategyError,
    sort_client_ids,
)
from tests.core.test_golden import CASES
from tests.spark.test_auditing import set_to

pytestmark = pytest.mark.spark

QUEUE = "struct<topic:string,broker_name:string,queue_id:int>"
SHARES = f"array<struct<client_id:string,processes:int,queues:array<{QUEUE}>>>"
GROUP = "strategy string, queues array<struct<broker_name:string,queue_id:int>>, ids array<string>"


def queues(text: str | None) -> list[tuple[str, int]] | None:
    """``"a0 b1"``: queue 0 of broker a, queue 1 of broker b."""
    return None if text is None else [(each[0], int(each[1:])) for each in text.split()]


def shares(text: str | None) -> list[tuple[str, int, list[tuple[None, str, int]]]] | None:
    """``"x: a0 a1, y*2: b0"``: x takes a0 and a1, each of two processes of y takes b0."""
    if text is None:
        return None
    found = []
    for each in filter(None, text.split(", ")):
        client, _, taken = each.partition(":")
        client_id, _, processes = client.partition("*")
        of_client = [(None, *queue) for queue in queues(taken) or ()]
        found.append((client_id, int(processes or 1), of_client))
    return found


#: A strategy, queues, client ids, and who takes what.
SHARED = [
    ("AVG", "a0 a1 a2", "x y", "x: a0 a1, y: a2"),
    ("AVG", "b0 a1 a0", "y x", "x: a0 a1, y: b0"),
    ("AVG", "a0", "x y z", "x: a0, y:, z:"),
    # A copy of an id takes a slot, and each of its processes takes the share of the first.
    ("AVG", "a0 a1 a2 a3", "x x y z", "x*2: a0, y: a2, z: a3"),
    ("AVG", "a0 a1 a2 a3", "y x x", "x*2: a0 a1, y: a3"),
    ("AVG_BY_CIRCLE", "a0 a1 a2", "x y", "x: a0 a2, y: a1"),
    # Numbers compare as numbers, ids as Java compares texts.
    ("AVG", "a2 a10", "x y", "x: a2, y: a10"),
    ("AVG", "a0 a1", "\U0001f600 \uff21", "\U0001f600: a0, \uff21: a1"),
    # An empty id takes its slot, and Java throws for it.
    ("AVG", "a0 a1", " x", "x: a1"),
    # Java throws for all, or knows no such strategy: everybody keeps what he has.
    ("AVG", "", "x", None),
    ("AVG", "a0", None, None),
    ("AVG", None, "x", None),
    (None, "a0", "x", None),
    ("AVGG", "a0", "x", None),
    ("CONSISTENT_HASH", "a0", "x", None),
]


def test_each_client_takes_what_its_strategy_gives_it(spark: SparkSession) -> None:
    rows = [
        (name, queues(of), None if ids is None else ids.split(" "), shares(wanted))
        for name, of, ids, wanted in SHARED
    ]
    cases = spark.createDataFrame(rows, f"{GROUP}, expected {SHARES}")
    found = cases.withColumn("found", allocate(F.col("strategy"), "queues", "ids"))
    assert_column_equality(found, "found", "expected")


#: A strategy, queues, client ids; orphaned, duplicate, stacked, and why there are none.
FOUND = [
    ("AVG", "a0 a1", "x y", "", "", "", None),
    ("AVG", "a0 a1 a2", "x x y", "a1", "a0=xx", "x*2", None),
    ("CONSISTENT_HASH", "a0", "x", None, None, None, "CONSISTENT_HASH looks at the topics"),
    # Nobody is there to take them.
    ("AVG", "a1 a0", "", "a0 a1", "", "", None),
    ("AVG", "", "x", None, None, None, "mqAll is null or mqAll empty"),
    ("AVGG", "a0", "x", None, None, None, "unknown strategy 'AVGG': expected one of AVG, "),
    ("MACHINE_ROOM", "r@a0", "x", None, None, None, "consumeridcs"),
    ("AVG", None, "x", None, None, None, None),
]


def test_what_nobody_takes_what_several_take_and_ids_of_several(spark: SparkSession) -> None:
    rows = [
        (number, name, queues(of) if of != "r@a0" else [("r@a", 0)], ids.split())
        for number, (name, of, ids, *_) in enumerate(FOUND)
    ]
    cases = spark.createDataFrame(rows, f"number int, {GROUP}")
    found = cases.select("number", queue_findings(F.col("strategy"), "queues", "ids").alias("f"))
    for number, row in found.orderBy("number").collect():
        *_, orphaned, duplicate, stacked, error = FOUND[number]
        if orphaned is None:
            assert (row.orphaned, row.duplicate, row.stacked) == (None, None, None), number
            assert row.error == error or error in row.error
            continue
        assert [(q.broker_name, q.queue_id) for q in row.orphaned] == queues(orphaned), number
        assert (
            " ".join(
                f"{each.queue.broker_name}{each.queue.queue_id}={''.join(each.client_ids)}"
                for each in row.duplicate
            )
            == duplicate
        )
        assert " ".join(f"{each.client_id}*{each.processes}" for each in row.stacked) == stacked


def test_java_and_spark_allocate_the_same(spark: SparkSession) -> None:
    """All golden cases in one DataFrame, with the parameters of each."""
    rows = list(golden())
    assert len(rows) == 659 and sum(row[-1] is None for row in rows) > 20
    cases = spark.createDataFrame(
        rows,
        f"case string, strategy string, queues array<{QUEUE}>, ids array<string>, params string, "
        f"expected {SHARES}",
    )
    found = cases.withColumn("found", allocate(F.col("strategy"), "queues", "ids", F.col("params")))
    assert_column_equality(found, "found", "expected")


def golden() -> Iterator[tuple[Any, ...]]:
    for case in CASES:
        ids = case["client_ids"]
        fails = (
            case["queues"] is None
            or ids is None
            or any(text for client, text in case["errors"].items() if client)
        )
        taken = case["allocations"]
        wanted = fails or [
            (each, ids.count(each), [tuple(q) for q in taken[each] or ()])
            for each in sort_client_ids(dict.fromkeys(ids))
            if each in taken
        ]
        given = case["queues"] and [tuple(each) for each in case["queues"]]
        params = json.dumps(case["params"])
        yield case["case"], case["strategy"], given, ids, params, None if fails else wanted


def table(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(
        [("G", [("T", "a", 0), ("T", "a", 1), ("T", "b", 0)], ["x", "x", "y"])],
        f"consumer_group string, queues array<{QUEUE}>, ids array<string>",
    )


@pytest.mark.parametrize("ansi", ["true", pytest.param("false", marks=pytest.mark.house)])
def test_both_are_there_in_sql(spark: SparkSession, ansi: str) -> None:
    groups = table(spark)
    groups.createOrReplaceTempView("the_groups")
    register(spark)
    with set_to(spark, {"spark.sql.ansi.enabled": ansi}):
        in_sql = spark.sql(
            "SELECT consumer_group, rocketmq_allocate('AVG', queues, ids) taken, "
            "rocketmq_queue_findings('CONSISTENT_HASH', queues, ids, "
            "'{\"virtual_node_count\": 3}') found FROM the_groups"
        )
        found = queue_findings("CONSISTENT_HASH", "queues", "ids", virtual_node_count=3)
        by_columns = groups.select(
            "consumer_group", allocate("AVG", "queues", "ids").alias("taken"), found.alias("found")
        )
        assert_df_equality(in_sql, by_columns)
        assert [each.client_id for each in by_columns.collect()[0].taken] == ["x", "y"]
        # One more join, filter or explode is what it is for.
        orphaned = in_sql.selectExpr("consumer_group", "inline(found.orphaned)")
        assert orphaned.columns == ["consumer_group", "topic", "broker_name", "queue_id"]


PARAMETERS: list[tuple[str, dict[str, Any], dict[str, int]]] = [
    ("CONFIG", {"config_queues": [MessageQueue("T", "b", 0)]}, {"x": 1, "y": 1}),
    ("CONFIG", {"config_queues": [["T", "b", 0], ["T", "gone", 7]]}, {"x": 2, "y": 2}),
    (
        "MACHINE_ROOM_NEARBY-AVG",
        {"broker_room": {"a": "r1", "b": "r2"}, "client_room": {"x": "r1", "y": "r2"}},
        {"x": 1, "y": 1},
    ),
]


@pytest.mark.parametrize(("name", "named", "lengths"), PARAMETERS)
def test_parameters_go_in_by_their_names(
    spark: SparkSession, name: str, named: dict[str, Any], lengths: dict[str, int]
) -> None:
    (row,) = table(spark).select(allocate(name, "queues", "ids", **named)).collect()
    assert {each.client_id: len(each.queues) for each in row[0]} == lengths


@pytest.mark.parametrize(
    ("name", "named", "error", "words"),
    [
        ("AVGG", {}, UnknownStrategyError, r"unknown strategy 'AVGG'.*F\.col\('AVGG'\)"),
        ("AVG", {"virtual_node_count": 3}, InvalidParameterError, "unknown parameters"),
        ("MACHINE_ROOM_NEARBY-AVG", {}, MissingParameterError, "needs rooms"),
    ],
)
def test_what_is_wrong_with_the_call_is_said_when_it_is_called(
    spark: SparkSession, name: str, named: dict[str, Any], error: type[Exception], words: str
) -> None:
    for function in (allocate, queue_findings):
        with pytest.raises(error, match=words):
            function(name, "queues", "ids", **named)


def test_queues_of_another_form_are_one_sentence(spark: SparkSession) -> None:
    rows = table(spark).selectExpr("array(named_struct('brokerName', 'a')) AS queues", "ids")
    with pytest.raises(PySparkException, match="expected queues as an array of structs with"):
        rows.select(allocate("AVG", "queues", "ids")).collect()


def test_a_python_that_nobody_named_is_lent_and_kept_by_what_is_made(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = spark.sparkContext
    for owner, name in ((sessions, "_DEFAULT"), (context, "pythonExec")):
        monkeypatch.setattr(owner, name, "no-such-python")
    # No Python is needed to make the rows.
    queue = "named_struct('broker_name', 'a', 'queue_id', 0)"
    rows = spark.sql(f"SELECT array({queue}) AS queues, array('x') AS ids")
    rows.createOrReplaceTempView("lent")
    register(spark)
    found = queue_findings("AVG", "queues", "ids")
    columns = rows.select(F.size(allocate("AVG", "queues", "ids")), found["stacked"])
    text = "SELECT size(rocketmq_allocate('AVG', queues, ids)), "
    of_sql = spark.sql(f"{text} rocketmq_queue_findings('AVG', queues, ids).stacked FROM lent")
    assert context.pythonExec == "no-such-python"
    for lazy in (columns, of_sql):
        assert list(map(tuple, lazy.collect())) == [(1, [])]


@pytest.mark.parametrize("is_sql", [True, False])
def test_a_python_that_cannot_run_them_is_one_sentence(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, is_sql: bool
) -> None:
    monkeypatch.setattr(spark.sparkContext, "pythonExec", "no-such-python")
    said = "cannot run the audit with no-such-python: the workers cannot run no-such-python: set"
    with pytest.raises(SparkError, match=said):
        register(spark) if is_sql else allocate("AVG", "queues", "ids")


def test_a_null_within_a_list_has_no_result(spark: SparkSession) -> None:
    rows = spark.createDataFrame(
        [([("a", 0)], ["x", None]), ([("a", None)], ["x"]), ([None], ["x"]), ([("a", 0)], ["x"])],
        GROUP.partition(", ")[2],
    )
    found = [row[0] is None for row in rows.select(allocate("AVG", "queues", "ids")).collect()]
    assert found == [True, True, True, False]


def test_the_plan_has_the_name_of_the_function(spark: SparkSession, capsys: Any) -> None:
    columns = [each("AVG", "queues", "ids") for each in (allocate, queue_findings)]
    table(spark).select(*columns).explain()
    plan = capsys.readouterr().out
    assert "ArrowEvalPython [allocate(AVG, queues" in plan
    assert "queue_findings(AVG, queues" in plan


def test_a_schema_makes_the_tables_of_ones_own_tests(spark: SparkSession) -> None:
    for of_arrow in declared.SNAPSHOT_TABLES:
        of_spark = getattr(schemas, of_arrow.name.upper())
        assert of_spark.names == of_arrow.schema.names
        assert all(field.metadata["comment"] for field in of_spark)
        assert spark.createDataFrame([], of_spark).schema == of_spark
    assert schemas.HEARTBEATS["client_id"].dataType.simpleString() == "string"
    assert not schemas.HEARTBEATS["client_id"].nullable
    assert "HEARTBEATS" in dir(schemas)
    with pytest.raises(AttributeError):
        _ = schemas.HEARTBEAT
