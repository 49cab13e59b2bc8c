"""Problems in lines of a console: the worst of a run, those of one group, and one client's."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.english import MOST_NAMES, count, list_of, names
from rebalance_core.errors import near_names
from rebalance_core.findings import AUDITED
from rebalance_core.grouping import grouped
from rebalance_core.texts import Text

from ..declared.kinds import STALLED, worst
from ..errors import SettingsError
from ..languages.language import Language
from ..schemas import BOOLEAN, DOUBLE, INT, STRING
from ..storage import PublishedRun, Reports
from ..texts.shown import folded, visible
from .problems import Problem, cause_line, heads_of, read_problems
from .table_text import is_client, read_table, why_no_rows, worst_first
from .tables import PLACE, Place, PublishedTables, Tables
from .words import begin, in_words

#: The most problems that are named, and the most client ids of each.
_MOST_WORST, _MOST_CLIENTS = 5, 3


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
        first = every[:_MOST_WORST]
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


# ---------------------------------------------------------------- one group or topic

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
    places = {Place(**row) for row in health.select(PLACE).to_pylist()}
    problems = read_problems(PublishedTables(reports, published), places)
    several = len({place.cluster for place in places}) > 1
    heads = heads_of(problems)
    first = [problem for problem in problems if heads[problem.place] is problem]

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


# ---------------------------------------------------------------- one client

#: The roles of a client in a group at the end of the run.
_TAKES, _IDLE, _CLAIMS_NOTHING = "takes queues", "gets no queue", "takes a slot and no queue"
_LEFT, _NOT_KNOWN = "was a member, and is none at the end", "not known at the end"

#: A client id in a group of a cluster.
_Membership: TypeAlias = tuple[str, str, str]
_MEMBERSHIP = ["client_id", "cluster", "consumer_group"]
_OF_LOAD = ("topics", "queues", "processes")
#: The columns that are shown.
_COLUMNS: dict[str, pa.DataType] = {
    **dict.fromkeys((*_MEMBERSHIP, "role"), STRING),
    **{"topics": INT, "queues": DOUBLE, "processes": INT},
    **{"severity": STRING, "ongoing": BOOLEAN, "faults": pa.list_(STRING)},
}


def groups_of_client(tables: Tables, wanted: str) -> tuple[pa.Table, str]:
    """The groups that have a client, a row for each client id and group; and what is in no table.

    ``wanted``: a client id, or an address, of all that it has. SettingsError where no group has it.
    """
    health = tables.read("group_health", [*_MEMBERSHIP[1:], "coverage", "members"]).to_pylist()
    by_group = grouped(((row["cluster"], row["consumer_group"]), row) for row in health)
    listed = {group: max(row["members"] for row in rows) for group, rows in by_group.items()}
    audited = {group for group, rows in by_group.items() if AUDITED in _column("coverage", rows)}
    hidden = sorted({group for _, group in by_group.keys() - audited if group})
    left_out = f"the members of {names(hidden, MOST_NAMES)}, not audited, are in no table"

    loads = tables.read("group_load", [*_MEMBERSHIP, "idle", *_OF_LOAD]).to_pylist()
    load_of = {_membership(row): row for row in loads}
    with_load = {membership[1:] for membership in load_of}
    # A row for each view of each state.
    views = tables.read("allocations", [*_MEMBERSHIP, "subscribed"])
    views = views.group_by(_MEMBERSHIP).aggregate([("subscribed", "any")])
    subscribed = {_membership(row): row["subscribed_any"] for row in views.to_pylist()}
    faults = _faults(tables)
    there = subscribed.keys() | load_of.keys() | faults.keys()
    found = sorted(membership for membership in there if is_client(membership[0], wanted))
    if not found:
        near = near_names(wanted, {client_id for client_id, *_ in there})
        more = f"; {left_out}" if hidden else ""
        raise SettingsError(f"no audited group of the run has a client {wanted!r}: {near}{more}")

    def role(membership: _Membership) -> str:
        group = membership[1:]
        if membership not in load_of:
            return _LEFT if group in with_load or listed.get(group) == 0 else _NOT_KNOWN
        if load_of[membership]["idle"]:
            return _IDLE
        return _TAKES if subscribed.get(membership, True) else _CLAIMS_NOTHING

    rows = [
        dict(zip(_MEMBERSHIP, membership, strict=True))
        | {name: load_of.get(membership, {}).get(name) for name in _OF_LOAD}
        | {"role": role(membership)}
        | _summed(faults.get(membership, ()))
        for membership in found
    ]
    return pa.Table.from_pylist(rows, schema=pa.schema(_COLUMNS)), left_out if hidden else ""


def _column(name: str, rows: Sequence[Mapping[str, Any]]) -> list[Any]:
    return [row[name] for row in rows]


def _membership(row: Mapping[str, Any]) -> _Membership:
    return row["client_id"], row["cluster"], row["consumer_group"]


def _faults(tables: Tables) -> dict[_Membership, list[Mapping[str, Any]]]:
    """All that names a client: faults, and stalls of queues that it owned."""
    columns = (*PLACE, "severity", "ongoing", "fault")
    return grouped(
        ((client_id, row["cluster"], row["consumer_group"]), row)
        for table, clients in (("group_faults", "client_ids"), ("stalled_queues", "owners"))
        for row in tables.read(table, [*columns, clients]).to_pylist()
        for client_id in row[clients] or ()
    )


def _summed(faults: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The faults in columns: the severity is that of what is still there, else of what ended."""
    if not faults:
        return {"faults": []}
    there = [fault for fault in faults if fault["ongoing"]]
    named = sorted(
        {(not row["ongoing"], f"{row['fault'] or STALLED} of {row['topic']}") for row in faults}
    )
    return {
        "severity": worst(_column("severity", there or faults)),
        "ongoing": bool(there),
        "faults": list(dict.fromkeys(name for _, name in named)),
    }
