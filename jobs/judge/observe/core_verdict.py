"""The core's verdict on a situation, as the rules of time read it; and its allocations as rows of
the table ``allocations``, and back.

A row is of one client under one view. Where the brokers agree there is one view, of weight 1; where
they differ, one for each distinct pair of lists, with its brokers and its weight.

A large group has too many to keep each as an object: they are columns from the moment the core
gives them, packed as soon as they are written, and objects again only where a rule compares
neighbours in time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from rebalance_core.faults import Fault
from rebalance_core.findings import Allocation, Claimant, Evaluation
from rebalance_core.message_queue import MessageQueue

from ...config.masking import Masking
from ...engines.pieces import Piece, all_rows, pack_rows
from ...schemas import ALLOCATIONS, SHARE_FIELDS, STRING

#: (broker name, queue id).
QueueKey = tuple[str, int]

#: The queues that the processes of one client id take under one view.
QueueAllocation: TypeAlias = Allocation[QueueKey]


@dataclass(frozen=True)
class FoundQueue:
    """A queue that is ORPHANED or DUPLICATE."""

    kind: str
    queue: QueueKey
    certainty: str
    probability: float
    claimants: tuple[Claimant, ...]
    causes: tuple[str, ...]
    #: True if it rests on a strategy that is assumed: see the core's ``Finding``.
    is_assumed: bool = field(default=False, kw_only=True)


@dataclass(frozen=True)
class Verdict:
    """The evaluation of one situation.

    ``allocations`` makes them anew at each call: of a large group there are many, and only what
    compares neighbours in time looks at them.
    """

    #: The core's verdict on the situation, without what follows here in another form.
    verdict: Evaluation
    nameservers: int
    findings: tuple[FoundQueue, ...]
    faults: tuple[Fault, ...]
    allocations: Callable[[], tuple[QueueAllocation, ...]] = tuple


# ---------------------------------------------------------------- allocations as rows

_SCHEMA = ALLOCATIONS.schema
#: The first columns of all rows of a situation.
_PLACE = ("cluster", "consumer_group", "topic", "state_id")
#: The fields of an allocation that are a column each, in the order of both.
_SCALARS = Allocation._fields[:-1]
#: The type of the shares of a situation: its rows, without the columns that they have alike.
SHARES = pa.list_(pa.struct(list(SHARE_FIELDS)))


@dataclass(frozen=True, eq=False)
class AllocationRows:
    """Rows of ``allocations`` of some situations, one after the other; ids are the true ones.

    ``ends``: of each situation where its rows end.
    """

    rows: pa.Table
    ends: list[int]

    def loaders(self) -> list[Callable[[], tuple[QueueAllocation, ...]]]:
        """Functions that make each situation's allocations when called."""
        packed = tuple(pack_rows(0, ALLOCATIONS.name, self.rows))
        return [partial(_part, packed, *edges) for edges in pairwise([0, *self.ends])]

    def masked(self, masking: Masking) -> pa.Table:
        """The rows as they are published: with what their ids hold of secrets masked."""
        place = _SCHEMA.get_field_index("client_id")
        column: Any = self.rows.column(place)
        masked = masking.mask_column(column.combine_chunks())
        return self.rows.set_column(place, _SCHEMA.field(place), masked)


def allocation_rows(
    places: Sequence[tuple[str, str, str, str]],
    allocations: Sequence[Sequence[Allocation[MessageQueue]]],
) -> AllocationRows:
    """The rows of some situations; ``places``: of each its cluster, group, topic and state id."""
    columns = [pa.array(column, STRING) for column in zip(*places, strict=True)]
    shares = pa.array(list(map(shares_of, allocations)), SHARES)
    return rows_of_shares(pa.RecordBatch.from_arrays(columns, list(_PLACE)), shares)


def shares_of(allocations: Sequence[Allocation[MessageQueue]]) -> list[tuple[Any, ...]]:
    """The shares of a situation as a value of ``SHARES``."""
    return [
        (*allocation[:-1], [(queue.broker_name, queue.queue_id) for queue in allocation.queues])
        for allocation in allocations
    ]


def rows_of_shares(places: pa.RecordBatch, shares: Any) -> AllocationRows:
    """The rows of some situations; ``places``: as above, by column; ``shares``: of ``SHARES``."""
    lengths = shares.value_lengths().fill_null(0).to_numpy()
    row_numbers: Any = pa.array(np.repeat(np.arange(len(lengths)), lengths))
    columns = [places.column(name).take(row_numbers) for name in _PLACE]
    columns += shares.flatten().flatten()
    cast = [array.cast(field.type) for array, field in zip(columns, _SCHEMA, strict=True)]
    return AllocationRows(pa.Table.from_arrays(cast, schema=_SCHEMA), np.cumsum(lengths).tolist())


def _part(packed: tuple[Piece, ...], start: int, end: int) -> tuple[QueueAllocation, ...]:
    return _read(packed)[start:end]


# A group is judged situation by situation: the next one was mostly evaluated with it. To take few
# rows out of columns costs nearly as much as to take all of them.
@lru_cache(maxsize=2)
def _read(packed: tuple[Piece, ...]) -> tuple[QueueAllocation, ...]:
    rows = all_rows(packed, ALLOCATIONS.name, _SCHEMA)
    columns: dict[str, Any] = {name: rows.column(name).to_pylist() for name in _SCALARS}
    columns["view_brokers"] = map(tuple, columns["view_brokers"])
    queues: Any = rows.column("queues").combine_chunks()
    flat = queues.flatten()
    pairs = list(zip(flat.field(0).to_pylist(), flat.field(1).to_pylist(), strict=True))
    ends = np.cumsum(queues.value_lengths()).tolist()
    queues_of_rows = [tuple(pairs[start:end]) for start, end in pairwise([0, *ends])]
    return tuple(map(Allocation._make, zip(*columns.values(), queues_of_rows, strict=True)))
