"""A published run as metrics, in Prometheus' text format, for a textfile collector.

The library escapes quotes in label values, and ``visible`` what cannot be seen. The number of
series is bounded whatever the groups are called and however many there are. Series of all kinds are
always there, so that a rule sees a zero and not a gap; only the groups that are worst come and go.

What is counted has the label ``cluster``. At most ``_MOST_CLUSTERS`` have a name there: those with
most findings. The others are counted together, as ``OTHER_CLUSTERS``.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import product
from typing import Any, NamedTuple, get_args

from prometheus_client import CollectorRegistry, Gauge, generate_latest

from rebalance_core.grouping import grouped

from .. import __version__
from ..declared.coverage import ACTIONS
from ..declared.kinds import FAULTS, PERSISTENT, QUEUE_FINDINGS, SEVERITIES, TRANSIENT, VERDICTS
from ..reports.problems import Standing
from ..reports.tables import PublishedTables
from ..texts.shown import visible
from ..texts.waiting import WaitingMessages
from ..verdict.gaps import GAPS
from ..verdict.verdict import STATES, RunVerdict
from .message import Digest

_PERSISTENCES = (PERSISTENT, TRANSIENT)
_STATUSES = ("NEW", "PERSISTING", "NONE")
_KNOWN = ("false", "true")
#: RocketMQ takes no longer names; a dump may.
_LONGEST_LABEL = 255
#: Each has some hundred series.
_MOST_CLUSTERS = 20
#: No name of a cluster: RocketMQ allows no brackets there.
OTHER_CLUSTERS = "(others)"


_SEVERE = SEVERITIES[1:]
_LASTING = {"persistence": _PERSISTENCES, "known": _KNOWN}
_OF_FINDINGS = {
    "kind": QUEUE_FINDINGS.values(),
    "severity": SEVERITIES,
    "persistence": _PERSISTENCES,
    "status": _STATUSES,
    "known": _KNOWN,
}
#: The tables of which rows are counted: the metric, its help, and the labels that they are counted
#: by, with the values that are always there.
_COUNTED: Mapping[str, tuple[str, str, Mapping[str, Iterable[str]]]] = {
    "group_faults": (
        "faults",
        "Faults of groups: rows of group_faults",
        {"fault": FAULTS, **_LASTING},
    ),
    "stacked_client_ids": (
        "stacked_client_ids",
        "Client ids that are more than once in a broker's list",
        {"verdict": VERDICTS, **_LASTING},
    ),
    "former_findings": (
        "former_findings",
        "What was open in the published run before and is not there any more",
        {"status": ("RESOLVED", "NOT_AUDITED")},
    ),
    "group_health": (
        "group_topics",
        "Groups and their topics: rows of group_health",
        {"coverage": ("AUDITED",)},
    ),
}
_Rows = Mapping[str, Sequence[Mapping[str, Any]]]


class _Metric(NamedTuple):
    """A gauge: its name without the common prefix, its help, its labels, its values by these."""

    name: str
    what: str
    labels: Sequence[str]
    values: Mapping[tuple[str, ...], float]


def metrics_text(digest: Digest, tables: PublishedTables, worst_groups: int) -> str:
    """The metrics of a run, with those of its ``worst_groups`` worst groups.

    All are gauges named ``rebalance_audit_...``, in base units; shares are from 0 to 1.
    """
    registry = CollectorRegistry()
    rows = {
        name: tables.read(name, ["cluster", "known_issue", "completeness", *labels]).to_pylist()
        for name, (_, _, labels) in _COUNTED.items()
    }
    clusters = _shown_clusters(digest, rows)
    for metric in (
        *_problem_metrics(digest, clusters),
        *_row_metrics(digest, rows, clusters),
        *_worst_group_metrics(digest, worst_groups),
        *_backlog_metrics(digest, clusters),
        *_verdict_metrics(digest.verdict),
        *_run_metrics(digest.published.summary),
    ):
        name = f"rebalance_audit_{metric.name}"
        gauge = Gauge(name, metric.what, metric.labels, registry=registry)
        for labels, value in metric.values.items():
            (gauge.labels(*labels) if metric.labels else gauge).set(value)
    return generate_latest(registry).decode("utf-8")


def _label(name: str) -> str:
    return visible(name)[:_LONGEST_LABEL]


def _shown_clusters(digest: Digest, rows: _Rows) -> Mapping[str, str]:
    """The label of each cluster of the run."""
    findings: Counter[str] = Counter()
    for finding in digest.findings:
        findings[finding.place.cluster] += len(finding.ids)
    # Without any cluster the series are there all the same, as zeros.
    names = {row["cluster"] for table_rows in rows.values() for row in table_rows}
    worst = sorted(names | findings.keys() or {""}, key=lambda name: (-findings[name], name))
    return {
        name: _label(name) if place < _MOST_CLUSTERS else OTHER_CLUSTERS
        for place, name in enumerate(worst)
    }


def _counted(
    name: str, what: str, labels: Mapping[str, Iterable[str]], rows: Iterable[Mapping[str, Any]]
) -> _Metric:
    """The number of rows with each combination of labels: 0 for one that has none."""
    zeros = dict.fromkeys(product(*labels.values()), 0)
    found = Counter(tuple(row[label] for label in labels) for row in rows)
    return _Metric(name, what, list(labels), {**zeros, **found})


def _problem_metrics(digest: Digest, clusters: Mapping[str, str]) -> Iterator[_Metric]:
    """The problems, as the page has them: a topic of a group is one."""
    rows = [
        {
            "cluster": clusters[problem.place.cluster],
            "severity": problem.worst_severity,
            "standing": problem.standing,
            "ongoing": _KNOWN[problem.ongoing],
            "status": problem.status,
        }
        for problem in digest.problems
    ]
    by_cluster = {"cluster": clusters.values()}
    what = "Topics of groups in which something is or was wrong, by the worst of it"
    labels = {"severity": SEVERITIES, "standing": get_args(Standing), "ongoing": _KNOWN}
    yield _counted("problems", what, {**by_cluster, **labels}, rows)
    what = "Topics of groups with lasting faults, against the published run before"
    counted = [row for row in rows if row["standing"] == "COUNTED"]
    labels = {"status": (*_STATUSES, "RETURNED")}
    yield _counted("problems_by_status", what, {**by_cluster, **labels}, counted)


def _row_metrics(digest: Digest, rows: _Rows, clusters: Mapping[str, str]) -> Iterator[_Metric]:
    shown = {"cluster": clusters.values()}

    def labelled(row: Mapping[str, Any]) -> dict[str, Any]:
        known = _KNOWN[row.get("known_issue") is not None]
        status = row.get("status") or "NONE"
        return {**row, "cluster": clusters[row["cluster"]], "known": known, "status": status}

    queue_rows = (
        row
        for finding in digest.findings
        for row in [labelled({**vars(finding), "cluster": finding.place.cluster})]
        * len(finding.queues)
    )
    what = "Orphaned, duplicate and stalled queues: rows of the tables of findings"
    yield _counted("findings", what, {**shown, **_OF_FINDINGS}, queue_rows)
    for table, (name, what, labels) in _COUNTED.items():
        yield _counted(name, what, {**shown, **labels}, map(labelled, rows[table]))
    lowest: dict[tuple[str, ...], float] = {}
    for row in rows["group_health"]:
        if row["coverage"] == "AUDITED":
            cluster = (clusters[row["cluster"]],)
            lowest[cluster] = min(row["completeness"], lowest.get(cluster, 1.0))
    what = "Of the audited topics the lowest share of brokers that answered"
    yield _Metric("completeness_lowest_ratio", what, ["cluster"], lowest)


def _worst_group_metrics(digest: Digest, worst_groups: int) -> Iterator[_Metric]:
    """The findings of the worst groups and their waiting messages, in the problems' order."""
    counts: dict[tuple[str, str], Counter[str]] = {}
    for finding in digest.findings:
        if finding.severity in _SEVERE and finding.known_issue is None:
            counts.setdefault(finding.place[:2], Counter())[finding.severity] += len(finding.ids)
    worst = list(counts)[:worst_groups]
    values: Counter[tuple[str, ...]] = Counter()
    waiting: Counter[tuple[str, ...]] = Counter()
    # Two names may be the same when they are cut: what they have is added.
    for group in worst:
        for severity in _SEVERE:
            values[*map(_label, group), severity] += counts[group][severity]
    for problem in digest.problems:
        messages, without = problem.waiting.messages, problem.waiting.without_offsets
        is_known = messages is not None and (messages > 0 or not without)
        if problem.is_counted and problem.place[:2] in worst and is_known:
            waiting[*map(_label, problem.place[:2])] += messages or 0
    labels = ["cluster", "consumer_group"]
    what = "Findings of the worst groups, known issues left out"
    yield _Metric("group_findings", what, [*labels, "severity"], values)
    what = "Messages that wait in the topics with lasting faults of the worst groups"
    yield _Metric("group_backlog_messages", what, labels, waiting)


def _backlog_metrics(digest: Digest, clusters: Mapping[str, str]) -> Iterator[_Metric]:
    """The waiting messages of the topics with lasting faults, by cluster, known issues left out."""
    waiting = grouped(
        (clusters[problem.place.cluster], problem.waiting)
        for problem in digest.problems
        if problem.is_counted
    )
    # Where nothing lasts nothing waits there; where no offsets came it is not known, and no metric.
    nothing = [WaitingMessages(0)]
    found = {
        name: each
        for name in clusters.values()
        if (each := WaitingMessages.of_all(waiting.get(name, nothing))).messages is not None
    }
    what = "Messages that wait in topics with lasting faults, known issues left out"
    values: dict[tuple[str, ...], float] = {
        (name,): each.messages or 0 for name, each in found.items()
    }
    yield _Metric("backlog_messages", what, ["cluster"], values)
    what = "Queues of these topics without offsets: at least so many messages wait as are counted"
    values = {(name,): each.without_offsets for name, each in found.items()}
    yield _Metric("backlog_queues_without_offsets", what, ["cluster"], values)
    what = "By how many messages a second these grow"
    values = {(name,): each.per_minute / 60 for name, each in found.items()}
    yield _Metric("backlog_growth_messages_per_second", what, ["cluster"], values)
    what = "By when the oldest of these messages had come"
    values = {
        (name,): each.first_seen.timestamp() for name, each in found.items() if each.first_seen
    }
    yield _Metric("backlog_oldest_timestamp_seconds", what, ["cluster"], values)


def _verdict_metrics(verdict: RunVerdict) -> Iterator[_Metric]:
    what = "The state of the run: 1 is the one that it has"
    yield _counted("state", what, {"state": STATES}, [{"state": verdict.state}])
    what = "Things that were not read or not audited: rows of the table gaps"
    yield _Metric("missing", what, (), {(): float(len(verdict.missing))})
    what = "What was not read, by kind"
    yield _counted("gaps", what, {"kind": GAPS}, ({"kind": gap.kind} for gap in verdict.gaps))
    what = "Topics of groups that were not audited, by coverage; known issues left out"
    rows: Iterable[Mapping[str, Any]] = (
        {"coverage": unaudited.coverage}
        for unaudited in verdict.not_audited
        for _ in unaudited.places
    )
    yield _counted("not_audited", what, {"coverage": ACTIONS}, rows)
    what = "Findings of the previous run that were not looked for"
    yield _Metric("left_open", what, (), {(): float(verdict.left_open)})


def _run_metrics(summary: Mapping[str, Any]) -> Iterator[_Metric]:
    rows: dict[tuple[str, ...], float] = {(name,): n for name, n in summary["rows"].items()}
    yield _Metric("rows", "Rows of a table", ["table"], rows)
    yield _counted(
        "known_issues",
        "Entries of the file of known issues; an unused one matched nothing",
        {"state": ("IN_FORCE", "UNUSED", "EXPIRED")},
        (
            {"state": "EXPIRED" if each["expired"] else "IN_FORCE" if each["marked"] else "UNUSED"}
            for each in summary["known_issues"]
        ),
    )
    what = "The version of the audit that wrote these metrics"
    yield _Metric("build_info", what, ["version"], {(__version__,): 1})
    ingested = summary["inputs"]["ingested"] or {}
    lines = ingested.get("lines")
    last = summary["window"]["last_snapshot"]
    for name, what, value in (
        ("input_lines", "Lines of the dumps", lines),
        (
            "quarantined_lines_ratio",
            "The share of the lines of the dumps that was not understood",
            ingested["quarantined"] / lines if lines else None,
        ),
        ("run_started_timestamp_seconds", "When the published run began", summary["started_at"]),
        ("run_duration_seconds", "How long the published run took", summary["duration_seconds"]),
        ("last_snapshot_timestamp_seconds", "The last snapshot that the published run has", last),
    ):
        # Without a value there is none, for 0 would be one.
        if value is not None:
            seconds = datetime.fromisoformat(value).timestamp() if isinstance(value, str) else value
            yield _Metric(name, what, (), {(): seconds})
