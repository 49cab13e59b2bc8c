"""``ingest``: dumps become snapshot tables."""

from ..arguments import Parser, add_options
from .engines import DUMPS, add_engine, run_batch

EXAMPLE = "ingest --dumps dumps/2026-11-20/ --snapshots lake/snapshots"


def add_arguments(command: Parser) -> None:
    """Adds the options of the command."""
    add_options(command, DUMPS + "--snapshots DIR  gets a folder for each table")
    add_engine(command)


run = run_batch
