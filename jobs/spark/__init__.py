"""The room of Spark: pyspark is imported nowhere else.

functions.py   the pandas UDFs around the core: the audit's, ``allocate``, ``queue_findings``
engine.py      the engine: slices, shards, and the UDF that every situation goes through
session.py     the session of a command, and what the jobs need of one
auditing.py    ``audit``: DataFrames in, DataFrames out
rows.py        what a snapshot table must have, and how its rows travel to the fold
frames.py      tables of Arrow and published reports as DataFrames, and as tables of a catalogue
schemas.py     the snapshot tables as Spark's types
workers.py     what runs in a worker

In a shell::

    from rebalance_audit.spark import allocate, audit, queue_findings, register, schemas

    audit(heartbeats, topic_routes).orphaned_queues.show()
    groups.select("consumer_group", allocate("AVG", "queues", "client_ids"))
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import schemas
from .functions import allocate, queue_findings, register

if TYPE_CHECKING:
    from .auditing import audit

__all__ = ["allocate", "audit", "queue_findings", "register", "schemas"]


def __getattr__(name: str) -> Any:
    # A worker imports this package for the UDF alone, and has not all that the driver needs.
    if name == "audit":
        from .auditing import audit  # noqa: PLC0415

        return audit
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
