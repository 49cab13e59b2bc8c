"""RocketMQ's allocation strategies, bit for bit (checked against the Java classes of 5.3.x).

Every consumer of a group sorts the queues of a topic and the client ids of the group and asks
its strategy which queues it takes. Nothing else decides who consumes what. What other SDKs and
older clients compute under the same names are separate strategies (``Sdk``).
"""

import hashlib
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection, Sequence
from collections.abc import Set as AbstractSet
from copy import copy
from functools import lru_cache
from typing import Any, Self
from zlib import crc32

import numpy as np

from .errors import AllocationError, MissingParameterError
from .message_queue import MessageQueue
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
    is_whole,
    wrong,
)
from .texts import Text


class Averagely(AllocationStrategy):
    """Blocks of consecutive queues; the first clients take one more where it does not divide.

    With 8 queues and the clients a, b, c: a takes 0 to 2, b 3 to 5, c 6 and 7.
    With 8 queues and the clients a, a, b: both processes of a take 0 to 2, the queues 3 to 5 are
    orphaned, for the second a's slot is nobody's, and b takes 6 and 7.
    With 2 queues and the clients a, b, c: c takes nothing.

    Source: ``AllocateMessageQueueAveragely``, RocketMQ 5.3.3.
    """

    name = "AVG"
    java_class = "AllocateMessageQueueAveragely"

    def _positions(self, queues: Queues, client_ids: ClientIds) -> Taken:
        size, longer_blocks = divmod(len(queues), len(client_ids))
        all_positions = np.arange(len(queues), dtype=np.int64)
        cut = longer_blocks * (size + 1)
        longer = all_positions[:cut].reshape(longer_blocks, size + 1)
        others = all_positions[cut:].reshape(len(client_ids) - longer_blocks, size)
        return self._by_first_slot(client_ids, [*longer, *others])


class AveragelyByCircle(AllocationStrategy):
    """The i-th of k clients takes the queues i, i + k, i + 2k and so on.

    With 5 queues and the clients a, b: a takes 0, 2, 4 and b takes 1, 3.
    With 5 queues and the clients a, a, b: both processes of a take 0 and 3, the queues 1 and 4
    are orphaned, and b takes 2.

    Source: ``AllocateMessageQueueAveragelyByCircle``, RocketMQ 5.3.3.
    """

    name = "AVG_BY_CIRCLE"
    java_class = "AllocateMessageQueueAveragelyByCircle"

    def _positions(self, queues: Queues, client_ids: ClientIds) -> Taken:
        size, longer_turns = divmod(len(queues), len(client_ids))
        # A column for each client; the first ones have an entry in the last row too.
        positions = np.arange((size + 1) * len(client_ids), dtype=np.int64)
        rounds = positions.reshape(size + 1, len(client_ids))
        turns = [*rounds.T[:longer_turns], *rounds[:size].T[longer_turns:]]
        return self._by_first_slot(client_ids, turns)


class ByConfig(AllocationStrategy):
    """The configured list as it is, whatever the topic has and whoever asks.

    Nothing is checked: queues that do not exist, or of another topic, and repeated queues stay
    in what ``allocate`` returns; ``claims`` holds those of them that are among the queues given.
    All clients made from one configuration take the same queues, so each has as many owners as
    there are clients. Without a list (None) a client takes nothing.

    Source: ``AllocateMessageQueueByConfig``, RocketMQ 5.3.3.
    """

    name = "CONFIG"
    java_class = "AllocateMessageQueueByConfig"
    parameters = ("config_queues",)

    def __init__(self, config_queues: Sequence[MessageQueue] | None = None) -> None:
        #: The list, or None where none is configured.
        self.config_queues = None if config_queues is None else tuple(config_queues)

    @classmethod
    def from_params(cls, params: Params) -> Self:
        """The strategy with its list: MessageQueue or [topic, broker name, queue id]."""
        given = params.get("config_queues")
        if given is None:
            return cls()
        if not is_list(given):
            raise wrong(cls.name, "config_queues", f"a list of {_QUEUE}", given)
        return cls([_queue(*entry) for entry in enumerate(given)])

    def allocate(
        self,
        consumer_group: str,
        client_id: str | None,
        queues: Queues | None,
        client_ids: ClientIds | None,
    ) -> list[MessageQueue]:
        """The configured list; raises nothing."""
        del consumer_group, client_id, queues, client_ids
        return list(self.config_queues or ())

    def allocate_all(
        self, consumer_group: str, queues: Queues | None, client_ids: ClientIds | None
    ) -> dict[str, list[MessageQueue]]:
        """The configured list for every distinct client id, in any order; raises nothing."""
        del consumer_group, queues
        return {client_id: list(self.config_queues or ()) for client_id in client_ids or ()}

    def claims(self, queues: Queues, client_ids: ClientIds) -> Taken:
        """The positions in ``queues`` of the configured list, for each distinct client id."""
        return self._positions(queues, client_ids)

    def _positions(self, queues: Queues, client_ids: ClientIds) -> Taken:
        return dict.fromkeys(client_ids, self.configured_positions(queues))

    def configured_positions(self, queues: Sequence[MessageQueue]) -> Positions:
        """The positions in ``queues`` of the list's queues, each once, in the list's order."""
        if not self.config_queues:
            return NOTHING
        configured = dict.fromkeys(self.config_queues)
        position_of = {queue: number for number, queue in enumerate(queues)}
        found = [position_of[queue] for queue in configured if queue in position_of]
        return np.array(found, dtype=np.int64)


_QUEUE = "[topic, broker name, queue id]"


def _queue(number: int, entry: Any) -> MessageQueue:
    if isinstance(entry, MessageQueue):
        return entry
    if is_list(entry) and len(entry) == 3:
        topic, broker_name, queue_id = entry
        if isinstance(topic, str) and isinstance(broker_name, str) and is_whole(queue_id):
            return MessageQueue(topic, broker_name, queue_id)
    raise wrong(ByConfig.name, f"config_queues[{number}]", _QUEUE, entry)


DEFAULT_VIRTUAL_NODE_COUNT = 10
_JAVA_INT_MAX = 2**31 - 1


class ConsistentHash(AllocationStrategy):
    """Each client id has some points on a ring; a queue is owned by the next point's client.

    The queues of broker-a and broker-b, 4 each, and the clients 10.0.0.1@1#1 to 10.0.0.3@1#1,
    10 points each: .1 takes a0, a2, b1; .2 takes a3; .3 takes a1, b0, b2, b3.

    A client may well get nothing. A repeated id has points for each copy, and all belong to the
    id: all its processes take the same queues (duplicates), but no queue is orphaned.
    Without points (``virtual_node_count`` 0) nobody takes anything.

    A hash function that the application wrote (Java's constructor takes one) cannot be seen from
    outside; this is the default. Raises AllocationError for a negative number of points.

    Source: ``AllocateMessageQueueConsistentHash``, ``ConsistentHashRouter``, RocketMQ 5.3.3.
    """

    name = "CONSISTENT_HASH"
    java_class = "AllocateMessageQueueConsistentHash"
    parameters = ("virtual_node_count",)
    #: True if a number below 0 is an error.
    _refuses_negative = True

    def __init__(self, virtual_node_count: int = DEFAULT_VIRTUAL_NODE_COUNT) -> None:
        if self._refuses_negative and virtual_node_count < 0:
            raise AllocationError(f"illegal virtualNodeCnt :{virtual_node_count}")
        self._virtual_node_count = virtual_node_count

    @classmethod
    def from_params(cls, params: Params) -> Self:
        """The strategy with its points per client id."""
        count = params.get("virtual_node_count")
        if count is None:
            return cls()
        if not is_whole(count) or count > _JAVA_INT_MAX:
            raise wrong(cls.name, "virtual_node_count", "a whole number (Java int)", count)
        return cls(count)

    def _positions(self, queues: Queues, client_ids: ClientIds) -> Taken:
        owner_of = self._ring(client_ids)
        points = sorted(owner_of)
        taken: dict[str, list[int]] = {client_id: [] for client_id in client_ids}
        for position, queue in enumerate(queues if points else ()):
            # Past the last point the ring starts again.
            point = points[self._next_point(points, str(queue)) % len(points)]
            taken[owner_of[point]].append(position)
        return {client_id: np.array(places, np.int64) for client_id, places in taken.items()}

    def _next_point(self, points: Sequence[int], queue: str) -> int:
        """The place of the point that owns a queue: the first one at or after its hash."""
        return bisect_left(points, int.from_bytes(_md5(queue), "big"))

    def _ring(self, client_ids: ClientIds) -> dict[int, str]:
        """The id that each point is of, one point after the other as Java adds them."""
        count = self._virtual_node_count
        hashes_of = points_of if count <= _KEPT_POINTS else points_of.__wrapped__
        owner_of: dict[int, str] = {}
        points: Counter[str] = Counter()
        for client_id in client_ids:
            # A copy goes on counting where the points on the ring leave off; those that a
            # collision gave to another id do not count (getExistingReplicas).
            hashes = hashes_of(client_id, points[client_id], count)
            for point in np.frombuffer(hashes, dtype=">u4").tolist():
                if (former := owner_of.get(point)) is not None:
                    points[former] -= 1  # a collision: the later id overwrites
                owner_of[point] = client_id
                points[client_id] += 1
        return owner_of


#: The most points of an id that are kept, so that the cache stays below some 20 MB.
_KEPT_POINTS = 1_000


# The ids of a group come again with each of its topics and states.
@lru_cache(maxsize=4_096)
def points_of(client_id: str, first: int, count: int) -> bytes:
    """The hashes of so many points of an id, one after the other."""
    return b"".join([_md5(f"{client_id}-{replica}") for replica in range(first, first + count)])


def _md5(text: str) -> bytes:
    """The first four bytes of the MD5 of the text in UTF-8.

    >>> int.from_bytes(_md5("10.0.0.1@1-0"), "big")
    2998294157
    """
    return hashlib.md5(utf8_of(text), usedforsecurity=False).digest()[:4]


def utf8_of(text: str) -> bytes:
    """``String.getBytes(UTF_8)``: surrogates that pair are one character, others become "?"."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        paired = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
        return paired.encode("utf-8", "replace")


class GoConsistentHash(ConsistentHash):
    """Each client id has some points on a ring; a queue is owned by the next point's client.

    Not the ring of Java: the hash is CRC-32, a point is that of the replica's number before the
    client id, and a point on the very hash of a queue is passed by. A copy of an id has the same
    points again: all its processes take the same queues (duplicates), but no queue is orphaned.

    Go's constructor has no default for ``virtual_node_count``; Java's is taken where none is
    given. Where it is not positive nobody takes anything: at 0 Go divides by it and gives up.

    Source: ``AllocateByConsistentHash``, ``consumer/strategy.go``, rocketmq-client-go 2.1 (the
    first previews of 2.0.0 had AVG), over ``stathat.com/c/consistent`` 1.0.0.
    """

    variant: str = Sdk.GO.value
    _refuses_negative = False

    def _next_point(self, points: Sequence[int], queue: str) -> int:
        """The place of the first point behind its hash."""
        return bisect_right(points, _crc32(queue))

    def _ring(self, client_ids: ClientIds) -> dict[int, str]:
        return {
            _crc32(f"{replica}{client_id}"): client_id  # a collision: the later id overwrites
            for client_id in dict.fromkeys(client_ids)
            for replica in range(self._virtual_node_count)
        }


def _crc32(text: str) -> int:
    """The CRC-32 (IEEE) of the text in UTF-8.

    >>> _crc32("123456789") == 0xCBF43926
    True
    """
    return crc32(utf8_of(text))


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

    def _positions(self, queues: Queues, client_ids: ClientIds) -> Taken:
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
