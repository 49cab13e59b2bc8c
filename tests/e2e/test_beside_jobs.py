"""In a folder that has a package ``jobs`` of the user's own, as the repository of many has."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.conftest import Run
from tests.support.truth import CAPTURES

pytestmark = pytest.mark.e2e

DUMP = str(CAPTURES / "S2" / "dump.jsonl.gz")
LOCAL = """
import sys
from rebalance_audit import audit

print("stacked:", audit(sys.argv[1])["stacked_client_ids"].num_rows)
"""
SPARK = """
import sys
from pyspark.sql import SparkSession
from rebalance_audit import audit

conf = {"spark.ui.enabled": "false", "spark.driver.bindAddress": "127.0.0.1"}
spark = SparkSession.builder.master("local[1]").config(map=conf).getOrCreate()
print("stacked:", audit(sys.argv[1], spark=spark)["stacked_client_ids"].num_rows)
spark.stop()
"""


@pytest.fixture
def beside(tmp_path: Path, run_command: Run) -> Callable[..., str]:
    """What a command prints in such a folder. The package there cannot even be imported."""
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "__init__.py").write_text("raise RuntimeError('this is the user\\'s')\n")
    return lambda *command: run_command(command, cwd=tmp_path).stdout


@pytest.mark.house
def test_a_shell_and_the_processes_of_a_command_audit(beside: Callable[..., str]) -> None:
    assert beside(sys.executable, "-c", LOCAL, DUMP) == "stacked: 1\n"
    run = ["rebalance-audit", "run", "--dumps", DUMP, "--output", "out", "--workers", "2"]
    assert "1 shared client id, in 2 groups and topics" in beside(*run)
    as_module = beside(sys.executable, "-m", "rebalance_audit", "show", "stacked_client_ids")
    assert "10.0.2.10@app-DUP" in as_module


@pytest.mark.spark
@pytest.mark.house
def test_the_workers_of_a_session_audit(beside: Callable[..., str]) -> None:
    assert beside(sys.executable, "-c", SPARK, DUMP) == "stacked: 1\n"
