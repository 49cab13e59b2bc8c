"""The lines of a long job: which step of how many, and one that moves on a terminal."""

from __future__ import annotations

import ast
import io
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import NoReturn

import pytest

from jobs.commands.batch import STEPS
from jobs.config.settings import Settings
from jobs.console.progress import Progress, complain
from jobs.dumps.unpacking import READ, _chunks
from jobs.engines.local import LocalEngine
from jobs.errors import InputError
from jobs.pipeline.ingest import ingest
from jobs.spark.session import tasks_under_way


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


Start = Callable[[], Screen]


@pytest.fixture
def on_screen(monkeypatch: pytest.MonkeyPatch) -> Start:
    """Makes standard error a terminal of 80 columns; pytest has its own until the test runs."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")

    def start() -> Screen:
        stream = Screen()
        monkeypatch.setattr(sys, "stderr", stream)
        return stream

    return start


def wait_for(screen: Screen, text: str) -> None:
    until = time.monotonic() + 60
    while text not in screen.getvalue():
        assert time.monotonic() < until, f"no {text!r} in {screen.getvalue()[-200:]!r}"
        time.sleep(0.005)


def lines(text: str) -> list[str]:
    """Without the seconds, which differ."""
    return [line.rsplit(" ", 2)[0] for line in text.splitlines()]


def test_a_step_says_which_of_how_many_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    progress = Progress()
    progress.plan(["fold", "judgement", "fold"])
    for name in ("fold", "odd", "fold"):
        with progress.step(name) as step:
            step.rows = 2_134_567
    assert lines(capsys.readouterr().err) == [
        "rebalance-audit: 1 of 3: fold, 2,134,567 rows,",
        # Nobody planned it, and a step that was left out leaves its number free.
        "rebalance-audit: odd, 2,134,567 rows,",
        "rebalance-audit: 3 of 3: fold, 2,134,567 rows,",
    ]


def test_a_step_that_fails_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    progress = Progress()
    progress.plan(["report tables"])
    with pytest.raises(ZeroDivisionError), progress.step("report tables"):
        raise ZeroDivisionError
    (line,) = lines(capsys.readouterr().err)
    assert line == "rebalance-audit: 1 of 1: report tables: failed after"


def test_quiet_is_quiet(on_screen: Start) -> None:
    screen = on_screen()
    progress = Progress(quiet=True)
    progress.plan(["fold"])
    with progress.step("fold"):
        time.sleep(0.05)
    progress.say("x")
    assert screen.getvalue() == ""
    complain("y")
    assert screen.getvalue() == "rebalance-audit: y\n"


#: What takes the terminal's last line back.
TAKEN_BACK = "\r\x1b[2K"


@pytest.mark.long
def test_the_last_line_of_a_terminal_moves_and_makes_room(on_screen: Start) -> None:
    screen = on_screen()
    progress = Progress()
    progress.plan(["records", "fold"])
    with progress.step("records"):
        for _ in progress.each(["heartbeats", "polls"], "tables"):
            wait_for(screen, " of 2 tables 0 s")
        complain("one line")
    painted = screen.getvalue()
    # Only the terminal's last line is taken back, and none of it is left behind another line.
    assert f"{TAKEN_BACK}rebalance-audit: one line\n" in painted.replace("\x1b[?25l", "")
    assert "\x1b[2Krebalance-audit: 1 of 2: records, " in painted
    with progress.step("fold"):
        wait_for(screen, "2 of 2: fold")
    after = screen.getvalue()
    time.sleep(0.3)
    assert screen.getvalue() == after, "who paints ends with the step"
    assert after.count("\x1b[?25l") == after.count("\x1b[?25h"), "the cursor is shown again"


def test_whom_to_ask_is_asked_where_the_step_does_not_say(on_screen: Start) -> None:
    screen = on_screen()
    progress = Progress()
    progress.watch(lambda: (3, 4, "tasks"))
    with progress.step("fold"):
        wait_for(screen, "3 of 4 tasks")


def test_the_bar_moves_within_one_large_file(
    on_screen: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dump = tmp_path / "dump.jsonl"
    with dump.open("wb") as file:
        file.truncate(20 << 20)
    screen = on_screen()
    progress = Progress()

    def read(*_: object) -> NoReturn:
        for number, _line in enumerate(_chunks(str(dump), 0)):
            if number in (4, 12):
                wait_for(screen, f" {READ.bytes // 1_000_000} of 20 MB")
        raise InputError("it is read")

    # What tests before have read.
    monkeypatch.setattr(READ, "bytes", 0)
    monkeypatch.setattr("jobs.pipeline.ingest.read_dumps", read)
    with LocalEngine(1, progress.each) as engine, pytest.raises(InputError, match="it is read"):
        ingest(engine, [str(dump)], None, Settings(), progress)  # type: ignore[arg-type]


def test_a_name_moves_nothing(on_screen: Start) -> None:
    screen = on_screen()
    with Progress().step("[red]\x1b[2J"):
        wait_for(screen, r"[red]\x1b[2J")


@pytest.mark.parametrize("term", ["dumb", ""])
def test_nothing_moves_where_the_cursor_cannot(
    on_screen: Start, monkeypatch: pytest.MonkeyPatch, term: str
) -> None:
    screen = on_screen()
    monkeypatch.setenv("TERM", term)
    with Progress().step("fold"):
        time.sleep(0.05)
    assert lines(screen.getvalue()) == ["rebalance-audit: fold,"]


def test_a_run_has_the_steps_of_an_ingest_and_of_an_audit() -> None:
    both = STEPS["ingest"] + STEPS["audit"]
    assert STEPS["run"] == both
    assert len(set(both)) == len(both)


@pytest.mark.long
def test_every_step_that_is_made_is_planned_and_the_other_way_round() -> None:
    """A step that nobody planned has no number; one that nobody makes leaves a gap."""
    jobs = Path(__file__).parent.parent.parent / "jobs"
    made = {
        node.args[0].value
        for path in jobs.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and (node.func.attr, type(node.args[0]) if node.args else None) == ("step", ast.Constant)
        and isinstance(node.args[0], ast.Constant)
    }
    assert made == set(STEPS["run"])


class Tracker:
    """Spark's answers: by stage how many tasks are done, and of how many; None: it just ended."""

    def __init__(self, stages: dict[int, tuple[int, int] | None]) -> None:
        self.stages = stages

    def getActiveStageIds(self) -> list[int]:  # noqa: N802 - Spark's name
        return list(self.stages)

    def getStageInfo(self, stage: int) -> SimpleNamespace | None:  # noqa: N802
        tasks = self.stages[stage]
        return tasks and SimpleNamespace(numCompletedTasks=tasks[0], numTasks=tasks[1])


@pytest.mark.parametrize(
    ("stages", "share"),
    [
        ({}, None),
        ({1: (3, 8), 2: (0, 4)}, (3, 12, "tasks")),
        ({1: (3, 8), 2: None}, (3, 8, "tasks")),
        ({2: None}, None),
    ],
)
def test_the_tasks_of_all_stages_that_run_are_counted(
    stages: dict[int, tuple[int, int] | None], share: tuple[int, int, str] | None
) -> None:
    context = SimpleNamespace(statusTracker=lambda: Tracker(stages))
    assert tasks_under_way(SimpleNamespace(sparkContext=context)) == share  # type: ignore[arg-type]


def test_a_session_that_is_gone_runs_nothing() -> None:
    def gone() -> None:
        raise ConnectionRefusedError

    context = SimpleNamespace(statusTracker=gone)
    assert tasks_under_way(SimpleNamespace(sparkContext=context)) is None  # type: ignore[arg-type]
