from __future__ import annotations

import subprocess
import sys
import tomllib
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from pyspark.errors import PySparkRuntimeError

import jobs
from jobs.engines.environment import RANGES, check_packages
from jobs.errors import SparkError
from jobs.spark import session as sessions
from jobs.spark.session import fitting_workers

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"


def install(monkeypatch: pytest.MonkeyPatch, **versions: str | None) -> None:
    """A Python with these versions; None: the package is not there."""
    for name, version in versions.items():
        module = None if version is None else SimpleNamespace(__version__=version)
        monkeypatch.setitem(sys.modules, name, module)


EXTRAS = tomllib.loads(PYPROJECT.read_text())["project"]["optional-dependencies"]
EXTRA = [*map(Requirement, EXTRAS["spark"])]


def test_the_ranges_are_those_that_pip_is_given() -> None:
    declared = {each.name: each.specifier for each in EXTRA if not each.marker}
    assert declared == {
        name: SpecifierSet(f">={oldest},<{too_new}") for name, (oldest, too_new) in RANGES.items()
    }


@pytest.mark.parametrize(
    ("pyspark", "pandas"), [("3.5.0", "2.2.0"), ("4.1.0.dev1", "2.3.3"), ("4.12.1", "2.4.0")]
)
def test_versions_in_range_fit(monkeypatch: pytest.MonkeyPatch, pyspark: str, pandas: str) -> None:
    install(monkeypatch, pyspark=pyspark, pandas=pandas)
    check_packages()


def test_what_is_installed_is_what_pyspark_is_tested_with() -> None:
    """With pandas 3 pyspark 4.3 warns as it looks for pandas, and its tests' module needs one."""
    looks = "from pyspark.sql.pandas.utils import require_minimum_pandas_version as look; look()"
    imports = "from pyspark.testing import assertDataFrameEqual"
    program = [sys.executable, "-W", "error::FutureWarning", "-c", f"{looks}; {imports}"]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("versions", "expected"),
    [
        ({"pyspark": None}, "Spark needs the Python package pyspark, which "),
        ({"pyspark": "3.4.9"}, "expected pyspark 3.5 or later and before 5, came 3.4.9"),
        ({"pyspark": "5.0.0"}, "expected pyspark 3.5 or later and before 5, came 5.0.0"),
        ({"pandas": None}, "Spark needs the Python package pandas, which "),
        ({"pandas": "3.0.0"}, "expected pandas 2.2 or later and before 3, came 3.0.0"),
    ],
)
def test_what_does_not_fit_is_one_sentence_with_what_to_install(
    monkeypatch: pytest.MonkeyPatch, versions: dict[str, str | None], expected: str
) -> None:
    install(monkeypatch, **{"pyspark": "4.3.0", "pandas": "2.3.3"} | versions)
    with pytest.raises(SparkError) as refused:
        check_packages()
    assert expected in str(refused.value)
    assert "pip install 'rocketmq-rebalance-audit[spark]'" in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(("version", "is_refused"), [("3.5.9", True), ("4.0.0", False)])
def test_an_old_spark_on_a_python_without_distutils_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, version: str, is_refused: bool
) -> None:
    install(monkeypatch, pyspark=version, pandas="2.3.3")
    monkeypatch.setattr("jobs.engines.environment.find_spec", lambda _: None)
    told = pytest.raises(SparkError, match=r"module distutils.*: pip install setuptools")
    with told if is_refused else nullcontext():
        check_packages()


def test_the_extra_brings_distutils_where_python_has_none() -> None:
    (marked,) = [each for each in EXTRA if each.marker]
    assert marked.name == "setuptools"
    wanted = {"3.11": False, "3.12": True, "3.13": True}
    assert {each: marked.marker.evaluate({"python_version": each}) for each in wanted} == wanted


@pytest.mark.parametrize(("version", "rows"), [("3.5.9", "4"), ("4.0.1", "4"), ("4.1.0", "10000")])
def test_rows_bound_a_batch_only_where_bytes_do_not(version: str, rows: str) -> None:
    assert sessions._rows_of_a_batch(version) == rows


@pytest.mark.parametrize(("of_pieces", "of_rows"), [("4", "200"), ("10000", "10000")])
def test_a_callers_rows_are_many_in_a_batch_pieces_as_before(of_pieces: str, of_rows: str) -> None:
    values = {sessions._ROWS_OF_A_BATCH: of_pieces}
    conf = SimpleNamespace(get=values.get, set=values.__setitem__)
    own: Any = SimpleNamespace(conf=conf)
    with pytest.raises(ZeroDivisionError), sessions.for_rows(own):
        assert values == {sessions._ROWS_OF_A_BATCH: of_rows}
        1 / 0  # noqa: B018 - an audit that fails
    assert values == {sessions._ROWS_OF_A_BATCH: of_pieces}


class Context:
    """As much of a SparkContext as is asked; a task fails with ``failure``."""

    def __init__(self, python: str, master: str, failure: Exception | None = None) -> None:
        self.pythonExec = python
        self.master = master
        self.failure = failure
        self.tasks = 0

    def parallelize(self, _values: list[int], _tasks: int) -> Context:
        return self

    def foreach(self, _function: Any) -> None:
        self.tasks += 1
        if self.failure is not None:
            raise self.failure


def session(context: Context) -> Any:
    return SimpleNamespace(sparkContext=context)


@pytest.mark.parametrize("master", ["local", "local[*]", "local-cluster[2,1,1024]"])
def test_workers_here_take_this_python_where_none_is_named(master: str) -> None:
    # Else a notebook whose environment is not activated fails after minutes.
    context = Context("python3", master)
    with fitting_workers(session(context)):
        assert context.pythonExec == sys.executable
    assert (context.pythonExec, context.tasks) == ("python3", 0)


def test_the_python_of_the_session_comes_back_after_a_failure() -> None:
    context = Context("python3", "local[1]")
    with pytest.raises(ZeroDivisionError), fitting_workers(session(context)):
        raise ZeroDivisionError
    assert context.pythonExec == "python3"


def test_the_last_of_several_audits_gives_the_python_back() -> None:
    context = Context("python3", "local[2]")
    first, second = (fitting_workers(session(context)) for _ in range(2))
    first.__enter__()
    with second:
        first.__exit__(None, None, None)
        assert context.pythonExec == sys.executable
    assert (context.pythonExec, context.tasks) == ("python3", 0)


@pytest.mark.parametrize(
    ("python", "master", "tasks"),
    [
        (sys.executable, "local[2]", 0),
        ("/another/python", "local[2]", 1),
        ("python3", "yarn", 1),
        # The same path on another machine may be another Python.
        (sys.executable, "spark://host:7077", 1),
    ],
)
def test_a_python_named_or_elsewhere_is_asked_once(python: str, master: str, tasks: int) -> None:
    context = Context(python, master)
    for _ in range(2):
        with fitting_workers(session(context)):
            assert context.pythonExec == python
        assert context.tasks == tasks
    context.pythonExec = "/yet/another/python"
    with fitting_workers(session(context)):
        assert context.tasks == tasks + 1


def test_a_worker_that_does_not_fit_is_one_sentence_before_anything_runs() -> None:
    said = "Traceback:\nModuleNotFoundError: No module named 'pandas'"
    context = Context("./env/bin/python", "yarn", PySparkRuntimeError(said))
    ran = False
    with pytest.raises(SparkError) as refused, fitting_workers(session(context)):
        ran = True
    assert not ran
    with pytest.raises(SparkError), fitting_workers(session(context)):
        pass  # what does not fit is asked again
    assert context.tasks == 2
    assert "./env/bin/python: the workers' Python has no module pandas" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_worker_imports_all_that_the_jobs_need_there() -> None:
    sessions._import_all(0)
    assert set(sessions._OF_A_WORKER) <= set(sys.modules)


def test_without_spark_what_needs_it_says_so_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def is_not_there(*_: str) -> None:
        raise ModuleNotFoundError("No module named 'pyspark'", name="pyspark")

    monkeypatch.setattr("jobs.import_module", is_not_there)
    with pytest.raises(
        ImportError, match=r"rebalance_audit.read_reports needs Spark: pip install '.+\[spark\]'"
    ):
        jobs.__getattr__("read_reports")
