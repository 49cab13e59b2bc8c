"""The last lines of a run: what is worst, whom it is about, since when, and what to do."""

from collections.abc import Iterator, Sequence

from rebalance_core.english import count, list_of

from ..text import day_and_time, folded, visible
from .problems import Problem, heads_of

#: So many problems are named, and of each so many client ids.
_MOST_PROBLEMS, _MOST_CLIENTS = 5, 3


def ending_lines(problems: Sequence[Problem], width: int) -> Iterator[str]:
    """The problems that count, worst first, in lines of so many columns.

    A group's retry topic has the faults of the group: it is named where nothing else of it is.

    CRITICAL  G_ORDER / ORDER: 4 queues consumed by nobody
      who:    10.0.0.1@app
      since:  2026-11-20 10:00:00
      to do:  restart 10.0.0.1@app
    """
    counted = [each for each in problems if each.counts]
    several = len({each.place.cluster for each in counted}) > 1
    heads = heads_of(counted)
    first = [each for each in counted if heads[each.place] is each][:_MOST_PROBLEMS]
    for problem in first:
        for line in _lines(problem, several):
            yield from folded(visible(line), width)
    more = len(counted) - len(first)
    if more > 0:
        yield f"{count(more, 'more topic')} with lasting faults: see the page"


def _lines(problem: Problem, several_clusters: bool) -> Iterator[str]:
    cluster, group, topic = problem.place
    of_cluster = f"{cluster} / " if several_clusters else ""
    yield f"{problem.severity:<8}  {of_cluster}{group} / {topic}: {problem.headline}"
    if problem.client_ids:
        yield f"  who:    {list_of(problem.client_ids, _MOST_CLIENTS)}"
    nights = f", open for {problem.nights_open} nights" if problem.nights_open > 1 else ""
    since = problem.open_since or problem.first_seen
    until = "" if problem.ongoing else f" to {day_and_time(problem.last_seen)}"
    yield f"  since:  {day_and_time(since)}{until}{nights}, {problem.certainty.lower()}"
    if problem.remedy:
        yield f"  to do:  {problem.remedy}"
