"""queue offsets and periods -> stalls: queues that have an owner and do not move all the same.

A queue stalls from one poll to the next where messages wait in it at both, its offset is the same,
it has an owner, and another queue of the topic keeps up (``Intervals``). The stall goes from the
first to the last time of an unbroken row of such polls at which another one keeps up
(``_find_stalled``). It lasts from ``persistence_seconds`` (180 s) on; a shorter one is TRANSIENT,
and INFO. Polls that come sooner than clients commit (5 s) do not count, nor does what chance
explains in one of 1,000 queues (``_leave_out_slow``). How bad it is ``severity.stall_severity``
says.

A frozen process stays in every broker's list for about two minutes, and one that is stuck but still
heartbeats stays for ever: its queues have an owner by computation, and only their offsets show it.

The offsets of a topic are a matrix: a row for each queue, a column for each poll.

A client none of whose queues moves while those of others do is a frozen process.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from rebalance_core.english import agreeing
from rebalance_core.findings import AUDITED, BROADCASTING_GROUP, ORPHANED
from rebalance_core.grouping import grouped
from rebalance_core.texts import Text

from ...declared.dossier import QueueOffsets
from ...declared.instants import COMMIT_INTERVAL
from ...declared.kinds import FROZEN_PROCESS
from ...schemas import NOT_COUNTING, NOT_FINISHING, NOT_LOCKED
from ..observe.core_verdict import QueueKey
from ..observe.holdings import Holding
from ..observe.in_words import between, clients_in_words, queues_in_words, waiting_in_words
from ..times import Extent, Portion, join_episodes
from .case import Case
from .found import FaultEpisode, GroupFindings, QueueFinding, Stall
from .why import has_moving_queue

Flags: TypeAlias = NDArray[np.bool_]
Longs: TypeAlias = NDArray[np.int64]


#: The likelihood from which on a queue may stay by chance: each of a thousand that are looked at.
_BY_CHANCE = 0.001

#: A queue, as its row of the matrix, and a situation, by its number.
_Place: TypeAlias = tuple[int, int]


class Polls:
    """The polls of a topic's queues, each with the queue's poll before: [queue, poll], but for what
    has another comment.
    """

    def __init__(self, offsets: Iterable[QueueOffsets]) -> None:
        """All polls of these queues, but for those that come too soon after another one."""
        offsets = [_apart(offset) for offset in offsets]
        # Nearly always all queues of a topic are asked at the same times.
        schedules = {offset.times.tobytes(): offset.times for offset in offsets}
        #: The times of the polls.
        self.times = np.unique(np.concatenate(list(schedules.values())))
        self.topic = offsets[0].topic
        #: The row of each queue.
        self.rows = {(one.broker_name, one.queue_id): row for row, one in enumerate(offsets)}
        self.queues = tuple(self.rows)
        shape = len(offsets), len(self.times)
        self.present = np.zeros(shape, np.bool_)
        consumed, self.backlog = np.zeros((2, *shape), np.int64)
        for row, offset in enumerate(offsets):
            columns = np.searchsorted(self.times, offset.times)
            self.present[row, columns] = True
            consumed[row, columns] = offset.consumer_offsets
            self.backlog[row, columns] = offset.waiting
        # The last poll that the queue has, as of each column; shifted by one, the poll before.
        places = np.where(self.present, np.arange(len(self.times)), -1)
        before = np.roll(np.maximum.accumulate(places, axis=1), 1, axis=1)
        before[:, 0] = -1
        #: The queue has this poll and one before.
        self.paired = self.present & (before >= 0)
        #: The column of the queue's poll before; 0 where there is none.
        self.before = np.maximum(before, 0)
        self.backlog_before = np.take_along_axis(self.backlog, self.before, axis=1)
        #: The move of the consumer offset since then.
        self.step = consumed - np.take_along_axis(consumed, self.before, axis=1)
        #: Messages wait, and the offset is that of the poll before.
        self.waits = self.paired & (self.backlog > 0) & (self.step == 0)
        #: Messages wait at both polls, and the offset is the same.
        self.unmoved = self.waits & (self.backlog_before > 0)

    def extent(self, case: Case, first: int, last: int, polls: int) -> Extent:
        """The time of so many polls, from one column to another."""
        first_seen, last_seen = self.times[[first, last]].tolist()
        return case.extent(first_seen, last_seen, polls, ongoing=last_seen == self.times[-1].item())

    @cached_property
    def keeps_up(self) -> Flags:
        """True for each queue and poll at which the queue keeps up.

        A queue keeps up where its offset moves; and, once moved, for as long as nothing waits in it
        and nothing new happens to the topic's queues: after a burst of messages nobody moves, and
        those that are done with their share kept up. What happens is that a queue moves, or that
        messages come to one that had none and stay: from there on it may be that no queue moves.
        """
        columns = np.arange(len(self.times))
        # Nothing shows when a queue moved that was missing from a poll.
        previous = np.where(self.paired, self.before, -1)
        moved = self.paired & (self.step > 0) & (previous == previous.max(axis=0))
        happened = (moved | (self.waits & (self.backlog_before == 0))).any(axis=0)
        moved_at = np.maximum.accumulate(np.where(moved, columns, -1), axis=1)
        happened_at = np.maximum.accumulate(np.where(happened, columns, -1))
        is_latest = (moved_at >= 0) & (moved_at == happened_at)
        return np.asarray(is_latest & ((moved_at == columns) | (self.backlog == 0)) & self.present)

    @cached_property
    def any_keeps_up(self) -> Flags:
        """True for each poll at which some queue of the topic keeps up."""
        return np.asarray(self.keeps_up.any(axis=0))

    def orphaned(self, orphans: Iterable[QueueFinding]) -> Flags:
        """True where nobody owned the queue at one of the polls, or in half of the interval."""
        explained = np.zeros_like(self.present)
        for orphan in orphans:
            row = self.rows.get(orphan.queue)
            for first_seen, last_seen in orphan.all_times if row is not None else ():
                begins, ends = self.times[self.before[row]], self.times
                shared = np.minimum(last_seen, ends) - np.maximum(first_seen, begins)
                explained[row] |= (first_seen <= begins) & (begins <= last_seen)
                explained[row] |= (first_seen <= ends) & (ends <= last_seen)
                explained[row] |= 2 * shared >= ends - begins
        return explained

    def hidden(self, case: Case) -> Flags:
        """True where the queue's offsets do not show whether it moved.

        See ``Absence.is_blind_between``.
        """
        hidden = np.zeros_like(self.present)
        for absence in case.masters_away:
            rows = [row for (name, _), row in self.rows.items() if name == absence.broker_name]
            hidden[rows] |= absence.is_blind_between(self.times[self.before[rows]], self.times)
        return hidden


def not_moving(case: Case) -> Iterator[Polls]:
    """The polls of each topic of which some queue does not move at some time."""
    every = case.dossier.offsets.values()
    return (Polls(offsets) for offsets in every if any(offset.unmoved.any() for offset in offsets))


class PollOwners:
    """Owners of a topic's queues between two polls; [queue, poll] as in ``Polls``.

    Nothing shows whose a queue is before the first situation, nor where it was not audited; where
    it was, a queue that nobody takes has no owner. So has any queue of members that broadcast:
    they keep their offsets themselves (``cases/test_shared_by_broker``).
    """

    def __init__(self, case: Case, polls: Polls, counts: Flags) -> None:
        """The owners of the intervals that count, in whose situations alone it looks."""
        in_force = case.situations.in_force(polls.topic, polls.times)
        numbers = {id_: number for number, id_ in enumerate(dict.fromkeys(in_force))}
        #: The number of the situation in force at the poll before.
        self.situation = np.array([numbers[id_] for id_ in in_force], np.int64)[polls.before]
        asked = set(np.unique(self.situation[counts]).tolist())
        rows = polls.rows
        unowned, known, sole = np.zeros((3, len(rows), len(numbers)), np.bool_)
        #: The client ids that a queue was computed for in a situation.
        self.of: dict[_Place, set[str]] = defaultdict(set)
        processes: dict[_Place, float] = defaultdict(float)
        for situation_id, number in numbers.items():
            if situation_id is not None and number in asked:
                evaluated = case.evaluated[situation_id]
                coverage = evaluated.verdict.coverage
                unowned[:, number] = coverage in (AUDITED, BROADCASTING_GROUP)
                if coverage == BROADCASTING_GROUP:
                    continue
                for allocation in evaluated.allocations():
                    for row in (rows[queue] for queue in allocation.queues if queue in rows):
                        self.of[row, number].add(allocation.client_id)
                        processes[row, number] += allocation.processes * allocation.view_weight
        for place, client_ids in self.of.items():
            unowned[place], known[place] = False, True
            sole[place] = len(client_ids) == 1 and abs(processes[place] - 1) < 1e-9
        #: Nobody has the queue; somebody is known to own it; one process has it alone.
        self.unowned, self.known, self.sole = (
            np.take_along_axis(flags, self.situation, axis=1) for flags in (unowned, known, sole)
        )

    def at(self, row: int, poll: int) -> tuple[str, ...]:
        """The owners of the queue as the interval that ends at the poll began; empty: not known."""
        return tuple(sorted(self.of.get((row, int(self.situation[row, poll])), ())))


class Intervals:
    """The times between two polls of each queue of a topic: [queue, poll] is what ends at the poll,
    as in ``polls``.

    A queue does not move if messages wait at both polls and its offset is the same. It is stalled
    if it has an owner and another queue kept up: without one to compare with, the whole group
    may not move, or have nothing to do. So a stall lasts from the first to the last time that
    another kept up. A moment without an owner does not end it (see ``_find_stalled``).
    """

    def __init__(self, case: Case, polls: Polls, orphans: Sequence[QueueFinding]) -> None:
        self.polls = polls
        self._has_work = polls.paired & ((polls.backlog_before > 0) | (polls.step != 0))
        #: The queue had messages to consume, or keeps up; nothing else counts.
        self.counts = self._has_work | (polls.paired & polls.keeps_up)
        self.owners = PollOwners(case, polls, self.counts)
        lasting = polls.orphaned(orphan for orphan in orphans if orphan.extent.lasts)
        owned = polls.unmoved & ~self.owners.unowned & ~polls.orphaned(orphans)
        shown = owned & polls.any_keeps_up & ~polls.hidden(case)
        #: The interval belongs to a stall.
        self.stalled = np.zeros_like(owned)
        self._find_stalled(polls.unmoved & ~lasting, owned, shown)
        self._leave_out_slow()

    def runs(self, flags: Flags) -> Iterator[tuple[int, Longs, Longs]]:
        """Unbroken runs of flags, of what counts: the row of the queue, the polls of the run, and
        those with what is beside it.
        """
        for row in np.flatnonzero(flags.any(axis=1)).tolist():
            counted = np.flatnonzero(self.counts[row])
            for start, end in spans(flags[row, counted]):
                yield row, counted[start:end], counted[max(start - 1, 0) : end + 1]

    def _find_stalled(self, unmoved: Flags, owned: Flags, shown: Flags) -> None:
        """The polls of each stall: of a run, from the first to the last time another kept up.

        ``shown``: where the offsets show a stall; what they hide around it belongs to it too.

        If the queue had no owner, that is why it did not move. But a moment without one, between
        two times in which it had one and did not move either, is a part of the same stall: as
        ``join_episodes`` has it, what shows the stall must outweigh it from either end.
        """
        for row, run, _ in self.runs(unmoved & shown.any(axis=1, keepdims=True)):
            at = self.polls.times[run].tolist()
            owned_runs = [
                Portion(at[first], at[after - 1], after - first, before=first, after=after)
                for first, after in spans(owned[row, run])
            ]
            for episode in join_episodes(owned_runs):
                whole = run[episode[0].before : episode[-1].after]
                contrasted = np.flatnonzero(owned[row, whole] & self.polls.any_keeps_up[whole])
                if shown[row, whole].any():
                    self.stalled[row, whole[contrasted[0] : contrasted[-1] + 1]] = True

    def _leave_out_slow(self) -> None:
        """Leaves out the stalls of a group that may only be slow.

        A client reads its own queues side by side. Where nobody knows whose a queue is, as by POP,
        each may come to all queues in turn, and a queue is stalled if it is unlikely that one which
        moves as often as those that move would stay for so many polls
        (``cases/test_shared_by_broker``).

        Worked example: a group takes a message a minute, each of another one of its eight queues.
        Each stays for seven polls, and at those and the polls beside them the others move once in
        nine: (8 / 9) ** 7 = 0.44 of the queues of such a group stay so long.
        """
        moved = self._has_work & (self.polls.step > 0)
        for row, run, beside in self.runs(self.stalled):
            around = slice(beside[0], beside[-1] + 1)
            movers = moved[:, around].any(axis=1)
            stays = 1 - moved[movers, around].sum() / max(self._has_work[movers, around].sum(), 1)
            if stays ** len(run) > _BY_CHANCE and not self.owners.known[row, run].any():
                self.stalled[row, run] = False


def orphans_by_topic(found: GroupFindings) -> Mapping[str, Sequence[QueueFinding]]:
    """The queues of each topic that were orphaned at some time, whatever the certainty."""
    return grouped((queue.topic, queue) for queue in found.queues if queue.kind == ORPHANED)


def _stalls(case: Case, intervals: Intervals) -> Iterator[Stall]:
    """The stalls of a topic: one per queue and unbroken run of polls over which it did not move."""
    every, backlog = intervals.polls, intervals.polls.backlog
    for row, run, _ in intervals.runs(intervals.stalled):
        before, last = every.before[row, run[0]], run[-1]
        extent = every.extent(case, before, last, len(run) + 1)
        waiting = int(backlog[row, last])
        came, owners = waiting - int(backlog[row, before]), intervals.owners.at(row, last)
        yield Stall(every.topic, extent, every.queues[row], waiting, came, owners)


def spans(flags: Flags) -> list[tuple[int, int]]:
    """Unbroken runs of set flags: the start (inclusive) and end (exclusive) of each.

    >>> spans(np.array([True, True, False, True]))
    [(0, 2), (3, 4)]
    """
    edges = np.flatnonzero(np.diff(flags.astype(np.int8), prepend=0, append=0)).tolist()
    return list(zip(edges[::2], edges[1::2], strict=True))


def _apart(offsets: QueueOffsets) -> QueueOffsets:
    """Leaves out polls that come sooner after one that counts than clients commit.

    >>> polls = np.array([0, 3, 10, 12, 30]) * 1_000_000
    >>> apart = _apart(QueueOffsets("T", "b", 0, polls, polls, polls))
    >>> [time // 1_000_000 for time in apart.times.tolist()]
    [0, 10, 30]
    """
    if not (np.diff(offsets.times) < COMMIT_INTERVAL).any():
        return offsets
    kept = [0]
    for number, time in enumerate(offsets.times.tolist()):
        if time - offsets.times[kept[-1]] >= COMMIT_INTERVAL:
            kept.append(number)
    return QueueOffsets(*offsets[:3], *[column[kept] for column in offsets[3:6]])


# ---------------------------------------------------------------- frozen processes


_REMEDY = (
    "check whether {this_client} is stopped, in a long garbage collection or blocked in its "
    "listener, and restart it; its queues go to others about 130 s after its last "
    "heartbeat, at once if it shuts down in order"
)


def stalled_queues(case: Case, found: GroupFindings) -> GroupFindings:
    """The stalled queues, and the faults FROZEN_PROCESS of those who should have moved them."""
    orphans = orphans_by_topic(found)
    faults: list[FaultEpisode] = []
    stalls: list[Stall] = []
    for polls in not_moving(case):
        if (polls.unmoved & polls.any_keeps_up).any():
            intervals = Intervals(case, polls, orphans.get(polls.topic, ()))
            for fault in _frozen_processes(case, intervals):
                faults += _as_reported(case, fault)
            stalls += _stalls(case, intervals)
    return found.plus(faults, stalls=stalls)


def _as_reported(case: Case, fault: FaultEpisode) -> Iterator[FaultEpisode]:
    """The fault, with the remedy of a wrong count where the process reports one; none where it
    moves a queue of another topic, or consumes newer messages than the one that holds its queue up.

    In order it does not (``ProcessQueue.takeMessages`` 4.9.4): the first message of each queue
    is not finished, and where that is so of all of them, the process hangs
    (``cases/test_standing_queues``; of another topic ``judge/test_stalls``).
    """
    others = case.timelines.keys() - {fault.topic}
    if has_moving_queue(case, others, fault.client_ids[0], fault.extent):
        return
    answers = case.holdings[fault.topic].of_clients(fault.client_ids, fault.extent)
    lacking = [(activity, one.run) for one in answers for activity in one.activities.values()]
    if any(what == NOT_FINISHING and not run.consume_orderly for what, run in lacking):
        return
    miscounts = any(what == NOT_COUNTING for what, _ in lacking)
    yield replace(fault, remedy=restart_who_miscounts(fault.client_ids)) if miscounts else fault


def restart_who_miscounts(client_ids: Collection[str]) -> Text:
    """The remedy of clients that pull no more, for they count messages that they have not."""
    return agreeing(
        len(client_ids),
        "restart {these_clients}, and update [it|them]: [it counts|they count] cached messages "
        "that [it has|they have] not, and [pulls|pull] no more, as early Go clients do",
        these_clients=clients_in_words(client_ids, {}),
    )


def _frozen_processes(case: Case, intervals: Intervals) -> Iterator[FaultEpisode]:
    """One fault per client and unbroken run of polls in which all its queues with messages stalled.

    Its queues are those that it reports to hold, if it answered between the two polls, else those
    that are computed for it. Where one of its queues moves, the process lives: that is a message
    that cannot be consumed, or a lock (``stalled_queues`` looks at its other topics). A client that
    shares a queue is left out: either may be the one that does not move. When nobody at all moved,
    that this client did not is not evidence against it (``S14b``, ``judge/test_stalls``).
    """
    every = intervals.polls
    holdings = case.holdings[every.topic].holdings
    alone = intervals.stalled & every.any_keeps_up & intervals.owners.sole
    suspects = {intervals.owners.at(row, poll)[0] for row, poll in np.argwhere(alone).tolist()}
    computed = grouped(
        (client_id, place)
        for place, client_ids in (intervals.owners.of.items() if suspects else ())
        for client_id in suspects.intersection(client_ids)
    )
    for client_id, places in sorted(computed.items()):
        rows, owns, sole, answered = _had(intervals, holdings, client_id, places)
        held = intervals.counts[rows] & every.any_keeps_up & owns
        lives = held & ~(intervals.stalled[rows] & sole)
        polls = np.flatnonzero(held.any(axis=0))
        for start, end in spans(~np.logical_or.reduce(lives)[polls]):
            run_polls = polls[start:end]
            in_run = held[:, run_polls]
            before = every.before[rows][:, run_polls][in_run].min()
            extent = every.extent(case, before, run_polls[-1], len(run_polls) + 1)
            queues = sorted(every.queues[row] for row in rows[in_run.any(axis=1)])
            waiting = int(every.backlog[rows, run_polls[-1]][in_run[:, -1]].sum())
            was_asked = bool(answered[run_polls].any())
            evidence = _evidence(client_id, queues, extent, waiting, answered=was_asked)
            remedy, ids = Text(_REMEDY, this_client=client_id), (client_id,)
            fault = FaultEpisode(every.topic, extent, FROZEN_PROCESS, evidence, remedy, ids)
            yield fault.about(queues)


def _had(
    intervals: Intervals, holdings: Sequence[Holding], client_id: str, computed: Sequence[_Place]
) -> tuple[Longs, Flags, Flags, Flags]:
    """The queues that a client had of a topic, as flags by poll: their rows; whether it held each
    since the poll before; whether it was computed for it alone; and whether the client answered,
    else it held what was computed.

    ``computed``: which were computed for it when. Between two equal answers in one phase it holds
    the same; a queue whose lock it waits for is none that it could move
    (``cases/test_standing_queues``).
    """
    times, places, owners = intervals.polls.times, intervals.polls.rows, intervals.owners
    answered = np.zeros(len(times), np.bool_)
    holds: dict[int, Flags] = defaultdict(lambda: np.zeros(len(times), np.bool_))
    for holding in holdings:
        if holding.process.client_id == client_id and not holding.process.is_log:
            first, last = np.searchsorted(times, [holding.first_seen, holding.last_seen])
            answered[first : last + 1] = True
            for queue, activity in holding.activities.items():
                if queue in places and activity != NOT_LOCKED:
                    holds[places[queue]][first : last + 1] = True
    its_rows, numbers = zip(*computed, strict=True)
    rows = np.array(sorted({*holds, *its_rows}), np.int64)
    owner = np.zeros((len(rows), owners.situation.max() + 1), np.bool_)
    owner[np.searchsorted(rows, its_rows), numbers] = True
    owner = np.take_along_axis(owner, owners.situation[rows], axis=1)
    owns = np.where(answered, [holds[row] for row in rows.tolist()], owner)
    return rows, owns, owner & owners.sole[rows], answered


def _evidence(
    client_id: str, queues: Sequence[QueueKey], time: Extent, waiting: int, *, answered: bool
) -> Text:
    """``answered``: the client itself reports to hold them; else they are computed for it."""
    named = {"client": client_id, "queues": queues_in_words(queues)}
    template = "{client} holds {queues}" if answered else "{queues} [is|are] computed for {client}"
    owned = agreeing(len(queues), template, **named)
    moved = agreeing(len(queues), "[it did not move|none of them moved]")
    return Text(
        "{owned}; {moved} {time} while other clients' queues did; {waiting}",
        owned=owned,
        moved=moved,
        time=between(*time[:2]),
        waiting=waiting_in_words(waiting),
    )
