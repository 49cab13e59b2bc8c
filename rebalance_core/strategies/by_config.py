"""CONFIG: every client takes the list that it was configured with."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from ..message_queue import MessageQueue
from .base import NOTHING, AllocationStrategy, ClientIds, Positions, Queues
from .parameters import Params, is_list, is_whole, wrong


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
        if given is not None and not is_list(given):
            raise wrong(cls.name, "config_queues", f"a list of {_QUEUE}", given)
        return cls(None if given is None else [_queue(*each) for each in enumerate(given)])

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
        return {
            client_id: self.allocate(consumer_group, client_id, queues, client_ids)
            for client_id in dict.fromkeys(client_ids or ())
        }

    def claims(self, queues: Queues, client_ids: ClientIds) -> dict[str, Positions]:
        """The positions in ``queues`` of the configured list, for each distinct client id."""
        return self._positions(queues, client_ids)

    def _positions(self, queues: Queues, client_ids: ClientIds) -> dict[str, Positions]:
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
