"""What other SDKs and older clients compute under the names of Java's strategies."""

from __future__ import annotations

import pickle
from collections import Counter
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalance_core import MessageQueue, make_strategy, sort_client_ids, sort_message_queues
from rebalance_core.strategy import Sdk, sdk_of
from tests.support.generators import (
    ROOMS,
    distinct_client_ids,
    message_queues,
    stacked_client_ids,
)

OLD, GO, CPP = Sdk.JAVA_BEFORE_4_8_0, Sdk.GO, Sdk.CPP
#: Java's order is by UTF-16: the second comes first. Bytewise the first does.
HIGH, BEYOND = "\uff21", "\U0001f600"


def queues(count: int, *broker_names: str) -> list[MessageQueue]:
    return [MessageQueue("T", name, number) for name in broker_names for number in range(count)]


def taken(strategy, of_queues, client_ids) -> dict[str, list[str]]:
    allocated = strategy.allocate_all("G", of_queues, client_ids)
    return {
        client_id: [f"{queue.broker_name[-1]}{queue.queue_id}" for queue in own]
        for client_id, own in allocated.items()
    }


def claimed(strategy, of_queues, client_ids) -> dict[str, list[int]]:
    claims = strategy.claims(of_queues, client_ids)
    return {client_id: positions.tolist() for client_id, positions in claims.items()}


@pytest.mark.parametrize(
    ("language", "version", "sdk"),
    [
        ("JAVA", 0, OLD),
        ("JAVA", 372, OLD),  # 4.8.0-SNAPSHOT
        ("JAVA", 373, Sdk.JAVA),
        ("JAVA", None, Sdk.JAVA),
        (None, 300, Sdk.JAVA),
        ("GO", None, GO),
        ("GO", 453, GO),
        ("CPP", 300, CPP),
        ("PYTHON", 300, Sdk.JAVA),  # the binding over client-cpp says CPP
        ("RUST", None, Sdk.JAVA),
    ],
)
def test_language_and_version_tell_the_sdk(language, version, sdk) -> None:
    assert sdk_of(language, version) is sdk


# ---------------------------------------------------------------- MACHINE_ROOM


@pytest.mark.parametrize("sdk", [OLD, GO])
def test_the_old_machine_room_cuts_its_blocks_from_the_queues_of_all_rooms(sdk) -> None:
    strategy = make_strategy("MACHINE_ROOM", {"consumeridcs": ["IDC1"]}, sdk)
    # Five queues take part, two for each and one over; but the first four of all are not theirs.
    of_queues = queues(5, "IDC0@a", "IDC1@b")
    assert taken(strategy, of_queues, ["x", "y"]) == {"x": ["a0", "a1", "b4"], "y": ["a2", "a3"]}
    assert taken(strategy, of_queues, ["x", "x", "y"]) == {"x": ["a0", "b3"], "y": ["a2"]}


@pytest.mark.parametrize(
    ("counts", "broker_names"),
    [
        # Go keeps the empty part at the end: "IDC1@b@" has three. "@b" is the room "".
        (True, ["IDC1@b", "IDC1@", "@b", "@"]),
        (False, ["IDC1@b@", "IDC1", "IDC1@b@c", "IDC1@@b", "IDC2@b"]),
    ],
)
def test_client_go_reads_the_room_as_go_splits(counts, broker_names) -> None:
    strategy = make_strategy("MACHINE_ROOM", {"consumeridcs": ["IDC1", ""]}, GO)
    for name in broker_names:
        taken = strategy.allocate("G", "x", queues(2, name), ["x"])
        assert len(taken) == (2 if counts else 0), name


def test_client_go_takes_nothing_without_rooms_where_java_fails() -> None:
    strategy = make_strategy("MACHINE_ROOM", sdk=GO)
    assert claimed(strategy, queues(2, "IDC1@b"), ["x"]) == {"x": []}


@given(queues=message_queues(), client_ids=distinct_client_ids())
def test_the_old_machine_room_is_the_current_one_where_all_take_part(queues, client_ids) -> None:
    parameters = {"consumeridcs": ROOMS}
    queues = [queue for queue in queues if queue.broker_name.startswith(ROOMS)]
    queues = [queue for queue in queues if "@b" in queue.broker_name]
    queues = queues or [MessageQueue("T", "room1@b0", 0)]
    expected = make_strategy("MACHINE_ROOM", parameters).allocate_all("G", queues, client_ids)
    for sdk in (OLD, GO):
        strategy = make_strategy("MACHINE_ROOM", parameters, sdk)
        assert strategy.allocate_all("G", queues, client_ids) == expected


@given(
    queues=message_queues(),
    client_ids=distinct_client_ids(),
    rooms=st.sets(st.sampled_from(ROOMS)),
)
def test_the_old_machine_room_takes_as_many_and_none_twice(queues, client_ids, rooms) -> None:
    current = make_strategy("MACHINE_ROOM", {"consumeridcs": rooms})
    old = make_strategy("MACHINE_ROOM", {"consumeridcs": rooms}, OLD)
    of_current = current.allocate_all("G", queues, client_ids)
    of_old = old.allocate_all("G", queues, client_ids)
    assert {o: len(q) for o, q in of_old.items()} == {o: len(q) for o, q in of_current.items()}
    assert set(Counter(queue for own in of_old.values() for queue in own).values()) <= {1}


@pytest.mark.parametrize("sdk", [Sdk.JAVA, OLD, GO])
def test_a_room_served_too_is_served_by_the_same_variant(sdk) -> None:
    strategy = make_strategy("MACHINE_ROOM", {"consumeridcs": ["IDC1"]}, sdk).sorting_bytewise()
    serving = strategy.also_serving(["IDC0@a"])
    assert (type(serving), serving.variant) == (type(strategy), strategy.variant)
    assert serving.sorts_bytewise
    assert [serving.serves(name) for name in ("IDC0@a", "IDC1@b", "IDC2@c")] == [True, True, False]
    assert not strategy.serves("IDC0@a")
    of_queues = queues(2, "IDC0@a", "IDC1@b")
    assert taken(serving, of_queues, ["x", "y"]) == {"x": ["a0", "a1"], "y": ["b0", "b1"]}


def test_an_old_client_wraps_the_old_machine_room() -> None:
    params = {
        "consumeridcs": ["IDC1"],
        "broker_room_patterns": [{"pattern": ".*", "room": "r"}],
        "client_room_patterns": [{"pattern": ".*", "room": "r"}],
    }
    strategy = make_strategy("MACHINE_ROOM_NEARBY-MACHINE_ROOM", params, OLD)
    of_queues = queues(2, "IDC0@a", "IDC1@b")
    assert taken(strategy, of_queues, ["x", "y"]) == {"x": ["a0"], "y": ["a1"]}
    assert strategy.full_name == "MACHINE_ROOM_NEARBY-MACHINE_ROOM of Java before 4.8.0"


# ---------------------------------------------------------------- the ring of client-go


def crc32(text: str) -> int:
    """By the definition, bit by bit."""
    register = 0xFFFFFFFF
    for byte in text.encode():
        register ^= byte
        for _ in range(8):
            register = register >> 1 ^ (0xEDB88320 if register & 1 else 0)
    return register ^ 0xFFFFFFFF


def owner_on_gos_ring(queue: MessageQueue, client_ids: list[str], points: int) -> str:
    """As stathat.com/c/consistent finds it, one queue at a time."""
    circle = {}
    for client_id in sorted(client_ids):
        for number in range(points):
            circle[crc32(str(number) + client_id)] = client_id
    key = crc32(str(queue))
    return circle[min((point for point in circle if point > key), default=min(circle))]


def test_gos_ring_by_a_worked_vector() -> None:
    ids = ["10.0.0.1@1#1", "10.0.0.2@1#1", "10.0.0.3@1#1"]
    assert crc32("123456789") == 0xCBF43926
    assert crc32("0" + ids[0]) == 1694296556
    assert crc32(str(MessageQueue("T", "broker-a", 0))) == 290292470
    strategy = make_strategy("CONSISTENT_HASH", {"virtual_node_count": 10}, GO)
    expected = {ids[0]: ["a0", "a1", "b0", "b1"], ids[1]: ["a2", "a3"], ids[2]: ["b2", "b3"]}
    assert taken(strategy, queues(4, "broker-a", "broker-b"), ids) == expected
    assert taken(make_strategy("CONSISTENT_HASH"), queues(4, "broker-a"), ids)[ids[2]] == ["a1"]


@given(message_queues(max_size=8), stacked_client_ids(max_size=4), st.integers(1, 5))
def test_gos_ring_is_that_of_the_library(queues, client_ids, points) -> None:
    strategy = make_strategy("CONSISTENT_HASH", {"virtual_node_count": points}, GO)
    allocated = strategy.sorting_bytewise().allocate_all("G", queues, client_ids)
    assert {queue: own for own, each in allocated.items() for queue in each} == {
        queue: owner_on_gos_ring(queue, client_ids, points) for queue in queues
    }


@given(queues=message_queues(), client_ids=distinct_client_ids())
def test_on_gos_ring_a_copy_of_an_id_changes_nothing(queues, client_ids) -> None:
    strategy = make_strategy("CONSISTENT_HASH", sdk=GO)
    copies = [*client_ids, client_ids[0], client_ids[0]]
    assert strategy.allocate_all("G", queues, copies) == strategy.allocate_all(
        "G", queues, client_ids
    )


@pytest.mark.parametrize(
    ("of_x", "of_y", "owner"),
    [
        (1, 5, "y"),  # the next point owns
        (3, 5, "y"),  # the very point is passed by
        (1, 3, "x"),  # past the last is the first
        (5, 5, "y"),  # the later put wins
    ],
)
def test_where_points_fall_on_gos_ring(of_x, of_y, owner) -> None:
    hashes = {b"0x": of_x, b"0y": of_y}
    strategy = make_strategy("CONSISTENT_HASH", {"virtual_node_count": 1}, GO)
    with patch("rebalance_core.strategies.crc32", lambda text: hashes.get(text, 3)):
        found = claimed(strategy, queues(1, "a"), ["x", "y"])
    assert found == {"x": [], "y": []} | {owner: [0]}


@pytest.mark.parametrize("count", [0, -1])
def test_gos_ring_without_points_gives_nothing(count) -> None:
    strategy = make_strategy("CONSISTENT_HASH", {"virtual_node_count": count}, GO)
    assert claimed(strategy, queues(2, "a"), ["x", "y"]) == {"x": [], "y": []}


# ---------------------------------------------------------------- other names, the same names


@pytest.mark.parametrize(
    ("sdk", "name", "params"),
    [
        (GO, "MACHINE_ROOM_NEARBY", {"anything": 1}),
        (GO, "MACHINE_ROOM_NEARBY-CONSISTENT_HASH", {"anything": 1}),
        *[(CPP, name, None) for name in ("AVG", "CONSISTENT_HASH", "MACHINE_ROOM", "com.Mine")],
    ],
)
def test_what_an_sdk_does_not_have_is_plain_avg_and_needs_no_parameters(sdk, name, params) -> None:
    strategy = make_strategy(name, params, sdk)
    assert strategy.full_name == "AVG"
    assert claimed(strategy, queues(3, "a"), ["x", "y"]) == {"x": [0, 1], "y": [2]}


@pytest.mark.parametrize(
    ("name", "sdk", "full_name"),
    [
        ("CONSISTENT_HASH", Sdk.JAVA, "CONSISTENT_HASH"),
        ("CONSISTENT_HASH", OLD, "CONSISTENT_HASH"),
        ("CONSISTENT_HASH", GO, "CONSISTENT_HASH of client-go"),
        ("MACHINE_ROOM", Sdk.JAVA, "MACHINE_ROOM"),
        ("MACHINE_ROOM", OLD, "MACHINE_ROOM of Java before 4.8.0"),
        ("MACHINE_ROOM", GO, "MACHINE_ROOM of client-go"),
        ("AVG_BY_CIRCLE", GO, "AVG_BY_CIRCLE"),
        ("CONFIG", GO, "CONFIG"),
    ],
)
def test_the_full_name_tells_the_variants_apart(name, sdk, full_name) -> None:
    strategy = make_strategy(name, sdk=sdk)
    assert (strategy.name, strategy.full_name) == (name, full_name)
    assert full_name in repr(strategy)
    assert pickle.loads(pickle.dumps(strategy)).full_name == full_name  # noqa: S301


# ---------------------------------------------------------------- bytewise order


def test_clients_that_sort_bytewise_have_other_slots() -> None:
    strategy = make_strategy("AVG")
    ids = [BEYOND, HIGH]
    assert sort_client_ids([HIGH, BEYOND]) == ids
    assert claimed(strategy, queues(4, "a"), ids) == {BEYOND: [0, 1], HIGH: [2, 3]}
    bytewise = strategy.sorting_bytewise()
    assert claimed(bytewise, queues(4, "a"), ids) == {BEYOND: [2, 3], HIGH: [0, 1]}
    assert bytewise.full_name == "AVG of clients that sort bytewise"
    assert not strategy.sorts_bytewise


def test_clients_that_sort_bytewise_have_the_brokers_in_another_order() -> None:
    of_queues = queues(2, BEYOND, HIGH)
    assert sort_message_queues(of_queues[::-1]) == of_queues
    bytewise = make_strategy("AVG").sorting_bytewise()
    assert claimed(bytewise, of_queues, ["x", "y"]) == {"x": [2, 3], "y": [0, 1]}
    assert bytewise.allocate("G", "x", of_queues, ["x", "y"]) == of_queues[2:]


def renamed(queues, client_ids) -> tuple[list[MessageQueue], list[str], dict[MessageQueue, int]]:
    """The lists under ASCII names that stand in the order of the bytes of the real ones."""

    def by_bytes(texts) -> dict[str, str]:
        distinct = sorted(set(texts), key=lambda text: text.encode("utf-8"))
        return {text: f"{number:04d}" for number, text in enumerate(distinct)}

    topics, brokers = by_bytes(q.topic for q in queues), by_bytes(q.broker_name for q in queues)
    ids = by_bytes(client_ids)
    plain = [MessageQueue(topics[q.topic], brokers[q.broker_name], q.queue_id) for q in queues]
    places = {queue: number for number, queue in enumerate(plain)}
    return plain, [ids[client_id] for client_id in client_ids], places


@pytest.mark.parametrize("name", ["AVG", "AVG_BY_CIRCLE"])
@given(queues=message_queues(), client_ids=stacked_client_ids())
def test_bytewise_is_what_plain_names_in_that_order_give(name, queues, client_ids) -> None:
    queues, client_ids = sort_message_queues(queues), sort_client_ids(client_ids)
    plain_queues, plain_ids, places = renamed(queues, client_ids)
    strategy = make_strategy(name)
    expected = strategy.allocate_all("G", plain_queues, plain_ids)
    assert claimed(strategy.sorting_bytewise(), queues, client_ids) == {
        client_id: [places[queue] for queue in expected[plain_id]]
        for client_id, plain_id in zip(client_ids, plain_ids, strict=True)
    }


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("AVG", None),
        ("AVG_BY_CIRCLE", None),
        ("CONFIG", {"config_queues": [["T", "b", 1], ["T", "a", 0]]}),
        ("MACHINE_ROOM", {"consumeridcs": ["IDC1"]}),
        ("CONSISTENT_HASH", None),
    ],
)
@pytest.mark.parametrize("sdk", [Sdk.JAVA, GO])
def test_on_ordinary_names_the_order_changes_nothing(name, params, sdk) -> None:
    strategy = make_strategy(name, params, sdk)
    of_queues, ids = queues(3, "IDC1@c", "a", "b", "\uff21"), ["10.0.0.1@1", "10.0.0.1@1", "\u00e9"]
    assert claimed(strategy.sorting_bytewise(), of_queues, ids) == claimed(strategy, of_queues, ids)
