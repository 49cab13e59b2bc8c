"""The audit as a plain function over DataFrames: snapshots in, report tables out.

It starts and stops no session, reads and writes no storage, and does not know the time of day.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.utils import is_remote

from jobs.contract import check_contract
from jobs.dumps.lines import read_statements
from jobs.errors import QuarantineError, SparkError
from jobs.fold.spark import member_runs, route_runs, route_runs_by_id
from jobs.pipeline.audit_on_spark import Sources, find_situations, judgements, kept
from jobs.pipeline.ingest_on_spark import count_lines, snapshot_tables
from jobs.pipeline.terms import terms_of
from jobs.publish.packed import PackedTables, gathered, unpacked_table
from jobs.schemas import (
    BROKER_POLLS,
    CLIENT_STATES,
    HEARTBEATS,
    QUEUE_OFFSETS,
    ROUTE_CONTENTS,
    ROUTE_POLLS,
    TOPIC_ROUTES,
    Table,
)
from jobs.session import suited_to_audit, suited_to_ingest
from jobs.settings import Settings
from jobs.text import visible

#: What ``audit_frames`` takes, by the names of its parameters.
_SNAPSHOTS = (
    HEARTBEATS,
    TOPIC_ROUTES,
    BROKER_POLLS,
    QUEUE_OFFSETS,
    CLIENT_STATES,
    ROUTE_POLLS,
    ROUTE_CONTENTS,
)


def audit_frames(
    heartbeats: DataFrame,
    topic_routes: DataFrame,
    broker_polls: DataFrame | None = None,
    queue_offsets: DataFrame | None = None,
    client_states: DataFrame | None = None,
    settings: Settings | None = None,
    *,
    route_polls: DataFrame | None = None,
    route_contents: DataFrame | None = None,
) -> dict[str, DataFrame]:
    """The report tables by name, as DataFrames.

    ``route_polls`` and ``route_contents`` count in place of ``topic_routes`` where both are there:
    they say when each nameserver was asked. Without them it was asked when the round began.

    The audit runs here; what comes back is its result. Small tables are in the driver's memory,
    large ones in Spark's cache until ``spark.catalog.clearCache()``. Raises ContractError, before
    anything runs, where a snapshot table has not the columns that it must have, and SparkError in a
    session of Spark Connect.

    >>> reports = audit_frames(heartbeats, topic_routes)  # doctest: +SKIP
    >>> reports["orphaned_queues"].show()  # doctest: +SKIP
    """
    settings = settings or Settings()
    spark = heartbeats.sparkSession
    if is_remote():
        raise SparkError(
            "audit_frames does not run in a session of Spark Connect: start the session with "
            "SparkSession.builder.master(...), or audit with rebalance-audit or spark-submit and "
            "read the result here with read_reports"
        )

    def checked(table: Table, rows: DataFrame | None) -> DataFrame | None:
        return None if rows is None else check_contract(table, rows)

    listed = check_contract(HEARTBEATS, heartbeats)
    routes = check_contract(TOPIC_ROUTES, topic_routes)
    polls = checked(BROKER_POLLS, broker_polls)
    clients, offsets = checked(CLIENT_STATES, client_states), checked(QUEUE_OFFSETS, queue_offsets)
    asked, contents = checked(ROUTE_POLLS, route_polls), checked(ROUTE_CONTENTS, route_contents)
    with suited_to_audit(spark), kept() as keep:
        lists = member_runs(listed, polls, settings.heartbeat_expiry_seconds, keep)
        if asked is not None and contents is not None:
            of_routes = route_runs_by_id(asked, contents)
        else:
            of_routes = route_runs(routes, keep)
        sources = Sources(lists, of_routes, clients, offsets)
        found = find_situations(sources, settings, None, keep)
        packed = judgements(found, terms_of(settings), None)
        made = gathered([packed], found.tables, DataFrame.persist)
    return _frames(spark, made, found.tables)


def snapshot_frames(answers: DataFrame, settings: Settings | None = None) -> dict[str, DataFrame]:
    """The snapshot tables that ``audit_frames`` takes, of answers in the columns of a dump's lines.

    They come from the format ``rocketmq_admin``, which is asked once. Raises QuarantineError, with
    one of the reasons, where more lines are not understood than the settings allow.

    >>> tables = snapshot_frames(spark.read.format("rocketmq_admin").load())  # doctest: +SKIP
    >>> reports = audit_frames(**tables)  # doctest: +SKIP
    """
    settings = settings or Settings()
    spark = answers.sparkSession
    # A partition is a file's block: its lines are in order, and read by one task.
    lines = answers.select(
        F.lit("answers").alias("file"),
        F.spark_partition_id().cast("bigint").alias("block"),
        F.monotonically_increasing_id().alias("row"),
        F.to_json(F.struct("*")).alias("line"),
    )
    with suited_to_ingest(spark), kept() as keep:
        rows = keep(read_statements(lines))
        counts = count_lines(rows)
        if counts.quarantined > settings.allowed_quarantine_share * counts.lines:
            (refused,) = rows.where("reason IS NOT NULL").select("reason", "line").take(1)
            raise QuarantineError(
                f"{counts.quarantined:,} of {counts.lines:,} answers were not understood; "
                f"one of them: {visible(refused.reason)}: {visible(refused.line[:200])}"
            )
        made = snapshot_tables(rows, counts, settings, DataFrame.persist)
    return _frames(spark, made, _SNAPSHOTS)


def _frames(
    spark: SparkSession, made: PackedTables, tables: Sequence[Table]
) -> dict[str, DataFrame]:
    if not made.by_spark:
        made.packed.unpersist()
    return {
        table.name: unpacked_table(made.packed, table)
        if table.name in made.by_spark
        else spark.createDataFrame(made.in_memory.table(table.name), table.spark_schema)
        for table in tables
    }
