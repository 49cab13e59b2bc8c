"""timeline -> episodes: when, and for how much of the time, a fault was there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from math import fsum
from typing import NamedTuple, TypeVar

from jobs.instants import Instant
from jobs.judge.evaluated import Claimant, FoundFault, FoundQueue, FoundStacked, Move, QueueKey
from jobs.judge.extents import Extent, Part, Run, extent_of, join_episodes, persistence, runs_of
from jobs.judge.tables import Row
from jobs.judge.timeline import Phase, Timeline
from jobs.kinds import OF_ONE_CLIENT, PERSISTENT, STACKED
from rebalance_core.findings import CERTAIN, POSSIBLE
from rebalance_core.repairs import STALE_CHANNEL

__all__ = [
    "FaultEpisode",
    "QueueEpisode",
    "fault_episodes",
    "persistence",
    "queue_episodes",
    "stacked_id_rows",
]

Value = TypeVar("Value", str, int)


@dataclass(frozen=True)
class QueueEpisode:
    """One queue, orphaned or duplicate, over an episode that may have gaps: see ``extents``.

    Worked example: the queue has no owner at 10:00, 10:01 and 10:03 for certain and at 10:04 with a
    probability of 0.6. The episode is from 10:00 to 10:04, CERTAIN (3 of 4 snapshots are), with a
    probability of 0.9 where it is shown and a share of 0.8: for 0.72 of the time nobody read it.
    """

    topic: str
    kind: str
    queue: QueueKey
    first_seen: Instant
    last_seen: Instant
    snapshots: int
    #: CERTAIN where at least half of the snapshots that show it are, whatever the others.
    certainty: str
    #: The mean over the snapshots that show it.
    probability: float
    #: The lowest in the episode.
    completeness: float
    #: As of the last phase, like ``strategy_source``.
    claimants: tuple[Claimant, ...]
    strategy_source: str | None
    #: Sorted; those that lasted themselves, all of them where none did.
    causes: tuple[str, ...]
    persistence: str
    ongoing: bool
    #: Of the snapshots from the first to the last that shows it, those that do.
    share_of_time: float = 1.0
    #: The first and the last snapshot of each phase that shows it.
    times: tuple[tuple[Instant, Instant], ...] = ()

    @property
    def share(self) -> float:
        """For which share of the time the queue was so, as far as the snapshots show."""
        return self.probability * self.share_of_time


@dataclass(frozen=True)
class FaultEpisode:
    """One fault of a topic over an episode that may have gaps, as its last phase describes it."""

    topic: str
    fault: str
    first_seen: Instant
    last_seen: Instant
    snapshots: int
    persistence: str
    ongoing: bool
    evidence: str
    remedy: str
    client_ids: tuple[str, ...] = ()
    client_addrs: tuple[str, ...] = ()
    broker_names: tuple[str, ...] = ()
    #: The most of all phases.
    queues_affected: int = 0
    findings_cleared: int = 0
    findings_left: int = 0
    moves: tuple[Move, ...] = ()
    share_of_time: float = 1.0


class _ShownQueue(NamedTuple):
    """A phase that shows a queue orphaned or duplicate."""

    phase: Phase
    run: Run
    finding: FoundQueue


def queue_episodes(timeline: Timeline, persistence_seconds: int) -> list[QueueEpisode]:
    """The episodes of each kind and queue of a topic, whatever the certainty."""
    shown: dict[tuple[str, QueueKey], list[_ShownQueue]] = defaultdict(list)
    for phase, run in zip(timeline.phases, timeline.runs, strict=True):
        for finding in phase.evaluated.findings:
            shown[finding.kind, finding.queue].append(_ShownQueue(phase, run, finding))
    return [
        _queue_episode(timeline, episode, persistence_seconds)
        for of_queue in shown.values()
        for episode in join_episodes(of_queue, lambda each: each.run, timeline.counted)
    ]


def _queue_episode(
    timeline: Timeline, shown: Sequence[_ShownQueue], persistence_seconds: int
) -> QueueEpisode:
    last = shown[-1]
    extent = _extent(timeline, [each.run for each in shown], persistence_seconds)
    certain = sum(each.run.snapshots for each in shown if each.finding.certainty == CERTAIN)
    weighted = fsum(each.finding.probability * each.run.snapshots for each in shown)
    return QueueEpisode(
        topic=timeline.topic,
        kind=last.finding.kind,
        queue=last.finding.queue,
        certainty=CERTAIN if 2 * certain >= extent.snapshots else POSSIBLE,
        probability=weighted / extent.snapshots,
        completeness=min(each.phase.evaluated.completeness for each in shown),
        claimants=last.finding.claimants,
        strategy_source=last.phase.evaluated.strategy_source,
        causes=_causes(shown, persistence_seconds),
        times=tuple((each.phase.first_seen, each.phase.last_seen) for each in shown),
        **extent._asdict(),
    )


def _extent(timeline: Timeline, runs: Sequence[Run], persistence_seconds: int) -> Extent:
    return extent_of(runs, timeline.counted, persistence_seconds)


def _causes(shown: Sequence[_ShownQueue], persistence_seconds: int) -> tuple[str, ...]:
    """The causes that lasted themselves; all of them where none did.

    What was to blame for a moment, as while the clients started, is none of what lasts.
    """
    runs: dict[str, list[Run]] = defaultdict(list)
    for _, run, finding in shown:
        for cause in finding.causes:
            runs[cause].append(run)
    every = sorted(runs)
    lasting = [
        cause
        for cause in every
        if extent_of(runs[cause], 0, persistence_seconds).persistence == PERSISTENT
    ]
    return tuple(lasting or every)


class _ShownFault(NamedTuple):
    """A phase that shows a fault."""

    run: Run
    fault: FoundFault


def fault_episodes(timeline: Timeline, persistence_seconds: int) -> list[FaultEpisode]:
    """The episodes of each fault of a topic, of what is about one client id those of each id.

    Where a fault shows on no queue is another matter than where it does: its findings say how bad
    the one is, and nothing but the fault itself the other.
    """
    shown: dict[tuple[bool, str, *tuple[str, ...]], list[_ShownFault]] = defaultdict(list)
    for phase, run in zip(timeline.phases, timeline.runs, strict=True):
        for fault in phase.evaluated.faults:
            of_one = fault.client_ids if fault.fault in OF_ONE_CLIENT else ()
            shown[fault.queues_affected > 0, fault.fault, *of_one].append(_ShownFault(run, fault))
    return [
        _fault_episode(timeline, episode, persistence_seconds)
        for of_fault in shown.values()
        for episode in join_episodes(of_fault, lambda each: each.run, timeline.counted)
    ]


def _fault_episode(
    timeline: Timeline, shown: Sequence[_ShownFault], persistence_seconds: int
) -> FaultEpisode:
    last = shown[-1].fault
    most = max(each.fault.queues_affected for each in shown)
    return FaultEpisode(
        topic=timeline.topic,
        **last._replace(queues_affected=most)._asdict(),
        **_extent(timeline, [each.run for each in shown], persistence_seconds)._asdict(),
    )


class _ShownId(NamedTuple):
    """What one phase, or several put together, show of a stacked id."""

    topics: tuple[str, ...]
    last_seen: Instant
    stacked: FoundStacked


#: A run of the group's lists, in one watch.
_GroupRun = tuple[int, int]


def stacked_id_rows(timelines: Iterable[Timeline], persistence_seconds: int) -> list[Row]:
    """The rows of stacked_client_ids, from the timelines of the group's topics: one per episode.

    An episode is of a client id that was more than once in a broker's list, and may have gaps.
    Evidence and remedy are those of the last phase that knew of most processes.

    The id's copies are the group's, whatever the topic: the timelines are put together by the
    group's runs, and the queues of all topics are added up.
    """
    phases: dict[_GroupRun, dict[str, list[Phase]]] = defaultdict(lambda: defaultdict(list))
    shown: dict[str, dict[_GroupRun, dict[str, list[_ShownId]]]] = defaultdict(
        lambda: defaultdict(lambda: defaultdict(list))
    )
    for timeline in timelines:
        for phase in timeline.phases:
            if not phase.evaluated.shows_owners:
                continue  # nothing is computed, so that no stacked id is found or seen to end
            group_run = phase.group_run, phase.watch
            phases[group_run][timeline.topic].append(phase)
            for stacked in phase.evaluated.stacked:
                shown[stacked.client_id][group_run][timeline.topic].append(
                    _ShownId((timeline.topic,), phase.last_seen, stacked)
                )
    # Runs of the group without owners are not among them, and end no episode.
    parts = {group_run: _part(phases[group_run].values()) for group_run in sorted(phases)}
    runs = dict(zip(parts, runs_of(list(parts.values())), strict=True))
    counted = max((run.after for run in runs.values()), default=0)
    rows: list[Row] = []
    for by_run in shown.values():
        # A run is cut where a topic's route changes: its parts follow each other, so that the most
        # of them counts; its topics are at the same time, so that their queues add up.
        of_runs = [
            (
                runs[group_run],
                _merge([_merge(of_topic, max) for of_topic in by_topic.values()], sum),
            )
            for group_run, by_topic in sorted(by_run.items())
        ]
        for episode in join_episodes(of_runs, lambda each: each[0], counted):
            extent = extent_of([run for run, _ in episode], counted, persistence_seconds)
            rows.append(_stacked_row(_merge([it for _, it in episode], max), extent))
    return rows


def _part(of_topics: Iterable[Sequence[Phase]]) -> Part:
    """The part of the window in which the group's lists stayed so, from the phases of its topics.

    It has the snapshots of the topic with most: another had no route for a time.
    """
    by_topic = list(of_topics)
    every = list(chain.from_iterable(by_topic))
    return Part(
        min(phase.first_seen for phase in every),
        max(phase.last_seen for phase in every),
        max(sum(phase.snapshots for phase in of_topic) for of_topic in by_topic),
        watch=every[0].watch,
    )


def _merge(shown: Sequence[_ShownId], queues: Callable[[Iterable[int]], int]) -> _ShownId:
    """All of it as one: every value, and of numbers the most; ``queues`` joins those of queues."""
    if len(shown) == 1:
        return shown[0]
    every = [each.stacked for each in shown]
    most = max(shown, key=lambda each: (each.stacked.processes, each.last_seen)).stacked
    return _ShownId(
        topics=_union(each.topics for each in shown),
        last_seen=max(each.last_seen for each in shown),
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


def _stacked_row(shown: _ShownId, extent: Extent) -> Row:
    stacked = shown.stacked
    return {
        **stacked._asdict(),
        "topics": shown.topics,
        "client_addrs": tuple(sorted(set(stacked.client_addrs))),
        "verdict": STACKED if stacked.processes > 1 else STALE_CHANNEL,
        **extent._asdict(),
    }
