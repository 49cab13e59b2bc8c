"""Latent faults: members that differ and cost no queue, for as long as the others are so many.

A member that does not subscribe takes a slot of the topic. With more members than queues the last
slots are empty: if its own is one of them, nothing is wrong until others leave. So do strategies
give the same shares for some numbers of members.
"""

from collections.abc import Collection
from typing import NamedTuple

from .causes import key_of
from .findings import AUDITED, Evaluation, Finding, evaluate
from .message_queue import sort_client_ids
from .processes import find_processes
from .repairs import (
    MANUAL_ASSIGNMENT,
    REPAIRS,
    STRATEGY_MISMATCH,
    SUBSCRIPTION_MISMATCH,
    Situation,
    is_stranger,
    unlist_clients,
)
from .state import GROUP_TABLE

#: The faults of members that differ.
LATENT = (STRATEGY_MISMATCH, SUBSCRIPTION_MISMATCH, MANUAL_ASSIGNMENT)

#: Each try divides all queues anew, some 30 times for a state: of a larger group that takes too
#: long.
_MOST_CLIENTS = 1_000


class Harm(NamedTuple):
    """The findings that a latent fault causes as soon as these clients have left."""

    without: tuple[str, ...]
    findings: tuple[Finding, ...]


def harm_with_fewer(situation: Situation, evaluation: Evaluation, fault: str) -> Harm | None:
    """The harm of a fault that has none yet, with the fewest of the clients in the first slots
    gone; None: members do not differ so, or however few are left no queue shows it.

    Worked example: nine clients share eight queues, and the ninth does not subscribe. Without the
    first one the ninth has the eighth slot, and the eighth queue no owner.
    """
    repair = REPAIRS[fault]
    if evaluation.coverage != AUDITED or not _is_seen(situation, fault):
        return None
    sharing = [
        process
        for process in find_processes(situation.state, situation.rules)
        if process.takes_part
    ]
    clients = sort_client_ids({process.client_id for process in sharing})
    if repair(situation) is situation or len(clients) > _MOST_CLIENTS:
        return None
    known = {key_of(finding) for finding in evaluation.findings}

    def findings_without(gone: Collection[str]) -> tuple[Finding, ...]:
        left = unlist_clients(situation, gone)
        mended = repair(left)
        now, then = (evaluate(each.state, each.rules) for each in (left, mended))
        if now.coverage != AUDITED or then.coverage != AUDITED:
            return ()
        others = known.union(map(key_of, then.findings))
        return tuple(finding for finding in now.findings if key_of(finding) not in others)

    # At last there may be nobody left who differs, or all who are left do.
    steps = [1 << power for power in range(len(clients).bit_length())]
    numbers = {*steps, *(len(clients) - 1 - step for step in steps)}
    harmless, harmful = 0, 0
    found: tuple[Finding, ...] = ()
    for number in sorted(each for each in numbers if 0 < each < len(clients)):
        harmless, harmful = harmful, number
        if found := findings_without(clients[:number]):
            break
    while found and harmful - harmless > 1:
        between = (harmless + harmful) // 2
        if fewer := findings_without(clients[:between]):
            harmful, found = between, fewer
        else:
            harmless = between
    return Harm(tuple(clients[:harmful]), found) if found else None


def _is_seen(situation: Situation, fault: str) -> bool:
    """True if it was seen of the members themselves: the group's table has what any of them
    subscribes to.
    """
    strangers = filter(is_stranger, situation.state.members)
    return fault != SUBSCRIPTION_MISMATCH or any(
        stranger.subscription_source != GROUP_TABLE for stranger in strangers
    )
