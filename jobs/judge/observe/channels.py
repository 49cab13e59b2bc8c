"""answers -> channels: the connections of client ids over time, and how many processes use an id.

A process has one connection (channel) for each broker, and the broker lists each. When a process
loses its connection without closing it and connects again, the broker lists the old one beside the
new one until it was silent for 120 s, which a scan each 10 s finds
(``ClientManageProcessor``/``ConsumerManager.scanNotActiveChannel``). So two channels of one id that
are listed side by side for longer are two processes, whatever else of the group changes, and an old
one that disappears in time was left behind by the process that has the new one.

A process that lives keeps its channel. One that a single poll of many lists shows none: where
rounds are further apart than 120 s, one process that reconnects each minute has several in every
list, and none of them in two (rocketmq#2509, with rounds each 300 s; ``cases/test_copies``).
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, groupby, pairwise
from operator import attrgetter, itemgetter
from typing import NamedTuple, TypeAlias

from rebalance_core.grouping import grouped
from rebalance_core.processes import confirmed_processes
from rebalance_core.state import ProcessCount
from rebalance_core.texts import Text

from ...declared.dossier import Broker, ClientRun, Dossier
from ...declared.instants import Instant
from ...schemas import NOT_ONLINE, RUNNING_INFO
from .answers import Answers

# Why a client id is used by so many processes; without slots: see ``evaluation.state_of``.
_SIDE_BY_SIDE = Text(
    "its connections stay listed side by side for longer than a broker keeps a silent one"
)
_REPLACED = Text(
    "each new connection replaced the previous one, which the broker dropped before its "
    "timeout for silent ones"
)
_SEEN_ONCE = Text(
    "it has connections that one list of the broker alone has, and a process that lives keeps its "
    "connection"
)
_SEVERAL_STARTS = Text("the start times in its answers alternate, so several processes answer")


#: The running infos of a client id, in time: when each came and when its process started.
Starts: TypeAlias = Sequence[tuple[Instant, Instant]]


class Channel(NamedTuple):
    """One connection of a client in the lists of one broker.

    ``first_seen`` and ``last_seen`` are the first and the last poll that list it, at the times at
    which the broker answered; ``ends`` the first poll after it that does not, None where there
    is none: it is there in the last list.
    """

    broker: Broker
    client_id: str
    client_addr: str
    first_seen: Instant
    last_seen: Instant
    ends: Instant | None

    @property
    def is_seen_once(self) -> bool:
        """True if one poll lists it, and the next one does not."""
        return self.ends is not None and self.first_seen == self.last_seen


def channels_of(
    dossier: Dossier, answers: Sequence[Answers[Broker]]
) -> Mapping[str, Sequence[Channel]]:
    """The channels of each client id that some broker lists more than once, or under several
    addresses over time.
    """
    names = {name for answer in answers for name in answer.names}
    # A member without an address has no channel that could be followed.
    listed = {
        name: [member for member in zip(*dossier.list_members[name](), strict=True) if member[1]]
        for name in names & dossier.list_members.keys()
    }
    client_ids: set[str] = set()
    # The ids with more than one address at a broker. Most groups have none.
    for answer in answers:
        lists = [listed[name] for name in answer.names if name in listed]
        connections = {connection for members in lists for connection in members}
        addresses = Counter(client_id for client_id, _ in connections)
        client_ids.update(client_id for client_id, number in addresses.items() if number > 1)
    if not client_ids:
        return {}
    worth_following = {
        name: [one for one in members if one[0] in client_ids] for name, members in listed.items()
    }
    every = (channel for answer in answers for channel in _broker_channels(answer, worth_following))
    return grouped((channel.client_id, channel) for channel in every)


def _broker_channels(
    answers: Answers[Broker], connections_by_list: Mapping[str, Sequence[tuple[str, str]]]
) -> Iterable[Channel]:
    """``connections_by_list``: by list the client ids and addresses that are worth a look."""
    open_: dict[tuple[str, str], Channel] = {}
    polls = zip(answers.contents.tolist(), answers.collected_at.tolist(), strict=True)
    for place, run in groupby(polls, itemgetter(0)):
        times = [at for _, at in run]
        first_seen, last_seen, name = times[0], times[-1], answers.names[place]
        if name not in connections_by_list and name != NOT_ONLINE:
            continue  # the answer has no list
        here = set(connections_by_list.get(name, ()))
        for connection in [connection for connection in open_ if connection not in here]:
            yield open_.pop(connection)._replace(ends=first_seen)
        for client_id, client_addr in here:
            channel = open_.get((client_id, client_addr)) or Channel(
                answers.witness, client_id, client_addr, first_seen, last_seen, None
            )
            open_[client_id, client_addr] = channel._replace(last_seen=last_seen)
    yield from open_.values()


class ProcessCounts:
    """The number of processes that use a client id, at any time, as far as time shows it."""

    def __init__(
        self,
        channels: Mapping[str, Sequence[Channel]],
        clients: Sequence[ClientRun],
        expiry: Instant,
    ) -> None:
        starts = starts_of(clients)
        self._ids = [
            _IdChannels(
                client_id,
                {broker: _AtBroker(own, expiry) for broker, own in by_broker(listed).items()},
                _started_at_once(starts.get(client_id, ())),
            )
            for client_id, listed in sorted(channels.items())
            if _overlap(listed)
        ]

    def at(self, polls: Mapping[Broker, Instant]) -> tuple[ProcessCount, ...]:
        """Counts the processes of the ids that a broker lists more than once at these polls.

        ``polls``: when each broker was asked.
        """
        return tuple(count for one in self._ids if (count := one.at(polls)) is not None)


def by_broker(channels: Iterable[Channel]) -> Mapping[Broker, list[Channel]]:
    """The channels of each broker, in the order in which they began."""
    in_time = sorted(channels, key=attrgetter("first_seen"))
    return grouped((channel.broker, channel) for channel in in_time)


def _overlap(channels: Sequence[Channel]) -> bool:
    """True if a broker ever lists two of them at once: two that follow each other, then."""
    pairs = chain.from_iterable(map(pairwise, by_broker(channels).values()))
    return any(later.first_seen <= one.last_seen for one, later in pairs)


class _IdChannels(NamedTuple):
    """The channels of one client id, and how many of its processes answer by turns."""

    client_id: str
    by_broker: Mapping[Broker, "_AtBroker"]
    at_once: int

    def at(self, polls: Mapping[Broker, Instant]) -> ProcessCount | None:
        """The number of processes at these polls; None where time does not show it."""
        asked = self.by_broker.keys() & polls.keys()
        there = [self.by_broker[broker].at(polls[broker]) for broker in asked]
        crowded = [crowd for crowd in there if crowd.listed > 1]
        if not crowded:
            return None
        several = max(crowd.together for crowd in crowded)
        if several > 1:
            return ProcessCount(self.client_id, several, _SIDE_BY_SIDE)
        ever = [at_broker.ever for at_broker in self.by_broker.values()]
        is_kept = not any(crowd.seen_once for crowd in ever)
        if self.at_once > 1:
            # An answer is that of any of them: some may not have answered yet.
            listed = [crowd.listed for crowd in there if crowd.listed and is_kept]
            several = max(self.at_once, confirmed_processes(listed or [1]))
            return ProcessCount(self.client_id, several, _SEVERAL_STARTS)
        # One start time in all answers proves nothing: a broker passes the question to the first
        # channel of the id that it has, and every broker's may be that of the same process.
        # At the edge of the window it is not seen how long they stay: as it was at other times.
        are_replaced = all(crowd.not_left_behind <= 1 for crowd in crowded)
        several = max(crowd.together for crowd in ever)
        if several > 1 and not are_replaced and not self._come_and_go(asked, polls):
            return ProcessCount(self.client_id, several, _SIDE_BY_SIDE)
        if are_replaced or any(crowd.not_left_behind < crowd.listed for crowd in ever):
            return ProcessCount(self.client_id, 1, _REPLACED)
        if not is_kept:
            return ProcessCount(self.client_id, 1, _SEEN_ONCE)
        return None

    def _come_and_go(self, asked: Iterable[Broker], polls: Mapping[Broker, Instant]) -> bool:
        """True if no channel that is there is in two lists, as in the round before or after: one
        deploy of all processes of the id shows it in one round alone (``judge/test_channels``).
        """
        return all(self.by_broker[broker].come_and_go(polls[broker]) for broker in asked)


class _Crowd(NamedTuple):
    """Counts of the channels of an id that a broker lists at one time: all ..."""

    listed: int
    #: ... the most processes that they show, as some stay beside others for longer than a silent
    #: one is kept ...
    together: int
    #: ... those that no newer one has replaced ...
    not_left_behind: int
    #: ... and those that a single poll lists, and the next one does not.
    seen_once: int


class _AtBroker:
    """The channels of one client id at one broker. An id may have thousands."""

    def __init__(self, channels: Sequence[Channel], expiry: Instant) -> None:
        self._channels = channels
        self._first_seen = [channel.first_seen for channel in channels]
        self._last_seen = sorted(channel.last_seen for channel in channels)
        self._expiry = expiry
        self._crowds: dict[tuple[int, int], _Crowd] = {}
        #: All of them: those that stay together are listed when the first of them is listed last.
        self.ever = self._crowd(channels)

    def at(self, moment: Instant) -> _Crowd:
        """The channels that are listed then."""
        # So many came and so many went: which are listed follows from these two.
        came = bisect_right(self._first_seen, moment)
        went = bisect_left(self._last_seen, moment)
        if (came, went) not in self._crowds:
            there = [channel for channel in self._channels[:came] if channel.last_seen >= moment]
            self._crowds[came, went] = self._crowd(there)
        return self._crowds[came, went]

    def come_and_go(self, moment: Instant) -> bool:
        """True if no channel that is listed then is in another list, nor any of one beside it."""
        there = [one for one in self._channels if one.first_seen <= moment <= one.last_seen]
        if any(channel.first_seen != channel.last_seen for channel in there):
            return False
        came = {channel.first_seen for channel in there}
        went = {channel.ends for channel in there}
        before = [channel for channel in self._channels if channel.ends in came]
        after = [channel for channel in self._channels if channel.first_seen in went]
        beside = (crowd for crowd in (before, after) if crowd)
        return any(all(channel.is_seen_once for channel in crowd) for crowd in beside)

    def _crowd(self, there: Sequence[Channel]) -> _Crowd:
        first_seen = [channel.first_seen for channel in there]
        left_behind = sum(_is_left_behind(channel, first_seen, self._expiry) for channel in there)
        seen_once = sum(channel.is_seen_once for channel in there)
        together = _together(there, self._expiry)
        return _Crowd(len(there), together, len(there) - left_behind, seen_once)


def _together(channels: Sequence[Channel], expiry: Instant) -> int:
    """The most processes that channels show which stay listed beside others.

    A channel that is listed for longer than the expiry after another one came is of another
    process: its own would have left it behind. So at the time at which some came all that were
    there and stay so long are processes, each, and those that came are one more at least.
    """
    lasting = [channel for channel in channels if channel.last_seen - expiry > channel.first_seen]
    came = sorted(channel.first_seen for channel in lasting)
    left = sorted(channel.last_seen - expiry for channel in lasting)
    new_ones = set(came)
    processes = (
        bisect_right(came, time) - bisect_right(left, time) + (time not in new_ones)
        for time in {channel.first_seen for channel in channels}
    )
    return max(processes, default=0)


def _is_left_behind(one: Channel, first_seen: Sequence[Instant], expiry: Instant) -> bool:
    """True if a newer channel came while it was listed, and the broker dropped it in time.

    ``first_seen`` are those of its broker's channels, ascending.
    """
    if one.ends is None:
        return False
    after = bisect_right(first_seen, one.first_seen)
    newer = max(after, bisect_left(first_seen, one.last_seen - expiry))
    return newer < len(first_seen) and first_seen[newer] <= one.last_seen


def starts_of(clients: Sequence[ClientRun]) -> Mapping[str, Starts]:
    """The start times of each client id's processes, with when they were reported, in time."""
    found = grouped(
        (run.client_id, (at, run.start_timestamp))
        for run in clients
        if run.source == RUNNING_INFO and run.start_timestamp is not None
        for _, at in run.times
    )
    return {client_id: sorted(starts) for client_id, starts in found.items()}


def _started_at_once(starts: Starts) -> int:
    """The number of start times that alternate: a process that was restarted does not answer again.

    >>> _started_at_once([(1, 10), (2, 20), (3, 10)]), _started_at_once([(1, 10), (2, 20)])
    (2, 1)
    """
    seen = grouped((start, at) for at, start in starts)
    spans = [(min(times), max(times)) for times in seen.values()]
    return max(
        (sum(first_seen <= at <= last_seen for first_seen, last_seen in spans) for at, _ in spans),
        default=1,
    )
