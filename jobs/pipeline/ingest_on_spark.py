"""The ingest job: dumps in, snapshot tables and quarantine out, nothing lost between them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.dumps.files import DamagedFile, InputFile, list_files, salvage_damaged
from jobs.dumps.lines import blocks_of, no_lines, number_lines, read_lines, read_statements
from jobs.dumps.statement import TOPIC_ROUTE, Statement
from jobs.errors import InputError
from jobs.instants import Instant
from jobs.packed import PACKED_DDL
from jobs.pipeline.ingested import Ingested, check_quarantine, record_ingest
from jobs.progress import Progress
from jobs.publish.packed import PackedTables, gathered
from jobs.publish.tables import write_table
from jobs.schemas import QUARANTINE, SNAPSHOT_TABLES
from jobs.session import suited_to_ingest
from jobs.settings import Settings
from jobs.snapshots.clients import Log, log_offset
from jobs.snapshots.groups import SnapshotTerms
from jobs.snapshots.steps import table_batches
from jobs.storage import Location

_TABLES = tuple(table for table in SNAPSHOT_TABLES if table is not QUARANTINE)


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
    staging = snapshots / "_staging"
    staging.delete()
    try:
        with suited_to_ingest(spark):
            result = _ingest(spark, files, snapshots, settings, progress)
    finally:
        staging.delete()
    record_ingest(result, snapshots, settings, progress)
    check_quarantine(result, snapshots, settings)
    return result


def _ingest(
    spark: SparkSession,
    files: Sequence[InputFile],
    snapshots: Location,
    settings: Settings,
    progress: Progress,
) -> Ingested:
    with ExitStack() as kept:

        def keep(frame: DataFrame) -> DataFrame:
            frame.persist(StorageLevel.MEMORY_AND_DISK)
            kept.callback(frame.unpersist)
            return frame

        with progress.step("records") as step:
            rows, counts, damaged = _read(spark, files, snapshots / "_staging", keep)
            lost = sum(each.readable is None for each in damaged)
            step.rows = counts.lines + lost
        tables = snapshot_tables(rows, counts, settings, keep)
        for name in tables.names():
            with progress.step(name) as step:
                (snapshots / name).delete()
                step.rows = tables.write(name, snapshots / name)
        with progress.step(QUARANTINE.name) as step:
            step.rows = counts.quarantined + lost
            location = snapshots / QUARANTINE.name
            if step.rows:
                refused = _quarantine(spark, rows, damaged)
                refused.write.mode("overwrite").parquet(location.uri)
            else:
                location.delete()
                write_table(QUARANTINE.schema.empty_table(), location)
    size = sum(file.size for file in files)
    return Ingested(len(files), size, counts.lines + lost, counts.quarantined + lost)


def snapshot_tables(
    rows: DataFrame, counts: Counts, settings: Settings, keep: Callable[[DataFrame], DataFrame]
) -> PackedTables:
    """The snapshot tables of the rows of all lines, but for the quarantine."""
    terms = SnapshotTerms(
        settings.heartbeat_expiry_seconds, settings.client_log_time_zone, counts.log_offsets
    )
    return gathered([_grouped(rows, terms)], _TABLES, keep)


class Counts(NamedTuple):
    """What is counted of all lines; ``log_offsets``: how far each log's times are ahead."""

    lines: int
    quarantined: int
    log_offsets: dict[Log, Instant | None]


def _read(
    spark: SparkSession,
    files: Sequence[InputFile],
    staging: Location,
    keep: Callable[[DataFrame], DataFrame],
) -> tuple[DataFrame, Counts, list[DamagedFile]]:
    """The rows of all lines, what is counted of them, and the archives that are damaged."""
    paths = [file.path for file in files]
    try:
        rows = keep(read_statements(read_lines(spark, paths)))
        return rows, count_lines(rows), []
    except (PySparkException, Py4JJavaError):
        damaged = salvage_damaged(spark, files, staging)
        if not damaged:
            raise
    bad = {each.path for each in damaged}
    readable = [path for path in paths if path not in bad]
    readable += [each.readable for each in damaged if each.readable is not None]
    # With nothing readable at all the tables are empty, and the quarantine says why.
    rows = keep(read_statements(read_lines(spark, readable) if readable else no_lines(spark)))
    return rows, count_lines(rows), damaged


def count_lines(rows: DataFrame) -> Counts:
    """Reads all lines; a log's offset needs all of its lines, whichever groups they are about."""
    lines, quarantined, ahead = 0, 0, {}
    counted = rows.where("kind IS NULL OR log IS NOT NULL").groupBy("cluster", "log")
    for row in counted.agg(
        F.expr("sum(lines)"), F.expr("count(reason)"), F.expr("max(ahead)")
    ).collect():
        if row[1] is None:
            lines, quarantined = row[2] or 0, row[3]
        else:
            ahead[row[0], row[1]] = row[4]
    return Counts(lines, quarantined, {log: log_offset(by) for log, by in ahead.items()})


def _grouped(rows: DataFrame, terms: SnapshotTerms) -> DataFrame:
    """The snapshot tables, packed, of groups and topics that are each in one task, one by one."""

    def step(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return table_batches(batches, terms)

    subject = ["is_topic", "cluster", "subject"]
    statements = rows.where("kind IS NOT NULL").selectExpr(
        f"kind = '{TOPIC_ROUTE}' AS is_topic", *[f"`{name}`" for name in Statement._fields]
    )
    in_order = statements.repartition(*subject).sortWithinPartitions(
        *subject, "collected_at", "order"
    )
    return in_order.mapInArrow(step, PACKED_DDL)


def _quarantine(spark: SparkSession, rows: DataFrame, damaged: Sequence[DamagedFile]) -> DataFrame:
    """The table ``quarantine``: the lines, and the files of which nothing could be read."""
    names: dict[Any, Any] = {_as_uri(each.readable): each.path for each in damaged if each.readable}
    whole = [(each.path, each.problem) for each in damaged if each.readable is None]
    numbered = number_lines(rows.where("reason IS NOT NULL"), blocks_of(rows))
    lines = numbered.select(*QUARANTINE.schema.names)
    if names:
        lines = lines.replace(names, subset=["file"])
    whole_files = spark.createDataFrame(whole, "file string, reason string").selectExpr(
        "file", "0L AS line_number", "reason", "'' AS line", "CAST(NULL AS binary) AS line_bytes"
    )
    return lines.unionAll(whole_files)


def _as_uri(path: str) -> str:
    return path if "://" in path or path.startswith("file:") else f"file:{path}"
