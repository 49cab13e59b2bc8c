"""Claims on queues under every view, and how likely a queue has no owner or several.

A claim is a queue that a process takes under a view. ``c(p, q)`` is the share of the views, by
weight, under which process p claims queue q. Every process draws independently, so the number of
owners of q is Poisson-binomial over the processes:

    P(orphaned)  = prod(1 - c)
    P(duplicate) = 1 - prod(1 - c) - sum(c * prod over the others of (1 - c))

When every view is the same every c is 0 or 1, and so are both probabilities.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from .message_queue import MessageQueue, sort_message_queues
from .processes import Process, Processes
from .state import MASTER_ID, State
from .strategy import NOTHING, AllocationStrategy
from .views import View

_Numbers: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Claims:
    """The claims of processes on a topic's queues.

    ``queues`` are all queues that some view has, in Java's order.
    ``positions[view][process]`` are the indexes into that view's queues, in the strategy's order,
    ``weights[view, process]`` how likely the process draws the view.

    c has a row for each of ``processes`` (which may be several alike) and a column for each
    queue. Nearly all of it is 0, so the rest alone is kept: ``share[n]`` is in ``row[n]`` and
    ``column[n]``. A broadcasting process shares no queue, and has none.
    """

    queues: tuple[MessageQueue, ...]
    processes: Processes
    views: tuple[View, ...]
    positions: tuple[tuple[_Numbers, ...], ...]
    weights: NDArray[np.float64]
    row: _Numbers
    column: _Numbers
    share: NDArray[np.float64]

    def shares_of(self, columns: _Numbers) -> tuple[_Numbers, NDArray[np.float64]]:
        """The part of c that has these columns (ascending), and the rows that are not all 0 in it.

        The numbers of those rows come first.
        """
        here = np.isin(self.column, columns)
        rows, row = np.unique(self.row[here], return_inverse=True)
        shares = np.zeros((len(rows), len(columns)))
        shares[row, np.searchsorted(columns, self.column[here])] = self.share[here]
        return rows, shares

    def doubtful_columns(self) -> _Numbers:
        """The queues that are not claimed by just one process, for certain."""
        counts = np.array([process.count for process in self.processes], dtype=np.float64)
        claims = np.bincount(self.column, minlength=len(self.queues))
        certain = (self.share == 1.0) * counts[self.row]
        owners = np.bincount(self.column, certain, minlength=len(self.queues))
        return np.flatnonzero((claims != 1) | (owners != 1.0))

    def taken(self, view: int, process: int) -> list[MessageQueue]:
        """The queues that a process takes under a view."""
        queues = self.views[view].queues
        return [queues[position] for position in self.positions[view][process].tolist()]


#: The broker ids that each client asks, by client id and broker name.
_Replicas: TypeAlias = Mapping[str, Mapping[str, Collection[int]]]


def compute_claims(views: Sequence[View], processes: Sequence[Process], state: State) -> Claims:
    """Allocate under every view, once per strategy in use.

    A process that does not take part (``Process.takes_part``) takes a slot and claims nothing; one
    whose id is not in the list that it drew claims nothing; a broadcasting one claims every queue.
    Nobody claims a queue of a broker that it does not reach: without an offset from there the
    queue is not taken (``RebalanceImpl.updateProcessQueueTableInRebalance`` 5.3.3).
    Of a broker of which the route has slaves alone not every client reads, nor of one whose slave
    alone lists it.
    Raises AllocationError where Java's strategy throws: then no client changes what it holds.
    """
    views, processes, replicas = tuple(views), tuple(processes), _replicas_asked(views)
    away = state.without_master
    positions = tuple(tuple(_positions(view, processes, replicas, away)) for view in views)
    weights = _weights(views, processes, state.rerouted, replicas)
    queues, row, column, share = _with_shares(views, processes, positions, weights)
    # A claim is as likely as the process subscribes.
    share = share * np.array([process.share for process in processes])[row]
    return Claims(queues, processes, views, positions, weights, row, column, share)


def _positions(
    view: View, processes: Sequence[Process], replicas: _Replicas, without_master: Collection[str]
) -> Iterator[_Numbers]:
    """The positions that each process takes in a view's queues."""
    every = np.arange(len(view.queues))
    by_strategy: dict[AllocationStrategy, dict[str, _Numbers]] = {}
    for process in processes:
        strategy = process.strategy.strategy
        if not process.takes_part:
            taken = NOTHING
        elif process.broadcasting:
            taken = every
        else:
            assert strategy is not None, process  # noqa: S101 - who calls has looked
            if strategy not in by_strategy:
                by_strategy[strategy] = strategy.claims(view.queues, view.client_ids)
            taken = by_strategy[strategy].get(process.client_id, NOTHING)
        unread = process.unreachable
        if not process.reads_slaves:
            asked = replicas.get(process.client_id, {})
            slave_names = (name for name, ids in asked.items() if MASTER_ID not in ids)
            unread = (*unread, *without_master, *slave_names)
        if unread:
            names = [view.queues[position].broker_name for position in taken.tolist()]
            taken = taken[[name not in unread for name in names]]
        yield taken


def _weights(
    views: tuple[View, ...],
    processes: Processes,
    rerouted: Collection[str],
    replicas: _Replicas,
) -> NDArray[np.float64]:
    """[view, process]: how likely the process draws the view.

    A process that reaches no broker that gives a list keeps what it has. Nobody computes what that
    is, so it counts as one that reaches all of them.
    """
    weights = np.empty((len(views), len(processes)))
    weights[:] = [[view.weight] for view in views]
    deciding = [broker for broker in _deciding_brokers(views, processes) if broker not in rerouted]
    if not (deciding or replicas or any(process.unreachable for process in processes)):
        return weights
    has = [[broker in brokers for broker in deciding] for brokers in map(_brokers_of, views)]
    for number, process in enumerate(processes):
        asked = replicas.get(process.client_id, {})
        drawn = np.array([view.weight_for(process.unreachable, asked) for view in views])
        reached = [broker not in process.unreachable for broker in deciding]
        fitting = drawn * [brokers_of_view == reached for brokers_of_view in has]
        for chances in (fitting, drawn):
            if chances.sum() > 0:
                weights[:, number] = chances / chances.sum()
                break
    return weights


def _deciding_brokers(views: tuple[View, ...], processes: Processes) -> tuple[str, ...]:
    """The brokers that show which nameserver a process asks.

    A client forgets a broker that no route of it names (``MQClientInstance.cleanOfflineBroker``
    4.9.4, each 30 s), sends it no more heartbeats, and is dropped. So a client that is listed there
    has a route with the broker, and one that is not has a route without it. A broker that gave no
    list shows neither.
    """
    by_view = list(map(_brokers_of, views))
    differing = frozenset().union(*by_view).difference(frozenset.intersection(*by_view))
    given = (view.brokers for view in views)
    shows = frozenset(chain(*given, *(process.unreachable for process in processes)))
    return tuple(sorted(differing & shows))


def _replicas_asked(views: Sequence[View]) -> _Replicas:
    """The broker ids that each client asks per broker name, where the views have several ids of a
    name: the master's if it lists the client, else those of the slaves that do.

    Heartbeats go to every address of the client's routes and to no other
    (``MQClientInstance.sendHeartbeatToAllBroker`` 4.9.4): a client that a slave alone lists has a
    route without the master, or does not reach it. Either way it gets no list from there.

    Worked example: ns-1 has lost the master of broker-a. The clients that ask ns-1 are listed by
    the slave alone and ask the slave; all others are listed by both and ask the master.
    """
    if len(views) < 2:
        return {}
    every = {broker for view in views for broker, _ in view.draws}
    several = {name for name, count in Counter(name for name, _ in every).items() if count > 1}
    listing: dict[str, dict[str, set[int]]] = {}
    for view in views:
        brokers_of_view = [broker for broker, _ in view.draws if broker[0] in several]
        for client_id in set(view.client_ids) if brokers_of_view else ():
            for name, broker_id in brokers_of_view:
                listing.setdefault(client_id, {}).setdefault(name, set()).add(broker_id)
    return {
        client_id: {name: ids & {MASTER_ID} or ids for name, ids in ids_by_name.items()}
        for client_id, ids_by_name in listing.items()
    }


def _brokers_of(view: View) -> frozenset[str]:
    return frozenset(queue.broker_name for queue in view.queues)


def _with_shares(
    views: tuple[View, ...],
    processes: Processes,
    positions: tuple[tuple[_Numbers, ...], ...],
    weights: NDArray[np.float64],
) -> tuple[tuple[MessageQueue, ...], _Numbers, _Numbers, NDArray[np.float64]]:
    """The queues, and row, column and share of all that is not 0 in c: see ``Claims``."""
    queues = views[0].queues
    columns: list[_Numbers | None] = [None] * len(views)
    if any(view.queues is not queues and view.queues != queues for view in views):
        queues = tuple(sort_message_queues(set().union(*(view.queues for view in views))))
        index = {queue: number for number, queue in enumerate(queues)}
        columns = [np.array([index[q] for q in view.queues], np.int64) for view in views]
    sharing = [row for row, process in enumerate(processes) if not process.broadcasting]
    parts = [_entries(taken, sharing, at) for taken, at in zip(positions, columns, strict=True)]
    if len(views) == 1:
        ((row, column),) = parts
        return queues, row, column, np.ones(len(row))
    keys = np.concatenate([row * len(queues) + column for row, column in parts])
    likely = [drawn[row] for drawn, (row, _) in zip(weights, parts, strict=True)]
    entry_chances = np.concatenate(likely)
    distinct, entry = np.unique(keys, return_inverse=True)
    share = np.minimum(np.bincount(entry, entry_chances, minlength=len(distinct)), 1.0)
    row, column = np.divmod(distinct, len(queues))
    # Weights are fractions: a sum of all of them may miss 1 by a rounding error.
    claimed_under = np.bincount(entry, entry_chances > 0, minlength=len(distinct))
    share[claimed_under == (weights > 0).sum(axis=0)[row]] = 1.0
    drawn = share > 0
    return queues, row[drawn], column[drawn], share[drawn]


def _entries(
    claims_of_rows: Sequence[_Numbers], sharing: Sequence[int], columns: _Numbers | None
) -> tuple[_Numbers, _Numbers]:
    """Row and column of all that the sharing processes claim under one view."""
    taken = [claims_of_rows[row] for row in sharing]
    row = np.repeat(np.array(sharing, dtype=np.int64), [len(claimed) for claimed in taken])
    column = np.concatenate(taken) if taken else NOTHING
    return row, column if columns is None else columns[column]


@dataclass(frozen=True, slots=True)
class Owners:
    """The likelihood that each queue has no owner (``none``), or ``several``.

    ``surely_none`` and ``surely_several`` say where that is so under every view: a probability
    alone may round to 1.
    """

    none: NDArray[np.float64]
    several: NDArray[np.float64]
    surely_none: NDArray[np.bool_]
    surely_several: NDArray[np.bool_]


def count_owners(shares: NDArray[np.float64], counts: Sequence[int]) -> Owners:
    """The distribution of the number of owners, per column (queue) of ``shares``.

    ``counts`` says how many processes each row is. Dynamic programming over the
    Poisson-binomial, cut at two owners: exact, no difference of near numbers, so a small
    probability keeps its digits and none leaves 0 to 1.

    >>> owners = count_owners(np.array([[0.5, 1.0], [0.5, 0.0]]), [1, 1])
    >>> owners.none.tolist(), owners.several.tolist()
    ([0.25, 0.0], [0.25, 0.0])
    """
    weights = np.asarray(counts, dtype=np.float64)
    certain = weights @ (shares == 1.0)
    none = np.where(certain > 0, 0.0, 1.0)
    several = np.where(certain > 1, 1.0, 0.0)
    drawn = np.flatnonzero(((shares > 0.0) & (shares < 1.0)).any(axis=0) & (certain <= 1))
    if drawn.size:  # only queues that some view gives to a process and another view does not
        none[drawn], several[drawn] = _poisson_binomial(shares[:, drawn], counts)
    surely_none = np.logical_not((shares > 0.0).any(axis=0, keepdims=True))[0]
    return Owners(none, several, surely_none, certain > 1)


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
