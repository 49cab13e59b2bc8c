"""Every situation of an audit on Spark is a row of the UDF, which the plan shows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from jobs.engines import batches
from jobs.engines.engine import QuestionSubject
from jobs.engines.pieces import pack_value
from jobs.judge.evaluation import Question
from jobs.pipeline.failed_groups import AllGroupsFailedError
from jobs.pipeline.group_audit import GroupAudit
from jobs.spark import spark_engine as on_spark
from tests.engines.steps import Squares
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


@pytest.mark.parametrize("capture", ["S2", "S3"])
def test_a_situation_is_a_row_of_the_udf(spark: Any, tmp_path: Path, capture: str) -> None:
    ingest_locally([str(CAPTURES / capture)], tmp_path / "snapshots")
    reports, engine = audited(spark, tmp_path)
    situations = {row["state_id"] for row in reports.rows("state_runs")}
    assert engine.rows_of_udfs == [len(situations)]
    # What a person reads of a row, in the plan.
    (asked,) = set(re.findall(r"MapInArrow _begun.*?, \[(.*?)\]", engine.texts)) or {engine.texts}
    for name in QuestionSubject._fields:
        assert f"{name}#" in asked


def test_of_a_large_shard_too_each_situation_is_one_row(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ingest_locally([str(CAPTURES / "S2")], tmp_path / "snapshots")
    monkeypatch.setattr(batches, "_MEMBERS_OF_A_LARGE_SHARD", 1)
    reports, engine = audited(spark, tmp_path)
    beside, spread = engine.rows_of_udfs
    assert beside and spread
    assert beside + spread == len({row["state_id"] for row in reports.rows("state_runs")})
    here = audit_locally(task(tmp_path / "snapshots", tmp_path / "here"))
    for name in here.published["tables"]:
        assert reports.comparable(name) == here.comparable(name), name


def test_what_a_shard_began_travels_and_is_not_begun_again(spark: Any, tmp_path: Path) -> None:
    with on_spark.SparkEngine(spark) as engine:
        for many in (3, 100):
            begins = tmp_path / str(many)
            pieces = engine.given(pack_value(0, "number", number) for number in range(many))
            list(engine.collect(engine.ask(pieces, Counted(0, str(begins)))))
            assert begins.read_text() == "begun\n"


class Counted(Squares):
    """Work that notes each begin in a file."""

    def __init__(self, more: int, path: str) -> None:
        super().__init__(more)
        object.__setattr__(self, "path", path)

    def begin(self, pieces: Any) -> list[int]:
        """Notes that it was called."""
        with Path(self.path).open("a") as file:
            file.write("begun\n")
        return super().begin(pieces)


def test_a_core_that_fails_on_every_group_ends_the_run_and_names_one(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ingest_locally([str(CAPTURES / "S2")], tmp_path / "snapshots")
    monkeypatch.setattr("jobs.pipeline.audit.GroupAudit", TornAudit)
    with pytest.raises(AllGroupsFailedError, match="every group, as on G_S2: IndexError"):
        audit_by_spark(spark, task(tmp_path / "snapshots", tmp_path / "reports"))


class TornAudit(GroupAudit):
    """An audit in which a situation cannot be evaluated."""

    def questions(self, begun: Any) -> Any:
        """The questions, torn."""
        return (Torn(each.situation, each.members) for each in super().questions(begun))


class Torn(Question):
    """A question whose members have lost their facts on the way."""

    def __reduce__(self) -> tuple[Any, ...]:
        return Question, (self.situation, {list_id: [()] for list_id in self.lists()})


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
