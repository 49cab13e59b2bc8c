"""answers -> membership: whether brokers that list different members disagree, or were asked at
different times.

While a client joins or leaves, one broker was asked before it and another after it. That is no
disagreement: there is one moment at which the client joined, and every poll fits it. Two brokers
disagree about a client where one of them, asked before and after, gave the same each time, and the
other gave something else in between. Brokers that all report the truth, each at another time, never
disagree.

A client that a broker lacks for longer than a heartbeat takes, while another broker lists it, does
not reach that broker: it gets no list from it and reads no queue of it. At one poll alone it may
have got a list without itself. On a real cluster, in 22 of 26 rounds nobody had the four queues of
the broker that one client could not reach: by the odds of the draws it is two of three.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from typing import NamedTuple

import numpy as np

from ..instants import SECOND, Instant
from ..schemas import ANSWERED, NO_ANSWER, NOT_ONLINE
from .answers import BRIDGED_AT_LEAST, NOTHING, Answers, Numbers
from .dossier import Broker, Dossier
from .extents import usual_gap

#: A client heartbeats every 30 s (``ClientConfig.heartbeatBrokerInterval``): a broker that misses
#: it for longer is not reached by it. A broker that restarted lists it again by then.
_HEARTBEAT_INTERVAL: Instant = 30 * SECOND
#: Between two answers that are further apart than so many usual intervals one is missing.
_GAP = 1.5
#: Nobody saw what was between two answers that are so far apart, unless they always are ...
_LONGEST_UNSEEN: Instant = 30 * 60 * SECOND
#: ... which so few answers do not show.
_FEW = 4


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
    #: (client id, broker): the broker does not list the client, once for each of its processes; of
    #: None it lists nobody. Of the brokers that clients do not ask as well: see ``situations``.
    unreachable: tuple[tuple[str | None, Broker], ...]


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
    without_group = _without_group([_answered(each) for each in answers])
    found: dict[int, Shown] = {}
    for number in np.flatnonzero(differ).tolist():
        polls = {each.witness: int(places[each.witness][number]) for each in answers}
        unreachable: list[tuple[str | None, Broker]] = []
        for broker, poll in polls.items():
            lacking = cut_off.get(broker, {}).get(poll, ())
            unreachable += [(client_id, broker) for client_id in lacking]
            if poll in without_group.get(broker, ()):
                unreachable.append((None, broker))
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
    """What the brokers that give lists show of the clients that not all of them list."""

    def __init__(self, lists: Lists, answers: Sequence[Answers[Broker]]) -> None:
        self._lists = lists
        self.answers = [_answered(each) for each in answers]

    def cut_off(self) -> Mapping[Broker, Mapping[int, Sequence[str]]]:
        """By broker and poll the clients that do not reach the broker, each process once.

        The broker lacks such a client at polls that follow each other over more than 30 s, while
        another broker lists it: for sure, or at the edge of what was seen of that broker. Of an id
        that the other broker lists more often, the processes that are missing do not reach it.
        """
        found: dict[Broker, dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
        for each in self.answers:
            lacking: dict[tuple[str, int], list[int]] = defaultdict(list)
            sure: dict[str, set[int]] = defaultdict(set)
            for number in range(len(each.polls)):
                missing, surely = self._lacks(each, number)
                for client_id, copies in missing.items():
                    if client_id in surely:
                        sure[client_id].add(number)
                    for copy in range(copies):
                        lacking[client_id, copy].append(number)
            for (client_id, _), numbers in lacking.items():
                for run in each.long_runs(numbers):
                    if sure[client_id].isdisjoint(run):
                        continue
                    for number in run:
                        found[each.broker][each.polls[number]].append(client_id)
        return found

    def _lacks(self, one: "_Answered", number: int) -> tuple[Mapping[str, int], set[str]]:
        """The clients that a broker lacks at a poll while another one lists them, and how many
        copies of each; and those that the other one lists for sure, before it and after it.
        """
        here, at = self._lists.counts(one.names[number]), one.collected_at[number]
        missing: dict[str, int] = {}
        surely: set[str] = set()
        for other in self.answers:
            if other is one:
                continue
            before, after = other.near(at)
            if before is None or after is None:
                continue
            for client_id in self._lists.differing(one.names[number], before):
                there = (self._lists.counts(given)[client_id] for given in (before, after))
                copies = min(there) - here[client_id]
                if copies > 0 and None not in other.around(at):
                    surely.add(client_id)
                if copies > missing.get(client_id, 0):
                    missing[client_id] = copies
        return missing, surely

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
            if not changed and not one.is_gap(number):
                continue
            at = one.collected_at[number]
            done = sorted(
                client_id
                for client_id in changed
                if self._is_seen(one, client_id, self._lists.counts(later)[client_id], at, end)
                and not self._disagrees(one, client_id, self._lists.counts(now)[client_id], at)
            )
            if later == NOT_ONLINE and len(done) < len(changed):
                # A broker has no member any more only once it lacks all of them.
                done = []
            if done:
                yield Patch(one.broker, tuple(done), later)
            if one.is_gap(number) and not (done and later == NOT_ONLINE):
                since_then = self._meanwhile(one, number, polls, end, done)
                if since_then is not None:
                    yield since_then

    def _meanwhile(
        self,
        one: "_Answered",
        number: int,
        polls: Mapping[Broker, int],
        end: Instant,
        done: Sequence[str],
    ) -> Patch | None:
        """What the others show of other clients while the answers of a broker are missing.

        A list that is bridged hides who left and came back. Of the clients of which all others that
        were asked since show the same, their list counts, unless they disagreed when the broker
        answered last.
        """
        now, at = one.names[number], one.collected_at[number]
        fresh: list[tuple[Instant, str]] = []
        for other in self.answers:
            place = other.number_of(polls.get(other.broker, NOTHING))
            if place is not None and at < other.collected_at[place] <= end:
                fresh.append((other.collected_at[place], other.names[place]))
        if not fresh:
            return None
        latest = max(fresh)[1]
        counts = self._lists.counts
        changed = [
            client_id
            for client_id in sorted(self._lists.differing(now, latest))
            if client_id not in done
            and len({counts(name)[client_id] for _, name in fresh}) == 1
            and not self._disagrees(one, client_id, counts(now)[client_id], at)
        ]
        return Patch(one.broker, tuple(changed), latest) if changed else None

    def _is_seen(
        self, one: "_Answered", client_id: str, copies: int, since: Instant, until: Instant
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

    def _disagrees(self, one: "_Answered", client_id: str, copies: int, at: Instant) -> bool:
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

    def is_gap(self, number: int) -> bool:
        """Whether answers are missing between an answer and the next one."""
        return self._is_gap[number]

    @cached_property
    def _is_gap(self) -> Sequence[bool]:
        gaps: list[Instant] = np.diff(self.times).tolist()
        return [gap > _GAP * self.usual_gap for gap in gaps]

    @cached_property
    def usual_gap(self) -> Instant:
        """The usual time between two answers."""
        return usual_gap((gap, 1) for gap in np.diff(self.times).tolist())

    def near(self, at: Instant) -> tuple[str | None, str | None]:
        """As ``around``; where the broker was not asked before or after it, the one answer is both,
        if it came soon enough: an edge of the window is no proof for all time beyond it.
        """
        before, after = self.around(at)
        if (before is None) == (after is None):
            return before, after
        nearest = self.collected_at[-1] if after is None else self.collected_at[0]
        is_near = abs(at - nearest) <= max(BRIDGED_AT_LEAST, _GAP * self.usual_gap)
        only = (before or after) if is_near else None
        return only, only

    def long_runs(self, numbers: Sequence[int]) -> Iterator[list[int]]:
        """The answers, by their numbers, that follow each other for longer than a heartbeat takes.

        What lies between two that are too far apart nobody saw.
        """
        longest = _LONGEST_UNSEEN
        if len(self.times) > _FEW:
            longest = max(longest, int(_GAP * self.usual_gap))
        for run in _unbroken(numbers):
            times = self.times[run]
            for part in np.split(run, np.flatnonzero(np.diff(times) > longest) + 1):
                if self.times[part[-1]] - self.times[part[0]] > _HEARTBEAT_INTERVAL:
                    yield part.tolist()

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


def _without_group(answers: Sequence[_Answered]) -> Mapping[Broker, set[int]]:
    """By broker the polls at which it has no member of the group, while others list members.

    Over polls that follow each other for more than 30 s: a broker that has just restarted knows no
    member until their next heartbeat.
    """
    listing = [each for each in answers if any(name != NOT_ONLINE for name in each.names)]
    found: dict[Broker, set[int]] = {}
    for one in answers:
        if NOT_ONLINE not in one.names:
            continue
        offline = [
            number
            for number, name in enumerate(one.names)
            if name == NOT_ONLINE and _some_list(listing, one, one.collected_at[number])
        ]
        for run in one.long_runs(offline):
            found.setdefault(one.broker, set()).update(one.polls[number] for number in run)
    return found


def _some_list(others: Sequence[_Answered], one: _Answered, at: Instant) -> bool:
    """Whether another broker surely lists members then."""
    for other in others:
        if other.broker[0] != one.broker[0]:
            before, after = other.near(at)
            if None not in (before, after) and NOT_ONLINE not in (before, after):
                return True
    return False


def _unbroken(numbers: Sequence[int]) -> Iterator[list[int]]:
    """Numbers that follow each other, run by run.

    >>> list(_unbroken([1, 2, 4]))
    [[1, 2], [4]]
    """
    for _, run in groupby(enumerate(numbers), key=lambda each: each[1] - each[0]):
        yield [number for _, number in run]
