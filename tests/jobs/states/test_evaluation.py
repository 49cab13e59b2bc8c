"""states -> allocations and findings: the pandas function, called directly and through Spark."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest
from chispa import assert_df_equality
from pyspark.sql import types as T

from jobs.states.evaluated import evaluate_states
from jobs.states.evaluation import (
    EVALUATION,
    STATE_COLUMNS,
    evaluate_rows,
    to_state,
)
from rebalance_core import State
from tests.support.snapshots import (
    CLUSTER,
    client_list,
    frame,
    member,
    route,
    route_broker,
    state,
)
from tests.support.state_rows import in_columns

MEMBER = {
    "broker_name": "broker-a",
    "broker_id": 0,
    "client_id": "a",
    "client_addr": "h:1",
    "language": "JAVA",
    "version": 401,
    "message_model": "CLUSTERING",
    "strategy": None,
    "client_rebalance": None,
    "is_expired": False,
    "chooses_queues": False,
    "subscriptions": [{"topic": "T", "expression_type": "TAG", "expression": "*"}],
}
OTHER_SUBSCRIPTION = {"topic": "other", "expression_type": "SQL92", "expression": "x > 1"}
TAGS_SUBSCRIPTION = {"topic": "T", "expression_type": "TAG", "expression": "b||a"}
BROKER = {
    "namesrv_addr": "ns-1:9876",
    "broker_name": "broker-a",
    "broker_ids": [0],
    "perm": 6,
    "read_queue_nums": 4,
    "write_queue_nums": 4,
    "zone_name": None,
}


def row(members=(MEMBER,), routes=(BROKER,), offline=None, lasting=None) -> dict:
    return {
        "consumer_group": "G",
        "topic": "T",
        "members": None if members is None else list(members),
        "offline": offline,
        "lasting": lasting,
        "routes": None if routes is None else list(routes),
    }


def one_member(**overrides) -> State:
    values = {"client_id": "a", "client_addr": "h:1", "expression": "TAG *"}
    return state(client_lists=(client_list(member(**values | overrides)),))


@pytest.mark.parametrize(
    ("of_row", "expected"),
    [
        pytest.param(row(), one_member(), id="the plain case"),
        pytest.param(
            row([MEMBER | {"message_model": None}]), one_member(), id="no model is CLUSTERING"
        ),
        pytest.param(
            row([MEMBER | {"subscriptions": [{"topic": "other"}]}]),
            one_member(subscribed=False, expression=None),
            id="subscribed to another topic",
        ),
        pytest.param(
            row([MEMBER | {"subscriptions": None}]),
            one_member(subscribed=False, expression=None),
            id="subscribed to nothing",
        ),
        pytest.param(
            row([MEMBER | {"subscriptions": [OTHER_SUBSCRIPTION, TAGS_SUBSCRIPTION]}]),
            one_member(expression="TAG a || b"),
            id="the filter on the topic in its one spelling",
        ),
        pytest.param(
            row([MEMBER | {"is_expired": True}]),
            one_member(is_expired=True),
            id="silent for too long",
        ),
        pytest.param(
            row([MEMBER | {"chooses_queues": True, "subscriptions": None}]),
            one_member(chooses_queues=True, subscribed=False, expression=None),
            id="takes its queues by assign()",
        ),
        pytest.param(
            row(lasting=True), replace(one_member(), lasting=True), id="lists that stayed for long"
        ),
        pytest.param(
            row(routes=[BROKER | {"zone_name": "z1"}]),
            replace(one_member(), topic_routes=(route(route_broker(zone_name="z1")),)),
            id="a broker in a zone",
        ),
        pytest.param(row([MEMBER, MEMBER]), one_member(), id="one connection that stands twice"),
        pytest.param(
            row([MEMBER, MEMBER | {"client_addr": "h:2"}]),
            state(
                client_lists=(
                    client_list(
                        member(client_id="a", client_addr="h:1", expression="TAG *"),
                        member(client_id="a", client_addr="h:2", expression="TAG *"),
                    ),
                )
            ),
            id="two connections of one id",
        ),
        pytest.param(
            row(None, offline=[{"broker_name": "broker-a", "broker_id": 0}]),
            state(client_lists=(), offline_brokers=(("broker-a", 0),)),
            id="no member, and a broker that says so",
        ),
        pytest.param(
            row(routes=None), replace(one_member(), topic_routes=()), id="no route was collected"
        ),
        pytest.param(
            row(routes=[BROKER | {"broker_name": None, "broker_ids": None}]),
            replace(one_member(), topic_routes=(route(),)),
            id="the nameserver knows no such topic",
        ),
        pytest.param(
            row(routes=[BROKER | {"broker_ids": None}]),
            replace(one_member(), topic_routes=(route(route_broker(broker_ids=None)),)),
            id="broker ids not known",
        ),
        pytest.param(
            row(routes=[BROKER | {"namesrv_addr": "ns-2"}, BROKER | {"broker_ids": [1, 0]}]),
            replace(
                one_member(),
                topic_routes=(
                    route(route_broker(broker_ids=(0, 1))),
                    route(route_broker(), namesrv_addr="ns-2"),
                ),
            ),
            id="two nameservers",
        ),
    ],
)
def test_a_row_is_read_as_the_state_that_it_tells_of(of_row, expected):
    assert to_state(in_columns(of_row)) == expected


MEMBER_TYPE = (
    "struct<broker_name:string,broker_id:bigint,client_id:string,client_addr:string,"
    "language:string,version:int,message_model:string,strategy:string,client_rebalance:boolean,"
    "is_expired:boolean,chooses_queues:boolean,"
    "subscriptions:array<struct<topic:string,expression_type:string,expression:string>>>"
)
ROUTE_TYPE = (
    "struct<namesrv_addr:string,broker_name:string,broker_ids:array<bigint>,perm:int,"
    "read_queue_nums:int,write_queue_nums:int,zone_name:string>"
)
FINGERPRINT = "struct<high:bigint,low:bigint>"
NO_PARAMETERS: list[dict] = [{"groups": "G", "name": "AVG", "clients": "hashed", "params": {}}]


@pytest.mark.spark
def test_the_function_gives_through_spark_what_it_gives_when_called(spark):
    other = {"client_id": "b", "client_addr": "h:3", "version": None, "strategy": "AVG"}
    rows = {
        "stacked": row([MEMBER, MEMBER | {"client_addr": "h:2"}, MEMBER | other]),
        "brokers differ": row(
            [MEMBER, MEMBER | {"broker_name": "broker-b"}, MEMBER | other],
            [BROKER, BROKER | {"broker_name": "broker-b"}],
        ),
        "no route": row(routes=None),
        "offline": row(None, offline=[{"broker_name": "broker-a", "broker_id": 0}]),
        "not subscribed": row([MEMBER | {"subscriptions": None}]),
        "unreadable": row(
            routes=[
                BROKER | {"namesrv_addr": nameserver, "read_queue_nums": 2}
                for nameserver in ("ns-1:9876", "ns-2:9876")
            ]
        ),
    }
    numbered = {name: (number, number) for number, name in enumerate(rows)}
    segments = frame(
        spark,
        "cluster string, consumer_group string, topic string, state_id string, "
        f"group_fingerprint {FINGERPRINT}, route_fingerprint {FINGERPRINT}",
        [
            (CLUSTER, "G", "T", name, number, None if rows[name]["routes"] is None else number)
            for name, number in numbered.items()
        ],
    )
    group_states = frame(
        spark,
        f"cluster string, consumer_group string, fingerprint {FINGERPRINT}, "
        f"members array<{MEMBER_TYPE}>, "
        "offline array<struct<broker_name:string,broker_id:bigint>>, lasting boolean",
        [
            (CLUSTER, "G", numbered[n], r["members"], r["offline"], r["lasting"])
            for n, r in rows.items()
        ],
    )
    route_states = frame(
        spark,
        f"cluster string, topic string, fingerprint {FINGERPRINT}, routes array<{ROUTE_TYPE}>",
        [(CLUSTER, "T", numbered[n], r["routes"]) for n, r in rows.items() if r["routes"]],
    )

    through_spark = evaluate_states(
        # Twice, as where a state comes back: it is evaluated once.
        segments.unionByName(segments),
        group_states,
        route_states,
        NO_PARAMETERS,
        "AVG",
    )

    called = evaluate_rows(NO_PARAMETERS, "AVG")(
        pd.DataFrame([in_columns(each) for each in rows.values()], columns=list(STATE_COLUMNS))
    )
    assert called["coverage"].tolist() == [
        "AUDITED",
        "AUDITED",
        "ROUTE_NOT_KNOWN",
        "AUDITED",
        "NOT_SUBSCRIBED",
        "AUDITED",
    ]
    assert called["nameservers"].tolist() == [1, 1, 0, 1, 1, 2]
    keys = [T.StructField(n, T.StringType()) for n in ("cluster", "consumer_group", "topic")]
    expected = frame(
        spark,
        T.StructType(
            [
                *keys,
                T.StructField("state_id", T.StringType()),
                T.StructField("lasting", T.BooleanType()),
                *EVALUATION.fields,
            ]
        ),
        [
            (
                CLUSTER,
                "G",
                "T",
                name,
                rows[name]["lasting"],
                *[values[field] for field in EVALUATION.names],
            )
            for (name, of_row), values in zip(rows.items(), called.to_dict("records"), strict=True)
        ],
    )
    assert_df_equality(through_spark, expected, ignore_row_order=True, ignore_nullable=True)
