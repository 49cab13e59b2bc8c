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
    member,
    one_list,
    one_list_each,
    one_process_reconnected,
    route,
    route_broker,
    state,
    two_processes_share_one_client_id,
)


def found(of_state):
    """client id -> (processes, subscribed, broadcasting, strategy), a row for each kind."""
    return [
        (p.client_id, p.count, p.subscribed, p.broadcasting, p.strategy.strategy.name)
        for p in find_processes(of_state, StrategyRules())
    ]


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


def test_two_processes_of_one_id_are_counted_once_per_broker():
    assert found(two_processes_share_one_client_id()) == [
        ("a", 2, True, False, "AVG"),
        ("b", 1, True, False, "AVG"),
    ]


def test_a_stale_channel_is_one_process():
    assert found(one_process_reconnected()) == [
        ("a", 1, True, False, "AVG"),
        ("b", 1, True, False, "AVG"),
    ]


def test_an_id_that_only_one_list_has_counts_as_often_as_it_stands_there():
    of_state = one_list_each({"broker-a": ["a", "b", "b"], "broker-b": ["a"]})

    assert [(row[0], row[1]) for row in found(of_state)] == [("a", 1), ("b", 2)]


def test_one_process_subscribes_where_any_of_its_lists_says_so():
    late, early = member(client_id="a", subscribed=False), member(client_id="a")

    of_state = one_list_each({"broker-a": [late], "broker-b": [early]})

    assert found(of_state) == [("a", 1, True, False, "AVG")]


def test_processes_of_one_id_may_differ_in_subscription_and_strategy():
    of_state = one_list(
        [
            member(client_id="a", strategy="AVG"),
            member(client_id="a", strategy="AVG_BY_CIRCLE"),
            member(client_id="a", strategy="AVG", subscribed=False),
            member(client_id="a", strategy="AVG"),
        ]
    )

    assert found(of_state) == [
        ("a", 2, True, False, "AVG"),
        ("a", 1, True, False, "AVG_BY_CIRCLE"),
        ("a", 1, False, False, "AVG"),
    ]


def test_of_several_lists_the_longest_tells_what_the_processes_of_an_id_are_like():
    full = [member(client_id="a"), member(client_id="a", subscribed=False), member(client_id="a")]
    of_state = one_list_each({"broker-a": full[:2], "broker-b": full, "broker-c": full[1:]})

    assert found(of_state) == [("a", 2, True, False, "AVG")]


def test_a_process_is_broadcasting_where_all_its_members_are():
    of_state = one_list(
        [member(client_id="a", message_model="BROADCASTING"), member(client_id="b")]
    )

    assert [(row[0], row[3]) for row in found(of_state)] == [("a", True), ("b", False)]


def test_what_all_observed_members_use_counts_for_those_that_nobody_observed():
    of_state = one_list([member(client_id="a", strategy="CONSISTENT_HASH"), member(client_id="b")])

    processes = find_processes(of_state, StrategyRules())

    assert [(p.client_id, p.strategy.strategy.name, p.strategy.source) for p in processes] == [
        ("a", "CONSISTENT_HASH", "observed"),
        ("b", "CONSISTENT_HASH", "group"),
    ]


def test_where_the_observed_members_differ_the_others_are_assumed_to_use_the_default():
    of_state = one_list(
        [
            member(client_id="a", strategy="CONSISTENT_HASH"),
            member(client_id="b", strategy="AVG_BY_CIRCLE"),
            member(client_id="c"),
        ]
    )

    *_, last = find_processes(of_state, StrategyRules())

    assert (last.strategy.strategy.name, last.strategy.source) == ("AVG", "assumed")


def told(*members):
    """(processes, full name of the strategy) for each kind of process of the one id ``a``."""
    rules = StrategyRules(default="CONSISTENT_HASH")
    of_state = one_list([member(client_id="a", **each) for each in members])
    return [(p.count, p.strategy.strategy.full_name) for p in find_processes(of_state, rules)]


def test_processes_of_one_id_may_be_of_different_sdks():
    assert told({"language": "GO"}, {"language": "JAVA"}, {"language": "GO"}) == [
        (2, "CONSISTENT_HASH of client-go"),
        (1, "CONSISTENT_HASH"),
    ]


def test_versions_that_compute_the_same_are_alike():
    assert told({"version": 401}, {"version": 473}, {"language": None, "version": None}) == [
        (3, "CONSISTENT_HASH")
    ]


@pytest.mark.parametrize(("language", "variant"), [("JAVA", ""), ("GO", "client-go")])
def test_of_one_process_language_and_version_are_told_by_one_member(language, variant):
    silent = member(client_id="a", language=None, version=300)
    telling = member(client_id="a", language=language)
    of_state = one_list_each({"broker-a": [silent], "broker-b": [telling]})
    rules = StrategyRules([StrategyRule(".*", "MACHINE_ROOM", params={"consumeridcs": ["room1"]})])

    assert [p.strategy.strategy.variant for p in find_processes(of_state, rules)] == [variant]


@pytest.mark.parametrize(
    ("client_ids", "bytewise"),
    [
        (["a", "\uff21"], False),
        (["a", "\U0001f600"], False),
        (["\uff21", "\U0001f600"], True),
    ],
)
def test_clients_sort_bytewise_only_where_that_is_another_order(client_ids, bytewise):
    of_state = one_list([member(client_id=each, language="GO") for each in client_ids])

    strategies = {p.strategy.strategy for p in find_processes(of_state, StrategyRules())}

    assert [strategy.sorts_bytewise for strategy in strategies] == [bytewise]


def test_brokers_that_sort_otherwise_bytewise_count_too():
    brokers = [route_broker(broker_name=name) for name in ("\uff21", "\U0001f600")]
    of_state = state(
        client_lists=(client_list("a", language="CPP"),), topic_routes=(route(*brokers),)
    )

    (process,) = find_processes(of_state, StrategyRules())

    assert process.strategy.strategy.sorts_bytewise


def test_a_group_without_members_has_no_process():
    assert found(state(client_lists=())) == []


def test_a_stacked_id_tells_its_copies_its_processes_and_its_addresses():
    copies = [member(client_id="a", client_addr=f"h:{port}") for port in (2, 1, 3)]
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
            "the lists of several brokers confirm it; of one process that reconnected they would "
            "drop the old connection within about 130 s",
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
def test_time_tells_before_the_id_and_the_id_before_the_lists(
    client_id, copies, shown, processes, because
):
    lists = {f"broker-{n}": [client_id] * count for n, count in enumerate(copies)}
    counts = () if shown is None else (ProcessCount(client_id, shown, "they stay"),)
    of_state = replace(one_list_each(lists), process_counts=counts)

    (stacked,) = find_stacked_ids(of_state)

    assert stacked.processes == processes
    assert because in stacked.evidence
    assert [row[:2] for row in found(of_state)] == [(client_id, processes)]


def test_a_counter_of_the_rust_client_is_no_time():
    (stacked,) = find_stacked_ids(one_list([member(client_id="h@1#0", language="RUST")] * 2))

    assert stacked.processes == 2


def test_ids_that_stand_once_in_every_list_are_not_stacked():
    assert find_stacked_ids(one_list_each({"broker-a": ["a", "b"], "broker-b": ["a"]})) == ()


@pytest.mark.parametrize(
    ("models", "stacked"),
    [
        (("BROADCASTING", "BROADCASTING"), []),
        (("BROADCASTING", "CLUSTERING"), ["ip@DEFAULT"]),
    ],
)
def test_copies_of_a_broadcasting_client_are_stacked_only_beside_clustering_ones(models, stacked):
    copies, other = models
    members = [
        *[member(client_id="ip@DEFAULT", message_model=copies) for _ in range(2)],
        member(client_id="b", message_model=other),
    ]

    found_ids = find_stacked_ids(state(client_lists=(client_list(*members),)))

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
        ({"x": ["a", "b"], "y": ["b", "a"]}, True),
        ({"x": ["a"], "y": ["b"]}, True),  # brokers that disagree: each id is told of once
        ({"x": ["a", "a"]}, False),
        ({"x": [member(client_id="a", is_expired=True), "b", "c"]}, False),
        ({"x": ["a"], "y": [member(client_id="a", version=1)]}, False),
        # A filter makes no other process: it is told by a fault of its own.
        ({"x": ["a"], "y": [member(client_id="a", expression="TAG a")]}, True),
    ],
)
def test_a_closer_look_is_for_copies_late_heartbeats_and_lists_that_contradict(lists, plain):
    assert (_plain_members(one_list_each(lists)) is not None) == plain


def test_as_many_processes_of_an_id_are_cut_off_as_a_broker_does_not_list():
    lists = one_list_each({"x": ["a", "a", "b"], "y": ["a", "b"]})
    shown = (ProcessCount("a", 2, "they stay"),)
    of_state = replace(lists, process_counts=shown, unreachable=(("a", "y"),))

    assert [(p.client_id, p.count, p.unreachable) for p in find_processes(of_state, RULES)] == [
        ("a", 1, ()),
        ("a", 1, ("y",)),
        ("b", 1, ()),
    ]


def test_a_stale_channel_elsewhere_cuts_no_process_off():
    lists = one_list_each({"x": ["a", "a"], "y": ["a"]})
    shown = (ProcessCount("a", 1, "one was replaced"),)
    of_state = replace(lists, process_counts=shown, unreachable=(("a", "y"),))

    assert [(p.count, p.unreachable) for p in find_processes(of_state, RULES)] == [(1, ())]


def test_a_broker_without_the_group_is_reached_by_nobody():
    lists = one_list_each({"x": ["a", "b"]})
    of_state = replace(lists, unreachable=((None, "y"),))

    assert {p.unreachable for p in find_processes(of_state, RULES)} == {("y",)}
