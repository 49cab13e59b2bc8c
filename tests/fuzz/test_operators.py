"""What operators write: settings, --set, known issues, arguments. It holds, or it is refused."""

from __future__ import annotations

import contextlib
import io
import tomllib
from argparse import Namespace
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from jobs.cli import main
from jobs.config import settings
from jobs.config.known_issues import KnownIssues
from jobs.config.settings import Settings, load_settings
from jobs.console.arguments import parse_arguments
from jobs.errors import SettingsError
from tests.fuzz.mutations import ODD_TEXTS, ODD_VALUES, changed_text, changed_texts

ROOT = Path(__file__).parent.parent.parent
KNOWN_ISSUES = """
[[known_issues]]
groups = "G_.*"
clusters = "C"
topics = "T_INVOICES|%RETRY%G"
clients = '10\\.0\\.7\\..*'
brokers = "b"
queues = [0, 1]
kinds = ["STACKED", "DUPLICATE_CLIENT_ID", "DUPLICATE"]
reason = "OPS-498: two processes"
expires = 2026-12-24

[[known_issues]]
groups = "G"
reason = "OPS-499"
expires = "2027-01-31"
"""


def holds_or_is_refused(read: Callable[[], Any], expected: type) -> None:
    """It gives what it promises, or an error of one kind in words that can be printed."""
    try:
        assert isinstance(read(), expected)
    except SettingsError as error:
        assert str(error).strip()
        assert "Traceback" not in str(error)
        str(error).encode()


# ------------------------------------------------------------------ settings


@cache
def settings_text() -> str:
    """The file that ships, with its examples in force, without its comments."""
    lines = (ROOT / "conf" / "audit.toml").read_text().splitlines()
    bare = [line.removeprefix("# ") for line in lines]
    kept = [line for line in bare if " = " in line or line.startswith("[")]
    text = ""
    for line in kept:
        with contextlib.suppress(tomllib.TOMLDecodeError):
            tomllib.loads(text + line + "\n")
            text += line + "\n"
    return text


@cache
def keys() -> tuple[str, ...]:
    """The keys of all settings, and some that are none."""
    values = Settings().model_dump()
    sections = [name for name, value in values.items() if isinstance(value, dict)]
    below = [f"{section}.{name}" for section in sections for name in values[section]]
    return (*values, *below, "strategies.0.name", "a.b.c", "", ".", "a..b", "paths", "severity")


@st.composite
def overrides(draw: st.DrawFn) -> str:
    """KEY=VALUE, each right or not."""
    random = draw(st.randoms(use_true_random=False))
    odd = st.sampled_from((*ODD_VALUES, *ODD_TEXTS, "[" * 3_000, "{a=" * 3_000))
    value = draw(odd | st.text(max_size=20))
    key = random.choice(keys())
    text = f"{key}={value}" if random.randrange(8) else draw(st.text(max_size=20))
    return changed_text(text, random) if random.choice((True, False)) else text


def loaded(text: str, *given_overrides: str) -> Settings:
    return settings._settings("audit.toml", text, given_overrides, {})


@given(st.lists(overrides(), max_size=3))
def test_any_override_holds_or_is_refused(texts: list[str]) -> None:
    holds_or_is_refused(lambda: load_settings(None, texts), Settings)


@given(st.randoms(use_true_random=False).map(lambda it: changed_text(settings_text(), it)))
def test_any_file_of_settings_holds_or_is_refused(text: str) -> None:
    holds_or_is_refused(lambda: loaded(text), Settings)


# ------------------------------------------------------------------ known issues


def entries(text: str) -> KnownIssues:
    source = "known_issues.toml"
    return settings.checked(KnownIssues, source, settings.parse_toml(source, text))


@given(changed_texts([KNOWN_ISSUES]))
def test_any_file_of_known_issues_holds_or_is_refused(text: str) -> None:
    holds_or_is_refused(lambda: entries(text), KnownIssues)


# ------------------------------------------------------------------ arguments

#: A place where nothing is: no argument below can reach anything.
NOWHERE = "nowhere/at/all"
_ANY = ("--set", "--settings", "--quiet", "--verbose", "--help", "--nonsense", "--")
_WINDOW = ("--date", "--since", "--until")
_CHANGING = (
    *("--leave", "--join", "--strategy", "--add-broker", "--remove-broker", "--queues", "--mend"),
    *("--unify-list", "--separate-ids", "--subscribe-all"),
)
#: By command what it must have, and what it may.
COMMANDS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "audit": (
        ("--snapshots", NOWHERE, "--reports", NOWHERE, "--engine", "local"),
        (*_WINDOW, *_WINDOW, "--fail-on", "--known-issues", "--dry-run"),
    ),
    "show": (
        ("group_health", "--reports", NOWHERE),
        ("--date", "--format", "--columns", "--group", "--topic"),
    ),
    "report": (("--reports", NOWHERE), ("--date", "--format", "--top")),
    "alert": (("--reports", NOWHERE), ("--date", "--webhook")),
    "explain": (
        ("--snapshots", NOWHERE, "--group", "G", "--topic", "T"),
        ("--at", "--cluster", "--group"),
    ),
    "what-if": (
        ("--snapshots", NOWHERE, "--group", "G", "--queues", "8"),
        (*_CHANGING, "--at", "--topic", "--format"),
    ),
}
_VALUES = (
    *("2026-11-20", "2026-11-20T10:00:00Z", "last", "0001-01-01", "9999-12-31T23:59:59+14:00"),
    *("10.0.0.4@app", "b=8", "8", "b=-1", "AVG", "CONSISTENT_HASH={virtual_node_count = 20}"),
    *(
        "CONFIG={a=" + "[" * 3_000,
        "CRITICAL",
        "json",
        "persistence_seconds=7",
        "a.b=1",
        "x=" * 3_000,
    ),
)


@st.composite
def arguments(draw: st.DrawFn) -> list[str]:
    """The arguments of a command, right but for a few options."""
    random = draw(st.randoms(use_true_random=False))
    command = random.choice([*COMMANDS])
    required, optional = COMMANDS[command]
    chosen = [command, *required]
    for _ in range(random.choice((0, 1, 1, 1, 2, 3))):
        chosen.append(random.choice((*optional, *optional, *_ANY)))
        if random.randrange(8):
            value = random.choice((*_VALUES, random.choice((*ODD_VALUES, *ODD_TEXTS))))
            chosen.append(changed_text(value, random) if random.randrange(3) == 0 else value)
    return chosen


@given(arguments() | st.lists(st.sampled_from([*COMMANDS, *_ANY, *_VALUES]) | st.text()))
def test_any_arguments_are_parsed_or_refused(given_arguments: list[str]) -> None:
    with (
        contextlib.suppress(SystemExit),  # --help and --version
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        holds_or_is_refused(lambda: parse_arguments(given_arguments), Namespace)


@given(arguments())
def test_a_command_that_cannot_run_says_why_without_a_stack(given_arguments: list[str]) -> None:
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    errors = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="backslashreplace")
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        try:
            code = main(given_arguments)
        except SystemExit as asked_for_help:
            assert asked_for_help.code in (0, None)
            return
        errors.flush()
    said = errors.buffer.getvalue().decode()  # type: ignore[attr-defined]
    assert code in (0, 2, 3), said
    assert "--verbose" in given_arguments or "Traceback" not in said
    assert "defect" not in said
    assert code == 0 or said.startswith("rebalance-audit: ")
