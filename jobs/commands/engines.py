"""The options of ``run``, ``ingest`` and ``audit``: input, window, and who does the work."""

import re

from ..arguments import SETTINGS, Options, Parser, UsageError, add_options
from ..choices import AUTO, DEFAULT_KNOWN_ISSUES, LAST_RUN, LOCAL, SPARK

DUMPS = """
    --dumps PATH...  JSON Lines, plain or .gz: files, folders, globs
"""
#: What is audited, and which issues are known.
WINDOW = f"""
    --date D  audit this day, UTC, as 2026-11-20
    --since T  audit from this time on, ISO 8601; {LAST_RUN}: from when on the last published run
            (of the date) audited
    --until T  audit up to this time, exclusive, ISO 8601
    --known-issues FILE  the file; default: {DEFAULT_KNOWN_ISSUES} here, else the installed one
"""
_ENGINE = f"""
    --engine {{{AUTO},{LOCAL},{SPARK}}} [{AUTO}]  {LOCAL}: processes of this machine, without Java;
            {SPARK}: Spark; default: by the input's size
    --workers N  processes of the engine {LOCAL}; default: one for each core, one for a small input
    --master URL  Spark's master; default: local[*]
    --dry-run  print what would be read, with sizes, what would be written where, and the settings;
            write nothing
"""


def add_engine(command: Parser) -> None:
    """The settings, and who does the work."""
    add_options(command, SETTINGS + _ENGINE, workers=_workers, master=_master)


#: Spark 4 has these masters and no other; what a cluster's address means it says itself.
_MASTER = re.compile(
    r"local(?:\[(?:\*|[1-9]\d{0,3})(?:,[1-9]\d{0,3})?\])?|local-cluster\[\d+,\d+,\d+\]"
    r"|spark://[^\s/:,]+:\d{1,5}(?:,[^\s/:,]+:\d{1,5})*|yarn|k8s://\S+",
    re.ASCII,
)


def _workers(text: str) -> int:
    if re.fullmatch(r"[1-9]\d{0,2}", text, re.ASCII):
        return int(text)
    raise UsageError(f"expected a number of processes, 1 to 999, came {text!r}")


def _master(text: str) -> str:
    if _MASTER.fullmatch(text):
        return text
    raise UsageError(
        f"expected local, local[4], local[*], spark://host:7077, yarn or k8s://..., came {text!r}"
    )


def run_batch(args: Options) -> int:
    """Ingests, audits, or both; returns the exit code."""
    from .batch import Batch
    from .common import settings_of

    return Batch.of(args, settings_of(args)).run()
