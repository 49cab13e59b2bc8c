"""From a state to its findings: the worked examples, and what holds of every state."""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalance_core import (
    ClientList,
    Member,
    Situation,
    State,
    StrategyRule,
    StrategyRules,
    evaluate,
    find_causes,
    find_faults,
    make_strategy,
)
from rebalance_core.client_kinds import remedy_of
from rebalance_core.repairs import bring_masters_back, unify_routes
from rebalance_core.state import ProcessCount
from tests.support.draws import check_a_random_state
from tests.support.generators import distinct_client_ids, stacked_client_ids
from tests.support.snapshots import (
    client_list,
    faulty_queues,
    member,
    of_go_without_a_master,
    one_list,
    one_list_each,
    one_process_reconnected,
    queue,
    route,
    route_broker,
    state,
    two_processes_share_one_client_id,
)

RULES = StrategyRules()
CIRCLE = StrategyRules(default="AVG_BY_CIRCLE")
HASH = StrategyRules(default="CONSISTENT_HASH")


def faults(of_state, rules=RULES) -> dict[str, list[int]]:
    evaluation = evaluate(of_state, rules)
    assert evaluation.coverage == "AUDITED", evaluation.reason
    return {kind: faulty_queues(evaluation, kind) for kind in ("DUPLICATE", "ORPHANED")}


# ---------------------------------------------------------------- worked examples


@pytest.mark.parametrize(
    ("queues", "client_ids", "duplicate", "orphaned"),
    [
        pytest.param(8, ["a", "a", "b"], [0, 1, 2], [3, 4, 5], id="2 of 3 share an id"),
        pytest.param(4, ["a", "a", "a"], [0, 1], [2, 3], id="all share an id"),
        pytest.param(5, ["a", "a", "b", "c"], [0, 1], [2], id="slots of unequal size"),
        pytest.param(8, ["a", "b", "b"], [3, 4, 5], [6, 7], id="the last share an id"),
        pytest.param(4, ["a", "a"], [0, 1], [2, 3], id="the only two share an id"),
        pytest.param(1, ["a", "a"], [0], [], id="fewer queues than copies"),
        pytest.param(2, ["a", "b", "b"], [1], [], id="the later copy has no queue to orphan"),
    ],
)
def test_under_avg_a_stacked_id_duplicates_its_first_slot_and_orphans_the_others(
    queues, client_ids, duplicate, orphaned
):
    assert faults(one_list(client_ids, queues)) == {"DUPLICATE": duplicate, "ORPHANED": orphaned}


def test_under_avg_by_circle_the_slots_of_a_stacked_id_are_spread_over_the_queues():
    assert faults(one_list(["a", "a", "b"], 8), CIRCLE) == {
        "DUPLICATE": [0, 3, 6],
        "ORPHANED": [1, 4, 7],
    }


def test_under_consistent_hash_a_stacked_id_duplicates_and_orphans_nothing():
    of_hash = make_strategy("CONSISTENT_HASH").allocate(
        "G", "a", [queue(n) for n in range(8)], ["a", "a", "b"]
    )

    found = faults(one_list(["a", "a", "b"], 8), HASH)

    assert found == {"DUPLICATE": sorted(each.queue_id for each in of_hash), "ORPHANED": []}
    assert found["DUPLICATE"]


def test_two_processes_that_all_brokers_list_under_one_id_are_a_certain_fault():
    evaluation = evaluate(two_processes_share_one_client_id(), RULES)

    assert [
        (f.kind, f.queue, f.certainty, f.probability, f.claimants)
        for f in evaluation.findings
        if f.queue.queue_id in (2, 3)
    ] == [
        ("DUPLICATE", queue(2), "CERTAIN", 1.0, evaluation.findings[0].claimants),
        ("ORPHANED", queue(3), "CERTAIN", 1.0, ()),
    ]
    (claimant,) = evaluation.findings[0].claimants
    assert (claimant.client_id, claimant.processes, claimant.probability) == ("a", 2, 1.0)


def test_clients_beyond_the_number_of_queues_are_idle_and_no_fault():
    evaluation = evaluate(one_list(["a", "b", "c", "d", "e"], queues=3), RULES)

    assert evaluation.findings == ()
    assert (evaluation.idle_clients, evaluation.most_queues, evaluation.fewest_queues) == (2, 1, 0)


def test_the_slot_of_a_member_that_does_not_subscribe_has_no_owner():
    members = ["a", "b", member(client_id="c", subscribed=False), "d"]

    assert faults(one_list(members, 8)) == {"DUPLICATE": [], "ORPHANED": [4, 5]}


def test_members_of_different_strategies_take_the_same_queue_and_leave_another():
    members = [
        member(client_id="a", strategy="AVG"),
        member(client_id="b", strategy="AVG_BY_CIRCLE"),
    ]

    assert faults(one_list(members, 4)) == {"DUPLICATE": [1], "ORPHANED": [2]}


def test_a_stale_channel_on_one_broker_may_orphan_queues_and_duplicates_none():
    evaluation = evaluate(one_process_reconnected(), RULES)

    # broker-a: [a, a, b] of 6 queues: a 0-1, b 4-5; the others: [a, b]: a 0-2, b 3-5.
    found = {(f.kind, f.queue.queue_id): f.probability for f in evaluation.findings}
    assert found == pytest.approx({("ORPHANED", 2): 1 / 3, ("ORPHANED", 3): 1 / 3})
    assert {f.certainty for f in evaluation.findings} == {"POSSIBLE"}
    (effect,) = evaluation.stacked
    assert (effect.copies, effect.processes) == (2, 1)
    assert (effect.slots_wasted, effect.queues_duplicated, effect.queues_orphaned) == (1, 0, 2)


def test_a_copy_that_takes_no_part_reads_no_queue_twice():
    copies = [member(client_id="a"), member(client_id="a", subscribed=False)]
    evaluation = evaluate(one_list([*copies, "b"], 6), RULES)

    (effect,) = evaluation.stacked
    assert (effect.copies, effect.queues_duplicated) == (2, 0)
    assert [each.kind for each in evaluation.findings] == ["ORPHANED", "ORPHANED"]


@pytest.mark.parametrize(("most", "coverage"), [(4, "AUDITED"), (3, "TOO_MANY_QUEUES")])
def test_a_broker_without_queues_or_with_a_number_below_zero_adds_none(most, coverage):
    # Whoever can write a route chooses its numbers.
    numbers = {"a": 4, "b": 0, "c": -5}
    brokers = [
        route_broker(broker_name=name, read_queue_nums=number, write_queue_nums=number)
        for name, number in numbers.items()
    ]
    of_state = state(
        client_lists=(client_list("x", broker_name="a"),), topic_routes=(route(*brokers),)
    )
    assert evaluate(of_state, StrategyRules(most_queues=most)).coverage == coverage


def test_an_id_without_a_slot_on_one_broker_may_have_its_queues_taken_twice():
    evaluation = evaluate(one_list_each({"broker-a": ["a", "b"], "broker-b": ["a"]}, 2), RULES)

    # a draws [a, b] (takes 0) or [a] (takes 0, 1); b draws [a, b] (takes 1) or [a] (nothing).
    found = {(f.kind, f.queue.queue_id): (f.certainty, f.probability) for f in evaluation.findings}
    assert found == {
        ("ORPHANED", 1): ("POSSIBLE", 0.25),
        ("DUPLICATE", 1): ("POSSIBLE", 0.25),
    }


def test_a_broadcasting_member_takes_a_slot_of_the_others_but_is_no_duplicate():
    members = ["a", member(client_id="b", message_model="BROADCASTING")]

    evaluation = evaluate(one_list(members, 4), RULES)

    assert [(f.kind, f.queue.queue_id) for f in evaluation.findings] == [
        ("ORPHANED", 2),
        ("ORPHANED", 3),
    ]
    assert evaluation.coverage == "AUDITED"


def test_a_queue_in_the_configured_list_of_all_members_has_as_many_owners():
    rules = StrategyRules([StrategyRule("G", "CONFIG", params={"config_queues": [queue(1)]})])

    assert faults(one_list(["a", "b"], 3), rules) == {"DUPLICATE": [1], "ORPHANED": [0, 2]}


def test_a_group_that_all_brokers_call_offline_leaves_every_queue_without_owner():
    evaluation = evaluate(state(client_lists=(), offline_brokers=(("broker-a", 0),)), RULES)

    assert (evaluation.coverage, evaluation.reason) == ("AUDITED", "the group has no member")
    assert evaluation.completeness == 1.0
    assert [(f.kind, f.queue, f.certainty, f.probability) for f in evaluation.findings] == [
        ("ORPHANED", queue(n), "CERTAIN", 1.0) for n in range(4)
    ]
    assert evaluation.shows_owners


def test_a_group_that_most_brokers_call_offline_is_so_though_one_did_not_answer():
    three = route(*[route_broker(broker_name=f"broker-{name}") for name in "abc"])
    offline = (("broker-a", 0), ("broker-c", 0))

    evaluation = evaluate(
        state(client_lists=(), topic_routes=(three,), offline_brokers=offline), RULES
    )

    assert evaluation.coverage == "AUDITED"
    assert evaluation.reason == (
        "the other brokers of the route know no member of the group; no list came from broker-b"
    )
    assert evaluation.completeness == pytest.approx(2 / 3)
    assert len(evaluation.findings) == 12


def test_a_group_that_is_offline_on_every_broker_that_can_be_asked_has_no_member():
    """As on a static topic: its logical queues are under a name without addresses."""
    logical = route_broker(broker_name="__syslo__global__", broker_ids=())
    physical = route_broker(read_queue_nums=0, write_queue_nums=0)

    evaluation = evaluate(
        state(
            client_lists=(),
            topic_routes=(route(physical, logical),),
            offline_brokers=(("broker-a", 0),),
        ),
        RULES,
    )

    assert evaluation.coverage == "AUDITED"
    assert len(evaluation.findings) == 4


def test_a_slave_that_calls_the_group_offline_says_nothing_for_a_master_that_did_not_answer():
    evaluation = evaluate(
        state(
            client_lists=(),
            topic_routes=(route(route_broker(broker_ids=(0, 1))),),
            offline_brokers=(("broker-a", 1),),
        ),
        RULES,
    )

    assert evaluation.coverage == "NO_BROKER_ANSWERED"


def test_what_depends_on_the_view_is_possible_however_likely():
    # 150 processes, each of which draws with 1/4 the one list that has its id.
    only_one_has_it = {"broker-a": ["a"] * 150, "broker-b": ["b"], "broker-c": ["b"]}

    evaluation = evaluate(one_list_each(only_one_has_it | {"broker-d": ["b"]}, queues=1), RULES)

    (duplicate,) = [each for each in evaluation.findings if each.kind == "DUPLICATE"]
    assert duplicate.probability == pytest.approx(1.0)
    assert duplicate.certainty == "POSSIBLE"


# ---------------------------------------------------------------- what is not audited


@pytest.mark.parametrize(
    ("of_state", "coverage", "reason", "shows_owners"),
    [
        pytest.param(
            one_list(["a", "b"], message_model="BROADCASTING"),
            "BROADCASTING",
            "every member reads every queue, as intended",
            True,
            id="every member broadcasts",
        ),
        pytest.param(
            one_list(["a", "b"], subscribed=False),
            "NOT_SUBSCRIBED",
            "no member subscribes to the topic",
            True,
            id="nobody subscribes",
        ),
        pytest.param(
            state(topic_routes=(route(route_broker(perm=2)),)),
            "NO_READABLE_QUEUE",
            "no broker of the route lets consumers read the topic",
            True,
            id="no broker has READ",
        ),
        pytest.param(
            state(topic_routes=(route(route_broker(read_queue_nums=0)),)),
            "NO_READABLE_QUEUE",
            "no broker of the route lets consumers read the topic",
            True,
            id="no broker has a queue to read",
        ),
        pytest.param(
            state(topic_routes=()),
            "ROUTE_NOT_KNOWN",
            "the dumps have no route of the topic at that time",
            False,
            id="no route was collected",
        ),
        pytest.param(
            state(topic_routes=(route(),)),
            "ROUTE_NOT_KNOWN",
            "no nameserver knows the topic",
            False,
            id="the nameserver knows no such topic",
        ),
        pytest.param(
            one_list(["a"], strategy="com.example.Mine"),
            "STRATEGY_NOT_KNOWN",
            "a: unknown strategy 'com.example.Mine'",
            False,
            id="a strategy of the application's own",
        ),
        pytest.param(
            one_list(["a", member(client_id="b", client_rebalance=False)]),
            "SHARED_BY_BROKER",
            "b leaves the assignment to the broker (POP)",
            True,
            id="a POP client",
        ),
        pytest.param(
            replace(one_list(["a", "a"]), request_mode="POP"),
            "SHARED_BY_BROKER",
            "the brokers let the group consume T by POP",
            True,
            id="a topic that the group consumes by POP",
        ),
        pytest.param(
            one_list(["a", "host@1@0@16r6jvdv1x"]),
            "SHARED_BY_BROKER",
            "host@1@0@16r6jvdv1x is a gRPC client, which shares queues by POP",
            True,
            id="a gRPC client",
        ),
        pytest.param(
            state(client_lists=()),
            "NO_BROKER_ANSWERED",
            "no broker of the route listed the members of the group",
            False,
            id="no broker answered",
        ),
        pytest.param(
            state(
                client_lists=(),
                topic_routes=(route(route_broker(), route_broker(broker_name="broker-b")),),
                offline_brokers=(("broker-a", 0),),
            ),
            "NO_BROKER_ANSWERED",
            "the other brokers of the route know no member of the group; no list came from "
            "broker-b",
            False,
            id="one is offline, the other did not answer",
        ),
        pytest.param(
            state(client_lists=(client_list("a", broker_name="broker-x"),)),
            "NO_BROKER_ANSWERED",
            "no broker of the route gave a list of the group's members",
            False,
            id="only a broker beside the route answered",
        ),
    ],
)
def test_a_state_that_is_not_audited_has_a_reason_and_no_finding(
    of_state, coverage, reason, shows_owners
):
    evaluation = evaluate(of_state, RULES)

    assert (evaluation.coverage, evaluation.shows_owners) == (coverage, shows_owners)
    assert evaluation.reason.startswith(reason)
    assert (evaluation.most_queues, evaluation.fewest_queues) in ((0, 0), (2, 2))
    assert (evaluation.findings, evaluation.stacked) == ((), ())


def test_of_a_topic_that_is_pulled_an_id_that_stands_twice_is_one_however_the_client_assigns():
    by_broker = [
        member(client_id="a", client_addr=f"h:{n}", client_rebalance=False) for n in (1, 2)
    ]
    stacked = one_list([*by_broker, "b"])
    assert evaluate(stacked, RULES).coverage == "SHARED_BY_BROKER", "it may be POP: nobody asked"
    # The broker divides the queues as the clients would.
    assert evaluate(replace(stacked, request_mode="PULL"), RULES).findings
    # What failed is consumed again by PULL, whatever the mode of the topics of the group is.
    retry = replace(stacked, topic="%RETRY%G", request_mode="POP")
    assert evaluate(retry, RULES).coverage == "AUDITED"
    assert evaluate(retry, RULES).findings


def faults_found(of_state):
    situation = Situation(of_state, RULES)
    evaluation = evaluate(of_state, RULES)
    found = find_faults(situation, evaluation, find_causes(situation, evaluation))
    return [(each.fault, each.client_ids) for each in found]


def test_a_topic_that_no_nameserver_knows_is_found_where_somebody_subscribes_to_it():
    unknown = replace(one_list(["a", "b"]), topic_routes=(route(), route(namesrv_addr="ns-2")))
    assert faults_found(unknown) == [("UNKNOWN_TOPIC", ("a", "b"))]
    # Nobody was asked; nobody subscribes; heartbeats make the retry topic.
    nobody = one_list([member(client_id="a", subscribed=False)])
    for none in (
        replace(unknown, topic_routes=()),
        replace(nobody, topic_routes=(route(),)),
        replace(unknown, topic="%RETRY%G"),
    ):
        assert faults_found(none) == []


def test_who_pulls_beside_members_that_use_pop_is_found():
    pops, pulls = (member(client_id=name, client_rebalance=name == "b") for name in ("a", "b"))
    assert faults_found(replace(one_list([pops, pulls]), request_mode="POP")) == [
        ("MIXED_REQUEST_MODE", ("b",))
    ]
    assert faults_found(replace(one_list([pops, "c"]), request_mode="POP")) == []
    # By x's list b has the last two of four queues, by y's it has all.
    lists = one_list_each({"x": [pops, pulls], "y": [pulls]})
    assert [
        (each.queue.queue_id, each.certainty, each.probability)
        for each in evaluate(replace(lists, request_mode="POP"), RULES).findings
    ] == [(0, "POSSIBLE", 0.5), (1, "POSSIBLE", 0.5), (2, "CERTAIN", 1.0), (3, "CERTAIN", 1.0)]
    # Beside b, which pulls it for certain, it does not matter that c perhaps does.
    fixed = StrategyRules([StrategyRule(".*", "CONFIG", params={"config_queues": [["T", "x", 0]]})])
    lists = one_list_each({"x": [pops, pulls, pulls._replace(client_id="c")], "y": [pops, pulls]})
    (found,) = evaluate(replace(lists, request_mode="POP"), fixed).findings
    assert (found.certainty, found.probability) == ("CERTAIN", 1.0)
    assert [each.probability for each in found.claimants] == [1.0, 0.5]
    # Where all pull, who divides makes no difference.
    assert faults_found(replace(one_list([pops, pulls]), request_mode="PULL")) == []


def test_client_go_reads_no_queue_of_a_broker_whose_master_is_away():
    of_go = of_go_without_a_master()
    assert {
        (each.kind, each.queue.broker_name, each.certainty)
        for each in evaluate(of_go, RULES).findings
    } == {("ORPHANED", "broker-a", "CERTAIN")}
    assert faults_found(of_go) == [("MASTER_AWAY", ("a", "b"))]
    # Java's clients read from the slave; an acting master is a master to all.
    (slave, _), (_, other) = of_go.client_lists, of_go.topic_routes[0].brokers
    of_java = tuple(
        replace(each, members=tuple(m._replace(language="JAVA") for m in each.members))
        for each in of_go.client_lists
    )
    assert not evaluate(replace(of_go, client_lists=of_java), RULES).findings
    # A master that is back lists whom the slave lists, and every other broker stays as it is.
    repaired = bring_masters_back(Situation(of_go, RULES)).state
    assert [each.broker_ids for each in repaired.topic_routes[0].brokers] == [(0, 1), (0,)]
    assert {(*each.broker, tuple(each.copies)) for each in repaired.client_lists} == {
        ("broker-a", 0, ("a", "b")),
        ("broker-a", 1, ("a", "b")),
        ("broker-b", 0, ("a", "b")),
    }
    acting = route(route_broker(broker_name="broker-a"), other)
    lists = (replace(slave, broker_id=0), of_go.client_lists[1])
    assert not evaluate(replace(of_go, client_lists=lists, topic_routes=(acting,)), RULES).findings


def test_who_assigns_for_itself_is_not_asked_for_the_mode_of_the_broker():
    for_itself = [
        member(client_id="a", client_addr=f"h:{n}", client_rebalance=True) for n in (1, 2)
    ]
    assert evaluate(replace(one_list(for_itself), request_mode="POP"), RULES).findings


def test_where_javas_strategy_throws_the_reason_is_its_message():
    # A broker in a room that no client and no pattern names: Java's resolver gives null.
    rules = StrategyRules(
        [
            StrategyRule(
                "G",
                "MACHINE_ROOM_NEARBY-AVG",
                params={"broker_room": {"other": "room1"}, "client_room": {"a": "room1"}},
            )
        ]
    )

    evaluation = evaluate(one_list(["a"]), rules)

    assert evaluation.coverage == "ALLOCATION_FAILS"
    assert evaluation.reason.endswith("; a client that fails keeps the queues it has")
    assert evaluation.findings == ()


def test_a_nameserver_whose_route_has_no_readable_queue_does_not_hide_the_other():
    evaluation = evaluate(
        state(
            topic_routes=(
                route(route_broker(), namesrv_addr="ns-1"),
                route(route_broker(perm=2), namesrv_addr="ns-2"),
            )
        ),
        RULES,
    )

    assert evaluation.coverage == "AUDITED"


def test_written_queues_that_nobody_can_read_are_told_where_all_nameservers_agree():
    evaluation = evaluate(
        state(
            topic_routes=(
                route(route_broker(read_queue_nums=1, write_queue_nums=4), namesrv_addr="ns-1"),
                route(route_broker(read_queue_nums=3, write_queue_nums=4), namesrv_addr="ns-2"),
            )
        ),
        RULES,
    )

    assert evaluation.unreadable == (queue(3),)


def test_the_weakest_source_of_a_strategy_is_that_of_the_state():
    members = [member(client_id="a", strategy="AVG"), member(client_id="b")]

    assert evaluate(one_list(["a"]), RULES).strategy_source == "assumed"
    assert evaluate(one_list(members), RULES).strategy_source == "group"
    assert evaluate(one_list(members[:1]), RULES).strategy_source == "observed"


def test_the_allocations_are_told_for_each_view():
    evaluation = evaluate(one_list_each({"broker-a": ["a", "b"], "broker-b": ["a"]}, 2), RULES)

    assert [
        (a.client_id, a.view_brokers, a.view_weight, [q.queue_id for q in a.queues])
        for a in evaluation.allocations
    ] == [
        ("a", ("broker-a",), 0.5, [0]),
        ("b", ("broker-a",), 0.5, [1]),
        ("a", ("broker-b",), 0.5, [0, 1]),
        ("b", ("broker-b",), 0.5, []),
    ]


def test_an_allocation_tells_the_lengths_of_its_views_lists_with_the_copies_of_an_id():
    evaluation = evaluate(one_list_each({"broker-a": ["a", "a", "b"], "broker-b": ["b"]}), RULES)

    assert {(a.view_brokers, a.view_queues, a.view_clients) for a in evaluation.allocations} == {
        (("broker-a",), 4, 3),
        (("broker-b",), 4, 1),
    }


def test_a_stacked_id_says_what_repairs_it():
    (stacked,) = evaluate(two_processes_share_one_client_id(), RULES).stacked
    (stale,) = evaluate(one_process_reconnected(), RULES).stacked

    assert stacked.remedy == remedy_of("a")
    assert stacked.remedy.startswith("give each process its own instanceName")
    # At first sight it may be another process, until an old connection would be dropped.
    assert stale.remedy.startswith("wait for the lists of the next minutes; if both are still")
    assert "which once an old connection would be dropped" in stale.evidence
    (known,) = evaluate(
        replace(one_process_reconnected(), process_counts=(ProcessCount("a", 1, "replaced"),)),
        RULES,
    ).stacked
    assert known.remedy.startswith("none: the broker drops a silent channel")


# ---------------------------------------------------------------- what holds of every state

_names = ["broker-a", "broker-b", "broker-c"]
_strategies = st.sampled_from(["AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH"])


@given(
    client_ids=distinct_client_ids(),
    queue_nums=st.lists(st.integers(0, 9), min_size=1, max_size=3).filter(any),
    strategy=_strategies,
    data=st.data(),
)
def test_members_that_all_see_the_same_and_share_no_id_take_every_queue_once(
    client_ids, queue_nums, strategy, data
):
    brokers = [
        route_broker(broker_name=name, read_queue_nums=number)
        for name, number in zip(_names, queue_nums, strict=False)
    ]
    lists = [
        client_list(*data.draw(st.permutations(client_ids)), broker_name=broker.broker_name)
        for broker in brokers
    ]

    evaluation = evaluate(
        state(client_lists=tuple(lists), topic_routes=(route(*brokers),)),
        StrategyRules(default=strategy),
    )

    assert evaluation.coverage == "AUDITED", evaluation.reason
    assert evaluation.findings == ()
    assert evaluation.stacked == ()
    of_one_view = sorted(each for a in evaluation.allocations for each in a.queues)
    assert of_one_view == [
        queue(n, b.broker_name) for b in brokers for n in range(b.read_queue_nums)
    ]


@given(client_ids=stacked_client_ids(), queues=st.integers(1, 20), strategy=_strategies)
def test_the_effects_of_stacked_ids_add_up_to_the_findings(client_ids, queues, strategy):
    # Two processes, whatever their id looks like: the list has been so for long.
    shown = tuple(
        ProcessCount(client_id, client_ids.count(client_id), "they stay")
        for client_id in sorted(set(client_ids))
    )
    stacked = replace(one_list(client_ids, queues), process_counts=shown)
    evaluation = evaluate(stacked, StrategyRules(default=strategy))

    every = [queue(n) for n in range(queues)]
    owned = [
        each
        for client_id in client_ids
        for each in make_strategy(strategy).allocate("G", client_id, every, client_ids)
    ]
    duplicate = [each for each in every if owned.count(each) > 1]
    orphaned = [each for each in every if each not in owned]
    assert [f.queue for f in evaluation.findings if f.kind == "DUPLICATE"] == duplicate
    assert [f.queue for f in evaluation.findings if f.kind == "ORPHANED"] == orphaned
    assert sum(effect.queues_duplicated for effect in evaluation.stacked) == len(duplicate)
    assert sum(effect.queues_orphaned for effect in evaluation.stacked) == len(orphaned)
    repeated = {each for each in client_ids if client_ids.count(each) > 1}
    assert {effect.client_id for effect in evaluation.stacked} == repeated


@pytest.mark.long
def test_random_states_are_as_likely_as_all_their_draws_together():
    """So many in each run; `make fuzz` tries others (tests/fuzz/test_states.py)."""
    random = Random(20261121)  # noqa: S311 - reproducible, not secret
    assert sum(check_a_random_state(random) for _ in range(2_000)) > 1_000


def test_a_group_without_a_topic_says_so():
    def of(**values):
        lists = (client_list("a", subscribed=False, **values),)
        return state(topic="", client_lists=lists, topic_routes=())

    nothing, chosen = of(), of(chooses_queues=True)
    offline = state(topic="", client_lists=(), topic_routes=(), offline_brokers=(("broker-a", 0),))

    assert evaluate(nothing, RULES).coverage == evaluate(offline, RULES).coverage == "NO_TOPIC"
    assert "do not show to which topics" in evaluate(nothing, RULES).reason
    assert evaluate(chosen, RULES).coverage == "QUEUES_CHOSEN"
    assert "assign()" in evaluate(chosen, RULES).reason
    assert "no broker knows a member" in evaluate(offline, RULES).reason


def test_a_group_whose_members_choose_their_queues_is_not_recomputed_and_says_so():
    evaluation = evaluate(one_list(["a", "b"], chooses_queues=True), RULES)

    assert (evaluation.coverage, evaluation.findings) == ("QUEUES_CHOSEN", ())
    assert "assign()" in evaluation.reason
    assert evaluation.shows_owners


def test_brokers_in_several_zones_are_told_of_and_the_group_is_recomputed_all_the_same():
    zoned = [route_broker(broker_name=f"broker-{zone}", zone_name=zone) for zone in "xy"]
    of_state = state(
        client_lists=tuple(client_list("a", "b", broker_name=each.broker_name) for each in zoned),
        topic_routes=(route(*zoned),),
    )

    evaluation = evaluate(of_state, RULES)

    assert (evaluation.coverage, evaluation.findings) == ("AUDITED", ())
    assert evaluation.reason.startswith("the brokers are in the zones x, y")


def cut_off(*unreachable):
    """Three brokers of which z does not list c."""
    lists = one_list_each({"x": ["a", "b", "c"], "y": ["a", "b", "c"], "z": ["a", "b"]})
    brokers = [
        route_broker(broker_name=name, read_queue_nums=4, write_queue_nums=4) for name in "xyz"
    ]
    return evaluate(replace(lists, topic_routes=(route(*brokers),), unreachable=unreachable), RULES)


def test_a_client_reads_no_queue_of_a_broker_that_it_does_not_reach():
    found = {
        (f.kind, f.queue.broker_name, f.queue.queue_id): f for f in cut_off(("c", "z")).findings
    }
    # c computes z's queues; b takes them where it draws the list of z, which lacks c.
    for number in range(4):
        orphan = found["ORPHANED", "z", number]
        assert math.isclose(orphan.probability, 2 / 3)
        assert ("DUPLICATE", "z", number) not in found
    assert all("c" not in {each.client_id for each in f.claimants} for f in found.values())


def test_a_client_does_not_get_the_list_of_a_broker_that_it_does_not_reach():
    of_c = [a for a in cut_off(("c", "z")).allocations if a.client_id == "c"]
    assert [(a.view_brokers, a.view_weight) for a in of_c] == [(("x", "y"), 1.0)]
    of_b = [a for a in cut_off(("c", "z")).allocations if a.client_id == "b"]
    assert math.isclose(sum(a.view_weight for a in of_b), 1.0)


def test_who_is_missing_for_a_moment_only_may_be_given_the_list_without_it():
    momentary = cut_off()
    assert {a.view_brokers for a in momentary.allocations if a.client_id == "c"} == {
        ("x", "y"),
        ("z",),
    }


def test_queues_of_a_broker_without_the_group_are_orphaned_for_sure():
    lists = one_list_each({"x": ["a", "b"]}, queues=4)
    both = replace(
        lists,
        topic_routes=(route(*[route_broker(broker_name=name) for name in "xy"]),),
        offline_brokers=(("y", 0),),
        unreachable=((None, "y"),),
    )
    found = evaluate(both, RULES).findings
    assert {(f.kind, f.queue.broker_name, f.certainty) for f in found} == {
        ("ORPHANED", "y", "CERTAIN")
    }


def test_who_is_not_listed_at_a_broker_asks_the_nameserver_that_does_not_give_it():
    # ns-2 lost z: its one client, c, does not heartbeat to z, and computes without it.
    lists = one_list_each({"x": ["a", "b", "c"], "z": ["a", "b"]}, queues=3)
    x, z = (route_broker(broker_name=name, read_queue_nums=3) for name in "xz")
    differing = replace(
        lists,
        topic_routes=(route(x, z, namesrv_addr="ns-1"), route(x, namesrv_addr="ns-2")),
        unreachable=(("c", "z"),),
    )
    allocations = evaluate(differing, RULES).allocations
    assert {a.view_queues for a in allocations if a.client_id == "c"} == {3}
    assert {a.view_queues for a in allocations if a.client_id in "ab"} == {6}


def with_a_master_lost_to_one_nameserver(listed_by_y=("C", "a", "b"), **overrides):
    """ns-2 has lost the master of x: C asks ns-2 and has forgotten it, a and b ask ns-1."""
    lists = {("x", 0): ["a", "b"], ("x", 1): ["C", "a", "b"], ("y", 0): listed_by_y}
    y = route_broker(broker_name="y")
    return state(
        client_lists=tuple(
            client_list(*ids, broker_name=name, broker_id=number, **overrides)
            for (name, number), ids in lists.items()
        ),
        topic_routes=tuple(
            route(route_broker(broker_name="x", broker_ids=ids), y, namesrv_addr=namesrv_addr)
            for namesrv_addr, ids in (("ns-1", (0, 1)), ("ns-2", (1,)))
        ),
    )


def test_client_go_reads_nothing_of_a_broker_whose_slave_alone_lists_it():
    # x0 to x2 are C's by its lists, and a's where a draws the list of the master.
    found = evaluate(with_a_master_lost_to_one_nameserver(language="GO"), RULES).findings
    assert {(f.kind, f.queue.queue_id) for f in found if f.queue.broker_name == "x"} == {
        ("ORPHANED", number) for number in range(3)
    }


def test_nameservers_that_differ_in_a_master_say_so_and_are_to_give_it():
    situation = Situation(with_a_master_lost_to_one_nameserver(), RULES)
    evaluation = evaluate(situation.state, RULES)
    faults = find_faults(situation, evaluation, find_causes(situation, evaluation))
    (routes,) = [each for each in faults if each.fault == "ROUTE_DIVERGENCE"]
    assert "ns-2 gives x, without its master, with 4 queues and y with 4 queues" in routes.evidence
    unified = unify_routes(situation).state
    assert {each.brokers for each in unified.topic_routes} == {
        situation.state.topic_routes[0].brokers
    }
    # C is then listed by the master too.
    assert not evaluate(unified, RULES).findings


@pytest.mark.parametrize(
    ("listed_by_y", "of_c", "of_others", "found"),
    [
        # c asks the slave or y, and has x0 to x2 by either list. The others ask the master or y:
        # by the master's list x0 to x3 are a's, so that x0 to x2 may be read twice. They are
        # never nobody's; y0 and y1 are by one list a's and by the other b's.
        (["C", "a", "b"], {3}, {2, 3}, {"DUPLICATE": "x0 x1 x2 y0 y1", "ORPHANED": "y0 y1"}),
        # c reaches nothing but the slave: the others never draw a list that has it.
        (["a", "b"], {3}, {2}, {"DUPLICATE": "x0 x1 x2"}),
    ],
)
def test_who_is_listed_by_the_slave_alone_asks_no_master(listed_by_y, of_c, of_others, found):
    cut_off = () if "C" in listed_by_y else (("C", "y"),)
    of_state = replace(with_a_master_lost_to_one_nameserver(listed_by_y), unreachable=cut_off)
    evaluation = evaluate(of_state, RULES)
    lengths = {(each.client_id == "C", each.view_clients) for each in evaluation.allocations}
    assert lengths == {(True, number) for number in of_c} | {(False, n) for n in of_others}
    queues = {
        kind: " ".join(
            f"{each.queue.broker_name}{each.queue.queue_id}"
            for each in evaluation.findings
            if each.kind == kind
        )
        for kind in {each.kind for each in evaluation.findings}
    }
    assert queues == found


@pytest.mark.parametrize(
    ("sources", "differ"),
    [
        (("RUNNING_INFO", "RUNNING_INFO"), True),
        (("HEARTBEAT", "RUNNING_INFO"), True),
        # The table has what the last heartbeat had: it may be the other one's.
        (("RUNNING_INFO", "GROUP_TABLE"), False),
        (("GROUP_TABLE", "HEARTBEAT"), False),
    ],
)
def test_members_that_say_that_they_subscribe_differently_do_so_without_a_route(sources, differ):
    members = tuple(
        Member(name, f"{name}:1", subscribed=name == "a", subscription_source=source)
        for name, source in zip("ab", sources, strict=True)
    )
    state = State("G", "T", (ClientList("x", 0, members),), ())
    situation = Situation(state, RULES)
    evaluation = evaluate(state, RULES)
    assert evaluation.coverage == "ROUTE_NOT_KNOWN"
    found = find_faults(situation, evaluation, find_causes(situation, evaluation))
    assert [(each.fault, each.client_ids) for each in found] == (
        [("SUBSCRIPTION_MISMATCH", ("b",))] if differ else []
    )
    assert all("no route of T was collected" in each.evidence for each in found)


@pytest.mark.parametrize(
    ("listed", "queues"), [({"z": ["a", "b"]}, {6}), ({}, {3, 6})], ids=["by z", "z is silent"]
)
def test_all_who_are_listed_at_a_broker_ask_the_nameserver_that_gives_it(listed, queues):
    # ns-2 lost z, and nobody uses it: z lists them all, for their route has it.
    lists = one_list_each({"x": ["a", "b"], **listed}, queues=3)
    x, z = (route_broker(broker_name=name, read_queue_nums=3) for name in "xz")
    differing = replace(
        lists, topic_routes=(route(x, z, namesrv_addr="ns-1"), route(x, namesrv_addr="ns-2"))
    )
    evaluation = evaluate(differing, RULES)
    assert {each.view_queues for each in evaluation.allocations} == queues
    assert bool(evaluation.findings) == (not listed)


def test_where_a_broker_lists_nobody_all_ask_the_nameserver_that_does_not_give_it():
    lists = one_list_each({"x": ["a", "b"]}, queues=3)
    x, z = (route_broker(broker_name=name, read_queue_nums=3) for name in "xz")
    differing = replace(
        lists,
        topic_routes=(route(x, z, namesrv_addr="ns-1"), route(x, namesrv_addr="ns-2")),
        offline_brokers=(("z", 0),),
        unreachable=((None, "z"),),
    )
    evaluation = evaluate(differing, RULES)
    assert {each.view_queues for each in evaluation.allocations} == {3}
    assert {(each.kind, each.queue.broker_name) for each in evaluation.findings} == {
        ("ORPHANED", "z")
    }
