"""The tables of ``rebalance_audit.schemas`` as Spark's types, with their comments.

By the name of the table in capitals, as ``HEARTBEATS``: for tables of one's own, and for tests.
"""

from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from ..schemas import REPORT_TABLES, RUNS, SNAPSHOT_TABLES, Table, comment_of


def spark_schema(table: Table) -> StructType:
    """The schema of a table as Spark has it, comments included."""
    struct = from_arrow_schema(table.schema)
    for field, declared in zip(struct, table.schema, strict=True):
        field.metadata = {"comment": comment_of(declared)}
    return struct


_TABLES = {table.name.upper(): table for table in (*SNAPSHOT_TABLES, *REPORT_TABLES, RUNS)}


def __dir__() -> list[str]:
    return sorted({*globals(), *_TABLES})


def __getattr__(name: str) -> StructType:
    if name in _TABLES:
        return spark_schema(_TABLES[name])
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
