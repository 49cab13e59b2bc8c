"""One audit: the same report tables from every engine, whatever is read and whatever was before."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from jobs.config.settings import Settings
from jobs.config.window import Window
from jobs.engines.local import LocalEngine
from jobs.publish.run import Task
from tests.fold.fleets import EXPIRY_SECONDS, START, fleet
from tests.support.ids import ids_locally
from tests.support.reports import PublishedReports
from tests.support.runs import (
    as_a_lake,
    as_ingested,
    audit_by,
    audit_by_spark,
    audit_locally,
    ingest_locally,
    task,
)
from tests.support.truth import CAPTURES

pc: Any = pyarrow.compute
Run = Callable[[Task], PublishedReports]


def of_content(reports: PublishedReports) -> dict[str, list[str]]:
    """By table its rows, sorted."""
    return {name: reports.comparable(name) for name in reports.published["tables"]}


#: What a summary has of the run itself.
OF_THE_RUN = {"run_id", "started_at", "duration_seconds", "engine", "versions", "sources"}


def assert_same(one: PublishedReports, other: PublishedReports) -> None:
    assert other.published["tables"] == one.published["tables"]
    for name, rows in of_content(one).items():
        assert other.comparable(name) == rows, name
    of_summary = [
        {key: value for key, value in each.summary.items() if key not in OF_THE_RUN}
        for each in (one, other)
    ]
    of_summary[1]["previous"] = of_summary[1]["previous"] and one.summary["previous"]
    assert of_summary[0] == of_summary[1]


#: All groups in which everything happens; hostile names among them.
GENERATED = Settings(heartbeat_expiry_seconds=EXPIRY_SECONDS, persistence_seconds=60)
#: The fleet's third round: midnight, so that what was open before it is of another date.
MIDDLE = START
BEFORE_MIDNIGHT = 120 * 1_000_000


def across_midnight(rows: pa.Table) -> pa.Table:
    """All times earlier, so that the third round is that of midnight."""
    for place, column in enumerate(rows.schema):
        if pa.types.is_timestamp(column.type):
            earlier = pc.subtract(rows.column(place), pa.scalar(BEFORE_MIDNIGHT, pa.duration("us")))
            rows = rows.set_column(place, column, earlier.cast(column.type))
    return rows


def write_fleet(snapshots: Path, *, has_ids: bool, groups: int, seed: int = 3) -> None:
    rows = {name: across_midnight(each) for name, each in fleet(seed, groups=groups).items()}
    if has_ids:
        rows |= ids_locally(
            rows["heartbeats"], rows["broker_polls"], rows["topic_routes"], EXPIRY_SECONDS
        )
    for name, of_table in rows.items():
        # Two files each: what is about one group lies in both.
        folder, half = snapshots / name, of_table.num_rows // 2
        folder.mkdir(parents=True)
        pq.write_table(of_table.slice(0, half), folder / "a.parquet")
        pq.write_table(of_table.slice(half), folder / "b.parquet")
    if has_ids:
        as_ingested(snapshots, heartbeat_expiry_seconds=EXPIRY_SECONDS)


def runs_of_fleet(snapshots: Path, reports: Path, run: Run) -> list[PublishedReports]:
    """The fleet as a whole, a window of it, and the window after it."""
    windows = [Window(), Window(until=MIDDLE), Window(since=MIDDLE)]
    places = ["whole", "nights", "nights"]
    return [
        run(task(snapshots, reports / place, window, GENERATED))
        for window, place in zip(windows, places, strict=True)
    ]


@pytest.mark.e2e
@pytest.mark.parametrize("has_ids", [False, True])
def test_several_processes_publish_what_one_does(
    tmp_path: Path, local_engines: dict[str, LocalEngine], has_ids: bool
) -> None:
    """Windows: below, and where slices are read (tests/fold/test_kernel.py)."""
    write_fleet(tmp_path / "snapshots", has_ids=has_ids, groups=8)
    one, two = (
        audit_by(
            local_engines[name],
            task(tmp_path / "snapshots", tmp_path / name, settings=GENERATED),
        )
        for name in ("one process", "two processes")
    )
    assert_same(one, two)
    made = {name for name, rows in of_content(one).items() if rows}
    assert made >= {"group_faults", "orphaned_queues", "allocations", "state_runs", "group_health"}


@pytest.mark.house
@pytest.mark.spark
def test_spark_publishes_of_ids_what_this_process_does(spark: Any, tmp_path: Path) -> None:
    write_fleet(tmp_path / "snapshots", has_ids=True, groups=8)
    here, there = (
        run(task(tmp_path / "snapshots", tmp_path / place, settings=GENERATED))
        for place, run in (
            ("here", audit_locally),
            ("spark", lambda to_do: audit_by_spark(spark, to_do)),
        )
    )
    assert_same(here, there)


@pytest.mark.spark
def test_spark_publishes_what_this_process_does(spark: Any, tmp_path: Path) -> None:
    """Generated groups, as a whole and in windows, the second one after a run of the first."""
    write_fleet(tmp_path / "snapshots", has_ids=False, groups=8)
    here = runs_of_fleet(tmp_path / "snapshots", tmp_path / "here", audit_locally)
    there = runs_of_fleet(
        tmp_path / "snapshots", tmp_path / "spark", lambda to_do: audit_by_spark(spark, to_do)
    )
    for one, other in zip(here, there, strict=True):
        assert_same(one, other)
    # What a night takes over from the one before: tests/jobs/pipeline/test_audit_chain.py.
    assert here[2].summary["previous"] is not None
    faults = here[0].rows("group_faults")
    assert all({"evidence", "remedy"} <= json.loads(row["texts"] or "{}").keys() for row in faults)


@pytest.mark.long
@given(st.integers(0, 1 << 32))
@hypothesis_settings(max_examples=hypothesis_settings.default.max_examples // 6)
def test_the_rows_of_groups_in_which_everything_happens_give_what_their_ids_give(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    """Among it polls that contradict the rows of their list, or have lost them."""
    folder = tmp_path_factory.mktemp("fleet")
    for name, has_ids in (("rows", False), ("ids", True)):
        write_fleet(folder / name, has_ids=has_ids, groups=2, seed=seed)
    rows, ids = (
        audit_locally(task(folder / name, folder / f"{name}-reports", settings=GENERATED))
        for name in ("rows", "ids")
    )
    by_ids, by_rows = of_content(ids), of_content(rows)
    # A poll whose rows are lost has no id either: that is named where lists come by their ids.
    for each in (by_ids, by_rows):
        for name in ("quarantine", "gaps", "verdict"):
            del each[name]
    assert by_ids == by_rows


def test_the_rows_of_a_capture_give_what_its_ids_give(tmp_path: Path) -> None:
    for name in ("ids", "rows"):
        ingest_locally([str(CAPTURES / "S2")], tmp_path / name)
    as_a_lake(tmp_path / "rows")
    ids, rows = (
        audit_locally(task(tmp_path / name, tmp_path / f"{name}-reports"))
        for name in ("ids", "rows")
    )
    assert of_content(rows) == of_content(ids)


@pytest.mark.spark
def test_a_capture_gives_the_same_on_every_engine(
    spark: Any, tmp_path: Path, local_engines: dict[str, LocalEngine]
) -> None:
    ingest_locally([str(CAPTURES / "S2")], tmp_path / "snapshots")
    first = audit_locally(task(tmp_path / "snapshots", tmp_path / "one"))
    assert first.rows("allocations")
    two = task(tmp_path / "snapshots", tmp_path / "two")
    assert_same(first, audit_by(local_engines["two processes"], two))
    assert_same(first, audit_by_spark(spark, task(tmp_path / "snapshots", tmp_path / "spark")))
