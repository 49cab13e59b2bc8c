"""The audit as a plain function over DataFrames: snapshots in, report tables out.

It starts and stops no session, reads and writes no storage, and does not know the time of day.
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from jobs.contract import check_contract
from jobs.fold.spark import member_runs, route_runs
from jobs.pipeline.audit_on_spark import Sources, find_situations, judgements, kept
from jobs.pipeline.terms import terms_of
from jobs.publish.packed import gathered, unpacked_table
from jobs.schemas import (
    BROKER_POLLS,
    CLIENT_STATES,
    HEARTBEATS,
    QUEUE_OFFSETS,
    TOPIC_ROUTES,
    Table,
)
from jobs.session import suited_to_audit
from jobs.settings import Settings


def audit_frames(
    heartbeats: DataFrame,
    topic_routes: DataFrame,
    broker_polls: DataFrame | None = None,
    queue_offsets: DataFrame | None = None,
    client_states: DataFrame | None = None,
    settings: Settings | None = None,
) -> dict[str, DataFrame]:
    """The report tables by name, as DataFrames.

    The audit runs here; what comes back is its result. Small tables are in the driver's memory,
    large ones in Spark's cache until ``spark.catalog.clearCache()``. Raises ContractError, before
    anything runs, where a snapshot table has not the columns that it must have.

    >>> reports = audit_frames(heartbeats, topic_routes)  # doctest: +SKIP
    >>> reports["orphaned_queues"].show()  # doctest: +SKIP
    """
    settings = settings or Settings()
    spark = heartbeats.sparkSession

    def checked(table: Table, rows: DataFrame | None) -> DataFrame | None:
        return None if rows is None else check_contract(table, rows)

    listed = check_contract(HEARTBEATS, heartbeats)
    routes = check_contract(TOPIC_ROUTES, topic_routes)
    polls = checked(BROKER_POLLS, broker_polls)
    clients, offsets = checked(CLIENT_STATES, client_states), checked(QUEUE_OFFSETS, queue_offsets)
    with suited_to_audit(spark), kept() as keep:
        lists = member_runs(listed, polls, settings.heartbeat_expiry_seconds, keep)
        sources = Sources(lists, route_runs(routes, keep), clients, offsets)
        found = find_situations(sources, settings, None, keep)
        packed = judgements(found, terms_of(settings), None)
        made = gathered([packed], found.tables, DataFrame.persist)
    if not made.by_spark:
        made.packed.unpersist()
    return {
        table.name: unpacked_table(made.packed, table)
        if table.name in made.by_spark
        else spark.createDataFrame(made.in_memory.table(table.name))
        for table in found.tables
    }
