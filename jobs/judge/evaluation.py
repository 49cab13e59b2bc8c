"""situations -> evaluations: the core's verdict on each, once however often it was so.

A state is made of a situation, and a row of the core's verdict on it. Spark does both by a pandas
UDF over columns (``udf``), the driver of a small input situation by situation (``steps``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from operator import itemgetter
from typing import Any

import pyarrow as pa

from jobs.contents import MEMBER_FACTS, ROUTE_FACTS
from jobs.schemas import BOOLEAN, CLAIMANTS, DOUBLE, INT, MOVES, QUEUES, STRING
from rebalance_core import (
    ClientList,
    Evaluation,
    Fault,
    Member,
    MessageQueue,
    RouteBroker,
    Situation,
    StackedEffect,
    State,
    StrategyRules,
    TopicRoute,
    evaluate,
    find_causes,
    find_faults,
    normalise_expression,
    parse_client_id,
)
from rebalance_core.state import CLUSTERING, ProcessCount
from rebalance_core.texts import Text, encode

#: The facts of a member whatever the topic; what it subscribes to is narrowed to the state's topic.
#: A version of -1: the list has none.
ANY_TOPIC_FIELDS = tuple(
    fact.name for fact in MEMBER_FACTS if fact.name not in ("doubtful_topics", "subscriptions")
)


def _fields(**types: pa.DataType) -> pa.StructType:
    return pa.struct([pa.field(name, type_) for name, type_ in types.items()])


#: A column ``texts`` has what the texts beside it are made of: ``rebalance_core.texts.encode``.
EVALUATION = _fields(
    coverage=STRING,
    reason=STRING,
    texts=STRING,
    shows_owners=BOOLEAN,
    completeness=DOUBLE,
    nameservers=INT,
    members=INT,
    processes=INT,
    queues=INT,
    idle_clients=INT,
    imbalance=INT,
    strategy_source=STRING,
    subscription_source=STRING,
    findings=pa.list_(
        _fields(
            kind=STRING,
            broker_name=STRING,
            queue_id=INT,
            certainty=STRING,
            probability=DOUBLE,
            claimants=CLAIMANTS,
            causes=pa.list_(STRING),
        )
    ),
    faults=pa.list_(
        _fields(
            fault=STRING,
            evidence=STRING,
            remedy=STRING,
            texts=STRING,
            client_ids=pa.list_(STRING),
            client_addrs=pa.list_(STRING),
            broker_names=pa.list_(STRING),
            queues_affected=INT,
            findings_cleared=INT,
            findings_left=INT,
            moves=MOVES,
        )
    ),
    allocations=pa.list_(
        _fields(
            client_id=STRING,
            processes=INT,
            subscribed=BOOLEAN,
            strategy=STRING,
            strategy_source=STRING,
            view_brokers=pa.list_(STRING),
            view_weight=DOUBLE,
            view_queues=INT,
            view_clients=INT,
            queues=QUEUES,
        )
    ),
    stacked=pa.list_(
        _fields(
            client_id=STRING,
            id_format=STRING,
            evidence=STRING,
            remedy=STRING,
            texts=STRING,
            copies=INT,
            processes=INT,
            client_addrs=pa.list_(STRING),
            versions=pa.list_(INT),
            languages=pa.list_(STRING),
            slots_wasted=INT,
            queues_duplicated=INT,
            queues_orphaned=INT,
        )
    ),
    unreadable=QUEUES,
)

#: The fields of a state's members, of its brokers at which the group is not online, and of its
#: route. Each is a separate column, with an array a state (``member_client_id``): Arrow hands over
#: such arrays whole, while an array of structs is taken apart value by value.
MEMBER_FIELDS = (
    "broker_name",
    "broker_id",
    *ANY_TOPIC_FIELDS,
    "subscribed",
    "subscribed_percent",
    "expression_type",
    "expression",
)
_ADDR, _VERSION, _MODEL, _SUBSCRIBED, _TYPE, _EXPRESSION = map(
    MEMBER_FIELDS.index,
    ("client_addr", "version", "message_model", "subscribed", "expression_type", "expression"),
)


def _place(record: tuple[Any, ...]) -> tuple[Any, ...]:
    return (*record[:3], record[_ADDR] or str(record))


#: The fields of ``Member`` out of a record: by place, for there are millions of them.
_in_order = itemgetter(*map(MEMBER_FIELDS.index, Member._fields))

OFFLINE_FIELDS = ("broker_name", "broker_id")
#: What time shows of the members: see the core's ``State``.
PROCESS_COUNTS = pa.list_(_fields(client_id=STRING, processes=INT, because=STRING))
UNREACHABLE = pa.list_(_fields(client_id=STRING, broker_name=STRING))
COUNT_FIELDS = ProcessCount._fields
UNREACHABLE_FIELDS = ("client_id", "broker_name")
#: Where broker_name is null, the nameserver does not know the topic.
ROUTE_FIELDS = ("namesrv_addr", *[fact.name for fact in ROUTE_FACTS])

#: What the UDF is given of a state, as one struct.
STATE_COLUMNS = (
    "consumer_group",
    "topic",
    "request_mode",
    *[f"member_{field}" for field in MEMBER_FIELDS],
    *[f"offline_{field}" for field in OFFLINE_FIELDS],
    *[f"count_{field}" for field in COUNT_FIELDS],
    *[f"unreachable_{field}" for field in UNREACHABLE_FIELDS],
    *[f"route_{field}" for field in ROUTE_FIELDS],
)


def to_state(row: Mapping[Any, Any]) -> State:
    """The core's state from one row of ``STATE_COLUMNS``."""
    return make_state(
        row["consumer_group"],
        row["topic"],
        members=_records(row, "member", MEMBER_FIELDS),
        offline=_records(row, "offline", OFFLINE_FIELDS),
        routes=_records(row, "route", ROUTE_FIELDS),
        counts=_records(row, "count", COUNT_FIELDS),
        unreachable=_records(row, "unreachable", UNREACHABLE_FIELDS),
        request_mode=row["request_mode"],
    )


def make_state(
    consumer_group: str,
    topic: str,
    *,
    members: Iterable[tuple[Any, ...]],
    offline: Iterable[tuple[Any, ...]],
    routes: Iterable[tuple[Any, ...]],
    counts: Iterable[tuple[Any, ...]] = (),
    unreachable: Iterable[tuple[Any, ...]] = (),
    request_mode: str | None = None,
) -> State:
    """The core's state from records of ``MEMBER_FIELDS``, ``OFFLINE_FIELDS``, ``ROUTE_FIELDS``.

    A connection is once in one broker's list: a row that repeats one (a poll that was
    collected twice) is dropped. Copies of an id have different addresses, and stay.
    """
    lists: dict[tuple[str, int], dict[tuple[str, str], Member]] = {}
    # Sorted, for the order in which rows come, or a broker prints a set, has no meaning.
    for number, record in enumerate(sorted(members, key=_place)):
        values = list(record)
        # Without an address a repeated row looks like a copy of the id: it counts.
        values[_ADDR] = values[_ADDR] or Text("(address {number} not known)", number=number)
        values[_MODEL] = values[_MODEL] or CLUSTERING
        values[_VERSION] = None if values[_VERSION] < 0 else values[_VERSION]
        if values[_SUBSCRIBED]:
            values[_EXPRESSION] = normalise_expression(values[_TYPE], values[_EXPRESSION])
        member = Member._make(_in_order(values))
        of_broker = lists.setdefault((values[0], values[1]), {})
        key = (member.client_id, member.client_addr)
        of_broker[key] = min(of_broker[key], member, key=str) if key in of_broker else member
    brokers: dict[str, dict[str, RouteBroker]] = {}
    for (
        namesrv_addr,
        broker_name,
        ids,
        perm,
        read_queue_nums,
        write_queue_nums,
        zone_name,
    ) in routes:
        of_nameserver = brokers.setdefault(namesrv_addr, {})
        if broker_name is not None:
            of_nameserver[broker_name] = RouteBroker(
                broker_name=broker_name,
                broker_ids=None if ids is None else tuple(sorted(int(id_) for id_ in ids)),
                perm=perm,
                read_queue_nums=read_queue_nums,
                write_queue_nums=write_queue_nums,
                zone_name=zone_name,
            )
    return State(
        consumer_group=consumer_group,
        topic=topic,
        client_lists=tuple(
            ClientList(name, broker_id, tuple(of_list.values()))
            for (name, broker_id), of_list in lists.items()
        ),
        topic_routes=tuple(
            TopicRoute(namesrv_addr, tuple(of_nameserver.values()))
            for namesrv_addr, of_nameserver in sorted(brokers.items())
        ),
        offline_brokers=tuple((name, broker_id) for name, broker_id in offline),
        process_counts=tuple(
            # Every reason is a template without slots, so that a column needs no more than it.
            ProcessCount(client_id, int(processes), Text(because))
            for client_id, processes, because in counts
        ),
        unreachable=tuple((client_id, broker_name) for client_id, broker_name in unreachable),
        request_mode=request_mode,
    )


def _records(
    row: Mapping[Any, Any], prefix: str, fields: tuple[str, ...]
) -> Iterator[tuple[Any, ...]]:
    """The arrays of the fields, record by record, as plain Python values; none for null arrays."""
    arrays = [row[f"{prefix}_{field}"] for field in fields]
    if any(array is None for array in arrays):
        return iter(())
    return zip(*[array.tolist() for array in arrays], strict=True)


def _queues(queues: tuple[MessageQueue, ...]) -> list[dict[str, Any]]:
    return [{"broker_name": queue.broker_name, "queue_id": queue.queue_id} for queue in queues]


def to_row(evaluation: Evaluation, situation: Situation) -> dict[str, Any]:
    """One row of ``EVALUATION``; only a state with findings pays for their causes."""
    causes = find_causes(situation, evaluation)
    return {
        "coverage": evaluation.coverage,
        "reason": evaluation.reason,
        "texts": encode({"reason": evaluation.reason}),
        "shows_owners": evaluation.shows_owners,
        "completeness": evaluation.completeness,
        "nameservers": len(situation.state.topic_routes),
        "members": evaluation.members,
        "processes": evaluation.processes,
        "queues": evaluation.queues,
        "idle_clients": evaluation.idle_clients,
        "imbalance": evaluation.most_queues - evaluation.fewest_queues,
        "strategy_source": evaluation.strategy_source,
        "subscription_source": evaluation.subscription_source,
        "findings": [
            {
                "kind": finding.kind,
                "broker_name": finding.queue.broker_name,
                "queue_id": finding.queue.queue_id,
                "certainty": finding.certainty,
                "probability": finding.probability,
                "claimants": [
                    {
                        "client_id": claimant.client_id,
                        "processes": claimant.processes,
                        "probability": claimant.probability,
                    }
                    for claimant in finding.claimants
                ],
                "causes": list(causes.names(finding)),
            }
            for finding in evaluation.findings
        ],
        "faults": [_fault(each) for each in find_faults(situation, evaluation, causes)],
        "allocations": [
            {
                "client_id": allocation.client_id,
                "processes": allocation.processes,
                "subscribed": allocation.subscribed,
                "strategy": allocation.strategy,
                "strategy_source": allocation.strategy_source,
                "view_brokers": list(allocation.view_brokers),
                "view_weight": allocation.view_weight,
                "view_queues": allocation.view_queues,
                "view_clients": allocation.view_clients,
                "queues": _queues(allocation.queues),
            }
            for allocation in evaluation.allocations
        ],
        "stacked": _stacked(evaluation.stacked, situation.state),
        "unreadable": _queues(evaluation.unreadable),
    }


def _fault(fault: Fault) -> dict[str, Any]:
    return {
        "fault": fault.fault,
        "evidence": fault.evidence,
        "remedy": fault.remedy,
        "texts": encode({"evidence": fault.evidence, "remedy": fault.remedy}),
        "client_ids": list(fault.client_ids),
        "client_addrs": list(fault.client_addrs),
        "broker_names": list(fault.broker_names),
        "queues_affected": fault.queues_affected,
        "findings_cleared": fault.cleared,
        "findings_left": fault.left,
        "moves": [
            {
                "broker_name": move.queue.broker_name,
                "queue_id": move.queue.queue_id,
                "before": list(move.before),
                "after": list(move.after),
            }
            for move in fault.moves
        ],
    }


def _stacked(effects: tuple[StackedEffect, ...], state: State) -> list[dict[str, Any]]:
    copies: dict[str, list[Member]] = {effect.stacked.client_id: [] for effect in effects}
    if copies:
        for entry in state.client_lists:
            for member in entry.members:
                if member.client_id in copies:
                    copies[member.client_id].append(member)
    return [_stacked_id(effect, copies[effect.stacked.client_id]) for effect in effects]


def _stacked_id(effect: StackedEffect, copies: list[Member]) -> dict[str, Any]:
    stacked = effect.stacked
    parsed = parse_client_id(stacked.client_id)
    return {
        "client_id": stacked.client_id,
        "id_format": parsed.format.name,
        "evidence": effect.evidence,
        "remedy": effect.remedy,
        "texts": encode({"evidence": effect.evidence, "remedy": effect.remedy}),
        "copies": stacked.copies,
        "processes": stacked.processes,
        "client_addrs": list(stacked.client_addrs),
        "versions": sorted({each.version for each in copies if each.version is not None}),
        "languages": sorted({each.language for each in copies if each.language is not None}),
        "slots_wasted": effect.slots_wasted,
        "queues_duplicated": effect.queues_duplicated,
        "queues_orphaned": effect.queues_orphaned,
    }


def evaluate_state(state: State, rules: StrategyRules) -> dict[str, Any]:
    """The core's verdict on a state, as one row of ``EVALUATION``."""
    return to_row(evaluate(state, rules), Situation(state, rules))
