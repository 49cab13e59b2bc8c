"""Manifest of a run, by which a reader checks that all of it is there, and as it was written.

A manifest names every file of every table with its size, its rows and its digest, and has a digest
of itself. It is JSON: a person who has lost everything else can read it.

What was written is read back before it counts, rows by the footers and bytes by the digest: an
error of a disk, or another process that clears the folder, ends the run and not the report. On
another machine a small table is read whole for it, once: its readers get these bytes
(``kept_file``).
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from ..errors import DamagedError
from .location import Location, parquet_of

if TYPE_CHECKING:  # it imports pandas, some 55 MiB
    import pyarrow.dataset as ds

_DIGEST = "digest"
_REMEDY = ": restore the file, or run that date again"
#: Digests of tables on other machines are compared up to so many bytes; above it names, sizes and
#: the checksums of Parquet's pages have to do.
_MOST_REMOTE_BYTES = 256 << 20
#: A table of up to so many bytes is read whole; of a larger one what is asked for, where it lies.
_MOST_OF_A_TABLE = 8 << 20
#: Files of tables on other machines, each read once in a process and compared with its manifest: a
#: name has the id of its run in it, so that no other bytes are ever published under it. Of the most
#: bytes in all those go first that nobody asked for longest.
_KEPT: OrderedDict[str, pa.Buffer] = OrderedDict()
_MOST_KEPT = 64 << 20
_LOCK = threading.Lock()


@dataclass(frozen=True)
class TableFile:
    """A file of a table: its path below the root of all tables, bytes, rows, and SHA-256."""

    path: str
    size: int
    rows: int
    sha256: str


@dataclass(frozen=True)
class TableFiles:
    """All files of one table of a run, as they were when the run was published."""

    files: tuple[TableFile, ...]

    @property
    def rows(self) -> int:
        """The rows of the table."""
        return sum(file.rows for file in self.files)

    @property
    def size(self) -> int:
        """The bytes of the table."""
        return sum(file.size for file in self.files)

    @classmethod
    def written(cls, root: Location, table: Location, rows: int) -> TableFiles:
        """Lists what lies there now; DamagedError where it has not the rows that were written."""
        table.sync(root)
        infos = table.files()
        is_small = _is_small(root, sum(info.size for info in infos))
        found = cls(tuple(_described(root, info, is_small=is_small) for info in infos))
        if not found.files or found.rows != rows:
            raise DamagedError(
                f"{rows:,} rows were written to {table}, and {found.rows:,} are there in "
                f"{len(found.files)} files: nothing was published; run it again"
            )
        return found

    def dataset(self, root: Location) -> ds.Dataset:
        """The table as PyArrow reads it; DamagedError where a file is gone or is another."""
        self.check(root)
        return self.parquet(root)

    def parquet(self, root: Location) -> ds.Dataset:
        """The table as PyArrow reads it, which was written or checked by this process."""
        if _is_small(root, self.size):
            return parquet_of([(_content(root, file), file.size) for file in self.files])
        paths = [(f"{root.base}/{file.path}", file.size) for file in self.files]
        return parquet_of(paths, root.file_system)

    def below(self, folder: str) -> TableFiles:
        """The same files, where they were moved to a folder below the root."""
        return TableFiles(tuple(replace(file, path=f"{folder}/{file.path}") for file in self.files))

    def check(self, root: Location) -> None:
        """DamagedError where a file is gone, or is not what was published."""
        if _is_small(root, self.size):
            for file in self.files:
                _content(root, file)
            return
        self.check_sizes(root)
        if not root.is_local and self.size > _MOST_REMOTE_BYTES:
            return
        for file in self.files:
            _check(root, file, file.size, _sha256(root, f"{root.base}/{file.path}"))

    def check_sizes(self, root: Location) -> None:
        """DamagedError where a file is gone, or has another size."""
        infos = root.file_system.get_file_info([f"{root.base}/{file.path}" for file in self.files])
        for file, info in zip(self.files, infos, strict=True):
            if info.type != pafs.FileType.File:
                raise _missing(root, file)
            _check(root, file, info.size)

    @classmethod
    def from_json(cls, values: Sequence[Mapping[str, Any]]) -> TableFiles:
        """Reads files of a manifest; TypeError where it has other keys."""
        return cls(tuple(TableFile(**value) for value in values))


def _is_small(root: Location, size: int) -> bool:
    """True if a table lies on another machine and is read whole."""
    return not root.is_local and size <= _MOST_OF_A_TABLE


def _content(root: Location, file: TableFile) -> pa.Buffer:
    """The bytes of a file as they were published, read once; DamagedError where they are others."""
    place = root / file.path
    if (held := kept_file(place.uri)) is not None:
        return held
    try:
        data = place.read_bytes()
    except FileNotFoundError:
        raise _missing(root, file) from None
    _check(root, file, len(data), hashlib.sha256(data).hexdigest())
    return _keep_file(place.uri, data)


def _check(root: Location, file: TableFile, size: int, sha256: str | None = None) -> None:
    """DamagedError where a file has another size than was published, or another digest."""
    if size != file.size:
        raise DamagedError(
            f"{root}/{file.path} has {size:,} bytes, and {file.size:,} were published{_REMEDY}"
        )
    if sha256 not in (None, file.sha256):
        raise DamagedError(f"{root}/{file.path} is not what was published{_REMEDY}")


def _missing(root: Location, file: TableFile) -> DamagedError:
    return DamagedError(f"{root}/{file.path} is missing, and was published{_REMEDY}")


def _described(root: Location, info: pafs.FileInfo, *, is_small: bool) -> TableFile:
    path = info.path.removeprefix(root.base).lstrip("/")
    if not is_small:
        rows = pq.read_metadata(info.path, filesystem=root.file_system).num_rows
        return TableFile(path, info.size, rows, _sha256(root, info.path))
    place = root / path
    data = place.read_bytes()
    rows = pq.read_metadata(pa.BufferReader(data)).num_rows
    _keep_file(place.uri, data)
    return TableFile(path, len(data), rows, hashlib.sha256(data).hexdigest())


def _sha256(root: Location, path: str) -> str:
    with root.file_system.open_input_stream(path, compression=None) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def kept_file(uri: str) -> pa.Buffer | None:
    """The bytes of a file that this process has read, and compared with its manifest."""
    with _LOCK:
        if uri in _KEPT:
            _KEPT.move_to_end(uri)
        return _KEPT.get(uri)


def _keep_file(uri: str, data: bytes) -> pa.Buffer:
    with _LOCK:
        _KEPT[uri] = pa.py_buffer(data)
        while sum(buffer.size for buffer in _KEPT.values()) > _MOST_KEPT:
            _KEPT.popitem(last=False)
        return pa.py_buffer(data)


def forget_files() -> None:
    """Forgets all of them, as another process that reads from now on."""
    with _LOCK:
        _KEPT.clear()


def sealed(values: Mapping[str, Any]) -> str:
    """The values as JSON, with a digest of all the others.

    >>> unsealed(sealed({"run_id": "a"}))
    {'run_id': 'a'}
    """
    return json.dumps({**values, _DIGEST: _digest(values)}, ensure_ascii=False) + "\n"


def unsealed(text: str | bytes) -> dict[str, Any]:
    """The values of a manifest; ValueError, with what is wrong, where it is not as written."""
    try:
        values = json.loads(text)
    except (UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"no JSON: {error}") from error
    if not isinstance(values, dict):
        raise ValueError(f"expected a JSON object, came {type(values).__name__}")
    if _DIGEST not in values:
        raise ValueError("it has no digest")
    if values.pop(_DIGEST) != _digest(values):
        raise ValueError("its digest is another than that of its text")
    return values


def _digest(values: Mapping[str, Any]) -> str:
    text = json.dumps(values, ensure_ascii=True, sort_keys=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()
