"""timeline -> reassignments: when queues changed hands, and between whom."""

from __future__ import annotations

from jobs.judge.observe.timeline import find_reassignments
from tests.judge.phases import allocated, at, phase, timeline

BOTH = [allocated("a", range(2)), allocated("b", (2, 3))]
ALONE = [allocated("a", range(4))]
#: One broker still lists b, another does not any more.
TORN = [
    allocated("a", (0, 1), ["broker-a"], 0.5),
    allocated("b", (2, 3), ["broker-a"], 0.5),
    allocated("a", range(4), ["broker-b"], 0.5),
    allocated("b", (), ["broker-b"], 0.5),
]


def found(*states, blind=(), queues=None):
    """The reassignments between states that follow each other, each of 50 s; times as seconds."""
    phases = []
    for n, (state_id, allocations) in enumerate(states):
        told = {"situation_id": state_id, "is_blind": state_id in blind}
        told |= {"allocations": allocations, "queues": (queues or {}).get(state_id, 4)}
        phases.append(phase(n + 1, 60 * n, 60 * n + 50, **told))
    rows = [each._asdict() for each in find_reassignments(timeline(*phases))]
    for row in rows:
        for time in ("changed_at", "seen_before", "settled_at"):
            row[time] = None if row[time] is None else row[time] // at(1)
    return rows


def test_a_state_that_gives_everybody_the_same_is_no_reassignment():
    """A client that reconnected has another address, and what it had; one goes on after a gap."""
    for after in ("s2", "s1"):
        assert found(("s1", ALONE), (after, ALONE)) == []


def test_while_the_lists_differ_it_is_not_settled():
    expired, gone = found(("s1", BOTH), ("s2", TORN), ("s3", ALONE))

    assert (expired["lists_agree"], expired["settled_at"]) == (False, 120)
    assert (gone["lists_agree"], gone["settled_at"]) == (True, 120)
    # While some list has it, it has not left.
    assert (expired["clients_left"], gone["clients_left"]) == ([], ["b"])
    assert expired["queues_moved"] == gone["queues_moved"] == 4

    (ongoing,) = found(("s1", BOTH), ("s2", TORN))
    assert ongoing["settled_at"] is None


def test_a_broker_that_is_not_answered_for_makes_nobody_give_up_a_queue():
    states = [("s1", BOTH), ("s2", TORN), ("s3", ALONE), ("s2", TORN)]

    (only,) = found(*states, blind=("s3",))

    assert (only["changed_at"], only["settled_at"]) == (60, None)


def test_more_queues_that_nobody_takes_yet_are_a_reassignment_too():
    (row,) = found(("s1", ALONE), ("s2", ALONE), queues={"s2": 6})

    assert (row["queues_before"], row["queues"], row["queues_moved"]) == (4, 6, 0)
