"""The ingest job: dumps in, snapshot tables and quarantine out, nothing lost between them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.conform import conform
from jobs.dumps.files import DamagedFile, InputFile, list_files, salvage_damaged
from jobs.dumps.lines import count_blocks, no_lines, number_lines, read_lines
from jobs.dumps.records import read_records
from jobs.errors import InputError, QuarantineError
from jobs.progress import Progress
from jobs.schemas import QUARANTINE
from jobs.session import suited_to_size
from jobs.settings import Settings
from jobs.snapshots.client_states import make_client_states
from jobs.snapshots.heartbeats import make_heartbeats
from jobs.snapshots.polls import latest_polls, make_broker_polls
from jobs.snapshots.queue_offsets import make_queue_offsets
from jobs.snapshots.topic_routes import make_topic_routes
from jobs.storage import Location

_QUARANTINED = "quarantine"

#: Unpacked: some tens of thousands of lines.
_SMALL_BYTES = 16 << 20

#: Beside the tables: the counts of ``Ingested``.
MANIFEST = "ingested.json"


@dataclass(frozen=True)
class Ingested:
    """What came in. ``lines`` = lines read + ``quarantined``, always."""

    files: int
    bytes: int
    lines: int
    quarantined: int

    @property
    def quarantined_share(self) -> float:
        """The share of the lines that was not understood."""
        return self.quarantined / self.lines if self.lines else 0.0


def ingest(
    spark: SparkSession,
    dumps: Sequence[str],
    snapshots: Location,
    settings: Settings,
    progress: Progress,
) -> Ingested:
    """Reads dumps and writes the snapshot tables under ``snapshots``, replacing what was there.

    Raises InputError where the dumps are missing, and QuarantineError, after everything was
    written, where more lines were not understood than the settings allow.
    """
    files = list_files(spark, dumps)
    if not files:
        raise InputError(f"no dump file below {', '.join(dumps)}")
    is_small = sum(file.unpacked_size for file in files) <= _SMALL_BYTES
    with suited_to_size(spark, is_small=is_small):
        result = _ingest(spark, files, snapshots, settings, progress)
    if result.quarantined_share > settings.allowed_quarantine_share:
        raise QuarantineError(
            f"{result.quarantined:,} of {result.lines:,} lines were not understood "
            f"({result.quarantined_share:.1%}; allowed are "
            f"{settings.allowed_quarantine_share:.1%}): see {snapshots / QUARANTINE.name}"
        )
    return result


def _ingest(
    spark: SparkSession,
    files: Sequence[InputFile],
    snapshots: Location,
    settings: Settings,
    progress: Progress,
) -> Ingested:
    staging = snapshots / "_staging"
    staging.delete()
    try:
        with progress.step("records") as step:
            records, damaged = _stage_records(spark, files, staging)
            parts = _count_parts(records)
            lines = sum(parts.values()) + sum(each.readable is None for each in damaged)
            step.rows = lines
        quarantined = parts.get(_QUARANTINED, 0) + sum(each.readable is None for each in damaged)
        _write_snapshots(spark, records, snapshots, damaged, settings, progress)
    finally:
        staging.delete()
    result = Ingested(len(files), sum(file.size for file in files), lines, quarantined)
    # For the audit's summary: what the snapshots were made of.
    (snapshots / MANIFEST).replace_text(json.dumps(asdict(result)) + "\n")
    progress.say(
        f"ingested {result.files} files, {result.lines:,} lines, {result.quarantined:,} quarantined"
    )
    return result


def _stage_records(
    spark: SparkSession, files: Sequence[InputFile], staging: Location
) -> tuple[DataFrame, list[DamagedFile]]:
    paths = [file.path for file in files]
    try:
        return _write_records(read_lines(spark, paths), staging / "records"), []
    except (PySparkException, Py4JJavaError):
        damaged = salvage_damaged(spark, files, staging / "salvaged")
        if not damaged:
            raise
    bad = {each.path for each in damaged}
    readable = [path for path in paths if path not in bad]
    readable += [each.readable for each in damaged if each.readable is not None]
    (staging / "records").delete()
    # With nothing readable at all the tables are empty, and the quarantine says why.
    lines = read_lines(spark, readable) if readable else no_lines(spark)
    return _write_records(lines, staging / "records"), damaged


def _write_records(lines: DataFrame, location: Location) -> DataFrame:
    failed = F.col("reason").isNotNull()
    is_text = F.is_valid_utf8("line")
    records = read_records(lines).withColumns(
        {
            "part": F.when(failed, F.lit(_QUARANTINED)).otherwise(F.col("kind")),
            "line_bytes": F.when(failed & ~is_text, F.col("line").cast("binary")),
            "line": F.when(failed, F.make_valid_utf8("line")),
        }
    )
    records.write.partitionBy("part").mode("overwrite").parquet(location.uri)
    # Of no lines at all there is no file to tell the schema.
    return lines.sparkSession.read.schema(records.schema).parquet(location.uri)


def _count_parts(records: DataFrame) -> dict[str, int]:
    return {row["part"]: row["count"] for row in records.groupBy("part").count().collect()}


def _write_snapshots(
    spark: SparkSession,
    records: DataFrame,
    snapshots: Location,
    damaged: Sequence[DamagedFile],
    settings: Settings,
    progress: Progress,
) -> None:
    understood = records.where(F.col("part") != _QUARANTINED)
    polls = latest_polls(understood)

    def write(name: str, rows: DataFrame) -> DataFrame:
        location = snapshots / name
        with progress.step(name) as step:
            rows.write.mode("overwrite").parquet(location.uri)
            written = spark.read.parquet(location.uri)
            step.rows = written.count()
        return written

    client_states = write(
        "client_states", make_client_states(understood, settings.client_log_time_zone)
    )
    write("broker_polls", make_broker_polls(polls))
    write("heartbeats", make_heartbeats(understood, polls, client_states))
    write("topic_routes", make_topic_routes(understood))
    write("queue_offsets", make_queue_offsets(understood))
    write("quarantine", _make_quarantine(spark, records, damaged))


def _make_quarantine(
    spark: SparkSession, records: DataFrame, damaged: Sequence[DamagedFile]
) -> DataFrame:
    """The table ``quarantine``: the lines, and the files of which nothing could be read."""
    original = _original_file({each.readable: each.path for each in damaged if each.readable})
    lines = number_lines(
        records.where(F.col("part") == _QUARANTINED), count_blocks(records)
    ).withColumn("file", original)
    whole_files = spark.createDataFrame(
        [(each.path, 0, each.problem, "") for each in damaged if each.readable is None],
        "file string, line_number long, reason string, line string",
    ).withColumn("line_bytes", F.lit(None).cast("binary"))
    return conform(lines, QUARANTINE).unionByName(conform(whole_files, QUARANTINE))


def _original_file(originals: dict[str | None, str]) -> Column:
    file = F.col("file")
    if not originals:
        return file
    names = F.create_map(
        *[F.lit(part) for pair in originals.items() for part in (_as_uri(str(pair[0])), pair[1])]
    )
    return F.coalesce(F.try_element_at(names, file), file)


def _as_uri(path: str) -> str:
    return path if "://" in path or path.startswith("file:") else f"file:{path}"
