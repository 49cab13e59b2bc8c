"""Report tables are read where they were made, and what the UDF was asked is a table too.

The session is not reset between these tests: the pieces of one audit are kept in it.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from chispa import assert_df_equality
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.config.masking import Masking
from jobs.engines import batches
from jobs.schemas import HEARTBEATS, REPORT_TABLES, SITUATIONS, TOPIC_ROUTES
from jobs.spark import audit, register, schemas
from jobs.spark.auditing import MADE_BY_THE_DRIVER
from jobs.spark.dataframes import to_frame
from jobs.storage import Location, Snapshots
from tests.support.runs import ingest_locally
from tests.support.snapshots import frame, heartbeat_row, route_row
from tests.support.truth import CAPTURES, SAMPLE_SETTINGS

pytestmark = pytest.mark.spark

NAMES = ("heartbeats", "topic_routes", "broker_polls", "queue_offsets", "client_states")


@pytest.fixture(scope="module")
def result(_spark_session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The audit of all captures together."""
    folder = tmp_path_factory.mktemp("captures")
    ingest_locally([str(CAPTURES)], folder)
    return audited(_spark_session, folder)


def audited(spark: SparkSession, folder: Path) -> Any:
    snapshots = Snapshots.open(Location(folder))
    tables = {name: spark.read.parquet(snapshots.table(name).uri) for name in NAMES}
    return audit(**tables, settings=SAMPLE_SETTINGS)


def plan_of(rows: DataFrame) -> str:
    return str(rows._jdf.queryExecution().executedPlan().toString())  # type: ignore[operator]


@pytest.mark.parametrize("name", [*(each.name for each in REPORT_TABLES), SITUATIONS.name])
def test_a_table_has_its_input_in_its_plan_and_every_step_a_name(result: Any, name: str) -> None:
    plan = plan_of(getattr(result, name))
    scans = [scanned for scanned in NAMES if f"/{scanned}/" in plan]
    assert scans == ([] if name in MADE_BY_THE_DRIVER else [*NAMES])
    assert "lambda>" not in plan
    assert "MapInArrow _" not in plan


#: Of the shards, of the driver and of the UDF; the others are made as these are.
QUICK = ("allocations", "events", "gaps", "orphaned_queues", "problems")


@pytest.mark.parametrize(
    "table",
    [
        pytest.param(table, marks=[] if table.name in QUICK else pytest.mark.house, id=table.name)
        for table in REPORT_TABLES
    ],
)
def test_a_table_has_the_rows_that_were_published(result: Any, table: Any) -> None:
    came = getattr(result, table.name)
    published = to_frame(
        came.sparkSession, result[table.name], getattr(schemas, table.name.upper())
    )
    assert_df_equality(came, published, ignore_row_order=True, ignore_nullable=True)


def test_column_lineage_reaches_the_client_id(result: Any) -> None:
    plan = plan_of(result.allocations)
    order = ["mask_secrets(client_id", "Generate inline(", "recompute_allocations(", "Scan parquet"]
    places = [plan.index(each) for each in order]
    assert places == sorted(places)


def test_sql_computes_the_allocations_of_every_situation_of_one_view_again(result: Any) -> None:
    spark = result.situations.sparkSession
    register(spark)
    for name in ("situations", "allocations"):
        getattr(result, name).createOrReplaceTempView(name)
    compared = spark.sql("""
        WITH used AS (
            SELECT state_id, queues, client_ids, strategy, parameters,
                array_except(client_ids, flatten(other_strategies.client_ids)) AS users
            FROM situations WHERE views = 1
            UNION ALL
            SELECT state_id, queues, client_ids, other.strategy, other.parameters, other.client_ids
            FROM situations LATERAL VIEW explode(other_strategies) AS other WHERE views = 1
        ), again AS (
            SELECT state_id, users,
                inline(rocketmq_allocate(strategy, queues, client_ids, parameters))
            FROM used WHERE strategy IS NOT NULL
        )
        SELECT consumer_group, allocations.client_id, allocations.subscribed,
            transform(again.queues, each -> each.queue_id) = allocations.queues.queue_id
            AND transform(again.queues, each -> each.broker_name) = allocations.queues.broker_name
            AND again.processes = allocations.processes AS is_equal
        FROM allocations JOIN again
            ON allocations.state_id = again.state_id AND allocations.client_id = again.client_id
            AND array_contains(again.users, allocations.client_id)
    """).collect()
    groups = {row.consumer_group for row in compared if row.is_equal}
    assert {f"G_{each.name}" for each in CAPTURES.iterdir() if each.is_dir()} - groups == {
        "G_S6",  # below
        "G_S15",  # a broker lists others: two views
    }
    others = {(row.consumer_group, row.client_id) for row in compared if not row.is_equal}
    # Who broadcasts reads every queue; who does not subscribe has a slot, and takes nothing.
    assert others == {("G_S6", "127.0.0.1@DEFAULT"), ("G_S4", "10.0.4.4@app")}
    no_share = [row.subscribed for row in compared if row.client_id == "10.0.4.4@app"]
    assert False in no_share
    # All situations of one view are compared: of several strategies each client by its own.
    every = result.situations.where("views = 1")
    assert every.where("strategy IS NULL").count() == 0
    of_several = every.where("size(other_strategies) > 0").select("consumer_group").distinct()
    assert [row.consumer_group for row in of_several.collect()] == ["G_S3"]


def test_which_lists_were_seen_at_a_time(result: Any) -> None:
    at = datetime(2026, 11, 21, 2, 5, 10, tzinfo=UTC)
    seen = (
        result.state_runs.where("consumer_group = 'G_S2' AND topic = 'T_S2'")
        .where(F.col("first_seen") <= F.lit(at))
        .orderBy(F.desc("first_seen"))
        .limit(1)
    )
    place = ["cluster", "consumer_group", "topic", "state_id"]
    (row,) = seen.join(result.situations, place).collect()
    assert (row.strategy, row.views, row.connections) == ("AVG", 1, 16)
    assert row.client_ids == ["10.0.2.10@app-DUP"] * 2 + ["10.0.2.11@app-4", "10.0.2.9@app-1"]
    assert {each.topic for each in row.queues} == {"T_S2"}
    assert len(row.queues) == 12
    assert (row.other_routes, row.other_lists) == ([], [])


@pytest.mark.house
def test_of_a_large_shard_too_all_situations_and_allocations_are_there(
    _spark_session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ingest_locally([str(CAPTURES / "S2")], tmp_path)
    monkeypatch.setattr(batches, "_MEMBERS_OF_A_LARGE_SHARD", 1)
    result = audited(_spark_session, tmp_path)
    assert "spread_situations" in plan_of(result.situations)
    of_runs = {row["state_id"] for row in result["state_runs"].to_pylist()}
    assert sorted(row.state_id for row in result.situations.collect()) == sorted(of_runs)
    published = to_frame(_spark_session, result["allocations"], schemas.ALLOCATIONS)
    assert published.count() > 0
    options = {"ignore_row_order": True, "ignore_nullable": True}
    assert_df_equality(result.allocations, published, **options)


def test_secrets_are_masked_in_situations_and_allocations(_spark_session: SparkSession) -> None:
    client_id = "10.0.0.1@RocketMQ|12345678|order-topic|1"
    shown = Masking().mask(client_id)
    assert shown != client_id
    lists = [
        heartbeat_row(broker_name=name, client_id=client_id) for name in ("broker-a", "broker-b")
    ]
    lists.append(heartbeat_row(broker_name="broker-b", client_id=client_id, client_addr="h:2"))
    routes = [route_row(broker_name=name) for name in ("broker-a", "broker-b")]
    result = audit(
        frame(_spark_session, HEARTBEATS, lists), frame(_spark_session, TOPIC_ROUTES, routes)
    )
    rows = result.situations.collect()
    ids = {each for row in rows for each in row.client_ids}
    ids |= {each for row in rows for other in row.other_lists for each in other.client_ids}
    assert any(row.other_lists for row in rows)
    assert ids == {row.client_id for row in result.allocations.collect()} == {shown}
