"""The strategies by worked examples: what each gives, and what each complains of."""

from __future__ import annotations

import hashlib
import pickle
from unittest.mock import patch

import pytest

from rebalance_core import (
    AllocationError,
    MessageQueue,
    MissingParameterError,
    make_strategy,
    sort_client_ids,
    sort_message_queues,
)
from rebalance_core.strategies import points_of
from rebalance_core.strategy import copy_id, original_id

ROOMS = {"broker_room": {"a": "room1", "b": "room2", "c": "room3"}, "client_room": {}}


def queues(count: int, *broker_names: str) -> list[MessageQueue]:
    names = broker_names or ("broker-a",)
    return [MessageQueue("T", name, number) for name in names for number in range(count)]


def taken(strategy, of_queues, client_ids) -> dict[str, list[str]]:
    allocated = strategy.allocate_all("G", of_queues, client_ids)
    return {
        client_id: [f"{queue.broker_name[-1]}{queue.queue_id}" for queue in own]
        for client_id, own in allocated.items()
    }


def test_the_ring_takes_text_that_is_not_valid_unicode() -> None:
    odd = [MessageQueue("\ud800", "b\udc00", 0), MessageQueue("\ud83d\ude00", "b", 0)]
    allocated = make_strategy("CONSISTENT_HASH").allocate_all("G", odd, ["\udfff", "x"])
    assert sorted(queue for own in allocated.values() for queue in own) == sort_message_queues(odd)


MD5 = hashlib.md5


def crowded_md5(data: bytes, **_: object) -> object:
    """Stands for MD5 with only sixteen different values, so that points collide all the time."""

    class Digest:
        def digest(self) -> bytes:
            full = MD5(data, usedforsecurity=False).digest()
            return bytes([0, 0, 0, full[0] % 16]) + full[4:]

    return Digest()


@pytest.mark.parametrize("ids", ["AAB", "AAAB", "ABBBC", "AABBCC", "AAABBBBCCC", "ABCDEFGH"])
def test_points_that_collide_go_to_the_later_id_and_are_not_counted(ids) -> None:
    def point(text: str) -> int:
        return MD5(text.encode(), usedforsecurity=False).digest()[0] % 16

    ring: dict[int, str] = {}
    for client_id in ids:
        existing = list(ring.values()).count(client_id)
        for replica in range(3):
            ring[point(f"{client_id}-{replica + existing}")] = client_id
    expected: dict[str, list[MessageQueue]] = {client_id: [] for client_id in ids}
    for queue in queues(12):
        after = [key for key in ring if key >= point(str(queue))]
        expected[ring[min(after or ring)]].append(queue)

    strategy = make_strategy("CONSISTENT_HASH", {"virtual_node_count": 3})
    points_of.cache_clear()
    with patch("hashlib.md5", crowded_md5):
        allocated = strategy.allocate_all("G", queues(12), list(ids))
    points_of.cache_clear()
    assert allocated == expected


@pytest.mark.parametrize(
    ("counts", "broker_names"),
    [
        # Java's split drops empty parts at the end; "@b" is the room "".
        (True, ["IDC1@b", "IDC1@b@", "IDC1@b@@", "@b"]),
        (False, ["IDC1@", "@", "IDC1", "IDC1@b@c", "IDC1@@b", "IDC2@b"]),
    ],
)
def test_machine_room_reads_the_room_as_java_splits(counts, broker_names) -> None:
    strategy = make_strategy("MACHINE_ROOM", {"consumeridcs": ["IDC1", ""]})
    for name in broker_names:
        taken = strategy.allocate("G", "x", queues(2, name), ["x"])
        assert len(taken) == (2 if counts else 0), name


def test_machine_room_without_rooms_fails_only_where_java_looks_at_them() -> None:
    strategy = make_strategy("MACHINE_ROOM", {"consumeridcs": None})
    assert strategy.allocate("G", "x", queues(2, "plain"), ["x"]) == []
    with pytest.raises(MissingParameterError, match=r"needs consumeridcs.*'IDC1@b'"):
        strategy.allocate("G", "x", queues(2, "IDC1@b"), ["x"])
    assert strategy.allocate("G", "y", queues(2, "IDC1@b"), ["x"]) == []


def test_config_returns_its_list_whatever_the_topic_has() -> None:
    listed = [["T", "z", 1], ["Other", "z", 0], MessageQueue("T", "z", 0), ["T", "z", 1]]
    strategy = make_strategy("CONFIG", {"config_queues": listed})
    expected = [MessageQueue(*each) if isinstance(each, list) else each for each in listed]
    assert strategy.allocate("G", None, None, None) == expected
    assert strategy.allocate_all("G", [], ["y", "x", "y"]) == {"x": expected, "y": expected}
    claims = strategy.claims(queues(4, "z"), ["x", "y", "y"])
    wanted = {"x": [1, 0], "y": [1, 0]}
    assert {own: positions.tolist() for own, positions in claims.items()} == wanted


@pytest.mark.parametrize("params", [None, {}, {"config_queues": None}])
def test_config_without_a_list_gives_nothing(params) -> None:
    strategy = make_strategy("CONFIG", params)
    assert strategy.allocate("G", "x", queues(1), ["x"]) == []
    assert strategy.claims([], []) == {}


def test_nearby_puts_the_unserved_rooms_in_javas_order() -> None:
    rooms = {"a": "\uff21", "b": "\U0001f600"}
    strategy = make_strategy(
        "MACHINE_ROOM_NEARBY-AVG", {"broker_room": rooms, "client_room": {"x": "room1"}}
    )
    assert taken(strategy, queues(1, "a", "b"), ["x"]) == {"x": ["b0", "a0"]}


def test_nearby_over_machine_room_leaves_the_other_rooms_to_nobody() -> None:
    strategy = make_strategy(
        "MACHINE_ROOM_NEARBY-MACHINE_ROOM",
        {
            "broker_room_patterns": [{"pattern": "(?P<room>.*)@.*"}],
            "client_room": {"x": "IDC1", "y": "IDC2"},
            "consumeridcs": ["IDC1"],
        },
    )
    of_queues = queues(2, "IDC1@a", "IDC2@b")
    assert taken(strategy, of_queues, ["x", "y"]) == {"x": ["a0", "a1"], "y": []}


def test_nearby_over_config_repeats_the_list_for_each_room_it_asks_for() -> None:
    strategy = make_strategy(
        "MACHINE_ROOM_NEARBY-CONFIG",
        {
            "broker_room": {"a": "room1", "b": "room2", "c": "room3"},
            "client_room": {"x": "room1", "y": "room9"},
            "config_queues": [["T", "b", 1], ["Other", "q", 0]],
        },
    )
    of_queues = queues(2, "a", "b", "c")
    # x asks for its own room and for two that nobody serves; y only for those two.
    assert taken(strategy, of_queues, ["x", "y"]) == {"x": ["b1", "q0"] * 3, "y": ["b1", "q0"] * 2}
    assert taken(strategy, queues(2, "a"), ["x", "y"]) == {"x": ["b1", "q0"], "y": []}
    claims = strategy.claims(of_queues, ["x", "y"])
    assert {own: positions.tolist() for own, positions in claims.items()} == {"x": [3], "y": [3]}
    assert strategy.claims(queues(2, "a"), ["x", "y"])["y"].tolist() == []


def test_a_room_by_name_wins_over_patterns_and_the_first_pattern_wins() -> None:
    strategy = make_strategy(
        "MACHINE_ROOM_NEARBY-AVG",
        {
            "broker_room": {"room2-b": "room1"},
            "broker_room_patterns": [
                {"pattern": "room3-.*", "room": "room1"},
                {"pattern": "(?P<room>room[0-9])-.*"},
            ],
            "client_room_patterns": [
                {"pattern": "x.*", "room": "room1"},
                {"pattern": ".*", "room": "room2"},
            ],
        },
    )
    of_queues = queues(1, "room1-a", "room2-b", "room2-c", "room3-d")
    assert taken(strategy, of_queues, ["x", "y"]) == {"x": ["a0", "b0", "d0"], "y": ["c0"]}


@pytest.mark.parametrize("room", [None, "", "absent"])
def test_nearby_names_the_first_queue_without_a_room_before_any_client(room) -> None:
    rooms = {"a": "room1"} | ({} if room == "absent" else {"b": room, "c": room})
    strategy = make_strategy("MACHINE_ROOM_NEARBY-AVG", {"broker_room": rooms, "client_room": {}})
    expected = "Machine room is null for mq MessageQueue [topic=T, brokerName=b, queueId=0]"
    for call in (
        lambda: strategy.allocate("G", "x", queues(2, "c", "b", "a"), ["x"]),
        lambda: strategy.allocate_all("G", queues(2, "c", "b", "a"), ["x"]),
        lambda: strategy.claims(queues(2, "a", "b", "c"), ["x"]),
    ):
        with pytest.raises(AllocationError) as raised:
            call()
        assert str(raised.value) == expected


def test_nearby_does_not_look_at_rooms_for_a_client_that_is_not_in_the_list() -> None:
    assert (
        make_strategy("MACHINE_ROOM_NEARBY-AVG", ROOMS).allocate("G", "y", queues(1), ["x"]) == []
    )


@pytest.mark.parametrize(
    ("client_id", "of_queues", "client_ids", "expected"),
    [
        ("", None, None, "currentCID is empty"),
        (None, [], [], "currentCID is empty"),
        ("x", None, None, "mqAll is null or mqAll empty"),
        ("x", [], ["x"], "mqAll is null or mqAll empty"),
        ("x", queues(1), None, "cidAll is null or cidAll empty"),
        ("x", queues(1), [], "cidAll is null or cidAll empty"),
    ],
)
def test_bad_lists_fail_in_javas_order_with_javas_text(
    client_id, of_queues, client_ids, expected
) -> None:
    with pytest.raises(AllocationError) as raised:
        make_strategy("AVG").allocate("G", client_id, of_queues, client_ids)
    assert str(raised.value) == expected


@pytest.mark.parametrize("name", ["AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH"])
def test_an_empty_id_takes_a_slot_and_has_no_entry(name) -> None:
    strategy = make_strategy(name)
    allocated = strategy.allocate_all("G", queues(8), ["x", ""])
    assert allocated == {"x": strategy.allocate("G", "x", queues(8), ["x", ""])}
    assert len(allocated["x"]) < 8
    with pytest.raises(AllocationError, match="currentCID is empty"):
        strategy.allocate_all("G", queues(8), ["", ""])


def test_the_given_lists_are_left_as_they_are() -> None:
    of_queues, ids = queues(3)[::-1], ["y", "x"]
    make_strategy("AVG").allocate_all("G", of_queues, ids)
    assert of_queues == queues(3)[::-1]
    assert ids == ["y", "x"]


def test_a_copy_with_an_id_of_its_own_sorts_behind_the_original_and_is_told_back() -> None:
    for client_id in ("10.0.0.1@1", "\x00", "x\x00y", ""):
        assert original_id(client_id) == copy_id(client_id, 0) == client_id
        copies = [copy_id(client_id, copy) for copy in (0, 1, 2, 10)]
        assert sort_client_ids(copies[::-1]) == copies
        assert {original_id(copy) for copy in copies} == {client_id}


def test_strategies_survive_pickling() -> None:
    strategy = make_strategy(
        "MACHINE_ROOM_NEARBY-AVG",
        {"broker_room_patterns": [{"pattern": ".*", "room": "r"}], "client_room": {"x": "r"}},
    )
    copy = pickle.loads(pickle.dumps(strategy))  # noqa: S301
    assert copy.name == strategy.name
    assert copy.allocate("G", "x", queues(1), ["x"]) == queues(1)
