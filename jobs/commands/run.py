"""``run``: dumps are ingested and audited, and the reports published."""

from __future__ import annotations

from jobs.arguments import Options, Parser, add_fail_on, folder
from jobs.commands.engines import add_dumps, add_engine, add_window

EXAMPLE = "run --dumps 'dumps/2026-11-20/*.jsonl.gz' --output out/"


def add_arguments(command: Parser) -> None:
    """Adds the options of the command."""
    add_dumps(command)
    command.add_argument(
        "--output",
        metavar="DIR",
        type=folder,
        required=True,
        help="the folder that gets snapshots/ and reports/",
    )
    add_window(command)
    add_fail_on(command)
    add_engine(command)


def run(args: Options) -> int:
    """Ingests and audits; returns the exit code."""
    from jobs.commands.batch import Batch
    from jobs.commands.common import settings_of

    return Batch.of(args, settings_of(args)).run()
