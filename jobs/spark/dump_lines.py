"""Lines of dumps that are rows of a DataFrame -> snapshot tables as DataFrames.

    lines -> statements, by group and topic -> rows of the snapshot tables

The steps are those of ``ingest`` over files, and the tables stay where they are made. How the rows
lie decides nothing (``dumps.unpacking.RowLines``).
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from ..config.settings import Settings
from ..dumps.counts import Counts
from ..dumps.reading import DumpStep, slice_of_rows
from ..engines.pieces import unpack_rows
from ..errors import InputError
from ..pipeline.ingest import IngestCounts, read_all
from ..schemas import HEARTBEATS, MEMBER_LISTS, QUARANTINE, SNAPSHOT_TABLES
from ..texts.shown import visible
from .dataframes import rows_of_pieces
from .session import for_rows
from .spark_engine import PieceFrame, SparkEngine
from .what_to_type import quoted, type_of

#: The name of the argument.
LINES = "lines"
#: The names by which a column is taken for the lines: ours, and that of ``spark.read.text``.
_LINE = ("line", "value")
#: An audit reads lists by the rows of their members.
_MADE = [table for table in SNAPSHOT_TABLES if table not in (MEMBER_LISTS, QUARANTINE)]


class ReadLines(NamedTuple):
    """Lines that were read. ``ingested``: what an ingest of them would say of itself."""

    tables: Mapping[str, DataFrame]
    refused: Sequence[pa.Table]
    counts: Counts
    ingested: Mapping[str, Any]


def read_lines(engine: SparkEngine, rows: DataFrame, size: int, settings: Settings) -> ReadLines:
    """Reads rows that are ``as_lines``, of about so many bytes; InputError where there is none."""

    def map_lines(step: DumpStep) -> PieceFrame:
        with for_rows(engine.spark):
            return engine.map_rows({LINES: rows}, step.of_rows)

    read = read_all(engine, [slice_of_rows(LINES)], size, settings, map_lines)
    if not read.lines:
        raise InputError(f"{LINES}: expected lines of dumps, came no row")
    pieces = read.snapshot_pieces(settings).rows
    tables = {table.name: rows_of_pieces(pieces, table) for table in _MADE}
    refused = [unpack_rows(piece.data) for piece in read.quarantine()]
    counts, gaps = read.counts, read.incomplete(settings)
    size = counts.bytes.total()
    of_lines = 0, size, read.lines, counts.refused, gaps
    came = IngestCounts(*of_lines, counts.left_out, counts.clusters)
    return ReadLines(tables, refused, counts, came.summary())


# ---------------------------------------------------------------- the columns


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
    line = columns["line"] if "line" in columns else _line_of(rows)
    file = columns["file"] if "file" in columns else _file_of(rows)
    for name, column, what in (
        ("line", line, "an object of a dump in each row, as docs/dumps.md has them"),
        ("file", file, "the name of the file of each line"),
    ):
        type_ = type_of(rows, _column(column))
        if not isinstance(type_, T.StringType | T.BinaryType):
            came = "nothing that Spark can make" if type_ is None else visible(type_.simpleString())
            raise InputError(f"{LINES}: expected in {name} {what}, came {came}; {_advice(rows)}")
    return rows.select(
        _column(line).cast("binary").alias("line"), _column(file).cast("string").alias("file")
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
    of_text = (T.StringType, T.BinaryType)
    return [field.name for field in rows.schema if isinstance(field.dataType, of_text)]


def _line_of(rows: DataFrame) -> str:
    texts = _texts(rows)
    named = [name for wanted in _LINE for name in texts if name.lower() == wanted]
    if not named and len(texts) != 1:
        raise InputError(f"{LINES}: no column is known to have the lines; {_advice(rows)}")
    return next(iter(named), texts[0])


def _file_of(rows: DataFrame) -> str | Column:
    if "file" in rows.columns:
        return "file"
    of_spark = F.col("_metadata.file_path")
    return F.lit(LINES) if type_of(rows, of_spark) is None else of_spark


def _advice(rows: DataFrame) -> str:
    call = 'audit(lines=..., columns={"line": "..."})'
    return f"{call} names one of the columns {_columns_of(rows)}"


def _columns_of(rows: DataFrame) -> str:
    return visible(", ".join(f"{name} {type_}" for name, type_ in rows.dtypes))


def _column(given: Any) -> Column:
    column: Column = F.col(quoted(given)) if isinstance(given, str) else given
    return column
