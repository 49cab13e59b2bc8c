"""The last lines of a run: what is worst, whom it is about, since when, and what to do."""

from collections.abc import Iterator, Sequence
from itertools import chain

from rebalance_core.english import count, list_of
from rebalance_core.grouping import grouped
from rebalance_core.texts import Text

from ..languages.language import Language
from ..texts.shown import folded, visible
from .problems import Problem, cause_line, heads_of
from .words import begin, in_words

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
    Where there are more than are named, each cause has a line before them.

    Still there  CRITICAL  G_ORDER / ORDER: 4 queues consumed by nobody
      who:    10.0.0.1@app
      when:   since 2026-11-20 10:00:00, certain
      to do:  restart 10.0.0.1@app
    """
    counted = [problem for problem in problems if problem.is_counted]
    begun = [problem for problem in problems if problem.standing == "BEGUN" and is_short]
    begun.sort(key=lambda problem: -sum(problem.passing.values()))
    several = len({problem.place.cluster for problem in (*counted, *begun)}) > 1
    for shown, which in (
        (counted, "with lasting faults"),
        (begun, "where something is too new to count"),
    ):
        heads = heads_of(shown)
        every = [problem for problem in shown if heads[problem.place] is problem]
        first = every[:_MOST_PROBLEMS]
        causes = grouped(
            (problem.main_kind, problem) for problem in every if len(every) > len(first)
        )
        by_cause = (cause_line(kind, of, several=several) for kind, of in causes.items())
        for line in chain(by_cause, *(problem_lines(problem, several) for problem in first)):
            yield from folded(visible(language.of(line)), width)
        more = len(shown) - len(first)
        if more > 0:
            yield f"and {count(more, 'more topic')} {which}: see the page"


#: The words in place of the severity of what does not count, by its standing.
_NOT_COUNTED = {
    "KNOWN": Text("known issue"),
    "HARMLESS": Text("harmless today"),
    "BEGUN": Text("not counted yet"),
    "PASSED": Text("passed by itself"),
}


def problem_lines(
    problem: Problem, several_clusters: bool, *, with_why: bool = False
) -> Iterator[Text]:
    """The lines of a problem; of one that does not count the evidence has its queues."""
    cluster, group, topic = problem.place
    yield Text(
        "{now}  {label}  {place} / {topic}: {headline}",
        now=begin(problem.now),
        label=_NOT_COUNTED.get(problem.standing, problem.severity),
        place=f"{cluster} / {group}" if several_clusters else group,
        topic=topic,
        headline=problem.headline,
    )
    if problem.client_ids:
        yield Text("  who:    {clients}", clients=list_of(problem.client_ids, _MOST_CLIENTS))
    if problem.cause and (with_why or not problem.is_counted):
        yield Text("  why:    {why}", why=problem.cause.evidence)
    if not problem.is_counted:
        return
    yield Text(
        "  when:   {time}, {certainty}", time=problem.times(), certainty=in_words(problem.certainty)
    )
    if problem.remedy:
        yield Text("  to do:  {remedy}", remedy=problem.remedy)
