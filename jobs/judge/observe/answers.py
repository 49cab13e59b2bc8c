"""polls -> what each witness reports at each snapshot of the group.

A round takes time: each broker and nameserver was asked at another time, and two collectors
have two schedules. What a witness gave holds until it gives something else. Where up to two polls
are missing between two answers they are bridged; a longer gap is a time without evidence.

A process that died without a word stays in the brokers' lists until they drop its connection, up to
130 s after its last heartbeat (``ConsumerManager.scanNotActiveChannel``). Until then its slot is
nobody's. Where no heartbeats are collected, its running infos show it: they came, and come no more.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from rebalance_core.grouping import grouped

from ...declared.dossier import Broker, ClientRun, Dossier, PollRun, RouteRun
from ...declared.instants import HEARTBEAT_INTERVAL, SECOND, Instant
from ...schemas import ANSWERED, NO_ANSWER, NOT_ONLINE, RUNNING_INFO
from ..times import usual_gap

Witness = TypeVar("Witness")
Integers = NDArray[np.int64]

#: The number of usual intervals between two answers that are bridged: two polls in a row that are
#: missing are bad luck, three are a broker (or a client) that does not answer ...
_BRIDGED_INTERVALS = 3.5
#: ... and those of a broker always for as long as it keeps a silent member (``ClientChannelInfo``
#: expiry, 120 s and a scan each 10 s).
BRIDGED_AT_LEAST: Instant = 130 * SECOND

#: Not asked, or the answer has no content.
NOTHING = -1


@dataclass(frozen=True)
class Answers(Generic[Witness]):
    """The answers of one witness, poll by poll, in time.

    ``contents`` are places in ``names``: list ids and outcomes of a broker, route ids of a
    nameserver. ``snapshots`` are the rounds, ``collected_at`` when it answered.
    """

    witness: Witness
    snapshots: Integers
    collected_at: Integers
    contents: Integers
    names: Sequence[str]

    def at(self, snapshots: Integers) -> Integers:
        """The place of the last poll up to each snapshot, or NOTHING."""
        return np.searchsorted(self.snapshots, snapshots, side="right") - 1

    def are_of(self, polls: Integers, snapshots: Integers) -> NDArray[np.bool_]:
        """True for each snapshot whose own poll it is; NOTHING never is."""
        return np.asarray((polls >= 0) & (self.snapshots[polls] == snapshots))

    @property
    def answered(self) -> Integers:
        """The polls, in time, that show whom the witness lists, if anybody: ANSWERED without a list
        shows as little as no answer, and NO_ANSWER is what is published of both.
        """
        silent = np.array([name in (ANSWERED, NO_ANSWER) for name in self.names], np.bool_)
        return np.flatnonzero(~silent[self.contents])

    def name_of(self, poll: int) -> str:
        """The answer at a poll."""
        return self.names[int(self.contents[poll])]


def broker_answers(polls: Iterable[PollRun]) -> list[Answers[Broker]]:
    """The answers of each broker, one for each snapshot, in the round in which they came."""
    asked = asked_answers(polls)
    rounds = snapshots_of(asked)
    return [_when_answered(answers, rounds) for answers in asked]


def asked_answers(polls: Iterable[PollRun]) -> list[Answers[Broker]]:
    """The answers of each broker, one for each snapshot, in the round that asked for them.

    If a broker was asked twice in a round, a list counts over another answer. The time of an answer
    may come in another run than its list: see ``PollRun``.
    """
    return _by_witness(run[:4] for run in polls)


def _when_answered(answers: Answers[Broker], rounds: Integers) -> Answers[Broker]:
    """The answers in the order in which they came, each in the round that went on when it came.

    A round may take longer than the time to the next one, and two collectors' rounds overlap: what
    a broker reported is then of a later round than the question.
    """
    order = np.argsort(answers.collected_at, kind="stable")
    collected, contents = answers.collected_at[order], answers.contents[order]
    snapshots = rounds[np.maximum(np.searchsorted(rounds, collected, side="right") - 1, 0)]
    is_last = np.append(snapshots[1:] != snapshots[:-1], True)
    return Answers(
        answers.witness, snapshots[is_last], collected[is_last], contents[is_last], answers.names
    )


#: An answer of a witness (a list, an outcome, a route), its snapshots, and its times.
_WitnessRun: TypeAlias = tuple[Witness, str, tuple[Instant, ...], tuple[Instant, ...]]


def _by_witness(runs: Iterable[_WitnessRun[Witness]]) -> list[Answers[Witness]]:
    by_witness = grouped((run[0], run) for run in runs)
    return [_witness_answers(runs) for _, runs in sorted(by_witness.items(), key=itemgetter(0))]


def _witness_answers(runs: Sequence[_WitnessRun[Witness]]) -> Answers[Witness]:
    names = sorted({name for _, name, _, _ in runs})
    place_of = {name: place for place, name in enumerate(names)}
    snapshots = np.concatenate([np.array(times, np.int64) for _, _, times, _ in runs])
    collected = np.concatenate([np.array(times, np.int64) for _, _, _, times in runs])
    contents = np.repeat([place_of[run[1]] for run in runs], [len(run[2]) for run in runs])
    # Lists come last in a snapshot: they are what counts.
    ranks = np.array([_RANKS.get(name, len(_RANKS)) for name in names])[contents]
    order = np.lexsort([collected, ranks, snapshots])
    snapshots, collected = snapshots[order], collected[order]
    contents, ranks = contents[order], ranks[order]
    starts = np.flatnonzero(np.append(True, snapshots[1:] != snapshots[:-1]))
    ends = np.append(starts[1:], len(snapshots))
    # The time of the answer that counts, or of the row that has nothing but the time.
    counts = (ranks == np.repeat(ranks[ends - 1], ends - starts)) | (ranks == _RANKS[ANSWERED])
    latest = np.maximum.reduceat(np.where(counts, collected, _LONG_AGO), starts)
    return Answers(runs[0][0], snapshots[ends - 1], latest, contents[ends - 1], names)


#: A list counts over that there is none, and both over an answer without content.
_RANKS = {ANSWERED: 0, NO_ANSWER: 1, NOT_ONLINE: 2}
_LONG_AGO = np.iinfo(np.int64).min


def nameserver_answers(routes: Iterable[RouteRun]) -> list[Answers[str]]:
    """The routes of a topic that each nameserver gave, one for each snapshot."""
    return _by_witness(
        (one.namesrv_addr, one.route_id, one.times, one.answered_at) for one in routes
    )


def snapshots_of(answers: Iterable[Answers[Witness]]) -> Integers:
    """Every snapshot in which some witness was asked, ascending."""
    every = [answer.snapshots for answer in answers]
    return np.unique(np.concatenate(every)) if every else np.zeros(0, np.int64)


def longest_bridge(snapshots: Integers) -> float:
    """The longest time between two answers that still show the list in between.

    >>> longest_bridge(np.array([0, 10, 20, 30, 40, 80])) / 10
    3.5
    """
    return _BRIDGED_INTERVALS * usual_gap(np.diff(snapshots))


def in_force(answers: Answers[Broker], snapshots: Integers) -> Integers:
    """The broker's poll that counts for each snapshot, or NOTHING where it was not asked.

    In a round in which it did not answer, or was not asked, the answer before counts, where the
    next one comes soon enough (``_BRIDGED_INTERVALS``): what the list was in between follows from
    both. Where there is none, a poll without an answer counts as what it is.
    """
    places = answers.at(snapshots)
    is_own = answers.are_of(places, snapshots)
    answered = answers.answered
    if not len(answered):
        return np.where(is_own, places, NOTHING)
    longest = max(BRIDGED_AT_LEAST, longest_bridge(answers.snapshots))
    before = np.searchsorted(answered, places, side="right") - 1
    after = before + 1
    bridged = (before >= 0) & (after < len(answered))
    last = answered[np.maximum(before, 0)]
    following = answered[np.minimum(after, len(answered) - 1)]
    bridged &= answers.collected_at[following] - answers.collected_at[last] <= longest
    counts = bridged | (is_own & (last == places))
    return np.select([counts, is_own], [last, places], NOTHING)


def times_of(
    answers: Sequence[Answers[Witness]], places: Mapping[Witness, Integers], snapshots: Integers
) -> Integers:
    """The time at which the last of the witnesses answered, by snapshot."""
    latest = snapshots.copy()
    for answer in answers:
        polls = places[answer.witness]
        own = np.flatnonzero(answer.are_of(polls, snapshots))
        latest[own] = np.maximum(latest[own], answer.collected_at[polls[own]])
    return latest


# ---------------------------------------------------------------- clients that answer, or are gone


#: ``SYSTEM_ERROR``: the broker does not list the client. That is not evidence about the client.
_NOT_LISTED = 1
#: Questions that fail for longer than the time between two heartbeats. A client that stops in order
#: leaves all lists at once: no question follows.
_UNANSWERED = HEARTBEAT_INTERVAL


class ClientRequest(NamedTuple):
    """A question to a client: when, in which round, and whether it answered."""

    moment: Instant
    round_: Instant
    answered: bool


class DeadClient(NamedTuple):
    """The time of a client's death, and of the last poll that lists it all the same."""

    begins: Instant
    last_seen: Instant


def asked_of(clients: Iterable[ClientRun]) -> Mapping[str, Sequence[ClientRequest]]:
    """The questions to each client, one a round, in time; one broker may pass on the answer that
    another one did not.
    """
    asked: dict[str, dict[Instant, ClientRequest]] = defaultdict(dict)
    for run in clients:
        for round_, moment in run.times if run.source == RUNNING_INFO else ():
            if round_ is not None:
                before = asked[run.client_id].get(round_)
                is_answer = run.error_code is None or (before is not None and before.answered)
                asked[run.client_id][round_] = ClientRequest(moment, round_, is_answer)
    return {client_id: sorted(requests.values()) for client_id, requests in asked.items()}


def gone_clients(
    dossier: Dossier, answers: Sequence[Answers[Broker]], expiry: Instant
) -> Mapping[str, DeadClient]:
    """Clients that died without a word, as their running infos show.

    Such a client answered, then failed to for more than 30 s while others answered, never answered
    again, and left all lists within ``expiry`` (for so long a broker keeps a silent one). A client
    that still is in the last list may only hang (``cases/test_held_alone``). A client that
    never answered proves nothing: its SDK may not know the question (``judge/test_silent``).

    Worked example: a client answers at 10:00 and not at 10:01 and 10:02; the last list that has it
    is that of 10:02, and others answer all the time. It is dead since 10:00:30, in the middle.
    """
    if not any(run.error_code is not None for run in dossier.clients):
        return {}
    asked = asked_of(run for run in dossier.clients if run.error_code != _NOT_LISTED)
    silent = ((id_, requests) for id_, requests in asked.items() if not requests[-1].answered)
    suspects = {id_: requests for id_, requests in silent if any(it.answered for it in requests)}
    if not suspects:
        return {}
    answered = {request.round_ for asks in asked.values() for request in asks if request.answered}
    found: dict[str, DeadClient] = {}
    for client_id, last_seen in _last_listed(dossier, answers, suspects.keys()).items():
        begins = _died_at(suspects[client_id], answered, last_seen - expiry)
        if begins is not None and begins < last_seen:
            found[client_id] = DeadClient(begins, last_seen)
    return found


def _died_at(
    questions: Sequence[ClientRequest], answered: Iterable[Instant], earliest: Instant
) -> Instant | None:
    """The moment of a client's death: between its last answer and the first failed question.

    None where too few questions failed. A question that failed before ``earliest`` was lost.
    """
    last_answer = max(question.moment for question in questions if question.answered)
    later = (one for one in questions if one.moment > last_answer and one.round_ in answered)
    failed = [question.moment for question in later if question.moment >= earliest]
    if not failed or failed[-1] - failed[0] < _UNANSWERED:
        return None
    return max((last_answer + failed[0]) // 2, earliest)


def _last_listed(
    dossier: Dossier, answers: Sequence[Answers[Broker]], client_ids: Iterable[str]
) -> Mapping[str, Instant]:
    """The last poll that lists each client, of those that are in no broker's last list."""
    wanted = set(client_ids)
    lists = dossier.list_members.items()
    having = {name: wanted.intersection(members().client_ids) for name, members in lists}
    having[NOT_ONLINE] = set()
    last_seen: dict[str, Instant] = {}
    there: set[str] = set()
    for answer in answers:
        last: set[str] = set()
        for at, place in zip(answer.collected_at.tolist(), answer.contents.tolist(), strict=True):
            last = having.get(answer.names[place], last)
            for client_id in last:
                last_seen[client_id] = max(at, last_seen.get(client_id, at))
        there |= last
    return {client_id: at for client_id, at in last_seen.items() if client_id not in there}
