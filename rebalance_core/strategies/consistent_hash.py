"""CONSISTENT_HASH: clients and queues on a ring of MD5 hashes."""

import hashlib
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Self
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from ..errors import AllocationError
from .base import NOTHING, AllocationStrategy, ClientIds, Positions, Queues
from .parameters import Params, is_whole, wrong
from .sdk import Sdk

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

    def _positions(self, queues: Queues, client_ids: ClientIds) -> dict[str, Positions]:
        distinct_ids = list(dict.fromkeys(client_ids))
        if self._virtual_node_count == 0:
            return dict.fromkeys(distinct_ids, NOTHING)
        if len(distinct_ids) < len(client_ids):
            points, owner_of_point = self._ring_of_copies(client_ids, distinct_ids)
        else:
            points, owner_of_point = self._ring(client_ids)
        hashes = np.frombuffer(_hashes(map(str, queues)), dtype=">u4")
        # The first point at or after the hash; past the last point the ring starts again.
        next_point = np.searchsorted(points, hashes, side="left") % len(points)
        return positions_by_owner(owner_of_point[next_point], distinct_ids)

    def _ring(self, client_ids: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The points in ascending order, and for each the number of the distinct id it is of.

        The ids must not be repeated.
        """
        count = self._virtual_node_count
        hashes_of = points_of if count <= _KEPT_POINTS else points_of.__wrapped__
        joined = b"".join([hashes_of(client_id, count) for client_id in client_ids])
        points = np.frombuffer(joined, dtype=">u4").astype(np.int64)
        order = np.argsort(points, kind="stable")
        points = points[order]
        last = np.append(points[1:] != points[:-1], True)  # a collision: the later id overwrites
        return points[last], order[last] // count

    def _ring_of_copies(
        self, client_ids: Sequence[str], distinct_ids: Sequence[str]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The same, of any ids, one point after the other as Java adds them."""
        number_of = {client_id: number for number, client_id in enumerate(distinct_ids)}
        owner_of: dict[int, int] = {}
        points_of = [0] * len(distinct_ids)
        for client_id in client_ids:
            number = number_of[client_id]
            # A copy goes on counting where the points on the ring leave off; those that a
            # collision gave to another id do not count (getExistingReplicas).
            first_replica = points_of[number]
            prefix = client_id + "-"
            for replica in range(first_replica, first_replica + self._virtual_node_count):
                point = _hash(prefix + str(replica))
                former = owner_of.get(point)
                if former is not None:  # a collision: the later id overwrites
                    points_of[former] -= 1
                owner_of[point] = number
                points_of[number] += 1
        points = np.fromiter(owner_of.keys(), dtype=np.int64, count=len(owner_of))
        owners = np.fromiter(owner_of.values(), dtype=np.int64, count=len(owner_of))
        order = np.argsort(points)
        return points[order], owners[order]


#: The most points of an id that are kept, so that the cache stays below some 20 MB.
_KEPT_POINTS = 1_000


# The ids of a group come again with each of its topics and states.
@lru_cache(maxsize=4_096)
def points_of(client_id: str, count: int) -> bytes:
    """The hashes of the first points of an id, one after the other."""
    return _hashes([f"{client_id}-{replica}" for replica in range(count)])


def _hashes(texts: Iterable[str]) -> bytes:
    """The first four bytes of the MD5 of each text."""
    digests = [hashlib.md5(utf8_of(text), usedforsecurity=False).digest() for text in texts]
    return b"".join([digest[:4] for digest in digests])


def _hash(text: str) -> int:
    """The first four bytes of the MD5 of the text in UTF-8, as an unsigned number.

    >>> _hash("10.0.0.1@1-0")
    2998294157
    """
    return int.from_bytes(_hashes([text]), "big")


def positions_by_owner(
    owners: NDArray[np.int64], distinct_ids: Sequence[str]
) -> dict[str, Positions]:
    """The positions that each id owns; ``owners`` has for each position an id's number."""
    by_owner = np.argsort(owners, kind="stable")
    bounds = np.searchsorted(owners[by_owner], np.arange(len(distinct_ids) + 1)).tolist()
    return {
        client_id: by_owner[bounds[number] : bounds[number + 1]]
        for number, client_id in enumerate(distinct_ids)
    }


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

    def _positions(self, queues: Queues, client_ids: ClientIds) -> dict[str, Positions]:
        distinct_ids = list(dict.fromkeys(client_ids))
        if self._virtual_node_count <= 0:
            return dict.fromkeys(distinct_ids, NOTHING)
        owner_of = {
            _crc32(f"{replica}{client_id}"): number  # a collision: the later id overwrites
            for number, client_id in enumerate(distinct_ids)
            for replica in range(self._virtual_node_count)
        }
        points = np.array(sorted(owner_of), dtype=np.int64)
        owners = np.array([owner_of[point] for point in points.tolist()], dtype=np.int64)
        hashes = np.array([_crc32(str(queue)) for queue in queues], dtype=np.int64)
        # The first point behind the hash; past the last point the ring starts again.
        next_point = np.searchsorted(points, hashes, side="right") % len(points)
        return positions_by_owner(owners[next_point], distinct_ids)


def _crc32(text: str) -> int:
    """The CRC-32 (IEEE) of the text in UTF-8.

    >>> _crc32("123456789") == 0xCBF43926
    True
    """
    return crc32(utf8_of(text))
