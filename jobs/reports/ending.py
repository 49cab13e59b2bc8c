"""The last lines of a run: what is worst, whom it is about, since when, and what to do."""

from collections.abc import Iterator, Sequence
from itertools import chain

from rebalance_core.english import count, list_of
from rebalance_core.texts import Text

from ..languages.language import Language
from ..texts.shown import folded, visible
from .problems import Problem, heads_of

#: The most problems that are named, and the most client ids of each.
_MOST_PROBLEMS, _MOST_CLIENTS = 5, 3


def ending_lines(
    problems: Sequence[Problem],
    width: int,
    language: Language,
    *,
    is_short: bool,
) -> Iterator[str]:
    """The problems that count, worst first, in lines of so many columns.

    A group's retry topic has the faults of the group: it is named where nothing else of it is.
    ``is_short``: nothing can be seen to last yet, so that what is there at the end is named too.

    CRITICAL  G_ORDER / ORDER: 4 queues consumed by nobody
      who:    10.0.0.1@app
      since:  2026-11-20 10:00:00
      to do:  restart 10.0.0.1@app
    """
    counted = [each for each in problems if each.is_counted]
    begun = [each for each in problems if each.standing == "BEGUN" and is_short]
    begun.sort(key=lambda each: -sum(each.passing.values()))
    several = len({each.place.cluster for each in (*counted, *begun)}) > 1
    for shown, which in (
        (counted, "with lasting faults"),
        (begun, "where something is too new to count"),
    ):
        heads = heads_of(shown)
        first = [each for each in shown if heads[each.place] is each][:_MOST_PROBLEMS]
        for line in chain.from_iterable(_lines(each, several) for each in first):
            yield from folded(visible(language.of(line)), width)
        more = len(shown) - len(first)
        if more > 0:
            yield f"and {count(more, 'more topic')} {which}: see the page"


def _lines(problem: Problem, several_clusters: bool) -> Iterator[Text]:
    """The lines of a problem; of one that is too new to count the evidence has its queues."""
    cluster, group, topic = problem.place
    yield Text(
        "{label}  {place} / {topic}: {headline}",
        label=f"{problem.severity if problem.is_counted else 'NOW':<8}",
        place=f"{cluster} / {group}" if several_clusters else group,
        topic=topic,
        headline=problem.headline,
    )
    if problem.client_ids:
        yield Text("  who:    {clients}", clients=list_of(problem.client_ids, _MOST_CLIENTS))
    if not problem.is_counted:
        if problem.cause:
            yield Text("  why:    {why}", why=problem.cause.evidence)
        return
    nights = f", open for {problem.nights_open} nights" if problem.nights_open > 1 else ""
    yield Text(
        "  since:  {since:day}{until}{nights}, {certainty}",
        since=problem.open_since or problem.first_seen,
        until="" if problem.ongoing else Text(" to {at:day}", at=problem.last_seen),
        nights=nights,
        certainty=problem.certainty.lower(),
    )
    if problem.remedy:
        yield Text("  to do:  {remedy}", remedy=problem.remedy)
