"""A member that keeps what it had while the others divide the queues anew."""

from __future__ import annotations

import json

import pytest

from tests.cases.test_small_dumps import MEMBERS, MINUTES, QUEUES, holds, members, route

FIFTH = "10.0.0.4@4"
AVG = "org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely@4"
#: Of eight queues by AVG: two each of four members; of five members the last two have one each.
OF_FOUR = {client_id: QUEUES[2 * n : 2 * n + 2] for n, client_id in enumerate(MEMBERS)}
OF_FIVE = OF_FOUR | {MEMBERS[3]: QUEUES[6:7], FIFTH: QUEUES[7:]}


def a_fifth_comes(at):
    """From that minute on; the fourth member holds two queues all the time."""
    for minute in MINUTES:
        shares = OF_FIVE if minute >= at else OF_FOUR
        yield route(60 * minute, "broker-a", "broker-b")
        for number, name in enumerate(("broker-a", "broker-b"), start=1):
            yield members(60 * minute + number, name, sorted(shares))
        for number, (client_id, share) in enumerate(shares.items()):
            held = OF_FOUR[client_id] if client_id == MEMBERS[3] else share
            given = holds(60 * minute + 5 + number, client_id, held, "Any")
            body = json.loads(given["body"])
            body["properties"]["allocateMessageQueueStrategy"] = AVG
            yield given | {"body": json.dumps(body)}


@pytest.mark.parametrize(
    ("comes", "evidence", "remedy"),
    [
        # It has what it last had by the computation: it does not divide at all.
        (4, "still have what they had before the last change", f"restart {MEMBERS[3]}: "),
        # It never had its share: it divides in another way.
        (0, "holds queues other than its share", f"make {MEMBERS[3]} divide the queues as"),
    ],
)
def test_a_member_that_keeps_what_it_had_is_not_asked_for_its_strategy(
    audit, comes, evidence, remedy
):
    found = audit(a_fifth_comes(comes))
    (fault,) = (each for each in found["group_faults"] if each["persistence"] == "PERSISTENT")
    assert (fault["fault"], fault["client_ids"]) == ("ALLOCATES_OTHERWISE", [MEMBERS[3]])
    (twice,) = found["duplicate_queues"]
    assert (twice["broker_name"], twice["queue_id"]) == ("broker-b", 3)
    assert evidence in fault["evidence"]
    assert fault["remedy"].startswith(remedy)
