"""What clients, offsets and situations say, in seconds and a few numbers, for the rules of time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from jobs.declared.dossier import ClientRun, Dossier, QueueOffsets, ReportedQueue
from jobs.declared.instants import SECOND, Instant
from jobs.judge.observe.brokers import Absence
from jobs.judge.observe.core_verdict import QueueAllocation, QueueKey, Verdict
from jobs.judge.observe.holdings import Holding, find_holdings
from jobs.judge.observe.holdings_index import index_holdings
from jobs.judge.observe.routes import RouteChange
from jobs.judge.observe.situations import Period, Situations
from jobs.judge.observe.timeline import Phase, Timeline
from jobs.judge.rules.found import GroupFindings
from jobs.judge.rules.stalls import stalled_queues
from jobs.judge.times import persistence
from rebalance_core.state import Unreachable
from tests.judge import phases
from tests.judge.phases import at

GROUP, TOPIC = "G", "T"
BROKER, OTHER_BROKER = "broker-a", "broker-b"


def in_seconds(moment: Instant) -> float:
    return moment / SECOND


# ---------------------------------------------------------------- what was computed


def allocated(
    client_id: str,
    queues: Iterable[int | QueueKey],
    weight: float = 1.0,
    queue_count: int = 4,
    client_count: int = 2,
    processes: int = 1,
    subscribed: bool = True,
    brokers: Sequence[str] = (BROKER,),
) -> QueueAllocation:
    """What an id's processes take under one view; a number is a queue of broker-a."""
    keys = tuple((BROKER, each) if isinstance(each, int) else each for each in queues)
    lengths = (queue_count, client_count)
    view = (tuple(brokers), weight, *lengths)
    return QueueAllocation(client_id, processes, subscribed, "AVG", "observed", *view, keys)


#: Clients a and b share the four queues of broker-a.
AGREED = (allocated("a", [0, 1]), allocated("b", [2, 3]))


def evaluated(
    allocations: Iterable[QueueAllocation], processes: int = 2, coverage: str = "AUDITED"
) -> Verdict:
    """A healthy situation in which the queues are taken so."""
    verdict = {"coverage": coverage, "members": processes, "processes": processes}
    return phases.evaluated(tuple(allocations), **verdict, strategy_source="observed")


def timeline(
    segments: Sequence[tuple[str, float, float]],
    situations: Mapping[str, Verdict],
    unreachable: Iterable[Unreachable] = (),
) -> Timeline:
    """Phases as (situation, first second, last second); in all of them the same is unreachable."""
    made = []
    for place, (name, first, last) in enumerate(segments, start=1):
        seen = (at(first), at(last), 1, situations[name])
        made.append(Phase(TOPIC, name, place, *seen, place, False, unreachable=tuple(unreachable)))
    return Timeline(TOPIC, tuple(made))


def periods(segments: Iterable[tuple[str, float]], topic: str = TOPIC) -> list[Period]:
    """Periods of one snapshot as (situation, first second)."""
    return [
        phases.period(name, first, first, topic=topic, group_run=number)
        for number, (name, first) in enumerate(segments)
    ]


# ---------------------------------------------------------------- what clients said


def client(source: str, client_id: str, held: Iterable[int], **facts: Any) -> ClientRun:
    """What a process said; of broker-a's queues of the topic."""
    values: dict[str, Any] = dict.fromkeys(ClientRun._fields)
    values |= {
        "source": source,
        "client_id": client_id,
        "queues": tuple(ReportedQueue(TOPIC, BROKER, number, False) for number in held),
    }
    return ClientRun(**values | facts)


def info(
    client_id: str,
    seconds: float | Sequence[float],
    held: Iterable[int],
    started: float = 0,
    observed: float = 0,
    **facts: Any,
) -> ClientRun:
    """The same running info at one second or at several, collected ``observed`` seconds later."""
    moments = [seconds] if isinstance(seconds, int | float) else seconds
    times = tuple((at(each), at(each + observed)) for each in moments)
    values = {"start_timestamp": at(started), "times": times}
    return client("RUNNING_INFO", client_id, held, **values | facts)


def log(
    process: str | None,
    client_id: str,
    seconds: float,
    queues: Iterable[int],
    queue_count: int | None = 4,
    client_count: int | None = 2,
    **facts: Any,
) -> ClientRun:
    """A log line: what the process computed from then on, and from lists of which lengths."""
    values: dict[str, Any] = {
        "process": process,
        "topic": TOPIC,
        "queue_count": queue_count,
        "client_count": client_count,
        "times": ((at(seconds), at(seconds)),),
    }
    return client("CLIENT_LOG", client_id, queues, **values | facts)


def holdings_of(
    clients: Sequence[ClientRun],
    segments: Sequence[tuple[str, float, float]] = (("one", 0, 600),),
    allocations: Iterable[QueueAllocation] | Mapping[str, Iterable[QueueAllocation]] = AGREED,
    changes: Sequence[float] = (),
    processes: int = 2,
    coverage: str = "AUDITED",
    unreachable: Iterable[Unreachable] = (),
) -> list[Holding]:
    """``find_holdings`` of client runs; one situation for ten minutes unless others are given.

    ``allocations`` are by situation or of all of them.
    """
    names = [name for name, _, _ in segments]
    by_name = allocations if isinstance(allocations, Mapping) else dict.fromkeys(names, allocations)
    situations = {name: evaluated(taken, processes, coverage) for name, taken in by_name.items()}
    return find_holdings(
        Dossier("DefaultCluster", GROUP, clients=list(clients)),
        {TOPIC: timeline(segments, situations, unreachable)},
        {TOPIC: [RouteChange(at(each), at(each), (), ()) for each in changes]},
    )


# ---------------------------------------------------------------- what moved


def offsets(
    queue_id: int,
    polls: Mapping[float, tuple[int, int]],
    broker_name: str = BROKER,
    topic: str = TOPIC,
) -> QueueOffsets:
    """The polls of one queue: by second its broker and consumer offset."""
    times = np.array([at(second) for second in polls], np.int64)
    of_broker, of_consumer = np.array(list(polls.values()), np.int64).reshape(-1, 2).T
    return QueueOffsets(topic, broker_name, queue_id, times, of_broker, of_consumer)


def steady(*seconds: int) -> dict[float, tuple[int, int]]:
    """A queue that gets a message a second and is always read to its end."""
    return {second: (second, second) for second in seconds}


def stuck(*seconds: int, at_offset: int = 0) -> dict[float, tuple[int, int]]:
    """A queue that gets a message a second and is not read beyond its offset.

    It was read before: an offset of 0 is none."""
    return {second: (second + 1_010, at_offset + 1_000) for second in seconds}


#: Queues 0 to 2 of broker-a belong to a, queue 3 and those of broker-b to b.
OWNERS = (allocated("a", [0, 1, 2]), allocated("b", [3, (OTHER_BROKER, 0), (OTHER_BROKER, 1)]))


def stalls_of(
    queues: Sequence[QueueOffsets],
    orphans: Iterable[tuple[QueueKey, float, float]] = (),
    segments: Iterable[tuple[str, float]] = (("one", -60),),
    owners: Mapping[str, Iterable[QueueAllocation]] | None = None,
    topic: str = TOPIC,
    masters_away: Sequence[Absence] = (),
    holdings: Iterable[Holding] = (),
) -> GroupFindings:
    """The stalls of a topic and its frozen processes: of 60 s that something has to last.

    ``orphans`` are (queue, since, until), ``owners`` by situation. An orphan of 180 s lasts. A
    situation without owners was not audited.
    """
    dossier = Dossier("DefaultCluster", GROUP)
    for each in queues:
        dossier.offsets.setdefault(each.topic, []).append(each)
    situations = {
        name: evaluated(taken, coverage="AUDITED" if taken else "STRATEGY_NOT_KNOWN")
        for name, taken in (owners or {"one": OWNERS}).items()
    }
    orphaned = [
        replace(
            phases.queue_finding(
                *(since, until), queue=queue, persistence=persistence(at(since), at(until), 180)
            ),
            topic=topic,
        )
        for queue, since, until in orphans
    ]
    of = phases.case(
        dossier=dossier,
        terms=replace(phases.TERMS, persistence_seconds=60),
        timelines={},
        holdings=index_holdings(holdings),
        situations=Situations({topic: periods(segments, topic)}),
        evaluated=situations,
        masters_away=masters_away,
    )
    return stalled_queues(of, GroupFindings(queues=tuple(orphaned)))


def burst() -> list[QueueOffsets]:
    """Thirty messages came to each queue; b, which has three of them, froze at the tenth.

    As a real cluster showed it: nothing came after that, so nobody moved.
    """
    times = (27, 43, 59, 75, 91, 107, 123)
    read = {0: (0, 0)} | dict.fromkeys((*times, 139), (30, 30))
    left = {0: (0, 0)} | dict.fromkeys(times, (30, 10)) | {139: (30, 30)}
    return [
        *[offsets(number, read) for number in (0, 1, 2)],
        offsets(3, left),
        offsets(0, left, OTHER_BROKER),
        offsets(1, left, OTHER_BROKER),
    ]
