"""DataFrames as the inputs of an audit: of tables, of lines of dumps, of events.

    lines -> statements, by group and topic -> rows of the snapshot tables
    when heartbeats of each broker came, to the driver -> rounds -> lists, a group in a task

Rows of snapshot tables are folded where they lie. Of lines the steps are those of ``ingest`` over
files, and the tables stay where they are made; how the rows lie decides nothing
(``dumps.unpacking.RowLines``). Heartbeats with times of their own are put into rounds, as
``fold.heartbeat_rounds`` decides: what the driver asks for is distinct, a row for each broker and
round, and the rows of a group come together, by brokers and times, some at a time.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import accumulate
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as RowsBefore
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import from_arrow_schema

from ..config.settings import Settings
from ..config.window import Window
from ..declared.instants import SECOND, Instant
from ..dumps.counts import Counts
from ..dumps.reading import DumpStep, slice_of_rows
from ..engines.pieces import unpack_rows
from ..errors import InputError
from ..fold import heartbeat_rounds as heard
from ..fold.kernel import Cutting
from ..fold.slice_facts import BROKER
from ..fold.slices import TableStep
from ..pipeline.ingest import IngestCounts, read_all
from ..pipeline.inputs import Inputs
from ..schemas import (
    BROKER_POLLS,
    HEARTBEATS,
    MEMBER_LISTS,
    QUARANTINE,
    QUEUE_OFFSETS,
    SNAPSHOT_TABLES,
    Table,
)
from ..storage import Snapshots
from ..texts.shown import visible
from .dataframe_rows import fold_rows, prepared
from .dataframes import rows_of_pieces
from .session import for_rows
from .spark_engine import TASKS_OF_A_CORE, PieceFrame, SparkEngine, cores_of
from .what_to_type import quoted, type_of

#: The bytes that an input counts as of which Spark knows no size, and the most that one counts as.
_MOST_BYTES = 8 << 30


class ReadLines(NamedTuple):
    """Lines that were read. ``ingested``: what an ingest of them would say of itself."""

    tables: Mapping[str, DataFrame]
    refused: Sequence[pa.Table]
    counts: Counts
    ingested: Mapping[str, Any]


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
            wanted = {name: rows_of_group(data_frame, group) for name, data_frame in wanted.items()}
        step = TableStep(cutting, window, self.settings.route_max_age_seconds)
        with for_rows(engine.spark):
            return engine.map_rows(wanted, partial(fold_rows, step)), cutting

    def quarantine(self) -> Iterator[pa.Table]:
        """The rows of the lines that were not understood."""
        return iter(self.snapshots.lines.refused if self.snapshots.lines else ())

    def has_list_ids(self) -> bool:
        """False: there are rows."""
        return False

    def _has_all(self, *tables: Table) -> bool:
        return all(self.snapshots.has(table.name) for table in tables)


def rows_of_group(rows: DataFrame, group: str) -> DataFrame:
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


# ---------------------------------------------------------------- lines of dumps

#: The name of the argument.
LINES = "lines"
#: The names by which a column is taken for the lines: ours, and that of ``spark.read.text``.
_LINE = ("line", "value")
_OF_TEXT = (T.StringType, T.BinaryType)
#: An audit reads lists by the rows of their members.
_MADE = [table for table in SNAPSHOT_TABLES if table not in (MEMBER_LISTS, QUARANTINE)]


def read_lines(engine: SparkEngine, rows: DataFrame, size: int, settings: Settings) -> ReadLines:
    """Reads rows that are ``as_lines``, of about so many bytes; InputError where there is none."""

    def map_lines(step: DumpStep) -> PieceFrame:
        with for_rows(engine.spark):
            return engine.map_rows({LINES: rows}, step.of_rows)

    read = read_all(engine, [slice_of_rows(LINES)], size, settings, map_lines)
    if not read.lines:
        raise InputError(f"{LINES}: expected lines of dumps, came no row")
    pieces, counts = read.snapshot_pieces(settings).rows, read.counts
    ingested = IngestCounts(
        0,
        counts.bytes.total(),
        read.lines,
        counts.refused,
        read.incomplete(settings),
        counts.left_out,
        counts.clusters,
    )
    return ReadLines(
        {table.name: rows_of_pieces(pieces, table) for table in _MADE},
        [unpack_rows(piece.data) for piece in read.quarantine()],
        counts,
        ingested.summary(),
    )


def as_lines(rows: DataFrame, columns: Mapping[str, Any]) -> DataFrame:
    """The rows with the columns ``line``, of bytes, and ``file``, that each came from.

    ``columns`` may have either, by name or made; else ``line`` is the column of that name, or
    ``value``, or the only one of text, and ``file`` the file that Spark reads it from, where it is
    one. InputError where no column of text or bytes is the one.
    """
    if wrong := columns.keys() - {"line", "file"}:
        raise InputError(
            f"columns: lines have the columns line and file, came {visible(', '.join(wrong))}"
        )
    given = {
        "line": columns["line"] if "line" in columns else _line_of(rows),
        "file": columns["file"] if "file" in columns else _file_of(rows),
    }
    made = {
        name: F.col(quoted(column)) if isinstance(column, str) else column
        for name, column in given.items()
    }
    for name, what in (
        ("line", "an object of a dump in each row, as docs/dumps.md has them"),
        ("file", "the name of the file of each line"),
    ):
        type_ = type_of(rows, made[name])
        if not isinstance(type_, _OF_TEXT):
            came = "nothing that Spark can make" if type_ is None else visible(type_.simpleString())
            raise InputError(f"{LINES}: expected in {name} {what}, came {came}; {_advice(rows)}")
    return rows.select(
        made["line"].cast("binary").alias("line"), made["file"].cast("string").alias("file")
    )


def check_no_lines(rows: DataFrame) -> None:
    """InputError, with the call that takes them, for lines of dumps in place of ``heartbeats``.

    They have a column of lines, and none of those that it must have.
    """
    needed = {field.name for field in HEARTBEATS.schema if not field.nullable}
    names = {name.lower() for name in rows.columns}
    if not names & needed and (names & {*_LINE} or len(_texts(rows)) == 1):
        raise InputError(
            f"{HEARTBEATS.name}: expected a row for each connection in a broker's list, came the "
            f"columns {_columns_of(rows)}; lines of dumps go in as audit(lines=...), as "
            'audit(lines=spark.read.text("dumps/"))'
        )


def _texts(rows: DataFrame) -> list[str]:
    return [field.name for field in rows.schema if isinstance(field.dataType, _OF_TEXT)]


def _line_of(rows: DataFrame) -> str:
    texts = _texts(rows)
    named = [name for wanted in _LINE for name in texts if name.lower() == wanted]
    if not named and len(texts) != 1:
        raise InputError(f"{LINES}: no column is known to have the lines; {_advice(rows)}")
    return next(iter(named), texts[0])


def _file_of(rows: DataFrame) -> str | Column:
    if "file" in rows.columns:
        return "file"
    spark_path = F.col("_metadata.file_path")
    return F.lit(LINES) if type_of(rows, spark_path) is None else spark_path


def _advice(rows: DataFrame) -> str:
    call = 'audit(lines=..., columns={"line": "..."})'
    return f"{call} names one of the columns {_columns_of(rows)}"


def _columns_of(rows: DataFrame) -> str:
    return visible(", ".join(f"{name} {type_}" for name, type_ in rows.dtypes))


# ---------------------------------------------------------------- heartbeats as events

_TIME = "snapshot_time"


@dataclass(frozen=True)
class FramesInRounds:
    """Prepared tables whose times are those of events, and the rounds that they allow."""

    rounds: heard.HeartbeatRounds

    @classmethod
    def of(cls, heartbeats: DataFrame, round_seconds: int, expiry_seconds: int) -> "FramesInRounds":
        """Looks when heartbeats came. InputError: see ``HeartbeatRounds.of``."""
        expiry = expiry_seconds * SECOND
        timed = heartbeats.where(F.col(_TIME).isNotNull())
        streams, middle = _streams(timed, min(round_seconds * SECOND, max(expiry, SECOND)), expiry)
        recurrence = _recurrence(timed, heard.measured_around(middle), expiry)
        return cls(heard.HeartbeatRounds.of(round_seconds, expiry_seconds, streams, recurrence))

    def __call__(self, rows: Mapping[str, DataFrame]) -> dict[str, DataFrame]:
        """The tables by rounds, with ``broker_polls``; as they travel, as they came."""
        found = dict(rows)
        for table in heard.IN_ROUNDS:
            if table.name in rows:
                found[table.name] = self._in_rounds(table.name, rows[table.name])
        if BROKER_POLLS.name not in rows:
            # Read once more, of few columns: those that say who is listed in which round.
            few = rows[HEARTBEATS.name].select(*heard.CONNECTION, _TIME, "last_heartbeat_at")
            polls = _made_of(_by_broker(few), self._polled, from_arrow_schema(heard.POLLS))
            found |= prepared({BROKER_POLLS.name: polls})
        return found

    def _in_rounds(self, name: str, rows: DataFrame) -> DataFrame:
        if name == HEARTBEATS.name:
            return _made_of(_by_broker(rows), self._lists_of_rounds, rows.schema)
        if name == QUEUE_OFFSETS.name:
            rows = _with_groups_together(rows).sortWithinPartitions(*heard.A_QUEUE)
        return _made_of(rows, partial(self._moved, name), rows.schema)

    # In a worker

    def _lists_of_rounds(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
        return heard.listed_in_parts(batches, self.rounds)

    def _polled(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
        lists = list(map(heard.connections, self._lists_of_rounds(batches)))
        if lists:
            yield heard.polls_of(pa.concat_tables(lists), self.rounds)

    def _moved(self, name: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
        """The rows at the times of rounds: of a queue the last of each."""
        is_of_queues = name == QUEUE_OFFSETS.name
        parts = (
            heard.whole_parts(batches, heard.A_QUEUE) if is_of_queues else map(_as_table, batches)
        )
        return (heard.in_rounds(name, rows, self.rounds) for rows in parts)


def _as_table(batch: pa.RecordBatch) -> pa.Table:
    return pa.Table.from_batches([batch])


def _made_of(
    rows: DataFrame,
    made: Callable[[Iterator[pa.RecordBatch]], Iterable[pa.Table]],
    schema: T.StructType,
) -> DataFrame:
    """The rows that are made of the batches of each task."""

    def rows_of_rounds(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for table in made(batches):
            yield from table.to_batches()

    return rows.mapInArrow(rows_of_rounds, schema)


def _with_groups_together(rows: DataFrame) -> DataFrame:
    tasks = TASKS_OF_A_CORE * cores_of(rows.sparkSession)
    return rows.repartition(tasks, "cluster", "consumer_group")


def _by_broker(rows: DataFrame) -> DataFrame:
    return _with_groups_together(rows).sortWithinPartitions(*heard.OF_A_BROKER, _TIME)


# ---------------------------------------------------------------- to the driver


def _streams(
    timed: DataFrame, bucket: Instant, expiry: Instant
) -> tuple[dict[heard.ClusterBroker, list[heard.TimeSpan]], Instant]:
    """The spans in which heartbeats of each broker came, and the time in the middle of all.

    Within a ``bucket``, which is no longer than the expiry, no span ends.
    """
    few = timed.groupBy(*BROKER, F.floor(F.col(_TIME) / bucket)).agg(
        F.min(_TIME), F.max(_TIME), F.count(F.lit(1))
    )
    every: dict[heard.ClusterBroker, list[heard.TimeSpan]] = defaultdict(list)
    rows_at = []
    for cluster, name, broker_id, _, first_seen, last_seen, number in few.collect():
        every[cluster, name, broker_id].append(heard.TimeSpan(first_seen, last_seen))
        rows_at.append((first_seen, number))
    times, numbers = zip(*sorted(rows_at), strict=True) if rows_at else ([0], [0])
    half = bisect_left([*accumulate(numbers)], sum(numbers) / 2)
    return {broker: heard.merged(spans, expiry) for broker, spans in every.items()}, times[half]


def _recurrence(timed: DataFrame, within: heard.TimeSpan, expiry: Instant) -> heard.Recurrence:
    time = F.col(_TIME)
    before = F.lag(time).over(RowsBefore.partitionBy(*heard.CONNECTION).orderBy(time))
    gaps = timed.where(time.between(*within)).select(time, (time - before).alias("gap"))
    is_short = F.col("gap") <= expiry
    row = gaps.agg(
        F.max(F.when(is_short, F.col("gap"))),
        F.count_if(is_short),
        F.count_if(~is_short),
        F.max(time) - F.min(time),
    ).first()
    return heard.Recurrence(*(value or 0 for value in row or (0, 0, 0, 0)))
