"""Every situation of an audit on Spark is a row of the UDF, which the plan shows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from chispa import assert_df_equality
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from jobs.engines import batches
from jobs.engines.pieces import pack_value, unpack_value
from jobs.judge.observe.evaluation import SeenState, to_row
from jobs.pipeline.gathered import AllGroupsFailedError
from jobs.pipeline.group_audit import GroupAudit
from jobs.schemas import SITUATIONS
from jobs.spark import spark_engine as on_spark
from jobs.spark.functions import recompute_allocations
from rebalance_core import ClientList, Member, RouteBroker, State, TopicRoute
from tests.engines.steps import Squares
from tests.engines.test_travelling import RULES, TERMS
from tests.support.reports import PublishedReports
from tests.support.runs import audit_by, audit_by_spark, audit_locally, ingest_locally, task
from tests.support.truth import CAPTURES

pytestmark = pytest.mark.spark


class Watched(on_spark.SparkEngine):
    """An engine whose plans are looked at before they are let go."""

    def __exit__(self, *_: object) -> None:
        self.plans = [
            kept._jdf.queryExecution().optimizedPlan().cacheBuilder().cachedPlan()
            for kept in self._kept
        ]
        self.rows_of_udfs = [rows for plan in self.plans for rows in rows_of_udfs(plan)]
        self.texts = "\n".join(plan.toString() for plan in self.plans)
        super().__exit__()


def rows_of_udfs(plan: Any) -> list[int]:
    """Of each ArrowEvalPython the rows that came out of it."""
    found = []
    if plan.nodeName() == "ArrowEvalPython":
        assert "recompute_allocations(" in plan.toString()
        found.append(plan.metrics().apply("pythonNumRowsReceived").value())
    children = plan.children()
    for number in range(children.size()):
        found += rows_of_udfs(children.apply(number))
    return found


def audited(spark: Any, folder: Path) -> tuple[PublishedReports, Watched]:
    with Watched(spark) as engine:
        return audit_by(engine, task(folder / "snapshots", folder / "spark")), engine


@pytest.mark.parametrize("capture", [pytest.param("S2", marks=pytest.mark.house), "S3"])
def test_a_situation_is_a_row_of_the_udf(spark: Any, tmp_path: Path, capture: str) -> None:
    ingest_locally([str(CAPTURES / capture)], tmp_path / "snapshots")
    reports, engine = audited(spark, tmp_path)
    situations = {row["state_id"] for row in reports.rows("state_runs")}
    # And a row of the shard, with its groups.
    assert engine.rows_of_udfs == [len(situations) + 1]
    (asked,) = set(re.findall(r"recompute_allocations\((.*?)\)", engine.texts))
    assert re.sub(r"#\d+L?", "", asked).split(", ") == [*SITUATIONS.schema.names, "rest"]


def test_of_a_large_shard_too_each_situation_is_one_row(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ingest_locally([str(CAPTURES / "S2")], tmp_path / "snapshots")
    monkeypatch.setattr(batches, "_MEMBERS_OF_A_LARGE_SHARD", 1)
    reports, engine = audited(spark, tmp_path)
    beside, spread = engine.rows_of_udfs
    # The groups of the shard, and a piece of situations.
    assert beside == 2
    assert spread == len({row["state_id"] for row in reports.rows("state_runs")})
    here = audit_locally(task(tmp_path / "snapshots", tmp_path / "here"))
    for name in here.published["tables"]:
        assert reports.comparable(name) == here.comparable(name), name


def test_the_groups_of_a_shard_are_found_once(spark: Any, tmp_path: Path) -> None:
    with on_spark.SparkEngine(spark) as engine:
        for many in (100,):
            finds = tmp_path / str(many)
            pieces = engine.given(pack_value(0, "number", number) for number in range(many))
            list(engine.collect(engine.judge_groups(pieces, Counted(0, str(finds)))))
            assert finds.read_text() == "found\n"


class Counted(Squares):
    """Work that notes in a file each time that it finds groups."""

    def __init__(self, more: int, path: str) -> None:
        super().__init__(more)
        object.__setattr__(self, "path", path)

    def find_groups(self, pieces: Any) -> list[int]:
        """Notes that it was called."""
        with Path(self.path).open("a") as file:
            file.write("found\n")
        return super().find_groups(pieces)


#: The columns strategy, parameters, who uses AVG_BY_CIRCLE besides, queues and client ids of a
#: situation, and who takes what.
ASKED = [
    ("AVG", None, "", "a0 a1 b0", "x y z", "x: a0, y: a1, z: b0"),
    ("AVG", None, "", "a0 a1 b0", "x x z", "x*2: a0, z: b0"),
    ("AVG_BY_CIRCLE", None, "", "a0 a1 a2 b0 b1", "x y z", "x: a0 b0, y: a1 b1, z: a2"),
    ("AVG", None, "y", "a0 a1 b0 b1", "x y", "x: a0 a1, y: a1 b1"),
    ("MACHINE_ROOM", '{"consumeridcs": ["b"]}', "", "b@a0 b@a1", "x y z", "x: b@a0, y: b@a1, z:"),
    ("CONFIG", '{"config_queues": [["T", "a", 1]]}', "", "a0 a1", "x y", "x: a1, y: a1"),
]


def test_the_core_computes_from_the_columns_that_a_person_reads(spark: Any) -> None:
    """The rest of each row is of other ids and queues, and of a group that uses another strategy:
    of what is in the columns it has nothing.
    """
    rows = []
    for number, (strategy, parameters, others, queues, ids, _) in enumerate(ASKED):
        asked = [queue_of(each) for each in queues.split()]
        rest = other_rest({broker for broker, _ in asked}, len(ids.split()))
        row = ["c", "G", "T", str(number), strategy, parameters]
        by_circle = [("AVG_BY_CIRCLE", None, others.split())] if others else []
        row += [[("T", *each) for each in asked], ids.split(), by_circle, [], []]
        row += [3, 1, bytearray(rest)]
        rows.append(row)
    schema = from_arrow_schema(batches.SITUATION)
    recompute = recompute_allocations(GroupAudit(TERMS, RULES))(*batches.SITUATION.names)
    shares = spark.createDataFrame(rows, schema).select(
        "state_id", F.inline(recompute.getField("shares"))
    )
    processes = "IF(processes > 1, concat('*', processes), '')"
    taken = "array_join(transform(queues, q -> concat(' ', q.broker_name, q.queue_id)), '')"
    each = F.expr(f"concat(client_id, {processes}, ':', {taken})")
    of_row = F.concat_ws(", ", F.sort_array(F.collect_list(each))).alias("shares")
    found = shares.groupBy(F.col("state_id").cast("int").alias("number")).agg(of_row)
    wanted = [(number, shares) for number, (*_, shares) in enumerate(ASKED)]
    expected = spark.createDataFrame(wanted, "number int, shares string")
    assert_df_equality(found, expected, ignore_row_order=True, ignore_nullable=True)


def queue_of(text: str) -> tuple[str, int]:
    return text[:-1], int(text[-1])


def other_rest(brokers: set[str], members: int) -> bytes:
    """The rest of a situation with as many members and other names, whose queues are another one's
    number.
    """
    listed = tuple(
        Member(f"other-{number}", f"h:{number}", strategy="CONSISTENT_HASH")
        for number in range(members)
    )
    route = tuple(RouteBroker(name, read_queue_nums=7) for name in sorted(brokers))
    lists = tuple(ClientList(name, 0, listed) for name in sorted(brokers))
    state = State("OTHER", "OTHER", lists, (TopicRoute("ns", route),))
    return to_row(SeenState("c", "G", "T", "s", state), RULES).rest


def test_a_core_that_fails_on_every_group_ends_the_run_and_names_one(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ingest_locally([str(CAPTURES / "S2")], tmp_path / "snapshots")
    monkeypatch.setattr("jobs.pipeline.audit.GroupAudit", TornAudit)
    with pytest.raises(AllGroupsFailedError, match="every group, as on G_S2: TypeError"):
        audit_by_spark(spark, task(tmp_path / "snapshots", tmp_path / "reports"))


class TornAudit(GroupAudit):
    """An audit whose members lose their facts on the way."""

    def to_row(self, situation: Any) -> Any:
        """The row, torn."""
        row = super().to_row(situation)
        bare, lists, routes = unpack_value(row.rest)
        torn = bare, [(broker, ()) for broker, _ in lists], routes
        return row._replace(rest=pack_value(0, "", torn).data)


def test_the_jobs_have_descriptions_and_the_caller_has_its_own_again(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ingest_locally([str(CAPTURES / "S2")], tmp_path / "snapshots")
    context = spark.sparkContext
    seen: list[str] = []
    collect = type(spark.range(1)).collect

    def described(rows: Any) -> Any:
        seen.append(context.getLocalProperty("spark.job.description"))
        return collect(rows)

    monkeypatch.setattr(type(spark.range(1)), "collect", described)
    context.setJobDescription("mine")
    try:
        audit_by_spark(spark, task(tmp_path / "snapshots", tmp_path / "reports"))
        assert context.getLocalProperty("spark.job.description") == "mine"
    finally:
        context.setLocalProperty("spark.job.description", None)
    judged = "rebalance audit: shards of groups: situations -> allocations -> rows of tables"
    tables = "broker_polls, member_lists, route_polls, route_contents, client_states, queue_offsets"
    assert {*seen} == {f"rebalance audit: slices -> pieces: {tables}", judged}
