"""periods -> timeline: the phases that say something, numbered in time."""

from __future__ import annotations

from itertools import accumulate

import pytest

from jobs.judge.observe.core_verdict import Verdict
from jobs.judge.observe.timeline import build_timeline, find_reassignments, phases_of, without_route
from jobs.judge.rules.episodes import fault_episodes
from rebalance_core.findings import AUDITED, NO_BROKER_ANSWERED, ROUTE_NOT_KNOWN, STRATEGY_NOT_KNOWN
from tests.judge.phases import at, evaluated, fault, finding, period, phase, timeline
from tests.judge.witnesses import allocated

GOOD, UNKNOWN = evaluated(), evaluated(coverage=NO_BROKER_ANSWERED, completeness=0.0)


def timeline_of(periods, by_id, snapshots=()):
    return build_timeline("T", phases_of(periods, by_id, snapshots))


def test_while_no_route_is_known_members_show_faults_all_the_same():
    differ = evaluated(
        coverage=ROUTE_NOT_KNOWN, faults=(fault("SUBSCRIPTION_MISMATCH", queues_affected=0),)
    )
    periods = [period("without", 0, 240), period("good", 300, 600)]
    situations = {"without": differ, "good": GOOD}

    assert [each.first_seen for each in timeline_of(periods, situations).phases] == [at(300)]
    (of_fault,) = fault_episodes(without_route("T", phases_of(periods, situations, ())), 180)
    assert (of_fault.fault, of_fault.extent.persistence) == ("SUBSCRIPTION_MISMATCH", "PERSISTENT")
    assert (of_fault.first_seen, of_fault.last_seen) == (at(0), at(240))
    # The route came, and with it the members were seen to be well.
    assert not of_fault.extent.ongoing
    (of_fault,) = fault_episodes(without_route("T", phases_of(periods[:1], situations, ())), 180)
    assert of_fault.extent.ongoing
    assert without_route("T", phases_of(periods[1:], situations, ())).phases == ()


def test_a_period_in_which_nobody_looked_for_a_time_becomes_a_phase_in_each_watch():
    """Three rounds at 10:00, and two at 18:00: nobody saw what was so for these eight hours."""
    snapshots = [at(each) for each in (0, 60, 120, 28_800, 28_860, 57_600)]
    whole = period("good", 0, 28_800)._replace(snapshots=4)
    rest = period("good", 28_860, 57_600, group_run=1)._replace(snapshots=2)

    timeline = timeline_of([whole, rest], {"good": GOOD}, snapshots)

    assert [(e.first_seen, e.last_seen, e.snapshots, e.watch) for e in timeline.phases] == [
        (at(0), at(120), 3, 0),
        (at(28_800), at(28_800), 1, 1),
        (at(28_860), at(28_860), 1, 1),
        (at(57_600), at(57_600), 1, 2),
    ]
    assert [each.position for each in timeline.phases] == [1, 2, 3, 4]
    assert [each.watch for each in timeline.runs] == [0, 1, 1, 2]


def state(name: str) -> Verdict:
    """``differ``, ``certain``, ``agree`` or ``no strategy``, of so many of three brokers, by one
    route or two.
    """
    found, _, brokers = name.removesuffix(", one route").partition(" of ")
    findings = {"differ": (finding(0.5),), "certain": (finding(1.0),)}.get(found, ())
    return evaluated(
        coverage=STRATEGY_NOT_KNOWN if found == "no strategy" else AUDITED,
        completeness=int(brokers or 3) / 3,
        nameservers=1 if "one route" in name else 2,
        findings=findings,
    )


def phases_named(names):
    periods = [period(name, 60 * n, 60 * n + 30) for n, name in enumerate(names)]
    return timeline_of(periods, {name: state(name) for name in names}).phases


@pytest.mark.parametrize(
    ("states", "telling"),
    [
        # A broker did not answer, and those that did agree: perhaps it is the one that differs.
        (["differ", "agree of 2", "differ", "differ", "agree of 1", "differ"], [1, 1, 2, 3, 3, 4]),
        # All were asked again in between: it has ended.
        (["differ", "agree of 2", "agree", "differ"], [1, 2, 3, 4]),
        # Likewise where a nameserver did not answer.
        (["differ", "agree, one route", "differ"], [1, 1, 2]),
        (["differ, one route", "agree, one route", "differ"], [1, 2, 3]),
        # All lists came, and nothing was computed of them.
        (
            ["differ, one route", "agree of 1, one route", "no strategy", "differ, one route"],
            [1, 1, 1, 2],
        ),
    ],
)
def test_where_fewer_lists_are_known_that_they_agree_ends_nothing(states, telling):
    """``telling`` counts the phases that are not blind."""
    phases = phases_named(states)

    assert [each.position for each in phases] == list(range(1, len(states) + 1))
    assert list(accumulate(not each.is_blind for each in phases)) == telling


def test_blind_phases_and_those_of_which_nothing_is_known_do_not_tell_what_has_ended():
    periods = [period("differ", 0, 60), period("agree of 2", 120, 120), period("?", 180, 240)]
    periods.append(period("differ", 300, 300))
    by_id = {name: state(name) for name in ("differ", "agree of 2")} | {"?": UNKNOWN}

    runs = timeline_of(periods, by_id).runs

    assert [(run.before, run.after) for run in runs] == [(0, 2), (2, 2), (2, 3)]
    # Each snapshot stands for a minute, the last one before the gap as well.
    assert [run.covers for run in runs] == [at(120), at(60), at(60)]


# ---------------------------------------------------------------- timeline -> reassignments


BOTH = [allocated("a", range(2)), allocated("b", (2, 3))]
ALONE = [allocated("a", range(4))]
#: One broker still lists b, another does not any more.
TORN = [
    allocated("a", (0, 1), 0.5, brokers=["broker-a"]),
    allocated("b", (2, 3), 0.5, brokers=["broker-a"]),
    allocated("a", range(4), 0.5, brokers=["broker-b"]),
    allocated("b", (), 0.5, brokers=["broker-b"]),
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
