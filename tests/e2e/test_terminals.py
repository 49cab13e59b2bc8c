"""The command on a real terminal: tables, colours, pager, progress, Ctrl-C."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from jobs.cli import main
from jobs.texts.shown import display_width
from tests.support.terminals import Seen, on_terminal
from tests.support.truth import CAPTURES
from tests.support.written_reports import publish, report_row

pytestmark = pytest.mark.e2e

COMMAND = [sys.executable, "-m", "rebalance_audit.cli"]
EVIDENCE = "10.0.3.1@app, 10.0.3.2@app and 10.0.3.3@app use AVG; 10.0.3.4@app uses AVG_BY_CIRCLE"
_STYLE = re.compile(r"\x1b\[[0-9;]*m")

Show = Callable[..., Seen]


@pytest.fixture
def reports(tmp_path: Path) -> Path:
    faults = [
        report_row("group_faults", consumer_group=f"订单{number}", evidence=EVIDENCE)
        for number in range(30)
    ]
    publish(tmp_path / "reports", "2026-11-20", {"group_faults": faults})
    return tmp_path / "reports"


@pytest.fixture
def show(reports: Path) -> Show:
    def shown(*options: str, **terminal: object) -> Seen:
        environment = terminal.pop("environment", {"PAGER": "cat"})
        command = [*COMMAND, "show", "group_faults", "--quiet", "--reports", str(reports)]
        return on_terminal([*command, *options], environment, **terminal)  # type: ignore[arg-type]

    return shown


@pytest.mark.parametrize(
    ("columns", "options"),
    [(80, ["--columns", "consumer_group,topic,evidence,severity"]), (200, ["--all-columns"])],
)
def test_a_table_fits_the_terminal(show: Show, columns: int, options: list[str]) -> None:
    """Each width there is, without a terminal: tests/jobs/reports/test_fitting.py."""
    seen = show(*options, columns=columns)
    assert seen.code == 0
    assert all(display_width(_STYLE.sub("", line)) <= columns for line in seen.lines)
    assert "AVG_BY_CIRCLE" in seen.text
    assert seen.lines[-1] == "(30 rows)"
    # All columns of the table have no room side by side.
    assert ("consumer_group" in seen.lines[0]) == (options[0] == "--columns")
    assert "\x1b[1;31mCRITICAL\x1b[0m" in seen.text


def test_a_dumb_terminal_gets_neither_colours_nor_a_pager(show: Show) -> None:
    seen = show("--all-columns", term="dumb", environment={"PAGER": "sh -c 'echo paged'"})
    assert "\x1b" not in seen.text
    assert "paged" not in seen.text
    assert seen.lines[0] == "-- row 1 of 30 --"


def test_wide_is_one_whole_line_for_each_row(show: Show) -> None:
    seen = show("--wide", "--all-columns", environment={"PAGER": "cat", "NO_COLOR": "1"})
    header, _, *rows, total = seen.lines
    assert header.startswith("cluster  consumer_group")
    assert len(rows) == 30
    assert all(EVIDENCE in row for row in rows)
    assert total == "(30 rows)"


def test_what_is_longer_than_the_screen_is_paged(show: Show) -> None:
    pager = {"PAGER": "sh -c 'echo paged by $LESS; exec cat'"}
    long = ["--columns", "consumer_group,severity"]
    paged = show(*long, environment=pager)
    assert paged.lines[0] == "paged by FRX"
    assert "\x1b[1;31mCRITICAL" in paged.text
    assert show(*long, "--wide", environment=pager).lines[0] == "paged by FRSX"
    for options in (["--no-pager"], ["--group", "订单3"]):
        assert "paged" not in show(*long, *options, environment=pager).text
    # Whoever leaves the pager early has read enough.
    assert show(*long, environment={"PAGER": "sh -c true"}).code == 0
    # A pager that is not there is none.
    assert show(*long, environment={"PAGER": "no-such-pager"}).lines[-1] == "(30 rows)"


#: Waits for Ctrl-C, then for a line. A signal that is blocked waits too: a trap of sh is lost that
#: comes just before what it interrupts.
SEARCHING = """
import signal
assert signal.getsignal(signal.SIGINT) == signal.default_int_handler, "it is not ignored"
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
print("ready", flush=True)
signal.sigwait({signal.SIGINT})
print("searched", flush=True)
print(open("/dev/tty").readline())
"""


def test_ctrl_c_in_the_pager_is_the_pagers(show: Show, tmp_path: Path) -> None:
    """It ends a search of less, and not the command behind it."""
    (tmp_path / "pager.py").write_text(SEARCHING)
    pager = shlex.join([sys.executable, str(tmp_path / "pager.py")])
    typed: list[str] = []

    def type_keys(seen: str) -> str:
        for sign, keys in (("ready", "\x03"), ("searched", "end\n")):
            if sign in seen and keys not in typed:
                typed.append(keys)
                return keys
        return ""

    seen = show(environment={"PAGER": pager}, typed=type_keys)
    assert "searched" in seen.text
    assert seen.code == 0
    assert "interrupted" not in seen.text


def test_a_run_shows_how_far_it_is(tmp_path: Path) -> None:
    dumps = [str(each) for each in sorted(CAPTURES.glob("S*/dump.jsonl.gz"))]
    run = [*COMMAND, "run", "--engine", "local", "--dumps", *dumps]
    seen = on_terminal([*run, "--output", str(tmp_path)], {})
    assert seen.code == 0
    steps = re.findall(r"rebalance-audit: (\d+) of (\d+): ", seen.text)
    assert steps == [(str(number), "7") for number in range(1, 8)]
    # What moved is gone where a line came; lines are those that a log has.
    told = [line.rpartition("\x1b[2K")[2] for line in seen.lines if "audit: " in line]
    assert not any("\x1b[" in line for line in told)


def test_ctrl_c_while_a_step_moves_leaves_one_line(tmp_path: Path) -> None:
    """The line that moves goes, and the line that says what happened stays."""
    dumps = tmp_path / "dumps"
    for number in range(8):
        shutil.copytree(CAPTURES, dumps / str(number))
    run = [*COMMAND, "run", "--engine", "local", "--dumps", str(dumps)]
    typed: list[str] = []

    def press(seen: str) -> str:
        if "1 of 7: records" in seen and not typed:
            typed.append("\x03")
            return "\x03"
        return ""

    seen = on_terminal([*run, "--output", str(tmp_path / "out")], {}, typed=press)
    assert seen.code == 130
    last = seen.lines[-1].rpartition("\x1b[2K")[2]
    assert last.startswith("rebalance-audit: interrupted; there is no published report at ")


def test_what_is_piped_is_a_line_a_row_and_plain(
    reports: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    command = ["show", "group_faults", "--reports", str(reports)]
    assert main(command) == 0
    piped = capsys.readouterr().out
    assert len(piped.splitlines()) == 33
    assert f"{EVIDENCE[:57]}..." in piped
    assert "\x1b" not in piped
    assert main([*command, "--wide"]) == 0
    assert EVIDENCE in capsys.readouterr().out
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert main(command) == 0
    assert _STYLE.sub("", capsys.readouterr().out) == piped
