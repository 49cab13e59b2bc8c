"""Runs -> dossiers: all that was reported about each group and the topics that it consumes."""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import pairwise, starmap, zip_longest
from operator import itemgetter
from typing import Any, TypeAlias

import numpy as np

from rebalance_core.message_queue import RETRY_PREFIX
from rebalance_core.state import POP, PULL, RouteBroker

from ..contents import MEMBER_FACTS, ROUTE_FACTS
from ..instants import Instant
from ..judge.dossier import (
    ClientRun,
    Dossier,
    HeldQueue,
    ListedMembers,
    PollRun,
    QueueOffsets,
    RouteRun,
)
from ..schemas import CONSUME_DISABLED, REQUEST_MODE
from .numbers import NO_NUMBER, Array, Rows, int64, numbers_or_none, pc
from .runs import OFFSET_RUNS, POLL_RUNS, ROUTE_RUNS, Contents, Record, Records, Runs

#: (cluster, consumer group).
Group: TypeAlias = tuple[str, str]
#: (cluster, topic).
Subject: TypeAlias = tuple[str, str]

_GROUP = ("cluster", "consumer_group")
_CLIENT_ID, CLIENT_ADDR = (
    [fact.name for fact in MEMBER_FACTS].index(name) for name in ("client_id", "client_addr")
)


def group_of_nobody(topic: str) -> str:
    """The group to which a topic goes that no group subscribes to: that of its name, of a retry
    topic, else the empty name. So no topic disappears, and none comes twice.

    >>> group_of_nobody("%RETRY%G"), group_of_nobody("T")
    ('G', '')
    """
    return topic[len(RETRY_PREFIX) :] if topic.startswith(RETRY_PREFIX) else ""


def topics_of(records: Iterable[Record]) -> list[str]:
    """The topics to which some member of a list subscribes."""
    subscriptions = {subscription for *_, of_member in records for subscription in of_member or ()}
    return sorted(
        {
            subscription[0]
            for subscription in subscriptions
            if subscription is not None and subscription[0] is not None
        }
    )


def subscribers(
    polled: Iterable[Group],
    listed: Mapping[Group, Iterable[str]],
    offsets: Mapping[Group, Iterable[str]],
) -> dict[Subject, list[str]]:
    """By topic the groups that subscribe to it.

    ``polled``: the groups of which brokers were asked. ``listed``: by group the topics of its
    lists. ``offsets``: by group the topics of its offsets; they count of a group of which no broker
    ever had a member, for nothing else shows what such a group consumed.
    """
    found: dict[Subject, dict[str, None]] = {}
    unlisted = {group: offsets.get(group, ()) for group in polled if group not in listed}
    for topics in (listed, unlisted):
        for (cluster, name), of_group in topics.items():
            for topic in of_group:
                found.setdefault((cluster, topic), {})[name] = None
    return {subject: list(groups) for subject, groups in found.items()}


def groups_of(rows: Rows) -> list[Group]:
    """The groups that the rows are about."""
    return list(distinct(rows, *_GROUP))


def offset_topics(offsets: Rows) -> dict[Group, list[str]]:
    """By group the topics of its offsets."""
    found: dict[Group, list[str]] = {}
    for cluster, name, topic in distinct(offsets, *_GROUP, "topic"):
        found.setdefault((cluster, name), []).append(topic)
    return found


def make_dossiers(runs: Runs) -> list[Dossier]:
    """The dossiers of the groups, by cluster and name."""
    dossiers = _Dossiers()
    listed: dict[Group, dict[str, None]] = {}
    topics = {id_: tuple(topics_of(records)) for id_, records in runs.lists.records.items()}
    polls = runs.lists.runs
    columns = [polls[name].to_pylist() for name in (*POLL_RUNS.names[:-1],)]
    for (cluster, name, broker_name, broker_id, addr, outcome, list_id), times in zip(
        zip(*columns, strict=True), _polled(polls["times"]), strict=True
    ):
        dossier = dossiers[cluster, name]
        dossier.polls.append(PollRun((broker_name, broker_id), list_id or outcome, *times, addr))
        if list_id is not None and list_id not in dossier.list_topics:
            dossier.list_topics[list_id] = topics[list_id]
            dossier.list_members[list_id] = partial(_members, runs.lists.records[list_id])
            listed.setdefault((cluster, name), {}).update(dict.fromkeys(topics[list_id]))
    subscribed = subscribers(groups_of(polls), listed, offset_topics(runs.offsets))
    for cluster, topic, run in _routes(runs.routes):
        for name in subscribed.get((cluster, topic), [group_of_nobody(topic)]):
            dossiers[cluster, name].routes.setdefault(topic, []).append(run)
    for row in runs.clients.to_pylist():
        _add_client(dossiers[row.pop("cluster"), row.pop("consumer_group")], row)
    for cluster, name, offsets in _offsets(runs.offsets):
        dossiers[cluster, name].offsets.setdefault(offsets.topic, []).append(offsets)
    return [dossier for _, dossier in sorted(dossiers.items(), key=itemgetter(0))]


class _Dossiers(dict[Group, Dossier]):
    """Dossiers by group, made as they are asked for."""

    def __missing__(self, group: Group) -> Dossier:
        return self.setdefault(group, Dossier(*group))


def _members(records: Records) -> ListedMembers:
    return ListedMembers(
        tuple(record[_CLIENT_ID] for record in records),
        tuple(record[CLIENT_ADDR] for record in records),
    )


def _polled(times: Array) -> Iterator[tuple[tuple[Instant, ...], tuple[Instant, ...]]]:
    """Of each run, whose times ascend, the snapshots, each once, and when the last answer came."""
    lists: Array = times.combine_chunks()
    flat = lists.flatten()
    snapshots, collected = int64(flat.field(0)), numbers_or_none(flat.field(1))
    collected = np.where(collected == NO_NUMBER, snapshots, collected)
    for part in _parts(lists):
        latest = dict(zip(snapshots[part].tolist(), collected[part].tolist(), strict=True))
        yield tuple(latest), tuple(latest.values())


def _parts(lists: Array) -> Iterator[slice]:
    """Of each list the place of its values among those of all."""
    ends = np.cumsum(int64(pc.list_value_length(lists))).tolist()
    yield from starmap(slice, pairwise([0, *ends]))


def _routes(routes: Contents) -> Iterator[tuple[str, str, RouteRun]]:
    brokers = {
        id_: tuple(RouteBroker(*_with_sorted_ids(record)) for record in records)
        for id_, records in routes.records.items()
    }
    columns = [routes.runs[name].to_pylist() for name in ROUTE_RUNS.names[:-1]]
    for (cluster, topic, namesrv_addr, route_id), times in zip(
        zip(*columns, strict=True), _polled(routes.runs["times"]), strict=True
    ):
        yield cluster, topic, RouteRun(namesrv_addr, route_id, brokers[route_id], *times)


_BROKER_IDS = [fact.name for fact in ROUTE_FACTS].index("broker_ids")


def _with_sorted_ids(record: Record) -> list[Any]:
    values = list(record)
    ids = values[_BROKER_IDS]
    values[_BROKER_IDS] = ids and tuple(sorted(ids))
    return values


def _add_client(dossier: Dossier, values: dict[str, Any]) -> None:
    if values["source"] == REQUEST_MODE:
        # POP where some broker reported it at some time of the window, else PULL. The mode
        # is changed on one broker after the other, and clients follow at different times: while
        # a queue may be shared, that several clients take it is no fault.
        before = dossier.request_modes.get(values["topic"], PULL)
        dossier.request_modes[values["topic"]] = before if values["client_rebalance"] else POP
        return
    broker_name = values.pop("broker_name")
    if values["source"] == CONSUME_DISABLED:
        read_at = {*dossier.consume_disabled.get(broker_name, ()), *values["times"]} - {None}
        dossier.consume_disabled[broker_name] = tuple(sorted(read_at))
        return
    queues, activities = values.pop("queues"), values.pop("activities")
    times = zip(values.pop("times"), values.pop("observed_at"), strict=True)
    in_order = sorted(times, key=lambda time: (time[0] is not None, time[0] or 0, time[1]))
    held = queues and tuple(
        HeldQueue(**{**each, "dropped": bool(each["dropped"]), "activity": activity})
        for each, activity in zip_longest(queues, activities or ())
    )
    dossier.clients.append(
        ClientRun(**values, queues=() if queues == [] else held, times=tuple(in_order))
    )


def _offsets(offsets: Rows) -> Iterator[tuple[str, str, QueueOffsets]]:
    """The offsets of each queue, whose times ascend."""
    columns = [offsets[name].to_pylist() for name in OFFSET_RUNS.names[:5]]
    lists = [offsets[name].combine_chunks() for name in OFFSET_RUNS.names[5:]]
    values = [int64(list_.flatten()) for list_ in lists]
    for (cluster, name, *queue), part in zip(
        zip(*columns, strict=True), _parts(lists[0]), strict=True
    ):
        yield cluster, name, QueueOffsets(*queue, *[value[part] for value in values])


def distinct(rows: Rows, *names: str) -> Iterator[Any]:
    """The distinct values of some columns."""
    found = rows.group_by(list(names)).aggregate([])
    return zip(*[found[name].to_pylist() for name in names], strict=True)
