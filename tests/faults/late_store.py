"""An object store, with conditional writes or not, whose listings show late what others did."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pyarrow.fs as pafs
import pytest

from jobs.storage import disk, location
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
        create = disk.create

        def file_system_of(uri: str, _scheme: str) -> tuple[pafs.FileSystem, str]:
            here = pafs.PyFileSystem(self.handler(pafs.LocalFileSystem()))
            return here, uri.removeprefix("s3://")

        def put_if_absent(_uri: str, _of: object, base: str, data: bytes) -> bool:
            create(Path(base), data)
            return True

        patch.setattr(location, "file_system_of", file_system_of)
        if self._is_conditional:
            patch.setattr(location, "put_if_absent", put_if_absent)
        else:
            patch.setattr(location, "put_if_absent", lambda *_: False)


class _LateHandler(Handler):
    def get_type_name(self) -> str:
        return "s3"

    def get_file_info_selector(self, selector: pafs.FileSelector) -> Any:
        assert isinstance(self._storage, LateStore)
        infos = super().get_file_info_selector(selector)
        return [info for info in infos if not self._storage.hides(info.path)]
