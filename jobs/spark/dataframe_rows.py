"""Rows of DataFrames -> the fold: what a DataFrame must have, and how its rows travel.

Nothing depends on the settings of the session: times travel as microseconds, the names of columns
count without regard to case, and a cast that would fail under ANSI, and give null without it, is
neither: a value that the declared type cannot hold becomes the least number there is, which the
contract of values refuses, row by row.

What is lossless is taken: whole numbers of any width, decimals without digits behind the point,
times as text of ISO 8601 (UTC where it has no zone).

What rows have in common travels as one text of JSON: Java gives rows to Arrow value by value, and
lists slowest of all, and a row of heartbeats has 19 columns, of which 12 say what kind of client it
is. As one text they travel in less time, and each distinct one is read once.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import date, datetime, timedelta
from difflib import get_close_matches
from inspect import signature
from io import BytesIO
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.json
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_schema

from ..config.window import Window
from ..contract import check_tables, type_name
from ..declared.instants import to_instant
from ..engines.pieces import Piece, in_parts
from ..errors import ContractError, InputError
from ..fold.kernel import Cutting
from ..fold.numbers import Rows
from ..fold.slices import NO_TIME, TableStep, window_of
from ..schemas import LONG, SNAPSHOT_TABLES, Table
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
    named, came = {}, []
    for name, given in frames.items():
        table, names_of_table = _TABLES[name], {**columns, **columns.get(name, {})}
        rows = in_days(table, given, window, age)
        named[name] = theirs = _by_our_names(table, rows, names_of_table)
        came.append((table, pa.schema([*_came(table, theirs.rows.schema), *theirs.twice])))
    try:
        check_tables(came)
    except ContractError as error:
        misfits = (
            _misfits(table, schema, frames[table.name], named[table.name]) for table, schema in came
        )
        problems = [str(error), *_not_found(columns, named), *what_to_type(misfits, _fits)]
    else:
        problems = list(_not_found(columns, named))
    if problems:
        raise ContractError("\n".join(problems))
    return {
        name: _in_window(_TABLES[name], theirs.rows, window, age).selectExpr(
            *_travelling(_TABLES[name], theirs.rows)
        )
        for name, theirs in named.items()
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

    def moment(at: datetime) -> Column:
        micros = F.lit(to_instant(at))
        return F.timestamp_micros(micros) if is_time else micros

    bounds = window_of(table, window, age)
    is_in = time.isNull() if is_time else time.isNull() | (time == NO_TIME)
    if window.future is not None:
        is_in |= time >= moment(window.future)
    within = F.lit(True)
    if bounds.since is not None:
        within &= time >= moment(bounds.since)
    if bounds.ends is not None:
        within &= time < moment(bounds.ends)
    return rows.where(within | is_in)


def _check_names(columns: Names) -> None:
    declared = {name for table in SNAPSHOT_TABLES for name in table.schema.names}
    for name, theirs in columns.items():
        known = _TABLES[name].schema.names if name in _TABLES else declared
        given = theirs if name in _TABLES and isinstance(theirs, Mapping) else [name]
        for column in given:
            if column not in known:
                near = ", ".join(get_close_matches(column, known)) or "see docs/data_dictionary.md"
                raise InputError(
                    f"columns: no snapshot table has a column {column!r}: {near}; expected "
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
    for name, theirs in named.items():
        names_of_table = columns.get(name, {})
        for ours, why in theirs.not_found.items():
            others = [other for other in named if ours in _TABLES[other].schema.names]
            if ours in names_of_table or all(ours in named[other].not_found for other in others):
                yield f"{name}.{ours}: {why}"


def _came(table: Table, struct: T.StructType) -> Iterator["pa.Field[Any]"]:
    """The columns that came, as Arrow has their types: ours where one fits it."""
    # Some versions of Spark take no time zone: theirs is UTC.
    takes_zone = "timezone" in signature(to_arrow_schema).parameters
    zone: dict[str, Any] = {"timezone": "UTC"} if takes_zone else {}
    for field in struct:
        type_ = table.schema.field(field.name).type
        if not _fits(field.dataType, type_):
            try:
                type_ = to_arrow_schema(T.StructType([field]), **zone).field(0).type
            except PySparkException:  # a type that Arrow has not
                type_ = pa.null()
        yield pa.field(field.name, type_)


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
    return packed(
        table,
        {
            field.name: str(_travels(there.get(field.name, _NULL), field.type, f"`{field.name}`"))
            for field in table.schema
        },
    )


_NULL = T.NullType()


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


def fold_rows(step: TableStep, name: str, batches: Iterator[pa.RecordBatch]) -> Iterator[Piece]:
    """Feeds rows that travelled to the fold; gives their pieces."""
    return step.of_batches(name, unpacked(_TABLES[name], batches))


# ---------------------------------------------------------------- the days of a window

#: The names of a column that has the day of a row.
_DAY_NAMES = ("dt", "date")
#: A text that is a day, as 2026-11-20 or 20261120.
_IS_DAY = "^[0-9]{4}-?[0-9]{2}-?[0-9]{2}$"
_DAY = timedelta(days=1)


def in_days(table: Table, rows: DataFrame, window: Window, route_max_age_seconds: int) -> DataFrame:
    """The rows whose column ``dt`` or ``date`` is a day of the window, or the one before or after
    it, for it may be one of local time: so Spark reads their partitions alone.

    Rows without a day stay, and those of the future, which are counted. Tables without a column of
    the day, and those of which older rows are in force (contents, lines of logs), come as they are.
    """
    is_of_rounds = _TIME in table.schema.names and not table.schema.field(_TIME).nullable
    day_column = _day_column(rows)
    if day_column is None or window == _ALL or not is_of_rounds:
        return rows
    bounds = window_of(table, window, route_max_age_seconds)
    is_in = _between(day_column, bounds.since, bounds.ends)
    if window.future is not None:
        is_in |= _between(day_column, window.future, None)
    return rows.where(is_in | day_column.isNull() | ~day_column.rlike(_IS_DAY))


def _day_column(rows: DataFrame) -> Column | None:
    day_types = T.DateType | T.StringType | T.IntegralType
    fields = [field for field in rows.schema if isinstance(field.dataType, day_types)]
    there = (field.name for name in _DAY_NAMES for field in fields if field.name.lower() == name)
    found = next(there, None)
    return None if found is None else F.col(found).cast("string")


def _between(day_column: Column, begins: datetime | None, ends: datetime | None) -> Column:
    """The condition that a day is within a day of the two; None: no bound."""
    is_in = F.lit(False)
    for form in ("%Y-%m-%d", "%Y%m%d"):
        is_in_day = day_column.contains("-") if "-" in form else ~day_column.contains("-")
        if begins is not None and begins.date() > date.min:
            is_in_day &= day_column >= (begins - _DAY).strftime(form)
        if ends is not None and ends.date() < date.max:
            # It ends before its end.
            is_in_day &= day_column <= (ends + _DAY - timedelta.resolution).strftime(form)
        is_in |= is_in_day
    return is_in


# ---------------------------------------------------------------- what rows have in common

#: The column with what rows have in common.
FACTS = "facts"
#: Columns that stay as they are, beside all times: they say whose a row is.
_OF_A_ROW = (
    *("cluster", "consumer_group", "topic", "broker_name", "broker_id", "namesrv_addr"),
    *("client_id", "client_addr", "process", "route_id"),
)
#: The most rows that are read at a time, and the bytes that count as a row.
_ROWS_AT_A_TIME, _BYTES_OF_A_ROW = 1 << 17, 512


def columns_read(table: Table) -> list[str]:
    """The columns of a table that the fold reads, where lists of members come by their rows."""
    return Cutting(shards=1, heartbeat_expiry_seconds=0).columns(table)


def packed_columns(table: Table) -> list[str]:
    """The columns that travel as one text: none of a table without lists."""
    fields = [table.schema.field(name) for name in columns_read(table)]
    if not any(pa.types.is_nested(field.type) for field in fields):
        return []
    return [
        field.name
        for field in fields
        if not pa.types.is_timestamp(field.type) and field.name not in _OF_A_ROW
    ]


def packed(table: Table, made: Mapping[str, str]) -> Iterator[str]:
    """The expressions of the columns as they travel; ``made``: those of the table's columns."""
    together = packed_columns(table)
    for name in columns_read(table):
        if name not in together:
            yield f"{made[name]} AS `{name}`"
    if together:
        fields = ", ".join(f"'{name}', {made[name]}" for name in together)
        yield f"to_json(named_struct({fields})) AS {FACTS}"


def unpacked(table: Table, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows that travelled, with the table's columns; texts among the facts are numbers into a
    dictionary.
    """
    parts = in_parts(
        batches,
        _ROWS_AT_A_TIME,
        lambda record_batch: max(record_batch.num_rows, record_batch.nbytes // _BYTES_OF_A_ROW),
    )
    for part in parts:
        yield from _unpacked(table, pa.Table.from_batches(part).combine_chunks()).to_batches()


def _unpacked(table: Table, rows: Rows) -> Rows:
    columns = {
        name: rows[name].cast(table.schema.field(name).type)
        for name in rows.column_names
        if name != FACTS
    }
    if FACTS in rows.column_names and rows.num_rows:
        texts = rows[FACTS].combine_chunks().dictionary_encode()
        facts = _facts(table, texts.dictionary)
        for name in facts.column_names:
            values = facts[name].combine_chunks()
            # A text is a number into a dictionary, as where files are read.
            if pa.types.is_string(values.type):
                values = values.dictionary_encode()
            columns[name] = values.take(texts.indices)
    return pa.table(columns)


def _facts(table: Table, texts: "pa.StringArray") -> Rows:
    """A row for each of the texts."""
    names = packed_columns(table)
    declared = pa.schema([table.schema.field(name).with_nullable(True) for name in names])
    lines = "\n".join(map(str, texts.to_pylist())).encode()
    options = pyarrow.json.ReadOptions(use_threads=False, block_size=len(lines) + 1)
    as_travelling = pa.schema([(field.name, _type_in_text(field.type)) for field in declared])
    parsed = pyarrow.json.ParseOptions(as_travelling, unexpected_field_behavior="error")
    read = pyarrow.json.read_json(BytesIO(lines), options, parsed)
    return read.select(names).cast(declared)


def _type_in_text(type_: pa.DataType) -> pa.DataType:
    """The type within the text: times as microseconds."""
    if pa.types.is_list(type_):
        return pa.list_(_type_in_text(type_.value_type))
    if pa.types.is_struct(type_):
        return pa.struct([(field.name, _type_in_text(field.type)) for field in type_])
    return LONG if pa.types.is_timestamp(type_) else type_
