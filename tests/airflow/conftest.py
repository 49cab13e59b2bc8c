"""Airflow as an operator has it: a home of its own, a file of DAGs, a connection, the wheel."""

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

#: What its owner writes: a DAG for each of two clusters, and who is told of what fails.
DAG_FILE = f"""
from datetime import timedelta
from pathlib import Path

from rebalance_audit.airflow import rebalance_audit_dag


def tell(context):
    with Path({str(PLACE / "failed.txt")!r}).open("a") as file:
        file.write(context["task_instance"].task_id + " failed\\n")


for cluster, gate in (("orders", "fail"), ("payments", "skip")):
    rebalance_audit_dag(
        f"audit_{{cluster}}",
        dumps=f"{PLACE.as_uri()}/{{cluster}}/dumps",
        snapshots=f"{PLACE.as_uri()}/{{cluster}}/snapshots",
        reports=f"{PLACE.as_uri()}/{{cluster}}/reports",
        settings={str(PLACE / "settings.toml")!r},
        gate=gate,
        spark={{"conn_id": "spark_of_ours"}},
        default_args={{
            "execution_timeout": timedelta(hours=2),
            "pool": "audits",
            "on_failure_callback": tell,
        }},
        tags=["payment" if cluster == "payments" else "order"],
    )
"""

# Airflow reads its configuration when it is imported.
os.environ |= {
    "AIRFLOW_HOME": str(PLACE / "airflow"),
    "AIRFLOW__CORE__DAGS_FOLDER": str(PLACE / "dags"),
    "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
    "AIRFLOW_CONN_SPARK_OF_OURS": json.dumps(
        {"conn_type": "spark", "host": "local[2]", "extra": {"deploy-mode": "client"}}
    ),
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
    run("pools", "set", "audits", "2", "for audits")
    return run


@pytest.fixture(scope="session")
def dag_file() -> Path:
    """The file of the DAGs, alone in its folder."""
    file = PLACE / "dags" / "audits.py"
    file.parent.mkdir()
    file.write_text(DAG_FILE)
    return file
