"""One group, or one topic, in a published run: what is wrong with it, then its topics."""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.english import count

from ..languages.language import Language
from ..storage import PublishedRun, Reports
from ..texts.shown import folded, visible
from .ending import problem_lines
from .problems import heads_of, read_problems
from .table_text import read_table, why_no_rows, worst_first
from .tables import PLACE, Place, PublishedTables

#: The most problems with their lines: what is left of a screen has the topics.
_MOST_PROBLEMS = 4
#: The columns of a topic's health that a screen has, besides those in which the rows differ.
_OF_TOPICS = (
    *("coverage", "worst_severity", "members", "processes", "queues", "idle_clients"),
    *("backlog", "backlog_per_minute"),
)


def group_lines(
    reports: Reports,
    published: PublishedRun,
    asked: tuple[str | None, str | None],
    width: int,
    language: Language,
) -> tuple[list[str], pa.Table]:
    """The lines on the problems of a group or topic, worst first, and the health of its topics.

    SettingsError where the run has no such group or topic.
    """
    health = worst_first(read_table(reports, published, "group_health", *asked))
    places = set(map(Place._make, zip(*(health[each].to_pylist() for each in PLACE), strict=True)))
    problems = read_problems(PublishedTables(reports, published), places)
    several = len({place.cluster for place in places}) > 1
    heads = heads_of(problems)
    first = [each for each in problems if heads[each.place] is each]

    def lines() -> Iterator[str]:
        for problem in first[:_MOST_PROBLEMS]:
            for line in problem_lines(problem, several, with_why=True):
                yield from folded(visible(language.of(line)), width)
        if more := first[_MOST_PROBLEMS:]:
            yield f"and {count(len(more), 'more topic')}: show problems has them"
        if not problems:
            reason = why_no_rows(reports, published, "problems", *asked)
            yield from folded(f"nothing was found: {visible(reason)}", width)

    different = [name for name in PLACE if len(pc.unique(health[name])) > 1 or name == "topic"]
    return list(lines()), health.select([*different, *_OF_TOPICS])
