"""A change as it is written on the command line."""

from __future__ import annotations

import pytest

from jobs.commands.explain import CHANGES
from rebalance_core import (
    AllocationError,
    ChangeError,
    ClientList,
    Member,
    Situation,
    State,
    StrategyRules,
    TopicRoute,
    separate_ids,
    what_if,
)


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--leave", "a", "a leaves"),
        ("--join", "a", "a joins"),
        ("--join", "4@app", "4@app joins"),
        ("--strategy", "AVG", "every client uses AVG"),
        ("--strategy", "CONSISTENT_HASH={virtual_node_count = 9}", "every client uses CONSISTENT"),
        ("--add-broker", "broker=c=3", "broker=c is added with 3 queues"),
        ("--remove-broker", "broker-a", "broker-a is removed"),
        ("--queues", "8", "every broker has 8 queues of the topic"),
        ("--queues", "broker=a=0", "broker=a has 0 queues of the topic"),
        ("--unify-list", "broker-a", "broker-a lists every member"),
        ("--mend", "GHOST_MEMBER", "GHOST_MEMBER is mended"),
    ],
)
def test_each_option_makes_its_change(option: str, value: str, said: str) -> None:
    assert CHANGES[option](value).text.startswith(said)


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--join", "4", "write --join new-1 --join new-2 --join new-3 --join new-4"),
        ("--join", "40", "--join new-8 and so on"),
        ("--strategy", "CONFIG={x", "expected NAME={key = value, ...}, came"),
        ("--strategy", "CONSISTENT_HASH={nodes = 9}", "nodes"),
        ("--strategy", "AVERAGE", "unknown strategy"),
        ("--add-broker", "broker-c", "expected NAME=N"),
        ("--add-broker", "=3", "expected NAME=N"),
        ("--add-broker", "broker-c=", "expected a number of queues, came ''"),
        ("--queues", "1_0", "expected a number of queues, came '1_0'"),
        ("--queues", "\u0663", "expected a number of queues"),
        ("--queues", "9" * 10, "expected a number of queues"),
        ("--queues", "9" * 9, "expected 0 to 100000 queues"),
    ],
)
def test_what_is_no_change_is_refused(option: str, value: str, said: str) -> None:
    with pytest.raises((ChangeError, AllocationError)) as raised:
        CHANGES[option](value)
    assert said in str(raised.value)


def test_a_client_that_joins_by_its_masked_id_takes_part_in_the_changes_before() -> None:
    client_id = "10.0.0.1@ak|12345678|T|1"
    lists = (ClientList("broker-a", 0, (Member(client_id, "h:1"),)),)
    state = State("G", "T", lists, (TopicRoute("ns", ()),))

    after = [
        what_if(Situation(state, StrategyRules()), [separate_ids(), CHANGES["--join"](shown)])
        for shown in (client_id, "10.0.0.1@ak|(secret ef797c)|T|1")
    ]

    found = [[m.client_id for m in each.situation_after.state.members] for each in after]
    assert found[1] == found[0]
    assert len(set(found[0])) == 2
