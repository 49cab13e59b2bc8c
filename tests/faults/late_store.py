"""An object store, with conditional writes or not, whose listings show late what others did."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pytest

from jobs.storage import disk, location, manifest
from tests.faults.calls import Handler, Hook, Storage


class LateStore(Storage):
    """Who lists sees what another thread made only so many calls after it was made."""

    def __init__(self, root: Path, hook: Hook, late: int, *, is_conditional: bool = True) -> None:
        super().__init__(root, hook)
        self._is_conditional = is_conditional
        self._late = late
        self._made: dict[str, tuple[int, int]] = {}

    def before(self, operation: str, path: object, write_half: Any = None) -> None:
        super().before(operation, path, write_half)
        if operation in {"create", "create_dir", "rename", "link"}:
            self._made.setdefault(str(path), (self._number, threading.get_ident()))

    def hides(self, path: str) -> bool:
        """Whether this thread does not see it yet."""
        number, maker = self._made.get(path, (0, threading.get_ident()))
        return maker != threading.get_ident() and self._number - number < self._late

    def handler(self, file_system: pafs.FileSystem) -> pafs.FileSystemHandler:
        return _LateHandler(file_system, self)

    def install(self, patch: pytest.MonkeyPatch) -> None:
        super().install(patch)
        create, is_conditional = disk.create, self._is_conditional
        # What one schedule read is another file in the next one, though the names are the same.
        manifest.forget_files()

        class OnlyCreates:
            """What obstore does, where it does nothing but create."""

            def __init__(self, *_: object) -> None:
                """As ``Objects``."""

            def create(self, base: str, data: bytes) -> bool:
                if is_conditional:
                    Path(base).parent.mkdir(parents=True, exist_ok=True)
                    create(Path(base), data)
                return is_conditional

            def read(self, _path: str) -> None:
                """Nothing: PyArrow is asked."""

            def write(self, _path: str, _data: bytes) -> bool:
                return False

            def delete(self, _paths: object) -> bool:
                return False

        def file_system_of(uri: str, _scheme: str) -> tuple[pafs.FileSystem, str]:
            here = pafs.PyFileSystem(self.handler(pafs.LocalFileSystem()))
            return here, uri.removeprefix("s3://")

        patch.setattr(location, "file_system_of", file_system_of)
        patch.setattr(location, "Objects", OnlyCreates)


class _LateHandler(Handler):
    """A store has no folders: where a name has a slash, this disk gets one."""

    def open_output_stream(self, path: str, metadata: Any) -> pa.NativeFile:
        self._fs.create_dir(path.rpartition("/")[0], recursive=True)
        return super().open_output_stream(path, metadata)

    def copy_file(self, src: str, dest: str) -> None:
        self._fs.create_dir(dest.rpartition("/")[0], recursive=True)
        super().copy_file(src, dest)

    def get_type_name(self) -> str:
        return "s3"

    def get_file_info_selector(self, selector: pafs.FileSelector) -> Any:
        assert isinstance(self._storage, LateStore)
        infos = super().get_file_info_selector(selector)
        return [info for info in infos if not self._storage.hides(info.path)]
