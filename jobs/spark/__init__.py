"""The room of Spark: pyspark is imported nowhere else.

functions.py   the pandas UDFs around the core: the audit's, ``allocate``, ``queue_findings``
spark_engine.py   the engine: slices, shards, and the UDF that every situation goes through
session.py     the session of a command, and what the jobs need of one
auditing.py    ``audit``: DataFrames in, DataFrames out; ``backfill``: of several dates
dataframe_rows.py   what a snapshot table must have, and how its rows travel to the fold
what_to_type.py   what to type where it has not that, tried by Spark before it is shown
frame_inputs.py   tables, lines and events that are DataFrames, as the inputs of an audit
dataframes.py  report tables as DataFrames: of pieces, of a folder, and of a schema, where they are
               saved, read, and compared with
schemas.py     the snapshot tables as Spark's types
daemon.py      what all workers have imported, of a session that is started here

In a shell::

    from rebalance_audit.spark import allocate, audit, queue_findings, register, schemas

    audit(heartbeats, topic_routes).orphaned_queues.show()
    groups.select("consumer_group", allocate("AVG", "queues", "client_ids"))
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import schemas
    from .auditing import audit, backfill
    from .functions import allocate, queue_findings, register

__all__ = ["allocate", "audit", "backfill", "queue_findings", "register", "schemas"]
_MODULES = {"audit": "auditing", "backfill": "auditing", "schemas": "schemas"}


def __getattr__(name: str) -> Any:
    # The daemon of the workers imports this package, and needs nothing of Spark's columns.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(f".{_MODULES.get(name, 'functions')}", __name__)
    return module if name == "schemas" else getattr(module, name)
