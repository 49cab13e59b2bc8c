"""Of which moment ``explain`` and ``what-if`` are asked, and what is found of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobs.arguments import LANGUAGE, SETTINGS, Options, Parser, add_options

if TYPE_CHECKING:
    from jobs.judge.moment import Moment
    from jobs.settings import Settings

#: Columns of a terminal that an answer needs at least, and makes use of at most.
_NARROWEST, _WIDEST = 40, 140


def add_question(command: Parser, topic: str) -> None:
    """Which group and topic, when, and where that is looked up; ``topic``: the option of it."""
    source = command.add_mutually_exclusive_group(required=True)
    add_options(source, "--dumps PATH...  local dumps: files, folders, globs")
    add_options(source, "--snapshots DIR  the snapshot tables of ingest")
    table = f"""
    --group G!  the consumer group
    {topic}
    --at TIME  a time, as 2026-11-20T10:00:00Z; default: the last snapshot
    --cluster C  the cluster, where the group is in several
    """
    add_options(command, table + LANGUAGE + SETTINGS)


def moments_of(args: Options, settings: Settings) -> list[Moment]:
    """The moments that are asked about: of each topic one."""
    from jobs.commands.common import time_of
    from jobs.pipeline.moments import Question, moments_of_dumps, moments_of_tables
    from jobs.storage import Location

    question = Question(args.group, args.topic, time_of("--at", args.at), args.cluster)
    if args.dumps:
        return moments_of_dumps(args.dumps, question, settings)
    return moments_of_tables(Location(args.snapshots), question, settings)


def width() -> int:
    """How wide an answer is: as the terminal is, within what can be read; in a file as a page."""
    import sys

    from jobs.reports.explain import WIDTH
    from jobs.terminal import console_on, is_terminal

    if not is_terminal(sys.stdout):
        return WIDTH
    return min(max(console_on(sys.stdout).width, _NARROWEST), _WIDEST)
