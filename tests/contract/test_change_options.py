"""A change as it is written on the command line."""

from __future__ import annotations

import pytest

from jobs.changes import CHANGES
from rebalance_core import AllocationError, ChangeError


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--leave", "a", "a leaves"),
        ("--join", "a", "a joins"),
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
