"""DataFrames of snapshot tables as the inputs of an audit: their rows are folded where they lie."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ..config.settings import Settings
from ..config.window import Window
from ..fold.kernel import Cutting
from ..fold.slices import TableStep
from ..pipeline.inputs import Inputs
from ..schemas import ROUTE_CONTENTS, ROUTE_POLLS
from ..storage import Location, Snapshots
from .dataframe_rows import RowsStep
from .dump_lines import ReadLines
from .session import for_rows
from .spark_engine import SparkEngine

#: The bytes that an input counts as of which Spark knows no size, and the most that one counts as.
_MOST_BYTES = 8 << 30


@dataclass(frozen=True)
class FrameTables(Snapshots):
    """The tables that the engine has, by their names; the driver reads none."""

    names: frozenset[str] = frozenset()
    #: The lines that they were made of; None: they came as tables.
    of_lines: ReadLines | None = None

    @property
    def ingested(self) -> dict[str, Any] | None:
        """The summary of the ingest of lines; None: they came as tables."""
        return None if self.of_lines is None else dict(self.of_lines.ingested)

    def files(self, *_: str) -> list[Any]:
        """None: the rows came by Arrow."""
        return []

    def has(self, name: str) -> bool:
        """True if the table is there."""
        return name in self.names


@dataclass(frozen=True, kw_only=True)
class FrameInputs(Inputs):
    """Snapshot tables that are DataFrames; they are read once."""

    made: tuple[Any, Cutting]
    #: The lines that were not understood.
    refused: Sequence[pa.Table] = ()

    @classmethod
    def read(
        cls,
        engine: SparkEngine,
        rows: Mapping[str, DataFrame],
        settings: Settings,
        window: Window,
        folder: Location,
        group: str | None = None,
        of_lines: ReadLines | None = None,
    ) -> "FrameInputs":
        """Reads rows that are ``prepared``, of one group where it is named; ``of_lines``: the lines
        that they were made of.
        """
        has_route_ids = {ROUTE_POLLS.name, ROUTE_CONTENTS.name} <= rows.keys()
        most = settings.bounds.quarantined_lines
        shards = 1 if group is not None else engine.shards(sum(map(size_of, rows.values())))
        expiry = settings.heartbeat_expiry_seconds
        cutting = Cutting(shards, expiry, False, has_route_ids, most)
        step = TableStep(cutting, window, settings.route_max_age_seconds)
        wanted = {table.name: rows[table.name] for table in cutting.tables() if table.name in rows}
        if group is not None:
            wanted = {name: of_group(each, group) for name, each in wanted.items()}
        with for_rows(engine.spark):
            pieces = engine.map_rows(wanted, RowsStep(step))
        tables = FrameTables(folder, names=frozenset(rows), of_lines=of_lines)
        refused = () if of_lines is None else of_lines.refused
        return cls(tables, settings, made=(pieces, cutting), refused=refused)

    def quarantine(self) -> Iterator[pa.Table]:
        """The rows of the lines that were not understood."""
        return iter(self.refused)

    def cut(self, *_: Any, **__: Any) -> tuple[Any, Cutting]:
        """The pieces that were made as the rows were read."""
        return self.made


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
