"""periods -> group_health, state_runs, unreadable_queues: every topic, audited or not."""

from __future__ import annotations

import numpy as np
import pytest

from jobs.declared.dossier import Dossier, PollRun, QueueOffsets
from jobs.judge.observe.situations import Situations
from jobs.judge.result.health import (
    group_health,
    unreadable_queues,
)
from rebalance_core import MessageQueue
from tests.judge.phases import at, broker, case, evaluated, period, queue_finding, stall

GOOD = evaluated(
    reason="why good", queues=8, most_queues=2, fewest_queues=1, strategy_source="assumed"
)
BAD = evaluated(reason="why bad", completeness=0.5, members=3, strategy_source="assumed")


def unknown(coverage, reason, **told):
    return evaluated(coverage=coverage, reason=reason, completeness=0.0, **told)


BY_ID = {
    "unrouted": unknown("ROUTE_NOT_KNOWN", "why unrouted"),
    "own": unknown("STRATEGY_NOT_KNOWN", "why own"),
    "good": GOOD,
    "bad": BAD,
    "none": unknown("NO_BROKER_ANSWERED", "why none", members=0),
    "all": evaluated(coverage="BROADCASTING", reason="why all", strategy_source=None),
}


def finding(kind="ORPHANED", severity="INFO", probability=1.0, first=120, last=240, share=1.0):
    values = {"kind": kind, "severity": severity, "probability": probability}
    return queue_finding(first, last, share_of_time=share, **values)


def health(*periods, findings=(), routes=(), offsets=(), **facts):
    """The row of T; ``routes``: the brokers that each nameserver gives, a broker each."""
    of_each = tuple((f"ns-{n}", (each,)) for n, each in enumerate(routes))
    every = [period(*each) for each in periods]
    every = [e._replace(situation=e.situation._replace(routes=of_each)) for e in every]
    facts = {"dossier": Dossier("C", "G", offsets={"T": list(offsets)})} | facts
    of = case(situations=Situations({"T": every}), evaluated=BY_ID, **facts)
    return group_health(of, "T", list(findings))


def polled(seconds, written, consumed, broker_name="broker-a", queue_id=0):
    times = np.array([at(each) for each in seconds])
    numbers = (np.array(each) for each in (written, consumed))
    return QueueOffsets("T", broker_name, queue_id, times, *numbers)


def test_the_minutes_of_a_topic_are_those_of_its_queues_by_probability_and_share_of_the_time():
    row = health(
        ("good", 0, 60),
        ("bad", 120, 240),
        findings=[
            finding(severity="CRITICAL"),
            finding(severity="WARNING", probability=0.5, last=180),
            finding("DUPLICATE", last=180),
            finding("DUPLICATE", first=0, share=0.75),
            stall(severity="INFO"),
        ],
    )

    # 2 min of one queue, 1 min of another at a half; 1 min of one, 4 min of one with gaps.
    assert (row["orphan_queue_minutes"], row["duplicate_queue_minutes"]) == (2.5, 4.0)
    assert row["worst_severity"] == "CRITICAL"
    # As it was last; but for the completeness, which is the lowest.
    assert (row["reason"], row["members"], row["completeness"]) == ("why bad", 3, 0.5)
    assert (row["snapshots"], row["audited_snapshots"]) == (5, 5)


@pytest.mark.parametrize(
    ("period_id", "brokers", "number"),
    [
        # Two nameservers: of a queue that one of them gives it counts that it is not known.
        ("good", [broker("a", 2), broker("b", 3)], 4),
        ("good", [broker("b", 3), broker("b", 2)], 3),
        ("good", [broker("a", 1)], 0),
        ("all", [broker("b", 3)], None),
        # Whoever writes a route chooses its numbers: no queue is made to count them.
        ("good", [broker("b", 2**31 - 1), broker("c", 5)], 2**31 - 1),
        # Without a route it is not known that nothing waits.
        ("good", [], None),
    ],
)
def test_of_how_many_queues_it_is_not_known_what_waits(period_id, brokers, number):
    """A broker that did not answer makes the backlog a lower bound."""
    places = (("a", 0), ("a", 7), ("gone", 0))
    offsets = [polled([0, 240], [10, 30], [10, 30], *place) for place in places]
    row = health((period_id, 0, 240), routes=brokers, offsets=offsets)
    assert row["queues_without_offsets"] == number
    if not brokers:
        assert row["backlog"] is None


HOUR = 3600


@pytest.mark.parametrize(
    ("polls", "consumed", "shown"),
    [
        # Every minute until the end, and until ten minutes before it.
        (range(0, HOUR + 1, 60), 30, (0, 0)),
        (range(0, HOUR - 599, 60), 30, (None, 1)),
        # Few polls do not show how often they come: 30 minutes.
        ([0, 60, HOUR - 1800], 30, (0, 0)),
        ([0, 60, 120], 30, (None, 1)),
        # One of the same round as the last lists, a moment later.
        ([HOUR + 2], 30, (0, 0)),
        # The group never committed an offset: where it begins nobody knows.
        (range(0, HOUR + 1, 60), 0, (None, 1)),
    ],
)
def test_offsets_old_or_never_committed_do_not_show_that_nothing_waits(polls, consumed, shown):
    offsets = polled(polls, [30] * len(polls), [consumed] * len(polls), "a")
    row = health(("good", 0, HOUR), routes=[broker("a", 1)], offsets=[offsets])
    assert (row["backlog"], row["queues_without_offsets"]) == shown


@pytest.mark.parametrize(("period_id", "is_named"), [("none", True), ("good", False)])
def test_a_broker_that_never_answered_is_named_where_nothing_was_audited(period_id, is_named):
    polls = [PollRun(("broker-b", 0), "NO_ANSWER", (at(0),), (at(0),), "h:10911")]
    reason = health((period_id, 0, 240), dossier=Dossier("C", "G", polls=polls))["reason"]
    assert ("broker-b at h:10911" in reason) == is_named


@pytest.mark.parametrize(
    ("periods", "unaudited"),
    [
        # In between, until somebody knew again: for exactly as long as what has to last.
        ([("good", 0, 60), ("none", 120, 240), ("bad", 300, 360)], ("none", 120, 300)),
        # Several in a row are one time, under the name of the first.
        ([("none", 0, 60), ("own", 120, 180), ("good", 240, 300)], ("none", 0, 240)),
        # The longest of several, and one that nothing ends.
        ([("none", 0, 240), ("good", 300, 360), ("own", 420, 840)], ("own", 420, 840)),
        ([("none", 0, 480), ("good", 540, 600), ("own", 660, 960)], ("none", 0, 540)),
        ([("good", 0, 60), ("none", 120, 180), ("good", 240, 300)], None),
        ([("all", 0, 840)], None),
        # Routes may come every 15 minutes (route_max_age_seconds), so the first one late.
        ([("unrouted", 0, 840), ("good", 900, 960)], ("unrouted", 0, 900)),
        ([("unrouted", 0, 780), ("good", 840, 1_020)], None),
        # Nothing can be seen to last after it.
        ([("unrouted", 0, 780), ("good", 840, 960)], ("unrouted", 0, 840)),
        ([("unrouted", 0, 60), ("good", 120, 180)], None),
        ([("good", 0, 60), ("unrouted", 120, 360)], ("unrouted", 120, 360)),
    ],
)
def test_the_time_in_which_nobody_knows_the_owners(periods, unaudited):
    row = health(*periods)
    found = row["unaudited_coverage"], row["unaudited_since"], row["unaudited_until"]
    if unaudited is None:
        assert found == (None, None, None)
    else:
        name, since, until = unaudited
        assert found == (BY_ID[name].verdict.coverage, at(since), at(until))


@pytest.mark.parametrize(
    ("probabilities", "last", "minutes"),
    [
        # In any order: 0.1 + 0.2 + 0.3 is more than 0.6, and 0.3 + 0.2 + 0.1 is not.
        ((0.1, 0.2, 0.3), 60, 0.6),
        ((0.3, 0.2, 0.1), 60, 0.6),
        # Half a millionth is rounded up, as Spark rounds: 30 s at a 64th are 0.0078125 minutes.
        ((1 / 64,), 30, 0.007813),
    ],
)
def test_minutes_add_up_to_the_same_and_are_rounded(probabilities, last, minutes):
    findings = [finding(probability=p, first=0, last=last) for p in probabilities]
    assert health(("bad", 0, 60), findings=findings)["orphan_queue_minutes"] == minutes


def unreadable(queue_id):
    return MessageQueue("T", "broker-a", queue_id)


def test_an_unreadable_queue_is_told_once_from_its_first_to_its_last_snapshot():
    by_id = {
        # That a state could not be recomputed hides no queue that its route shows.
        "both": evaluated(coverage="ROUTE_NOT_KNOWN", unreadable=(unreadable(4), unreadable(5))),
        "none": evaluated(),
        "one": evaluated(unreadable=(unreadable(5),)),
    }
    periods = [period("both", 0, 60), period("none", 120, 180), period("one", 240, 240)]

    rows = unreadable_queues(periods, by_id)

    expected = [("T", "broker-a", 4, at(0), at(60), 2), ("T", "broker-a", 5, at(0), at(240), 3)]
    assert [tuple(row.values()) for row in rows] == expected


def test_what_is_known_counts_over_what_is_later_and_not_known():
    row = health(("good", 0, 60), ("none", 120, 240))

    assert (row["coverage"], row["members"], row["completeness"]) == ("AUDITED", 2, 1.0)
    assert (row["snapshots"], row["audited_snapshots"]) == (5, 2)
    assert (row["first_seen"], row["last_seen"]) == (at(0), at(240))
