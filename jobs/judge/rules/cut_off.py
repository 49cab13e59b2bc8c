"""faults, stalls -> one outage, one finding: members that a broker lists no more began to lack it
when their queues stopped.

A member that is cut off from a broker stays in its list for about two minutes after its last
heartbeat (``ConsumerManager.scanNotActiveChannel`` 4.9.4). Until then its queues there stall, and
where it has no others it looks frozen; from then on the brokers' lists differ.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rebalance_core.english import agreeing
from rebalance_core.repairs import BROKER_VIEW_DIVERGENCE, GROUP_NOT_ON_BROKER

from ...declared.kinds import FROZEN_PROCESS
from ..observe.in_words import queues_in_words, zoned_clock
from ..times.intervals import usual_gap
from .case import Case
from .found import FaultEpisode, GroupFindings, Stall

#: A broker lists some members no more, or none at all.
OUTAGES = (BROKER_VIEW_DIVERGENCE, GROUP_NOT_ON_BROKER)


def cut_off(case: Case, found: GroupFindings) -> GroupFindings:
    """The lasting outages since the first of their members' queues on their brokers stopped, up to
    the time in which a broker drops a member before; without the FROZEN_PROCESS of that outage.

    Worked example: at 10:04 c is cut off from broker-b, and its two queues there stop. At 10:06:10
    broker-b drops c. The lists differ since then, and the outage is from 10:04 on.
    """
    faults: list[FaultEpisode] = []
    outages: list[FaultEpisode] = []
    for fault in found.faults:
        theirs = (stall for stall in found.stalls if is_of_outage(fault, stall))
        stopped = [stall for stall in theirs if _leads_to(stall, fault, case)]
        if fault.fault in OUTAGES and fault.extent.lasts and stopped:
            outages.append(_since(fault, stopped))
            faults.append(outages[-1])
        else:
            faults.append(fault)
    frozen = (each for each in faults if each.fault == FROZEN_PROCESS)
    parts = [each for each in frozen if any(_is_part(each, outage) for outage in outages)]
    return replace(found, faults=tuple(each for each in faults if each not in parts))


def is_of_outage(outage: FaultEpisode, stall: Stall) -> bool:
    """True if a queue that stalls is one of its members' on its brokers, whatever the topic."""
    is_theirs = bool(stall.owners) and _is_of_members(outage, stall.owners)
    return is_theirs and stall.queue[0] in outage.broker_names


def _is_of_members(outage: FaultEpisode, client_ids: Sequence[str]) -> bool:
    """True if they are among those that the broker lists no more: all, where it lists nobody."""
    return outage.fault == GROUP_NOT_ON_BROKER or {*client_ids} <= {*outage.client_ids}


def _leads_to(stall: Stall, outage: FaultEpisode, case: Case) -> bool:
    """True if it stopped no longer before than a silent member is listed, and a poll or two."""
    if not stall.first_seen < outage.first_seen <= stall.last_seen + case.expiry:
        return False
    polls = 2 * usual_gap(np.diff(case.snapshots))
    return outage.first_seen - stall.first_seen <= case.expiry + polls


def _since(fault: FaultEpisode, stopped: Sequence[Stall]) -> FaultEpisode:
    since = min(stall.first_seen for stall in stopped)
    queues = {stall.queue for stall in stopped}
    why = agreeing(
        len(queues),
        "{queues} [has|have] not moved since {time}, before the list changed: a broker drops a "
        "member some two minutes after its last heartbeat",
        queues=queues_in_words(queues),
        time=zoned_clock(since),
    )
    extent = fault.extent._replace(first_seen=since)
    return fault.saying([why], extent=extent)


def _is_part(frozen: FaultEpisode, outage: FaultEpisode) -> bool:
    is_its = _is_of_members(outage, frozen.client_ids) and frozen.overlaps(outage)
    return is_its and {*frozen.broker_names} <= {*outage.broker_names}
