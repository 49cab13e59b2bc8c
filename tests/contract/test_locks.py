"""The lock files against pyproject.toml: one edited without the other fails here.

`make lock` writes requirements/*.lock. pip itself refuses a file whose hash is another.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent.parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT, GROUPS = PYPROJECT["project"], PYPROJECT["dependency-groups"]
EXTRAS = PROJECT["optional-dependencies"]
PYTHONS = ("3.11", "3.12", "3.13")


def with_extras(*extras: str) -> list[str]:
    """What the package requires, with these of its extras."""
    return [*PROJECT["dependencies"], *(text for extra in extras for text in EXTRAS[extra])]


#: What each lock is made of, as `make lock` asks for it.
DECLARED = {
    "build": GROUPS["build"],
    "tools": GROUPS["tools"],
    "runtime": with_extras(*EXTRAS),
    "local": with_extras("fast"),
    "spark": with_extras("spark", "fast"),
    "jre": with_extras("jre"),
    "dev": [*with_extras("spark", "fast", "apprise", "stores"), *GROUPS["dev"]],
    "site": GROUPS["site"],
}


@dataclass(frozen=True)
class Pin:
    """One package of a lock: ``numpy==2.4.6 ; python_full_version < '3.12'`` and what follows."""

    name: str
    version: str
    marker: Marker | None
    hashes: int
    is_asked_for: bool  # by pyproject.toml, not by another package alone

    def holds_for(self, python: str) -> bool:
        environment = {"python_version": python, "python_full_version": f"{python}.0"}
        return self.marker is None or self.marker.evaluate(environment)


def text_of(lock: str) -> str:
    return (ROOT / "requirements" / f"{lock}.lock").read_text()


def pins(lock: str) -> list[Pin]:
    found = []
    for block in re.split(r"^(?=[a-z0-9])", text_of(lock), flags=re.MULTILINE)[1:]:
        requirement = Requirement(block.splitlines()[0].removesuffix("\\"))
        (exactly,) = requirement.specifier
        assert exactly.operator == "==", block
        found.append(
            Pin(
                canonicalize_name(requirement.name),
                exactly.version,
                requirement.marker,
                len(re.findall(r"--hash=sha256:[0-9a-f]{64}\b", block)),
                f"{PROJECT['name']} (pyproject.toml" in block,
            )
        )
    return found


def pinned(lock: str, python: str) -> dict[str, Pin]:
    of_python = [pin for pin in pins(lock) if pin.holds_for(python)]
    assert len({pin.name for pin in of_python}) == len(of_python)
    return {pin.name: pin for pin in of_python}


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("lock", DECLARED)
def test_every_dependency_is_locked_within_its_range(lock: str, python: str) -> None:
    found = pinned(lock, python)
    for requirement in map(Requirement, DECLARED[lock]):
        if requirement.marker and not requirement.marker.evaluate({"python_version": python}):
            continue
        pin = found.get(canonicalize_name(requirement.name))
        assert pin is not None, f"{requirement} is not in {lock}.lock: make lock"
        assert requirement.specifier.contains(pin.version), f"{requirement}, {pin}: make lock"


@pytest.mark.parametrize("lock", DECLARED)
def test_a_lock_has_nothing_that_is_no_longer_asked_for(lock: str) -> None:
    declared = {canonicalize_name(Requirement(text).name) for text in DECLARED[lock]}
    assert {pin.name for pin in pins(lock) if pin.is_asked_for} == declared, "make lock"


@pytest.mark.parametrize("lock", DECLARED)
def test_every_pin_has_its_hashes_and_any_index_serves_them(lock: str) -> None:
    assert all(pin.hashes for pin in pins(lock))
    assert not re.search(r"https?:|file:|^--|index-url|find-links| @ ", text_of(lock), re.MULTILINE)


@pytest.mark.parametrize("lock", ["local", "spark", "jre", "runtime"])
def test_the_locks_agree(lock: str) -> None:
    """What is tested is what is shipped, and what `make audit` runs."""
    for python in PYTHONS:
        tested, other = pinned("dev", python), pinned(lock, python)
        for name in tested.keys() & other.keys():
            assert tested[name].version == other[name].version


def test_what_a_locked_package_needs_is_locked() -> None:
    locked = {pin.name: pin.version for pin in pins("dev")}
    seen = 0
    for name, version in locked.items():
        try:
            installed = distribution(name)
        except PackageNotFoundError:  # another platform's, such as colorama
            continue
        if installed.version != version:  # somebody tries another one
            continue
        seen += 1
        for each in map(Requirement, installed.requires or ()):
            if each.marker is None or each.marker.evaluate({"extra": ""}):
                assert canonicalize_name(each.name) in locked, f"{name} needs {each}: make lock"
    assert seen > 20


def test_every_lock_is_tested_and_every_requirement_file_is_a_lock() -> None:
    locks = {f"{lock}.lock" for lock in DECLARED}
    assert {path.name for path in (ROOT / "requirements").iterdir()} == {*locks, "constraints.txt"}
