"""One round alone: the last lines of the run name what is there."""

from __future__ import annotations

import json

import pytest

from jobs.cli import main
from tests.cases.test_small_dumps import MEMBERS, TIMED_OUT, members, route

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
    lines = [route(0, "broker-a", "broker-b"), members(1, "broker-a", of_a)]
    dump = tmp_path / "dump.jsonl"
    dump.write_text("\n".join(map(json.dumps, [*lines, members(2, "broker-b", of_b)])) + "\n")
    options = ["--engine", "local", "--workers", "1"]
    main(["run", "--dumps", str(dump), "--output", str(tmp_path / "out"), *options])
    shown = " ".join("".join(capsys.readouterr()).split())
    assert [each for each in said if each not in shown] == []
