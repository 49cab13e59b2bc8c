"""Collects one round of a dump through the RocketMQ dashboard's REST API; Python alone is needed.

    python docs/collect/dashboard.py http://dashboard:8080 --cluster C > dumps/now.jsonl

Run it every minute or so. Every broker is asked for the members of every group, for the dashboard
itself asks but the first one. Where the dashboard wants a login, put the cookie of a session into
DASHBOARD_COOKIE. What fails becomes a line that says so; nothing stops the round.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

#: Groups that RocketMQ keeps for itself.
SYSTEM_PREFIXES = ("CID_RMQ_SYS_", "CID_ONS", "%SYS%", "TOOLS_CONSUMER", "FILTERSRV_CONSUMER")


def now() -> str:
    """The time as dumps have it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Dashboard:
    """The REST API, by its base URL."""

    def __init__(self, url: str, timeout: float) -> None:
        if not url.startswith(("http://", "https://")):
            raise SystemExit(f"expected http://host:port or https://host:port, came {url!r}")
        self.url, self.timeout = url.rstrip("/"), timeout

    def text(self, path: str, **query: str) -> str:
        """What the dashboard answers, as it comes; OSError where it does not."""
        request = urllib.request.Request(  # noqa: S310 - http or https, checked above
            f"{self.url}{path}?{urllib.parse.urlencode(query)}",
            headers={
                "Accept": "application/json",
                "Cookie": os.environ.get("DASHBOARD_COOKIE", ""),
            },
        )
        with urllib.request.urlopen(request, timeout=self.timeout) as answer:  # noqa: S310
            return answer.read().decode("utf-8")

    def data(self, path: str, **query: str) -> Any:
        """What is under ``data`` of an answer without which there is no round."""
        answer = json.loads(self.text(path, **query))
        if answer.get("status") != 0:
            raise SystemExit(f"{path}: {answer.get('errMsg')}")
        return answer["data"]

    def polled(self, path: str, **query: str) -> dict[str, Any]:
        """The body of a line, or the error in its place."""
        try:
            return {"collected_at": now(), "body": self.text(path, **query)}
        except (OSError, UnicodeDecodeError) as error:
            return {"collected_at": now(), "error_code": -1, "error_message": str(error)}


def collect(dashboard: Dashboard, cluster: str, groups: list[str]) -> Iterator[dict[str, Any]]:
    """The lines of one round: members, routes, running infos and offsets."""
    round_ = {"cluster": cluster, "snapshot_time": now()}
    brokers = dashboard.data("/cluster/list.query")["clusterInfo"]["brokerAddrTable"]
    home = dashboard.data("/ops/homePage.query")
    namesrv = home.get("currentNamesrv") or ";".join(home["namesvrAddrList"])
    topics: set[str] = set()
    for group in groups or own_groups(dashboard):
        client_ids: set[str] = set()
        for name, broker in sorted(brokers.items()):
            for broker_id, address in sorted(broker["brokerAddrs"].items()):
                query = {"consumerGroup": group, "address": address}
                polled = dashboard.polled("/consumer/consumerConnection.query", **query)
                yield {
                    "kind": "consumer_connection",
                    **round_,
                    "broker_name": name,
                    "broker_id": int(broker_id),
                    "broker_addr": address,
                    "consumer_group": group,
                    **polled,
                }
                members = seen(polled)
                client_ids |= {each["clientId"] for each in members.get("connectionSet") or ()}
                topics |= set(members.get("subscriptionTable") or ())
        for client_id in sorted(client_ids):
            query = {"consumerGroup": group, "clientId": client_id, "jstack": "false"}
            polled = dashboard.polled("/consumer/consumerRunningInfo.query", **query)
            yield {
                "kind": "consumer_running_info",
                **round_,
                "consumer_group": group,
                "client_id": client_id,
                **polled,
            }
        polled = dashboard.polled("/consumer/queryTopicByConsumer.query", consumerGroup=group)
        yield {"kind": "consume_stats", **round_, "consumer_group": group, **polled}
    for topic in sorted(topics):
        polled = dashboard.polled("/topic/route.query", topic=topic)
        yield {"kind": "topic_route", **round_, "namesrv_addr": namesrv, "topic": topic, **polled}


def own_groups(dashboard: Dashboard) -> list[str]:
    """The groups that are not RocketMQ's own."""
    listed = dashboard.data("/consumer/groupList.query")
    names = {each["group"] for each in listed}
    return sorted(name for name in names if not name.startswith(SYSTEM_PREFIXES))


def seen(polled: dict[str, Any]) -> dict[str, Any]:
    """What is under ``data`` of a line's body, where there is such."""
    try:
        return json.loads(polled.get("body", "")).get("data") or {}
    except ValueError:
        return {}


def main() -> None:
    """Prints the lines of one round."""
    parser = argparse.ArgumentParser(description="One round of a dump, from a dashboard.")
    parser.add_argument("url", help="http://host:port of the dashboard")
    parser.add_argument("--cluster", required=True, help="the name that the dump gives the cluster")
    parser.add_argument("--group", action="append", default=[], help="only this group; repeatable")
    parser.add_argument("--timeout", type=float, default=10.0, help="seconds for an answer")
    args = parser.parse_args()
    dashboard = Dashboard(args.url, args.timeout)
    for line in collect(dashboard, args.cluster, args.group):
        sys.stdout.write(json.dumps(line, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
