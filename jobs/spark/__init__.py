"""The room of Spark: pyspark is imported nowhere else.

functions.py   the pandas UDFs around the core: the audit's, ``allocate``, ``queue_findings``
spark_engine.py   the engine: slices, shards, and the UDF that every situation goes through
session.py     the session of a command, and what the jobs need of one
auditing.py    ``audit``: DataFrames in, DataFrames out
dataframe_rows.py   what a snapshot table must have, and how its rows travel to the fold
what_to_type.py   what to type where it has not that, tried by Spark before it is shown
days.py        of tables by days those of the window
dump_lines.py   lines of dumps that are rows, as snapshot tables
dataframes.py   tables of Arrow and published reports as DataFrames, and as tables of a catalogue
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
    from .auditing import audit
    from .functions import allocate, queue_findings, register

__all__ = ["allocate", "audit", "queue_findings", "register", "schemas"]
_MODULES = {"audit": "auditing", "schemas": "schemas"}


def __getattr__(name: str) -> Any:
    # The daemon of the workers imports this package, and needs nothing of Spark's columns.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(f".{_MODULES.get(name, 'functions')}", __name__)
    return module if name == "schemas" else getattr(module, name)
