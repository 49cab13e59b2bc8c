"""What operators write: settings, --set, known issues. It holds, or it is refused.

Arguments: tests/contract/test_any_command_line.py.
"""

from __future__ import annotations

import contextlib
import tomllib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from jobs.config import settings
from jobs.config.known_issues import KnownIssues
from jobs.config.settings import Settings, load_settings
from jobs.config.toml_files import checked, parse_toml
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


def holds_or_is_refused(read: Callable[[], Any], expected: type, most: int | None = None) -> None:
    """It gives what it promises, or an error of one kind in words that can be printed."""
    try:
        came = read()
        assert isinstance(came, expected)
        assert not isinstance(came, Settings) or came.fingerprint()
    except SettingsError as error:
        assert str(error).strip()
        assert most is None or len(str(error)) < most
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
    holds_or_is_refused(lambda: load_settings(None, texts), Settings, 1500 * max(len(texts), 1))


@given(st.randoms(use_true_random=False).map(lambda it: changed_text(settings_text(), it)))
def test_any_file_of_settings_holds_or_is_refused(text: str) -> None:
    holds_or_is_refused(lambda: loaded(text), Settings)


# ------------------------------------------------------------------ known issues


def entries(text: str) -> KnownIssues:
    source = "known_issues.toml"
    return checked(KnownIssues, source, parse_toml(source, text))


@given(changed_texts([KNOWN_ISSUES]))
def test_any_file_of_known_issues_holds_or_is_refused(text: str) -> None:
    holds_or_is_refused(lambda: entries(text), KnownIssues)
