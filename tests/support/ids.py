"""Snapshot tables with content ids, from tables that have rows alone: as ``ingest`` writes them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from jobs.declared.contents import MEMBER_FACTS, ROUTE_FACTS, SUBSCRIPTION_FIELDS
from jobs.fold.checked_rows import TableReading
from jobs.fold.kernel import member_runs, poll_runs, route_runs
from jobs.fold.numbers import TableSource
from jobs.fold.runs import Contents, reunite
from jobs.schemas import (
    ANSWERED,
    BROKER_POLLS,
    HEARTBEATS,
    MEMBER_LISTS,
    ROUTE_CONTENTS,
    ROUTE_POLLS,
    TOPIC_ROUTES,
)

_POLL = ("cluster", "consumer_group", "broker_name", "broker_id")


def ids_locally(
    heartbeats: TableSource,
    broker_polls: TableSource | None,
    topic_routes: TableSource,
    heartbeat_expiry_seconds: int,
) -> dict[str, pa.Table]:
    """By name ``broker_polls``, ``member_lists``, ``route_polls`` and ``route_contents``.

    One poll for each broker and snapshot that is known to have been asked.
    """
    lists = reunite(
        whole(member_runs(TableReading(HEARTBEATS, [heartbeats]), heartbeat_expiry_seconds))
    )
    routes = reunite(whole(route_runs(TableReading(TOPIC_ROUTES, [topic_routes]))))
    runs = lists.runs.to_pylist()
    if broker_polls is not None:
        for part in poll_runs(TableReading(BROKER_POLLS, [broker_polls]), has_ids=False):
            runs += part.runs.to_pylist()
    polls: dict[tuple[Any, ...], dict[str, Any]] = {}
    for run in sorted(runs, key=lambda each: each["list_id"] is None):
        for time in run["times"]:
            place = {name: run[name] for name in _POLL} | {"snapshot_time": time["snapshot_time"]}
            of_list = {
                "outcome": run["outcome"],
                "connections": len(
                    lists.records.get(run["list_id"], "?" * (run["outcome"] == ANSWERED))
                ),
                "list_id": run["list_id"],
                "collected_at": None,
            }
            # The time of an answer comes in another run than its list, which comes first here; an
            # answer that contradicts the list has no time of it.
            poll = polls.setdefault(tuple(place.values()), place | of_list)
            if time["collected_at"] is not None and run["outcome"] == poll["outcome"]:
                poll["collected_at"] = max(time["collected_at"], poll["collected_at"] or 0)
    asked = [
        {name: run[name] for name in ROUTE_POLLS.schema.names if name in run} | time
        for run in routes.runs.to_pylist()
        for time in run["times"]
    ]
    return {
        "broker_polls": pa.Table.from_pylist(list(polls.values()), BROKER_POLLS.schema),
        "member_lists": pa.Table.from_pylist(member_list_rows(lists), MEMBER_LISTS.schema),
        "route_polls": pa.Table.from_pylist(asked, ROUTE_POLLS.schema),
        "route_contents": pa.Table.from_pylist(route_content_rows(routes), ROUTE_CONTENTS.schema),
    }


def whole(parts: Iterable[Contents]) -> Contents:
    """All parts of a slice as one."""
    every = list(parts)
    runs = pa.concat_tables([part.runs for part in every])
    return Contents(runs, {id_: each for part in every for id_, each in part.records.items()})


def member_list_rows(lists: Contents) -> list[dict[str, Any]]:
    """The rows of ``member_lists``."""
    named = {
        (run["cluster"], run["consumer_group"], run["list_id"])
        for run in lists.runs.to_pylist()
        if run["list_id"] is not None
    }
    return [
        {
            "cluster": cluster,
            "consumer_group": group,
            "list_id": list_id,
            "members": [_member(record) for record in lists.records[list_id]],
        }
        for cluster, group, list_id in sorted(named)
    ]


def route_content_rows(routes: Contents) -> list[dict[str, Any]]:
    """The rows of ``route_contents``."""
    names = [fact.name for fact in ROUTE_FACTS]
    named = {(run["cluster"], run["topic"], run["route_id"]) for run in routes.runs.to_pylist()}
    return [
        {
            "cluster": cluster,
            "topic": topic,
            "route_id": route_id,
            "brokers": [dict(zip(names, each, strict=True)) for each in routes.records[route_id]],
        }
        for cluster, topic, route_id in sorted(named)
    ]


def _member(record: tuple[Any, ...]) -> dict[str, Any]:
    member = dict(zip([fact.name for fact in MEMBER_FACTS], record, strict=True))
    for name, fields in (
        ("subscriptions", SUBSCRIPTION_FIELDS),
        ("doubtful_topics", ("topic", "percent")),
    ):
        if member[name] is not None:
            member[name] = [each and dict(zip(fields, each, strict=True)) for each in member[name]]
    return member
