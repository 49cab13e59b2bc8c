"""A queue that a rule found -> what the processes and its offsets show of it, whatever the rule."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

from rebalance_core.findings import CERTAIN, DUPLICATE
from rebalance_core.repairs import MIXED_REQUEST_MODE

from .backlog import backlog, reading
from .case import Case
from .found import QueueFinding
from .holdings import Holding
from .holdings_index import HoldingsIndex

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


def _results_overlap(holders: Iterable[Holding], episode: QueueFinding) -> bool:
    """True if the results of two processes of claimants have the queue at one time of the run.

    A result is the period of a log that has it, once no change explains it. In the order of their
    starts, two that overlap have neighbours between them that do; and they are of two processes,
    for one has no two at a time.
    """
    claimants = {claimant.client_id for claimant in episode.claimants}
    logs = (each for each in holders if each.process.is_log and each.is_settled)
    theirs = (each for each in logs if each.process.client_id in claimants)
    claimed = sorted((each.first_seen, each.last_seen) for each in theirs if episode.overlaps(each))
    return any(last_seen >= following for (_, last_seen), (following, _) in pairwise(claimed))
