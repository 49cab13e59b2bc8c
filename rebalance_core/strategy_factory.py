"""Strategies made from a name and parameters, as settings hold them; MACHINE_ROOM_NEARBY, which
applies another strategy room by room.
"""

import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any, Self, TypeAlias

import numpy as np

from . import errors
from .errors import AllocationError, InvalidParameterError, MissingParameterError
from .message_queue import MessageQueue, java_string_key
from .strategies import (
    Averagely,
    AveragelyByCircle,
    ByConfig,
    ByMachineRoom,
    ConsistentHash,
    GoConsistentHash,
    GoMachineRoom,
    MachineRoomUnfiltered,
)
from .strategy import (
    NOTHING,
    AllocationStrategy,
    ClientIds,
    Params,
    Positions,
    Queues,
    Sdk,
    Taken,
    is_list,
    original_id,
    wrong,
)
from .texts import Text

NEARBY = "MACHINE_ROOM_NEARBY"


#: A regular expression over the whole name, and its room; None: that of its group ``room``.
RoomPattern: TypeAlias = tuple[re.Pattern[str], str | None]


def _room_pattern(name: str, where: str, entry: Any) -> RoomPattern:
    """A pattern as settings have it; ``name`` is that of the strategy."""
    if not isinstance(entry, Mapping) or not {"pattern"} <= set(entry) <= {"pattern", "room"}:
        raise wrong(name, where, 'a table with the keys "pattern" and "room"', entry)
    expression, room = entry["pattern"], entry.get("room")
    if not isinstance(expression, str):
        raise wrong(name, f"{where}.pattern", "a regular expression", expression)
    if room is not None and not isinstance(room, str):
        raise wrong(name, f"{where}.room", "the name of a room", room)
    try:
        pattern = re.compile(expression)
    except re.error as error:
        raise InvalidParameterError(
            f"{name}: {where}.pattern: expected a regular expression, got {expression!r}: {error}"
        ) from error
    if (room is None) != ("room" in pattern.groupindex):
        raise wrong(name, where, 'either a "room" or a group named "room" in "pattern"', entry)
    return pattern, room


@dataclass(frozen=True, slots=True)
class Rooms:
    """The room of each name; in place of the application's MachineRoomResolver.

    A name listed in ``by_name`` is in that room, also where that is not a room (None or ""). Of the
    patterns the first that matches counts.

    >>> rooms = Rooms({"broker-x": "room1"}, [(re.compile("(?P<room>room[0-9])-.*"), None)])
    >>> rooms.room_of("broker-x"), rooms.room_of("room2-broker-a"), rooms.room_of("broker-y")
    ('room1', 'room2', None)
    """

    by_name: Mapping[str, str | None] = field(default_factory=dict)
    patterns: Sequence[RoomPattern] = ()

    @classmethod
    def from_params(cls, name: str, params: Params, key: str) -> "Rooms":
        """The rooms as settings have them under a key: ``broker_room`` or ``client_room``."""
        by_name, patterns = params.get(key), params.get(f"{key}_patterns")
        if not isinstance(by_name, Mapping | None):
            raise wrong(name, key, "a table of rooms by name", by_name)
        for named, room in (by_name or {}).items():
            if not isinstance(named, str) or not (room is None or isinstance(room, str)):
                raise wrong(name, f"{key}[{named!r}]", "the name of a room", room)
        where = f"{key}_patterns"
        if patterns is not None and not is_list(patterns):
            raise wrong(name, where, 'a list of {"pattern", "room"}', patterns)
        numbered = enumerate(patterns or ())
        found = (_room_pattern(name, f"{where}[{number}]", entry) for number, entry in numbered)
        return cls(dict(by_name or {}), tuple(found))

    def room_of(self, name: str) -> str | None:
        """The room, or None where it has none."""
        if name in self.by_name:
            return self.by_name[name] or None
        for pattern, room in self.patterns:
            if (match := pattern.fullmatch(name)) is not None:
                return (match["room"] if room is None else room) or None
        return None


class MachineRoomNearby(AllocationStrategy):
    """The queues of a room go to the clients in it; those of a room without clients to everyone.

    Over AVG, with the queues a0, a1 in room1 and b0, b1 in room2, and the clients x and y both
    in room1: x takes a0, then b0; y takes a1, then b1. Each room without clients is allocated
    separately, so the first clients take the odd queue of each.
    A queue of a room whose clients do not subscribe to the topic is orphaned, not nearby.

    Raises AllocationError where a broker or, next, a client has no room: one such client, and
    none of the group's clients changes what it holds. Raises MissingParameterError when made
    over a CONFIG without a list (Java adds null to the result: a NullPointerException).

    Source: ``AllocateMachineRoomNearby``, RocketMQ 5.3.3. client-go has plain AVG in its place.
    """

    java_class = "AllocateMachineRoomNearby"
    parameters = ("broker_room", "broker_room_patterns", "client_room", "client_room_patterns")

    @classmethod
    def around(cls, inner: AllocationStrategy, params: Params) -> Self:
        """The strategy around another one, with the rooms as settings have them."""
        name = f"{NEARBY}-{inner.name}"
        if all(params.get(key) is None for key in cls.parameters):
            keys = ", ".join(cls.parameters)
            template = "{strategy} needs rooms: expected {keys}, got none of them"
            raise MissingParameterError(Text(template, strategy=name, keys=keys))
        rooms = [Rooms.from_params(name, params, key) for key in ("broker_room", "client_room")]
        return cls(inner, *rooms)

    def __init__(self, inner: AllocationStrategy, broker_rooms: Rooms, client_rooms: Rooms) -> None:
        self.name = f"{NEARBY}-{inner.name}"
        if isinstance(inner, ByConfig) and inner.config_queues is None:
            template = "{strategy} needs config_queues: expected a list, got none"
            raise MissingParameterError(Text(template, strategy=self.name))
        self._inner = inner
        self._broker_rooms = broker_rooms
        self._client_rooms = client_rooms

    @property
    def variant(self) -> str:
        """The variant of the strategy within."""
        return self._inner.variant

    def _positions(self, queues: Queues, client_ids: ClientIds) -> Taken:
        if isinstance(self._inner, ByConfig):
            configured = self._inner.configured_positions(queues)
            calls = self._inner_calls(queues, client_ids)
            return {id_: configured if times else NOTHING for id_, times in calls.items()}
        taken: dict[str, list[Positions]] = {client_id: [] for client_id in client_ids}
        for numbers, room_clients in self._shares(queues, client_ids):
            room_queues = [queues[number] for number in numbers]
            positions = np.array(numbers, dtype=np.int64)
            for client_id, within in self._inner._positions(room_queues, room_clients).items():
                taken[client_id].append(positions[within])
        return {id_: np.concatenate((NOTHING, *parts)) for id_, parts in taken.items()}

    def _results(self, queues: Queues, client_ids: ClientIds) -> dict[str, list[MessageQueue]]:
        if isinstance(self._inner, ByConfig):
            # CONFIG answers with its whole list, foreign queues and all, each time it is asked.
            configured = list(self._inner.config_queues or ())
            calls = self._inner_calls(queues, client_ids)
            return {client_id: configured * times for client_id, times in calls.items()}
        return super()._results(queues, client_ids)

    def _inner_calls(self, queues: Queues, client_ids: ClientIds) -> dict[str, int]:
        """The number of times that each client asks the strategy within."""
        calls = dict.fromkeys(client_ids, 0)
        for _, room_clients in self._shares(queues, client_ids):
            for client_id in dict.fromkeys(room_clients):
                calls[client_id] += 1
        return calls

    def _shares(
        self, queues: Queues, client_ids: ClientIds
    ) -> list[tuple[list[int], Sequence[str]]]:
        """The numbers of queues shared out together, and among whom, in the result's order."""
        broker_names = [queue.broker_name for queue in queues]
        queues_of = _by_room(self._broker_rooms, broker_names, "mq", queues)
        originals = [*map(original_id, client_ids)]
        clients_of = _by_room(self._client_rooms, originals, "consumer id", client_ids)
        # A client's room comes first in its result, and then the rooms that nobody serves.
        shares: list[tuple[list[int], Sequence[str]]] = [
            (queues_of[room], [client_ids[number] for number in numbers])
            for room, numbers in clients_of.items()
            if room in queues_of
        ]
        unserved = sorted(queues_of.keys() - clients_of.keys(), key=java_string_key)
        return shares + [(queues_of[room], client_ids) for room in unserved]


def _by_room(
    rooms: Rooms, names: Sequence[str], kind: str, named: Sequence[object]
) -> dict[str, list[int]]:
    """The numbers of the names in each room; ``kind`` and ``named`` are for Java's error."""
    room_of = cache(rooms.room_of)
    members: dict[str, list[int]] = defaultdict(list)
    for number, name in enumerate(names):
        room = room_of(name)
        if room is None:
            raise AllocationError(f"Machine room is null for {kind} {named[number]}")
        members[room].append(number)
    return members


#: The strategies of Java's client by name, but for MACHINE_ROOM_NEARBY, which wraps one of them.
STRATEGIES: Mapping[str, type[AllocationStrategy]] = {
    strategy.name: strategy
    for strategy in (Averagely, AveragelyByCircle, ByConfig, ConsistentHash, ByMachineRoom)
}
#: Strategies that SDKs compute in another way under the same name.
_VARIANTS: Mapping[tuple[Sdk, str], type[AllocationStrategy]] = {
    (Sdk.GO, ConsistentHash.name): GoConsistentHash,
    (Sdk.GO, ByMachineRoom.name): GoMachineRoom,
    (Sdk.JAVA_BEFORE_4_8_0, ByMachineRoom.name): MachineRoomUnfiltered,
}
#: The names by class of org.apache.rocketmq.client.consumer.rebalance. A running info shows the
#: class alone: neither what MACHINE_ROOM_NEARBY wraps, nor any parameter.
JAVA_CLASSES: Mapping[str, str] = {
    MachineRoomNearby.java_class: NEARBY,
    **{strategy.java_class: name for name, strategy in STRATEGIES.items()},
}


def make_strategy(
    name: str, params: Params | None = None, sdk: Sdk = Sdk.JAVA
) -> AllocationStrategy:
    """The strategy of that name (Java's ``getName()``), with its parameters.

    For another SDK it is what that SDK computes under the name; where that is another strategy
    (``Sdk.strategy_name``) the parameters are not looked at.

    Parameters, each only for the strategy that uses it:

    - CONSISTENT_HASH: ``virtual_node_count``, points per client id (default 10).
    - CONFIG: ``config_queues``, a list of MessageQueue or [topic, broker name, queue id].
    - MACHINE_ROOM: ``consumeridcs``, the rooms whose queues are shared out.
    - MACHINE_ROOM_NEARBY-<inner>: ``broker_room`` by broker name and ``client_room`` by client
      id (null or "" is not a room); ``broker_room_patterns`` and ``client_room_patterns``, lists of
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
    if not isinstance(name, str) or name.removeprefix(f"{NEARBY}-") not in STRATEGIES:
        raise errors.UnknownStrategyError(
            Text(
                "unknown strategy {name}: expected one of {names}, or {prefix} before one of them",
                name=repr(name),
                names=", ".join(STRATEGIES),
                prefix=f"{NEARBY}-",
            )
        )
    given = {} if params is None else params
    if not isinstance(given, Mapping):
        raise wrong(name, "params", "a table of parameters", params)
    inner_name = name.removeprefix(f"{NEARBY}-")
    strategy = _VARIANTS.get((sdk, inner_name), STRATEGIES[inner_name])
    is_nearby = inner_name != name
    accepted = (*(MachineRoomNearby.parameters if is_nearby else ()), *strategy.parameters)
    unknown = ", ".join(repr(key) for key in given if key not in accepted)
    if unknown:
        listed = ", ".join(accepted) or "none"
        raise InvalidParameterError(f"{name}: unknown parameters {unknown}; accepted: {listed}")
    inner = strategy.from_params(given)
    if not is_nearby:
        return inner
    nearby = MachineRoomNearby.around(inner, given)
    if isinstance(inner, ByMachineRoom) and given.get("consumeridcs") is None:
        template = "{strategy} needs consumeridcs: expected a list, got none"
        raise MissingParameterError(Text(template, strategy=name))
    return nearby


@lru_cache(maxsize=256)
def strategy_of(name: str, parameters: str | None = None) -> AllocationStrategy:
    """The strategy of a row: its name, and its parameters as JSON. Raises as ``make_strategy``.

    >>> strategy_of("CONSISTENT_HASH", '{"virtual_node_count": 3}').name
    'CONSISTENT_HASH'
    """
    try:
        given = None if parameters is None else json.loads(parameters)
    except ValueError as error:
        raise AllocationError(f"expected parameters as JSON, came {parameters!r}") from error
    return make_strategy(name, given)
