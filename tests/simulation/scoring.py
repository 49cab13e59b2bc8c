"""What counts as true and as found. The definitions stand here; ``score`` prints them.

A row is a finding of a queue that lasts: PERSISTENT, of ``orphaned_queues`` or
``duplicate_queues``. It speaks of the time from ``first_seen`` to ``last_seen``, at least one
interval of polling long: a queue that one round shows was so for about that time.

*So* means: nobody could read the queue, or several processes could. A queue whose broker is down is
nobody's, but it is not asked of the audit that it says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from rebalance_core.message_queue import MessageQueue
from tests.simulation.clock import SECOND, Millis
from tests.simulation.collectors import ZERO, instant
from tests.simulation.fleets import Fleet, Planted
from tests.simulation.truth import Spans, Steps, Truth, common, length, without

ORPHANED, DUPLICATE, STALLED = "ORPHANED", "DUPLICATE", "STALLED"
#: The default of ``persistence_seconds``.
PERSISTENCE: Millis = 180 * SECOND
#: A CERTAIN row is true if the queue was so for this share of the time that the row claims. The
#: edges of a row are as wide as the gaps between two polls, and a queue may have an owner for
#: moments within.
CERTAIN_SHARE = 0.8
#: A fault is right if what it says of its members was so for this share of its time.
FAULT_SHARE = 0.5
#: A row or a fault begins when it began if it is off by at most so many intervals of polling, and
#: by what a round takes.
BEGINS_WITHIN, ROUND_TAKES = 2, 10 * SECOND
#: A POSSIBLE row is true if the queue was so for this share of that time and for so long.
#: It claims no more than that it happens; 20 s is one rebalance, so that less is noise.
POSSIBLE_SHARE, POSSIBLE_LEAST = 0.1, 20 * SECOND
#: Times in which a queue was so, with shorter gaps between them, are one spell.
SPELL_GAP: Millis = 60 * SECOND
#: A table that changes less often may be that of a group which changed its mind.
_FLIPS = 4
#: A spell asks for a row if the queue was so for this share of it.
SPELL_SHARE = 0.5
#: It is found if rows that last cover this share of it.
FOUND_SHARE = 0.5

RULES = f"""\
A row is true
  CERTAIN: if the queue was so for {CERTAIN_SHARE:.0%} of the row's time x share_of_time;
  POSSIBLE: for {POSSIBLE_SHARE:.0%} of that time, and for {POSSIBLE_LEAST // SECOND} s. Where no
    dump shows who it is (subscriptions by lists alone), the mean over the topic's rows counts.
A spell is the time in which a queue was so, gaps of up to {SPELL_GAP // SECOND} s included, if it
  was so for {SPELL_SHARE:.0%} of it. It asks for a row if it lasts {PERSISTENCE // SECOND} s and
  two intervals of polling, if the queue was so for {PERSISTENCE // SECOND} s and one interval of
  it, with three rounds in it, and if dumps can show it. It is found if lasting rows of the queue
  (of an orphan: or a lasting stall, or GROUP_NOT_CONSUMING) cover {FOUND_SHARE:.0%} of it.
A stall is asked for likewise, where offsets are polled: somebody reads the queue, nobody handles
  what is read, and messages wait. It is found as an orphan is.
A probability x share_of_time is right within a factor of two of the share of the row's time.
A transient row is true if the queue was so at any moment of its time. A stall is true if nobody
  handled the queue's messages for {CERTAIN_SHARE:.0%} of its time.
A cause of a true row is right if the fleet has that fault, in that time where it is known when.
A fault is right if the fleet has it in {FAULT_SHARE:.0%} of its time, and with all its members and
  brokers where those are known. Of a ghost: no process of the id worked; of a frozen one likewise;
  of a shared id: two ran; of a stale channel: one at most.
By the length of rounds: of all that lasts, rows of queues and faults that can be judged, the
  share that is true, by severity; and of the CERTAIN rows of orphaned and duplicate queues. Where
  nothing was ever wrong every fault of WARNING or worse is false. The interval is Wilson's, of
  95 %, over rows as if each were by itself; those of one fleet are mostly true or false together.
A row or a fault begins rightly within {BEGINS_WITHIN} intervals of polling.\
"""


@dataclass(frozen=True)
class Row:
    """A published finding of a queue."""

    cluster: str
    kind: str
    queue: MessageQueue
    start: Millis
    end: Millis
    certainty: str
    persistence: str
    probability: float
    share_of_time: float
    causes: tuple[str, ...]
    severity: str = "WARNING"

    @property
    def lasts(self) -> bool:
        return self.persistence == "PERSISTENT"


def row_of(kind: str, values: dict[str, Any]) -> Row:
    """A row of a report table; those of stalled queues have no certainty."""
    queue = MessageQueue(*(values[name] for name in ("topic", "broker_name", "queue_id")))
    sure = (values.get("certainty", "CERTAIN"), values["persistence"])
    share = 1.0 if values.get("share_of_time") is None else values["share_of_time"]
    causes, severity = tuple(values.get("causes") or ()), values.get("severity") or "WARNING"
    likely = values.get("probability") or 0.0
    return Row(
        values["cluster"], kind, queue, *_times(values), *sure, likely, share, causes, severity
    )


@dataclass(frozen=True)
class FaultRow:
    """A published fault of a group."""

    cluster: str
    fault: str
    topic: str
    start: Millis
    end: Millis
    client_ids: tuple[str, ...]
    broker_names: tuple[str, ...]
    persistence: str
    severity: str
    ongoing: bool = False
    remedy: str = ""

    @property
    def lasts(self) -> bool:
        return self.persistence == "PERSISTENT"


def fault_of(values: dict[str, Any]) -> FaultRow:
    """A row of ``group_faults``."""
    same = ("cluster", "fault", "topic", "persistence", "severity", "ongoing")
    told = {name: values[name] for name in same}
    told |= {name: tuple(values[name] or ()) for name in ("client_ids", "broker_names")}
    start, end = _times(values)
    return FaultRow(start=start, end=end, remedy=values["remedy"] or "", **told)


def _times(values: dict[str, Any]) -> tuple[Millis, Millis]:
    first, last = (values[name] - ZERO for name in ("first_seen", "last_seen"))
    return round(first.total_seconds() * 1000), round(last.total_seconds() * 1000)


def window(row: Row, interval: Millis) -> tuple[Millis, Millis]:
    """The time that a row speaks of."""
    missing = max(interval - (row.end - row.start), 0)
    return row.start - missing // 2, row.end + missing // 2


@dataclass(frozen=True)
class Judged:
    """A row, and the share of its time in which it was so."""

    row: Row
    so: float
    is_true: bool
    #: Of a false POSSIBLE row: whether it is true in the mean of other draws of the clients.
    is_chance: bool = False

    @property
    def claimed(self) -> float:
        return self.row.probability * self.row.share_of_time

    @property
    def is_close(self) -> bool:
        """Whether the probability is within a factor of two of the share of the time."""
        return self.so / 2 <= self.claimed <= self.so * 2


def judge_row(fleet: Fleet, row: Row) -> Judged:
    start, end = window(row, fleet.habits.interval)
    so = length(_spans_of(fleet, row)(row.queue, start, end))
    share = so / (end - start)
    if not row.lasts:
        is_true = so > 0
    elif row.certainty == "CERTAIN":
        is_true = share >= CERTAIN_SHARE * row.share_of_time
    else:
        is_true = share >= POSSIBLE_SHARE * row.share_of_time and so >= POSSIBLE_LEAST
    return Judged(row, share, is_true)


def _spans_of(fleet: Fleet, row: Row) -> Callable[[MessageQueue, Millis, Millis], Spans]:
    truth = fleet.truth
    # Of a reader whom no list shows a queue that does not move is all that there is to see.
    unread = truth.unconsumed if fleet.habits.behind_proxy else truth.unread
    return {ORPHANED: unread, DUPLICATE: truth.duplicated}.get(row.kind, truth.unconsumed)


def begins_rightly(fleet: Fleet, row: Row) -> bool:
    """Whether a true row begins when it began to be so.

    What came before is looked at for as long as the row lasts, at most from the first round on.
    """
    spans = _spans_of(fleet, row)(row.queue, 0, row.end + fleet.habits.interval)
    begun = [start for start, end, _ in joined(spans) if end >= row.start]
    return bool(begun) and _begins_at(fleet, row.start, begun[0])


def _begins_at(fleet: Fleet, seen: Millis, began: Millis, shows_after: Millis = 0) -> bool:
    slack = BEGINS_WITHIN * (fleet.habits.interval + fleet.habits.drift) + ROUND_TAKES
    return -slack <= seen - max(began, 0) <= slack + shows_after


def is_caused_so(fleet: Fleet, row: Row) -> bool:
    """Whether the first of the row's causes is a fault of the fleet at that time."""
    if not row.causes or row.causes[0] not in fleet.faults:
        return False
    planted = [each for each in fleet.planted if row.causes[0] in each.names]
    return not planted or any(
        each.start <= row.end and row.start <= each.end + _LISTED_FOR for each in planted
    )


#: What is over shows in lists for so long: channels expire, and heartbeats bring back.
_LISTED_FOR: Millis = 160 * SECOND


def judge_fault(fleet: Fleet, row: FaultRow) -> bool | None:
    """Whether a fault is so; None: it comes with what the situations do, and is not judged."""
    start, end = row.start, max(row.end, row.start + 1)
    if row.fault in _OF_PROCESSES:
        steps_of, is_so = _OF_PROCESSES[row.fault]
        of_ids = [
            list(steps_of(fleet.truth)[each].spans(is_so, start, end)) for each in row.client_ids
        ]
        return all(length(spans) >= FAULT_SHARE * (end - start) for spans in of_ids)
    planted = [each for each in fleet.planted if row.fault in each.names]
    if planted:
        together = _union(
            [(each.start, each.end + _LISTED_FOR) for each in planted if _fits(each, row)]
        )
        return length(common([(start, end)], together)) >= FAULT_SHARE * (end - start)
    if row.fault in SPECIFIC or (is_well(fleet) and row.severity != "INFO"):
        return row.fault in fleet.faults
    return None


def is_well(fleet: Fleet) -> bool:
    """Whether nothing was ever wrong but for queues that left with their broker: whatever is found
    of WARNING or worse, and lasts, is not so.
    """
    return not (fleet.must or fleet.planted or fleet.faults - {"QUEUES_LEFT_ROUTE"})


def _fits(planted: Planted, row: FaultRow) -> bool:
    ids, names = planted.client_ids, planted.broker_names
    return (not ids or ids.issuperset(row.client_ids)) and (
        not names or set(names).issuperset(row.broker_names)
    )


_Processes = Callable[[Truth], Mapping[str, Steps[frozenset[str]]]]
#: Faults that are about the processes of client ids.
_OF_PROCESSES: Mapping[str, tuple[_Processes, Callable[[frozenset[str]], bool]]] = {
    "GHOST_MEMBER": (lambda truth: truth.working, lambda who: not who),
    "FROZEN_PROCESS": (lambda truth: truth.working, lambda who: not who),
    "DUPLICATE_CLIENT_ID": (lambda truth: truth.running, lambda who: len(who) > 1),
    "STALE_CHANNEL": (lambda truth: truth.running, lambda who: len(who) <= 1),
}


def _judged_together(fleet: Fleet, rows: list[Judged]) -> list[Judged]:
    """Rows of a cause of which no dump shows whom it concerns say: so many of these queues.

    They say it of a topic, so that the mean over its rows counts, for each of them.
    """
    together = [
        each
        for each in rows
        if each.row.certainty == "POSSIBLE" and fleet.of_somebody.intersection(each.row.causes)
    ]
    judged = [each for each in rows if each not in together]
    for topic in sorted({each.row.queue.topic for each in together}):
        of_topic = [each for each in together if each.row.queue.topic == topic]
        so = sum(each.so for each in of_topic) / len(of_topic)
        judged += [Judged(each.row, so, so >= POSSIBLE_SHARE) for each in of_topic]
    return judged


@dataclass(frozen=True)
class Spell:
    """A time in which a queue was so, for most of it. ``hidden``: why no dump shows it."""

    cluster: str
    kind: str
    queue: MessageQueue
    start: Millis
    end: Millis
    so: float
    hidden: str | None


def least_spell(fleet: Fleet) -> Millis:
    """A row's edges are polls: it may begin and end an interval of polling within the spell."""
    return PERSISTENCE + 2 * fleet.habits.interval


def least_so(fleet: Fleet) -> Millis:
    """PERSISTENT is shown for ``persistence_seconds``, and each round stands for an interval."""
    return PERSISTENCE + fleet.habits.interval


def _asks(fleet: Fleet, start: Millis, end: Millis, so: float) -> bool:
    """Whether a spell is so long, and was so for so long, that it asks for a row."""
    is_long = end - start >= least_spell(fleet) and so * (end - start) >= least_so(fleet)
    return is_long and sum(start <= time <= end for time in fleet.rounds) >= 3


def spells(fleet: Fleet) -> Iterator[Spell]:
    """All that lasts, of every queue."""
    last = fleet.rounds[-1]
    for queue in sorted(fleet.truth.exists):
        of_kinds = (ORPHANED, fleet.truth.orphaned), (DUPLICATE, fleet.truth.duplicated)
        for kind, spans_of in of_kinds:
            spans = without(spans_of(queue, 0, last), fleet.unseen)
            for start, end, so in joined(spans):
                if _asks(fleet, start, end, so) and so >= SPELL_SHARE:
                    hidden = why_hidden(fleet, kind, queue, common(spans, [(start, end)]))
                    yield Spell(fleet.name, kind, queue, start, end, so, hidden)


def stall_spells(fleet: Fleet) -> Iterator[Spell]:
    """What lasts of queues that somebody reads and nobody handles, while messages wait."""
    if not fleet.habits.offsets or any(pod.pops for pod in fleet.pods):
        return
    last = fleet.rounds[-1]
    for queue in sorted(fleet.truth.exists):
        read = without([(0, last)], fleet.truth.unread(queue, 0, last))
        there = list(fleet.truth.exists[queue].spans(bool, 0, last))
        spans = common(common(fleet.truth.unconsumed(queue, 0, last), read), there)
        for start, end, so in joined(spans):
            if _asks(fleet, start, end, so) and fleet.waits(queue, start, end):
                yield Spell(fleet.name, STALLED, queue, start, end, so, None)


def joined(spans: Spans) -> Iterator[tuple[Millis, Millis, float]]:
    """Start, end and share of what is one spell.

    >>> list(joined([(0, 100_000), (150_000, 200_000), (900_000, 950_000)]))
    [(0, 200000, 0.75), (900000, 950000, 1.0)]
    """
    group: Spans = []
    for span in [*spans, None]:
        if group and (span is None or span[0] - group[-1][1] > SPELL_GAP):
            start, end = group[0][0], group[-1][1]
            yield start, end, length(group) / (end - start)
            group = []
        if span is not None:
            group.append(span)


def why_hidden(fleet: Fleet, kind: str, queue: MessageQueue, spans: Spans) -> str | None:
    """Why no line of the dump shows a spell of these times; None: the dump can show it."""
    is_whole = max(end - start for start, end in spans) >= least_spell(fleet)
    for hidden in fleet.hidden:
        concerns = hidden.topics is None or queue.topic in hidden.topics
        if concerns and kind in hidden.kinds and not (hidden.unless_whole and is_whole):
            return hidden.reason
    habits = fleet.habits
    if kind == ORPHANED and fleet.waits(queue, spans[0][0], spans[-1][1]) is False:
        return "no message waits in the queue, and none comes"
    if queue.topic == "U" and not (habits.heartbeats or habits.running_infos):
        start, end = spans[0][0], spans[-1][1]
        seen = ["U" in topics for time, topics in fleet.tables if start <= time <= end]
        changes = sum(before != after for before, after in pairwise(seen))
        if changes < _FLIPS:
            return (
                "lists alone, and the group's table hardly flipped: polls and heartbeats kept step"
            )
    return None


def covered(spell: Spell, rows: Iterable[Row]) -> float:
    """The share of a spell that lasting rows of its queue and kind cover."""
    spans = [(row.start, row.end) for row in rows if row.lasts]
    return length(common([(spell.start, spell.end)], _union(spans))) / (spell.end - spell.start)


def _covering(
    spell: Spell, rows: Sequence[Row], stalls: Sequence[Row], faults: Sequence[FaultRow]
) -> Iterator[Row]:
    """What says so of the spell's queue. That nobody reads it, or handles what is read, stalls say
    as well, and a group that consumes nothing."""
    if spell.kind == DUPLICATE:
        yield from (row for row in rows if (row.queue, row.kind) == (spell.queue, DUPLICATE))
        return
    yield from (
        row for row in (*rows, *stalls) if row.queue == spell.queue and row.kind != DUPLICATE
    )
    for each in faults:
        if (each.fault, each.topic) == ("GROUP_NOT_CONSUMING", spell.queue.topic):
            of_group = each.start, each.end, "CERTAIN", each.persistence
            yield Row(spell.cluster, STALLED, spell.queue, *of_group, 1.0, 1.0, ())


def _union(spans: Spans) -> Spans:
    union: Spans = []
    for start, end in sorted(spans):
        if union and start <= union[-1][1]:
            union[-1] = (union[-1][0], max(end, union[-1][1]))
        else:
            union.append((start, end))
    return union


@dataclass(frozen=True)
class Missed:
    """A spell that no lasting rows cover, and the rows that there are of its queue."""

    spell: Spell
    covered: float
    rows: tuple[Row, ...]


#: Faults that a situation has or has not; others may come with what it does.
SPECIFIC = frozenset(
    {
        *("ALLOCATES_OTHERWISE", "BROKER_VIEW_DIVERGENCE", "DUPLICATE_CLIENT_ID", "FLAPPING"),
        *("EXPRESSION_MISMATCH", "FROZEN_PROCESS", "GROUP_NOT_CONSUMING", "GROUP_NOT_ON_BROKER"),
        *("GROUP_OFFLINE", "MASTER_AWAY", "MIXED_REQUEST_MODE", "OFFSETS_WENT_BACK"),
        *(
            "OFFSETS_GONE",
            "QUEUE_NOT_HELD",
            "RECONNECTING",
            "ROUTE_DIVERGENCE",
            "STRATEGY_MISMATCH",
        ),
        *("SUBSCRIPTION_MISMATCH", "UNLISTED_CONSUMER"),
    }
)


@dataclass
class Score:
    """How the audit did on one fleet."""

    fleet: Fleet
    rows: list[Judged] = field(default_factory=list)
    spells: list[Spell] = field(default_factory=list)
    missed: list[Missed] = field(default_factory=list)
    faults_asked: set[str] = field(default_factory=set)
    faults_missed: set[str] = field(default_factory=set)
    faults_wrong: set[str] = field(default_factory=set)
    stalls_asked: list[Spell] = field(default_factory=list)
    stalls_missed: list[Missed] = field(default_factory=list)
    transient: list[Judged] = field(default_factory=list)
    stalls: list[Judged] = field(default_factory=list)
    #: Faults that can be judged, and whether they are right.
    faults: list[tuple[FaultRow, bool]] = field(default_factory=list)
    #: Of what was planted and found: whether it begins when it began.
    begun: list[tuple[Planted, bool]] = field(default_factory=list)
    #: Of a fleet that was not healthy at its end, and was repaired: whether it is afterwards.
    is_repaired: bool | None = None

    @property
    def situation(self) -> str:
        return self.fleet.name.rpartition("-")[0]

    def lasting(self, severity: str) -> list[bool]:
        """Of all that lasts with this severity, of queues and of groups: whether it is true."""
        of_queues = [j.is_true for j in (*self.rows, *self.stalls) if _is(j.row, severity)]
        return of_queues + [is_right for row, is_right in self.faults if _is(row, severity)]

    @property
    def certain(self) -> list[bool]:
        """Of the lasting rows that are CERTAIN: whether they are true."""
        return [each.is_true for each in self.rows if each.row.certainty == "CERTAIN"]

    @property
    def asked(self) -> list[Spell]:
        """What dumps can show."""
        return [spell for spell in self.spells if spell.hidden is None]


def score(
    fleet: Fleet, rows: Sequence[Row], stalls: Sequence[Row], faults: Sequence[FaultRow]
) -> Score:
    """Compares what was published of a fleet with its truth."""
    result = Score(fleet)
    lasting_faults = {each.fault for each in faults if each.lasts}
    result.transient = [judge_row(fleet, row) for row in rows if not row.lasts]
    result.stalls = [judge_row(fleet, row) for row in stalls]
    result.faults = [
        (row, is_right) for row in faults if (is_right := judge_fault(fleet, row)) is not None
    ]
    for planted in fleet.planted:
        seen = [
            row.start
            for row in faults
            if row.lasts and row.fault in planted.names and _fits(planted, row)
        ]
        if seen:
            is_right = _begins_at(fleet, min(seen), planted.start, planted.shows_after)
            result.begun.append((planted, is_right))
    result.rows = _judged_together(fleet, [judge_row(fleet, row) for row in rows if row.lasts])
    result.spells = list(spells(fleet))
    result.stalls_asked = list(stall_spells(fleet))
    for spell in (*result.asked, *result.stalls_asked):
        same = [*_covering(spell, rows, stalls, faults)]
        share = covered(spell, same)
        if share < FOUND_SHARE:
            of_kind = result.stalls_missed if spell.kind == STALLED else result.missed
            of_kind.append(Missed(spell, share, tuple(same)))
    lasting = {(each.queue.topic, each.kind) for each in result.asked if each.so > 0.9}
    must = _shown(fleet) | {
        fault for fault, what in fleet.must_if_lasting.items() if what in lasting
    }
    result.faults_missed = {
        fault for fault in must if not lasting_faults.intersection(fault.split("|"))
    }
    result.faults_asked = must
    result.faults_wrong = {fault for fault in lasting_faults if fault in SPECIFIC - fleet.faults}
    return result


def _is(row: Row | FaultRow, severity: str) -> bool:
    return row.lasts and row.severity == severity


def _shown(fleet: Fleet) -> set[str]:
    """What must be told, but for what was planted for a time too short for the rounds."""
    last, least = fleet.rounds[-1], least_spell(fleet)
    too_short = {
        each.fault
        for each in fleet.planted
        if not each.is_of_a_moment and min(each.end, last) - max(each.start, 0) < least
    }
    return fleet.must - too_short


def clock_time(time: Millis) -> str:
    return instant(time)[11:19]


def span(start: Millis, end: Millis) -> dict[str, str]:
    return {"start": clock_time(start), "end": clock_time(end)}


def told(row: Row) -> dict[str, Any]:
    """A row as a line for looking at."""
    return {
        **span(row.start, row.end),
        "persistence": row.persistence,
        "certainty": row.certainty,
        "probability": round(row.probability, 3),
        "share_of_time": row.share_of_time,
        "causes": list(row.causes),
    }
