"""Runs -> dossiers: all that was reported about each group and the topics that it consumes."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from itertools import chain, pairwise, starmap, zip_longest
from operator import itemgetter
from typing import Any, TypeAlias

import numpy as np

from rebalance_core.message_queue import DLQ_PREFIX, RETRY_PREFIX, is_retry_topic
from rebalance_core.state import MASTER_ID, PERM_WRITE, POP, PULL, RouteBroker

from .. import schemas
from ..declared.contents import MEMBER_FACTS, PULLS, ROUTE_FACTS, content_id, record_text
from ..declared.dossier import (
    ClientRun,
    Dossier,
    ListedMembers,
    PollRun,
    QueueOffsets,
    ReportedQueue,
    RoutedAddress,
    RouteRun,
)
from ..declared.instants import Instant
from .numbers import NO_NUMBER, Array, Rows, int64, pc
from .runs import GROUP_KEY, OF_BROKERS, OFFSET_RUNS, REFUSED, Record, Runs, is_whole

#: (cluster, consumer group).
ClusterGroup: TypeAlias = tuple[str, str]
#: (cluster, topic).
ClusterTopic: TypeAlias = tuple[str, str]

_RunTimes: TypeAlias = tuple[Instant, ...]

_CLIENT_ID, _CLIENT_ADDR, _SUBSCRIPTIONS = (
    [fact.name for fact in MEMBER_FACTS].index(name)
    for name in ("client_id", "client_addr", "subscriptions")
)


def group_of_nobody(topic: str) -> str:
    """The group to which a topic goes that no group subscribes to: that of its name, of a retry
    topic, else the empty name. So no topic disappears, and none comes twice.

    >>> group_of_nobody("%RETRY%G"), group_of_nobody("T")
    ('G', '')
    """
    return topic[len(RETRY_PREFIX) :] if is_retry_topic(topic) else ""


def topics_of(records: Iterable[Record]) -> list[str]:
    """The topics to which some member of a list subscribes."""
    # Equal subscriptions are one object as a rule, and to compare them takes longer.
    distinct = {id(record[_SUBSCRIPTIONS]): record[_SUBSCRIPTIONS] for record in records}
    every = chain.from_iterable(addresses or () for addresses in distinct.values())
    return sorted({topic for topic, *_ in filter(None, every)} - {None})


#: The facts of a route that decide who takes what.
_DECIDING = len(fields(RouteBroker))


def route_brokers(records: Iterable[Record]) -> tuple[RouteBroker, ...]:
    """The brokers of a route as the core has them; a mock broker has no address."""
    brokers = (RouteBroker(*record[:_DECIDING]) for record in records)
    return tuple(replace(broker, broker_ids=()) if broker.is_mock else broker for broker in brokers)


def _routed(records: Iterable[Record]) -> Iterator[RoutedAddress]:
    """The addresses in a route."""
    for name, ids, perm, *_, addrs, acts in records:
        if addrs is not None and len(addrs) == len(ids or ()):
            for broker_id, addr in zip(ids, addrs, strict=True):
                may_act = bool(acts) and broker_id == MASTER_ID and not perm & PERM_WRITE
                yield RoutedAddress((name, broker_id), addr, may_act)


def broker_ids(records: Iterable[Record]) -> tuple[tuple[str, tuple[int, ...] | None], ...]:
    """The names of a route's brokers and the ids with an address; None: these are not known."""
    return tuple((broker.broker_name, broker.broker_ids) for broker in route_brokers(records))


def connections(records: Sequence[Record]) -> ListedMembers:
    """The client ids of a list's members, and their addresses."""
    client_ids, addrs = (map(itemgetter(fact), records) for fact in (_CLIENT_ID, _CLIENT_ADDR))
    return ListedMembers(tuple(client_ids), tuple(addrs))


def subscribers(
    list_ids: Mapping[ClusterGroup, Iterable[str]],
    topics: Mapping[str, Iterable[str]],
    *others: Mapping[ClusterGroup, Iterable[str]],
) -> dict[ClusterTopic, list[str]]:
    """The groups that subscribe to each topic.

    ``list_ids``: by group of which brokers were asked the ids of its lists; ``topics``: by id those
    of a list. ``others``: by group the topics of its offsets, and of the queues that its members
    took; they count of a group to whose topics no list has a subscriber, for nothing else shows
    what such a group consumes.
    """
    found: dict[ClusterTopic, dict[str, None]] = {}
    for (cluster, name), ids in list_ids.items():
        listed = list(chain.from_iterable(topics.get(id_, ()) for id_ in ids))
        for topic in listed or chain(*(other.get((cluster, name), ()) for other in others)):
            found.setdefault((cluster, topic), {})[name] = None
    return {subject: list(groups) for subject, groups in found.items()}


def offset_topics(offsets: Rows) -> dict[ClusterGroup, set[str]]:
    """The topics of each group's offsets."""
    found: dict[ClusterGroup, set[str]] = defaultdict(set)
    for cluster, name, topic in distinct(offsets, *GROUP_KEY, "topic"):
        found[cluster, name].add(topic)
    return found


def assigned_topics(clients: Rows) -> dict[ClusterGroup, set[str]]:
    """The topics of the queues that members of each group took by ``assign()``."""
    is_answer = pc.equal(clients["source"], schemas.RUNNING_INFO)
    pulling = clients.filter(pc.and_(is_answer, pc.equal(clients["consume_type"], PULLS)))
    rows = pulling.take(pc.list_parent_indices(pulling["queues"])).select(GROUP_KEY)
    topics = pc.struct_field(pc.list_flatten(pulling["queues"]), "topic")
    return offset_topics(rows.append_column("topic", topics))


def make_dossiers(runs: Runs) -> list[Dossier]:
    """The dossiers of the groups, by cluster and name.

    A list or a route of which something was refused, or whose content did not come, is not
    evidence.
    """
    dossiers = _Dossiers()
    list_ids: dict[ClusterGroup, set[str]] = defaultdict(set)
    topics = {id_: tuple(topics_of(records)) for id_, records in runs.lists.records.items()}
    lists = {id_: records for id_, records in runs.lists.records.items() if is_whole(records)}
    for (cluster, name, *broker, addr, _, _, outcome, list_id), times in _polled(runs.lists.runs):
        dossier = dossiers[cluster, name]
        list_ids[cluster, name] |= {list_id} - {None}
        # None: the list did not come, or not whole.
        members = lists.get(list_id)
        answer = schemas.NO_ANSWER if members is None else list_id
        if list_id is None:
            answer = schemas.ANSWERED if outcome == REFUSED else outcome
        dossier.polls.append(PollRun(tuple(broker), answer, *times, addr))
        if members is not None:
            dossier.list_topics[list_id] = topics[list_id]
            dossier.list_members[list_id] = partial(connections, members)
            dossier.list_records[list_id] = members
    subscribed = subscribers(
        list_ids, topics, offset_topics(runs.offsets), assigned_topics(runs.clients)
    )
    brokers = {
        id_: (_deciding_id(records), route_brokers(records), tuple(_routed(records)))
        for id_, records in runs.routes.records.items()
        if is_whole(records)
    }
    for (cluster, topic, namesrv_addr, route_id), times in _polled(runs.routes.runs):
        if route_id not in brokers:
            continue
        deciding_id, deciding_brokers, addresses = brokers[route_id]
        run = RouteRun(namesrv_addr, deciding_id, deciding_brokers, *times, addresses)
        for name in subscribed.get((cluster, topic), [group_of_nobody(topic)]):
            dossiers[cluster, name].routes.setdefault(topic, []).append(run)
    for row in runs.clients.to_pylist():
        _add_client(dossiers[row.pop("cluster"), row.pop("consumer_group")], row)
    for cluster, name, offsets in _offsets(runs.offsets):
        dossier = dossiers[cluster, name]
        if offsets.topic == f"{DLQ_PREFIX}{name}":
            dossier.dead_letters.append(offsets)
        else:
            dossier.offsets.setdefault(offsets.topic, []).append(offsets)
    return [dossier for _, dossier in sorted(dossiers.items(), key=itemgetter(0))]


def _deciding_id(records: Iterable[Record]) -> str:
    """The id of a route by what decides who takes what: addresses alone make no other one."""
    facts = ROUTE_FACTS[:_DECIDING]
    return content_id(record_text(facts, record[:_DECIDING]) for record in records)


class _Dossiers(dict[ClusterGroup, Dossier]):
    """Dossiers by group, made as they are asked for."""

    def __missing__(self, group: ClusterGroup) -> Dossier:
        return self.setdefault(group, Dossier(*group))


def _polled(runs: Rows) -> Iterator[tuple[Sequence[Any], tuple[_RunTimes, _RunTimes]]]:
    """Each run with its snapshots, each once, and the last answer in each of them. The times of a
    run ascend and are its last column.
    """
    lists: Array = runs["times"].combine_chunks()
    flat = lists.flatten()
    snapshots, collected = int64(flat.field(0)), int64(flat.field(1), NO_NUMBER)
    collected = np.where(collected == NO_NUMBER, snapshots, collected)
    columns = [column.to_pylist() for column in runs.columns[:-1]]
    for run, part in zip(zip(*columns, strict=True), _parts(lists), strict=True):
        latest = dict(zip(snapshots[part].tolist(), collected[part].tolist(), strict=True))
        yield run, (tuple(latest), tuple(latest.values()))


def _parts(lists: Array) -> Iterator[slice]:
    """The slice of each list's values among all values."""
    ends = np.cumsum(int64(pc.list_value_length(lists))).tolist()
    yield from starmap(slice, pairwise([0, *ends]))


def _add_client(dossier: Dossier, values: dict[str, Any]) -> None:
    if values["source"] == schemas.REQUEST_MODE:
        # POP where some broker reported it at some time of the window, else PULL. The mode is
        # changed on one broker after the other, and clients follow at different times: while a
        # queue may be shared, that several clients take it is not a fault.
        before = dossier.request_modes.get(values["topic"], PULL)
        dossier.request_modes[values["topic"]] = before if values["client_rebalance"] else POP
        return
    broker_name, begins = values.pop("broker_name"), values.pop("consume_from_where")
    if values["source"] == schemas.CONSUME_DISABLED:
        read_at = {*dossier.consume_disabled.get(broker_name, ()), *values["times"]} - {None}
        dossier.consume_disabled[broker_name] = tuple(sorted(read_at))
        return
    if values["source"] == schemas.NO_OFFSETS:
        where_by_time = dossier.without_offsets.setdefault(broker_name, {})
        for time in {*values["times"]} - {None}:
            where_by_time[time] = max(begins or "", where_by_time.get(time) or "") or None
        return
    if values["source"] in OF_BROKERS:
        said = dict.fromkeys(values["times"], values["source"] == schemas.CONFIGURED)
        dossier.configured.setdefault(broker_name, {}).update(said)
        return
    queues, activities = values.pop("queues"), values.pop("activities")
    times = zip(values.pop("times"), values.pop("observed_at"), strict=True)
    in_order = sorted(times, key=lambda time: (time[0] is not None, time[0] or 0, time[1]))
    held = queues and tuple(
        ReportedQueue(**{**queue, "dropped": bool(queue["dropped"]), "activity": activity})
        for queue, activity in zip_longest(queues, activities or ())
    )
    dossier.clients.append(
        ClientRun(**values, queues=() if queues == [] else held, times=tuple(in_order))
    )


def _offsets(offsets: Rows) -> Iterator[tuple[str, str, QueueOffsets]]:
    """The offsets of each queue, whose times ascend."""
    columns = [offsets[name].to_pylist() for name in OFFSET_RUNS.names[:5]]
    lists = [offsets[name].combine_chunks() for name in OFFSET_RUNS.names[5:]]
    values = [int64(list_.flatten(), NO_NUMBER) for list_ in lists]
    for (cluster, name, *queue), part in zip(
        zip(*columns, strict=True), _parts(lists[0]), strict=True
    ):
        yield cluster, name, QueueOffsets(*queue, *[value[part] for value in values])


def distinct(rows: Rows, *names: str) -> Iterator[Any]:
    """The distinct values of some columns."""
    found = rows.group_by(list(names)).aggregate([])
    return zip(*[found[name].to_pylist() for name in names], strict=True)
