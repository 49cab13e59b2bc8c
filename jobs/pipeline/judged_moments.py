"""A moment, published tables or the rules -> the judgement of it: see ``Judged``.

What a published run has of the topic leads. Where there is no such run, the same rules judged the
group for this answer, and their rows are read as those of a run are. The problem of a moment is
made of the rows that were there then, as that of the night is made of all.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import pyarrow as pa
import pyarrow.dataset as ds

from ..declared.instants import Instant
from ..declared.kinds import GRADED_TABLES, QUEUE_FINDINGS, STALLED, worst
from ..judge.arrow_tables import Row, to_table
from ..judge.history import problems_of
from ..judge.moment import Moment
from ..languages.translated_rows import TEXTS, with_texts
from ..reports.problems import Problem, read_problems
from ..reports.situation_text import Judged
from ..reports.tables import PLACE, TABLES, Place, Tables, place_of
from ..schemas import GROUP_HEALTH, LONG, PROBLEMS

#: The rows of a topic, by table: its times as Instants, its texts as such.
_TopicRows = Mapping[str, Sequence[Row]]
#: The tables that show what was judged.
_READ = (*GRADED_TABLES, GROUP_HEALTH.name)


def judged_of(moment: Moment, published: Tables | None) -> Judged:
    """The judgement of a moment: of the published run, else of the rules for this answer."""
    mask, state = moment.masking.mask_all, moment.state
    place = Place(*mask((moment.cluster, state.consumer_group, state.topic)))
    rows = None if published is None else {n: [*_rows_of(published, n, place)] for n in _READ}
    if rows is None or not rows[GROUP_HEALTH.name]:
        rows = {
            name: [mask(row) for row in moment.judged.get(name, ()) if row["topic"] == state.topic]
            for name in _READ
        }

    is_in_time = partial(_where, rows, lambda row: _is_in_time(row, moment.snapshot_time))
    in_time, others = is_in_time(is_so=True), is_in_time(is_so=False)
    gaps = _interrupted(in_time, moment)
    is_gap = partial(_where, in_time, lambda row: id(row) in gaps)
    now, interrupted = is_gap(is_so=False), is_gap(is_so=True)
    whole, worst_one = _problem(place, now), _problem(place, _worst_of(now))
    paused, worst_paused = _problem(place, interrupted), _problem(place, _worst_of(interrupted))
    explaining = (worst_one, whole, worst_paused)
    return Judged(
        worst=worst_one,
        interrupted=worst_paused,
        cause=next(
            (shown_fault for problem in explaining if problem for shown_fault in problem.why), None
        ),
        faults=[fault for problem in (whole, paused) if problem for fault in problem.faults],
        others=_problem(place, _worst_of(others)),
        queues={name: in_time[name] for name in QUEUE_FINDINGS},
    )


def _where(rows: _TopicRows, is_meant: Callable[[Row], bool], *, is_so: bool) -> _TopicRows:
    """The graded rows of which something is so, or is not."""
    kept = {name: [row for row in rows[name] if is_meant(row) is is_so] for name in GRADED_TABLES}
    return kept | {GROUP_HEALTH.name: rows[GROUP_HEALTH.name]}


def _is_in_time(row: Row, time: Instant) -> bool:
    """True if the time is in that of the row; what goes on at the end may have been seen last
    before it.
    """
    return bool(row["first_seen"] <= time and (row["ongoing"] or time <= row["last_seen"]))


def _interrupted(rows: _TopicRows, moment: Moment) -> set[int]:
    """The ids of the rows in a gap of whose episode the moment is.

    An episode of a queue that was computed has its gaps where the core finds nothing; a fault has
    them where all that it causes has.
    """
    if moment.computed is None:
        return set()
    found = {*map(moment.masking.mask_all, moment.computed)}
    queues = [
        (row, row["computed"] and (kind, (row["broker_name"], row["queue_id"])) not in found)
        for table, kind in QUEUE_FINDINGS.items()
        for row in rows[table]
        if kind != STALLED
    ]
    gaps = [row for row, is_absent in queues if is_absent and row["share_of_time"] < 1]
    ids = {*map(id, gaps)}
    causes = {cause for row in gaps for cause in row["causes"]}
    causes -= {cause for row, _ in queues if id(row) not in ids for cause in row["causes"]}
    faults = rows["group_faults"]
    return ids | {id(row) for row in faults if row["fault"] in causes and row["share_of_time"] < 1}


def _worst_of(rows: _TopicRows) -> _TopicRows:
    """The rows of the worst severity; known issues aside, where there is anything else."""
    every = [row for name in GRADED_TABLES for row in rows[name]]
    counted = [row for row in every if row["known_issue"] is None] or every
    severity = worst(row["severity"] for row in counted) if counted else ""
    kept = {id(row) for row in counted if row["severity"] == severity}
    there = {name: [row for row in rows[name] if id(row) in kept] for name in GRADED_TABLES}
    return there | {GROUP_HEALTH.name: rows[GROUP_HEALTH.name]}


def _rows_of(tables: Tables, name: str, place: Place) -> Iterator[Row]:
    """The rows of a place in a table of a published run."""
    table = tables.read(name, TABLES[name].schema.names, {place})
    for number, column in enumerate(table.schema):
        if pa.types.is_timestamp(column.type):
            table = table.set_column(number, column.name, table[column.name].cast(LONG))
    for row in table.to_pylist():
        if place_of(row) == place:
            yield with_texts(row) if TEXTS in row else row


def _problem(place: Place, rows: _TopicRows) -> Problem | None:
    """The problem that these rows make, as the writer makes that of a night; None: there is none.

    When a problem of before was last seen is said of the night alone.
    """
    copies = {name: [dict(row) for row in of_table] for name, of_table in rows.items()}
    names = dict(zip(PLACE, place, strict=True))
    made = to_table(PROBLEMS, problems_of(names, copies, {}))
    tables = Tables(lambda name: ds.dataset(made) if name == PROBLEMS.name else None)
    return next(iter(read_problems(tables)), None)
