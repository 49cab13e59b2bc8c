from __future__ import annotations

from pathlib import Path

import pytest

from jobs.cli import main
from jobs.storage import Location, Reports

CAPTURES = Path(__file__).parent.parent / "data" / "captures"


@pytest.fixture(scope="session")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Reports:
    """The reports of the sample dumps."""
    output = tmp_path_factory.mktemp("audited")
    dumps = [str(each) for each in sorted(CAPTURES.glob("*/dump.jsonl.gz"))]
    arguments = ["run", "--output", str(output), "--set", "persistence_seconds=60", "--quiet"]
    assert main([*arguments, "--engine", "local", "--dumps", *dumps]) == 0
    return Reports(Location(str(output / "reports")))
