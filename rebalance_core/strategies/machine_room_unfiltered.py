"""MACHINE_ROOM as clients before 4.8.0 and client-go compute it: blocks of the unfiltered list."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from rebalance_core.strategies.base import Positions
from rebalance_core.strategies.by_machine_room import ByMachineRoom
from rebalance_core.strategies.sdk import Sdk

__all__ = ["GoMachineRoom", "MachineRoomUnfiltered"]


class MachineRoomUnfiltered(ByMachineRoom):
    """As MACHINE_ROOM, but the blocks are cut from all queues, as long as the rooms' queues need.

    Only what does not divide is taken from the rooms. With the queues a0 to a4 of a room that is
    not configured, b0 to b4 of one that is, and the clients x and y: x takes a0, a1 and b4, y
    takes a2 and a3, and the others are nobody's.

    Source: ``AllocateMessageQueueByMachineRoom``, RocketMQ 4.2.0 to 4.7.1 (issue #2477).
    """

    @property
    def variant(self) -> str:
        """``Java before 4.8.0``."""
        return Sdk.JAVA_BEFORE_4_8_0.value

    def _block_queues(self, eligible: Positions) -> Positions:
        return np.arange(len(eligible), dtype=np.int64)


class GoMachineRoom(MachineRoomUnfiltered):
    """The same in client-go, which reads ``IDC1@`` as a room without a broker, ``IDC1@b@`` as none.

    Go's ``strings.Split`` keeps the empty parts at the end that Java drops. Without rooms it
    takes nothing, where Java fails.

    Source: ``AllocateByMachineRoom``, ``consumer/strategy.go``, rocketmq-client-go 2.1.
    """

    def __init__(self, consumeridcs: Collection[str] | None) -> None:
        super().__init__(consumeridcs or ())

    @property
    def variant(self) -> str:
        """``client-go``."""
        return Sdk.GO.value

    def _room_of(self, broker_name: str) -> str | None:
        parts = broker_name.split("@")
        return parts[0] if len(parts) == 2 else None
