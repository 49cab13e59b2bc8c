"""What the core allocates -> rows of the table ``allocations``, and back.

A row is of one client under one view. Where the brokers agree there is one view, of weight 1; where
they differ, one for each distinct pair of lists, with its brokers and its weight.

Of a large group there are too many to keep each as an object: they are columns from the moment the
core gives them, and objects again only where a rule compares neighbours in time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, pairwise
from operator import attrgetter
from typing import Any

import numpy as np
import pyarrow as pa

from rebalance_core.findings import Allocation

from ..masking import Masking
from ..schemas import ALLOCATIONS, QUEUES, STRING
from .evaluated import Allocated

_SCHEMA = ALLOCATIONS.schema
#: What all rows of a situation begin with.
_PLACE = ("cluster", "consumer_group", "topic", "state_id")
#: The fields of an allocation that are a column each, in the order of both.
_SCALARS = Allocated._fields[:-1]


@dataclass(frozen=True, eq=False)
class AllocationRows:
    """Rows of ``allocations`` with the true client ids, of the situations of one question, one
    after the other.

    ``ends``: of each situation where its rows end.
    """

    rows: pa.Table
    ends: list[int]

    def of(self, place: int) -> Callable[[], tuple[Allocated, ...]]:
        """What makes the allocations of a situation, when it is called."""
        start = self.ends[place - 1] if place else 0
        return lambda: _read(self)[start : self.ends[place]]

    def masked(self, masking: Masking) -> pa.Table:
        """The rows as they are published: with what their ids hold of secrets masked."""
        place = _SCHEMA.get_field_index("client_id")
        column: Any = self.rows.column(place)
        masked = [masking.mask_column(chunk) for chunk in column.chunks]
        return self.rows.set_column(place, _SCHEMA.field(place), pa.chunked_array(masked, STRING))


class AllocationBuilder:
    """Adds situations one by one."""

    def __init__(self) -> None:
        #: Of each situation what its rows begin with, and how many it has.
        self._places: list[tuple[str, str, str, str]] = []
        self._lengths: list[int] = []
        self._allocations: list[Allocation] = []

    def add(self, place: tuple[str, str, str, str], allocations: Sequence[Allocation]) -> None:
        """Those of one situation; ``place``: cluster, group, topic and state id."""
        self._places.append(place)
        self._lengths.append(len(allocations))
        self._allocations += allocations

    def rows(self) -> AllocationRows:
        """All of them."""
        every = self._allocations
        of_rows: Any = pa.array(np.repeat(np.arange(len(self._lengths)), self._lengths))
        places = zip(*self._places, strict=True) if self._places else [()] * len(_PLACE)
        columns = {
            name: pa.array(values, _SCHEMA.field(name).type).take(of_rows)
            for name, values in zip(_PLACE, places, strict=True)
        }
        for name in _SCALARS:
            values = list(map(attrgetter(name), every))
            columns[name] = pa.array(values, _SCHEMA.field(name).type)
        columns["queues"] = _queues(every)
        table = pa.table({name: columns[name] for name in _SCHEMA.names}, schema=_SCHEMA)
        return AllocationRows(table, np.cumsum(self._lengths).tolist())


def _queues(allocations: Sequence[Allocation]) -> pa.Array[Any]:
    ends = [0, *accumulate(len(each.queues) for each in allocations)]
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


# A group is judged situation by situation: the next one is mostly of the same question. To take
# few rows out of columns costs nearly as much as to take all of a question.
@lru_cache(maxsize=2)
def _read(every: AllocationRows) -> tuple[Allocated, ...]:
    columns: dict[str, Any] = {name: every.rows.column(name).to_pylist() for name in _SCALARS}
    columns["view_brokers"] = map(tuple, columns["view_brokers"])
    queues: Any = every.rows.column("queues").combine_chunks()
    flat = queues.flatten()
    pairs = list(zip(flat.field(0).to_pylist(), flat.field(1).to_pylist(), strict=True))
    ends = np.cumsum(queues.value_lengths()).tolist()
    of_queues = [tuple(pairs[start:end]) for start, end in pairwise([0, *ends])]
    return tuple(map(Allocated._make, zip(*columns.values(), of_queues, strict=True)))
