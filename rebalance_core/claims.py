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

    ``queues`` are all queues that some view has, in Java's order. ``shares`` is c: a row for each
    of ``processes`` (which may stand for several alike), a column for each queue.
    ``positions[view][process]`` are the indexes into that view's queues, in the strategy's order.
    """

    queues: tuple[MessageQueue, ...]
    processes: tuple[Process, ...]
    views: tuple[View, ...]
    positions: tuple[tuple[NDArray[np.int64], ...], ...]
    shares: NDArray[np.float64]

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
        by_strategy: dict[int, dict[str, NDArray[np.int64]]] = {}
        of_view = []
        for process in processes:
            if not process.claims:
                of_view.append(_NOTHING)
            elif process.broadcasting:
                of_view.append(np.arange(len(view.queues)))
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
    lists = {view.queues for view in views}
    one_list = len(lists) == 1
    queues = views[0].queues if one_list else tuple(sort_message_queues(list(set().union(*lists))))
    index = None if one_list else {queue: number for number, queue in enumerate(queues)}
    shares = np.zeros((len(processes), len(queues)))
    under_views = np.zeros((len(processes), len(queues)), dtype=np.int64)
    for view, of_view in zip(views, positions, strict=True):
        columns = None if index is None else np.array([index[q] for q in view.queues], np.int64)
        for row, taken in enumerate(of_view):
            where = taken if columns is None else columns[taken]
            shares[row, where] += view.weight
            under_views[row, where] += 1
    # Weights are fractions: a sum of all of them may miss 1 by a rounding error.
    shares[under_views == len(views)] = 1.0
    np.clip(shares, 0.0, 1.0, out=shares)
    return Claims(queues, processes, views, positions, shares)


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
