"""routes -> route changes: when the readable queues of a topic changed under its group, and which
queues left the route with messages unread.

A nameserver's route holds until the same nameserver gives another one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from jobs.instants import Instant
from jobs.judge.dossier import QueueOffsets, RouteBrokerRow, RouteRun
from jobs.judge.episodes import FaultEpisode, persistence
from jobs.judge.evaluated import QueueKey
from jobs.judge.words import clock, queues_in_words
from jobs.kinds import QUEUES_LEFT_ROUTE, ROUTE_CHANGED, TRANSIENT
from rebalance_core.english import agreeing, joined
from rebalance_core.strategy_rules import MOST_QUEUES
from rebalance_core.texts import Text

_PERM_READ = 4

#: (broker name, how many of its queues can be read).
_Readable = tuple[str, int]


class RouteChange(NamedTuple):
    """The readable queues changed: a nameserver gave another route than it gave before.

    Before and now: the readable queues of all nameservers' routes, sorted.
    """

    first_seen: Instant
    #: When the nameserver gave it; its round may have begun long before.
    collected_at: Instant
    before: Sequence[_Readable]
    now: Sequence[_Readable]

    @property
    def gained(self) -> set[QueueKey]:
        """The queues that can be read from now on."""
        return _queues(self.now) - _queues(self.before)


def find_route_changes(
    routes: Sequence[RouteRun], most_queues: int = MOST_QUEUES
) -> list[RouteChange]:
    """The changes of a topic's readable queues, in time, each at its first poll.

    A route with more queues than ``most_queues`` is no route that counts, and no change.
    """
    runs_of: dict[str, list[RouteRun]] = defaultdict(list)
    for run in routes:
        if sum(queues for _, queues in _readable(run)) <= most_queues:
            runs_of[run.namesrv_addr].append(run)
    given = sorted(each for runs in runs_of.values() for each in _given(runs))
    current: dict[str, Sequence[_Readable]] = {}
    changes: list[RouteChange] = []
    for snapshot, collected_at, namesrv_addr, readable in given:
        before = _union(current)
        is_first = namesrv_addr not in current
        current[namesrv_addr] = readable
        now = _union(current)
        if not is_first and before != now:
            changes.append(RouteChange(snapshot, collected_at, before, now))
    return changes


def _given(
    runs: Sequence[RouteRun],
) -> Iterator[tuple[Instant, Instant, str, Sequence[_Readable]]]:
    """What one nameserver gave first, and each time that it gave something else."""
    if len(runs) == 1:
        (run,) = runs
        yield run.times[0], run.answered_at[0], run.namesrv_addr, _readable(run)
        return
    polls = sorted(
        (snapshot, collected_at, number)
        for number, run in enumerate(runs)
        for snapshot, collected_at in zip(run.times, run.answered_at, strict=True)
    )
    last = None
    for snapshot, collected_at, number in polls:
        if number != last:
            yield snapshot, collected_at, runs[number].namesrv_addr, _readable(runs[number])
        last = number


def _readable(route: RouteRun) -> Sequence[_Readable]:
    return _of_brokers(route.brokers)


def _of_brokers(brokers: Iterable[RouteBrokerRow]) -> Sequence[_Readable]:
    return sorted(
        (broker.broker_name, broker.read_queue_nums)
        for broker in brokers
        if broker.perm & _PERM_READ and broker.read_queue_nums > 0
    )


def _union(current: Mapping[str, Sequence[_Readable]]) -> Sequence[_Readable]:
    return sorted({each for readable in current.values() for each in readable})


def route_changes(topic: str, changes: Sequence[RouteChange]) -> list[FaultEpisode]:
    """One fault for each change of the topic's readable queues.

    Until every client has polled the route (30 s) and rebalanced (20 s) they work from different
    lists; what they hold in that time lags what is computed.
    """
    return [
        FaultEpisode(
            topic=topic,
            fault=ROUTE_CHANGED,
            first_seen=change.first_seen,
            last_seen=change.first_seen,
            snapshots=1,
            persistence=TRANSIENT,
            ongoing=False,
            evidence=Text(
                "the readable queues changed from {before} to {now}; for up to 50 s clients work "
                "from different lists",
                before=_in_words(change.before),
                now=_in_words(change.now),
            ),
            remedy=Text("none, if it was meant: every client follows within 50 s"),
            broker_names=tuple(sorted({name for name, _ in {*change.before} ^ {*change.now}})),
        )
        for change in changes
    ]


def _in_words(readable: Collection[_Readable]) -> str:
    """The brokers with their queue numbers.

    >>> _in_words([("broker-a", 4), ("broker-b", 2)]), _in_words([])
    ('broker-a 4, broker-b 2', 'none')
    """
    if not readable:
        return Text("none")
    named = [Text("{broker} {queues}", broker=name, queues=queues) for name, queues in readable]
    return joined(named, "{before}, {next}")


# ---------------------------------------------------------------- queues that left with messages


def queues_left_route(
    topic: str,
    changes: Sequence[RouteChange],
    routes: Sequence[RouteRun],
    offsets: Sequence[QueueOffsets],
    persistence_seconds: int,
) -> list[FaultEpisode]:
    """One fault for each change after which messages lie in queues that no route has any more.

    It is there until the queues are back, or the offsets show that they were read. What a queue's
    consumer reads between two polls was on its way, and counts as read; so does what was not
    there yet at the poll before: a client commits its offsets every 5 s
    (``persistConsumerOffsetInterval``).
    """
    offsets_of = {(each.broker_name, each.queue_id): each for each in offsets}
    snapshots = sorted({time for run in routes for time in run.times})
    faults: list[FaultEpisode] = []
    for number, change in enumerate(changes):
        gone = _queues(change.before) - _queues(change.now)
        back: dict[Instant | None, dict[QueueKey, _Unread]] = defaultdict(dict)
        for queue in sorted(gone):
            until = next(
                (
                    later.first_seen
                    for later in changes[number + 1 :]
                    if queue in _queues(later.now)
                ),
                None,
            )
            left = _left_unread(offsets_of.get(queue), until)
            if left:
                back[until][queue] = left
        for until, unread in back.items():
            last_seen = snapshots[-1] if until is None else until
            faults.append(
                FaultEpisode(
                    topic=topic,
                    fault=QUEUES_LEFT_ROUTE,
                    first_seen=change.first_seen,
                    last_seen=last_seen,
                    snapshots=sum(change.first_seen <= each <= last_seen for each in snapshots),
                    persistence=persistence(change.first_seen, last_seen, persistence_seconds),
                    ongoing=until is None,
                    evidence=_evidence(change, unread),
                    remedy=_remedy(change, unread),
                    broker_names=tuple(dict.fromkeys(name for name, _ in unread)),
                )
            )
    return faults


def readable_queues(
    routes: Iterable[tuple[str, Sequence[RouteBrokerRow]]],
) -> frozenset[QueueKey]:
    """The queues that every nameserver's route has; ``routes`` by nameserver."""
    of_each = [_queues(_of_brokers(brokers)) for _, brokers in routes]
    return frozenset(of_each[0].intersection(*of_each[1:])) if of_each else frozenset()


def _queues(readable: Sequence[_Readable]) -> set[QueueKey]:
    return {(name, queue_id) for name, queues in readable for queue_id in range(queues)}


class _Unread(NamedTuple):
    """The messages that waited in a queue, at its first poll and at its last one."""

    at_first: int
    at_last: int


def _left_unread(offsets: QueueOffsets | None, until: Instant | None) -> _Unread | None:
    """What waits in the queue at its last poll before it is back; None: nothing, or too little."""
    if offsets is None:
        return None
    polls = offsets.times.size if until is None else int((offsets.times < until).sum())
    if not polls:
        return None
    written, consumed = offsets.broker_offsets[:polls], offsets.consumer_offsets[:polls]
    waiting = written - consumed
    on_their_way = consumed[-1] - consumed[-2] if polls > 1 else 0
    came_since = written[-1] - written[-2] if polls > 1 else 0
    if waiting[-1] <= max(on_their_way, came_since, 0):
        return None
    return _Unread(int(waiting[0]), int(waiting[-1]))


def _evidence(change: RouteChange, unread: Mapping[QueueKey, _Unread]) -> Text:
    at_first = sum(each.at_first for each in unread.values())
    messages = sum(each.at_last for each in unread.values())
    left = agreeing(
        messages, "{messages} message unread", "{messages} messages unread", messages=messages
    )
    if at_first != messages:
        left = Text("{unread} ({at_first} at the first poll)", unread=left, at_first=at_first)
    return agreeing(
        len(unread),
        "{queues} left the route at {time} UTC with {unread}: no client reads it",
        "{queues} left the route at {time} UTC with {unread}: no client reads them",
        queues=queues_in_words(unread),
        time=clock(change.first_seen),
        unread=left,
    )


def _remedy(change: RouteChange, unread: Mapping[QueueKey, _Unread]) -> Text:
    there = {name for name, _ in change.now}
    gone = sorted({name for name, _ in unread} - there)
    if gone:
        return Text(
            "bring {brokers} back into the route and let the group read the queues to their end; "
            "take a broker's write permission away first, and the broker when it is read",
            brokers=joined(gone, "{before}, {next}"),
        )
    return Text(
        "set the read queue number back (mqadmin updateTopic -r READ_QUEUES -w WRITE_QUEUES) and "
        "let the group read the queues to their end; lower the write queue number first, and the "
        "read queue number when they are"
    )
