"""At most one writer at a time: who holds a lease, who waits, and when a claim counts no more."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from datetime import timedelta
from pathlib import Path

import pytest

from jobs.errors import LeaseError
from jobs.storage import Location, disk
from jobs.storage import lease as module
from jobs.storage.lease import claimed_runs, lease


def quiet(_text: str) -> None:
    """Whoever waits says so; here nobody listens."""


@pytest.fixture
def claims(tmp_path: Path) -> Path:
    return tmp_path / "claims"


def claim(claims: Path, name: str, age: timedelta = timedelta()) -> Path:
    claims.mkdir(exist_ok=True)
    path = claims / f"{name}.claim"
    path.touch()
    then = time.time() - age.total_seconds()
    os.utime(path, (then, then))
    return path


def test_while_one_holds_the_lease_another_gives_up_in_one_sentence_and_leaves_no_claim(claims):
    with lease(Location(claims), "a", 0, quiet):
        with (
            pytest.raises(LeaseError, match=r"^run a \(process \d+ on .+\) is writing there"),
            lease(Location(claims), "b", 0, quiet),
        ):
            pass
        assert claimed_runs(Location(claims)) == {"a"}
    assert not list(claims.iterdir())
    with lease(Location(claims), "b", 0, quiet):
        pass


@pytest.mark.long
def test_whoever_waits_says_so_once(claims):
    said: list[str] = []
    with (
        lease(Location(claims), "a", 0, quiet),
        pytest.raises(LeaseError),
        lease(Location(claims), "b", 1, said.append),
    ):
        pass
    (line,) = said
    assert line.startswith("waits for run a")


@pytest.mark.parametrize("name", ["dead~1~host~0a", "dead~0a"])
def test_a_claim_that_no_process_has_locked_is_broken_at_once(claims, name):
    left = claim(claims, name)
    with lease(Location(claims), "b", 0, quiet):
        assert not left.exists()
    assert not list(claims.iterdir())


def test_a_claim_of_another_process_counts_until_it_lapses(claims):
    path = claim(claims, "far~7~elsewhere~0a", timedelta(minutes=4))
    with disk.locked(path) as is_far:
        assert is_far
        with (
            pytest.raises(LeaseError, match=r"^run far \(process 7 on elsewhere\) is writing"),
            lease(Location(claims), "b", 0, quiet),
        ):
            pass
        claim(claims, "far~7~elsewhere~0a", timedelta(minutes=6))
        with lease(Location(claims), "b", 0, quiet):
            assert claimed_runs(Location(claims)) == {"b"}


def test_where_files_cannot_be_locked_a_claim_counts_until_it_lapses(claims, monkeypatch):
    def fail(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", fail)
    claim(claims, "far~0a", timedelta(minutes=4))
    with pytest.raises(LeaseError, match=r"^run far is"), lease(Location(claims), "b", 0, quiet):
        pass
    claim(claims, "far~0a", timedelta(minutes=6))
    with lease(Location(claims), "b", 0, quiet):
        assert claimed_runs(Location(claims)) == {"b"}


def test_a_claim_that_is_a_folder_blocks_nobody(claims):
    forged = claims / "forged~1.claim"
    (forged / "below").mkdir(parents=True)
    with lease(Location(claims), "b", 0, quiet):
        assert not forged.exists()


def test_a_claim_is_renewed_while_it_is_held(claims, monkeypatch):
    monkeypatch.setattr(module, "_RENEWAL", 0.01)
    with lease(Location(claims), "a", 0, quiet):
        (mine,) = claims.iterdir()
        os.utime(mine, (0, 0))
        ends = time.monotonic() + 30
        while mine.stat().st_mtime == 0 and time.monotonic() < ends:
            time.sleep(0.01)
        assert mine.stat().st_mtime > 0


def test_a_claim_that_cannot_be_written_leaves_none(claims, monkeypatch):
    def fail(_number: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        with pytest.raises(OSError, match="No space"), lease(Location(claims), "a", 0, quiet):
            pass
    assert not list(claims.iterdir())
