"""Nameservers that are asked apart: when each was asked counts, whatever the lists come from."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from jobs import audit
from jobs.config.settings import Settings
from jobs.pipeline.inputs import Inputs
from jobs.schemas import ROUTE_CONTENTS
from jobs.storage import Location, Snapshots
from tests.support.reports import PublishedReports
from tests.support.runs import as_a_lake, audit_locally, ingest_locally, task

#: Broker c comes between the questions to the two nameservers of the round at 600 s.
ADDED = 605
START = datetime(2026, 11, 20, 10, tzinfo=UTC)
TABLES = ("orphaned_queues", "duplicate_queues", "group_faults", "group_health", "reassignments")


def line(kind: str, round_: int, asked: int, body: dict[str, Any], **who: Any) -> str:
    times = {"snapshot_time": round_, "collected_at": asked}
    of_line = {name: (START + timedelta(seconds=each)).isoformat() for name, each in times.items()}
    return json.dumps({"kind": kind, "cluster": "c", **of_line, **who, "body": json.dumps(body)})


def route(round_: int, asked: int, namesrv_addr: str) -> str:
    names = ["a", "b", "c"] if asked >= ADDED else ["a", "b"]
    numbers = {"perm": 6, "readQueueNums": 4, "writeQueueNums": 4, "topicSysFlag": 0}
    body = {
        "brokerDatas": [
            {"brokerName": name, "cluster": "c", "brokerAddrs": {"0": f"{name}:1"}}
            for name in names
        ],
        "queueDatas": [{"brokerName": name, **numbers} for name in names],
    }
    return line("topic_route", round_, asked, body, namesrv_addr=namesrv_addr, topic="T")


def member_list(round_: int, asked: int, broker_name: str) -> str:
    subscription = {"topic": "T", "subString": "*", "expressionType": "TAG"}
    connections = [
        {"clientId": f"10.0.0.{n}@{n}", "clientAddr": f"10.0.0.{n}:1", "language": "JAVA"}
        for n in range(4)
    ]
    body = {
        "connectionSet": [each | {"version": 401} for each in connections],
        "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET",
        "consumeType": "CONSUME_PASSIVELY",
        "messageModel": "CLUSTERING",
        "subscriptionTable": {"T": subscription},
    }
    broker = {"broker_name": broker_name, "broker_id": 0, "broker_addr": f"{broker_name}:1"}
    return line("consumer_connection", round_, asked, body, consumer_group="G", **broker)


@pytest.fixture
def snapshots(tmp_path: Path) -> Path:
    lines = []
    for round_ in range(0, 1800, 60):
        lines += [route(round_, round_ + 1, "n1"), route(round_, round_ + 9, "n2")]
        names = "abc" if round_ + 10 >= ADDED else "ab"
        lines += [member_list(round_, round_ + 10, name) for name in names]
    (tmp_path / "dump.jsonl").write_text("\n".join(lines))
    snapshots = tmp_path / "snapshots"
    ingest_locally([str(tmp_path / "dump.jsonl")], snapshots)
    assert (Snapshots.open(Location(snapshots)).ingested or {})["quarantined"] == 0
    return snapshots


def tables(published: PublishedReports) -> dict[str, list[str]]:
    return {name: published.comparable(name) for name in TABLES}


def of_rows(snapshots: Path) -> None:
    """From now on the ids of lists do not count: who wrote them is not known."""
    as_a_lake(snapshots)
    cutting = Inputs(Snapshots.open(Location(snapshots)), Settings()).cutting()
    assert (cutting.list_ids, cutting.route_ids) == (False, True)


def test_rows_of_lists_and_ids_of_routes_give_the_same(snapshots: Path, tmp_path: Path) -> None:
    by_id = tables(audit_locally(task(snapshots, tmp_path / "ids")))
    assert by_id["orphaned_queues"] == [], "the nameservers never differed"
    of_rows(snapshots)
    assert tables(audit_locally(task(snapshots, tmp_path / "rows"))) == by_id


@pytest.mark.spark
def test_from_a_shell_the_polls_of_the_routes_say_when_they_were_asked(
    spark: SparkSession, snapshots: Path
) -> None:
    names = ("heartbeats", "topic_routes", "broker_polls", "route_polls", "route_contents")
    frames = {name: spark.read.parquet(str(snapshots / name)) for name in names}
    report = audit(frames)
    assert report["orphaned_queues"].num_rows == 0
    text = report.explain("G", "T", START + timedelta(seconds=600))
    assert "ROUTE_DIVERGENCE" not in str(text)


def test_without_ids_of_routes_their_rows_count(snapshots: Path, tmp_path: Path) -> None:
    as_a_lake(snapshots)
    shutil.rmtree(snapshots / ROUTE_CONTENTS.name)
    assert not Inputs(Snapshots.open(Location(snapshots)), Settings()).cutting().route_ids
    published = audit_locally(task(snapshots, tmp_path / "reports"))
    # A row does not say when the nameserver was asked: the two seem to have differed.
    assert "ROUTE_DIVERGENCE" in {row["fault"] for row in published.rows("group_faults")}
