"""Polls whose list was refused when it was read -> gaps with client, broker and group.

The broker answered, so it was not silent; but what it gave is no evidence. So it is with a list
that cannot be read, and with one of which a connection has no client id: that member takes a share
of the queues, and nobody knows which (``dumps.typed``). The poll of such a list has an error code
of its own, and the reason.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.english import MOST_NAMES, agreeing, names
from rebalance_core.grouping import grouped

from ..config.window import Window
from ..declared.instants import SECOND, Instant
from ..fold.numbers import micros
from ..schemas import BROKER_POLLS, LIST_REFUSED
from .gaps import LISTS_REFUSED, Gap
from .reach import Silence, silence_without

if TYPE_CHECKING:  # it imports pandas, some 55 MiB
    import pyarrow.dataset as ds

_LIST = ("cluster", "broker_name", "broker_id", "consumer_group")
_ROUND = (*_LIST[:3], "snapshot_time")
#: Cluster, broker name and id, and maybe group.
_ListKey: TypeAlias = tuple[Any, ...]


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


def refused_lists(polls: ds.Dataset, window: Window, persistence_seconds: int) -> Iterator[Gap]:
    """A gap for each broker, or for each group where these are fewer, whose lists were refused: all
    of a group, or for as long as what has to last.
    """
    lasting = _lasting(polls, window, persistence_seconds * SECOND)
    for cluster, of_cluster in grouped((each.cluster, each) for each in lasting).items():
        by_broker = grouped((each.broker, each) for each in of_cluster)
        by_group = grouped((each.consumer_group, each) for each in of_cluster)
        for lists in min(by_group, by_broker, key=len).values():
            longest = max(lists, key=lambda each: each.silence.until - each.silence.since)
            text = agreeing(
                longest.rounds,
                "cluster {cluster}: the lists of {groups} that {brokers} gave are no evidence in "
                "{rounds:,} [round|rounds]; the longest time was from {since} to {until}: {reason}",
                cluster=cluster,
                groups=names(sorted({each.consumer_group for each in lists}), MOST_NAMES),
                brokers=names(sorted({each.broker for each in lists}), MOST_NAMES),
                reason=longest.reason,
                rounds=longest.rounds,
                **longest.silence.words,
            )
            yield Gap(LISTS_REFUSED, text)


def _lasting(polls: ds.Dataset, window: Window, least: Instant) -> Iterator[_RefusedLists]:
    if not {"error_code", "error_message"} <= set(polls.schema.names):
        return  # a lake that no ingest wrote
    in_window = window.filter_of(BROKER_POLLS, polls.schema)
    is_refused = pc.field("error_code") == LIST_REFUSED
    rows = polls.to_table([*_LIST, "snapshot_time", "error_message"], in_window & is_refused)
    if not rows.num_rows:
        return
    of_brokers = pc.field("broker_name").isin(rows["broker_name"].combine_chunks().unique())
    every = polls.to_table([*_ROUND], in_window & of_brokers).group_by([*_ROUND]).aggregate([])
    asked = grouped(_by_key(every, _LIST[:3]))
    refused: dict[_ListKey, dict[Instant, str]] = defaultdict(dict)
    reasons = rows["error_message"].to_pylist()
    for (key, time), reason in zip(_by_key(rows, _LIST), reasons, strict=True):
        refused[key][time] = str(reason)
    for key, reason_at in sorted(refused.items(), key=str):
        if silence := silence_without(asked[key[:-1]], reason_at, least):
            cluster, name, broker_id, group = key
            broker, reason = f"{name}/{broker_id}", reason_at[max(reason_at)]
            yield _RefusedLists(cluster, broker, group, reason, len(reason_at), silence)


def _by_key(table: pa.Table, key: Collection[str]) -> Iterator[tuple[_ListKey, Instant]]:
    """The key and the round of each row."""
    keys = zip(*(table[name].to_pylist() for name in key), strict=True)
    return zip(keys, micros(table["snapshot_time"].combine_chunks()).to_pylist(), strict=True)
