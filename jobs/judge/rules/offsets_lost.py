"""offsets of polls -> OFFSETS_GONE, OFFSETS_WENT_BACK: a broker lost how far a group had consumed.

A broker gives the offsets of the topics of which it has some (``whichTopicByConsumer`` of
``ConsumerOffsetManager`` 4.9.4 to 5.3.3): an empty answer after one with offsets is the loss of all
of them. Clients that run commit what they know within 5 s; a group that is away begins anew. So do
clients that run where the route lacked the broker for a while: they drop its queues, and what they
know of them (``RebalanceImpl.truncateMessageQueueNotMyTopic``, ``removeUnnecessaryMessageQueue``
4.9.4 to 5.3.3). What they read again the broker counts (see ``messages_again``).

Offsets that go back are OFFSETS_WENT_BACK: messages that a group consumes again. That is once below
where they were ``persistence_seconds`` (180 s) before. Three times with the way back in between, or
twice where two are known to read the queue, is two that commit in turn.
"""

from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from itertools import chain, pairwise
from typing import NamedTuple

import numpy as np

from rebalance_core.english import agreeing, joined
from rebalance_core.findings import DUPLICATE
from rebalance_core.grouping import grouped
from rebalance_core.state import POP
from rebalance_core.texts import Text

from ...declared.dossier import QueueOffsets
from ...declared.instants import SECOND, Instant
from ...declared.kinds import OFFSETS_GONE, OFFSETS_WENT_BACK, PERSISTENT
from ...texts.shown import shell_word
from ..observe.brokers import last_change
from ..observe.core_verdict import QueueKey
from ..observe.in_words import between, clients_in_words, clock, queues_in_words, zoned_clock
from ..times import Extent
from .case import Case
from .found import FaultEpisode, GroupFindings, brokers_of

_AT_ITS_START = {
    "CONSUME_FROM_LAST_OFFSET": Text(
        "at its next start the group reads from the end (consumeFromWhere of its members is "
        "CONSUME_FROM_LAST_OFFSET): what waits until then is skipped; of a queue whose first "
        "messages are still in memory, from the beginning"
    ),
    "CONSUME_FROM_FIRST_OFFSET": Text(
        "at its next start the group reads from the beginning (consumeFromWhere of its members is "
        "CONSUME_FROM_FIRST_OFFSET): all that the broker keeps is consumed again"
    ),
    "CONSUME_FROM_TIMESTAMP": Text(
        "at its next start the group reads from consumeTimestamp of its members on, by default "
        "half an hour before they start (CONSUME_FROM_TIMESTAMP)"
    ),
}
_SOMEWHERE = Text(
    "at its next start the group reads from the beginning or from the end, as consumeFromWhere of "
    "its members says"
)
_STORE = Text(
    "find out who deleted the offsets, or why config/consumerOffset.json of the broker did not "
    "outlive a restart (a volume, not the container's own disk); the consumers have to bear "
    "messages that come twice"
)
#: A broker takes a sample of what it gave each 10 s and gives the rate of the last minute, as far
#: as it has run: of one sample alone too (``StatsItem`` 4.9.4 to 5.3.3).
_SAMPLE, _MINUTE = 10 * SECOND, 60 * SECOND
#: The time for which rates show what is read again: clients find the broker again within 50 s.
_SHOWN_FOR = 120 * SECOND
#: A few messages show nothing.
_FEWEST_MESSAGES = 100
_BY_POP = Text(
    "by POP the broker itself keeps the offsets, and begins anew with the next request: messages "
    "may be read again"
)


class _ReadAgain(NamedTuple):
    """At least so many messages, and the messages a second that the broker gave at that time."""

    messages: int
    at: Instant
    rate: float


class _Loss(NamedTuple):
    """The polls in which a broker had no offsets, between two in which it had some."""

    broker_name: str
    before: Instant
    rounds: Sequence[Instant]
    #: The place where the members begin.
    consume_from_where: str | None
    #: No offsets came later.
    ongoing: bool
    #: The queues of one topic whose offsets were lost.
    queues: Sequence[QueueOffsets]
    #: Members ran, and committed again what they knew, or began anew.
    came_back: bool = False
    #: The messages that the group read again from the broker, as far as rates show it.
    again: _ReadAgain | None = None

    @property
    def waiting(self) -> int:
        """The messages that waited in the queues when their offsets were seen last."""
        ends = (int(np.searchsorted(queue.times, self.rounds[0])) - 1 for queue in self.queues)
        waits = zip(self.queues, ends, strict=True)
        return sum(int(offsets.waiting[end]) for offsets, end in waits)


def offsets_gone(case: Case, found: GroupFindings) -> GroupFindings:
    """One fault of a topic whose offsets a broker lost, from the first answer without them on.

    It is there at once: what comes of it can be kept off until the group starts (``offsets_lost``).
    It is none where the route has no queue of the topic on the broker any more; where members run
    that do not subscribe to it, for a broker leaves such topics out; where the group was there
    again with what it knew; and where the group was deleted (``cases/test_offsets_gone``).

    Worked example: until 10:04 a broker has the offsets of a group that is away, at 10:05 it gives
    none, after a restart without its consumerOffset.json.
    """
    losses = grouped(_losses(case))
    return found.plus(_fault(case, topic, topic_losses) for topic, topic_losses in losses.items())


def _losses(case: Case) -> Iterator[tuple[str, _Loss]]:
    for name, answers in sorted(case.dossier.without_offsets.items()):
        for topic, every in sorted(case.dossier.offsets.items()):
            queues = [one for one in every if one.broker_name == name and one.times.size]
            polls = sorted({*chain.from_iterable(queue.times.tolist() for queue in queues)})
            places = grouped((bisect_left(polls, at), at) for at in sorted(answers))
            for place, rounds in places.items():
                had = [queue for queue in queues if _committed(queue, rounds[0]) > 0]
                if not place or not had:
                    continue
                where, ongoing = answers[rounds[-1]], place == len(polls)
                loss = _Loss(name, polls[place - 1], rounds, where, ongoing, had)
                if _is_read_there(case, topic, loss) and not _is_deleted(case, loss):
                    again, came_back = _read_again(case, loss), _came_back(case, loss)
                    if again or not came_back:
                        yield topic, loss._replace(came_back=came_back, again=again)


def _committed(queue: QueueOffsets, before: Instant) -> int:
    end = int(np.searchsorted(queue.times, before)) - 1
    return int(queue.consumer_offsets[end]) if end >= 0 else 0


def _is_read_there(case: Case, topic: str, loss: _Loss) -> bool:
    """True if the topic has queues on the broker, and no member runs without it at the end."""
    in_time = sorted(case.dossier.routes.get(topic, ()), key=lambda run: run.times[-1])
    latest = {run.namesrv_addr: run for run in in_time}
    brokers = chain.from_iterable(run.brokers for run in latest.values())
    routed = {broker.broker_name for broker in brokers if broker.read_queue_nums}
    lists = case.dossier.lists_between(loss.rounds[-1], loss.rounds[-1])
    subscribes = any(topic in case.dossier.list_topics[list_] for list_ in lists)
    return (not latest or loss.broker_name in routed) and (not lists or subscribes)


def _came_back(case: Case, loss: _Loss) -> bool:
    """True if members that ran commit what they know: that they do not has to last. A list has the
    topics of before for two minutes, where only the group's table shows them.
    """
    first_seen, last_seen = loss.rounds[0], loss.rounds[-1]
    lasts = last_seen - first_seen >= case.persistence_seconds * SECOND
    return bool(case.dossier.lists_between(first_seen, last_seen)) and not (loss.ongoing and lasts)


def _is_deleted(case: Case, loss: _Loss) -> bool:
    """True if the broker said meanwhile that it had no configuration of the group."""
    said = case.dossier.configured.get(loss.broker_name, {})
    return any(not has and loss.before <= at <= loss.rounds[-1] for at, has in said.items())


def _read_again(case: Case, loss: _Loss) -> _ReadAgain | None:
    """The messages that the broker gave soon after the loss beyond those that can be new, at least;
    None: no rate shows it.

    New is what was not committed before, or was written since. As much as the broker gave a second
    before it gave anyhow: messages that two read, or what was given before the loss.

    Worked example: 1,000 messages are committed, the rate is 2.0. At the second poll after the loss
    the broker gave 104.0 a second, in 10 s at least, and 1,020 messages are written: of 1,040 that
    it gave 20 are new, and 20 it gives in any 10 s. 1,000 were read again.
    """
    last_seen, polls = loss.rounds[-1], dict[Instant, tuple[int, int, int]]()
    for offsets in chain.from_iterable(case.dossier.offsets.values()):
        if offsets.broker_name != loss.broker_name or not len(offsets.given):
            continue
        for at, *values in np.stack(offsets[3:]).T.tolist():
            if at == loss.before or last_seen < at <= last_seen + _SHOWN_FOR:
                written, committed, rate = polls.get(at, (0, 0, values[2]))
                polls[at] = (written + values[0], committed + values[1], max(rate, values[2]))
    _, known, usual = polls.pop(loss.before, (0, 0, -1))
    given = {at: (written, rate) for at, (written, _, rate) in polls.items() if rate > 0}
    if usual < 0 or not given:
        return None
    found = []
    for at, (written, rate) in given.items():
        samples = (at - min(given)) // _SAMPLE
        seconds = min(max(samples * _SAMPLE, _SAMPLE), _MINUTE) / SECOND
        new = written - known
        again = int((rate - usual) / 1000 * seconds) - new
        if again >= max(_FEWEST_MESSAGES, new):
            found.append(_ReadAgain(again, at, rate / 1000))
    return max(found, default=None)


def _fault(case: Case, topic: str, losses: Sequence[_Loss]) -> FaultEpisode:
    last, dossier = max(losses, key=lambda loss: loss.rounds[-1]), case.dossier
    queues = {(queue.broker_name, queue.queue_id) for loss in losses for queue in loss.queues}
    waiting = sum(loss.waiting for loss in losses)
    named = {
        "time": zoned_clock(last.rounds[0]),
        "broker": last.broker_name,
        "before": zoned_clock(last.before),
        "queues": queues_in_words(queues),
    }
    template = (
        "since {time} {broker} answers without any offset of the group; until {before} it had "
        "those of {queues}, where {messages:,} [message|messages] waited"
    )
    evidence: list[str] = [agreeing(waiting, template, messages=waiting, **named)]
    if last.came_back:
        template = (
            "at {time} {broker} answered without any offset of the group, whose members ran; until "
            "{before} it had those of {queues}"
        )
        evidence = [Text(template, **named)]
    change = last_change(dossier, case.masters_away, last.broker_name, last.before, last.rounds[0])
    if change:
        evidence.append(change.what)
    if not last.came_back:
        at_start = _AT_ITS_START.get(last.consume_from_where or "", _SOMEWHERE)
        evidence.append(_BY_POP if dossier.request_mode(topic) == POP else at_start)
    remedy = _STORE
    if again := last.again:
        template = (
            "the group began anew there: at least {messages:,} [message was|messages were] read "
            "again, for {broker} gave {rate:,.1f} a second (consumeTps at {time})"
        )
        rate = {"broker": last.broker_name, "rate": again.rate, "time": zoned_clock(again.at)}
        evidence.append(agreeing(again.messages, template, messages=again.messages, **rate))
    else:
        remedy = Text(
            "before the group starts, give the broker its config/consumerOffset.json back (of its "
            "store, or of its slave), or set the offsets anew: mqadmin resetOffsetByTime -g "
            "{group} -t {topic} -s {millis}; and find out who deleted them, or why the file did "
            "not outlive a restart (a volume, not the container's own disk)",
            group=shell_word(dossier.consumer_group),
            topic=shell_word(topic),
            millis=last.before // 1000,
        )
    rounds = sorted({*chain.from_iterable(loss.rounds for loss in losses)})
    ongoing = any(loss.ongoing for loss in losses)
    extent = Extent(rounds[0], rounds[-1], len(rounds), PERSISTENT, ongoing)
    names = tuple(sorted({loss.broker_name for loss in losses}))
    return FaultEpisode(topic, extent, OFFSETS_GONE, joined(evidence), remedy, broker_names=names)


# ---------------------------------------------------------------- offsets went back


#: The fewest steps back of one queue, with its return in between, that two make who commit in turn;
#: fewer where two are known to read it: somebody may set an offset back twice.
_TO_AND_FRO, _OF_TWO = 3, 2


_STOP_ONE = Text(
    "find out why two processes commit offsets of one queue, and stop one of them or give it a "
    "group of its own: after its next restart whoever reads the queue begins at the offset that "
    "was committed last"
)


class _Step(NamedTuple):
    """Between two polls the committed offset of a queue went back."""

    begins: Instant
    ends: Instant
    broker_name: str
    queue_id: int
    before: int
    now: int

    @property
    def again(self) -> int:
        """The number of messages that are consumed again."""
        return self.before - self.now

    @property
    def queue(self) -> QueueKey:
        """The queue's broker and id."""
        return self.broker_name, self.queue_id


def went_back(case: Case, found: GroupFindings) -> GroupFindings:
    """One fault of all queues of a topic whose committed offset went back.

    Further than it was ``persistence_seconds`` before: a slave that answers for its master is some
    seconds behind, and a broker that restarts loses the last ones. Around an absence of a master
    the polls that show one of two copies do not count (``Absence.is_blind_between``): what is lower
    after it than it was before went back. A broker without a slave has one copy
    (``cases/test_offsets_and_masters``, ``judge/test_offsets_went_back``).

    Worked example: at 10:00 to 10:05 a queue's offset is 100, 200, 300, 400, 500 and then 50: since
    10:04 the group consumes again what it had consumed before 10:01.

    Where two processes commit in turn, neither consumes again what is between the two offsets. The
    net counts: how far the last step back ends before where the first one began
    (``cases/test_commits_in_turn``).
    """
    duplicates = grouped((one.topic, one.queue) for one in found.queues if one.kind == DUPLICATE)
    return found.plus(
        _went_back_fault(case, topic, by_queue, duplicates.get(topic, ()))
        for topic, offsets in case.dossier.offsets.items()
        if (by_queue := [steps for offset in offsets if (steps := [*_went_back(case, offset)])])
    )


def _went_back_fault(
    case: Case, topic: str, by_queue: Sequence[Sequence[_Step]], read_by_two: Collection[QueueKey]
) -> FaultEpisode:
    steps = list(chain.from_iterable(by_queue))
    last, furthest = max(steps), max(steps, key=lambda step: step.again)
    to_and_fro = [moves for moves in by_queue if _is_to_and_fro(moves, read_by_two)]
    back = [*chain.from_iterable(moves for moves in by_queue if moves not in to_and_fro)]
    evidence = [_again(back)] if back else []
    why, remedy = _why(case, last)
    if to_and_fro:
        evidence.append(_in_turn(to_and_fro))
        if writers := _writers(case, topic, [*chain.from_iterable(to_and_fro)]):
            clients = clients_in_words(writers, case.dossier.languages)
            template = "by running infos {clients} [commits|commit] the lower offset"
            evidence.append(agreeing(len(writers), template, clients=clients))
        remedy = remedy if back else _STOP_ONE
    far = Text(
        "the furthest is {queue}, from {before:,} to {now:,}",
        queue=queues_in_words([furthest.queue]),
        before=furthest.before,
        now=furthest.now,
    )
    polls = {step.ends for step in steps}
    extent = Extent(min(steps).begins, last.ends, len(polls), PERSISTENT, ongoing=False)
    whole, names = joined([*evidence, far, *why]), brokers_of(step.queue for step in steps)
    return FaultEpisode(topic, extent, OFFSETS_WENT_BACK, whole, remedy, broker_names=names)


def _is_to_and_fro(steps: Sequence[_Step], read_by_two: Collection[QueueKey]) -> bool:
    """True if the offset went back again and again, and returned each time in between."""
    enough = _OF_TWO if steps[0].queue in read_by_two else _TO_AND_FRO
    returned = all(after.before >= before.before for before, after in pairwise(steps))
    return returned and len(steps) >= enough


def _again(steps: Sequence[_Step]) -> Text:
    last, again = max(steps), sum(step.again for step in steps)
    return agreeing(
        again,
        "the offsets of {queues} went back, last between {before} and {after}: {number:,} "
        "[message is|messages are] consumed again",
        queues=queues_in_words({step.queue for step in steps}),
        before=clock(last.begins),
        after=zoned_clock(last.ends),
        number=again,
    )


def _in_turn(by_queue: Sequence[Sequence[_Step]]) -> Text:
    steps = list(chain.from_iterable(by_queue))
    net = sum(max(moves[0].before - moves[-1].now, 0) for moves in by_queue)
    return agreeing(
        net,
        "the offsets of {queues} went to and fro {time}, {times} times back: two processes commit "
        "in turn; by the net {number:,} [message is|messages are] consumed again",
        queues=queues_in_words({step.queue for step in steps}),
        time=between(min(steps).begins, max(steps).ends),
        times=len(steps),
        number=net,
    )


def _writers(case: Case, topic: str, steps: Sequence[_Step]) -> set[str]:
    """The clients whose own offset of a queue is lower than what was committed before, in that
    time: who commits the higher one is never behind it.
    """
    queues = {(topic, *step.queue) for step in steps}
    begins, ends = min(steps).begins, max(steps).ends
    return {
        run.client_id
        for run in case.dossier.clients
        if any(begins <= at <= ends for _, at in run.times)
        and not queues.isdisjoint(
            queue[:3] for place, queue in enumerate(run.queues or ()) if place in (run.behind or ())
        )
    }


def _why(case: Case, step: _Step) -> tuple[list[Text], Text]:
    """The change of the broker between the two polls, and its remedy."""
    change = last_change(case.dossier, case.masters_away, step.broker_name, step.begins, step.ends)
    if change is None:
        return [], Text(
            "find out who set them back: mqadmin resetOffsetByTime, the dashboard, or one of "
            "two processes that consume the same queue and commit in turn"
        )
    template = (
        "find out why {broker} came back with older offsets: a broker keeps them in "
        "config/consumerOffset.json of its store, which must survive a restart (a volume, not "
        "the container's own disk), and writes them every 5 s and at shutdown"
    )
    if change.is_of_slave:
        template = (
            "find out why the slave of {broker} that took over had older offsets: a slave copies "
            "them from its master every 10 s; if it cannot, its log has SyncConsumerOffset "
            "Exception"
        )
    return [change.what], Text(template, broker=step.broker_name)


def _went_back(case: Case, offsets: QueueOffsets) -> Iterator[_Step]:
    """Steps back of an offset to below what it lately was; the broker's own did not go back.

    An offset beyond the broker's end is no position: whoever pulls there is sent back to the end,
    or to the beginning (OFFSET_ILLEGAL, ``DefaultMessageStore.nextOffsetCorrection`` 4.9.4 and
    5.3.3), and consumes again what is before the last position that was one. Where two commit in
    turn, the poll of that long ago may have the lower offset, and the one before it the higher.
    """
    hidden = offsets.consumer_offsets > offsets.broker_offsets
    for absence in case.masters_away:
        if absence.broker_name == offsets.broker_name:
            hidden |= absence.is_blind_between(offsets.times, offsets.times)
    times, written, consumed = (column[~hidden] for column in offsets[3:6])
    lately = times[1:] - case.persistence_seconds * SECOND
    before = np.maximum(np.searchsorted(times, lately, side="right") - 1, 0)
    was = np.maximum(consumed[before], consumed[np.maximum(before - 1, 0)])
    back = (consumed[1:] < consumed[:-1]) & (consumed[1:] < was)
    back &= written[1:] >= written[:-1]
    for poll in np.flatnonzero(back).tolist():
        begins, ends = times[poll : poll + 2].tolist()
        were, are = consumed[poll : poll + 2].tolist()
        yield _Step(begins, ends, offsets.broker_name, offsets.queue_id, were, are)
