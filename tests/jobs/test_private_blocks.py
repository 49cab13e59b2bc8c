"""What Spark puts aside has true client ids, and nobody else reads it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from jobs.spark import session


def test_blocks_lie_in_a_folder_of_their_owner_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark's own folders have the rights of the umask; a list of disks stays one."""
    disks = [tmp_path / "one", tmp_path / "two"]
    for disk in disks:
        disk.mkdir()
    monkeypatch.setenv("SPARK_LOCAL_DIRS", ",".join(map(str, disks)))
    session._keep_private()
    folders = [Path(each) for each in os.environ["SPARK_LOCAL_DIRS"].split(",")]
    assert [each.parent for each in folders] == disks
    assert {stat.S_IMODE(each.stat().st_mode) for each in folders} == {0o700}


def test_of_a_disk_that_is_gone_spark_speaks_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = str(tmp_path / "gone")
    monkeypatch.setenv("SPARK_LOCAL_DIRS", gone)
    session._keep_private()
    assert os.environ["SPARK_LOCAL_DIRS"] == gone
