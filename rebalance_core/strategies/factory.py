"""From a name and parameters, as settings hold them, to a strategy: everything is checked here."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from rebalance_core.errors import InvalidParameterError, MissingParameterError, UnknownStrategyError
from rebalance_core.message_queue import MessageQueue
from rebalance_core.strategies.averagely import Averagely, AveragelyByCircle
from rebalance_core.strategies.base import AllocationStrategy
from rebalance_core.strategies.by_config import ByConfig
from rebalance_core.strategies.by_machine_room import (
    ByMachineRoom,
    GoMachineRoom,
    MachineRoomUnfiltered,
)
from rebalance_core.strategies.consistent_hash import (
    DEFAULT_VIRTUAL_NODE_COUNT,
    ConsistentHash,
    GoConsistentHash,
)
from rebalance_core.strategies.machine_room_nearby import MachineRoomNearby, RoomPattern, Rooms
from rebalance_core.strategies.sdk import Sdk
from rebalance_core.texts import Text

_NEARBY_PREFIX = "MACHINE_ROOM_NEARBY-"
_ROOM_KEYS = ("broker_room", "broker_room_patterns", "client_room", "client_room_patterns")

#: The parameters that each strategy uses.
_ACCEPTED: Mapping[str, tuple[str, ...]] = {
    "AVG": (),
    "AVG_BY_CIRCLE": (),
    "CONFIG": ("config_queues",),
    "CONSISTENT_HASH": ("virtual_node_count",),
    "MACHINE_ROOM": ("consumeridcs",),
}
_JAVA_INT_MAX = 2**31 - 1


def make_strategy(
    name: str, params: Mapping[str, Any] | None = None, sdk: Sdk = Sdk.JAVA
) -> AllocationStrategy:
    """The strategy of that name (Java's ``getName()``), with its parameters.

    Of another SDK it is what that SDK computes under the name; where that is another strategy
    (``Sdk.strategy_name``) the parameters are not looked at.

    Parameters, each only for the strategy that uses it:

    - CONSISTENT_HASH: ``virtual_node_count``, points per client id (default 10).
    - CONFIG: ``config_queues``, a list of MessageQueue or [topic, broker name, queue id].
    - MACHINE_ROOM: ``consumeridcs``, the rooms whose queues are shared out.
    - MACHINE_ROOM_NEARBY-<inner>: ``broker_room`` by broker name and ``client_room`` by client
      id (null or "" is no room); ``broker_room_patterns`` and ``client_room_patterns``, lists of
      {"pattern": ..., "room": ...} for names not listed, where the pattern must match the whole
      name and may have a group named ``room`` instead of the key; and what the inner one uses.

    Raises UnknownStrategyError for another name; InvalidParameterError for an unknown key, a
    wrong type or a bad expression; MissingParameterError where Java's constructor throws a
    NullPointerException, and for a nearby MACHINE_ROOM without ``consumeridcs``, which in Java
    fails later and for some clients only; AllocationError for a negative
    ``virtual_node_count``, with Java's text.

    >>> make_strategy("CONSISTENT_HASH", {"virtual_node_count": 3}).name
    'CONSISTENT_HASH'
    >>> make_strategy(
    ...     "MACHINE_ROOM_NEARBY-AVG",
    ...     {
    ...         "broker_room_patterns": [{"pattern": "(?P<room>room[0-9])-.*"}],
    ...         "client_room_patterns": [{"pattern": "10[.]1[.].*", "room": "room1"}],
    ...     },
    ... ).name
    'MACHINE_ROOM_NEARBY-AVG'
    """
    if (other := sdk.strategy_name(name)) != name:
        return make_strategy(other)
    given = _checked_params(name, params)
    inner_name = name.removeprefix(_NEARBY_PREFIX)
    is_nearby = inner_name != name
    accepted = (*_ROOM_KEYS, *_ACCEPTED[inner_name]) if is_nearby else _ACCEPTED[inner_name]
    unknown = [key for key in given if key not in accepted]
    if unknown:
        listed = ", ".join(accepted) or "none"
        raise InvalidParameterError(
            f"{name}: unknown parameters {', '.join(map(repr, unknown))}; accepted: {listed}"
        )
    inner = _make_plain(inner_name, given, sdk)
    return _make_nearby(name, inner, given) if is_nearby else inner


def _checked_params(name: str, params: Mapping[str, Any] | None) -> Mapping[str, Any]:
    if not isinstance(name, str) or name.removeprefix(_NEARBY_PREFIX) not in _ACCEPTED:
        raise UnknownStrategyError(
            Text(
                "unknown strategy {name}: expected one of {names}, or {prefix} before one of them",
                name=repr(name),
                names=", ".join(_ACCEPTED),
                prefix=_NEARBY_PREFIX,
            )
        )
    if params is None:
        return {}
    if not isinstance(params, Mapping):
        raise _wrong(name, "params", "a table of parameters", params)
    return params


def _make_plain(name: str, given: Mapping[str, Any], sdk: Sdk) -> AllocationStrategy:
    if name == "AVG":
        return Averagely()
    if name == "AVG_BY_CIRCLE":
        return AveragelyByCircle()
    if name == "CONFIG":
        return ByConfig(_config_queues(given.get("config_queues")))
    if name == "CONSISTENT_HASH":
        ring = GoConsistentHash if sdk is Sdk.GO else ConsistentHash
        return ring(_virtual_node_count(given.get("virtual_node_count")))
    by_room = {Sdk.GO: GoMachineRoom, Sdk.JAVA_BEFORE_4_8_0: MachineRoomUnfiltered}
    return by_room.get(sdk, ByMachineRoom)(_consumeridcs(given.get("consumeridcs")))


def _make_nearby(
    name: str, inner: AllocationStrategy, given: Mapping[str, Any]
) -> AllocationStrategy:
    if all(given.get(key) is None for key in _ROOM_KEYS):
        raise MissingParameterError(
            Text(
                "{strategy} needs rooms: expected {keys}, got none of them",
                strategy=name,
                keys=", ".join(_ROOM_KEYS),
            )
        )
    if isinstance(inner, ByMachineRoom) and given.get("consumeridcs") is None:
        raise MissingParameterError(
            Text("{strategy} needs consumeridcs: expected a list, got none", strategy=name)
        )
    return MachineRoomNearby(
        inner,
        broker_rooms=_rooms(name, given, "broker_room"),
        client_rooms=_rooms(name, given, "client_room"),
    )


def _virtual_node_count(value: Any) -> int:
    if value is None:
        return DEFAULT_VIRTUAL_NODE_COUNT
    if not isinstance(value, int) or isinstance(value, bool) or value > _JAVA_INT_MAX:
        raise _wrong("CONSISTENT_HASH", "virtual_node_count", "a whole number (Java int)", value)
    return value


def _consumeridcs(value: Any) -> frozenset[str] | None:
    if value is None:
        return None
    is_collection = _is_list(value) or isinstance(value, AbstractSet)
    if not is_collection or not all(isinstance(room, str) for room in value):
        raise _wrong("MACHINE_ROOM", "consumeridcs", "a list of room names", value)
    return frozenset(value)


def _config_queues(value: Any) -> list[MessageQueue] | None:
    if value is None:
        return None
    if not _is_list(value):
        raise _wrong("CONFIG", "config_queues", "a list of [topic, broker name, queue id]", value)
    return [_config_queue(number, entry) for number, entry in enumerate(value)]


def _config_queue(number: int, entry: Any) -> MessageQueue:
    if isinstance(entry, MessageQueue):
        return entry
    where = f"config_queues[{number}]"
    if not _is_list(entry) or len(entry) != 3:
        raise _wrong("CONFIG", where, "[topic, broker name, queue id]", entry)
    topic, broker_name, queue_id = entry
    is_queue = isinstance(topic, str) and isinstance(broker_name, str)
    if not is_queue or not isinstance(queue_id, int) or isinstance(queue_id, bool):
        raise _wrong("CONFIG", where, "[topic, broker name, queue id]", entry)
    return MessageQueue(topic, broker_name, queue_id)


def _rooms(name: str, given: Mapping[str, Any], key: str) -> Rooms:
    by_name = given.get(key)
    if by_name is None:
        by_name = {}
    if not isinstance(by_name, Mapping):
        raise _wrong(name, key, "a table of rooms by name", by_name)
    for named, room in by_name.items():
        if not isinstance(named, str) or not (room is None or isinstance(room, str)):
            raise _wrong(name, f"{key}[{named!r}]", "the name of a room", room)
    patterns = given.get(f"{key}_patterns")
    if patterns is None:
        patterns = []
    if not _is_list(patterns):
        raise _wrong(name, f"{key}_patterns", 'a list of {"pattern", "room"}', patterns)
    return Rooms(
        dict(by_name),
        tuple(
            _room_pattern(name, f"{key}_patterns[{number}]", entry)
            for number, entry in enumerate(patterns)
        ),
    )


def _room_pattern(name: str, where: str, entry: Any) -> RoomPattern:
    if not isinstance(entry, Mapping) or not {"pattern"} <= set(entry) <= {"pattern", "room"}:
        raise _wrong(name, where, 'a table with the keys "pattern" and "room"', entry)
    expression, room = entry["pattern"], entry.get("room")
    if not isinstance(expression, str):
        raise _wrong(name, f"{where}.pattern", "a regular expression", expression)
    if room is not None and not isinstance(room, str):
        raise _wrong(name, f"{where}.room", "the name of a room", room)
    try:
        pattern = re.compile(expression)
    except re.error as error:
        raise InvalidParameterError(
            f"{name}: {where}.pattern: expected a regular expression, got {expression!r}: {error}"
        ) from error
    if (room is None) != ("room" in pattern.groupindex):
        raise _wrong(name, where, 'either a "room" or a group named "room" in "pattern"', entry)
    return RoomPattern(pattern, room)


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def _wrong(name: str, where: str, expected: str, value: Any) -> InvalidParameterError:
    return InvalidParameterError(
        f"{name}: {where}: expected {expected}, got {value!r} ({type(value).__name__})"
    )
