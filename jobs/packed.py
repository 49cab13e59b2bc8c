"""Tables as rows of a DataFrame: several tables leave one Python step of Spark in one pass.

Each row is a piece of one table, as an Arrow stream. Nothing but the step that made it and the one
that writes it needs to know its columns, and what is small is collected as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

#: One row per piece: the table's name, how many rows are in it, and they as an Arrow stream.
_COLUMNS: dict[str, pa.DataType] = {
    "table": pa.string(),
    "rows": pa.int64(),
    "data": pa.binary(),
}
PACKED = pa.schema(_COLUMNS)
PACKED_DDL = "table string, rows bigint, data binary"


#: About so many bytes are in a row: Spark copies a row several times, and holds it in one array.
_MOST_BYTES = 4 << 20


def pack(pieces: Iterable[tuple[str, pa.Table]]) -> pa.RecordBatch:
    """The pieces, those without any row left out and large ones cut.

    >>> pack([("numbers", pa.table({"n": [1, 2]})), ("none", pa.table({"n": []}))]).num_rows
    1
    """
    rows: list[dict[str, str | int | bytes]] = []
    for name, piece in pieces:
        cuts = 1 + piece.nbytes // _MOST_BYTES
        length = max(1, -(-piece.num_rows // cuts))
        for start in range(0, piece.num_rows, length):
            cut = piece.slice(start, length)
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, cut.schema) as stream:
                stream.write_table(cut)
            data = sink.getvalue().to_pybytes()
            rows.append({"table": name, "rows": cut.num_rows, "data": data})
    return pa.RecordBatch.from_pylist(rows, schema=PACKED)


def unpack(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, pa.Table]]:
    """The pieces again."""
    for batch in batches:
        for name, data in zip(batch.column("table"), batch.column("data"), strict=True):
            with pa.ipc.open_stream(data.as_buffer()) as stream:
                yield name.as_py(), stream.read_all()
