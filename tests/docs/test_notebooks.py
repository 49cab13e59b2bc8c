"""The notebooks run from top to bottom, and show what they show now."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.notebook import NOTEBOOKS, executed, place_in


def shown(notebook: dict[str, Any]) -> list[list[Any]]:
    """What each cell of code shows: its texts as they are, and that it has a figure."""
    return [
        [
            "figure" if "image/png" in output.get("data", {}) else texts(output)
            for output in cell["outputs"]
        ]
        for cell in notebook["cells"]
        if cell["cell_type"] == "code"
    ]


def texts(output: dict[str, Any]) -> str:
    return "".join(output.get("text") or output["data"]["text/plain"])


def of_kind(path: Path) -> Any:
    return pytest.param(path, marks=pytest.mark.spark if "spark" in path.stem else ())


@pytest.mark.house
@pytest.mark.parametrize("path", map(of_kind, NOTEBOOKS), ids=[path.stem for path in NOTEBOOKS])
def test_a_notebook_runs_and_shows_what_is_kept_in_it(
    path: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if "spark" in path.stem:
        request.getfixturevalue("spark")  # the one session of the tests
    kept = json.loads(path.read_text())
    now = executed(kept, place_in(tmp_path))
    assert shown(now) == shown(kept), "write it anew: make docs"
    assert "figure" in str(shown(now)) or "+---" in str(shown(now))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_names_no_machine_and_its_links_lead_somewhere(path: Path) -> None:
    notebook = json.loads(path.read_text())
    assert notebook["nbformat"] == 4
    assert not re.search(r"/(tmp|home|root|work|Users)/", path.read_text())
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            for target in re.findall(r"\]\(([^)#\s]+)", "".join(cell["source"])):
                assert (path.parent / target).is_file(), target
