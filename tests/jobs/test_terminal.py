"""What a terminal can do, by what it and the environment say."""

from __future__ import annotations

import io
import signal
import subprocess

import pytest

from jobs.console.terminal import console_on, has_moving_cursor, is_terminal, pager, show_in_pages


class Screen(io.StringIO):
    """A stream that says that it is a terminal; its size is the environment's."""

    def isatty(self) -> bool:
        return True


NAMES = ("TERM", "COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "PAGER", "LESS")
XTERM = {"TERM": "xterm-256color", "COLUMNS": "100", "LINES": "30"}


def set_environment(monkeypatch: pytest.MonkeyPatch, environment: dict[str, str]) -> None:
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize(
    ("is_screen", "environment", "has_colours"),
    [
        (True, XTERM, True),
        (True, {}, False),  # cron with a terminal: nothing says what it understands
        (True, {**XTERM, "TERM": "dumb"}, False),
        (True, {**XTERM, "NO_COLOR": "1"}, False),
        (True, {**XTERM, "NO_COLOR": ""}, True),  # no-color.org: only where it is not empty
        (False, XTERM, False),
        (False, {**XTERM, "FORCE_COLOR": "1"}, True),
        (False, {**XTERM, "FORCE_COLOR": ""}, False),
        (False, {**XTERM, "FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        (True, {"TERM": "dumb", "FORCE_COLOR": "1"}, True),
    ],
    ids=str,
)
def test_colours_are_for_terminals_unless_somebody_says_otherwise(
    is_screen: bool,
    environment: dict[str, str],
    has_colours: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    set_environment(monkeypatch, environment)
    console = console_on(Screen() if is_screen else io.StringIO())
    with console.capture() as captured:
        console.print("[bold]x[/bold] :smile:", style="bold red")
    assert ("\x1b" in captured.get()) == has_colours
    assert "[bold]x[/bold] :smile:" in captured.get(), "a name is no markup"


def test_the_size_is_what_is_named_else_the_usual_one(monkeypatch: pytest.MonkeyPatch) -> None:
    set_environment(monkeypatch, XTERM)
    assert (console_on(Screen()).width, console_on(Screen()).height) == (100, 30)
    set_environment(monkeypatch, {"COLUMNS": "wide"})
    assert console_on(Screen()).width == 80


def test_a_stream_that_is_closed_is_no_terminal() -> None:
    closed = io.TextIOWrapper(io.BytesIO())
    closed.close()
    assert not is_terminal(closed)
    assert not is_terminal(None)
    assert not has_moving_cursor(None)


@pytest.mark.parametrize(
    ("environment", "command"),
    [
        ({**XTERM, "PAGER": "sh -c 'cat'"}, ["sh", "-c", "cat"]),
        ({**XTERM, "PAGER": ""}, []),
        ({**XTERM, "PAGER": "cat"}, []),
        ({**XTERM, "PAGER": "no-such-pager -R"}, []),
        ({**XTERM, "PAGER": "sh 'open"}, []),
        ({"TERM": "dumb", "PAGER": "sh"}, []),
    ],
    ids=str,
)
def test_the_pager_is_the_one_that_is_named_and_there(
    environment: dict[str, str], command: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    set_environment(monkeypatch, environment)
    assert pager(Screen()) == command
    assert pager(io.StringIO()) == []


def test_a_pager_that_fails_may_have_shown_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """``PAGER=false`` and the like: an empty screen would look like an empty table."""
    assert show_in_pages(b"rows\n", ["sh", "-c", "cat > /dev/null"], is_wide=False)
    assert caplog.messages == []
    assert show_in_pages(b"rows\n", ["sh", "-c", "exit 3"], is_wide=False)
    (line,) = caplog.messages
    assert "the pager sh -c 'exit 3' ended with exit code 3" in line
    assert "--no-pager" in line


def test_ctrl_c_is_the_pagers_from_its_start_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    before = signal.getsignal(signal.SIGINT)

    class Started(subprocess.Popen[bytes]):
        def __init__(self, command: list[str], **options: object) -> None:
            super().__init__(command, **options)  # type: ignore[call-overload]
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(subprocess, "Popen", Started)
    # What is ignored in a process is ignored in those that it starts, and no trap changes that.
    search = "trap 'exit 0' INT; cat > /dev/null; kill -INT $$; exit 3"
    assert show_in_pages(b"rows\n", ["sh", "-c", search], is_wide=False)
    assert caplog.messages == []
    assert signal.getsignal(signal.SIGINT) is before
