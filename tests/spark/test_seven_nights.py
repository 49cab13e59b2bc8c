"""Seven nights of the simulator, by the command and by DataFrames: all tables are equal.

One night was not collected, in one a group is gone, one is well, and a known issue expires.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from jobs.api import audit as audit_here
from jobs.cli import main
from jobs.schemas import RUNS, SNAPSHOT_TABLES
from jobs.spark import audit, backfill
from jobs.storage import Location, Snapshots
from tests.simulation.clock import MINUTE
from tests.simulation.days import make_day
from tests.support.reports import PublishedReports
from tests.support.runs import ingest_locally

pytestmark = [pytest.mark.spark, pytest.mark.house]

FIRST = date(2026, 11, 20)
DATES = [str(FIRST + timedelta(days=number)) for number in range(7)]
#: By date the simulated night; None: nobody collected.
NIGHTS = dict(zip(DATES, ("bad", "bad", None, "bad", "bad", "well", "bad"), strict=True))
GONE = {DATES[3]: "G-01"}
KNOWN = {"known_issues": [{"groups": "G-00", "reason": "OPS-7", "expires": DATES[1]}]}
TABLES = [
    each.name
    for each in SNAPSHOT_TABLES
    if each.name in ("heartbeats", "topic_routes", "broker_polls", "client_states", "queue_offsets")
]


def shifted(value: Any, by: timedelta) -> Any:
    """The value with all times in it so much later."""
    if isinstance(value, datetime):
        return value + by
    if isinstance(value, dict):
        return {name: shifted(each, by) for name, each in value.items()}
    return [shifted(each, by) for each in value] if isinstance(value, list) else value


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The snapshot tables of all nights, a file for each night."""
    folder = tmp_path_factory.mktemp("nights")
    tables: dict[tuple[str, str], pa.Table] = {}
    for night in ("bad", "well"):
        (folder / night).mkdir()
        make_day(
            "nights",
            1,
            folder / night,
            hours=0.4,
            groups=4,
            every=MINUTE,
            faults=night == "bad",
            lasting=True,
        )
        ingest_locally([str(folder / night)], folder / f"{night}-tables")
        there = Snapshots.open(Location(folder / f"{night}-tables"))
        for name in TABLES:
            tables[night, name] = there.unchecked(name).to_table()
    began = pa.compute.min(tables["bad", "heartbeats"]["snapshot_time"]).as_py().date()
    for day, night in NIGHTS.items():
        by = date.fromisoformat(day) - began
        for name in TABLES if night else ():
            rows = tables[str(night), name]
            kept = [
                shifted(row, by)
                for row in rows.to_pylist()
                if row.get("consumer_group") != GONE.get(day, "")
            ]
            place = folder / "lake" / name
            place.mkdir(parents=True, exist_ok=True)
            pq.write_table(pa.Table.from_pylist(kept, rows.schema), place / f"{day}.parquet")
    return folder / "lake"


@pytest.fixture(scope="module")
def published(lake: Path) -> dict[str, PublishedReports]:
    """The nights by the command."""
    known = lake.parent / "known.toml"
    entry = KNOWN["known_issues"][0]
    known.write_text("[[known_issues]]\n" + "".join(f'{k} = "{v}"\n' for k, v in entry.items()))
    reports = lake.parent / "reports"
    for day, night in NIGHTS.items():
        where = ["--snapshots", str(lake), "--reports", str(reports)]
        code = main(["audit", *where, "--date", day, "--known-issues", str(known), "--quiet"])
        assert code == (3 if night is None else 0), day
    return {day: PublishedReports(reports, day) for day, night in NIGHTS.items() if night}


@pytest.fixture
def schema(spark: SparkSession) -> Iterator[str]:
    spark.sql("CREATE DATABASE seven_nights")
    yield "seven_nights"
    spark.sql("DROP DATABASE seven_nights CASCADE")


def plain(value: Any) -> Any:
    """A value of Spark or of Arrow, in one form: times in UTC without a zone."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, list) else value


def texts_of(rows: list[dict[str, Any]], run_id: str) -> list[str]:
    return sorted(repr(plain(row)).replace(run_id, "RUN") for row in rows)


def test_the_nights_show_what_they_are_made_for(published: dict[str, PublishedReports]) -> None:
    """Else the comparison would compare nothing."""
    found = {day: night.rows("orphaned_queues") for day, night in published.items()}
    opened = {
        day: {(row["status"], row["nights_open"]) for row in rows if row["status"]}
        for day, rows in found.items()
    }
    assert opened[DATES[0]] == {("NEW", 1)}
    assert opened[DATES[1]] == {("PERSISTING", 2)}
    assert ("PERSISTING", 4) in opened[DATES[4]]
    # What the night before did not look for stays open.
    assert {status for status, _ in opened[DATES[6]]} == {"NEW", "PERSISTING"}
    marks = {day: {row["known_issue"] for row in rows} for day, rows in found.items()}
    assert "OPS-7" in marks[DATES[1]]
    assert marks[DATES[3]] == {None}
    kinds = {row["kind"] for row in published[DATES[3]].rows("gaps")}
    assert {"GROUP_GONE", "LEFT_OPEN"} <= kinds
    former = {day: len(night.rows("former_findings")) for day, night in published.items()}
    assert former[DATES[3]]
    assert former[DATES[5]]
    assert any(row["returned"] for row in published[DATES[6]].rows("problems"))


def test_in_spark_a_backfill_gives_what_the_command_published(
    lake: Path, published: dict[str, PublishedReports], spark: SparkSession, schema: str
) -> None:
    frames = {name: spark.read.parquet(str(lake / name)) for name in TABLES}
    with pytest.warns(UserWarning, match=f"{DATES[2]} is left out"):
        runs = backfill(
            **frames,
            first=DATES[0],
            last=DATES[-1],
            schema=schema,
            known_issues=KNOWN,
        )
    of_date = {str(row.date): row.run_id for row in runs.collect()}
    assert of_date.keys() == published.keys()
    saved = {}
    for name in published[DATES[0]].published["tables"]:
        rows = spark.table(f"{schema}.{name}").collect()
        for day in published:
            saved[name, day] = [row.asDict(recursive=True) for row in rows if str(row.date) == day]
    for (name, day), rows in saved.items():
        wanted = published[day]
        came = [{key: row[key] for key in row if key not in ("date", "run_id")} for row in rows]
        others = [{k: v for k, v in row.items() if k != "run_id"} for row in wanted.rows(name)]
        run_id = wanted.published["run_id"]
        assert {row["run_id"] for row in rows} <= {of_date[day]}
        assert texts_of(came, of_date[day]) == texts_of(others, run_id), (day, name)
    for row in runs.collect():
        wanted = published[str(row.date)].summary
        assert row.state == wanted["verdict"]["state"]
        assert (row.previous_date and str(row.previous_date)) == (wanted["previous"] or {}).get(
            "date"
        )


def test_the_reports_of_the_command_are_a_history_too(
    lake: Path, published: dict[str, PublishedReports], spark: SparkSession
) -> None:
    day, reports = DATES[-1], lake.parent / "reports"
    asked: dict[str, Any] = {"date": day, "history": reports, "known_issues": KNOWN}
    here = audit_here({name: pq.read_table(lake / name) for name in TABLES}, **asked)
    there = audit(**{name: spark.read.parquet(str(lake / name)) for name in TABLES}, **asked)
    wanted = published[day]
    for came in (here, there):
        run_id = came.summary["run_id"]
        for name in came:
            if name != RUNS.name:
                assert texts_of(came[name].to_pylist(), run_id) == texts_of(
                    wanted.rows(name), wanted.published["run_id"]
                ), name
