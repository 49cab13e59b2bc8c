"""holdings -> findings: queues that are computed for somebody and that nobody holds, and queues
that two processes hold though they are computed for one.

Lists and routes show what a client should have; its running info shows what it has. Where all
processes of the group answered, and no change explains what they hold, the second decides.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from rebalance_core.client_kinds import restart_of
from rebalance_core.english import agreeing, joined
from rebalance_core.findings import CERTAIN, DUPLICATE, ORPHANED, Claimant
from rebalance_core.grouping import grouped
from rebalance_core.texts import Text

from ..declared.instants import Instant, together
from ..declared.kinds import (
    ALLOCATES_OTHERWISE,
    PERSISTENT,
    QUEUE_NOT_HELD,
    UNLISTED_CONSUMER,
)
from ..schemas import NOT_LOCKED
from .backlog import reading
from .case import Case
from .core_verdict import QueueKey
from .drift import SHARE_KEPT, Drift
from .extents import Episode, Portion, episodes_of, runs_of, widest
from .found import FaultEpisode, GroupFindings, QueueFinding
from .holdings_index import AnswerRound
from .in_words import between, clients_in_words, queues_in_words, waiting_in_words
from .routes import queues_of
from .witnessed import witnessed

#: Causes of a finding that the holdings show and the computation does not.
CAUSES = frozenset({QUEUE_NOT_HELD, ALLOCATES_OTHERWISE})
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

#: Rounds that show that a queue is held by nobody, or by several.
_Rounds = Episode[QueueKey, AnswerRound]


def held_queues(case: Case, found: GroupFindings) -> GroupFindings:
    """The lasting orphans and duplicates that the holdings show and the computation does not, and
    the faults that they are put down to.

    A queue that is computed for a client under every view and that nobody holds is ORPHANED. One
    that two hold at a time is DUPLICATE; of two that consume in order, the one that the broker gave
    no lock waits, and does not count. Where the members' strategy was not found, nothing is
    computed, and every readable queue is due. A round counts where all processes answered in one
    phase and no change explains what they hold (two that hold a queue need no third). A process
    that does not reach a queue's broker does not read it, whatever its table has. Where some
    processes do not answer, the owners' answers and the queue's offset decide: where messages wait
    and the offset does not move, no other process reads it either. Where it moves again and again,
    somebody reads the queue, whatever the answers show: who is an UNLISTED_CONSUMER where all
    processes answered.
    """
    drift = grouped((each.topic, each) for each in case.drift if not each.process.is_log)
    every = [
        each
        for topic in case.holdings
        for each in _TopicHoldings(case, topic).findings(drift.get(topic, ()))
    ]
    queues = [witnessed(case, each) for each in every if each.causes != _READ_BY_OTHERS]
    read = grouped((each.topic, each) for each in every if each.causes == _READ_BY_OTHERS)
    others = [_read_by_others(of_topic, drift.get(topic, ())) for topic, of_topic in read.items()]
    return found.plus([*held_faults(case, queues), *others], queues)


class _TopicHoldings:
    def __init__(self, case: Case, topic: str) -> None:
        self._case, self._timeline, self._held = case, case.timelines[topic], case.holdings[topic]
        #: The readable queues by phase, of those in which nothing is computed.
        phases = (each.phase for each in self._held.holdings if not each.phase.is_computed)
        self._undivided = {each.position: case.readable[each.situation_id] for each in phases}

    @cached_property
    def _settled(self) -> Sequence[AnswerRound]:
        """The rounds of one phase that no change explains."""
        return [each for each in self._held.rounds if each.is_settled and each.is_of_one_phase]

    def findings(self, drift: Sequence[Drift]) -> list[QueueFinding]:
        """The findings of the queues that drift: no other one can show what is asked for.

        One process drifts so without a break for long enough: where members flap from poll to poll,
        a queue may be missing here and there in many rounds.
        """
        extra = [each for each in drift if each.is_extra]
        lasting = {each.queue for each in extra if each.lasts}.union(*self._undivided.values())
        duplicates = [found for queue in sorted(lasting) for found in self._duplicates(queue)]
        shared = {each.queue for each in duplicates}
        odd = {each.client_id for each in extra if each.queue in shared}
        lacking = {each.queue for each in drift if not each.is_extra and each.lasts}
        owned = sorted(self._owners(lacking).items())
        return duplicates + [found for each in owned for found in self._orphans(*each, odd)]

    def _owners(self, queues: set[QueueKey]) -> Mapping[QueueKey, Mapping[int, set[str]]]:
        """The client ids that each queue is computed for under every view, by phase."""
        owners: dict[QueueKey, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
        for each in self._held.holdings:
            if each.computed and not each.broadcasts:
                for queue in queues.intersection(*[view.queues for view in each.computed]):
                    owners[queue][each.phase.position].add(each.process.client_id)
        for position, readable in self._undivided.items():
            for queue in readable:
                # It is somebody's, and nothing shows whose.
                owners[queue].setdefault(position, set())
        return owners

    def _orphans(
        self, queue: QueueKey, owners: Mapping[int, set[str]], odd: Collection[str]
    ) -> list[QueueFinding]:
        offsets = self._case.offsets.get((self._timeline.topic, *queue))
        held = {round_ for each in self._held.holders(queue) for round_ in each.rounds}
        settled = [each for each in self._settled if each.position in owners]

        def findings(rounds: Sequence[AnswerRound]) -> Iterator[QueueFinding]:
            for episode in self._lasting(queue, rounds, {each.round_ for each in rounds} - held):
                due = set().union(*[owners[each.position] for each in episode.shown])
                cause = QUEUE_NOT_HELD if due.isdisjoint(odd) else ALLOCATES_OTHERWISE
                yield self._finding(ORPHANED, cause, episode)

        # A process that does not reach the broker by the lists, or broadcasts, may be the reader.
        had = [each.moments for each in self._held.holdings if queue in each.activities]
        found: list[QueueFinding] = []
        for each in findings([each for each in settled if each.is_complete]):
            if not reading(offsets, each.all_times).is_read:
                found.append(each)
            elif not any(map(each.extent.those_of, had)):
                found.append(replace(each, causes=_READ_BY_OTHERS))
        if offsets is None or any(each.causes != _READ_BY_OTHERS for each in found):
            return found
        # The rounds in which all of the queue's owners answered, if not every process did.
        owned = (each for each in settled if owners[each.position])
        of_owners = [each for each in owned if owners[each.position] <= each.client_ids]
        return found + [
            each
            for each in findings(of_owners)
            if reading(offsets, [(each.first_seen, each.last_seen)]).is_read is False
        ]

    def _duplicates(self, queue: QueueKey) -> Iterator[QueueFinding]:
        holders = grouped(
            (round_, each.process)
            for each in self._held.holders(queue)
            if each.activities[queue] != NOT_LOCKED
            for round_ in each.answered
        )
        computed = {
            phase.position
            for phase in self._timeline.phases
            for each in phase.evaluated.findings
            if (each.kind, each.queue) == (DUPLICATE, queue)
        }
        shared = {round_ for round_, processes in holders.items() if len(processes) > 1}
        counted = (each for each in self._settled if each.is_complete or each.round_ in shared)
        rounds = [each for each in counted if each.position not in computed]
        for episode in self._lasting(queue, rounds, shared):
            at_a_time = [set(holders[each.round_]) for each in episode.shown]
            # A queue that goes from one to another may look shared by the time that all are asked.
            if len(set.intersection(*at_a_time)) > 1:
                numbers = Counter(process.client_id for process in set().union(*at_a_time))
                claimants = [Claimant(*each, 1.0) for each in sorted(numbers.items())]
                yield self._finding(DUPLICATE, ALLOCATES_OTHERWISE, episode, claimants)

    def _lasting(
        self, queue: QueueKey, rounds: Sequence[AnswerRound], shown: Collection[Instant]
    ) -> list[_Rounds]:
        """The lasting episodes over the rounds that count, of those that show it."""
        phases = self._timeline.phases
        parts = [
            Portion(each.moment, each.moment, 1, watch=phases[each.position - 1].watch)
            for each in rounds
        ]
        at_rounds = [[(queue, each)] if each.round_ in shown else [] for each in rounds]
        episodes = episodes_of(runs_of(parts), at_rounds, self._case.persistence_seconds)
        return [each for each in episodes if each.extent.lasts]

    def _finding(
        self, kind: str, cause: str, episode: _Rounds, claimants: Sequence[Claimant] = ()
    ) -> QueueFinding:
        extent, shown = episode.extent, episode.shown
        phases = [self._timeline.phases[each.position - 1].verdict for each in shown]
        moments = tuple((each.moment, each.moment) for each in shown)
        return QueueFinding(
            self._timeline.topic,
            extent,
            kind,
            episode.key,
            CERTAIN,
            probability=1.0,
            completeness=min(each.completeness for each in phases),
            claimants=tuple(claimants),
            strategy_source=phases[-1].strategy_source,
            causes=(cause,),
            # Without a gap these are all of its time.
            times=moments if extent.share_of_time < 1 else (),
        )


# ---------------------------------------------------------------- in words


def held_faults(case: Case, findings: Sequence[QueueFinding]) -> Iterator[FaultEpisode]:
    """One fault for each cause and topic, over the findings of ``held_queues`` that overlap."""
    in_time = sorted(findings, key=lambda each: each.first_seen)
    by_cause = grouped(((each.topic, each.causes[0]), each) for each in in_time)
    for (_, cause), of_cause in by_cause.items():
        for overlapping in together(of_cause, lambda each: (each.first_seen, each.last_seen)):
            yield _fault(case, cause, overlapping)


def _fault(case: Case, cause: str, findings: Sequence[QueueFinding]) -> FaultEpisode:
    extent, topic = widest([each.extent for each in findings]), findings[0].topic
    queues = {each.queue for each in findings}
    of_topic = (each for each in case.drift if each.topic == topic and not each.process.is_log)
    drift = [each for each in of_topic if extent.overlaps(each)]
    words = _otherwise_in_words if cause == ALLOCATES_OTHERWISE else _not_held_in_words
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
    extent = widest([each.extent for each in findings])
    queues = {each.queue for each in findings}
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
    queues = {each.queue for each in findings}
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
    if waiting := sum(each.left.messages or 0 for each in findings):
        is_whole = all(each.left.messages is not None for each in findings)
        template = "{waiting} there" if is_whole else "at least {waiting} there"
        evidence.append(Text(template, waiting=waiting_in_words(waiting)))
    time_of_all = widest([each.extent for each in findings])
    answers = case.holdings[findings[0].topic].of_clients(client_ids, time_of_all)
    ended = sorted({each.run.client_id for each in answers if each.run.has_no_consumer})
    if ended:
        template = (
            "{clients} [runs, but says that it has|run, but say that they have] no consumer of "
            "the group any more; heartbeats of other groups keep [it|them] listed"
        )
        clients = clients_in_words(ended, languages)
        evidence.append(agreeing(len(ended), template, clients=clients))
    is_go = any(languages.get(each) == "GO" for each in client_ids)
    # What an update mends is that a client does not take the queues that a route gains.
    changes = case.route_changes.get(findings[0].topic, ())
    gained = set().union(*[queues_of(each.now) - queues_of(each.before) for each in changes])
    remedy: list[str] = [restart_of(client_ids, "GO" if is_go and queues & gained else None)]
    if not owners:
        remedy.insert(0, _SEE_STRATEGY)
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
    twice = {each.queue for each in findings if each.kind == DUPLICATE}
    nobody = {each.queue for each in findings if each.kind == ORPHANED}
    odd = {each.client_id for each in drift if each.is_extra and (not twice or each.queue in twice)}
    # Where nothing is computed, either of two that hold a queue may be the odd one.
    claimants = {claimant.client_id for each in findings for claimant in each.claimants}
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
    evidence = agreeing(len(odd), template, clients=named, time=time, found=held)
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
    if any(languages.get(each) == "GO" for each in clients):
        early = "early native Go clients divide AVG differently from Java: update the Go client"
        remedy.append(Text(early))
    return sorted(clients), evidence, joined(remedy)


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
