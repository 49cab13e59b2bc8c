"""holdings -> findings: queues that are computed for somebody and that nobody holds, and queues
that two processes hold though they are computed for one.

Lists and routes show what a client should have; its running info shows what it has. Where all
processes of the group answered, and no change explains what they hold, the second decides.
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
    TRANSIENT,
    UNLISTED_CONSUMER,
)
from ...schemas import NOT_LOCKED
from ..observe.backlog import backlog, reading
from ..observe.core_verdict import QueueKey
from ..observe.holdings_index import SHARE_KEPT, AnswerRound, Drift
from ..observe.in_words import between, clients_in_words, queues_in_words, waiting_in_words
from ..observe.routes import queues_of
from ..times.extents import Episode, Extent, Portion, episodes_of, persistence, runs_of, widest
from .case import Case
from .found import FaultEpisode, GroupFindings, QueueFinding
from .stalls import spans
from .witnessed import witnessed

#: Causes of a finding that the holdings show and the computation does not.
_CAUSES = frozenset({QUEUE_NOT_HELD, ALLOCATES_OTHERWISE})
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
_FIND_READER = Text(
    "find who reads these queues, and end it: a process that left the brokers' lists and goes on "
    "(of a group that consumes in order, a broker's lock.log names who has the lock), a client of "
    "a proxy, or a program that pulls by itself"
)

_BY_ASSIGN = Text("the members take their queues by assign(), and RocketMQ divides none among them")
_MAY_BE_MEANT = Text("if two are meant to read a queue, put them into separate groups")

#: Rounds that show that a queue is held by nobody, or by several.
_Rounds = Episode[QueueKey, AnswerRound]


def is_computed(finding: QueueFinding) -> bool:
    """True if lists and routes show the finding, and not what is held alone."""
    is_chosen = finding.strategy_source is None and MANUAL_ASSIGNMENT in finding.causes
    return _CAUSES.isdisjoint(finding.causes) and not is_chosen


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
    """
    drift = grouped((each.topic, each) for each in case.drift if not each.process.is_log)
    every = [
        finding
        for topic in case.holdings
        for finding in _TopicHoldings(case, topic).findings(drift.get(topic, ()))
    ]
    queues = [witnessed(case, finding) for finding in every if finding.causes != _READ_BY_OTHERS]
    read = grouped(
        (finding.topic, finding) for finding in every if finding.causes == _READ_BY_OTHERS
    )
    others = [_read_by_others(of_topic, drift.get(topic, ())) for topic, of_topic in read.items()]
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
        return [
            answer_round
            for answer_round in self._held.rounds
            if answer_round.is_settled and answer_round.is_of_one_phase
        ]

    def findings(self, drift: Sequence[Drift]) -> list[QueueFinding]:
        """The findings of the queues that drift: no other one can show what is asked for.

        One process drifts so without a break for long enough: where members flap from poll to poll,
        a queue may be missing here and there in many rounds.
        """
        extra = [each for each in drift if each.is_extra]
        lasting = {each.queue for each in extra if each.lasts}.union(*self._undivided.values())
        duplicates = [found for queue in sorted(lasting) for found in self._duplicates(queue)]
        shared = {duplicate.queue for duplicate in duplicates}
        odd = {each.client_id for each in extra if each.queue in shared}
        lacking = {each.queue for each in drift if not each.is_extra and each.lasts}
        owned = sorted(self._owners(lacking).items())
        orphans = [found for each in owned for found in self._orphans(*each, odd)]
        due = sorted(set().union(*self._undivided.values()))
        return duplicates + orphans + [found for queue in due for found in self._unheld(queue)]

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
        So is a queue that not every nameserver gives: its broker may be gone.

        Worked example: at 10:03 both members answer, and none has b3. Its offset is the same from
        10:00 to 10:14, while 400 messages came: it is an orphan since 10:00.
        """
        offsets = self._case.offsets.get((self._timeline.topic, *queue))
        held = {round_ for holder in self._held.holders(queue) for round_ in holder.rounds}
        had = [holding.moments for holding in self._held.holdings if queue in holding.activities]
        due = (
            answer_round
            for answer_round in self._settled
            if queue in self._undivided.get(answer_round.position, ())
        )
        rounds = [answer_round for answer_round in due if answer_round.is_complete]
        for episode in self._episodes(
            queue, rounds, {answer_round.round_ for answer_round in rounds} - held
        ):
            is_chosen = self._is_chosen(episode)
            cause = MANUAL_ASSIGNMENT if is_chosen else QUEUE_NOT_HELD
            found = self._finding(ORPHANED, cause, episode)
            polls = () if offsets is None else offsets.times.tolist()
            around = self._unchanged(episode, rounds, polls)
            unmoved = self._while_unmoved(offsets, episode, around)
            if unmoved.lasts:
                yield replace(found, extent=unmoved, times=())
            elif not found.extent.lasts or not self._undivided[episode.shown[-1].position][queue]:
                continue
            elif reading(offsets, found.all_times).is_read:
                if not any(map(found.extent.those_of, had)):
                    yield replace(found, causes=_READ_BY_OTHERS)
            elif not is_chosen or backlog(offsets, found.first_seen, found.last_seen).messages:
                yield found

    def _is_chosen(self, episode: _Rounds) -> bool:
        verdict = self._timeline.phases[episode.shown[-1].position - 1].verdict
        return verdict.coverage == QUEUES_CHOSEN

    def _unchanged(
        self, episode: _Rounds, rounds: Sequence[AnswerRound], polls: Sequence[Instant] = ()
    ) -> Extent:
        """The time around an episode in which neither the members nor the route changed: what was
        held then stayed so, as far as anybody saw. Where a round before or behind it shows
        something else, the ``polls`` between them are in it, and without these nothing.
        """
        case, phases = self._case, self._timeline.phases
        first, last = episode.shown[0], episode.shown[-1]
        watch = phases[first.position - 1].watch
        watched = [phase for phase in phases if phase.watch == watch]
        changes = [member.since for member in case.members_in_time]
        changes += [
            route_change.collected_at
            for route_change in case.route_changes.get(self._timeline.topic, ())
        ]
        since = max(each for each in [watched[0].first_seen, *changes] if each <= first.moment)
        ends = max(watched[-1].last_seen, last.moment)
        until = min([ends, *(change for change in changes if change > last.moment)])
        before = [
            answer_round.moment
            for answer_round in rounds
            if since <= answer_round.moment < first.moment
        ]
        after = [
            answer_round.moment
            for answer_round in rounds
            if last.moment < answer_round.moment <= until
        ]
        if before:
            since = min([first.moment, *(poll for poll in polls if poll > before[-1])])
        if after:
            until = max([last.moment, *(poll for poll in polls if poll < after[0])])
        lasts = persistence(since, until, case.persistence_seconds)
        is_last = until == ends and watch == phases[-1].watch
        return Extent(since, until, episode.extent.snapshots, lasts, ongoing=is_last)

    def _while_unmoved(
        self, offsets: QueueOffsets | None, episode: _Rounds, time: Extent
    ) -> Extent:
        """The longest part of a time around an episode, and with a round of it, in which messages
        wait and the offset is the same from poll to poll; of no length where there is none.
        """
        none = time._replace(last_seen=time.first_seen, persistence=TRANSIENT)
        if offsets is None:
            return none
        first, end = np.searchsorted(offsets.times, [time.first_seen, time.last_seen + 1])
        from_, to = np.searchsorted(
            offsets.times[first:end], [episode.extent.first_seen, episode.extent.last_seen]
        )
        every = spans(offsets.unmoved[first : max(end - 1, first)])
        runs = [each for each in every if each[0] <= to and each[1] >= from_]
        if not runs:
            return none
        start, stop = max(runs, key=np.ptp)
        # Before the first poll and after the last one nothing shows that it moved.
        since = offsets.times[first + start].item() if start else time.first_seen
        is_last = first + stop == end - 1
        until = time.last_seen if is_last else offsets.times[first + stop].item()
        lasts = persistence(since, until, self._case.persistence_seconds)
        is_open = time.ongoing and is_last
        return time._replace(first_seen=since, last_seen=until, persistence=lasts, ongoing=is_open)

    def _orphans(
        self, queue: QueueKey, owners: Mapping[int, set[str]], odd: Collection[str]
    ) -> list[QueueFinding]:
        offsets = self._case.offsets.get((self._timeline.topic, *queue))
        held = {round_ for holder in self._held.holders(queue) for round_ in holder.rounds}
        settled = [
            answer_round for answer_round in self._settled if answer_round.position in owners
        ]

        def findings(rounds: Sequence[AnswerRound]) -> Iterator[QueueFinding]:
            for episode in self._episodes(
                queue, rounds, {answer_round.round_ for answer_round in rounds} - held
            ):
                if not episode.extent.lasts:
                    continue
                due = set().union(
                    *[owners[answer_round.position] for answer_round in episode.shown]
                )
                cause = QUEUE_NOT_HELD if due.isdisjoint(odd) else ALLOCATES_OTHERWISE
                yield self._finding(ORPHANED, cause, episode)

        # A process that does not reach the broker by the lists, or broadcasts, may be the reader.
        had = [holding.moments for holding in self._held.holdings if queue in holding.activities]
        found: list[QueueFinding] = []
        for finding in findings(
            [answer_round for answer_round in settled if answer_round.is_complete]
        ):
            if not reading(offsets, finding.all_times).is_read:
                found.append(finding)
            elif not any(map(finding.extent.those_of, had)):
                found.append(replace(finding, causes=_READ_BY_OTHERS))
        if offsets is None or any(finding.causes != _READ_BY_OTHERS for finding in found):
            return found
        # The rounds in which all of the queue's owners answered, if not every process did.
        owned = (answer_round for answer_round in settled if owners[answer_round.position])
        of_owners = [
            answer_round
            for answer_round in owned
            if owners[answer_round.position] <= answer_round.client_ids
        ]
        return found + [
            finding
            for finding in findings(of_owners)
            if reading(offsets, [(finding.first_seen, finding.last_seen)]).is_read is False
        ]

    def _duplicates(self, queue: QueueKey) -> Iterator[QueueFinding]:
        holders = grouped(
            (round_, holder.process)
            for holder in self._held.holders(queue)
            if holder.activities[queue] != NOT_LOCKED
            for round_ in holder.answered
        )
        computed = {
            phase.position
            for phase in self._timeline.phases
            for finding in phase.evaluated.findings
            if (finding.kind, finding.queue) == (DUPLICATE, queue)
        }
        shared = {round_ for round_, processes in holders.items() if len(processes) > 1}
        counted = (
            answer_round
            for answer_round in self._settled
            if answer_round.is_complete or answer_round.round_ in shared
        )
        rounds = [answer_round for answer_round in counted if answer_round.position not in computed]
        for episode in self._episodes(queue, rounds, shared):
            at_a_time = [set(holders[answer_round.round_]) for answer_round in episode.shown]
            # A queue that goes from one to another may look shared by the time that all are asked.
            if len(set.intersection(*at_a_time)) < 2:
                continue
            numbers = Counter(process.client_id for process in set().union(*at_a_time))
            claimants = [Claimant(*each, 1.0) for each in sorted(numbers.items())]
            cause = MANUAL_ASSIGNMENT if self._is_chosen(episode) else ALLOCATES_OTHERWISE
            found = self._finding(DUPLICATE, cause, episode, claimants)
            if found.extent.lasts:
                yield found
            elif episode.shown[-1].position in self._undivided:
                unchanged = self._unchanged(episode, rounds)
                if unchanged.lasts:
                    yield replace(found, extent=unchanged, certainty=POSSIBLE)

    def _episodes(
        self, queue: QueueKey, rounds: Sequence[AnswerRound], shown: Collection[Instant]
    ) -> list[_Rounds]:
        """The episodes over the rounds that count, of those that show it."""
        phases = self._timeline.phases
        parts = [
            Portion(
                answer_round.moment,
                answer_round.moment,
                1,
                watch=phases[answer_round.position - 1].watch,
            )
            for answer_round in rounds
        ]
        at_rounds = [
            [(queue, answer_round)] if answer_round.round_ in shown else []
            for answer_round in rounds
        ]
        return list(episodes_of(runs_of(parts), at_rounds, self._case.persistence_seconds))

    def _finding(
        self, kind: str, cause: str, episode: _Rounds, claimants: Sequence[Claimant] = ()
    ) -> QueueFinding:
        extent, shown = episode.extent, episode.shown
        phases = [
            self._timeline.phases[answer_round.position - 1].verdict for answer_round in shown
        ]
        moments = tuple((answer_round.moment, answer_round.moment) for answer_round in shown)
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
    for (_, cause), of_cause in by_cause.items():
        for overlapping in together(
            of_cause, lambda finding: (finding.first_seen, finding.last_seen)
        ):
            yield _fault(case, cause, overlapping)


def _fault(case: Case, cause: str, findings: Sequence[QueueFinding]) -> FaultEpisode:
    extent, topic = widest([finding.extent for finding in findings]), findings[0].topic
    queues = {finding.queue for finding in findings}
    of_topic = (each for each in case.drift if each.topic == topic and not each.process.is_log)
    drift = [each for each in of_topic if extent.overlaps(each)]
    words = _WORDS_OF[cause]
    time = between(extent.first_seen, extent.last_seen)
    client_ids, evidence, remedy = words(case, findings, time, drift)
    return FaultEpisode(
        topic,
        extent._replace(persistence=PERSISTENT),
        cause,
        evidence,
        remedy,
        client_ids=tuple(client_ids),
        broker_names=tuple(sorted({broker_name for broker_name, _ in queues})),
        queues_affected=len(queues),
        cleared=len(findings),
    )


def _read_by_others(findings: Sequence[QueueFinding], drift: Sequence[Drift]) -> FaultEpisode:
    extent = widest([finding.extent for finding in findings])
    queues = {finding.queue for finding in findings}
    lacking = {each.client_id for each in drift if not each.is_extra and each.queue in queues}
    return FaultEpisode(
        findings[0].topic,
        extent,
        UNLISTED_CONSUMER,
        agreeing(
            len(queues),
            "all processes answered, and none had {queues} in its running info {time}, but [its "
            "offset advances|their offsets advance]: somebody who is not listed reads [it|them]",
            queues=queues_in_words(queues),
            time=between(extent.first_seen, extent.last_seen),
        ),
        _FIND_READER,
        client_ids=tuple(sorted(lacking)),
        broker_names=tuple(sorted({broker_name for broker_name, _ in queues})),
    )


#: The client ids that a fault is about, its evidence and its remedy.
_Words = tuple[Sequence[str], str, str]


def _not_held_in_words(
    case: Case, findings: Sequence[QueueFinding], time: str, drift: Sequence[Drift]
) -> _Words:
    queues = {finding.queue for finding in findings}
    lacking = [each for each in drift if not each.is_extra]
    owners = {each.client_id for each in lacking if each.queue in queues}
    client_ids = sorted(owners.union(each.client_id for each in lacking if each.lasts))
    languages = case.dossier.languages
    whose = Text("readable")
    if owners:
        whose = Text("computed for {clients}", clients=clients_in_words(owners, languages))
    evidence = [
        agreeing(
            len(queues),
            "{queues} [is|are] {whose}, and no process that answered had [it|them] in its running "
            "info {time}",
            queues=queues_in_words(queues),
            whose=whose,
            time=time,
        )
    ]
    if any(each.attributed_to == SHARE_KEPT for each in drift):
        evidence.append(_SHARE_KEPT)
    if waiting := sum(finding.left.messages or 0 for finding in findings):
        is_whole = all(finding.left.messages is not None for finding in findings)
        template = "{waiting} there" if is_whole else "at least {waiting} there"
        evidence.append(Text(template, waiting=waiting_in_words(waiting)))
    time_of_all = widest([finding.extent for finding in findings])
    answers = case.holdings[findings[0].topic].of_clients(client_ids, time_of_all)
    ended = sorted({answer.run.client_id for answer in answers if answer.run.has_no_consumer})
    if ended:
        template = (
            "{clients} [runs, but says that it has|run, but say that they have] no consumer of "
            "the group any more; heartbeats of other groups keep [it|them] listed"
        )
        clients = clients_in_words(ended, languages)
        evidence.append(agreeing(len(ended), template, clients=clients))
    is_go = any(languages.get(client_id) == "GO" for client_id in client_ids)
    # What an update mends is that a client does not take the queues that a route gains.
    changes = case.route_changes.get(findings[0].topic, ())
    gained = set().union(*[queues_of(change.now) - queues_of(change.before) for change in changes])
    remedy: list[str] = [restart_of(client_ids, "GO" if is_go and queues & gained else None)]
    if not owners:
        remedy.insert(0, _SEE_STRATEGY)
        evidence += _strategies_in_words(case, time_of_all, findings[0].topic)
    if ended:
        why = Text("find in the log why the application shut down its consumer of this group")
        remedy.insert(0, why)
    if case.dossier.consumes_in_order:
        remedy.append(
            Text(
                "the group consumes in order, so that another process may have the queue's lock: "
                "look for 'lock failed' in the log of the client"
            )
        )
    return client_ids, joined(evidence), joined(remedy)


def _otherwise_in_words(
    case: Case, findings: Sequence[QueueFinding], time: str, drift: Sequence[Drift]
) -> _Words:
    twice = {finding.queue for finding in findings if finding.kind == DUPLICATE}
    nobody = {finding.queue for finding in findings if finding.kind == ORPHANED}
    odd = {each.client_id for each in drift if each.is_extra and (not twice or each.queue in twice)}
    # Where nothing is computed, either of two that hold a queue may be the odd one.
    claimants = {claimant.client_id for finding in findings for claimant in finding.claimants}
    # Of queues that nobody holds there is no claimant: those that should have them differ.
    clients = odd or claimants or {each.client_id for each in drift}
    languages = case.dossier.languages
    named, held = clients_in_words(clients, languages), _held_by(twice, nobody)
    template = "{clients} divide the queues differently {time}: {found}"
    if odd:
        template = (
            "{clients} [holds queues other than its share|hold queues other than their shares] "
            "{time}: {found}"
        )
    evidence = joined(
        [
            agreeing(len(odd), template, clients=named, time=time, found=held),
            *_strategies_in_words(
                case, widest([finding.extent for finding in findings]), findings[0].topic
            ),
        ]
    )
    extra = [each for each in drift if each.is_extra and each.client_id in odd]
    if extra and all(each.attributed_to == SHARE_KEPT for each in extra):
        restart = restart_of(odd)
        return sorted(clients), joined([evidence, _SHARE_KEPT]), joined([restart, _WHY_KEPT])
    divide = Text(
        "make {clients} divide the queues as the other members do: the same SDK and version, "
        "and the same strategy with the same parameters",
        clients=clients_in_words(clients, {}),
    )
    remedy = [divide, Text("then restart them") if len(clients) > 1 else Text("then restart it")]
    if any(languages.get(client) == "GO" for client in clients):
        early = "early native Go clients divide AVG differently from Java: update the Go client"
        remedy.append(Text(early))
    return sorted(clients), evidence, joined(remedy)


def _strategies_in_words(case: Case, time: Extent, topic: str) -> list[Text]:
    """The strategies of the group then that cannot be recomputed; of user code the classes."""
    phases = filter(time.overlaps, case.timelines[topic].phases)
    names = sorted({name for phase in phases for name in phase.verdict.unknown_strategies})
    if not names:
        return []
    template = "the members divide the queues by {strategies}, which the audit cannot recompute"
    return [Text(template, strategies=list_of(names, MOST_NAMES))]


def _assigned_in_words(
    case: Case, findings: Sequence[QueueFinding], time: str, _: Sequence[Drift]
) -> _Words:
    twice = {finding.queue for finding in findings if finding.kind == DUPLICATE}
    nobody = {finding.queue for finding in findings if finding.kind == ORPHANED}
    clients = {claimant.client_id for finding in findings for claimant in finding.claimants}
    evidence = [Text("{found} {time}", found=_held_by(twice, nobody), time=time)]
    remedy = [ASSIGN_EACH_ONCE]
    if twice:
        named = clients_in_words(clients, case.dossier.languages)
        evidence.append(Text("those that hold a queue together are {clients}", clients=named))
        remedy.append(_MAY_BE_MEANT)
    if waiting := sum(
        finding.left.messages or 0 for finding in findings if finding.kind == ORPHANED
    ):
        evidence.append(Text("{waiting} in what nobody holds", waiting=waiting_in_words(waiting)))
    return sorted(clients), joined([*evidence, _BY_ASSIGN]), joined(remedy)


#: The words for the findings of each cause.
_WORDS_OF: Mapping[str, Callable[..., _Words]] = {
    QUEUE_NOT_HELD: _not_held_in_words,
    ALLOCATES_OTHERWISE: _otherwise_in_words,
    MANUAL_ASSIGNMENT: _assigned_in_words,
}


def _held_by(twice: Collection[QueueKey], nobody: Collection[QueueKey]) -> str:
    """The queues that two processes hold, and those that none holds, in words."""
    parts = []
    if twice:
        held = queues_in_words(twice)
        parts.append(agreeing(len(twice), "{queues} [is|are] held by two", queues=held))
    if nobody:
        held = queues_in_words(nobody)
        parts.append(agreeing(len(nobody), "{queues} [is|are] held by nobody", queues=held))
    return joined(parts, "{before} and {next}")
