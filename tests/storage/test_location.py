"""Files of HDFS, where a rename refuses a name that is there; stores that refuse; what is shown."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pyarrow.fs as pafs
import pytest

from jobs.errors import InputError
from jobs.storage import Location
from jobs.storage import location as module
from jobs.texts.failures import sentence_of


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


class Refusing(LikeHdfs):
    """A store that refuses the first reads, in PyArrow's words for an object that is small."""

    type_name = "s3"

    def __init__(self, refusals: int) -> None:
        super().__init__()
        self.refusals = refusals

    def open_input_stream(self, path: str, **options: Any) -> Any:
        if self.refusals:
            self.refusals -= 1
            raise OSError(
                "AWS Error INTERNAL_FAILURE during GetObject operation: Failed to flush response "
                "stream (eof: 0, bad: 1)"
            )
        return super().__getattr__("open_input_stream")(path, **options)


def of_store(tmp_path: Path, refusals: int, monkeypatch: pytest.MonkeyPatch) -> Location:
    """A pointer in a store, without obstore."""
    (tmp_path / "pointer.json").write_text("text")
    monkeypatch.setattr(module, "_AGAIN_AFTER", 0.0)
    place = Location(tmp_path / "pointer.json")
    place.is_local = False
    place.file_system = Refusing(refusals)  # type: ignore[assignment]
    return place


def test_a_small_object_is_asked_for_again_as_pyarrow_does_for_a_large_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert of_store(tmp_path, 5, monkeypatch).read_text() == "text"


def test_a_store_that_goes_on_refusing_is_said_to_throttle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_AGAIN_FOR", 0.0)
    with pytest.raises(OSError, match="SLOW_DOWN") as raised:
        of_store(tmp_path, 1_000_000, monkeypatch).read_bytes()
    assert "the store throttles" in sentence_of(raised.value)


@pytest.mark.parametrize(
    "uri",
    [
        "s3://KEYID:SECRET@lake/x?region=eu-west-1&access_key=KEYID",
        "s3a://KEYID:SEC/RET@lake/x",
        "s3://KEYID:SECRET@[lake",
    ],
)
def test_a_place_is_shown_without_key_and_secret(uri: str) -> None:
    try:
        shown = str(Location(uri))
    except InputError as error:
        shown = str(error)
    assert "lake" in shown
    assert not any(word in shown for word in ("KEYID", "SEC", "RET"))
