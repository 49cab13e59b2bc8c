"""dossier, evaluated situations -> history: the rows of every report table of a group.

A table of contents: ``RULES`` has every rule of time, in the order in which one follows from
another.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from ..declared.dossier import QueueOffsets
from ..declared.instants import Instant
from .observe.arrow_tables import Row
from .result.events import with_events
from .result.known_before import with_history
from .result.rows import to_rows
from .result.severity import graded
from .result.topic_problem import NO_OFFSETS, problem_rows
from .rules.broker_identities import duplicate_broker_names
from .rules.case import Case
from .rules.client_ids import old_copies, secrets, stacked_ids
from .rules.episodes import faults_of_states, still_offline
from .rules.flapping import flapping_members
from .rules.found import GroupFindings
from .rules.held import held_queues
from .rules.messages_again import failing, read_twice
from .rules.not_consuming import not_consuming
from .rules.offsets_lost import offsets_gone, went_back
from .rules.reconnecting import blamed, reconnecting_clients
from .rules.route_changes import queues_left_route, route_changed
from .rules.silent import silent_clients
from .rules.stalls import stalled_queues
from .rules.unlisted import queues_of_states
from .rules.why import explained, outages_dated_back, without_refused

#: Gives what was found so far back with what it finds itself, or knows better.
Rule: TypeAlias = Callable[[Case, GroupFindings], GroupFindings]

RULES: tuple[Rule, ...] = (
    faults_of_states,
    stacked_ids,
    old_copies,
    route_changed,
    queues_left_route,
    duplicate_broker_names,
    secrets,
    flapping_members,
    # Needs the old connections among the faults, and the members that flap.
    reconnecting_clients,
    queues_of_states,
    held_queues,
    silent_clients,
    still_offline,
    blamed,
    # Looks at queues that are not orphans.
    stalled_queues,
    not_consuming,
    went_back,
    offsets_gone,
    failing,
    # Needs the queues with two readers, and the filters that differ.
    read_twice,
    # Needs all other faults.
    without_refused,
    outages_dated_back,
    with_history,
    explained,
    graded,
)


def judge(case: Case) -> dict[str, list[Row]]:
    """The rows of every report table of the group, but for ``allocations`` and ``quarantine``."""
    found = GroupFindings()
    for rule in RULES:
        found = rule(case, found)
    tables = with_events(case, to_rows(case, found))
    names = {"cluster": case.dossier.cluster, "consumer_group": case.dossier.consumer_group}
    before, offsets = case.dossier.ended, case.dossier.offsets
    return tables | {"problems": problems_of(names, tables, before, case.unseen_since, offsets)}


def problems_of(
    names: Mapping[str, str],
    tables: Mapping[str, Sequence[Row]],
    ended: Mapping[tuple[str, str], Instant],
    unseen_since: Instant | None = None,
    offsets: Mapping[str, Sequence[QueueOffsets]] = NO_OFFSETS,
) -> list[Row]:
    """The rows of ``problems`` of a group: of all its rows those of the night, and of the rows that
    were there at a moment those of that moment. ``ended``: see ``problem_rows``. ``unseen_since``:
    the last snapshot with an answer about the group, where others came later. ``offsets``: of the
    queues, by topic, of all the night.
    """
    return [
        {**names, **row, "unseen_since": unseen_since if row["ongoing"] else None}
        for row in problem_rows(tables, ended, offsets)
    ]
