"""A strategy: the guard, the sorting, and who claims which positions; the SDK that computes it.

A strategy implements ``_positions`` alone, for all clients at once; ``allocate``,
``allocate_all`` and ``claims`` are all read from it, so there is one arithmetic.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from copy import copy
from enum import Enum
from functools import lru_cache
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .errors import AllocationError, InvalidParameterError
from .message_queue import MessageQueue, sort_client_ids, sort_message_queues
from .texts import Text

#: MQVersion ordinal of the release that took the blocks of MACHINE_ROOM from the rooms' queues.
_VERSION_4_8_0 = 373


class Sdk(Enum):
    """An SDK whose strategies are not all those of the current Java client; the value names it.

    Source: RocketMQ 4.7.1 and 5.3.3; rocketmq-client-go 2.1 (``consumer/strategy.go``);
    rocketmq-client-cpp 2.2 (``Rebalance``, which makes ``AllocateMQAveragely`` and nothing else).
    """

    #: The current one. SDKs that are not listed here are taken to be like it.
    JAVA = "Java"
    JAVA_BEFORE_4_8_0 = Text("Java before 4.8.0")
    GO = "client-go"
    #: Also what is built over it, such as the Python binding: it says CPP of itself.
    CPP = "client-cpp"

    @property
    def sorts_bytewise(self) -> bool:
        """True if it compares names by the bytes of UTF-8, where Java compares UTF-16."""
        return self in (Sdk.GO, Sdk.CPP)

    def strategy_name(self, name: str) -> str:
        """The name of what it computes where the strategy of that name is asked for.

        >>> Sdk.GO.strategy_name("MACHINE_ROOM_NEARBY-AVG_BY_CIRCLE")
        'AVG'
        >>> Sdk.CPP.strategy_name("CONSISTENT_HASH"), Sdk.JAVA.strategy_name("CONSISTENT_HASH")
        ('AVG', 'CONSISTENT_HASH')
        """
        if self is Sdk.CPP or (self is Sdk.GO and name.startswith("MACHINE_ROOM_NEARBY")):
            return "AVG"
        return name


@lru_cache(maxsize=1_024)
def sdk_of(language: str | None, version: int | None) -> Sdk:
    """The SDK of a connection that gives this LanguageCode and this MQVersion ordinal.

    >>> sdk_of("JAVA", 371), sdk_of("JAVA", 373), sdk_of("GO", 373)
    (<Sdk.JAVA_BEFORE_4_8_0: 'Java before 4.8.0'>, <Sdk.JAVA: 'Java'>, <Sdk.GO: 'client-go'>)
    """
    if language == "JAVA" and version is not None and version < _VERSION_4_8_0:
        return Sdk.JAVA_BEFORE_4_8_0
    return {"GO": Sdk.GO, "CPP": Sdk.CPP}.get(language or "", Sdk.JAVA)


Queues: TypeAlias = Sequence[MessageQueue]
ClientIds: TypeAlias = Sequence[str]
Positions: TypeAlias = NDArray[np.int64]
#: The positions in the queues that each client id takes.
Taken: TypeAlias = dict[str, Positions]
#: Parameters, as settings hold them.
Params: TypeAlias = Mapping[str, Any]

NOTHING: Positions = np.empty(0, dtype=np.int64)
# Shared by all answers that hold no queue.
NOTHING.flags.writeable = False


_COPY_MARK = "\0"
_COPY_SUFFIX = re.compile(r"\x00[0-9]{6,}\Z")


def copy_id(client_id: str, copy: int) -> str:
    """The id that a copy of a client id would have if each copy had another; copy 0 keeps it.

    It sorts right behind the id that it is made of, and is in the same machine room.
    """
    return client_id if copy == 0 else f"{client_id}{_COPY_MARK}{copy:06d}"


def original_id(client_id: str) -> str:
    """The client id that ``copy_id`` was given; any other id, odd characters and all, is itself."""
    return _COPY_SUFFIX.sub("", client_id)


def original_and_copy(client_id: str) -> tuple[str, int]:
    """The arguments that ``copy_id`` was given: the client id, and the number of the copy.

    >>> original_and_copy(copy_id("a", 2)), original_and_copy("a")
    (('a', 2), ('a', 0))
    """
    original = original_id(client_id)
    return original, int(client_id[len(original) + 1 :] or 0)


class AllocationStrategy(ABC):
    """The queues that a client takes, computed as each client computes them for itself.

    Source: ``AllocateMessageQueueStrategy`` and ``AbstractAllocateMessageQueueStrategy.check``,
    RocketMQ 5.3.3, called as a client calls them: both lists sorted first.
    """

    #: The result of Java's ``getName()``, and the class in Java's client.
    name: str
    java_class: str
    #: The parameters that ``from_params`` looks at.
    parameters: tuple[str, ...] = ()
    #: True if both lists are sorted by the bytes of UTF-8, as in Go and C++, where that matters.
    sorts_bytewise = False

    @classmethod
    def from_params(cls, params: Params) -> Self:
        """The strategy with its parameters. Raises InvalidParameterError for a wrong type."""
        del params
        return cls()

    @property
    def variant(self) -> str:
        """The SDK whose reading of the name it is, such as ``client-go``; "" for Java's current
        one.
        """
        return Text("clients that sort bytewise") if self.sorts_bytewise else ""

    @property
    def full_name(self) -> str:
        """The name with the variant: of one name, each variant computes something else.

        >>> from rebalance_core.strategy_factory import make_strategy
        >>> from rebalance_core.strategy import Sdk
        >>> make_strategy("CONSISTENT_HASH", sdk=Sdk.GO).full_name
        'CONSISTENT_HASH of client-go'
        """
        if not self.variant:
            return self.name
        return Text("{strategy} of {sdk}", strategy=self.name, sdk=self.variant)

    def sorting_bytewise(self) -> Self:
        """The same strategy of a client that sorts both lists bytewise, as Go and C++ do.

        It takes and answers the same as any other: lists in Java's order, positions in them.
        """
        bytewise = copy(self)
        bytewise.sorts_bytewise = True
        return bytewise

    @abstractmethod
    def _positions(self, queues: Queues, client_ids: ClientIds) -> Taken:
        """The positions of each distinct id in ``queues``; both lists sorted and not empty."""

    def allocate(
        self,
        consumer_group: str,
        client_id: str | None,
        queues: Queues | None,
        client_ids: ClientIds | None,
    ) -> list[MessageQueue]:
        """The queues that one client takes, in Java's order. The lists may come in any order.

        A client id that is not in the list takes nothing (Java logs "[BUG]" and drops all its
        queues). ``consumer_group`` is part of Java's signature; no strategy looks at it.

        Raises AllocationError where Java throws: no client id, no queues, no client ids.

        >>> from rebalance_core import make_strategy
        >>> queues = [MessageQueue("T", "broker-a", number) for number in range(4)]
        >>> [q.queue_id for q in make_strategy("AVG").allocate("G", "b", queues, ["b", "a", "c"])]
        [2]
        """
        if not client_id:
            raise AllocationError(_NO_CLIENT_ID)
        if client_id not in _require_lists(queues, client_ids)[1]:
            return []
        return self.allocate_all(consumer_group, queues, client_ids)[client_id]

    def allocate_all(
        self, consumer_group: str, queues: Queues | None, client_ids: ClientIds | None
    ) -> dict[str, list[MessageQueue]]:
        """The result of ``allocate`` for every distinct client id, from one sort and one pass.

        The ids come in Java's order. An empty client id has no entry: Java throws for it alone,
        and it takes its slot from the others all the same.

        Raises AllocationError where Java throws for every client.

        >>> from rebalance_core import make_strategy
        >>> queues = [MessageQueue("T", "broker-a", number) for number in range(4)]
        >>> taken = make_strategy("AVG").allocate_all("G", queues, ["b", "a", "b"])
        >>> {client_id: [q.queue_id for q in queues] for client_id, queues in taken.items()}
        {'a': [0, 1], 'b': [2]}
        """
        del consumer_group
        present_queues, present_ids = _require_lists(queues, client_ids)
        if not any(present_ids):
            raise AllocationError(_NO_CLIENT_ID)
        results = self._results(sort_message_queues(present_queues), sort_client_ids(present_ids))
        results.pop("", None)
        return results

    def claims(self, queues: Queues, client_ids: ClientIds) -> Taken:
        """The positions in ``queues`` that each distinct client id claims.

        Both lists must be in Java's order already (``sort_message_queues``,
        ``sort_client_ids``), repeated ids kept. Positions come in the order in which Java
        returns the queues. The arrays may share memory: do not write to them.

        Raises AllocationError where Java throws for every client.

        >>> from rebalance_core import make_strategy
        >>> queues = [MessageQueue("T", "broker-a", number) for number in range(5)]
        >>> taken = make_strategy("AVG_BY_CIRCLE").claims(queues, ["a", "b"])
        >>> {client_id: positions.tolist() for client_id, positions in taken.items()}
        {'a': [0, 2, 4], 'b': [1, 3]}
        """
        _require_lists(queues, client_ids)
        if not any(client_ids):
            raise AllocationError(_NO_CLIENT_ID)
        positions = self._positions_in_own_order(queues, client_ids)
        positions.pop("", None)
        return positions

    def _results(self, queues: Queues, client_ids: ClientIds) -> dict[str, list[MessageQueue]]:
        return {
            client_id: [queues[position] for position in positions.tolist()]
            for client_id, positions in self._positions_in_own_order(queues, client_ids).items()
        }

    def _positions_in_own_order(self, queues: Queues, client_ids: ClientIds) -> Taken:
        """``_positions`` in lists that are in Java's order, whatever the client's order is."""
        if not self.sorts_bytewise:
            return self._positions(queues, client_ids)
        place = sorted(range(len(queues)), key=lambda number: _bytewise_key(queues[number]))
        taken = self._positions([queues[number] for number in place], sorted(client_ids))
        place_of = np.array(place, dtype=np.int64)
        return {client_id: place_of[taken[client_id]] for client_id in client_ids}

    @staticmethod
    def _by_first_slot(client_ids: ClientIds, slots: Sequence[Positions]) -> Taken:
        """The positions of each id's first slot: a repeated id finds no other (indexOf)."""
        positions = dict(zip(client_ids, slots, strict=True))
        if len(positions) < len(client_ids):
            positions |= zip(reversed(client_ids), reversed(slots), strict=True)
        return positions

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.full_name}>"


def _bytewise_key(queue: MessageQueue) -> tuple[str, str, int]:
    # Python compares code points, which is the order of the bytes of UTF-8.
    return queue.topic, queue.broker_name, queue.queue_id


def _require_lists(queues: Queues | None, client_ids: ClientIds | None) -> tuple[Queues, ClientIds]:
    # The order of the two is Java's: with neither list, the queues are what it complains of.
    if not queues:
        raise AllocationError("mqAll is null or mqAll empty")
    if not client_ids:
        raise AllocationError("cidAll is null or cidAll empty")
    return queues, client_ids


_NO_CLIENT_ID = "currentCID is empty"


def is_list(value: Any) -> bool:
    """True if it is a list or a tuple, not a text."""
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def is_whole(value: Any) -> bool:
    """True if it is a whole number, not a bool."""
    return isinstance(value, int) and not isinstance(value, bool)


def wrong(name: str, where: str, expected: str, value: Any) -> InvalidParameterError:
    """The error of a parameter of the strategy ``name``: what was expected and what came."""
    came = f"{value!r} ({type(value).__name__})"
    return InvalidParameterError(f"{name}: {where}: expected {expected}, got {came}")
