"""The log lines of changed results, as 4.x and 5.x print them, whole and cut."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from jobs.declared.instants import Instant, to_instant
from jobs.dumps.queues import parse_rebalance_line
from jobs.dumps.statement import LogLine
from jobs.dumps.values import LineError


def queue(topic: str, broker_name: str, queue_id: int | str) -> str:
    return f"MessageQueue [topic={topic}, brokerName={broker_name}, queueId={queue_id}]"


HEAD = "rebalanced result changed. allocateMessageQueueStrategyName="
V4 = (
    "2026-11-21 02:03:06,167 INFO RocketmqClient - " + HEAD + "AVG, group=G_S1, topic=%RETRY%G_S1,"
    " clientId=127.0.0.1@4346#1978195185761, mqAllSize=3, cidAllSize=2, rebalanceResultSize=1,"
    " rebalanceResultSet=[" + queue("%RETRY%G_S1", "broker-c", 0) + "]"
)
V5 = (
    "2023-11-17 10:20:30.814 INFO  [46212] [RebalanceService] [o.a.r.c.i.c.RebalanceImpl#?:?] - "
    "client " + HEAD + "MACHINE_ROOM_NEARBY-AVG, group=g, topic=ORDER, clientId=i@1, mqAllSize=8,"
    " cidAllSize=3, rebalanceResultSize=2, rebalanceResultSet=["
    + queue("ORDER", "broker-b", 3)
    + ", "
    + queue("ORDER", "broker-a", 10)
    + "]"
)
BY_BROKER = (
    "2023-11-17 10:20:30.814 INFO  [1] [RebalanceService] [o.a.r.c] - broker " + HEAD + "AVG,"
    " group=g, topic=ORDER, clientId=i@1, assignmentSet=[MessageQueueAssignment [MessageQueue="
    + queue("ORDER", "broker-a", -1)
    + ", Mode=POP], MessageQueueAssignment [MessageQueue="
    + queue("ORDER", "broker-b", -1)
    + ", Mode=POP]]"
)


def line(
    *,
    prefix: str = "",
    group: str = "g",
    topic: str = "T",
    client_id: str = "i@1",
    size: int | str = 0,
    queues: str = "",
) -> str:
    return (
        f"{prefix}{HEAD}AVG, group={group}, topic={topic}, clientId={client_id}, mqAllSize=4,"
        f" cidAllSize=2, rebalanceResultSize={size}, rebalanceResultSet=[{queues}]"
    )


def read(text: str) -> LogLine:
    result = parse_rebalance_line(text)
    assert result is not None
    return result[1]


def utc(time: str) -> Instant:
    return to_instant(datetime.fromisoformat(f"{time}+00:00"))


AT_10 = "2023-11-17 10:20:30.814"
RETRY = ("%RETRY%G_S1", "127.0.0.1@4346#1978195185761")


@pytest.mark.parametrize(
    ("text", "group", "printed", "said", "queues"),
    [
        (
            *(V4, "G_S1", "2026-11-21 02:03:06.167"),
            *(("AVG", *RETRY, 3, 2, False), [("broker-c", 0)]),
        ),
        (
            *(V5, "g", AT_10),
            ("MACHINE_ROOM_NEARBY-AVG", "ORDER", "i@1", 8, 3, False),
            [("broker-b", 3), ("broker-a", 10)],
        ),
        # What the broker assigned has no counts.
        (
            *(BY_BROKER, "g", AT_10),
            *(("AVG", "ORDER", "i@1", None, None, True), [("broker-a", -1), ("broker-b", -1)]),
        ),
    ],
    ids=["4.x", "5.x", "by the broker"],
)
def test_a_line_is_read(
    text: str, group: str, printed: str, said: Any, queues: list[tuple[str, int]]
) -> None:
    of_topic = tuple((said[1], *each) for each in queues)
    assert parse_rebalance_line(text) == (group, LogLine(*said, utc(printed), of_topic))


def test_an_assignment_of_nothing_is_left_out_as_the_client_does() -> None:
    text = BY_BROKER.replace(queue("ORDER", "broker-a", -1), "null")

    assert read(text).queues == (("ORDER", "broker-b", -1),)


@pytest.mark.parametrize(
    "client_id",
    ["10.0.0.1@1;g@x", "a,b", "a, b", "a, topic=x", "10.0.0.1@DEFAULT@unit", "", "[x]"],
)
def test_a_client_id_may_hold(client_id: str) -> None:
    assert read(line(client_id=client_id)).client_id == client_id


def test_queues_of_other_topics_are_kept_as_the_config_strategy_gives_them() -> None:
    text = line(topic="%RETRY%g", size=1, queues=queue("ORDER", "b", 0))

    assert read(text).queues == (("ORDER", "b", 0),)


@pytest.mark.parametrize(
    ("prefix", "printed"),
    [
        ("2026-11-21 02:03:06,167 INFO RocketmqClient - ", utc("2026-11-21 02:03:06.167")),
        ("2026-11-21 02:03:06.167  INFO 1 --- [main] x : ", utc("2026-11-21 02:03:06.167")),
        ("  2026-11-21 02:03:06.167 ", utc("2026-11-21 02:03:06.167")),
        ("2026-11-31 02:03:06.167 ", None),
        ("02:03:06.167 [main] INFO x - ", None),
        ("INFO [2026-11-21 02:03:06.167] - ", None),
        ("2026-11-21 02:03:06 INFO x - ", None),
        ("", None),
    ],
)
def test_the_time_is_taken_as_printed_where_the_line_starts_with_it(
    prefix: str, printed: Instant | None
) -> None:
    assert read(line(prefix=prefix)).printed == printed


def test_a_client_line_is_no_broker_line_because_its_prefix_names_a_broker() -> None:
    assert not read(line(prefix="INFO [broker rebalance] broker-a - client ")).by_broker


MALFORMED = {
    "nothing after it": ("x rebalanced result changed.", "allocateMessageQueueStrategyName="),
    "another size": (line(size=2, queues=queue("T", "b", 0)), "rebalanceResultSize=2"),
    "a size of an empty set": (line(size=1), "holds 0"),
    "a size that is no number": (line(size="x"), "rebalanceResultSize is no number"),
    "a size of thousands of digits": (line(size="9" * 5000), "rebalanceResultSize is no number"),
    "a queue that is none": (line(size=1, queues="MessageQueue [topic=T]"), "no message queue"),
    "a queue without its id": (line(size=1, queues=queue("T", "b", "")), "no message queue"),
    "no client id": (line().replace(", clientId=", ", id="), "no ', clientId='"),
    "an assignment without a mode": (BY_BROKER.replace(", Mode=POP", ""), "no assignment"),
    "an assignment of no queue": (BY_BROKER.replace("brokerName=", "x="), "no message queue"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_line_is_refused_if_it_has(name: str) -> None:
    text, reason = MALFORMED[name]

    with pytest.raises(LineError) as caught:
        parse_rebalance_line(text)

    assert reason in str(caught.value)


@pytest.mark.parametrize("whole", [V4, V5, BY_BROKER], ids=["4.x", "5.x", "by the broker"])
def test_a_line_that_is_cut_anywhere_after_its_start_is_refused(whole: str) -> None:
    start = whole.index("rebalanced result changed.") + len("rebalanced result changed.")

    for end in range(start, len(whole)):
        with pytest.raises(LineError):
            parse_rebalance_line(whole[:end])


@pytest.mark.parametrize("ending", ["", "\n", "\r\n", "  "])
def test_a_result_without_queues_is_read_whatever_ends_the_line(ending: str) -> None:
    assert read(line() + ending).queues == ()
