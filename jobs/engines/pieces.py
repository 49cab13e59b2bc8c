"""Pieces: what one task makes for another, packed, with the shard that it is for.

Nothing else goes from task to task. An engine moves pieces, and needs to know neither columns nor
values of them. A piece is bytes: rows as an Arrow stream, or values of Python that only this
program wrote and reads.
"""

import pickle
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa

#: The shard of what is for everybody: the driver gathers it.
FOR_ALL = -1

#: The same times come again with each witness: they pack to a hundredth.
_PACKED = pa.ipc.IpcWriteOptions(compression="lz4")

#: The approximate bytes of a piece of rows: it travels as one value.
_PIECE_BYTES = 4 << 20

#: Values beyond so many bytes are compressed; a pickle begins with another byte than their mark.
_LARGE = 1 << 16
_PACKED_VALUE = b"lz4 "

_Item = TypeVar("_Item")


class Piece(NamedTuple):
    """The bytes of one piece; ``kind``: what it is, ``shard``: for which task."""

    shard: int
    kind: str
    data: bytes


def shard_of(name: str, shards: int) -> int:
    """The shard of a group, or of a topic, in all clusters: the same in every process.

    >>> shard_of("G_PAY", 8) == shard_of("G_PAY", 8)
    True
    """
    return zlib.crc32(name.encode()) % shards


def in_parts(
    items: Iterable[_Item], most: int, size: Callable[[_Item], int] = lambda _: 1
) -> Iterator[list[_Item]]:
    """The items in lists, each of which is full when its items' sizes are ``most`` or more.

    >>> list(in_parts(["ab", "c", "d"], 2, len))
    [['ab'], ['c', 'd']]
    """
    part: list[_Item] = []
    full = 0
    for item in items:
        part.append(item)
        full += size(item)
        if full >= most:
            yield part
            part, full = [], 0
    if part:
        yield part


def pack_rows(shard: int, kind: str, rows: pa.Table) -> Iterator[Piece]:
    """The rows as pieces: none without any row, several of many.

    >>> [piece.kind for piece in pack_rows(0, "numbers", pa.table({"n": [1, 2]}))]
    ['numbers']
    """
    rows = rows.combine_chunks()
    cuts = 1 + rows.nbytes // _PIECE_BYTES
    length = max(1, -(-rows.num_rows // cuts))
    for start in range(0, rows.num_rows, length):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, rows.schema, options=_PACKED) as stream:
            stream.write_table(rows.slice(start, length))
        yield Piece(shard, kind, sink.getvalue().to_pybytes())


def unpack_rows(data: bytes) -> pa.Table:
    """The rows again."""
    with pa.ipc.open_stream(data) as stream:
        return stream.read_all()


def all_rows(pieces: Iterable[Piece], kind: str, schema: pa.Schema) -> pa.Table:
    """The rows of all pieces of a kind, as one table."""
    tables = [unpack_rows(piece.data) for piece in pieces if piece.kind == kind]
    return pa.concat_tables([schema.empty_table(), *tables])


def pack_value(shard: int, kind: str, value: Any) -> Piece:
    """A value of Python as a piece; what is large is compressed."""
    data = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    if len(data) > _LARGE:
        packed = pa.compress(data, codec="lz4", asbytes=True)
        data = _PACKED_VALUE + len(data).to_bytes(8, "big") + packed
    return Piece(shard, kind, data)


def unpack_value(data: bytes) -> Any:
    """The value again."""
    if data.startswith(_PACKED_VALUE):
        size = int.from_bytes(data[len(_PACKED_VALUE) : len(_PACKED_VALUE) + 8], "big")
        rest = memoryview(data)[len(_PACKED_VALUE) + 8 :]
        data = pa.decompress(rest, size, codec="lz4", asbytes=True)
    return pickle.loads(data)  # noqa: S301 - bytes that a task of this run wrote


def all_values(pieces: Iterable[Piece], kind: str) -> Iterator[Any]:
    """The values of all pieces of a kind."""
    return (unpack_value(piece.data) for piece in pieces if piece.kind == kind)
