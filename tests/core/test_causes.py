"""Every fault is found as the cause of what it does, alone and together with another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalance_core import Member, State, StrategyRule, StrategyRules, evaluate
from rebalance_core.causes import GROUP_OFFLINE, UNEXPLAINED, find_causes
from rebalance_core.descriptions import EXPRESSION_MISMATCH, normalise_expression
from rebalance_core.faults import Fault, find_faults
from rebalance_core.processes import find_processes
from rebalance_core.repairs import REPAIRS, Situation, apply_repairs
from rebalance_core.state import ProcessCount
from tests.support.snapshots import (
    client_list,
    lists_of,
    member,
    of_go_without_a_master,
    one_list,
    one_list_each,
    one_process_reconnected,
    route,
    route_broker,
    route_of,
    state,
    two_processes_share_one_client_id,
)

PLAIN = StrategyRules()


def lists(*members: object, brokers: tuple[str, ...] = ("broker-a", "broker-b")) -> State:
    """Eight queues on the first broker; every broker lists the same members."""
    return one_list_each({name: list(members) for name in brokers}, queues=8)  # type: ignore[misc]


def c(**told: Any) -> Member:
    return member(client_id="c", **told)


def all_use(name: str, **params: object) -> StrategyRules:
    return StrategyRules([StrategyRule(".*", name, params=params)])


def configured(**lists_by_client: list[int]) -> StrategyRules:
    rules = []
    for client_id, numbers in lists_by_client.items():
        params = {"config_queues": [["T", "broker-a", number] for number in numbers]}
        rules.append(StrategyRule(".*", "CONFIG", clients=client_id, params=params))
    return StrategyRules(rules)


FAULTY_STATES: dict[str, State] = {
    "DUPLICATE_CLIENT_ID": two_processes_share_one_client_id(),
    "STALE_CHANNEL": one_process_reconnected(),
    "GHOST_MEMBER": lists("a", member(client_id="b", is_expired=True), "c"),
    "STRATEGY_MISMATCH": lists("a", "b", c(strategy="AVG_BY_CIRCLE"), brokers=("broker-a",)),
    "SUBSCRIPTION_MISMATCH": lists("a", "b", "c", member(client_id="d", subscribed=False)),
    "MANUAL_ASSIGNMENT": lists("a", "b", c(subscribed=False, chooses_queues=True)),
    "MIXED_MESSAGE_MODEL": lists("a", "b", c(message_model="BROADCASTING")),
    "MIXED_REQUEST_MODE": lists(
        *[member(client_id=each, client_rebalance=each == "b") for each in "ab"]
    ),
    "GROUP_NOT_ON_BROKER": replace(
        one_list_each({"x": "ab", "z": "ab"}),
        topic_routes=(route_of("xyz"),),
        offline_brokers=(("y", 0),),
        unreachable=((None, "y"),),
    ),
    "BROKER_VIEW_DIVERGENCE": one_list_each({"broker-a": "abc", "broker-b": "ab"}, queues=8),
    "MASTER_AWAY": of_go_without_a_master(),
    "ROUTE_DIVERGENCE": state(
        topic_routes=(
            route(route_broker(), namesrv_addr="ns-1"),
            route(route_broker(read_queue_nums=6), namesrv_addr="ns-2"),
        )
    ),
    "ROOM_NOT_SERVED": state(
        client_lists=lists_of({"room1@x": "ab", "room2@y": "ab"}),
        topic_routes=(route_of(["room1@x", "room2@y"]),),
    ),
    "CONFIG_OVERLAP": one_list("ab"),
    "CONFIG_GAP": one_list("ab"),
}
RULES = {
    "STRATEGY_MISMATCH": all_use("AVG"),
    "ROOM_NOT_SERVED": all_use("MACHINE_ROOM", consumeridcs=["room1"]),
    "CONFIG_OVERLAP": configured(a=[0, 1, 2], b=[2, 3]),
    "CONFIG_GAP": configured(a=[0, 1], b=[2]),
}


FAULTY = {name: Situation(of, RULES.get(name, PLAIN)) for name, of in FAULTY_STATES.items()}


def causes_of(situation: Situation) -> set[str]:
    evaluation = evaluate(situation.state, situation.rules)
    causes = find_causes(situation, evaluation)
    return {name for finding in evaluation.findings for name in causes.names(finding)}


def all_faults(situation: Situation) -> tuple[Fault, ...]:
    evaluation = evaluate(situation.state, situation.rules)
    return tuple(find_faults(situation, evaluation, find_causes(situation, evaluation)))


def faults_of(situation: Situation) -> dict[str, Fault]:
    return {fault.fault: fault for fault in all_faults(situation)}


def in_state(of: State, fault: str) -> Fault:
    """The fault of the state, by plain rules."""
    return faults_of(Situation(of, PLAIN))[fault]


def test_there_is_a_faulty_state_for_every_repair() -> None:
    assert set(FAULTY) == set(REPAIRS)


@pytest.mark.parametrize("fault", FAULTY)
def test_exactly_the_fault_is_the_cause_and_its_repair_leaves_no_finding(fault: str) -> None:
    situation = FAULTY[fault]
    before = evaluate(situation.state, situation.rules)
    assert before.findings
    assert causes_of(situation) == {fault}
    repaired = apply_repairs(situation, [fault])
    assert evaluate(repaired.state, repaired.rules).findings == ()
    told = faults_of(situation)[fault]
    assert (told.cleared, told.left) == (len(before.findings), 0)
    assert told.queues_affected == len({finding.queue for finding in before.findings})
    assert {finding.queue for finding in before.findings} <= {move.queue for move in told.moves}


@pytest.mark.parametrize("fault", FAULTY)
def test_a_repair_changes_nothing_where_its_fault_is_not(fault: str) -> None:
    for of_all in ({}, {"client_rebalance": False}):
        members = (member(client_id=each, **of_all) for each in "ab")
        healthy = Situation(lists(*members), PLAIN)
        assert REPAIRS[fault](healthy) is healthy


def test_a_repair_that_moves_a_fault_to_other_queues_is_no_cause() -> None:
    # If all brokers listed the stale channel, its slot would be the same for all: some queues would
    # be rid of their finding, and the slot's own orphaned for certain.
    members = {"broker-a": "aabc", "broker-b": "abc", "broker-c": "abc"}
    stale = one_list_each(members, queues=24)
    situation = Situation(stale, PLAIN)
    unified = apply_repairs(situation, ["BROKER_VIEW_DIVERGENCE"])
    before = {(f.kind, f.queue) for f in evaluate(stale, PLAIN).findings}
    after = {(f.kind, f.queue) for f in evaluate(unified.state, PLAIN).findings}
    assert before - after
    assert causes_of(situation) == {"STALE_CHANNEL"}


def test_of_the_cures_that_a_fault_is_part_of_the_one_with_fewest_others_is_previewed() -> None:
    # With an id of its own the second process reads q3 to q5. The ghost still has q6 and q7.
    found = faults_of(Situation(lists("a", "a", member(client_id="g", is_expired=True)), PLAIN))
    expected = {"DUPLICATE_CLIENT_ID": (6, 2), "GHOST_MEMBER": (8, 0)}
    assert {name: (told.cleared, told.left) for name, told in found.items()} == expected


D_SUBSCRIBES_NOT = member(client_id="d", subscribed=False)
PAIRS: dict[tuple[str, str], State] = {
    ("DUPLICATE_CLIENT_ID", "SUBSCRIPTION_MISMATCH"): lists("a", "a", D_SUBSCRIBES_NOT, "e"),
    ("DUPLICATE_CLIENT_ID", "GHOST_MEMBER"): lists(
        "a", "a", member(client_id="d", is_expired=True), "e"
    ),
    ("STALE_CHANNEL", "SUBSCRIPTION_MISMATCH"): one_list_each(
        {
            f"broker-{name}": [*listed, D_SUBSCRIBES_NOT]
            for name, listed in (("a", "aab"), ("b", "ab"), ("c", "ab"))
        },
        queues=8,
    ),
    ("GHOST_MEMBER", "MANUAL_ASSIGNMENT"): lists(
        "a", member(client_id="b", is_expired=True), c(chooses_queues=True)
    ),
    ("DUPLICATE_CLIENT_ID", "MIXED_MESSAGE_MODEL"): lists(
        "a", "a", member(client_id="d", message_model="BROADCASTING"), "e"
    ),
    ("SUBSCRIPTION_MISMATCH", "BROKER_VIEW_DIVERGENCE"): one_list_each(
        {"broker-a": ["a", "b", D_SUBSCRIBES_NOT], "broker-b": ["a", D_SUBSCRIBES_NOT]}, queues=8
    ),
    ("STRATEGY_MISMATCH", "SUBSCRIPTION_MISMATCH"): lists(
        *[member(client_id=each, strategy="AVG") for each in "ab"],
        c(strategy="AVG_BY_CIRCLE"),
        D_SUBSCRIBES_NOT._replace(strategy="AVG"),
    ),
}


@pytest.mark.parametrize("pair", PAIRS, ids=" and ".join)
def test_of_two_faults_both_are_found(pair: tuple[str, str]) -> None:
    situation = Situation(PAIRS[pair], PLAIN)
    assert causes_of(situation) == set(pair)
    repaired = apply_repairs(situation, pair)
    assert evaluate(repaired.state, repaired.rules).findings == ()


def test_a_group_without_a_member_is_offline() -> None:
    empty = state(client_lists=(), offline_brokers=(("broker-a", 0),))
    assert causes_of(Situation(empty, PLAIN)) == {GROUP_OFFLINE}
    assert "no broker knows any member" in in_state(empty, GROUP_OFFLINE).evidence
    three = route_of(["broker-a", "broker-b", "broker-c"])
    told = replace(empty, topic_routes=(three,), offline_brokers=(("broker-a", 0), ("broker-b", 0)))
    assert "no broker that answered knows any member" in in_state(told, GROUP_OFFLINE).evidence


def test_what_no_repair_clears_is_unexplained() -> None:
    # A ring without points gives nothing to anybody, and no fault that is known is to blame.
    situation = Situation(one_list("ab"), all_use("CONSISTENT_HASH", virtual_node_count=0))
    assert causes_of(situation) == {UNEXPLAINED}
    assert faults_of(situation)[UNEXPLAINED].left == 4


@pytest.mark.parametrize(
    ("heard", "causes"),
    [
        # Nobody is heard: it is the collector that stopped listening, or never listened to c.
        ({"a": False, "b": False}, set()),
        ({"a": False, "b": False, "c": None}, set()),
        # One is heard: the collector listens, however many are silent.
        ({"a": False, "b": False, "c": True}, {"GHOST_MEMBER"}),
        ({"a": False, "c": True}, {"GHOST_MEMBER"}),
    ],
)
def test_a_silent_member_is_a_ghost_where_another_member_of_its_list_is_heard(
    heard: dict[str, bool | None], causes: set[str]
) -> None:
    silent = {each: None if told is None else not told for each, told in heard.items()}
    members = [member(client_id=each, is_expired=told) for each, told in silent.items()]
    assert causes_of(Situation(lists(*members), PLAIN)) == causes


def test_a_client_that_is_silent_at_one_broker_and_heard_at_none_is_a_ghost_everywhere() -> None:
    # The heartbeats of broker-b are not collected.
    listed = {
        name: [member(client_id=each, is_expired=told) for each, told in of_list.items()]
        for name, of_list in (
            ("broker-a", {"a": True, "b": False, "c": None}),
            ("broker-b", {"a": None, "b": None, "c": False}),
        )
    }
    situation = Situation(one_list_each(listed, queues=6), PLAIN)  # type: ignore[arg-type]
    assert causes_of(situation) == {"GHOST_MEMBER"}
    assert faults_of(situation)["GHOST_MEMBER"].left == 0
    found = find_processes(situation.state, PLAIN)
    assert [each.client_id for each in found if each.silent] == ["a"]


def test_members_that_subscribe_with_a_probability_make_findings_as_probable_as_that() -> None:
    # The group's table has the topic in a quarter of the polls; b says itself that it subscribes.
    doubtful = [member(client_id=each, subscribed_percent=25) for each in "acd"]
    situation = Situation(lists(*doubtful, "b"), PLAIN)
    evaluation = evaluate(situation.state, situation.rules)
    found = {(f.queue.queue_id, f.kind, f.certainty, f.probability) for f in evaluation.findings}
    assert found == {(queue, "ORPHANED", "POSSIBLE", 0.75) for queue in (0, 1, 4, 5, 6, 7)}
    (fault,) = faults_of(situation).values()
    assert fault.fault == "SUBSCRIPTION_MISMATCH"
    assert "has T in about 25 % of the polls" in fault.evidence
    assert "perhaps taken by nobody" in fault.evidence
    assert "running infos" in fault.remedy
    assert (fault.client_ids, fault.cleared, fault.left) == ((), 6, 0)


def test_where_one_of_two_with_an_id_subscribes_both_are_not_to_subscribe_as_they_are() -> None:
    # Two applications with one id and group: both would take the first half of the queues.
    stranger = member(client_id="a", client_addr="10.0.0.9:1", subscribed=False)
    fault = faults_of(Situation(lists("a", stranger), PLAIN))["SUBSCRIPTION_MISMATCH"]
    assert fault.evidence.startswith("a process of a does not subscribe to T and still takes")
    assert fault.remedy.startswith("put the processes that do not subscribe to T into a separate")
    fault = faults_of(Situation(lists("a", stranger._replace(client_id="b")), PLAIN))[
        "SUBSCRIPTION_MISMATCH"
    ]
    assert fault.evidence.startswith("b does not subscribe to T and still takes")
    assert fault.remedy.startswith("let all members of the group subscribe to the same topics")


def test_of_a_client_the_surest_of_its_lists_tells_whether_it_subscribes() -> None:
    # broker-b's table has the topic in every poll: only members that subscribe are listed there.
    of_a = [member(client_id=each, subscribed_percent=50) for each in "ab"]
    situation = Situation(one_list_each({"broker-a": of_a, "broker-b": ["a"]}), PLAIN)
    shares = {each.client_id: each.share for each in find_processes(situation.state, PLAIN)}
    assert shares == {"a": 1.0, "b": 0.5}


def test_a_ghost_claims_nothing_and_takes_its_slot() -> None:
    (fault,) = all_faults(FAULTY["GHOST_MEMBER"])
    assert fault.client_ids == ("b",)
    assert "queues 3-5 of broker-a are taken by nobody" in fault.evidence


def test_a_broadcasting_member_has_no_retry_topic_to_subscribe_to() -> None:
    broadcasting = c(subscribed=False, message_model="BROADCASTING")
    situation = Situation(lists("a", "b", broadcasting), PLAIN)
    assert causes_of(situation) == {"MIXED_MESSAGE_MODEL"}
    both = lists("a", "b", broadcasting, D_SUBSCRIBES_NOT)
    assert in_state(both, "SUBSCRIPTION_MISMATCH").client_ids == ("d",)


def test_of_lists_that_differ_those_are_told_that_a_client_of_the_topic_asks() -> None:
    elsewhere = client_list("d", member(client_id="e", subscribed=False), broker_name="elsewhere")
    listed = lists_of({"broker-a": "abc", "broker-a/1": "ab", "broker-b": "ac"})
    brokers = (route_broker(broker_ids=(0, 1)), route_broker(broker_name="broker-b"))
    told = in_state(
        state(client_lists=(*listed, elsewhere), topic_routes=(route(*brokers),)),
        "BROKER_VIEW_DIVERGENCE",
    )
    assert told.broker_names == ("broker-a", "broker-b")
    assert told.evidence.startswith(
        "the list of broker-a lacks d, which other brokers list; "
        "the list of broker-b lacks b and d, which other brokers list; a client asks "
    )
    to_do = "check whether broker-a and broker-b can be reached from b and d (network, "
    assert told.remedy.startswith(to_do)


def test_a_remedy_names_at_most_five_of_each_and_who_is_listed_less_often() -> None:
    many = one_list_each({"broker-a": "x", "broker-b": "xabcdefg"}, queues=8)
    told = in_state(many, "BROKER_VIEW_DIVERGENCE")
    assert "broker-a can be reached from a, b, c, d, e and 2 more (" in told.remedy
    # All list x, which two processes share, and broker-a lists it once.
    twice = one_list_each({"broker-a": "xy", "broker-b": "xxy", "broker-c": "xxy"}, queues=8)
    told = in_state(twice, "BROKER_VIEW_DIVERGENCE")
    assert told.evidence.startswith("the brokers list an id a different number of times; ")
    assert "broker-a can be reached from x (" in told.remedy


def test_a_nameserver_that_lets_nobody_read_is_said_to_do_so() -> None:
    brokers = {"ns-1": route_broker(), "ns-2": route_broker(perm=2)}
    routes = tuple(route(each, namesrv_addr=name) for name, each in brokers.items())
    told = in_state(state(topic_routes=routes), "ROUTE_DIVERGENCE")
    assert "ns-1 gives broker-a with 4 queues; ns-2 gives no readable broker" in told.evidence


def test_who_is_heard_at_one_broker_is_no_ghost() -> None:
    silent, heard = (member(client_id="b", is_expired=each) for each in (True, False))
    listed = one_list_each({"broker-a": ["a", silent], "broker-b": ["a", heard]})
    assert all_faults(Situation(listed, PLAIN)) == ()


@pytest.mark.parametrize(
    ("fault", "named"),
    [
        ("GHOST_MEMBER", "any process of b is alive"),
        ("GROUP_NOT_ON_BROKER", "check that the group exists on y; "),
        ("MASTER_AWAY", "bring the master of broker-a back"),
    ],
)
def test_a_remedy_names_whom_it_is_about(fault: str, named: str) -> None:
    assert named in faults_of(FAULTY[fault])[fault].remedy


def test_who_subscribes_is_expected_at_every_broker_of_the_topic_and_nobody_else() -> None:
    def evidence(**of_c: Any) -> str:
        lists = one_list_each({"broker-a": "ab", "broker-b": ["a", "b", "d", c(**of_c)]}, queues=8)
        cut_off = (("c", "broker-a"), ("d", "broker-a"))
        return in_state(replace(lists, unreachable=cut_off), "BROKER_VIEW_DIVERGENCE").evidence

    own = evidence(subscription_source="RUNNING_INFO")
    assert "c and d do not reach broker-a and read no queue of it; a client asks" in own
    # The topics that c does not subscribe to are not its business.
    assert "; d does not reach broker-a and reads no queue of it; a client asks" in evidence(
        subscribed=False, subscription_source="RUNNING_INFO"
    )
    of_table = evidence(subscription_source="GROUP_TABLE")
    assert "c and d do not reach broker-a and read no queue of it; or c subscribes to" in of_table


def test_who_does_not_subscribe_is_missing_from_no_list_of_the_topic() -> None:
    differing = one_list_each({"broker-a": "ab", "broker-b": "a"}, queues=8)
    elsewhere = client_list("a", "b", c(subscribed=False), broker_name="elsewhere")
    whole = replace(differing, client_lists=(*differing.client_lists, elsewhere))
    assert causes_of(Situation(whole, PLAIN)) == {"BROKER_VIEW_DIVERGENCE"}
    assert in_state(whole, "BROKER_VIEW_DIVERGENCE").client_ids == ("b",)


def test_one_queue_is_told_as_one() -> None:
    # Three slots for four queues: the first takes two, the member that assigns has the last.
    (fault,) = all_faults(Situation(one_list(["a", "b", c(chooses_queues=True)]), PLAIN))
    assert fault.evidence.endswith("queue 3 of broker-a is taken by nobody")


def test_members_that_choose_their_queues_themselves_are_named() -> None:
    (fault,) = all_faults(FAULTY["MANUAL_ASSIGNMENT"])
    assert fault.client_ids == ("c",)
    assert fault.evidence.startswith("c chooses queues by assign() or by the pull consumer")


def test_a_shared_id_is_told_so_that_a_tired_operator_understands() -> None:
    ids = {"10.0.2.10:43848": "10.0.2.10@app-DUP", "10.0.2.10:58238": "10.0.2.10@app-DUP"}
    members = [member(client_id=each, client_addr=address) for address, each in ids.items()]
    told = in_state(lists(*members, "10.0.2.9@app-1"), "DUPLICATE_CLIENT_ID")
    assert told.evidence == (
        "10.0.2.10@app-DUP is used by 2 processes, 10.0.2.10:43848 and 10.0.2.10:58238; both take "
        "queues 0-2 of broker-a; the share of the later copies (3 queues: queues 3-5 of broker-a) "
        "has no owner; no list shows yet that its connections stay: of one process that "
        "reconnected the old one goes within about 130 s"
    )
    assert told.remedy.startswith("give each process its own instanceName")
    assert "in place of app-DUP, which was set" in told.remedy
    moved = {move.queue.queue_id: (move.before, move.after) for move in told.moves}
    assert moved[0] == (("10.0.2.10@app-DUP",) * 2, ("10.0.2.10@app-DUP",))
    assert moved[3] == ((), ("10.0.2.10@app-DUP (process 2)",))


def twice(client_id: str, strategy: str | None = None) -> list[object]:
    return [
        member(client_id=client_id, client_addr=f"{client_id}:{port}", strategy=strategy)
        for port in (1, 2)
    ]


def test_a_shared_id_of_which_one_process_reconnects_has_two_causes_and_no_others() -> None:
    """Four connections of two processes: two slots are of old connections, one is shared."""
    members = [member(client_id="a", client_addr=f"a:{port}") for port in range(4)]
    state = replace(lists(*members, "b"), process_counts=(ProcessCount("a", 2, "they stay"),))
    faults = {each.fault for each in all_faults(Situation(state, PLAIN))}
    assert faults == {"DUPLICATE_CLIENT_ID", "STALE_CHANNEL"}


def test_each_shared_id_is_a_fault_of_its_own_with_its_own_queues() -> None:
    """Five slots for eight queues: a has the first two slots, b the next two, c the last."""
    of_a, of_b = all_faults(Situation(lists(*twice("a"), *twice("b"), "c"), PLAIN))
    assert (of_a.fault, of_a.client_ids) == ("DUPLICATE_CLIENT_ID", ("a",))
    assert of_a.client_addrs == ("a:1", "a:2")
    assert of_a.evidence == (
        "a is used by 2 processes, a:1 and a:2; both take queues 0-1 of broker-a; the share of the "
        "later copies (2 queues: queues 2-3 of broker-a) has no owner; no list shows yet that its "
        "connections stay: of one process that reconnected the old one goes within about 130 s"
    )
    assert "both take queues 4-5 of broker-a; the share of the later copies (1 " in of_b.evidence
    assert (of_a.queues_affected, of_b.queues_affected) == (4, 3)
    # What a repair does is told for all of them mended.
    assert (of_a.cleared, of_a.left, of_a.moves) == (7, 0, of_b.moves)


def test_each_old_connection_is_a_fault_of_its_own_with_the_queues_in_its_slot() -> None:
    """No two processes make such an id: slots 2 and 4 of five are old connections."""
    first, second = "10.0.0.1@1#123456789012345", "10.0.0.2@1#123456789012346"
    members = ["10.0.0.0@b", *twice(first), *twice(second)]
    situation = one_list_each({"broker-a": members, "broker-b": members}, queues=5)  # type: ignore[dict-item]
    of_first, of_second = all_faults(Situation(situation, PLAIN))
    assert (of_first.fault, of_first.client_ids) == ("STALE_CHANNEL", (first,))
    assert of_first.evidence.endswith("takes a slot; queue 2 of broker-a is taken by nobody")
    assert (of_second.client_ids, of_second.queues_affected) == ((second,), 1)


def test_the_moves_of_very_many_shared_ids_are_told_once() -> None:
    """Of a thousand ids, each with the moves of all of them, there would be a million."""

    def moves(number: int) -> list[int]:
        ids = [f"a{each:02}" for each in range(number)]
        members = [each for name in ids for each in twice(name)]
        of_all = one_list_each({"broker-a": members}, queues=22)  # type: ignore[dict-item]
        found = all_faults(Situation(of_all, PLAIN))
        assert [fault.client_ids for fault in found] == [(name,) for name in ids]
        return [len(fault.moves) for fault in found]

    assert moves(11) == [22] + 10 * [0]
    assert len(set(moves(10))) == 1


def test_different_filters_are_a_fault_without_a_finding() -> None:
    mixed = lists(member(client_id="a", expression="TAG a || b"), c(expression="TAG a"))
    assert evaluate(mixed, PLAIN).findings == ()
    (told,) = all_faults(Situation(mixed, PLAIN))
    assert told.fault == EXPRESSION_MISMATCH
    assert "c filters by TAG a" in told.evidence


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (("TAG", "a||b"), ("TAG", " b || a "), True),
        (("TAG", "*"), ("TAG", ""), True),
        (("TAG", "a || *"), ("TAG", "*"), True),
        (("TAG", None), (None, "*"), True),
        (("TAG", "a"), ("TAG", "a || b"), False),
        (("SQL92", "a > 1"), ("TAG", "a > 1"), False),
    ],
)
def test_filters_that_let_the_same_pass_are_the_same(
    one: tuple[str | None, str | None], other: tuple[str | None, str | None], same: bool
) -> None:
    assert (normalise_expression(*one) == normalise_expression(*other)) is same


ROOMS = {
    "broker_room_patterns": [{"pattern": ".*", "room": "room1"}],
    "client_room_patterns": [{"pattern": "a", "room": "room1"}, {"pattern": ".*", "room": "room2"}],
}


def of_languages(**languages: str) -> State:
    """Eight queues on the first of two brokers; a client of each language."""
    return lists(*[member(client_id=own, language=each) for own, each in languages.items()])


def served_rooms(*names: str, rooms: Sequence[str] = ("room1",), **versions: int) -> Situation:
    """Two queues on each broker; Java clients of these versions, or of client-go (0)."""
    members = [
        member(client_id=own, language="JAVA" if version else "GO", version=version)
        for own, version in versions.items()
    ]
    of_rooms = state(
        client_lists=lists_of(dict.fromkeys(names, members)),
        topic_routes=(route_of(names, read_queue_nums=2),),
    )
    return Situation(of_rooms, all_use("MACHINE_ROOM", consumeridcs=list(rooms)))


OF_GO = "AVG or AVG_BY_CIRCLE, which client-go computes as Java does"

_NEARBY = all_use("MACHINE_ROOM_NEARBY-AVG", **ROOMS)
_IN_BYTES = lists("\U0001f600", member(client_id="\uff21", language="CPP"), "a")
MIXED: dict[str, tuple[Situation, str, str]] = {
    "the rings differ": (
        Situation(of_languages(a="JAVA", b="GO", c="JAVA"), all_use("CONSISTENT_HASH")),
        "a and c use CONSISTENT_HASH; b uses CONSISTENT_HASH of client-go; ",
        OF_GO,
    ),
    "more of client-go": (
        Situation(of_languages(a="GO", b="GO", c="JAVA"), all_use("CONSISTENT_HASH")),
        "a and b use CONSISTENT_HASH of client-go; c uses CONSISTENT_HASH; ",
        OF_GO,
    ),
    "client-go has no nearby": (
        Situation(of_languages(a="JAVA", b="GO", c="GO"), _NEARBY),
        "b and c use AVG; a uses MACHINE_ROOM_NEARBY-AVG; ",
        OF_GO,
    ),
    "client-cpp has avg alone": (
        Situation(of_languages(a="JAVA", b="CPP", c="GO"), all_use("AVG_BY_CIRCLE")),
        "a and c use AVG_BY_CIRCLE; b uses AVG; ",
        "AVG, the only one that client-cpp has",
    ),
    "they sort otherwise": (
        Situation(_IN_BYTES, PLAIN),
        "a and \U0001f600 use AVG; \uff21 uses AVG of clients that sort bytewise; ",
        "AVG, the only one that client-cpp has; "
        "name clients and brokers in ASCII, which all SDKs sort alike",
    ),
    "they split rooms otherwise": (
        served_rooms("room1@w", "room1@x@", "room1@y", a=401, b=0, c=401),
        "a and c use MACHINE_ROOM; b uses MACHINE_ROOM of client-go; ",
        OF_GO,
    ),
}


@pytest.mark.parametrize("mixed", MIXED)
def test_sdks_that_compute_a_name_otherwise_are_a_strategy_mismatch(mixed: str) -> None:
    situation, evidence, remedy = MIXED[mixed]
    assert evaluate(situation.state, situation.rules).coverage == "AUDITED"
    (told,) = all_faults(situation)
    assert told.fault == "STRATEGY_MISMATCH"
    assert told.evidence.startswith(evidence)
    assert told.remedy == f"give all members of the group the same strategy: {remedy}"
    assert told.cleared > 0
    assert told.left == 0


@pytest.mark.parametrize("name", ["AVG", "AVG_BY_CIRCLE"])
def test_sdks_that_compute_the_same_need_no_repair(name: str) -> None:
    situation = Situation(of_languages(a="JAVA", b="GO", c="JAVA", d="GO"), all_use(name))
    assert evaluate(situation.state, situation.rules).findings == ()
    assert REPAIRS["STRATEGY_MISMATCH"](situation) is situation


@pytest.mark.parametrize(("version", "update"), [(371, True), (0, False)])
def test_an_unserved_room_takes_the_place_of_others_of_old(version: int, update: bool) -> None:
    (told,) = all_faults(served_rooms("room1@x", "room2@y", rooms=["room2"], a=version, b=version))
    assert told.fault == "ROOM_NOT_SERVED"
    variant = "Java before 4.8.0" if update else "client-go"
    # They take the two queues of room1, where the current client takes those of room2.
    assert told.evidence == (
        f"a and b use MACHINE_ROOM of {variant}, whose blocks are cut from the queues of all "
        "rooms: those of a room that no member serves take the place of others: queues 0-1 of "
        "room2@y are taken by nobody"
    )
    assert (told.client_ids, told.broker_names, told.left) == (("a", "b"), ("room2@y",), 0)
    # The room that is left out on purpose is not what is to be mended.
    assert told.remedy == (
        "update a and b to 4.8.0 or later, which divides the queues of consumeridcs alone"
        if update
        else "give a and b another strategy, or all rooms: client-go has no other MACHINE_ROOM"
    )


def test_what_is_left_out_and_what_it_displaces_are_two_things() -> None:
    left_out = served_rooms("room1@x", "room2@y", "room3@z", rooms=["room2"], a=371, b=371)
    (told,) = all_faults(left_out)
    assert "take the place of others: queues 0-1 of room2@y are taken by nobody; " in told.evidence
    assert told.evidence.endswith("these brokers: queues 0-1 of room3@z are taken by nobody")
    assert told.remedy.startswith("update a and b to 4.8.0 or later")
    assert "; if the room should be served" in told.remedy


def test_a_room_that_is_left_out_and_displaces_nothing_is_no_matter_of_versions() -> None:
    (told,) = all_faults(served_rooms("room1@x", "room2@y", a=371, b=371))
    assert (told.client_ids, told.broker_names) == ((), ("room2@y",))
    assert "4.8.0" not in told.evidence + told.remedy


def test_a_repair_of_some_clients_leaves_the_others_their_sdk() -> None:
    members = [member(client_id="a"), member(client_id="b", language="CPP")]
    mixed = Situation(one_list(members), all_use("MACHINE_ROOM", consumeridcs=["room1"]))
    repaired = REPAIRS["ROOM_NOT_SERVED"](mixed)
    assert repaired is not mixed
    used = [p.strategy.strategy for p in find_processes(repaired.state, repaired.rules)]
    assert [each.name for each in used if each] == ["MACHINE_ROOM", "AVG"]


def test_an_old_machine_room_among_current_ones_needs_its_rooms_served() -> None:
    # One strategy for both would give room2 back its owner, and take room1's queue from its own.
    (told,) = all_faults(served_rooms("room1@x", "room2@y", rooms=["room2"], a=401, b=371))
    assert (told.fault, told.left) == ("ROOM_NOT_SERVED", 0)


def test_of_two_variants_as_many_use_javas_current_one_is_chosen() -> None:
    mixed = Situation(of_languages(a="GO", b="JAVA"), all_use("CONSISTENT_HASH"))
    unified = REPAIRS["STRATEGY_MISMATCH"](mixed)
    used = {p.strategy.strategy for p in find_processes(unified.state, unified.rules)}
    assert [each.full_name for each in used if each] == ["CONSISTENT_HASH"]


MEMBERS = st.builds(
    lambda kind, **told: member(
        **told, is_expired=kind == "silent", chooses_queues=kind == "chooses"
    ),
    kind=st.sampled_from(["plain"] * 6 + ["silent", "chooses"]),
    client_id=st.sampled_from(["a", "b", "c", "\uff21", "\U0001f600"]),
    subscribed=st.sampled_from([True, True, True, False]),
    strategy=st.sampled_from([None, "AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH"]),
    message_model=st.sampled_from(["CLUSTERING"] * 5 + ["BROADCASTING"]),
    language=st.sampled_from(["JAVA", "JAVA", "GO", "CPP", None]),
)
AT_A, AT_B = (st.lists(MEMBERS, min_size=least, max_size=5) for least in (1, 0))
LISTS = st.fixed_dictionaries({"broker-a": AT_A, "broker-b": AT_B})
STATES = st.builds(one_list_each, LISTS, st.integers(1, 9))


@given(STATES)
def test_applying_a_named_cure_always_clears_its_finding(any_state: State) -> None:
    situation = Situation(any_state, PLAIN)
    evaluation = evaluate(any_state, PLAIN)
    causes = find_causes(situation, evaluation)
    for finding in evaluation.findings:
        for cure in causes.cures[finding.kind, finding.queue]:
            if cure == (UNEXPLAINED,):
                continue
            repaired = apply_repairs(situation, cure)
            after = evaluate(repaired.state, repaired.rules)
            assert after.coverage == "AUDITED"
            assert (finding.kind, finding.queue) not in {(f.kind, f.queue) for f in after.findings}


@given(STATES)
def test_every_fault_of_any_state_is_described(any_state: State) -> None:
    for fault in all_faults(Situation(any_state, PLAIN)):
        assert fault.evidence
        assert fault.remedy


def test_of_what_several_ids_compute_in_order_the_lock_lets_one_read() -> None:
    """Processes of one id have one lock, and read a queue twice all the same."""
    plain = FAULTY["STRATEGY_MISMATCH"]
    in_order = replace(plain, state=replace(plain.state, locks_at_master=True))
    told, said = (faults_of(each)["STRATEGY_MISMATCH"].evidence for each in (plain, in_order))
    assert "taken by several" in told
    assert "lock" not in told
    assert "computed by several; the lock lets one of them read" in said
    assert "taken by several" not in said
    shared = replace(FAULTY_STATES["DUPLICATE_CLIENT_ID"], locks_at_master=True)
    assert "both take queues 0-2" in in_state(shared, "DUPLICATE_CLIENT_ID").evidence


def test_routes_that_differ_and_show_on_no_queue_say_what_a_client_would_lack() -> None:
    """Once a group: its own retry topic has the same brokers."""
    routes = (route_of("xy"), replace(route_of("x"), namesrv_addr="ns-2"))
    alike = state(client_lists=lists_of({"x": "ab", "y": "ab"}), topic_routes=routes)
    assert in_state(alike, "ROUTE_DIVERGENCE").evidence.endswith(
        "no queue of the group shows it today: a client that starts with ns-2 reads nothing of y"
    )
    retry = replace(alike, topic=f"%RETRY%{alike.consumer_group}")
    assert "ROUTE_DIVERGENCE" not in faults_of(Situation(retry, PLAIN))
