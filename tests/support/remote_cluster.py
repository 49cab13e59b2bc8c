"""A cluster that is made up, as its nameservers and brokers answer: for ``Replay``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.support import bodies
from tests.support.frames import Frame
from tests.support.replay import Answering, answer_frame, error


@dataclass
class RemoteCluster:
    """Change it between two rounds, and the servers answer otherwise.

    ``brokers``: by name its addresses by id. ``members``: by group and broker address the listed
    connections. ``topics``: by group. ``silent``: clients that answer no question.
    """

    namesrvs: Sequence[str] = ("ns1:9876", "ns2:9876")
    brokers: dict[str, dict[int, str]] = field(
        default_factory=lambda: {"a": {0: "a:10911", 1: "a:10941"}, "b": {0: "b:10911"}}
    )
    members: dict[str, dict[str, list[tuple[str, str]]]] = field(default_factory=dict)
    topics: dict[str, list[str]] = field(default_factory=dict)
    silent: set[str] = field(default_factory=set)
    #: 4.9.4 has no 343 and no 402.
    is_5: bool = False
    running_info_bytes: int = 0

    @property
    def addresses(self) -> list[str]:
        return [address for of in self.brokers.values() for address in of.values()]

    def add_group(self, group: str, client_ids: Sequence[str], topics: Sequence[str]) -> None:
        """A group that every broker lists alike."""
        self.topics[group] = [*topics, f"%RETRY%{group}"]
        self.members[group] = {
            address: [(each, f"10.0.0.9:{port}") for port, each in enumerate(client_ids)]
            for address in self.addresses
        }

    def answers(self) -> Mapping[str, Answering]:
        """By address, of all servers that are there now."""
        return {
            **dict.fromkeys(self.namesrvs, self._namesrv),
            **{address: self._broker(address) for address in self.addresses},
        }

    def _namesrv(self, asked: Frame) -> bytes | None:
        match asked.code:
            case 105:
                return _ok(bodies.route(self.brokers))
            case 106:
                brokers = bodies.route(self.brokers)["brokerDatas"]
                table = {each["brokerName"]: each for each in brokers}
                return _ok({"brokerAddrTable": table, "clusterAddrTable": {"C": list(table)}})
            case _:
                # 4.9.4 does not answer what it does not know.
                return None

    def _broker(self, address: str) -> Answering:
        def answer(asked: Frame) -> bytes | None:
            group = asked.fields.get("consumerGroup") or asked.fields.get("group") or ""
            listed = self.members.get(group, {}).get(address, [])
            match asked.code:
                case 201:
                    table = {
                        each: {"groupName": each} for each in ("CID_ONSAPI_OWNER", *self.members)
                    }
                    return _ok({"subscriptionGroupTable": table})
                case 202:
                    return error(17, f"topic[{asked.fields['topic']}] not exist")
                case 203 if listed:
                    subscribed = bodies.subscriptions(self.topics.get(group, []))
                    return _ok(bodies.members(listed, subscribed))
                case 203:
                    return error(206, f"the consumer group[{group}] not online")
                case 208:
                    return _offsets(self.topics.get(group, []), address)
                case 307 if asked.fields["clientId"] in self.silent:
                    return None
                case 307 if asked.fields["clientId"] in {each for each, _ in listed}:
                    return _ok({"properties": {}, "padding": "x" * self.running_info_bytes})
                case 307:
                    return error(1, "The Consumer not online")
                case 343 if self.is_5:
                    return _ok({"topicList": self.topics.get(group, [])})
                case 402 if self.is_5:
                    return _ok({"messageRequestModeMap": {}})
                case _:
                    return error(3, f" request type {asked.code} not supported")

        return answer


def _ok(value: Any) -> bytes:
    return answer_frame(json.dumps(value, separators=(",", ":")).encode())


def _offsets(topics: Sequence[str], address: str) -> bytes:
    """As fastjson prints it: objects as keys."""
    name = address.partition(":")[0]
    queues = ",".join(
        f'{{"brokerName":"{name}","queueId":{queue},"topic":"{topic}"}}:'
        '{"brokerOffset":9,"consumerOffset":9,"lastTimestamp":0}'
        for topic in topics
        for queue in range(4)
    )
    return answer_frame(f'{{"consumeTps":0.0,"offsetTable":{{{queues}}}}}'.encode())
