"""Changes that an operator plans: each as what it makes of a state, and as steps."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalance_core import (
    REPAIRS,
    AllocationError,
    Change,
    ChangeError,
    Member,
    Situation,
    State,
    StrategyRule,
    StrategyRules,
    add_broker,
    apply_change,
    evaluate,
    join,
    leave,
    mend,
    remove_broker,
    resize,
    separate_ids,
    subscribe_all,
    unify_list,
    use_strategy,
    what_if,
)
from rebalance_core.changes import make_plan
from rebalance_core.errors import near_names
from rebalance_core.processes import find_processes
from rebalance_core.repairs import give_separate_ids
from rebalance_core.state import ProcessCount
from rebalance_core.strategy import copy_id
from tests.support.generators import client_ids, distinct_client_ids
from tests.support.snapshots import (
    client_list,
    faulty_queues,
    member,
    one_list,
    one_list_each,
    queue,
    route,
    route_broker,
    route_of,
    state,
    two_processes_share_one_client_id,
)

PLAIN = StrategyRules()


def situation(of: State, rules: StrategyRules = PLAIN) -> Situation:
    return Situation(of, rules)


def changed(of: State, *changes: Change, rules: StrategyRules = PLAIN) -> Situation:
    there = situation(of, rules)
    for change in changes:
        there = apply_change(there, change)
    return there


def after(of: State, *changes: Change, rules: StrategyRules = PLAIN) -> dict[str, list[list[int]]]:
    """By client id the queue ids that each of its processes takes when the changes are done."""
    done = changed(of, *changes, rules=rules)
    taken: dict[str, list[list[int]]] = {}
    for allocation in evaluate(done.state, done.rules).allocations:
        numbers = [each.queue_id for each in allocation.queues]
        taken.setdefault(allocation.client_id, []).extend([numbers] * allocation.processes)
    return taken


def ids(of: Situation) -> list[str]:
    """The clients of each list, whose ids are a letter each."""
    return ["".join(each.client_id for each in entry.members) for entry in of.state.client_lists]


@pytest.mark.parametrize(
    ("client_ids", "changes", "taken"),
    [
        ("abc", [leave("b")], {"a": [[0, 1, 2]], "c": [[3, 4, 5]]}),
        # Of two processes with one id one leaves.
        ("aab", [leave("a")], {"a": [[0, 1, 2]], "b": [[3, 4, 5]]}),
        ("aab", [leave("a"), leave("a")], {"b": [[0, 1, 2, 3, 4, 5]]}),
        # Two processes that join with one id take the same.
        ("c", [join("a"), join("a")], {"a": [[0, 1], [0, 1]], "c": [[4, 5]]}),
        ("a", [resize(1)], {"a": [[0]]}),
        ("a", [resize(8)], {"a": [[0, 1, 2, 3, 4, 5, 6, 7]]}),
    ],
)
def test_when_a_change_is_done_the_queues_are_shared_anew(
    client_ids: str, changes: list[Change], taken: dict[str, list[list[int]]]
) -> None:
    assert after(one_list(client_ids, queues=6), *changes) == taken


def test_with_the_last_process_of_an_id_its_stale_channel_goes() -> None:
    reconnected = one_list_each({"broker-a": "aab", "broker-b": "ab"})
    assert ids(changed(reconnected, leave("a"))) == ["b", "b"]


def test_when_the_last_leaves_every_broker_says_so() -> None:
    done = changed(one_list_each({"broker-a": "a", "broker-b": "a"}), leave("a")).state
    assert done.client_lists == ()
    assert set(done.offline_brokers) == {("broker-a", 0), ("broker-b", 0)}
    assert faulty_queues(evaluate(done, PLAIN), "ORPHANED") == [0, 1, 2, 3]


def test_a_client_that_joins_does_not_take_after_one_that_does_not_subscribe() -> None:
    there = one_list([member(client_id="a", subscribed=False), "b"])
    assert after(there, join("c")) == {"a": [[]], "b": [[2]], "c": [[3]]}


def test_who_joins_takes_after_its_own_id_before_others_and_never_after_a_broadcaster() -> None:
    def joined(client_id: str, *there: Member) -> tuple[str | None, str | None, str, bool | None]:
        new = changed(one_list(there), join(client_id)).state.client_lists[0].members[-1]
        assert (new.client_id, new.subscribed) == (client_id, True)
        return new.strategy, new.language, new.message_model, new.is_expired

    a = member(client_id="a", strategy="AVG", language="GO")
    ghost = member(client_id="b", strategy="AVG_BY_CIRCLE", is_expired=True)
    reader = member(client_id="0", strategy="CONFIG", message_model="BROADCASTING")
    assert joined("b", a, ghost) == ("AVG_BY_CIRCLE", "JAVA", "CLUSTERING", None)
    assert joined("c", ghost, a, reader) == ("AVG", "GO", "CLUSTERING", None)
    assert joined("c", reader)[::2] == (None, "CLUSTERING")


def test_who_joins_a_group_that_is_offline_is_listed_by_every_broker() -> None:
    offline = state(client_lists=(), offline_brokers=(("broker-a", 0), ("broker-a", 1)))
    for times, listed in ((1, "a"), (2, "aa")):
        done = changed(offline, *[join("a")] * times)
        assert ids(done) == [listed, listed]
        assert done.state.offline_brokers == ()
        assert len({m.client_addr for m in done.state.client_lists[0].members}) == times


@given(distinct_client_ids(), client_ids)
def test_who_joins_and_leaves_was_never_there(there: list[str], new: str) -> None:
    before = situation(one_list_each({"broker-a": there, "broker-b": there}))  # type: ignore[dict-item]
    if new not in there:
        assert apply_change(apply_change(before, join(new)), leave(new)) == before


@given(distinct_client_ids(min_size=2), st.data())
def test_who_leaves_and_joins_takes_what_it_took(there: list[str], data: st.DataObject) -> None:
    before = situation(one_list_each({"broker-a": there, "broker-b": there}))  # type: ignore[dict-item]
    chosen = data.draw(st.sampled_from(there))
    again = apply_change(apply_change(before, leave(chosen)), join(chosen))
    assert evaluate(again.state, PLAIN).allocations == evaluate(before.state, PLAIN).allocations
    assert evaluate(again.state, PLAIN).findings == evaluate(before.state, PLAIN).findings


@given(st.integers(2, 4), st.integers(1, 3), st.sets(st.integers(0, 5)))
def test_separate_ids_step_by_step_are_the_repair(of_a: int, of_b: int, done: set[int]) -> None:
    before = situation(one_list_each({x: ["a"] * of_a + ["b"] * of_b for x in ("x", "y")}))  # type: ignore[misc]
    change = separate_ids()
    whole = apply_change(before, change)
    repaired = give_separate_ids(before)
    assert [sorted(each) for each in ids(whole)] == [sorted(each) for each in ids(repaired)]
    steps = change.steps(before)
    assert [step.text for step in steps] == [
        f"process {number} of {client_id} has its own id"
        for client_id, processes in (("a", of_a), ("b", of_b))
        for number in range(processes, 1, -1)
    ]
    partly = before
    for number in sorted(done & set(range(len(steps)))):
        partly = steps[number].apply(partly)
    # Every step parts one process: no two of them have one new id.
    members = partly.state.client_lists[0].members
    renamed = [each.client_id for each in members if "\0" in each.client_id]
    assert len(renamed) == len(set(renamed)) == len(done & set(range(len(steps))))


def test_with_each_process_that_has_a_separate_id_one_less_is_counted() -> None:
    counted = (ProcessCount("a", 4, "they stay"),)
    there = situation(replace(one_list(["a"] * 4), process_counts=counted))
    steps, found = separate_ids().steps(there), []
    for step in steps:
        there = step.apply(there)
        found.append([each.processes for each in there.state.process_counts])
    # One process alone needs no count.
    assert found == [[3], [2], []]


def b_by_circle(rules: StrategyRules | None = None) -> Situation:
    members = ["a", member(client_id="b", strategy="AVG_BY_CIRCLE")]
    return situation(one_list(members), rules or StrategyRules([StrategyRule(".*", "AVG")]))


def test_every_client_uses_one_strategy_and_only_those_that_use_another_are_steps() -> None:
    of = b_by_circle()
    taken = after(of.state, use_strategy("AVG_BY_CIRCLE"), rules=of.rules)
    assert taken == {"a": [[0, 2]], "b": [[1, 3]]}
    assert [step.text for step in use_strategy("AVG").steps(of)] == ["b uses AVG"]


def test_a_strategy_of_one_client_says_nothing_of_the_others() -> None:
    # Were it an observed one, those of which nothing was observed would be taken to use it too.
    nobody_was_seen = situation(one_list("ab"))
    of_b = use_strategy("AVG_BY_CIRCLE").steps(nobody_was_seen)[1]
    assert strategies(of_b.apply(nobody_was_seen)) == {"a": "AVG", "b": "AVG_BY_CIRCLE"}


def test_a_strategy_has_parameters_of_its_own_or_those_of_the_rules() -> None:
    lists = {"config_queues": [["T", "broker-a", 3]]}
    assert after(one_list("a"), use_strategy("CONFIG", lists)) == {"a": [[3]]}
    rules = StrategyRules([StrategyRule(".*", "CONFIG", params=lists)])
    observed = one_list([member(client_id="a", strategy="AVG")])
    assert after(observed, use_strategy("CONFIG"), rules=rules) == {"a": [[3]]}


def test_a_strategy_means_what_the_clients_sdk_computes() -> None:
    cpp = one_list("ab", language="CPP")
    assert use_strategy("CONSISTENT_HASH").steps(situation(cpp)) == ()


def filters(of: Situation) -> list[tuple[str, bool, str | None]]:
    (entry,) = of.state.client_lists
    return [(m.client_id, m.subscribed, m.expression) for m in entry.members]


def test_all_members_subscribe_by_the_filter_of_most() -> None:
    mixed = one_list(
        [
            *[member(client_id=each, expression="TAG x") for each in "ab"],
            member(client_id="c", expression="TAG y"),
            member(client_id="d", subscribed=False),
            member(client_id="e", subscribed=False, chooses_queues=True),
        ]
    )
    done = changed(mixed, subscribe_all())
    assert filters(done) == [*[(each, True, "TAG x") for each in "abcd"], ("e", False, None)]
    assert subscribe_all().steps(done) == ()


def test_the_filter_of_most_is_that_of_those_that_subscribe_and_each_client_is_a_step() -> None:
    subscribed = [member(client_id=own, expression=f"TAG {tag}") for own, tag in ("dz", "cz", "by")]
    others = [member(client_id=own, subscribed=False, expression="TAG x") for own in "aef"]
    mixed = situation(one_list([*subscribed, *others]))
    steps = subscribe_all().steps(mixed)
    assert [step.text.split()[0] for step in steps] == ["a", "b", "e", "f"]
    expected = [*[(own, True, "TAG z") for own in "dcb"], *[(own, False, "TAG x") for own in "aef"]]
    assert filters(steps[1].apply(mixed)) == expected


def test_a_broker_that_listed_members_before_it_had_queues_lists_them_once() -> None:
    there = one_list_each({"broker-a": "ab"})
    of_c = replace(there.client_lists[0], broker_name="broker-c")
    listing = replace(there, client_lists=(*there.client_lists, of_c))
    assert ids(changed(listing, add_broker("broker-c", 1))) == ["ab", "ab"]
    offline = state(client_lists=(), offline_brokers=(("broker-a", 0),))
    assert changed(offline, add_broker("broker-c", 1)).state.client_lists == ()
    for change in (add_broker("broker-c", 1), remove_broker("broker-a")):
        with pytest.raises(ChangeError):
            change.steps(situation(state(topic_routes=())))


def test_a_new_broker_has_queues_and_lists_every_member() -> None:
    there = one_list_each({"broker-a": "ab", "broker-b": "abb"})
    done = changed(there, add_broker("broker-c", 3)).state
    (of_new,) = (e for e in done.client_lists if e.broker_name == "broker-c")
    assert sorted(each.client_id for each in of_new.members) == ["a", "b", "b"]
    assert evaluate(done, PLAIN).queues == evaluate(there, PLAIN).queues + 3


def test_a_new_broker_is_a_step_for_each_nameserver() -> None:
    routes = tuple(route(route_broker(), namesrv_addr=name) for name in ("ns-1", "ns-2"))
    told = what_if(situation(state(topic_routes=routes)), [add_broker("broker-c", 4)])
    assert len(told.steps) == 2
    assert told.rollout.harmed == 2  # the nameservers differ until both know


@pytest.mark.parametrize(
    ("change", "left"),
    [
        (remove_broker("broker-b"), {"broker-a": 4}),
        (resize(6, "broker-b"), {"broker-a": 4, "broker-b": 6}),
    ],
)
def test_one_broker_alone_goes_or_grows(change: Change, left: dict[str, int]) -> None:
    there = state(topic_routes=(route_of(["broker-a", "broker-b"]),))
    (given,) = changed(there, change).state.topic_routes
    assert {each.broker_name: each.read_queue_nums for each in given.brokers} == left


def test_only_what_differs_from_the_plan_is_a_step() -> None:
    brokers = [
        route_broker(broker_name=name, read_queue_nums=read, write_queue_nums=write)
        for name, read, write in (("c", 8, 8), ("b", 4, 8), ("a", 4, 4), ("none", 0, 0))
    ]
    there = situation(
        state(
            client_lists=(client_list("x", "y"), client_list("x", broker_name="b", broker_id=1)),
            topic_routes=(route(*brokers, namesrv_addr="ns-1"), route(namesrv_addr="ns-2")),
        )
    )

    def texts(change: Change) -> list[str]:
        return [step.text for step in change.steps(there)]

    assert texts(resize(4)) == ["b has 4 queues", "c has 4 queues"]
    assert texts(resize(4, "none")) == ["none has 4 queues"]
    assert texts(remove_broker("c")) == ["ns-1 gives no c"]
    assert texts(unify_list("b")) == ["b (slave 1) lists every member"]
    assert texts(leave("x")) == ["x has left"]
    assert resize(100_000).steps(there)
    assert resize(0).steps(there)


def test_only_members_that_take_queues_are_steps_of_a_strategy() -> None:
    members = [
        member(client_id="b"),
        member(client_id="a"),
        member(client_id="other", subscribed=False),
        member(client_id="reader", message_model="BROADCASTING"),
    ]
    steps = use_strategy("AVG_BY_CIRCLE").steps(situation(one_list(members)))
    assert [step.text for step in steps] == ["a uses AVG_BY_CIRCLE", "b uses AVG_BY_CIRCLE"]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (leave("a"), "a leaves"),
        (join("a"), "a joins"),
        (separate_ids(), "every process of the group has its own id"),
        (use_strategy("AVG"), "every client uses AVG"),
        (resize(3), "every broker has 3 queues of the topic"),
        (resize(3, "x"), "x has 3 queues of the topic"),
        (unify_list("x"), "x lists every member"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_change_is_told_in_words(change: Change, text: str) -> None:
    assert change.text == text


def test_one_brokers_list_is_completed() -> None:
    there = one_list_each({"broker-a": "ab", "broker-b": "a", "broker-c": "b"})
    assert ids(changed(there, unify_list("broker-b"))) == ["ab", "ab", "b"]
    # Who reaches that broker now still does not reach the other one.
    cut_off = replace(there, unreachable=(("b", "broker-b"), ("a", "broker-c")))
    done = changed(cut_off, unify_list("broker-b")).state
    assert done.unreachable == (("a", "broker-c"),)


def test_a_fault_is_mended_as_its_repair_does() -> None:
    faulty = situation(two_processes_share_one_client_id())
    assert apply_change(faulty, mend("DUPLICATE_CLIENT_ID")) == give_separate_ids(faulty)
    assert mend("ROUTE_DIVERGENCE").steps(faulty) == ()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (leave("10.0.0.2@app"), "did you mean '10.0.0.1@app'"),
        (add_broker("broker-a", 1), "expected the name of a new broker, came 'broker-a'"),
        (remove_broker("broker-b"), "did you mean 'broker-a'"),
        (resize(1, "broker-b"), "did you mean 'broker-a'"),
        (unify_list("broker-b"), "did you mean 'broker-a'"),
    ],
)
def test_what_is_not_there_is_an_error_that_names_what_is(change: Change, said: str) -> None:
    with pytest.raises(ChangeError, match=said):
        change.steps(situation(one_list([member()])))


@pytest.mark.parametrize(
    "make",
    [
        lambda: join(""),
        lambda: add_broker("b", 0),
        lambda: resize(-1),
        lambda: resize(10**9),
        lambda: mend("DUPLICATE_CLIENT"),
    ],
)
def test_a_change_that_makes_no_sense_is_refused_at_once(make: object) -> None:
    with pytest.raises(ChangeError, match="expected"):
        make()  # type: ignore[operator]


@pytest.mark.parametrize(
    ("name", "params"), [("AVERAGE", None), ("MACHINE_ROOM_NEARBY-AVG", {"room": "x"})]
)
def test_a_strategy_that_there_is_not_is_refused_at_once(name: str, params: object) -> None:
    with pytest.raises(AllocationError):
        use_strategy(name, params)  # type: ignore[arg-type]


def test_a_strategy_whose_parameters_nobody_knows_is_not_guessed() -> None:
    told = what_if(situation(one_list(["a"])), [use_strategy("MACHINE_ROOM")])
    assert told.after.coverage == "STRATEGY_NOT_KNOWN"
    assert not told.comparable
    assert told.moves == ()


def test_nothing_to_do_is_the_very_same_situation() -> None:
    healthy = situation(one_list([member(client_id="a", expression="TAG *")]))
    changes = [separate_ids(), subscribe_all(), unify_list("broker-a"), resize(4)]
    for change in [*changes, *map(mend, REPAIRS)]:
        assert apply_change(healthy, change) is healthy, change.text
    assert queue(0) in {q for a in evaluate(healthy.state, PLAIN).allocations for q in a.queues}


@pytest.mark.parametrize("name", ["x", "another"])
def test_few_names_are_listed_of_many(name: str) -> None:
    listed = near_names(name, [f"group-{n}" for n in range(9)])
    assert listed.startswith("there are 'group-0', ")
    assert listed.endswith("and 4 more")


def members_of(of: Situation) -> list[str]:
    return sorted(each.client_id for each in of.state.members)


def test_a_stale_channel_goes_with_the_last_copy() -> None:
    # Three connections, two processes: the third is stale, and stays with one of them.
    lists = one_list_each({"x": "aaa", "y": "aa"})
    own = copy_id("a", 1)
    of_x, of_y = changed(lists, separate_ids()).state.client_lists
    assert sorted(each.client_id for each in of_x.members) == ["a", own, own]
    assert sorted(each.client_id for each in of_y.members) == ["a", own]


# ------------------------------------------------------------------ who joins after other changes


def strategies(of: Situation) -> dict[str, str]:
    processes = find_processes(of.state, of.rules)
    return {p.client_id: p.strategy.strategy.name for p in processes if p.strategy.strategy}


@pytest.mark.parametrize("before", [["AVG_BY_CIRCLE"], ["CONSISTENT_HASH", "AVG_BY_CIRCLE"]])
def test_who_joins_starts_with_the_strategy_that_the_last_change_gives(before: list[str]) -> None:
    plan = make_plan(situation(one_list("ab")), [*map(use_strategy, before), join("c")])
    assert [step.text for step in plan.steps][-1] == "c has joined"
    assert strategies(plan.after) == dict.fromkeys("abc", "AVG_BY_CIRCLE")
    # Also where it is the first of the steps that is done: it is deployed with the new settings.
    alone = plan.steps[-1].apply(situation(one_list("ab")))
    assert strategies(alone) == {"a": "AVG", "b": "AVG", "c": "AVG_BY_CIRCLE"}


def test_who_joins_uses_it_though_nobody_else_had_to_change() -> None:
    """A rule of the settings that names the clients that are there does not name the new one."""
    rules = StrategyRules([StrategyRule(".*", "AVG_BY_CIRCLE", "[ab]")])
    there = situation(one_list("ab"), rules)
    assert strategies(make_plan(there, [join("c")]).after)["c"] == "AVG"
    plan = make_plan(there, [use_strategy("AVG_BY_CIRCLE"), join("c")])
    assert [step.text for step in plan.steps] == ["c has joined"]
    assert strategies(plan.after)["c"] == "AVG_BY_CIRCLE"


@pytest.mark.parametrize(
    ("there", "changes", "copies", "others"),
    [
        ("aab", [separate_ids(), join("a"), join("c")], 2, ["b", "c"]),
        ("a", [join("a"), separate_ids(), join("a"), join("a")], 3, []),
    ],
)
def test_who_joins_after_separate_ids_has_a_separate_one(
    there: str, changes: list[Change], copies: int, others: list[str]
) -> None:
    plan = make_plan(situation(one_list(there)), changes)
    separate = [copy_id("a", copy) for copy in range(1, copies + 1)]
    assert members_of(plan.after) == ["a", *separate, *others]
    evaluation = evaluate(plan.after.state, PLAIN)
    assert (evaluation.processes, evaluation.findings) == (1 + copies + len(others), ())


UNIQUE = "10.0.0.1@1#123456789012345"


def test_a_second_process_of_an_id_with_a_start_time_is_one_process_more() -> None:
    """Such an id twice in a list is one process that reconnected: but here a process joins."""
    there = one_list([UNIQUE, "z"], queues=6)
    twice = {UNIQUE: [[0, 1], [0, 1]], "z": [[4, 5]]}
    assert after(there, join(UNIQUE)) == twice
    assert after(there, join(UNIQUE), join(UNIQUE), leave(UNIQUE)) == twice
    assert after(there, join(UNIQUE), leave(UNIQUE)) == after(there)
    apart = after(there, join(UNIQUE), separate_ids())
    assert apart == {UNIQUE: [[0, 1]], copy_id(UNIQUE, 1): [[2, 3]], "z": [[4, 5]]}
