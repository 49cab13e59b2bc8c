"""routes -> their changes: when the readable queues of a topic changed under its group.

A nameserver's route holds until the same nameserver gives another one.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby
from operator import itemgetter
from typing import NamedTuple

from rebalance_core.grouping import grouped
from rebalance_core.state import RouteBroker

from ...declared.dossier import RouteRun
from ...declared.instants import Instant
from .core_verdict import QueueKey

#: (broker name, how many of its queues can be read).
Readable = tuple[str, int]


class RouteChange(NamedTuple):
    """The readable queues changed: a nameserver gave another route than it gave before.

    Before and now: the readable queues of all nameservers' routes, sorted.
    """

    first_seen: Instant
    #: The time at which the nameserver gave it; its round may have begun long before.
    collected_at: Instant
    before: Sequence[Readable]
    now: Sequence[Readable]


def find_route_changes(routes: Sequence[RouteRun], most_queues: int) -> list[RouteChange]:
    """The changes of a topic's readable queues, in time, each at its first poll.

    Routes with more queues than ``most_queues`` do not count, and show no change.
    """
    every = ((run, readable(run.brokers)) for run in routes)
    counted = (pair for pair in every if sum(number for _, number in pair[1]) <= most_queues)
    runs_of = grouped((pair[0].namesrv_addr, pair) for pair in counted)
    given = sorted(given_one for runs in runs_of.values() for given_one in _given(runs))
    current: dict[str, Sequence[Readable]] = {}
    now: Sequence[Readable] = []
    changes: list[RouteChange] = []
    for snapshot, collected_at, namesrv_addr, queues in given:
        before, is_first = now, namesrv_addr not in current
        current[namesrv_addr] = queues
        now = sorted(set(chain(*current.values())))
        if not is_first and before != now:
            changes.append(RouteChange(snapshot, collected_at, before, now))
    return changes


def _given(
    runs: Sequence[tuple[RouteRun, Sequence[Readable]]],
) -> Iterator[tuple[Instant, Instant, str, Sequence[Readable]]]:
    """The first route of one nameserver, and each later one that differs."""
    # Only the first poll counts of a nameserver that gave one route.
    counted = slice(1) if len(runs) == 1 else slice(None)
    polls = sorted(
        (snapshot, collected_at, number)
        for number, (run, _) in enumerate(runs)
        for snapshot, collected_at in zip(run.times[counted], run.answered_at[counted], strict=True)
    )
    for number, polls_of_run in groupby(polls, key=itemgetter(2)):
        (run, queues), (snapshot, collected_at, _) = runs[number], next(polls_of_run)
        yield snapshot, collected_at, run.namesrv_addr, queues


def readable(brokers: Iterable[RouteBroker]) -> Sequence[Readable]:
    """The brokers of a route of which queues can be read, sorted."""
    there = (broker for broker in brokers if broker.is_readable and broker.read_queue_nums > 0)
    return sorted((broker.broker_name, broker.read_queue_nums) for broker in there)


def readable_queues(routes: Iterable[tuple[str, Sequence[RouteBroker]]]) -> frozenset[QueueKey]:
    """The queues that every nameserver's route has; ``routes`` by nameserver."""
    read = [queues_of(readable(brokers)) for _, brokers in routes]
    return frozenset(read[0].intersection(*read[1:])) if read else frozenset()


def queues_of(brokers: Sequence[Readable]) -> set[QueueKey]:
    """Each of the readable queues."""
    return {(name, queue_id) for name, queues in brokers for queue_id in range(queues)}
