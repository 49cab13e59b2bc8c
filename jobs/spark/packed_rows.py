"""Rows of a DataFrame as they travel to the fold: what each row has of its own in columns, and what
rows have in common as one text of JSON.

Java gives rows to Arrow value by value, and lists slowest of all: a row of heartbeats has 19
columns, of which 12 say what kind of client it is. As one text they travel in less time, and each
distinct one is read once.
"""

from collections.abc import Iterator, Mapping
from io import BytesIO

import pyarrow as pa
import pyarrow.json

from ..engines.pieces import in_parts
from ..fold.kernel import Cutting
from ..fold.numbers import Rows
from ..schemas import LONG, Table

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
    stays = [pa.types.is_timestamp(each.type) or each.name in _OF_A_ROW for each in fields]
    return [field.name for field, alone in zip(fields, stays, strict=True) if not alone]


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
    as_travelling = pa.schema([(field.name, _travelling(field.type)) for field in declared])
    parsed = pyarrow.json.ParseOptions(as_travelling, unexpected_field_behavior="error")
    read = pyarrow.json.read_json(BytesIO(lines), options, parsed)
    return read.select(names).cast(declared)


def _travelling(type_: pa.DataType) -> pa.DataType:
    """The type within the text: times as microseconds."""
    if pa.types.is_list(type_):
        return pa.list_(_travelling(type_.value_type))
    if pa.types.is_struct(type_):
        return pa.struct([(field.name, _travelling(field.type)) for field in type_])
    return LONG if pa.types.is_timestamp(type_) else type_
