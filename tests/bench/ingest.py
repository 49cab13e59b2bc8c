"""Ingest of a generated day of text: how fast, and how it grows with the rounds.

    python -m tests.bench.ingest --gigabyte

A group has 12 members on 3 brokers. Every 30 s each member sends each broker a heartbeat, every
minute a collector asks each broker for its list and a nameserver for the route: 2,880 heartbeats of
each client on each broker, and 1,440 polls of each broker, are a day. Lines are written in the
order in which they are collected. A day, an eighth of it and, with ``--gigabyte``, a day of eleven
groups (about 1 GB) are read by both engines, each in a process of its own after a warm-up.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.bench.engines import LOCAL, SPARK, ingest_on
from tests.bench.measured import Measured, in_fresh_process, measure, print_measured
from tests.bench.run import say

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DAY = 1440
MEMBERS, BROKERS = 12, 3
_ROUND_SECONDS = 60
_BEATS_A_ROUND = 2
_START = datetime(2026, 1, 5, tzinfo=UTC)

#: By name the groups and the rounds of a dump.
DUMPS = {"warm-up": (2, 60), "eighth": (1, DAY // 8), "day": (1, DAY), "gigabyte": (11, DAY)}


def lines(groups: int, rounds: int) -> Iterator[dict[str, Any]]:
    """The lines of a dump, in the order in which they are collected."""
    for number in range(rounds):
        start = number * _ROUND_SECONDS
        for beat in range(_BEATS_A_ROUND):
            for group in range(groups):
                yield from _beats(group, start + beat * _ROUND_SECONDS // _BEATS_A_ROUND)
        for group in range(groups):
            yield from _polls(group, start)


def _beats(group: int, seconds: float) -> Iterator[dict[str, Any]]:
    for broker in range(BROKERS):
        for member in range(MEMBERS):
            yield {
                "kind": "heartbeat",
                "collected_at": _iso(seconds + 0.01 * member + 0.1 * broker),
                "cluster": "DefaultCluster",
                **_broker(broker),
                "client_addr": _client_addr(group, member, broker),
                "language": "JAVA",
                "version": 453,
                "body": _compact(
                    {
                        "clientID": _client_id(group, member),
                        "consumerDataSet": [
                            {
                                "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET",
                                "consumeType": "CONSUME_PASSIVELY",
                                "groupName": f"GROUP_{group}",
                                "messageModel": "CLUSTERING",
                                "subscriptionDataSet": list(_subscriptions(group).values()),
                                "unitMode": False,
                            }
                        ],
                        "heartbeatFingerprint": 0,
                        "producerDataSet": [{"groupName": "CLIENT_INNER_PRODUCER"}],
                        "withoutSub": False,
                    }
                ),
            }


def _polls(group: int, seconds: float) -> Iterator[dict[str, Any]]:
    at_snapshot = {"snapshot_time": _iso(seconds), "cluster": "DefaultCluster"}
    for broker in range(BROKERS):
        connections = [
            {
                "clientAddr": _client_addr(group, member, broker),
                "clientId": _client_id(group, member),
                "language": "JAVA",
                "version": 453,
            }
            for member in range(MEMBERS)
        ]
        yield {
            "kind": "consumer_connection",
            "collected_at": _iso(seconds + 1 + 0.1 * broker),
            **at_snapshot,
            **_broker(broker),
            "consumer_group": f"GROUP_{group}",
            "code": 0,
            "body": _compact(
                {
                    "connectionSet": connections,
                    "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET",
                    "consumeType": "CONSUME_PASSIVELY",
                    "messageModel": "CLUSTERING",
                    "subscriptionTable": _subscriptions(group),
                }
            ),
        }
    yield {
        "kind": "topic_route",
        "collected_at": _iso(seconds + 2),
        **at_snapshot,
        "namesrv_addr": "nameserver:9876",
        "topic": f"TOPIC_{group}",
        "code": 0,
        "body": _compact(
            {
                "brokerDatas": [
                    {
                        "brokerAddrs": {"0": _broker(broker)["broker_addr"]},
                        "brokerName": f"broker-{broker}",
                        "cluster": "DefaultCluster",
                    }
                    for broker in range(BROKERS)
                ],
                "filterServerTable": {},
                "queueDatas": [
                    {
                        "brokerName": f"broker-{broker}",
                        "perm": 6,
                        "readQueueNums": 8,
                        "topicSysFlag": 0,
                        "writeQueueNums": 8,
                    }
                    for broker in range(BROKERS)
                ],
            }
        ),
    }


def _broker(number: int) -> dict[str, Any]:
    return {
        "broker_name": f"broker-{number}",
        "broker_id": 0,
        "broker_addr": f"10.0.9.{number}:10911",
    }


def _client_id(group: int, member: int) -> str:
    return f"10.1.{group}.{member}@{1000 + member}#{31_000_000_000 + group}"


def _client_addr(group: int, member: int, broker: int) -> str:
    return f"10.1.{group}.{member}:{40000 + broker}"


def _subscriptions(group: int) -> dict[str, dict[str, Any]]:
    return {
        topic: {
            "classFilterMode": False,
            "codeSet": [],
            "expressionType": "TAG",
            "subString": "*",
            "subVersion": 1795226590000,
            "tagsSet": [],
            "topic": topic,
        }
        for topic in (f"TOPIC_{group}", f"%RETRY%GROUP_{group}")
    }


def _compact(body: dict[str, Any]) -> str:
    return json.dumps(body, separators=(",", ":"))


def _iso(seconds: float) -> str:
    text = (_START + timedelta(seconds=seconds)).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def write_dump(path: Path, groups: int, rounds: int) -> Path:
    """Writes the dump unless it lies there already."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".part")
        with unfinished.open("w") as file:
            file.writelines(f"{json.dumps(line)}\n" for line in lines(groups, rounds))
        unfinished.rename(path)
    return path


def ingest_once(engine: str, dump: Path, warm_up: Path, snapshots: Path) -> Measured:
    """One ingest in this process, after that of the warm-up."""

    def work(spark: SparkSession | None, path: Path) -> None:
        ingest_on(spark, path, snapshots / path.stem)

    return measure(
        engine,
        lambda spark: work(spark, dump),
        lambda spark: work(spark, warm_up),
        uses_spark=engine == SPARK,
    )


def compare(folder: Path, names: list[str], engines: list[str], runs: int) -> list[str]:
    """A Markdown table of the best of some runs, in turn, by CPU."""
    dumps = {
        name: write_dump(folder / f"ingest-{name}.jsonl", *DUMPS[name])
        for name in ("warm-up", *names)
    }
    best: dict[tuple[str, str], Measured] = {}
    for _ in range(runs):
        for engine in engines:
            for name in names:
                run = in_fresh_process(
                    "tests.bench.ingest",
                    *("--once", engine, "--dump", dumps[name], "--warm-up", dumps["warm-up"]),
                    *("--snapshots", folder / f"ingest-{engine}"),
                )
                say(f"ingest {name}, {engine}: {run.seconds:.1f} s, CPU {run.cpu_seconds:.1f} s")
                earlier = best.setdefault((engine, name), run)
                if run.cpu_seconds < earlier.cpu_seconds:
                    best[engine, name] = run
    told = [
        "| ingest | MB of text | MB/s per core (CPU) | CPU s | s | CPU, eighth = 1 | JVM MiB "
        "| all Python MiB |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for (engine, name), run in best.items():
        size = dumps[name].stat().st_size / 1e6
        base = best.get((engine, "eighth"), run)
        told.append(
            f"| {name}, {engine} | {size:,.1f} | {size / run.cpu_seconds:.1f} "
            f"| {run.cpu_seconds:.2f} | {run.seconds:.2f} "
            f"| {run.cpu_seconds / base.cpu_seconds:.1f} | {run.jvm:,.0f} | {run.python:,.0f} |"
        )
    return told


def main() -> None:
    """Measures, and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gigabyte", action="store_true", help="also a gigabyte of text")
    parser.add_argument("--only", choices=list(DUMPS), nargs="+", help="these dumps alone")
    parser.add_argument("--engine", choices=(SPARK, LOCAL), nargs="+", default=[SPARK, LOCAL])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=Path("build/bench"))
    parser.add_argument("--once", choices=(SPARK, LOCAL), help=argparse.SUPPRESS)
    for name in ("--dump", "--warm-up", "--snapshots"):
        parser.add_argument(name, type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.once:
        print_measured(ingest_once(args.once, args.dump, args.warm_up, args.snapshots))
        return
    names = args.only or ["eighth", "day", *(["gigabyte"] if args.gigabyte else [])]
    told = compare(args.folder, names, args.engine, args.runs)
    sys.stdout.write("\n".join(told) + "\n")


if __name__ == "__main__":
    main()
