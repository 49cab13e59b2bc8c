"""The page about failures names tests: each of them is there."""

from __future__ import annotations

import re
from pathlib import Path


def test_every_test_that_the_page_about_failures_names_is_there(repository: Path) -> None:
    page = (repository / "docs" / "reliability.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(test_\w+)`", page))
    tests = repository / "tests"
    files = [
        file for folder in ("faults", "e2e", "storage") for file in tests.glob(f"{folder}/*.py")
    ]
    defined = {
        name
        for file in files
        for name in re.findall(r"^def (test_\w+)\(", file.read_text(encoding="utf-8"), re.M)
    }
    assert len(named) > 20
    assert named <= defined, sorted(named - defined)
