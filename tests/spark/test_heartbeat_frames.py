"""DataFrames of events: put into rounds as one table of Arrow is, and audited so."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from jobs.errors import InputError
from jobs.fold.heartbeat_rounds import as_rounds, rounds_of
from jobs.schemas import BROKER_POLLS, CLIENT_STATES, HEARTBEATS, QUEUE_OFFSETS
from jobs.spark import audit
from jobs.spark import session as sessions
from jobs.spark.dataframe_rows import prepared
from jobs.spark.frame_inputs import FramesInRounds
from tests.support.events import DUPLICATE, ORPHANED, lasting_queues, late, three_groups
from tests.support.snapshots import (
    Row,
    at,
    frame_of,
    heartbeat_row,
    info_row,
    log_row,
    offset_row,
    table,
)
from tests.support.travelled import arrived

pytestmark = pytest.mark.spark

EXPIRY = 130


def events() -> dict[str, pa.Table]:
    """Members that come and go, a broker that pauses, rows without a time, offsets each 20 s."""
    rows: list[Row] = [
        heartbeat_row(
            consumer_group=group,
            broker_name=broker,
            client_id=client,
            client_addr=f"{client}:{broker}",
            snapshot_time=at(30 * number + 7 * place + len(broker)),
            last_heartbeat_at=at(30 * number),
        )
        for number in range(40)
        for place, (group, broker, client) in enumerate(
            (group, broker, client)
            for group in ("G", "H", "J")
            for broker in ("x", "yy")
            for client in "abc"
        )
        if not (broker == "yy" and 10 < number < 20)
        and not (group == "H" and client == "c" and number > 25)
        and not (group == "J" and number > 25)
    ]
    rows.append(heartbeat_row(client_id="z") | {"snapshot_time": None})
    offsets = [
        offset_row(snapshot_time=at(20 * number + queue), queue_id=queue, consumer_offset=number)
        for number in range(60)
        for queue in range(3)
    ]
    states = [info_row("a", 61, [0]), log_row("p", "a", 61, [0])]
    made = {HEARTBEATS: rows, QUEUE_OFFSETS: offsets, CLIENT_STATES: states}
    return {
        of.name: pa.Table.from_pylist(each, pa.schema(f.with_nullable(True) for f in of.schema))
        for of, each in made.items()
    }


def test_frames_are_put_into_the_rounds_of_one_table(spark: SparkSession) -> None:
    tables = events()
    frames = prepared({name: frame_of(spark, rows).repartition(3) for name, rows in tables.items()})
    made = FramesInRounds.of(frames["heartbeats"], 60, EXPIRY)
    assert made.rounds == rounds_of(tables["heartbeats"], 60, EXPIRY)
    came = made(frames)
    wanted = as_rounds(tables, 60, EXPIRY)
    assert came.keys() == wanted.keys()
    for of in (HEARTBEATS, BROKER_POLLS, QUEUE_OFFSETS, CLIENT_STATES):
        expected = prepared({of.name: frame_of(spark, wanted[of.name])})[of.name]
        assert came[of.name].schema.simpleString() == expected.schema.simpleString()
        found, one_table = (arrived(of, each).to_pylist() for each in (came[of.name], expected))
        assert sorted(map(repr, found)) == sorted(map(repr, one_table)), of.name
    plan = str(came["heartbeats"]._jdf.queryExecution().toString())  # type: ignore[operator]
    assert "rows_of_rounds" in plan
    assert "lambda" not in plan


def frames_of(spark: SparkSession, tables: dict[str, pa.Table]) -> dict[str, DataFrame]:
    return {name: frame_of(spark, rows) for name, rows in tables.items()}


def test_events_have_the_findings_of_rounds_or_are_refused(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a Python that nobody named, also where a group is explained."""
    tables = three_groups()
    tables["heartbeats"] = late(tables["heartbeats"], "client")
    frames = frames_of(spark, tables)
    renamed: Any = {"heartbeats": {"client_id": "clientId"}}
    frames["heartbeats"] = frames["heartbeats"].withColumnRenamed("client_id", "clientId")
    # These rows keep the Python of the moment in which they are made.
    for owner, name in ((sessions, "_DEFAULT"), (spark.sparkContext, "pythonExec")):
        monkeypatch.setattr(owner, name, "no-such-python")
    with pytest.raises(InputError, match=r"audit\(heartbeats, topic_routes, round_seconds=60\)"):
        audit(**frames, columns=renamed)
    found = audit(**frames, columns=renamed, round_seconds=60)
    assert lasting_queues(found["orphaned_queues"]) == ORPHANED
    assert lasting_queues(found["duplicate_queues"]) == DUPLICATE
    assert [row.client_id for row in found.stacked_client_ids.collect()] == ["a"]
    assert "T_TWICE" in found.explain("TWICE", "T_TWICE")


def test_a_sink_that_has_few_of_the_heartbeats_is_an_error(spark: SparkSession) -> None:
    rows = [
        heartbeat_row(client_id=client, snapshot_time=at(300 * number + place))
        for number in range(20)
        for place, client in enumerate("abc")
    ]
    heartbeats = frame_of(spark, table(HEARTBEATS, rows))
    routes = frame_of(spark, three_groups()["topic_routes"])
    with pytest.raises(InputError, match="at least once in heartbeat_expiry_seconds = 130"):
        audit(heartbeats, routes, round_seconds=60)
