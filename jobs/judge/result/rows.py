"""Rows of every report table of a group, from what was found: the one place that makes them."""

from collections.abc import Sequence
from itertools import chain

from rebalance_core.grouping import grouped

from ...declared.finding_ids import fault_id, finding_id, stall_id
from ...declared.kinds import QUEUE_FINDINGS
from ..arrow_tables import Row
from ..rules.case import Case
from ..rules.found import FaultEpisode, Graded, GroupFindings, QueueFinding, StackedEpisode, Stall
from ..rules.held import is_computed
from ..rules.matching_issues import known_coverage, known_issue
from . import health
from .facts import with_facts
from .load import group_load, with_load
from .statuses import PERSISTING, former_findings, openness

#: Fields of a finding that are not columns of any table, or are columns of another name.
_NO_COLUMNS = frozenset(
    {
        *("extent", "queue", "kind", "left", "times", "cleared", "copies"),
        *("is_always_read", "is_doubtful", "is_latent", "is_mostly_certain", "is_settled"),
        *("is_assumed", "at_most", "may_be_ours"),
    }
)


def to_rows(case: Case, found: GroupFindings) -> dict[str, list[Row]]:
    """The rows of every report table, by name, but for ``allocations`` and ``quarantine``."""
    dossier, by_topic, evaluated = case.dossier, case.situations.by_topic, case.evaluated
    of_queues: list[QueueFinding | Stall] = [*found.queues, *found.stalls]
    tables = {
        table: [_row(case, each) for each in of_queues if each.kind == kind]
        for table, kind in QUEUE_FINDINGS.items()
    }
    tables["group_faults"] = [_row(case, fault) for fault in found.faults]
    graded = chain.from_iterable(tables.values())
    go_on = {row["finding_id"] for row in graded if row["status"] == PERSISTING}
    tables["stacked_client_ids"] = [
        _row_of_id(case, stacked_episode) for stacked_episode in found.stacked
    ]
    of_topics = [*with_facts(case, found, _health(case, of_queues))]
    audited = {row["topic"] for row in of_topics if row["audited_snapshots"]}
    polled = {topic for topic, offsets in dossier.offsets.items() if offsets}
    tables["former_findings"] = former_findings(dossier.earlier, go_on, audited, polled)
    load, rounds = group_load(case), health.find_rounds(dossier)
    tables["group_load"] = load.rows()
    loaded = (with_load(row, load, dossier.consumer_group) for row in of_topics)
    seconds = case.persistence_seconds
    tables["group_health"] = [health.with_rounds(row, rounds, seconds) for row in loaded]
    periods = list(chain.from_iterable(by_topic.values()))
    tables["state_runs"] = health.state_runs(periods)
    tables["unreadable_queues"] = health.unreadable_queues(periods, evaluated)
    reassignments = chain.from_iterable(case.reassignments.values())
    tables["reassignments"] = [reassignment._asdict() for reassignment in reassignments]
    tables["allocation_drift"] = [drift.row() for drift in case.drift]
    group = {"cluster": dossier.cluster, "consumer_group": dossier.consumer_group}
    return {table: [group | row for row in rows] for table, rows in tables.items()}


def _health(case: Case, of_queues: Sequence[QueueFinding | Stall]) -> list[Row]:
    dossier, by_topic = case.dossier, case.situations.by_topic
    of_topic = grouped((each.topic, each) for each in of_queues)
    rows = [health.group_health(case, topic, of_topic.get(topic, ())) for topic in by_topic]
    rows += [
        health.topic_without_group(topic, routes)
        for topic, routes in dossier.routes.items()
        # Where no list has it, it may have come by the offsets: other groups may have members.
        if topic not in by_topic and (dossier.list_topics or topic not in dossier.offsets)
    ]
    return [
        row | {"known_issue": known_coverage(row["topic"], row["coverage"], case.known_issues)}
        for row in rows
    ]


def _row(case: Case, finding: Graded) -> Row:
    """The row of a finding, but for its group."""
    dossier, masking = case.dossier, case.terms.masking
    group, topic, extent = (dossier.cluster, dossier.consumer_group), finding.topic, finding.extent
    columns = vars(finding) | extent._asdict()
    if not isinstance(finding, FaultEpisode):
        columns["broker_name"], columns["queue_id"] = finding.queue
    match finding:
        case FaultEpisode():
            id_ = fault_id(*group, topic, finding.fault, masking.mask_all(finding.client_ids))
            columns |= {
                "findings_cleared": finding.cleared,
                "findings_left": finding.left,
                "moves": [move._asdict() for move in finding.moves],
            }
        case Stall():
            id_ = stall_id(*group, topic, *finding.queue)
            columns["polls"] = columns.pop("snapshots")
            del columns["share_of_time"]
        case QueueFinding():
            id_ = finding_id(*group, topic, *finding.queue, finding.kind)
            columns |= {
                # They once were those of one certainty.
                "episode_first_seen": finding.first_seen,
                "episode_last_seen": finding.last_seen,
                "claimants": [claimant._asdict() for claimant in finding.claimants],
                "backlog": finding.left.messages,
                "backlog_growth": finding.left.growth,
                "orderly": dossier.consumes_in_order,
                "confirmed": finding.held,
                "computed": is_computed(finding),
            }
    return {
        **_published(columns),
        "finding_id": id_,
        **openness(id_, extent, case.open_before)._asdict(),
        "known_issue": known_issue(finding, case.known_issues, masking),
    }


def _row_of_id(case: Case, found: StackedEpisode) -> Row:
    """The row of a stacked id, but for its group."""
    return {
        **_published(found.stacked._asdict()),
        **found.extent._asdict(),
        "topics": found.topics,
        "verdict": found.kind,
        "known_issue": known_issue(found, case.known_issues, case.terms.masking),
    }


def _published(values: Row) -> Row:
    """The values that are columns: what no table declares is named above, or fails."""
    return {name: value for name, value in values.items() if name not in _NO_COLUMNS}
