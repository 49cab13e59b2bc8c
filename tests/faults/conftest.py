"""The nights that faults are put into, and the counts of all faults at the end."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.faults.nights import Nights

_COUNTS: Counter[str] = Counter()


@pytest.fixture(scope="session")
def nights(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Nights:
    dump = repository / "tests" / "data" / "captures" / "S1" / "dump.jsonl.gz"
    return Nights.make(tmp_path_factory.mktemp("nights"), dump)


@pytest.fixture
def counts() -> Counter[str]:
    """What is counted here is printed when all tests have run."""
    return _COUNTS


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for name, number in sorted(_COUNTS.items()):
        terminalreporter.write_line(f"{number:>8,} {name}")
