"""MACHINE_ROOM_NEARBY: another strategy, applied room by room."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self, TypeAlias

import numpy as np

from ..errors import AllocationError, InvalidParameterError, MissingParameterError
from ..message_queue import MessageQueue, java_string_key
from ..texts import Text
from .base import NOTHING, AllocationStrategy, ClientIds, Positions, Queues, original_id
from .by_config import ByConfig
from .parameters import Params, is_list, wrong

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
        if patterns is not None and not is_list(patterns):
            raise wrong(name, f"{key}_patterns", 'a list of {"pattern", "room"}', patterns)
        found = (
            _room_pattern(name, f"{key}_patterns[{number}]", entry)
            for number, entry in enumerate(patterns or ())
        )
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

    def _positions(self, queues: Queues, client_ids: ClientIds) -> dict[str, Positions]:
        if isinstance(self._inner, ByConfig):
            configured = self._inner.configured_positions(queues)
            calls = self._inner_calls(queues, client_ids)
            return {each: configured if times else NOTHING for each, times in calls.items()}
        taken: dict[str, list[Positions]] = {client_id: [] for client_id in client_ids}
        for numbers, room_clients in self._shares(queues, client_ids):
            room_queues = [queues[number] for number in numbers]
            positions = np.array(numbers, dtype=np.int64)
            for client_id, within in self._inner._positions(room_queues, room_clients).items():
                taken[client_id].append(positions[within])
        return {each: np.concatenate((NOTHING, *parts)) for each, parts in taken.items()}

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
        originals = list(map(original_id, client_ids))
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
    room_of = {name: rooms.room_of(name) for name in dict.fromkeys(names)}
    members: dict[str, list[int]] = defaultdict(list)
    for number, name in enumerate(names):
        room = room_of[name]
        if room is None:
            raise AllocationError(f"Machine room is null for {kind} {named[number]}")
        members[room].append(number)
    return members
