"""answers -> membership: whether brokers that list different members disagree, or were asked at
different times.

While a client joins or leaves, one broker was asked before it and another after it. That is no
disagreement: there is one moment at which the client joined, and every poll fits it. Two brokers
disagree about a client where one of them, asked before and after, gave the same each time, and the
other gave something else in between. Brokers that all report the truth, each at another time, never
disagree.

A client that a broker lacks for longer than a heartbeat takes, while another broker lists it, does
not reach that broker: it gets no list from it and reads no queue of it (``S15``,
``unreachable_broker``). At one poll alone it may have got a list without itself. On a real cluster,
in 22 of 26 rounds nobody had the four queues of the broker that one client could not reach: by the
odds of the draws it is two of three.
"""

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import chain, pairwise
from typing import NamedTuple

import numpy as np

from rebalance_core.grouping import grouped

from ...declared.dossier import Broker, Dossier
from ...declared.instants import HEARTBEAT_INTERVAL, Instant
from ...schemas import NOT_ONLINE
from ..times import ONE_IS_MISSING, longest_unseen, usual_gap
from .answers import BRIDGED_AT_LEAST, Answers, Integers


class Patch(NamedTuple):
    """A broker's list at the end of the round: as its next list has these clients.

    The broker was asked before they joined, left or reconnected, and another broker after it.
    """

    broker: Broker
    client_ids: tuple[str, ...]
    later: str


class ListOutcome(NamedTuple):
    """The corrections of one snapshot's lists, and who is not listed."""

    patches: tuple[Patch, ...]
    #: (client id, broker): the broker does not list the client, once for each of its processes; of
    #: None it lists nobody. Of the brokers that clients do not ask as well: see ``situations``.
    unreachable: tuple[tuple[str | None, Broker], ...]


NO_OUTCOME = ListOutcome((), ())


class Lists:
    """The distinct lists of a group, as multisets of client ids."""

    def __init__(self, dossier: Dossier) -> None:
        self._members = dossier.list_members
        #: The number of times that a list has each client id; empty for an outcome.
        self.counts = cache(self._counts)
        #: The client ids that two lists do not have equally often.
        self.differing = cache(self._differing)

    def is_list(self, name: str) -> bool:
        """True if it is a list whose members are at hand, and not an outcome."""
        return name in self._members

    def _counts(self, name: str) -> Counter[str]:
        return Counter(self._members[name]().client_ids if self.is_list(name) else ())

    def _differing(self, one: str, other: str) -> frozenset[str]:
        odd = self.counts(one).items() ^ self.counts(other).items()
        return frozenset(client_id for client_id, _ in odd)


def find_membership(
    lists: Lists,
    answers: Sequence[Answers[Broker]],
    places: Mapping[Broker, Integers],
    ends: Integers,
) -> dict[int, ListOutcome]:
    """Finds, by the number of the snapshot, what its lists come to where they differ.

    ``places`` has by broker and snapshot the poll that counts, ``ends`` when each round ended.
    """
    differ = _snapshots_that_differ(lists, answers, places)
    if not differ:
        return {}
    giving = [answer for answer in answers if any(map(lists.is_list, answer.names))]
    disagreements = _Disagreements(lists, list(map(_answered, giving)))
    lacking = chain[tuple[Broker, int, str | None]](
        disagreements.clients_cut_off(), _without_group(list(map(_answered, answers)))
    )
    missing = grouped(((broker, poll), client_id) for broker, poll, client_id in lacking)
    found: dict[int, ListOutcome] = {}
    for number in differ:
        polls = {answer.witness: int(places[answer.witness][number]) for answer in answers}
        unreachable = [(id_, poll[0]) for poll in polls.items() for id_ in missing.get(poll, ())]
        patches = tuple(disagreements.patches(polls, int(ends[number])))
        if patches or unreachable:
            in_order = sorted(unreachable, key=lambda pair: (pair[1], pair[0] or ""))
            found[number] = ListOutcome(patches, tuple(in_order))
    return found


def _snapshots_that_differ(
    lists: Lists, answers: Sequence[Answers[Broker]], places: Mapping[Broker, Integers]
) -> list[int]:
    """The numbers of the snapshots in which two brokers list other members, or one has none where
    another has some.

    In most snapshots of most groups none do.
    """
    if not answers:
        return []
    # Lists share a number where they have the same client ids equally often; no answer has -1.
    distinct: dict[frozenset[tuple[str, int]], int] = {}
    number_of = {NOT_ONLINE: 0}
    for name in filter(lists.is_list, {name for answer in answers for name in answer.names}):
        members = frozenset(lists.counts(name).items())
        number_of[name] = distinct.setdefault(members, len(distinct) + 1)
    rows = []
    for answer in answers:
        # The last one is of no poll: -1 finds it.
        numbers = np.array([*(number_of.get(name, -1) for name in answer.names), -1], np.int64)
        polls = places[answer.witness]
        rows.append(numbers[np.where(polls >= 0, answer.contents[np.maximum(polls, 0)], -1)])
    given = np.array(rows)
    highest = given.max(axis=0)
    differ = highest != np.where(given < 0, highest, given).min(axis=0)
    return np.flatnonzero(differ).tolist()


class _Disagreements:
    """Disagreements of the brokers that give lists about who is a member."""

    def __init__(self, lists: Lists, answers: Sequence["_BrokerAnswers"]) -> None:
        self._lists = lists
        self._answers = answers

    def clients_cut_off(self) -> Iterator[tuple[Broker, int, str]]:
        """Each broker and poll with a client that does not reach the broker, each process once.

        The broker lacks such a client at polls that follow each other over more than 30 s, while
        another broker lists it: for sure; at the edge of what was seen of that broker; or at once,
        as in the first round that has a client, with what is sure in another: it may have come
        between the two answers, but that does not explain the other round. Of an id
        that the other broker lists more often, the processes that are missing do not reach it.
        """
        for answer in self._answers:
            lacking: dict[tuple[str, int], list[int]] = defaultdict(list)
            sure: dict[str, set[int]] = defaultdict(set)
            for number in range(len(answer.polls)):
                missing, surely = self._missing_clients(answer, number)
                for client_id, copies in missing.items():
                    if client_id in surely:
                        sure[client_id].add(number)
                    for copy in range(copies):
                        lacking[client_id, copy].append(number)
            for (client_id, _), numbers in lacking.items():
                for run in answer.long_runs(numbers):
                    if not sure[client_id].isdisjoint(run):
                        yield from (
                            (answer.broker, answer.polls[number], client_id) for number in run
                        )

    def _but(self, one: "_BrokerAnswers") -> Iterator["_BrokerAnswers"]:
        return (answer for answer in self._answers if answer is not one)

    def _missing_clients(
        self, one: "_BrokerAnswers", number: int
    ) -> tuple[Mapping[str, int], set[str]]:
        """The clients that a broker lacks at a poll while another one lists them, and how many
        copies of each; and those that the other one lists for sure, before it and after it.
        """
        here, at = self._lists.counts(one.names[number]), one.times[number]
        missing: dict[str, int] = {}
        surely: set[str] = set()
        for other in self._but(one):
            before, after = other.near(at)
            if before is None or after is None:
                continue
            is_sure = other.times[0] <= at <= other.times[-1]
            given = (before, after, other.at_once(at))
            differing = (self._lists.differing(one.names[number], name) for name in given if name)
            for client_id in frozenset().union(*differing):
                *there, at_once = (self._lists.counts(name or "")[client_id] for name in given)
                if min(there) > here[client_id] and is_sure:
                    surely.add(client_id)
                copies = max(min(there), at_once) - here[client_id]
                if copies > missing.get(client_id, 0):
                    missing[client_id] = copies
        return missing, surely

    def patches(self, polls: Mapping[Broker, int], ends: Instant) -> Iterator[Patch]:
        """The changes at brokers between their answer and the end of the round.

        A change that a broker shows at its next poll counts as done where another broker showed
        it by the end of the round, after this one answered. While answers of a broker are missing
        its list hides who left and came back: of the clients of which all others that were asked
        since show the same, their list counts. Neither is so of clients about whom the brokers
        disagreed when this one answered (``judge/test_membership``).
        """
        counts = self._lists.counts
        in_force = {
            answer.broker: answer.number_of(polls[answer.broker]) for answer in self._answers
        }
        for one in self._answers:
            number = in_force[one.broker]
            if number is None or number + 1 >= len(one.polls):
                continue
            at, now, later = one.times[number], *one.names[number : number + 2]
            # The last answer of each other one since then: when, and whether that counts in this
            # round.
            later_answers = [
                (other.times[place], other.names[place], place == in_force[other.broker])
                for other in self._but(one)
                for place in [bisect_right(other.times, ends) - 1]
                if place >= 0 and other.times[place] > at
            ]
            changed = self._lists.differing(now, later)
            seen = [
                id_
                for id_ in changed
                if any(counts(name)[id_] == counts(later)[id_] for _, name, _ in later_answers)
            ]
            done = self._undisputed(one, number, seen)
            if later == NOT_ONLINE and len(done) < len(changed):
                # A broker has no member any more only once it lacks all of them.
                done = []
            if done:
                yield Patch(one.broker, tuple(done), later)
            fresh = [(time, name) for time, name, is_in_force in later_answers if is_in_force]
            if not fresh or not one.is_gap(number) or (done and later == NOT_ONLINE):
                continue
            _, latest = max(fresh)
            others = self._lists.differing(now, latest).difference(done)
            agreed = [id_ for id_ in others if len({counts(name)[id_] for _, name in fresh}) == 1]
            if meanwhile := self._undisputed(one, number, agreed):
                yield Patch(one.broker, tuple(meanwhile), latest)

    def _undisputed(
        self, one: "_BrokerAnswers", number: int, client_ids: Iterable[str]
    ) -> list[str]:
        """The clients, sorted, whose number no other broker surely listed otherwise when this one
        gave that answer.
        """
        counts, now = self._lists.counts, one.names[number]
        around = (other.around(one.times[number]) for other in self._but(one))
        sure = [(before, after) for before, after in around if before and after]

        def is_disputed(id_: str) -> bool:
            given = ((counts(before)[id_], counts(after)[id_]) for before, after in sure)
            return any(before == after != counts(now)[id_] for before, after in given)

        return [client_id for client_id in sorted(client_ids) if not is_disputed(client_id)]


@dataclass(frozen=True)
class _BrokerAnswers:
    """The polls of a broker that were answered: with a list, or that there is no member."""

    broker: Broker
    #: The places among all polls of the broker.
    polls: Sequence[int]
    #: The times of its answers.
    times: Sequence[Instant]
    names: Sequence[str]

    def around(self, at: Instant) -> tuple[str | None, str | None]:
        """The last answer of the broker up to a moment, and the first from it on."""
        before, after = bisect_right(self.times, at) - 1, bisect_left(self.times, at)
        last = self.names[before] if before >= 0 else None
        return last, self.names[after] if after < len(self.names) else None

    def is_gap(self, number: int) -> bool:
        """True if answers are missing between an answer and the next one."""
        return self.times[number + 1] - self.times[number] > ONE_IS_MISSING * self.usual_gap

    @cached_property
    def usual_gap(self) -> Instant:
        """The usual time between two answers."""
        return usual_gap(np.diff(self.times))

    def at_once(self, at: Instant) -> str | None:
        """The nearest answer, if it came within the time that a heartbeat takes."""
        place = bisect_left(self.times, at)
        around = range(max(place - 1, 0), min(place + 1, len(self.times)))
        nearest = min(around, key=lambda number: abs(self.times[number] - at))
        return self.names[nearest] if abs(self.times[nearest] - at) <= HEARTBEAT_INTERVAL else None

    def near(self, at: Instant) -> tuple[str | None, str | None]:
        """The answers ``around`` a moment; at an edge of the window the one answer is both, if it
        came soon enough: it does not prove all time beyond it.
        """
        before, after = self.around(at)
        if (before is None) == (after is None):
            return before, after
        nearest = self.times[-1] if after is None else self.times[0]
        is_near = abs(at - nearest) <= max(BRIDGED_AT_LEAST, ONE_IS_MISSING * self.usual_gap)
        only = (before or after) if is_near else None
        return only, only

    def long_runs(self, numbers: Sequence[int]) -> Iterator[list[int]]:
        """The answers, by their numbers, that follow each other for longer than a heartbeat takes.

        Nobody saw what lies between two that are too far apart.
        """
        longest = longest_unseen(len(self.times) - 1, self.usual_gap)
        times = np.array([self.times[number] for number in numbers], np.int64)
        cuts = np.flatnonzero((np.diff(numbers) > 1) | (np.diff(times) > longest)) + 1
        for start, end in pairwise([0, *cuts.tolist(), len(numbers)]):
            if numbers and times[end - 1] - times[start] > HEARTBEAT_INTERVAL:
                yield [*numbers[start:end]]

    def number_of(self, poll: int) -> int | None:
        """The place of a poll among those that were answered."""
        place = bisect_left(self.polls, poll)
        return place if self.polls[place : place + 1] == [poll] else None


def _answered(answers: Answers[Broker]) -> _BrokerAnswers:
    polls = answers.answered
    names = [answers.names[place] for place in answers.contents[polls].tolist()]
    times = answers.collected_at[polls].tolist()
    return _BrokerAnswers(answers.witness, polls.tolist(), times, names)


def _without_group(answers: Sequence[_BrokerAnswers]) -> Iterator[tuple[Broker, int, None]]:
    """Each broker and poll at which it has no member of the group, while others list members.

    Over polls that follow each other for more than 30 s: a broker that has just restarted knows no
    member until their next heartbeat (``vm_and_broker_restarts``).
    """
    listing = [answer for answer in answers if any(name != NOT_ONLINE for name in answer.names)]
    for one in answers:
        others = [other for other in listing if other.broker[0] != one.broker[0]]
        empty = (number for number, name in enumerate(one.names) if name == NOT_ONLINE)
        offline = []
        for number in empty:
            around = (other.near(one.times[number]) for other in others)
            # Another broker surely lists members then.
            if any(map({None, NOT_ONLINE}.isdisjoint, around)):
                offline.append(number)
        for run in one.long_runs(offline):
            yield from ((one.broker, one.polls[number], None) for number in run)
