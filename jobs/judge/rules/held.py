"""holdings -> findings: queues that are computed for somebody and that nobody holds, and queues
that two processes hold though they are computed for one.

Lists and routes show what a client should have; its running info shows what it has. Where all
processes of the group answered, and no change explains what they hold, the second decides, once it
is so in rounds over ``persistence_seconds`` (180 s).
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from rebalance_core.client_id import restart_of
from rebalance_core.descriptions import ASSIGN_EACH_ONCE
from rebalance_core.english import MOST_NAMES, agreeing, joined, list_of
from rebalance_core.findings import (
    CERTAIN,
    DUPLICATE,
    ORPHANED,
    POSSIBLE,
    QUEUES_CHOSEN,
    Claimant,
)
from rebalance_core.grouping import grouped
from rebalance_core.repairs import MANUAL_ASSIGNMENT
from rebalance_core.texts import Text

from ...declared.dossier import QueueOffsets
from ...declared.instants import Instant, together
from ...declared.kinds import (
    ALLOCATES_OTHERWISE,
    PERSISTENT,
    QUEUE_NOT_HELD,
    UNLISTED_CONSUMER,
)
from ...schemas import NOT_LOCKED
from ..observe.backlog import backlog, reading
from ..observe.core_verdict import QueueKey
from ..observe.holdings_index import SHARE_KEPT, AnswerRound, Drift
from ..observe.in_words import between, clients_in_words, queues_in_words, waiting_in_words
from ..observe.routes import queues_of
from ..times import Episode, Extent, Portion, episodes_of, runs_of, widest
from .case import Case
from .episodes import witnessed
from .found import FaultEpisode, GroupFindings, QueueFinding
from .stalls import spans
from .unlisted import read_by_others

#: The cause of a queue that no process holds and somebody reads: no finding of the queue.
_READ_BY_OTHERS = (UNLISTED_CONSUMER,)

_SHARE_KEPT = Text("the clients still have what they had before the last change")
#: ``DefaultMQPushConsumerImpl.tryRebalance`` (5.3.3) does nothing while the consumer is paused.
_WHY_KEPT = Text(
    "see in the log whether the application suspended the consumer, or why its rebalance fails"
)

#: Nothing is computed without a known strategy: by it these queues may be left to no client.
_SEE_STRATEGY = Text(
    "check whether the members' strategy gives these queues to a client: a list (CONFIG) has to "
    "name them, those of %RETRY% too, and rooms have to serve their brokers"
)
_SEE_SHUTDOWN = Text("find in the log why the application shut down its consumer of this group")
_SEE_LOCK = Text(
    "the group consumes in order, so that another process may have the queue's lock: look for "
    "'lock failed' in the log of the client"
)
_UPDATE_GO = Text("early native Go clients divide AVG differently from Java: update the Go client")
_BY_ASSIGN = Text("the members take their queues by assign(), and RocketMQ divides none among them")
_MAY_BE_MEANT = Text("if two are meant to read a queue, put them into separate groups")

#: Rounds that show that a queue is held by nobody, or by several.
_Rounds = Episode[QueueKey, AnswerRound]


def held_queues(case: Case, found: GroupFindings) -> GroupFindings:
    """The lasting orphans and duplicates that the holdings show and the computation does not, and
    the faults that they are put down to.

    A queue that is computed for a client under every view and that nobody holds is ORPHANED. One
    that two hold at a time is DUPLICATE; of two that consume in order, the one that the broker gave
    no lock waits, and does not count. Where nothing is computed, for the members' strategy is not
    known or they take their queues by ``assign()``, what they hold decides: two that hold a queue
    in one round are POSSIBLE for as long as nothing changes, and CERTAIN over several rounds; of
    what nobody holds see ``_unheld``. A round counts where all processes answered in one phase and
    no change explains what they hold (two that hold a queue need no third). A process that does not
    reach a queue's broker does not read it, whatever its table has. Where some processes do not
    answer, the owners' answers and the queue's offset decide: where messages wait and the offset
    does not move, no other process reads it either. Where it moves again and again, somebody reads
    the queue, whatever the answers show: who is an UNLISTED_CONSUMER where all processes answered.

    Locks: ``orderly_mixed``. What is not computed: ``assign_overlap_gap``, ``own_strategy_gap``.
    Two without a third: ``judge/test_held``. A broker out of reach: ``unreachable_and_held_twice``.
    An offset that moves: ``cases/test_lock_of_a_leaver``.
    """
    drift = grouped((one.topic, one) for one in case.drift if not one.process.is_log)
    queues: list[QueueFinding] = []
    others: list[FaultEpisode] = []
    for topic in case.holdings:
        topic_findings = _TopicHoldings(case, topic).findings(drift.get(topic, ()))
        queues += [witnessed(case, one) for one in topic_findings if one.causes != _READ_BY_OTHERS]
        if read := [finding for finding in topic_findings if finding.causes == _READ_BY_OTHERS]:
            others.append(read_by_others(read, drift.get(topic, ())))
    return found.plus([*held_faults(case, queues), *others], queues)


class _TopicHoldings:
    def __init__(self, case: Case, topic: str) -> None:
        self._case, self._timeline, self._held = case, case.timelines[topic], case.holdings[topic]
        #: The readable queues by phase, of those in which nothing is computed, each with whether
        #: every nameserver gives it.
        phases = [holding.phase for holding in self._held.holdings if not holding.phase.is_computed]
        self._undivided = {phase.position: case.readable[phase.situation_id] for phase in phases}

    @cached_property
    def _settled(self) -> Sequence[AnswerRound]:
        """The rounds of one phase that no change explains."""
        rounds = self._held.rounds
        return [answers for answers in rounds if answers.is_settled and answers.is_of_one_phase]

    def findings(self, drift: Sequence[Drift]) -> list[QueueFinding]:
        """The findings of the queues that drift: no other one can show what is asked for.

        One process drifts so without a break for long enough: where members flap from poll to poll,
        a queue may be missing here and there in many rounds.
        """
        extra = [drifting for drifting in drift if drifting.is_extra]
        undivided = set().union(*self._undivided.values())
        lasting = undivided.union(drifting.queue for drifting in extra if drifting.lasts)
        duplicates = [found for queue in sorted(lasting) for found in self._duplicates(queue)]
        shared = {duplicate.queue for duplicate in duplicates}
        odd = {drifting.client_id for drifting in extra if drifting.queue in shared}
        missing = {one.queue for one in drift if not one.is_extra and one.lasts}
        owned = sorted(self._owners(missing).items())
        orphans = [found for queue, owners in owned for found in self._orphans(queue, owners, odd)]
        unheld = [found for queue in sorted(undivided) for found in self._unheld(queue)]
        return duplicates + orphans + unheld

    def _owners(self, queues: set[QueueKey]) -> Mapping[QueueKey, Mapping[int, set[str]]]:
        """The client ids that each queue is computed for under every view, by phase."""
        owners: dict[QueueKey, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
        for holding in self._held.holdings:
            if holding.computed and not holding.broadcasts:
                for queue in queues.intersection(*[view.queues for view in holding.computed]):
                    owners[queue][holding.phase.position].add(holding.process.client_id)
        return owners

    def _unheld(self, queue: QueueKey) -> Iterator[QueueFinding]:
        """The orphans of a queue of which nothing is computed: all processes answered, and none
        held it.

        Where messages wait and the offset does not move around that, it is certain for as long: the
        members may be asked every five minutes alone. Else it lasts as its rounds show it. Who uses
        ``assign()`` may leave a queue to nobody on purpose: without messages that wait it is well.
        So is a queue that not every nameserver gives: its broker may be gone
        (``cases/test_held_alone``).

        Worked example: at 10:03 both members answer, and none has b3. Its offset is the same from
        10:00 to 10:14, while 400 messages came: it is an orphan since 10:00.
        """
        offsets = self._case.offsets.get((self._timeline.topic, *queue))
        due = {position for position, queues in self._undivided.items() if queue in queues}
        settled = (answers for answers in self._settled if answers.position in due)
        rounds = [answers for answers in settled if answers.is_complete]
        for episode in self._without_holder(queue, rounds):
            found = self._finding(ORPHANED, QUEUE_NOT_HELD, episode)
            polls = () if offsets is None else offsets.times.tolist()
            unmoved = self._while_unmoved(offsets, episode, self._unchanged(episode, rounds, polls))
            if unmoved and unmoved.lasts:
                yield replace(found, extent=unmoved, times=())
            elif not found.extent.lasts or not self._undivided[episode.shown[-1].position][queue]:
                continue
            elif reading(offsets, found.all_times).is_read:
                yield from self._read_by_others(found)
            elif found.causes == (QUEUE_NOT_HELD,) or (
                backlog(offsets, found.first_seen, found.last_seen).messages
            ):
                yield found

    def _read_by_others(self, orphan: QueueFinding) -> list[QueueFinding]:
        """The orphan as one that others read, if nobody had it at all: a process that does not
        reach the broker by the lists, or broadcasts, may be the reader.
        """
        had = (holding for holding in self._held.holdings if orphan.queue in holding.activities)
        is_had = any(orphan.extent.those_of(holding.moments) for holding in had)
        return [] if is_had else [replace(orphan, causes=_READ_BY_OTHERS)]

    def _unchanged(
        self, episode: _Rounds, rounds: Sequence[AnswerRound], polls: Sequence[Instant] = ()
    ) -> Extent:
        """The time around an episode in which neither the members nor the route changed: what was
        held then stayed so, as far as anybody saw. Where a round before or behind it shows
        something else, the ``polls`` between them are in it, and without these nothing.
        """
        phases, topic = self._timeline.phases, self._timeline.topic
        first, last, watch = episode.shown[0], episode.shown[-1], episode.shown[0].phase.watch
        watched = [phase for phase in phases if phase.watch == watch]
        changes = [member.first_seen for member in self._case.members_in_time]
        changes += [change.collected_at for change in self._case.route_changes.get(topic, ())]
        begins = max(at for at in [watched[0].first_seen, *changes] if at <= first.moment)
        most = max(watched[-1].last_seen, last.moment)
        ends = min([most, *(change for change in changes if change > last.moment)])
        moments = [answers.moment for answers in rounds]
        before = [moment for moment in moments if begins <= moment < first.moment]
        after = [moment for moment in moments if last.moment < moment <= ends]
        if before:
            begins = min([first.moment, *(poll for poll in polls if poll > before[-1])])
        if after:
            ends = max([last.moment, *(poll for poll in polls if poll < after[0])])
        is_last = ends == most and watch == phases[-1].watch
        return self._case.extent(begins, ends, episode.extent.snapshots, ongoing=is_last)

    def _while_unmoved(
        self, offsets: QueueOffsets | None, episode: _Rounds, time: Extent
    ) -> Extent | None:
        """The longest part of a time around an episode, and with a round of it, in which messages
        wait and the offset is the same from poll to poll; None: there is none.
        """
        if offsets is None:
            return None
        first, end = np.searchsorted(offsets.times, [time.first_seen, time.last_seen + 1])
        edges = [episode.extent.first_seen, episode.extent.last_seen]
        from_, to = np.searchsorted(offsets.times[first:end], edges)
        every = spans(offsets.unmoved[first : max(end - 1, first)])
        runs = [run for run in every if run[0] <= to and run[1] >= from_]
        if not runs:
            return None
        start, stop = max(runs, key=np.ptp)
        # Before the first poll and after the last one nothing shows that it moved.
        first_seen = offsets.times[first + start].item() if start else time.first_seen
        is_last = first + stop == end - 1
        last_seen = time.last_seen if is_last else offsets.times[first + stop].item()
        is_open = time.ongoing and is_last
        return self._case.extent(first_seen, last_seen, time.snapshots, ongoing=is_open)

    def _orphans(
        self, queue: QueueKey, owners: Mapping[int, set[str]], odd: Collection[str]
    ) -> list[QueueFinding]:
        offsets = self._case.offsets.get((self._timeline.topic, *queue))
        settled = [answers for answers in self._settled if answers.position in owners]

        def findings(rounds: Sequence[AnswerRound]) -> Iterator[QueueFinding]:
            for episode in self._without_holder(queue, rounds):
                due = set().union(*[owners[answers.position] for answers in episode.shown])
                cause = QUEUE_NOT_HELD if due.isdisjoint(odd) else ALLOCATES_OTHERWISE
                if episode.extent.lasts:
                    yield self._finding(ORPHANED, cause, episode)

        found: list[QueueFinding] = []
        for finding in findings([answers for answers in settled if answers.is_complete]):
            is_read = reading(offsets, finding.all_times).is_read
            found += self._read_by_others(finding) if is_read else [finding]
        if offsets is None or any(finding.causes != _READ_BY_OTHERS for finding in found):
            return found
        # The rounds in which all of the queue's owners answered, if not every process did.
        due = [(owners[answers.position], answers) for answers in settled]
        rounds_of_owners = [answers for ids, answers in due if ids and ids <= answers.client_ids]
        for finding in findings(rounds_of_owners):
            if reading(offsets, [(finding.first_seen, finding.last_seen)]).is_read is False:
                found.append(finding)
        return found

    def _duplicates(self, queue: QueueKey) -> Iterator[QueueFinding]:
        holders = grouped(
            (round_, holder.process)
            for holder in self._held.holders(queue)
            if holder.activities[queue] != NOT_LOCKED
            for round_ in holder.answered
        )
        shared = {round_ for round_, processes in holders.items() if len(processes) > 1}
        settled = self._settled
        rounds = [answers for answers in settled if answers.is_complete or answers.round_ in shared]
        for episode in self._episodes(queue, rounds, shared):
            at_a_time = [set(holders[answers.round_]) for answers in episode.shown]
            # A queue that goes from one to another may look shared by the time that all are asked
            # (``judge/test_held``).
            if len(set.intersection(*at_a_time)) < 2:
                continue
            numbers = Counter(process.client_id for process in set().union(*at_a_time))
            claimants = [Claimant(*id_and_number, 1.0) for id_and_number in sorted(numbers.items())]
            found = self._finding(DUPLICATE, ALLOCATES_OTHERWISE, episode, claimants)
            if found.extent.lasts:
                yield found
            elif episode.shown[-1].position in self._undivided:
                unchanged = self._unchanged(episode, rounds)
                if unchanged.lasts:
                    yield replace(found, extent=unchanged, certainty=POSSIBLE)

    def _without_holder(self, queue: QueueKey, rounds: Sequence[AnswerRound]) -> list[_Rounds]:
        """The episodes over these rounds of those in which no process held the queue."""
        held = {round_ for holder in self._held.holders(queue) for round_ in holder.rounds}
        return self._episodes(queue, rounds, {answers.round_ for answers in rounds} - held)

    def _episodes(
        self, queue: QueueKey, rounds: Sequence[AnswerRound], shown: Collection[Instant]
    ) -> list[_Rounds]:
        """The episodes over the rounds that count, of those that show it."""
        parts = [
            Portion(answers.moment, answers.moment, 1, watch=answers.phase.watch)
            for answers in rounds
        ]
        at_rounds = ([(queue, one)] if one.round_ in shown else [] for one in rounds)
        return list(episodes_of(runs_of(parts), at_rounds, self._case.persistence_seconds))

    def _finding(
        self, kind: str, cause: str, episode: _Rounds, claimants: Sequence[Claimant] = ()
    ) -> QueueFinding:
        """``cause``: where members do not choose their queues."""
        extent, phases = episode.extent, [answers.phase.verdict for answers in episode.shown]
        if phases[-1].coverage == QUEUES_CHOSEN:
            cause = MANUAL_ASSIGNMENT
        moments = tuple((answers.moment, answers.moment) for answers in episode.shown)
        return QueueFinding(
            self._timeline.topic,
            extent,
            kind,
            episode.key,
            CERTAIN,
            probability=1.0,
            completeness=min(phase.completeness for phase in phases),
            claimants=tuple(claimants),
            strategy_source=phases[-1].strategy_source,
            causes=(cause,),
            # Without a gap these are all of its time.
            times=moments if extent.share_of_time < 1 else (),
        )


# ---------------------------------------------------------------- in words


def held_faults(case: Case, findings: Sequence[QueueFinding]) -> Iterator[FaultEpisode]:
    """One fault for each cause and topic, over the findings of ``held_queues`` that overlap."""
    in_time = sorted(findings, key=lambda finding: finding.first_seen)
    by_cause = grouped(((finding.topic, finding.causes[0]), finding) for finding in in_time)
    for (_, cause), findings_of_cause in by_cause.items():
        for overlapping in together(findings_of_cause, lambda one: (one.first_seen, one.last_seen)):
            yield _fault(case, cause, overlapping)


def _fault(case: Case, cause: str, findings: Sequence[QueueFinding]) -> FaultEpisode:
    extent, topic = widest([finding.extent for finding in findings]), findings[0].topic
    topic_drift = (one for one in case.drift if one.topic == topic and not one.process.is_log)
    drift = [drifting for drifting in topic_drift if extent.overlaps(drifting)]
    client_ids, evidence, remedy = _WORDS_OF[cause](case, findings, extent, drift)
    lasting, ids = extent._replace(persistence=PERSISTENT), tuple(sorted(client_ids))
    fault = FaultEpisode(topic, lasting, cause, joined(evidence), joined(remedy), ids)
    return fault.about({finding.queue for finding in findings}, cleared=len(findings))


#: The client ids that a fault is about, its evidence and its remedy.
_Words = tuple[Collection[str], Sequence[str], Sequence[str]]


def _not_held_in_words(
    case: Case, findings: Sequence[QueueFinding], time: Extent, drift: Sequence[Drift]
) -> _Words:
    queues = {finding.queue for finding in findings}
    missing = [drifting for drifting in drift if not drifting.is_extra]
    owners = {drifting.client_id for drifting in missing if drifting.queue in queues}
    client_ids = owners.union(drifting.client_id for drifting in missing if drifting.lasts)
    languages, topic = case.dossier.languages, findings[0].topic
    whose = Text("readable")
    if owners:
        whose = Text("computed for {clients}", clients=clients_in_words(owners, languages))
    template = (
        "{queues} [is|are] {whose}, and no process that answered had [it|them] in its running "
        "info {time}"
    )
    named = {"queues": queues_in_words(queues), "whose": whose, "time": between(*time[:2])}
    evidence = [agreeing(len(queues), template, **named)]
    if any(drifting.attributed_to == SHARE_KEPT for drifting in drift):
        evidence.append(_SHARE_KEPT)
    if waiting := sum(finding.left.messages or 0 for finding in findings):
        is_whole = all(finding.left.messages is not None for finding in findings)
        template = "{waiting} there" if is_whole else "at least {waiting} there"
        evidence.append(Text(template, waiting=waiting_in_words(waiting)))
    answers = case.holdings[topic].of_clients(client_ids, time)
    without_consumer = {answer.run.client_id for answer in answers if answer.run.has_no_consumer}
    if without_consumer:
        template = (
            "{clients} [runs, but says that it has|run, but say that they have] no consumer of "
            "the group any more; heartbeats of other groups keep [it|them] listed"
        )
        clients = clients_in_words(without_consumer, languages)
        evidence.append(agreeing(len(without_consumer), template, clients=clients))
    is_go = any(languages.get(client_id) == "GO" for client_id in client_ids)
    # What an update mends is that a client does not take the queues that a route gains.
    changes = case.route_changes.get(topic, ())
    gained = set().union(*[queues_of(change.now) - queues_of(change.before) for change in changes])
    mended = "GO" if is_go and queues & gained else None
    remedy: list[str] = [restart_of(sorted(client_ids), mended)]
    if not owners:
        remedy.insert(0, _SEE_STRATEGY)
        evidence += _strategies_in_words(case, time, topic)
    if without_consumer:
        remedy.insert(0, _SEE_SHUTDOWN)
    if case.dossier.consumes_in_order:
        remedy.append(_SEE_LOCK)
    return client_ids, evidence, remedy


def _otherwise_in_words(
    case: Case, findings: Sequence[QueueFinding], time: Extent, drift: Sequence[Drift]
) -> _Words:
    extra = [drifting for drifting in drift if drifting.is_extra]
    odd = {drifting.client_id for drifting in extra}
    # Where nothing is computed, either of two that hold a queue may be the odd one.
    claimants = {claimant.client_id for finding in findings for claimant in finding.claimants}
    # Of queues that nobody holds there is no claimant: those that should have them differ.
    clients = odd or claimants or {drifting.client_id for drifting in drift}
    named, held = clients_in_words(clients, case.dossier.languages), _held_by(findings)
    template = "{clients} divide the queues differently {time}: {found}"
    if odd:
        template = (
            "{clients} [holds queues other than its share|hold queues other than their shares] "
            "{time}: {found}"
        )
    what = agreeing(len(odd), template, clients=named, time=between(*time[:2]), found=held)
    evidence = [what, *_strategies_in_words(case, time, findings[0].topic)]
    if extra and all(drifting.attributed_to == SHARE_KEPT for drifting in extra):
        return clients, [*evidence, _SHARE_KEPT], [restart_of(odd), _WHY_KEPT]
    divide = Text(
        "make {clients} divide the queues as the other members do: the same SDK and version, "
        "and the same strategy with the same parameters",
        clients=clients_in_words(clients, {}),
    )
    remedy = [divide, Text("then restart them") if len(clients) > 1 else Text("then restart it")]
    if any(case.dossier.languages.get(client_id) == "GO" for client_id in clients):
        remedy.append(_UPDATE_GO)
    return clients, evidence, remedy


def _strategies_in_words(case: Case, time: Extent, topic: str) -> list[Text]:
    """The strategies of the group then that cannot be recomputed; of user code the classes."""
    phases = filter(time.overlaps, case.timelines[topic].phases)
    names = sorted({name for phase in phases for name in phase.verdict.unknown_strategies})
    template = "the members divide the queues by {strategies}, which the audit cannot recompute"
    return [Text(template, strategies=list_of(names, MOST_NAMES))] if names else []


def _assigned_in_words(
    case: Case, findings: Sequence[QueueFinding], time: Extent, _: Sequence[Drift]
) -> _Words:
    clients = {claimant.client_id for finding in findings for claimant in finding.claimants}
    evidence = [Text("{found} {time}", found=_held_by(findings), time=between(*time[:2]))]
    remedy = [ASSIGN_EACH_ONCE]
    orphans = [finding for finding in findings if finding.kind == ORPHANED]
    if len(orphans) < len(findings):
        named = clients_in_words(clients, case.dossier.languages)
        evidence.append(Text("those that hold a queue together are {clients}", clients=named))
        remedy.append(_MAY_BE_MEANT)
    if waiting := sum(orphan.left.messages or 0 for orphan in orphans):
        evidence.append(Text("{waiting} in what nobody holds", waiting=waiting_in_words(waiting)))
    return clients, [*evidence, _BY_ASSIGN], remedy


#: The words for the findings of each cause.
_WORDS_OF: Mapping[str, Callable[..., _Words]] = {
    QUEUE_NOT_HELD: _not_held_in_words,
    ALLOCATES_OTHERWISE: _otherwise_in_words,
    MANUAL_ASSIGNMENT: _assigned_in_words,
}


def _held_by(findings: Sequence[QueueFinding]) -> str:
    """The queues that two processes hold, and those that none holds, in words."""
    queues = grouped((finding.kind, finding.queue) for finding in findings)
    said = {
        DUPLICATE: "{queues} [is|are] held by two",
        ORPHANED: "{queues} [is|are] held by nobody",
    }
    parts = [
        agreeing(len(queues_of_kind), template, queues=queues_in_words(queues_of_kind))
        for kind, template in said.items()
        if (queues_of_kind := {*queues.get(kind, ())})
    ]
    return joined(parts, "{before} and {next}")
