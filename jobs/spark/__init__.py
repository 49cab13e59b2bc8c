"""The room of Spark: pyspark is imported nowhere else.

functions.py   the pandas UDFs around the core: the audit's, ``allocate``, ``queue_findings``
engine.py      the engine: slices, shards, and the UDF that every situation goes through
session.py     the session of a command, and what the jobs need of one
frames.py      DataFrames as snapshot tables, published reports as DataFrames
schemas.py     the snapshot tables as Spark's types
workers.py     what runs in a worker

In a shell::

    from rebalance_audit.spark import allocate, queue_findings, register, schemas

    groups.select("consumer_group", allocate("AVG", "queues", "client_ids"))
"""

from . import schemas
from .functions import allocate, queue_findings, register

__all__ = ["allocate", "queue_findings", "register", "schemas"]
