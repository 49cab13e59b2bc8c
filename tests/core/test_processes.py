"""How many processes stand behind the members of the brokers' lists, and what they are like."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from rebalance_core import ClientList, Member, StrategyRule, StrategyRules
from rebalance_core.processes import (
    _look_closely,
    _plain_members,
    confirmed_processes,
    find_processes,
    find_stacked_ids,
)
from rebalance_core.state import ProcessCount
from tests.support.snapshots import (
    client_list,
    lists_of,
    member,
    one_list,
    one_list_each,
    route_of,
    state,
)


def found(of_state, rules=None) -> str:
    """How many processes each id has, a part for each kind of them."""
    return ", ".join(
        f"{p.count} {p.client_id} {p.strategy.strategy.full_name}"
        + " apart" * (not p.subscribed)
        + " broadcasting" * p.broadcasting
        for p in find_processes(of_state, rules or StrategyRules())
    )


def a(**told) -> Member:
    return member(client_id="a", **told)


A_APART = a(subscribed=False)


@pytest.mark.parametrize(
    ("copies", "processes"),
    [
        ([1], 1),
        ([3], 3),  # the only list
        ([1, 1, 1], 1),
        ([2, 2, 2], 2),
        ([2, 1, 1], 1),  # a stale channel
        ([2, 2, 1], 2),  # one broker was restarted
        ([3, 2, 1], 2),
        ([3, 1], 1),
        ([1, 3, 2, 3], 2),  # half of the lists do not confirm it
        ([2, 2, 1, 1], 1),
    ],
)
def test_the_highest_multiplicity_that_most_lists_confirm_counts(copies, processes):
    assert confirmed_processes(copies) == processes
    assert confirmed_processes(copies[::-1]) == processes


@pytest.mark.parametrize(
    ("lists", "processes"),
    [
        # Two of one id are counted once, whatever the number of brokers; a stale channel is none.
        ({"x": "aab", "y": "aab"}, "2 a AVG, 1 b AVG"),
        ({"x": "aab", "y": "ab", "z": "ab"}, "1 a AVG, 1 b AVG"),
        # An id that only one list has counts as often as it stands there.
        ({"x": "abb", "y": "a"}, "1 a AVG, 2 b AVG"),
        # One process subscribes where any of its lists says so.
        ({"x": [A_APART], "y": "a"}, "1 a AVG"),
        # Of several lists the longest tells what the processes of an id are like.
        ({"x": [a(), A_APART], "y": [a(), A_APART, a()], "z": [A_APART, a()]}, "2 a AVG"),
        ({"x": [a(message_model="BROADCASTING"), "b"]}, "1 a AVG broadcasting, 1 b AVG"),
        (
            {"x": [a(strategy=each) for each in ("AVG", "AVG_BY_CIRCLE", "AVG")]},
            "2 a AVG, 1 a AVG_BY_CIRCLE",
        ),
        ({"x": [a(strategy="AVG"), A_APART]}, "1 a AVG, 1 a AVG apart"),
        # Processes of one id may be of different SDKs; versions that compute the same are alike.
        (
            {"x": [a(language=each, strategy="CONSISTENT_HASH") for each in ("GO", "JAVA", "GO")]},
            "2 a CONSISTENT_HASH of client-go, 1 a CONSISTENT_HASH",
        ),
        ({"x": [a(version=401), a(version=473), a(language=None, version=None)]}, "3 a AVG"),
        # What all observed members use counts for the others; where they differ the default does.
        ({"x": [a(strategy="CONSISTENT_HASH"), "b"]}, "1 a CONSISTENT_HASH, 1 b CONSISTENT_HASH"),
        ({}, ""),
    ],
)
def test_a_process_is_counted_once_and_told_with_its_kind(lists, processes):
    assert found(state(client_lists=lists_of(lists))) == processes


@pytest.mark.parametrize(
    ("observed", "last"),
    [(["CONSISTENT_HASH"], "group"), (["CONSISTENT_HASH", "AVG_BY_CIRCLE"], "assumed")],
)
def test_a_strategy_is_told_with_where_it_is_known_from(observed, last):
    members = [member(client_id=f"a{n}", strategy=each) for n, each in enumerate(observed)]
    *seen, guessed = find_processes(one_list([*members, "b"]), StrategyRules())
    assert {each.strategy.source for each in seen} == {"observed"}
    assert guessed.strategy.source == last
    name = observed[0] if last == "group" else "AVG"
    assert guessed.strategy.strategy.name == name


@pytest.mark.parametrize(("language", "variant"), [("JAVA", ""), ("GO", "client-go")])
def test_of_one_process_language_and_version_are_told_by_one_member(language, variant):
    silent = a(language=None, version=300)
    of_state = one_list_each({"broker-a": [silent], "broker-b": [a(language=language)]})
    rules = StrategyRules([StrategyRule(".*", "MACHINE_ROOM", params={"consumeridcs": ["room1"]})])
    assert [p.strategy.strategy.variant for p in find_processes(of_state, rules)] == [variant]


@pytest.mark.parametrize(
    ("client_ids", "brokers", "bytewise"),
    [
        ("a\uff21", ["x"], False),
        ("a\U0001f600", ["x"], False),
        ("\uff21\U0001f600", ["x"], True),
        # The names of brokers count too.
        ("a", ["\uff21", "\U0001f600"], True),
    ],
)
def test_clients_sort_bytewise_only_where_that_is_another_order(client_ids, brokers, bytewise):
    listed = (client_list(*client_ids, language="GO"),)
    of_state = state(client_lists=listed, topic_routes=(route_of(brokers),))
    strategies = {p.strategy.strategy for p in find_processes(of_state, StrategyRules())}
    assert [strategy.sorts_bytewise for strategy in strategies] == [bytewise]


def test_a_stacked_id_tells_its_copies_its_processes_and_its_addresses():
    copies = [a(client_addr=f"h:{port}") for port in (2, 1, 3)]
    of_state = one_list_each({"broker-a": copies[:2], "broker-b": [copies[2], "b"]})
    (stacked,) = find_stacked_ids(of_state)
    assert (stacked.client_id, stacked.copies, stacked.processes) == ("a", 2, 1)
    assert stacked.client_addrs == ("h:1", "h:2")


NANO = "10.0.0.11@1#123456789012345"


@pytest.mark.parametrize(
    ("client_id", "copies", "shown", "processes", "because"),
    [
        (
            "10.0.0.1@app",
            [2, 2],
            None,
            2,
            "the lists of several brokers confirm it; of one process that reconnected they drop "
            "the old connection within about 130 s, so a list after that makes it certain",
        ),
        ("10.0.0.1@app", [2, 1], None, 1, "other brokers list it less often"),
        ("10.0.0.1@app", [2], None, 2, "only one broker's list has it"),
        # Reconnected to both brokers at once: two lists agree, and no process has its like.
        (NANO, [2, 2], None, 1, "no two processes make the same id"),
        (NANO, [2], None, 1, "no two processes make the same id"),
        # What its connections showed counts: a cloned machine, or a broker one cannot reach.
        (NANO, [2, 2], 2, 2, "they stay"),
        ("10.0.0.1@app", [2, 1], 2, 2, "they stay"),
        ("10.0.0.1@app", [2, 2], 1, 1, "they stay"),
        # Two processes, one of which is in no list any more.
        ("10.0.0.1@app", [2, 2], 3, 2, "they stay"),
    ],
)
def test_time_tells_before_id_and_id_before_lists(client_id, copies, shown, processes, because):
    lists = {f"broker-{n}": [client_id] * count for n, count in enumerate(copies)}
    counts = () if shown is None else (ProcessCount(client_id, shown, "they stay"),)
    of_state = replace(one_list_each(lists), process_counts=counts)

    (stacked,) = find_stacked_ids(of_state)
    assert stacked.processes == processes
    assert because in stacked.evidence
    assert found(of_state) == f"{processes} {client_id} AVG"


def test_a_counter_of_the_rust_client_is_no_time():
    (stacked,) = find_stacked_ids(one_list([member(client_id="h@1#0", language="RUST")] * 2))
    assert stacked.processes == 2


def test_ids_that_stand_once_in_every_list_are_not_stacked():
    assert find_stacked_ids(one_list_each({"broker-a": "ab", "broker-b": "a"})) == ()


@pytest.mark.parametrize(("other", "stacked"), [("BROADCASTING", []), ("CLUSTERING", ["a"])])
def test_copies_of_a_broadcasting_client_are_stacked_only_beside_clustering_ones(other, stacked):
    copies = [a(message_model="BROADCASTING") for _ in range(2)]
    found_ids = find_stacked_ids(one_list([*copies, member(client_id="b", message_model=other)]))
    assert [each.client_id for each in found_ids] == stacked


# Mostly alike, so that plain states, and those that miss it by one member, both come up often.
TOLD = {
    "subscribed": st.sampled_from([True, True, True, False]),
    "message_model": st.sampled_from(["CLUSTERING", "CLUSTERING", "BROADCASTING"]),
    "strategy": st.sampled_from([None, None, "", "AVG", "CONSISTENT_HASH"]),
    "language": st.sampled_from(["JAVA", "JAVA", "GO", "", None]),
    "version": st.sampled_from([401, 401, 300, None]),
    "is_expired": st.sampled_from([False] * 5 + [None] * 4 + [True]),
    "chooses_queues": st.sampled_from([False] * 9 + [True]),
    "expression": st.sampled_from(["TAG *", "TAG a"]),
    "client_rebalance": st.sampled_from([None, False]),
    "subscription_source": st.sampled_from(["HEARTBEAT", "GROUP_TABLE"]),
    "subscribed_percent": st.sampled_from([100] * 9 + [50]),
}
TRAITS = st.fixed_dictionaries(TOLD)
RULES = StrategyRules(
    [
        StrategyRule("G", "CONSISTENT_HASH", ".*[ab]", {"virtual_node_count": 3}),
        StrategyRule("G", "MACHINE_ROOM", "c", {"consumeridcs": ["room1"]}),
    ]
)


@st.composite
def lists_of_a_group(draw):
    """Lists of a few ids; an id tells the same in each, but where one member is changed."""
    ids = draw(st.lists(st.sampled_from(["a", "b", "c", "d", "\U0001f600"]), max_size=5))
    of_id = {client_id: draw(TRAITS) for client_id in ids}
    lists = [[(client_id, of_id[client_id]) for client_id in ids] for _ in range(3)]
    if draw(st.booleans()) and ids:
        changed = draw(st.sampled_from(lists))
        number = draw(st.integers(0, len(ids) - 1))
        changed[number] = (ids[number], draw(TRAITS))
    return tuple(
        ClientList(
            f"broker-{number}",
            0,
            tuple(Member(each, f"h{number}:{n}", **told) for n, (each, told) in enumerate(members)),
        )
        for number, members in enumerate(lists[: draw(st.integers(0, 3))])
    )


@given(lists=lists_of_a_group())
def test_what_is_plain_is_found_the_same_by_a_closer_look(lists):
    of_state = state(client_lists=lists)
    event("plain" if _plain_members(of_state) else "not plain, or empty")

    assert find_processes(of_state, RULES) == _look_closely(of_state, RULES)


def test_a_fact_about_a_member_is_among_those_that_a_closer_look_is_compared_over():
    assert TOLD.keys() == set(Member._fields) - {"client_id", "client_addr"}


@pytest.mark.parametrize(
    ("lists", "plain"),
    [
        ({"x": "ab", "y": "ba"}, True),
        ({"x": "a", "y": "b"}, True),  # brokers that disagree: each id is told of once
        ({"x": "aa"}, False),
        ({"x": [member(client_id="a", is_expired=True), "b", "c"]}, False),
        ({"x": "a", "y": [member(client_id="a", version=1)]}, False),
        # A filter makes no other process: it is told by a fault of its own.
        ({"x": "a", "y": [member(client_id="a", expression="TAG a")]}, True),
    ],
)
def test_a_closer_look_is_for_copies_late_heartbeats_and_lists_that_contradict(lists, plain):
    assert (_plain_members(one_list_each(lists)) is not None) == plain


@pytest.mark.parametrize(
    ("lists", "processes", "unreachable", "found"),
    [
        # As many processes of an id are cut off as a broker does not list.
        ({"x": "aab", "y": "ab"}, 2, ("a", "y"), [("a", 1, ()), ("a", 1, ("y",)), ("b", 1, ())]),
        # A stale channel elsewhere cuts no process off.
        ({"x": "aa", "y": "a"}, 1, ("a", "y"), [("a", 1, ())]),
        # A broker without the group is reached by nobody.
        ({"x": "ab"}, 1, (None, "y"), [("a", 1, ("y",)), ("b", 1, ("y",))]),
    ],
)
def test_a_process_that_a_broker_does_not_list_is_cut_off(lists, processes, unreachable, found):
    shown = (ProcessCount("a", processes, "they stay"),)
    of_state = replace(one_list_each(lists), process_counts=shown, unreachable=(unreachable,))
    told = find_processes(of_state, RULES)
    assert [(p.client_id, p.count, p.unreachable) for p in told] == found
