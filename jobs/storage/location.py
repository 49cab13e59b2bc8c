"""Paths and URIs: any file system that PyArrow reaches, by the name that Spark is given."""

from __future__ import annotations

import os
import re
import secrets
import time
from collections.abc import Sequence
from contextlib import suppress
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.fs as pafs

from ..errors import InputError
from ..texts.shown import visible
from . import disk
from .stores import Objects, with_endpoint

if TYPE_CHECKING:  # it imports pandas, some 55 MiB
    import pyarrow.dataset as ds

_SCHEME = re.compile(r"^([a-zA-Z][a-zA-Z0-9+.-]*)://")
#: The names that Spark has for a file system and PyArrow has not.
_ALIASES = {"s3a": "s3", "s3n": "s3"}
#: The part of a URI that says who may read: never shown. Of S3 also with a slash in the secret.
_CREDENTIALS = re.compile(r"(?<=s3://|3a://|3n://)[^/@:]*:[^@]*@|(?<=://)[^/@]*@")
#: Words of PyArrow's S3 for a small object that the store refused to give (503 SlowDown). It asks
#: again for all but an object smaller than the refusal, which has no room in its place.
_REFUSED = "Failed to flush response stream"
#: Seconds for which, and after which, PyArrow asks again for everything else.
_AGAIN_FOR, _AGAIN_AFTER = 6.0, 0.2


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
        self._objects = Objects(self.uri, self.file_system)
        #: Buckets that were made, if the URI asks for it; shared by all below.
        self._made: set[str] = set()

    @property
    def has_folders(self) -> bool:
        """True if a file needs a folder that was made, as on a disk and HDFS; a store has names."""
        return self.is_local or self.file_system.type_name == "hdfs"

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
        return visible(_CREDENTIALS.sub("", self._path))

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.base.rpartition("/")[2]

    def holds(self, other: Location) -> bool:
        """True if another path is this one or one below it, whatever its name (a link, ``..``).

        >>> reports = Location("lake/reports")
        >>> reports.holds(Location("lake/reports/x")), reports.holds(Location("lake/reports-2"))
        (True, False)
        """
        folder, path = [
            os.path.realpath(location.base) if location.is_local else location.base
            for location in (self, other)
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
        data = None if self.has_folders else self._objects.read(self.base)
        ends = time.monotonic() + _AGAIN_FOR
        while data is None:
            try:
                with self.file_system.open_input_stream(self.base, compression=None) as stream:
                    data = bytes(stream.read())
            except OSError as error:
                if _REFUSED not in str(error):
                    raise
                if time.monotonic() > ends:
                    raise OSError(
                        f"AWS Error SLOW_DOWN, or another one, for {_AGAIN_FOR:g} s: {self}"
                    ) from error
                time.sleep(_AGAIN_AFTER)
        return data

    def read_text(self) -> str:
        """The text of the file; FileNotFoundError where there is none."""
        return self.read_bytes().decode("utf-8")

    def write_new_text(self, text: str) -> None:
        """Writes a file whose name nobody else has: a claim, a manifest."""
        data = self._ready(text)
        if self.is_local:
            disk.write_new(Path(self.base), data)
        elif self.has_folders or not self._objects.write(self.base, data):
            self._put(data)

    def create_text(self, text: str) -> None:
        """Writes a file that is not there yet; FileExistsError where there is one.

        One of several writers creates it: on a local disk, on HDFS, whose rename refuses a name
        that is there, and in S3, Google Cloud Storage and Azure by ``Objects.create``. Elsewhere it
        is looked for, written and read back: of two in one moment the last counts, and the other
        one has FileExistsError unless it read back before.
        """
        data = self._ready(text)
        if self.is_local:
            disk.create(Path(self.base), data)
        elif self.has_folders:
            try:
                self._put_beside(data)
            except OSError as error:
                if self.exists():
                    raise FileExistsError(str(self)) from error
                raise
        elif self._objects.create(self.base, data):
            there: int | None = len(data)
            # It is created; a server that does not answer now does not change that.
            with suppress(OSError):
                there = self.file_system.get_file_info(self.base).size
            if there != len(data):  # the environment may lead obstore elsewhere
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

        On a local disk by writing beside it and giving that its name, and so where PyArrow writes
        to a store: a stream of it that fails uploads what it has. HDFS cannot rename over a file:
        there it is overwritten, and a reader may meet a part of it.
        """
        data = self._ready(text)
        if self.is_local:
            disk.replace(Path(self.base), data)
        elif self.has_folders:
            self._put(data)
        elif not self._objects.write(self.base, data):
            self._put_beside(data)

    def make_folder(self) -> None:
        """Makes a folder of this name, where there are folders; in a store a marker is no use."""
        if self.has_folders:
            self.file_system.create_dir(self.base, recursive=True)
        elif "allow_bucket_creation=true" in self._options:
            bucket = self.base.partition("/")[0]
            if bucket not in self._made:
                self.file_system.create_dir(bucket, recursive=False)
                self._made.add(bucket)

    def _ready(self, text: str) -> bytes:
        """The bytes of a text, after the folder of this file was made."""
        self._above().make_folder()
        return text.encode("utf-8")

    def _above(self) -> Location:
        """The folder that this is in."""
        above = copy(self)
        above.base = self.base.rpartition("/")[0]
        return above

    def _put(self, data: bytes) -> None:
        with self.file_system.open_output_stream(self.base) as stream:
            stream.write(data)

    def _put_beside(self, data: bytes) -> None:
        """Writes a file beside this one, then gives it this name."""
        beside = copy(self)
        beside.base = f"{self._above().base}/_{self.name}.{secrets.token_hex(6)}.tmp"
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
        for info in filter(lambda file_info: file_info.is_file, self.infos(recursive=True)):
            *folders, name = info.path.removeprefix(self.base).strip("/").split("/")
            is_hidden = any(part.startswith(("_", ".")) for part in (*folders, name))
            if not is_hidden and all("=" in folder for folder in folders):
                found.append(info)
        return found

    def parquet(self) -> ds.Dataset:
        """The table that lies here, as PyArrow reads it."""
        return parquet_of([(file.path, file.size) for file in self.files()], self.file_system)

    def sync(self, root: Location) -> None:
        """Waits until the files of a table, and all names from a root on, are on a local disk."""
        if self.is_local:
            paths = {Path(file.path) for file in self.files()}
            top = Path(root.base)
            folders = {
                parent for path in paths for parent in path.parents if parent.is_relative_to(top)
            }
            for path in (*sorted(paths), *sorted(folders)):
                disk.sync(path)

    def move(self, target: Location) -> None:
        """Gives a folder another name, if it is there; in an object store each file is copied."""
        # Another writer may be removing the same.
        with suppress(FileNotFoundError):
            if self.has_folders:
                target._above().make_folder()
                self.file_system.move(self.base, target.base)
                return
            paths = self._objects_below()
            for path in paths:
                self.file_system.copy_file(path, target.base + path.removeprefix(self.base))
            if not self._objects.delete(paths):
                self.delete()

    def delete(self) -> None:
        """Removes the file, or the folder with all below it, if it is there.

        Of a folder in a store its objects; where there is none PyArrow removes a marker, if any.
        """
        if not self.has_folders:
            below = self._objects_below()
            if self._objects.delete([self.base, *below]) and below:
                return
        while (kind := self._kind()) != pafs.FileType.NotFound:
            # Another writer may be removing the same.
            with suppress(FileNotFoundError):
                if kind == pafs.FileType.Directory:
                    self.file_system.delete_dir(self.base)
                else:
                    self.file_system.delete_file(self.base)

    def delete_file(self) -> None:
        """Removes the file, if it is there."""
        if self.has_folders or not self._objects.delete([self.base]):
            with suppress(FileNotFoundError):
                self.file_system.delete_file(self.base)

    def _objects_below(self) -> list[str]:
        """The paths of all objects below, but for markers of folders."""
        return [info.path for info in self.infos(recursive=True) if info.is_file]


def check_bucket(place: Location) -> None:
    """InputError where a place is in a bucket, or container, that is not there.

    A listing of it is empty, as one of a folder that is not there.
    """
    if place.has_folders:
        return
    bucket = place.base.partition("/")[0]
    with suppress(OSError):  # nobody may ask for it
        if place.file_system.get_file_info(bucket).type == pafs.FileType.NotFound:
            raise InputError(
                f"there is no bucket {visible(bucket)} for {place}: expected the name of one at "
                "this server; check the name, the endpoint and the account"
            )


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
    name = _ALIASES.get(scheme, scheme)
    try:
        found = uri.replace(scheme, name, 1)
        file_system, base = pafs.FileSystem.from_uri(
            with_endpoint(found) if name == "s3" else found
        )
    except ValueError as error:  # PyArrow's, or that of a URI which is none
        raise InputError(
            "expected a path, or a URI such as s3://bucket/folder (also gs, abfs, hdfs), came "
            f"{visible(_CREDENTIALS.sub('', uri.partition('?')[0]))}"
        ) from error
    return file_system, str(base)


def parquet_of(
    files: Sequence[tuple[str | pa.Buffer, int]], file_system: pafs.FileSystem | None = None
) -> ds.Dataset:
    """Parquet files as one table; page checksums are verified where a file has them.

    ``files``: their paths, or their bytes, and their sizes, for which a store is not asked again.
    """
    import pyarrow.dataset as ds  # noqa: PLC0415 - see above

    # A flipped bit in a page is an error, and no other value.
    verified: Any = ds.ParquetFileFormat(
        default_fragment_scan_options=ds.ParquetFragmentScanOptions(page_checksum_verification=True)
    )
    fragments = [
        verified.make_fragment(file, file_system, file_size=size)
        if isinstance(file, str)
        else verified.make_fragment(file)
        for file, size in files
    ]
    schema = fragments[0].physical_schema if fragments else pa.schema([])
    return ds.FileSystemDataset(fragments, schema, verified, file_system)
