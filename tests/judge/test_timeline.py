"""periods -> timeline: the phases that say something, numbered in time."""

from __future__ import annotations

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.judge.observe.core_verdict import Verdict
from jobs.judge.observe.timeline import build_timeline, find_reassignments, phases_of, without_route
from jobs.judge.rules.episodes import fault_episodes, queue_episodes
from rebalance_core.findings import AUDITED, NO_BROKER_ANSWERED, ROUTE_NOT_KNOWN, STRATEGY_NOT_KNOWN
from tests.judge.phases import at, evaluated, fault, finding, period

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


def test_a_strategy_that_is_not_known_ends_no_episode_and_has_a_phase():
    """Nothing is computed in it, and what the members hold is judged."""
    by_id = {
        "found": evaluated(findings=(finding(),)),
        "own": evaluated(coverage=STRATEGY_NOT_KNOWN),
    }
    periods = [period("found", 0, 180), period("own", 240, 900), period("found", 960, 1140)]

    timeline = timeline_of(periods, by_id)

    assert [each.is_blind for each in timeline.phases] == [False, True, False]
    (episode,) = queue_episodes(timeline, 180)
    assert (episode.first_seen, episode.last_seen) == (at(0), at(1140))
    assert (episode.extent.snapshots, episode.extent.share_of_time) == (8, 1.0)
    alone = timeline_of(periods[1:2], by_id)
    assert (queue_episodes(alone, 180), find_reassignments(alone)) == ([], [])


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


def is_blind(states, number):
    """The definition, word by word: quadratic, and so only here."""
    lists = [each.verdict.completeness * each.nameservers for each in map(state, states)]
    differ = [name.startswith("differ") for name in states]
    before = [n for n in range(number) if differ[n]]
    after = [n for n in range(number + 1, len(states)) if differ[n]]
    if differ[number] or not before or not after:
        return False
    most = max(lists[before[-1] + 1 : after[0]])
    return most < lists[before[-1]] and most < lists[after[0]]


STATES = ["differ", "differ of 2", "agree", "agree of 2", "agree of 1", "certain of 2"]


@given(st.lists(st.sampled_from(STATES), max_size=12))
def test_blind_is_what_the_definition_says(states):
    phases = phases_named(states)
    assert [each.is_blind for each in phases] == [is_blind(states, n) for n in range(len(states))]
