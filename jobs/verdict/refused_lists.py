"""Polls whose list was refused when it was read -> gaps with client, broker and group.

The broker answered, so it was not silent; but what it gave is no evidence. So it is with a list
that cannot be read, and with one of which a connection has no client id: that member takes a share
of the queues, and nobody knows which (``dumps.typed``). The poll of such a list has an error code
of its own, and the reason.
"""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

from rebalance_core.english import MOST_NAMES, agreeing, names
from rebalance_core.grouping import grouped

from ..declared.instants import SECOND, Instant
from ..fold.slice_facts import BROKER, BrokerPolls
from .gaps import LISTS_REFUSED, Gap
from .reach import Silence, silence_without


class _RefusedLists(NamedTuple):
    """The lists of a group that a broker gave and that were refused; ``reason``: that of the last
    one.
    """

    cluster: str
    broker: str
    consumer_group: str
    reason: str
    rounds: int
    silence: Silence


def refused_lists(polls: BrokerPolls, persistence_seconds: int) -> Iterator[Gap]:
    """A gap for each broker, or for each group where these are fewer, whose lists were refused: all
    of a group, or for as long as what has to last.
    """
    lasting = _lasting(polls, persistence_seconds * SECOND)
    for cluster, of_cluster in grouped((refused.cluster, refused) for refused in lasting).items():
        by_broker = grouped((refused.broker, refused) for refused in of_cluster)
        by_group = grouped((refused.consumer_group, refused) for refused in of_cluster)
        for lists in min(by_group, by_broker, key=len).values():
            longest = max(lists, key=lambda refused: refused.silence.until - refused.silence.since)
            text = agreeing(
                longest.rounds,
                "cluster {cluster}: the lists of {groups} that {brokers} gave are no evidence in "
                "{rounds:,} [round|rounds]; the longest time was from {since} to {until}: {reason}",
                cluster=cluster,
                groups=names(sorted({list_.consumer_group for list_ in lists}), MOST_NAMES),
                brokers=names(sorted({list_.broker for list_ in lists}), MOST_NAMES),
                reason=longest.reason,
                rounds=longest.rounds,
                **longest.silence.words,
            )
            yield Gap(LISTS_REFUSED, text)


def _lasting(polls: BrokerPolls, least: Instant) -> Iterator[_RefusedLists]:
    refused: dict[tuple[Any, ...], dict[Instant, str]] = defaultdict(dict)
    for (*key, reason), time in polls.refused_lists():
        refused[tuple(key)][time] = str(reason)
    asked = grouped(polls.rows(BROKER)) if refused else {}
    for (*broker_key, group), reason_at in sorted(refused.items(), key=str):
        if silence := silence_without(asked[tuple(broker_key)], reason_at, least):
            cluster, name, broker_id = broker_key
            broker, reason = f"{name}/{broker_id}", reason_at[max(reason_at)]
            yield _RefusedLists(cluster, broker, group, reason, len(reason_at), silence)
