"""``run``: dumps are ingested and audited, and the reports published."""

from ..arguments import FAIL_ON, Parser, add_options
from .engines import DUMPS, WINDOW, add_engine, run_batch

EXAMPLE = "run --dumps 'dumps/2026-11-20/*.jsonl.gz' --output out/"


def add_arguments(command: Parser) -> None:
    """Adds the options of the command."""
    table = """
    --output DIR!  the folder that gets snapshots/ and reports/
    """
    add_options(command, DUMPS + table + WINDOW + FAIL_ON)
    add_engine(command)


run = run_batch
