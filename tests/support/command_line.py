"""The command line in this process: what a command says, and its exit code."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.cli import main


class CommandLine:
    """Runs commands of which each has to end with its code; keeps what the last one said."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self.out = self.err = ""

    def __call__(self, *arguments: Any, code: int = 0) -> str:
        """Its standard output."""
        self._capsys.readouterr()
        came = main([str(each) for each in arguments])
        self.out, self.err = self._capsys.readouterr()
        assert came == code, self.err
        assert "Traceback" not in self.err
        return self.out
