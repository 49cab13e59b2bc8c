"""Views of a state: the pairs of lists that one client may work from in one rebalance.

RocketMQ 5.3.3: ``RebalanceImpl.rebalanceByTopic`` takes the queues from the route that the client
has, and the client ids from ``MQClientInstance.findConsumerIdList``: of ONE broker, drawn at
random among the brokers of that route (``findBrokerAddrByTopic``), the master or, where the route
has no master, a random slave (``BrokerData.selectBrokerAddr``).
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from .message_queue import MessageQueue, sort_client_ids, sort_message_queues
from .state import MASTER_ID, RouteBroker, State, TopicRoute

#: Name and id: 0 is the master of the broker name, any other a slave.
BrokerId: TypeAlias = tuple[str, int]


@dataclass(frozen=True, slots=True)
class View:
    """Two lists, both in Java's order, and how likely a client works from just these two.

    ``brokers`` are the broker names whose answer gives this view, ``draws`` how likely which of
    their addresses is asked; the weights of all views of a state add up to 1. Views that hold the
    same lists are one view.
    """

    queues: tuple[MessageQueue, ...]
    client_ids: tuple[str, ...]
    weight: float
    brokers: tuple[str, ...]
    draws: tuple[tuple[BrokerId, float], ...] = ()

    def weight_for(
        self, unreachable: Collection[str], replicas: Mapping[str, Collection[int]]
    ) -> float:
        """The likelihood that a client that does not reach these brokers draws the view.

        Asking such a broker fails, and the client draws again 20 s later: the weights that remain
        are to be divided by their sum. Source: ``RebalanceImpl.rebalanceByTopic`` 5.3.3, which
        keeps the queues where it got no list. It asks only these ids of the names in ``replicas``.
        """
        if not self.draws or not (unreachable or replicas):
            return self.weight
        return sum(
            draw
            for (name, broker_id), draw in self.draws
            if name not in unreachable and broker_id in replicas.get(name, (broker_id,))
        )


@dataclass(frozen=True, slots=True)
class Views:
    """All views of a state.

    ``completeness`` is the share of the route's brokers that gave a list: 1.0 where every
    broker that a client may ask answered with a list. A client that draws one of the others keeps
    the queues that it has, so such a broker gives no view.
    """

    views: tuple[View, ...]
    completeness: float


def readable_queues(topic: str, route: TopicRoute) -> tuple[MessageQueue, ...]:
    """The queues that a consumer sees in a route, in Java's order.

    Ids 0 to ``read_queue_nums`` - 1 of every broker with READ permission; a broker without an
    address is not left out. Source: ``MQClientInstance.topicRouteData2TopicSubscribeInfo`` 5.3.3.

    >>> route = TopicRoute("ns", (RouteBroker("b", read_queue_nums=2), RouteBroker("a", perm=2)))
    >>> [str(queue) for queue in readable_queues("T", route)]  # doctest: +NORMALIZE_WHITESPACE
    ['MessageQueue [topic=T, brokerName=b, queueId=0]',
     'MessageQueue [topic=T, brokerName=b, queueId=1]']
    """
    return _readable_queues(topic, route.brokers)


# The topics of the last few states: those of a state are asked for again for every repair.
@lru_cache(maxsize=16)
def _readable_queues(topic: str, brokers: tuple[RouteBroker, ...]) -> tuple[MessageQueue, ...]:
    readable = (broker for broker in brokers if broker.is_readable)
    return _queues(topic, ((b.broker_name, range(b.read_queue_nums)) for b in readable))


def _queues(topic: str, numbers: Iterable[tuple[str, range]]) -> tuple[MessageQueue, ...]:
    """The queues of a topic with these numbers, by broker name, in Java's order."""
    queues = [MessageQueue(topic, name, number) for name, ids in numbers for number in ids]
    return tuple(sort_message_queues(queues))


def readable_by_some(state: State) -> set[MessageQueue]:
    """The queues that a consumer sees in some route of the state."""
    return {queue for route in state.topic_routes for queue in readable_queues(state.topic, route)}


def unreadable_queues(topic: str, route: TopicRoute) -> tuple[MessageQueue, ...]:
    """The queues that producers write and no consumer can read, in Java's order.

    Ids at or beyond ``read_queue_nums`` on a readable broker, all ids on a broker without READ;
    only where the broker has WRITE permission, for else nothing is written. No consumer command
    shows what lies in them: ``ConsumeStats`` covers read queues alone.
    """
    return _queues(
        topic,
        (
            (b.broker_name, range(b.read_queue_nums if b.is_readable else 0, b.write_queue_nums))
            for b in route.brokers
            if b.is_writable
        ),
    )


def candidate_ids(broker_ids: tuple[int, ...] | None) -> tuple[int, ...]:
    """The broker ids of a name that a client may ask, of those with an address in the route.

    The master, or every slave where there is no master (``BrokerData.selectBrokerAddr`` 5.3.3).

    >>> candidate_ids((0, 1)), candidate_ids((1, 2)), candidate_ids(None)
    ((0,), (1, 2), (0,))
    """
    return (MASTER_ID,) if broker_ids is None or MASTER_ID in broker_ids else broker_ids


def asked_brokers(brokers: Iterable[RouteBroker]) -> frozenset[tuple[str, int]]:
    """Name and id of these brokers of routes that a client may ask for the members of a group."""
    asked = ((broker.broker_name, candidate_ids(broker.broker_ids)) for broker in brokers)
    return frozenset((name, broker_id) for name, ids in asked for broker_id in ids)


def possible_views(state: State) -> Views:
    """All views that the members of the state could draw, with their weights.

    Every nameserver's route weighs alike, within a route every broker that gave a list, within
    a broker without a master every slave. Which of the routes a process has, the lists show where
    routes have other brokers: see ``claims``.
    """
    lists = {
        entry.broker: tuple(sort_client_ids([member.client_id for member in entry.members]))
        for entry in state.client_lists
        if entry.members
    }
    # A list of queues goes by its number here: it is long, and most states have one alone.
    queue_lists: list[tuple[MessageQueue, ...]] = []
    weights: dict[tuple[int, tuple[str, ...]], float] = defaultdict(float)
    draws: dict[tuple[int, tuple[str, ...]], dict[BrokerId, float]] = defaultdict(dict)
    asked = answered = 0.0
    for route in state.topic_routes:
        queues = readable_queues(state.topic, route)
        drawn = {
            broker.broker_name: [(broker.broker_name, candidate) for candidate in candidates]
            for broker in route.brokers
            if (candidates := candidate_ids(broker.broker_ids))
        }
        asked += len(drawn)
        if not queues:
            continue  # the strategy throws on an empty list, and the client keeps what it has
        if queues not in queue_lists:
            queue_lists.append(queues)
        number = queue_lists.index(queues)
        listing = {name: [key for key in keys if key in lists] for name, keys in drawn.items()}
        answered += sum(len(listing[name]) / len(keys) for name, keys in drawn.items())
        with_view = list(filter(None, listing.values()))
        for given in with_view:
            for broker in given:
                view = (number, lists[broker])
                draw = 1 / len(with_view) / len(given)
                weights[view] += draw
                draws[view][broker] = draws[view].get(broker, 0.0) + draw
    total = sum(weights.values())
    views = tuple(
        View(
            queue_lists[view[0]],
            view[1],
            weight / total,
            tuple(sorted({name for name, _ in draws[view]})),
            tuple((broker, draw / total) for broker, draw in sorted(draws[view].items())),
        )
        for view, weight in weights.items()
    )
    return Views(
        views=tuple(sorted(views, key=lambda view: (-view.weight, view.brokers, view.client_ids))),
        completeness=answered / asked if asked else 0.0,
    )
