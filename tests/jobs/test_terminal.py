"""What a terminal can do, by what it and the environment say."""

from __future__ import annotations

import io

import pytest

from jobs.terminal import Terminal, coloured, plain


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
    ids=str,
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
    stream = Screen()
    stream.close()
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
