"""files, or rows -> lines, in bounded memory: plain files and archives, sound or not."""

import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from hashlib import blake2b
from types import SimpleNamespace
from typing import Any, NamedTuple

import pyarrow as pa

from rebalance_core.texts import Text

from ..config.bounds import Bounds, beyond
from ..engines.engine import Slice
from ..storage import Location

#: The number of bytes that are kept of a line longer than the bounds allow.
BEGINNING = 1_000
_CHUNK = 1 << 20
#: The first bytes of whatever gzip packed (RFC 1952).
_GZIP = b"\x1f\x8b"
#: A line of an archive counts as so many bytes at least: the shortest envelope has more.
_LEAST_LINE = 100


#: The bytes of files that this process has read, for whoever shows how far it is.
READ = SimpleNamespace(bytes=0)


class Line(NamedTuple):
    """A line without its line feed, and its bytes; of one that is too long the beginning alone.

    ``has_end``: whether there is a line feed; the last line of a text may have none. Of a row
    ``file`` is where it comes from, and ``order`` its place among all lines, which no slice says.
    """

    text: bytes
    size: int
    has_end: bool = True
    file: str | None = None
    order: int | None = None


class Archive:
    """The growth of a .gz so far, against the bounds.

    Ten kilobytes can hold ten megabytes, and a gigabyte a terabyte, where nothing but one byte is
    repeated. Lines that repeat themselves take 15 bits for 258 bytes at best.
    """

    def __init__(self, size: int, bounds: Bounds) -> None:
        self._most_bytes = size * bounds.archive_expansion
        self._bounds = bounds
        self._bytes = self._lines = 0

    def refuses(self, line_bytes: int) -> str | None:
        """The reason why the next line and all after it are not read; None where they are."""
        self._lines += 1
        self._bytes += max(line_bytes + 1, _LEAST_LINE)
        if self._lines > self._bounds.archive_lines:
            most, name = f"{self._bounds.archive_lines:,} lines in a .gz", "archive_lines"
        elif self._bytes > self._most_bytes:
            most = f"{self._bounds.archive_expansion:,} times as much text as a .gz has bytes"
            name = "archive_expansion"
        else:
            return None
        so = "came more: from this line on nothing was read"
        return f"expected at most {most} (bounds.{name}), {so}"


def too_long(came: int, bounds: Bounds) -> str:
    """The reason why a line of so many bytes is not to be read."""
    reason = beyond("line_bytes", bounds.line_bytes, "bytes in a line", came)
    return f"{reason}; its beginning is kept"


class SliceLines:
    """The lines of a slice, and then what is wrong with its file.

    They end at a line feed alone, the last one also where there is none. A range has the lines that
    begin in it. A damaged archive gives the lines before the damage, and ``problem`` is what it is;
    also where the file is not as long as it was when it was listed. ``content``: the bytes of the
    file, where they are there.
    """

    def __init__(self, slice_: Slice, bounds: Bounds, content: pa.Buffer | None = None) -> None:
        self.problem: Text | None = None
        self.is_archive = slice_.path.endswith(".gz")
        self._slice = slice_
        self._bounds = bounds
        self._content = content

    def __iter__(self) -> Iterator[Line]:
        if not self._slice.is_whole:
            return self._lines_of_range()
        chunks = self._unpacked() if self.is_archive else self._chunks()
        return split_lines(chunks, self._bounds.line_bytes)

    def _chunks(self) -> Iterator[bytes]:
        """All that was listed of the file: what was added meanwhile may end in half a line."""
        left = self._slice.size
        for data in _chunks(self._slice.path, 0, self._content):
            yield data[:left]
            left -= len(data)
            if left < 0:
                self.problem = Text("it grew while it was read")
                return
        if left:
            self.problem = Text("it became shorter while it was read")

    def _lines_of_range(self) -> Iterator[Line]:
        # The byte before shows whether a line begins with the range.
        place = max(self._slice.start - 1, 0)
        lines = split_lines(_chunks(self._slice.path, place), self._bounds.line_bytes)
        if self._slice.start:
            place += next(lines, Line(b"", 0)).size + 1
        for line in lines:
            if place >= self._slice.stop:
                if self._slice.stop == self._slice.size:
                    self.problem = Text("it grew while it was read")
                return
            yield line
            place += line.size + 1
        if self._slice.stop == self._slice.size < place - 1:
            self.problem = Text("it grew while it was read")

    def _unpacked(self) -> Iterator[bytes]:
        """The text of a .gz of any number of members, up to where it is damaged."""
        member = zlib.decompressobj(wbits=31)
        is_begun = False
        for number, chunk in enumerate(self._chunks()):
            if not number and not chunk.startswith(_GZIP[: len(chunk)]):
                self.problem = Text("it is not packed by gzip: give it a name without .gz")
                return
            packed, text = chunk, b""
            # Text that fills a whole chunk may not be all that the bytes so far hold.
            while packed or len(text) == _CHUNK:
                is_begun = is_begun or bool(packed)
                before = member.copy()
                try:
                    text = member.decompress(packed, _CHUNK)
                except zlib.error as error:
                    self.problem = Text("the gzip stream is damaged: {error}", error=str(error))
                    yield from _before_damage(before, packed)
                    return
                yield text
                packed = member.unconsumed_tail
                if member.eof:
                    packed, is_begun = member.unused_data, False
                    member = zlib.decompressobj(wbits=31)
        if is_begun:
            self.problem = self.problem or Text(
                "the gzip stream ends early: copy the file again when it is whole"
            )


class RowLines:
    """The lines that are rows: of a column ``line``, of text or bytes, and one of files, ``file``.

    Rows have no order, and a task any of them. So the order of lines is made of what they say: of
    statements of one moment the same one counts, however the rows lie.
    """

    is_archive = False
    problem: Text | None = None

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        self._batches = batches

    def __iter__(self) -> Iterator[Line]:
        for batch in self._batches:
            files: list[Any] = batch.column("file").to_pylist()
            for value, file in zip(batch.column("line").to_pylist(), files, strict=True):
                text = value or b""
                order = int.from_bytes(blake2b(text, digest_size=7).digest())
                yield Line(text, len(text), True, file, order)


def _before_damage(member: "zlib._Decompress", packed: bytes) -> Iterator[bytes]:
    """The text of damaged bytes up to the damage, byte by byte: what fails gives nothing of what it
    had so far.

    >>> member, packed = zlib.compressobj(wbits=31), b""
    >>> packed = member.compress(b"a" * 9) + member.flush(zlib.Z_FULL_FLUSH) + b"\\xff" * 99
    >>> b"".join(_before_damage(zlib.decompressobj(wbits=31), packed))
    b'aaaaaaaaa'
    """
    with suppress(zlib.error):
        for place in range(len(packed)):
            yield member.decompress(packed[place : place + 1])


def split_lines(chunks: Iterable[bytes], most_bytes: int) -> Iterator[Line]:
    """The lines of a text that comes in chunks; no more than a chunk and ``most_bytes`` are held.

    >>> [line[:3] for line in split_lines([b"a", b"b\\n\\nc"], 10)]
    [(b'ab', 2, True), (b'', 0, True), (b'c', 1, False)]
    """
    begun: list[bytes] = []
    size = 0
    for chunk in chunks:
        first, *others = chunk.split(b"\n")
        if others:
            yield _line(b"".join([*begun, first]), size + len(first), most_bytes)
            begun, size, first = [], 0, others.pop()
        for text in others:
            yield _line(text, len(text), most_bytes)
        size += len(first)
        if size <= most_bytes or not begun:
            begun.append(first)
    if size:
        yield _line(b"".join(begun), size, most_bytes)._replace(has_end=False)


def _line(text: bytes, size: int, most_bytes: int) -> Line:
    return Line(text if size <= most_bytes else text[:BEGINNING], size)


def _chunks(path: str, start: int, content: pa.Buffer | None = None) -> Iterator[bytes]:
    with _opened(path, start) if content is None else pa.BufferReader(content) as stream:
        if start:
            stream.seek(start)
        while data := stream.read(_CHUNK):
            READ.bytes += len(data)
            yield data


def _opened(path: str, start: int) -> pa.NativeFile:
    location = Location(path)
    if start:
        return location.file_system.open_input_file(location.base)
    return location.file_system.open_input_stream(location.base, compression=None)
