"""dossier -> whether the times of its lists are rounds of polling, or those of single heartbeats.

In a round each broker gives its whole list: whoever is there shares its time with the others. A
table of events has a row for each heartbeat, at a time of its own; taken for rounds, every member
joins and leaves all the time. So it shows in whom a unit meets: a broker among the brokers of the
group, a connection among those of its broker. The *company* of a unit is the share of the others
that are there at its times, of those that come before and after; in rounds it is nearly 1. Where
brokers alone have times of their own, the connections of one meet, and the brokers do not.

A share, and no mere meeting: of a thousand connections with whole seconds some sixteen meet by
chance at any time. A mean over all units, for of a few two may meet by chance each time.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rebalance_core.grouping import grouped

from ..declared.instants import Instant
from .dossier import Dossier, PollRun

#: A unit recurs that is there so many times.
_RECURS = 3
#: The least company of connections in rounds ...
_OF_CONNECTIONS = 0.5
#: ... and that of brokers, also where two collectors ask some brokers each, at their own times.
_OF_BROKERS = 0.25

#: Units that were there together, by number, and at which times.
_Meetings: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int64]]


class GroupTimes(NamedTuple):
    """A group's times: whether they are those of events, and after how long a unit comes again."""

    are_events: bool
    period: Instant


class _Company(NamedTuple):
    mean: float
    period: Instant


def times_of_group(dossier: Dossier) -> GroupTimes | None:
    """Tells what the group shows; None: too little recurs, as of a single connection."""
    listed = [run for run in dossier.polls if run.answer in dossier.list_members]
    by_broker = [runs for _, runs in sorted(grouped((run.broker, run) for run in listed).items())]
    if _are_whole(by_broker):
        return GroupTimes(are_events=False, period=0)
    of_brokers = _company(
        [(np.array([n]), np.array(run.times)) for n, runs in enumerate(by_broker) for run in runs],
        len(by_broker),
    )
    of_connections = [each for runs in by_broker if (each := _of_connections(dossier, runs))]
    apart = sum(each.mean < _OF_CONNECTIONS for each in of_connections)
    if of_connections and 2 * apart > len(of_connections):
        return GroupTimes(True, int(np.median([each.period for each in of_connections])))
    if of_brokers is not None and of_brokers.mean < _OF_BROKERS:
        return GroupTimes(True, of_brokers.period)
    return GroupTimes(False, 0) if of_brokers or of_connections else None


def _are_whole(by_broker: Sequence[Sequence[PollRun]]) -> bool:
    """True if several brokers gave one list each, at the same times: so it is of most groups."""
    return (
        len(by_broker) > 1
        and all(len(runs) == 1 and runs[0].times == by_broker[0][0].times for runs in by_broker)
        and len(by_broker[0][0].times) >= _RECURS
    )


def _of_connections(dossier: Dossier, runs: Sequence[PollRun]) -> _Company | None:
    """The company of the connections in a broker's lists."""
    longest = max(runs, key=lambda run: len(run.times))
    if 2 * len(longest.times) >= sum(len(run.times) for run in runs):
        together = set(_connections(dossier, longest))
        if len(together) > 1 and len(longest.times) >= _RECURS:
            return _Company(1.0, 0)  # most of the time these are there together
    numbers: dict[tuple[str, str], int] = {}
    meetings = [
        (
            np.array(
                sorted({numbers.setdefault(c, len(numbers)) for c in _connections(dossier, run)})
            ),
            np.array(run.times),
        )
        for run in runs
    ]
    return _company([each for each in meetings if len(each[0])], len(numbers))


def _connections(dossier: Dossier, run: PollRun) -> Iterator[tuple[str, str]]:
    return zip(*dossier.list_members[run.answer](), strict=True)


def _company(meetings: Sequence[_Meetings], units: int) -> _Company | None:
    """The mean company of the units that recur; None where no two do, at overlapping times.

    Worked example: a unit is there at 0, 60 and 120 s, another one at 7, 67 and 127 s: at 60 and
    120 s the second could have been there as well, and was not, so the company of both is 0.

    >>> def at(*times): return np.array(times)
    >>> _company([(at(0), at(0, 60, 120)), (at(1), at(7, 67, 127))], 2)
    _Company(mean=0.0, period=60)
    >>> _company([(at(0, 1), at(0, 60, 120))], 2)
    _Company(mean=1.0, period=60)
    >>> _company([(at(0), at(0, 60, 120)), (at(1), at(180, 240, 300))], 2)
    """
    if units < 2:
        return None
    times = np.unique(np.concatenate([at for _, at in meetings]))
    last = len(times) - 1
    counts, firsts, lasts = (
        np.zeros(units, np.int64),
        np.full(units, last),
        np.zeros(units, np.int64),
    )
    places = [np.searchsorted(times, at) for _, at in meetings]
    for (there, _), at in zip(meetings, places, strict=True):
        counts[there] += len(at)
        firsts[there] = np.minimum(firsts[there], at.min())
        lasts[there] = np.maximum(lasts[there], at.max())
    recur = counts >= _RECURS
    present = np.zeros(len(times), np.int64)
    for (there, _), at in zip(meetings, places, strict=True):
        present[at] += np.count_nonzero(recur[there])
    came = np.cumsum(np.bincount(firsts[recur], minlength=len(times)))
    left = np.cumsum(np.bincount(lasts[recur] + 1, minlength=len(times) + 1))[:-1]
    others = came - left - 1
    shares = np.maximum(present - 1, 0) / np.maximum(others, 1)
    sums, looks = np.zeros(units), np.zeros(units, np.int64)
    for (there, _), at in zip(meetings, places, strict=True):
        could = at[others[at] > 0]
        sums[there] += shares[could].sum()
        looks[there] += len(could)
    meets = recur & (looks > 0)
    if np.count_nonzero(meets) < 2:
        return None
    periods = (times[lasts] - times[firsts])[meets] / (counts[meets] - 1)
    return _Company(float(np.mean(sums[meets] / looks[meets])), int(np.median(periods)))
