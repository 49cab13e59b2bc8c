"""The night of a fleet: groups on three brokers, planted faults that last, a broker's restart.

    python -m tests.support.night --groups 300 --faults 40 --output build/night

writes the dumps of rounds from 10:00:03 to 10:44:03, a minute apart: routes, lists and offsets.
broker-a is away at 10:30:03 and 10:31:03, is back at 10:32:03 with one member of each group in its
lists, and has all of them at 10:33:03. It touches every group, and nothing of it lasts.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.support import bodies

BEGIN = datetime(2026, 11, 20, 10, 0, 3, tzinfo=UTC)
ROUNDS = 45
#: The rounds in which broker-a is away, and the one in which it lists few.
AWAY, BACK = (30, 31), 32
BROKERS = ("broker-a", "broker-b", "broker-c")
NAMES = ("order-paid", "invoice", "stock-sync", "mail-out", "audit_log", "risk.check", "PAY_NOTIFY")
#: By what is planted the fault that the audit has to find.
FAULTS = {
    "stalled": "STALLED",
    "offline": "GROUP_OFFLINE",
    "two processes": "DUPLICATE_CLIENT_ID",
    "not on broker": "GROUP_NOT_ON_BROKER",
    "consumes nothing": "GROUP_NOT_CONSUMING",
    "two lists": "BROKER_VIEW_DIVERGENCE",
    "idle and dead": "GROUP_OFFLINE",
    "no topic": "UNKNOWN_TOPIC",
}


@dataclass(frozen=True)
class Group:
    """A group with its topic; ``fault``: what is planted, from a round on until the end."""

    number: int
    fault: str = ""

    @property
    def name(self) -> str:
        return f"{NAMES[self.number // 7 % len(NAMES)]}-{self.number:03}"

    @property
    def topic(self) -> str:
        return f"T-{self.name}"

    @property
    def begins(self) -> int:
        return 3 + self.number % 15

    @property
    def queues(self) -> int:
        """On each broker."""
        return 8 if self.fault == "idle and dead" else 4

    @property
    def rate(self) -> int:
        """Messages a minute into each queue."""
        if self.fault == "idle and dead":
            return 0
        return 20_000 if self.fault == "stalled" else 20 + self.number % 50

    def is_faulty(self, round_: int) -> bool:
        return bool(self.fault) and round_ >= self.begins

    def members(self, broker: str, round_: int) -> list[tuple[str, str]] | None:
        """(client id, address) of those that a broker lists; None: it knows nobody."""
        host = f"10.{self.number // 250}.{self.number % 250}"
        listed = [(f"{host}.{n}@app", f"{host}.{n}:4{n:04}") for n in range(1, 4)]
        if self.is_faulty(round_):
            if self.fault in ("offline", "idle and dead"):
                return None
            if self.fault == "two processes":
                listed[2] = (listed[0][0], listed[2][1])
            if self.fault == "not on broker" and broker == "broker-b":
                return None
            if self.fault == "two lists" and broker == "broker-c":
                listed.pop()
        return listed[:1] if broker == "broker-a" and round_ == BACK else listed

    def consumed(self, broker: str, queue: int, round_: int) -> int:
        """How far the queue is consumed: to the end, unless a fault keeps it."""
        end = self.offset(round_)
        if not self.is_faulty(round_):
            return end - 1 if self.rate else end
        unread = {
            "stalled": broker == "broker-b" and queue < 3,
            "offline": True,
            # The second half of the queues is the share of the last, whom nobody knows.
            "two processes": broker == "broker-c",
            "not on broker": broker == "broker-b",
            "consumes nothing": True,
        }.get(self.fault, False)
        if unread:
            return self.offset(self.begins)
        return end - 1 if self.rate else end

    def offset(self, round_: int) -> int:
        return 1_000 + self.rate * round_


def groups_of(number: int, faults: int) -> list[Group]:
    """So many groups; the faulty ones are spread among the others."""
    kinds, step = list(FAULTS), number // max(faults, 1)
    faulty = {n * step: kinds[n % len(kinds)] for n in range(faults)}
    return [Group(n, faulty.get(n, "")) for n in range(number)]


def lines(groups: list[Group]) -> Iterator[dict[str, Any]]:
    """Those of all rounds, in time."""
    for round_ in range(ROUNDS):
        began = BEGIN + timedelta(minutes=round_)
        for place, line in enumerate(_round(groups, round_)):
            at = began + timedelta(milliseconds=place % 900)
            times = {"snapshot_time": _text(began), "collected_at": _text(at)}
            yield {**times, "cluster": "prod", **line}


def _text(time: datetime) -> str:
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _round(groups: list[Group], round_: int) -> Iterator[dict[str, Any]]:
    up = [each for each in BROKERS if each != "broker-a" or round_ not in AWAY]
    for group in groups:
        for topic, queues in ((group.topic, group.queues), (f"%RETRY%{group.name}", 1)):
            yield _route(group, topic, queues, up, round_)
        for number, broker in enumerate(BROKERS):
            asked = {
                "broker_name": broker,
                "broker_id": 0,
                "broker_addr": f"10.1.{number}.1:10911",
                "consumer_group": group.name,
            }
            yield {"kind": "consumer_connection", **asked} | _list(group, broker, up, round_)
            if broker in up:
                stats = _stats(group, broker, round_)
                yield {"kind": "consume_stats", **asked, "body": json.dumps(stats)}


def _route(group: Group, topic: str, queues: int, up: list[str], round_: int) -> dict[str, Any]:
    line = {"kind": "topic_route", "namesrv_addr": "10.9.0.1:9876", "topic": topic}
    if group.fault == "no topic" and topic == group.topic and group.is_faulty(round_):
        return {**line, "error_code": 17, "error_message": f"No topic route info of {topic}"}
    brokers = {each: {0: f"10.1.{BROKERS.index(each)}.1:10911"} for each in up}
    return {**line, "body": json.dumps(bodies.route(brokers, queues))}


def _list(group: Group, broker: str, up: list[str], round_: int) -> dict[str, Any]:
    if broker not in up:
        return {"error_code": -1, "error_message": "connect to broker failed"}
    members = group.members(broker, round_)
    if members is None:
        return {"error_code": 206, "error_message": f"the consumer group[{group.name}] not online"}
    subscribed = bodies.subscriptions([group.topic, f"%RETRY%{group.name}"])
    return {"body": json.dumps(bodies.members(members, subscribed, version=433))}


def _stats(group: Group, broker: str, round_: int) -> dict[str, Any]:
    table = {
        f"MessageQueue [topic={group.topic}, brokerName={broker}, queueId={queue}]": {
            "brokerOffset": group.offset(round_),
            "consumerOffset": group.consumed(broker, queue, round_),
            "lastTimestamp": 0,
        }
        for queue in range(group.queues)
    }
    return {"consumeTps": 0.0, "offsetTable": table}


def write_night(folder: Path, groups: list[Group]) -> Path:
    """The dump of the groups, as one file."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "night.jsonl.gz"
    with gzip.open(path, "wt", compresslevel=1, encoding="utf-8") as file:
        file.writelines(f"{json.dumps(line)}\n" for line in lines(groups))
    return path


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--groups", type=int, default=300)
    parser.add_argument("--faults", type=int, default=40)
    parser.add_argument("--output", type=Path, required=True)
    args = parser.parse_args()
    print(write_night(args.output, groups_of(args.groups, args.faults)))  # noqa: T201
