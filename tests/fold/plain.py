"""The fold once more, as slow and plain as it can be said: what both folds are held against."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime
from typing import Any

import pyarrow as pa

from jobs.contents import HEARD_SECONDS, MEMBER_FACTS, ROUTE_FACTS, content_id, record_text
from jobs.judge.dossier import CLIENT, DOSSIER, PARTS
from tests.fold.fleets import EXPIRY_SECONDS, START

Parts = dict[tuple[str, str], set[Any]]


def fold_plainly(tables: dict[str, pa.Table]) -> dict[tuple[str, str], set[Any]]:
    """By cluster and group the parts of the dossier, as ``parts_of`` has them."""
    found: Parts = defaultdict(set)
    lists = _lists(tables)
    answers: dict[Any, dict[int, _Answer]] = defaultdict(dict)
    subscribed: dict[tuple[str, str], set[str]] = defaultdict(set)
    for (cluster, group, *broker, time), members in lists.items():
        list_id = content_id(record_text(MEMBER_FACTS, each) for each in members)
        answers[cluster, group, *broker][time] = ("ANSWERED", list_id, time)
        topics = {each[0] for member in members for each in member[-1]}
        connections = sorted(member[:2] for member in members)
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
        of_broker = answers[key]
        if (*key, time) in lists:
            of_broker[time] = (*of_broker[time][:2], max(collected, of_broker[time][2]))
        elif outcome != "ANSWERED":
            of_broker[time] = (outcome, None, collected)
    for (cluster, group, *broker), of_broker in answers.items():
        if of_broker:
            found[cluster, group].add(("poll", (*broker, tuple(sorted(of_broker.items())))))
    # Of a group that no list ever had a member of, the offsets tell the topics.
    polled = {key[:2] for key, of_broker in answers.items() if of_broker}
    for row in tables["queue_offsets"].to_pylist():
        group = (row["cluster"], row["consumer_group"])
        if group in polled - {key[:2] for key in lists}:
            subscribed[row["cluster"], row["topic"]].add(row["consumer_group"])
    _add_routes(found, tables["topic_routes"].to_pylist(), subscribed)
    _add_clients(found, tables["client_states"].to_pylist())
    _add_offsets(found, tables["queue_offsets"].to_pylist())
    return dict(found)


def parts_of(dossiers: pa.Table) -> dict[tuple[str, str], set[Any]]:
    """By cluster and group the parts, with all that has no order sorted."""
    found: Parts = defaultdict(set)
    polls: dict[Any, dict[int, _Answer]] = defaultdict(dict)
    for row in dossiers.select(DOSSIER.names).to_pylist():
        group = (row.pop("cluster"), row.pop("consumer_group"))
        ((name, part),) = [(name, part) for name, part in row.items() if part is not None]
        if name == "poll":
            _add_poll(polls[*group, part["broker_name"], part["broker_id"]], part)
            continue
        if name == "route":
            part["times"] = [each["snapshot_time"] for each in part["times"]]
        values = {key: _tuple(value) for key, value in part.items()}
        if name == "member_list":
            connections = zip(values.pop("client_ids"), values.pop("client_addrs"), strict=True)
            values["connections"] = tuple(sorted(connections))
        if name in ("client", "offsets"):
            together = [each for each in _TOGETHER if each in values]
            said = zip(*[values.pop(each) for each in together], strict=True)
            values["said"] = tuple(sorted(said, key=repr))
        else:
            for each in ("times", "topics", "brokers"):
                if each in values:
                    values[each] = tuple(sorted(values[each], key=repr))
        entry = (name, tuple(values.values()))
        assert entry not in found[group], "a run is one row"
        found[group].add(entry)
    for (cluster, consumer_group, *broker), of_broker in polls.items():
        if of_broker:
            entry = ("poll", (*broker, tuple(sorted(of_broker.items()))))
            found[cluster, consumer_group].add(entry)
    return dict(found)


#: The outcome, the id of the list, and when it was collected.
_Answer = tuple[str, str | None, int]


def _add_poll(of_broker: dict[int, _Answer], run: dict[str, Any]) -> None:
    """What a broker answered in each snapshot, whichever of its runs says so.

    A list counts over another outcome. Of an answer the time may come without the list.
    """
    for each in run["times"]:
        time = each["snapshot_time"]
        collected = each["collected_at"] or time
        outcome, list_id, before = of_broker.get(time, ("ANSWERED", None, 0))
        if run["list_id"] is not None or (run["outcome"] != "ANSWERED" and list_id is None):
            outcome, list_id = run["outcome"], run["list_id"]
        of_broker[time] = (outcome, list_id, max(before, collected))


_TOGETHER = ("times", "observed_at", "broker_offsets", "consumer_offsets")


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
        lists[*key, _micros(row["snapshot_time"])].append(member)
    return lists


def _add_routes(found: Parts, rows: list[Any], subscribed: dict[tuple[str, str], set[str]]) -> None:
    routes: dict[Any, list[Any]] = defaultdict(list)
    for row in rows:
        key = (row["cluster"], row["topic"], row["namesrv_addr"], _micros(row["snapshot_time"]))
        brokers = routes[key]
        if row["broker_name"] is not None:
            ids = row["broker_ids"]
            row["broker_ids"] = None if ids is None else sorted(ids)
            brokers.append(tuple(_tuple(row[fact.name]) for fact in ROUTE_FACTS))
    runs: dict[Any, set[int]] = defaultdict(set)
    for (cluster, topic, namesrv_addr, time), brokers in routes.items():
        route_id = content_id(record_text(ROUTE_FACTS, each) for each in brokers)
        in_order = tuple(sorted(brokers, key=repr))
        runs[cluster, topic, namesrv_addr, route_id, in_order].add(time)
    for (cluster, topic, *said), times in runs.items():
        nobody = {topic.removeprefix("%RETRY%") if topic.startswith("%RETRY%") else ""}
        for group in subscribed.get((cluster, topic), nobody):
            found[cluster, group].add(("route", (topic, *said, tuple(sorted(times)))))


def _add_clients(found: Parts, rows: list[Any]) -> None:
    said: dict[Any, list[Any]] = defaultdict(list)
    for row in rows:
        at = row["logged_at" if row["source"] == "CLIENT_LOG" else "snapshot_time"]
        row["start_timestamp"] = _micros(row["start_timestamp"])
        for queue in row["queues"] or ():
            del queue["last_pull_at"]
        names = [field.name for field in CLIENT if field.name not in ("times", "observed_at")]
        key = (row["cluster"], row["consumer_group"], *[_tuple(row[name]) for name in names])
        said[key].append((_micros(at), _micros(row["observed_at"])))
    for (cluster, group, *values), times in said.items():
        found[cluster, group].add(("client", (*values, tuple(sorted(times, key=repr)))))


def _add_offsets(found: Parts, rows: list[Any]) -> None:
    polls: dict[Any, list[Any]] = defaultdict(list)
    for row in rows:
        names = ("cluster", "consumer_group", "topic", "broker_name", "queue_id")
        poll = (_micros(row["snapshot_time"]), row["broker_offset"], row["consumer_offset"])
        polls[tuple(row[name] for name in names)].append(poll)
    for (cluster, group, *queue), of_queue in polls.items():
        found[cluster, group].add(("offsets", (*queue, tuple(sorted(of_queue, key=repr)))))


assert set(PARTS) == {"poll", "member_list", "route", "client", "offsets", "earlier"}
