"""A queue that a rule found -> what the processes and its offsets show of it, whatever the rule."""

from dataclasses import replace

from rebalance_core.findings import DUPLICATE

from .backlog import backlog, reading
from .case import Case
from .confirmation import confirm
from .found import QueueFinding

#: Offsets of a smaller part of a finding's time do not show that the queue is read all of it.
_MOST = 0.5


def witnessed(case: Case, finding: QueueFinding) -> QueueFinding:
    """The finding with what the holdings and the offsets show of it.

    What has gaps may be read in these: of them the offsets show nothing.
    """
    offsets = case.offsets.get((finding.topic, *finding.queue))
    has_gaps = finding.extent.share_of_time < 1
    whole = (finding.first_seen, finding.last_seen)
    shown = reading(offsets, finding.times if has_gaps else [whole])
    reads = None if shown.is_read and shown.share_shown < _MOST else shown.is_read
    return replace(
        finding,
        left=backlog(offsets, *whole),
        held=confirm(finding, case.holdings),
        moved=None if reads is None or finding.kind == DUPLICATE else not reads,
        is_always_read=shown.is_always_read,
    )
