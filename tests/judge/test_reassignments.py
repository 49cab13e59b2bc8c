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


def test_a_client_that_joins_takes_queues_from_the_other():
    (row,) = found(("s1", ALONE), ("s2", BOTH))

    assert (row["seen_before"], row["changed_at"], row["settled_at"]) == (50, 60, 60)
    assert (row["clients_joined"], row["clients_left"]) == (["b"], [])
    assert (row["state_id_before"], row["state_id"]) == ("s1", "s2")
    assert (row["queues_moved"], row["lists_agree"]) == (2, True)


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


def test_a_group_that_never_changed_pays_for_no_allocations():
    def too_many():
        raise AssertionError("made for nothing")

    lasting = phase(1, 0, 600)
    lasting = lasting._replace(
        evaluated=lasting.evaluated.__class__(**vars(lasting.evaluated) | {"allocations": too_many})
    )
    assert find_reassignments(timeline(lasting)) == []
