"""A published run as metrics, in Prometheus' text format, for a textfile collector.

The library escapes quotes in label values, and ``visible`` what cannot be seen. The number of
series is bounded whatever the groups are called and however many there are. Series of all kinds are
always there, so that a rule sees a zero and not a gap; only the groups that are worst come and go.

What is counted has the label ``cluster``. At most ``_MOST_CLUSTERS`` have a name there: those with
most findings. The others are counted together, as ``OTHER_CLUSTERS``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import product
from typing import Any

from prometheus_client import CollectorRegistry, Gauge, generate_latest

from jobs import __version__
from jobs.alerts.message import Digest
from jobs.kinds import FAULTS, PERSISTENT, QUEUE_FINDINGS, SEVERITIES, TRANSIENT, VERDICTS
from jobs.reports.problems import Finding
from jobs.reports.tables import Tables
from jobs.text import visible

_PERSISTENCES = (PERSISTENT, TRANSIENT)
_STATUSES = ("NEW", "PERSISTING", "NONE")
_KNOWN = ("false", "true")
#: RocketMQ takes no longer names; a dump may.
_LONGEST_LABEL = 255
#: Each has some hundred series.
_MOST_CLUSTERS = 20
#: No name of a cluster: RocketMQ allows no brackets there.
OTHER_CLUSTERS = "(others)"


def metrics_text(digest: Digest, tables: Tables, worst_groups: int) -> str:
    """The metrics of a run, with those of its ``worst_groups`` worst groups.

    All are gauges named ``rebalance_audit_...``, in base units; shares are from 0 to 1.
    """
    registry = CollectorRegistry()
    rows = {
        name: tables.read(name, ["cluster", *columns]).to_pylist()
        for name, columns in _COUNTED.items()
    }
    clusters = _shown_clusters(digest, rows)
    _findings(registry, digest, rows, clusters)
    _worst_groups(registry, digest.findings, worst_groups)
    _coverage(registry, digest, rows["group_health"], clusters)
    _run(registry, digest)
    return generate_latest(registry).decode("utf-8")


#: The tables of which rows are counted, with the columns that they are counted by.
_COUNTED = {
    "group_faults": ("fault", "persistence", "known_issue"),
    "stacked_client_ids": ("verdict", "persistence", "known_issue"),
    "former_findings": ("status",),
    "group_health": ("coverage", "completeness"),
}
_Rows = Mapping[str, Sequence[Mapping[str, Any]]]


def _label(name: str) -> str:
    return visible(name)[:_LONGEST_LABEL]


def _shown_clusters(digest: Digest, rows: _Rows) -> Mapping[str, str]:
    """How each cluster of the run is called in the label."""
    findings: Counter[str] = Counter()
    for each in digest.findings:
        findings[each.place.cluster] += len(each.ids)
    # Without any cluster the series are there all the same, as zeros.
    names = {row["cluster"] for of_table in rows.values() for row in of_table}
    worst = sorted(names | findings.keys() or {""}, key=lambda name: (-findings[name], name))
    return {
        name: _label(name) if place < _MOST_CLUSTERS else OTHER_CLUSTERS
        for place, name in enumerate(worst)
    }


def _counted(
    registry: CollectorRegistry,
    name: str,
    what: str,
    labels: dict[str, Iterable[str]],
    found: Iterable[tuple[str, ...]],
) -> None:
    """A gauge of how many rows have which labels: 0 for each combination that has none."""
    gauge = Gauge(f"rebalance_audit_{name}", what, list(labels), registry=registry)
    counts = Counter(found)
    for values in {**dict.fromkeys(product(*labels.values())), **counts}:
        gauge.labels(*values).set(counts[values])


def _single(registry: CollectorRegistry, name: str, what: str, value: float | None) -> None:
    """A gauge without labels; none where there is no value, for 0 would be one."""
    if value is not None:
        Gauge(f"rebalance_audit_{name}", what, registry=registry).set(value)


def _findings(
    registry: CollectorRegistry, digest: Digest, rows: _Rows, clusters: Mapping[str, str]
) -> None:
    shown = clusters.values()
    _counted(
        registry,
        "findings",
        "Orphaned, duplicate and stalled queues: rows of the tables of findings",
        {
            "cluster": shown,
            "kind": QUEUE_FINDINGS.values(),
            "severity": SEVERITIES,
            "persistence": _PERSISTENCES,
            "status": _STATUSES,
            "known": _KNOWN,
        },
        (
            (
                clusters[each.place.cluster],
                each.kind,
                each.severity,
                each.persistence,
                each.status or "NONE",
                _KNOWN[each.known_issue is not None],
            )
            for each in digest.findings
            for _ in each.queues
        ),
    )
    stacked = "Client ids that are more than once in a broker's list"
    faults = "Faults of groups: rows of group_faults"
    for name, table, what, label, values in (
        ("faults", "group_faults", faults, "fault", FAULTS),
        ("stacked_client_ids", "stacked_client_ids", stacked, "verdict", VERDICTS),
    ):
        _counted(
            registry,
            name,
            what,
            {"cluster": shown, label: values, "persistence": _PERSISTENCES, "known": _KNOWN},
            (
                (
                    clusters[row["cluster"]],
                    row[label],
                    row["persistence"],
                    _KNOWN[row["known_issue"] is not None],
                )
                for row in rows[table]
            ),
        )
    _counted(
        registry,
        "former_findings",
        "What was open in the published run before and is not there any more",
        {"cluster": shown, "status": ("RESOLVED", "NOT_AUDITED")},
        ((clusters[row["cluster"]], row["status"]) for row in rows["former_findings"]),
    )


def _worst_groups(
    registry: CollectorRegistry, findings: Iterable[Finding], worst_groups: int
) -> None:
    gauge = Gauge(
        "rebalance_audit_group_findings",
        "Findings of the groups that have most, known issues left out",
        ["cluster", "consumer_group", "severity"],
        registry=registry,
    )
    severe = SEVERITIES[1:]
    counts: dict[tuple[str, str], Counter[str]] = {}
    for each in findings:
        if each.severity in severe and each.known_issue is None:
            of_group = counts.setdefault(each.place[:2], Counter())
            of_group[each.severity] += len(each.ids)
    worst = sorted(counts, key=lambda group: ([-counts[group][s] for s in severe[::-1]], group))
    for group in worst[:worst_groups]:
        names = [_label(name) for name in group]
        for severity in severe:
            # Two names may be the same when they are cut: their findings are added.
            gauge.labels(*names, severity).inc(counts[group][severity])


def _coverage(
    registry: CollectorRegistry,
    digest: Digest,
    health: Sequence[Mapping[str, Any]],
    clusters: Mapping[str, str],
) -> None:
    _counted(
        registry,
        "group_topics",
        "Groups and their topics: rows of group_health",
        {"cluster": clusters.values(), "coverage": ("AUDITED",)},
        ((clusters[row["cluster"]], row["coverage"]) for row in health),
    )
    lowest: dict[str, float] = {}
    for row in health:
        if row["coverage"] == "AUDITED":
            cluster = clusters[row["cluster"]]
            lowest[cluster] = min(row["completeness"], lowest.get(cluster, 1.0))
    completeness = Gauge(
        "rebalance_audit_completeness_lowest_ratio",
        "Of the audited topics the lowest share of brokers that answered",
        ["cluster"],
        registry=registry,
    )
    for cluster, share in lowest.items():
        completeness.labels(cluster).set(share)
    summary = digest.published.summary
    rows = Gauge("rebalance_audit_rows", "Rows of a table", ["table"], registry=registry)
    for table, count in summary["rows"].items():
        rows.labels(table).set(count)
    _counted(
        registry,
        "known_issues",
        "Entries of the file of known issues; an unused one matched nothing",
        {"state": ("IN_FORCE", "UNUSED", "EXPIRED")},
        (
            ("EXPIRED" if each["expired"] else "IN_FORCE" if each["marked"] else "UNUSED",)
            for each in summary["known_issues"]
        ),
    )


def _run(registry: CollectorRegistry, digest: Digest) -> None:
    summary = digest.published.summary
    Gauge(
        "rebalance_audit_build_info",
        "The version of the audit that wrote these metrics",
        ["version"],
        registry=registry,
    ).labels(__version__).set(1)
    ingested = summary["inputs"]["ingested"] or {}
    lines = ingested.get("lines")
    _single(registry, "input_lines", "Lines of the dumps", lines)
    _single(
        registry,
        "quarantined_lines_ratio",
        "The share of the lines of the dumps that was not understood",
        ingested["quarantined"] / lines if lines else None,
    )
    _single(
        registry,
        "run_started_timestamp_seconds",
        "When the published run began",
        datetime.fromisoformat(summary["started_at"]).timestamp(),
    )
    _single(
        registry,
        "run_duration_seconds",
        "How long the published run took",
        summary["duration_seconds"],
    )
    _single(
        registry,
        "last_snapshot_timestamp_seconds",
        "The last snapshot that the published run has",
        datetime.fromisoformat(summary["window"]["last_snapshot"]).timestamp(),
    )
