"""What members subscribe to where the group's subscription table alone shows it."""

from __future__ import annotations

import json

import pytest

from tests.cases.small_dumps import (
    BROKERS,
    MEMBERS,
    MINUTES,
    instant,
    members,
    minute_of,
    of_broker,
    route,
)
from tests.support.audited import queues


def polled(has_u, *, minutes=MINUTES, of_b=MEMBERS):
    """By (minute, broker name) whether the table has U beside T; each broker is asked at its time,
    the same members' connections all along.
    """
    for minute in minutes:
        yield from (route(60 * minute, *BROKERS, topic=each) for each in "TU")
        for second, name in ((1, "broker-a"), (9, "broker-b")):
            topics = ("T", "U") if has_u(minute, name) else ("T",)
            listed = MEMBERS if name == "broker-a" else of_b
            yield members(60 * minute + second, name, listed, topics)


def mismatches(found):
    faults = [each for each in found["group_faults"] if each["fault"] == "SUBSCRIPTION_MISMATCH"]
    return {each["topic"]: each for each in faults}


def test_tables_that_differ_by_the_broker_asked_show_a_member_without_the_topic(audit):
    """Rounds of 60 s are in step with heartbeats each 30 s: neither table ever changes."""
    found = audit(polled(lambda _, name: name == "broker-a"))
    (fault,) = mismatches(found).values()
    assert (fault["topic"], fault["severity"]) == ("U", "WARNING")
    assert (fault["first_seen"], fault["ongoing"]) == (instant(0), True)
    assert "so some members subscribe to the topic and some do not" in fault["evidence"]
    orphans = {(row["topic"], row["certainty"]) for row in found["orphaned_queues"]}
    assert orphans == {("U", "POSSIBLE")}


@pytest.mark.parametrize(
    ("has_u", "values"),
    [
        # Somebody subscribed at 10:05: every table has it since then.
        (lambda minute, _: minute >= 5, {}),
        # A heartbeat came between the two questions of that round.
        (lambda minute, name: minute >= 5 + (name == "broker-a"), {}),
        # For less than five minutes, as during a deploy.
        (lambda _, name: name == "broker-a", {"minutes": range(5)}),
        # Others are connected there.
        (lambda _, name: name == "broker-a", {"of_b": [f"10.0.9.{n}@9" for n in range(4)]}),
    ],
)
def test_tables_that_change_once_or_have_other_members_show_none(audit, has_u, values):
    assert mismatches(audit(polled(has_u, **values))) == {}


def read(stands):
    """Each minute 100 messages come to each queue of U. Those that ``stands`` are not read."""
    for minute in MINUTES:
        for second, name in ((40, "broker-a"), (41, "broker-b")):
            table = {
                json.dumps({"brokerName": name, "queueId": number, "topic": "U"}): {
                    "brokerOffset": 100 * minute + 9,
                    "consumerOffset": 9 if (name, number) in stands else 100 * minute,
                    "lastTimestamp": 0,
                }
                for number in range(4)
            }
            answer = {"consumeTps": 0.0, "offsetTable": table}
            yield of_broker("consume_stats", 60 * minute + second, name, answer)


def test_offsets_show_which_queues_are_of_the_members_without_the_topic(audit):
    """Half of the members, nobody knows which. Each has two queues all the time or never."""
    flips = list(polled(lambda minute, name: (minute + (name == "broker-a")) % 2))
    stands = {("broker-b", number) for number in range(4)}
    found = audit([*flips, *read(stands)])
    assert queues(found["orphaned_queues"]) == {("U", *queue) for queue in stands}
    assert {row["severity"] for row in found["orphaned_queues"]} == {"CRITICAL"}
    assert mismatches(found)["U"]["severity"] == "CRITICAL"

    # The ones without it are idle, or the table is somebody else's: it is told all the same.
    found = audit([*flips, *read(stands=())])
    assert found["orphaned_queues"] == []
    assert mismatches(found)["U"]["severity"] == "WARNING"

    assert len(audit(flips)["orphaned_queues"]) == 8


def test_offsets_that_end_while_the_doubt_lasts_acquit_no_queue(audit):
    """Another member comes at 10:06; offsets of two more rounds are all there is of it."""

    def lines():
        for each in polled(lambda _, name: name == "broker-a"):
            if minute_of(each) >= 6 and each["kind"] == "consumer_connection":
                each["body"] = each["body"].replace("10.0.0.0@0", "10.0.0.9@9")
            yield each
        yield from (each for each in read(stands=()) if minute_of(each) < 8)

    orphans = {row["last_seen"] for row in audit(lines())["orphaned_queues"]}
    assert orphans == {instant(14 * 60)}
