"""Static topics: clients see logical queues, and brokers give offsets by physical ones."""

from __future__ import annotations

import json

import pytest

from tests.cases.small_dumps import BROKERS, MEMBERS, MINUTES, instant, members, offsets, route
from tests.support.audited import queues

MOCK = "__syslo__global__"
#: By broker the logical queue that lies in each physical one, as a real cluster had them.
LIES = {"broker-a": (0, 2, 4, 7), "broker-b": (1, 3, 5, 6)}


def static(line, lies, epoch):
    """The route with logical queues; ``lies``: by broker, as ``LIES``, but for None."""
    body = json.loads(line["body"])
    body["topicQueueMappingByBroker"] = {
        name: {
            "bname": name,
            "currIdMap": {str(n): at for at, n in enumerate(of_broker) if n is not None},
            "dirty": False,
            "epoch": epoch,
            "scope": "__global__",
            "topic": "T",
            "totalQueues": 8,
        }
        for name, of_broker in lies.items()
    }
    return line | {"body": json.dumps(body)}


def of_minute(minute, read, lies=LIES, epoch=1, names=BROKERS, tps=0.0):
    """``read``: the offsets by broker and physical queue, from the logical one that lies there."""
    yield static(route(60 * minute, *names), lies, epoch)
    for number, name in enumerate(names, start=1):
        yield members(60 * minute + number, name, MEMBERS)
        if read is not None:
            yield offsets(60 * minute + 10 + number, name, read(minute, name), tps)


def standing(*logical, since=5):
    """Offsets of queues that are read, 100 messages a minute, but for these from a minute on."""

    def read(minute, name):
        return {
            at: (100 * minute + 9, 100 * (min(minute, since) if n in logical else minute))
            for at, n in enumerate(LIES[name])
        }

    return read


@pytest.mark.parametrize("logical", [(6, 7), (2,), ()])
def test_logical_queues_stand_where_their_physical_ones_do(audit, logical):
    """The last member's two lie on two brokers, in queues of the number 3."""
    found = audit(each for minute in MINUTES for each in of_minute(minute, standing(*logical)))
    stalls = found["stalled_queues"]
    assert queues(stalls) == {("T", MOCK, number) for number in logical}
    assert {row["first_seen"] for row in stalls} <= {instant(300)}
    assert {row["backlog"] for row in stalls} <= {909}
    frozen = [row["client_ids"] for row in found["group_faults"]]
    assert frozen == ([[MEMBERS[3]]] if logical == (6, 7) else [])
    (health,) = (row for row in found["group_health"] if row["topic"] == "T")
    assert health["backlog"] == 8 * 9 + 900 * len(logical)


def test_offsets_that_are_of_logical_queues_already_stay_as_they_are(audit):
    """As mqadmin and the dashboard make them."""

    def lines(minute):
        yield from of_minute(minute, None)
        now = {n: (100 * minute + 9, 100 * (minute if n < 6 else 0)) for n in range(8)}
        yield offsets(60 * minute + 10, MOCK, now)

    found = audit(each for minute in MINUTES for each in lines(minute))
    assert queues(found["stalled_queues"]) == {("T", MOCK, 6), ("T", MOCK, 7)}


def moved_to_c(minute, *, is_read, knows=6):
    """Logical queue 6 moves from queue 3 of broker-b to queue 0 of broker-c at 10:06, with 609
    messages written. Its reader commits to broker-c from 10:07 on, or stands since 10:05.

    ``knows``: the minute in which the nameserver gives the new mapping.
    """
    has_moved = minute >= 6

    def read(minute, name):
        if name == "broker-c":
            came = 100 * (minute - 6)
            return {0: (came, came - 9 if is_read and minute >= 7 else -1)} if has_moved else {}
        now = standing()(minute, name)
        if name == "broker-b":
            # Nothing comes to the old one, and what is committed last is less than all of it.
            now[3] = min(100 * minute + 9, 609), 100 * min(minute, 6 if is_read else 5)
        return now

    moved = {"broker-a": LIES["broker-a"], "broker-b": (1, 3, 5), "broker-c": (6,)}
    lies, epoch = (moved, 2) if minute >= knows else (LIES, 1)
    return of_minute(minute, read, lies, epoch, (*BROKERS, "broker-c"))


@pytest.mark.parametrize("knows", [6, 7])
def test_a_logical_queue_that_moves_to_another_broker_goes_on(audit, knows):
    found = audit(
        each for minute in MINUTES for each in moved_to_c(minute, is_read=True, knows=knows)
    )
    assert (found["group_faults"], found["stalled_queues"]) == ([], [])
    (health,) = (row for row in found["group_health"] if row["topic"] == "T")
    assert health["backlog"] == 8 * 9


def test_a_logical_queue_that_stands_as_it_moves_has_what_lies_on_both_brokers(audit):
    found = audit(each for minute in MINUTES for each in moved_to_c(minute, is_read=False))
    (stall,) = found["stalled_queues"]
    assert (stall["broker_name"], stall["queue_id"], stall["first_seen"]) == (MOCK, 6, instant(300))
    assert (stall["backlog"], stall["backlog_growth"]) == (609 + 800 - 500, 900)
    assert [row["fault"] for row in found["group_faults"]] == []


def test_a_mapping_that_one_nameserver_still_gives_does_not_count(audit):
    """Clients take the one of the higher epoch."""

    def lines(minute):
        yield from moved_to_c(minute, is_read=True)
        late = static(route(60 * minute, *BROKERS, "broker-c"), LIES, 1)
        yield late | {"namesrv_addr": "ns2:9876"}

    found = audit(each for minute in MINUTES for each in lines(minute))
    assert (found["group_faults"], found["stalled_queues"]) == ([], [])


def test_a_topic_beside_a_static_one_keeps_its_queues_and_its_messages_are_not_read_twice(audit):
    """A rate is that of all topics of a broker's answer: 4 + 4 messages a second."""

    def read(minute, name):
        return standing(6, 7)(minute, name) | {("U", 0): (240 * minute, 240 * minute)}

    def lines(minute):
        for each in of_minute(minute, read, tps=10.7):
            is_list = each["kind"] == "consumer_connection"
            second = 60 * minute + BROKERS.index(each["broker_name"]) + 1 if is_list else 0
            yield members(second, each["broker_name"], MEMBERS, ("T", "U")) if is_list else each
        yield route(60 * minute, *BROKERS, topic="U", queues=1)

    found = audit(each for minute in range(30) for each in lines(minute))
    assert queues(found["stalled_queues"]) == {("T", MOCK, 6), ("T", MOCK, 7)}
    assert [row["fault"] for row in found["group_faults"]] == ["FROZEN_PROCESS"]
