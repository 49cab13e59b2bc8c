"""Which machine room a broker or a client is in: names first, then patterns."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

__all__ = ["RoomPattern", "Rooms"]


@dataclass(frozen=True, slots=True)
class RoomPattern:
    """A regular expression over the whole name; its room is ``room``, else its group ``room``."""

    pattern: re.Pattern[str]
    room: str | None = None

    def room_of(self, name: str) -> tuple[bool, str | None]:
        """Whether the name matches, and the room that it then is in."""
        match = self.pattern.fullmatch(name)
        if match is None:
            return False, None
        return True, self.room if self.room is not None else match["room"]


@dataclass(frozen=True, slots=True)
class Rooms:
    """The room of each name; stands for the application's MachineRoomResolver.

    A name listed in ``by_name`` is in that room, also where that is no room (None or ""). Of the
    patterns the first that matches counts.

    >>> rooms = Rooms({"broker-x": "room1"}, [RoomPattern(re.compile("(?P<room>room[0-9])-.*"))])
    >>> rooms.room_of("broker-x"), rooms.room_of("room2-broker-a"), rooms.room_of("broker-y")
    ('room1', 'room2', None)
    """

    by_name: Mapping[str, str | None] = field(default_factory=dict)
    patterns: Sequence[RoomPattern] = ()

    def room_of(self, name: str) -> str | None:
        """The room, or None where it has none."""
        if name in self.by_name:
            return self.by_name[name] or None
        for pattern in self.patterns:
            matches, room = pattern.room_of(name)
            if matches:
                return room or None
        return None
