"""Packed tables of a Spark job -> files: small ones by the driver, large ones by Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame

from jobs.packed import PACKED_DDL, pack, unpack
from jobs.publish.tables import TablesInMemory, gather
from jobs.schemas import Table
from jobs.storage import Location

#: The driver takes tables of so many bytes at the most, the smallest first; Spark writes the rest.
_MOST_BYTES = 64 << 20


def packed_as(name: str, rows: DataFrame) -> DataFrame:
    """The rows of one table, packed."""

    def step(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pack([(name, pa.Table.from_batches([batch]))])

    return rows.mapInArrow(step, PACKED_DDL)


def unpacked_table(packed: DataFrame, table: Table) -> DataFrame:
    """The rows of one of the packed tables."""
    schema = table.schema

    def step(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _, piece in unpack(batches):
            yield from piece.cast(schema).to_batches()

    return packed.where(f"table = '{table.name}'").mapInArrow(step, table.spark_schema)


@dataclass(frozen=True)
class PackedTables:
    """Tables that one job made: small ones in the driver's memory, large ones with Spark."""

    packed: DataFrame
    in_memory: TablesInMemory
    by_spark: Mapping[str, int]

    def names(self) -> tuple[str, ...]:
        """The names of the tables, those without any row among them."""
        return self.in_memory.names()

    def only(self, tables: tuple[Table, ...]) -> PackedTables:
        """Some of the tables."""
        return replace(self, in_memory=replace(self.in_memory, declared=tables))

    def write(self, name: str, location: Location) -> int:
        """Writes one table as Parquet; the number of its rows."""
        if name not in self.by_spark:
            return self.in_memory.write(name, location)
        (table,) = (table for table in self.in_memory.declared if table.name == name)
        rows = unpacked_table(self.packed, table)
        rows.write.mode("overwrite").parquet(location.uri)
        return self.by_spark[name]


def gathered(
    pieces: Iterable[DataFrame], declared: tuple[Table, ...], keep: Callable[[DataFrame], DataFrame]
) -> PackedTables:
    """Runs the job that makes the pieces, which ``keep`` persists; small tables come to the driver.

    Two Spark jobs, and one more for each large table when it is written.
    """
    packed = keep(reduce(DataFrame.unionAll, pieces))
    sizes = packed.selectExpr("table", "rows", "length(data) AS bytes").groupBy("table").sum()
    left, small, large = _MOST_BYTES, [], {}
    for name, rows, size in sorted(sizes.collect(), key=lambda row: row[2]):
        if size <= left:
            left -= size
            small.append(name)
        else:
            large[name] = rows
    return PackedTables(packed, TablesInMemory(declared, _collected(packed, small)), large)


def _collected(packed: DataFrame, names: list[str]) -> dict[str, list[pa.Table]]:
    if not names:
        return {}
    wanted = ", ".join(f"'{name}'" for name in names)
    return gather(unpack(packed.where(f"table IN ({wanted})").toArrow().to_batches()))
