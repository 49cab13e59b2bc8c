"""answers -> membership: whether brokers that list different members disagree, or were asked at
different times.

While a client joins or leaves, one broker was asked before it and another after it. That is no
disagreement: there is one moment at which the client joined, and every poll fits it. Two brokers
disagree about a client where one of them, asked before and after, gave the same each time, and the
other gave something else in between.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple

import numpy as np

from jobs.instants import SECOND, Instant
from jobs.judge.answers import NOTHING, Answers, Numbers
from jobs.judge.dossier import Broker, Dossier
from jobs.schemas import ANSWERED, NO_ANSWER, NOT_ONLINE

#: A client heartbeats every 30 s (``ClientConfig.heartbeatBrokerInterval``): a broker that misses
#: it for longer is not reached by it. A broker that restarted lists it again by then.
_HEARTBEAT_INTERVAL: Instant = 30 * SECOND


class Patch(NamedTuple):
    """What a broker's list was when the round ended: of these clients that of its next list.

    The broker was asked before they joined, left or reconnected, and another broker after it.
    """

    broker: Broker
    client_ids: tuple[str, ...]
    later: str


class Shown(NamedTuple):
    """What the lists of one snapshot come to."""

    patches: tuple[Patch, ...]
    #: As in the core's ``State.unreachable``.
    unreachable: tuple[tuple[str | None, str], ...]


NOTHING_SHOWN = Shown((), ())


@dataclass
class Lists:
    """The distinct lists of a group, as multisets of client ids."""

    dossier: Dossier
    _counts: dict[str, Counter[str]] = field(default_factory=dict)
    _numbers: dict[frozenset[tuple[str, int]], int] = field(default_factory=dict)
    _number_of: dict[str, int] = field(default_factory=dict)
    _differing: dict[tuple[str, str], frozenset[str]] = field(default_factory=dict)

    def is_list(self, name: str) -> bool:
        """Whether it is a list whose members are at hand, and not an outcome."""
        return name in self.dossier.list_members

    def counts(self, name: str) -> Counter[str]:
        """By client id how often the list has it; none of an outcome."""
        if name not in self._counts:
            listed = self.dossier.list_members.get(name)
            self._counts[name] = Counter(listed().client_ids) if listed else Counter()
        return self._counts[name]

    def number(self, name: str) -> int:
        """A number that two lists share where they have the same client ids equally often."""
        if name not in self._number_of:
            members = frozenset(self.counts(name).items())
            self._number_of[name] = self._numbers.setdefault(members, len(self._numbers))
        return self._number_of[name]

    def differing(self, one: str, other: str) -> frozenset[str]:
        """The client ids that two lists do not have equally often."""
        key = (one, other) if one < other else (other, one)
        if key not in self._differing:
            odd = self.counts(one).items() ^ self.counts(other).items()
            self._differing[key] = frozenset(client_id for client_id, _ in odd)
        return self._differing[key]


def find_membership(
    lists: Lists,
    answers: Sequence[Answers[Broker]],
    places: Mapping[Broker, Numbers],
    ends: Numbers,
) -> dict[int, Shown]:
    """By the number of the snapshot what its lists come to, where they differ.

    ``places`` has by broker and snapshot the poll that counts, ``ends`` when each round ended.
    """
    disagreements = _Disagreements(lists, [each for each in answers if _gives_lists(lists, each)])
    differ = _snapshots_that_differ(lists, answers, places)
    if not differ.any():
        return {}
    cut_off = disagreements.cut_off()
    without_group = _without_group(_masters(answers), disagreements.answers)
    found: dict[int, Shown] = {}
    for number in np.flatnonzero(differ).tolist():
        polls = {each.witness: int(places[each.witness][number]) for each in answers}
        unreachable: list[tuple[str | None, str]] = []
        for broker, poll in polls.items():
            lacking = cut_off.get(broker, {}).get(poll, ())
            unreachable += [(client_id, broker[0]) for client_id in lacking]
            if poll in without_group.get(broker, ()):
                unreachable.append((None, broker[0]))
        patches = tuple(disagreements.patches(polls, int(ends[number])))
        if patches or unreachable:
            in_order = sorted(unreachable, key=lambda each: (each[1], each[0] or ""))
            found[number] = Shown(patches, tuple(in_order))
    return found


def _gives_lists(lists: Lists, answers: Answers[Broker]) -> bool:
    return any(lists.is_list(name) for name in answers.names)


def _snapshots_that_differ(
    lists: Lists, answers: Sequence[Answers[Broker]], places: Mapping[Broker, Numbers]
) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """By snapshot whether two brokers list other members, or one has none where another has some.

    In most snapshots of most groups none do.
    """
    rows = []
    for each in answers:
        numbers = np.array([_number(lists, name) for name in each.names] + [-1], np.int64)
        polls = places[each.witness]
        contents = np.where(polls >= 0, each.contents[np.maximum(polls, 0)], len(each.names))
        rows.append(numbers[contents])
    given = np.array(rows)
    highest = given.max(axis=0, initial=-1)
    lowest = np.where(given < 0, np.iinfo(np.int64).max, given).min(
        axis=0, initial=np.iinfo(np.int64).max
    )
    differ: np.ndarray[tuple[int, ...], np.dtype[np.bool_]] = (highest >= 0) & (highest != lowest)
    return differ


def _number(lists: Lists, name: str) -> int:
    """The number of a list; of a broker that has no member another one; -1 of no answer."""
    if lists.is_list(name):
        return lists.number(name) + 1
    return 0 if name == NOT_ONLINE else -1


class _Disagreements:
    """What the brokers that give lists say of the clients that not all of them list."""

    def __init__(self, lists: Lists, answers: Sequence[Answers[Broker]]) -> None:
        self._lists = lists
        self._given = answers
        self.answers = [_answered(each) for each in answers]

    def cut_off(self) -> Mapping[Broker, Mapping[int, Sequence[str]]]:
        """By broker and poll the clients that do not reach the broker, each process once.

        The broker lacks such a client at polls that follow each other over more than 30 s, and
        at each of them another broker lists it for sure. Of an id that the other broker lists
        more often than this one, the processes that are missing do not reach it.
        """
        found: dict[Broker, dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
        masters = {each.witness for each in _masters(self._given)}
        for each in self.answers:
            if each.broker not in masters:
                continue
            lacking: dict[tuple[str, int], list[int]] = defaultdict(list)
            for number in range(len(each.polls)):
                for client_id, copies in self._lacks(each, number).items():
                    for copy in range(copies):
                        lacking[client_id, copy].append(number)
            for (client_id, _), numbers in lacking.items():
                for run in _unbroken(numbers):
                    first, last = each.collected_at[run[0]], each.collected_at[run[-1]]
                    if last - first > _HEARTBEAT_INTERVAL:
                        for number in run:
                            found[each.broker][each.polls[number]].append(client_id)
        return found

    def _lacks(self, one: _Answered, number: int) -> Mapping[str, int]:
        """The clients that a broker lacks at a poll, and how many copies of each: those that
        another broker lists for sure.
        """
        here, at = self._lists.counts(one.names[number]), one.collected_at[number]
        missing: dict[str, int] = {}
        for other in self.answers:
            if other is one:
                continue
            before, after = other.around(at)
            # At an edge of the window the one answer counts: the run of polls decides.
            before, after = before or after, after or before
            if before is None or after is None:
                continue
            for client_id in self._lists.differing(one.names[number], before):
                there = (self._lists.counts(given)[client_id] for given in (before, after))
                copies = min(there) - here[client_id]
                if copies > missing.get(client_id, 0):
                    missing[client_id] = copies
        return missing

    def patches(self, polls: Mapping[Broker, int], end: Instant) -> Iterator[Patch]:
        """What changed at brokers between their answer and the end of the round.

        A change that a broker shows at its next poll counts as done where another broker showed
        it by the end of the round, after this one answered, unless the two disagreed before.
        """
        for one in self.answers:
            number = one.number_of(polls.get(one.broker, NOTHING))
            if number is None or number + 1 >= len(one.polls):
                continue
            now, later = one.names[number], one.names[number + 1]
            changed = self._lists.differing(now, later)
            if not changed:
                continue
            at = one.collected_at[number]
            done = sorted(
                client_id
                for client_id in changed
                if self._is_seen(one, client_id, self._lists.counts(later)[client_id], at, end)
                and not self._disagrees(one, client_id, self._lists.counts(now)[client_id], at)
            )
            if done:
                yield Patch(one.broker, tuple(done), later)

    def _is_seen(
        self, one: _Answered, client_id: str, copies: int, since: Instant, until: Instant
    ) -> bool:
        """Whether another broker lists the client so often at its last poll in this time."""
        for other in self.answers:
            if other is one:
                continue
            place = int(np.searchsorted(other.times, until, side="right")) - 1
            is_later = place >= 0 and other.collected_at[place] > since
            if is_later and self._lists.counts(other.names[place])[client_id] == copies:
                return True
        return False

    def _disagrees(self, one: _Answered, client_id: str, copies: int, at: Instant) -> bool:
        """Whether another broker surely lists the client another number of times then."""
        for other in self.answers:
            if other is not one:
                before, after = other.around(at)
                if before is not None and after is not None:
                    there = self._lists.counts(before)[client_id]
                    if there != copies and there == self._lists.counts(after)[client_id]:
                        return True
        return False


@dataclass(frozen=True)
class _Answered:
    """The polls of a broker that were answered: with a list, or that there is no member."""

    broker: Broker
    #: Their places among all polls of the broker.
    polls: Sequence[int]
    times: Numbers
    collected_at: Sequence[Instant]
    names: Sequence[str]

    def around(self, at: Instant) -> tuple[str | None, str | None]:
        """What the broker gave last up to a moment, and first from it on."""
        after = int(np.searchsorted(self.times, at, side="left"))
        before = int(np.searchsorted(self.times, at, side="right")) - 1
        return (
            self.names[before] if before >= 0 else None,
            self.names[after] if after < len(self.names) else None,
        )

    def number_of(self, poll: int) -> int | None:
        """The place of a poll among those that were answered."""
        place = int(np.searchsorted(np.asarray(self.polls, np.int64), poll))
        return place if place < len(self.polls) and self.polls[place] == poll else None


def _answered(answers: Answers[Broker]) -> _Answered:
    silent = np.array([name in (ANSWERED, NO_ANSWER) for name in answers.names])
    polls = np.flatnonzero(~silent[answers.contents])
    times = answers.collected_at[polls]
    return _Answered(
        answers.witness,
        polls.tolist(),
        times,
        times.tolist(),
        [answers.names[place] for place in answers.contents[polls].tolist()],
    )


def _without_group(
    answers: Sequence[Answers[Broker]], others: Sequence[_Answered]
) -> Mapping[Broker, set[int]]:
    """By broker the polls at which it has no member of the group, while others list members.

    Over polls that follow each other for more than 30 s: a broker that has just restarted knows no
    member until their next heartbeat.
    """
    listing = [each for each in others if any(name != NOT_ONLINE for name in each.names)]
    found: dict[Broker, set[int]] = {}
    for each in answers:
        if NOT_ONLINE not in each.names:
            continue
        one = _answered(each)
        offline = [
            number
            for number, name in enumerate(one.names)
            if name == NOT_ONLINE and _some_list(listing, one, one.collected_at[number])
        ]
        for run in _unbroken(offline):
            if one.collected_at[run[-1]] - one.collected_at[run[0]] > _HEARTBEAT_INTERVAL:
                found.setdefault(one.broker, set()).update(one.polls[number] for number in run)
    return found


def _masters(answers: Sequence[Answers[Broker]]) -> list[Answers[Broker]]:
    """Of each broker name the answers with the lowest id: that is whom clients ask and read."""
    lowest = {each.witness[0]: each for each in sorted(answers, key=_broker_of, reverse=True)}
    return list(lowest.values())


def _broker_of(answers: Answers[Broker]) -> Broker:
    return answers.witness


def _some_list(others: Sequence[_Answered], one: _Answered, at: Instant) -> bool:
    """Whether another broker surely lists members then."""
    for other in others:
        if other.broker[0] != one.broker[0]:
            before, after = other.around(at)
            if NOT_ONLINE not in (before, after) and (before or after):
                return True
    return False


def _unbroken(numbers: Sequence[int]) -> Iterator[list[int]]:
    """Numbers that follow each other, run by run.

    >>> list(_unbroken([1, 2, 4]))
    [[1, 2], [4]]
    """
    for _, run in groupby(enumerate(numbers), key=lambda each: each[1] - each[0]):
        yield [number for _, number in run]
