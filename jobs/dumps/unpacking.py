"""files -> lines, without Spark and in bounded memory: plain files and archives, sound or not.

For the engine that has no Spark, and for what Spark cannot read: archives that are damaged, and
lines that are too long for a row.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from jobs.bounds import Bounds
from jobs.dumps.statements import BEGINNING, Refused
from jobs.storage import Location

_CHUNK = 1 << 20
#: A line of an archive counts as so many bytes at least: the shortest envelope has more.
_LEAST_LINE = 100


class Line(NamedTuple):
    """A line without its line feed, and its bytes; of one that is too long the beginning alone."""

    text: bytes
    size: int


class Archive:
    """How much came out of a .gz so far, against the bounds.

    Ten kilobytes can hold ten megabytes, and a gigabyte a terabyte, where nothing but one byte is
    repeated. Lines that repeat themselves take 15 bits for 258 bytes at best.
    """

    def __init__(self, size: int, bounds: Bounds) -> None:
        self._most_bytes = size * bounds.archive_expansion
        self._bounds = bounds
        self._bytes = self._lines = 0

    def refuses(self, line_bytes: int) -> Refused | None:
        """Why the next line and all after it are not to be read; None where it is."""
        self._lines += 1
        self._bytes += max(line_bytes + 1, _LEAST_LINE)
        if self._lines > self._bounds.archive_lines:
            most, name = f"{self._bounds.archive_lines:,} lines in a .gz", "archive_lines"
        elif self._bytes > self._most_bytes:
            most = f"{self._bounds.archive_expansion:,} times as much text as a .gz has bytes"
            name = "archive_expansion"
        else:
            return None
        return Refused(
            f"expected at most {most} (bounds.{name}), came more: from this line on nothing was "
            "read",
            BEGINNING,
        )


class Lines:
    """The lines of a file, and then what is wrong with it; the path as Spark names it.

    They end at a line feed alone, the last one also where there is none. Of a damaged archive come
    the lines before the damage, and ``problem`` is what it is.
    """

    def __init__(self, path: str, bounds: Bounds) -> None:
        self.problem: str | None = None
        self.is_archive = path.endswith(".gz")
        self._path = path
        self._bounds = bounds

    def __iter__(self) -> Iterator[Line]:
        chunks = self._unpacked() if self.is_archive else _chunks(self._path)
        return split_lines(chunks, self._bounds.line_bytes)

    def _unpacked(self) -> Iterator[bytes]:
        """The text of a .gz of any number of members, up to where it is damaged."""
        member = zlib.decompressobj(wbits=31)
        is_begun = False
        for chunk in _chunks(self._path):
            packed, text = chunk, b""
            # What fills a whole chunk may not be all that the bytes so far hold.
            while packed or len(text) == _CHUNK:
                is_begun = is_begun or bool(packed)
                try:
                    text = member.decompress(packed, _CHUNK)
                except zlib.error as error:
                    self.problem = f"the gzip stream is damaged: {error}"
                    return
                yield text
                packed = member.unconsumed_tail
                if member.eof:
                    packed, is_begun = member.unused_data, False
                    member = zlib.decompressobj(wbits=31)
        if is_begun:
            self.problem = "the gzip stream ends early"


def split_lines(chunks: Iterable[bytes], most_bytes: int) -> Iterator[Line]:
    """The lines of a text that comes in chunks; no more than a chunk and ``most_bytes`` are held.

    >>> [tuple(line) for line in split_lines([b"a", b"b\\n\\nc"], 10)]
    [(b'ab', 2), (b'', 0), (b'c', 1)]
    """
    begun: list[bytes] = []
    size = 0
    for chunk in chunks:
        first, *others = chunk.split(b"\n")
        for text in others:
            yield _line([*begun, first], size + len(first), most_bytes)
            begun, size, first = [], 0, text
        size += len(first)
        if size <= most_bytes or not begun:
            begun.append(first)
    if size:
        yield _line(begun, size, most_bytes)


def _line(parts: list[bytes], size: int, most_bytes: int) -> Line:
    text = b"".join(parts)
    return Line(text if size <= most_bytes else text[:BEGINNING], size)


def _chunks(path: str) -> Iterator[bytes]:
    location = Location(path)
    with location.file_system.open_input_stream(location.base, compression=None) as stream:
        while data := stream.read(_CHUNK):
            yield data
