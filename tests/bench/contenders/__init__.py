"""What the audit is compared with, all with the same function, in one module each:

    run(spark, snapshots, output)

``snapshots`` has the snapshot tables, ``output`` gets ``findings`` as Parquet: consumer_group,
topic, broker_name, queue_id, kind, first_seen, last_seen. ``spark`` is None for those that do
without. The floors write no findings: they read and write what the audit does, and find nothing.
Polars and DuckDB are what one would write instead: they find the queues, and nothing else.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any


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
    #: In a session with Java's usual options, as a notebook has, and not with those of the command.
    is_usual: bool = False

    @property
    def on_xl(self) -> bool:
        """Whether it runs on XL too, which asks for the memory of the audit in one process."""
        return self.of_module == "audit" and not self.uses_spark

    def module(self) -> Any:
        """The module with its function."""
        return importlib.import_module(f"{__name__}.{self.of_module or self.name}")


CONTENDERS = (
    Contender("frames", "the audit of DataFrames, Java as it comes", is_usual=True),
    Contender("files", "the audit of their files, Java as it comes", "audit", is_usual=True),
    Contender("audit", "the audit on Spark, from rows"),
    Contender("audit_ids", "the audit on Spark, with ids", "audit", has_ids=True),
    Contender("driver", "the audit in one process, from rows", "audit", uses_spark=False),
    Contender(
        "driver_ids", "the audit in one process, with ids", "audit", uses_spark=False, has_ids=True
    ),
    Contender("floor_read", "floor: read the same columns, do nothing", finds=False),
    Contender("floor_write", "floor: write the same output again", finds=False),
    Contender("on_polars", "Polars, one node", uses_spark=False),
    Contender("on_duckdb", "DuckDB, one node", uses_spark=False),
)
BY_NAME = {contender.name: contender for contender in CONTENDERS}
