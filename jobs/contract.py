"""The contract of the snapshot tables, checked before anything is computed."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from jobs.errors import ContractError
from jobs.schemas import Table

_WIDENINGS: dict[type[T.DataType], tuple[type[T.DataType], ...]] = {
    T.IntegerType: (T.ByteType, T.ShortType, T.IntegerType, T.LongType),
    T.LongType: (T.ByteType, T.ShortType, T.IntegerType, T.LongType),
}


def check_contract(table: Table, rows: DataFrame) -> DataFrame:
    """The table's columns, in order; further columns are left out.

    Columns that may be null may also be missing. Raises ContractError with every column that is
    missing or of a wrong type.
    """
    problems, columns = [], []
    for field in table.schema:
        if field.name not in rows.columns:
            if not field.nullable:
                problems.append(
                    f"{field.name}: expected {field.dataType.simpleString()}, is missing"
                )
            columns.append(F.lit(None).cast(field.dataType).alias(field.name))
            continue
        came = rows.schema[field.name].dataType
        if not _fits(came, field.dataType):
            problems.append(
                f"{field.name}: expected {field.dataType.simpleString()}, "
                f"came {came.simpleString()}"
            )
        else:
            columns.append(_by_name(F.col(field.name), came, field.dataType).alias(field.name))
    if problems:
        raise ContractError(
            f"table {table.name} ({table.grain}):\n" + "\n".join(f"  {each}" for each in problems)
        )
    return rows.select(*columns)


def _by_name(column: Column, came: T.DataType, expected: T.DataType) -> Column:
    """The column as the expected type; a cast alone would match a struct's fields by position.

    A column that is so but for nullability stays as it is: to cast an array is to copy it.
    """
    if came.simpleString() == expected.simpleString():
        return column
    if isinstance(expected, T.ArrayType) and isinstance(expected.elementType, T.StructType):
        names = expected.elementType.names
        in_order = F.transform(column, lambda each: F.struct(*[each[name] for name in names]))
        return in_order.cast(expected)
    return column.cast(expected)


def _fits(came: T.DataType, expected: T.DataType) -> bool:
    if isinstance(expected, T.ArrayType):
        return isinstance(came, T.ArrayType) and _fits(came.elementType, expected.elementType)
    if isinstance(expected, T.StructType):
        return isinstance(came, T.StructType) and all(
            field.name in came.names and _fits(came[field.name].dataType, field.dataType)
            for field in expected
        )
    return isinstance(came, _WIDENINGS.get(type(expected), (type(expected),)))
