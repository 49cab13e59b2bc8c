"""Lists that differ: brokers that disagree, or that were asked before and after a change."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.judge.observe.evaluation import listed, state_of
from jobs.judge.observe.situations import find_situations
from tests.judge.lists import NO_ANSWER, NOT_ONLINE, group
from tests.judge.phases import TERMS, at, broker, route

ROUTE = {"T": [route([broker("x"), broker("y"), broker("z")], 0)]}


def situations(polls, **overrides):
    """By second of the snapshot the situation of T."""
    dossier = group(polls, **{"routes": ROUTE} | overrides)
    found = find_situations(dossier, replace(TERMS, route_max_age_seconds=1_000_000))
    return {
        second: period.situation
        for period in found.by_topic["T"]
        for second in {time // at(1) for run in dossier.polls for time in run.times}
        if period.first_seen <= at(second) <= period.last_seen
    }


def unreachable(polls, **overrides):
    found = situations(polls, **overrides)
    return {second: each.unreachable for second, each in found.items()}


def members(dossier_polls):
    """By second and broker the client ids of its list when the round ended."""
    dossier = group(dossier_polls)
    found = {}
    for second, situation in situations(dossier_polls).items():
        of_brokers = {}
        for name, answer in situation.answers:
            listed = dossier.list_members.get(answer)
            ids = set(listed().client_ids) if listed else set()
            for patch in situation.patches:
                if patch.broker == name:
                    later = dossier.list_members.get(patch.later)
                    of_patch = set(later().client_ids) if later else set()
                    changed = set(patch.client_ids)
                    ids = ids - changed | of_patch & changed
            of_brokers[name[0]] = ids
        found[second] = of_brokers
    return found


LISTS = {"2": ["a", "b"], "1": ["a"], "0": NOT_ONLINE, "-": NO_ANSWER}


def rounds(marks, every=60, late=0):
    """A broker's answers: ``2`` lists a and b, ``1`` a, ``0`` nobody; ``-`` is none."""
    return [(every * n, every * n + late, LISTS[mark]) for n, mark in enumerate(marks)]


def test_of_an_id_as_many_processes_are_cut_off_as_any_broker_lists_more():
    copies = [("a", "a:1"), ("a", "a:2")]
    polls = {
        name: [(60 * n, 60 * n, ["b", *of_a]) for n in range(4)]
        for name, of_a in (("x", []), ("y", copies), ("z", copies[:1]))
    }
    assert unreachable(polls)[60] == (("a", "x"), ("a", "x"), ("a", "z"))


@pytest.mark.parametrize(
    "polls",
    [
        # One poll without a client is a moment and no wall.
        {"x": rounds("222"), "y": rounds("212", late=8)},
        # A slave that lacks a client keeps nobody from the master.
        {"x": rounds("2222"), "x/1": rounds("1111"), "y": rounds("2222")},
        # A broker restarted; a group that is offline everywhere is offline and not missing.
        {"x": rounds("222222", every=15), "y": rounds("220022", every=15)},
        {"x": rounds("0000"), "y": rounds("0000")},
        # A broker that has no queue of the topic keeps nobody from it.
        {"x": rounds("2222"), "elsewhere": rounds("0000")},
        # Two polls hours apart show nothing in between.
        {"x": rounds("22", every=28_800), "y": rounds("11", every=28_800, late=8)},
        # y is new: who was listed when it was first asked was not listed all the time before.
        {"x": rounds("1" * 20), "y": rounds("2" * 20, late=8)[19:]},
        # Between two coarse rounds b came after the answer of y and before that of x; later y
        # lacks it for a moment, or never.
        {"x": rounds("12222", every=300, late=1), "y": rounds("11212", every=300)},
        {"x": rounds("12222", every=300, late=1), "y": rounds("11222", every=300)},
        # The nameserver still gives the master of x: that is whom clients ask.
        {"x": rounds("-----"), "x/1": rounds("00000"), "y": rounds("22222")},
    ],
)
def test_what_is_no_wall_keeps_nobody_from_a_broker(polls):
    assert not any(unreachable(polls).values())


@pytest.mark.parametrize("last", "12")
def test_a_client_that_comes_between_two_coarse_rounds_is_cut_off_since_the_first(last):
    """Restarted between 0 and 300 s, its nameserver lacks y. At 900 s it is there, or has gone."""
    polls = {"x": rounds(f"122{last}", 300, late=1), "y": rounds(f"111{last}", 300)}
    cut_off = (("b", "y"),)
    assert unreachable(polls) == {0: (), 300: cut_off, 600: cut_off, 900: ()}


def always_cut_off(polls, **overrides):
    (pairs,) = set(unreachable(polls, **overrides).values())
    return pairs


def slaves_of_x(*ids):
    return {"T": [route([broker("x", broker_ids=ids), broker("y")], 0)]}


def test_who_reaches_one_of_two_slaves_reaches_the_broker():
    polls = {"x/1": rounds("11111"), "x/2": rounds("22222"), "y": rounds("22222")}
    assert always_cut_off(polls, routes=slaves_of_x(1, 2)) == ()
    polls["x/2"] = polls["x/1"]
    assert always_cut_off(polls, routes=slaves_of_x(1, 2)) == (("b", "x"),)


def test_a_broker_that_empties_within_a_round_has_no_member_at_its_end():
    found = situations({"x": rounds("220"), "y": rounds("200", late=8)})[60]
    assert sorted(state_of(found, {}).offline_brokers) == [("x", 0), ("y", 0)]
    assert [*listed(found)] == []


def test_an_answer_at_the_edge_of_the_window_is_no_proof_beyond_it():
    # Answers that follow prove that b does not reach x, and not that it never did. (z lacks c all
    # the time, so that each round is looked at.)
    polls = {
        "x": [(60 * n, 60 * n, ["a", "c"]) for n in range(20)],
        "y": [(60 * n, 60 * n + 8, ["a", "b", "c"]) for n in range(10, 20)],
        "z": rounds("1" * 20),
    }
    found = unreachable(polls)
    assert {second for second, pairs in found.items() if ("c", "z") in pairs} == {*found}
    assert ("b", "x") in found[600]
    assert ("b", "x") not in found[300]


# ---------------------------------------------------------------- worlds


def lives(draw, end):
    """When each client is there: each joins or leaves once within the window, not both."""
    there = {"always": (-10_000, 10_000)}
    for number in range(draw(st.integers(1, 6))):
        first, last = draw(st.integers(-50, end)), draw(st.integers(-50, end))
        there[f"c{number}"] = draw(st.sampled_from([(first, 10_000), (-10_000, last)]))
    return there


def listed_in(there, second):
    return [each for each, (since, until) in there.items() if since <= second <= until]


@st.composite
def worlds(draw):
    """When each client is there (whole seconds), and when each broker is asked in each round."""
    asked = {name: [60 * n + draw(st.integers(0, 55)) for n in range(6)] for name in "xyz"}
    return lives(draw, 400), asked


@given(worlds())
def test_brokers_that_all_tell_the_truth_at_their_own_times_never_disagree(world):
    there, asked = world
    polls = {
        name: [(60 * n, at_, listed_in(there, at_) or NOT_ONLINE) for n, at_ in enumerate(times)]
        for name, times in asked.items()
    }
    found = members(polls)
    # The last round has nothing behind it that would show what changed within it.
    for number in range(5):
        end = max(times[number] for times in asked.values())
        assert all(ids == set(listed_in(there, end)) for ids in found[60 * number].values())
    assert not any(unreachable(polls).values())


def test_a_missing_answer_hides_who_left_and_came_back():
    # Two of x's answers are missing; b was away meanwhile, as the others saw it.
    others = rounds("2112222")
    polls = {"x": rounds("2--2222", late=1), "y": others, "z": others}
    shown = members(polls)
    assert shown[60] == shown[120] == {name: {"a"} for name in "xyz"}
    # Who the broker lacked before, and still lacks, does not reach it.
    polls = {"x": rounds("111--11", late=1), "y": rounds("2222222"), "z": rounds("2222222")}
    shown = members(polls)
    assert shown[180]["x"] == shown[240]["x"] == {"a"}
    assert unreachable(polls)[180] == (("b", "x"),)
