"""The command line, for tests of what a command says."""

from __future__ import annotations

import pytest

from tests.support.command_line import CommandLine


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> CommandLine:
    """Runs a command in this process."""
    return CommandLine(capsys)
