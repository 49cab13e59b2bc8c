"""Of which moment ``explain`` and ``what-if`` are asked, and what is found of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..arguments import LANGUAGE, SETTINGS, Options, Parser, add_options

if TYPE_CHECKING:
    from ..judge.moment import Moment
    from ..settings import Settings


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
    from ..pipeline.moments import Question, moments_of_dumps, moments_of_tables
    from ..storage import Location
    from .common import time_of

    question = Question(args.group, args.topic, time_of("--at", args.at), args.cluster)
    if args.dumps:
        return moments_of_dumps(args.dumps, question, settings)
    return moments_of_tables(Location(args.snapshots), question, settings)


def say_when(args: Options, moments: Sequence[Moment]) -> None:
    """On standard error: when the data is."""
    from ..instants import to_datetime
    from ..progress import Progress
    from ..text import iso

    moment = moments[0]
    if moment.snapshots is not None and moment.snapshot_time == moment.snapshots[1]:
        first, last = (iso(to_datetime(each)) for each in moment.snapshots)
        Progress(quiet=args.quiet).say(
            f"the snapshots go from {first} to {last}; this is the last one (--at: another one)"
        )


def say_elsewhere(args: Options, moments: Sequence[Moment]) -> None:
    """On standard error: what is found at another time of topics that have nothing now."""
    from ..progress import Progress
    from ..reports.explain import elsewhere

    for text in filter(None, map(elsewhere, moments)):
        Progress(quiet=args.quiet).say(text)
