"""Members that differ and have no share today, of eight queues: what they would do is reckoned
before.
"""

from __future__ import annotations

import json

import pytest

from tests.cases.small_dumps import AVG, MINUTES, QUEUES, asked, holds, subscriptions

NINE = [f"10.0.0.{number}@{number}" for number in range(9)]
TWELVE = [f"10.0.0.{number:02}@{number}" for number in range(12)]
SEVENTEEN = [f"10.0.0.{number:02}@{number}" for number in range(17)]
CIRCLE = f"{AVG}ByCircle"


def told(second, client_id, held, topics=("T",), **facts):
    """The running info of a member that subscribes to these topics."""
    info = holds(second, client_id, held, **facts)
    body = json.loads(info["body"]) | {"subscriptionSet": subscriptions(topics)}
    return info | {"body": json.dumps(body)}


def minutes(ids_at, facts_of):
    """``ids_at``: the members of a minute; ``facts_of``: what one of them reports otherwise.

    Each has the queue of its place, the ninth and later none.
    """
    for minute in MINUTES:
        ids = ids_at(minute)
        yield from asked(minute, ids)
        for place, client_id in enumerate(sorted(ids)):
            facts = facts_of(client_id)
            yield told(60 * minute + 5, client_id, QUEUES[place : place + 1], **facts)


def otherwise(*strangers, **facts):
    facts = facts or {"topics": ()}
    return lambda client_id: facts if client_id in strangers else {}


@pytest.mark.parametrize(
    ("ids", "facts_of", "fault", "said"),
    [
        # Without the first the ninth has the eighth place, and its queue no owner.
        pytest.param(
            NINE,
            otherwise(NINE[8]),
            "SUBSCRIPTION_MISMATCH",
            f"{NINE[8]} does not subscribe to T and still takes a slot of it; harmless today: with "
            f"one member fewer ({NINE[0]}) queue 3 of broker-b would have no owner",
            id="one of nine",
        ),
        # The eleventh has the eighth place when three others have left.
        pytest.param(
            TWELVE,
            otherwise(TWELVE[10]),
            "SUBSCRIPTION_MISMATCH",
            f"with 3 members fewer ({TWELVE[0]}, {TWELVE[1]} and {TWELVE[2]}) queue 3 of broker-b "
            "would have no owner",
            id="one of twelve",
        ),
        # The seventeenth has the eighth place when nine others have left, and is alone at last.
        pytest.param(
            SEVENTEEN,
            otherwise(SEVENTEEN[16]),
            "SUBSCRIPTION_MISMATCH",
            "harmless today: with 9 members fewer",
            id="one of seventeen",
        ),
        # Of seven by AVG the first has two queues, and each other the one after its place; by
        # AVG_BY_CIRCLE the last has the one of its place.
        pytest.param(
            NINE[:8],
            otherwise(NINE[7], strategy=CIRCLE),
            "STRATEGY_MISMATCH",
            f"harmless today: with one member fewer ({NINE[0]}) queue 3 of broker-b would have no "
            "owner, and queue 2 of broker-b several",
            id="strategies",
        ),
    ],
)
def test_members_that_differ_are_named_before_it_costs_a_queue(
    audit, run, ids, facts_of, fault, said
):
    found = audit(minutes(lambda _: ids, facts_of))
    (row,) = found["group_faults"]
    assert (row["fault"], row["severity"], row["topic"]) == (fault, "INFO", "T")
    assert said in row["evidence"]
    assert (row["persistence"], row["queues_affected"]) == ("PERSISTENT", 0)
    assert found["orphaned_queues"] == found["duplicate_queues"] == []
    code, console = run(minutes(lambda _: ids, facts_of), "--fail-on", "CRITICAL,WARNING")
    assert code == 0
    assert "No queue is wrong. In 1 topic members differ, which is harmless today" in console


NEW = [f"10.0.1.{number}@9{number}" for number in range(4)]


def deploy(minute):
    """From 10:11 on each minute one of the four without a queue is replaced by one that is last."""
    replaced = max(minute - 10, 0)
    return [*TWELVE[: 12 - replaced], *NEW[:replaced]]


@pytest.mark.parametrize(
    ("ids_at", "facts_of"),
    [
        pytest.param(lambda _: NINE, otherwise(), id="all subscribe alike"),
        pytest.param(deploy, otherwise(*NEW), id="a deploy goes on"),
        pytest.param(lambda _: NINE[:8], otherwise(strategy=CIRCLE), id="one strategy"),
    ],
)
def test_of_members_that_do_not_differ_and_of_a_deploy_nothing_is_said(audit, ids_at, facts_of):
    found = audit(minutes(ids_at, facts_of))
    assert found["group_faults"] == found["orphaned_queues"] == found["duplicate_queues"] == []
    deploys = [row["evidence"] for row in found["events"]]
    assert ["it changed its subscription from T to no topic" in each for each in deploys] == (
        [True] if ids_at is deploy else []
    )
