"""Two engines, one audit: the same tables whichever runs, and which one a job is given."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.errors import InputError, SettingsError
from jobs.pipeline import engine
from jobs.pipeline.audit_on_driver import ingest
from jobs.pipeline.engine import AUTO, LOCAL, SPARK, check_input, choose_engine
from jobs.publish.tables import write_table
from jobs.schemas import HEARTBEATS
from jobs.settings import Settings
from jobs.storage import Location
from tests.fold.fleets import EXPIRY_SECONDS, fleet
from tests.support.fleet import (
    FAULTS,
    Fleet,
    describe_fleet,
    fleet_heartbeats,
    fleet_polls,
    fleet_routes,
    fleet_settings,
    true_faults,
    true_findings,
)
from tests.support.ids import ids_locally
from tests.support.reports import PublishedReports
from tests.support.runs import QUIET, audit_by_spark, audit_locally, task, writing
from tests.support.snapshots import heartbeat_row, write_tables

# ---------------------------------------------------------------- the same tables


def tables(published: PublishedReports) -> dict[str, list[str]]:
    return {name: published.comparable(name) for name in published.published["tables"]}


def assert_same(local: PublishedReports, spark: PublishedReports) -> None:
    assert (local.summary["engine"], spark.summary["engine"]) == (LOCAL, SPARK)
    for name, rows in tables(local).items():
        assert spark.comparable(name) == rows, name
    for entry in ("date", "window", "rows", "findings", "known_issues", "inputs", "settings"):
        assert local.summary[entry] == spark.summary[entry], entry
    assert local.published["tables"] == spark.published["tables"]
    # What another language is made of, of every fault; compared with the other columns above.
    faults = local.rows("group_faults")
    assert faults
    assert all({"evidence", "remedy"} <= json.loads(row["texts"] or "{}").keys() for row in faults)


GROUPS = 40


@pytest.mark.spark
@pytest.mark.parametrize("with_ids", [False, True])
def test_both_engines_publish_the_same_of_groups_in_which_everything_happens(
    spark: SparkSession, tmp_path: Path, with_ids: bool
) -> None:
    """Hundreds of generated groups, hostile names among them, in one run."""
    rows = fleet(3, groups=GROUPS)
    if with_ids:
        rows |= ids_locally(
            rows["heartbeats"], rows["broker_polls"], rows["topic_routes"], EXPIRY_SECONDS
        )
    for name, of_table in rows.items():
        write_table(of_table, Location(tmp_path / "snapshots") / name)
    settings = Settings(heartbeat_expiry_seconds=EXPIRY_SECONDS, persistence_seconds=60)
    local, by_spark = (
        task(tmp_path / "snapshots", tmp_path / name, settings=settings)
        for name in ("local", "spark")
    )
    assert_same(audit_locally(local), audit_by_spark(spark, by_spark))


#: So long between two faults that they are not one episode with a gap.
FLEET = Fleet(
    groups=16,
    rounds=400,
    members=5,
    queues_per_broker=4,
    churn=0.02,
    faulty=0.7,
    healthy=(31, 40),
)


@pytest.mark.spark
def test_all_faults_of_a_fleet_are_found_by_both_engines_and_nothing_else(
    spark: SparkSession, tmp_path: Path
) -> None:
    versions = describe_fleet(spark, FLEET).cache()
    assert {row.fault for row in versions.select("fault").distinct().collect()} >= set(FAULTS)
    for name, of_table in (
        ("heartbeats", fleet_heartbeats(FLEET, versions)),
        ("topic_routes", fleet_routes(FLEET, versions)),
        ("broker_polls", fleet_polls(FLEET, versions)),
    ):
        of_table.write.parquet(str(tmp_path / "snapshots" / name))
    local, by_spark = (
        task(tmp_path / "snapshots", tmp_path / name, settings=fleet_settings())
        for name in ("local", "spark")
    )
    reports = audit_locally(local)
    assert_same(reports, audit_by_spark(spark, by_spark))

    queue = ["consumer_group", "topic", "broker_name", "queue_id", "certainty"]
    queue += ["first_seen", "last_seen"]
    for kind, table in (("ORPHANED", "orphaned_queues"), ("DUPLICATE", "duplicate_queues")):
        true = true_findings(FLEET, versions).where(F.col("kind") == kind)
        expected = rows_of(true.select(*queue, F.array("cause").alias("causes")))
        assert expected
        assert chosen(reports.rows(table), [*queue, "causes"]) == expected
    fault = ["consumer_group", "topic", "fault", "first_seen"]
    assert chosen(reports.rows("group_faults"), fault) == rows_of(
        true_faults(FLEET, versions).select(*fault)
    )
    assert {row["coverage"] for row in reports.rows("group_health")} == {"AUDITED"}


def rows_of(frame: DataFrame) -> set[str]:
    return chosen(frame.toArrow().to_pylist(), frame.columns)


def chosen(rows: list[dict[str, object]], columns: list[str]) -> set[str]:
    return {str([str(row[name]) for name in columns]) for row in rows}


# ---------------------------------------------------------------- which engine


@pytest.fixture
def dumps(tmp_path: Path) -> Path:
    folder = tmp_path / "dumps"
    folder.mkdir()
    (folder / "dump.jsonl").write_text("x" * 1000)
    (folder / "dump.jsonl.gz").write_text("x" * 1000)
    return folder


def chosen_for(
    dumps: list[str] | None,
    snapshots: Path | str = "nowhere",
    asked: str = AUTO,
    master: str | None = None,
    *,
    is_submitted: bool = False,
) -> engine.Choice:
    return choose_engine(
        asked, dumps, Location(snapshots), master=master, is_submitted=is_submitted
    )


def test_a_little_text_is_read_here_and_much_of_it_by_spark(
    dumps: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # An archive counts as what is likely in it: 25 bytes for each of its bytes.
    monkeypatch.setattr(engine, "_MOST_BYTES", 26_000)
    choice = chosen_for([str(dumps)])
    assert choice.engine == LOCAL
    assert choice.sentence == "engine local, without Spark: about 0.0 MB of text"
    monkeypatch.setattr(engine, "_MOST_BYTES", 25_999)
    choice = chosen_for([str(dumps)])
    assert choice.engine == SPARK
    assert choice.sentence == "engine spark: about 0.0 MB of text, more than 0.0"


def test_a_few_rows_are_folded_here_and_many_by_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tables(tmp_path, [(HEARTBEATS, [heartbeat_row()] * 3)])
    write_table(pa.table({"line": ["x"] * 2}), Location(tmp_path) / "quarantine")
    monkeypatch.setattr(engine, "_MOST_ROWS", 5)
    choice = chosen_for(None, tmp_path)
    assert choice.engine == LOCAL
    assert choice.sentence == "engine local, without Spark: 5 rows in the snapshot tables"
    monkeypatch.setattr(engine, "_MOST_ROWS", 4)
    assert chosen_for(None, tmp_path) == engine.Choice(
        SPARK, "engine spark: 5 rows in the snapshot tables, more than 4"
    )


def test_rows_are_counted_by_footers_alone(tmp_path: Path) -> None:
    location = Location(tmp_path) / "heartbeats"
    write_table(pa.table({"client_id": ["a"] * 10_000}), location)
    (file,) = (path for path, _ in location.files())
    content = bytearray(Path(file).read_bytes())
    footer = pq.read_metadata(file).serialized_size + 8
    content[4 : len(content) - footer] = bytes(len(content) - footer - 4)
    Path(file).write_bytes(content)
    assert "10,000 rows" in chosen_for(None, tmp_path).sentence


@pytest.mark.parametrize("path", ["hdfs:///dumps", "s3a://b/dumps", "viewfs:///dumps"])
def test_what_does_not_lie_on_this_machine_is_for_spark(path: str) -> None:
    choice = chosen_for([path])
    assert choice == engine.Choice(SPARK, "engine spark: the dumps do not lie on this machine")


@pytest.mark.parametrize(
    ("asked", "master", "is_submitted", "came"),
    [
        (LOCAL, None, False, (LOCAL, "engine local, by --engine")),
        (SPARK, None, False, (SPARK, "engine spark, by --engine")),
        (SPARK, "local[2]", False, (SPARK, "engine spark, by --engine")),
        # Whoever names a master, or comes from spark-submit, has Spark already.
        (AUTO, "local[2]", False, (SPARK, "engine spark, by --master")),
        (AUTO, None, True, (SPARK, "engine spark, by spark-submit")),
        (AUTO, "yarn", True, (SPARK, "engine spark, by spark-submit")),
    ],
)
def test_an_engine_that_is_asked_for_is_taken(
    dumps: Path, asked: str, master: str | None, is_submitted: bool, came: tuple[str, str]
) -> None:
    choice = chosen_for([str(dumps)], asked=asked, master=master, is_submitted=is_submitted)
    assert (choice.engine, choice.sentence) == came


@pytest.mark.parametrize(
    ("master", "is_submitted", "named"),
    [("local[2]", False, "--master"), (None, True, "spark-submit")],
)
def test_the_local_engine_is_refused_where_spark_is_there_already(
    dumps: Path, master: str | None, is_submitted: bool, named: str
) -> None:
    with pytest.raises(SettingsError, match=f"expected --engine spark with {named}, came"):
        chosen_for([str(dumps)], asked=LOCAL, master=master, is_submitted=is_submitted)


def test_the_local_engine_reads_local_dumps_alone(tmp_path: Path) -> None:
    def read(path: str) -> None:
        with writing(tmp_path / "snapshots") as writer:
            ingest([path], writer, Settings(), QUIET)

    with pytest.raises(InputError, match="expected dumps on this machine with --engine local"):
        read("s3a://bucket/dumps")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="no dump file below"):
        read(str(tmp_path / "empty"))
    with pytest.raises(InputError, match="no dump at"):
        read(str(tmp_path / "missing-*.jsonl"))
    assert [path for path in (tmp_path / "snapshots").rglob("*") if path.is_file()] == []


def test_an_input_that_is_missing_here_is_an_error_before_java_starts(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no dump file below"):
        check_input([str(tmp_path)], Location(tmp_path))
    with pytest.raises(InputError, match="no table heartbeats"):
        check_input(None, Location(tmp_path))
    (tmp_path / "dump.jsonl").write_text("{}")
    check_input([str(tmp_path)], Location(tmp_path))
    check_input(["s3a://bucket/dumps"], Location(tmp_path))
