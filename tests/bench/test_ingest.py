"""The generated day is one that ingest understands: else its seconds measure the quarantine."""

from __future__ import annotations

from pathlib import Path

from jobs.storage import Location, Snapshots
from tests.bench.engines import ingest_on
from tests.bench.ingest import BROKERS, DAY, DUMPS, MEMBERS, lines, write_dump


def test_every_line_of_a_generated_dump_is_understood(tmp_path: Path) -> None:
    groups, rounds = 2, 3
    dump = write_dump(tmp_path / "dump.jsonl", groups, rounds)
    ingested = ingest_on(None, dump, tmp_path / "snapshots")
    snapshots = Snapshots.open(Location(tmp_path / "snapshots"))
    beats = 2 * rounds * MEMBERS * BROKERS
    assert (ingested.lines, ingested.quarantined) == (groups * (beats + rounds * (BROKERS + 1)), 0)
    polls = snapshots.parquet("broker_polls").to_table()
    assert set(polls["outcome"].to_pylist()) == {"ANSWERED"}
    heartbeats = snapshots.parquet("heartbeats").to_table()
    assert heartbeats.num_rows == groups * rounds * MEMBERS * BROKERS
    assert heartbeats["last_heartbeat_at"].null_count == 0
    assert snapshots.parquet("route_contents").to_table().num_rows == groups


def test_a_day_has_2880_heartbeats_of_each_client_on_each_broker() -> None:
    groups, rounds = DUMPS["day"]
    assert (groups, rounds) == (1, DAY)
    first = [line for line in lines(1, 1) if line["kind"] == "heartbeat"]
    assert DAY * len(first) == 2880 * MEMBERS * BROKERS
