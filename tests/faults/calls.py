"""Every storage call of this process, counted, so that a fault can be put before any of them.

``Storage`` stands between the project and the disk: PyArrow's file system, and what
``jobs.storage.disk`` asks of the operating system. Before a call is made a hook is called with it;
the hook may raise, end the process, write half of the bytes, or wait for its turn.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pytest

from jobs.storage import disk, location

#: Of the faults and interleavings every so many-th is tried: 1 is all of them.
EVERY = int(os.environ.get("EVERY", "1"))

#: What changes the disk. Before any other call the disk is as it was before the last of these.
CHANGING = frozenset(
    {"create", "write", "close", "create_dir", "delete", "delete_dir", "rename", "link"}
)


@dataclass(frozen=True)
class Call:
    """One call: its number in the process, what it does, and to which path below the root."""

    number: int
    operation: str
    path: str
    #: Of a write: writes the first half of the bytes.
    write_half: Callable[[], Any] | None = None

    @property
    def changes(self) -> bool:
        return self.operation in CHANGING


Hook = Callable[[Call], None]


class Storage:
    """The calls below a folder, each given to a hook before it is made."""

    def __init__(self, root: Path, hook: Hook) -> None:
        self._root = f"{root}/"
        self._hook = hook
        self._number = 0

    def before(
        self, operation: str, path: object, write_half: Callable[[], Any] | None = None
    ) -> None:
        """Gives the call to the hook, if it is one below the folder."""
        text = str(path)
        if text.startswith(self._root):
            self._number += 1
            below = text.removeprefix(self._root)
            self._hook(Call(self._number, operation, below, write_half))

    def install(self, patch: pytest.MonkeyPatch) -> None:
        """Puts itself before all storage calls of this process, until the patch is undone."""
        original = location.file_system_of

        def file_system_of(uri: str, scheme: str) -> tuple[pafs.FileSystem, str]:
            file_system, base = original(uri, scheme)
            return pafs.PyFileSystem(self.handler(file_system)), base

        patch.setattr(location, "file_system_of", file_system_of)
        self._install_into_os(patch)

    def handler(self, file_system: pafs.FileSystem) -> pafs.FileSystemHandler:
        """What PyArrow calls instead of the file system."""
        return Handler(file_system, self)

    def _install_into_os(self, patch: pytest.MonkeyPatch) -> None:
        opened: dict[int, str] = {}
        os_open, os_replace, os_unlink, os_link = os.open, os.replace, os.unlink, os.link

        def open_number(path: Any, flags: int, *rest: Any, **named: Any) -> int:
            if flags & os.O_CREAT:
                self.before("create", path)
            number = os_open(path, flags, *rest, **named)
            opened[number] = str(path)
            return number

        def replace(source: Any, target: Any, **named: Any) -> None:
            self.before("rename", target)
            os_replace(source, target, **named)

        def link(source: Any, target: Any, **named: Any) -> None:
            self.before("link", target)
            os_link(source, target, **named)

        def unlink(path: Any, **named: Any) -> None:
            self.before("delete", path)
            os_unlink(path, **named)

        def fsync(number: int) -> None:
            # The test's disk need not survive a power failure: only the call counts.
            self.before("sync", opened.get(number, ""))

        def open_file(number: int, mode: str) -> _Writer:
            return _Writer(open(number, mode), opened.get(number, ""), self)

        patch.setattr(os, "open", open_number)
        patch.setattr(os, "replace", replace)
        patch.setattr(os, "link", link)
        patch.setattr(os, "unlink", unlink)
        patch.setattr(os, "fsync", fsync)
        patch.setattr(disk, "open", open_file, raising=False)


class _Writer:
    """A file that is written to, each write and the closing a call."""

    def __init__(self, file: Any, path: str, storage: Storage) -> None:
        self._file = file
        self._path = path
        self._storage = storage

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        self._storage.before(
            "write", self._path, lambda: (self._file.write(view[: len(view) // 2]), self.flush())
        )
        written: int = self._file.write(view)
        return written

    def flush(self) -> None:
        self._file.flush()

    def tell(self) -> int:
        position: int = self._file.tell()
        return position

    @property
    def closed(self) -> bool:
        return bool(self._file.closed)

    def close(self) -> None:
        if not self._file.closed:
            try:
                self._storage.before("close", self._path)
            finally:
                self._file.close()

    def __enter__(self) -> _Writer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Handler(pafs.FileSystemHandler):
    """A local file system, every call of which goes by a ``Storage``."""

    def __init__(self, file_system: pafs.FileSystem, storage: Storage) -> None:
        self._fs = file_system
        self._storage = storage

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Handler)

    def __hash__(self) -> int:
        return 0

    def get_type_name(self) -> str:
        return "counted"

    def normalize_path(self, path: str) -> str:
        return str(self._fs.normalize_path(path))

    def get_file_info(self, paths: list[str]) -> Any:
        for path in paths:
            self._storage.before("look", path)
        return self._fs.get_file_info(paths)

    def get_file_info_selector(self, selector: pafs.FileSelector) -> Any:
        self._storage.before("list", f"{selector.base_dir}/")
        return self._fs.get_file_info(selector)

    def create_dir(self, path: str, recursive: bool) -> None:
        self._storage.before("create_dir", path)
        self._fs.create_dir(path, recursive=recursive)

    def delete_dir(self, path: str) -> None:
        """By its files, so that a fault can leave half of them."""
        for name in sorted(os.listdir(path)):  # noqa: PTH208 - any listing of names
            child = f"{path}/{name}"
            if Path(child).is_dir():
                self.delete_dir(child)
            else:
                self.delete_file(child)
        self._storage.before("delete_dir", path)
        self._fs.delete_dir(path)

    def delete_dir_contents(self, path: str, missing_dir_ok: bool) -> None:
        raise NotImplementedError

    def delete_root_dir_contents(self) -> None:
        raise NotImplementedError

    def delete_file(self, path: str) -> None:
        self._storage.before("delete", path)
        self._fs.delete_file(path)

    def move(self, src: str, dest: str) -> None:
        self._storage.before("rename", dest)
        self._fs.move(src, dest)

    def copy_file(self, src: str, dest: str) -> None:
        self._storage.before("create", dest)
        self._fs.copy_file(src, dest)

    def open_input_stream(self, path: str) -> pa.NativeFile:
        self._storage.before("read", path)
        return self._fs.open_input_stream(path, compression=None)

    def open_input_file(self, path: str) -> pa.NativeFile:
        self._storage.before("read", path)
        return self._fs.open_input_file(path)

    def open_output_stream(self, path: str, metadata: Any) -> pa.NativeFile:  # noqa: ARG002
        self._storage.before("create", path)
        # One write for what fits, as a file of the operating system would do it.
        writer = _Writer(open(path, "wb"), path, self._storage)  # noqa: PTH123, SIM115
        return pa.BufferedOutputStream(pa.PythonFile(writer, mode="w"), 1 << 16)

    def open_append_stream(self, path: str, metadata: Any) -> pa.NativeFile:
        raise NotImplementedError
