"""``check``: whether a finding of the last report is gone, by newer dumps."""

from __future__ import annotations

import json

import pytest

from jobs.cli import main
from tests.cases.conftest import written
from tests.cases.small_dumps import (
    MEMBERS,
    OFFLINE,
    TIMED_OUT,
    in_turn,
    members,
    minute_of,
    of_broker,
    offsets,
    rounds,
    route,
)

#: The minutes of the report, and those of the newer dumps.
BEFORE, AFTER = range(10), range(10, 20)
#: One process more has the first client id.
SHARED = [MEMBERS[0], *MEMBERS]


def without_b(until=99):
    """broker-b, which has half of the queues, does not know the group up to this minute."""
    return lambda minute, name: OFFLINE if name == "broker-b" and minute < until else MEMBERS


@pytest.fixture
def check(tmp_path, monkeypatch, capsys):
    """The exit code, and what is said, of a check of newer lines, of the report of others."""
    monkeypatch.chdir(tmp_path)

    def check(before, after, *options):
        """``options``: a group, or a function from the finding ids of each table to arguments."""
        (tmp_path / "before").mkdir(exist_ok=True)
        given = ["--dumps", str(written(tmp_path / "before", before)), "--output", "out"]
        assert main(["run", *given, "--engine", "local", "--workers", "1", "--quiet"]) == 0
        (tmp_path / "after").mkdir(exist_ok=True)
        newer = str(written(tmp_path / "after", after))
        capsys.readouterr()
        code = main(["check", "--reports", "out/reports", "--dumps", newer, "--quiet", *options])
        return code, capsys.readouterr()

    return check


G = ("--group", "G")
FAULT = list(rounds(without_b(), minutes=BEFORE))


@pytest.mark.parametrize(
    ("after", "code", "says"),
    [
        (rounds(minutes=AFTER), 0, ""),
        (rounds(without_b(), minutes=AFTER), 1, ""),
        (rounds(minutes=range(10, 12)), 5, ""),
        (rounds(without_b(), minutes=range(10, 12)), 5, ""),
        (rounds(without_b(until=14), minutes=AFTER), 0, ""),
        (rounds(without_b(until=18), minutes=AFTER), 5, ""),
        (rounds(without_b(until=18), minutes=range(20)), 5, ""),
        (rounds(lambda _, name: TIMED_OUT if name == "broker-b" else MEMBERS, minutes=AFTER), 5, ""),
        (rounds(lambda m, name: TIMED_OUT if name == "broker-b" and m>15 else MEMBERS, minutes=AFTER), 5, ""),
        (rounds(lambda m, name: TIMED_OUT if name == "broker-b" and m<15 else MEMBERS, minutes=AFTER), 0, ""),
        (rounds(SHARED, minutes=AFTER), 1, ""),
        (rounds(lambda m, _: SHARED if m > 17 else MEMBERS, minutes=AFTER), 5, ""),
        (rounds(minutes=AFTER, names=("broker-a",)), 0, ""),
        (rounds(minutes=AFTER, topics=("U",)), 0, ""),
        (rounds(OFFLINE, minutes=AFTER), 1, ""),
        (FAULT, 5, ""),
    ],
)
def test_x(check, after, code, says):
    came, said = check(FAULT, after, *G)
    print(said.out, said.err)
    assert came == code
