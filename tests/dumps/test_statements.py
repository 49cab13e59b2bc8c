"""Each line of a dump is read once: as what was said, or with the reason why it says nothing.

Whatever a line holds: tests/fuzz/test_dump_lines.py.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from jobs.config.bounds import DEFAULT_BOUNDS
from jobs.dumps import parsing
from jobs.dumps.queues import STRATEGY_PACKAGE
from jobs.dumps.statement import (
    KINDS,
    ConfiguredGroups,
    Connection,
    Connections,
    GroupFlags,
    HeartbeatOfGroup,
    InfoQueue,
    LineSource,
    LogicalQueue,
    LogLine,
    Offset,
    RequestMode,
    Route,
    RouteEntry,
    RunningInfo,
    SharedName,
    Statement,
    Stats,
)
from jobs.dumps.statements import RefusedLine, StatementReader
from jobs.dumps.typed import read_body
from jobs.schemas import LIST_REFUSED
from tests.dumps.samples import BODIES, NINE, line

HEARTBEAT, CONNECTION, ROUTE, INFO, STATS, MODES, FLAGS, LOG, DEAD = KINDS
EVERY_KIND = (
    "heartbeat, consumer_connection, topic_route, consumer_running_info, consume_stats, "
    "topic_stats, message_request_mode, client_log, cluster_info, subscription_group, "
    "consumer_topics, left_out"
)
UNTIMED = {"collected_at": None}
BROKER = ("broker-a", 0)
TAGS = (("T", "TAG", "*"),)


@pytest.fixture(autouse=True, params=["the fastest parser", "the standard library's"])
def _either_parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "the standard library's":
        monkeypatch.setattr(parsing, "_LOADS", parsing._standard)


def say(text: str | bytes) -> list[Statement] | RefusedLine:
    given = text.encode() if isinstance(text, str) else text
    return StatementReader(DEFAULT_BOUNDS, None).read(given)


def read(text: str | bytes) -> list[Statement]:
    said = say(text)
    assert isinstance(said, list), said
    return said


def one(text: str | bytes) -> Any:
    (statement,) = read(text)
    return statement


def content(kind: str, body: Any) -> Any:
    return one(line(kind, body=body)).content


def reason(text: str | bytes) -> str:
    said = say(text)
    assert isinstance(said, RefusedLine), said
    return said.reason


# ------------------------------------------------------------------ one of each kind


@pytest.mark.parametrize(
    ("kind", "subject", "source", "said"),
    [
        (
            HEARTBEAT,
            "G",
            LineSource(*BROKER, client_addr="10.0.0.1:40000"),
            HeartbeatOfGroup("10.0.0.1@1", True, "CONSUME_PASSIVELY", "CLUSTERING", TAGS),
        ),
        (
            CONNECTION,
            "G",
            LineSource(*BROKER),
            Connections(
                (Connection("10.0.0.1@1", "10.0.0.1:40000", "JAVA", 401),),
                *("CONSUME_PASSIVELY", "CLUSTERING", None, (("T", "TAG", "a||b"),)),
            ),
        ),
        (
            ROUTE,
            "T",
            LineSource(namesrv_addr="ns-1:9876"),
            Route((RouteEntry("broker-a", (0,), 6, 4, 8, None, ("10.0.1.1:10911",)),)),
        ),
        (
            INFO,
            "G",
            LineSource(client_id="10.0.0.1@1"),
            RunningInfo(
                start_timestamp=NINE,
                strategy="AVG",
                message_model="CLUSTERING",
                consume_type="CONSUME_PASSIVELY",
                pull_consumer=False,
                consume_orderly=True,
                client_rebalance=None,
                subscriptions=TAGS,
                queues=(InfoQueue("T", "broker-a", 3, True, NINE),),
            ),
        ),
        (STATS, "G", LineSource(), Stats((Offset("T", "broker-a", 3, 9, 7, NINE),))),
        (DEAD, "G", LineSource(*BROKER), Stats((Offset("%DLQ%G", *BROKER, 9, -1, None),))),
        (
            LOG,
            "G",
            LineSource(process="host-1"),
            LogLine("AVG", "T", "10.0.0.1@1", 4, 2, False, NINE, (("T", "broker-a", 3),)),
        ),
    ],
)
def test_a_line_of_each_kind(kind: str, subject: str, source: LineSource, said: Any) -> None:
    snapshot_time = None if kind in (HEARTBEAT, LOG) else NINE
    expected = Statement(kind, "C", subject, snapshot_time, NINE + 250_000, 7, source, said)

    assert StatementReader(DEFAULT_BOUNDS, None).read(line(kind).encode(), order=7) == [expected]


def test_a_line_may_begin_with_a_byte_order_mark_and_end_as_windows_ends_it() -> None:
    text = line(ROUTE)

    assert read(b"\xef\xbb\xbf" + text.encode() + b"\r") == read(text) == read("\ufeff" + text)


def test_who_was_asked_is_told_of_each_kind_by_its_fields_alone() -> None:
    asked: dict[str, Any] = {"broker_name": "b", "broker_id": 1, "broker_addr": "10.0.1.1:10911"}
    asked |= {"client_addr": "10.0.0.1:1", "namesrv_addr": "ns", "process": "p"}

    def source(kind: str, **more: Any) -> LineSource:
        return one(line(kind, **asked | more)).source

    of_broker = LineSource("b", 1, "10.0.1.1:10911")
    assert source(HEARTBEAT) == of_broker._replace(client_addr="10.0.0.1:1")
    assert source(CONNECTION) == source(STATS) == of_broker
    assert source(ROUTE) == LineSource(namesrv_addr="ns")
    assert source(INFO, client_id="c") == of_broker._replace(client_id="c", process="p")
    assert source(LOG) == LineSource(process="p")


# ------------------------------------------------------------------ envelopes

NO_OBJECT = "expected one JSON object, came"
NO_TEXT, NO_TIME = "to be a text that is not empty", "to be a time as ISO 8601 with zone, came"
#: By reason the lines that are refused for it.
GARBAGE = {
    f'{NO_OBJECT} \'{{"kind": ': [line(ROUTE)[:80]],
    NO_OBJECT: [
        *(f"[{line(ROUTE)}]", line(ROUTE) * 2, f"{line(ROUTE)},{line(ROUTE)}"),
        *(line(ROUTE) + " oops", line(ROUTE) + "] oops", "{'kind':'topic_route'}"),
        line(ROUTE)[:-1] + ',"x":' + "[" * 2000 + "]" * 2000 + "}",
    ],
    f"{NO_OBJECT} '17'": ["17"],
    f"{NO_OBJECT} '\"topic_route\"'": ['"topic_route"'],
    f"{NO_OBJECT} 'null'": ["null"],
    f"{NO_OBJECT} 'Exception in": ["Exception in thread main"],
    "expected a JSON object, came an empty line": ["", " \t\r"],
    f"expected kind to be one of {EVERY_KIND}, came 'rote'": [
        line(ROUTE).replace("topic_route", "rote")
    ],
    f"{EVERY_KIND}, came 'topic_rout': did you mean topic_route?": [
        line(ROUTE)[:20] + line(ROUTE)[21:]
    ],
    f"expected kind to be one of {EVERY_KIND}, came nothing": ["{}"],
    "expected kind to be one of": ['{"kind":5}'],
    "came '[\"topic_route\"]'": ['{"kind":["topic_route"]}'],
    # Of several problems the first in the order of the fields is told.
    f"expected cluster {NO_TEXT}": [line(ROUTE, cluster=None, **each) for each in ({}, UNTIMED)],
    f"expected topic {NO_TEXT}, came ''": [line(ROUTE, topic="")],
    f"expected snapshot_time {NO_TIME} nothing": [line(ROUTE, snapshot_time=None)],
    # A time without a zone could be any.
    f"snapshot_time {NO_TIME} '2026-11-20T10:00": [line(ROUTE, snapshot_time="2026-11-20T10:00")],
    f"expected snapshot_time {NO_TIME} '1795226590'": [line(ROUTE, snapshot_time=1795226590)],
    f"expected collected_at {NO_TIME}": [
        line(ROUTE, collected_at=f"2026-{each}")
        for each in ("02-31T10:00:00Z", "01-05T09:00:00+19:00")
    ],
    **{
        f"expected broker_id to be an integer, came '{came}'": [line(HEARTBEAT, broker_id=given)]
        for given, came in [
            *(("zero", "zero"), (1.5, "1.5"), (True, "true"), ("\u0663", "\u0663")),
            (10**18, "1000000000000000000"),
        ]
    },
    "expected error_code to be an integer, came 'many'": [
        line(ROUTE, body=None, error_code="many"),
        line(HEARTBEAT, error_code="many"),
    ],
    "expected error_code to be an integer, came '2147483648'": [
        line(ROUTE, body=None, error_code=2**31)
    ],
    "expected body or error_code, came neither": [
        line(ROUTE, body=None),
        line(ROUTE, body=None, error_code=0),
    ],
    "expected body, came none": [line(HEARTBEAT, body=None, error_code=1)],
}


@pytest.mark.parametrize(
    ("expected", "text"),
    [(expected, text) for expected, texts in GARBAGE.items() for text in texts],
    ids=lambda each: each[:40],
)
def test_a_line_is_refused_with_its_reason(expected: str, text: str) -> None:
    assert expected in reason(text)


def test_no_more_than_the_beginning_of_what_came_is_told() -> None:
    assert reason("x" * 61) == f"expected one JSON object, came '{'x' * 60}...'"
    assert reason("x" * 60) == f"expected one JSON object, came '{'x' * 60}'"


@pytest.mark.parametrize("text", [b"\xff{}", b'{"kind":"\xed\xa0\x80"}', b"{}\xed\xb3\xbf"])
def test_bytes_that_are_no_text_are_refused(text: bytes) -> None:
    assert reason(text) == "expected UTF-8 text, came bytes that are none"


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2026-01-05T09:00:00Z", NINE),
        ("2026-01-05T17:00:00+08:00", NINE),
        ("2026-01-05T17:00:00+0800", NINE),
        ("2026-01-05T09:00:00.5Z", NINE + 500_000),
        # Finer than a microsecond is cut off, as Spark's timestamps do.
        ("2026-01-05T09:00:00.123456789Z", NINE + 123_456),
    ],
)
def test_a_time_has_a_zone(text: str, instant: int) -> None:
    assert one(line(ROUTE, collected_at=text)).collected_at == instant


def test_true_is_no_broker_id_whatever_came_before() -> None:
    """A reader remembers envelopes, and to Python true equals 1."""
    reader = StatementReader(DEFAULT_BOUNDS, None)

    assert isinstance(reader.read(line(HEARTBEAT, broker_id=1).encode()), list)
    assert isinstance(reader.read(line(HEARTBEAT, broker_id=True).encode()), RefusedLine)


def test_what_is_not_demanded_counts_as_missing_where_it_is_wrong() -> None:
    assert one(line(INFO, broker_id="first")).source.broker_id is None
    assert one(line(HEARTBEAT, snapshot_time="yesterday")).snapshot_time is None


# ------------------------------------------------------------------ errors in place of bodies


@pytest.mark.parametrize(
    ("overrides", "code", "message"),
    [
        ({"body": None, "error_code": 206, "error_message": "why"}, 206, "why"),
        ({"body": None, "error_code": "206"}, 206, None),
        ({"body": None, "error_code": -(2**31)}, -(2**31), None),
        ({"body": '{"status":-1,"errMsg":"why"}'}, -1, "why"),
        ({"body": '{"status":-1,"data":null,"errMsg":"x"}', "error_code": 206}, 206, "x"),
        ({"body": '{"status":1}', "error_message": "why"}, -1, "why"),
        # What the data of a failed answer are is of no interest.
        ({"body": '{"status":-1,"data":"none","errMsg":"why"}'}, -1, "why"),
        # Both an answer and an error: that it failed is not to be overlooked.
        ({"error_code": 1}, 1, None),
    ],
)
def test_an_error_is_that_of_the_envelope_else_that_of_the_dashboard(
    overrides: dict[str, Any], code: int, message: str | None
) -> None:
    statement = one(line(CONNECTION, **overrides))

    assert (statement.source.error_code, statement.source.error_message) == (code, message)
    assert (statement.subject, statement.content) == ("G", None)


def test_what_is_heard_and_not_asked_for_has_no_error() -> None:
    assert one(line(HEARTBEAT, error_code=1)) == one(line(HEARTBEAT))
    assert reason(line(HEARTBEAT, body='{"status":1}')) == (
        "body: expected HeartbeatData with a clientID"
    )


# ------------------------------------------------------------------ bodies

QUEUE_DATA = {"brokerName": "b", "perm": 6, "readQueueNums": 4, "writeQueueNums": 4}
#: By kind what was expected of a body, and the bodies that are refused for it.
BAD_BODIES: dict[str, dict[str, list[Any]]] = {
    ROUTE: {
        "TopicRouteData, came '17'": [17],
        "TopicRouteData, came": [
            *(BODIES[ROUTE][:60], BODIES[ROUTE] + "]"),
            BODIES[ROUTE].replace('"readQueueNums":4', '"readQueueNums":"four"'),
            {"queueDatas": [{"brokerName": "b", "perm": True}]},
        ],
        "TopicRouteData with queueDatas and brokerDatas": ["{}"],
        "every brokerData to have a brokerName": ['{"brokerDatas":[{"brokerName":""}]}'],
        "every topicQueueMapping to have totalQueues of 0 to 2147483647": [
            '{"queueDatas":[],"topicQueueMappingByBroker":{"b":{"totalQueues":-1}}}'
        ],
        "every queueData to have a brokerName, a perm, and readQueueNums and writeQueueNums of 0 "
        "to 2147483647": [
            {"queueDatas": [QUEUE_DATA | {field: value}]}
            for field, value in [
                *(("brokerName", ""), ("perm", None), ("readQueueNums", -1)),
                *(("readQueueNums", None), ("writeQueueNums", -(2**31))),
            ]
        ],
    },
    CONNECTION: {
        "ConsumerConnection, came nothing": [""],
        "ConsumerConnection, came 'null'": ["null"],
        "ConsumerConnection, came '[1]'": [[1]],
        "ConsumerConnection, came": [
            *('{"status":0,"data":"x"}', '{"status":"0"}'),
            '{"connectionSet":{"clientId":"a"}}',
        ],
        "ConsumerConnection with a connectionSet": ["{}"],
        "messageModel to be one of CLUSTERING, BROADCASTING, came 'Clustering'": [
            '{"connectionSet":[],"messageModel":"Clustering"}'
        ],
    },
    HEARTBEAT: {
        "HeartbeatData with a clientID": ['{"clientID":""}'],
        "every consumerDataSet to have a groupName": [
            '{"clientID":"a","consumerDataSet":[{"groupName":"G"},{"groupName":""}]}',
            '{"clientID":"a","consumerDataSet":[null]}',
        ],
        "HeartbeatData, came": ['{"clientID":"a","withoutSub":1}'],
        "consumeType to be one of CONSUME_PASSIVELY, CONSUME_ACTIVELY, CONSUME_POP, came 'push'": [
            '{"clientID":"a","consumerDataSet":[{"groupName":"G","consumeType":"push"}]}'
        ],
    },
    INFO: {
        "ConsumerRunningInfo with properties and an mqTable": ["{}"],
        "ConsumerRunningInfo, came": [BODIES[INFO].replace("true,", '"true",', 1)],
    },
    STATS: {
        "ConsumeStats with an offsetTable": ["{}"],
        # No long holds the first.
        "ConsumeStats, came": [
            BODIES[STATS].replace(":9,", f":{each},") for each in (9223372036854775808, 9.0)
        ],
    },
}
#: The tokenizer says where bodies break off that no JSON parser reads anyway.
BROKEN_OFF = [
    (STATS, BODIES[STATS][:30], "at character 30: expected a value, came the end of the text"),
    (
        CONNECTION,
        '{"a":{"$ref":"$.nothing"},"connectionSet":[]}',
        "at character 5: expected a reference to a value that is there",
    ),
    (
        INFO,
        '{"mqTable":{"T@g":{}}}',
        "at character 1: expected a message queue as key in mqTable, came 'T@g'",
    ),
    (LOG, BODIES[LOG][:120], "no ', topic=' after 'G,'"),
]


@pytest.mark.parametrize(
    ("kind", "body", "said"),
    [
        *BROKEN_OFF,
        *[
            (kind, body, f"expected {said}")
            for kind, of_kind in BAD_BODIES.items()
            for said, bodies in of_kind.items()
            for body in bodies
        ],
    ],
    ids=lambda each: str(each)[:30],
)
def test_a_body_is_refused_with_its_reason(kind: str, body: Any, said: str) -> None:
    assert reason(line(kind, body=body)).startswith(f"body: {said}")


@pytest.mark.parametrize(
    ("fields", "connection"),
    [
        ({}, Connection("a", "", None, None)),
        ({"clientAddr": "x", "version": 401}, Connection("a", "x", None, 401)),
        *(
            ({"clientAddr": None, "version": odd}, Connection("a", "", None, None))
            for odd in (2147483648, 401.0, "401", True, [], 2**70)
        ),
    ],
    ids=str,
)
def test_a_field_of_a_connection_that_cannot_be_read_costs_itself(
    fields: dict[str, Any], connection: Connection
) -> None:
    body = {"connectionSet": [{"clientId": "a", **fields}]}
    found: Connections = content(CONNECTION, body)
    assert found.connections == (connection,)


@pytest.mark.parametrize("odd", [{"clientId": ""}, {"clientId": None}, {}, None, 7], ids=str)
def test_a_list_with_a_connection_without_an_id_is_an_answer_and_no_evidence(odd: Any) -> None:
    known = {"clientId": "a", "clientAddr": "x"}
    odd = odd and {**odd, "clientAddr": "10.0.0.9:1"} if isinstance(odd, dict) else odd
    poll = one(line(CONNECTION, body={"connectionSet": [known, odd]}))
    whose = "10.0.0.9:1" if odd and isinstance(odd, dict) else "an unknown address"
    assert poll.content is None
    assert poll.source.error_code == LIST_REFUSED
    assert f"no clientId of the connection from {whose} (1 of 2 connections)" in (
        poll.source.error_message
    )


@pytest.mark.parametrize("body", ["", "null", "{}", '{"connectionSet":[],"messageModel":"x"}'])
def test_a_list_that_cannot_be_read_is_a_poll_all_the_same(body: str) -> None:
    said = say(line(CONNECTION, body=body))
    assert isinstance(said, RefusedLine)
    (poll,) = said.polls
    assert poll[:3] == (CONNECTION, "C", "G")
    assert poll.source == LineSource(*BROKER, error_code=LIST_REFUSED, error_message=said.reason)
    of_no_list = say(line(STATS, body="{}"))
    assert isinstance(of_no_list, RefusedLine)
    assert not of_no_list.polls


def test_a_body_may_be_an_object() -> None:
    body = json.loads(BODIES[CONNECTION])

    assert content(CONNECTION, body) == content(CONNECTION, BODIES[CONNECTION])


def test_what_the_dashboard_wrapped_is_bare() -> None:
    data = {"connectionSet": [], "consumeType": "CONSUME_POP"}
    wrapped = {"status": 0, "data": data, "errMsg": None, "connectionSet": None}

    assert content(CONNECTION, json.dumps(wrapped)) == Connections(
        (), "CONSUME_POP", None, None, ()
    )


def test_a_field_that_is_not_read_may_hold_anything() -> None:
    body = json.loads(BODIES[CONNECTION]) | {"mqTable": 7, "version": "x"}

    assert content(CONNECTION, body) == content(CONNECTION, BODIES[CONNECTION])


# ------------------------------------------------------------------ heartbeats


def beat(*groups: dict[str, Any], **more: Any) -> str:
    return line(HEARTBEAT, body={"clientID": "a", "consumerDataSet": list(groups), **more})


def test_a_heartbeat_speaks_of_each_of_its_groups() -> None:
    said = read(beat({"groupName": "G1"}, {"groupName": "G2"}))

    assert [each.subject for each in said] == ["G1", "G2"]
    assert read(beat()) == read(line(HEARTBEAT, body='{"clientID":"a"}')) == []


def test_an_empty_set_with_without_sub_says_nothing_of_what_is_subscribed_to() -> None:
    group: dict[str, Any] = {"groupName": "G", "subscriptionDataSet": []}

    assert one(beat(group)).content.is_full  # assign(): subscribes to nothing
    assert not one(beat(group, withoutSub=True)).content.is_full
    group |= {"subscriptionDataSet": [{"topic": "T"}]}
    assert one(beat(group, withoutSub=True)).content.is_full


def test_subscriptions_are_sorted_and_each_there_once() -> None:
    given = [
        {"topic": "U", "subString": "a > 1", "expressionType": "SQL92", "subVersion": 1},
        {"topic": "T", "subVersion": 2},
        {"topic": "T", "subString": "*", "expressionType": "TAG", "subVersion": 3},
        {"subString": "nothing"},
        None,
    ]

    assert one(beat({"groupName": "G", "subscriptionDataSet": given})).content.subscriptions == (
        ("T", "TAG", "*"),
        ("U", "SQL92", "a > 1"),
    )


# ------------------------------------------------------------------ lists


def test_a_list_is_the_same_in_whatever_order_the_broker_prints_it() -> None:
    """The broker keeps its connections in a hash set by identity: each answer has another order."""
    given = [{"clientId": name, "clientAddr": f"{name}:{port}"} for name in "ab" for port in "12"]
    reader = StatementReader(DEFAULT_BOUNDS, None)

    (said,), (again,) = (
        reader.read(line(CONNECTION, body={"connectionSet": each}).encode())
        for each in (given, given[::-1])
    )

    assert said.content.connections == tuple(
        Connection(name, f"{name}:{port}", None, None) for name in "ab" for port in "12"
    )
    assert again.content is said.content
    assert again.source is said.source


# ------------------------------------------------------------------ routes


def brokers(body: dict[str, Any]) -> dict[str, tuple[Any, ...]]:
    """The brokers of a route by name, without their addresses."""
    return {each[0]: each[1:6] for each in content(ROUTE, body).brokers}


def addresses(**ids_by_name: list[int]) -> list[dict[str, Any]]:
    return [
        {"brokerName": name, "brokerAddrs": {str(i): f"10.0.0.{i}:10911" for i in ids}}
        for name, ids in ids_by_name.items()
    ]


def queues(read_queues: int = 4, perm: int = 6, *, name: str) -> dict[str, Any]:
    return {"brokerName": name, "perm": perm, "readQueueNums": read_queues, "writeQueueNums": 4}


def test_a_route_has_each_broker_that_has_an_address_or_queues() -> None:
    body = {
        "brokerDatas": [
            *addresses(both=[0, 2], slaves=[2, 1], no_queues=[0]),
            *[each | {"zoneName": "z1"} for each in addresses(zoned=[0])],
        ],
        "queueDatas": [
            *(queues(8, name="both"), queues(perm=2, name="slaves")),
            *(queues(name="no_address"), queues(name="zoned")),
        ],
    }

    assert brokers(body) == {
        "both": ((0, 2), 6, 8, 4, None),
        "slaves": ((1, 2), 2, 4, 4, None),
        "no_queues": ((0,), 0, 0, 0, None),
        "zoned": ((0,), 6, 4, 4, "z1"),
        "no_address": ((), 6, 4, 4, None),
    }


def test_the_first_of_equal_broker_names_counts() -> None:
    body = {
        "brokerDatas": addresses(b=[0]) + addresses(b=[1]),
        "queueDatas": [queues(8, name="b"), queues(2, name="b")],
    }

    assert content(ROUTE, body) == Route(
        (RouteEntry("b", (0,), 6, 8, 4, None, ("10.0.0.0:10911",)),)
    )


def test_a_route_has_the_address_of_each_id_and_whether_a_slave_may_act() -> None:
    addrs = {"2": "h:2", "0": "h:1", "1": None, "one": "h:3", "\u0663": "h:4"}
    given = {"brokerName": "b", "brokerAddrs": addrs}
    flags = [True, False, None, "yes"]
    found = [
        content(ROUTE, {"brokerDatas": [given | {"enableActingMaster": each}]}) for each in flags
    ]
    assert {each.brokers[0].broker_addrs for each in found} == {("h:1", "", "h:2")}
    assert [each.brokers[0].enable_acting_master for each in found] == [True, False, None, None]


def test_a_name_that_a_nameserver_has_in_several_clusters_is_a_statement() -> None:
    body = {"brokerAddrTable": {}, "clusterAddrTable": {"D": ["a", "b"], "C": ["a"]}}
    (found,) = read_body("cluster_info", json.dumps(body)).contents
    assert found == (None, SharedName("a", ("C", "D")))


def test_a_static_topic_has_its_logical_queues_under_the_names_that_clients_see() -> None:
    body = {
        "brokerDatas": addresses(physical=[0]),
        "queueDatas": [queues(8, name="physical")],
        "topicQueueMappingByBroker": {
            "physical": {"bname": "physical", "scope": "__global__", "totalQueues": 4},
            "other": {"bname": "other", "totalQueues": 6},
            "fewer": {"bname": "fewer", "scope": "__global__", "totalQueues": 5},
            "zone": {"bname": "zone", "scope": "east", "totalQueues": 2},
        },
    }

    assert content(ROUTE, body).brokers == (
        RouteEntry("physical", (0,), 6, 0, 0, None, ("10.0.0.0:10911",)),
        RouteEntry("__syslo__global__", (), 6, 6, 6, None),
        RouteEntry("__syslo__east", (), 6, 2, 2, None),
    )


def test_a_route_says_where_the_logical_queues_of_a_static_topic_lie() -> None:
    mapping = {"bname": "b", "epoch": 7, "totalQueues": 8, "currIdMap": {"6": 3, "1": "0"}}
    no_ids = {"-1": 0, "x": 1, "2": -1, "3": None, "9999999999": 2}
    body = {
        "queueDatas": [queues(8, name="b")],
        "topicQueueMappingByBroker": {
            "b": mapping,
            "c": {"bname": "c", "totalQueues": 8, "currIdMap": no_ids},
            "d": {"totalQueues": 8, "currIdMap": {"4": 0}},
        },
    }

    assert content(ROUTE, body).logical == (
        (LogicalQueue("__syslo__global__", 1, "b", 0), 7),
        (LogicalQueue("__syslo__global__", 6, "b", 3), 7),
    )


# ------------------------------------------------------------------ running infos


@pytest.mark.parametrize("name", ["messageModel", "PROP_CONSUME_TYPE"])
def test_what_a_client_says_of_itself_in_words_of_its_sdk_is_not_known(name: str) -> None:
    """The rest of its answer counts, and so does what its broker's list says of the group."""
    said = content(INFO, {"properties": {name: "Clustering"}, "mqTable": {}})
    assert (said.message_model, said.consume_type) == (None, None)


def info(**properties: Any) -> RunningInfo:
    said = content(INFO, {"properties": properties})
    assert isinstance(said, RunningInfo)
    return said


def test_a_pull_consumer_is_told_by_the_field_that_only_its_class_has() -> None:
    assert info(registerTopics="[]").pull_consumer is True
    assert info().pull_consumer is False
    assert content(INFO, '{"mqTable":{}}').pull_consumer is None


@pytest.mark.parametrize(
    ("text", "strategy"),
    [
        (None, None),
        (f"{STRATEGY_PACKAGE}AllocateMachineRoomNearby@1", "MACHINE_ROOM_NEARBY"),
        ("AllocateMessageQueueConsistentHash", "CONSISTENT_HASH"),
        # User code: the class itself, without the object's hash.
        ("com.acme.Mine@1f", "com.acme.Mine"),
        ("com.acme.Mine", "com.acme.Mine"),
    ],
)
def test_a_strategy_is_named_by_its_class(text: str | None, strategy: str | None) -> None:
    assert info(allocateMessageQueueStrategy=text).strategy == strategy


@pytest.mark.parametrize(
    ("properties", "client_rebalance"),
    [
        ({}, None),  # before 5.0 no broker assigns
        ({"PROP_CONSUMEORDERLY": "true"}, None),
        ({"clientRebalance": "true"}, True),
        ({"clientRebalance": "FALSE"}, False),
        ({"clientRebalance": False}, False),
        ({"clientRebalance": "false", "PROP_CONSUMEORDERLY": "true"}, True),
        ({"clientRebalance": "false", "messageModel": "BROADCASTING"}, True),
        ({"clientRebalance": "1"}, None),  # no boolean of Java
    ],
)
def test_who_assigns_the_queues(properties: dict[str, Any], client_rebalance: bool | None) -> None:
    assert info(**properties).client_rebalance is client_rebalance


@pytest.mark.parametrize(
    ("millis", "instant"),
    [
        ("1767603600000", NINE),
        (1767603600000, NINE),
        ("0", 0),
        ("now", None),
        ("1.5", None),
        # Long.MAX_VALUE is what some clients print for never: no table holds such a year.
        (str(2**63 - 1), None),
        ("253402300800000", None),
    ],
)
def test_a_start_is_a_time_in_milliseconds(millis: Any, instant: int | None) -> None:
    assert info(PROP_CONSUMER_START_TIMESTAMP=millis).start_timestamp == instant


def test_what_a_running_info_leaves_out_is_not_known() -> None:
    said = content(INFO, '{"properties":{}}')

    assert (said.subscriptions, said.queues) == (None, None)
    said = content(INFO, '{"mqTable":{},"subscriptionSet":[]}')
    assert (said.subscriptions, said.queues) == ((), ())


def test_a_queue_that_does_not_say_that_it_was_dropped_was_not() -> None:
    queue = '{"brokerName":"b","queueId":0,"topic":"T"}'

    said = content(INFO, '{"mqTable":{' + queue + ":{}," + queue.replace("0", "1") + ":null}}")

    assert said.queues == (InfoQueue("T", "b", 0, False, None), InfoQueue("T", "b", 1, False, None))


# ------------------------------------------------------------------ offsets


def test_a_broker_tells_the_mode_of_each_of_its_groups() -> None:
    """As a 5.1.4 broker answers request 402."""
    modes = {
        "T": {"G": {"mode": "POP", "popShareQueueNum": 4}, "H": {"mode": "PULL"}},
        "U": {"G": {"mode": "POP"}},
    }
    statements = read(line(MODES, body={"messageRequestModeMap": modes}))
    assert [(each.subject, each.content) for each in statements] == [
        ("G", RequestMode("T", "POP")),
        ("H", RequestMode("T", "PULL")),
        ("G", RequestMode("U", "POP")),
    ]
    assert read(line(MODES, body={"messageRequestModeMap": {}})) == []


def test_a_mode_that_is_none_says_nothing() -> None:
    modes = {"T": {"G": {"mode": "PUSH"}, "H": {}, "": {"mode": "POP"}}, "U": None}
    assert read(line(MODES, body={"messageRequestModeMap": modes})) == []
    assert "expected MessageRequestModeSerializeWrapper" in reason(line(MODES, body={"x": 1}))


def test_a_broker_names_the_groups_that_it_does_not_let_consume() -> None:
    """As a 4.9.4 broker answers request 201, in fastjson's dialect too; the default is true."""
    body = (
        '{"dataVersion":{"counter":{"value":1}},"forbiddenTable":{},"subscriptionGroupTable":{'
        '"G":{"brokerId":0,"consumeEnable":false,"groupName":"G"},"H":{"consumeEnable":true},'
        # Who made the group with mqadmin did not name its other flag.
        '"I":{"consumeBroadcastEnable":false},"J":null,"":{"consumeEnable":false}}}'
    )
    for text in (body, body.replace('"forbiddenTable":{}', '"forbiddenTable":{"G":{0:1}}')):
        statements = read(line(FLAGS, body=text))
        own, of_all = statements
        assert (own.subject, own.content) == ("G", GroupFlags(False))
        assert of_all.content == ConfiguredGroups(tuple("GHIJ"))
        assert statements[0].source.broker_name == "broker-a"
    (none,) = read(line(FLAGS, body={"subscriptionGroupTable": {}}))
    assert none.content == ConfiguredGroups(())


def test_a_flag_of_another_type_is_no_guess_of_ours() -> None:
    for body in ({"x": 1}, {"subscriptionGroupTable": {"G": {"consumeEnable": "false"}}}):
        assert "expected SubscriptionGroupWrapper" in reason(line(FLAGS, body=body))


def test_offsets_that_are_not_both_there_are_none() -> None:
    queue = "MessageQueue [topic=T, brokerName=b, queueId=%d]"
    table = {
        queue % 0: {"brokerOffset": 9, "consumerOffset": 7, "lastTimestamp": 0},
        queue % 1: {"brokerOffset": 9},
        queue % 2: {"consumerOffset": 9},
        queue % 3: None,
        queue % 4: {"brokerOffset": 2**45, "consumerOffset": -1, "lastTimestamp": 1},
    }

    assert content(STATS, {"offsetTable": table}).offsets == (
        Offset("T", "b", 0, 9, 7, None),  # 0: nothing was consumed yet
        Offset("T", "b", 4, 2**45, -1, 1000),
    )


@pytest.mark.parametrize("field", ["brokerOffset", "consumerOffset"])
@pytest.mark.parametrize("offset", [-2, 2**45 + 1, 2**62, 2**63 - 1])
def test_an_offset_that_no_queue_reaches_is_refused(field: str, offset: int) -> None:
    queue = {"brokerOffset": 9, "consumerOffset": 7, "lastTimestamp": 0} | {field: offset}
    body = {"offsetTable": {"MessageQueue [topic=T, brokerName=b, queueId=0]": queue}}
    expected = f"body: expected offsets of -1 to 35184372088832, came '{offset}'"
    assert reason(line(STATS, body=body)) == expected


@pytest.mark.parametrize("is_wrapped", [True, False])
def test_the_dashboard_has_offsets_by_topic(is_wrapped: bool) -> None:
    row = {"brokerName": "b", "queueId": 0, "brokerOffset": 9, "consumerOffset": 7}
    topics = [{"topic": "T", "queueStatInfoList": [row]}]

    body = {"status": 0, "data": topics, "errMsg": None} if is_wrapped else topics

    assert content(STATS, body) == Stats((Offset("T", "b", 0, 9, 7, None),))


# ------------------------------------------------------------------ log lines


@pytest.mark.parametrize("body", ["heartbeat sent", {"G": 1}, ""])
def test_a_log_line_of_something_else_is_understood_and_says_nothing(body: Any) -> None:
    assert read(line(LOG, body=body)) == []


@pytest.mark.parametrize("time", ["9999-12-31T23:59:59%s", "0001-01-01T00:00:00%s"])
@pytest.mark.parametrize("zone", ["Z", "-14:00", "+14:00"])
def test_a_time_without_a_date_in_utc_is_refused(time: str, zone: str) -> None:
    assert "collected_at" in reason(line(ROUTE, collected_at=time % zone))
