"""The options of ``run``, ``ingest`` and ``audit``: input, window, and who does the work."""

from __future__ import annotations

import re

from jobs.arguments import Parser, UsageError, add_settings, date_of
from jobs.choices import AUTO, DEFAULT_KNOWN_ISSUES, LAST_RUN, LOCAL, SPARK


def add_dumps(command: Parser) -> None:
    """What is read."""
    command.add_argument(
        "--dumps", metavar="PATH", nargs="+", help="JSON Lines, plain or .gz: files, folders, globs"
    )


def add_window(command: Parser) -> None:
    """What is audited, and which issues are known."""
    command.add_argument(
        "--date", metavar="D", type=date_of, help="audit this day, UTC, as 2026-11-20"
    )
    command.add_argument(
        "--since",
        metavar="T",
        help=f"audit from this time on, ISO 8601; {LAST_RUN}: from when on the last "
        "published run (of the date) audited",
    )
    command.add_argument("--until", metavar="T", help="audit up to this time, exclusive, ISO 8601")
    command.add_argument(
        "--known-issues",
        metavar="FILE",
        help=f"the file; default: {DEFAULT_KNOWN_ISSUES} here, else the installed one",
    )


def add_engine(command: Parser) -> None:
    """The settings, and who does the work."""
    add_settings(command)
    command.add_argument(
        "--engine",
        choices=(AUTO, LOCAL, SPARK),
        default=AUTO,
        help=f"{LOCAL}: processes of this machine, without Java; {SPARK}: Spark; default: by "
        "the input's size",
    )
    command.add_argument(
        "--workers",
        metavar="N",
        type=_workers,
        help=f"processes of the engine {LOCAL}; default: one for each core, one for a small input",
    )
    command.add_argument(
        "--master", metavar="URL", type=_master, help="Spark's master; default: local[*]"
    )
    command.add_argument(
        "--dry-run",
        action="store_true",
        help="print what would be read, with sizes, what would be written where, and the settings; "
        "write nothing",
    )


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
