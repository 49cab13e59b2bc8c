"""Who claims which queue, under every view, and how likely a queue has no owner or several.

A claim is a queue that a process takes under a view. ``c(p, q)`` is the share of the views, by
weight, under which process p claims queue q. Every process draws on its own, so the number of
owners of q is Poisson-binomial over the processes:

    P(orphaned)  = prod(1 - c)
    P(duplicate) = 1 - prod(1 - c) - sum(c * prod over the others of (1 - c))

When every view is the same every c is 0 or 1, and so are both probabilities.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rebalance_core.message_queue import MessageQueue, sort_message_queues
from rebalance_core.processes import Process
from rebalance_core.views import View


@dataclass(frozen=True, slots=True)
class Claims:
    """What the processes claim of a topic's queues.

    ``queues`` are all queues that some view has, in Java's order.
    ``positions[view][process]`` are the indexes into that view's queues, in the strategy's order.

    c has a row for each of ``processes`` (which may stand for several alike) and a column for each
    queue. Nearly all of it is 0, so the rest alone is kept: ``share[n]`` stands in ``row[n]`` and
    ``column[n]``. A broadcasting process shares no queue, and has none.
    """

    queues: tuple[MessageQueue, ...]
    processes: tuple[Process, ...]
    views: tuple[View, ...]
    positions: tuple[tuple[NDArray[np.int64], ...], ...]
    row: NDArray[np.int64]
    column: NDArray[np.int64]
    share: NDArray[np.float64]

    @property
    def shares(self) -> NDArray[np.float64]:
        """c, with all its zeros."""
        shares = np.zeros((len(self.processes), len(self.queues)))
        shares[self.row, self.column] = self.share
        return shares

    def shares_of(
        self, columns: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The part of c that has these columns (ascending), and the rows that are not all 0 in it.

        The numbers of those rows come first.
        """
        here = np.isin(self.column, columns)
        rows, row = np.unique(self.row[here], return_inverse=True)
        shares = np.zeros((len(rows), len(columns)))
        shares[row, np.searchsorted(columns, self.column[here])] = self.share[here]
        return rows, shares

    def doubtful_columns(self) -> NDArray[np.int64]:
        """The queues that are not claimed by just one process, for certain."""
        counts = np.array([process.count for process in self.processes], dtype=np.float64)
        claims = np.bincount(self.column, minlength=len(self.queues))
        owners = np.bincount(
            self.column, (self.share == 1.0) * counts[self.row], minlength=len(self.queues)
        )
        return np.flatnonzero((claims != 1) | (owners != 1.0))

    def taken(self, view: int, process: int) -> list[MessageQueue]:
        """The queues that a process takes under a view."""
        queues = self.views[view].queues
        return [queues[position] for position in self.positions[view][process].tolist()]


_NOTHING: NDArray[np.int64] = np.empty(0, dtype=np.int64)


def compute_claims(views: Sequence[View], processes: Sequence[Process]) -> Claims:
    """Allocate under every view, once per strategy in use.

    A process that does not take part (``Process.claims``) takes a slot and claims nothing; one
    whose id is not in the list that it drew claims nothing; a broadcasting one claims every queue.
    Raises AllocationError where Java's strategy throws: then no client changes what it holds.
    """
    positions = []
    for view in views:
        every = np.arange(len(view.queues))
        by_strategy: dict[int, dict[str, NDArray[np.int64]]] = {}
        of_view = []
        for process in processes:
            if not process.claims:
                of_view.append(_NOTHING)
            elif process.broadcasting:
                of_view.append(every)
            else:
                strategy = process.strategy.strategy
                if strategy is None:
                    raise ValueError(f"no strategy for {process}")  # callers check before
                key = id(strategy)
                if key not in by_strategy:
                    by_strategy[key] = strategy.claims(view.queues, view.client_ids)
                of_view.append(by_strategy[key].get(process.client_id, _NOTHING))
        positions.append(tuple(of_view))
    return _with_shares(tuple(views), tuple(processes), tuple(positions))


def _with_shares(
    views: tuple[View, ...],
    processes: tuple[Process, ...],
    positions: tuple[tuple[NDArray[np.int64], ...], ...],
) -> Claims:
    queues = views[0].queues
    columns: list[NDArray[np.int64] | None] = [None] * len(views)
    if any(view.queues is not queues and view.queues != queues for view in views):
        queues = tuple(sort_message_queues(set().union(*(view.queues for view in views))))
        index = {queue: number for number, queue in enumerate(queues)}
        columns = [np.array([index[q] for q in view.queues], np.int64) for view in views]
    sharing = [row for row, process in enumerate(processes) if not process.broadcasting]
    parts = [
        _entries(of_view, sharing, of_queues)
        for of_view, of_queues in zip(positions, columns, strict=True)
    ]
    if len(views) == 1:
        ((row, column),) = parts
        return Claims(queues, processes, views, positions, row, column, np.ones(len(row)))
    keys = np.concatenate([row * len(queues) + column for row, column in parts])
    weights = np.repeat([view.weight for view in views], [len(row) for row, _ in parts])
    distinct, entry = np.unique(keys, return_inverse=True)
    share = np.minimum(np.bincount(entry, weights, minlength=len(distinct)), 1.0)
    # Weights are fractions: a sum of all of them may miss 1 by a rounding error.
    share[np.bincount(entry, minlength=len(distinct)) == len(views)] = 1.0
    row, column = np.divmod(distinct, len(queues))
    return Claims(queues, processes, views, positions, row, column, share)


def _entries(
    of_view: Sequence[NDArray[np.int64]],
    sharing: Sequence[int],
    columns: NDArray[np.int64] | None,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Row and column of all that the sharing processes claim under one view."""
    taken = [of_view[row] for row in sharing]
    row = np.repeat(np.array(sharing, dtype=np.int64), [len(each) for each in taken])
    column = np.concatenate(taken) if taken else _NOTHING
    return row, column if columns is None else columns[column]


@dataclass(frozen=True, slots=True)
class Owners:
    """How many owners each queue has: ``none``, ``several`` as probabilities, ``expected``.

    ``surely_none`` and ``surely_several`` tell where that is so under every view: a probability
    alone may round to 1.
    """

    none: NDArray[np.float64]
    several: NDArray[np.float64]
    expected: NDArray[np.float64]
    surely_none: NDArray[np.bool_]
    surely_several: NDArray[np.bool_]


def count_owners(shares: NDArray[np.float64], counts: Sequence[int]) -> Owners:
    """The distribution of the number of owners, per column (queue) of ``shares``.

    ``counts`` says for how many processes each row stands. Dynamic programming over the
    Poisson-binomial, cut at two owners: exact, no difference of near numbers, so a small
    probability keeps its digits and none leaves 0 to 1.

    >>> owners = count_owners(np.array([[0.5, 1.0], [0.5, 0.0]]), [1, 1])
    >>> owners.none.tolist(), owners.several.tolist()
    ([0.25, 0.0], [0.25, 0.0])
    """
    weights = np.asarray(counts, dtype=np.float64)
    expected = weights @ shares
    certain = weights @ (shares == 1.0)
    none = np.where(certain > 0, 0.0, 1.0)
    several = np.where(certain > 1, 1.0, 0.0)
    drawn = np.flatnonzero(((shares > 0.0) & (shares < 1.0)).any(axis=0) & (certain <= 1))
    if drawn.size:  # only queues that some view gives to a process and another view does not
        none[drawn], several[drawn] = _poisson_binomial(shares[:, drawn], counts)
    surely_none = np.logical_not((shares > 0.0).any(axis=0, keepdims=True))[0]
    return Owners(none, several, expected, surely_none, certain > 1)


def _poisson_binomial(
    shares: NDArray[np.float64], counts: Sequence[int]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    none = np.ones(shares.shape[1])
    one = np.zeros(shares.shape[1])
    several = np.zeros(shares.shape[1])
    for share, count in zip(shares, counts, strict=True):
        if not share.any():
            continue
        for _ in range(count):
            several += one * share
            one = one * (1 - share) + none * share
            none = none * (1 - share)
    # The three add up to 1 but for rounding.
    return none, np.minimum(several, 1.0)
