"""The import rule: who may import whom, read from the code itself."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
STEPS = ("dumps", "snapshots", "states", "episodes", "reports")
STANDARD = set(sys.stdlib_module_names) | {"__future__"}


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"relative import in {path}"
            yield str(node.module)


def modules(folder: str) -> list[Path]:
    found = sorted((ROOT / folder).rglob("*.py"))
    assert found
    return found


@pytest.mark.parametrize("path", modules("rebalance_core"), ids=lambda path: path.name)
def test_the_core_imports_the_standard_library_and_numpy_alone(path: Path) -> None:
    allowed = STANDARD - {"io", "os", "pathlib", "time", "datetime", "random", "socket"}
    for name in imports(path):
        assert name.split(".")[0] in allowed | {"numpy", "rebalance_core"}, name


@pytest.mark.parametrize("step", STEPS)
def test_steps_do_not_import_each_other(step: str) -> None:
    # The kinds and bodies of the records are the vocabulary in which dumps and snapshots meet.
    vocabulary = {"jobs.dumps.bodies", "jobs.dumps.plain"}
    for path in modules(f"jobs/{step}"):
        for name in set(imports(path)) - vocabulary:
            others = {f"jobs.{other}" for other in (*STEPS, "pipeline", "cli") if other != step}
            assert not any(name == each or name.startswith(each + ".") for each in others), (
                f"{path}: {name}"
            )


def test_what_runs_in_a_worker_needs_only_pandas_numpy_and_pyarrow() -> None:
    # pydantic, and anything else of the driver's, may be absent on an executor.
    code = (
        "import sys\n"
        "import jobs, jobs.states.evaluation, jobs.dumps.bodies, jobs.dumps.files\n"
        "print(sorted({name.split('.')[0] for name in sys.modules}))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    loaded = set(ast.literal_eval(done.stdout))
    assert "pydantic" not in loaded
    assert "numpy" in loaded


@pytest.mark.parametrize(
    ("module", "only"),
    [("argparse", {"cli.py"}), ("pyarrow.fs", {"storage.py"})],
)
def test_argv_and_storage_each_live_in_one_place(module: str, only: set[str]) -> None:
    users = {path.name for path in modules("jobs") if module in set(imports(path))}
    assert users == only


def test_the_clock_is_read_in_one_place() -> None:
    readers = {
        path.name
        for path in [*modules("jobs"), *modules("rebalance_core")]
        if any(text in path.read_text() for text in ("datetime.now", "time.time(", "utcnow"))
    }
    assert readers == {"cli.py"}


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
