"""what was found -> the rows of every report table of a group: the one place that makes them."""

from itertools import chain

from ..finding_ids import fault_id, finding_id, stall_id
from ..kinds import QUEUE_FINDINGS
from . import health
from .case import Case
from .findings import Fault, Finding, Found, QueueFinding, StackedEpisode, Stall
from .grouping import grouped
from .held import CAUSES
from .known_issues import entries_of, known_issue
from .load import group_load, with_load
from .statuses import former_findings, is_there, openness
from .tables import Row

#: The column with the reason of the known issue that a finding matches; null: it matches none.
KNOWN_ISSUE = "known_issue"


def to_rows(case: Case, found: Found) -> dict[str, list[Row]]:
    """By name the rows of every report table, but for ``allocations`` and ``quarantine``."""
    dossier, by_topic, evaluated = case.dossier, case.situations.by_topic, case.evaluated
    marked = _Marked(case)
    of_queues: list[QueueFinding | Stall] = [*found.queues, *found.stalls]
    tables = {
        table: [marked.row(each) for each in of_queues if each.kind == kind]
        for table, kind in QUEUE_FINDINGS.items()
    }
    tables["group_faults"] = [marked.row(each) for each in found.faults]
    tables["stacked_client_ids"] = [marked.row_of_id(each) for each in found.stacked]
    of_topics = _health(case, found)
    tables["former_findings"] = former_findings(
        dossier.earlier,
        marked.there,
        audited={row["topic"] for row in of_topics if row["audited_snapshots"]},
        polled={topic for topic, offsets in dossier.offsets.items() if offsets},
    )
    load = group_load(dossier.consumer_group, by_topic, evaluated)
    rounds = health.find_rounds(dossier)
    tables["group_load"] = load.rows()
    tables["group_health"] = [
        health.with_rounds(with_load(row, load), rounds, case.persistence_seconds)
        for row in of_topics
    ]
    periods = list(chain.from_iterable(by_topic.values()))
    tables["state_runs"] = health.state_runs(periods)
    tables["unreadable_queues"] = health.unreadable_queues(periods, evaluated)
    tables["reassignments"] = [
        each._asdict() for changes in case.reassignments.values() for each in changes
    ]
    tables["allocation_drift"] = [each.row() for each in case.drift]
    group = {"cluster": dossier.cluster, "consumer_group": dossier.consumer_group}
    return {table: [group | row for row in rows] for table, rows in tables.items()}


def _health(case: Case, found: Found) -> list[Row]:
    dossier, by_topic = case.dossier, case.situations.by_topic
    queues = grouped((each.topic, each) for each in found.queues)
    stalls = grouped((each.topic, each) for each in found.stalls)
    rows = [
        health.group_health(
            topic, periods, case.evaluated, queues.get(topic, ()), stalls.get(topic, ())
        )
        for topic, periods in by_topic.items()
    ]
    return rows + [
        health.topic_without_group(topic, routes)
        for topic, routes in dossier.routes.items()
        # Where no list has it, it may have come by the offsets: other groups may have members.
        if topic not in by_topic and (dossier.list_topics or topic not in dossier.offsets)
    ]


class _Marked:
    """Makes rows of findings, with their ids, what was open before, and the known issues."""

    def __init__(self, case: Case) -> None:
        dossier, terms = case.dossier, case.terms
        self._group = dossier.cluster, dossier.consumer_group
        self._orderly = dossier.consumes_in_order
        self._before = {each.finding_id: each for each in dossier.earlier}
        self._masking = terms.masking
        self._entries = entries_of(*self._group, terms.known_issues)
        #: The ids of what is still to be reckoned with.
        self.there: set[str] = set()

    def row(self, finding: Finding) -> Row:
        """The row of a finding, but for its group."""
        topic, extent = finding.topic, finding.extent
        columns = vars(finding) | extent._asdict()
        if not isinstance(finding, Fault):
            columns["broker_name"], columns["queue_id"] = finding.queue
        match finding:
            case Fault():
                shown = self._masking.mask_all(finding.client_ids)
                id_ = fault_id(*self._group, topic, finding.fault, shown)
                columns |= {
                    "findings_cleared": finding.cleared,
                    "findings_left": finding.left,
                    "moves": [each._asdict() for each in finding.moves],
                }
            case Stall():
                id_ = stall_id(*self._group, topic, *finding.queue)
                columns |= {"polls": extent.snapshots}
            case QueueFinding():
                id_ = finding_id(*self._group, topic, *finding.queue, finding.kind)
                columns |= {
                    # They once were those of one certainty.
                    "episode_first_seen": finding.first_seen,
                    "episode_last_seen": finding.last_seen,
                    "claimants": [each._asdict() for each in finding.claimants],
                    "backlog": finding.left.messages,
                    "backlog_growth": finding.left.growth,
                    "orderly": self._orderly,
                    "confirmed": finding.held,
                    "computed": CAUSES.isdisjoint(finding.causes),
                }
        if is_there(extent):
            self.there.add(id_)
        return {
            **columns,
            "finding_id": id_,
            **openness(id_, extent, self._before)._asdict(),
            KNOWN_ISSUE: known_issue(finding, self._entries, self._masking),
        }

    def row_of_id(self, found: StackedEpisode) -> Row:
        """The row of a stacked id, but for its group."""
        return {
            **found.stacked._asdict(),
            **found.extent._asdict(),
            "topics": found.topics,
            "client_addrs": tuple(sorted(set(found.stacked.client_addrs))),
            "verdict": found.kind,
            KNOWN_ISSUE: known_issue(found, self._entries, self._masking),
        }
