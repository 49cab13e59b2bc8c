"""At most one writer at a time: who holds a lease, who waits, and when a claim counts no more."""

from __future__ import annotations

import json
import logging
import os
import time
from datetime import timedelta
from pathlib import Path

import pytest

from jobs.errors import LeaseError
from jobs.storage import Location
from jobs.storage import lease as module
from jobs.storage.lease import Owner, claimed_runs, lease


def quiet(_text: str) -> None:
    """Whoever waits says so; here nobody listens."""


@pytest.fixture
def claims(tmp_path: Path) -> Path:
    return tmp_path / "claims"


def claim(claims: Path, name: str, text: str, age: timedelta = timedelta()) -> Path:
    claims.mkdir(exist_ok=True)
    path = claims / f"{name}.claim"
    path.write_text(text)
    then = time.time() - age.total_seconds()
    os.utime(path, (then, then))
    return path


def of(host: str, pid: int, started: str) -> str:
    return json.dumps(vars(Owner("other", host, pid, started)))


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


def test_a_claim_of_a_process_that_ended_on_this_machine_is_broken_at_once(claims):
    here = Owner.this("x")
    left = claim(claims, "dead~1", of(here.host, here.pid, here.started + "1"))
    with lease(Location(claims), "b", 0, quiet):
        assert not left.exists()
    assert not list(claims.iterdir())


@pytest.mark.parametrize("text", ["", "{", "[]", '{"run_id": 1}'])
def test_a_claim_that_was_written_by_half_counts_no_more(claims, text):
    left = claim(claims, "half~1", text)
    with lease(Location(claims), "b", 0, quiet):
        assert not left.exists()


def test_a_claim_of_another_machine_counts_until_it_lapses(claims):
    claim(claims, "far~1", of("elsewhere", 1, "boot ns 1"), timedelta(minutes=4))
    with pytest.raises(LeaseError), lease(Location(claims), "b", 0, quiet):
        pass
    claim(claims, "far~1", of("elsewhere", 1, "boot ns 1"), timedelta(minutes=6))
    with lease(Location(claims), "b", 0, quiet):
        assert claimed_runs(Location(claims)) == {"b"}


@pytest.mark.parametrize("text", ["[" * 100_000, "\x00", "9" * 5_000])
def test_a_claim_that_nobody_wrote_is_named_once_and_blocks_nobody(claims, caplog, text):
    forged = claim(claims, "forged~1", text)
    with caplog.at_level(logging.WARNING), lease(Location(claims), "b", 0, quiet):
        assert not forged.exists()
    (record,) = caplog.records
    assert f"{forged} is no claim of a run (" in record.getMessage()
    assert "\n" not in record.getMessage()


def test_a_claim_that_is_a_folder_blocks_nobody(claims, caplog):
    forged = claims / "forged~1.claim"
    (forged / "below").mkdir(parents=True)
    with caplog.at_level(logging.WARNING), lease(Location(claims), "b", 0, quiet):
        assert not forged.exists()
    (record,) = caplog.records
    assert record.getMessage().endswith("is no claim of a run (it is no file), and counts no more")


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
