"""Lists that differ: brokers that disagree, or that were asked before and after a change."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from jobs.judge.evaluation import Question, listed
from jobs.judge.situations import find_situations
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


BOTH, ALONE = ["a", "b"], ["a"]


def test_a_client_that_joins_within_a_round_joins_at_all_brokers():
    # b joins at 63 s: x was asked before, y after it.
    polls = {
        "x": [(0, 0, ALONE), (60, 60, ALONE), (120, 120, BOTH)],
        "y": [(0, 8, ALONE), (60, 68, BOTH), (120, 128, BOTH)],
    }
    assert members(polls)[60] == {"x": {"a", "b"}, "y": {"a", "b"}}
    assert not any(unreachable(polls).values())


def test_a_client_that_leaves_within_a_round_leaves_all_brokers():
    polls = {
        "x": [(0, 0, BOTH), (60, 60, BOTH), (120, 120, ALONE)],
        "y": [(0, 8, BOTH), (60, 68, ALONE), (120, 128, ALONE)],
    }
    assert members(polls)[60] == {"x": {"a"}, "y": {"a"}}


def test_a_client_that_one_broker_lacks_again_and_again_does_not_reach_it():
    polls = {
        "x": [(60 * n, 60 * n, BOTH) for n in range(5)],
        "y": [(60 * n, 60 * n + 8, ALONE if 1 <= n <= 3 else BOTH) for n in range(5)],
    }
    cut_off = (("b", "y"),)
    assert unreachable(polls) == {0: (), 60: cut_off, 120: cut_off, 180: cut_off, 240: ()}


def test_a_broker_that_answers_no_more_hides_no_client_that_another_one_lists():
    polls = {
        "x": [(0, 0, BOTH)],
        "y": [(60 * n, 60 * n, BOTH) for n in range(20)],
        "z": [(60 * n, 60 * n, ALONE) for n in range(20)],
    }
    assert unreachable(polls)[600] == (("b", "z"),)


def test_of_an_id_as_many_processes_are_cut_off_as_any_broker_lists_more():
    copies = [("a", "a:1"), ("a", "a:2")]
    polls = {
        name: [(60 * n, 60 * n, ["b", *of_a]) for n in range(4)]
        for name, of_a in (("x", []), ("y", copies), ("z", copies[:1]))
    }
    assert unreachable(polls)[60] == (("a", "x"), ("a", "x"), ("a", "z"))


def test_one_poll_without_a_client_is_a_moment_and_no_wall():
    polls = {
        "x": [(60 * n, 60 * n, BOTH) for n in range(3)],
        "y": [(60 * n, 60 * n + 8, ALONE if n == 1 else BOTH) for n in range(3)],
    }
    assert not any(unreachable(polls).values())


def test_a_client_that_comes_between_two_coarse_rounds_is_cut_off_since_the_first():
    """Restarted between 0 and 300 s, its nameserver lacks y. At 900 s it is there, or has gone."""
    for last in (BOTH, ALONE):
        polls = {
            "x": [(300 * n, 300 * n + 1, of) for n, of in enumerate([ALONE, BOTH, BOTH, last])],
            "y": [(300 * n, 300 * n, of) for n, of in enumerate([ALONE, ALONE, ALONE, last])],
        }
        cut_off = (("b", "y"),)
        assert unreachable(polls) == {0: (), 300: cut_off, 600: cut_off, 900: ()}


def test_what_two_coarse_rounds_leave_open_is_no_wall():
    """b came between the answers of y and x, and later y lacks it for a moment, or never."""
    for third in (ALONE, BOTH):
        of_y = [ALONE, ALONE, BOTH, third, BOTH]
        polls = {
            "x": [(300 * n, 300 * n + 1, BOTH if n else ALONE) for n in range(5)],
            "y": [(300 * n, 300 * n, of) for n, of in enumerate(of_y)],
        }
        assert not any(unreachable(polls).values())


def test_the_last_round_of_the_window_goes_on_with_what_was_so():
    polls = {
        "x": [(60 * n, 60 * n, BOTH) for n in range(3)],
        "y": [(60 * n, 60 * n + 8, ALONE if n else BOTH) for n in range(3)],
    }
    assert unreachable(polls)[120] == (("b", "y"),)


def test_a_slave_that_lacks_a_client_keeps_nobody_from_the_master():
    polls = {
        "x": [(60 * n, 60 * n, BOTH) for n in range(4)],
        "x/1": [(60 * n, 60 * n, ALONE) for n in range(4)],
        "y": [(60 * n, 60 * n, BOTH) for n in range(4)],
    }
    assert not any(unreachable(polls).values())
    # Nor does a slave that lists it bring it to the master, while all routes have the master.
    polls["x"], polls["x/1"] = polls["x/1"], polls["x"]
    assert set(unreachable(polls).values()) == {(("b", "x"),)}
    # Where one nameserver has lost the master, it is either: see the core's ``claims``.
    routes = [
        route([broker("x", broker_ids=ids), broker("y")], 0, namesrv_addr=name)
        for name, ids in (("ns-1", (0, 1)), ("ns-2", (1,)))
    ]
    assert not any(unreachable(polls, routes={"T": routes}).values())


def test_a_broker_that_does_not_know_the_group_for_long_is_read_by_nobody():
    polls = {
        "x": [(60 * n, 60 * n, BOTH) for n in range(4)],
        "y": [(60 * n, 60 * n, NOT_ONLINE) for n in range(4)],
    }
    assert set(unreachable(polls).values()) == {((None, "y"),)}


def test_a_broker_that_restarted_is_not_without_the_group():
    polls = {
        "x": [(15 * n, 15 * n, BOTH) for n in range(6)],
        "y": [(15 * n, 15 * n, NOT_ONLINE if n in (2, 3) else BOTH) for n in range(6)],
    }
    assert not any(unreachable(polls).values())


def test_a_group_that_is_offline_everywhere_is_offline_and_not_missing():
    polls = {name: [(60 * n, 60 * n, NOT_ONLINE) for n in range(4)] for name in "xy"}
    assert not any(unreachable(polls).values())


def test_brokers_that_have_no_queue_of_the_topic_keep_nobody_from_it():
    polls = {
        "x": [(60 * n, 60 * n, BOTH) for n in range(4)],
        "elsewhere": [(60 * n, 60 * n, NOT_ONLINE) for n in range(4)],
    }
    assert not any(unreachable(polls).values())


def test_missing_polls_change_nothing():
    flaps = [ALONE if n % 5 in (1, 2, 3) else BOTH for n in range(20)]
    whole = {
        "x": [(30 * n, 30 * n, BOTH) for n in range(20)],
        "y": [(30 * n, 30 * n, each) for n, each in enumerate(flaps)],
    }
    holes = whole | {
        "x": [each for n, each in enumerate(whole["x"]) if n not in (2, 7)],
        "y": [
            (*each[:2], NO_ANSWER) if n in (2, 12) else each for n, each in enumerate(whole["y"])
        ],
    }
    assert unreachable(holes) == unreachable(whole)


# ---------------------------------------------------------------- worlds


@st.composite
def worlds(draw):
    """When each client is there (whole seconds), and when each broker is asked in each round."""
    there = {"always": (-10_000, 10_000)}
    for number in range(draw(st.integers(1, 6))):
        first, last = draw(st.integers(-50, 400)), draw(st.integers(-50, 400))
        # Each joins or leaves once within the window, not both.
        there[f"c{number}"] = draw(st.sampled_from([(first, 10_000), (-10_000, last)]))
    asked = {
        name: [60 * n + draw(st.integers(0, 55)) for n in range(6)] for name in ("x", "y", "z")
    }
    return there, asked


def test_a_slave_that_clients_ask_while_the_master_is_down_counts():
    polls = {
        "x": [(60 * n, 60 * n, NO_ANSWER) for n in range(5)],
        "x/1": [(60 * n, 60 * n, NOT_ONLINE) for n in range(5)],
        "y": [(60 * n, 60 * n, BOTH) for n in range(5)],
    }
    of_slave = {"T": [route([broker("x", broker_ids=(1,)), broker("y")], 0)]}
    assert set(unreachable(polls, routes=of_slave).values()) == {((None, "x"),)}
    # The nameserver still gives the master: that is whom clients ask.
    assert not any(unreachable(polls).values())


def test_who_reaches_one_of_two_slaves_reaches_the_broker():
    of_slaves = {"T": [route([broker("x", broker_ids=(1, 2)), broker("y")], 0)]}
    polls = {
        "x/1": [(60 * n, 60 * n, ALONE) for n in range(5)],
        "x/2": [(60 * n, 60 * n, BOTH) for n in range(5)],
        "y": [(60 * n, 60 * n, BOTH) for n in range(5)],
    }
    assert not any(unreachable(polls, routes=of_slaves).values())
    polls["x/2"] = polls["x/1"]
    assert set(unreachable(polls, routes=of_slaves).values()) == {(("b", "x"),)}


def test_a_broker_that_empties_within_a_round_has_no_member_at_its_end():
    polls = {
        "x": [(0, 0, BOTH), (60, 60, BOTH), (120, 120, NOT_ONLINE)],
        "y": [(0, 8, BOTH), (60, 68, NOT_ONLINE), (120, 128, NOT_ONLINE)],
    }
    found = situations(polls)[60]
    assert sorted(Question(found, {}).state().offline_brokers) == [("x", 0), ("y", 0)]
    assert listed(found) == []


def test_two_polls_hours_apart_show_nothing_in_between():
    polls = {
        "x": [(0, 0, BOTH), (28_800, 28_800, BOTH)],
        "y": [(0, 8, ALONE), (28_800, 28_808, ALONE)],
    }
    assert not any(unreachable(polls).values())


def test_an_answer_at_the_edge_of_the_window_is_no_proof_beyond_it():
    # y is new: who was listed when it was first asked was not listed all the time before.
    polls = {
        "x": [(60 * n, 60 * n, ALONE) for n in range(20)],
        "y": [(60 * n, 60 * n + 8, BOTH) for n in range(19, 20)],
    }
    assert not any(unreachable(polls).values())
    # Answers that follow prove that b does not reach x, and not that it never did. (z lacks c all
    # the time, so that each round is looked at.)
    polls = {
        "x": [(60 * n, 60 * n, ["a", "c"]) for n in range(20)],
        "y": [(60 * n, 60 * n + 8, ["a", "b", "c"]) for n in range(10, 20)],
        "z": [(60 * n, 60 * n, ALONE) for n in range(20)],
    }
    found = unreachable(polls)
    assert {second for second, pairs in found.items() if ("c", "z") in pairs} == {*found}
    assert ("b", "x") in found[600]
    assert ("b", "x") not in found[300]


@given(worlds())
def test_brokers_that_all_tell_the_truth_at_their_own_times_never_disagree(world):
    there, asked = world

    def listed(second):
        return [each for each, (since, until) in there.items() if since <= second <= until]

    polls = {
        name: [(60 * n, at_, listed(at_) or NOT_ONLINE) for n, at_ in enumerate(times)]
        for name, times in asked.items()
    }
    found = members(polls)
    # The last round has nothing behind it that would show what changed within it.
    for number in range(5):
        end = max(times[number] for times in asked.values())
        assert all(ids == set(listed(end)) for ids in found[60 * number].values())
    assert not any(unreachable(polls).values())


def test_a_missing_answer_hides_who_left_and_came_back():
    # Two of broker-x's answers are missing; d was away meanwhile, as the others saw it.
    with_d, without = ["a", "d"], ["a"]
    others = [(0, 0, with_d), (60, 60, without), (120, 120, without), (180, 180, with_d)]
    polls = {
        "x": [(0, 1, with_d), (60, 61, NO_ANSWER), (120, 121, NO_ANSWER), (180, 181, with_d)]
        + [(60 * n, 60 * n + 1, with_d) for n in range(4, 7)],
        "y": others + [(60 * n, 60 * n, with_d) for n in range(4, 7)],
        "z": others + [(60 * n, 60 * n, with_d) for n in range(4, 7)],
    }
    shown = members(polls)
    assert shown[60] == shown[120] == {name: {"a"} for name in "xyz"}
    # Who the broker lacked before, and still lacks, does not reach it.
    polls["x"] = [(60 * n, 60 * n + 1, NO_ANSWER if n in (3, 4) else without) for n in range(7)]
    polls["y"] = polls["z"] = [(60 * n, 60 * n, with_d) for n in range(7)]
    shown = members(polls)
    assert shown[180]["x"] == shown[240]["x"] == {"a"}
    assert unreachable(polls)[180] == (("d", "x"),)


def test_an_answer_that_comes_some_seconds_late_is_not_missing():
    # x, which had d all the time, says so at 61 and at 126 s: nobody has to guess.
    with_d, without = ["a", "d"], ["a"]
    polls = {
        "x": [(60 * n, 60 * n + (6 if n == 2 else 1), with_d) for n in range(7)],
        "y": [(60 * n, 60 * n + 2, without if n in (1, 2) else with_d) for n in range(7)],
        "z": [(60 * n, 60 * n + 2, without if n in (1, 2) else with_d) for n in range(7)],
    }
    assert members(polls)[60]["x"] == {"a", "d"}


@st.composite
def overlapping_worlds(draw):
    """Members that come and go once, and two collectors, whose rounds overlap."""
    there = {"always": (-10_000, 10_000)}
    for number in range(draw(st.integers(1, 6))):
        first, last = draw(st.integers(-50, 700)), draw(st.integers(-50, 700))
        there[f"c{number}"] = draw(st.sampled_from([(first, 10_000), (-10_000, last)]))
    width, offset = draw(st.integers(0, 20)), draw(st.integers(1, 30))
    asked = {
        name: [
            (60 * n + offset * which, 60 * n + offset * which + width * place)
            for n in range(12)
            for which in (0, 1)
        ]
        for place, name in enumerate("xyz")
    }
    return there, asked


@given(overlapping_worlds())
def test_nor_do_brokers_that_two_collectors_ask_in_rounds_that_overlap(world):
    there, asked = world

    def listed_at(second):
        return [each for each, (since, until) in there.items() if since <= second <= until]

    polls = {
        name: [(round_, second, listed_at(second)) for round_, second in times]
        for name, times in asked.items()
    }
    assert not any(unreachable(polls).values())
