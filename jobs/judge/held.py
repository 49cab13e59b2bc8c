"""holdings -> findings: queues that are computed for somebody and that nobody holds, and queues
that two processes hold though they are computed for one.

Lists and routes show what a client should have; its running info shows what it has. Where all
processes of the group answered, and no change explains what they hold, the second decides.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter

from jobs.instants import Instant
from jobs.judge.backlog import backlog, is_read
from jobs.judge.confirmation import HoldingsIndex, HoldingsOfTopic, Round
from jobs.judge.dossier import ClientRun, QueueOffsets
from jobs.judge.drift import SHARE_KEPT
from jobs.judge.episodes import FaultEpisode, QueueEpisode
from jobs.judge.evaluated import Claimant, QueueKey
from jobs.judge.extents import Extent, Part, extent_of, join_episodes, runs_of
from jobs.judge.holdings import Process
from jobs.judge.severity import consumes_in_order
from jobs.judge.tables import Row
from jobs.judge.timeline import Timeline
from jobs.judge.words import between, clients_in_words, queues_in_words, waiting_in_words
from jobs.kinds import (
    ALLOCATES_OTHERWISE,
    COMPUTED_NOT_HELD,
    HELD_NOT_COMPUTED,
    PERSISTENT,
    QUEUE_NOT_HELD,
)
from jobs.schemas import NOT_LOCKED, RUNNING_INFO
from rebalance_core.client_kinds import restart_of
from rebalance_core.english import agreeing, joined
from rebalance_core.findings import CERTAIN, DUPLICATE, ORPHANED
from rebalance_core.texts import Text

#: What a finding is put down to that the holdings show and the computation does not.
CAUSES = frozenset({QUEUE_NOT_HELD, ALLOCATES_OTHERWISE})

_SEVERAL = 2


@dataclass(frozen=True)
class Witnesses:
    """What a group is judged by besides its lists and routes."""

    holdings: HoldingsIndex
    #: The rows of ``allocation_drift``.
    drift: Sequence[Row]
    #: By (topic, broker name, queue id).
    offsets: Mapping[tuple[str, str, int], QueueOffsets]
    clients: Sequence[ClientRun]
    #: By situation in which nothing is computed: the queues that every nameserver's route has.
    readable: Mapping[str, Collection[QueueKey]]
    #: By topic the queues that its route gained in the window.
    gained: Mapping[str, Collection[QueueKey]] = field(default_factory=dict)


def held_findings(
    witnesses: Witnesses, timelines: Mapping[str, Timeline], persistence_seconds: int
) -> list[QueueEpisode]:
    """The lasting orphans and duplicates that the holdings show and the computation does not.

    A queue that is computed for a client under every view and that nobody holds is ORPHANED. One
    that two hold at a time is DUPLICATE; of two that consume in order, the one that the broker
    gave no lock waits, and does not count. Where the members' strategy was not found, nothing is
    computed, and every readable queue is due. A round counts where all processes answered in one
    phase and no change explains what they hold (two that hold a queue need no third). Where some
    processes do not answer, the owners' answers and the queue's offset decide: where messages wait
    and the offset does not move, no other process reads it either. Where it moves again and again,
    somebody reads the queue, whatever the answers show.
    """
    drift: dict[str, list[Row]] = {
        topic: []
        for topic, held in witnesses.holdings.items()
        if not all(each.is_computed for each in held.holdings)
    }
    for row in witnesses.drift:
        if row["source"] == RUNNING_INFO:
            drift.setdefault(row["topic"], []).append(row)
    return [
        episode
        for topic, rows in drift.items()
        for episode in _OfTopic(
            witnesses.holdings[topic], timelines[topic], persistence_seconds, witnesses.readable
        ).episodes(rows, witnesses.offsets)
    ]


class _OfTopic:
    def __init__(
        self,
        held: HoldingsOfTopic,
        timeline: Timeline,
        persistence_seconds: int,
        readable: Mapping[str, Collection[QueueKey]],
    ) -> None:
        self._held = held
        #: The readable queues by phase, of those in which nothing is computed.
        self._undivided = {
            position: readable[timeline.phases[position - 1].situation_id]
            for position in {each.position for each in held.holdings if not each.is_computed}
        }
        self._timeline = timeline
        self._persistence_seconds = persistence_seconds

    def episodes(
        self, drift: Sequence[Row], offsets: Mapping[tuple[str, str, int], QueueOffsets]
    ) -> list[QueueEpisode]:
        """The episodes of the queues that drift: no other one can show what is asked for."""
        owners = self._owners(self._lasting(drift, COMPUTED_NOT_HELD))
        duplicates = [
            episode
            for queue in sorted(self._lasting(drift, HELD_NOT_COMPUTED) | self._all_undivided())
            for episode in self._duplicates(queue)
        ]
        odd = {
            row["client_id"]
            for row in drift
            for each in duplicates
            if row["drift"] == HELD_NOT_COMPUTED
            and (row["broker_name"], row["queue_id"]) == each.queue
        }
        return duplicates + [
            episode
            for queue, by_phase in sorted(owners.items())
            for episode in self._orphans(
                queue, by_phase, odd, offsets.get((self._timeline.topic, *queue))
            )
        ]

    def _lasting(self, drift: Sequence[Row], name: str) -> set[QueueKey]:
        """The queues of which one process drifts so without a break for long enough.

        Where members flap from poll to poll, a queue may be missing here and there in many rounds.
        """
        return {
            _queue_of(row)
            for row in drift
            if row["drift"] == name and row["persistence"] == PERSISTENT
        }

    def _owners(self, queues: set[QueueKey]) -> Mapping[QueueKey, Mapping[int, set[str]]]:
        """By queue and phase the client ids that it is computed for under every view."""
        owners: dict[QueueKey, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
        for each in self._held.holdings:
            if each.computed and not each.broadcasts:
                for queue in queues.intersection(*[view.queues for view in each.computed]):
                    owners[queue][each.position].add(each.process.client_id)
        for position, readable in self._undivided.items():
            for queue in readable:
                # It is somebody's, and nothing shows whose.
                owners[queue].setdefault(position, set())
        return owners

    def _all_undivided(self) -> set[QueueKey]:
        return {queue for readable in self._undivided.values() for queue in readable}

    def _orphans(
        self,
        queue: QueueKey,
        owners: Mapping[int, set[str]],
        odd: Collection[str],
        offsets: QueueOffsets | None,
    ) -> list[QueueEpisode]:
        held = {round_ for each in self._held.holders(queue) for round_ in each.rounds}
        settled = {
            round_: each
            for round_, each in self._held.rounds.items()
            if each.is_settled and each.is_of_one_phase and each.positions <= owners.keys()
        }

        def episodes(rounds: Mapping[Instant, Round]) -> Iterator[QueueEpisode]:
            for shown, extent in self._lasting_of(rounds, rounds.keys() - held):
                due = {each for round_ in shown for p in round_.positions for each in owners[p]}
                cause = QUEUE_NOT_HELD if due.isdisjoint(odd) else ALLOCATES_OTHERWISE
                yield self._episode(ORPHANED, queue, cause, shown, extent, ())

        complete = {round_: each for round_, each in settled.items() if each.is_complete}
        found = [each for each in episodes(complete) if is_read(offsets, each.times) is not True]
        if found or offsets is None:
            return found
        by_owners = self._answered_by_owners(settled, owners)
        return [
            each
            for each in episodes(by_owners)
            if is_read(offsets, [(each.first_seen, each.last_seen)]) is False
        ]

    def _answered_by_owners(
        self, rounds: Mapping[Instant, Round], owners: Mapping[int, set[str]]
    ) -> dict[Instant, Round]:
        """The rounds in which all of a queue's owners answered, if not every process did."""
        answered: dict[Instant, set[str]] = defaultdict(set)
        for each in self._held.holdings:
            for round_ in each.rounds:
                answered[round_].add(each.process.client_id)
        return {
            round_: each
            for round_, each in rounds.items()
            if all(owners[p] and owners[p] <= answered[round_] for p in each.positions)
        }

    def _duplicates(self, queue: QueueKey) -> Iterator[QueueEpisode]:
        holders: dict[Instant, set[Process]] = defaultdict(set)
        for each in self._held.holders(queue):
            if each.activities.get(queue) != NOT_LOCKED:
                for round_ in each.answered:
                    holders[round_].add(each.process)
        computed = {
            phase.position
            for phase in self._timeline.phases
            for each in phase.evaluated.findings
            if (each.kind, each.queue) == (DUPLICATE, queue)
        }
        shared = {round_ for round_, processes in holders.items() if len(processes) >= _SEVERAL}
        rounds = {
            round_: each
            for round_, each in self._held.rounds.items()
            if each.is_settled
            and each.is_of_one_phase
            and (each.is_complete or round_ in shared)
            and computed.isdisjoint(each.positions)
        }
        holders_at = {each.moment: holders[round_] for round_, each in rounds.items()}
        for shown, extent in self._lasting_of(rounds, shared):
            # A queue that goes from one to another may look shared by the time that all are asked.
            if len(set.intersection(*[holders_at[each.moment] for each in shown])) < _SEVERAL:
                continue
            of_episode = set().union(*[holders_at[each.moment] for each in shown])
            numbers = Counter(process.client_id for process in of_episode)
            claimants = [Claimant(*each, 1.0) for each in sorted(numbers.items())]
            yield self._episode(DUPLICATE, queue, ALLOCATES_OTHERWISE, shown, extent, claimants)

    def _lasting_of(
        self, rounds: Mapping[Instant, Round], shown: Collection[Instant]
    ) -> Iterator[tuple[list[Round], Extent]]:
        """The lasting episodes over the rounds that count, of those that show it."""
        runs = runs_of(
            [
                Part(each.moment, each.moment, 1, watch=self._timeline.phases[p - 1].watch)
                for each in rounds.values()
                for p in [max(each.positions)]
            ]
        )
        found = [
            (run, each)
            for (round_, each), run in zip(rounds.items(), runs, strict=True)
            if round_ in shown
        ]
        for episode in join_episodes(found, itemgetter(0)):
            of_episode = [run for run, _ in episode]
            extent = extent_of(of_episode, runs[-1].after, self._persistence_seconds)
            if extent.persistence == PERSISTENT:
                yield [each for _, each in episode], extent

    def _episode(
        self,
        kind: str,
        queue: QueueKey,
        cause: str,
        shown: Sequence[Round],
        extent: Extent,
        claimants: Sequence[Claimant],
    ) -> QueueEpisode:
        phases = [self._timeline.phases[p - 1].evaluated for each in shown for p in each.positions]
        times = [(extent.first_seen, extent.last_seen)]
        if extent.share_of_time < 1:
            times = [(each.moment, each.moment) for each in shown]
        return QueueEpisode(
            topic=self._timeline.topic,
            kind=kind,
            queue=queue,
            certainty=CERTAIN,
            probability=1.0,
            completeness=min(each.completeness for each in phases),
            claimants=tuple(claimants),
            strategy_source=phases[-1].strategy_source,
            causes=(cause,),
            times=tuple(times),
            **extent._asdict(),
        )


# ---------------------------------------------------------------- in words


def held_faults(episodes: Sequence[QueueEpisode], witnesses: Witnesses) -> list[FaultEpisode]:
    """One fault for each cause and topic, over the findings of ``held_findings`` that overlap."""
    by_cause: dict[tuple[str, str], list[QueueEpisode]] = defaultdict(list)
    for episode in sorted(episodes, key=lambda each: each.first_seen):
        by_cause[episode.topic, episode.causes[0]].append(episode)
    return [
        _fault(cause, together, witnesses)
        for (_, cause), of_cause in by_cause.items()
        for together in _overlapping(of_cause)
    ]


def _overlapping(in_time: Sequence[QueueEpisode]) -> Iterator[list[QueueEpisode]]:
    together: list[QueueEpisode] = []
    for each in in_time:
        if together and each.first_seen > max(one.last_seen for one in together):
            yield together
            together = []
        together.append(each)
    yield together


def _fault(cause: str, episodes: Sequence[QueueEpisode], witnesses: Witnesses) -> FaultEpisode:
    first_seen = min(each.first_seen for each in episodes)
    last_seen = max(each.last_seen for each in episodes)
    topic, queues = episodes[0].topic, sorted({each.queue for each in episodes})
    drift = [
        row
        for row in witnesses.drift
        if row["topic"] == topic
        and row["source"] == RUNNING_INFO
        and row["first_seen"] <= last_seen
        and row["last_seen"] >= first_seen
    ]
    words = _otherwise_in_words if cause == ALLOCATES_OTHERWISE else _not_held_in_words
    client_ids, evidence, remedy = words(episodes, between(first_seen, last_seen), drift, witnesses)
    return FaultEpisode(
        topic=topic,
        fault=cause,
        first_seen=first_seen,
        last_seen=last_seen,
        snapshots=max(each.snapshots for each in episodes),
        persistence=PERSISTENT,
        ongoing=any(each.ongoing for each in episodes),
        evidence=evidence,
        remedy=remedy,
        client_ids=tuple(client_ids),
        broker_names=tuple(dict.fromkeys(broker_name for broker_name, _ in queues)),
        queues_affected=len(queues),
        findings_cleared=len(episodes),
        share_of_time=max(each.share_of_time for each in episodes),
    )


#: The client ids that a fault is about, its evidence and its remedy.
_Words = tuple[Sequence[str], str, str]


def _not_held_in_words(
    episodes: Sequence[QueueEpisode], time: str, drift: Sequence[Row], witnesses: Witnesses
) -> _Words:
    queues = {each.queue for each in episodes}
    lacking = [
        row
        for row in drift
        if row["drift"] == COMPUTED_NOT_HELD
        and (row["persistence"] == PERSISTENT or _queue_of(row) in queues)
    ]
    client_ids = sorted({row["client_id"] for row in lacking})
    owners = {row["client_id"] for row in lacking if _queue_of(row) in queues}
    languages = _languages(witnesses.clients)
    whose = Text("readable")
    if owners:
        whose = Text("computed for {clients}", clients=clients_in_words(owners, languages))
    evidence = [
        agreeing(
            len(queues),
            "{queues} is {whose}, and no process that answered had it in its running info {time}",
            "{queues} are {whose}, and no process that answered had them in its running info "
            "{time}",
            queues=queues_in_words(queues),
            whose=whose,
            time=time,
        )
    ]
    if any(row["attributed_to"] == SHARE_KEPT for row in drift):
        evidence.append(Text("the clients still have what they had before the last change"))
    waiting = _waiting(episodes, witnesses)
    if waiting:
        evidence.append(Text("{waiting} there", waiting=waiting_in_words(waiting)))
    is_go = any(languages.get(each) == "GO" for each in client_ids)
    # What an update mends is that a client does not take the queues that a route gains.
    is_gained = not queues.isdisjoint(witnesses.gained.get(episodes[0].topic, ()))
    remedy: list[str] = [restart_of(client_ids, "GO" if is_go and is_gained else None)]
    if consumes_in_order(witnesses.clients):
        remedy.append(
            Text(
                "the group consumes in order, so that another process may have the queue's lock: "
                "look for 'lock failed' in the log of the client"
            )
        )
    return client_ids, joined(evidence), joined(remedy)


def _otherwise_in_words(
    episodes: Sequence[QueueEpisode], time: str, drift: Sequence[Row], witnesses: Witnesses
) -> _Words:
    twice = {each.queue for each in episodes if each.kind == DUPLICATE}
    nobody = {each.queue for each in episodes if each.kind == ORPHANED}
    odd = {
        row["client_id"]
        for row in drift
        if row["drift"] == HELD_NOT_COMPUTED and (not twice or _queue_of(row) in twice)
    }
    # Where nothing is computed, either of two that hold a queue may be the odd one.
    clients = odd or {claimant.client_id for each in episodes for claimant in each.claimants}
    languages = _languages(witnesses.clients)
    values = {
        "clients": clients_in_words(clients, languages),
        "time": time,
        "found": _held_by(twice, nobody),
    }
    evidence = Text("{clients} divide the queues otherwise {time}: {found}", **values)
    if odd:
        evidence = agreeing(
            len(odd),
            "{clients} holds other queues than its share {time}: {found}",
            "{clients} hold other queues than their shares {time}: {found}",
            **values,
        )
    divide = Text(
        "let {clients} divide the queues as the other members do: the same SDK and version, and "
        "the same strategy with the same parameters",
        clients=clients_in_words(clients, {}),
    )
    restart = Text("then restart them") if len(clients) > 1 else Text("then restart it")
    remedy = [divide, restart]
    if any(languages.get(each) == "GO" for each in clients):
        remedy.append(
            Text("early native Go clients cut AVG otherwise than Java: update the Go client")
        )
    return sorted(clients), evidence, joined(remedy)


def _held_by(twice: Collection[QueueKey], nobody: Collection[QueueKey]) -> str:
    """Which queues two processes hold, and which none."""
    parts = []
    if twice:
        parts.append(
            agreeing(
                len(twice),
                "{queues} is held by two",
                "{queues} are held by two",
                queues=queues_in_words(twice),
            )
        )
    if nobody:
        parts.append(
            agreeing(
                len(nobody),
                "{queues} is held by nobody",
                "{queues} are held by nobody",
                queues=queues_in_words(nobody),
            )
        )
    return joined(parts, "{before} and {next}")


def _queue_of(row: Row) -> QueueKey:
    return row["broker_name"], row["queue_id"]


def _languages(clients: Sequence[ClientRun]) -> dict[str, str]:
    return {each.client_id: each.language for each in clients if each.language is not None}


def _waiting(episodes: Sequence[QueueEpisode], witnesses: Witnesses) -> int:
    """The messages that wait in the queues at the end."""
    left = (
        backlog(witnesses.offsets.get((each.topic, *each.queue)), each.first_seen, each.last_seen)
        for each in episodes
    )
    return sum(each.messages or 0 for each in left)
