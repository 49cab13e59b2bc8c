"""The contract of the snapshot tables: columns, checked before anything is computed, and what their
values must be, to which the fold holds every row that it reads. And a table as a person reads it.
"""

import re
from collections.abc import Iterable, Iterator
from textwrap import wrap
from typing import Any, NamedTuple

import pyarrow as pa

from .errors import ContractError
from .schemas import QUARANTINE, REPORT_TABLES, Table, comment_of, words_of

_RANGE = re.compile(r"(-?\d+)\.\.(\d*)")
_NO_ZONE = (
    "timestamp without a zone; write times in UTC: TIMESTAMP of Spark in place of TIMESTAMP_NTZ, "
    'timestamp("us", "UTC") of Arrow, dt.tz_localize("UTC") of pandas'
)


class Values(NamedTuple):
    """The contract of a column's values. ``least``, ``most``: None is no bound."""

    required: bool
    filled: bool = False
    one_of: tuple[str, ...] = ()
    least: int | None = None
    most: int | None = None

    @classmethod
    def declared(cls, words: str, *, nullable: bool = False) -> "Values":
        """Parses the words of a declaration in ``schemas``.

        >>> Values.declared("null 0..15")
        Values(required=False, filled=False, one_of=(), least=0, most=15)
        """
        every = words.split()
        span = next((found for word in every if (found := _RANGE.fullmatch(word))), None)
        return cls(
            not nullable and "null" not in every,
            "filled" in every,
            next((tuple(word.split("|")) for word in every if "|" in word), ()),
            int(span[1]) if span else None,
            int(span[2]) if span and span[2] else None,
        )

    def allow(self, number: float) -> bool:
        """True if the number is within the bounds."""
        is_enough = self.least is None or number >= self.least
        return is_enough and (self.most is None or number <= self.most)

    def in_bits(self, bits: int) -> "Values":
        """The contract of whole numbers that so many bits hold, however wide their column came.

        The least of them is left out: it marks what a DataFrame has beyond them.
        """
        most = (1 << bits - 1) - 1
        least = -most
        return self._replace(
            least=least if self.least is None else self.least,
            most=most if self.most is None else self.most,
        )

    def __str__(self) -> str:
        """The contract in words.

        >>> print(Values.declared("0.."), Values.declared("A|B"), Values.declared(""), sep=" - ")
        0 or more - A or B - a value
        """
        if self.one_of:
            return " or ".join(self.one_of)
        if self.filled:
            return "a text that is not empty"
        if self.least is None:
            return "a value"
        return f"{self.least} or more" if self.most is None else f"{self.least} to {self.most}"


def values_of(column: "pa.Field[Any]") -> Values:
    """The contract of a declared column's values."""
    return Values.declared(words_of(column), nullable=column.nullable)


def check_tables(tables: Iterable[tuple[Table, pa.Schema]]) -> None:
    """ContractError with every column of the tables that is missing, twice or of a wrong type.

    Columns that may be null may also be missing; further columns do not matter. Whole numbers may
    be of another width, times of another unit, and texts and lists of the large kind.
    """
    found = [
        "\n  ".join([f"table {table.name} ({table.grain}):", *problems])
        for table, came in tables
        if (problems := list(_problems(table, came)))
    ]
    if found:
        # A line that is not indented would look like one of the command's own.
        raise ContractError("\n  ".join(found))


def has_columns(table: Table, came: pa.Schema) -> bool:
    """True if ``check_tables`` lets the columns through."""
    return not any(_problems(table, came))


def _problems(table: Table, came: pa.Schema) -> Iterator[str]:
    for field in table.schema:
        expected = f"{field.name}: expected {type_name(field.type)}"
        if field.name not in came.names:
            if not field.nullable:
                yield f"{expected}, is missing"
        elif (times := came.names.count(field.name)) > 1:
            yield f"{expected}, is there {times} times"
        elif not _fits(type_ := came.field(field.name).type, field.type):
            yield f"{expected}, came {_NO_ZONE if _has_no_zone(type_) else type_name(type_)}"


def _fits(came: Any, expected: pa.DataType) -> bool:
    if pa.types.is_string_view(came):
        return bool(pa.types.is_string(expected))
    if pa.types.is_dictionary(came):
        return _fits(came.value_type, expected)
    if pa.types.is_list(expected):
        return _is_list(came) and _fits(came.value_type, expected.value_type)
    if pa.types.is_struct(expected):
        there = {field.name: field.type for field in came} if pa.types.is_struct(came) else {}
        return all(part.name in there and _fits(there[part.name], part.type) for part in expected)
    if _has_no_zone(came):
        return False
    are_integers = pa.types.is_integer(came) and pa.types.is_integer(expected)
    return bool(are_integers or type_name(came) == type_name(expected))


def _has_no_zone(type_: Any) -> bool:
    """Nanoseconds are UTC: Spark writes INT96 by default, which Arrow reads so, without a zone."""
    return bool(pa.types.is_timestamp(type_) and type_.tz is None and type_.unit != "ns")


def _is_list(type_: pa.DataType) -> bool:
    return bool(pa.types.is_list(type_) or pa.types.is_large_list(type_))


_NAMES = {
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.bool_(): "boolean",
    pa.date32(): "date",
    pa.large_string(): "string",
    pa.large_binary(): "binary",
}


def type_name(type_: Any) -> str:
    """The type as SQL has it.

    >>> type_name(pa.list_(pa.struct([("topic", pa.string()), ("queue_id", pa.int32())])))
    'array<struct<topic:string,queue_id:int>>'
    """
    if pa.types.is_dictionary(type_):
        return type_name(type_.value_type)
    if _is_list(type_):
        return f"array<{type_name(type_.value_type)}>"
    if pa.types.is_struct(type_):
        fields = ",".join(f"{field.name}:{type_name(field.type)}" for field in type_)
        return f"struct<{fields}>"
    if pa.types.is_timestamp(type_):
        return "timestamp"
    return _NAMES.get(type_, str(type_))


def as_plain(rows: pa.Table) -> pa.Table:
    """The rows in the types that Spark and Parquet take: see ``plain_type``.

    >>> topics = pa.array(["T"]).dictionary_encode()
    >>> rows = pa.table({"activities": [[None, None]], "topic": topics})
    >>> plain = as_plain(rows)
    >>> plain.validate(full=True)
    >>> plain.to_pylist(), str(plain.schema.field("topic").type)
    ([{'activities': [None, None], 'topic': 'T'}], 'string')
    """
    plain = pa.schema([(field.name, plain_type(field.type)) for field in rows.schema])
    columns = [
        # Arrow breaks lists of nothing but nulls when it casts them to their own type (26.0.1).
        column if column.type == field.type else column.cast(field.type, safe=False)
        for column, field in zip(rows.columns, plain, strict=True)
    ]
    return pa.table(columns, schema=plain)


def with_declared_nulls(rows: pa.Table, table: Table) -> pa.Table:
    """The rows with the declared type where a column has no value, and so no type of its own: of
    pandas or of literals, nulls alone, or lists of nulls alone.
    """
    for place, came in enumerate(rows.schema):
        if came.name in table.schema.names and _has_no_value(came.type):
            declared = table.schema.field(came.name)
            made = pa.array(rows.column(place).to_pylist(), declared.type)
            rows = rows.set_column(place, declared, made)
    return rows


def _has_no_value(type_: Any) -> bool:
    return bool(pa.types.is_null(type_) or (_is_list(type_) and _has_no_value(type_.value_type)))


def plain_type(type_: Any) -> Any:
    """The type as Spark and Parquet take it: without views, dictionaries and large lists, and times
    in microseconds.

    >>> plain_type(pa.list_(pa.struct([("topic", pa.string_view())])))
    ListType(list<item: struct<topic: string>>)
    """
    if pa.types.is_dictionary(type_):
        return plain_type(type_.value_type)
    if pa.types.is_string_view(type_) or pa.types.is_large_string(type_):
        return pa.string()
    if pa.types.is_timestamp(type_):
        return pa.timestamp("us", type_.tz)
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return pa.list_(plain_type(type_.value_type))
    if pa.types.is_struct(type_):
        return pa.struct([(field.name, plain_type(field.type)) for field in type_])
    return type_


def described(name: str) -> str:
    """The text of the data dictionary about a table: its grain, and each column; else ""."""
    table = next((table for table in (*REPORT_TABLES, QUARANTINE) if table.name == name), None)
    if table is None:
        return ""
    lines = [*wrap(f"{table.name}. Grain: {table.grain}.", 98), ""]
    for column in table.schema:
        type_ = f"{type_name(column.type)}{'?' if column.nullable else ''}"
        lines += wrap(
            f"{column.name} {type_}: {comment_of(column)}",
            98,
            subsequent_indent="    ",
            break_long_words=False,
        )
    return "\n".join([*lines, "\n"])
