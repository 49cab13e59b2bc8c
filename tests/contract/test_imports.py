"""The import rule: who may import whom, read from the code itself."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

from jobs.console.options import COMMANDS

ROOT = Path(__file__).parent.parent.parent
#: The steps of the work, and what each may use of the others: words that both sides share.
STEPS = {
    "collect": {"dumps.parsing"},
    "dumps": set(),
    "snapshots": {"dumps", "declared.dossier"},
    "fold": {"declared.dossier"},
    "judge": set(),
    "publish": {
        "fold.slice_facts",
        "declared.dossier",
        "reports.tables",
    },
    "reports": {"judge.observe.core_verdict", "judge.moment"},
    "rendering": {
        *("reports.commands", "reports.problems", "reports.run_findings"),
        *("reports.tables", "reports.words"),
    },
}
#: Where pyspark may be imported. Else it has its place where nothing of it runs: of the API's
#: signature, for whoever checks types.
ON_SPARK = "spark/"
FOR_TYPES = {"api.py"}
#: What spark-submit starts, by the names of the installed package; what stands for itself.
ENTRIES = ("alert", "ingest", "report", "airflow", "jre")
STANDARD = set(sys.stdlib_module_names) | {"__future__"}


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@cache
def imports(path: Path) -> frozenset[str]:
    return frozenset(_imports(tree(path), path))


def _imports(module: ast.Module, path: Path) -> Iterator[str]:
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield _absolute(node, path)


def _absolute(node: ast.ImportFrom, path: Path) -> str:
    """What is imported, by its name from the top of the checkout."""
    package = path.relative_to(ROOT).parent.parts
    base = package[: len(package) + 1 - node.level] if node.level else ()
    return ".".join([*base, *([node.module] if node.module else [])])


def modules(folder: str) -> list[Path]:
    found = sorted((ROOT / folder).rglob("*.py"))
    assert found
    return found


@pytest.mark.parametrize("path", modules("rebalance_core"), ids=lambda path: path.name)
def test_the_core_imports_the_standard_library_and_numpy_alone(path: Path) -> None:
    allowed = STANDARD - {"io", "os", "pathlib", "time", "datetime", "random", "socket"}
    if path.name == "texts.py":  # it writes times in the zone of the reader, and asks no clock
        assert ".now(" not in path.read_text()
        allowed |= {"datetime"}
    for name in imports(path):
        assert name.split(".")[0] in allowed | {"numpy", "rebalance_core"}, name


def packages(text: str) -> list[str]:
    """The packages and modules that a sentence of ARCHITECTURE.md names, in its order."""
    found = re.search(text + r"((?:\s*`\w+`,?)+)\.", (ROOT / "ARCHITECTURE.md").read_text())
    assert found, text
    return re.findall(r"\w+", found[1])


#: Those of all, each of which imports what stands before it, and the floors of two of them.
ORDER = packages("Imports go one way, each of these to those before it:")
FLOORS = {"judge": packages("Within `judge`:"), "rebalance_core": ["strategies"]}
#: Imports that go up all the same, each with its reason.
UPWARDS = {
    ("console", ""): "the version stands in the package itself, for the zip of spark-submit",
    ("alerts", ""): "as above",
    ("rendering", ""): "as above",
}


def imported_modules(path: Path) -> set[str]:
    """The modules of the project that a module imports, wherever in it."""
    found = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.ImportFrom):
            base = _absolute(node, path)
            names = {f"{base}.{alias.name}" for alias in node.names}
            modules_there = {name for name in names if is_module(name)}
            found |= modules_there or {base}
    return {name for name in found if name.split(".")[0] in ("jobs", "rebalance_core")}


def is_module(name: str) -> bool:
    path = ROOT / Path(*name.split("."))
    return path.is_dir() or path.with_suffix(".py").is_file()


def place_of(name: str) -> str:
    """The package, or the module beside the packages, that a name from the top is in."""
    top, *below = name.split(".")
    return top if top == "rebalance_core" else "".join(below[:1])


def test_imports_go_down_only() -> None:
    """Every package has its place in the order, so that there is no circle either."""
    upwards, places = set(), set()
    for path in [*modules("rebalance_core"), *modules("jobs")]:
        own = place_of(".".join(path.relative_to(ROOT).with_suffix("").parts))
        if own in ("__init__", "__main__", *ENTRIES):
            continue
        places.add(own)
        for name in imported_modules(path):
            there = place_of(name)
            if there != own and (not there or ORDER.index(there) > ORDER.index(own)):
                upwards.add((own, there))
    assert places == set(ORDER)
    assert upwards <= UPWARDS.keys(), upwards - UPWARDS.keys()


@pytest.mark.parametrize("package", FLOORS)
def test_floors_of_a_package_import_those_below(package: str) -> None:
    """What lies beside the floors is above all of them, or below: then it imports none."""
    floors, folder = FLOORS[package], "jobs/judge" if package == "judge" else package
    below = set()
    for path in modules(folder):
        within = path.relative_to(ROOT / folder).parts
        floor = within[0] if len(within) > 1 else ""
        for name in imported_modules(path):
            prefix = folder.replace("/", ".") + "."
            if floor and name.startswith(prefix):
                there = name.removeprefix(prefix).split(".")[0]
                if there not in floors:
                    below.add(there)
                else:
                    assert floors.index(there) <= floors.index(floor), f"{path}: {name}"
    for module in below:
        used = imported_modules(ROOT / folder / f"{module}.py")
        assert not {name for name in used for floor in floors if f".{floor}." in f"{name}."}, module


@pytest.mark.parametrize("step", STEPS)
def test_a_step_knows_of_the_others_only_the_words_that_they_share(step: str) -> None:
    shared = {f"jobs.{name}" for name in STEPS[step]}
    others = {
        f"jobs.{other}"
        for other in (*STEPS, "pipeline", "cli", "commands", "airflow")
        if other != step
    }
    for path in modules(f"jobs/{step}"):
        for name in imports(path):
            if not any(is_within(name, each) for each in shared):
                assert not any(is_within(name, each) for each in others), f"{path}: {name}"


def is_within(name: str, package: str) -> bool:
    return name == package or name.startswith(package + ".")


@pytest.mark.parametrize(
    ("made", "maker"),
    [
        ("problem_rows", "judge/history.py"),
        ("make_verdict", "publish/publish.py"),
        ("Tally", "publish/publish.py"),
    ],
)
def test_a_problem_and_a_verdict_have_one_maker(made: str, maker: str) -> None:
    """Whoever shows them reads the tables: two that made them would disagree one day."""
    users = {
        str(path.relative_to(ROOT / "jobs"))
        for path in modules("jobs")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == made
    }
    assert users == {maker}


def test_nothing_but_the_entries_knows_the_command_line() -> None:
    users = {path.name for path in modules("jobs") if "jobs.cli" in imports(path)}
    assert users == {"__main__.py"}
    entries = {path.name for path in modules("jobs") if "rebalance_audit.cli" in imports(path)}
    assert entries == {"alert.py", "audit.py", "ingest.py", "report.py"}


@pytest.mark.e2e
def test_the_job_does_not_take_the_name_of_the_function() -> None:
    """``jobs/audit.py`` is a module, and ``rebalance_audit.audit`` the function of the API."""
    code = "import jobs.commands.batch, jobs.audit\nfrom jobs import audit\naudit.__code__"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_modules_import_each_other_by_place_so_that_the_folder_may_have_another_name() -> None:
    """Installed it is ``rebalance_audit``; a package ``jobs`` is somebody else's."""
    for path in modules("jobs"):
        named = {
            alias.name if isinstance(node, ast.Import) else node.module
            for node in ast.walk(tree(path))
            if isinstance(node, ast.Import) or (isinstance(node, ast.ImportFrom) and not node.level)
            for alias in node.names
        }
        mine = {name for name in named if name and is_within(name, "jobs")}
        assert not mine, f"{path}: {mine}"


def test_every_package_is_installed() -> None:
    """What is installed under another name than its folder's is listed in pyproject.toml.

    Folders of templates and texts too: setuptools asks for them, and warns with 100 lines.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    folders = {
        ".".join(path.relative_to(ROOT).parent.parts)
        for package in ("jobs", "rebalance_core")
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert project["package-dir"] == {"rebalance_audit": "jobs"}
    listed = {re.sub("^rebalance_audit", "jobs", name) for name in project["packages"]}
    assert listed == folders


def test_spark_is_imported_in_its_own_room_alone() -> None:
    found = {
        str(path.relative_to(ROOT / "jobs"))
        for path in modules("jobs")
        if any(is_within(name, each) for name in imports(path) for each in ("pyspark", "py4j"))
    }
    assert {name for name in found if not name.startswith(ON_SPARK)} == FOR_TYPES


def test_the_two_audits_from_python_share_a_room_and_do_not_know_each_other() -> None:
    """A shell without Spark has the one, and goes to the other where it is given a session."""
    assert "jobs.spark.auditing" in imports(ROOT / "jobs" / "api.py")
    for folder in ("spark", "shell"):
        for path in modules(f"jobs/{folder}"):
            assert "jobs.api" not in imports(path), path


def test_the_room_of_spark_is_entered_by_the_functions_that_need_it() -> None:
    """Spark takes its time to import, and may not be there."""
    for path in modules("jobs"):
        if path.is_relative_to(ROOT / "jobs" / "spark"):
            continue
        for node in tree(path).body:
            if isinstance(node, ast.ImportFrom):
                assert not is_within(_absolute(node, path), "jobs.spark"), path


def loaded_by(*steps: str) -> list[set[str]]:
    """The packages that one process has after each of these steps."""
    say = "print(sorted({name.split('.')[0] for name in sys.modules}))"
    code = "\n".join(["import sys", *(f"{step}\n{say}" for step in steps)])
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [
        set(ast.literal_eval(line)) for line in done.stdout.splitlines() if line.startswith("['")
    ]


@pytest.mark.e2e
def test_what_runs_in_a_worker_needs_only_numpy_pandas_and_pyarrow() -> None:
    # pydantic, and anything else of the driver's, may be absent on an executor.
    steps = [
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for step in ("dumps", "snapshots", "fold", "judge")
        for path in modules(f"jobs/{step}")
    ]
    assert len(steps) > 30
    names = ", ".join(["jobs", "jobs.engines.pieces", "jobs.pipeline.group_audit", *steps])
    loaded, of_the_engine = loaded_by(f"import {names}", "import jobs.spark.spark_engine")
    assert {"numpy", "pyarrow"} <= loaded
    assert not {"pyspark", "py4j", "pydantic", "prometheus_client", "jinja2"} & loaded
    assert not {"pydantic", "prometheus_client", "jinja2"} & of_the_engine


@pytest.mark.e2e
def test_an_alert_and_a_run_on_a_small_input_import_no_spark() -> None:
    """Spark takes longer to import than such a run takes; pandas comes with PyArrow's datasets."""
    captures = ROOT / "tests" / "data" / "captures" / "S2"
    run = (
        "import tempfile, jobs.cli\n"
        "with tempfile.TemporaryDirectory() as folder:\n"
        f"    code = jobs.cli.main(['run', '--dumps', {str(captures)!r}, '--output', folder])\n"
        "assert code == 0\n"
    )
    by_alert, by_run = loaded_by("import jobs.alerts.alerting", run)
    assert "pyarrow" in by_run
    assert not {"pyspark", "py4j"} & (by_alert | by_run)


#: What takes its time to import, and is of no use for an answer about the command line itself.
SLOW = {"numpy", "pyarrow", "pydantic", "rich", "jinja2", "pandas", "rebalance_core"}


@pytest.mark.long
def test_an_answer_about_the_command_line_imports_no_library() -> None:
    asked = [
        ["--version"],
        [],
        *([name, "--help"] for name in sorted(COMMANDS)),
        ["shw"],
        ["run", "--engine", "x"],
        ["run", "--dumps", "token=12345678", "--output", "-"],
        ["what-if", "--topic", "T"],
    ]
    # One process gives all answers, for starting one takes longer than an answer.
    answers = [
        f"import jobs.cli\ntry:\n    jobs.cli.main({each!r})\nexcept SystemExit: pass"
        for each in asked
    ]
    for each, loaded in zip(asked, loaded_by(*answers), strict=True):
        assert not SLOW & loaded, each


def test_what_a_shell_completes_imports_no_library_but_for_the_names_of_a_run() -> None:
    code = (
        "import io, os\n"
        "os.environ |= {'_ARGCOMPLETE': '1', 'COMP_LINE': 'rebalance-audit show --f', "
        "'COMP_POINT': '24'}\n"
        "import argcomplete\n"
        "from jobs.commands import completion\n"
        "out = io.StringIO()\n"
        "argcomplete.autocomplete(completion.build_parser('show'), output_stream=out, "
        "exit_method=lambda _: None, default_completer=completion._Completer())\n"
        "assert '--format' in out.getvalue()\n"
    )
    (loaded,) = loaded_by(code)
    assert "argcomplete" in loaded
    assert not SLOW & loaded


STORAGE = ("lease", "location", "manifest", "retention", "snapshots")


@pytest.mark.parametrize(
    ("module", "only"),
    [
        ("argparse", {"arguments.py"}),
        ("pyarrow.fs", {f"{name}.py" for name in STORAGE}),
        ("prometheus_client", {"collector.py", "metrics.py"}),
        ("urllib.request", {"service.py"}),
        ("smtplib", {"mail.py"}),
    ],
)
def test_argv_storage_and_the_network_each_live_in_one_place(module: str, only: set[str]) -> None:
    users = {path.name for path in modules("jobs") if module in imports(path)}
    assert users == only


def test_the_snapshot_tables_are_opened_at_one_gate() -> None:
    """Whoever reads a row of them reads a checked one; ``Snapshots`` gives columns and counts."""
    for name, only in (
        ("unchecked", {"fold/checked_rows.py", "storage/snapshots.py"}),
        ("open_files", {"fold/slices.py", "fold/numbers.py"}),
    ):
        users = {
            path.relative_to(ROOT / "jobs").as_posix()
            for path in modules("jobs")
            for node in ast.walk(tree(path))
            if name
            in (getattr(node, "attr", ""), getattr(node, "id", ""), getattr(node, "name", ""))
        }
        assert users == only, name


def test_the_clock_is_read_in_one_place() -> None:
    readers = {
        path.name
        for path in [*modules("jobs"), *modules("rebalance_core")]
        if any(text in path.read_text() for text in ("datetime.now", "time.time(", "utcnow"))
    }
    # The DAG asks how old the dumps are.
    assert readers == {"window.py", "__init__.py"}


def test_the_dag_imports_nothing_of_the_project() -> None:
    for name in imports(ROOT / "jobs" / "airflow" / "__init__.py"):
        assert name.split(".")[0] in STANDARD | {"airflow"}, name


def test_java_is_looked_for_without_spark() -> None:
    # conf/spark-env.sh asks before there is a Java, and so before there is a Spark.
    for name in imports(ROOT / "jobs" / "java.py"):
        assert name.split(".")[0] in STANDARD | {"jobs"}, name
        assert not name.startswith("jobs.") or name == "jobs.errors", name


def test_every_cache_of_the_core_is_bounded() -> None:
    caches = {
        f"{path.stem}.{name}": value.cache_parameters()["maxsize"]
        for path in modules("rebalance_core")
        for name, value in vars(
            import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
        ).items()
        if hasattr(value, "cache_parameters")
    }
    assert caches
    assert all(size is not None and size <= 16_384 for size in caches.values()), caches
