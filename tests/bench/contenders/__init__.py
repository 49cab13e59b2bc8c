"""The ways to find the faulty queues, one module each, all with the same function:

    run(spark, snapshots, output)

``snapshots`` has the snapshot tables, ``output`` gets ``findings`` as Parquet: consumer_group,
topic, broker_name, queue_id, kind, first_seen, last_seen. ``spark`` is None for those that do
without. The floors write no findings: they read and write what the audit does, and find nothing.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Contender:
    """One way: its module's name, what it is called in the table, and what it needs."""

    module: str
    title: str
    uses_spark: bool = True
    finds: bool = True
    #: Takes minutes on M, so it runs there less often.
    is_slow: bool = False


CONTENDERS = (
    Contender("audit", "the audit, all its tables"),
    Contender("floor_read", "floor: read the same columns, do nothing", finds=False),
    Contender("floor_write", "floor: write the same output again", finds=False),
    Contender("row_udf", "Python UDF per client row", is_slow=True),
    Contender("grouped_map", "applyInPandas per snapshot, group, topic", is_slow=True),
    Contender("spark_sql", "native Spark SQL, no deduplication"),
    Contender("vectorised", "NumPy UDF, no deduplication"),
    Contender("on_polars", "Polars, one node", uses_spark=False),
    Contender("on_duckdb", "DuckDB, one node", uses_spark=False),
)
BY_MODULE = {contender.module: contender for contender in CONTENDERS}
