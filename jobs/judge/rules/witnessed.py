"""A queue that a rule found -> what the processes and its offsets show of it, whatever the rule."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

import numpy as np

from rebalance_core.findings import CERTAIN, DUPLICATE, POSSIBLE
from rebalance_core.repairs import MASTER_AWAY, MIXED_REQUEST_MODE

from ...declared.instants import SECOND, Instant
from ..observe.backlog import backlog, reading
from ..observe.holdings import Holding
from ..observe.holdings_index import HoldingsIndex
from ..times.extents import Extent, persistence
from .case import Case
from .found import QueueFinding

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
    there at times, so that no round without it refutes it.
    """
    of_topic, queue, time = index[episode.topic], episode.queue, episode.extent
    if MIXED_REQUEST_MODE in episode.causes:
        # POP serves every queue, so that one holder reads it a second time.
        return True if of_topic.holders_in(queue, time) else None
    is_duplicate = episode.kind == DUPLICATE
    if of_topic.is_shared(queue, time) if is_duplicate else of_topic.is_unheld(queue, time):
        return True
    if of_topic.is_settled(time) if is_duplicate else of_topic.is_held(queue, time):
        return False if episode.certainty == CERTAIN else None
    return True if is_duplicate and _results_overlap(of_topic.holders(queue), episode) else None


def not_refuted(case: Case, finding: QueueFinding) -> list[QueueFinding]:
    """The parts of the time of a finding that lists and routes show for certain, and that neither
    what the processes hold nor the offsets refute.

    What all of them hold, in answers over long enough and none between that shows the finding,
    outweighs what is computed: a member may go by another strategy than it says, or by a newer
    list. A member of a shared id answers for one process: both have to answer. Answers of a moment
    make it POSSIBLE. A queue whose offset does not move has no reader, whoever holds it; and who
    holds one of a broker without a master does not read it.

    Worked example: the running infos of 10:02 show two that hold a queue, and those of 10:07 and
    10:12 one. The duplicate ends with the last snapshot before 10:07.
    """
    doubtful = {MIXED_REQUEST_MODE, MASTER_AWAY}.intersection(finding.causes)
    if finding.certainty != CERTAIN or doubtful:
        return [finding]
    (finding,) = _until_read(case, finding) or [finding]
    if finding.moved:
        return [finding]
    is_duplicate, since = finding.kind == DUPLICATE, finding.first_seen
    index = case.holdings[finding.topic]
    refuted = index.refuted(finding.queue, finding.extent, is_duplicate=is_duplicate)
    parts: list[QueueFinding] = []
    lasting = [each for each in refuted if each.lasts >= case.persistence_seconds * SECOND]
    for each in lasting:
        parts += _during(case, finding, since, each.since)
        since = each.until
    if lasting:
        return [*parts, *_during(case, finding, since, finding.last_seen + 1)]
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
    since = start + (unmoved[-1] + 1 if unmoved.size else 0)
    is_all = finding.moved is False and not unmoved.size
    if is_all or since >= end:
        return []
    read_from = int(offsets.times[since])
    if not reading(offsets, [(read_from, finding.last_seen)]).is_always_read:
        return []
    return _during(case, finding, finding.first_seen, read_from + 1)


def _during(
    case: Case, finding: QueueFinding, since: Instant, until: Instant
) -> list[QueueFinding]:
    """The finding from one time up to another, without it; none where no snapshot is in it."""
    time = finding.extent
    shown = [each for each in time.those_of(case.snapshots) if since <= each < until]
    if not shown:
        return []
    first, last = shown[0], shown[-1]
    lasts = persistence(first, last, case.persistence_seconds)
    is_open = time.ongoing and last == time.last_seen
    extent = Extent(first, last, len(shown), lasts, is_open, time.share_of_time)
    clipped = [(max(begins, first), min(ends, last)) for begins, ends in finding.times]
    times = tuple((begins, ends) for begins, ends in clipped if begins <= ends)
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
