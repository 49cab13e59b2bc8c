"""route changes -> faults: the readable queues changed, or left the route with messages unread."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain

from rebalance_core.english import agreeing, with_commas
from rebalance_core.grouping import grouped
from rebalance_core.state import PERM_READ
from rebalance_core.texts import Text

from ...declared.instants import Instant
from ...declared.kinds import QUEUES_LEFT_ROUTE, ROUTE_CHANGED, TRANSIENT
from ..observe.backlog import UnreadMessages, left_unread
from ..observe.core_verdict import QueueKey
from ..observe.in_words import queues_in_words, zoned_clock
from ..observe.routes import Readable, RouteChange, queues_of
from ..times import Extent
from .case import Case
from .found import FaultEpisode, GroupFindings, brokers_of


def route_changed(case: Case, found: GroupFindings) -> GroupFindings:
    """One fault for each change of a topic's readable queues.

    Until every client has polled the route (30 s) and rebalanced (20 s) they work from different
    lists; what they hold in that time lags what is computed.
    """
    return found.plus(
        FaultEpisode(
            topic,
            Extent(change.first_seen, change.first_seen, 1, TRANSIENT, ongoing=False),
            ROUTE_CHANGED,
            evidence=Text(
                "the readable queues changed from {before} to {now}; for up to 50 s clients work "
                "from different lists",
                before=_in_words(change.before),
                now=_in_words(change.now),
            ),
            remedy=Text("none if it was intended: every client follows within 50 s"),
            broker_names=brokers_of({*change.before} ^ {*change.now}),
        )
        for topic, changes in case.route_changes.items()
        for change in changes
    )


def _in_words(readable: Collection[Readable]) -> str:
    """The brokers with their queue numbers: of one that nameservers differ on all that they gave.

    >>> _in_words([("broker-a", 4), ("broker-a", 8), ("broker-b", 2)]), _in_words([])
    ('broker-a 4/8, broker-b 2', 'none')
    """
    if not readable:
        return Text("none")
    given = grouped(readable).items()
    return with_commas(
        [Text("{broker} {queues}", broker=name, queues="/".join(map(str, n))) for name, n in given]
    )


# ---------------------------------------------------------------- queues that left with messages


def queues_left_route(case: Case, found: GroupFindings) -> GroupFindings:
    """One fault for each change after which messages lie in queues that no route has any more.

    It is there until the queues are back, or the offsets show that they were read. What a queue's
    consumer reads between two polls was on its way, and counts as read; so does what was not
    there yet at the poll before: a client commits its offsets every 5 s
    (``persistConsumerOffsetInterval``).
    """
    changed = [(topic, changes) for topic, changes in case.route_changes.items() if changes]
    return found.plus(fault for of_topic in changed for fault in _left(case, *of_topic))


def _left(case: Case, topic: str, changes: Sequence[RouteChange]) -> Iterator[FaultEpisode]:
    routes = case.dossier.routes[topic]
    snapshots = sorted({time for run in routes for time in run.times})
    for number, change in enumerate(changes):
        back: dict[Instant | None, dict[QueueKey, UnreadMessages]] = defaultdict(dict)
        for queue in sorted(queues_of(change.before) - queues_of(change.now)):
            later = (one for one in changes[number + 1 :] if queue in queues_of(one.now))
            ends = next((back_again.first_seen for back_again in later), None)
            if left := left_unread(case.offsets.get((topic, *queue)), ends):
                back[ends][queue] = left
        given = (run for run in routes if change.first_seen in run.times)
        named = [*chain.from_iterable(run.brokers for run in given)]
        there = {broker.broker_name for broker in named}
        closed = {broker.broker_name for broker in named if not broker.perm & PERM_READ}
        for ends, unread in back.items():
            names = brokers_of(unread)
            unreadable = closed.intersection(names).difference(brokers_of(change.now))
            last_seen = snapshots[-1] if ends is None else ends
            seen = sum(change.first_seen <= snapshot <= last_seen for snapshot in snapshots)
            extent = case.extent(change.first_seen, last_seen, seen, ongoing=ends is None)
            evidence = _evidence(change, unread, unreadable)
            remedy = _remedy(there, names, unreadable)
            fault = FaultEpisode(topic, extent, QUEUES_LEFT_ROUTE, evidence, remedy)
            messages = sum(left.at_last for left in unread.values())
            yield fault.about(unread, unread_messages=messages)


def _evidence(
    change: RouteChange, unread: Mapping[QueueKey, UnreadMessages], unreadable: set[str]
) -> Text:
    """``unreadable``: the brokers that the route has, without the permission to read."""
    at_first, messages = map(sum, zip(*unread.values(), strict=True))
    left = agreeing(messages, "{messages} [message|messages] unread", messages=messages)
    if at_first != messages:
        left = Text("{unread} ({at_first} at the first poll)", unread=left, at_first=at_first)
    values = {
        "queues": queues_in_words(unread),
        "time": zoned_clock(change.first_seen),
        "unread": left,
    }
    template = "{queues} left the route at {time} with {unread}: no client reads [it|them]"
    if unreadable.issuperset(brokers_of(unread)):
        template = (
            "{queues} lost the permission to read at {time} with {unread}: no client reads "
            "[it|them]"
        )
    return agreeing(len(unread), template, **values)


def _remedy(there: set[str], names: Collection[str], unreadable: set[str]) -> Text:
    """``there``: the brokers that the route has, with or without queues to read."""
    # ``BrokerController.registerBrokerAll`` 4.9.4 takes what the broker may not out of the topic's.
    if unreadable:
        return Text(
            "give {brokers} the permission to read the topic again (perm 6 of the topic there, or "
            "brokerPermission of the broker's configuration) and let the group read the queues to "
            "their end",
            brokers=with_commas(sorted(unreadable)),
        )
    if not there:
        # ``AdminBrokerProcessor.deleteTopic`` 4.9.4 has the store drop the queues at once.
        return Text(
            "check whether the topic was deleted: if so, its messages are gone, and those that "
            "were not consumed must be sent again; let the groups read a topic to its end before "
            "it is deleted. If not, give its brokers read permission again"
        )
    if gone := [name for name in names if name not in there]:
        return Text(
            "bring {brokers} back into the route and let the group read the queues to their "
            "end; then take away the broker's write permission first, and remove it when its "
            "queues are empty",
            brokers=with_commas(gone),
        )
    return Text(
        "set the read queue number back (mqadmin updateTopic -r READ_QUEUES -w WRITE_QUEUES) "
        "and let the group read the queues to their end; then lower the write queue number "
        "first, and the read queue number when the queues are empty"
    )
