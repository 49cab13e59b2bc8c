"""The folder of dumps: one file a round, which is there whole or not at all.

    DIR/2026-11-20/100000.000.jsonl.gz         a round, by its snapshot_time
    DIR/.collect/                              the lock, files under way, what is remembered

A round is written beside the others under a hidden name, which no reader of dumps takes, and gets
its name when all of it is on the disk. Old days are removed: whole folders, as they were made, and
nothing else.
"""

import gzip
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from rebalance_core.english import names

from ..declared.instants import Instant, is_date, to_datetime
from ..errors import AuditError, InputError
from ..storage import disk
from ..storage.retention import PruneResult, Retention
from ..texts.failures import sentence_of
from .memory import Memory

#: Begins with a dot: neither Spark nor the audit looks into it.
_HIDDEN = ".collect"
_WHAT = "days of dumps"
#: The name of a round: see ``DumpFolder.path``.
_ROUND = re.compile(r"\d{6}\.\d{3}(?:-[A-Za-z0-9._-]+)?\.jsonl\.gz", re.ASCII)
#: A day on its way out: no reader of dumps looks into a folder with such a name.
_GOING = ".removed-"
#: The best ratio of size to time for this text; 9 takes three times as long for 2 %.
_GZIP_LEVEL = 6
#: The number of characters of a body that are written at a time.
_PIECE = 1 << 16


class DumpFolder:
    """The folder; its methods raise OSError where the disk does."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._hidden = root / _HIDDEN

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keeps other collectors out of the folder; AuditError where one is in it.

        The leftovers of a killed collector are removed. The lock ends with the process.
        """
        disk.make_private(self._hidden)
        file = self._hidden / "lock"
        file.touch()
        with disk.locked(file) as is_mine:
            if not is_mine:
                raise AuditError(
                    f"another collector (process {file.read_text().strip() or '?'}) writes into "
                    f"{self.root}; stop it, or give this one another folder"
                )
            file.write_text(f"{os.getpid()}\n")
            for left in self._hidden.glob("*.tmp"):
                left.unlink()
            yield

    def path(self, snapshot_time: Instant, name: str) -> Path:
        """The path of the round of this time.

        >>> str(DumpFolder(Path("dumps")).path(1_000, "east"))
        'dumps/1970-01-01/000000.001-east.jsonl.gz'
        """
        time = to_datetime(snapshot_time)
        label = f"-{_label(name)}" if name else ""
        at = f"{time:%H%M%S}.{time.microsecond // 1000:03d}"
        return self.root / f"{time:%Y-%m-%d}" / f"{at}{label}.jsonl.gz"

    @contextmanager
    def new_round(self, snapshot_time: Instant, name: str) -> "Iterator[RoundFile]":
        """A round's file to write lines to; it is there when the block has ended without error."""
        under_way, path = self._hidden / f"{_label(name)}.tmp", self.path(snapshot_time, name)
        under_way.unlink(missing_ok=True)
        # Its owner alone may read it: it has the true ids of clients.
        raw = os.fdopen(os.open(under_way, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
        # The archive records no name and no time: equal lines make equal files.
        lines = gzip.GzipFile("", "wb", _GZIP_LEVEL, raw, mtime=0)
        try:
            yield RoundFile(lines)
            lines.close()
            raw.flush()
            os.fsync(raw.fileno())
            disk.make_private(path.parent)
            disk.rename(under_way, path)
        finally:
            # Files that cannot be written are not wanted any more.
            for file in (lines, raw):
                with suppress(OSError):
                    file.close()
            under_way.unlink(missing_ok=True)

    def remembered(self, name: str) -> Memory:
        """The memory of the rounds before; empty where none can be read."""
        try:
            return Memory.from_json(self._memory(name).read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            return Memory()

    def remember(self, name: str, memory: Memory) -> None:
        """Keeps what is to be remembered."""
        disk.replace(self._memory(name), f"{memory.to_json()}\n".encode(), mode=0o600)

    @property
    def asked_clients(self) -> Path:
        """The file of the clients that were asked and have not answered, whatever the cluster."""
        return self._hidden / "asked-clients.db"

    def _memory(self, name: str) -> Path:
        return self._hidden / f"memory-{_label(name)}.json"


class RoundFile:
    """The lines of a round under way."""

    def __init__(self, lines: gzip.GzipFile) -> None:
        self._lines = lines
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


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode(errors="replace")


def _label(name: str) -> str:
    """The name of a cluster as part of a file's name.

    >>> _label("east/1"), _label("")
    ('east_1', 'round')
    """
    return re.sub(r"[^A-Za-z0-9._-]", "_", name) or "round"


# ---------------------------------------------------------------- old days


def prune_dumps(root: Path, retention: Retention) -> PruneResult:
    """Removes the days of a folder of dumps that are too old, counted back from the last one.

    A day goes in one step, so that nobody ingests a part of its rounds. It stays where there is
    anything in it but rounds. InputError where there is no such folder.
    """
    if not root.is_dir():
        raise InputError(f"expected a folder of dumps on this machine, there is none: {root}")
    pruned = PruneResult()
    if not retention.dry_run:
        for left in sorted(root.glob(f"{_GOING}*")):
            _delete(left, pruned)
    named = {path.name: path for path in sorted(root.iterdir()) if is_date(path.name)}
    days = {day: path for day, path in named.items() if path.is_dir() and not path.is_symlink()}
    first_kept = retention.first_kept(days)
    for day, path in days.items():
        if day >= first_kept:
            continue
        files = sorted(path.iterdir())
        others = [file.name for file in files if not _is_round(file)]
        if others:
            pruned.left.append(f"{path} stays: it has other files than rounds: {names(others, 3)}")
            continue
        size = sum(file.stat().st_size for file in files)
        try:
            if not retention.dry_run:
                _delete(path.rename(root / f"{_GOING}{day}"), pruned)
            pruned.removed[_WHAT].append((day, len(files), size))
        except OSError as error:
            pruned.failed.append(f"{path} was not removed: {sentence_of(error)}")
    return pruned


def _is_round(path: Path) -> bool:
    return bool(_ROUND.fullmatch(path.name)) and path.is_file() and not path.is_symlink()


def _delete(folder: Path, pruned: PruneResult) -> None:
    """Removes a day that has its hidden name; the next time goes on where this one is stopped."""
    try:
        for path in folder.iterdir():
            if _is_round(path):
                path.unlink()
        folder.rmdir()
    except OSError as error:
        pruned.failed.append(f"{folder} was not removed: {sentence_of(error)}")
