"""Report tables in a schema: saved, read, and compared with; ``runs`` says what counts."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from chispa import assert_df_equality
from pyspark.sql import DataFrame, SparkSession

from jobs.config.settings import Settings
from jobs.config.window import Window
from jobs.errors import AuditError, InputError, NothingToAuditError, SettingsError
from jobs.spark import audit, backfill, dataframes, schemas
from jobs.spark.auditing import SparkReport
from jobs.spark.dataframes import history_in, read_tables, replace_date, save
from jobs.storage import PublishedRun
from tests.support.runs import audit_locally, task
from tests.support.snapshots import at, frame, write_tables
from tests.support.stacked import STACKED

pytestmark = pytest.mark.spark

SETTINGS = {"persistence_seconds": 60}
#: Two nights that end while a client id is there twice, with a day between them.
DAYS = (0, 2)
TABLES = [
    (
        of,
        [
            {**row, "snapshot_time": row["snapshot_time"] + timedelta(days=day)}
            for day in DAYS
            for row in rows
            if row["snapshot_time"] < at(240)
        ],
    )
    for of, rows in STACKED
]
FIRST, SECOND = "2026-01-05", "2026-01-07"


SCHEMA = "saved_audits"


@pytest.fixture
def frames(spark: SparkSession) -> dict[str, DataFrame]:
    return frames_of(spark)


def frames_of(spark: SparkSession) -> dict[str, DataFrame]:
    return {of.name: frame(spark, of, rows) for of, rows in TABLES}


@pytest.fixture(scope="module")
def saved(_spark_session: SparkSession) -> Iterator[dict[str, Any]]:
    """The runs of a backfill by date; its tables are in ``SCHEMA``."""
    _spark_session.sql(f"CREATE DATABASE {SCHEMA}")
    tables = frames_of(_spark_session).values()
    with pytest.warns(UserWarning, match="2026-01-06 is left out: no list of members from 2026-"):
        runs = backfill(*tables, first=FIRST, last=SECOND, schema=SCHEMA, settings=SETTINGS)
    yield {str(row.date): row for row in runs.collect()}
    _spark_session.sql(f"DROP DATABASE {SCHEMA} CASCADE")


def as_texts(rows: list[dict[str, Any]], run_id: str) -> list[str]:
    return sorted(repr(row).replace(run_id, "RUN") for row in rows)


#: What follows from the nights before, among others.
COMPARED = ("orphaned_queues", "group_faults", "former_findings", "problems", "verdict", "gaps")


def test_a_backfill_is_the_nights_one_after_the_other(
    frames: dict[str, DataFrame], saved: dict[str, Any], tmp_path: Path
) -> None:
    spark = frames["heartbeats"].sparkSession
    assert list(saved) == [FIRST, SECOND]
    assert [row.previous_date and str(row.previous_date) for row in saved.values()] == [None, FIRST]
    assert saved[SECOND].state == "WRONG"

    snapshots = write_tables(tmp_path / "snapshots", TABLES)
    for day in (FIRST, SECOND):
        window = Window.of_date(date.fromisoformat(day))
        settings = Settings(persistence_seconds=60)
        published = audit_locally(
            task(Path(snapshots.base), tmp_path / "reports", window, settings)
        )
        run_id = published.published["run_id"]
        for name in COMPARED:
            rows = read_tables(spark, SCHEMA, name, day).drop("date").collect()
            came = [row.asDict(recursive=True) for row in rows]
            wanted = frame_rows(spark, name, published.rows(name))
            assert as_texts(came, saved[day].run_id) == as_texts(wanted, run_id), (day, name)
    (status,) = (
        read_tables(spark, SCHEMA, "orphaned_queues", SECOND)
        .where("persistence = 'PERSISTENT'")
        .select("status", "nights_open")
        .distinct()
        .collect()
    )
    assert tuple(status) == ("PERSISTING", 2)
    # A folder of reports gives the same as the schema.
    of_folder = audit(
        *frames.values(), date=SECOND, history=tmp_path / "reports", settings=SETTINGS
    )
    (row,) = of_folder.runs.collect()
    assert (str(row.previous_date), row.sentence) == (FIRST, saved[SECOND].sentence)


def frame_rows(spark: SparkSession, name: str, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows as Spark gives them back: its times have no zone in Python."""
    made = spark.createDataFrame(rows, getattr(schemas, name.upper())) if rows else None
    return [row.asDict(recursive=True) for row in made.collect()] if made else []


def test_a_bad_night_stops_no_other_one_and_is_told(
    frames: dict[str, DataFrame], monkeypatch: pytest.MonkeyPatch
) -> None:
    spark = frames["heartbeats"].sparkSession
    spark.sql("CREATE DATABASE bad_nights")
    nights = partial(backfill, *frames.values(), schema="bad_nights")
    saved: list[str] = []

    def fails_once(self: SparkReport, schema: str) -> None:
        if self._published.date == FIRST:
            raise OSError("the disk is full")
        saved.append(self._published.date)

    monkeypatch.setattr(SparkReport, "save_as_tables", fails_once)
    with (
        pytest.warns(UserWarning, match="2026-01-06 is left out"),
        pytest.raises(AuditError, match=r"1 dates were saved .*2026-01-05: the disk is full"),
    ):
        nights(first=FIRST, last=SECOND)
    assert saved == [SECOND]
    with (
        pytest.warns(UserWarning, match="2026-02-01 is left out"),
        pytest.raises(NothingToAuditError, match="no date from 2026-02-01 to 2026-02-01"),
    ):
        nights(first="2026-02-01", last="2026-02-01")
    with pytest.raises(SettingsError, match="expected first before last"):
        nights(first=SECOND, last=FIRST)
    spark.sql("DROP DATABASE bad_nights")
    with pytest.raises(InputError, match=r"no schema 'nowhere' in this session: .* as './nowhere'"):
        history_in(spark, "nowhere")


class Rows:
    """Rows that know the run and the number of columns that were added."""

    def __init__(self, of: str, has_rows: bool = True) -> None:
        self.of, self.has_rows = of, has_rows

    def withColumn(self, name: str, _: Any) -> Rows:  # noqa: N802 - Spark's name
        assert name == "run_id"
        return self

    def limit(self, number: int) -> Rows:
        assert number == 0
        return Rows(self.of, has_rows=False)


@pytest.mark.parametrize("is_again", [False, True], ids=["new", "again"])
@pytest.mark.parametrize("stops_at", range(5))
def test_a_job_that_dies_between_any_two_writes_leaves_a_date_that_runs_does_not_name(
    stops_at: int, is_again: bool, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("runs", "problems", "verdict", "gaps")
    #: By table and date the run that wrote its rows.
    there: dict[tuple[str, date], str] = {}
    writes: list[str] = []

    def write(rows: Any, table: str, day: date) -> None:
        name = table.removeprefix("lake.")
        if rows.of == "dies" and len(writes) == stops_at:
            raise OSError("killed")
        if rows.of == "dies":
            writes.append(name)
        there.pop((name, day), None)
        if rows.has_rows:
            there[name, day] = rows.of

    class Session:
        class catalog:  # noqa: N801 - Spark's name
            @staticmethod
            def tableExists(name: str) -> bool:  # noqa: N802 - Spark's name
                return any(name == f"lake.{each}" for each, _ in there)

    monkeypatch.setattr(dataframes, "replace_date", write)
    monkeypatch.setattr(Rows, "sparkSession", Session, raising=False)
    spark.range(1)  # a literal needs a session
    other, day = date(2026, 1, 4), date(2026, 1, 5)

    def saves(run_id: str, of: date) -> None:
        run = PublishedRun(of.isoformat(), run_id, {}, {})
        save("lake", run, names, lambda _: Rows(run_id))

    saves("other", other)
    if is_again:
        saves("before", day)
    with pytest.raises(OSError, match="killed"):
        saves("dies", day)
    # Before its first write, which takes the date out of runs, nothing has changed.
    is_untouched = is_again and stops_at == 0
    assert there.get(("runs", day)) == ("before" if is_untouched else None)
    assert there["runs", other] == "other"
    if is_untouched:
        assert {there[name, day] for name in names} == {"before"}
    saves("after", day)
    assert {there[name, day] for name in names} == {"after"}


def test_readers_take_what_runs_names(
    spark: SparkSession, saved: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job dies at its third write: the date is gone, also for the next run."""
    with pytest.raises(InputError, match=r"no table default\.runs"):
        read_tables(spark, "default", "problems")
    runs = {str(row.date): row.run_id for row in read_tables(spark, SCHEMA, "runs").collect()}
    assert runs == {day: row.run_id for day, row in saved.items()}
    assert read_tables(spark, SCHEMA, "allocation_drift").count() == 0
    assert "run_id" in spark.table(f"{SCHEMA}.problems").columns
    with pytest.raises(InputError, match="no run of 2026-01-06 in saved_audits"):
        read_tables(spark, SCHEMA, "problems", ["2026-01-06", FIRST])
    there = {name: read_tables(spark, SCHEMA, name, FIRST) for name in ("runs", "problems", "gaps")}
    rows = {
        name: spark.createDataFrame(of.collect(), of.schema).drop("date")
        for name, of in there.items()
    }
    done: list[str] = []

    def dies(rows: DataFrame, table: str, day: date) -> None:
        if len(done) == 2:
            raise OSError("killed")
        done.append(table)
        replace_date(rows, table, day)

    monkeypatch.setattr(dataframes, "replace_date", dies)
    with pytest.raises(OSError, match="killed"):
        save(SCHEMA, PublishedRun(FIRST, "dies", {}, {}), rows, rows.__getitem__)
    assert [str(row.date) for row in read_tables(spark, SCHEMA, "runs").collect()] == [SECOND]
    of_dates = {str(row.date) for row in read_tables(spark, SCHEMA, "problems").collect()}
    assert of_dates == {SECOND}
    assert spark.table(f"{SCHEMA}.problems").where("run_id = 'dies'").count() > 0
    history = history_in(spark, SCHEMA)
    assert history is not None
    assert history.before(SECOND) is None


def test_what_an_earlier_version_saved_counts_for_nothing_and_is_said(
    spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    spark.sql("CREATE DATABASE earlier_audits")
    rows = spark.createDataFrame([("G",)], "consumer_group string")
    replace_date(rows, "earlier_audits.problems", date(2026, 1, 5))
    history = history_in(spark, "earlier_audits")
    assert history is not None
    assert history.dates() == []
    assert "earlier_audits has report tables and no table runs" in caplog.text
    spark.sql("DROP DATABASE earlier_audits CASCADE")


def test_what_has_a_slash_is_a_folder(spark: SparkSession, tmp_path: Path) -> None:
    for given in (tmp_path, "./yet/to/come", (tmp_path / "reports").as_uri()):
        history = history_in(spark, given)
        assert type(history).__name__ == "Reports"
    assert history_in(spark, None) is None


def test_a_date_that_is_saved_again_is_replaced_and_others_stay(
    spark: SparkSession, tmp_path: Path
) -> None:
    spark.sql("CREATE DATABASE audits")
    try:
        rows = spark.createDataFrame([("a", 1), ("b", 2)], "id string, n int")
        more = rows.selectExpr("*", "true AS more")
        first, second = date(2026, 1, 5), date(2026, 1, 6)
        saved = [(first, rows), (second, rows), (second, more.limit(1)), (first, more.limit(0))]
        for day, of_day in saved:
            replace_date(of_day, "audits.found", day)
        expected = spark.createDataFrame(
            [("a", 1, True, second)], "id string, n int, more boolean, date date"
        )
        came = spark.table("audits.found").select("id", "n", "more", "date")
        assert_df_equality(came, expected, ignore_nullable=True)
    finally:
        spark.sql("DROP DATABASE audits CASCADE")
