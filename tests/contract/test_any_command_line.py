"""Whatever is typed: a documented exit code, one line of what is wrong, never a stack."""

from __future__ import annotations

import argparse
import io
import shutil
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NoReturn

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobs.cli import main
from jobs.errors import AuditError
from tests.contract.test_help import parsers
from tests.fuzz.mutations import changed_texts
from tests.support.truth import CAPTURES

EXIT_CODES = {0, 1, 2, 3, 4, 5}

#: Values that parsers stumble over; none names a place outside of the working directory.
NASTY = [
    *("", " ", "-1", "9" * 5000, "a=" + "[" * 5000, "a={" + "b={" * 2000, "x" * 5000, "(" * 3000),
    *("-", "--", "0", "1", "1e999", "nan", "inf", "1.5", "\u0663", "\u00b2", "a=b", "=", "AVG={"),
    *("broker-a=99999999999", "CONSISTENT_HASH={virtual_node_count=-1}", "2026-02-30", "20261120"),
    *("last", "0001-01-01", "9999-12-31", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59"),
    *("2026-W47-5", "(", "a{1,99999999999999999999}", "[[a]", "*", "[", "\udcff", "\udcff=\udcff"),
    *("%s%n", "{}"),
    *("a\nb", "\x1b[31m", "\u202eabc", "localhost:99999", "[::1]:1", "local[0]", "local[*,2]"),
    "CONSISTENT_HASH={virtual_node_count=0x" + "f" * 9000 + "}",
    "persistence_seconds=0x" + "f" * 9000,
    *("alerts.timeout_seconds=nan", "paths.reports=2026-01-01", 'masking.patterns=["("]'),
    'paths.reports="a\\u0000b"',
    "a" + ".b" * 20_000 + "=1",
]
#: By option what it can be given; the places are those that ``place`` makes.
GOOD = {
    "--dumps": ["dumps", "dumps/*", "gone"],
    "--snapshots": ["out/snapshots", "new/snapshots", "gone"],
    "--reports": ["out/reports", "gone"],
    "--output": ["out", "new", "new.txt", "dumps"],
    "--metrics": ["new.prom", "dumps"],
    "--known-issues": ["good.toml", "bad.toml", "gone", "dumps"],
    "--settings": ["good.toml", "bad.toml", "gone", "dumps"],
    "--config": ["good.toml", "bad.toml", "gone", "dumps"],
    "--account": ["good.toml", "gone"],
    "--set": ["persistence_seconds=60", "alerts.send=ALWAYS", "paths.reports=out/reports"],
    "--date": ["2026-11-21", "2026-11-20"],
    "--since": ["2026-11-21", "2026-11-21T02:00:00Z", "last"],
    "--until": ["2026-11-22", "2026-11-21T02:10:00+08:00"],
    "--at": ["2026-11-21T02:05:10Z"],
    "--group": ["G_S2", "G_.*"],
    "--topic": ["T_S2"],
    "--cluster": ["DefaultCluster", ".*"],
    "--columns": ["topic", "consumer_group,topic"],
    "--namesrv": ["localhost:1", "localhost:1;localhost:2"],
    "--master": ["local[2]", "spark://localhost:7077", "yarn"],
    "--leave": ["10.0.2.10@app-DUP", "10.0.2.11@app"],
    "--strategy": ["AVG", "CONSISTENT_HASH={virtual_node_count = 20}"],
    "--add-broker": ["broker-z=4"],
    "--remove-broker": ["broker-a"],
    "--queues": ["8", "broker-a=2"],
    "--mend": ["DUPLICATE_CLIENT_ID"],
    "TABLE": ["summary", "orphaned_queues", "allocations", "group_health"],
}
#: Without what leads out of the working directory, or to a server, and without NUL, which no
#: argument of a process has.
WORDS = st.one_of(
    st.sampled_from(NASTY),
    st.text(st.characters(exclude_characters="/~\\\0"), max_size=20),
    changed_texts([each for of in GOOD.values() for each in of]).filter(
        lambda text: not set(text) & set("/~\\\0")
    ),
)
PARSERS = {name: each for name, each in parsers().items() if name != "rebalance-audit"}


@st.composite
def command_lines(draw: st.DrawFn) -> list[str]:
    """A command with some of its options; most values are good ones, so that it gets far."""
    name = draw(st.sampled_from(sorted(PARSERS)))
    words = [name]
    for action in PARSERS[name]._actions:
        needed = action.required or action.dest in ("dumps", "reports", "snapshots")
        if isinstance(action, argparse._HelpAction) or draw(st.integers(0, 9)) > (
            9 if needed else 2
        ):
            continue
        if action.dest == "snapshots" and "--dumps" in words and draw(st.integers(0, 9)):
            continue  # explain and what-if take one of them
        words += action.option_strings[-1:]
        if action.nargs != 0:
            words.append(_value(draw, action))
    return words


def _value(draw: st.DrawFn, action: argparse.Action) -> str:
    option = (*action.option_strings, action.metavar)[0]
    good = list(action.choices or GOOD.get(str(option), []))
    return draw(st.sampled_from(good) if good and draw(st.integers(0, 7)) else WORDS)


def put(place: Path) -> None:
    """A dump, what the audit makes of it, and files of settings."""
    (place / "dumps").mkdir()
    shutil.copy(CAPTURES / "S2" / "dump.jsonl.gz", place / "dumps")
    (place / "good.toml").touch()
    (place / "bad.toml").write_text("x = [")
    assert main(["run", "--dumps", f"{place}/dumps", "--output", f"{place}/out", "--quiet"]) == 0


@pytest.fixture
def place(here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory, from which neither Spark nor a server is reached."""

    def refuse(*_: object, **__: object) -> NoReturn:
        raise AuditError("no Spark here")

    async def collect(*_: object) -> list[Any]:
        return []

    put(here)
    monkeypatch.setattr("tempfile.tempdir", str(here))
    monkeypatch.setattr("jobs.spark.session.spark_session", refuse)
    monkeypatch.setattr("jobs.collect.collector.collect", collect)
    return here


@given(command_lines())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_command_line_ends_with_a_documented_exit_code_and_no_stack(
    place: Path, arguments: list[str]
) -> None:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(arguments)
    said = err.getvalue()
    assert code in EXIT_CODES
    assert "Traceback" not in said or "--verbose" in arguments or "-v" in arguments
    assert "defect of the audit" not in said
    # A stack names the path that was given a dozen times.
    assert len(said) < 40_000 + 12 * len(" ".join(arguments))
    if code > 1:
        assert said.startswith("rebalance-audit: ")
