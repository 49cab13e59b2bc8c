"""The subscription table of a group, as the brokers' lists show it.

A broker keeps one table for a group (``ConsumerGroupInfo.subscriptionTable``), and each heartbeat
writes it anew: ``updateSubscription`` (4.x and 5.x) adds the topics of that member and removes all
others. Where all members subscribe alike the table never changes. Where it has a topic in some
polls and lacks it in others, again and again, some members subscribe to the topic and some do not.
The table does not show who; how often it has the topic shows how many.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, pairwise
from typing import NamedTuple, TypeAlias

from rebalance_core.grouping import grouped

from ..declared.dossier import Broker
from ..declared.instants import HEARTBEAT_INTERVAL, SECOND, Instant, together
from ..dumps.statement import Connections, Subscriptions

#: A member's heartbeat overwrites the group's table every 30 s, an expired member is gone after
#: 120 s: within this time every member's subscription has shown in the table.
GROUP_TABLE_SECONDS = 120

#: A topic flips where the table changed so many times while the connections stayed the same: one
#: change is a new subscription, two are one that was taken back.
_CHANGES = 3
#: Or so many times in all: a change that comes with other connections may be a deploy, one after it
#: that deploy's rollback, and both may have met the table in between.
_CHANGES_OF_ANY_KIND = 4
#: And for longer than this from the first to the last change: a rolling deploy that adds a topic
#: makes the table flip too, until the last member is new, also between two of its steps.
_FLIPS_FOR = 300 * SECOND
#: Changes belong together where the connections are the same: a table that is polled as often as
#: members write it stays the same for long. Else unless the table stayed the same for more polls in
#: a row than this, and for longer: where one member of ten subscribes, one poll of ten shows it.
_SAME_POLLS, _SAME_TIME = 20, 600 * SECOND
#: Shares are whole steps of so many percent, so that they stay equal from one ingest to the next.
_STEP = 5
#: Polls in step with the heartbeats always meet the table of the same member: they leave more than
#: so much of the time between two heartbeats without a look.
_NEVER_LOOKED_AT: Instant = 5 * SECOND
#: Then its share has no meaning: half of the members as likely as more or fewer.
_NO_SHARE = 50
#: A broker at which all members subscribe would have lacked the topic in so many polls at least,
#: had its table flipped as the others did: by chance it shows the topic in all of them once in 55.
_EXPECTED = 4

#: (topic, in how many percent of the polls the table had it).
Doubt: TypeAlias = tuple[str, int]
#: The time of a broker's answer with a list, the broker, and the answer.
TimedAnswer: TypeAlias = tuple[Instant, Broker, Connections]


class ShownFacts(NamedTuple):
    """The facts that the tables show of a member that reported no subscriptions itself."""

    subscriptions: Subscriptions
    #: The topics that flip, sorted.
    doubtful_topics: tuple[Doubt, ...]


class _Flip(NamedTuple):
    """A time in which the tables had a topic in some polls and lacked it in others."""

    topic: str
    #: Both ends count.
    begins: Instant
    ends: Instant
    percent: int
    subscriptions: frozenset[tuple[str, str, str]]
    #: The brokers whose tables had it all the time.
    sure: frozenset[Broker]


class GroupTables:
    """The subscription tables of a group, over all brokers' lists, in time."""

    def __init__(self, readings: Sequence[TimedAnswer]) -> None:
        """``readings``: in order of time."""
        numbers: dict[Subscriptions, int] = {}
        self._times = [time for time, _, _ in readings]
        self._shown = [
            numbers.setdefault(answer.subscriptions, len(numbers)) for _, _, answer in readings
        ]
        self._tables = list(numbers)
        self._unions: dict[frozenset[int], Subscriptions] = {}
        self._flips = _find_flips(readings) if len(numbers) > 1 else []

    def at(self, time: Instant, broker: Broker) -> ShownFacts:
        """The facts that the tables show of the members that a broker lists.

        One reading of a table that flips does not show who subscribes to what: a member that
        reported nothing itself counts as subscribing to all that any broker's table showed within
        GROUP_TABLE_SECONDS, or in all the time in which it flips.
        """
        shown = self._around(time)
        flips = [flip for flip in self._flips if flip.begins <= time <= flip.ends]
        if flips:
            shown = tuple(sorted({*shown, *chain.from_iterable(it.subscriptions for it in flips)}))
        return ShownFacts(
            shown, tuple((flip.topic, flip.percent) for flip in flips if broker not in flip.sure)
        )

    def _around(self, time: Instant) -> Subscriptions:
        reach = GROUP_TABLE_SECONDS * SECOND
        start = bisect_left(self._times, time - reach)
        shown = frozenset(self._shown[start : bisect_right(self._times, time + reach)])
        if shown not in self._unions:
            tables = [self._tables[number] for number in shown]
            self._unions[shown] = tuple(sorted({*chain.from_iterable(tables)}))
        return self._unions[shown]


def share_of_others(percent: int, members: int, sure: int, subscribed: int) -> int:
    """The share of the subscribers among the members that only the table shows, in percent.

    The table shows the member that wrote it last. Each writes it every 30 s, at other times than
    the others. So the table has the topic for the sum of the times up to the next writer: of few
    members a share far from that of the subscribers. That one member subscribes and another does
    not is certain; each of the others does as likely as the table has the topic. (With times at
    random and every number of subscribers equally likely, that is exactly what is to be expected.)
    Of ``sure`` members it is certain what they subscribe to, and ``subscribed`` of these have the
    topic. Never 0 or 100: the table does not show which member wrote it.

    >>> share_of_others(50, members=6, sure=0, subscribed=0)
    50
    >>> share_of_others(90, members=3, sure=0, subscribed=0)
    65
    >>> share_of_others(50, members=6, sure=2, subscribed=2)
    25
    >>> share_of_others(50, members=2, sure=1, subscribed=1)
    5
    """
    others = members - 2  # one subscribes, and another does not
    if others < 0:
        return percent
    subscribers = 1 + others * percent / 100
    return _rounded(subscribers - subscribed, members - sure)


def _rounded(part: float, whole: int) -> int:
    """A share in percent, in steps, between the first step and the last."""
    return min(max(_STEP * round(part / whole * 100 / _STEP), _STEP), 100 - _STEP)


#: The polls of each broker, in order: the time, whether its table had a topic, and its answer.
_Polled: TypeAlias = dict[Broker, list[tuple[Instant, bool, Connections]]]


def _find_flips(readings: Iterable[TimedAnswer]) -> list[_Flip]:
    """All flips of all topics, sorted by topic and time."""
    by_broker = grouped((broker, (time, answer)) for time, broker, answer in readings)
    tables = {answer.subscriptions for answers in by_broker.values() for _, answer in answers}
    topics_of = {table: frozenset(topic for topic, *_ in table) for table in tables}
    often = frozenset.union(*topics_of.values()) - frozenset.intersection(*topics_of.values())
    listed = {
        broker: frozenset(
            connection.client_id
            for answer in {id(answer): answer for _, answer in answers}.values()
            for connection in answer.connections
        )
        for broker, answers in by_broker.items()
    }
    same_members = grouped((listed[broker], broker) for broker in by_broker).values()
    flips: list[_Flip] = []
    for topic in sorted(often):
        polled = {
            broker: [(time, topic in topics_of[it.subscriptions], it) for time, it in answers]
            for broker, answers in by_broker.items()
        }
        subscriptions = frozenset(
            subscription for table in tables for subscription in table if subscription[0] == topic
        )
        # Where no table flips by itself, those of brokers that list the same members may together.
        alone = [time for broker in polled for time in _flipping(polled, [broker])]
        times = alone or [time for brokers in same_members for time in _flipping(polled, brokers)]
        for some in together(times, lambda time: time):
            ends = max(end for _, end in some)
            flips.append(_flip(topic, subscriptions, polled, listed, some[0][0], ends))
    return flips


def _flipping(polled: _Polled, brokers: Sequence[Broker]) -> Iterator[tuple[Instant, Instant]]:
    """The times in which a table flips, which may be those of several brokers as one.

    A heartbeat goes to all brokers at once, so that their tables are the same at one time. Where
    rounds are in step with heartbeats one broker may always be asked while the table is that of a
    member with the topic, and another, some seconds later, while it is that of one without: neither
    table ever changes, and together they flip.

    A change that comes with other connections may be a deploy, and counts for less. Before the
    first change and after the last one the table may have flipped for as long as it stayed the same
    between two changes.
    """
    readings = sorted(
        ((*polls, number) for number, broker in enumerate(brokers) for polls in polled[broker]),
        key=lambda reading: (reading[0], reading[-1]),
    )
    latest: list[Connections | None] = [None] * len(brokers)
    answers: list[tuple[Connections | None, ...]] = []
    for *_, answer, number in readings:
        latest[number] = answer
        answers.append(tuple(latest))
    had = [(time, has) for time, has, *_ in readings]
    changes = [place for place in range(1, len(had)) if had[place][1] != had[place - 1][1]]
    near = [changes[:1]]
    for before, place in pairwise(changes):
        same = had[place][0] - had[before][0]
        are_near = place - before <= _SAME_POLLS or same <= _SAME_TIME
        if are_near or _are_same(answers[before], answers[place]):
            near[-1].append(place)
        else:
            near.append([place])
    for places in near:
        times = [had[place][0] for place in places]
        same = sum(_are_same(*answers[place - 1 : place + 1]) for place in places)
        flips = same >= _CHANGES or len(places) >= _CHANGES_OF_ANY_KIND
        if flips and times[-1] - times[0] > _FLIPS_FOR:
            longest = max(b - a for a, b in pairwise(times))
            yield times[0] - longest, times[-1] + longest


def _are_same(before: Sequence[Connections | None], after: Sequence[Connections | None]) -> bool:
    """True if the brokers list the same connections, in any order: nobody came, left or restarted.

    A broker that was not asked yet shows nothing.
    """
    return all(
        one is not None
        and other is not None
        and (
            one.connections == other.connections
            or frozenset(one.connections) == frozenset(other.connections)
        )
        for one, other in zip(before, after, strict=True)
    )


def _flip(
    topic: str,
    subscriptions: frozenset[tuple[str, str, str]],
    polled: _Polled,
    listed: dict[Broker, frozenset[str]],
    begins: Instant,
    ends: Instant,
) -> _Flip:
    """The flip of a topic between two times, of all brokers' tables together.

    ``listed`` has by broker the client ids of all its lists.
    """
    shown = {
        broker: [(time, has) for time, has, _ in answers if begins <= time <= ends]
        for broker, answers in polled.items()
    }
    flipping = {broker for broker, polls in shown.items() if len({has for _, has in polls}) > 1}
    if not flipping:
        # Brokers that list the same members, and whose tables together had and lacked the topic.
        had: dict[frozenset[str], set[bool]] = defaultdict(set)
        for broker, polls in shown.items():
            had[listed[broker]].update(has for _, has in polls)
        flipping = {broker for broker in shown if len(had[listed[broker]]) > 1}
    readings = [
        has
        for broker in flipping
        if not _keeps_step([time for time, _ in shown[broker]])
        for _, has in shown[broker]
    ]
    percent = _rounded(sum(readings), len(readings)) if readings else _NO_SHARE
    enough = _EXPECTED * 100 / (100 - percent)
    # A member sends the same to every broker that lists it: where the members are the same, a table
    # that never lacks the topic was always asked at the wrong moment.
    flipping_lists = [listed[broker] for broker in flipping]
    sure = frozenset(
        broker
        for broker, polls in shown.items()
        if all(has for _, has in polls)
        and len(polls) >= enough
        and listed[broker] not in flipping_lists
    )
    return _Flip(topic, begins, ends, percent, subscriptions, sure)


def _keeps_step(times: Sequence[Instant]) -> bool:
    """True if the polls look at only a part of the time between two heartbeats.

    >>> _keeps_step([n * 60 * SECOND for n in range(9)])
    True
    >>> _keeps_step([n * 63 * SECOND for n in range(10)])
    False
    """
    phases = sorted({time % HEARTBEAT_INTERVAL for time in times})
    gaps = [after - before for before, after in pairwise([*phases, phases[0] + HEARTBEAT_INTERVAL])]
    return max(gaps) > _NEVER_LOOKED_AT
