"""The fold once more, as slow and plain as it can be said: what the kernel is held against."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import astuple
from datetime import datetime
from operator import itemgetter
from typing import Any

import pyarrow as pa

from jobs.declared.contents import HEARD_SECONDS, MEMBER_FACTS, ROUTE_FACTS, content_id, record_text
from jobs.declared.dossier import ClientRun, Dossier
from jobs.fold.numbers import NO_NUMBER
from tests.fold.fleets import EXPIRY_SECONDS, START

_FACTS = [fact.name for fact in MEMBER_FACTS]
#: A member as the dossier's ``ListedMembers`` have it.
_CONNECTION = itemgetter(
    *map(_FACTS.index, ("client_id", "client_addr", "language", "subscriptions"))
)
Parts = dict[tuple[str, str], set[Any]]


def fold_plainly(tables: dict[str, pa.Table]) -> dict[tuple[str, str], set[Any]]:
    """By cluster and group the parts of the dossier, as ``parts_of`` has them."""
    found: Parts = defaultdict(set)
    lists = _lists(tables)
    answers: dict[Any, _Said] = defaultdict(lambda: defaultdict(list))
    subscribed: dict[tuple[str, str], set[str]] = defaultdict(set)
    for (cluster, group, *broker, time), members in lists.items():
        list_id = content_id(record_text(MEMBER_FACTS, each) for each in members)
        answers[cluster, group, *broker][time].append(("ANSWERED", list_id, time))
        topics = {each[0] for member in members for each in member[-1]}
        connections = sorted(map(_CONNECTION, members), key=repr)
        content = (list_id, tuple(sorted(topics, key=repr)), tuple(connections))
        found[cluster, group].add(("member_list", content))
        for topic in topics:
            subscribed[cluster, topic].add(group)
    for row in tables["broker_polls"].to_pylist():
        key = (row["cluster"], row["consumer_group"], row["broker_name"], row["broker_id"])
        outcome = row["outcome"]
        if outcome == "ANSWERED" and row["connections"] == 0:
            outcome = "NOT_ONLINE"
        time = _micros(row["snapshot_time"])
        collected = _micros(row["collected_at"]) or time
        answers[key][time].append((outcome, None, collected))
    for (cluster, group, *broker), said in answers.items():
        found[cluster, group].add(("poll", (*broker, _what_counts(said))))
    # Of a group whose lists have no topic, the offsets tell the topics, and what members took.
    listed = {(cluster, group) for (cluster, _), groups in subscribed.items() for group in groups}
    without = {key[:2] for key in answers} - listed
    shown = [(row, row["topic"]) for row in tables["queue_offsets"].to_pylist()]
    for row in tables["client_states"].to_pylist():
        if (row["source"], row["consume_type"]) == ("RUNNING_INFO", "CONSUME_ACTIVELY"):
            shown += [(row, queue["topic"]) for queue in row["queues"] or ()]
    for row, topic in shown:
        if (row["cluster"], row["consumer_group"]) in without:
            subscribed[row["cluster"], topic].add(row["consumer_group"])
    _add_routes(found, tables["topic_routes"].to_pylist(), subscribed)
    _add_clients(found, tables["client_states"].to_pylist())
    _add_offsets(found, tables["queue_offsets"].to_pylist())
    return dict(found)


def parts_of(dossiers: Iterable[Dossier]) -> dict[tuple[str, str], set[Any]]:
    """By cluster and group the parts, with all that has no order sorted."""
    found: Parts = defaultdict(set)
    for dossier in dossiers:
        parts = [*_polls(dossier), *_contents(dossier), *_reports(dossier)]
        assert len(set(parts)) == len(parts), "a run is there once"
        found[dossier.cluster, dossier.consumer_group].update(parts)
    return dict(found)


def _polls(dossier: Dossier) -> Iterator[Any]:
    polls: dict[Any, _Said] = defaultdict(lambda: defaultdict(list))
    for run in dossier.polls:
        is_list = run.answer not in _LEAST
        answer = ("ANSWERED", run.answer) if is_list else (run.answer, None)
        for time, collected in zip(run.times, run.answered_at, strict=True):
            polls[run.broker][time].append((*answer, collected))
    for broker, said in polls.items():
        yield "poll", (*broker, _what_counts(said))


def _contents(dossier: Dossier) -> Iterator[Any]:
    for list_id, topics in dossier.list_topics.items():
        connections = sorted(map(_CONNECTION, dossier.list_records[list_id]), key=repr)
        listed = sorted(zip(*dossier.list_members[list_id](), strict=True), key=repr)
        assert listed == [each[:2] for each in connections]
        yield "member_list", (list_id, tuple(sorted(topics, key=repr)), tuple(connections))
    for topic, runs in dossier.routes.items():
        for run in runs:
            brokers = tuple(sorted(map(astuple, run.brokers), key=repr))
            yield "route", (topic, run.namesrv_addr, run.route_id, brokers, run.times)


def _reports(dossier: Dossier) -> Iterator[Any]:
    for *values, queues, times in dossier.clients:
        held = None if queues is None else tuple(map(tuple, queues))
        yield "client", (*values, held, tuple(sorted(times, key=repr)))
    for topic_and_mode in dossier.request_modes.items():
        yield "mode", topic_and_mode
    for disabled in dossier.consume_disabled.items():
        yield "disabled", disabled
    for broker_name, begins in dossier.without_offsets.items():
        yield "without", (broker_name, tuple(sorted(begins.items())))
    for queues_of_topic in dossier.offsets.values():
        for topic, broker, queue, *lists in queues_of_topic:
            polls = zip(*[each.tolist() for each in lists], strict=True)
            yield "offsets", (topic, broker, queue, tuple(sorted(polls, key=repr)))


#: The outcome, the id of the list, and when it was collected.
_Answer = tuple[str, str | None, int]
#: By snapshot all that a broker answered in it.
_Said = dict[int, list[_Answer]]
_LEAST = ("ANSWERED", "NO_ANSWER", "NOT_ONLINE")


def _what_counts(said: _Said) -> tuple[tuple[int, _Answer], ...]:
    """Of each snapshot what counts of the answers, and when the last one came that gave it.

    A list counts over another outcome. Of an answer the time may come without the list.
    """
    counting = []
    for time, answers in sorted(said.items()):
        rank, outcome, list_id = max((_rank(each), *each[:2]) for each in answers)
        came = [each[2] for each in answers if _rank(each) in (0, rank)]
        counting.append((time, (outcome, list_id, max(came))))
    return tuple(counting)


def _rank(answer: _Answer) -> int:
    outcome, list_id, _ = answer
    return _LEAST.index(outcome) if list_id is None else len(_LEAST)


def _micros(time: datetime | None) -> int | None:
    return None if time is None else (time - START) // _MICRO + _START


_MICRO = datetime.resolution
_START = int(START.timestamp()) * 1_000_000


def _tuple(value: Any) -> Any:
    if isinstance(value, dict):
        return tuple(_tuple(each) for each in value.values())
    return tuple(_tuple(each) for each in value) if isinstance(value, list) else value


def _lists(tables: dict[str, pa.Table]) -> dict[Any, list[tuple[Any, ...]]]:
    lists: dict[Any, list[tuple[Any, ...]]] = defaultdict(list)
    for row in tables["heartbeats"].to_pylist():
        silent, last = None, row["last_heartbeat_at"]
        if last is not None:
            silent = (row["snapshot_time"] - last).total_seconds()
        assigns = (
            row["consume_type"] == "CONSUME_ACTIVELY"
            and not row["subscriptions"]
            and row["subscription_source"] not in (None, "GROUP_TABLE")
        )
        row["is_expired"] = None
        stopped = row["is_silent"] or (silent is not None and silent > EXPIRY_SECONDS)
        if stopped or (silent is not None and silent <= HEARD_SECONDS):
            row["is_expired"] = stopped
        row["chooses_queues"] = bool(row["pull_consumer"]) or assigns
        key = [row[name] for name in ("cluster", "consumer_group", "broker_name", "broker_id")]
        member = tuple(_tuple(row[fact.name]) for fact in MEMBER_FACTS)
        of_broker = lists[*key, _micros(row["snapshot_time"])]
        # A connection is once in a list.
        if member not in of_broker:
            of_broker.append(member)
    return lists


def _add_routes(found: Parts, rows: list[Any], subscribed: dict[tuple[str, str], set[str]]) -> None:
    routes: dict[Any, list[Any]] = defaultdict(list)
    for row in rows:
        key = (row["cluster"], row["topic"], row["namesrv_addr"], _micros(row["snapshot_time"]))
        brokers = routes[key]
        if row["broker_name"] is not None:
            ids = row["broker_ids"]
            row["broker_ids"] = None if ids is None else sorted(ids)
            broker = tuple(_tuple(row[fact.name]) for fact in ROUTE_FACTS)
            if broker not in brokers:
                brokers.append(broker)
    runs: dict[Any, set[int]] = defaultdict(set)
    for (cluster, topic, namesrv_addr, time), brokers in routes.items():
        # Of addresses alone no other route is made.
        deciding = [each[:6] for each in brokers]
        route_id = content_id(record_text(ROUTE_FACTS[:6], each) for each in deciding)
        in_order = tuple(sorted(deciding, key=repr))
        runs[cluster, topic, namesrv_addr, route_id, in_order].add(time)
    for (cluster, topic, *said), times in runs.items():
        nobody = {topic.removeprefix("%RETRY%") if topic.startswith("%RETRY%") else ""}
        for group in subscribed.get((cluster, topic), nobody):
            found[cluster, group].add(("route", (topic, *said, tuple(sorted(times)))))


def _add_clients(found: Parts, rows: list[Any]) -> None:
    said: dict[Any, set[Any]] = defaultdict(set)
    modes: dict[Any, set[str]] = defaultdict(set)
    disabled: dict[Any, set[Any]] = defaultdict(set)
    without: dict[Any, dict[Any, Any]] = defaultdict(dict)
    for row in rows:
        group = row["cluster"], row["consumer_group"]
        if row["source"] == "REQUEST_MODE":
            modes[*group, row["topic"]].add("PULL" if row["client_rebalance"] else "POP")
            continue
        if row["source"] == "CONSUME_DISABLED":
            disabled[*group, row["broker_name"]].add(_micros(row["snapshot_time"]))
            continue
        if row["source"] == "NO_OFFSETS":
            of_broker, time = without[*group, row["broker_name"]], _micros(row["snapshot_time"])
            begins = row["consume_from_where"] or ""
            of_broker[time] = max(begins, of_broker.get(time) or "") or None
            continue
        at = row["logged_at" if row["source"] == "CLIENT_LOG" else "snapshot_time"]
        row["start_timestamp"] = _micros(row["start_timestamp"])
        values = [row[name] for name in ClientRun._fields[:-2]]
        said[*group, *values, _held(row)].add((_micros(at), _micros(row["observed_at"])))
    for (cluster, group, *values), times in said.items():
        found[cluster, group].add(("client", (*values, tuple(sorted(times, key=repr)))))
    for (cluster, group, topic), of_topic in modes.items():
        found[cluster, group].add(("mode", (topic, min(of_topic))))
    for (cluster, group, broker_name), times in disabled.items():
        found[cluster, group].add(("disabled", (broker_name, tuple(sorted(times)))))
    for (cluster, group, broker_name), begins_at in without.items():
        found[cluster, group].add(("without", (broker_name, tuple(sorted(begins_at.items())))))


def _held(row: Any) -> Any:
    if row["queues"] is None:
        return None
    activities = [*(row["activities"] or []), *[None] * len(row["queues"])]
    names = ("topic", "broker_name", "queue_id")
    return tuple(
        (*[queue[name] for name in names], bool(queue["dropped"]), activity)
        for queue, activity in zip(row["queues"], activities, strict=False)
    )


def _add_offsets(found: Parts, rows: list[Any]) -> None:
    polls: dict[Any, set[Any]] = defaultdict(set)
    for row in rows:
        names = ("cluster", "consumer_group", "topic", "broker_name", "queue_id")
        rate = row["given_per_1000_seconds"]
        given = NO_NUMBER if rate is None else rate
        poll = (_micros(row["snapshot_time"]), row["broker_offset"], row["consumer_offset"], given)
        polls[tuple(row[name] for name in names)].add(poll)
    for (cluster, group, *queue), of_queue in polls.items():
        found[cluster, group].add(("offsets", (*queue, tuple(sorted(of_queue, key=repr)))))
