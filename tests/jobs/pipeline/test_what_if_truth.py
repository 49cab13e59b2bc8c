"""Predictions against what the processes of the sample dumps really held afterwards.

No client c4 leaves in S1 to S5. What they have: c4 joins in S1, S3 and S4, so that its leave from
the settled group must give what the others held before; c2 leaves in S1, a copy of an id joins and
leaves in S2 (c3), c5 joins and c1 leaves in S5. S8 and S10 have a leave as well, and S17 a topic
that grows and shrinks.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest

from jobs.config.settings import load_settings
from jobs.declared.instants import to_datetime
from jobs.pipeline.inputs import strategy_rules
from jobs.pipeline.moments import MomentQuestion, moments_of_dumps
from rebalance_core import Change, Situation, join, leave, resize, what_if
from tests.support.truth import CAPTURES, SAMPLE_SETTINGS, Queue, TopicTruth, rounds

SITUATIONS = ("S1", "S2", "S3", "S4", "S5", "S8", "S10")


def settled(situation: str) -> list[list[TopicTruth]]:
    """By topic the rounds in which the group had settled, in time."""
    by_topic: dict[str, list[TopicTruth]] = {}
    for truth in rounds(situation):
        if truth.full:
            by_topic.setdefault(truth.topic, []).append(truth)
    return list(by_topic.values())


def processes(truth: TopicTruth) -> Counter[str]:
    return Counter({client_id: len(held) for client_id, held in truth.held.items()})


def changed_membership() -> list[tuple[TopicTruth, TopicTruth]]:
    """Settled rounds between which processes joined or left; also with time run backwards."""
    pairs = [
        (before, after)
        for situation in SITUATIONS
        for truths in settled(situation)
        for before, after in pairwise(truths)
        # A retry topic has the members of the others.
        if processes(before) != processes(after) and not before.topic.startswith("%RETRY%")
    ]
    return [*pairs, *((after, before) for before, after in pairs)]


PAIRS = changed_membership()


def predicted(before: TopicTruth, *changes: Change) -> dict[str, list[list[Queue]]]:
    settings = load_settings(SAMPLE_SETTINGS)
    (moment,) = moments_of_dumps(
        [str(CAPTURES / before.situation / "dump.jsonl.gz")],
        MomentQuestion(before.consumer_group, before.topic, before.time),
        settings,
    )
    assert to_datetime(moment.snapshot_time) == before.time
    told = what_if(Situation(moment.state, strategy_rules(settings)), changes)
    assert told.before.coverage == told.after.coverage == "AUDITED"
    return {
        allocation.client_id: [sorted((q.broker_name, q.queue_id) for q in allocation.queues)]
        * allocation.processes
        for allocation in told.after.allocations
    }


def name(pair: tuple[TopicTruth, TopicTruth]) -> str:
    return f"{pair[0]} to {pair[1].step}"


def test_the_captures_have_these_joins_and_leaves() -> None:
    seen = {
        (after.situation, tuple((processes(after) - processes(before)).elements()),
         tuple((processes(before) - processes(after)).elements()))
        for before, after in PAIRS
        if before.time < after.time
    }  # fmt: skip
    assert seen == {
        ("S1", ("127.0.0.1@5907#2040384509384",), ()),
        ("S1", (), ("127.0.0.1@4346#1978195185761",)),
        ("S2", ("10.0.2.10@app-DUP",), ()),
        ("S2", (), ("10.0.2.10@app-DUP",)),
        ("S3", ("10.0.3.4@app",), ()),
        ("S4", ("10.0.4.4@app",), ()),
        ("S5", ("127.0.0.1@6079#2053790957282",), ()),
        ("S5", (), ("127.0.0.1@4908#1989738738612",)),
        ("S8", ("10.0.8.12@app-5",), ()),
        ("S8", (), ("10.0.8.9@app-2",)),
        ("S10", (), ("10.2.0.11@r2-c3",)),
    }


@pytest.mark.long
@pytest.mark.parametrize("pair", [p for p in PAIRS if processes(p[1]) < processes(p[0])], ids=name)
def test_after_a_leave_processes_held_what_was_said(pair: tuple[TopicTruth, TopicTruth]) -> None:
    before, after = pair
    gone = processes(before) - processes(after)
    assert predicted(before, *map(leave, gone.elements())) == after.held


@pytest.mark.long
@pytest.mark.parametrize(
    "pair",
    # Who joins is taken to be like the others: of c4 in S3 and S4 that is known to be wrong.
    [p for p in PAIRS if processes(p[1]) > processes(p[0]) and p[0].situation not in ("S3", "S4")],
    ids=name,
)
def test_after_a_join_processes_held_what_was_said(pair: tuple[TopicTruth, TopicTruth]) -> None:
    before, after = pair
    come = processes(after) - processes(before)
    assert predicted(before, *map(join, come.elements())) == after.held


def test_after_a_topic_grew_and_shrank_they_held_what_was_predicted() -> None:
    def size(truth: TopicTruth) -> int:
        return len({n for held in truth.held.values() for each in held for _, n in each})

    first, *others = (t for t in settled("S17") if not t[0].topic.startswith("%RETRY%"))
    assert not others
    resized = [(one, other) for one, other in pairwise(first) if size(one) != size(other)]
    assert [size(after) for _, after in resized] == [6, 3]
    for before, after in resized:
        assert predicted(before, resize(size(after))) == after.held
