"""lines -> rows: what Spark carries between the reading of a dump and the groups in it.

A row is one of three things. A **statement** has ``kind`` and all that belongs to it; ``source``
and ``content`` are bytes, because only Python looks into them, and equal ones are equal bytes. A
**refused** line has its ``reason``. And each **block** of a file has one row with its number of
``lines``, from which they are counted and numbered, and their ``bytes``. Needs no Spark.
"""

from __future__ import annotations

import marshal
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

import pyarrow as pa

from jobs.bounds import DEFAULT_BOUNDS, Bounds
from jobs.dumps.memory import Memory
from jobs.dumps.statement import (
    CONSUME_STATS,
    CONSUMER_CONNECTION,
    CONSUMER_RUNNING_INFO,
    CONTENT_TYPES,
    TOPIC_ROUTE,
    Connection,
    Content,
    InfoQueue,
    LogLine,
    Offset,
    RouteBroker,
    Source,
    Statement,
)
from jobs.dumps.statements import REPEATED, Reader, Refused, as_quarantined
from jobs.dumps.times import PlausibleTimes
from jobs.dumps.unpacking import Archive

_TYPES: Mapping[str, pa.DataType] = {
    "string": pa.string(),
    "bigint": pa.int64(),
    "binary": pa.binary(),
}


def _schema(ddl: str) -> pa.Schema:
    columns = [column.split() for column in ddl.split(", ")]
    return pa.schema([(name.strip("`"), _TYPES[type_]) for name, type_ in columns])


#: What ``to_rows`` reads. ``row`` counts on within one block of one file.
LINES = _schema("file string, block bigint, row bigint, line binary")

#: Times in microseconds since 1970 UTC. ``log`` and ``ahead`` are of log lines with a printed time:
#: which log of the cluster, and by how much the time, taken for UTC, is ahead of ``collected_at``.
ROWS_DDL = (
    "kind string, cluster string, subject string, snapshot_time bigint, collected_at bigint, "
    "`order` bigint, source binary, content binary, log string, ahead bigint, reason string, "
    "line string, line_bytes binary, file string, block bigint, row bigint, lines bigint, "
    "bytes bigint"
)
ROWS = _schema(ROWS_DDL)

#: Files come one after the other in the order of statements, and lines by their place in a file:
#: this many bits hold the place, a size of 16 TiB.
_PLACE_BITS = 44

#: The tuples within a content, by the field that holds them.
_PARTS: Mapping[str, tuple[str, type[tuple[Any, ...]]]] = {
    CONSUMER_CONNECTION: ("connections", Connection),
    TOPIC_ROUTE: ("brokers", RouteBroker),
    CONSUMER_RUNNING_INFO: ("queues", InfoQueue),
    CONSUME_STATS: ("offsets", Offset),
}


def to_rows(
    batches: Iterable[pa.RecordBatch],
    files: Sequence[str],
    bounds: Bounds = DEFAULT_BOUNDS,
    plausible: PlausibleTimes | None = None,
    archives: Mapping[str, int] | None = None,
) -> Iterator[pa.RecordBatch]:
    """The rows of ``LINES`` in batches, as they come in one task.

    A block of a file is read by one task, from its first line to its last, as Spark does it.
    ``files``: all files of the dump in their order, for statements that were collected at the same
    time: of two files the later one counts. ``archives``: the bytes of each .gz that is held to
    the bounds; what it has beyond them is one refused line. ``plausible``: see ``Reader``.
    """
    ranks = {file: number for number, file in enumerate(files)}
    writer = _Writer(ranks, Reader(bounds, plausible), bounds, archives or {})
    for batch in batches:
        columns = [batch.column(name).to_pylist() for name in LINES.names]
        for file, block, row, line in zip(*columns, strict=True):
            writer.add(file, block, row, line)
        yield writer.batch()
    writer.end_block()
    yield writer.batch()


class _Writer:
    """Rows of lines, column by column."""

    def __init__(
        self,
        ranks: Mapping[str, int],
        reader: Reader,
        bounds: Bounds,
        archives: Mapping[str, int],
    ) -> None:
        self._ranks = ranks
        self._reader = reader
        self._bounds = bounds
        self._archives = archives
        self._archive: Archive | None = None
        self._is_over = False
        self._encoded: Memory[int, tuple[object, bytes]] = Memory()
        self._rows: list[tuple[object, ...]] = []
        self._block: tuple[str, int] | None = None
        self._first_row = self._lines = self._bytes = self._place = 0

    def add(self, file: str, block: int, row: int, line: bytes) -> None:
        if (file, block) != self._block:
            self.end_block()
            self._block, self._first_row, self._lines = (file, block), row, 0
            self._bytes, self._is_over = 0, False
            self._place = (self._ranks.get(file, 0) << _PLACE_BITS) + block
            size = self._archives.get(file)
            self._archive = None if size is None else Archive(size, self._bounds)
        if self._is_over:
            return
        over = None if self._archive is None else self._archive.refuses(len(line))
        self._is_over = over is not None
        read = over or self._reader.read(line, self._place)
        self._lines += 1
        self._bytes += len(line) + 1
        self._place += len(line) + 1
        if isinstance(read, Refused):
            self._refuse(read.reason, file, block, row, read.kept(line))
        else:
            self._rows += map(self._row, read)

    def end_block(self) -> None:
        if self._block is not None:
            self._rows.append(
                (*[None] * 13, *self._block, self._first_row, self._lines, self._bytes)
            )
            self._block = None

    def batch(self) -> pa.RecordBatch:
        """The rows since the last batch."""
        columns = list(zip(*self._rows, strict=True)) or [()] * len(ROWS)
        self._rows = []
        arrays = [pa.array(values, field.type) for values, field in zip(columns, ROWS, strict=True)]
        return pa.record_batch(arrays, schema=ROWS)

    def _row(self, statement: Statement) -> tuple[object, ...]:
        log, ahead = None, None
        content, source = statement.content, statement.source
        if isinstance(content, LogLine) and content.printed is not None:
            log = content.client_id if source.process is None else source.process
            ahead = content.printed - statement.collected_at
        encoded = None
        if content is not None:
            repeats = statement.kind in REPEATED
            encoded = self._encode(content) if repeats else encode(content)
        return (*statement[:6], self._encode(source), encoded, log, ahead, *[None] * 8)

    def _refuse(self, reason: str, file: str, block: int, row: int, line: bytes) -> None:
        self._rows.append(
            (*[None] * 10, reason, *as_quarantined(line), file, block, row, None, None)
        )

    def _encode(self, value: tuple[object, ...]) -> bytes:
        """The bytes of a value; a reader gives the same object again for what repeats itself."""
        before = self._encoded.get(id(value))
        if before is not None:
            return before[1]
        encoded = encode(value)
        # With the value itself, so that no other one gets its id.
        self._encoded.remember(id(value), (value, encoded), len(encoded))
        return encoded


def encode(value: tuple[object, ...]) -> bytes:
    """A source or a content as bytes; equal values give equal bytes.

    >>> decode_source(encode(Source(broker_name="b", broker_id=0)))
    Source(broker_name='b', broker_id=0, broker_addr=None, client_id=None, client_addr=None, \
namesrv_addr=None, process=None, code=None, message=None)
    """
    # Version 2: later ones mark what has several references, which differs between equal values.
    return marshal.dumps(_bare(value), 2)  # type: ignore[arg-type]  # texts, numbers, tuples


def _bare(value: tuple[object, ...]) -> tuple[object, ...]:
    return tuple([_bare(each) if isinstance(each, tuple) else each for each in value])


def decode_source(data: bytes) -> Source:
    """The source again."""
    return Source(*marshal.loads(data))  # noqa: S302  # bytes that this task wrote


def decode_content(kind: str, data: bytes) -> Content:
    """The content again."""
    content: Any = CONTENT_TYPES[kind](*marshal.loads(data))  # noqa: S302
    if kind in _PARTS:
        name, type_ = _PARTS[kind]
        parts = getattr(content, name)
        if parts is not None:
            content = content._replace(**{name: tuple([type_(*part) for part in parts])})
    return cast(Content, content)


class Decoder:
    """Makes statements of rows again; to be kept, so that equal bytes become the same object."""

    def __init__(self) -> None:
        self._sources: Memory[bytes, Source] = Memory()
        self._contents: Memory[tuple[str, bytes], Content] = Memory()

    def statements(self, batch: pa.RecordBatch) -> Iterator[Statement]:
        """The statements among the rows of a batch, in its order."""
        columns = [batch.column(name).to_pylist() for name in Statement._fields]
        for kind, cluster, subject, snapshot_time, collected_at, order, source, content in zip(
            *columns, strict=True
        ):
            if kind is not None:
                yield Statement(
                    kind,
                    cluster,
                    subject,
                    snapshot_time,
                    collected_at,
                    order,
                    self._source(source),
                    self._content(kind, content),
                )

    def _source(self, data: bytes) -> Source:
        source = self._sources.get(data)
        return source or self._sources.remember(data, decode_source(data), len(data))

    def _content(self, kind: str, data: bytes | None) -> Content:
        if data is None:
            return None
        if kind not in REPEATED:
            return decode_content(kind, data)
        content = self._contents.get((kind, data))
        if content is None:
            content = decode_content(kind, data)
            self._contents.remember((kind, data), content, 2 * len(data))
        return content
