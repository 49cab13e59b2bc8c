"""Groups whose clients share queues (POP), from dumps to published tables.

The body is as a 5.1.4 broker answers request 402.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from tests.support.reports import PublishedReports
from tests.support.runs import audit_locally, ingest_locally, task
from tests.support.snapshots import CLUSTER, at, poll_line, route_body, route_line

RETRY = "%RETRY%G"


def mode_line(minute: int, modes: dict[str, str]) -> str:
    """What broker-a says of the topics of the group G."""
    of_group = {"consumerGroup": "G", "popShareQueueNum": 4}
    of_topics = {
        topic: {"G": {**of_group, "mode": mode, "topic": topic}} for topic, mode in modes.items()
    }
    times = dict.fromkeys(("snapshot_time", "collected_at"), at(60 * minute).isoformat())
    broker = {"broker_name": "broker-a", "broker_id": 0, "broker_addr": "h:1"}
    body = json.dumps({"messageRequestModeMap": of_topics})
    envelope = {"kind": "message_request_mode", "cluster": CLUSTER, "body": body}
    return json.dumps(envelope | times | broker)


def lines(modes: dict[str, str]) -> Iterator[str]:
    """Ten minutes of two processes with one client id, and a third with its own."""
    for minute in range(11):
        seconds = 60 * minute
        yield poll_line("x", "x", "z", topics=("T", "U", RETRY), seconds=seconds)
        for topic in ("T", "U", RETRY):
            yield route_line(route_body(3), seconds, topic=topic)
        if modes:
            yield mode_line(minute, modes)


def published(folder: Path, modes: dict[str, str]) -> PublishedReports:
    (folder / "dump.jsonl").write_text("".join(f"{each}\n" for each in lines(modes)))
    ingest_locally([str(folder / "dump.jsonl")], folder / "snapshots")
    return audit_locally(task(folder / "snapshots", folder / "reports"))


def coverages(of: PublishedReports) -> dict[str, str]:
    return {row["topic"]: row["coverage"] for row in of.rows("group_health")}


def found(of: PublishedReports) -> set[str]:
    tables = ("orphaned_queues", "duplicate_queues")
    return {row["topic"] for table in tables for row in of.rows(table)}


def test_each_topic_of_a_group_has_its_own_mode(tmp_path):
    of = published(tmp_path, {"T": "POP", "U": "PULL"})
    assert coverages(of) == {"T": "SHARED_BY_BROKER", "U": "AUDITED", RETRY: "AUDITED"}
    assert found(of) == {"U", RETRY}


def test_without_a_word_of_the_brokers_a_topic_is_pulled(tmp_path):
    assert found(published(tmp_path, {})) == {"T", "U", RETRY}


def test_what_brokers_say_of_a_group_is_no_word_of_a_client(tmp_path):
    of = published(tmp_path, {"T": "PULL", "U": "PULL"})
    assert {row["coverage"] for row in of.rows("group_health")} == {"AUDITED"}
    assert not of.rows("allocation_drift")
    assert {row["fault"] for row in of.rows("group_faults")} == {"DUPLICATE_CLIENT_ID"}
