"""MACHINE_ROOM: only the queues of the configured rooms, in blocks."""

from collections.abc import Collection, Sequence
from collections.abc import Set as AbstractSet
from copy import copy
from typing import Self

import numpy as np

from ..errors import MissingParameterError
from ..message_queue import MessageQueue
from ..texts import Text
from .base import AllocationStrategy, ClientIds, Positions, Queues
from .parameters import Params, is_list, wrong
from .sdk import Sdk


class ByMachineRoom(AllocationStrategy):
    """The queues of brokers named ``room@broker`` whose room is configured.

    All other queues are nobody's. The clients are not filtered: each has a slot, wherever it runs.

    Every client takes one block of consecutive queues. What does not divide is the tail of the
    list, and goes one by one to the first clients: with 5 such queues and the clients a, b, a
    takes 0, 1 and 4, b takes 2 and 3 (AVG gives a the queues 0 to 2).

    ``consumeridcs`` are the rooms; None, a setter never called, fails as soon as a broker's name
    has a room (MissingParameterError, Java's NullPointerException).

    Source: ``AllocateMessageQueueByMachineRoom``, RocketMQ 5.3.3. Clients before 4.8.0 and
    client-go compute it otherwise: ``MachineRoomUnfiltered``.
    """

    name = "MACHINE_ROOM"
    java_class = "AllocateMessageQueueByMachineRoom"
    parameters = ("consumeridcs",)

    def __init__(self, consumeridcs: Collection[str] | None) -> None:
        self._rooms = None if consumeridcs is None else frozenset(consumeridcs)
        self._also: frozenset[str] = frozenset()

    @classmethod
    def from_params(cls, params: Params) -> Self:
        """The strategy with its rooms: a list of names."""
        rooms = params.get("consumeridcs")
        is_collection = is_list(rooms) or isinstance(rooms, AbstractSet)
        if rooms is not None and not (is_collection and all(isinstance(r, str) for r in rooms)):
            raise wrong(cls.name, "consumeridcs", "a list of room names", rooms)
        return cls(rooms)

    def _positions(self, queues: Queues, client_ids: ClientIds) -> dict[str, Positions]:
        eligible = self._eligible(queues)
        count = len(client_ids)
        size, rest = divmod(len(eligible), count)
        blocks = self._block_queues(eligible)[: size * count].reshape(count, size)
        with_rest = np.column_stack((blocks[:rest], eligible[size * count :]))
        return self._by_first_slot(client_ids, [*with_rest, *blocks[rest:]])

    @property
    def rooms(self) -> frozenset[str]:
        """The configured rooms; none where none are configured."""
        return self._rooms or frozenset()

    def serves(self, broker_name: str) -> bool:
        """True if the broker's queues are among those that are shared out."""
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
        """The first of exactly two parts around an ``@``, as ``String.split("@")`` makes them.

        Java drops empty parts at the end, but none at the start.

        >>> names = ("IDC1@b", "IDC1@b@@", "@b", "IDC1@", "IDC1@b@c", "b")
        >>> [ByMachineRoom(())._room_of(name) for name in names]
        ['IDC1', 'IDC1', '', None, None, None]
        """
        return _first_of_two(broker_name.rstrip("@"))

    def _eligible(self, queues: Sequence[MessageQueue]) -> Positions:
        takes_part: dict[str, bool] = {}
        for broker_name in dict.fromkeys(queue.broker_name for queue in queues):
            room = self._room_of(broker_name)
            if room is not None and self._rooms is None:
                raise MissingParameterError(
                    Text(
                        "MACHINE_ROOM needs consumeridcs: expected a list of rooms, got none, and "
                        "the broker {broker} is in the room {room}",
                        broker=repr(broker_name),
                        room=repr(room),
                    )
                )
            takes_part[broker_name] = self.serves(broker_name)
        eligible = [at for at, queue in enumerate(queues) if takes_part[queue.broker_name]]
        return np.array(eligible, dtype=np.int64)


class MachineRoomUnfiltered(ByMachineRoom):
    """MACHINE_ROOM with blocks cut from all queues, as long as the rooms' queues need.

    Only what does not divide is taken from the rooms. With the queues a0 to a4 of a room that is
    not configured, b0 to b4 of one that is, and the clients x and y: x takes a0, a1 and b4, y
    takes a2 and a3, and the others are nobody's.

    Source: ``AllocateMessageQueueByMachineRoom``, RocketMQ 4.2.0 to 4.7.1 (issue #2477).
    """

    variant: str = Sdk.JAVA_BEFORE_4_8_0.value

    def _block_queues(self, eligible: Positions) -> Positions:
        return np.arange(len(eligible), dtype=np.int64)


class GoMachineRoom(MachineRoomUnfiltered):
    """The same in client-go, which reads ``IDC1@`` as a room without a broker, ``IDC1@b@`` as none.

    Go's ``strings.Split`` keeps the empty parts at the end that Java drops. Without rooms it
    takes nothing, where Java fails.

    Source: ``AllocateByMachineRoom``, ``consumer/strategy.go``, rocketmq-client-go 2.1.
    """

    variant = Sdk.GO.value

    def __init__(self, consumeridcs: Collection[str] | None) -> None:
        super().__init__(consumeridcs or ())

    def _room_of(self, broker_name: str) -> str | None:
        return _first_of_two(broker_name)


def _first_of_two(broker_name: str) -> str | None:
    parts = broker_name.split("@")
    return parts[0] if len(parts) == 2 else None
