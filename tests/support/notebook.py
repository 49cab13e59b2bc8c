"""Runs the cells of a notebook as Jupyter does, without Jupyter.

``python -m tests.support.notebook`` runs those of docs/notebooks and keeps what they show.
"""

from __future__ import annotations

import ast
import base64
import io
import json
import os
from contextlib import chdir, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).parent.parent.parent
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))

Notebook = dict[str, Any]


def executed(notebook: Notebook, folder: Path) -> Notebook:
    """The notebook with the outputs of its cells, run from top to bottom in the folder."""
    os.environ["MPLBACKEND"] = "agg"
    values: dict[str, Any] = {"__name__": "__main__"}
    cells, number = [], 0
    with chdir(folder):
        for cell in notebook["cells"]:
            if cell["cell_type"] != "code":
                cells.append(cell)
                continue
            number += 1
            outputs = _outputs("".join(cell["source"]), values, number)
            cells.append({**cell, "execution_count": number, "outputs": outputs})
    return {**notebook, "cells": cells}


def _outputs(source: str, values: dict[str, Any], number: int) -> list[dict[str, Any]]:
    """What a cell prints, the value of its last line, and its figures."""
    body = ast.parse(source).body
    last = ast.Expression(body.pop().value) if isinstance(body[-1], ast.Expr) else None
    result = None
    with redirect_stdout(io.StringIO()) as printed:
        exec(compile(ast.Module(body, []), f"cell {number}", "exec"), values)  # noqa: S102
        if last is not None:
            result = eval(compile(last, f"cell {number}", "eval"), values)  # noqa: S307
    outputs: list[dict[str, Any]] = []
    if text := printed.getvalue():
        lines = text.splitlines(keepends=True)
        outputs.append({"name": "stdout", "output_type": "stream", "text": lines})
    if result is not None:
        shown = {"text/plain": repr(result).splitlines(keepends=True)}
        if hasattr(result, "_repr_html_"):
            shown["text/html"] = result._repr_html_().splitlines(keepends=True)
        outputs.append(
            {
                "data": shown,
                "execution_count": number,
                "metadata": {},
                "output_type": "execute_result",
            }
        )
    return outputs + _figures()


def _figures() -> list[dict[str, Any]]:
    import matplotlib.pyplot as plt  # noqa: PLC0415 - the backend is chosen before

    outputs = []
    for number in plt.get_fignums():
        drawn = io.BytesIO()
        # Without the version in it, the same figure is the same text.
        plt.figure(number).savefig(drawn, format="png", dpi=80, metadata={"Software": None})
        data = {"image/png": base64.b64encode(drawn.getvalue()).decode()}
        outputs.append({"data": data, "metadata": {}, "output_type": "display_data"})
    plt.close("all")
    return outputs


def place_in(folder: Path) -> Path:
    """A folder for notebooks in a checkout that has the sample dumps alone."""
    (folder / "tests").symlink_to(ROOT / "tests")
    place = folder / "docs" / "notebooks"
    place.mkdir(parents=True)
    return place


if __name__ == "__main__":
    for path in NOTEBOOKS:
        with TemporaryDirectory() as folder:
            done = executed(json.loads(path.read_text()), place_in(Path(folder)))
        path.write_text(json.dumps(done, indent=1, ensure_ascii=False) + "\n")
