"""A finding of a published run and what newer snapshots show of its place -> gone, or still there.

"Did my fix work?" has three answers, and an all-clear is earned. The audit of the newer snapshots
has judged the finding: still there is what lasts in it and goes on to its end. Gone is what none of
those shows who could show it, for ``persistence_seconds``: what is there would have become lasting.
Before that it cannot be said, and the answer has the time from which it can.

Worked example, 180 s. A queue without owner was last seen at 10:44:03, the end of the report. New
rounds come from 10:50:03 on and have its owner. At 10:50:03 it cannot be said before 10:53:03; at
10:53:03 it is gone. Were broker-b silent up to 10:52, it could not be said before 10:55. Were the
queue stalled now instead, the finding would be gone, and the answer the stall.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, get_args

from rebalance_core.english import agreeing, count, joined, list_of, queues_in_words, within
from rebalance_core.findings import ORPHANED
from rebalance_core.grouping import grouped
from rebalance_core.texts import Text

from ..declared.instants import SECOND, Instant
from ..declared.kinds import STALLED, kind_of
from ..judge.times import reach
from ..reports.run_findings import FindingRow

#: The answers, the one that decides over several findings first. OTHER_FAULT: it is gone, and
#: another fault is at its place.
CheckState = Literal["STILL_THERE", "OTHER_FAULT", "NOT_YET", "GONE"]
STATES: tuple[CheckState, ...] = get_args(CheckState)
STILL_THERE, OTHER_FAULT, NOT_YET, GONE = STATES
#: The most findings, and other faults, that are named in a sentence.
_MOST_NAMED = 3


def in_words(findings: Sequence[FindingRow]) -> str:
    """Findings in words: of each topic each kind, with its queues."""
    alike = grouped(((finding.kind, finding.place), finding.queue) for finding in findings)
    named = []
    for (kind, place), queues in alike.items():
        topic = Text("{group} / {topic}", group=place.consumer_group, topic=place.topic)
        named.append(Text("{kind} of {place}", kind=kind_in_words(kind, queues), place=topic))
    return list_of(named, _MOST_NAMED)


def kind_in_words(kind: str, queues: Iterable[tuple[str, int] | None]) -> str:
    """A kind of finding with its queues, if it is of queues.

    >>> kind_in_words("ORPHANED", [("b", 1), ("b", 2)]), kind_in_words("GROUP_OFFLINE", [None])
    ('orphaned queue (queues 1-2 of b)', 'the group has no member')
    """
    title = within(kind_of(kind).title)
    named = sorted({queue for queue in queues if queue is not None})
    return Text("{kind} ({queues})", kind=title, queues=queues_in_words(named)) if named else title


class OffsetsSeen(NamedTuple):
    """The offsets of a queue, poll by poll, ascending in time."""

    times: Sequence[Instant]
    consumed: Sequence[int]
    waiting: Sequence[int]


class Lack(NamedTuple):
    """The reason why nothing shows whether it is there, and up to when; None: up to the end."""

    reason: str
    ends: Instant | None = None


class OtherFault(NamedTuple):
    """Another fault at the place, which goes on; ``lasts``: it counts, else it is too new to."""

    words: str
    first_seen: Instant
    lasts: bool


@dataclass(frozen=True, kw_only=True)
class NewLook:
    """A look of newer snapshots at the place of one finding.

    ``sightings``: its episodes there. ``witnesses``: those without whom nobody could say that it is
    gone, by name, with the snapshots in which each gave evidence, ascending. ``members``: likewise
    the client ids that are listed at the end, with their running infos; None: nothing of the
    finding shows in these. ``offsets``: of its queues; None: likewise. ``left``: the reason why
    there is nothing any more that could be wrong. ``others``: faults that came in its place.
    ``is_deleted``: no broker knows the group.
    """

    sightings: Sequence[FindingRow] = ()
    witnesses: Mapping[str, Sequence[Instant]] = field(default_factory=dict)
    members: Mapping[str, Sequence[Instant]] | None = None
    offsets: Sequence[OffsetsSeen] | None = None
    lacks: Sequence[Lack] = ()
    left: str | None = None
    others: Sequence[OtherFault] = ()
    is_deleted: bool = False


class CheckAnswer(NamedTuple):
    """The answer about one finding: a reason, and from when on it can be said, where that is known.

    ``now``: the faults that came instead.
    """

    finding: FindingRow
    state: CheckState
    reason: str
    at: Instant | None = None
    now: str = ""


def answer(finding: FindingRow, look: NewLook, persistence_seconds: int) -> CheckAnswer:
    """The answer about a finding."""
    least = persistence_seconds * SECOND

    def not_yet(reason: str, at: Instant | None = None) -> CheckAnswer:
        return CheckAnswer(finding, "NOT_YET", reason, at)

    if look.is_deleted:
        deleted = Text("no broker knows the group any more: it was deleted")
        return CheckAnswer(finding, "GONE", deleted)
    last_seen = max((times[-1] for times in look.witnesses.values() if times), default=None)
    if last_seen is None:
        return not_yet(_reason(look.lacks) or Text("no broker gave a list of the group's members"))
    if last_seen <= finding.last_seen:
        template = "nothing newer than the report came: the last snapshot is of {last_seen:dayZ}"
        return not_yet(Text(template, last_seen=last_seen))
    there = [sighting for sighting in look.sightings if sighting.ongoing]
    if any(sighting.lasts for sighting in there):
        first_seen = min(sighting.first_seen for sighting in there if sighting.lasts)
        return CheckAnswer(finding, "STILL_THERE", _seen(first_seen, last_seen))
    if there:
        first_seen = min(sighting.first_seen for sighting in there)
        short = Text("{seen}, which is too short to count", seen=_seen(first_seen, last_seen))
        return not_yet(short, first_seen + least if first_seen + least > last_seen else None)
    seen = max([finding.last_seen, *(sighting.last_seen for sighting in look.sightings)])
    last = Text("last seen at {seen:dayZ}", seen=seen)
    if reason := _unearned(look, seen, last_seen):
        return not_yet(reason)
    blind = max([seen, *(lack.ends for lack in look.lacks if lack.ends is not None)])
    later = [time for times in look.witnesses.values() for time in times if time > blind]
    at = _earned_at(look.witnesses.values(), blind, least)
    first_seen = min(later, default=last_seen)
    if at is not None:
        if lacks := _reason(lack for lack in look.lacks if lack.ends == blind):
            return not_yet(lacks, at)
        template = (
            "{last}, and not seen from {first_seen:dayZ} to {last_seen:clock}, which is too short "
            "to tell"
        )
        return not_yet(Text(template, last=last, first_seen=first_seen, last_seen=last_seen), at)
    if counted := [other.words for other in look.others if other.lasts]:
        return CheckAnswer(finding, "OTHER_FAULT", last, now=list_of(counted, _MOST_NAMED))
    if look.left and finding.backlog and finding.kind in (ORPHANED, STALLED):
        # Nobody reads them until the queue is back.
        waiting = count(finding.backlog, "message")
        now = Text("{waiting} left unread, for {left}", waiting=waiting, left=look.left)
        return CheckAnswer(finding, "OTHER_FAULT", last, now=now)
    if begun := [other for other in look.others if not other.lasts]:
        what = list_of([other_fault.words for other_fault in begun], _MOST_NAMED)
        ends = max(other_fault.first_seen for other_fault in begun) + least
        template = "{last}, but {others} began at its place, too new to count"
        reason = Text(template, last=last, others=what)
        return not_yet(reason, ends if ends > last_seen else None)
    if look.left:
        return CheckAnswer(finding, "GONE", look.left)
    template = "{last}, and not seen from {first_seen:dayZ} to {last_seen:clock}"
    return CheckAnswer(
        finding, "GONE", Text(template, last=last, first_seen=first_seen, last_seen=last_seen)
    )


def _seen(first_seen: Instant, last_seen: Instant) -> Text:
    return Text(
        "seen from {first_seen:dayZ} to {last_seen:clock}",
        first_seen=first_seen,
        last_seen=last_seen,
    )


def _reason(lacks: Iterable[Lack]) -> str:
    return joined(dict.fromkeys(lack.reason for lack in lacks))


def _unearned(look: NewLook, seen: Instant, last_seen: Instant) -> str:
    """The reason why the newer snapshots do not show that it is gone, whatever time goes by."""
    if reason := _reason(lack for lack in look.lacks if lack.ends is None):
        return reason
    silent = [
        client_id
        for client_id, times in sorted((look.members or {}).items())
        if not times or times[-1] <= seen
    ]
    if look.members is not None and (silent or not look.members):
        return agreeing(
            len(silent) or 2,
            "running infos would show it, and since {seen:dayZ} none came of {clients}",
            seen=seen,
            clients=list_of(silent, _MOST_NAMED) or Text("the group"),
        )
    if look.offsets is not None and not look.left:
        unread = [_unread(offset, seen) for offset in look.offsets]
        if not unread:
            return Text("offsets would show it, and none came: collect consume_stats")
        if None not in unread:
            waiting = sum(filter(None, unread))
            return agreeing(
                waiting,
                "no offset advanced from {seen:dayZ} to {last_seen:clock}, and {waiting} "
                "[waits|wait]",
                seen=seen,
                last_seen=last_seen,
                waiting=count(waiting, "message"),
            )
    return ""


def _unread(offsets: OffsetsSeen, seen: Instant) -> int | None:
    """The messages that wait in a queue that has not moved since; None: it moved, or none waits.

    >>> _unread(OffsetsSeen([1, 2, 3], [5, 5, 5], [7, 7, 9]), 1)
    9
    >>> _unread(OffsetsSeen([1, 2, 3], [5, 5, 6], [7, 7, 8]), 1)
    >>> _unread(OffsetsSeen([1, 2, 3], [5, 5, 5], [7, 7, 0]), 1)
    """
    place = sum(time <= seen for time in offsets.times)
    # From where it was when the finding was last seen it may have moved.
    consumed = offsets.consumed[max(place - 1, 0) :]
    moved = consumed[-1] != consumed[0]
    return None if moved or not offsets.waiting[-1] else offsets.waiting[-1]


def _earned_at(
    witnesses: Iterable[Sequence[Instant]], seen: Instant, least: Instant
) -> Instant | None:
    """The time from which on all witnesses have looked for long enough since; None: they have.

    What is missing of one counts from the last snapshot of all.

    >>> minute = 60 * SECOND
    >>> times = [n * minute for n in (1, 2, 3, 4)]
    >>> _earned_at([times], 0, 3 * minute), _earned_at([times, times[:2]], 0, 3 * minute)
    (None, 360000000)
    """
    every = [[time for time in times if time > seen] for times in witnesses]
    looked = min(map(reach, every), default=0)
    latest = max((times[-1] for times in every if times), default=seen)
    return None if every and looked >= least else latest + least - looked


# ---------------------------------------------------------------- in a sentence


@dataclass(frozen=True)
class CheckAnswers:
    """The answer about all findings that were asked about, all of one group."""

    answers: Sequence[CheckAnswer]

    @property
    def state(self) -> CheckState:
        """The answer: the first of ``STATES`` that one of them has."""
        return min((answered.state for answered in self.answers), key=STATES.index)

    @property
    def deciding(self) -> list[CheckAnswer]:
        """The answers that have this state; the one that can be said last first."""
        found = [answered for answered in self.answers if answered.state == self.state]
        return sorted(found, key=lambda answered: -(answered.at or 0))

    @property
    def at(self) -> Instant | None:
        """The time from which on all of it can be said; None: nothing shows when."""
        times = [answered.at for answered in self.deciding]
        return None if None in times else max(filter(None, times))

    @property
    def sentence(self) -> Text:
        """The answer in one sentence."""
        first = self.deciding[0]
        values = {"findings": self._findings, "reason": first.reason}
        if self.state == NOT_YET:
            if self.at is None:
                return Text("Cannot be said yet: {findings}: {reason}.", **values)
            template = "Cannot be said before {at:dayZ}: {findings}: {reason}."
            return Text(template, at=self.at, **values)
        if self.state == OTHER_FAULT:
            others = dict.fromkeys(answered.now for answered in self.deciding)
            template = "Gone, but something else is wrong now, {now}: {findings}: {reason}."
            return Text(template, now=list_of(others, _MOST_NAMED), **values)
        if self.state == GONE:
            return Text("Gone: {findings}: {reason}.", **values)
        known = dict.fromkeys(answered.finding.known_issue for answered in self.deciding)
        if None in known:
            return Text("Still there: {findings}: {reason}.", **values)
        issues = joined(filter(None, known))
        template = "Still there, a known issue ({issues}): {findings}: {reason}."
        return Text(template, issues=issues, **values)

    @property
    def _findings(self) -> str:
        """The findings that have the state of all; of several kinds their number."""
        named = [answered.finding for answered in self.deciding]
        every = {(answered.finding.kind, answered.finding.place) for answered in self.answers}
        if len(every) == 1 and len(named) == len(self.answers):
            return in_words(named)
        all_findings = count(len(self.answers), "finding")
        group = named[0].place.consumer_group
        if len(named) == len(self.answers):
            return Text("all {findings} of {group}", findings=all_findings, group=group)
        return Text(
            "{number:,} of {findings} of {group}, {named}",
            number=len(named),
            findings=all_findings,
            group=group,
            named=in_words(named),
        )

    @property
    def parts(self) -> "list[CheckAnswers]":
        """The answers that differ in more than their findings, those that decide first; of each
        topic each kind.
        """
        if len({answered[1:] for answered in self.answers}) == 1:
            return [self]
        alike = grouped(
            ((answered.finding.kind, answered.finding.place, *answered[1:]), answered)
            for answered in self.answers
        )
        parts = map(CheckAnswers, alike.values())
        return sorted(parts, key=lambda part: STATES.index(part.state))
