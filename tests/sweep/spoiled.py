"""A small cluster with every kind of line, and the same with one number changed.

Each case is a cluster of its own in one night: its brokers, nameserver and client ids are no one
else's, so that whatever its number does beyond it shows in the others' rows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from tests.cases import small_dumps
from tests.cases.small_dumps import BROKERS, MEMBERS, SHARES, holds, line, members, offsets, route

#: What stands in place of a number, as JSON has it.
VALUES = (
    *("0", "-1", str(2**31), str(2**53), str(2**62), str(2**63 - 1), "1e400"),
    *("NaN", "null", '"text"', "1.5", "-" + str(2**63)),
)
MINUTES = range(5)
#: The group whose lines are changed, and one beside it in the same cluster.
GROUP, BESIDE = "G", "H"

Line = dict[str, Any]


class Case(NamedTuple):
    """One number of one kind of line; ``everywhere``: in all lines of the kind, else in the first
    that has it.
    """

    kind: str
    field: str
    value: str
    everywhere: bool

    @property
    def name(self) -> str:
        """The name of its cluster."""
        return f"{self.kind}.{self.field}={self.value}{'' if self.everywhere else ' once'}"


def lines() -> list[Line]:
    """The lines of a cluster: two groups, one with every kind of line."""
    found: list[Line] = []
    for minute in MINUTES:
        at = 60 * minute
        found += [route(at, *BROKERS), route(at, *BROKERS, topic="%RETRY%G"), _static_topic(at)]
        for number, name in enumerate(BROKERS, start=1):
            found.append(members(at + number, name, MEMBERS, topics=("T", "%RETRY%G")))
            beside = members(at + number, name, MEMBERS[:2])
            found.append(beside | {"consumer_group": BESIDE})
            read = offsets(at + 10 + number, name, (1000 + 60 * minute, 900 + 60 * minute), 2.5)
            of_dashboard = json.dumps({"status": 0, "data": json.loads(read["body"])})
            found += [read, read | {"consumer_group": BESIDE, "body": of_dashboard}]
            found += _of_broker(at + 20 + number, name)
        found += [
            holds(
                at + 30,
                each,
                {
                    queue: {
                        "cachedMsgCount": 1,
                        "cachedMsgMinOffset": 900 + 60 * minute,
                        "lastConsumeTimestamp": 1_795_168_800_000 + 1000 * at,
                        "lastLockTimestamp": 1_795_168_800_000 + 1000 * at,
                        "lastPullTimestamp": 1_795_168_800_000 + 1000 * at,
                        "locked": True,
                    }
                    for queue in SHARES[each]
                },
            )
            for each in MEMBERS
        ]
        found += [_heartbeat(at + 5, each) for each in MEMBERS]
    found.append(_log(45))
    return found


def _static_topic(second: int) -> Line:
    found = route(second, BROKERS[0], topic="STATIC")
    mapping = {"bname": BROKERS[0], "epoch": 1, "scope": "__global__", "totalQueues": 4}
    body = json.loads(found["body"]) | {"topicQueueMappingByBroker": {BROKERS[0]: mapping}}
    return found | {"body": json.dumps(body)}


def _of_broker(second: int, name: str) -> Iterator[Line]:
    to = {"broker_name": name, "broker_id": 0, "broker_addr": f"{name}:10911"}

    def said(kind: str, body: Any, **values: Any) -> Line:
        return line(kind, second, **to, **values, body=json.dumps(body))

    dead = json.dumps({"brokerName": name, "queueId": 0, "topic": "%DLQ%G"})
    table = {dead: {"maxOffset": 7, "minOffset": 0, "lastUpdateTimestamp": 1_795_168_800_000}}
    yield said("topic_stats", {"offsetTable": table}, consumer_group="G")
    mode = {"topic": "T", "consumerGroup": "G", "mode": "PULL", "popShareQueueNum": 0}
    yield said("message_request_mode", {"messageRequestModeMap": {"T": {"G": mode}}})
    flags = {"groupName": "G", "consumeEnable": True, "retryQueueNums": 1, "brokerId": 0}
    yield said("subscription_group", {"subscriptionGroupTable": {"G": flags}})
    yield said("consumer_topics", {"topicList": ["T"], "size": 1}, consumer_group="G")
    failed = {"error_code": 206, "error_message": "the consumer group not online"}
    yield line("consumer_connection", second, **to, consumer_group="GONE", **failed)
    brokers = {name: {"brokerName": name, "cluster": "C", "brokerAddrs": {"0": f"{name}:10911"}}}
    yield line(
        "cluster_info",
        second,
        namesrv_addr="ns:9876",
        body=json.dumps({"brokerAddrTable": brokers, "clusterAddrTable": {"C": [name]}}),
    )
    body = json.dumps({"what": "groups", "number": 3})
    yield line("left_out", second, body=body)


def _heartbeat(second: int, client_id: str) -> Line:
    data = {
        "groupName": "G",
        "consumeType": "CONSUME_PASSIVELY",
        "messageModel": "CLUSTERING",
        "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET",
        "subscriptionDataSet": small_dumps.subscriptions(["T", "%RETRY%G"]),
        "unitMode": False,
    }
    body = {"clientID": client_id, "consumerDataSet": [data], "heartbeatFingerprint": 0}
    host = client_id.partition("@")[0]
    return line(
        "heartbeat",
        second,
        broker_name=BROKERS[0],
        broker_id=0,
        broker_addr=f"{BROKERS[0]}:10911",
        client_addr=f"{host}:40100",
        body=json.dumps(body),
    )


def _log(second: int) -> Line:
    return line(
        "client_log",
        second,
        process="app-1",
        body=(
            "2026-11-20 10:00:40,123 INFO RocketmqClient - rebalanced result changed. "
            "allocateMessageQueueStrategyName=AVG, group=G, topic=T, clientId=10.0.0.0@0, "
            "mqAllSize=8, cidAllSize=4, rebalanceResultSize=2, rebalanceResultSet="
            "[MessageQueue [topic=T, brokerName=broker-a, queueId=0], "
            "MessageQueue [topic=T, brokerName=broker-a, queueId=1]]"
        ),
    )


#: A number with its name: of JSON, of JSON in a key, as a text; of a line of a log.
_NUMBER = re.compile(
    r'(\\*"(?P<json>\w+)\\*":\s*\\*"?|\b(?P<log>\w+)=)(?P<number>-?\d+(?:\.\d+)?)(?![\d.@:])'
)
#: The id of an address of a broker is the key.
_ID = re.compile(r'(?<="brokerAddrs": \{")(?P<number>\d+)(?=")')


def fields() -> list[tuple[str, str]]:
    """Every number of every kind of line: its kind and its name, of the envelope with a dot."""
    found: dict[tuple[str, str], None] = {}
    for each in lines():
        for name, value in each.items():
            if isinstance(value, int):
                found[each["kind"], f".{name}"] = None
        for match in _NUMBER.finditer(each.get("body", "")):
            found[each["kind"], match["json"] or match["log"]] = None
        if _ID.search(each.get("body", "")):
            found[each["kind"], "id"] = None
    return list(found)


def cases(values: Iterable[str] = VALUES) -> list[Case]:
    """Every number of every kind of line with every value, once and everywhere."""
    return [
        Case(*field, value, everywhere)
        for field in fields()
        for value in values
        for everywhere in (False, True)
    ]


def spoiled(case: Case) -> Iterator[str]:
    """The lines of a cluster with the case's number changed, as text."""
    done = False
    for each in lines():
        if each["kind"] == case.kind and (case.everywhere or not done):
            new = _changed(each, case)
            done = new is not None
            yield as_text(each if new is None else new, case.name)
        else:
            yield as_text(each, case.name)


def as_text(each: Line, cluster: str) -> str:
    """The line as a dump has it, in a cluster of its own."""
    text = json.dumps(each | {"cluster": cluster}).replace("ns:9876", f"{_host(cluster)}:9876")
    return re.sub(r'"@@(.*?)@@"', lambda match: json.loads(f'"{match[1]}"'), text)


def _host(cluster: str) -> str:
    return re.sub(r"\W", "-", cluster)


def _changed(each: Line, case: Case) -> Line | None:
    """The line with its number changed; None where it does not have it."""
    if case.field.startswith("."):
        name = case.field[1:]
        raw = json.dumps(case.value)[1:-1]
        return each | {name: f"@@{raw}@@"} if isinstance(each.get(name), int) else None
    body = each.get("body", "")
    if case.field == "id":
        made = _ID.sub(lambda _: case.value.strip('"'), body)
    else:

        def value(match: re.Match[str]) -> str:
            is_it = case.field == (match["json"] or match["log"])
            plain = case.value.strip('"') if _is_text(match) else case.value
            return match[1] + plain if is_it else match[0]

        made = _NUMBER.sub(value, body, count=0)
    return None if made == body else each | {"body": made}


def _is_text(match: re.Match[str]) -> bool:
    return match["log"] is not None or match[1].endswith('"')


def night(those: Iterable[Case], control: str = "control") -> Iterator[str]:
    """The lines of all cases, and of a cluster of which none is changed."""
    for each in lines():
        yield as_text(each, control)
    for case in those:
        yield from spoiled(case)
