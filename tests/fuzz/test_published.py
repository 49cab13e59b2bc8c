"""Of a published folder that is damaged in one place readers print all that it had, or why not."""

from __future__ import annotations

import atexit
import contextlib
import io
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.cli import main
from tests.fuzz.mutations import changed_bytes, changed_once
from tests.fuzz.nights import arguments, recorded_nights


def printed(*command: str) -> tuple[int, str, str]:
    """The exit code of a command, what it prints, and what it complains of."""
    out, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        code = main(command)
    return code, out.getvalue(), errors.getvalue()


@cache
def published() -> Path:
    """A folder with the reports of a small night."""
    folder = TemporaryDirectory()
    atexit.register(folder.cleanup)
    dump = Path(folder.name) / "dump.jsonl"
    dump.write_bytes(b"\n".join(min(recorded_nights(), key=len)))
    code, _, errors = printed(*arguments(dump, Path(folder.name) / "out", "local"))
    assert code == 0, errors
    return Path(folder.name) / "out"


def commands() -> list[tuple[str, ...]]:
    """Commands that read the reports and write nothing beside them."""
    reports = ("--reports", str(published() / "reports"), "--quiet")
    return [
        *[("show", name, *reports) for name in ("summary", "group_health", "allocations")],
        ("show", "state_runs", "--format", "json", *reports),
        ("alert", *reports),
    ]


@cache
def undamaged() -> list[str]:
    """What the commands print of the folder as it was published."""
    results = [printed(*command) for command in commands()]
    assert all(code == 0 for code, _, _ in results), results
    return [out for _, out, _ in results]


@contextlib.contextmanager
def damaged(file: Path, content: bytes) -> Iterator[None]:
    """The file with another content for a while."""
    before = file.read_bytes()
    file.write_bytes(content)
    try:
        yield
    finally:
        file.write_bytes(before)


def assert_readers_say_so_or_print_the_same() -> None:
    expected = undamaged()
    for command, whole in zip(commands(), expected, strict=True):
        code, out, errors = printed(*command)
        assert "Traceback" not in errors, errors
        assert "defect" not in errors, errors
        if code == 0:
            assert out == whole, command
        else:
            assert (code, out) in ((3, ""), (4, "")), command
            assert errors.startswith("rebalance-audit: ")


# Each input is read by five commands.
@pytest.mark.long
@settings(max_examples=10)
@given(st.randoms(use_true_random=False))
def test_a_pointer_or_manifest_that_was_changed_is_seen(random: Random) -> None:
    undamaged()
    reports = published() / "reports"
    files = sorted([*reports.glob("_published/*.json"), *reports.glob("_manifests/**/*.json")])
    file = random.choice(files)
    text = changed_once(file.read_text(), random)
    with damaged(file, text.encode("utf-8", "surrogatepass")):
        assert_readers_say_so_or_print_the_same()


@settings(max_examples=10)
@given(st.randoms(use_true_random=False))
def test_a_table_that_was_changed_is_seen(random: Random) -> None:
    undamaged()
    file = random.choice(sorted((published() / "reports").rglob("*.parquet")))
    with damaged(file, changed_bytes(file.read_bytes(), random)):
        assert_readers_say_so_or_print_the_same()
