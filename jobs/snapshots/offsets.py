"""How far a group has consumed each queue: rows of ``queue_offsets``."""

from collections.abc import Iterator
from itertools import repeat
from typing import Any

import pyarrow as pa

from ..dumps.statement import Offset, Stats
from ..instants import Instant
from ..schemas import QUEUE_OFFSETS
from .tables import PIECE_ROWS, table_of


class OffsetRows:
    """The offsets of one group. Statements are added in order of time."""

    def __init__(self) -> None:
        # Of a queue that was asked for twice in a round the later answer counts.
        self._rounds: dict[Instant, dict[tuple[str, str, int], Offset]] = {}

    def add(self, snapshot_time: Instant, stats: Stats) -> None:
        """An answer to getConsumeStats."""
        queues = self._rounds.setdefault(snapshot_time, {})
        for offset in stats.offsets:
            queues[offset[:3]] = offset

    def tables(self, cluster: str, group: str) -> Iterator[pa.Table]:
        """The rows of ``queue_offsets``."""
        times: list[Instant] = []
        offsets: list[Offset] = []
        for snapshot_time, queues in self._rounds.items():
            times += repeat(snapshot_time, len(queues))
            offsets += queues.values()
            if len(offsets) >= PIECE_ROWS:
                yield _table(cluster, group, times, offsets)
                times, offsets = [], []
        if offsets:
            yield _table(cluster, group, times, offsets)


def _table(cluster: str, group: str, times: list[Instant], offsets: list[Offset]) -> pa.Table:
    columns: dict[str, Any] = dict(
        zip(Offset._fields, zip(*offsets, strict=True), strict=True),
        cluster=cluster,
        consumer_group=group,
        snapshot_time=times,
    )
    return table_of(QUEUE_OFFSETS, len(offsets), columns)
