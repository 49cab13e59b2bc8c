"""Offsets of static topics, which brokers give by physical queue, as those of the queues that
clients see.

A logical queue lies on one broker after the other, each time in a queue of its own, and is written
to the last of these (``LogicQueueMappingItem`` 5.3.3). The route names that one alone, and not the
logical offset at which it begins; here it begins where the one before it ended, so that a queue
that moves to another broker goes on.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from operator import itemgetter
from typing import TypeAlias

from rebalance_core.message_queue import is_mock_broker

from ..declared.instants import Instant
from ..dumps.queue_maps import QueueName
from ..dumps.statement import FirstMapped, Offset

#: The offsets of each queue by round, as brokers give them.
Polled: TypeAlias = Mapping[Instant, Mapping[QueueName, Offset]]
#: A queue as its broker has it: broker name, queue id.
_Physical: TypeAlias = tuple[str, int]


def as_clients_see(
    polled: Polled, cluster: str, mapped: Mapping[tuple[str, str], FirstMapped]
) -> Iterator[tuple[Instant, Offset]]:
    """The offsets, of static topics by logical queue, round by round.

    ``mapped``: by cluster and static topic where its logical queues lie. A physical queue in which
    no logical one is written any more has no row: what nobody consumed of it waits in the logical
    one. Offsets that are of logical queues already, as mqadmin and the dashboard make them
    (``MQAdminUtils.convertPhysicalConsumeStats`` 5.3.3), stay as they are.

    Worked example: 500 messages lie in the first queue of a logical one, and 480 are consumed, when
    it moves. Of the next 30 none is consumed before these: it has 530 messages, and 480 consumed.
    """
    every = {topic for queues in polled.values() for topic, *_ in queues}
    topics = {name: _Topic(first) for name in every if (first := mapped.get((cluster, name)))}
    for round_, queues in sorted(polled.items(), key=itemgetter(0)):
        physical: dict[str, list[Offset]] = defaultdict(list)
        others: list[Offset] = []
        for offset in queues.values():
            is_other = offset.topic not in topics or is_mock_broker(offset.broker_name)
            (others if is_other else physical[offset.topic]).append(offset)
        # A rate is that of all queues of an answer, some of which get another broker's name.
        mixed = {offset.broker_name for offset in chain.from_iterable(physical.values())}
        for offset in others:
            is_mixed = offset.broker_name in mixed
            yield round_, offset._replace(given_per_1000_seconds=None) if is_mixed else offset
        for topic, offsets in physical.items():
            yield from ((round_, offset) for offset in topics[topic].logical(round_, offsets))


class _Topic:
    """A static topic, as far as its rounds were read."""

    def __init__(self, first: FirstMapped) -> None:
        #: The physical queues of each logical one, each with the first round that shows it.
        self._places: dict[tuple[str, int], list[tuple[Instant, _Physical]]] = defaultdict(list)
        in_order = sorted((epoch, queue, since) for (queue, epoch), since in first.items())
        for _, queue, since in in_order:
            places = self._places[queue.mock_broker, queue.queue_id]
            physical = queue.broker_name, queue.physical_id
            # Of two mappings clients take that of the higher epoch, whoever still gives the other
            # (``ClientMetadata.topicRouteData2EndpointsForStaticTopic`` 5.3.3).
            while places and places[-1][0] >= since:
                places.pop()
            if not places or places[-1][1] != physical:
                places.append((since, physical))
        #: The last offsets of each physical queue.
        self._last: dict[_Physical, Offset] = {}

    def logical(self, round_: Instant, polled: Iterable[Offset]) -> Iterator[Offset]:
        """The offsets of the logical queues, of those of the physical ones in a round."""
        now = {(offset.broker_name, offset.queue_id): offset for offset in polled}
        self._last |= now
        for (mock, number), places in self._places.items():
            # What came before the first route was mapped so, too.
            begun = sum(since <= round_ for since, _ in places) or 1
            until_now = [place for _, place in places[:begun]]
            if (last := now.get(until_now[-1])) is not None:
                written, consumed = self._offsets(until_now)
                yield Offset(last.topic, mock, number, written, consumed, *last[5:])

    def _offsets(self, places: Sequence[_Physical]) -> tuple[int, int]:
        """The ends of what is written and consumed of a logical queue in its physical ones.

        A commit goes to the physical queue of its messages (``ConsumerManageProcessor``
        ``.rewriteRequestForStaticTopic`` 5.3.3), so that the last one with a commit has the offset;
        -1 shows one without, and 0 here a logical queue of which nothing was committed.
        """
        written = consumed = 0
        for place in places:
            if (last := self._last.get(place)) is not None:
                consumed = written + last.consumer_offset if last.consumer_offset >= 0 else consumed
                written += last.broker_offset
        return written, consumed
