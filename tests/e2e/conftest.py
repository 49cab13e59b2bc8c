"""The real commands, in processes of their own, from another directory and without PYTHONPATH."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from jobs.java import find_java
from tests.support.reports import PublishedReports
from tests.support.truth import CAPTURES, SAMPLE_SETTINGS, SITUATIONS

Run = Callable[..., "subprocess.CompletedProcess[str]"]

ALL_DUMPS = [str(CAPTURES / situation / "dump.jsonl.gz") for situation in SITUATIONS]


@pytest.fixture(scope="session")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory that has nothing of the repository in it."""
    return tmp_path_factory.mktemp("elsewhere")


@pytest.fixture(scope="session")
def command_environment() -> dict[str, str]:
    """What a user's shell has: the environment's commands on the PATH, nothing of the checkout."""
    hidden = ("PYTHONPATH", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "SPARK_CONF_DIR")
    environment = {key: value for key, value in os.environ.items() if key not in hidden}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    return environment | find_java(environment)


@pytest.fixture(scope="session")
def run_command(elsewhere: Path, command_environment: dict[str, str]) -> Run:
    """Runs a command of the environment; its output is in the message when it fails."""

    def run(
        command: Sequence[str], expect: int = 0, cwd: Path = elsewhere, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            list(command),
            cwd=cwd,
            env=command_environment | variables,
            capture_output=True,
            text=True,
            check=False,
            # Far more than any takes: one that does not end is seen here.
            timeout=900,
        )
        assert done.returncode == expect, f"{done.returncode}:\n{done.stdout}\n{done.stderr}"
        return done

    return run


@pytest.fixture(scope="session")
def package(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Path:
    """The zip that ``make package`` builds."""
    built = tmp_path_factory.mktemp("package")
    make = ["make", "-s", "-C", str(repository), "package"]
    variables = [f"PYTHON={sys.executable}", f"DIST={built}"]
    subprocess.run([*make, *variables], check=True, capture_output=True)
    return built / "rebalance-audit.zip"


@pytest.fixture(scope="session")
def entries(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Path:
    """The spark-submit entry scripts alone, away from the packages that they import."""
    folder = tmp_path_factory.mktemp("entries")
    for name in ("ingest.py", "audit.py", "report.py"):
        shutil.copy(repository / "jobs" / name, folder / name)
    return folder


@pytest.fixture(scope="session")
def settings_file() -> str:
    """The settings of the sample dumps."""
    return str(SAMPLE_SETTINGS)


@pytest.fixture(scope="session")
def sample_output(
    tmp_path_factory: pytest.TempPathFactory, run_command: Run, settings_file: str
) -> Path:
    """What ``rebalance-audit run`` makes of all sample dumps, in its own process."""
    output = tmp_path_factory.mktemp("sample")
    where = ["--output", str(output), "--settings", settings_file]
    run_command(["rebalance-audit", "run", "--dumps", *ALL_DUMPS, *where])
    return output


@pytest.fixture(scope="session")
def sample(sample_output: Path) -> PublishedReports:
    """The reports of the sample dumps."""
    return PublishedReports(sample_output / "reports")
