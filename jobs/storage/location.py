"""Paths and URIs: any file system that PyArrow reaches, by the name that Spark is given."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Sequence
from contextlib import suppress
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.fs as pafs

from ..errors import InputError
from ..texts.shown import visible
from . import disk
from .conditional import put_if_absent

if TYPE_CHECKING:  # it imports pandas, some 55 MiB
    import pyarrow.dataset as ds

_SCHEME = re.compile(r"^([a-zA-Z][a-zA-Z0-9+.-]*)://")
#: The names that Spark has for a file system and PyArrow has not.
_ALIASES = {"s3a": "s3", "s3n": "s3"}
#: The part of a URI that says who may read: never shown.
_CREDENTIALS = re.compile(r"://[^/@]*@")


class Location:
    """A file or folder on some file system, by the same path or URI that Spark is given.

    A URI may have PyArrow's options behind a question mark, which names below it keep:
    ``s3://bucket/reports?endpoint_override=localhost:9000&scheme=http``.

    >>> str(Location("s3://key:secret@bucket/x?region=eu-west-1") / "y")
    's3://bucket/x/y'
    """

    def __init__(self, path: str | Path) -> None:
        text = str(path)
        if not text:
            raise InputError("expected the path of a folder or a file, came an empty text")
        match = _SCHEME.match(text)
        scheme = match[1] if match else "file"
        if scheme == "file":
            if not text.startswith("file:"):
                text = str(Path(text).absolute())
            self._path, self._options = text, ""
        else:
            self._path, _, options = text.partition("?")
            self._options = f"?{options}" if options else ""
        #: PyArrow's file system, and the path there.
        self.file_system, base = file_system_of(self.uri, scheme)
        self.base = base.rstrip("/") or "/"
        self.is_local = scheme == "file"

    @property
    def uri(self) -> str:
        """The URI for Spark: absolute, so that an executor's working directory does not matter."""
        return self._path + self._options

    def __truediv__(self, name: str) -> Location:
        below = copy(self)
        below._path = f"{self._path.rstrip('/')}/{name}"
        below.base = f"{self.base.rstrip('/')}/{name}"
        return below

    def below(self, base: str) -> Location:
        """The location of a path of the file system that lies below."""
        return self / base.removeprefix(self.base).strip("/")

    def __str__(self) -> str:
        """The path for a person: without options and credentials."""
        return visible(_CREDENTIALS.sub("://", self._path))

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.base.rpartition("/")[2]

    @property
    def _parent(self) -> str:
        return self.base.rpartition("/")[0]

    def holds(self, other: Location) -> bool:
        """True if another path is this one or one below it, whatever its name (a link, ``..``).

        >>> reports = Location("lake/reports")
        >>> reports.holds(Location("lake/reports/x")), reports.holds(Location("lake/reports-2"))
        (True, False)
        """
        folder, path = [
            os.path.realpath(each.base) if each.is_local else each.base for each in (self, other)
        ]
        return self.is_local == other.is_local and f"{path}/".startswith(f"{folder.rstrip('/')}/")

    def exists(self) -> bool:
        """True if there is a file or a folder."""
        return bool(self._kind() != pafs.FileType.NotFound)

    def is_folder(self) -> bool:
        """True if there is a folder."""
        return bool(self._kind() == pafs.FileType.Directory)

    def _kind(self) -> pafs.FileType:
        return self.file_system.get_file_info(self.base).type

    def read_bytes(self) -> bytes:
        """Reads the file; FileNotFoundError where there is none."""
        with self.file_system.open_input_stream(self.base, compression=None) as stream:
            return bytes(stream.read())

    def read_text(self) -> str:
        """The text of the file; FileNotFoundError where there is none."""
        return self.read_bytes().decode("utf-8")

    def write_new_text(self, text: str) -> None:
        """Writes a file whose name nobody else has: a claim, a manifest."""
        data = self._ready(text)
        if self.is_local:
            disk.write_new(Path(self.base), data)
        else:
            self._put(data)

    def create_text(self, text: str) -> None:
        """Writes a file that is not there yet; FileExistsError where there is one.

        One of several writers creates it: on a local disk, on HDFS, whose rename refuses a name
        that is there, and in S3, Google Cloud Storage and Azure by ``put_if_absent``. Elsewhere it
        is looked for, written and read back: of two in one moment the last counts, and the other
        one has FileExistsError unless it read back before.
        """
        data = self._ready(text)
        if self.is_local:
            disk.create(Path(self.base), data)
        elif self.file_system.type_name == "hdfs":
            try:
                self._put_beside(data)
            except OSError as error:
                if self.exists():
                    raise FileExistsError(str(self)) from error
                raise
        elif put_if_absent(self.uri, self.file_system, self.base, data):
            # The environment may lead obstore to another server than PyArrow.
            if not self.exists() or self.read_bytes() != data:
                raise OSError(
                    f"{self} was created by obstore, and PyArrow does not find it there: the two "
                    "have different servers or accounts in the environment"
                )
        else:
            if self.exists():
                raise FileExistsError(str(self))
            self._put(data)
            if self.read_bytes() != data:
                raise FileExistsError(str(self))

    def replace_text(self, text: str) -> None:
        """Writes the file so that a reader sees the old text or the new, never a part.

        On a local disk and in an object store by writing beside it and giving that its name, for a
        stream of PyArrow that fails uploads what it has. HDFS cannot rename over a file: there it
        is overwritten, and a reader may meet a part of it.
        """
        data = self._ready(text)
        if self.is_local:
            disk.replace(Path(self.base), data)
        elif self.file_system.type_name == "hdfs":
            self._put(data)
        else:
            self._put_beside(data)

    def _ready(self, text: str) -> bytes:
        """The bytes of a text, after the folder of this file was made."""
        self.file_system.create_dir(self._parent, recursive=True)
        return text.encode("utf-8")

    def _put(self, data: bytes) -> None:
        with self.file_system.open_output_stream(self.base) as stream:
            stream.write(data)

    def _put_beside(self, data: bytes) -> None:
        """Writes a file beside this one, then gives it this name."""
        beside = copy(self)
        beside.base = f"{self._parent}/_{self.name}.{secrets.token_hex(6)}.tmp"
        try:
            beside._put(data)
            self.file_system.move(beside.base, self.base)
        except BaseException:
            beside.delete_file()
            raise

    def children(self) -> list[str]:
        """The names of the files and folders right below, sorted; none where there is no folder."""
        return [info.base_name for info in self.infos()]

    def infos(self, *, recursive: bool = False) -> list[pafs.FileInfo]:
        """The entries of the file system right below, or of all files and folders; sorted."""
        selector = pafs.FileSelector(self.base, allow_not_found=True, recursive=recursive)
        return sorted(self.file_system.get_file_info(selector), key=lambda info: info.path)

    def files(self) -> list[pafs.FileInfo]:
        """Every file of a table, sorted: right here, or in folders named ``key=value``.

        Hidden and marker files are left out, and other folders, as Spark leaves them out: a job
        that is still writing, say.
        """
        found = []
        for info in filter(lambda each: each.is_file, self.infos(recursive=True)):
            *folders, name = info.path.removeprefix(self.base).strip("/").split("/")
            is_hidden = any(part.startswith(("_", ".")) for part in (*folders, name))
            if not is_hidden and all("=" in folder for folder in folders):
                found.append(info)
        return found

    def parquet(self) -> ds.Dataset:
        """The table that was written here, as PyArrow reads it: page checksums are verified."""
        return parquet_of([file.path for file in self.files()], self.file_system)

    def sync(self, root: Location) -> None:
        """Waits until the files of a table, and all names from a root on, are on a local disk."""
        if self.is_local:
            paths = {Path(file.path) for file in self.files()}
            top = Path(root.base)
            folders = {each for path in paths for each in path.parents if each.is_relative_to(top)}
            for path in (*sorted(paths), *sorted(folders)):
                disk.sync(path)

    def move(self, target: Location) -> None:
        """Gives a folder another name, if it is there; in an object store each file is copied."""
        self.file_system.create_dir(target._parent, recursive=True)
        # Another writer may be removing the same.
        with suppress(FileNotFoundError):
            if self.is_local or self.file_system.type_name == "hdfs":
                self.file_system.move(self.base, target.base)
                return
            files = [each.path for each in self.infos(recursive=True) if each.is_file]
            for file in files:
                place = target.below(target.base + file.removeprefix(self.base))
                self.file_system.create_dir(place._parent, recursive=True)
                self.file_system.copy_file(file, place.base)
            self.delete()

    def delete(self) -> None:
        """Removes the file, or the folder with all below it, if it is there."""
        while (kind := self._kind()) != pafs.FileType.NotFound:
            # Another writer may be removing the same.
            with suppress(FileNotFoundError):
                if kind == pafs.FileType.Directory:
                    self.file_system.delete_dir(self.base)
                else:
                    self.file_system.delete_file(self.base)

    def delete_file(self) -> None:
        """Removes the file, if it is there."""
        with suppress(FileNotFoundError):
            self.file_system.delete_file(self.base)


def local_path(path: str) -> str:
    """A path on this machine, or a URI ``file:``, as the plain path; in a URI ``%20`` is not a
    space.

    As in Hadoop, ``..`` takes the name before it away, be that a link or not. InputError for a URI
    of another machine, or without an absolute path.

    >>> local_path("file:///dumps/night/../day%20a/"), local_path("/dumps")
    ('/dumps/day%20a', '/dumps')
    """
    place = path
    if path.startswith("file:"):
        place = path.removeprefix("file:")
        place = place.removeprefix("//") if place.startswith("///") else place
        if not place.startswith("/") or place.startswith("//"):
            raise InputError(f"expected file:///PATH on this machine, came {visible(path)}")
    return "/" + os.path.normpath(place).lstrip("/")


def file_system_of(uri: str, scheme: str) -> tuple[pafs.FileSystem, str]:
    """PyArrow's file system of a path or URI, and the path there."""
    if scheme == "file":
        return pafs.LocalFileSystem(), local_path(uri)
    try:
        file_system, base = pafs.FileSystem.from_uri(
            uri.replace(scheme, _ALIASES.get(scheme, scheme), 1)
        )
    except pa.ArrowInvalid as error:
        raise InputError(
            "expected a path, or a URI such as s3://bucket/folder (also gs, abfs, hdfs), came "
            f"{visible(_CREDENTIALS.sub('://', uri.partition('?')[0]))}"
        ) from error
    return file_system, str(base)


def parquet_of(paths: Sequence[str], file_system: pafs.FileSystem) -> ds.Dataset:
    """Parquet files as one table; page checksums are verified where a file has them."""
    import pyarrow.dataset as ds  # noqa: PLC0415 - see above

    # A flipped bit in a page is an error, and no other value.
    verified = ds.ParquetFileFormat(
        default_fragment_scan_options=ds.ParquetFragmentScanOptions(page_checksum_verification=True)
    )
    return ds.dataset(list(paths), format=verified, filesystem=file_system)
