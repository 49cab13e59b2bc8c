"""A group's brokers as they answer over time, from the ids (and addresses) that each lists."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from jobs.declared.dossier import Broker, ClientRun, Dossier, ListedMembers, PollRun
from jobs.declared.instants import Instant
from jobs.schemas import NO_ANSWER, NOT_ONLINE
from tests.judge.phases import at

#: A client id, whose address is then its broker's, or (client id, address).
Connection: TypeAlias = str | tuple[str, str]
#: (seconds of the round, seconds of the answer, what the broker lists, or an outcome).
Poll: TypeAlias = tuple[float, float, Sequence[Connection] | str]

__all__ = ["NOT_ONLINE", "NO_ANSWER", "group", "started"]


def group(polls: dict[str, Iterable[Poll]], **overrides: object) -> Dossier:
    """A dossier in which each broker (a name, or ``name/id``) gave these answers."""
    dossier = Dossier("c", "G", **overrides)  # type: ignore[arg-type]
    # A list that was there before: the topic stays with the group while nobody is listed.
    dossier.list_topics["before"] = ("T",)
    for name, of_broker in polls.items():
        broker_name, _, broker_id = name.partition("/")
        broker: Broker = (broker_name, int(broker_id or 0))
        runs: dict[str, list[tuple[Instant, Instant]]] = defaultdict(list)
        for round_, answered, given in of_broker:
            answer = given if isinstance(given, str) else _listed(dossier, broker_name, given)
            runs[answer].append((at(round_), at(answered)))
        for answer, times in runs.items():
            rounds, answered_at = zip(*sorted(times), strict=True)
            dossier.polls.append(PollRun(broker, answer, rounds, answered_at))
    return dossier


def _listed(dossier: Dossier, broker: str, given: Sequence[Connection]) -> str:
    """The id of the list; addresses differ from broker to broker, as ports do."""
    members = [(e, f"{e}:{broker}") if isinstance(e, str) else e for e in given]
    list_id = repr(sorted(members))
    ids, addresses = tuple(each[0] for each in members), tuple(each[1] for each in members)
    dossier.list_members[list_id] = lambda: ListedMembers(ids, addresses)
    dossier.list_topics[list_id] = ("T",)
    return list_id


def started(client_id: str, start: float, *seconds: float) -> ClientRun:
    """The running infos of a process at these seconds."""
    values = dict.fromkeys(ClientRun._fields)
    values |= {"source": "RUNNING_INFO", "client_id": client_id, "start_timestamp": at(start)}
    values |= {"times": tuple((at(second), at(second)) for second in seconds)}
    return ClientRun(**values)  # type: ignore[arg-type]
