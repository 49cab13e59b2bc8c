"""timeline -> episodes: when, and for how much of the time, a fault or a queue's finding was there.

What lasts is seen over ``persistence_seconds`` (180 s), weighted by its probability over a third of
that. It is CERTAIN where that is 0.9 or more. And of a queue that a rule found, whatever the rule,
what the processes and its offsets show of it.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, pairwise
from math import fsum

import numpy as np

from rebalance_core.causes import GROUP_OFFLINE
from rebalance_core.descriptions import GROUP_OFFLINE_REMEDY
from rebalance_core.english import agreeing
from rebalance_core.faults import Fault as FoundFault
from rebalance_core.findings import CERTAIN, DUPLICATE, ORPHANED, POSSIBLE
from rebalance_core.grouping import grouped
from rebalance_core.repairs import (
    BROKER_VIEW_DIVERGENCE,
    MASTER_AWAY,
    MIXED_REQUEST_MODE,
    STALE_CHANNEL,
)

from ...declared.instants import SECOND, Instant
from ...declared.kinds import OF_ONE_CLIENT, TRANSIENT
from ...schemas import ANSWERED, NO_ANSWER, NOT_ONLINE
from ..observe.backlog import backlog, reading
from ..observe.core_verdict import FoundQueue, QueueKey
from ..observe.holdings import Holding
from ..observe.holdings_index import HoldingsIndex
from ..observe.in_words import queues_in_words
from ..observe.timeline import Phase, Timeline
from ..times import (
    Episode,
    Extent,
    Portion,
    episodes_of,
    extent_of,
    is_share_sure,
    join_episodes,
    runs_of,
    watches,
)
from .case import Case
from .found import FaultEpisode, GroupFindings, QueueFinding

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
    seconds = case.persistence_seconds
    faults = (fault for timeline in timelines for fault in fault_episodes(timeline, seconds))
    return found.plus(fault for fault in faults if not fault.is_latent or _is_settled(case, fault))


def _is_settled(case: Case, fault: FaultEpisode) -> bool:
    """True if the members stayed the same in its time, for as long as what lasts.

    In a rolling deploy of a release that subscribes otherwise the members differ until it is over,
    and others each minute: that costs nothing, and passes (``cases/test_latent``).
    """
    first_seen, last_seen = fault.first_seen, fault.last_seen
    changes = (members.first_seen for members in case.members_in_time)
    within = (change for change in changes if first_seen < change < last_seen)
    lasts = case.persistence_seconds * SECOND
    times = pairwise([first_seen, *within, last_seen])
    return any(later - earlier >= lasts for earlier, later in times)


def queue_episodes(timeline: Timeline, persistence_seconds: int) -> list[QueueFinding]:
    """The episodes of each kind and queue of a topic, whatever the certainty."""
    shown = (
        [((finding.kind, finding.queue), (phase, finding)) for finding in phase.evaluated.findings]
        for phase in timeline.phases
    )
    episodes = episodes_of(timeline.runs, shown, persistence_seconds)
    return [_queue_finding(timeline.topic, episode, persistence_seconds) for episode in episodes]


def _queue_finding(topic: str, episode: _QueueEpisode, persistence_seconds: int) -> QueueFinding:
    (kind, queue), extent, sightings = episode
    causes = _causes(sightings, persistence_seconds)
    # A queue is read twice where lists differ in an old connection, which goes within 130 s; that
    # its slot is nobody's lasts with the next one (``reconnecting_process_custom_id``).
    by_address = kind == DUPLICATE and causes == (STALE_CHANNEL,)
    differing = [
        (run, fault.client_addrs if by_address else fault.client_ids)
        for run, (phase, _) in sightings
        for fault in phase.evaluated.faults
        if causes in ((BROKER_VIEW_DIVERGENCE,), (STALE_CHANNEL,)) and fault.fault in causes
    ]
    queues = [(run, found) for run, (_, found) in sightings]
    certain = sum(run.snapshots for run, found in queues if found.certainty == CERTAIN)
    expected = fsum(found.probability * run.covers for run, found in queues)
    weighted = fsum(found.probability * run.snapshots for run, found in queues)
    is_certain, probability = 2 * certain >= extent.snapshots, weighted / extent.snapshots
    lasts = expected >= _LEAST_EXPECTED * persistence_seconds * SECOND
    if not lasts or (differing and not _differs_for_long(differing, persistence_seconds)):
        extent = extent._replace(persistence=TRANSIENT)
    last_phase, last = episode.shown[-1]
    is_sure = is_share_sure([run for run, _ in queues], persistence_seconds)
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
    apart differ in one after the other, and in none for long (``judge/test_episodes``). So do old
    connections of one client and then of another. Where nobody is named all count.
    """
    runs_by_name = grouped((name, run) for run, names in shown for name in names or ("",))
    return any(
        extent_of(joined, 0, persistence_seconds).lasts
        for runs in runs_by_name.values()
        for joined in join_episodes(runs, 0)
    )


def _causes(
    sightings: Iterable[tuple[Portion, _ShownQueue]], persistence_seconds: int
) -> tuple[str, ...]:
    """The causes that lasted themselves; all of them where none did.

    A cause of a moment, as while the clients started, is not one of what lasts.
    """
    runs = grouped((cause, run) for run, (_, found) in sightings for cause in found.causes)
    times = {cause: extent_of(of, 0, persistence_seconds) for cause, of in runs.items()}
    lasting = (cause for cause, extent in times.items() if extent.lasts)
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
        every = (phase.evaluated.faults for phase in timeline.phases)
        shown = (
            [(key_of(one), one) for one in faults if is_computed(one) == computed]
            for faults in every
        )
        return episodes_of(runs, shown, persistence_seconds)

    computed = episodes(timeline.runs, computed=True)
    for episode in chain(computed, episodes(timeline.runs_of_reports, computed=False)):
        extent, last = episode.extent, episode.shown[-1]
        named = [(run, fault.client_ids) for run, fault in episode.sightings]
        differs = last.fault == BROKER_VIEW_DIVERGENCE
        if differs and not _differs_for_long(named, persistence_seconds):
            extent = extent._replace(persistence=TRANSIENT)
        most = max(fault.queues_affected for fault in episode.shown)
        yield FaultEpisode(timeline.topic, extent, **vars(last) | {"queues_affected": most})


# ---------------------------------------------------------------- what processes and offsets show


#: Offsets of a smaller part of a finding's time do not show that the queue is read all of it.
_LEAST_SHARE_SHOWN = 0.5


def witnessed(case: Case, finding: QueueFinding) -> QueueFinding:
    """The finding with what the holdings and the offsets show of it.

    What has gaps may be read in these: of them the offsets show nothing.
    """
    offsets = case.offsets.get((finding.topic, *finding.queue))
    shown = reading(offsets, finding.unbroken_times)
    reads = None if shown.is_read and shown.share_shown < _LEAST_SHARE_SHOWN else shown.is_read
    return replace(
        finding,
        left=backlog(offsets, finding.first_seen, finding.last_seen),
        held=confirm(finding, case.holdings),
        moved=None if reads is None or finding.kind == DUPLICATE else not reads,
        is_always_read=shown.is_always_read,
    )


def confirm(episode: QueueFinding, index: HoldingsIndex) -> bool | None:
    """True if what the processes held shows the finding; None where too few of them answered.

    DUPLICATE: true where two processes held the queue in one round; false where complete rounds
    never showed two. Where no round decides, two logs confirm it whose results have the queue at
    the same time: they show what was computed, which is less than what was held. ORPHANED: true if
    a complete round showed no holder; false where rounds showed one, and none did that. Soon after
    a change processes hold what they had before, which refutes nothing; and what is POSSIBLE is
    there at times, so that no round without it refutes it (``judge/test_witnessed``).
    """
    holdings, queue, time = index[episode.topic], episode.queue, episode.extent
    if MIXED_REQUEST_MODE in episode.causes:
        # POP serves every queue, so that one holder reads it a second time
        # (``PopMessageProcessor`` 5.1.4; ``cases/test_read_twice``).
        return True if holdings.holders_in(queue, time) else None
    is_duplicate = episode.kind == DUPLICATE
    if holdings.is_shared(queue, time) if is_duplicate else holdings.is_unheld(queue, time):
        return True
    if holdings.is_settled(time) if is_duplicate else holdings.is_held(queue, time):
        return False if episode.certainty == CERTAIN else None
    return True if is_duplicate and _results_overlap(holdings.holders(queue), episode) else None


def not_refuted(case: Case, finding: QueueFinding) -> list[QueueFinding]:
    """The parts of the time of a finding that lists and routes show for certain, and that neither
    what the processes hold nor the offsets refute.

    What all of them hold, in answers over long enough and none between that shows the finding,
    outweighs what is computed: a member may go by another strategy than it says, or by a newer
    list. A member of a shared id answers for one process: both have to answer. Answers of a moment
    make it POSSIBLE. A queue whose offset does not move has no reader, whoever holds it; and who
    holds one of a broker without a master does not read it (``cases/test_held_alone``,
    ``cases/test_offsets_and_masters``).

    Worked example: the running infos of 10:02 show two that hold a queue, and those of 10:07 and
    10:12 one. The duplicate ends with the last snapshot before 10:07.
    """
    doubtful = {MIXED_REQUEST_MODE, MASTER_AWAY}.intersection(finding.causes)
    if finding.certainty != CERTAIN or doubtful:
        return [finding]
    (finding,) = _until_read(case, finding) or [finding]
    if finding.moved:
        return [finding]
    refuted = case.holdings[finding.topic].refuted(
        finding.queue, finding.extent, is_duplicate=finding.kind == DUPLICATE
    )
    least = case.persistence_seconds * SECOND
    lasting = [(begins, ends) for begins, ends, lasts in refuted if lasts >= least]
    if lasting:
        part_begins = [finding.first_seen, *(ends for _, ends in lasting)]
        part_ends = [*(begins for begins, _ in lasting), finding.last_seen + 1]
        parts = zip(part_begins, part_ends, strict=True)
        return [one for begins, ends in parts for one in _during(case, finding, begins, ends)]
    if finding.held is False:
        return [replace(finding, certainty=POSSIBLE, is_mostly_certain=False)]
    return [finding]


def _until_read(case: Case, finding: QueueFinding) -> list[QueueFinding]:
    """The orphan until its offset moves from poll to poll up to its end: the lists show later who
    has the queue. Empty where it does not, or did all the time.

    Worked example: a member subscribes to T at 10:08, and its running info shows that at 10:12. The
    offsets that T has since 10:08 move: it is the end.
    """
    offsets = case.offsets.get((finding.topic, *finding.queue))
    if finding.kind == DUPLICATE or offsets is None or finding.extent.share_of_time < 1:
        return []
    start, end = np.searchsorted(offsets.times, [finding.first_seen, finding.last_seen + 1])
    unmoved = np.flatnonzero(offsets.unmoved[start : max(end - 1, start)])
    moves = start + (unmoved[-1] + 1 if unmoved.size else 0)
    is_all = finding.moved is False and not unmoved.size
    if is_all or moves >= end:
        return []
    read_from = int(offsets.times[moves])
    if not reading(offsets, [(read_from, finding.last_seen)]).is_always_read:
        return []
    return _during(case, finding, finding.first_seen, read_from + 1)


def _during(
    case: Case, finding: QueueFinding, begins: Instant, ends: Instant
) -> list[QueueFinding]:
    """The finding from one time up to another, without it; none where no snapshot is in it."""
    time = finding.extent
    shown = [at for at in time.those_of(case.snapshots) if begins <= at < ends]
    if not shown:
        return []
    first_seen, last_seen = shown[0], shown[-1]
    extent = case.extent(
        first_seen, last_seen, len(shown), ongoing=time.ongoing and last_seen == time.last_seen
    )
    clipped = [
        (max(earliest, first_seen), min(latest, last_seen)) for earliest, latest in finding.times
    ]
    times = tuple(part for part in clipped if part[0] <= part[1])
    extent = extent._replace(share_of_time=time.share_of_time)
    return [witnessed(case, replace(finding, extent=extent, times=times))]


def _results_overlap(holders: Iterable[Holding], episode: QueueFinding) -> bool:
    """True if the results of two processes of claimants have the queue at one time of the run.

    A result is the period of a log that has it, once no change explains it. In the order of their
    starts, two that overlap have neighbours between them that do; and they are of two processes,
    for one has no two at a time.
    """
    claimants = {claimant.client_id for claimant in episode.claimants}
    logs = (holder for holder in holders if holder.process.is_log and holder.is_settled)
    theirs = (log for log in logs if log.process.client_id in claimants)
    claimed = sorted(
        (holding.first_seen, holding.last_seen) for holding in theirs if episode.overlaps(holding)
    )
    return any(last_seen >= following for (_, last_seen), (following, _) in pairwise(claimed))


# ---------------------------------------------------------------- still offline


def still_offline(case: Case, found: GroupFindings) -> GroupFindings:
    """The orphaned queues and the fault GROUP_OFFLINE of each topic that was offline in the run
    before, of a group that no broker lists all through the window.

    Lists have the topics of a group. One that has had no member all through the window has no list,
    and where its offsets are not collected either, only the run before has what it should consume.
    The topics that the window itself has are judged by it (``judge/test_still_offline``).
    """
    dossier = case.dossier
    answers = [run for run in dossier.polls if run.answer not in (NO_ANSWER, ANSWERED)]
    if {run.answer for run in answers} != {NOT_ONLINE}:
        return found
    snapshots = sorted({time for run in answers for time in run.times})
    # Nobody knows any more what it was before the last watch.
    begins = watches(snapshots)[-1]
    runs = runs_of([Portion(time, time, 1) for time in snapshots if time >= begins])
    extent = extent_of(runs, runs[-1].after, case.persistence_seconds)
    orphans = (earlier for earlier in dossier.earlier if earlier.kind == ORPHANED)
    offline = (orphan for orphan in orphans if GROUP_OFFLINE in orphan.causes)
    queues = [
        QueueFinding(
            earlier.topic,
            extent,
            ORPHANED,
            (earlier.broker_name, earlier.queue_id),
            CERTAIN,
            probability=1.0,
            completeness=1.0,
            claimants=(),
            strategy_source=None,
            causes=(GROUP_OFFLINE,),
        )
        for earlier in offline
        if earlier.topic not in case.timelines
    ]
    by_topic = grouped((queue.topic, queue.queue) for queue in queues)
    faults = [_still_offline(topic, extent, keys) for topic, keys in by_topic.items()]
    return found.plus(faults, (witnessed(case, queue) for queue in queues))


def _still_offline(topic: str, extent: Extent, queues: Sequence[QueueKey]) -> FaultEpisode:
    evidence = agreeing(
        len(queues),
        "no broker that answered lists a member of the group, as in the run before: {queues} "
        "[is|are] taken by nobody",
        queues=queues_in_words(queues),
    )
    fault = FaultEpisode(topic, extent, GROUP_OFFLINE, evidence, GROUP_OFFLINE_REMEDY)
    return fault.about(queues)
