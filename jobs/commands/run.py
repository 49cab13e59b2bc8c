"""``run``: dumps are ingested and audited, and the reports published."""

from __future__ import annotations

from jobs.arguments import FAIL_ON, Options, Parser, add_options
from jobs.commands.engines import DUMPS, WINDOW, add_engine

EXAMPLE = "run --dumps 'dumps/2026-11-20/*.jsonl.gz' --output out/"


def add_arguments(command: Parser) -> None:
    """Adds the options of the command."""
    table = """
    --output DIR!  the folder that gets snapshots/ and reports/
    """
    add_options(command, DUMPS + table + WINDOW + FAIL_ON)
    add_engine(command)


def run(args: Options) -> int:
    """Ingests and audits; returns the exit code."""
    from jobs.commands.batch import Batch
    from jobs.commands.common import settings_of

    return Batch.of(args, settings_of(args)).run()
