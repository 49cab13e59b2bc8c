"""A group that brokers list and that gets its messages by POP, with an invisible time that is
shorter than a message takes.
"""

from __future__ import annotations

import json

import pytest

from tests.cases.small_dumps import BROKERS, MEMBERS, MINUTES, QUEUES, asked, holds, of_broker

#: A client id of the 5.x gRPC clients.
GRPC = [f"pod-{number}@1@{number}@2dyeb8le{number}" for number in range(2)]


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


@pytest.mark.parametrize(("members", "pops"), [(GRPC, False), (MEMBERS[:2], True)])
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
    (fault,) = audit(again(members=GRPC, dead=40))["group_faults"]
    assert (fault["fault"], fault["severity"]) == ("MESSAGES_FAIL", "CRITICAL")
    assert "messages were given up" in fault["evidence"]
    assert "attempts" not in fault["evidence"]


def test_a_queue_that_stands_by_pop_is_told(audit):
    """The batch that somebody took of it is not acknowledged; the others move."""
    found = audit(again(members=GRPC, stands=[QUEUES[2]]))
    (row,) = found["stalled_queues"]
    assert (row["broker_name"], row["queue_id"], row["persistence"]) == (*QUEUES[2], "PERSISTENT")
    (problem,) = (each for each in found["problems"] if each["topic"] == "T")
    assert "thread dump" not in problem["remedy"]
    assert problem["backlog"] > 0
