"""route runs -> route changes: when the readable queues of a topic changed under its groups."""

from __future__ import annotations

import pytest
from chispa import assert_df_equality

from jobs.episodes.route_changes import route_changes
from jobs.reports.findings import group_faults
from jobs.schemas import GROUP_FAULTS, TOPIC_ROUTES
from jobs.states.fingerprints import route_fingerprints
from jobs.states.representatives import collect_route_states
from jobs.states.runs import find_runs
from tests.support.snapshots import CLUSTER, TOPIC, at, frame, route_row

pytestmark = pytest.mark.spark

BOTH_READ = [{}, {"broker_name": "broker-b"}]


def changes(spark, routes, group_topics=(("G", TOPIC),)):
    """``routes``: by topic, what a nameserver gave at each minute, as overrides of rows."""
    rows = frame(
        spark,
        TOPIC_ROUTES,
        [
            route_row(topic=topic, snapshot_time=at(60 * minute), **overrides)
            for topic, of_topic in routes.items()
            for minute, brokers in enumerate(of_topic)
            for overrides in brokers
        ],
    )
    runs = find_runs(route_fingerprints(rows), ["cluster", "topic"])
    topics = frame(
        spark,
        "cluster string, consumer_group string, topic string",
        [(CLUSTER, group, topic) for group, topic in group_topics],
    )
    return route_changes(runs, collect_route_states(runs, rows), topics)


def test_more_queues_are_one_change_for_each_group_of_the_topic(spark):
    more = [{"read_queue_nums": 6}, {"broker_name": "broker-b"}]
    actual = changes(
        spark,
        {TOPIC: [BOTH_READ, BOTH_READ, more, more], "other": [BOTH_READ]},
        [("G", TOPIC), ("H", TOPIC), ("G", "other")],
    )

    assert_df_equality(
        group_faults(actual),
        frame(
            spark,
            GROUP_FAULTS,
            [
                (
                    *(CLUSTER, group, TOPIC, "ROUTE_CHANGED"),
                    *(at(120), at(120), 1, "TRANSIENT", False),
                    "the readable queues changed from broker-a 4, broker-b 4 to broker-a 6, "
                    "broker-b 4; for up to 50 s clients work from different lists",
                    "none, if it was meant: every client follows within 50 s",
                    *([], [], ["broker-a"], 0, 0, 0, [], None),
                )
                for group in ("G", "H")
            ],
        ),
        ignore_row_order=True,
        ignore_nullable=True,
    )


def test_what_leaves_the_readable_queues_alone_is_no_change_and_neither_is_the_first_route(spark):
    then = {
        "write numbers": [{"write_queue_nums": 8}, BOTH_READ[1]],
        "no WRITE": [{"perm": 4}, BOTH_READ[1]],
        "a slave more": [{"broker_ids": [0, 1]}, BOTH_READ[1]],
        "another order": BOTH_READ[::-1],
        "a broker without queues to read": [*BOTH_READ, {"broker_name": "c", "read_queue_nums": 0}],
        "a broker without READ": [*BOTH_READ, {"broker_name": "c", "perm": 2}],
        "one more nameserver that says the same": [
            *BOTH_READ,
            *[broker | {"namesrv_addr": "ns-2"} for broker in BOTH_READ],
        ],
    }
    routes = {topic: [BOTH_READ, route] for topic, route in then.items()}
    routes["seen once"] = [BOTH_READ]

    actual = changes(spark, routes, [("G", topic) for topic in routes])

    assert actual.collect() == []


def test_a_broker_that_loses_read_or_leaves_is_a_change_as_is_its_return(spark):
    gone = {
        "perm loses READ": [BOTH_READ[0], {"broker_name": "broker-b", "perm": 2}],
        "no such broker": [BOTH_READ[0]],
    }
    routes = {topic: [BOTH_READ, route, BOTH_READ] for topic, route in gone.items()}

    actual = changes(spark, routes, [("G", topic) for topic in routes])

    assert_df_equality(
        actual.select("topic", "first_seen", "broker_names"),
        frame(
            spark,
            "topic string, first_seen timestamp, broker_names array<string>",
            [(topic, at(time), ["broker-b"]) for topic in gone for time in (60, 120)],
        ),
        ignore_row_order=True,
        ignore_nullable=True,
    )


def test_a_topic_that_no_nameserver_knows_any_more_has_no_readable_queues(spark):
    unknown = {
        "broker_name": None,
        "broker_ids": None,
        "perm": 0,
        "read_queue_nums": 0,
        "write_queue_nums": 0,
    }

    actual = changes(spark, {TOPIC: [[{}], [unknown]]})

    (row,) = actual.collect()
    assert row["evidence"].startswith("the readable queues changed from broker-a 4 to none;")
