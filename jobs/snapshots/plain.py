"""records of one group -> rows of its snapshot tables, without Spark.

By the rules of ``polls``, ``heartbeats``, ``client_states`` and ``topic_routes``, which make whole
tables of whole nights: the tests hold the two against each other, row by row.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from jobs.dumps.bodies import (
    CLIENT_LOG,
    CONSUMER_CONNECTION,
    CONSUMER_RUNNING_INFO,
    HEARTBEAT,
    TOPIC_ROUTE,
)
from jobs.dumps.plain import Record
from jobs.schemas import ANSWERED, NO_ANSWER, NOT_ONLINE
from jobs.snapshots.client_states import (
    CLIENT_LOG_SOURCE,
    RUNNING_INFO_SOURCE,
    STRATEGY_CLASSES,
    STRATEGY_PACKAGE,
)
from jobs.snapshots.heartbeats import GROUP_TABLE_SECONDS, NEARBY
from jobs.snapshots.polls import CONSUMER_NOT_ONLINE, NOT_ONLINE_MESSAGE
from jobs.snapshots.topic_routes import (
    GLOBAL_SCOPE,
    NO_ROUTE_MESSAGE,
    TOPIC_NOT_EXIST,
    mock_broker_name,
)
from rebalance_core.state import BROADCASTING

Row = dict[str, Any]


@dataclass(frozen=True)
class GroupRows:
    """The rows of one group in one cluster, with the columns of the snapshot tables.

    ``topic_routes`` has those of every topic that was given.
    """

    heartbeats: list[Row]
    broker_polls: list[Row]
    topic_routes: list[Row]


def make_group_rows(records: Sequence[Record], cluster: str, group: str) -> GroupRows:
    """The rows of a group from the records of its dumps."""
    here = [record for record in records if record.cluster == cluster]
    polls = _latest_polls(here, group)
    return GroupRows(
        heartbeats=_heartbeats(here, polls, group),
        broker_polls=[_poll_row(poll) for poll in polls],
        topic_routes=_topic_routes(here),
    )


# ------------------------------------------------------------------ polls


def _latest(records: Iterable[Record], key: Callable[[Record], Any]) -> list[Record]:
    """Of the records with one key the one that was collected last."""
    last: dict[Any, Record] = {}
    for record in records:
        of_key = key(record)
        if of_key not in last or record.collected_at >= last[of_key].collected_at:
            last[of_key] = record
    return list(last.values())


def _latest_polls(records: Sequence[Record], group: str) -> list[Record]:
    return _latest(
        (
            record
            for record in records
            if record.kind == CONSUMER_CONNECTION and record.envelope["consumer_group"] == group
        ),
        lambda poll: (poll.snapshot_time, *_broker(poll)),
    )


def _broker(record: Record) -> tuple[str, int]:
    return record.envelope["broker_name"], record.envelope["broker_id"]


def _outcome(poll: Record) -> str:
    if poll.code is None:
        return ANSWERED
    says_so = poll.message is not None and re.search(NOT_ONLINE_MESSAGE, poll.message)
    return NOT_ONLINE if poll.code == CONSUMER_NOT_ONLINE or says_so else NO_ANSWER


def _poll_row(poll: Record) -> Row:
    broker_name, broker_id = _broker(poll)
    outcome = _outcome(poll)
    return {
        "cluster": poll.cluster,
        "snapshot_time": poll.snapshot_time,
        "broker_name": broker_name,
        "broker_id": broker_id,
        "consumer_group": poll.envelope["consumer_group"],
        "outcome": outcome,
        "connections": len(poll.body["connectionSet"]) if outcome == ANSWERED else 0,
    }


# ------------------------------------------------------------------ heartbeats


class _History:
    """What happened to one connection or client, in time."""

    def __init__(self) -> None:
        self._values: list[tuple[datetime, Any]] = []
        self._times: list[datetime] | None = None

    def add(self, time: datetime, value: Any) -> None:
        if value is not None:
            self._values.append((time, value))
            self._times = None

    def before(self, time: datetime) -> Any:
        """The last value up to the time; None where there is none."""
        number = self._number(time)
        return self._values[number - 1][1] if number else None

    def nearest(self, time: datetime) -> Any:
        """The last value up to the time, else the first one after it."""
        value = self.before(time)
        return self._values[0][1] if value is None and self._values else value

    def _number(self, time: datetime) -> int:
        if self._times is None:
            self._values.sort(key=lambda each: each[0])
            self._times = [each[0] for each in self._values]
        return bisect_right(self._times, time)


class _Histories(dict[Any, _History]):
    def __missing__(self, key: Any) -> _History:
        self[key] = _History()
        return self[key]


def _heartbeats(records: Sequence[Record], polls: Sequence[Record], group: str) -> list[Row]:
    own, elsewhere, beats = _own_words(records, group)
    clients = _client_words(records, group)
    tables = [
        (poll.collected_at, _subscriptions((poll.body.get("subscriptionTable") or {}).values()))
        for poll in polls
        if _outcome(poll) == ANSWERED
    ]
    rows = []
    for poll in polls:
        if _outcome(poll) != ANSWERED:
            continue
        time = poll.collected_at
        for connection in poll.body["connectionSet"]:
            client_id, client_addr = connection["clientId"], connection["clientAddr"]
            key = (*_broker(poll), client_id, client_addr)
            of_client = {
                name: histories[client_id].nearest(time) for name, histories in clients.items()
            }
            said = own[key].nearest(time) or {}
            info = of_client["info"] or {}
            also_said = elsewhere[client_id].nearest(time) or {}
            subscriptions, source = said.get("subscriptions"), "HEARTBEAT"
            if subscriptions is None:
                subscriptions, source = info.get("subscriptions"), "RUNNING_INFO"
            if subscriptions is None:
                subscriptions, source = also_said.get("subscriptions"), "HEARTBEAT"
            if subscriptions is None:
                subscriptions, source = _around(tables, time), "GROUP_TABLE"
            strategy, strategy_source = of_client["seen"] or (None, None)
            if strategy == NEARBY and of_client["nearby"] is not None:
                strategy = of_client["nearby"]
            rows.append(
                {
                    "cluster": poll.cluster,
                    "snapshot_time": poll.snapshot_time,
                    "broker_name": key[0],
                    "broker_id": key[1],
                    "consumer_group": group,
                    "client_id": client_id,
                    "client_addr": client_addr,
                    "language": connection.get("language"),
                    "version": connection.get("version"),
                    "consume_type": said.get("consume_type")
                    or info.get("consume_type")
                    or also_said.get("consume_type")
                    or poll.body.get("consumeType"),
                    "message_model": said.get("message_model")
                    or info.get("message_model")
                    or also_said.get("message_model")
                    or poll.body.get("messageModel"),
                    "subscriptions": subscriptions,
                    "subscription_source": source,
                    "strategy": strategy,
                    "strategy_source": strategy_source,
                    "client_rebalance": of_client["rebalance"],
                    "pull_consumer": of_client["pulls"],
                    "last_heartbeat_at": beats[key].before(time),
                }
            )
    return rows


def _own_words(records: Sequence[Record], group: str) -> tuple[_Histories, _Histories, _Histories]:
    """By connection what its full heartbeats said of the group, by client what they first said
    over any, and by connection when each heartbeat came."""
    own, elsewhere, beats = _Histories(), _Histories(), _Histories()
    first_said: dict[tuple[str, str], tuple[datetime, Row]] = {}
    for record in records:
        if record.kind != HEARTBEAT:
            continue
        key = (*_broker(record), record.body["clientID"], record.envelope["client_addr"])
        for data in record.body.get("consumerDataSet") or ():
            if data["groupName"] != group:
                continue
            beats[key].add(record.collected_at, record.collected_at)
            subscriptions = _subscriptions(data.get("subscriptionDataSet") or ())
            # Heartbeat V2 leaves the subscriptions out of most heartbeats, and says so.
            if subscriptions or not record.body.get("withoutSub"):
                said = {
                    "consume_type": data.get("consumeType"),
                    "message_model": data.get("messageModel"),
                    "subscriptions": subscriptions,
                }
                own[key].add(record.collected_at, said)
                word = record.body["clientID"], repr(said)
                if word not in first_said or record.collected_at < first_said[word][0]:
                    first_said[word] = record.collected_at, said
    for (client_id, _), (time, said) in first_said.items():
        elsewhere[client_id].add(time, said)
    return own, elsewhere, beats


def _client_words(records: Sequence[Record], group: str) -> dict[str, _Histories]:
    """By what is told, and by client id: what running infos and log lines said."""
    told = {name: _Histories() for name in ("info", "seen", "nearby", "rebalance", "pulls")}
    for record in records:
        time = record.collected_at
        if record.kind == CONSUMER_RUNNING_INFO and record.code is None:
            client_id = record.envelope["client_id"]
            properties = record.body.get("properties") or {}
            subscriptions = record.body.get("subscriptionSet")
            told["info"][client_id].add(
                time,
                {
                    "consume_type": properties.get("PROP_CONSUME_TYPE"),
                    "message_model": properties.get("messageModel"),
                    "subscriptions": None
                    if subscriptions is None
                    else _subscriptions(subscriptions),
                },
            )
            told["rebalance"][client_id].add(time, _client_rebalance(properties))
            if record.body.get("properties") is not None:
                told["pulls"][client_id].add(time, "registerTopics" in properties)
            strategy = _strategy_name(properties.get("allocateMessageQueueStrategy"))
            source = RUNNING_INFO_SOURCE
        elif (
            record.kind == CLIENT_LOG
            and record.rebalance is not None
            and record.rebalance.consumer_group == group
        ):
            client_id = record.rebalance.client_id
            if record.rebalance.by_broker:
                told["rebalance"][client_id].add(time, False)
            strategy, source = record.rebalance.strategy, CLIENT_LOG_SOURCE
        else:
            continue
        if strategy is not None:
            told["seen"][client_id].add(time, (strategy, source))
            if strategy.startswith(NEARBY + "-"):
                told["nearby"][client_id].add(time, strategy)
    return told


def _strategy_name(text: str | None) -> str | None:
    if text is None:
        return None
    class_name = re.sub("@[^@]*$", "", text)
    return STRATEGY_CLASSES.get(class_name.removeprefix(STRATEGY_PACKAGE), class_name)


def _client_rebalance(properties: Mapping[str, str]) -> bool | None:
    own = _boolean(properties.get("clientRebalance"))
    if own is None:
        return None
    orderly = _boolean(properties.get("PROP_CONSUMEORDERLY"))
    return own or bool(orderly) or properties.get("messageModel") == BROADCASTING


def _boolean(text: str | None) -> bool | None:
    return {"true": True, "false": False}.get((text or "").lower())


def _subscriptions(data: Iterable[Mapping[str, Any]]) -> list[Row]:
    """As ``subscriptions.subscriptions_of``: sorted, each once."""
    distinct = {
        (
            each["topic"],
            "TAG" if each.get("expressionType") is None else each["expressionType"],
            "*" if each.get("subString") is None else each["subString"],
        )
        for each in data
        if each.get("topic") is not None
    }
    names = ("topic", "expression_type", "expression")
    return [dict(zip(names, each, strict=True)) for each in sorted(distinct)]


def _around(tables: Sequence[tuple[datetime, list[Row]]], time: datetime) -> list[Row]:
    """All that the group's tables showed around a time."""
    near = {
        tuple(each.values())
        for polled_at, subscriptions in tables
        if abs((polled_at - time).total_seconds()) <= GROUP_TABLE_SECONDS
        for each in subscriptions
    }
    names = ("topic", "expression_type", "expression")
    return [dict(zip(names, each, strict=True)) for each in sorted(near)]


# ------------------------------------------------------------------ topic routes


def _topic_routes(records: Sequence[Record]) -> list[Row]:
    routes = _latest(
        (record for record in records if record.kind == TOPIC_ROUTE),
        lambda r: (r.snapshot_time, r.envelope["namesrv_addr"], r.envelope["topic"]),
    )
    rows = []
    for route in routes:
        if route.code is not None and not _is_unknown(route):
            continue
        nothing = {"broker_name": None, "broker_ids": None, "zone_name": None}
        for broker in _brokers(route.body) or [nothing]:
            rows.append(
                {
                    "cluster": route.cluster,
                    "snapshot_time": route.snapshot_time,
                    "namesrv_addr": route.envelope["namesrv_addr"],
                    "topic": route.envelope["topic"],
                    **dict.fromkeys(("perm", "read_queue_nums", "write_queue_nums"), 0),
                    **broker,
                }
            )
    return rows


def _is_unknown(route: Record) -> bool:
    says_so = route.message is not None and re.search(NO_ROUTE_MESSAGE, route.message)
    return route.code == TOPIC_NOT_EXIST or bool(says_so)


def _brokers(body: Mapping[str, Any]) -> list[Row]:
    addresses: dict[str, Mapping[str, Any]] = {}
    for each in body.get("brokerDatas") or ():
        addresses.setdefault(each["brokerName"], each)
    queues: dict[str, Mapping[str, Any]] = {}
    for each in body.get("queueDatas") or ():
        queues.setdefault(each["brokerName"], each)
    mappings = list((body.get("topicQueueMappingByBroker") or {}).values())
    most_queues: dict[str, int] = {}
    for each in mappings:
        scope = each.get("scope") or GLOBAL_SCOPE
        most_queues[scope] = max(most_queues.get(scope, 0), each.get("totalQueues") or 0)
    physical = [
        {
            "broker_name": name,
            "broker_ids": sorted(
                int(id_)
                for id_ in (addresses.get(name, {}).get("brokerAddrs") or {})
                if re.fullmatch(r"-?\d+", id_)
            ),
            "perm": queues.get(name, {}).get("perm") or 0,
            "read_queue_nums": 0 if mappings else queues.get(name, {}).get("readQueueNums") or 0,
            "write_queue_nums": 0 if mappings else queues.get(name, {}).get("writeQueueNums") or 0,
            "zone_name": addresses.get(name, {}).get("zoneName"),
        }
        for name in dict.fromkeys([*addresses, *queues])
    ]
    logical: list[Row] = [
        {
            "broker_name": mock_broker_name(scope),
            "broker_ids": [],
            "perm": 6,
            "read_queue_nums": number,
            "write_queue_nums": number,
            "zone_name": None,
        }
        for scope, number in most_queues.items()
    ]
    return physical + logical
