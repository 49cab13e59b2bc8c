"""Groups of which nobody can say who has which queue, as by POP: they consume nothing, or one queue
stands. The truth of each was reckoned before.
"""

from __future__ import annotations

import json

import pytest

from tests.cases.small_dumps import (
    BROKERS,
    MEMBERS,
    MINUTES,
    QUEUES,
    asked,
    holds,
    instant,
    line,
    minute_of,
    of_broker,
    rounds,
)

GRPC = [f"h{number}@{number}@0@1k2x9p0a{number}" for number in range(4)]


def changed(lines, old, new, kind="consumer_connection"):
    for each in lines:
        yield each | {"body": each["body"].replace(old, new)} if each["kind"] == kind else each


def by_pop(lines):
    """Brokers let the group consume T by POP."""
    mode = '{"messageRequestModeMap":{"T":{"G":{"consumerGroup":"G","mode":"POP","topic":"T"}}}}'
    for each in lines:
        yield each
        if each["kind"] == "topic_route":
            for name in BROKERS:
                to = {"broker_name": name, "broker_id": 0, "broker_addr": f"{name}:10911"}
                yield line("message_request_mode", 60 * minute_of(each), **to, body=mode)


def without_route(lines):
    return (each for each in lines if each["kind"] != "topic_route")


def broadcast(lines):
    return changed(lines, "CLUSTERING", "BROADCASTING")


def filtered(lines):
    return changed(lines, '"subString": "*"', '"subString": "TagA"')


def as_it_is(lines):
    return lines


def until(minute_of_end):
    """Offsets that move until then; 100 messages a minute come to each queue."""
    return lambda minute, _: (100 * minute + 9, 100 * min(minute, minute_of_end))


def but_one(minute, name):
    """All queues are read but queue 2 of broker-a, from 10:02 on."""
    read = dict.fromkeys(range(4), (100 * minute + 9, 100 * minute))
    blocked = {2: (100 * minute + 9, 100 * min(minute, 2))} if name == "broker-a" else {}
    return read | blocked


def in_turn(minute, name):
    """Each minute one message of one of the eight queues is taken."""
    first = 4 * BROKERS.index(name)
    return {
        queue: (1_000 + 10 * minute, 500 + sum(each % 8 == first + queue for each in range(minute)))
        for queue in range(4)
    }


@pytest.mark.parametrize(
    ("members", "change", "coverage"),
    [
        (GRPC, as_it_is, "SHARED_BY_BROKER"),
        (MEMBERS, by_pop, "SHARED_BY_BROKER"),
        (MEMBERS, without_route, "ROUTE_NOT_KNOWN"),
        (MEMBERS, as_it_is, "AUDITED"),
    ],
)
def test_a_group_with_members_that_consumes_nothing_whoever_has_its_queues(
    audit, members, change, coverage
):
    """Until 10:03 all is read; then 8,800 messages come up to 10:14, and 72 waited before."""
    found = audit(change(rounds(members, until(3))))
    assert {row["coverage"] for row in found["group_health"]} == {coverage}
    (fault,) = found["group_faults"]
    assert (fault["fault"], fault["severity"], fault["ongoing"]) == (
        *("GROUP_NOT_CONSUMING", "CRITICAL"),
        True,
    )
    assert (fault["first_seen"], fault["last_seen"]) == (instant(180), instant(840))
    assert "8,872 messages wait, 8,800 more than at the start" in fault["evidence"]
    assert ("jstack" in fault["remedy"]) == (coverage != "SHARED_BY_BROKER")
    assert ("the log of a client" in fault["remedy"]) == (coverage == "SHARED_BY_BROKER")
    assert found["stalled_queues"] == []


def test_members_that_came_as_the_offsets_stopped_are_named(audit):
    """From 10:04 on two others are listed, which get nothing."""
    found = audit(rounds(lambda minute, _: GRPC[:2] if minute < 4 else GRPC[2:], until(3)))
    (fault,) = (each for each in found["group_faults"] if each["persistence"] == "PERSISTENT")
    said = f"{GRPC[2]} (JAVA) and {GRPC[3]} (JAVA) are all its members, listed since 10:04:00 UTC: "
    assert said.replace(" (JAVA)", "") in fault["evidence"].replace(" (JAVA)", "")
    assert fault["remedy"].startswith("go back to the release")


@pytest.mark.parametrize(
    ("read", "change"),
    [
        pytest.param(in_turn, as_it_is, id="it reads slowly, one queue after the other"),
        pytest.param(lambda *_: (900, 700), as_it_is, id="nothing comes"),
        pytest.param(lambda *_: (900, 0), as_it_is, id="it never committed, and nothing comes"),
        pytest.param(lambda *_: None, as_it_is, id="there are no offsets"),
        pytest.param(until(13), as_it_is, id="a message that takes its time"),
        pytest.param(until(3), broadcast, id="each member keeps its offsets itself"),
        pytest.param(but_one, broadcast, id="so it does where others moved before"),
    ],
)
def test_what_is_no_such_group(audit, read, change):
    found = audit(change(rounds(GRPC, read)))
    assert found["group_faults"] == found["stalled_queues"] == found["orphaned_queues"] == []


@pytest.mark.parametrize("read", [until(3), but_one])
def test_what_may_be_left_out_by_the_filter_that_all_have_is_not_critical(audit, read):
    """By POP an offset may stand at messages that the filter leaves out."""
    found = audit(filtered(rounds(GRPC, read)))
    (one,) = (*found["group_faults"], *found["stalled_queues"])
    assert one["severity"] == "WARNING"
    assert "the filter leaves out" in (one["evidence"] if "evidence" in one else one["why"])


@pytest.mark.parametrize(("members", "change"), [(GRPC, as_it_is), (MEMBERS, by_pop)])
def test_one_queue_that_stands_has_no_owner_to_name(audit, run, members, change):
    """As one message that is not finished, of a group that consumes in order."""
    found = audit(change(rounds(members, but_one)))
    (stall,) = found["stalled_queues"]
    assert (stall["broker_name"], stall["queue_id"]) == ("broker-a", 2)
    assert (stall["severity"], stall["owners"], stall["backlog_growth"]) == ("CRITICAL", [], 1_200)
    assert stall["why"].startswith("the broker deals its messages out to any member")
    _, said = run(change(rounds(members, but_one)))
    assert "find in the clients' logs which of them had messages of these queues last" in said
    assert "thread dump" not in said
    assert "their owners" not in said


# ---------------------------------------------------------------- POP, and messages that come again


#: A client id of the 5.x gRPC clients.
TWO_GRPC = [f"pod-{number}@1@{number}@2dyeb8le{number}" for number in range(2)]


def again(*, members, dead=0, pops=False, stands=()):
    """Of 40 messages a minute at each broker each comes ten times more; ``dead``: so many are
    given up. The queues of ``stands`` do not move.
    """

    def read(minute, name):
        of_topic = {}
        for number in range(4):
            done = 0 if (name, number) in stands else minute
            of_topic["T", number] = 10 * minute + 19, 10 * done + 19
        return of_topic | {("%RETRY%G_T", 0): 2 * (400 * minute + 9,)}

    for minute in MINUTES:
        yield from asked(minute, members, read)
        for name in BROKERS if minute % 5 == 0 else ():
            key = json.dumps({"brokerName": name, "queueId": 0, "topic": "%DLQ%G"})
            stats = of_broker("topic_stats", 60 * minute + 20, name, {})
            lost = dead * minute + 9
            body = f'{{"offsetTable":{{{key}:{{"minOffset":0,"maxOffset":{lost}}}}}}}'
            yield stats | {"body": body}
        for number, client_id in enumerate(members if pops else ()):
            told = {"clientRebalance": "false"}
            yield holds(60 * minute + 30 + number, client_id, [], None, **told)


@pytest.mark.parametrize(("members", "pops"), [(TWO_GRPC, False), (MEMBERS[:2], True)])
def test_what_comes_again_by_pop_did_not_fail(audit, members, pops):
    found = audit(again(members=members, pops=pops))
    assert found["group_faults"] == []
    (health,) = (row for row in found["group_health"] if row["topic"] == "T")
    assert health["coverage"] == "SHARED_BY_BROKER"
    assert "11,200 messages came again while 1,120 were consumed" in health["reason"]
    assert "listener fails" not in health["reason"]


def test_what_clients_that_pull_send_back_did_fail(audit):
    (fault,) = audit(again(members=MEMBERS[:2]))["group_faults"]
    assert (fault["fault"], fault["severity"]) == ("MESSAGES_FAIL", "CRITICAL")


def test_messages_that_are_all_given_up_are_lost_by_pop_too(audit):
    (fault,) = audit(again(members=TWO_GRPC, dead=40))["group_faults"]
    assert (fault["fault"], fault["severity"]) == ("MESSAGES_FAIL", "CRITICAL")
    assert "messages were given up" in fault["evidence"]
    assert "attempts" not in fault["evidence"]


def test_a_queue_that_stands_by_pop_is_told(audit):
    """The batch that somebody took of it is not acknowledged; the others move."""
    found = audit(again(members=TWO_GRPC, stands=[QUEUES[2]]))
    (row,) = found["stalled_queues"]
    assert (row["broker_name"], row["queue_id"], row["persistence"]) == (*QUEUES[2], "PERSISTENT")
    (problem,) = (each for each in found["problems"] if each["topic"] == "T")
    assert "thread dump" not in problem["remedy"]
    assert problem["backlog"] > 0
