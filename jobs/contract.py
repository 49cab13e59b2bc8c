"""The contract of the snapshot tables, checked before anything is computed."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from .errors import ContractError
from .schemas import Table


def check_columns(table: Table, came: pa.Schema) -> None:
    """ContractError with every column of the table that is missing or of a wrong type.

    Columns that may be null may also be missing; further columns do not matter. Whole numbers may
    be of another width, times of another unit, and texts and lists of the large kind.
    """
    if problems := list(_problems(table, came)):
        raise ContractError("\n  ".join([f"table {table.name} ({table.grain}):", *problems]))


def has_columns(table: Table, came: pa.Schema) -> bool:
    """Whether ``check_columns`` lets the columns through."""
    return not any(_problems(table, came))


def _problems(table: Table, came: pa.Schema) -> Iterator[str]:
    for field in table.schema:
        expected = f"{field.name}: expected {type_name(field.type)}"
        if field.name not in came.names:
            if not field.nullable:
                yield f"{expected}, is missing"
        elif not _fits(came.field(field.name).type, field.type):
            yield f"{expected}, came {type_name(came.field(field.name).type)}"


def _fits(came: Any, expected: pa.DataType) -> bool:
    if pa.types.is_dictionary(came):
        return _fits(came.value_type, expected)
    if pa.types.is_list(expected):
        return _is_list(came) and _fits(came.value_type, expected.value_type)
    if pa.types.is_struct(expected):
        there = {field.name: field.type for field in came} if pa.types.is_struct(came) else {}
        return all(
            field.name in there and _fits(there[field.name], field.type) for field in expected
        )
    are_integers = pa.types.is_integer(came) and pa.types.is_integer(expected)
    return bool(are_integers or type_name(came) == type_name(expected))


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
