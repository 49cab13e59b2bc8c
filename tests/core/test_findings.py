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
from rebalance_core.client_id import remedy_of
from rebalance_core.repairs import bring_masters_back, unify_routes
from rebalance_core.state import ProcessCount
from tests.support.draws import check_a_random_state
from tests.support.generators import distinct_client_ids, stacked_client_ids
from tests.support.snapshots import (
    client_list,
    faulty_queues,
    lists_of,
    member,
    of_go_without_a_master,
    one_list,
    one_list_each,
    one_process_reconnected,
    queue,
    route,
    route_broker,
    route_of,
    state,
    two_processes_share_one_client_id,
)

RULES = StrategyRules()
BROKER_A = (("broker-a", 0),)


def faults(of_state, rules=RULES) -> tuple[str, ...]:
    """The ids of the queues that several processes read, and of those that nobody reads."""
    evaluation = evaluate(of_state, rules)
    assert evaluation.coverage == "AUDITED", evaluation.reason
    kinds = ("DUPLICATE", "ORPHANED")
    return tuple("".join(map(str, faulty_queues(evaluation, kind))) for kind in kinds)


def likely(evaluation) -> dict[tuple[str, int], float]:
    return {(f.kind, f.queue.queue_id): f.probability for f in evaluation.findings}


def not_subscribed(client_id):
    return member(client_id=client_id, subscribed=False)


# ---------------------------------------------------------------- worked examples


@pytest.mark.parametrize(
    ("strategy", "client_ids", "queues", "duplicate", "orphaned"),
    [
        ("AVG", "aab", 8, "012", "345"),
        # A later copy without a queue that would be nobody's.
        ("AVG", "abb", 2, "1", ""),
        ("AVG_BY_CIRCLE", "aab", 8, "036", "147"),
    ],
)
def test_a_stacked_id_duplicates_its_first_slot_and_orphans_the_others(
    strategy, client_ids, queues, duplicate, orphaned
):
    rules = StrategyRules(default=strategy)
    assert faults(one_list(client_ids, queues), rules) == (duplicate, orphaned)


def test_two_processes_that_all_brokers_list_under_one_id_are_a_certain_fault():
    findings = evaluate(two_processes_share_one_client_id(), RULES).findings
    (claimant,) = findings[0].claimants
    assert (claimant.client_id, claimant.processes, claimant.probability) == ("a", 2, 1.0)
    found = [f for f in findings if f.queue.queue_id in (2, 3)]
    assert [(f.kind, f.queue, f.certainty, f.probability, f.claimants) for f in found] == [
        ("DUPLICATE", queue(2), "CERTAIN", 1.0, (claimant,)),
        ("ORPHANED", queue(3), "CERTAIN", 1.0, ()),
    ]


def test_clients_beyond_the_number_of_queues_are_idle_and_no_fault():
    evaluation = evaluate(one_list("abcde", queues=3), RULES)
    assert evaluation.findings == ()
    assert (evaluation.idle_clients, evaluation.most_queues, evaluation.fewest_queues) == (2, 1, 0)


@pytest.mark.parametrize(
    ("members", "queues", "found"),
    [
        (["a", "b", not_subscribed("c"), "d"], 8, ("", "45")),
        # Of another strategy than the other.
        (["a", member(client_id="b", strategy="AVG_BY_CIRCLE")], 4, ("1", "2")),
        # Who broadcasts takes a slot of the others and is no duplicate.
        (["a", member(client_id="b", message_model="BROADCASTING")], 4, ("", "23")),
    ],
)
def test_a_member_that_takes_no_part_or_other_queues_leaves_its_own(members, queues, found):
    rules = StrategyRules([StrategyRule(".*", "AVG")])
    assert faults(one_list(members, queues), rules) == found


def test_a_stale_channel_on_one_broker_may_orphan_queues_and_duplicates_none():
    evaluation = evaluate(one_process_reconnected(), RULES)
    # broker-a: [a, a, b] of 6 queues: a 0-1, b 4-5; the others: [a, b]: a 0-2, b 3-5.
    assert likely(evaluation) == pytest.approx({("ORPHANED", 2): 1 / 3, ("ORPHANED", 3): 1 / 3})
    assert {f.certainty for f in evaluation.findings} == {"POSSIBLE"}
    (effect,) = evaluation.stacked
    assert (effect.copies, effect.processes) == (2, 1)
    assert (effect.slots_wasted, effect.queues_duplicated, effect.queues_orphaned) == (1, 0, 2)


def test_a_copy_that_takes_no_part_reads_no_queue_twice():
    evaluation = evaluate(one_list(["a", not_subscribed("a"), "b"], 6), RULES)
    (effect,) = evaluation.stacked
    assert (effect.copies, effect.queues_duplicated) == (2, 0)
    assert [each.kind for each in evaluation.findings] == ["ORPHANED", "ORPHANED"]


@pytest.mark.parametrize(("most", "coverage"), [(4, "AUDITED"), (3, "TOO_MANY_QUEUES")])
def test_a_broker_without_queues_or_with_a_number_below_zero_adds_none(most, coverage):
    # Whoever can write a route chooses its numbers.
    brokers = [
        route_broker(broker_name=name, read_queue_nums=number, write_queue_nums=number)
        for name, number in {"a": 4, "b": 0, "c": -5}.items()
    ]
    of_state = state(client_lists=lists_of({"a": "x"}), topic_routes=(route(*brokers),))
    assert evaluate(of_state, StrategyRules(most_queues=most)).coverage == coverage


def test_an_id_without_a_slot_on_one_broker_may_have_its_queues_taken_twice():
    evaluation = evaluate(one_list_each({"broker-a": "ab", "broker-b": "a"}, 2), RULES)
    # a draws [a, b] (takes 0) or [a] (takes 0, 1); b draws [a, b] (takes 1) or [a] (nothing).
    assert likely(evaluation) == {("ORPHANED", 1): 0.25, ("DUPLICATE", 1): 0.25}
    assert {f.certainty for f in evaluation.findings} == {"POSSIBLE"}


def test_a_queue_in_the_configured_list_of_all_members_has_as_many_owners():
    rules = StrategyRules([StrategyRule("G", "CONFIG", params={"config_queues": [queue(1)]})])
    assert faults(one_list("ab", 3), rules) == ("1", "02")


def test_a_group_that_all_brokers_call_offline_leaves_every_queue_without_owner():
    evaluation = evaluate(state(client_lists=(), offline_brokers=BROKER_A), RULES)
    assert (evaluation.coverage, evaluation.reason) == ("AUDITED", "the group has no member")
    assert evaluation.completeness == 1.0
    assert [(f.kind, f.queue, f.certainty, f.probability) for f in evaluation.findings] == [
        ("ORPHANED", queue(n), "CERTAIN", 1.0) for n in range(4)
    ]
    assert evaluation.shows_owners


def test_a_group_that_most_brokers_call_offline_is_so_though_one_did_not_answer():
    three = route_of(["broker-a", "broker-b", "broker-c"])
    offline = (*BROKER_A, ("broker-c", 0))
    told = {"topic_routes": (three,), "offline_brokers": offline}
    evaluation = evaluate(state(client_lists=(), **told), RULES)
    assert evaluation.coverage == "AUDITED"
    assert evaluation.reason == (
        "the other brokers of the route know no member of the group; no list came from broker-b"
    )
    assert evaluation.completeness == pytest.approx(2 / 3)
    assert len(evaluation.findings) == 12


@pytest.mark.parametrize(
    ("brokers", "offline", "coverage", "findings"),
    [
        # As on a static topic: its logical queues are under a name without addresses.
        (
            [
                route_broker(read_queue_nums=0, write_queue_nums=0),
                route_broker(broker_name="__syslo__global__", broker_ids=()),
            ],
            0,
            "AUDITED",
            4,
        ),
        # A slave says nothing for its master that did not answer.
        ([route_broker(broker_ids=(0, 1))], 1, "NO_BROKER_ANSWERED", 0),
    ],
)
def test_a_group_is_offline_where_every_master_asked_says_so(brokers, offline, coverage, findings):
    told = {"topic_routes": (route(*brokers),), "offline_brokers": (("broker-a", offline),)}
    evaluation = evaluate(state(client_lists=(), **told), RULES)
    assert (evaluation.coverage, len(evaluation.findings)) == (coverage, findings)


def test_what_depends_on_the_view_is_possible_however_likely():
    # 150 processes, each of which draws with 1/4 the one list that has its id.
    only_one_has_it = {"broker-a": "a" * 150, "broker-b": "b", "broker-c": "b", "broker-d": "b"}
    evaluation = evaluate(one_list_each(only_one_has_it, queues=1), RULES)
    (duplicate,) = [each for each in evaluation.findings if each.kind == "DUPLICATE"]
    assert duplicate.probability == pytest.approx(1.0)
    assert duplicate.certainty == "POSSIBLE"


# ---------------------------------------------------------------- what is not audited


def routed(*brokers, **overrides):
    return state(topic_routes=(route(*brokers),), **overrides)


NOT_AUDITED = {
    "BROADCASTING": [
        (one_list("b", message_model="BROADCASTING"), "every member reads every queue, as intended")
    ],
    "NOT_SUBSCRIBED": [(one_list("ab", subscribed=False), "no member subscribes to the topic")],
    "NO_READABLE_QUEUE": [
        (routed(of_broker), "no broker of the route lets consumers read the topic")
        for of_broker in (route_broker(perm=2), route_broker(read_queue_nums=0))
    ],
    "ROUTE_NOT_KNOWN": [
        (state(topic_routes=()), "the dumps have no route of the topic at that time"),
        (routed(), "no nameserver knows the topic"),
    ],
    "STRATEGY_NOT_KNOWN": [
        (one_list("a", strategy="com.example.Mine"), "a: unknown strategy 'com.example.Mine'")
    ],
    "SHARED_BY_BROKER": [
        (
            one_list(["a", member(client_id="b", client_rebalance=False)]),
            "b leaves the assignment to the broker (POP)",
        ),
        (replace(one_list("aa"), request_mode="POP"), "the brokers let the group consume T by POP"),
        (
            one_list(["a", "host@1@0@16r6jvdv1x"]),
            "host@1@0@16r6jvdv1x is a gRPC client, which shares queues by POP",
        ),
    ],
    "NO_BROKER_ANSWERED": [
        (state(client_lists=()), "no broker of the route listed the members of the group"),
        (
            routed(
                *(route_broker(), route_broker(broker_name="broker-b")),
                client_lists=(),
                offline_brokers=BROKER_A,
            ),
            "the other brokers of the route know no member of the group; no list came from "
            "broker-b",
        ),
        (
            state(client_lists=lists_of({"broker-x": "a"})),
            "no broker of the route gave a list of the group's members",
        ),
    ],
}
WITHOUT_OWNERS = {"ROUTE_NOT_KNOWN", "STRATEGY_NOT_KNOWN", "NO_BROKER_ANSWERED"}


@pytest.mark.parametrize(
    ("coverage", "of_state", "reason"),
    [(coverage, *each) for coverage, every in NOT_AUDITED.items() for each in every],
)
def test_a_state_that_is_not_audited_has_a_reason_and_no_finding(coverage, of_state, reason):
    evaluation = evaluate(of_state, RULES)
    assert evaluation.coverage == coverage
    assert evaluation.shows_owners == (coverage not in WITHOUT_OWNERS)
    assert evaluation.reason.startswith(reason)
    assert (evaluation.most_queues, evaluation.fewest_queues) in ((0, 0), (2, 2))
    assert (evaluation.findings, evaluation.stacked) == ((), ())


def twice(divides):
    return [member(client_id="a", client_addr=f"h:{n}", client_rebalance=divides) for n in (1, 2)]


def test_of_a_topic_that_is_pulled_an_id_that_stands_twice_is_one_however_the_client_assigns():
    stacked = one_list([*twice(False), "b"])
    assert evaluate(stacked, RULES).coverage == "SHARED_BY_BROKER", "it may be POP: nobody asked"
    # The broker divides the queues as the clients would.
    assert evaluate(replace(stacked, request_mode="PULL"), RULES).findings
    # What failed is consumed again by PULL, whatever the mode of the topics of the group is.
    retry = replace(stacked, topic="%RETRY%G", request_mode="POP")
    assert evaluate(retry, RULES).coverage == "AUDITED"
    assert evaluate(retry, RULES).findings
    # Who assigns for itself is not asked for the mode of the broker.
    assert evaluate(replace(one_list(twice(True)), request_mode="POP"), RULES).findings


def told_faults(of_state):
    situation = Situation(of_state, RULES)
    evaluation = evaluate(of_state, RULES)
    return find_faults(situation, evaluation, find_causes(situation, evaluation))


def faults_found(of_state):
    return [(each.fault, each.client_ids) for each in told_faults(of_state)]


def test_a_topic_that_no_nameserver_knows_is_found_where_somebody_subscribes_to_it():
    unknown = replace(one_list("ab"), topic_routes=(route(), route(namesrv_addr="ns-2")))
    assert faults_found(unknown) == [("UNKNOWN_TOPIC", ("a", "b"))]
    # Nobody was asked; nobody subscribes; heartbeats make the retry topic.
    for none in (
        replace(unknown, topic_routes=()),
        replace(one_list([not_subscribed("a")]), topic_routes=(route(),)),
        replace(unknown, topic="%RETRY%G"),
    ):
        assert faults_found(none) == []


def test_who_pulls_beside_members_that_use_pop_is_found():
    pops, pulls = (member(client_id=name, client_rebalance=name == "b") for name in ("a", "b"))
    mixed = one_list([pops, pulls])
    assert faults_found(replace(mixed, request_mode="POP")) == [("MIXED_REQUEST_MODE", ("b",))]
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
    assert faults_found(replace(mixed, request_mode="PULL")) == []


def test_client_go_reads_no_queue_of_a_broker_whose_master_is_away():
    of_go = of_go_without_a_master()
    findings = evaluate(of_go, RULES).findings
    told = {(f.kind, f.queue.broker_name, f.certainty) for f in findings}
    assert told == {("ORPHANED", "broker-a", "CERTAIN")}
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


def test_where_javas_strategy_throws_the_reason_is_its_message():
    # A broker in a room that no client and no pattern names: Java's resolver gives null.
    rooms = {"broker_room": {"other": "room1"}, "client_room": {"a": "room1"}}
    rules = StrategyRules([StrategyRule("G", "MACHINE_ROOM_NEARBY-AVG", params=rooms)])
    evaluation = evaluate(one_list("a"), rules)
    assert evaluation.coverage == "ALLOCATION_FAILS"
    assert evaluation.reason.endswith("; a client that fails keeps the queues it has")
    assert evaluation.findings == ()


def by_two_nameservers(one, other):
    of_each = {"ns-1": route_broker(**one), "ns-2": route_broker(**other)}
    routes = tuple(route(of, namesrv_addr=name) for name, of in of_each.items())
    return evaluate(state(topic_routes=routes), RULES)


def test_nameservers_that_give_different_routes_count_both():
    # One without a readable queue does not hide the other.
    assert by_two_nameservers({}, {"perm": 2}).coverage == "AUDITED"
    # Queues that are written and that nobody can read are told where all agree.
    differing = by_two_nameservers({"read_queue_nums": 1}, {"read_queue_nums": 3})
    assert differing.unreadable == (queue(3),)


def test_the_weakest_source_of_a_strategy_is_that_of_the_state():
    members = [member(client_id="a", strategy="AVG"), member(client_id="b")]
    for of_state, source in (
        (one_list("a"), "assumed"),
        (one_list(members), "group"),
        (one_list(members[:1]), "observed"),
    ):
        assert evaluate(of_state, RULES).strategy_source == source


def test_the_allocations_are_told_for_each_view_with_the_lengths_of_its_lists():
    evaluation = evaluate(one_list_each({"broker-a": "aab", "broker-b": "b"}, 3), RULES)
    assert [
        (a.client_id, a.view_brokers, a.view_queues, a.view_clients, [q.queue_id for q in a.queues])
        for a in evaluation.allocations
    ] == [
        ("a", ("broker-a",), 3, 3, [0]),
        ("b", ("broker-a",), 3, 3, [2]),
        ("a", ("broker-b",), 3, 1, []),
        ("b", ("broker-b",), 3, 1, [0, 1, 2]),
    ]
    assert {a.view_weight for a in evaluation.allocations} == {0.5}


def test_a_stacked_id_says_what_repairs_it():
    (stacked,) = evaluate(two_processes_share_one_client_id(), RULES).stacked
    (stale,) = evaluate(one_process_reconnected(), RULES).stacked

    assert stacked.remedy == remedy_of("a")
    assert stacked.remedy.startswith("give each process its own instanceName")
    # At first sight it may be another process, until an old connection would be dropped.
    assert stale.remedy.startswith("wait for the lists of the next minutes; if both are still")
    assert "which once an old connection would be dropped" in stale.evidence
    shown = (ProcessCount("a", 1, "replaced"),)
    (known,) = evaluate(replace(one_process_reconnected(), process_counts=shown), RULES).stacked
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
    whole = state(client_lists=tuple(lists), topic_routes=(route(*brokers),))
    evaluation = evaluate(whole, StrategyRules(default=strategy))

    assert evaluation.coverage == "AUDITED", evaluation.reason
    assert (evaluation.findings, evaluation.stacked) == ((), ())
    of_one_view = sorted(each for a in evaluation.allocations for each in a.queues)
    every = [queue(n, b.broker_name) for b in brokers for n in range(b.read_queue_nums)]
    assert of_one_view == every


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


@pytest.mark.house
def test_random_states_are_as_likely_as_all_their_draws_together():
    """So many in each run; `make fuzz` tries others (tests/fuzz/test_states.py)."""
    random = Random(20261121)  # noqa: S311 - reproducible, not secret
    assert sum(check_a_random_state(random) for _ in range(400)) > 200


@pytest.mark.parametrize(
    ("listed", "offline", "coverage", "said"),
    [
        ([not_subscribed("a")], (), "NO_TOPIC", "do not show to which topics"),
        ([], BROKER_A, "NO_TOPIC", "no broker knows a member"),
        ([not_subscribed("a")._replace(chooses_queues=True)], (), "QUEUES_CHOSEN", "assign()"),
    ],
)
def test_a_group_without_a_topic_says_so(listed, offline, coverage, said):
    lists = (client_list(*listed),) if listed else ()
    told = {"client_lists": lists, "topic_routes": (), "offline_brokers": offline}
    evaluation = evaluate(state(topic="", **told), RULES)
    assert evaluation.coverage == coverage
    assert said in evaluation.reason


def test_a_group_whose_members_choose_their_queues_is_not_recomputed_and_says_so():
    evaluation = evaluate(one_list("ab", chooses_queues=True), RULES)
    assert (evaluation.coverage, evaluation.findings) == ("QUEUES_CHOSEN", ())
    assert "assign()" in evaluation.reason
    assert evaluation.shows_owners


def test_brokers_in_several_zones_are_told_of_and_the_group_is_recomputed_all_the_same():
    zoned = [route_broker(broker_name=f"broker-{zone}", zone_name=zone) for zone in "xy"]
    lists = lists_of({"broker-x": "ab", "broker-y": "ab"})
    evaluation = evaluate(state(client_lists=lists, topic_routes=(route(*zoned),)), RULES)
    assert (evaluation.coverage, evaluation.findings) == ("AUDITED", ())
    assert evaluation.reason.startswith("the brokers are in the zones x, y")


def cut_off(*unreachable):
    """Three brokers of which z does not list c."""
    lists = lists_of({"x": "abc", "y": "abc", "z": "ab"})
    told = state(client_lists=lists, topic_routes=(route_of("xyz"),), unreachable=unreachable)
    return evaluate(told, RULES)


def test_a_client_reads_no_queue_of_a_broker_that_it_does_not_reach():
    found = {(f.kind, f.queue.broker_name, f.queue.queue_id): f for f in cut_off("cz").findings}
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
    of_c = [a for a in cut_off().allocations if a.client_id == "c"]
    assert {a.view_brokers for a in of_c} == {("x", "y"), ("z",)}


def test_queues_of_a_broker_without_the_group_are_orphaned_for_sure():
    both = state(
        client_lists=lists_of({"x": "ab"}),
        topic_routes=(route_of("xy"),),
        offline_brokers=(("y", 0),),
        unreachable=((None, "y"),),
    )
    findings = evaluate(both, RULES).findings
    told = {(f.kind, f.queue.broker_name, f.certainty) for f in findings}
    assert told == {("ORPHANED", "y", "CERTAIN")}


def without_z_at_one_nameserver(lists, **told):
    """Both nameservers give x, ns-2 does not give z; of each three queues."""
    routes = tuple(
        route_of(names, namesrv_addr, read_queue_nums=3)
        for names, namesrv_addr in (("xz", "ns-1"), ("x", "ns-2"))
    )
    return evaluate(state(client_lists=lists_of(lists), topic_routes=routes, **told), RULES)


def test_who_is_not_listed_at_a_broker_asks_the_nameserver_that_does_not_give_it():
    # ns-2 lost z: its one client, c, does not heartbeat to z, and computes without it.
    evaluation = without_z_at_one_nameserver({"x": "abc", "z": "ab"}, unreachable=(("c", "z"),))
    lengths = {(a.client_id == "c", a.view_queues) for a in evaluation.allocations}
    assert lengths == {(True, 3), (False, 6)}


def with_a_master_lost_to_one_nameserver(listed_by_y="Cab", **overrides):
    """ns-2 has lost the master of x: C asks ns-2 and has forgotten it, a and b ask ns-1."""
    y = route_broker(broker_name="y")
    return state(
        client_lists=lists_of({"x": "ab", "x/1": "Cab", "y": listed_by_y}, **overrides),
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
    (routes,) = [each for each in told_faults(situation.state) if each.fault == "ROUTE_DIVERGENCE"]
    assert "ns-2 gives x, without its master, with 4 queues and y with 4 queues" in routes.evidence
    unified = unify_routes(situation).state
    (first, _) = situation.state.topic_routes
    assert {each.brokers for each in unified.topic_routes} == {first.brokers}
    # C is then listed by the master too.
    assert not evaluate(unified, RULES).findings


@pytest.mark.parametrize(
    ("listed_by_y", "of_c", "of_others", "found"),
    [
        # c asks the slave or y, and has x0 to x2 by either list. The others ask the master or y:
        # by the master's list x0 to x3 are a's, so that x0 to x2 may be read twice. They are
        # never nobody's; y0 and y1 are by one list a's and by the other b's.
        ("Cab", {3}, {2, 3}, {"DUPLICATE": "x0 x1 x2 y0 y1", "ORPHANED": "y0 y1"}),
        # c reaches nothing but the slave: the others never draw a list that has it.
        ("ab", {3}, {2}, {"DUPLICATE": "x0 x1 x2"}),
    ],
)
def test_who_is_listed_by_the_slave_alone_asks_no_master(listed_by_y, of_c, of_others, found):
    cut_off = () if "C" in listed_by_y else (("C", "y"),)
    of_state = replace(with_a_master_lost_to_one_nameserver(listed_by_y), unreachable=cut_off)
    evaluation = evaluate(of_state, RULES)
    lengths = {(each.client_id == "C", each.view_clients) for each in evaluation.allocations}
    assert lengths == {(True, number) for number in of_c} | {(False, n) for n in of_others}
    queues = {}
    for each in evaluation.findings:
        queues.setdefault(each.kind, []).append(f"{each.queue.broker_name}{each.queue.queue_id}")
    assert {kind: " ".join(every) for kind, every in queues.items()} == found


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
    assert evaluate(state, RULES).coverage == "ROUTE_NOT_KNOWN"
    assert faults_found(state) == ([("SUBSCRIPTION_MISMATCH", ("b",))] if differ else [])
    assert all("no route of T was collected" in each.evidence for each in told_faults(state))


@pytest.mark.parametrize(
    ("listed", "told", "queues", "found"),
    [
        # ns-2 lost z, and nobody uses it: z lists them all, for their route has it.
        ({"z": "ab"}, {}, {6}, set()),
        ({}, {}, {3, 6}, {"x", "z"}),
        # Where z lists nobody, all ask the nameserver that does not give it.
        ({}, {"offline_brokers": (("z", 0),), "unreachable": ((None, "z"),)}, {3}, {"z"}),
    ],
    ids=["by z", "z is silent", "z lists nobody"],
)
def test_whom_a_broker_lists_tells_which_nameserver_they_ask(listed, told, queues, found):
    evaluation = without_z_at_one_nameserver({"x": "ab", **listed}, **told)
    assert {each.view_queues for each in evaluation.allocations} == queues
    assert {each.queue.broker_name for each in evaluation.findings} == found
    if told:
        assert {each.kind for each in evaluation.findings} == {"ORPHANED"}
