"""Files of a local disk: exclusive, whole, and not through somebody's link."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jobs.storage import Location, disk


def test_a_new_file_is_not_written_over_another_or_through_a_link(tmp_path: Path):
    precious = tmp_path / "precious"
    precious.write_text("precious")
    (tmp_path / "link").symlink_to(precious)
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    for name in ("precious", "link", "dangling"):
        with pytest.raises(FileExistsError):
            disk.write_new(tmp_path / name, b"new")
    assert precious.read_text() == "precious"
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("write", [disk.write_new, disk.replace])
def test_a_write_that_fails_leaves_no_part_and_no_temporary_file(tmp_path, monkeypatch, write):
    def fail(_number: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space"):
        write(tmp_path / "file", b"new")
    assert not list(tmp_path.iterdir())


def test_a_folder_that_another_writer_removes_as_well_is_removed(tmp_path, monkeypatch):
    """Two runs clear the same run away: none of them fails for it."""
    folder = tmp_path / "run=a"
    folder.mkdir()
    (folder / "part-0.parquet").write_text("")
    place = Location(folder)
    attempts = []

    class Racing:
        def get_file_info(self, path):
            return Location(tmp_path).file_system.get_file_info(path)

        def delete_dir(self, path):
            attempts.append(path)
            if len(attempts) == 1:
                raise FileNotFoundError(2, "No such file or directory")
            Location(tmp_path).file_system.delete_dir(path)

    monkeypatch.setattr(place, "file_system", Racing())
    place.delete()
    assert not folder.exists()
    assert len(attempts) == 2


def test_who_reads_a_file_that_is_replaced_reads_the_old_text_to_its_end(tmp_path):
    file = tmp_path / "metrics.prom"
    file.write_text("old")
    with file.open() as reader:
        Location(file).replace_text("new")
        assert reader.read() == "old"
    assert file.read_text() == "new"
    assert [each.name for each in tmp_path.iterdir()] == ["metrics.prom"]


def test_the_name_of_the_folder_of_the_first_pointer_is_on_the_disk_too(tmp_path, monkeypatch):
    synced: list[Path] = []
    monkeypatch.setattr(disk, "sync", synced.append)
    Location(tmp_path / "_published" / "dt=2026-11-21.000001.json").create_text("{}")
    assert {tmp_path, tmp_path / "_published"} <= set(synced)
