"""The ways to find the faulty queues, all with the same function, in one module each:

    run(spark, snapshots, output)

``snapshots`` has the snapshot tables, ``output`` gets ``findings`` as Parquet: consumer_group,
topic, broker_name, queue_id, kind, first_seen, last_seen. ``spark`` is None for those that do
without. The floors write no findings: they read and write what the audit does, and find nothing.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Contender:
    """One way: its name, what it is called in the table, and what it needs."""

    name: str
    title: str
    #: Where its function is; as the name where empty.
    of_module: str = ""
    uses_spark: bool = True
    finds: bool = True
    #: Reads the tables with content ids, as ``ingest`` writes them, and not the rows alone.
    has_ids: bool = False
    #: Takes minutes on M, so it runs there less often.
    is_slow: bool = False

    @property
    def module(self) -> str:
        """The module's name, without the package."""
        return self.of_module or self.name


CONTENDERS = (
    Contender("audit", "the audit, all its tables, from rows"),
    Contender("audit_ids", "the audit, all its tables, with ids", "audit", has_ids=True),
    Contender("driver", "the audit without Spark, from rows", uses_spark=False),
    Contender(
        "driver_ids", "the audit without Spark, with ids", "driver", uses_spark=False, has_ids=True
    ),
    Contender("driver_fold", "its fold alone, from rows", uses_spark=False, finds=False),
    Contender("floor_read", "floor: read the same columns, do nothing", finds=False),
    Contender("floor_write", "floor: write the same output again", finds=False),
    Contender("row_udf", "Python UDF per client row", is_slow=True),
    Contender("grouped_map", "applyInPandas per snapshot, group, topic", is_slow=True),
    Contender("spark_sql", "native Spark SQL, no deduplication"),
    Contender("vectorised", "NumPy UDF, no deduplication"),
    Contender("on_polars", "Polars, one node", uses_spark=False),
    Contender("on_duckdb", "DuckDB, one node", uses_spark=False),
)
BY_NAME = {contender.name: contender for contender in CONTENDERS}
