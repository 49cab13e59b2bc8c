"""The audit of lines that a test makes."""

from __future__ import annotations

import json

import pytest

from jobs.cli import main
from tests.support.audited import audit_dumps
from tests.support.sentences import no_empty_values

__all__ = ["audit", "no_empty_values", "run"]


@pytest.fixture
def audit(tmp_path):
    """The report tables of these lines."""

    def audited(lines):
        found = audit_dumps([written(tmp_path, lines)])
        assert found["quarantine"] == []
        return found

    return audited


@pytest.fixture
def run(tmp_path, capsys):
    """The exit code of a run of these lines, and all that it says, as one line."""

    def run(lines, *options):
        given = ["--dumps", str(written(tmp_path, lines)), "--output", str(tmp_path / "out")]
        code = main(["run", *given, "--engine", "local", "--workers", "1", *options])
        return code, " ".join("".join(capsys.readouterr()).split())

    return run


def written(folder, lines):
    path = folder / "dump.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in lines))
    return path
