"""The routes of a topic: one row per broker, one id per content."""

from __future__ import annotations

import pytest

from jobs.declared.contents import content_id
from jobs.dumps.statement import RouteEntry
from tests.snapshots.builders import CLUSTER, NAMESRV, TOPIC, at, route, tables_of_topic

A = RouteEntry("broker-a", (0, 2), 6, 8, 4, "z1", ("h:1", "h:2"), True)
B = RouteEntry("broker-b", (), 2, 4, 4, None)


def test_a_route_has_a_row_for_each_of_its_brokers_and_its_content_once():
    rows = tables_of_topic(route(A, B), route(B, A, seconds=60), route(A, seconds=120))
    assert rows["topic_routes"][0] == {
        "cluster": CLUSTER,
        "snapshot_time": at(0),
        "namesrv_addr": NAMESRV,
        "topic": TOPIC,
        "broker_name": "broker-a",
        "broker_ids": [0, 2],
        "perm": 6,
        "read_queue_nums": 8,
        "write_queue_nums": 4,
        "zone_name": "z1",
        "broker_addrs": ["h:1", "h:2"],
        "enable_acting_master": True,
    }
    assert len(rows["topic_routes"]) == 5
    both, turned, alone = [poll["route_id"] for poll in rows["route_polls"]]
    assert both == turned != alone
    contents = {
        row["route_id"]: sorted(each["broker_name"] for each in row["brokers"])
        for row in rows["route_contents"]
    }
    assert contents == {both: ["broker-a", "broker-b"], alone: ["broker-a"]}
    assert len(rows["route_contents"]) == 2


def test_a_broker_that_an_answer_has_twice_counts_once():
    rows = tables_of_topic(route(A, B, A), route(B, A, seconds=60))
    twice, once = [poll["route_id"] for poll in rows["route_polls"]]
    assert twice == once
    (content,) = rows["route_contents"]
    assert sorted(each["broker_name"] for each in content["brokers"]) == ["broker-a", "broker-b"]


@pytest.mark.parametrize(
    "answer",
    [
        route(),
        route(code=17, message="No topic route info in name server for the topic"),
        # The dashboard passes the code on only within its message.
        route(code=-1, message="CODE: 17  DESC: x"),
        route(code=-1, message="No topic route info"),
    ],
)
def test_that_there_is_no_such_topic_is_an_answer(answer):
    rows = tables_of_topic(answer)
    (row,) = rows["topic_routes"]
    assert (row["broker_name"], row["broker_ids"], row["zone_name"]) == (None, None, None)
    assert (row["perm"], row["read_queue_nums"], row["write_queue_nums"]) == (0, 0, 0)
    (poll,), (content,) = rows["route_polls"], rows["route_contents"]
    assert poll["route_id"] == content["route_id"] == content_id([])
    assert content["brokers"] == []


@pytest.mark.parametrize(
    "failure", [route(code=-1), route(code=-1, message="CODE: 170 timeout"), route(code=1)]
)
def test_of_a_nameserver_that_did_not_answer_nothing_is_known(failure):
    assert tables_of_topic(failure) == {}


def test_of_a_round_the_last_answer_of_each_nameserver_counts():
    rows = tables_of_topic(
        route(A, collected=2),
        route(code=17, collected=1),
        route(code=17, namesrv="ns-2:9876", collected=1),
        # The last answer is none: what was collected before it does not come back.
        route(A, namesrv="ns-3:9876", collected=1),
        route(code=-1, namesrv="ns-3:9876", collected=2),
    )
    found = {row["namesrv_addr"]: row["broker_name"] for row in rows["topic_routes"]}
    assert found == {NAMESRV: "broker-a", "ns-2:9876": None}
