"""What is worth a line of the group's health and is no alarm: numbers reckoned before the run."""

from __future__ import annotations

import json

import pytest

from tests.cases.test_small_dumps import MINUTES, fleet, members, of_broker, offsets


def reasons(audit, lines):
    """By topic the reason of a fleet to which these lines come, and that nothing is found."""
    found = audit([each for minute in MINUTES for each in (*fleet(minute), *lines(minute))])
    assert found["group_faults"] == found["stalled_queues"] == []
    return {row["topic"]: row["reason"] for row in found["group_health"]}


@pytest.mark.parametrize("written", [(0,), (0, 1)])
def test_a_topic_of_which_one_queue_is_written(audit, written):
    def lines(minute):
        for number, name in enumerate(("broker-a", "broker-b")):
            now = dict.fromkeys(range(4), (7, 7))
            if name == "broker-b":
                now |= dict.fromkeys(written, (100 * minute + 9, 100 * minute + 9))
            yield offsets(60 * minute + 10 + number, name, now)

    said = "all 1,400 messages that came are in queue 0 of broker-b, of 8 queues: one consumer"
    assert reasons(audit, lines)["T"].startswith(said) == (written == (0,))


@pytest.mark.parametrize(("again", "is_said"), [(40, True), (5, False)])
def test_messages_that_are_tried_again_beside_those_that_are_consumed(audit, again, is_said):
    """Of 60 messages a minute in the 8 queues of both brokers so many are sent back."""

    def lines(minute):
        for number, name in enumerate(("broker-a", "broker-b")):
            table = {
                ("T", queue): 8 * minute + 9 if queue else 6 * minute + 9 for queue in range(4)
            } | {("%RETRY%G", 0): again // 2 * minute + 9}
            entries = ",".join(
                json.dumps({"brokerName": name, "queueId": queue, "topic": topic})
                + ":"
                + json.dumps({"brokerOffset": at, "consumerOffset": at, "lastTimestamp": 0})
                for (topic, queue), at in table.items()
            )
            given = of_broker("consume_stats", 60 * minute + 10 + number, name, {})
            yield given | {"body": f'{{"consumeTps":0.0,"offsetTable":{{{entries}}}}}'}

    said = (
        "560 messages were sent back to be tried again, each up to 16 times, beside 840 that were"
    )
    assert (said in reasons(audit, lines)["T"]) == is_said


@pytest.mark.parametrize("by_turns", [True, False])
def test_a_broker_whose_address_goes_to_and_fro(audit, by_turns):
    """At another one in each second minute, or for some minutes, after which it moved back."""

    def lines():
        for minute in MINUTES:
            moved = minute % 2 if by_turns else 4 <= minute <= 9
            for each in fleet(minute):
                other = {"broker_addr": "10.0.0.9:10911"} if moved else {}
                yield each | (other if each.get("broker_name") == "broker-a" else {})

    (health,) = (row for row in audit(lines())["group_health"] if row["topic"] == "T")
    said = "broker-a was asked at 10.0.0.9:10911, broker-a:10911 by turns, 14 changes"
    assert (said in health["reason"]) == by_turns
    assert ("by turns" in health["reason"]) == by_turns


@pytest.mark.parametrize("name", ["${clientIP}", "10.0.0.7"])
def test_a_placeholder_in_an_id_that_one_process_has(audit, name):
    ids = [f"{name}@{number}" for number in range(4)]

    def lines():
        for minute in MINUTES:
            yield fleet(minute)[0]
            for number, broker in enumerate(("broker-a", "broker-b"), start=1):
                yield members(60 * minute + number, broker, ids)

    found = audit(lines())
    assert found["group_faults"] == []
    (reason,) = {row["reason"] for row in found["group_health"] if row["topic"] == "T"}
    assert reason.startswith("client ids have ${clientIP} in them") == (name == "${clientIP}")
