"""routes -> route changes: when the readable queues of a topic changed under its group."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise

from jobs.judge.dossier import RouteRun
from jobs.judge.episodes import FaultEpisode
from jobs.judge.situations import find_runs
from jobs.kinds import ROUTE_CHANGED, TRANSIENT

_PERM_READ = 4

#: (broker name, how many of its queues can be read).
_Readable = tuple[str, int]


def route_changes(topic: str, routes: Sequence[RouteRun]) -> list[FaultEpisode]:
    """One fault for each change of the topic's readable queues, at its first poll.

    Until every client has polled the route (30 s) and rebalanced (20 s) they work from different
    lists; what they hold in that time lags what is computed.
    """
    readable: dict[tuple[object, str], list[_Readable]] = {
        (run.namesrv_addr, run.route_id): _readable(run) for run in routes
    }
    runs = find_runs((run.namesrv_addr, run.route_id, run.times) for run in routes)
    in_time = [
        (run.times[0], sorted({broker for key in run.content for broker in readable[key]}))
        for run in runs
    ]
    return [
        FaultEpisode(
            topic=topic,
            fault=ROUTE_CHANGED,
            first_seen=changed_at,
            last_seen=changed_at,
            snapshots=1,
            persistence=TRANSIENT,
            ongoing=False,
            evidence=f"the readable queues changed from {_in_words(before)} to {_in_words(now)}; "
            "for up to 50 s clients work from different lists",
            remedy="none, if it was meant: every client follows within 50 s",
            client_ids=(),
            client_addrs=(),
            broker_names=tuple(sorted({name for name, _ in set(before) ^ set(now)})),
            queues_affected=0,
            findings_cleared=0,
            findings_left=0,
            moves=(),
        )
        for (_, before), (changed_at, now) in pairwise(in_time)
        if before != now
    ]


def _readable(route: RouteRun) -> list[_Readable]:
    return [
        (broker.broker_name, broker.read_queue_nums)
        for broker in route.brokers
        if broker.perm & _PERM_READ and broker.read_queue_nums > 0
    ]


def _in_words(readable: Collection[_Readable]) -> str:
    """The brokers with their queue numbers.

    >>> _in_words([("broker-a", 4), ("broker-b", 2)]), _in_words([])
    ('broker-a 4, broker-b 2', 'none')
    """
    return ", ".join(f"{name} {queues}" for name, queues in readable) or "none"
