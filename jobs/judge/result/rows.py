"""Rows of every report table of a group, from what was found: the one place that makes them.

What is new, goes on or ended follows from the open findings of the run before, which are parts of
the dossier, like the runs of any witness. NEW and PERSISTING are with the findings; what is
RESOLVED, or was not audited this time, is in ``former_findings``. The run before is that of the
last earlier date, whenever either was published: a late night leaves the chain whole.
"""

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from rebalance_core.grouping import grouped
from rebalance_core.texts import Text

from ...config.terms import Terms
from ...declared import kinds
from ...declared.dossier import Dossier, EarlierFinding
from ...declared.instants import Instant
from ...declared.kinds import fault_id, finding_id, stall_id
from ..observe.arrow_tables import Row
from ..observe.evaluation import Failure
from ..rules.case import Case
from ..rules.found import (
    FaultEpisode,
    Graded,
    GroupFindings,
    QueueFinding,
    StackedEpisode,
    Stall,
    is_computed,
    known_coverage,
    known_issue,
)
from ..times import Extent
from . import health
from .health import topic_without_audit, with_facts
from .load import group_load, with_load

NEW = "NEW"
PERSISTING = "PERSISTING"
RESOLVED = "RESOLVED"
#: The faults that offsets show.
BY_OFFSETS = frozenset(
    {kinds.FROZEN_PROCESS, kinds.GROUP_NOT_CONSUMING, kinds.OFFSETS_WENT_BACK}
    | {kinds.OFFSETS_GONE, kinds.READ_TWICE, kinds.MESSAGES_FAIL}
)


class Openness(NamedTuple):
    """The status columns of a finding; None for what passed by itself."""

    status: str | None = None
    open_since: Instant | None = None
    nights_open: int | None = None


def openness(finding_id: str, extent: Extent, before: Mapping[str, EarlierFinding]) -> Openness:
    """The status of a finding against those that were open in the previous run, ``before`` by id.

    PERSISTING if it was open then and lasts or is not over; NEW if it lasts. A finding that goes on
    keeps its beginning, so that no run has to read more than the one before. A night that was not
    audited is not counted, and does not end what was open before it.
    """
    former = before.get(finding_id)
    if former is not None and (extent.lasts or extent.ongoing):
        first_seen = min(extent.first_seen, former.open_since)
        return Openness(PERSISTING, first_seen, former.nights_open + 1)
    return Openness(NEW, extent.first_seen, 1) if extent.lasts else Openness()


def former_findings(
    earlier: Iterable[EarlierFinding],
    go_on: Container[str],
    audited: Container[str],
    polled: Container[str],
) -> list[Row]:
    """The rows of ``former_findings``: what was open in the previous run and is not there any more.

    ``go_on`` are the ids of what is PERSISTING. RESOLVED where this window decides: the topic was
    recomputed, that is, in ``audited``, or of a stalled queue its offsets were asked for,
    ``polled``. NOT_AUDITED where it does not: then nothing shows it.

    Faults count only if they are NOT_AUDITED and no finding of a queue shows them: with these the
    others stay open.
    """
    before = list(earlier)
    shown = {(finding.topic, cause) for finding in before for cause in finding.causes}
    stalled = [finding.topic for finding in before if finding.kind == kinds.STALLED]
    shown |= {(topic, fault) for topic in stalled for fault in kinds.SHOWN_BY_STALLS}
    rows = []
    for finding in before:
        is_of_queue = finding.kind in kinds.QUEUE_FINDINGS.values()
        decides = polled if finding.kind == kinds.STALLED or finding.kind in BY_OFFSETS else audited
        status = RESOLVED if finding.topic in decides else kinds.NOT_AUDITED
        is_shown = (finding.topic, finding.kind) in shown or kinds.kind_of(finding.kind).passes
        is_row = is_of_queue or (status == kinds.NOT_AUDITED and not is_shown)
        if is_row and finding.finding_id not in go_on:
            rows.append({**finding._asdict(), "status": status})
    return rows


# ---------------------------------------------------------------- statuses

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
    queue_findings: list[QueueFinding | Stall] = [*found.queues, *found.stalls]
    tables = {
        table: [_row(case, finding) for finding in queue_findings if finding.kind == kind]
        for table, kind in kinds.QUEUE_FINDINGS.items()
    }
    shown = shown_on_queues(tables)
    faults = [_row(case, fault) for fault in found.faults]
    tables["group_faults"] = [
        row | {"is_finding": is_finding(row, shown[row["topic"]])} for row in faults
    ]
    graded = chain.from_iterable(tables.values())
    go_on = {row["finding_id"] for row in graded if row["status"] == PERSISTING}
    tables["stacked_client_ids"] = [_row_of_id(case, episode) for episode in found.stacked]
    topic_rows = [*with_facts(case, found, _health(case, queue_findings))]
    audited = {row["topic"] for row in topic_rows if row["audited_snapshots"]}
    polled = {topic for topic, offsets in dossier.offsets.items() if offsets}
    tables["former_findings"] = former_findings(dossier.earlier, go_on, audited, polled)
    load, rounds = group_load(case), health.find_rounds(dossier)
    tables["group_load"] = load.rows()
    loaded = (with_load(row, load, dossier.consumer_group) for row in topic_rows)
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


def shown_on_queues(tables: Mapping[str, Iterable[Row]]) -> Mapping[str, set[str]]:
    """The faults that severe findings of queues show, by topic."""
    shown: dict[str, set[str]] = defaultdict(set)
    for table, kind in kinds.QUEUE_FINDINGS.items():
        for row in tables[table]:
            if row["severity"] != kinds.INFO:
                causes = kinds.SHOWN_BY_STALLS if kind == kinds.STALLED else row["causes"]
                shown[row["topic"]].update(causes or ())
    return shown


def is_finding(fault: Row, shown: Container[str]) -> bool:
    """True if a fault counts by itself. Nothing severe is left out: what affects queues and shows
    on none of them (``shown_on_queues``) does, as GROUP_NOT_CONSUMING.
    """
    is_severe = fault["severity"] != kinds.INFO and fault["fault"] not in shown
    return is_severe or not fault["queues_affected"]


def _health(case: Case, queue_findings: Sequence[QueueFinding | Stall]) -> list[Row]:
    dossier, by_topic = case.dossier, case.situations.by_topic
    given = grouped((finding.topic, finding) for finding in queue_findings)
    rows = [health.group_health(case, topic, given.get(topic, ())) for topic in by_topic]
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


# ---------------------------------------------------------------- a group on which the audit fails


def rows_of_failed(dossier: Dossier, failure: Failure, terms: Terms) -> dict[str, list[Row]]:
    """The rows of the group in every report table: why it was not audited, and what stays open."""
    reason = Text("the audit failed on this group: {error}", error=failure.sentence)
    polled = {time for run in dossier.polls for time in run.times}
    routed = (run.times for runs in dossier.routes.values() for run in runs)
    times = sorted(polled or set(chain.from_iterable(routed)))
    topics = sorted({topic for own in dossier.list_topics.values() for topic in own}) or [""]
    tables = {
        "group_health": [
            topic_without_audit(topic, kinds.AUDIT_FAILED, reason, times)
            | {"known_issue": known_coverage(topic, kinds.AUDIT_FAILED, terms.known_issues)}
            for topic in (topics if times else ())
        ],
        "former_findings": former_findings(dossier.earlier, (), (), ()),
    }
    group = {"cluster": dossier.cluster, "consumer_group": dossier.consumer_group}
    return {table: [group | row for row in rows] for table, rows in tables.items()}
