"""The ingest job: dumps in, snapshot tables and quarantine out, nothing lost between them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.bounds import Bounds
from jobs.dumps.files import InputFile, file_uri, list_files
from jobs.dumps.lines import (
    blocks_of,
    bytes_of_files,
    count_days,
    no_lines,
    number_lines,
    read_lines,
    read_statements,
)
from jobs.dumps.salvage import Salvaged, may_be_unreadable, salvage, with_skipped_lines
from jobs.dumps.statement import TOPIC_ROUTE, Statement
from jobs.dumps.statements import as_quarantined
from jobs.dumps.times import PlausibleTimes
from jobs.errors import InputError
from jobs.instants import Instant
from jobs.packed import PACKED_DDL
from jobs.pipeline.ingested import Ingested, check_quarantine, publish_ingest
from jobs.progress import Progress
from jobs.publish.packed import PackedTables, gathered
from jobs.publish.tables import write_table
from jobs.schemas import QUARANTINE, SNAPSHOT_TABLES
from jobs.session import suited_to_ingest
from jobs.settings import Settings
from jobs.snapshots.clients import Log, log_offset
from jobs.snapshots.groups import SnapshotTerms
from jobs.snapshots.steps import table_batches
from jobs.storage import Location, SnapshotWriter

_LOGGER = logging.getLogger(__name__)
_TABLES = tuple(table for table in SNAPSHOT_TABLES if table is not QUARANTINE)


def ingest(
    spark: SparkSession,
    dumps: Sequence[str],
    writer: SnapshotWriter,
    settings: Settings,
    progress: Progress,
) -> Ingested:
    """Reads dumps and writes the snapshot tables, which then count instead of what was there.

    Raises InputError where the dumps are missing, and QuarantineError, after everything was
    written, where more lines were not understood than the settings allow.
    """
    files = list_files(spark, dumps)
    if not files:
        raise InputError(f"no dump file below {', '.join(dumps)}")
    with suited_to_ingest(spark):
        result, rows = _ingest(spark, files, writer, settings, progress)
    snapshots = publish_ingest(result, rows, writer, settings, progress)
    check_quarantine(result, snapshots, settings)
    return result


def _ingest(
    spark: SparkSession,
    files: Sequence[InputFile],
    writer: SnapshotWriter,
    settings: Settings,
    progress: Progress,
) -> tuple[Ingested, dict[str, int]]:
    """What came in, and the rows that were written of each table."""
    written: dict[str, int] = {}
    with ExitStack() as kept:

        def keep(frame: DataFrame) -> DataFrame:
            frame.persist(StorageLevel.MEMORY_AND_DISK)
            kept.callback(frame.unpersist)
            return frame

        with progress.step("records") as step:
            rows, counts, damaged = _read(
                spark, files, writer.staging, settings.bounds.to_bounds(), keep
            )
            lost = sum(each.readable is None for each in damaged)
            step.rows = counts.lines + lost
        tables = snapshot_tables(rows, counts, settings, keep)
        with progress.step("snapshot tables") as step:
            for name in tables.names():
                step.part = name
                written[name] = tables.write(name, writer.table(name))
            step.part = QUARANTINE.name
            written[QUARANTINE.name] = counts.quarantined + lost
            step.rows = sum(written.values())
            location = writer.table(QUARANTINE.name)
            if written[QUARANTINE.name]:
                refused = _quarantine(spark, rows, damaged)
                refused.write.mode("overwrite").parquet(location.uri)
            else:
                write_table(QUARANTINE.schema.empty_table(), location)
    size = sum(file.size for file in files)
    result = Ingested(len(files), size, counts.lines + lost, counts.quarantined + lost)
    return result, written


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
    bounds: Bounds,
    keep: Callable[[DataFrame], DataFrame],
) -> tuple[DataFrame, Counts, list[Salvaged]]:
    """The rows of all lines, what is counted of them, and the files that Spark could not read."""
    archives = {file_uri(file.path): file.size for file in files if file.is_archive}

    def read(paths: Sequence[str], plausible: PlausibleTimes | None) -> DataFrame:
        lines = read_lines(spark, paths, bounds) if paths else no_lines(spark)
        return keep(read_statements(lines, bounds, plausible, archives))

    paths = [file.path for file in files]
    salvaged: list[Salvaged] = []
    try:
        rows = read(paths, None)
        counts = count_lines(rows)
    except (PySparkException, Py4JJavaError):
        salvaged = salvage(spark, may_be_unreadable(files, bounds), staging, bounds)
        if not salvaged:
            raise
    else:
        skipped = with_skipped_lines(spark, files, bounds, lambda: bytes_of_files(rows))
        salvaged = salvage(spark, skipped, staging, bounds)
    if salvaged:
        bad = {each.path for each in salvaged}
        paths = [path for path in paths if path not in bad]
        paths += [each.readable for each in salvaged if each.readable is not None]
        # With nothing readable at all the tables are empty, and the quarantine has the reason.
        rows = read(paths, None)
        counts = count_lines(rows)
    days = count_days(rows)
    plausible = PlausibleTimes.of(days, bounds)
    if left_out := plausible.left_out(days):
        _LOGGER.warning(left_out)
        rows = read(paths, plausible)
        counts = count_lines(rows)
    return rows, counts, salvaged


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


def _quarantine(spark: SparkSession, rows: DataFrame, damaged: Sequence[Salvaged]) -> DataFrame:
    """The table ``quarantine``: the lines, and the files of which nothing could be read.

    The copy of a salvaged file has an empty line in place of each that was left out.
    """
    names: dict[Any, Any] = {
        file_uri(_as_uri(each.readable)): file_uri(each.path) for each in damaged if each.readable
    }
    whole = [(file_uri(each.path), each.problem) for each in damaged if each.readable is None]
    numbered = number_lines(rows.where("reason IS NOT NULL"), blocks_of(rows))
    lines = numbered.select(*QUARANTINE.schema.names)
    if names:
        lines = lines.replace(names, subset=["file"])
    left_out = [
        (file_uri(each.path), line.number, line.reason, *as_quarantined(line.beginning))
        for each in damaged
        for line in each.left_out
    ]
    if left_out:
        named = spark.createDataFrame(
            left_out,
            "file string, line_number bigint, reason string, line string, line_bytes binary",
        )
        place = ["file", "line_number"]
        others = lines.join(named.select(*place), place, "left_anti")
        lines = others.select(*QUARANTINE.schema.names).unionAll(named)
    whole_files = spark.createDataFrame(whole, "file string, reason string").selectExpr(
        "file", "0L AS line_number", "reason", "'' AS line", "CAST(NULL AS binary) AS line_bytes"
    )
    return lines.unionAll(whole_files)


def _as_uri(path: str) -> str:
    return path if "://" in path or path.startswith("file:") else f"file:{path}"
