"""Airflow as an operator has it: a home of its own, the DAGs' folder, a variable, a connection."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import mkdtemp

import pytest

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data" / "captures"
PLACE = Path(mkdtemp(prefix="test-airflow-"))

# Airflow reads its configuration when it is imported.
os.environ |= {
    "AIRFLOW_HOME": str(PLACE / "airflow"),
    "AIRFLOW__CORE__DAGS_FOLDER": str(ROOT / "jobs" / "airflow"),
    "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
    "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps(
        {"conn_type": "spark", "host": "local[2]", "extra": {"deploy-mode": "client"}}
    ),
    "AIRFLOW_VAR_REBALANCE_AUDIT": json.dumps(
        {
            "home": str(ROOT),
            **{name: (PLACE / name).as_uri() for name in ("dumps", "snapshots", "reports")},
            "settings": str(PLACE / "settings.toml"),
        }
    ),
    "SPARK_CONF_DIR": str(ROOT / "conf"),
}

Airflow = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def place() -> Path:
    """Where everything of the tests lies: dumps, snapshots, reports, Airflow's home."""
    return PLACE


@pytest.fixture(scope="session")
def airflow() -> Airflow:
    """Runs a command of Airflow's; its output is in the message when it fails."""

    def run(*arguments: str, expect: int = 0) -> subprocess.CompletedProcess[str]:
        command = [str(Path(sys.executable).parent / "airflow"), *arguments]
        done = subprocess.run(command, cwd=PLACE, capture_output=True, text=True, check=False)
        assert done.returncode == expect, f"{done.returncode}:\n{done.stdout}\n{done.stderr}"
        return done

    run("db", "migrate")
    return run
