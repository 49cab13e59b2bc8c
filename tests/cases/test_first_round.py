"""One round alone: the last lines of the run name what is there."""

from __future__ import annotations

import json

import pytest

from jobs.cli import main
from tests.cases.test_small_dumps import MEMBERS, MINUTES, TIMED_OUT, members, route

SHARED = "10.0.0.1@1"
IDS = [SHARED, SHARED, *MEMBERS[2:]]
WHO = f"who: {SHARED}"


@pytest.mark.parametrize(
    ("of_a", "of_b", "said"),
    [
        # Two processes have one id: by AVG of four ids both take a0 and a1, and nobody a2 and a3.
        (
            *(IDS, IDS),
            ("NOW G / T: 2 queues consumed by nobody", WHO, "10.0.0.1:40100", "10.0.0.1:40101"),
        ),
        (MEMBERS, TIMED_OUT, ("broker-b/0 at broker-b:10911 of cluster C never answered",)),
    ],
)
def test_one_round_names_what_is_there_and_who_did_not_answer(tmp_path, capsys, of_a, of_b, said):
    shown = said_at_the_end(tmp_path, capsys, of_a, of_b, rounds=1)
    assert [each for each in said if each not in shown] == []


def test_what_lasts_is_not_said_to_be_too_new(tmp_path, capsys):
    shown = said_at_the_end(tmp_path, capsys, IDS, IDS, rounds=len(MINUTES))
    assert "CRITICAL G / T" in shown
    assert "NOW" not in shown


def said_at_the_end(tmp_path, capsys, of_a, of_b, *, rounds):
    dump = tmp_path / "dump.jsonl"
    with dump.open("w") as file:
        for second in range(0, 60 * rounds, 60):
            for line in (
                route(second, "broker-a", "broker-b"),
                members(second + 1, "broker-a", of_a),
                members(second + 2, "broker-b", of_b),
            ):
                file.write(json.dumps(line) + "\n")
    options = ["--engine", "local", "--workers", "1"]
    main(["run", "--dumps", str(dump), "--output", str(tmp_path / "out"), *options])
    return " ".join("".join(capsys.readouterr()).split())
