"""What holds of the strategies whatever the queues and the client ids."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalance_core import make_strategy, sort_client_ids, sort_message_queues
from rebalance_core.strategy import AllocationStrategy
from tests.support.generators import (
    ROOMS,
    distinct_client_ids,
    message_queues,
    rooms_of,
    stacked_client_ids,
)

BALANCED = ("AVG", "AVG_BY_CIRCLE")
INNER = (*BALANCED, "CONSISTENT_HASH")


@st.composite
def any_strategy(draw: st.DrawFn, queues, client_ids) -> AllocationStrategy:
    plain = st.sampled_from(INNER).map(make_strategy)
    machine_room = st.just(make_strategy("MACHINE_ROOM", {"consumeridcs": ROOMS}))
    config = st.just(make_strategy("CONFIG", {"config_queues": queues[::2]}))
    return draw(st.one_of(plain, machine_room, config, nearby(queues, client_ids)))


@st.composite
def nearby(draw: st.DrawFn, queues, client_ids) -> AllocationStrategy:
    params = {
        "broker_room": draw(rooms_of(sorted({queue.broker_name for queue in queues}))),
        "client_room": draw(rooms_of(sorted(set(client_ids)))),
    }
    return make_strategy(f"MACHINE_ROOM_NEARBY-{draw(st.sampled_from(INNER))}", params)


def owners(strategy, queues, client_ids) -> Counter:
    """How many clients take each queue, where every entry of ``client_ids`` is a process."""
    allocated = strategy.allocate_all("G", queues, client_ids)
    return Counter(queue for client_id in client_ids for queue in allocated[client_id])


def assert_exact_cover(strategy, expected, queues, client_ids) -> None:
    taken = owners(strategy, queues, client_ids)
    assert taken == Counter(expected), f"{strategy.name}: {taken} of {queues} by {client_ids}"


@pytest.mark.parametrize("name", INNER)
@given(queues=message_queues(), client_ids=distinct_client_ids())
def test_distinct_clients_take_every_queue_exactly_once(name, queues, client_ids) -> None:
    assert_exact_cover(make_strategy(name), queues, queues, client_ids)


@pytest.mark.parametrize("name", BALANCED)
@given(queues=message_queues(), client_ids=distinct_client_ids())
def test_no_client_takes_two_queues_more_than_another(name, queues, client_ids) -> None:
    sizes = [len(own) for own in make_strategy(name).allocate_all("G", queues, client_ids).values()]
    assert max(sizes) - min(sizes) <= 1, f"{sizes} of {queues} by {client_ids}"


@given(
    queues=message_queues(),
    client_ids=distinct_client_ids(),
    rooms=st.sets(st.sampled_from(ROOMS)),
)
def test_machine_room_covers_just_the_queues_of_its_rooms(queues, client_ids, rooms) -> None:
    in_room = {f"{room}@b{number}" for room in rooms for number in range(4)}
    expected = [queue for queue in queues if queue.broker_name in in_room]
    strategy = make_strategy("MACHINE_ROOM", {"consumeridcs": rooms})
    assert_exact_cover(strategy, expected, queues, client_ids)
    sizes = [len(own) for own in strategy.allocate_all("G", queues, client_ids).values()]
    assert max(sizes) - min(sizes) <= 1


@given(st.data(), message_queues(), distinct_client_ids())
def test_nearby_takes_every_queue_once_when_all_rooms_are_known(data, queues, client_ids) -> None:
    assert_exact_cover(data.draw(nearby(queues, client_ids)), queues, queues, client_ids)


@given(st.data(), message_queues(), stacked_client_ids())
def test_the_order_of_the_lists_does_not_matter(data, queues, client_ids) -> None:
    strategy = data.draw(any_strategy(queues, client_ids))
    expected = strategy.allocate_all("G", queues, client_ids)
    shuffled = data.draw(st.permutations(queues)), data.draw(st.permutations(client_ids))
    assert strategy.allocate_all("G", *shuffled) == expected


@given(st.data(), message_queues(), stacked_client_ids())
def test_claims_agree_with_what_is_allocated(data, queues, client_ids) -> None:
    strategy = data.draw(any_strategy(queues, client_ids))
    queues, client_ids = sort_message_queues(queues), sort_client_ids(client_ids)
    allocated = strategy.allocate_all("G", queues, client_ids)
    claims = strategy.claims(tuple(queues), tuple(client_ids))
    assert all(positions.dtype == "int64" for positions in claims.values())
    assert {own: [queues[p] for p in taken] for own, taken in claims.items()} == allocated


def slot_queues(name: str, queues, slot: int, count: int) -> set:
    """The queues of one slot, by the formula of the Java class, in order."""
    if name == "AVG_BY_CIRCLE":
        return {queue for index, queue in enumerate(queues) if index % count == slot}
    rest = len(queues) % count
    takes_one_more = rest > 0 and slot < rest
    size = 1 if len(queues) <= count else len(queues) // count + int(takes_one_more)
    start = slot * size if takes_one_more else slot * size + rest
    span = min(size, len(queues) - start)
    return {queues[(start + index) % len(queues)] for index in range(span)}


@pytest.mark.parametrize("name", BALANCED)
@given(queues=message_queues(), client_ids=stacked_client_ids())
def test_a_stacked_id_orphans_later_slots_and_doubles_its_first(name, queues, client_ids) -> None:
    queues, client_ids = sort_message_queues(queues), sort_client_ids(client_ids)
    taken = owners(make_strategy(name), queues, client_ids)
    orphans, duplicates = set(), set()
    for slot, client_id in enumerate(client_ids):
        own = slot_queues(name, queues, slot, len(client_ids))
        if client_ids.index(client_id) < slot:
            orphans |= own
        elif client_ids.count(client_id) > 1:
            duplicates |= own
    assert {queue for queue in queues if taken[queue] == 0} == orphans
    assert {queue for queue in queues if taken[queue] > 1} == duplicates


@given(queues=message_queues(), client_ids=stacked_client_ids())
def test_a_stacked_id_orphans_nothing_on_the_ring(queues, client_ids) -> None:
    taken = owners(make_strategy("CONSISTENT_HASH"), queues, client_ids)
    assert all(taken[queue] >= 1 for queue in queues)
