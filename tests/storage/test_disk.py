"""Files of a local disk: exclusive, whole, and not through somebody's link."""

from __future__ import annotations

import os
import socket
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


def _kinds(folder: Path) -> dict[str, str]:
    """A name of everything that is not a regular file, and what writing there says.

    Devices by a link in this folder alone: run by root, a defect would replace the machine's own.
    """
    (folder / "folder").mkdir()
    os.mkfifo(folder / "pipe")
    (folder / "to a device").symlink_to("/dev/full")
    bound = socket.socket(socket.AF_UNIX)
    bound.bind(str(folder / "socket"))
    bound.close()
    return {
        "folder": "expected a file, there is a folder",
        "socket": "expected a file, there is a socket",
        "pipe": "nobody reads this pipe",
        "to a device": "No space left on device",
        "/dev/fd/999": "Bad file descriptor",
    }


def test_nothing_but_a_regular_file_is_replaced(tmp_path, monkeypatch):
    """As root ``--metrics /dev/full`` made a file of the device: nobody has it any more."""
    monkeypatch.chdir(tmp_path)
    for name, said in _kinds(tmp_path).items():
        before = os.lstat(name) if Path(name).exists() else None
        with pytest.raises(OSError, match=f"{said}.*{name}"):
            disk.replace(Path(name), b"new")
        if before is not None:
            now = os.lstat(name)
            assert (now.st_ino, now.st_mode) == (before.st_ino, before.st_mode)
    assert not list(tmp_path.glob("*.tmp"))


def test_a_round_of_dumps_does_not_take_the_name_of_another_thing(tmp_path):
    new = tmp_path / "new"
    new.write_text("new")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FileExistsError, match="there is a pipe"):
        disk.rename(new, tmp_path / "pipe")
    assert (tmp_path / "pipe").is_fifo()


def test_a_device_and_a_pipe_that_is_read_take_what_is_written(tmp_path):
    # By a link: run by root, a defect would replace the machine's own.
    (tmp_path / "null").symlink_to("/dev/null")
    disk.replace(tmp_path / "null", b"new")
    assert (tmp_path / "null").is_symlink()
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    disk.replace(tmp_path / "pipe", b"new")
    assert os.read(reader, 9) == b"new"
    os.close(reader)


def test_a_stream_of_this_process_goes_on_where_it_is(tmp_path):
    """Opened by its name the file would be written from its beginning, over what is there."""
    with (tmp_path / "file").open("wb", buffering=0) as file:
        file.write(b"before,")
        disk.replace(Path(f"/dev/fd/{file.fileno()}"), b"new,")
        file.write(b"after")
    assert (tmp_path / "file").read_bytes() == b"before,new,after"


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
