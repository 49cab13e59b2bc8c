"""Rows of DataFrames -> the fold: what a DataFrame must have, and how its rows travel.

Nothing depends on the settings of the session: times travel as microseconds, the names of columns
count without regard to case, and a cast that would fail under ANSI, and give null without it, is
neither: a value that the declared type cannot hold becomes the least number there is, which the
contract of values refuses, row by row.

What is lossless is taken: whole numbers of any width, decimals without digits behind the point,
times as text of ISO 8601 (UTC where it has no zone).
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from inspect import signature
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_schema

from ..config.window import Window
from ..contract import check_tables, type_name
from ..declared.instants import to_instant
from ..engines.pieces import Piece
from ..errors import ContractError, InputError
from ..fold.slices import NO_TIME, TableStep, window_of
from ..schemas import SNAPSHOT_TABLES, Table
from .days import of_days
from .packed_rows import packed, unpacked
from .what_to_type import Misfits, quoted, what_to_type

#: Our name of a column to theirs, or to a column that is made of theirs; or by table such names.
Names: TypeAlias = Mapping[str, Any]

#: All snapshots.
_ALL = Window()

_TABLES = {table.name: table for table in SNAPSHOT_TABLES}
_TIME = "snapshot_time"
#: No backslash: whether it escapes is a setting of the session.
_HAS_ZONE = "(Z|[+-][0-9][0-9]:?[0-9][0-9])$"
_LEAST = {"tinyint": -(1 << 7), "smallint": -(1 << 15), "int": -(1 << 31)}

# ---------------------------------------------------------------- the contract of columns


def prepared(
    frames: Mapping[str, DataFrame],
    columns: Names | None = None,
    window: Window = _ALL,
    route_max_age_seconds: int = 0,
) -> dict[str, DataFrame]:
    """The declared columns of each table, as they travel; those that are missing are null.

    Of the ``window`` alone, as far as Spark sees that a row is not in it (``TableStep`` decides):
    so files whose statistics are outside of it are not read, nor partitions of other days.

    Raises ContractError with all that is missing or of a wrong type in any of the tables, and what
    to type; InputError for a name in ``columns`` that no table has.
    """
    columns = columns or {}
    _check_names(columns)
    age = route_max_age_seconds
    frames = {name: of_days(_TABLES[name], rows, window, age) for name, rows in frames.items()}
    named = {
        name: _by_our_names(_TABLES[name], rows, {**columns, **columns.get(name, {})})
        for name, rows in frames.items()
    }
    came = [
        (
            _TABLES[name],
            pa.schema([*_came(_TABLES[name], named_columns.rows.schema), *named_columns.twice]),
        )
        for name, named_columns in named.items()
    ]
    problems = list(_not_found(columns, named))
    try:
        check_tables(came)
    except ContractError as error:
        misfits = (_misfits(*each, frames[each[0].name], named[each[0].name]) for each in came)
        problems = [str(error), *problems, *what_to_type(misfits, _fits)]
    if problems:
        raise ContractError("\n".join(problems))
    return {
        name: _in_window(_TABLES[name], named_columns.rows, window, age).selectExpr(
            *_travelling(_TABLES[name], named_columns.rows)
        )
        for name, named_columns in named.items()
    }


def _in_window(table: Table, rows: DataFrame, window: Window, age: int) -> DataFrame:
    """The rows that may count: besides those of the window all without a time, which are refused or
    are lines of a log, and those of the future, which are counted.
    """
    if _TIME not in rows.columns or window == _ALL:
        return rows
    came, declared = rows.schema[_TIME].dataType, table.schema.field(_TIME).type
    is_time = isinstance(came, T.TimestampType)
    # The column as it is, so that statistics of files are asked. Others as they travel.
    time = F.col(_TIME) if is_time else F.expr(str(_travels(came, declared, _TIME)))
    bounds = window_of(table, window, age)

    def moment(at: datetime) -> Column:
        micros = to_instant(at)
        return F.timestamp_micros(F.lit(micros)) if is_time else F.lit(micros)

    is_in = F.lit(True)
    if bounds.since is not None:
        is_in &= time >= moment(bounds.since)
    if bounds.ends is not None:
        is_in &= time < moment(bounds.ends)
    if window.future is not None:
        is_in |= time >= moment(window.future)
    is_none = time.isNull() if is_time else time.isNull() | (time == NO_TIME)
    return rows.where(is_in | is_none)


def _check_names(columns: Names) -> None:
    declared = {name for table in SNAPSHOT_TABLES for name in table.schema.names}
    for name, theirs in columns.items():
        known = _TABLES[name].schema.names if name in _TABLES else declared
        given = theirs if name in _TABLES and isinstance(theirs, Mapping) else [name]
        for each in given:
            if each not in known:
                near = ", ".join(get_close_matches(each, known)) or "see docs/data_dictionary.md"
                raise InputError(
                    f"columns: no snapshot table has a column {each!r}: {near}; expected "
                    'columns={"client_id": "clientId"}, our name first'
                )


class _NamedColumns(NamedTuple):
    """The columns of a table that are there."""

    #: Rows with our names of columns.
    rows: DataFrame
    twice: list[Any]
    #: The caller's name of each column of ours; None of one that the caller has made.
    theirs: dict[str, str | None]
    #: The reason why there is nothing of what ``columns`` has for our name.
    not_found: dict[str, str]


def _by_our_names(table: Table, rows: DataFrame, columns: Names) -> _NamedColumns:
    places = defaultdict(list)
    for name in rows.columns:
        places[name.lower()].append(name)
    picked: list[Column] = []
    named = _NamedColumns(rows, [], {}, {})
    for field in table.schema:
        theirs = columns.get(field.name, field.name)
        if not isinstance(theirs, str):
            if (refusal := _refusal(rows, theirs)) is None:
                picked.append(theirs.alias(field.name))
                named.theirs[field.name] = None
                continue
            named.not_found[field.name] = f"Spark refuses what columns has for it: {refusal}"
            theirs = field.name
        elif theirs.lower() not in places and field.name in columns:
            named.not_found[field.name] = f"columns names {theirs!r}, which is not there"
        there = places[theirs.lower()] or places[field.name]
        if len(there) > 1:
            named.twice.extend([pa.field(field.name, field.type)] * len(there))
        elif there:
            picked.append(F.col(quoted(there[0])).alias(field.name))
            named.theirs[field.name] = there[0]
    return named._replace(rows=rows.select(*picked))


def _refusal(rows: DataFrame, column: Column) -> str | None:
    try:
        rows.select(column).schema  # noqa: B018 - Connect asks the server here
    except PySparkException as error:
        return " ".join(str(error).split(";")[0].split())
    return None


def _not_found(columns: Names, named: Mapping[str, _NamedColumns]) -> Iterator[str]:
    """The names in ``columns`` that their table has not; or that no table has, where for all."""
    for name, each in named.items():
        of_table = columns.get(name, {})
        for ours, why in each.not_found.items():
            others = [other for other in named if ours in _TABLES[other].schema.names]
            if ours in of_table or all(ours in named[other].not_found for other in others):
                yield f"{name}.{ours}: {why}"


def _came(table: Table, struct: T.StructType) -> Iterator["pa.Field[Any]"]:
    for field in struct:
        expected = table.schema.field(field.name).type
        yield pa.field(
            field.name, expected if _fits(field.dataType, expected) else _arrow_type(field)
        )


def _arrow_type(field: T.StructField) -> pa.DataType:
    # Some versions of Spark take no time zone: theirs is UTC.
    takes_zone = "timezone" in signature(to_arrow_schema).parameters
    zone: dict[str, Any] = {"timezone": "UTC"} if takes_zone else {}
    try:
        type_: pa.DataType = to_arrow_schema(T.StructType([field]), **zone).field(0).type
    except PySparkException:  # a type that Arrow has not
        return pa.null()
    return type_


def _misfits(table: Table, schema: pa.Schema, rows: DataFrame, named: _NamedColumns) -> Misfits:
    missing = [f.name for f in table.schema if not f.nullable and f.name not in schema.names]
    wrong = [
        field.name
        for field in table.schema
        if schema.names.count(field.name) == 1 and schema.field(field.name).type != field.type
    ]
    return Misfits(table, rows, named.theirs, missing, wrong)


def _fits(came: T.DataType, expected: Any) -> bool:
    return _travels(came, expected, "x") is not None


# ---------------------------------------------------------------- how a column travels


def _travelling(table: Table, rows: DataFrame) -> Iterator[str]:
    there = {field.name: field.dataType for field in rows.schema}
    made = {
        field.name: str(
            _travels(there.get(field.name, T.NullType()), field.type, f"`{field.name}`")
        )
        for field in table.schema
    }
    return packed(table, made)


def _travels(came: T.DataType, expected: Any, x: str, depth: int = 0) -> str | None:
    """The expression of the column ``x`` in its travelling type; None: it does not fit."""
    if isinstance(came, T.NullType):
        return f"CAST(NULL AS {type_name(expected).replace('timestamp', 'bigint')})"
    if pa.types.is_list(expected):
        if not isinstance(came, T.ArrayType):
            return None
        each = f"each{depth}"
        made = _travels(came.elementType, expected.value_type, each, depth + 1)
        return x if made == each else made and f"transform({x}, {each} -> {made})"
    if pa.types.is_struct(expected):
        return _struct_travels(came, expected, x, depth)
    if pa.types.is_timestamp(expected):
        if isinstance(came, T.StringType):
            zoned = f"IF({x} RLIKE '{_HAS_ZONE}', {x}, concat({x}, 'Z'))"
            return _held(x, f"unix_micros(try_cast({zoned} AS timestamp))", "bigint")
        return f"unix_micros({x})" if isinstance(came, T.TimestampType) else None
    type_ = type_name(expected)
    if came.simpleString() == type_ or (type_ == "string" and isinstance(came, T.StringType)):
        return x
    is_whole = isinstance(came, T.IntegralType) or (
        isinstance(came, T.DecimalType) and not came.scale
    )
    if pa.types.is_integer(expected) and is_whole:
        return _held(x, f"try_cast({x} AS {type_})", type_)
    return None


def _struct_travels(came: T.DataType, expected: Any, x: str, depth: int) -> str | None:
    if not isinstance(came, T.StructType):
        return None
    there = {field.name.lower(): field for field in came}
    fields = []
    is_same = [field.name for field in expected] == came.names
    for field in expected:
        if (theirs := there.get(field.name)) is None:
            return None
        path = f"{x}.`{theirs.name}`"
        if (made := _travels(theirs.dataType, field.type, path, depth)) is None:
            return None
        is_same = is_same and made == path
        fields.append(f"'{field.name}', {made}")
    return x if is_same else f"IF({x} IS NULL, NULL, named_struct({', '.join(fields)}))"


def _held(x: str, made: str, type_: str) -> str:
    """The expression ``made``; the least number there is where the type cannot hold it."""
    least = _LEAST.get(type_)
    worst = f"({NO_TIME + 1}L - 1L)" if least is None else f"CAST({least} AS {type_})"
    return f"IF({x} IS NULL, NULL, coalesce({made}, {worst}))"


# ---------------------------------------------------------------- in a worker


@dataclass(frozen=True)
class RowsStep:
    """Feeds rows that travelled to the fold."""

    step: TableStep

    def __call__(self, name: str, batches: Iterator[pa.RecordBatch]) -> Iterator[Piece]:
        """The pieces of the rows."""
        return self.step.of_batches(name, unpacked(_TABLES[name], batches))
