"""records -> topic_routes: one row per broker of each route that a nameserver gave."""

from __future__ import annotations

import pytest
from chispa import assert_df_equality

from jobs.schemas import TOPIC_ROUTES
from jobs.snapshots.topic_routes import make_topic_routes
from tests.support.snapshots import at, frame, route_line, route_row

pytestmark = pytest.mark.spark


def addresses(**ids_by_name):
    return [
        {"brokerName": name, "brokerAddrs": {str(i): f"10.0.0.{i}:10911" for i in ids}}
        for name, ids in ids_by_name.items()
    ]


def queues(read=4, write=4, perm=6, *, name):
    return {"brokerName": name, "perm": perm, "readQueueNums": read, "writeQueueNums": write}


def test_a_route_has_a_row_for_each_of_its_brokers(spark, records):
    body = {
        "brokerDatas": [
            *addresses(both=[0, 2], slaves=[2, 1], no_queues=[0]),
            *[each | {"zoneName": "z1"} for each in addresses(zoned=[0])],
        ],
        "queueDatas": [
            queues(8, 4, name="both"),
            queues(4, 4, 2, name="slaves"),
            queues(name="no_address"),
            queues(name="zoned"),
        ],
    }

    actual = make_topic_routes(records(route_line(body)))

    expected = [
        route_row(broker_name="both", broker_ids=[0, 2], read_queue_nums=8),
        route_row(broker_name="slaves", broker_ids=[1, 2], perm=2),
        route_row(broker_name="zoned", zone_name="z1"),
        route_row(broker_name="no_queues", perm=0, read_queue_nums=0, write_queue_nums=0),
        route_row(broker_name="no_address", broker_ids=[]),
    ]
    assert_df_equality(
        actual, frame(spark, TOPIC_ROUTES, expected), ignore_row_order=True, ignore_nullable=True
    )


def test_a_static_topic_has_its_logical_queues_under_the_names_that_clients_see(spark, records):
    body = {
        "brokerDatas": addresses(physical=[0]),
        "queueDatas": [queues(8, 8, name="physical")],
        "topicQueueMappingByBroker": {
            "physical": {"bname": "physical", "scope": "__global__", "totalQueues": 4},
            "other": {"bname": "other", "scope": "__global__", "totalQueues": 6},
            "zone": {"bname": "zone", "scope": "east", "totalQueues": 2},
        },
    }

    actual = make_topic_routes(records(route_line(body)))

    def logical(name, number):
        return route_row(
            broker_name=name, broker_ids=[], read_queue_nums=number, write_queue_nums=number
        )

    expected = [
        route_row(broker_name="physical", read_queue_nums=0, write_queue_nums=0),
        logical("__syslo__global__", 6),
        logical("__syslo__east", 2),
    ]
    assert_df_equality(
        actual, frame(spark, TOPIC_ROUTES, expected), ignore_row_order=True, ignore_nullable=True
    )


def test_that_there_is_no_such_topic_is_known_and_that_nobody_answered_is_not(spark, records):
    body = {"brokerDatas": addresses(broker=[0]), "queueDatas": [queues(name="broker")]}

    actual = make_topic_routes(
        records(
            route_line(topic="gone", error_code=17, error_message="No topic route info"),
            route_line(topic="told by the dashboard", error_code=-1, error_message="CODE: 17 DESC"),
            route_line(topic="empty", body={"brokerDatas": [], "queueDatas": []}),
            route_line(topic="timeout", error_code=-1, error_message="CODE: 170 timeout"),
            route_line(topic="again", error_code=17, collected_at=at(1)),
            route_line(topic="again", body=body, collected_at=at(2)),
            route_line(topic="again", namesrv_addr="ns-2", error_code=17),
        )
    )

    def unknown(topic, **overrides):
        nothing = {"broker_name": None, "broker_ids": None, "perm": 0}
        return route_row(topic=topic, read_queue_nums=0, write_queue_nums=0, **nothing | overrides)

    expected = [
        unknown("gone"),
        unknown("told by the dashboard"),
        unknown("empty"),
        unknown("again", namesrv_addr="ns-2"),
        route_row(topic="again", broker_name="broker"),
    ]
    assert_df_equality(
        actual, frame(spark, TOPIC_ROUTES, expected), ignore_row_order=True, ignore_nullable=True
    )
