"""dossier -> situations: the stretches in which a group's lists and its topic's route stayed so.

Groups and routes are polled on their own schedules. A route holds from the snapshot that brought it
until the next one that brings another, but no longer than ``route_max_age_seconds`` after the last
one that did: then it is not known.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from jobs.contents import value_text
from jobs.instants import SECOND, Instant
from jobs.judge.dossier import Broker, Dossier, RouteBrokerRow, RouteRun

#: What all witnesses of a subject said at one time: each witness with the id of what it said.
Said: TypeAlias = tuple[tuple[Any, str], ...]
#: What every broker that was asked answered in one snapshot: the id of its list, or an outcome.
Answers: TypeAlias = tuple[tuple[Broker, str], ...]
#: What every nameserver that was asked gave in one snapshot: the id of its route.
Given: TypeAlias = tuple[tuple[str, str], ...]


class Situation(NamedTuple):
    """All that the members could see of a topic: what is evaluated, once however often it was so.

    ``situation_id`` is a hash of all of it but ``lasting``: whether the lists, addresses included,
    once stayed so for longer than a broker keeps a channel on which nothing comes. ``routes`` has
    the brokers by nameserver; none: the route is not known.
    """

    situation_id: str
    topic: str
    lasting: bool
    answers: Answers
    routes: tuple[tuple[str, tuple[RouteBrokerRow, ...]], ...]


class Stretch(NamedTuple):
    """A stretch of snapshots in which one situation held.

    ``group_run`` counts the unbroken runs of the group's lists, whatever the topic.
    """

    situation: Situation
    group_run: int
    first_seen: Instant
    last_seen: Instant
    snapshots: int


class Run(NamedTuple):
    """An unbroken run of snapshots with one content; a missing snapshot ends no run."""

    content: Said
    times: tuple[Instant, ...]


@dataclass(frozen=True)
class Situations:
    """The stretches of every topic of a group, in time."""

    by_topic: Mapping[str, Sequence[Stretch]]

    def distinct(self) -> dict[str, Situation]:
        """By id every situation."""
        return {
            stretch.situation.situation_id: stretch.situation
            for stretches in self.by_topic.values()
            for stretch in stretches
        }


def find_situations(
    dossier: Dossier, heartbeat_expiry_seconds: int, route_max_age_seconds: int
) -> Situations:
    """The situations of each topic of the group."""
    group_runs = find_runs((run.broker, run.answer, run.times) for run in dossier.polls)
    lasting = {
        run.content
        for run in group_runs
        if run.times[-1] - run.times[0] > heartbeat_expiry_seconds * SECOND
    }
    return Situations(
        {
            topic: _of_topic(dossier, topic, group_runs, lasting, route_max_age_seconds * SECOND)
            for topic in dossier.topics()
        }
    )


def find_runs(said: Iterable[tuple[Any, str, Iterable[Instant]]]) -> list[Run]:
    """The runs of what all witnesses together said, from what each said and when.

    >>> [(run.content, run.times) for run in find_runs([("a", "x", [1, 2, 4]), ("b", "y", [4])])]
    [((('a', 'x'),), (1, 2)), ((('a', 'x'), ('b', 'y')), (4,))]
    """
    by_time: dict[Instant, list[tuple[Any, str]]] = defaultdict(list)
    for witness, answer, times in said:
        for time in times:
            by_time[time].append((witness, answer))
    runs: list[tuple[Said, list[Instant]]] = []
    for time in sorted(by_time):
        content = tuple(sorted(by_time[time]))
        if runs and runs[-1][0] == content:
            runs[-1][1].append(time)
        else:
            runs.append((content, [time]))
    return [Run(content, tuple(times)) for content, times in runs]


class _Interval(NamedTuple):
    """From when (inclusive) until when (exclusive) a route was known; None: none was."""

    content: Given | None
    since: Instant
    until: Instant


_BEGINNING: Instant = -(1 << 62)
_END: Instant = 1 << 62


def route_intervals(routes: Sequence[RouteRun], max_age: Instant) -> list[_Interval]:
    """All time, cut where another route of a topic is known, or none any more."""
    runs = find_runs((run.namesrv_addr, run.route_id, run.times) for run in routes)
    intervals: list[_Interval] = []
    until = _BEGINNING
    for number, run in enumerate(runs):
        since = run.times[0]
        if until < since:
            intervals.append(_Interval(None, until, since))
        change = runs[number + 1].times[0] if number + 1 < len(runs) else _END
        until = min(change, run.times[-1] + max_age)
        if since < until:
            intervals.append(_Interval(run.content, since, until))
        until = max(since, until)
    if until < _END:
        intervals.append(_Interval(None, until, _END))
    return intervals


def _of_topic(
    dossier: Dossier,
    topic: str,
    group_runs: Sequence[Run],
    lasting: set[Said],
    route_max_age: Instant,
) -> list[Stretch]:
    routes = dossier.routes.get(topic, [])
    brokers = {(run.namesrv_addr, run.route_id): run.brokers for run in routes}
    intervals = route_intervals(routes, route_max_age)
    known: dict[tuple[Said, Said | None], Situation] = {}
    stretches: list[Stretch] = []
    for number, run in enumerate(group_runs):
        for interval in intervals:
            if interval.since > run.times[-1]:
                break
            if interval.until <= run.times[0]:
                continue
            start = bisect_left(run.times, interval.since)
            end = bisect_left(run.times, interval.until)
            if start == end:
                continue
            key = (run.content, interval.content)
            if key not in known:
                known[key] = Situation(
                    situation_id=_situation_id(dossier, topic, run.content, interval.content),
                    topic=topic,
                    lasting=run.content in lasting,
                    answers=run.content,
                    routes=tuple(
                        (namesrv_addr, brokers[namesrv_addr, route_id])
                        for namesrv_addr, route_id in interval.content or ()
                    ),
                )
            stretches.append(
                Stretch(known[key], number, run.times[start], run.times[end - 1], end - start)
            )
    return stretches


def _situation_id(
    dossier: Dossier,
    topic: str,
    answers: Said,
    given: Given | None,
) -> str:
    text = value_text((dossier.cluster, dossier.consumer_group, topic, answers, given))
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
