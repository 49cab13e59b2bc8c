"""The nights that faults are put into, and the counts of all faults at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.nights import Nights


@pytest.fixture(scope="session")
def nights(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Nights:
    dump = repository / "tests" / "data" / "captures" / "S1" / "dump.jsonl.gz"
    return Nights.make(tmp_path_factory.mktemp("nights"), dump)


@pytest.fixture
def counts(request: pytest.FixtureRequest) -> Iterator[Counter[str]]:
    """What is counted here is printed when all tests have run, whichever worker ran them."""
    counted: Counter[str] = Counter()
    yield counted
    request.node.user_properties += counted.items()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    counts: Counter[str] = Counter()
    for report in terminalreporter.getreports(""):
        if report.when == "teardown":
            for name, number in report.user_properties:
                counts[name] += number
    for name, number in sorted(counts.items()):
        terminalreporter.write_line(f"{number:>8,} {name}")
