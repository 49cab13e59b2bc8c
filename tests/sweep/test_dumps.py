"""Every number of every kind of line, beyond what it can be: the night is published all the same.

Each case is a cluster of one night. ``make test-sweep`` tries all of them, else every so many-th.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

from jobs.api import audit
from jobs.shell.report import Report
from tests.sweep.spoiled import cases, fields, night

#: Of the cases every so many-th is tried: 1 is all of them.
EVERY = int(os.environ.get("EVERY", "40"))
CONTROL = "control"
KINDS = {kind for kind, _ in fields()}
#: What differs from run to run, and not by what is found.
_BY_RUN = {"event_id", "texts"}

pytestmark = pytest.mark.long


def audited(folder: Path, lines: Any) -> Report:
    file = folder / "dump.jsonl"
    file.write_text("\n".join(lines) + "\n")
    return audit(str(file), {"allowed_quarantine_share": 1.0})


def of_control(report: Report) -> dict[str, list[str]]:
    """The rows of the cluster of which nothing was changed."""
    return {
        name: sorted(
            str({column: row[column] for column in row.keys() - _BY_RUN})
            for row in report[name].to_pylist()
            if row["cluster"] == CONTROL
        )
        for name in report
        if "cluster" in report[name].column_names
    }


def test_a_number_costs_its_line_and_never_the_night(tmp_path: Path) -> None:
    (tmp_path / "whole").mkdir()
    whole = of_control(audited(tmp_path / "whole", night([])))
    of_kinds = [[each for each in cases() if each.kind == kind] for kind in sorted(KINDS)]
    those = [each for of_kind in of_kinds for each in of_kind[::EVERY]]
    report = audited(tmp_path, night(those))
    assert of_control(report) == whole
    health = report["group_health"].to_pylist()
    # No number gets so far that a rule fails on it.
    assert [row for row in health if row["coverage"] == "AUDIT_FAILED"] == []
    groups = {(row["cluster"], row["consumer_group"]) for row in health}
    refused = {found for row in report["quarantine"].to_pylist() for found in _cluster(row["line"])}
    for case in those:
        is_there = (case.name, "G") in groups
        assert is_there or case.name in refused, case


def _cluster(line: str) -> list[str]:
    return [
        found.encode().decode("unicode_escape")
        for found in re.findall(r'"cluster": ?"((?:\\.|[^"\\])*)"', line)[:1]
    ]
