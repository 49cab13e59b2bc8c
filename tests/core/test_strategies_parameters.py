"""What make_strategy refuses, and how it says so."""

from __future__ import annotations

import pytest

from rebalance_core import (
    AllocationError,
    InvalidParameterError,
    MissingParameterError,
    UnknownStrategyError,
    make_strategy,
)
from rebalance_core.strategy_factory import JAVA_CLASSES, STRATEGIES

NEARBY = "MACHINE_ROOM_NEARBY-AVG"
PLAIN = ("AVG", "AVG_BY_CIRCLE", "CONFIG", "CONSISTENT_HASH", "MACHINE_ROOM")


@pytest.mark.parametrize("inner", PLAIN)
def test_nearby_names_what_it_wraps(inner) -> None:
    params = {"broker_room": {}, "client_room": {}}
    params |= {"consumeridcs": []} if inner == "MACHINE_ROOM" else {}
    params |= {"config_queues": []} if inner == "CONFIG" else {}
    name = f"MACHINE_ROOM_NEARBY-{inner}"
    assert make_strategy(name, params).name == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        "avg",
        "MACHINE_ROOM_NEARBY",
        f"MACHINE_ROOM_NEARBY-{NEARBY}",
        f"{NEARBY[:-3]}STICKY",
        None,
    ],
)
def test_an_unknown_name_is_refused_with_the_names_there_are(name) -> None:
    with pytest.raises(UnknownStrategyError, match=r"unknown strategy .*AVG_BY_CIRCLE"):
        make_strategy(name)


def test_a_negative_number_of_points_fails_with_javas_text() -> None:
    with pytest.raises(AllocationError) as raised:
        make_strategy("CONSISTENT_HASH", {"virtual_node_count": -1})
    assert str(raised.value) == "illegal virtualNodeCnt :-1"


@pytest.mark.parametrize(
    ("name", "params", "message"),
    [
        ("AVG", {"virtual_node_count": 10}, "unknown parameters 'virtual_node_count'.*: none"),
        ("CONSISTENT_HASH", {"virtual_nodes": 1}, "accepted: virtual_node_count"),
        (NEARBY, {"consumeridcs": []}, "accepted: broker_room, .*client_room_patterns"),
        ("AVG", [], "params: expected a table"),
        ("CONSISTENT_HASH", {"virtual_node_count": "10"}, "expected a whole number.*'10' .str."),
        ("CONSISTENT_HASH", {"virtual_node_count": True}, "expected a whole number"),
        ("CONSISTENT_HASH", {"virtual_node_count": 2**31}, "expected a whole number"),
        ("MACHINE_ROOM", {"consumeridcs": "IDC1"}, "expected a list of room names"),
        ("MACHINE_ROOM", {"consumeridcs": [1]}, "expected a list of room names"),
        ("MACHINE_ROOM", {"consumeridcs": ["IDC1", 1]}, "expected a list of room names"),
        ("MACHINE_ROOM", {"consumeridcs": 1}, "expected a list of room names"),
        ("CONFIG", {"config_queues": "T"}, "config_queues: expected a list"),
        ("CONFIG", {"config_queues": [["T", "b", 0], ["T", "b"]]}, r"config_queues\[1\]"),
        ("CONFIG", {"config_queues": [["T", "b", "0"]]}, r"config_queues\[0\]"),
        ("CONFIG", {"config_queues": [["T", None, 0]]}, r"config_queues\[0\]"),
        ("CONFIG", {"config_queues": ["Tb0"]}, r"config_queues\[0\]"),
        (NEARBY, {"broker_room": []}, "broker_room: expected a table"),
        (NEARBY, {"client_room": {"x": 1}}, r"client_room\['x'\]: expected the name of a room"),
        (NEARBY, {"client_room_patterns": {}}, "client_room_patterns: expected a list"),
        (NEARBY, {"client_room_patterns": ["x"]}, r"client_room_patterns\[0\]: expected a table"),
        (NEARBY, {"broker_room_patterns": [{"room": "r"}]}, "expected a table with the keys"),
        (NEARBY, {"broker_room_patterns": [{"pattern": "x", "rom": "r"}]}, "with the keys"),
        (NEARBY, {"broker_room_patterns": [{"pattern": 1, "room": "r"}]}, "regular expression"),
        (NEARBY, {"broker_room_patterns": [{"pattern": "x", "room": 1}]}, "name of a room"),
        (NEARBY, {"broker_room_patterns": [{"pattern": "(", "room": "r"}]}, r"got '\('"),
        (NEARBY, {"broker_room_patterns": [{"pattern": "x"}]}, 'a group named "room"'),
        (NEARBY, {"broker_room_patterns": [{"pattern": "(?P<room>x)", "room": "r"}]}, "either"),
    ],
)
def test_a_bad_parameter_is_refused_with_what_was_expected(name, params, message) -> None:
    with pytest.raises(InvalidParameterError, match=message) as raised:
        make_strategy(name, params)
    assert str(raised.value).startswith(f"{name}: ")


@pytest.mark.parametrize(
    ("name", "params", "message"),
    [
        (NEARBY, None, "needs rooms"),
        (NEARBY, {"broker_room": None}, "needs rooms"),
        ("MACHINE_ROOM_NEARBY-MACHINE_ROOM", {"broker_room": {}}, "needs consumeridcs"),
        ("MACHINE_ROOM_NEARBY-CONFIG", {"broker_room": {}}, "needs config_queues"),
    ],
)
def test_what_java_could_not_do_without_is_asked_for(name, params, message) -> None:
    with pytest.raises(MissingParameterError, match=message):
        make_strategy(name, params)


def test_every_strategy_has_a_java_class_of_its_own() -> None:
    """Else a group whose running infos show it would be STRATEGY_NOT_KNOWN."""
    assert sorted(JAVA_CLASSES.values()) == sorted([*STRATEGIES, "MACHINE_ROOM_NEARBY"])
