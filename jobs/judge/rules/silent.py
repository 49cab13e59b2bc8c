"""client runs, timelines -> clients that brokers list and that do not answer.

``getConsumerRunningInfo`` goes through a broker to the client. A client that sends heartbeats and
does not answer it again and again, while others do, may hang, or be another process than its id
says; what it holds, nobody knows. Or the collector's own questions stopped it. Three questions
without an answer, over ``persistence_seconds`` (180 s), are enough where others answered in the
same round, or within 10 min of it.

A Java client of 5.2.0 and later completes the answers of its brokers in the threads that also make
its running info (``NettyRemotingAbstract.invokeSyncImpl``), as many as it has processors. With one
it waits for itself: 5 s for each queue of which it has no offset yet, and for as long no pull, no
heartbeat and no list gets through. Further questions wait behind the first one, and stop it anew
(seen on 5.3.3: field book, "A client stops when it is asked").
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TypeAlias

from rebalance_core.english import joined
from rebalance_core.grouping import grouped
from rebalance_core.texts import Text

from ...declared.dossier import ClientRun
from ...declared.instants import SECOND, Instant
from ...declared.kinds import CLIENT_NOT_ANSWERING
from ..observe.answers import ClientRequest, asked_of
from ..observe.in_words import between
from ..observe.timeline import Phase, Timeline
from ..times import Portion, episodes_of, runs_of
from .case import Case
from .found import FaultEpisode, GroupFindings

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
    collector, or an SDK that does not know the question (``judge/test_silent``). The fault is with
    the first topic of which the client is listed.
    """
    clients, sdks = case.dossier.clients, case.dossier.languages
    if not any(client.error_code is not None for client in clients):
        return found
    asked = asked_of(clients)
    by_sdk = grouped((sdks.get(client_id), (client_id, of)) for client_id, of in asked.items())
    telling = {sdk: _telling(dict(those)) for sdk, those in by_sdk.items()}
    ours = unanswered_questions(clients)
    faults: list[FaultEpisode] = []
    for client_id, questions in sorted(asked.items()):
        if not all(question.answered for question in questions):
            others = _rounds_of_others(client_id, telling[sdks.get(client_id)])
            telling_much = [one for one in questions if _others_answer(one.round_, others)]
            faults += _faults(case, client_id, telling_much, ours.get(client_id, ()))
    return found.plus(faults)


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


def _rounds_of_others(client_id: str, telling: _Telling) -> Sequence[tuple[Instant, bool]]:
    """The rounds, ascending, in which others show something, and whether one answered."""
    return [
        (round_, any(answered for other, answered in answered_by_id.items() if other != client_id))
        for round_, answered_by_id in sorted(telling.items())
        if answered_by_id.keys() - {client_id}
    ]


def _others_answer(round_: Instant, rounds_of_others: Sequence[tuple[Instant, bool]]) -> bool:
    """True if others answered in this round; where it shows nothing of them, in those around it.

    >>> of_others = [(0, True), (300_000_000, False), (600_000_000, True)]
    >>> [_others_answer(second * 1_000_000, of_others) for second in (0, 60, 300, 360, 660)]
    [True, False, False, False, True]
    """
    place = bisect_left(rounds_of_others, (round_, False))
    around = rounds_of_others[max(place - 1, 0) : place + 1]
    if around and around[-1][0] == round_:
        return around[-1][1]
    near = [answered for time, answered in around if abs(time - round_) <= _AROUND]
    return bool(near) and all(near)


def _faults(
    case: Case, client_id: str, questions: Sequence[ClientRequest], unanswered: Sequence[Instant]
) -> Iterator[FaultEpisode]:
    """``unanswered``: the questions that may have stopped the client."""
    topic, listed = _first_listed(client_id, case.timelines)
    in_list = [(question, phase) for question in questions if (phase := _at(question, listed))]
    parts = [Portion(one.moment, one.moment, 1, watch=phase.watch) for one, phase in in_list]
    silent = ([] if request.answered else [(client_id, request)] for request, _ in in_list)
    for _, extent, _ in episodes_of(runs_of(parts), silent, case.persistence_seconds):
        if extent.lasts and extent.snapshots >= _ASKED_AT_LEAST:
            evidence = Text(
                "{client} is listed and did not answer {questions} questions for its running "
                "info {time}, while other clients answered",
                client=client_id,
                questions=extent.snapshots,
                time=between(*extent[:2]),
            )
            remedy, ids = Text(_REMEDY, this_client=client_id), (client_id,)
            fault = FaultEpisode(topic, extent, CLIENT_NOT_ANSWERING, evidence, remedy, ids)
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
        with_it = {
            id_
            for id_, evaluated in distinct.items()
            if any(allocation.client_id == client_id for allocation in evaluated.allocations())
        }
        if listed := [phase for phase in timeline.phases if phase.situation_id in with_it]:
            return topic, listed
    return "", ()


# ---------------------------------------------------------------- own questions


#: The first version that may stop (``MQVersion.V5_2_0_SNAPSHOT``), and its language.
_FIRST_VERSION, _LANGUAGE = 452, "JAVA"
#: The time for which a question without an answer may be under way: 5 s for each of 60 queues.
UNDER_WAY: Instant = 300 * SECOND

_MAY_BE_THE_CAUSE = Text(
    "the collector's own questions may be the cause: a Java client of 5.2.0 or later with one CPU "
    "that is asked for its running info does nothing for 5 s for each queue of which it has no "
    "offset yet, and questions pile up"
)
_LET_IT_BE = Text(
    "first collect for a while with --without running-infos, and with one collector: if it ends, "
    "the client does what it should, and two CPUs, or clientCallbackExecutorThreads = 2, let it "
    "answer"
)


def unanswered_questions(clients: Iterable[ClientRun]) -> Mapping[str, Sequence[Instant]]:
    """The times of the questions without an answer to each client that may stop by them."""
    runs = [*clients]
    java_runs = (run for run in runs if run.language == _LANGUAGE)
    may_stop = {run.client_id for run in java_runs if (run.version or 0) >= _FIRST_VERSION}
    return {
        client_id: [question.moment for question in questions if not question.answered]
        for client_id, questions in asked_of(runs).items()
        if client_id in may_stop
    }


def may_be_ours(fault: FaultEpisode) -> FaultEpisode:
    """The fault that the questions may have caused, with what to do first."""
    remedy = joined([_LET_IT_BE, fault.remedy])
    return fault.saying([_MAY_BE_THE_CAUSE], remedy=remedy, may_be_ours=True)
