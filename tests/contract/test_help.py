"""What --help says of each command: it fits a screen, has an example, and is pinned.

``make docs`` writes the texts anew; whoever changes one sees in the diff what users will see.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from jobs.arguments import build_parser

PINNED = Path(__file__).parent.parent / "data" / "help"
#: A terminal of today; the text is laid out for 100 columns.
LINES, COLUMNS = 40, 100


def parsers() -> dict[str, argparse.ArgumentParser]:
    """Every command's parser by the command's name, and that of all as ``rebalance-audit``."""
    parser = build_parser()
    (commands,) = (
        action for action in parser._actions if isinstance(action, argparse._SubParsersAction)
    )
    return {"rebalance-audit": parser, **commands.choices}


COMMANDS = sorted(parsers())


@pytest.fixture
def help_text(command: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    return parsers()[command].format_help()


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_a_command_is_pinned(command: str, help_text: str) -> None:
    path = PINNED / f"{command}.txt"
    assert path.is_file(), "make docs writes it"
    assert help_text == path.read_text(encoding="utf-8"), "make docs writes it anew"


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_a_command_fits_a_screen_and_has_an_example(
    command: str, help_text: str
) -> None:
    lines = help_text.splitlines()
    assert len(lines) <= LINES
    assert max(map(len, lines)) <= COLUMNS
    name = "" if command == "rebalance-audit" else command
    assert f"example:\n  rebalance-audit {name}" in help_text


def test_no_help_is_pinned_of_a_command_that_is_not_there() -> None:
    assert sorted(path.stem for path in PINNED.iterdir()) == COMMANDS


def write_help() -> None:
    """Writes the text of each command, and removes those of commands that are gone."""
    PINNED.mkdir(exist_ok=True)
    for path in PINNED.iterdir():
        path.unlink()
    for command, parser in parsers().items():
        (PINNED / f"{command}.txt").write_text(parser.format_help(), encoding="utf-8")


if __name__ == "__main__":
    import os

    os.environ["COLUMNS"] = str(COLUMNS)
    write_help()
