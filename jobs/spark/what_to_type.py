"""Columns that do not fit -> the argument ``columns`` that mends them.

A line is tried before it is shown: Spark has analysed it over the caller's own table, and what it
makes fits. What no line mends is said in a sentence.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from ..contract import type_name
from ..declared.contents import SUBSCRIPTIONS
from ..schemas import Table
from ..texts.shown import visible

#: True if a column of this type of Spark is taken for one of that type of ours.
Fits: TypeAlias = Callable[[T.DataType, Any], bool]


class Misfits(NamedTuple):
    """The columns of a table that are missing, or of a wrong type, by our names."""

    table: Table
    #: The table as the caller has it.
    rows: DataFrame
    #: The caller's name of each column of ours that is there; None of one that ``columns`` makes.
    theirs: Mapping[str, str | None]
    missing: Sequence[str]
    wrong: Sequence[str]


def quoted(name: str) -> str:
    """The name of a column in SQL, whatever is in it.

    >>> quoted("client.id")
    '`client.id`'
    """
    return f"`{name.replace('`', '``')}`"


def type_of(rows: DataFrame, column: Column) -> T.DataType | None:
    """The type of a column of the rows; None where Spark cannot make it."""
    try:
        return rows.select(column.alias("made")).schema["made"].dataType
    except PySparkException:
        return None


def what_to_type(tables: Iterable[Misfits], fits: Fits) -> Iterator[str]:
    """The argument that mends the columns, as far as names and types show it, then what it needs to
    be said beside it.
    """
    table_texts, notes = [], []
    for table in tables:
        parts, table_notes = _parts(table, fits)
        if parts:
            table_texts.append(f'"{table.table.name}": {{{", ".join(parts)}}}')
        notes += table_notes
    if table_texts:
        yield f"name, or make, what is there: audit(..., columns={{{', '.join(table_texts)}}})"
    yield from dict.fromkeys(notes)


def _parts(came: Misfits, fits: Fits) -> tuple[list[str], list[str]]:
    """The entries of a table in ``columns``, and notes on them."""
    types = {field.name: field.dataType for field in came.rows.schema}
    free = [name for name in types if name not in came.theirs.values()]
    near = _near(came, free, types, fits)
    parts, notes = [], []
    for field in came.table.schema:
        ours, expected = field.name, type_name(field.type)
        if ours in came.wrong:
            theirs = came.theirs[ours]
        # Of what may be missing a name is shown where one is like it: a route without it has none.
        elif ours in near or ours in came.missing:
            theirs = near.get(ours)
        else:
            continue
        if theirs is None and ours in came.missing:
            parts.append(f'"{ours}": "..."')
        elif theirs is None:
            notes.append(f"{came.table.name}.{ours}: make of it {expected} in columns")
        elif fits(types[theirs], field.type):
            parts.append(f'"{ours}": {_literal(theirs)}')
        elif sql := _tried(came.rows, theirs, types[theirs], field.type, fits):
            parts.append(f'"{ours}": F.expr({_literal(sql)})')
            notes += _notes(ours, types[theirs], field.type)
        else:
            notes.append(
                f"{came.table.name}.{ours}: no line is known that makes {expected} of "
                f"{visible(f'{theirs}, which is {types[theirs].simpleString()}')}"
            )
    if any(part.endswith('"..."') for part in parts):
        left = (name for name in free if name not in near.values())
        there = visible(", ".join(f"{name} {types[name].simpleString()}" for name in left))
        notes.append(
            f'"..." is the name of a column, or a column that is made, as F.lit("prod"); '
            f"{came.table.name} has besides: {there or 'no other column'}"
        )
    return parts, notes


def _near(
    came: Misfits, free: Sequence[str], types: Mapping[str, T.DataType], fits: Fits
) -> dict[str, str]:
    """Maps our names that are missing to theirs that may be meant. A column whose name is but like
    ours has to be of its type, too: a broker's name is no id. Times and subscriptions have many.
    """

    def may_be(ours: str, theirs: str) -> bool:
        expected = came.table.schema.field(ours).type
        has_many_types = expected == SUBSCRIPTIONS or pa.types.is_timestamp(expected)
        return has_many_types or fits(types[theirs], expected)

    optional = [name for name in came.table.schema.names if name not in came.theirs]
    return _alike(list(dict.fromkeys([*came.missing, *optional])), free, may_be)


def _tried(
    rows: DataFrame, name: str, came: T.DataType, expected: pa.DataType, fits: Fits
) -> str | None:
    """The SQL that makes the type of the column; None where there is none that Spark takes."""
    if (sql := _made(came, expected, quoted(name), fits)) is None:
        return None
    made = type_of(rows, F.expr(sql))
    return sql if made is not None and fits(made, expected) else None


def _notes(ours: str, came: T.DataType, expected: pa.DataType) -> Iterator[str]:
    if pa.types.is_timestamp(expected) and isinstance(came, T.IntegralType):
        yield f"{ours}: timestamp_seconds or timestamp_micros if it does not count milliseconds"
    if pa.types.is_timestamp(expected) and isinstance(came, T.TimestampNTZType):
        yield f"{ours}: its times are taken for UTC"
    if expected == SUBSCRIPTIONS and isinstance(came, T.StringType):
        yield (
            f"{ours}: its text is taken for JSON as RocketMQ writes subscriptionDataSet or "
            'subscriptionTable, for {"topic": "expression"}, or for an array with our names'
        )


def _literal(text: str) -> str:
    """The text as Python has it, in one line and printable whatever is in it."""
    quoted = ascii(text)
    return f'"{quoted[1:-1]}"' if quoted[0] == "'" and '"' not in text else quoted


# ---------------------------------------------------------------- SQL that makes a type

#: The fields of RocketMQ's SubscriptionData that have another name with us.
_OF_ROCKETMQ = {"expression": "substring", "expression_type": "expressiontype"}
_OF_JSON = "topic:string,expression_type:string,expressionType:string,expression:string"
_JSON_ARRAY = (
    f"transform(from_json({{x}}, 'array<struct<{_OF_JSON},subString:string>>'), s -> "
    "named_struct('topic', s.topic, 'expression_type', coalesce(s.expression_type, "
    "s.expressionType), 'expression', coalesce(s.expression, s.subString)))"
)
_JSON_OBJECT = (
    "transform(map_entries(from_json({x}, 'map<string,string>')), e -> named_struct('topic', "
    "e.key, 'expression_type', get_json_object(e.value, '$.expressionType'), 'expression', "
    "coalesce(get_json_object(e.value, '$.subString'), e.value)))"
)


def _made(came: T.DataType, expected: Any, x: str, fits: Fits, depth: int = 0) -> str | None:
    """The SQL that makes the expected type of ``x``; None: there is none."""
    if fits(came, expected):
        return x
    if pa.types.is_list(expected):
        return _list_made(came, expected, x, fits, depth)
    if pa.types.is_struct(expected):
        return _struct_made(came, expected, x, fits, depth)
    if pa.types.is_timestamp(expected):
        if isinstance(came, T.IntegralType):
            return f"timestamp_millis({x})"
        if isinstance(came, T.FractionalType):
            return f"timestamp_seconds({x})"
        # A text of a time without a zone is one of UTC.
        return f"CAST({x} AS string)" if isinstance(came, T.TimestampNTZType) else None
    is_plain = isinstance(came, T.StringType | T.NumericType | T.BooleanType)
    # What is no number becomes null, which the contract refuses row by row where one must be.
    return f"try_cast({x} AS {type_name(expected)})" if is_plain else None


def _list_made(came: T.DataType, expected: Any, x: str, fits: Fits, depth: int) -> str | None:
    is_of_topics = expected == SUBSCRIPTIONS
    if isinstance(came, T.StringType):
        if not is_of_topics:
            return f"from_json({x}, '{type_name(expected).replace('timestamp', 'string')}')"
        forms = f"{_JSON_OBJECT}, {_JSON_ARRAY}".format(x=x)
        return f"IF({x} LIKE '{{%', {forms})"
    each = f"each{depth}"
    if isinstance(came, T.ArrayType):
        if is_of_topics and isinstance(came.elementType, T.StringType):
            return f"transform({x}, {each} -> {_subscription(each, 'NULL')})"
        made = _made(came.elementType, expected.value_type, each, fits, depth + 1)
        return made and f"transform({x}, {each} -> {made})"
    if isinstance(came, T.StructType):
        made = _made(came, expected.value_type, x, fits, depth)
        return made and f"IF({x} IS NULL, NULL, array({made}))"
    if is_of_topics and isinstance(came, T.MapType):
        if isinstance(came.valueType, T.StructType):
            made = _made(came.valueType, expected.value_type, each, fits, depth + 1)
            return made and f"transform(map_values({x}), {each} -> {made})"
        if isinstance(came.valueType, T.StringType):
            made = _subscription(f"{each}.key", f"{each}.value")
            return f"transform(map_entries({x}), {each} -> {made})"
    return None


def _subscription(topic: str, expression: str) -> str:
    """A subscription; without a type it is one by tags, and without an expression one to all."""
    return f"named_struct('topic', {topic}, 'expression_type', NULL, 'expression', {expression})"


def _struct_made(came: T.DataType, expected: Any, x: str, fits: Fits, depth: int) -> str | None:
    """The struct of the fields that have our names, names that are like them, or RocketMQ's."""
    if not isinstance(came, T.StructType):
        return None
    types = {field.name: field.dataType for field in came}
    plain = {_plain(name): name for name in types}
    names = [field.name for field in expected]
    found = _alike(names, list(types))
    found |= {name: plain[_OF_ROCKETMQ[name]] for name in names if _OF_ROCKETMQ.get(name) in plain}
    fields = []
    for field in expected:
        theirs = found.get(field.name)
        path = f"{x}.{quoted(theirs)}" if theirs else ""
        made = _made(types[theirs], field.type, path, fits, depth) if theirs else None
        if made is None:
            return None
        fields.append(f"'{field.name}', {made}")
    return f"IF({x} IS NULL, NULL, named_struct({', '.join(fields)}))"


# ---------------------------------------------------------------- names that are like ours


def _plain(name: str) -> str:
    return re.sub(r"[\W_]", "", name).lower()


#: A name, some others -> those that it is like, the clearest first.
_LIKE: Sequence[Callable[[str, Sequence[str]], list[str]]] = (
    lambda name, some: get_close_matches(name, some, 1, 0.8),
    lambda name, some: [part for part in some if len(part) > 3 and name.endswith(part)],
    lambda name, some: [part for part in some if len(part) > 3 and name.startswith(part)],
)


def _alike(
    ours: Sequence[str],
    theirs: Sequence[str],
    may_be: Callable[[str, str], bool] = lambda *_: True,
) -> dict[str, str]:
    """Maps our names to theirs that are the same but for case and marks, or else, where these may
    be, that are spelled alike, or are the end or the beginning of ours; each once.

    >>> _alike(["consumer_group", "client_id", "subscriptions"], ["group", "clientId", "subs"])
    {'client_id': 'clientId', 'consumer_group': 'group', 'subscriptions': 'subs'}
    """
    plain = {_plain(name): name for name in theirs}
    found: dict[str, str] = {}
    for name in ours:
        if _plain(name) in plain:
            found[name] = plain.pop(_plain(name))
    for is_alike in _LIKE:
        for name in ours:
            some = [likely for likely, of in plain.items() if may_be(name, of)]
            if name not in found and (near := is_alike(_plain(name), some)):
                found[name] = plain.pop(near[0])
    return found
