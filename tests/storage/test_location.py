"""Files of a file system like HDFS, where a name that is there cannot be taken by a rename."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pyarrow.fs as pafs
import pytest

from jobs.storage import Location


class LikeHdfs:
    """This machine's files, but that a rename to a name that is there fails."""

    type_name = "hdfs"

    def __init__(self) -> None:
        self._local = pafs.LocalFileSystem()
        self.is_full = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._local, name)

    def open_output_stream(self, path: str) -> Any:
        stream = self._local.open_output_stream(path)
        if self.is_full:
            stream.close()
            raise OSError(errno.ENOSPC, "no space left")
        return stream

    def move(self, source: str, target: str) -> None:
        if Path(target).exists():
            raise OSError(errno.EEXIST, "rename failed")
        self._local.move(source, target)


@pytest.fixture
def place(tmp_path: Path) -> tuple[Location, LikeHdfs]:
    location, files = Location(tmp_path / "pointer.json"), LikeHdfs()
    location.is_local = False
    location.file_system = files  # type: ignore[assignment]
    return location, files


def test_of_two_writers_one_creates_a_file_and_nothing_is_left_beside_it(
    place: tuple[Location, LikeHdfs], tmp_path: Path
) -> None:
    location, _ = place
    location.create_text("one")
    with pytest.raises(FileExistsError):
        location.create_text("two")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"pointer.json": "one"}


def test_a_write_that_fails_leaves_nothing_beside_the_file(
    place: tuple[Location, LikeHdfs], tmp_path: Path
) -> None:
    location, files = place
    files.is_full = True
    with pytest.raises(OSError, match="no space left"):
        location.create_text("one")
    assert list(tmp_path.iterdir()) == []
