"""client runs, timelines -> clients that brokers list and that do not answer.

``getConsumerRunningInfo`` goes through a broker to the client. A client that sends heartbeats and
does not answer it again and again, while others do, may hang, or be another process than its id
says; what it holds, nobody knows.
"""

from collections.abc import Iterator, Mapping, Sequence

from rebalance_core.texts import Text

from ..declared.kinds import CLIENT_NOT_ANSWERING
from .answers import ClientRequest, asked_of
from .case import Case
from .extents import Portion, episodes_of, runs_of
from .found import FaultEpisode, GroupFindings
from .in_words import between
from .timeline import Phase, Timeline

#: A single question that is lost is not evidence.
_ASKED_AT_LEAST = 3

_REMEDY = (
    "check whether {this_client} hangs (a thread dump, its log), and whether the id is that of "
    "another process; its version may not know the question (Java before 3.1.8)"
)


def silent_clients(case: Case, found: GroupFindings) -> GroupFindings:
    """One fault per client and lasting time in which it did not answer while it was listed.

    Only the questions of rounds count in which another client of the same SDK answered: else it
    may be the collector, or an SDK that does not know the question. The fault is with the
    first topic of which the client is listed.
    """
    clients, sdks = case.dossier.clients, case.dossier.languages
    if not any(each.error_code is not None for each in clients):
        return found
    asked = asked_of(clients)
    answered = {
        (sdks.get(client_id), each.round_)
        for client_id, questions in asked.items()
        for each in questions
        if each.answered
    }
    return found.plus(
        fault
        for client_id, questions in sorted(asked.items())
        if not all(each.answered for each in questions)
        for fault in _faults(
            case,
            client_id,
            [each for each in questions if (sdks.get(client_id), each.round_) in answered],
        )
    )


def _faults(
    case: Case, client_id: str, questions: Sequence[ClientRequest]
) -> Iterator[FaultEpisode]:
    topic, listed = _first_listed(client_id, case.timelines)
    of_listed = [(each, phase) for each in questions if (phase := _at(each, listed))]
    runs = runs_of([Portion(each.moment, each.moment, 1, watch=at.watch) for each, at in of_listed])
    silent = ([] if each.answered else [(client_id, each)] for each, _ in of_listed)
    for _, extent, _ in episodes_of(runs, silent, case.persistence_seconds):
        if extent.lasts and extent.snapshots >= _ASKED_AT_LEAST:
            evidence = Text(
                "{client} is listed and did not answer {questions} questions for its running "
                "info {time}, while other clients answered",
                client=client_id,
                questions=extent.snapshots,
                time=between(extent.first_seen, extent.last_seen),
            )
            remedy = Text(_REMEDY, this_client=client_id)
            yield FaultEpisode(
                topic, extent, CLIENT_NOT_ANSWERING, evidence, remedy, client_ids=(client_id,)
            )


def _at(question: ClientRequest, phases: Sequence[Phase]) -> Phase | None:
    """The first of the phases in which the question was asked or answered."""
    begun = (each for each in phases if each.first_seen <= question.moment)
    return next((each for each in begun if question.round_ <= each.last_seen), None)


def _first_listed(client_id: str, timelines: Mapping[str, Timeline]) -> tuple[str, Sequence[Phase]]:
    """The first topic in whose allocations the client is, and the phases in which it is."""
    for topic, timeline in sorted(timelines.items()):
        distinct = {phase.situation_id: phase.evaluated for phase in timeline.phases}
        ids = {id_: {each.client_id for each in of.allocations()} for id_, of in distinct.items()}
        listed = [phase for phase in timeline.phases if client_id in ids[phase.situation_id]]
        if listed:
            return topic, listed
    return "", ()
