"""connections, shared ids -> an old process that goes on: one pod that was started elsewhere.

A pod whose node hangs is started on another node with the id that it had (a StatefulSet), and both
processes read as soon as the node goes on. No id of its own helps there: the old one is to end.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TypeAlias

from rebalance_core.english import joined
from rebalance_core.grouping import grouped
from rebalance_core.repairs import DUPLICATE_CLIENT_ID
from rebalance_core.texts import Text

from ...declared.instants import Instant
from ..observe.channels import Channel
from ..observe.in_words import between
from .case import Case
from .found import FaultEpisode, GroupFindings

#: The host of the old process, when no broker listed it any more, and when it was back.
_OldCopy: TypeAlias = tuple[str, Instant, Instant]


def old_copies(case: Case, found: GroupFindings) -> GroupFindings:
    """The shared ids of which one copy is an old process, with that in the remedy."""
    return replace(found, faults=tuple(_with_old_copy(case, fault) for fault in found.faults))


def _with_old_copy(case: Case, fault: FaultEpisode) -> FaultEpisode:
    if fault.fault != DUPLICATE_CLIENT_ID:
        return fault
    channels = case.situations.channels.get(fault.client_ids[0], ())
    old = _old_copy(
        [channel for channel in channels if channel.first_seen <= fault.last_seen], case.expiry
    )
    if old is None:
        return fault
    host, *silent = old
    ending = Text(
        "or, if this is one pod that was restarted on another host, stop the old process at "
        "{host}: it was silent {time}, and still runs",
        host=host,
        time=between(*silent),
    )
    return replace(fault, remedy=joined([fault.remedy, ending]))


def _old_copy(channels: Sequence[Channel], expiry: Instant) -> _OldCopy | None:
    """A host that was gone for a time, in which another one began that is there when it is back.

    A broker keeps a silent process for ``expiry``: so long before the other one may have begun.
    """
    # Nobody knows the host of a connection without an address.
    channels = [channel for channel in channels if channel.client_addr]
    of_hosts = grouped((channel.client_addr.rpartition(":")[0], channel) for channel in channels)
    begun = {host: min(channel.first_seen for channel in own) for host, own in of_hosts.items()}
    for host, own in of_hosts.items():
        in_time = sorted(own, key=lambda channel: channel.first_seen)
        for one, later in pairwise(in_time):
            gone = max(
                channel.last_seen for channel in in_time if channel.first_seen <= one.first_seen
            )
            others = (
                channel
                for channel in channels
                if begun[host] < gone - expiry < begun[channel.client_addr.rpartition(":")[0]]
                and channel.first_seen < later.first_seen <= channel.last_seen
            )
            if gone < later.first_seen and any(others):
                return host, gone, later.first_seen
    return None
