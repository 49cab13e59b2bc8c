"""Collects one round of a dump with mqadmin, where there is no dashboard; Python alone is needed.

    python docs/collect/mqadmin.py --namesrv 10.0.0.1:9876 --namesrv 10.0.0.2:9876 \\
        --cluster C --group G_ORDER > dumps/now.jsonl

Needs mqadmin of 5.x on the PATH (or --mqadmin), for -b of consumerConnection. Every nameserver is
asked for the routes and every broker in them for the members. mqadmin prints members as a table,
which becomes a body again; it prints versions as names, which are left out.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any


def now() -> str:
    """The time as dumps have it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Admin:
    """The mqadmin command."""

    def __init__(self, command: str, timeout: float) -> None:
        self.command, self.timeout = command, timeout

    def text(self, *arguments: str) -> str:
        """What it prints, errors too: it exits with 0 whatever happened."""
        try:
            done = subprocess.run(  # noqa: S603 - the operator's own command, and no shell
                [self.command, *arguments],
                capture_output=True,
                text=True,
                timeout=self.timeout,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return "timed out"
        return f"{done.stdout}\n{done.stderr}"


def failed(text: str) -> dict[str, Any]:
    """The error of a line: RocketMQ's code where it is told, else -1."""
    code = re.search(r"CODE: *(\d+)", text)
    told = [line.strip() for line in text.splitlines() if line.strip()]
    return {"error_code": int(code.group(1)) if code else -1, "error_message": " ".join(told)[:300]}


def route(text: str) -> dict[str, Any]:
    """The body of a topic_route line, as it was printed, or the error in its place."""
    start, end = text.find("{"), text.rfind("}")
    if "brokerDatas" not in text or start < 0:
        return failed(text)
    return {"body": text[start : end + 1]}


def addresses(body: str) -> dict[str, dict[int, str]]:
    """By broker name its addresses by id, which RocketMQ prints without quotes."""
    values = json.loads(re.sub(r"([{,]\s*)(\d+)\s*:", r'\1"\2":', body))
    return {
        each["brokerName"]: {int(number): at for number, at in each["brokerAddrs"].items()}
        for each in values.get("brokerDatas") or ()
    }


def members(text: str) -> dict[str, Any]:
    """The body of a consumer_connection line from the table, or the error in its place."""
    table, found, rest = text.partition("Below is subscription")
    if not found:
        return failed(text)
    connections = []
    for line in table.splitlines():
        # From the right: an id may be longer than its column, and may have blanks in it.
        cells = line.rsplit(None, 3)
        if len(cells) == 4 and re.search(r":\d+$", cells[1]):
            client_id = re.sub(r"^\d{3}  ", "", cells[0]).strip()
            connections.append(
                {"clientId": client_id, "clientAddr": cells[1], "language": cells[2]}
            )
    body: dict[str, Any] = {"connectionSet": connections, "subscriptionTable": {}}
    for line in rest.splitlines():
        if told := re.match(r"(ConsumeType|MessageModel): *(\w+)", line):
            body[told.group(1)[0].lower() + told.group(1)[1:]] = told.group(2)
        elif told := re.match(r"(?:\d{3}  Topic: )?([^\s#:]+) +(?:SubExpression: )?(\S.*)", line):
            topic, expression = told.group(1), told.group(2).strip()
            body["subscriptionTable"][topic] = {"topic": topic, "subString": expression}
    return {"body": json.dumps(body)}


def collect(
    admin: Admin, cluster: str, namesrvs: list[str], groups: list[str]
) -> Iterator[dict[str, Any]]:
    """The lines of one round: routes, and the members that each broker lists."""
    round_ = {"cluster": cluster, "snapshot_time": now()}
    routed: set[str] = set()
    for group in groups:
        brokers: dict[str, dict[int, str]] = {}
        asked: set[str] = set()
        # The retry topic is on every broker that has a member; the members tell the other topics.
        topics = [f"%RETRY%{group}"]
        while topics:
            topic = topics.pop()
            for namesrv in namesrvs:
                polled = route(admin.text("topicRoute", "-n", namesrv, "-t", topic))
                brokers |= addresses(polled["body"]) if "body" in polled else {}
                if topic not in routed:
                    yield {
                        "kind": "topic_route",
                        **round_,
                        "collected_at": now(),
                        "namesrv_addr": namesrv,
                        "topic": topic,
                        **polled,
                    }
            routed.add(topic)
            for name, of_broker in sorted(brokers.items()):
                for broker_id, address in sorted(of_broker.items()):
                    if address in asked:
                        continue
                    asked.add(address)
                    arguments = ("-n", namesrvs[0], "-g", group, "-b", address)
                    polled = members(admin.text("consumerConnection", *arguments))
                    yield {
                        "kind": "consumer_connection",
                        **round_,
                        "collected_at": now(),
                        "broker_name": name,
                        "broker_id": broker_id,
                        "broker_addr": address,
                        "consumer_group": group,
                        **polled,
                    }
                    known = json.loads(polled.get("body", "{}")).get("subscriptionTable", {})
                    topics += [each for each in known if each not in {*routed, *topics}]


def main() -> None:
    """Prints the lines of one round."""
    parser = argparse.ArgumentParser(description="One round of a dump, by mqadmin.")
    parser.add_argument("--namesrv", action="append", required=True, help="host:port; repeatable")
    parser.add_argument("--cluster", required=True, help="the name that the dump gives the cluster")
    parser.add_argument("--group", action="append", required=True, help="repeatable")
    parser.add_argument("--mqadmin", default="mqadmin", help="the command")
    parser.add_argument("--timeout", type=float, default=30.0, help="seconds for one call of it")
    args = parser.parse_args()
    admin = Admin(args.mqadmin, args.timeout)
    for line in collect(admin, args.cluster, args.namesrv, args.group):
        sys.stdout.write(json.dumps(line, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
