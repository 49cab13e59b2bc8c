"""client runs, answers -> who answers the question for its running info, and who stopped for good.

A process that died without a word stays in the brokers' lists until they drop its connection, up to
130 s after its last heartbeat (``ConsumerManager.scanNotActiveChannel``). Until then its slot is
nobody's. Where no heartbeats are collected, its running infos show it: they came, and come no more.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from jobs.instants import SECOND, Instant
from jobs.judge.answers import Answers
from jobs.judge.dossier import Broker, ClientRun, ListedMembers
from jobs.schemas import NOT_ONLINE, RUNNING_INFO

#: ``SYSTEM_ERROR``: the broker does not list the client. That is no evidence about the client.
_NOT_LISTED = 1
#: Questions that fail for longer than a heartbeat takes (30 s). Who stops in order leaves all lists
#: at once: no question follows.
_UNANSWERED: Instant = 30 * SECOND


class Asked(NamedTuple):
    """A question to a client: when, in which round, and whether it answered."""

    moment: Instant
    round_: Instant
    answered: bool


class Gone(NamedTuple):
    """From when on a client is dead, and the last poll that lists it all the same."""

    since: Instant
    listed_until: Instant


def asked_of(clients: Iterable[ClientRun]) -> Mapping[str, Sequence[Asked]]:
    """By client id the questions of each round, in time; one broker may pass on the answer that
    another one did not.
    """
    asked: dict[str, dict[Instant, Asked]] = defaultdict(dict)
    for run in clients:
        if run.source == RUNNING_INFO:
            of_client = asked[run.client_id]
            for round_, moment in run.times:
                if round_ is not None:
                    before = of_client.get(round_)
                    is_answer = run.error_code is None or (before is not None and before.answered)
                    of_client[round_] = Asked(moment, round_, is_answer)
    return {client_id: sorted(of_client.values()) for client_id, of_client in asked.items()}


def gone_clients(
    clients: Sequence[ClientRun],
    answers: Sequence[Answers[Broker]],
    lists: Mapping[str, Callable[[], ListedMembers]],
    expiry: Instant,
) -> Mapping[str, Gone]:
    """By client id those that died without a word, as their running infos show.

    Such a client answered, then failed to for more than 30 s while others answered, never answered
    again, and left all lists within ``expiry`` (for so long a broker keeps a silent one). Who still
    is in the last list may only hang. A client that never answered proves nothing: its SDK may not
    know the question.

    Worked example: a client answers at 10:00 and not at 10:01 and 10:02; the last list that has it
    is that of 10:02, and others answer all the time. It is dead since 10:00:30, in the middle.
    """
    if not any(run.error_code is not None for run in clients):
        return {}
    asked = asked_of(run for run in clients if run.error_code != _NOT_LISTED)
    suspects = {
        client_id: questions
        for client_id, questions in asked.items()
        if not questions[-1].answered and any(each.answered for each in questions)
    }
    if not suspects:
        return {}
    answered = {each.round_ for of_id in asked.values() for each in of_id if each.answered}
    found: dict[str, Gone] = {}
    for client_id, until in _left(answers, lists, suspects.keys()).items():
        since = _dead_since(suspects[client_id], answered, until - expiry)
        if since is not None and since < until:
            found[client_id] = Gone(since, until)
    return found


def _dead_since(
    questions: Sequence[Asked], answered: Iterable[Instant], earliest: Instant
) -> Instant | None:
    """When it died: between its last answer and the first question that failed.

    None where too few questions failed. A question that failed before ``earliest`` was lost.
    """
    last_answer = max(each.moment for each in questions if each.answered)
    failed = [
        each.moment
        for each in questions
        if each.moment > last_answer and each.round_ in answered and each.moment >= earliest
    ]
    if not failed or failed[-1] - failed[0] < _UNANSWERED:
        return None
    return max((last_answer + failed[0]) // 2, earliest)


def _left(
    answers: Sequence[Answers[Broker]],
    lists: Mapping[str, Callable[[], ListedMembers]],
    of: Iterable[str],
) -> Mapping[str, Instant]:
    """By client id the last poll that lists it, of those that are in no broker's last list."""
    wanted = set(of)
    having = {name: wanted.intersection(each().client_ids) for name, each in lists.items()}
    having[NOT_ONLINE] = set()
    until: dict[str, Instant] = {}
    there: set[str] = set()
    for each in answers:
        last: set[str] = set()
        for at, place in zip(each.collected_at.tolist(), each.contents.tolist(), strict=True):
            last = having.get(each.names[place], last)
            for client_id in last:
                until[client_id] = max(at, until.get(client_id, at))
        there |= last
    return {client_id: at for client_id, at in until.items() if client_id not in there}
