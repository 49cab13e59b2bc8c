"""A small input needs no Spark and no Java, and answers are what was published."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import defaultdict
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from jobs.config.settings import Settings, load_settings
from jobs.declared.instants import to_datetime
from jobs.declared.kinds import GRADED_TABLES
from jobs.judge.observe.arrow_tables import to_table
from jobs.judge.observe.core_verdict import allocation_rows
from jobs.pipeline.inputs import strategy_rules
from jobs.pipeline.moments import MomentQuestion, moments_of_dumps, moments_of_tables
from jobs.schemas import REPORT_TABLES
from jobs.storage import Location
from rebalance_core import evaluate
from tests.support.reports import PublishedReports
from tests.support.truth import CAPTURES

pytestmark = pytest.mark.e2e

# ---------------------------------------------------------------- no Java is started


@pytest.fixture
def watched(tmp_path: Path) -> tuple[dict[str, str], Path]:
    """An environment in which whoever starts a Java fails, and the file that tells that he did."""
    started = tmp_path / "started"
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\n: > '{started}'\nexit 1\n")
    java.chmod(0o755)
    path = os.pathsep.join([str(java.parent), os.environ["PATH"]])
    return {"PATH": path, "HOME": str(tmp_path)}, started


@pytest.fixture
def without_java(tmp_path: Path) -> dict[str, str]:
    """An environment in which there is no Java to start."""
    return {"PATH": str(tmp_path / "nothing"), "HOME": str(tmp_path)}


def rebalance_audit(
    environment: dict[str, str], folder: Path, *arguments: str
) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).parent / "rebalance-audit"), *arguments]
    return run(command, environment, folder)


def run(
    command: list[str], environment: dict[str, str], folder: Path
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


RUN = ["run", "--dumps", str(CAPTURES / "S2"), "--output", "out"]


def test_a_run_of_a_small_input_starts_no_java(
    watched: tuple[dict[str, str], Path], tmp_path: Path
) -> None:
    environment, started = watched
    done = rebalance_audit(environment, tmp_path, *RUN)
    assert done.returncode == 0, done.stderr
    assert "engine local, without Spark: about" in done.stderr
    assert not started.exists()
    # The very same run on Spark begins with a Java.
    assert rebalance_audit(environment, tmp_path, *RUN, "--engine", "spark").returncode == 4
    assert started.exists()


#: Each in the same process, which imports all once; a code that is not 0 ends it.
EACH = """
import json, sys
from rebalance_audit.cli import main

for command in json.loads(sys.argv[1]):
    if main(command):
        sys.exit(f"{command} failed")
"""


def test_every_command_works_without_a_java(without_java: dict[str, str], tmp_path: Path) -> None:
    question = ["--group", "G_S2", "--topic", "T_S2"]
    commands = [
        RUN,
        ["ingest", "--dumps", str(CAPTURES / "S2"), "--snapshots", "s"],
        ["audit", "--snapshots", "s", "--reports", "out/reports", "--since", "last"],
        ["show", "group_health", "--reports", "out/reports"],
        ["report", "--reports", "out/reports"],
        ["alert", "--reports", "out/reports"],
        ["explain", "--snapshots", "s", *question],
        ["what-if", "--dumps", str(CAPTURES / "S2"), *question, "--leave", "10.0.2.9@app-1"],
    ]
    done = run([sys.executable, "-c", EACH, json.dumps(commands)], without_java, tmp_path)
    assert done.returncode == 0, done.stderr


# ---------------------------------------------------------------- what is answered

TABLES = {table.name: table for table in REPORT_TABLES}
Row = dict[str, Any]


@pytest.fixture(scope="module")
def settings(settings_file: str) -> Settings:
    """Those that the sample was audited with."""
    return load_settings(settings_file)


@pytest.mark.parametrize("source", ["dumps", pytest.param("tables", marks=pytest.mark.house)])
def test_every_moment_is_answered_with_what_was_published_of_it(
    sample_output: Path, sample: PublishedReports, settings: Settings, source: str
) -> None:
    """Since when it is so, who takes what, and every finding and fault, to the last word.

    Of each run its first snapshot and its last one. Dumps are asked for the end of each group:
    what is made of the rows is the same.
    """
    asked: dict[tuple[str, datetime], dict[str, Row]] = defaultdict(dict)
    for run in sample.rows("state_runs"):
        for at in {run["first_seen"], run["last_seen"]} if run["topic"] else ():
            asked[run["consumer_group"], at][run["topic"]] = run
    if source == "dumps":
        last = dict(sorted(asked)).items()
        asked = {each: asked[each] for each in last}
    assert len(asked) > (60 if source == "tables" else 10)
    allocations = defaultdict(list)
    for row in sample.rows("allocations"):
        allocations[row["state_id"]].append(str(row))
    for (group, at), runs in asked.items():
        question = MomentQuestion(group, None, at)
        if source == "dumps":
            dump = str(CAPTURES / group.removeprefix("G_"))
            moments = moments_of_dumps([dump], question, settings)
        else:
            moments = moments_of_tables(Location(sample_output / "snapshots"), question, settings)
        found = {each.state.topic: each for each in moments}
        for topic, run in runs.items():
            moment = found[topic]
            times = (moment.snapshot_time, moment.first_seen, moment.last_seen)
            assert [*map(to_datetime, times)] == [at, run["first_seen"], run["last_seen"]]
            evaluated = evaluate(moment.state, strategy_rules(settings))
            place = (run["cluster"], group, topic, run["state_id"])
            made = allocation_rows([place], [evaluated.allocations])
            taken = sorted(map(str, made.rows.to_pylist()))
            assert taken == sorted(allocations[run["state_id"]])
            for table in GRADED_TABLES:
                rows = [
                    row
                    for row in moment.judged[table]
                    if row["topic"] == topic
                    and row["first_seen"] <= moment.snapshot_time <= row["last_seen"]
                ]
                told = to_table(TABLES[table], rows).to_pylist()
                published = sample.at(table, group, topic, at)
                assert sorted(map(str, told)) == sorted(map(str, published)), (table, run)
