"""The fold once more, as slow and plain as it can be said: what both folds are held against."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime
from typing import Any

import pyarrow as pa

from jobs.contents import MEMBER_FACTS, ROUTE_FACTS, content_id, record_text
from jobs.judge.dossier import CLIENT, DOSSIER, PARTS
from tests.fold.fleets import EXPIRY_SECONDS, START

Parts = dict[tuple[str, str], set[Any]]


def fold_plainly(tables: dict[str, pa.Table]) -> dict[tuple[str, str], set[Any]]:
    """By cluster and group the parts of the dossier, as ``parts_of`` has them."""
    found: Parts = defaultdict(set)
    lists = _lists(tables)
    runs: dict[Any, set[int]] = defaultdict(set)
    subscribed: dict[tuple[str, str], set[str]] = defaultdict(set)
    for (cluster, group, *broker, time), members in lists.items():
        list_id = content_id(record_text(MEMBER_FACTS, each) for each in members)
        runs[cluster, group, *broker, "ANSWERED", list_id].add(time)
        topics = {each[0] for member in members for each in member[-1]}
        found[cluster, group].add(("member_list", (list_id, tuple(sorted(topics, key=repr)))))
        for topic in topics:
            subscribed[cluster, topic].add(group)
    for row in tables["broker_polls"].to_pylist():
        key = (row["cluster"], row["consumer_group"], row["broker_name"], row["broker_id"])
        outcome = row["outcome"]
        if outcome == "ANSWERED" and row["connections"] == 0:
            outcome = "NOT_ONLINE"
        time = _micros(row["snapshot_time"])
        if outcome != "ANSWERED" and (*key, time) not in lists:
            runs[*key, outcome, None].add(time)
    for (cluster, group, *said), times in runs.items():
        found[cluster, group].add(("poll", (*said, tuple(sorted(times)))))
    _add_routes(found, tables["topic_routes"].to_pylist(), subscribed)
    _add_clients(found, tables["client_states"].to_pylist())
    _add_offsets(found, tables["queue_offsets"].to_pylist())
    return dict(found)


def parts_of(dossiers: pa.Table) -> dict[tuple[str, str], set[Any]]:
    """By cluster and group the parts, with all that has no order sorted."""
    found: Parts = defaultdict(set)
    for row in dossiers.select(DOSSIER.names).to_pylist():
        group = (row.pop("cluster"), row.pop("consumer_group"))
        ((name, part),) = [(name, part) for name, part in row.items() if part is not None]
        values = {key: _tuple(value) for key, value in part.items()}
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
    return dict(found)


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
        row["is_expired"] = silent is not None and silent > EXPIRY_SECONDS
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
