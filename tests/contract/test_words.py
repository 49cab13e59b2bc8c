"""One word for one thing: a type has a name of its own, and so has a file; docs list the folder."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
MODULES = [
    path for package in ("jobs", "rebalance_core") for path in (ROOT / package).rglob("*.py")
]
#: File names that stand for several files, and why they may.
FILES_TWICE = {
    "alert.py": "what spark-submit starts, and the command",
    "audit.py": "the job that is started, and its work",
    "errors.py": "of the jobs, and of the core, which does not know the jobs",
    "ingest.py": "what spark-submit starts, and the work",
    "report.py": "what spark-submit starts, and the command",
    "schemas.py": "the tables, and these as Spark's types",
}
#: What lies loose in jobs/ is what is started or imported by its path.
MOST_LOOSE = 12


def types_of(path: Path) -> Iterator[str]:
    """The classes and aliases of a module; a type variable is the name of no type."""
    for node in ast.parse(path.read_text()).body:
        match node:
            case ast.ClassDef(name=name):
                yield name
            case ast.AnnAssign(target=ast.Name(id=name), annotation=ast.Name(id="TypeAlias")):
                yield name
            case ast.Assign(value=ast.Call(func=ast.Name(id="TypeVar"))):
                continue
            case ast.Assign(targets=[ast.Name(id=name)]) if re.match(
                "_?[A-Z][A-Za-z0-9]*[a-z]", name
            ):
                yield name


def test_no_two_modules_declare_a_type_of_the_same_name() -> None:
    homes = defaultdict(set)
    for path in MODULES:
        for name in types_of(path):
            homes[name].add(str(path.relative_to(ROOT)))
    assert {name: home for name, home in homes.items() if len(home) > 1} == {}


def test_no_two_modules_have_the_same_file_name() -> None:
    names = [path.name for path in MODULES if not path.name.startswith("__")]
    assert {name for name in names if names.count(name) > 1} == set(FILES_TWICE)


def test_the_tree_of_the_architecture_is_the_listing_of_the_folder() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    lines = re.findall(
        r"(?m)^      ([a-z_][\w./]*(?:, [\w./]+)*) ", text.split("    jobs/\n")[1].split("\n\n")[0]
    )
    listed = [name.rstrip("/") for line in lines for name in line.split(", ")]
    there = {path.name for path in (ROOT / "jobs").iterdir() if not path.name.startswith("_")}
    assert sorted(listed) == sorted(there - {"py.typed"})


def test_few_modules_lie_loose() -> None:
    assert len(list((ROOT / "jobs").glob("*.py"))) <= MOST_LOOSE
