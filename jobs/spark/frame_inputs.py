"""DataFrames of snapshot tables as the inputs of an audit: their rows are folded where they lie."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ..config.window import Window
from ..fold.kernel import Cutting
from ..fold.slices import TableStep
from ..pipeline.inputs import Inputs
from ..schemas import Table
from ..storage import Snapshots
from .dataframe_rows import RowsStep
from .dump_lines import ReadLines
from .session import for_rows

#: The bytes that an input counts as of which Spark knows no size, and the most that one counts as.
_MOST_BYTES = 8 << 30


@dataclass(frozen=True)
class FrameTables(Snapshots):
    """Tables that are DataFrames, by their names, ``prepared``; the driver reads none.

    ``lines``: what they were made of; None: they came as tables.
    """

    rows: Mapping[str, DataFrame] = field(default_factory=dict)
    lines: ReadLines | None = None

    @property
    def ingested(self) -> dict[str, Any] | None:
        """The summary of the ingest of lines; None: they came as tables."""
        return None if self.lines is None else dict(self.lines.ingested)

    def files(self, *_: str) -> list[Any]:
        """None: the rows came by Arrow."""
        return []

    def has(self, name: str) -> bool:
        """True if the table is there."""
        return name in self.rows


@dataclass(frozen=True)
class FrameInputs(Inputs):
    """The same as the inputs of an audit: lists come by the rows of their members."""

    snapshots: FrameTables

    def cut(
        self, engine: Any, window: Window, group: str | None = None, **_: Any
    ) -> tuple[Any, Cutting]:
        """The pieces of the rows in a window, of one group if it is named; how they are cut."""
        rows = self.snapshots.rows
        cutting = self.cutting()
        wanted = {table.name: rows[table.name] for table in cutting.tables() if table.name in rows}
        if group is None:
            cutting = replace(cutting, shards=engine.shards(sum(map(size_of, rows.values()))))
        else:
            wanted = {name: of_group(data_frame, group) for name, data_frame in wanted.items()}
        step = TableStep(cutting, window, self.settings.route_max_age_seconds)
        with for_rows(engine.spark):
            return engine.map_rows(wanted, RowsStep(step)), cutting

    def quarantine(self) -> Iterator[pa.Table]:
        """The rows of the lines that were not understood."""
        lines = self.snapshots.lines
        return iter(() if lines is None else lines.refused)

    def has_list_ids(self) -> bool:
        """False: there are rows."""
        return False

    def _has_all(self, *tables: Table) -> bool:
        return all(self.snapshots.has(table.name) for table in tables)


def of_group(rows: DataFrame, group: str) -> DataFrame:
    """The rows of one group; all rows of a table that has none, as routes."""
    is_about = "consumer_group" in rows.columns
    return rows.where(F.col("consumer_group") == group) if is_about else rows


def size_of(rows: DataFrame) -> int:
    """The approximate number of bytes, by Spark's plan, which may know none."""
    plan: Any = rows
    try:
        statistics = plan._jdf.queryExecution().optimizedPlan().stats()
    except AttributeError:  # Spark Connect does not tell
        return _MOST_BYTES
    return min(int(str(statistics.sizeInBytes())), _MOST_BYTES)
