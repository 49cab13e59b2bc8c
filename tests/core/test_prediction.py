"""What changes would do: moves, and the states that lie in between."""

from __future__ import annotations

from collections import Counter
from dataclasses import astuple, replace
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalance_core import (
    Change,
    ChangeError,
    Situation,
    State,
    StrategyRule,
    StrategyRules,
    apply_change,
    evaluate,
    join,
    leave,
    moves_by_client,
    remove_broker,
    resize,
    separate_ids,
    subscribe_all,
    use_strategy,
    what_if,
    what_if_of_group,
)
from rebalance_core.division import Move
from rebalance_core.prediction import MOST_STATES, StateBetween, Ways, _parts
from tests.support.generators import client_ids, distinct_client_ids
from tests.support.snapshots import (
    member,
    one_list,
    one_list_each,
    queue,
    route,
    route_broker,
    route_of,
)

AVG = StrategyRules([StrategyRule(".*", "AVG")])


def plain(*clients: str, queues: int = 8) -> Situation:
    return Situation(one_list(list(clients), queues=queues), AVG)


def healthy_states() -> st.SearchStrategy[State]:
    """Distinct clients, all of which every broker lists."""
    return st.builds(
        lambda clients, queues: one_list_each(dict.fromkeys(["x", "y"], clients), queues=queues),
        distinct_client_ids(min_size=2, max_size=6),
        st.integers(1, 12),
    )


def changes_of(state: State) -> st.SearchStrategy[Change]:
    there = sorted({m.client_id for m in state.client_lists[0].members})
    return st.one_of(
        st.sampled_from(there).map(leave),
        client_ids.filter(lambda client_id: client_id not in there).map(join),
        st.sampled_from(["AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH"]).map(use_strategy),
        st.integers(1, 14).map(resize),
        st.just(separate_ids()),
        st.just(subscribe_all()),
    )


@given(healthy_states())
def test_no_change_moves_nothing_and_is_safe(state: State) -> None:
    for changes in ([], [separate_ids()], [use_strategy("AVG")], [resize(_queues(state))]):
        told = what_if(Situation(state, AVG), changes)
        assert told.moves == ()
        assert told.before == told.after
        assert told.safe
        assert told.settling.worst is None


def _queues(state: State) -> int:
    return state.topic_routes[0].brokers[0].read_queue_nums


@given(healthy_states(), st.data())
def test_between_healthy_states_every_queue_that_moves_goes_from_one_to_one(
    state: State, data: st.DataObject
) -> None:
    told = what_if(Situation(state, AVG), [data.draw(changes_of(state))])
    assert not told.before.findings
    assert not told.after.findings
    both = _owned(told.before) & _owned(told.after)
    for move in told.moves:
        if move.queue in both:
            assert len(move.before) == len(move.after) == 1, move
            assert move.before != move.after
        else:  # a queue that comes or goes
            assert {len(move.before), len(move.after)} == {0, 1}, move
    gives = Counter(q for gives, _ in moves_by_client(told.moves).values() for q in gives)
    takes = Counter(q for _, takes in moves_by_client(told.moves).values() for q in takes)
    assert set(gives.values()) | set(takes.values()) <= {1}
    assert set(gives) == {move.queue for move in told.moves if move.before}
    assert set(takes) == {move.queue for move in told.moves if move.after}


def _owned(evaluation: object) -> set[object]:
    return {q for allocation in evaluation.allocations for q in allocation.queues}  # type: ignore[attr-defined]


@given(healthy_states(), st.data())
def test_the_worst_while_clients_find_out_is_that_of_all_ways_to_know_or_not(
    state: State, data: st.DataObject
) -> None:
    """Against a plain enumeration, over sets of queues."""
    told = what_if(Situation(state, AVG), [data.draw(changes_of(state))])
    old = {a.client_id: set(a.queues) for a in told.before.allocations}
    new = {a.client_id: set(a.queues) for a in told.after.allocations}
    both = _owned(told.before) & _owned(told.after)
    clients = sorted(new)
    worst = 0
    for size in range(0 if old.keys() - new.keys() else 1, len(clients)):
        for know in combinations(clients, size):
            owners = Counter(
                queue
                for client in clients
                for queue in (new if client in know else old).get(client, ())
            )
            several = {queue for queue, number in owners.items() if number > 1}
            worst = max(worst, len(several | {queue for queue in both if not owners[queue]}))
    found = told.settling.worst
    assert (found.queues_wrong if found else 0) == worst


def test_a_strategy_rolled_out_client_by_client_is_not_safe() -> None:
    told = what_if(plain("a", "b", "c", "d"), [use_strategy("AVG_BY_CIRCLE")])
    assert not told.new_findings
    assert not told.safe
    assert told.rollout.exhaustive
    assert told.rollout.states == told.rollout.looked_at == 2**4 - 2
    # The worst of them all, counted by hand of every subset through the evaluation itself.
    worst = 0
    for size in (1, 2, 3):
        for done in combinations("abcd", size):
            of_each = {each: "AVG_BY_CIRCLE" if each in done else "AVG" for each in "abcd"}
            members = [member(client_id=each, strategy=of) for each, of in of_each.items()]
            findings = evaluate(one_list(members, queues=8), AVG).findings
            worst = max(worst, len({finding.queue for finding in findings}))
    assert told.rollout.worst is not None
    assert told.rollout.worst.queues_wrong == worst > 0


def test_separate_ids_one_by_one_only_make_it_better() -> None:
    told = what_if(plain("a", "a", "a", "b"), [separate_ids()])
    assert len(told.steps) == 2
    assert told.safe
    assert told.before.findings
    assert not told.after.findings


def test_a_second_process_of_an_id_is_a_new_finding() -> None:
    told = what_if(plain("a", "b"), [join("a")])
    assert {finding.kind for finding in told.after.findings} == {"DUPLICATE", "ORPHANED"}
    assert told.new_findings
    assert not told.safe
    assert told.rollout.states == 0


def test_who_leaves_is_gone_before_the_others_know() -> None:
    settling = what_if(plain("a", "b", queues=4), [leave("b")]).settling
    assert settling.worst == StateBetween((), (), (queue(2), queue(3)))
    assert settling.harmed == settling.states == 1


def test_each_process_knows_or_does_not_and_all_ways_are_counted() -> None:
    """All that know are the state after; none, with nobody gone, the state before."""
    leaving = what_if(plain("a", "b", "c", "d", queues=9), [leave("a")]).settling
    assert (leaving.states, leaving.looked_at) == (2**3 - 1, 2**3 - 1)
    joining = what_if(plain("b", "c", "d", queues=9), [join("a")]).settling
    assert (joining.states, joining.looked_at) == (2**4 - 2, 2**4 - 2)
    assert what_if(plain("a", "a", "b"), [leave("b")]).settling.states == 2**2 - 1
    nothing_to_give = what_if(plain("a", "b", queues=1), [leave("b")]).settling
    assert (nothing_to_give.states, nothing_to_give.worst) == (0, None)


def test_what_was_wrong_before_is_not_laid_to_the_change() -> None:
    told = what_if(plain("a", "a", "b"), [leave("b")])
    assert {finding.queue.queue_id for finding in told.before.findings} == {0, 1, 2, 3, 4, 5}
    # Of the states that are as bad that in which fewest know.
    assert told.settling.worst == StateBetween((), (), (queue(6), queue(7)))


def test_of_many_steps_the_first_in_their_order_are_looked_at() -> None:
    every = tuple(range(6))
    assert _parts(every, 40) == [every[:size] for size in range(1, 6)]
    assert _parts(every, 2) == [every[:1], every[:3]]
    assert _parts(every, 40, fewest=0) == [every[:size] for size in range(6)]
    assert len(set(_parts(every[:5], 30))) == 2**5 - 2
    assert len(set(_parts(every[:5], 31, fewest=0))) == 2**5 - 1


def test_who_keeps_a_queue_neither_gives_nor_takes_it() -> None:
    moves = [
        Move(*astuple(queue(0)), ("z", "c", "b"), ("b", "z")),
        Move(*astuple(queue(1)), ("a", "a"), ("a",)),
        Move(*astuple(queue(2)), (), ("z",)),
    ]
    expected = [("a", ([queue(1)], [])), ("c", ([queue(0)], [])), ("z", ([], [queue(2)]))]
    assert list(moves_by_client(moves).items()) == expected


def test_what_is_not_known_before_or_after_is_not_compared() -> None:
    unknown = use_strategy("MACHINE_ROOM")
    not_known = plain("a", "b")
    for step in unknown.steps(not_known):
        not_known = step.apply(not_known)
    for of, change in ((plain("a", "b"), unknown), (not_known, use_strategy("AVG"))):
        told = what_if(of, [change])
        assert not told.comparable
        assert (told.moves, told.settling) == ((), Ways(0, 0, 0, None))
    assert what_if(plain("a", "b"), [leave("a")]).comparable


def test_changes_are_made_in_their_order() -> None:
    changes = [join("c"), leave("b"), use_strategy("AVG_BY_CIRCLE")]
    told = what_if(plain("a", "b", queues=4), changes)
    taken = {a.client_id: [q.queue_id for q in a.queues] for a in told.after.allocations}
    assert taken == {"a": [0, 2], "c": [1, 3]}
    own = ("a uses AVG_BY_CIRCLE", "c uses AVG_BY_CIRCLE")
    assert told.steps == ("c has joined", "b has left", *own)


def test_of_too_many_states_only_some_are_looked_at_and_that_is_told() -> None:
    clients = [f"client-{number:02d}" for number in range(20)]
    told = what_if(plain(*clients, queues=60), [use_strategy("AVG_BY_CIRCLE")])
    for ways in (told.rollout, told.settling):
        assert not ways.exhaustive
        assert 0 < ways.looked_at <= MOST_STATES < ways.states
        assert ways.worst is not None
    # Of the queues that go from one client to the next each is wrong where every other one knows.
    told = what_if(plain(*clients, queues=60), [join("client-045")])
    assert told.settling.worst is not None
    assert not told.settling.exhaustive
    assert told.settling.worst.queues_wrong == len(told.moves) > 30


def test_a_strategy_is_rolled_out_to_thousands_of_clients() -> None:
    clients = [f"client-{number:04d}" for number in range(1_200)]
    changed = apply_change(plain(*clients), use_strategy("AVG_BY_CIRCLE"))
    taken = evaluate(changed.state, changed.rules).allocations
    assert {each.strategy for each in taken} == {"AVG_BY_CIRCLE"}


def test_a_growing_topic_orphans_no_queue_that_nobody_knows_of() -> None:
    told = what_if(plain("a", "b", queues=4), [resize(6)])
    assert told.seconds == 50
    assert told.settling.worst is not None
    assert {q.queue_id for q in told.settling.worst.orphans} <= {0, 1, 2, 3}


# ------------------------------------------------------------------ messages in queues that go


def test_queues_with_messages_must_not_go() -> None:
    fewer = [resize(4)]
    empty = {queue(number): 0 for number in range(8)}
    left = what_if(plain("a", "b"), fewer, empty | {queue(5): 3})
    assert left.queues_gone == tuple(queue(number) for number in range(4, 8))
    assert (left.messages_left, left.dangers) == ({queue(5): 3}, ("MESSAGES_LEFT",))
    # What lies in the queues that stay is consumed as before.
    assert what_if(plain("a", "b"), fewer, empty | {queue(0): 3}).safe


def test_queues_that_nobody_saw_the_offsets_of_are_not_safe_to_remove() -> None:
    seen = {queue(number): 0 for number in range(7)}
    for backlog in (None, seen):
        assert what_if(plain("a"), [resize(4)], backlog).dangers == ("BACKLOG_NOT_KNOWN",)
    assert what_if(plain("a"), [resize(7)], seen).dangers == ("BACKLOG_NOT_KNOWN",)
    assert what_if(plain("a"), [resize(9)]).safe


def test_what_some_nameserver_still_gives_is_not_gone() -> None:
    routes = (route(route_broker()), route(route_broker(read_queue_nums=2), namesrv_addr="ns-2"))
    state = replace(one_list(["a"]), topic_routes=routes)
    told = what_if(Situation(state, AVG), [resize(2)])
    assert told.queues_gone == (queue(2), queue(3))
    halfway = what_if(Situation(replace(state, topic_routes=routes[1:]), AVG), [resize(2)])
    assert halfway.queues_gone == ()


def test_what_cannot_be_computed_is_not_safe_but_what_is_not_divided_is() -> None:
    assert what_if(plain("a"), [use_strategy("MACHINE_ROOM")]).dangers == ("OWNERS_NOT_KNOWN",)
    everybody = one_list([member(client_id="a", message_model="BROADCASTING")])
    assert what_if(Situation(everybody, AVG), [leave("a")]).dangers == ("FINDINGS_AFTER",)
    two = one_list([member(client_id=each, message_model="BROADCASTING") for each in "ab"])
    assert what_if(Situation(two, AVG), [leave("a")]).safe


def test_a_change_that_is_done_already_is_safe_whatever_else_is_wrong() -> None:
    assert what_if(plain("a", "a"), [resize(8)]).safe


# ------------------------------------------------------------------ every topic of a group

RETRY = "%RETRY%G"


def group(*clients: str, **queues: int) -> dict[str, Situation]:
    """Of a group with these topics, each with so many queues, and its retry topic."""
    sizes = {"T": 8, RETRY: 1} | queues
    return {
        topic: Situation(replace(one_list(list(clients), queues=number), topic=topic), AVG)
        for topic, number in sizes.items()
    }


def test_who_leaves_leaves_every_topic() -> None:
    told = what_if_of_group(group("a", "b", U=6), [leave("b")])
    assert {topic: each.after.processes for topic, each in told.items()} == dict.fromkeys(told, 1)
    assert told.keys() == {"T", RETRY, "U"}
    assert all(each.safe for each in told.values())


def test_a_number_of_queues_is_not_meant_of_the_retry_topic() -> None:
    told = what_if_of_group(group("a", "b", U=6), [resize(12)])
    sizes = {topic: each.after.queues for topic, each in told.items()}
    assert sizes == {"T": 12, RETRY: 1, "U": 12}
    alone = {RETRY: group("a")[RETRY]}
    assert what_if_of_group(alone, [resize(2)])[RETRY].after.queues == 2


def test_a_topic_that_does_not_have_the_broker_stays_as_it_is() -> None:
    topics = group("a", "b")
    wider = replace(topics["T"].state, topic_routes=(route_of(["broker-a", "broker-b"]),))
    topics["T"] = Situation(wider, AVG)
    told = what_if_of_group(topics, [remove_broker("broker-b")])
    assert {topic: len(each.steps) for topic, each in told.items()} == {"T": 1, RETRY: 0}
    with pytest.raises(ChangeError, match="a broker of T, came 'broker-c'"):
        what_if_of_group(topics, [remove_broker("broker-c")])


def test_each_topic_has_its_own_backlog() -> None:
    empty = {queue(number): 0 for number in range(8)}
    told = what_if_of_group(group("a", U=8), [resize(4)], {"T": empty})
    assert {topic for topic, each in told.items() if each.safe} == {"T", RETRY}
