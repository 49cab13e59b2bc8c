"""The README as an index of packages shows it: no link of it is relative to the checkout."""

from __future__ import annotations

import doctest
import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture
def setup(repository: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("setup", repository / "setup.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("url", ["", "https://example.org/x"])
def test_every_link_leads_somewhere_or_is_none(
    url: str, setup: ModuleType, repository: Path
) -> None:
    readme = (repository / "README.md").read_text(encoding="utf-8")
    shown = setup.description(readme, url)
    targets = re.findall(r"\]\(([^)]*)\)", shown)
    assert all(target.startswith("https://") for target in targets)
    assert len(targets) == (len(re.findall(r"\]\([^)]*\)", readme)) if url else 0)
    # What is not a link is as it was.
    assert shown.count("```") == readme.count("```")


def test_the_examples_hold(setup: ModuleType) -> None:
    assert doctest.testmod(setup) == doctest.TestResults(failed=0, attempted=2)
