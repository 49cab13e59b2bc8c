"""client runs, timelines -> clients that brokers list and that do not answer.

``getConsumerRunningInfo`` goes through a broker to the client. A client that sends heartbeats and
does not answer it again and again, while others do, may hang, or be another process than its id
says; what it holds, nobody knows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from jobs.instants import Instant
from jobs.judge.answering import Asked, asked_of
from jobs.judge.dossier import ClientRun
from jobs.judge.episodes import FaultEpisode
from jobs.judge.extents import Part, extent_of, join_episodes, runs_of
from jobs.judge.timeline import Phase, Timeline
from jobs.judge.words import between
from jobs.kinds import CLIENT_NOT_ANSWERING, PERSISTENT
from rebalance_core.texts import Text

#: A single question that is lost is no evidence.
_ASKED_AT_LEAST = 3

_REMEDY = Text(
    "see whether the process hangs (a thread dump, its log), and whether the id is that of another "
    "process; its version may not know the question (Java before 3.1.8)"
)


def clients_not_answering(
    clients: Sequence[ClientRun], timelines: Mapping[str, Timeline], persistence_seconds: int
) -> list[FaultEpisode]:
    """One fault per client and lasting time in which it did not answer while it was listed.

    Only the questions of rounds count in which another client of the same SDK answered: else it
    may be the collector, or an SDK that does not know the question. The fault is with the
    first topic of which the client is listed.
    """
    if not any(each.error_code is not None for each in clients):
        return []
    asked = asked_of(clients)
    sdks = {each.client_id: each.language for each in clients if each.language is not None}
    answered: dict[str | None, set[Instant]] = defaultdict(set)
    for client_id, questions in asked.items():
        answered[sdks.get(client_id)].update(each.round_ for each in questions if each.answered)
    silent = {
        client_id: [
            each
            for each in questions
            if each.answered or each.round_ in answered[sdks.get(client_id)]
        ]
        for client_id, questions in asked.items()
        if not all(each.answered for each in questions)
    }
    return [
        fault
        for client_id, questions in sorted(silent.items())
        for fault in _faults(client_id, questions, timelines, persistence_seconds)
    ]


def _faults(
    client_id: str,
    questions: Sequence[Asked],
    timelines: Mapping[str, Timeline],
    persistence_seconds: int,
) -> Iterator[FaultEpisode]:
    topic, listed = _first_listed(client_id, timelines)
    of_listed = [(each, phase.watch) for each in questions for phase in _at(each, listed)]
    runs = runs_of([Part(each.moment, each.moment, 1, watch=watch) for each, watch in of_listed])
    silent = [run for run, (each, _) in zip(runs, of_listed, strict=True) if not each.answered]
    for episode in join_episodes(silent, lambda run: run):
        extent = extent_of(episode, runs[-1].after, persistence_seconds)
        if extent.persistence == PERSISTENT and extent.snapshots >= _ASKED_AT_LEAST:
            time = between(extent.first_seen, extent.last_seen)
            yield FaultEpisode(
                topic=topic,
                fault=CLIENT_NOT_ANSWERING,
                evidence=Text(
                    "{client} is listed and did not answer {questions} questions for its running "
                    "info {time}, while other clients answered",
                    client=client_id,
                    questions=extent.snapshots,
                    time=time,
                ),
                remedy=_REMEDY,
                client_ids=(client_id,),
                **extent._asdict(),
            )


def _at(question: Asked, phases: Sequence[Phase]) -> Sequence[Phase]:
    """The first of the phases in which the question was asked or answered; none, or one."""
    asked_in = (
        phase
        for phase in phases
        if phase.first_seen <= question.moment and question.round_ <= phase.last_seen
    )
    return list(islice(asked_in, 1))


def _first_listed(client_id: str, timelines: Mapping[str, Timeline]) -> tuple[str, Sequence[Phase]]:
    """The first topic in whose allocations the client is, and the phases in which it is."""
    for topic, timeline in sorted(timelines.items()):
        having: dict[str, bool] = {}
        for phase in timeline.phases:
            if phase.situation_id not in having:
                having[phase.situation_id] = any(
                    each.client_id == client_id for each in phase.evaluated.allocations()
                )
        listed = [phase for phase in timeline.phases if having[phase.situation_id]]
        if listed:
            return topic, listed
    return "", ()
