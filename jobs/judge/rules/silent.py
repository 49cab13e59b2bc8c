"""client runs, timelines -> clients that brokers list and that do not answer.

``getConsumerRunningInfo`` goes through a broker to the client. A client that sends heartbeats and
does not answer it again and again, while others do, may hang, or be another process than its id
says; what it holds, nobody knows.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TypeAlias

from rebalance_core.grouping import grouped
from rebalance_core.texts import Text

from ...declared.instants import SECOND, Instant
from ...declared.kinds import CLIENT_NOT_ANSWERING
from ..observe.answers import ClientRequest, asked_of
from ..observe.in_words import between
from ..observe.timeline import Phase, Timeline
from ..times.extents import Portion, episodes_of, runs_of
from .case import Case
from .found import FaultEpisode, GroupFindings
from .own_questions import UNDER_WAY, may_be_ours, unanswered_questions

#: A single question that is lost is not evidence.
_ASKED_AT_LEAST = 3
#: Others are asked each five minutes, a round more or less.
_AROUND: Instant = 600 * SECOND

_REMEDY = (
    "check whether {this_client} hangs (a thread dump, its log), and whether the id is that of "
    "another process; its version may not know the question (Java before 3.1.8)"
)


def silent_clients(case: Case, found: GroupFindings) -> GroupFindings:
    """One fault per client and lasting time in which it did not answer while it was listed.

    Only questions count about which another client of the same SDK answered: else it may be the
    collector, or an SDK that does not know the question. The fault is with the first topic of which
    the client is listed.
    """
    clients, sdks = case.dossier.clients, case.dossier.languages
    if not any(client.error_code is not None for client in clients):
        return found
    asked = asked_of(clients)
    telling = {
        sdk: _telling(dict(of_sdk))
        for sdk, of_sdk in grouped((sdks.get(each[0]), each) for each in asked.items()).items()
    }
    ours = unanswered_questions(clients)
    return found.plus(
        fault
        for client_id, questions in sorted(asked.items())
        if not all(question.answered for question in questions)
        for of_others in [_of_others(client_id, telling[sdks.get(client_id)])]
        for fault in _faults(
            case,
            client_id,
            [question for question in questions if _others_answer(question.round_, of_others)],
            ours.get(client_id, ()),
        )
    )


#: The clients of each round that show if clients can be asked: True where they answered.
_Telling: TypeAlias = Mapping[Instant, Mapping[str, bool]]


def _telling(asked: Mapping[str, Sequence[ClientRequest]]) -> _Telling:
    """The questions to clients of an SDK that show whether such clients can be asked.

    Who did not answer before, and does not now, shows nothing: such a client is asked more and more
    seldom (``collect/asked_clients.py``).

    >>> _telling({"c": [ClientRequest(n, n, answered=n == 0) for n in range(3)]})
    {0: {'c': True}, 1: {'c': False}}
    """
    found: dict[Instant, dict[str, bool]] = {}
    for client_id, questions in asked.items():
        has_answered = True
        for question in questions:
            if has_answered or question.answered:
                found.setdefault(question.round_, {})[client_id] = question.answered
            has_answered = question.answered
    return found


def _of_others(client_id: str, telling: _Telling) -> Sequence[tuple[Instant, bool]]:
    """The rounds, ascending, in which others show something, and whether one answered."""
    return [
        (round_, any(answers))
        for round_, of_round in sorted(telling.items())
        if (answers := [answered for each, answered in of_round.items() if each != client_id])
    ]


def _others_answer(round_: Instant, of_others: Sequence[tuple[Instant, bool]]) -> bool:
    """True if others answered in this round; where it shows nothing of them, in those around it.

    >>> of_others = [(0, True), (300_000_000, False), (600_000_000, True)]
    >>> [_others_answer(second * 1_000_000, of_others) for second in (0, 60, 300, 360, 660)]
    [True, False, False, False, True]
    """
    place = bisect_left(of_others, (round_, False))
    around = of_others[max(place - 1, 0) : place + 1]
    if around and around[-1][0] == round_:
        return around[-1][1]
    near = [answered for time, answered in around if abs(time - round_) <= _AROUND]
    return bool(near) and all(near)


def _faults(
    case: Case,
    client_id: str,
    questions: Sequence[ClientRequest],
    unanswered: Sequence[Instant],
) -> Iterator[FaultEpisode]:
    """``unanswered``: the questions that may have stopped the client."""
    topic, listed = _first_listed(client_id, case.timelines)
    of_listed = [(question, phase) for question in questions if (phase := _at(question, listed))]
    runs = runs_of(
        [Portion(request.moment, request.moment, 1, watch=at.watch) for request, at in of_listed]
    )
    silent = ([] if request.answered else [(client_id, request)] for request, _ in of_listed)
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
            fault = FaultEpisode(
                topic, extent, CLIENT_NOT_ANSWERING, evidence, remedy, client_ids=(client_id,)
            )
            # Asked again while the question before may still be under way, it may wait for that.
            times = extent.those_of(unanswered)
            again = any(later - one < UNDER_WAY for one, later in pairwise(times))
            yield may_be_ours(fault) if again else fault


def _at(question: ClientRequest, phases: Sequence[Phase]) -> Phase | None:
    """The first of the phases in which the question was asked or answered."""
    begun = (phase for phase in phases if phase.first_seen <= question.moment)
    return next((phase for phase in begun if question.round_ <= phase.last_seen), None)


def _first_listed(client_id: str, timelines: Mapping[str, Timeline]) -> tuple[str, Sequence[Phase]]:
    """The first topic in whose allocations the client is, and the phases in which it is."""
    for topic, timeline in sorted(timelines.items()):
        distinct = {phase.situation_id: phase.evaluated for phase in timeline.phases}
        ids = {
            id_: {allocation.client_id for allocation in of.allocations()}
            for id_, of in distinct.items()
        }
        listed = [phase for phase in timeline.phases if client_id in ids[phase.situation_id]]
        if listed:
            return topic, listed
    return "", ()
