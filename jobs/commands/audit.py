"""``audit``: snapshot tables are audited, and the reports published."""

from ..arguments import FAIL_ON, Parser, add_options
from .engines import WINDOW, add_engine, run_batch

EXAMPLE = "audit --snapshots lake/snapshots --reports lake/reports --date 2026-11-20"


def add_arguments(command: Parser) -> None:
    """Adds the options of the command."""
    table = """
    --snapshots DIR  has a folder for each table
    --reports DIR  gets the published reports
    """
    add_options(command, table + WINDOW + FAIL_ON)
    add_engine(command)


run = run_batch
