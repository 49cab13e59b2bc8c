"""states -> allocations and findings: the pandas UDF over ``rebalance_core``.

Runs in Spark's Python workers, so it imports nothing beyond pandas, NumPy and the core.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import pandas as pd
from pyspark.sql import types as T

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
    StrategyRule,
    StrategyRules,
    TopicRoute,
    evaluate,
    find_causes,
    find_faults,
    normalise_expression,
    parse_client_id,
)


def _fields(**types: T.DataType) -> T.StructType:
    return T.StructType([T.StructField(name, type_) for name, type_ in types.items()])


EVALUATION = _fields(
    coverage=STRING,
    reason=STRING,
    known=BOOLEAN,
    completeness=DOUBLE,
    nameservers=INT,
    members=INT,
    processes=INT,
    queues=INT,
    idle_clients=INT,
    imbalance=INT,
    strategy_source=STRING,
    findings=T.ArrayType(
        _fields(
            kind=STRING,
            broker_name=STRING,
            queue_id=INT,
            certainty=STRING,
            probability=DOUBLE,
            claimants=CLAIMANTS,
            causes=T.ArrayType(STRING),
        )
    ),
    faults=T.ArrayType(
        _fields(
            fault=STRING,
            evidence=STRING,
            remedy=STRING,
            client_ids=T.ArrayType(STRING),
            client_addrs=T.ArrayType(STRING),
            broker_names=T.ArrayType(STRING),
            queues_affected=INT,
            findings_cleared=INT,
            findings_left=INT,
            moves=MOVES,
        )
    ),
    allocations=T.ArrayType(
        _fields(
            client_id=STRING,
            processes=INT,
            subscribed=BOOLEAN,
            strategy=STRING,
            strategy_source=STRING,
            view_brokers=T.ArrayType(STRING),
            view_weight=DOUBLE,
            view_queues=INT,
            view_clients=INT,
            queues=QUEUES,
        )
    ),
    stacked=T.ArrayType(
        _fields(
            client_id=STRING,
            id_format=STRING,
            evidence=STRING,
            remedy=STRING,
            copies=INT,
            processes=INT,
            client_addrs=T.ArrayType(STRING),
            versions=T.ArrayType(INT),
            languages=T.ArrayType(STRING),
            slots_wasted=INT,
            queues_duplicated=INT,
            queues_orphaned=INT,
        )
    ),
    unreadable=QUEUES,
)

#: The fields of a state's members, of its brokers that said that the group is not online, and of
#: its route. Each is a column of its own, with an array a state (``member_client_id``): Arrow hands
#: over such arrays whole, while an array of structs is taken apart value by value.
MEMBER_FIELDS = (
    "broker_name",
    "broker_id",
    "client_id",
    "client_addr",
    "language",
    "version",  # -1: not known
    "message_model",
    "strategy",
    "client_rebalance",
    "is_expired",
    "chooses_queues",
    "subscribed",
    "expression_type",
    "expression",
)
OFFLINE_FIELDS = ("broker_name", "broker_id")
ROUTE_FIELDS = (
    "namesrv_addr",
    "broker_name",
    "broker_ids",
    "perm",  # where broker_name is null, what follows says nothing
    "read_queue_nums",
    "write_queue_nums",
    "zone_name",
)

#: What the UDF is given of a state, as one struct.
STATE_COLUMNS = (
    "consumer_group",
    "topic",
    "lasting",
    *[f"member_{field}" for field in MEMBER_FIELDS],
    *[f"offline_{field}" for field in OFFLINE_FIELDS],
    *[f"route_{field}" for field in ROUTE_FIELDS],
)


def to_state(row: Mapping[Any, Any]) -> State:
    """The core's state from one row of ``STATE_COLUMNS``."""
    return make_state(
        row["consumer_group"],
        row["topic"],
        lasting=bool(row["lasting"]),
        members=_records(row, "member", MEMBER_FIELDS),
        offline=_records(row, "offline", OFFLINE_FIELDS),
        routes=_records(row, "route", ROUTE_FIELDS),
    )


def make_state(
    consumer_group: str,
    topic: str,
    *,
    lasting: bool,
    members: Iterable[tuple[Any, ...]],
    offline: Iterable[tuple[Any, ...]],
    routes: Iterable[tuple[Any, ...]],
) -> State:
    """The core's state from records of ``MEMBER_FIELDS``, ``OFFLINE_FIELDS``, ``ROUTE_FIELDS``.

    A connection stands once in one broker's list: a row that repeats one (a poll that was
    collected twice) is dropped. Copies of an id have different addresses, and stay.
    """
    lists: dict[tuple[str, int], dict[tuple[str, str], Member]] = {}
    for number, (
        broker_name,
        broker_id,
        client_id,
        client_addr,
        language,
        version,
        message_model,
        strategy,
        client_rebalance,
        is_expired,
        chooses_queues,
        subscribed,
        expression_type,
        expression,
    ) in enumerate(members):
        # Without an address nothing tells a repeated row from a copy of the id: it counts.
        address = client_addr or f"(address {number} not known)"
        lists.setdefault((broker_name, broker_id), {})[client_id, address] = Member(
            client_id=client_id,
            client_addr=address,
            subscribed=subscribed,
            expression=normalise_expression(expression_type, expression) if subscribed else None,
            is_expired=is_expired,
            chooses_queues=chooses_queues,
            message_model=message_model or "CLUSTERING",
            strategy=strategy,
            client_rebalance=client_rebalance,
            language=language,
            version=None if version < 0 else version,
        )
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
        lasting=lasting,
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
        "known": evaluation.known,
        "completeness": evaluation.completeness,
        "nameservers": len(situation.state.topic_routes),
        "members": evaluation.members,
        "processes": evaluation.processes,
        "queues": evaluation.queues,
        "idle_clients": evaluation.idle_clients,
        "imbalance": evaluation.most_queues - evaluation.fewest_queues,
        "strategy_source": evaluation.strategy_source,
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
        "copies": stacked.copies,
        "processes": stacked.processes,
        "client_addrs": list(stacked.client_addrs),
        "versions": sorted({each.version for each in copies if each.version is not None}),
        "languages": sorted({each.language for each in copies if each.language is not None}),
        "slots_wasted": effect.slots_wasted,
        "queues_duplicated": effect.queues_duplicated,
        "queues_orphaned": effect.queues_orphaned,
    }


def evaluate_rows(
    rules: list[dict[str, Any]], default_strategy: str
) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """The function of the UDF, over plain values only: a frame of states in, of evaluations out."""

    def evaluate_batch(states: pd.DataFrame) -> pd.DataFrame:
        strategy_rules = StrategyRules([StrategyRule(**rule) for rule in rules], default_strategy)
        rows = []
        for row in states[list(STATE_COLUMNS)].to_dict("records"):
            situation = Situation(to_state(row), strategy_rules)
            rows.append(to_row(evaluate(situation.state, strategy_rules), situation))
        return pd.DataFrame(rows, columns=EVALUATION.names)

    return evaluate_batch
