"""MACHINE_ROOM: only the queues of the configured rooms, in blocks."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from copy import copy
from typing import Self

import numpy as np

from rebalance_core.errors import MissingParameterError
from rebalance_core.message_queue import MessageQueue
from rebalance_core.strategies.base import AllocationStrategy, Positions, by_first_slot

__all__ = ["ByMachineRoom", "room_of"]


class ByMachineRoom(AllocationStrategy):
    """The queues of brokers named ``room@broker`` whose room is configured.

    All other queues are nobody's. The clients are not filtered: each has a slot, wherever it runs.

    Every client takes one block of consecutive queues. What does not divide is the tail of the
    list, and goes one by one to the first clients: with 5 such queues and the clients a, b, a
    takes 0, 1 and 4, b takes 2 and 3 (AVG gives a the queues 0 to 2).

    ``consumeridcs`` are the rooms; None, a setter never called, fails as soon as a broker's name
    has a room (MissingParameterError, Java's NullPointerException).

    Source: ``AllocateMessageQueueByMachineRoom``, RocketMQ 5.3.3. Clients before 4.8.0 and
    client-go compute it otherwise: ``machine_room_unfiltered``.
    """

    def __init__(self, consumeridcs: Collection[str] | None) -> None:
        self._rooms = None if consumeridcs is None else frozenset(consumeridcs)
        self._also: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        """``MACHINE_ROOM``."""
        return "MACHINE_ROOM"

    def _positions(
        self, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> dict[str, Positions]:
        eligible = self._eligible(queues)
        count = len(client_ids)
        size, rest = divmod(len(eligible), count)
        blocks = self._block_queues(eligible)[: size * count].reshape(count, size)
        with_rest = np.column_stack((blocks[:rest], eligible[size * count :]))
        return by_first_slot(client_ids, [*with_rest, *blocks[rest:]])

    @property
    def rooms(self) -> frozenset[str]:
        """The configured rooms; none where none are configured."""
        return self._rooms or frozenset()

    def serves(self, broker_name: str) -> bool:
        """Whether the broker's queues are among those that are shared out."""
        return self._room_of(broker_name) in self.rooms or broker_name in self._also

    def also_serving(self, broker_names: Collection[str]) -> Self:
        """The same strategy, as if it served these brokers too, whatever room they are in."""
        serving = copy(self)
        serving._rooms = self.rooms
        serving._also = self._also | frozenset(broker_names)
        return serving

    def _block_queues(self, eligible: Positions) -> Positions:
        """The positions of which the blocks are cut; what does not divide is always eligible."""
        return eligible

    def _room_of(self, broker_name: str) -> str | None:
        return room_of(broker_name)

    def _eligible(self, queues: Sequence[MessageQueue]) -> Positions:
        takes_part: dict[str, bool] = {}
        for broker_name in dict.fromkeys(queue.broker_name for queue in queues):
            room = self._room_of(broker_name)
            if room is not None and self._rooms is None:
                raise MissingParameterError(
                    "MACHINE_ROOM needs consumeridcs: expected a list of rooms, got none, "
                    f"and the broker {broker_name!r} is in the room {room!r}"
                )
            takes_part[broker_name] = self.serves(broker_name)
        return np.array(
            [number for number, queue in enumerate(queues) if takes_part[queue.broker_name]],
            dtype=np.int64,
        )


def room_of(broker_name: str) -> str | None:
    """The first of exactly two parts around an ``@``, as ``String.split("@")`` makes them.

    Java drops empty parts at the end, but none at the start.

    >>> [room_of(name) for name in ("IDC1@b", "IDC1@b@@", "@b", "IDC1@", "IDC1@b@c", "b")]
    ['IDC1', 'IDC1', '', None, None, None]
    """
    parts = broker_name.rstrip("@").split("@")
    return parts[0] if len(parts) == 2 else None
