"""``audit``: snapshot tables are audited, and the reports published."""

from __future__ import annotations

from jobs.arguments import Options, Parser, add_fail_on, folder
from jobs.commands.engines import add_engine, add_window

EXAMPLE = "audit --snapshots lake/snapshots --reports lake/reports --date 2026-11-20"


def add_arguments(command: Parser) -> None:
    """Adds the options of the command."""
    command.add_argument("--snapshots", metavar="DIR", help="has a folder for each table")
    command.add_argument("--reports", metavar="DIR", type=folder, help="gets the published reports")
    add_window(command)
    add_fail_on(command)
    add_engine(command)


def run(args: Options) -> int:
    """Audits; returns the exit code."""
    from jobs.commands.batch import Batch
    from jobs.commands.common import settings_of

    return Batch.of(args, settings_of(args)).run()
