"""What each command takes is a contract, and its --help fits a screen and has an example.

``make docs`` writes the contract anew; whoever changes an option sees in the diff what scripts
that use it will see.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from jobs.console.arguments import build_parser

#: By command its options and arguments, each with its value or with all that it may be.
PINNED = Path(__file__).parent / "options_v1.json"
#: A terminal of today; the text is laid out for 100 columns.
LINES, COLUMNS = 40, 100


def parsers() -> dict[str, argparse.ArgumentParser]:
    """Every command's parser by the command's name, and that of all as ``rebalance-audit``."""
    parser = build_parser(None)
    (commands,) = (
        action for action in parser._actions if isinstance(action, argparse._SubParsersAction)
    )
    return {"rebalance-audit": parser, **commands.choices}


COMMANDS = sorted(parsers())


@pytest.fixture
def help_text(command: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    return parsers()[command].format_help()


def options() -> dict[str, dict[str, str]]:
    """By command what it takes: the name of each option, and what comes after it."""
    return {
        command: {
            " ".join(each.option_strings) or each.dest: "" if each.nargs == 0 else shown(each)
            for each in parser._actions
        }
        for command, parser in parsers().items()
    }


def shown(action: argparse.Action) -> str:
    return "|".join(map(str, action.choices)) if action.choices else str(action.metavar)


def test_what_a_command_takes_is_what_it_took_before() -> None:
    assert options() == json.loads(PINNED.read_text(encoding="utf-8")), "make docs writes it anew"


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_a_command_fits_a_screen_and_has_an_example(
    command: str, help_text: str
) -> None:
    lines = help_text.splitlines()
    assert len(lines) <= LINES
    assert max(map(len, lines)) <= COLUMNS
    name = "" if command == "rebalance-audit" else command
    assert f"example:\n  rebalance-audit {name}" in help_text


if __name__ == "__main__":
    PINNED.write_text(json.dumps(options(), indent=2) + "\n", encoding="utf-8")
