"""rows -> tables: rows of values as Arrow tables of the declared columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import pyarrow as pa

from ...languages.translated_rows import TEXTS, texts_of
from ...schemas import Table

#: A row of a report table by column; times as Instants, structs as dicts, arrays as sequences.
Row: TypeAlias = dict[str, Any]


class RowError(Exception):
    """A row does not fit its table: an error of the program, not of its input."""


def to_table(table: Table, rows: Sequence[Row]) -> pa.Table:
    """The rows with the table's columns, in its order, of its types.

    The column ``texts`` has what the other columns' texts are made of, and is not a value of the
    rows.

    Raises RowError, with the names of table and column, where a row lacks a column or has a
    value of none, a value is of another type, or a column that must not be null is.
    """
    names = set(table.schema.names)
    unknown = next((row.keys() - names for row in rows if not row.keys() <= names), None)
    if unknown:
        raise RowError(f"{table.name}: expected its columns, came {', '.join(sorted(unknown))}")
    return pa.Table.from_arrays(
        [_column(table.name, column, rows) for column in table.schema], schema=table.schema
    )


def _column(table: str, column: pa.Field[Any], rows: Sequence[Row]) -> pa.Array[Any]:
    place = f"{table}.{column.name}"
    try:
        # The column of texts is made of the whole row.
        given = [texts_of(row) if column.name == TEXTS else row[column.name] for row in rows]
        values = _array(given, column.type)
    except KeyError as error:
        raise RowError(f"{place}: expected in every row, is missing in one") from error
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise RowError(f"{place}: expected {column.type}, came {error}") from error
    if values.null_count and not column.nullable:
        raise RowError(f"{place}: expected a value in every row, came null in {values.null_count}")
    return values


def _array(values: list[Any], type_: pa.DataType) -> pa.Array[Any]:
    if not (pa.types.is_integer(type_) or pa.types.is_timestamp(type_)):
        return pa.array(values, type_)
    # Asked for whole numbers, Arrow cuts off the fractions of others, without a word.
    numbers: pa.Array[Any] = pa.array(values)
    if not (pa.types.is_integer(numbers.type) or pa.types.is_null(numbers.type)):
        raise pa.ArrowTypeError(str(numbers.type))
    return numbers.cast(type_)
