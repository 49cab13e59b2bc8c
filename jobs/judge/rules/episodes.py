"""timeline -> episodes: when, and for how much of the time, a fault was there."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, pairwise
from math import fsum
from typing import TypeVar

from rebalance_core.faults import Fault as FoundFault
from rebalance_core.findings import CERTAIN, DUPLICATE, POSSIBLE
from rebalance_core.grouping import grouped
from rebalance_core.processes import StackedId
from rebalance_core.repairs import BROKER_VIEW_DIVERGENCE, STALE_CHANNEL

from ...declared.instants import SECOND
from ...declared.kinds import OF_ONE_CLIENT, TRANSIENT
from ..observe.core_verdict import FoundQueue, QueueKey
from ..observe.timeline import Phase, Timeline
from ..times import extents
from ..times.extents import Episode, Portion
from .case import Case
from .found import FaultEpisode, GroupFindings, QueueFinding, StackedEpisode

Value = TypeVar("Value", str, int)

#: The least share of ``persistence_seconds`` that lasts, weighted by the probability of each
#: snapshot: three rounds in which each client draws the odd list once in ten times do not.
_LEAST_EXPECTED = 1 / 3

#: The share of the time from which on a finding is CERTAIN: where clients draw lists in a tenth of
#: it or more, its probability says how much.
_CERTAIN_FROM = 0.9

#: A phase that shows a queue orphaned or duplicate.
_ShownQueue = tuple[Phase, FoundQueue]
_QueueEpisode = Episode[tuple[str, QueueKey], _ShownQueue]


def faults_of_states(case: Case, found: GroupFindings) -> GroupFindings:
    """The faults that single states show, of states without a route too."""
    timelines = chain(*zip(case.timelines.values(), case.without_route.values(), strict=True))
    faults = (
        fault
        for timeline in timelines
        for fault in fault_episodes(timeline, case.persistence_seconds)
    )
    return found.plus(each for each in faults if not each.is_latent or _is_settled(case, each))


def _is_settled(case: Case, fault: FaultEpisode) -> bool:
    """True if the members stayed the same in its time, for as long as what lasts.

    In a rolling deploy of a release that subscribes otherwise the members differ until it is over,
    and others each minute: that costs nothing, and passes.
    """
    since, until = fault.first_seen, fault.last_seen
    changes = (member.since for member in case.members_in_time if since < member.since < until)
    lasts = case.persistence_seconds * SECOND
    times = pairwise([since, *changes, until])
    return any(later - earlier >= lasts for earlier, later in times)


def queue_episodes(timeline: Timeline, persistence_seconds: int) -> list[QueueFinding]:
    """The episodes of each kind and queue of a topic, whatever the certainty."""
    shown = (
        [((finding.kind, finding.queue), (phase, finding)) for finding in phase.evaluated.findings]
        for phase in timeline.phases
    )
    episodes = extents.episodes_of(timeline.runs, shown, persistence_seconds)
    return [_queue_finding(timeline.topic, episode, persistence_seconds) for episode in episodes]


def _queue_finding(topic: str, episode: _QueueEpisode, persistence_seconds: int) -> QueueFinding:
    (kind, queue), extent, sightings = episode
    causes = _causes(sightings, persistence_seconds)
    # A queue is read twice where lists differ in an old connection, which goes within 130 s; that
    # its slot is nobody's lasts with the next one.
    by_address = kind == DUPLICATE and causes == (STALE_CHANNEL,)
    differing = [
        (run, fault.client_addrs if by_address else fault.client_ids)
        for run, (phase, _) in sightings
        for fault in phase.evaluated.faults
        if causes in ((BROKER_VIEW_DIVERGENCE,), (STALE_CHANNEL,)) and fault.fault in causes
    ]
    certain = sum(
        run.snapshots for run, (_, found_queue) in sightings if found_queue.certainty == CERTAIN
    )
    expected = fsum(found_queue.probability * run.covers for run, (_, found_queue) in sightings)
    weighted = fsum(found_queue.probability * run.snapshots for run, (_, found_queue) in sightings)
    is_certain, probability = 2 * certain >= extent.snapshots, weighted / extent.snapshots
    lasts = expected >= _LEAST_EXPECTED * persistence_seconds * SECOND
    if not lasts or (differing and not _differs_for_long(differing, persistence_seconds)):
        extent = extent._replace(persistence=TRANSIENT)
    last_phase, last = episode.shown[-1]
    is_sure = extents.is_share_sure([run for run, _ in sightings], persistence_seconds)
    return QueueFinding(
        topic,
        extent,
        kind,
        queue,
        certainty=CERTAIN if is_certain and is_sure and probability >= _CERTAIN_FROM else POSSIBLE,
        probability=probability,
        is_mostly_certain=is_certain,
        completeness=min(phase.verdict.completeness for phase, _ in episode.shown),
        claimants=last.claimants,
        is_assumed=last.is_assumed,
        strategy_source=last_phase.verdict.strategy_source,
        causes=causes,
        times=tuple((phase.first_seen, phase.last_seen) for phase, _ in episode.shown),
    )


def _differs_for_long(
    shown: Iterable[tuple[Portion, Collection[str]]], persistence_seconds: int
) -> bool:
    """True if the lists differ in one client, or one connection, for long.

    In a rolling restart another client is on its way each time: brokers that are asked some seconds
    apart differ in one after the other, and in none for long. So do old connections of one client
    and then of another. Where nobody is named all count.
    """
    of_each = grouped((name, run) for run, names in shown for name in names or ("",))
    return any(
        extents.extent_of(joined, 0, persistence_seconds).lasts
        for runs in of_each.values()
        for joined in extents.join_episodes(runs, 0)
    )


def _causes(
    sightings: Iterable[tuple[Portion, _ShownQueue]], persistence_seconds: int
) -> tuple[str, ...]:
    """The causes that lasted themselves; all of them where none did.

    A cause of a moment, as while the clients started, is not one of what lasts.
    """
    runs = grouped((cause, run) for run, (_, found) in sightings for cause in found.causes)
    lasting = (each for each in runs if extents.extent_of(runs[each], 0, persistence_seconds).lasts)
    return tuple(sorted(lasting) or sorted(runs))


_FaultEpisode = Episode[tuple[bool, bool, str, tuple[str, ...]], FoundFault]


def fault_episodes(timeline: Timeline, persistence_seconds: int) -> Iterator[FaultEpisode]:
    """The episodes of each fault of a topic, of what is about one client id those of each id.

    Where a fault shows on no queue is another matter than where it does: its findings say how bad
    the one is, and nothing but the fault itself the other. That is over where members and routes
    say so, though nothing is computed there.
    """

    def key_of(fault: FoundFault) -> tuple[bool, bool, str, tuple[str, ...]]:
        client_ids = fault.client_ids if fault.fault in OF_ONE_CLIENT else ()
        return fault.queues_affected > 0, fault.is_latent, fault.fault, client_ids

    def is_computed(fault: FoundFault) -> bool:
        return fault.queues_affected > 0 or fault.is_latent

    def episodes(runs: Sequence[Portion], *, computed: bool) -> Iterator[_FaultEpisode]:
        faults = (phase.evaluated.faults for phase in timeline.phases)
        shown = (
            [(key_of(each), each) for each in of_phase if is_computed(each) == computed]
            for of_phase in faults
        )
        return extents.episodes_of(runs, shown, persistence_seconds)

    computed = episodes(timeline.runs, computed=True)
    for episode in chain(computed, episodes(timeline.runs_of_reports, computed=False)):
        extent, last = episode.extent, episode.shown[-1]
        named = [(run, fault.client_ids) for run, fault in episode.sightings]
        differs = last.fault == BROKER_VIEW_DIVERGENCE
        if differs and not _differs_for_long(named, persistence_seconds):
            extent = extent._replace(persistence=TRANSIENT)
        most = max(each.queues_affected for each in episode.shown)
        yield FaultEpisode(timeline.topic, extent, **vars(last) | {"queues_affected": most})


#: A phase that shows an id stacked.
_ShownId = tuple[Phase, StackedId]


def stacked_ids(case: Case, found: GroupFindings) -> GroupFindings:
    """The client ids that are more than once in a broker's list, over the topics of the group.

    An episode of an id may have gaps. Evidence and remedy are those of the last phase that knew of
    most processes.

    The id's copies are the group's, whatever the topic: the timelines are put together by the
    group's runs, and the queues of all topics are added up.
    """
    # Runs without owners end no episode: no stacked id is found in them.
    by_run = grouped(
        ((phase.group_run, phase.watch), phase)
        for timeline in case.timelines.values()
        for phase in timeline.phases
        if phase.verdict.shows_owners
    )
    in_time = [phases for _, phases in sorted(by_run.items())]
    runs = extents.runs_of(list(map(_part, in_time)))
    stacked: list[StackedEpisode] = []
    for episode in extents.episodes_of(runs, map(_shown_ids, in_time), case.persistence_seconds):
        topics = _union([phase.topic for phase, _ in shown] for shown in episode.shown)
        stacked.append(StackedEpisode(topics, episode.extent, _whole(episode.shown)))
    return replace(found, stacked=tuple(stacked))


def _shown_ids(phases: Iterable[Phase]) -> Iterable[tuple[str, Sequence[_ShownId]]]:
    """The stacked ids of a run of the group's lists, each with all that the run shows of it."""
    return grouped(
        (stacked.client_id, (phase, stacked))
        for phase in phases
        for stacked in phase.verdict.stacked
    ).items()


def _part(phases: Sequence[Phase]) -> Portion:
    """The part of the window in which the group's lists stayed so, from the phases of its topics.

    It has the snapshots of the topic with most: another had no route for a time.
    """
    snapshots: Counter[str] = Counter()
    for phase in phases:
        snapshots[phase.topic] += phase.snapshots
    return Portion(
        min(phase.first_seen for phase in phases),
        max(phase.last_seen for phase in phases),
        max(snapshots.values()),
        watch=phases[0].watch,
    )


def _whole(runs: Sequence[Sequence[_ShownId]]) -> StackedId:
    """All that the runs show of an id: every value, and of numbers the most."""
    every = [stacked for shown in runs for _, stacked in shown]
    _, most = max(chain(*runs), key=lambda each: (each[1].processes, each[0].last_seen))
    return most._replace(
        client_addrs=_union(stacked_id.client_addrs for stacked_id in every),
        versions=_union(stacked_id.versions for stacked_id in every),
        languages=_union(stacked_id.languages for stacked_id in every),
        slots_wasted=max(stacked_id.slots_wasted for stacked_id in every),
        queues_duplicated=max(_queues_at_once(run, "queues_duplicated") for run in runs),
        queues_orphaned=max(_queues_at_once(run, "queues_orphaned") for run in runs),
    )


def _queues_at_once(shown: Iterable[_ShownId], column: str) -> int:
    """The queues of all topics in one run.

    A run is cut where a topic's route changes: its parts follow each other, so that the most of
    them counts; its topics are at the same time, so that their queues add up.
    """
    most: Counter[str] = Counter()
    for phase, stacked in shown:
        most[phase.topic] = max(most[phase.topic], getattr(stacked, column))
    return most.total()


def _union(parts: Iterable[Iterable[Value]]) -> tuple[Value, ...]:
    return tuple(sorted({value for part in parts for value in part}))
