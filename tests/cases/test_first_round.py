"""One round alone: the last lines of the run name what is there."""

from __future__ import annotations

import json

from jobs.cli import main
from tests.cases.test_small_dumps import MEMBERS, TIMED_OUT, members, route

SHARED = "10.0.0.1@1"
IDS = [SHARED, SHARED, *MEMBERS[2:]]


def test_one_round_names_the_group_the_id_and_the_addresses(tmp_path, capsys):
    """Two processes have one id: by AVG of four ids both take a0 and a1, and nobody a2 and a3."""
    lines = [route(0, "broker-a", "broker-b"), members(1, "broker-a", IDS)]
    lines.append(members(2, "broker-b", IDS))
    dump = tmp_path / "dump.jsonl"
    dump.write_text("".join(json.dumps(each) + "\n" for each in lines))
    options = ["--engine", "local", "--workers", "1"]
    main(["run", "--dumps", str(dump), "--output", str(tmp_path / "out"), *options])
    shown = " ".join("".join(capsys.readouterr()).split())
    assert "NOW G / T: 2 queues consumed by nobody" in shown
    assert f"who: {SHARED}" in shown
    assert "2 processes" in shown and "10.0.0.1:40100" in shown and "10.0.0.1:40101" in shown


def test_one_round_names_a_broker_that_did_not_answer(tmp_path, capsys):
    lines = [route(0, "broker-a", "broker-b"), members(1, "broker-a", MEMBERS)]
    lines.append(members(2, "broker-b", TIMED_OUT))
    dump = tmp_path / "dump.jsonl"
    dump.write_text("".join(json.dumps(each) + "\n" for each in lines))
    options = ["--engine", "local", "--workers", "1"]
    main(["run", "--dumps", str(dump), "--output", str(tmp_path / "out"), *options])
    shown = " ".join("".join(capsys.readouterr()).split())
    assert "broker-b/0 at broker-b:10911 of cluster C never answered" in shown
