"""What a terminal can do, by what it and the environment say."""

from __future__ import annotations

import io

import pytest

from jobs.terminal import Terminal, coloured, plain, show_in_pages


class Screen(io.StringIO):
    """A stream that says that it is a terminal; its size is the environment's."""

    def isatty(self) -> bool:
        return True


XTERM = {"TERM": "xterm-256color", "COLUMNS": "100", "LINES": "30"}


@pytest.mark.parametrize(
    ("stream", "environment", "has_colours"),
    [
        (Screen(), XTERM, True),
        (Screen(), {}, False),  # cron with a terminal: nothing says what it understands
        (Screen(), {**XTERM, "TERM": "dumb"}, False),
        (Screen(), {**XTERM, "NO_COLOR": "1"}, False),
        (Screen(), {**XTERM, "NO_COLOR": ""}, True),  # no-color.org: only where it is not empty
        (io.StringIO(), XTERM, False),
        (io.StringIO(), {**XTERM, "FORCE_COLOR": "1"}, True),
        (io.StringIO(), {**XTERM, "FORCE_COLOR": "0"}, False),
        (io.StringIO(), {**XTERM, "FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        (Screen(), {"TERM": "dumb", "FORCE_COLOR": "1"}, True),
        (None, XTERM, False),
    ],
    # The address that str() has is another one in each worker.
    ids=lambda each: type(each).__name__ if isinstance(each, io.StringIO) else str(each),
)
def test_colours_are_for_terminals_unless_somebody_says_otherwise(
    stream: io.StringIO | None, environment: dict[str, str], has_colours: bool
) -> None:
    assert Terminal.of(stream, environment).paint is (coloured if has_colours else plain)


def test_the_size_is_what_is_named_else_the_usual_one() -> None:
    assert (Terminal.of(Screen(), XTERM).width, Terminal.of(Screen(), XTERM).height) == (100, 30)
    assert Terminal.of(Screen(), {"COLUMNS": "wide"}).width == 80
    assert Terminal.of(io.StringIO(), XTERM).width is None


def test_a_stream_that_is_closed_is_no_terminal() -> None:
    closed = io.TextIOWrapper(io.BytesIO())
    closed.close()
    assert Terminal.of(closed, XTERM).width is None


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
    environment: dict[str, str], command: list[str]
) -> None:
    assert Terminal.of(Screen(), environment).pager(environment) == command
    assert Terminal.of(io.StringIO(), environment).pager(environment) == []


def test_a_pager_that_fails_may_have_shown_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """``PAGER=false`` and the like: an empty screen would look like an empty table."""
    assert show_in_pages(b"rows\n", ["sh", "-c", "cat > /dev/null"], {})
    assert caplog.messages == []
    assert show_in_pages(b"rows\n", ["sh", "-c", "exit 3"], {})
    (line,) = caplog.messages
    assert "the pager sh -c 'exit 3' ended with exit code 3" in line
    assert "--no-pager" in line
