"""dossier, evaluated situations -> history: the rows of every report table of a group.

It reads from top to bottom, in the order in which the one follows from the other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import compress

from jobs.finding_ids import fault_id, finding_id, stall_id
from jobs.instants import Instant
from jobs.judge.backlog import backlog
from jobs.judge.by_history import offsets_went_back, with_history
from jobs.judge.confirmation import confirm, index_holdings
from jobs.judge.dossier import Dossier
from jobs.judge.drift import find_drift
from jobs.judge.episodes import (
    FaultEpisode,
    QueueEpisode,
    fault_episodes,
    queue_episodes,
    stacked_id_rows,
)
from jobs.judge.evaluated import Evaluated, QueueKey
from jobs.judge.events import find_events
from jobs.judge.frozen import frozen_processes
from jobs.judge.health import group_health, state_runs, topic_without_group, unreadable_queues
from jobs.judge.held import CAUSES, Witnesses, held_faults, held_findings
from jobs.judge.holdings import find_holdings
from jobs.judge.known_issues import mark_known
from jobs.judge.load import group_load, with_load
from jobs.judge.not_consuming import groups_not_consuming
from jobs.judge.reassignments import find_reassignments
from jobs.judge.reconnecting import blame, with_remedies
from jobs.judge.rounds import find_rounds, with_rounds
from jobs.judge.route_changes import (
    find_route_changes,
    queues_left_route,
    readable_queues,
    route_changes,
)
from jobs.judge.secret_ids import secret_faults
from jobs.judge.severity import FaultSeverity, consumes_in_order, finding_severity, stall_severity
from jobs.judge.silent import clients_not_answering
from jobs.judge.situations import Situations
from jobs.judge.stalls import find_intervals, stall_episodes
from jobs.judge.statuses import former_findings, mark_open
from jobs.judge.still_offline import still_offline
from jobs.judge.tables import Row
from jobs.judge.terms import Terms
from jobs.judge.timeline import build_timeline, without_route
from jobs.judge.unlisted import (
    find_refuted,
    is_read_all_the_same,
    is_read_throughout,
    unlisted_consumers,
)
from jobs.judge.unsteady import unsteady_members
from jobs.judge.why import Processes
from rebalance_core.english import joined
from rebalance_core.findings import DUPLICATE, ORPHANED, POSSIBLE, STRATEGY_NOT_KNOWN
from rebalance_core.texts import Text

__all__ = ["Row", "judge"]


def judge(
    dossier: Dossier,
    situations: Situations,
    evaluated: Mapping[str, Evaluated],
    terms: Terms,
) -> dict[str, list[Row]]:
    """The rows of every report table of the group, but for ``allocations`` and ``quarantine``.

    ``evaluated`` has every situation by its id.
    """
    seconds = terms.persistence_seconds
    by_topic = situations.by_topic
    snapshots = sorted({snapshot for run in dossier.polls for snapshot in run.times})
    timelines = {
        topic: build_timeline(topic, periods, evaluated, snapshots)
        for topic, periods in by_topic.items()
    }

    faults = [
        fault
        for topic, periods in by_topic.items()
        for timeline in (
            timelines[topic],
            without_route(topic, periods, evaluated, snapshots),
        )
        for fault in fault_episodes(timeline, seconds)
    ]
    changes = {
        topic: find_route_changes(dossier.routes.get(topic, ()), terms.topic_queues)
        for topic in by_topic
    }
    for topic, of_topic in changes.items():
        routes, offsets = dossier.routes.get(topic, ()), dossier.offsets.get(topic, ())
        faults += [
            *route_changes(topic, of_topic),
            *queues_left_route(topic, of_topic, routes, offsets, seconds),
        ]
    faults += secret_faults(dossier, terms.masking)

    reassignments = {topic: find_reassignments(timeline) for topic, timeline in timelines.items()}
    unsteady = unsteady_members(
        dossier, situations.channels, timelines, reassignments, faults, terms
    )
    faults = with_remedies(faults, unsteady) + unsteady

    holdings = find_holdings(
        dossier,
        timelines,
        {topic: [each.collected_at for each in of_topic] for topic, of_topic in changes.items()},
    )
    witnesses = Witnesses(
        index_holdings(holdings),
        find_drift(holdings, seconds),
        {
            (each.topic, each.broker_name, each.queue_id): each
            for queues in dossier.offsets.values()
            for each in queues
        },
        dossier.clients,
        {
            period.situation.situation_id: readable_queues(period.situation.routes)
            for of_topic in by_topic.values()
            for period in of_topic
            if evaluated[period.situation.situation_id].coverage == STRATEGY_NOT_KNOWN
        },
        {
            topic: {queue for each in of_topic for queue in each.gained}
            for topic, of_topic in changes.items()
        },
    )
    computed = [
        episode for timeline in timelines.values() for episode in queue_episodes(timeline, seconds)
    ]
    refuted = find_refuted(computed, witnesses.offsets)
    held = held_findings(witnesses, timelines, seconds)
    offline, offline_faults = still_offline(dossier, by_topic, seconds)
    read = zip(computed, refuted, strict=True)
    episodes = [*[each for each, is_read in read if not is_read], *held, *offline]
    faults += [
        *unlisted_consumers(compress(computed, refuted), witnesses.offsets),
        *held_faults(held, witnesses),
        *clients_not_answering(dossier.clients, timelines, seconds),
        *offline_faults,
    ]
    findings = _queue_findings(dossier, episodes, witnesses, terms)
    blame(findings, unsteady)

    stalls: list[Row] = []
    orphaned = _orphaned(episodes)
    processes = Processes(witnesses.holdings, timelines, witnesses.offsets)
    for topic in dossier.offsets:
        # There may be offsets of a topic that no member was seen to subscribe to.
        periods = by_topic.get(topic, ())
        intervals = find_intervals(dossier, topic, periods, evaluated, orphaned.get(topic, {}))
        stalls += stall_episodes(intervals, seconds)
        held_of_topic = witnesses.holdings.get(topic)
        moves_elsewhere = partial(processes.moves_in_another_topic, topic)
        faults += [
            *frozen_processes(intervals, seconds, held_of_topic, moves_elsewhere),
            *groups_not_consuming(
                topic,
                dossier.offsets[topic],
                periods,
                evaluated,
                orphaned.get(topic, {}),
                seconds,
                held_of_topic,
            ),
            *offsets_went_back(topic, dossier.offsets[topic], seconds),
        ]
    faults = list(with_history(processes.without_refused(faults), dossier))
    _complete_stalls(dossier, stalls, processes, faults)
    of_faults = _fault_rows(dossier, faults, FaultSeverity(findings, stalls), terms)
    found = findings + stalls + of_faults
    mark_open(found, dossier.earlier)

    findings_of_topic = _by_topic(findings)
    stalls_of_topic = _by_topic(stalls)
    health = [
        group_health(topic, periods, evaluated, findings_of_topic[topic], stalls_of_topic[topic])
        for topic, periods in by_topic.items()
    ]
    audited = {row["topic"] for row in health if row["audited_snapshots"]}
    health += [
        topic_without_group(topic, routes)
        for topic, routes in dossier.routes.items()
        # Where no list has it, it may have come by the offsets: other groups may have members.
        if topic not in by_topic and (dossier.list_topics or topic not in dossier.offsets)
    ]
    load = group_load(dossier.consumer_group, by_topic, evaluated)
    rounds = find_rounds(dossier)

    tables = {
        "duplicate_queues": [row for row in findings if row["kind"] == DUPLICATE],
        "orphaned_queues": [row for row in findings if row["kind"] == ORPHANED],
        "former_findings": former_findings(
            dossier.earlier,
            found,
            audited,
            polled={t for t, each in dossier.offsets.items() if each},
        ),
        "stalled_queues": stalls,
        "stacked_client_ids": stacked_id_rows(timelines.values(), seconds),
        "group_faults": of_faults,
        "unreadable_queues": [
            row
            for topic, periods in by_topic.items()
            for row in unreadable_queues(topic, periods, evaluated)
        ],
        "state_runs": [
            row for topic, periods in by_topic.items() for row in state_runs(topic, periods)
        ],
        "reassignments": [row for of_topic in reassignments.values() for row in of_topic],
        "allocation_drift": list(witnesses.drift),
        "group_health": [with_rounds(with_load(row, load), rounds, seconds) for row in health],
        "group_load": load.rows(),
    }
    tables["events"] = find_events(dossier, by_topic, changes, snapshots, tables)
    for rows in tables.values():
        for row in rows:
            row["cluster"] = dossier.cluster
            row["consumer_group"] = dossier.consumer_group
    mark_known(tables, dossier.cluster, dossier.consumer_group, terms.known_issues, terms.masking)
    return tables


def _queue_findings(
    dossier: Dossier,
    episodes: Iterable[QueueEpisode],
    witnesses: Witnesses,
    terms: Terms,
) -> list[Row]:
    """The rows of orphaned_queues and duplicate_queues, with their ``kind``."""
    orderly = consumes_in_order(dossier.clients)
    rows: list[Row] = []
    for episode in episodes:
        broker_name, queue_id = episode.queue
        left = backlog(
            witnesses.offsets.get((episode.topic, broker_name, queue_id)),
            episode.first_seen,
            episode.last_seen,
        )
        held = confirm(episode, witnesses.holdings)
        is_read = is_read_all_the_same(episode, witnesses.offsets)
        moved = None if is_read is None or episode.kind == DUPLICATE else not is_read
        is_doubtful = episode.certainty == POSSIBLE and True not in (held, moved)
        row: Row = {
            **vars(episode),
            # They once were those of one certainty.
            "episode_first_seen": episode.first_seen,
            "episode_last_seen": episode.last_seen,
            "broker_name": broker_name,
            "queue_id": queue_id,
            "claimants": [each._asdict() for each in episode.claimants],
            "severity": finding_severity(
                episode.kind,
                episode.persistence,
                episode.share,
                left.unread_share,
                orderly,
                terms,
                is_read_throughout=is_read_throughout(episode, witnesses.offsets),
                is_doubtful=is_doubtful,
            ),
            "is_doubtful": is_doubtful and episode.share >= terms.critical_probability,
            "backlog": left.messages,
            "backlog_growth": left.growth,
            "orderly": orderly,
            "confirmed": held,
            "computed": CAUSES.isdisjoint(episode.causes),
            "held": held,
            "moved": moved,
            "finding_id": finding_id(
                dossier.cluster,
                dossier.consumer_group,
                episode.topic,
                broker_name,
                queue_id,
                episode.kind,
            ),
        }
        rows.append(row)
    return rows


def _complete_stalls(
    dossier: Dossier, stalls: Iterable[Row], processes: Processes, faults: Sequence[FaultEpisode]
) -> None:
    for row in stalls:
        row.update(processes.explain(row, faults))
        row["severity"] = stall_severity(row["persistence"], row["backlog_growth"])
        queue = row["topic"], row["broker_name"], row["queue_id"]
        row["finding_id"] = stall_id(dossier.cluster, dossier.consumer_group, *queue)


def _orphaned(
    episodes: Iterable[QueueEpisode],
) -> dict[str, dict[QueueKey, Sequence[tuple[Instant, Instant]]]]:
    """By topic and queue, from when to when it was orphaned, whatever the certainty."""
    times: dict[str, dict[QueueKey, set[tuple[Instant, Instant]]]] = defaultdict(
        lambda: defaultdict(set)
    )
    for episode in episodes:
        if episode.kind == ORPHANED:
            whole = ((episode.first_seen, episode.last_seen),)
            times[episode.topic][episode.queue].update(episode.times or whole)
    return {
        topic: {queue: sorted(of_queue) for queue, of_queue in of_topic.items()}
        for topic, of_topic in times.items()
    }


def _by_topic(rows: Iterable[Row]) -> Mapping[str, list[Row]]:
    of_topic: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        of_topic[row["topic"]].append(row)
    return of_topic


def _remedy(fault: FaultEpisode, *, is_doubtful: bool) -> str:
    """What repairs it; where nothing shows whether it does harm, first what would show that."""
    if not is_doubtful:
        return fault.remedy
    return joined(
        [
            Text(
                "lists and routes alone show that queues may be without an owner or have several: "
                "the running infos of the group's clients show who has them, its offsets whether "
                "they move"
            ),
            fault.remedy,
        ]
    )


def _fault_rows(
    dossier: Dossier, faults: Iterable[FaultEpisode], severity: FaultSeverity, terms: Terms
) -> list[Row]:
    return [
        {
            **vars(fault),
            "remedy": _remedy(fault, is_doubtful=severity.is_doubtful(fault)),
            "moves": [each._asdict() for each in fault.moves],
            "severity": severity.of(fault),
            "finding_id": fault_id(
                dossier.cluster,
                dossier.consumer_group,
                fault.topic,
                fault.fault,
                terms.masking.mask_all(fault.client_ids),
            ),
        }
        for fault in faults
    ]
