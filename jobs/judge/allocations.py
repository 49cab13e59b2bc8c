"""What the core allocates -> rows of the table ``allocations``, and back.

Of a large group there are too many to keep each as an object: they are columns from the moment the
core gives them, and objects again only where a rule compares neighbours in time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from jobs.judge.evaluated import Allocated
from jobs.masking import Masking
from jobs.schemas import ALLOCATIONS, QUEUES, STRING
from rebalance_core.findings import Allocation

_SCHEMA = ALLOCATIONS.schema
#: The fields of an allocation that are a column each, in the order of both.
_SCALARS = (
    "client_id",
    "processes",
    "subscribed",
    "strategy",
    "strategy_source",
    "view_brokers",
    "view_weight",
    "view_queues",
    "view_clients",
)


class AllocationRows(NamedTuple):
    """Rows of ``allocations`` with the true client ids, of situations one after the other.

    ``ends``: of each situation where its rows end.
    """

    rows: pa.Table
    ends: list[int]

    @classmethod
    def builder(cls, cluster: str, consumer_group: str) -> AllocationBuilder:
        """What rows of a group are made with."""
        return AllocationBuilder(cluster, consumer_group)

    def of(self, place: int) -> Callable[[], tuple[Allocated, ...]]:
        """What makes the allocations of a situation, anew at each call."""
        start = self.ends[place - 1] if place else 0
        rows, length = self.rows, self.ends[place] - start
        return lambda: _read(rows.slice(start, length))

    def masked(self, masking: Masking) -> pa.Table:
        """The rows as they are published: with what their ids hold of secrets masked."""
        place = _SCHEMA.get_field_index("client_id")
        column: Any = self.rows.column(place)
        masked = [masking.mask_column(chunk) for chunk in column.chunks]
        return self.rows.set_column(place, _SCHEMA.field(place), pa.chunked_array(masked, STRING))


class AllocationBuilder:
    """Adds situations one by one."""

    def __init__(self, cluster: str, consumer_group: str) -> None:
        self._group = cluster, consumer_group
        self._places: list[tuple[str, str]] = []
        self._allocations: list[Allocation] = []
        self._ends: list[int] = []

    def add(self, topic: str, state_id: str, allocations: Sequence[Allocation]) -> None:
        """The allocations of one situation."""
        self._places += [(topic, state_id)] * len(allocations)
        self._allocations += allocations
        self._ends.append(len(self._allocations))

    def rows(self) -> AllocationRows:
        """All of them."""
        every, number = self._allocations, len(self._allocations)
        cluster, consumer_group = self._group
        values: dict[str, Any] = {
            "cluster": [cluster] * number,
            "consumer_group": [consumer_group] * number,
            "topic": [topic for topic, _ in self._places],
            "state_id": [state_id for _, state_id in self._places],
        }
        values |= {name: [getattr(each, name) for each in every] for name in _SCALARS}
        columns = {
            name: pa.array(column, _SCHEMA.field(name).type) for name, column in values.items()
        }
        columns["queues"] = _queues(every)
        table = pa.table({name: columns[name] for name in _SCHEMA.names}, schema=_SCHEMA)
        return AllocationRows(table, self._ends)


def _queues(allocations: Sequence[Allocation]) -> pa.Array[Any]:
    ends = [0]
    for each in allocations:
        ends.append(ends[-1] + len(each.queues))
    queues = [queue for each in allocations for queue in each.queues]
    names, numbers = QUEUES.value_type
    structs = pa.StructArray.from_arrays(
        [
            pa.array([queue.broker_name for queue in queues], names.type),
            pa.array([queue.queue_id for queue in queues], numbers.type),
        ],
        fields=[names, numbers],
    )
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), structs, type=QUEUES)


def _read(rows: pa.Table) -> tuple[Allocated, ...]:
    rows = rows.combine_chunks()
    scalars = [rows.column(name).to_pylist() for name in _SCALARS]
    queues: Any = rows.column("queues").combine_chunks()
    flat = queues.flatten()
    pairs = list(zip(flat.field(0).to_pylist(), flat.field(1).to_pylist(), strict=True))
    found = []
    start = 0
    for *values, length in zip(*scalars, queues.value_lengths().to_pylist(), strict=True):
        of_queues = tuple(pairs[start : start + length])
        found.append(Allocated._make([*_with_tuple(values), of_queues]))
        start += length
    return tuple(found)


_VIEW_BROKERS = _SCALARS.index("view_brokers")


def _with_tuple(values: list[Any]) -> list[Any]:
    values[_VIEW_BROKERS] = tuple(values[_VIEW_BROKERS])
    return values
