"""The folder of dumps: one file a round, which is there whole or not at all.

    DIR/2026-11-20/100000.000.jsonl.gz         a round, by its snapshot_time
    DIR/.collect/                              the lock, files under way, what is remembered

A round is written beside the others under a hidden name, which no reader of dumps takes, and gets
its name when all of it is on the disk.
"""

import fcntl
import gzip
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from .. import disk
from ..errors import AuditError
from ..instants import Instant, to_datetime
from .memory import Memory

#: Begins with a dot: neither Spark nor the audit looks into it.
_HIDDEN = ".collect"
#: The best ratio of size to time for this text; 9 takes three times as long for 2 %.
_GZIP_LEVEL = 6
#: So many characters of a body are written at a time.
_PIECE = 1 << 16


class DumpFolder:
    """The folder; its methods raise OSError where the disk does."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._hidden = root / _HIDDEN

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keeps other collectors out of the folder; AuditError where one is in it.

        What a collector left that was killed is removed. The lock ends with the process.
        """
        disk.make_private(self._hidden)
        with (self._hidden / "lock").open("a+", encoding="utf-8") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                lock.seek(0)
                raise AuditError(
                    f"another collector (process {lock.read().strip() or '?'}) writes into "
                    f"{self.root}; stop it, or give this one another folder"
                ) from error
            lock.truncate(0)
            lock.write(f"{os.getpid()}\n")
            lock.flush()
            for left in self._hidden.glob("*.tmp"):
                left.unlink()
            yield

    def path(self, snapshot_time: Instant, name: str) -> Path:
        """Where the round of this time lies.

        >>> str(DumpFolder(Path("dumps")).path(1_000, "east"))
        'dumps/1970-01-01/000000.001-east.jsonl.gz'
        """
        time = to_datetime(snapshot_time)
        label = f"-{_file_name(name)}" if name else ""
        at = f"{time:%H%M%S}.{time.microsecond // 1000:03d}"
        return self.root / f"{time:%Y-%m-%d}" / f"{at}{label}.jsonl.gz"

    @contextmanager
    def new_round(self, snapshot_time: Instant, name: str) -> "Iterator[RoundFile]":
        """A round's file to write lines to; it is there when the block has ended without error."""
        round_file = RoundFile(self._hidden / f"{_file_name(name) or 'round'}.tmp")
        try:
            yield round_file
            round_file.publish(self.path(snapshot_time, name))
        finally:
            round_file.remove()

    def remembered(self, name: str) -> Memory:
        """What was remembered; nothing where there is nothing that can be read."""
        try:
            return Memory.from_json(self._memory(name).read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            return Memory()

    def remember(self, name: str, memory: Memory) -> None:
        """Keeps what is to be remembered."""
        disk.replace(self._memory(name), f"{memory.to_json()}\n".encode(), mode=0o600)

    def _memory(self, name: str) -> Path:
        return self._hidden / f"memory-{_file_name(name) or 'round'}.json"


class RoundFile:
    """The lines of a round under way."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._raw = _private(path)
        # The archive records no name and no time: equal lines make equal files.
        self._lines = gzip.GzipFile("", "wb", _GZIP_LEVEL, self._raw, mtime=0)
        self.lines = 0

    def write(self, line: Mapping[str, Any]) -> None:
        """Adds a line; its body in pieces, for as JSON it may be many times as long."""
        body = line.get("body", "")
        if len(body) <= _PIECE:
            self._lines.write(_json(line) + b"\n")
        else:
            envelope = {name: value for name, value in line.items() if name != "body"}
            self._lines.write(_json(envelope)[:-1] + b', "body": "')
            for start in range(0, len(body), _PIECE):
                self._lines.write(_json(body[start : start + _PIECE])[1:-1])
            self._lines.write(b'"}\n')
        self.lines += 1

    def publish(self, path: Path) -> None:
        """Gives the file its name, after all of it is on the disk."""
        self._lines.close()
        self._raw.flush()
        os.fsync(self._raw.fileno())
        disk.make_private(path.parent)
        disk.rename(self._path, path)

    def remove(self) -> None:
        """Closes it, and removes what has no name yet."""
        # What cannot be written is not wanted any more.
        for file in (self._lines, self._raw):
            with suppress(OSError):
                file.close()
        self._path.unlink(missing_ok=True)


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode(errors="replace")


def _private(path: Path) -> BinaryIO:
    """A new file that its owner alone may read: it has the true ids of clients."""
    path.unlink(missing_ok=True)
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


def _file_name(name: str) -> str:
    """The name as part of a file's name.

    >>> _file_name("east/1"), _file_name("")
    ('east_1', '')
    """
    return re.sub(r"[^A-Za-z0-9._-]", "_", name)
