"""A client that reaches a slave of a broker, and not its master."""

from __future__ import annotations

import json

import pytest

from tests.cases.test_small_dumps import MEMBERS, MINUTES, QUEUES, holds, instant, members, route
from tests.support.audited import lasting

RETRY = "%RETRY%G"
ASKED = [("broker-a", 0), ("broker-a", 1), ("broker-b", 0)]


def polled(lacking):
    """From 10:04 on these (name, id) do not list the second member."""
    for minute in MINUTES:
        for topic, queues in (("T", 4), (RETRY, 1)):
            given = route(60 * minute, "broker-a", "broker-b", topic=topic)
            body = json.loads(given["body"])
            body["brokerDatas"][0]["brokerAddrs"]["1"] = "broker-a:10921"
            for each in body["queueDatas"]:
                each["readQueueNums"] = each["writeQueueNums"] = queues
            yield given | {"body": json.dumps(body)}
        for number, (name, broker_id) in enumerate(ASKED, start=1):
            is_lacking = minute >= 4 and (name, broker_id) in lacking
            listed = [MEMBERS[0], *MEMBERS[2:]] if is_lacking else MEMBERS
            to = {"broker_id": broker_id, "broker_addr": f"{name}:109{broker_id + 1}1"}
            yield members(60 * minute + number, name, listed, ("T", RETRY)) | to


@pytest.mark.parametrize("lacking", [{("broker-a", 0)}, {("broker-a", 0), ("broker-a", 1)}])
def test_a_client_that_a_slave_lists_does_not_reach_the_master_by_it(audit, lacking):
    """It gets broker-b's list alone, by which the retry queue of broker-b is its own each time.

    By broker-b's list T's queues 2 and 3 of broker-a are its own too, which it does not read; the
    first member has 2 and the third has 3 where they draw broker-a's list.
    """
    found = audit(polled(lacking))
    orphans = {
        (row["topic"], row["broker_name"], row["queue_id"]): row["probability"]
        for row in lasting(found["orphaned_queues"])
    }
    assert orphans == {("T", "broker-a", 2): 0.5, ("T", "broker-a", 3): 0.5}
    (twice,) = lasting(found["duplicate_queues"])
    # The third member has it by broker-a's list.
    assert (twice["topic"], twice["broker_name"], twice["probability"]) == (RETRY, "broker-b", 0.5)
    assert twice["first_seen"] == instant(240)


def test_a_client_that_the_slave_alone_does_not_list_reads_everything(audit):
    found = audit(polled({("broker-a", 1)}))
    assert (found["orphaned_queues"], found["duplicate_queues"]) == ([], [])


@pytest.mark.parametrize("answer", [True, False])
def test_running_infos_that_came_are_not_asked_for(audit, answer):
    """Broker-a does not list the fourth member. All say each minute what they hold: by each list
    it would be two queues of broker-b or none, and it is these two.
    """

    def lines():
        for minute in MINUTES:
            yield route(60 * minute, "broker-a", "broker-b")
            yield members(60 * minute + 1, "broker-a", MEMBERS[:3] if minute > 3 else MEMBERS)
            yield members(60 * minute + 2, "broker-b", MEMBERS)
        for minute in MINUTES if answer else ():
            for number, client_id in enumerate(MEMBERS):
                held = QUEUES[2 * number : 2 * number + 2]
                given = holds(60 * minute + 20 + number, client_id, held, "Any")
                package = "org.apache.rocketmq.client.consumer.rebalance"
                strategy = f"{package}.AllocateMessageQueueAveragely@49"
                yield given | {"body": given["body"].replace("com.example.Any@49", strategy)}

    remedies = [each["remedy"] for each in lasting(audit(lines())["group_faults"])]
    assert remedies
    assert any("would make it certain" in each for each in remedies) != answer
