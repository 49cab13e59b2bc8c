"""timeline -> episodes: how long a fault lasted without a break, over all the phases it was in."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple, TypeVar

from jobs.instants import SECOND, Instant
from jobs.judge.evaluated import (
    Claimant,
    FoundFault,
    FoundQueue,
    FoundStacked,
    Move,
    QueueKey,
)
from jobs.judge.timeline import Phase, Timeline
from jobs.kinds import PERSISTENT, STACKED, TRANSIENT
from rebalance_core.repairs import STALE_CHANNEL

Shown = TypeVar("Shown")
Value = TypeVar("Value", str, int)


@dataclass(frozen=True)
class QueueEpisode:
    """One queue, orphaned or duplicate, over an unbroken run of snapshots with one certainty.

    ``persistence`` and the ``episode_`` times are those of the whole episode, whatever the
    certainty in it: a fault that flickers between CERTAIN and POSSIBLE is one fault. The other
    times hold the one certainty exactly.
    """

    topic: str
    kind: str
    queue: QueueKey
    first_seen: Instant
    last_seen: Instant
    snapshots: int
    certainty: str
    #: The highest in the run.
    probability: float
    #: The lowest in the run.
    completeness: float
    #: As of the last phase, like ``strategy_source``.
    claimants: tuple[Claimant, ...]
    strategy_source: str | None
    #: Sorted; those that lasted themselves, all of them where none did.
    causes: tuple[str, ...]
    episode_first_seen: Instant
    episode_last_seen: Instant
    persistence: str
    ongoing: bool


@dataclass(frozen=True)
class FaultEpisode:
    """One fault of a topic over an unbroken run of snapshots, as its last phase tells it."""

    topic: str
    fault: str
    first_seen: Instant
    last_seen: Instant
    snapshots: int
    persistence: str
    ongoing: bool
    evidence: str
    remedy: str
    client_ids: tuple[str, ...]
    client_addrs: tuple[str, ...]
    broker_names: tuple[str, ...]
    #: The most of all phases.
    queues_affected: int
    findings_cleared: int
    findings_left: int
    moves: tuple[Move, ...]


def persistence(first_seen: Instant, last_seen: Instant, persistence_seconds: int) -> str:
    """PERSISTENT where it was seen over at least so many seconds, else TRANSIENT.

    >>> persistence(0, 180 * SECOND, 180), persistence(0, 180 * SECOND - 1, 180)
    ('PERSISTENT', 'TRANSIENT')
    """
    lasts = last_seen - first_seen >= persistence_seconds * SECOND
    return PERSISTENT if lasts else TRANSIENT


def split_episodes(shown: Iterable[Shown], position: Callable[[Shown], int]) -> list[list[Shown]]:
    """What shows a fault, in time, cut where ``position`` leaves one out (gaps and islands).

    >>> split_episodes([1, 2, 2, 3, 5, 6], position=lambda each: each)
    [[1, 2, 2, 3], [5, 6]]
    """
    episodes: list[list[Shown]] = []
    last = None
    for each in shown:
        now = position(each)
        if last is None or now - last > 1:
            episodes.append([])
        episodes[-1].append(each)
        last = now
    return episodes


def queue_episodes(timeline: Timeline, persistence_seconds: int) -> list[QueueEpisode]:
    """The episodes of each kind and queue of a topic: a row for each stretch of one certainty."""
    shown: dict[tuple[str, QueueKey], list[_ShownQueue]] = defaultdict(list)
    for phase in timeline.phases:
        for finding in phase.evaluated.findings:
            shown[finding.kind, finding.queue].append(_ShownQueue(phase, finding))
    return [
        _queue_episode(timeline, of_certainty, episode, persistence_seconds)
        for of_queue in shown.values()
        for episode in split_episodes(of_queue, lambda each: each.phase.known_position)
        for _, of_certainty in groupby(episode, lambda each: each.finding.certainty)
    ]


class _ShownQueue(NamedTuple):
    """A phase that shows a queue orphaned or duplicate."""

    phase: Phase
    finding: FoundQueue


def _queue_episode(
    timeline: Timeline,
    of_certainty: Iterable[_ShownQueue],
    episode: Sequence[_ShownQueue],
    persistence_seconds: int,
) -> QueueEpisode:
    shown = list(of_certainty)
    last = shown[-1]
    episode_first_seen = episode[0].phase.first_seen
    episode_last_seen = episode[-1].phase.last_seen
    return QueueEpisode(
        topic=timeline.topic,
        kind=last.finding.kind,
        queue=last.finding.queue,
        first_seen=shown[0].phase.first_seen,
        last_seen=last.phase.last_seen,
        snapshots=sum(each.phase.snapshots for each in shown),
        certainty=last.finding.certainty,
        probability=max(each.finding.probability for each in shown),
        completeness=min(each.phase.evaluated.completeness for each in shown),
        claimants=last.finding.claimants,
        strategy_source=last.phase.evaluated.strategy_source,
        causes=_causes(shown, persistence_seconds),
        episode_first_seen=episode_first_seen,
        episode_last_seen=episode_last_seen,
        persistence=persistence(episode_first_seen, episode_last_seen, persistence_seconds),
        ongoing=last.phase.last_seen == timeline.end,
    )


def _causes(shown: Sequence[_ShownQueue], persistence_seconds: int) -> tuple[str, ...]:
    """The causes that lasted themselves; all of them where none did.

    What was to blame for a moment, as while the clients started, is none of what lasts.
    """
    times: dict[str, tuple[Instant, Instant]] = {}
    for phase, finding in shown:
        for cause in finding.causes:
            first_seen, _ = times.get(cause, (phase.first_seen, 0))
            times[cause] = first_seen, phase.last_seen
    every = sorted(times)
    lasting = [
        cause for cause in every if persistence(*times[cause], persistence_seconds) == PERSISTENT
    ]
    return tuple(lasting or every)


def fault_episodes(timeline: Timeline, persistence_seconds: int) -> list[FaultEpisode]:
    """The episodes of each fault of a topic."""
    shown: dict[str, list[tuple[Phase, FoundFault]]] = defaultdict(list)
    for phase in timeline.phases:
        for fault in phase.evaluated.faults:
            shown[fault.fault].append((phase, fault))
    return [
        _fault_episode(timeline, episode, persistence_seconds)
        for of_fault in shown.values()
        for episode in split_episodes(of_fault, lambda each: each[0].known_position)
    ]


def _fault_episode(
    timeline: Timeline, episode: Sequence[tuple[Phase, FoundFault]], persistence_seconds: int
) -> FaultEpisode:
    first_phase, _ = episode[0]
    last_phase, last = episode[-1]
    return FaultEpisode(
        topic=timeline.topic,
        fault=last.fault,
        first_seen=first_phase.first_seen,
        last_seen=last_phase.last_seen,
        snapshots=sum(phase.snapshots for phase, _ in episode),
        persistence=persistence(first_phase.first_seen, last_phase.last_seen, persistence_seconds),
        ongoing=last_phase.last_seen == timeline.end,
        evidence=last.evidence,
        remedy=last.remedy,
        client_ids=last.client_ids,
        client_addrs=last.client_addrs,
        broker_names=last.broker_names,
        queues_affected=max(fault.queues_affected for _, fault in episode),
        findings_cleared=last.findings_cleared,
        findings_left=last.findings_left,
        moves=last.moves,
    )


@dataclass(frozen=True)
class StackedEpisode:
    """A client id that stood more than once in a broker's list, over an unbroken run of snapshots.

    Evidence and remedy are those of the last phase that knew of most processes.
    """

    topics: tuple[str, ...]
    client_id: str
    id_format: str
    processes: int
    client_addrs: tuple[str, ...]
    versions: tuple[int, ...]
    languages: tuple[str, ...]
    first_seen: Instant
    last_seen: Instant
    snapshots: int
    persistence: str
    ongoing: bool
    verdict: str
    evidence: str
    slots_wasted: int
    queues_duplicated: int
    queues_orphaned: int
    remedy: str


class _ShownId(NamedTuple):
    """What one phase, or several put together, say of a stacked id."""

    topics: tuple[str, ...]
    first_seen: Instant
    last_seen: Instant
    snapshots: int
    timeline_end: Instant
    stacked: FoundStacked


def stacked_id_episodes(
    timelines: Iterable[Timeline], persistence_seconds: int
) -> list[StackedEpisode]:
    """The episodes of each stacked id of the group, from the timelines of its topics.

    The id's copies are the group's, whatever the topic: the timelines are put together by the
    group's own runs, and the queues of all topics are added up.
    """
    informed: set[int] = set()
    shown: dict[str, dict[int, dict[str, list[_ShownId]]]] = defaultdict(
        lambda: defaultdict(lambda: defaultdict(list))
    )
    for timeline in timelines:
        for phase in timeline.phases:
            informed.add(phase.group_run)
            for stacked in phase.evaluated.stacked:
                shown[stacked.client_id][phase.group_run][timeline.topic].append(
                    _ShownId(
                        (timeline.topic,),
                        phase.first_seen,
                        phase.last_seen,
                        phase.snapshots,
                        timeline.end,
                        stacked,
                    )
                )
    # Runs of which nothing is known end no episode: the others are numbered.
    positions = {run: position for position, run in enumerate(sorted(informed))}
    episodes: list[StackedEpisode] = []
    for by_run in shown.values():
        # A run is cut where a topic's route changes: its parts follow each other, so that their
        # snapshots add up; its topics are at the same time, so that their queues do.
        of_runs = [
            (
                positions[run],
                _merge([_merge(of_topic, sum, max) for of_topic in by_topic.values()], max, sum),
            )
            for run, by_topic in sorted(by_run.items())
        ]
        for episode in split_episodes(of_runs, lambda each: each[0]):
            merged = _merge([of_run for _, of_run in episode], sum, max)
            episodes.append(_stacked_episode(merged, persistence_seconds))
    return episodes


def _merge(
    shown: Sequence[_ShownId],
    snapshots: Callable[[Iterable[int]], int],
    queues: Callable[[Iterable[int]], int],
) -> _ShownId:
    """All of it as one: the widest times, all values, and of the numbers the most.

    ``snapshots`` and ``queues`` put these numbers together.
    """
    if len(shown) == 1:
        return shown[0]
    every = [each.stacked for each in shown]
    most = max(shown, key=lambda each: (each.stacked.processes, each.last_seen)).stacked
    return _ShownId(
        topics=_union(each.topics for each in shown),
        first_seen=min(each.first_seen for each in shown),
        last_seen=max(each.last_seen for each in shown),
        snapshots=snapshots(each.snapshots for each in shown),
        timeline_end=max(each.timeline_end for each in shown),
        stacked=most._replace(
            client_addrs=_union(each.client_addrs for each in every),
            versions=_union(each.versions for each in every),
            languages=_union(each.languages for each in every),
            slots_wasted=max(each.slots_wasted for each in every),
            queues_duplicated=queues(each.queues_duplicated for each in every),
            queues_orphaned=queues(each.queues_orphaned for each in every),
        ),
    )


def _union(parts: Iterable[Iterable[Value]]) -> tuple[Value, ...]:
    return tuple(sorted({value for part in parts for value in part}))


def _stacked_episode(shown: _ShownId, persistence_seconds: int) -> StackedEpisode:
    stacked = shown.stacked
    return StackedEpisode(
        topics=shown.topics,
        client_id=stacked.client_id,
        id_format=stacked.id_format,
        processes=stacked.processes,
        client_addrs=tuple(sorted(set(stacked.client_addrs))),
        versions=stacked.versions,
        languages=stacked.languages,
        first_seen=shown.first_seen,
        last_seen=shown.last_seen,
        snapshots=shown.snapshots,
        persistence=persistence(shown.first_seen, shown.last_seen, persistence_seconds),
        ongoing=shown.last_seen == shown.timeline_end,
        verdict=STACKED if stacked.processes > 1 else STALE_CHANNEL,
        evidence=stacked.evidence,
        slots_wasted=stacked.slots_wasted,
        queues_duplicated=stacked.queues_duplicated,
        queues_orphaned=stacked.queues_orphaned,
        remedy=stacked.remedy,
    )
