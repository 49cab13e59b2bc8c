"""rows of a topic -> its findings and its faults, each once; what explains most of them first."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from rebalance_core.descriptions import EXPRESSION_MISMATCH, queue_ranges
from rebalance_core.english import agreeing, joined, list_of
from rebalance_core.faults import LATENT
from rebalance_core.grouping import grouped
from rebalance_core.message_queue import MessageQueue
from rebalance_core.repairs import GHOST_MEMBER, MASTER_AWAY
from rebalance_core.texts import Text, for_slots

from ...declared import kinds
from ...declared.instants import SECOND
from ...schemas import FAULT_FIELDS
from ..observe.arrow_tables import Row
from ..rules.why import CUT_OFF, NOBODY_HOLDS_IT, OTHER_FILTER, OUTAGES

#: Columns that rows of one finding share; a table has not all of them.
_GRADES = ("severity", "persistence", "ongoing", "known_issue")
_TIMES = ("first_seen", "last_seen", "open_since", "nights_open")
_ALIKE = (*_GRADES, *_TIMES, "status", "certainty", "causes", "owners", "why")


class FoundRows(NamedTuple):
    """Rows of a table of queues that differ in nothing but the queue; or a fault that no queue
    shows, as one row.

    ``shared`` are the columns in which they do not differ.
    """

    kind: str
    shared: Row
    causes: Sequence[str]
    rows: Sequence[Row]

    @property
    def is_severe(self) -> bool:
        """True if it counts: it is there for long, and is likely."""
        return bool(self.shared["severity"] != kinds.INFO)

    @property
    def is_known(self) -> bool:
        """True if a known issue explains it."""
        return self.shared["known_issue"] is not None

    @property
    def is_of_queues(self) -> bool:
        """True if its rows are of queues."""
        return self.kind in kinds.QUEUE_FINDINGS.values()

    @property
    def queues(self) -> list[tuple[str, int]]:
        """Its queues: broker and number."""
        return [(row["broker_name"], row["queue_id"]) for row in self.rows if self.is_of_queues]


def findings_of_queues(kind: str, rows: Sequence[Row]) -> Iterator[tuple[str, FoundRows]]:
    """The findings of a table of queues, each with its topic."""

    def shared(row: Row) -> tuple[Any, ...]:
        values = (row.get(name) for name in ("topic", *_ALIKE))
        return tuple(tuple(value) if isinstance(value, list) else value for value in values)

    for (topic, *values), alike in grouped((shared(row), row) for row in rows).items():
        columns = dict(zip(_ALIKE, values, strict=True))
        yield topic, FoundRows(kind, columns, columns["causes"] or (), alike)


def shown_faults(rows: Iterable[Row]) -> list[Row]:
    """The faults of a topic, each with its worst run: ``problems.faults``.

    One per client id for faults about one client id (``kinds.OF_ONE_CLIENT``), one for every other
    fault. One run that nobody knows of makes the fault one that counts.
    """

    def key(row: Row) -> tuple[str, tuple[str, ...]]:
        fault = row["fault"]
        return fault, tuple(row["client_ids"]) if fault in kinds.OF_ONE_CLIENT else ()

    shown = []
    for runs in grouped((key(row), row) for row in rows).values():
        worst = max(runs, key=lambda run: (_weight(run), run["last_seen"]))
        unknown = any(run["known_issue"] is None for run in runs)
        opened = [run["open_since"] for run in runs if run["open_since"] is not None]
        fault = {name: worst[name] for name in FAULT_FIELDS if name in worst}
        shown.append(
            fault
            | {
                "runs": len(runs),
                "known_issue": None if unknown else worst["known_issue"],
                "open_since": min(opened, default=None),
                "nights_open": max(run["nights_open"] or 0 for run in runs) or None,
            }
        )
    return shown


def _weight(fault: Row) -> tuple[bool, bool, int, int]:
    """The larger, the more it explains: whether it lasts and goes on, its severity, queues times
    seconds.
    """
    seconds = (fault["last_seen"] - fault["first_seen"]) // SECOND + 1
    badness = kinds.SEVERITIES.index(fault["severity"])
    return lasts(fault), fault["ongoing"], badness, fault["queues_affected"] * seconds


def lasts(fault: Row) -> bool:
    """True if it is more than a deploy or a restart, and does not pass by itself."""
    return kinds.lasts(fault["fault"], fault["persistence"])


def is_latent(fault: Row) -> bool:
    """True if members differ, and no queue shows it as long as they are so many."""
    costs_nothing = fault["severity"] == kinds.INFO and not fault["queues_affected"]
    return fault["fault"] in LATENT and lasts(fault) and costs_nothing


#: The faults that hold queues up. What the stall itself says (``why``) shows that it is by some of
#: them; None: that it is about the owner, or of MASTER_AWAY the broker, of the queue. Any other one
#: is beside the stall: who keeps reconnecting reads its queues all the same.
_HOLDS_UP: Mapping[str, str | None] = {
    **dict.fromkeys((kinds.FROZEN_PROCESS, kinds.CLIENT_NOT_ANSWERING, GHOST_MEMBER, MASTER_AWAY)),
    EXPRESSION_MISMATCH: OTHER_FILTER,
    kinds.QUEUE_NOT_HELD: NOBODY_HOLDS_IT,
    **dict.fromkeys(OUTAGES, CUT_OFF),
}


def explains(fault: Row, found: FoundRows) -> bool:
    """True if the fault is the reason for the finding, at its time; a stall names no cause."""
    kind, of = fault["fault"], found.shared
    if fault["last_seen"] < of["first_seen"] or of["last_seen"] < fault["first_seen"]:
        return False
    if found.kind != kinds.STALLED:
        return kind in found.causes
    if kind not in _HOLDS_UP or fault["severity"] == kinds.INFO:
        return False
    if why := _HOLDS_UP[kind]:
        return bool(of["why"] == why)
    if kind == MASTER_AWAY:
        return {name for name, _ in found.queues} <= {*fault["broker_names"]}
    return not {*of["owners"]}.isdisjoint(fault["client_ids"])


def first_what_explains(findings: Iterable[FoundRows], faults: Sequence[Row]) -> list[Row]:
    """The faults of a topic, what explains most of what counts first.

    Stalls that no fault explains are one themselves: their rows have who owns the queues, and why
    they do not move.
    """
    severe = [finding for finding in findings if finding.is_severe]
    explaining = [row for row in faults if any(explains(row, found) for found in severe)]
    ids = set(map(id, explaining))
    stalls = grouped(
        (found.shared["why"], found)
        for found in severe
        if found.kind == kinds.STALLED and not any(explains(fault, found) for fault in explaining)
    )
    first = [*explaining, *(_stalled(why, stalls_of_why) for why, stalls_of_why in stalls.items())]
    others = [row for row in faults if id(row) not in ids]
    return [*sorted(first, key=_weight, reverse=True), *sorted(others, key=_weight, reverse=True)]


#: Remedies, by two flags: the owners of the queues are known, and so is what holds them up.
_REMEDIES_OF_STALLS = {
    (True, True): "fix what holds up these queues at {these_clients}: {why}",
    (True, False): "take a thread dump of {these_clients} (jstack), and find out why these queues "
    "do not move",
    (False, True): "find in the clients' logs which of them had messages of these queues last, and "
    "fix what holds them up: {why}",
    (False, False): "find in the clients' logs which of them should read these queues, and why "
    "they do not move",
}
#: The most owners of stalled queues that are named.
_MOST_OWNERS = 3


def _stalled(why: str | None, stalls: Sequence[FoundRows]) -> Row:
    """Stalls as a fault: the queues, who owns them, where that is known, and ``why`` they do not
    move.
    """
    every = (stall.shared for stall in stalls)
    longest = max(every, key=lambda shared: shared["last_seen"] - shared["first_seen"])
    queues = {
        MessageQueue(row["topic"], row["broker_name"], row["queue_id"])
        for stall in stalls
        for row in stall.rows
    }
    owners = sorted({client_id for stall in stalls for client_id in stall.shared["owners"]})
    event_ids = {row["event_id"] for stall in stalls for row in stall.rows}
    is_held_up = bool(why) and why != NOBODY_HOLDS_IT
    remedy = _REMEDIES_OF_STALLS[bool(owners), is_held_up]
    values = {"these_clients": list_of(owners, _MOST_OWNERS), "why": why or ""}
    still = agreeing(len(queues), "{queues} [does|do] not move", queues=queue_ranges(queues))
    return {
        **dict.fromkeys(FAULT_FIELDS),
        **{name: longest.get(name) for name in (*_GRADES, *_TIMES, "share_of_time")},
        "fault": kinds.STALLED,
        "runs": len(stalls),
        "evidence": joined([still, why] if why else [still]),
        "remedy": Text(remedy, **for_slots(remedy, values)),
        "queues_affected": len(queues),
        "findings_cleared": 0,
        "findings_left": 0,
        "client_ids": owners,
        "broker_names": sorted({queue.broker_name for queue in queues}),
        "event_id": event_ids.pop() if len(event_ids) == 1 else None,
    }
