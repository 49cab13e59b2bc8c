"""The kinds of what is found, by the table that has them; docs/findings has a page on each."""

from __future__ import annotations

from rebalance_core.faults import FAULTS as FAULTS_OF_A_STATE
from rebalance_core.findings import DUPLICATE, ORPHANED
from rebalance_core.repairs import STALE_CHANNEL

#: Of a queue that has an owner who does not move it.
STALLED = "STALLED"
#: Of a client id that several processes have; the other verdict is STALE_CHANNEL.
STACKED = "STACKED"
#: Of a queue that is written and that no consumer can read.
UNREADABLE = "UNREADABLE"

#: The faults that no single state shows: they are told from how states and offsets follow.
FROZEN_PROCESS = "FROZEN_PROCESS"
ROUTE_CHANGED = "ROUTE_CHANGED"

HELD_NOT_COMPUTED = "HELD_NOT_COMPUTED"
COMPUTED_NOT_HELD = "COMPUTED_NOT_HELD"

#: By table of queues the kind of its findings.
QUEUE_FINDINGS = {
    "orphaned_queues": ORPHANED,
    "duplicate_queues": DUPLICATE,
    "stalled_queues": STALLED,
}
VERDICTS = (STACKED, STALE_CHANNEL)
FAULTS = (*FAULTS_OF_A_STATE, ROUTE_CHANGED, FROZEN_PROCESS)
DRIFTS = (HELD_NOT_COMPUTED, COMPUTED_NOT_HELD)

#: What a finding can be marked as a known issue by.
FINDING_KINDS = tuple(dict.fromkeys((*QUEUE_FINDINGS.values(), *VERDICTS, *FAULTS)))
#: All there is a page on.
KINDS = tuple(dict.fromkeys((*FINDING_KINDS, UNREADABLE, *DRIFTS)))
