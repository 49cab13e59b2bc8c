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

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rebalance_core.grouping import grouped

from ...declared.dossier import Dossier, PollRun
from ...declared.instants import Instant

#: The units of which it is measured after how long they come again.
_SOME = 8
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


#: The company of units that were there at the same times.
_TOGETHER = _Company(1.0, 0)


def times_of_group(dossier: Dossier) -> GroupTimes | None:
    """Tells what the group shows; None: too little recurs, as of a single connection."""
    listed = [run for run in dossier.polls if run.answer in dossier.list_members]
    by_broker = [runs for _, runs in sorted(grouped((run.broker, run) for run in listed).items())]
    companies = [each for runs in by_broker if (each := _company_of_connections(dossier, runs))]
    apart = [company.period for company in companies if company.mean < _OF_CONNECTIONS]
    if 2 * len(apart) > len(companies):
        return GroupTimes(True, int(np.median(apart)))
    company = _company_of_brokers(by_broker)
    if company is not None and company.mean < _OF_BROKERS:
        return GroupTimes(True, company.period)
    return GroupTimes(False, 0) if company or companies else None


def _company_of_brokers(by_broker: Sequence[Sequence[PollRun]]) -> _Company | None:
    """The company of the brokers. Those of rounds begin and end together as a rule, which is seen
    at once.
    """
    by_broker = [runs for runs in by_broker if sum(len(run.times) for run in runs) >= _RECURS]
    begins = Counter(min(run.times[0] for run in runs) for runs in by_broker)
    ends = Counter(max(run.times[-1] for run in runs) for runs in by_broker)
    for edges in (begins, ends):
        if 2 * sum(number for number in edges.values() if number > 1) > len(by_broker):
            return _TOGETHER
    meetings = [(np.array([n]), run) for n, runs in enumerate(by_broker) for run in runs]
    return _company([(unit, np.array(run.times)) for unit, run in meetings], len(by_broker))


def _company_of_connections(dossier: Dossier, runs: Sequence[PollRun]) -> _Company | None:
    """The company of the connections in a broker's lists. Lists that change seldom are those of
    rounds: heartbeats come by turns, so that no list stays for several of their times.
    """
    whole = [run for run in _uninterrupted(runs) if len(run.times) >= _RECURS]
    if 2 * sum(len(run.times) for run in whole) >= sum(len(run.times) for run in runs):
        several = any(len(set(_connections(dossier, run))) > 1 for run in whole)
        return _TOGETHER if several else None
    connections = [set(_connections(dossier, run)) for run in runs]
    # A client that reconnects, or has no address at times, is one unit still. Of a group with one
    # client id the addresses alone tell its processes apart.
    has_ids = len({client_id for pairs in connections for client_id, _ in pairs}) > 1
    numbers: dict[tuple[str, ...], int] = {}
    lists = []
    for pairs in connections:
        units = {numbers.setdefault(c[:1] if has_ids else c, len(numbers)) for c in pairs}
        lists.append(np.array(sorted(units)))
    at = [np.array(run.times) for run in runs]
    return _company([pair for pair in zip(lists, at, strict=True) if len(pair[0])], len(numbers))


def _uninterrupted(runs: Sequence[PollRun]) -> Iterator[PollRun]:
    """The runs in whose time the broker gave no other list."""
    in_order = sorted(runs, key=lambda run: run.times[0])
    before = accumulate((run.times[-1] for run in in_order), max)
    following = [*(run.times[0] for run in in_order[1:]), None]
    is_free = True
    for run, last_seen, after in zip(in_order, before, following, strict=True):
        is_alone = after is None or last_seen < after
        if is_free and is_alone:
            yield run
        is_free = is_alone


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
    counts, lasts = np.zeros((2, units), np.int64)
    firsts = np.full(units, last)
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
    some = np.flatnonzero(meets)[:_SOME]
    in_time = ([at for there, at in meetings if unit in there] for unit in some)
    gaps = [np.diff(np.sort(np.concatenate(times))) for times in in_time]
    period = int(np.median(np.concatenate(gaps)))
    return _Company(float(np.mean(sums[meets] / looks[meets])), period)
