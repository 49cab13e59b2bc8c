"""The collector and the audit against real RocketMQ: `make test-live` with ROCKETMQ_HOME."""

from __future__ import annotations

import gzip
import json
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow.parquet as pq
import pytest

from jobs.cli import main
from tests.support.rocketmq import GROUP, TOPIC, Installation, running

pytestmark = pytest.mark.e2e
QUEUES = 4
TIMEOUT = 2.0


@pytest.fixture(scope="module")
def rocketmq(tmp_path_factory: pytest.TempPathFactory, java: None) -> Iterator[Installation]:
    """Two nameservers, two brokers, and a group in which two of three processes share an id."""
    home = os.environ.get("ROCKETMQ_HOME")
    if not home:
        pytest.skip(
            "ROCKETMQ_HOME names no installation of RocketMQ (a folder with lib/ and conf/)"
        )
    with running(Path(home), tmp_path_factory.mktemp("rocketmq")) as made:
        made.start_namesrv()
        made.start_namesrv()
        made.start_broker("broker-a")
        made.start_broker("broker-b")
        # The group is not there yet, and every broker has this one.
        there = "TOOLS_CONSUMER"
        wait_until(made, lambda: members(one_round(made, there)).keys() == made.addresses.keys())
        made.create_topic(QUEUES)
        made.start_consumer("one", "DUP")
        made.start_consumer("two", "DUP")
        made.start_consumer("three", "OTHER")
        wait_until(made, lambda: {*members(one_round(made)).values()} == {3})
        # Clients divide anew every 20 s: until then they may hold what they held before.
        time.sleep(21)
        yield made


def wait_until(rocketmq: Installation, is_so: Callable[[], bool]) -> None:
    ends = time.monotonic() + 90
    while not is_so():
        assert time.monotonic() < ends, {name: rocketmq.log(name) for name in rocketmq.processes}
        time.sleep(1)


def collect(rocketmq: Installation, dumps: Path, *more: str, group: str = GROUP) -> int:
    """Collects of consumers that have been there for long enough to be asked at once."""
    options = f"timeout_seconds = {TIMEOUT}\nrunning_infos_after_seconds = 0\n[[clusters]]\n"
    options += f"namesrv = {json.dumps(rocketmq.namesrvs)}\ngroups = [{json.dumps(group)}]\n"
    config = dumps.with_suffix(".toml")
    config.write_text(options)
    return main(["collect", "--config", str(config), "--dumps", str(dumps), *more])


def one_round(rocketmq: Installation, group: str = GROUP) -> list[dict[str, Any]]:
    with TemporaryDirectory() as place:
        collect(rocketmq, Path(place) / "dumps", group=group)
        return lines_of(Path(place) / "dumps")


def lines_of(dumps: Path) -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for path in sorted(dumps.glob("*/*.jsonl.gz"))
        for line in gzip.decompress(path.read_bytes()).splitlines()
    ]


def members(lines: list[dict[str, Any]]) -> dict[str, int]:
    """By broker, how many members it lists; 0 where it lists nobody."""
    return {
        line["broker_name"]: len(json.loads(line["body"])["connectionSet"]) if "body" in line else 0
        for line in lines
        if line["kind"] == "consumer_connection"
    }


def test_a_round_asks_everything_of_real_servers(rocketmq: Installation) -> None:
    lines = one_round(rocketmq)
    assert members(lines) == {"broker-a": 3, "broker-b": 3}
    assert not [line for line in lines if "error_code" in line and line["error_code"] != 17]
    routes = Counter(line["namesrv_addr"] for line in lines if line.get("topic") == TOPIC)
    assert routes == dict.fromkeys(rocketmq.namesrvs, 1)
    # The id that stands twice is asked of every broker that lists it, the other one of one.
    infos = Counter(
        line["client_id"].partition("@")[2]
        for line in lines
        if line["kind"] == "consumer_running_info"
    )
    assert infos == {"DUP": 2, "OTHER": 1}
    offsets = [line for line in lines if line["kind"] == "consume_stats"]
    assert {line["broker_name"] for line in offsets} == rocketmq.addresses.keys()


def test_an_id_that_two_processes_share_is_found(rocketmq: Installation, tmp_path: Path) -> None:
    assert collect(rocketmq, tmp_path / "dumps", "--every", "3", "--for", "10") == 0
    assert (
        main(
            [
                *("run", "--dumps", str(tmp_path / "dumps"), "--output", str(tmp_path / "out")),
                *("--engine", "local", "--set", "persistence_seconds=5"),
            ]
        )
        == 0
    )

    def rows(table: str) -> list[dict[str, Any]]:
        return pq.read_table(tmp_path / "out" / "reports" / table).to_pylist()

    (stacked,) = rows("stacked_client_ids")
    assert stacked["client_id"].endswith("@DUP")
    assert (stacked["processes"], stacked["persistence"]) == (2, "PERSISTENT")
    for table in ("orphaned_queues", "duplicate_queues"):
        assert {row["topic"] for row in rows(table)} >= {TOPIC}, table
    assert {row["certainty"] for row in rows("orphaned_queues") if row["topic"] == TOPIC} == {
        "CERTAIN"
    }


def test_a_broker_that_hangs_costs_one_time_out_and_no_line(rocketmq: Installation) -> None:
    os.kill(rocketmq.processes["broker-b"].pid, signal.SIGSTOP)
    try:
        began = time.monotonic()
        lines = one_round(rocketmq)
        seconds = time.monotonic() - began
    finally:
        os.kill(rocketmq.processes["broker-b"].pid, signal.SIGCONT)
    assert seconds < TIMEOUT + 2
    assert members(lines) == {"broker-a": 3, "broker-b": 0}
    of_b = {line["kind"]: line for line in lines if line.get("broker_name") == "broker-b"}
    assert of_b["consumer_connection"]["error_code"] < 0
    assert of_b["consume_stats"]["error_code"] < 0


def test_a_nameserver_that_hangs_costs_one_time_out_and_no_line(rocketmq: Installation) -> None:
    os.kill(rocketmq.processes["namesrv-1"].pid, signal.SIGSTOP)
    try:
        lines = one_round(rocketmq)
    finally:
        os.kill(rocketmq.processes["namesrv-1"].pid, signal.SIGCONT)
    assert members(lines) == {"broker-a": 3, "broker-b": 3}
    routes = {line["namesrv_addr"]: line for line in lines if line.get("topic") == TOPIC}
    assert "body" in routes[rocketmq.namesrvs[0]]
    assert routes[rocketmq.namesrvs[1]]["error_code"] < 0
