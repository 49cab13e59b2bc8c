"""What a line asks for is counted before anything is made of it, and refused by name."""

from __future__ import annotations

import json
import re

import pytest

from jobs.config.bounds import Bounds
from jobs.dumps.counts import DAY, PlausibleTimes
from jobs.dumps.statements import RefusedLine, StatementReader
from tests.dumps.samples import BODIES, line


def reason(text: str, **bounds: int) -> str:
    said = StatementReader(Bounds(**bounds), None).read(text.encode())
    assert isinstance(said, RefusedLine), said
    return said.reason


def is_read(text: str, **bounds: int) -> bool:
    return isinstance(StatementReader(Bounds(**bounds), None).read(text.encode()), list)


def route(*numbers: tuple[int, int]) -> str:
    """A route with a broker for each pair of read and written queues."""
    body = {
        "brokerDatas": [],
        "queueDatas": [
            {"brokerName": f"b{n}", "perm": 6, "readQueueNums": read, "writeQueueNums": written}
            for n, (read, written) in enumerate(numbers)
        ],
    }
    return line("topic_route", body=json.dumps(body))


def test_queues_are_counted_over_all_brokers_read_or_only_written() -> None:
    assert is_read(route((4, 4), (4, 4)), topic_queues=8)
    assert reason(route((4, 4), (4, 5)), topic_queues=8) == (
        "body of 'T': expected at most 8 queues of a topic (bounds.topic_queues), came 9"
    )
    assert "came 4,294,967,294" in reason(route((2**31 - 1, 0), (0, 2**31 - 1)))


def test_logical_queues_of_a_static_topic_count() -> None:
    mapping = {"b": {"scope": "s", "totalQueues": 2**31 - 1}}
    text = line("topic_route", body={"queueDatas": [], "topicQueueMappingByBroker": mapping})
    assert "bounds.topic_queues" in reason(text)


def test_brokers_and_connections_are_bounded() -> None:
    assert "at most 2 brokers in a topic's route (bounds.route_brokers), came 3" in reason(
        route((1, 1), (1, 1), (1, 1)), route_brokers=2
    )
    body = {"connectionSet": [{"clientId": f"c{n}", "clientAddr": "a"} for n in range(3)]}
    text = line("consumer_connection", body=json.dumps(body))
    assert is_read(text, group_members=3)
    assert reason(text, group_members=2) == (
        "body of 'G': expected at most 2 connections in a broker's list of a group "
        "(bounds.group_members), came 3"
    )


def test_a_group_of_too_many_topics_is_refused_by_the_name_of_the_bound() -> None:
    table = {topic: {"topic": topic, "subString": "*"} for topic in ("T", "U")}
    text = line(
        "consumer_connection", body=json.dumps({"connectionSet": [], "subscriptionTable": table})
    )
    assert is_read(text, group_topics=2)
    assert reason(text, group_topics=1) == (
        "body of 'G': expected at most 1 topics that a group subscribes to (bounds.group_topics), "
        "came 2"
    )


@pytest.mark.parametrize(
    ("kind", "where"),
    [
        # Fields of the envelope, and names that stand in bodies.
        *(("topic_route", name) for name in ("cluster", "topic", "namesrv_addr", "broker-a")),
        *(("consumer_connection", name) for name in ("consumer_group", "broker_addr")),
        ("consumer_connection", "10.0.0.1@1"),
        *(("consumer_running_info", name) for name in ("client_id", "broker-a")),
        *(("client_log", name) for name in ("process", "broker-a")),
        *(("heartbeat", name) for name in ("10.0.0.1@1", '"G"', '"T"')),
        ("consume_stats", "broker-a"),
        ("message_request_mode", '"T"'),
        ("subscription_group", '"G"'),
    ],
)
def test_a_name_that_is_too_long_is_refused_wherever_it_is(kind: str, where: str) -> None:
    long = "x" * 41
    if re.fullmatch("[a-z_]+", where):
        text = line(kind, **{where: long})
    else:
        name = where.replace(where.strip('"'), long)
        text = line(kind, body=BODIES[kind].replace(where, name, 1 if where == '"G"' else -1))

    assert is_read(text, name_length=80)
    said = reason(text, name_length=40)
    assert "expected at most 40 characters in " in said
    assert "(bounds.name_length), came 41: 'xxxx" in said


def test_snapshot_time_and_collected_at_are_of_one_round() -> None:
    times = {"snapshot_time": "2026-01-05T09:00:00Z"}
    assert is_read(line("topic_route", **times, collected_at="2026-01-06T09:00:00Z"))
    assert is_read(line("topic_route", **times, collected_at="2026-01-04T09:00:00Z"))
    for far in ("2026-01-06T09:00:00.000001Z", "0001-01-02T00:00:00Z"):
        assert reason(line("topic_route", **times, collected_at=far)) == (
            "expected snapshot_time and collected_at at most 24 hours apart (bounds.round_hours), "
            f"came 2026-01-05T09:00:00Z and {far}"
        )


def test_a_heartbeat_has_no_round_to_be_compared_with() -> None:
    assert is_read(line("heartbeat", snapshot_time="2100-01-01T00:00:00Z"))


@pytest.mark.parametrize(
    ("lines_by_day", "odd"),
    [
        # One of three, however far, is the odd one; of two neither is.
        ({0: 1, 20_000: 2}, {0}),
        ({20_000: 2, 47_000: 1}, {47_000}),
        ({0: 1, 20_000: 1}, set()),
        # What more than a third of the lines say is no slip of a clock.
        ({10_000: 40, 20_000: 60}, set()),
        # Dumps that go over years evenly stay whole, and so does a year before the others.
        (dict.fromkeys(range(10_000, 20_000), 1), set()),
        ({19_634: 1, 20_000: 99}, set()),
        ({19_633: 1, 20_000: 99}, {19_633}),
    ],
)
def test_a_day_far_from_those_of_most_lines_is_odd(
    lines_by_day: dict[int, int], odd: set[int]
) -> None:
    counts = {(False, day, "C"): number for day, number in lines_by_day.items()}
    plausible = PlausibleTimes.of(counts, Bounds())

    apart = plausible.apart(counts)
    assert sum(each.lines for each in apart.values()) == sum(lines_by_day[day] for day in odd)
    assert {
        day for day in lines_by_day if plausible.problem("topic_route", day * DAY) is not None
    } == odd
