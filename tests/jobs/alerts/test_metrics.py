"""a published run -> metrics, read back by the library's own parser."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from jobs import __version__
from jobs.alerts.message import read_digest
from jobs.alerts.metrics import metrics_text
from jobs.reports.tables import PublishedTables
from jobs.storage import Location, Reports
from jobs.texts.shown import visible
from tests.support.written_reports import NOON, TABLES, publish, report_row

LATER = NOON + timedelta(hours=1)
Series = dict[tuple[str, frozenset[tuple[str, str]]], float]


def read(folder: Path, worst_groups: int = 20, date: str = "2026-11-20", **of_run: Any) -> Series:
    """Every series of a run of these tables, or values of the summary.

    Each by its name, without the common prefix, and its labels.
    """
    rows = {name: of_run.pop(name) for name in TABLES if name in of_run}
    published = publish(folder, date, rows, **of_run)
    tables = PublishedTables(Reports(Location(folder)), published)
    text = metrics_text(read_digest(published, tables), tables, worst_groups)
    series = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            name = sample.name.removeprefix("rebalance_audit_")
            series[name, frozenset(sample.labels.items())] = sample.value
    return series


def value(series: Series, name: str, **labels: str) -> float:
    """The sum of the series that have these labels; KeyError where there is none."""
    of_name = [(dict(its), each) for (of, its), each in series.items() if of == name]
    found = [each for its, each in of_name if labels.items() <= its.items()]
    if not found:
        raise KeyError(name)
    return sum(found)


def values_of(series: Series, name: str, label: str) -> set[str]:
    """The values of a label of a metric."""
    return {dict(its)[label] for of, its in series if of == name}


def test_findings_are_counted_by_kind_severity_persistence_status_and_known(tmp_path: Path) -> None:
    orphan, known = report_row("orphaned_queues"), {"known_issue": "OPS-1"}
    passed = {"persistence": "TRANSIENT", "severity": "INFO", "status": None}
    series = read(
        tmp_path,
        orphaned_queues=[orphan, orphan | {"queue_id": 1} | known, orphan | passed],
        duplicate_queues=[report_row("duplicate_queues", severity="WARNING")],
        stalled_queues=[report_row("stalled_queues")],
        group_faults=[
            report_row("group_faults", fault="STRATEGY_MISMATCH", queues_affected=2),
            report_row("group_faults", fault="A_LATER_ONE", **known),
        ],
        stacked_client_ids=[report_row("stacked_client_ids", verdict="STACKED", **known)],
        former_findings=[report_row("former_findings", status="RESOLVED")],
    )
    assert value(series, "findings") == 5
    assert value(series, "findings", kind="ORPHANED", severity="CRITICAL", known="false") == 1
    assert value(series, "findings", kind="ORPHANED", known="true", status="NEW") == 1
    assert value(series, "findings", persistence="TRANSIENT", status="NONE") == 1
    assert value(series, "findings", kind="DUPLICATE", severity="WARNING") == 1
    assert value(series, "findings", kind="STALLED", status="NEW") == 1
    assert value(series, "faults", fault="STRATEGY_MISMATCH") == 1
    assert value(series, "faults", fault="A_LATER_ONE", known="true") == 1
    stacked = {"verdict": "STACKED", "persistence": "PERSISTENT"}
    assert value(series, "stacked_client_ids", **stacked, known="true") == 1
    assert value(series, "former_findings", status="RESOLVED") == 1


def test_what_did_not_happen_is_zero_and_what_is_not_known_is_not_there(tmp_path: Path) -> None:
    series = read(tmp_path, inputs={"ingested": None}, duration_seconds=None)
    assert value(series, "findings", kind="DUPLICATE", severity="CRITICAL", status="NEW") == 0
    assert value(series, "faults", fault="GHOST_MEMBER") == 0
    of_dumps = ("quarantined_lines_ratio", "input_lines", "run_duration_seconds")
    for name in (*of_dumps, "completeness_lowest_ratio", "group_findings"):
        with pytest.raises(KeyError):
            value(series, name)


def test_the_run_its_input_and_its_coverage_are_told(tmp_path: Path) -> None:
    known = {"reason": "", "expires": "2026-01-01", "expired": False}
    series = read(
        tmp_path,
        group_health=[
            report_row("group_health"),
            report_row("group_health", topic="U", completeness=0.5),
            report_row("group_health", topic="V", coverage="NO_GROUP", completeness=0.0),
        ],
        known_issues=[
            {**known, "expired": True, "marked": {}},
            {**known, "marked": {"orphaned_queues": 2}},
            {**known, "marked": {}},
        ],
    )
    assert value(series, "input_lines") == 200
    assert value(series, "quarantined_lines_ratio") == 0.025
    assert value(series, "run_duration_seconds") == 12.5
    assert value(series, "run_started_timestamp_seconds") == 1795204800.0
    assert value(series, "last_snapshot_timestamp_seconds") == 1795204740.0
    assert value(series, "completeness_lowest_ratio") == 0.5
    assert value(series, "group_topics", coverage="AUDITED") == 2
    assert value(series, "group_topics", coverage="NO_GROUP") == 1
    assert value(series, "rows", table="group_health") == 3
    for state in ("EXPIRED", "IN_FORCE", "UNUSED"):
        assert value(series, "known_issues", state=state) == 1


def test_the_worst_groups_have_most_critical_findings_not_known(tmp_path: Path) -> None:
    def orphans(group: str, number: int, **values: Any) -> list[dict[str, Any]]:
        row = report_row("orphaned_queues", consumer_group=group, **values)
        return [row | {"queue_id": n} for n in range(number)]

    rows = [
        *orphans("worst", 2),
        *orphans("warned", 9, severity="WARNING"),
        *orphans("known", 9, known_issue="OPS-1"),
        *orphans("passed", 9, severity="INFO"),
        *orphans("few", 1),
    ]
    for number, groups in ((1, {"worst"}), (2, {"worst", "few"}), (20, {"worst", "few", "warned"})):
        series = read(tmp_path, number, f"2026-11-{number:02}", orphaned_queues=rows)
        assert values_of(series, "group_findings", "consumer_group") == groups
    assert value(series, "group_findings", consumer_group="worst", severity="CRITICAL") == 2
    assert value(series, "group_findings", consumer_group="warned", severity="WARNING") == 9
    assert value(series, "group_findings", consumer_group="warned", severity="CRITICAL") == 0


@pytest.mark.long
def test_names_from_strangers_stay_label_values_and_cannot_add_series(tmp_path: Path) -> None:
    hostile = ['"} 1\nevil_metric{a="', "back\\slash\\n", "日本\u2028", "x" * 10_000, "'; DROP", ""]
    rows = [
        report_row("orphaned_queues", consumer_group=name, cluster=name)
        for name in (*hostile, *(f"G{n}" for n in range(60)))
    ]
    series = read(tmp_path, 100, orphaned_queues=rows)
    groups = values_of(series, "group_findings", "consumer_group")
    assert {visible(name)[:255] for name in hostile} <= groups
    assert not any("evil" in name for name, _ in series)
    few = read(tmp_path, 20, "2026-11-21", orphaned_queues=rows)
    assert len([name for name, _ in few if name == "group_findings"]) == 40
    # 21 values of the label cluster, each with every kind, severity and so on.
    assert len(values_of(few, "findings", "cluster")) == 21
    assert len(few) < 7000


def test_what_is_counted_has_its_cluster_and_beyond_the_worst_all_are_one(tmp_path: Path) -> None:
    rows = [
        report_row("orphaned_queues", cluster=f"C{n:02}", queue_id=queue)
        for n in range(25)
        for queue in range(30 - n)
    ]
    health = [
        report_row("group_health", cluster="C00", completeness=0.5),
        report_row("group_health", cluster="C01"),
        report_row("group_health", cluster="healthy", coverage="NO_GROUP"),
    ]
    faults = [report_row("group_faults", cluster="C01", fault="GHOST_MEMBER")]
    series = read(tmp_path, orphaned_queues=rows, group_health=health, group_faults=faults)
    assert value(series, "findings", cluster="C00", kind="ORPHANED") == 30
    assert value(series, "findings", cluster="C19", kind="ORPHANED") == 11
    assert value(series, "findings", cluster="(others)", kind="ORPHANED") == 10 + 9 + 8 + 7 + 6
    assert value(series, "faults", cluster="C01", fault="GHOST_MEMBER") == 1
    assert value(series, "faults", cluster="C00", fault="GHOST_MEMBER") == 0
    assert value(series, "completeness_lowest_ratio", cluster="C00") == 0.5
    assert value(series, "completeness_lowest_ratio", cluster="C01") == 1.0
    assert value(series, "group_topics", cluster="(others)", coverage="NO_GROUP") == 1


def test_the_version_that_wrote_the_metrics_is_a_label(tmp_path: Path) -> None:
    series = read(tmp_path)
    assert value(series, "build_info", version=__version__) == 1


def test_the_findings_of_groups_whose_names_look_the_same_are_added(tmp_path: Path) -> None:
    names = ("x" * 300, "x" * 301, "a\n", "a\\n")
    rows = [report_row("orphaned_queues", consumer_group=name) for name in names]
    series = read(tmp_path, orphaned_queues=rows)
    for shown in ("x" * 255, "a\\n"):
        assert value(series, "group_findings", consumer_group=shown, severity="CRITICAL") == 2


def test_what_waits_is_that_of_lasting_faults_by_cluster_and_worst_group(tmp_path: Path) -> None:
    """600 a minute are 10 a second; of a healthy topic and of a known issue nothing is counted."""
    waits = {"backlog": 50, "backlog_per_minute": 600.0, "waiting_since": NOON}
    tables = {
        "orphaned_queues": [
            report_row("orphaned_queues", consumer_group="worst"),
            report_row("orphaned_queues", consumer_group="worse"),
            report_row("orphaned_queues", consumer_group="known", known_issue="OPS-1"),
        ],
        "group_health": [
            report_row("group_health", consumer_group=each, last_seen=LATER, **waits)
            for each in ("worst", "worse", "known", "healthy")
        ],
    }
    at_first = {"backlog": 51, "backlog_per_minute": 0.0, "queues_without_offsets": 2}
    tables["group_health"][0] |= at_first
    series = read(tmp_path, 1, **tables)
    assert value(series, "backlog_messages", cluster="C") == 101
    assert value(series, "backlog_growth_messages_per_second", cluster="C") == 10
    assert value(series, "backlog_oldest_timestamp_seconds", cluster="C") == NOON.timestamp()
    assert value(series, "backlog_queues_without_offsets", cluster="C") == 2
    of_groups = {its: each for (name, its), each in series.items() if "group_backlog" in name}
    assert list(of_groups.values()) == [51]
    # Of some queues nothing waits, of others it is not known.
    tables["group_health"][0]["backlog"] = 0
    series = read(tmp_path, 2, "2026-11-23", **tables)
    assert values_of(series, "group_backlog_messages", "consumer_group") == {"worse"}
    assert value(series, "backlog_queues_without_offsets", cluster="C") == 2
    # Where no offsets came, that nothing waits would be an all-clear for what nobody knows.
    for row in tables["group_health"]:
        row |= {"backlog": None, "backlog_per_minute": None, "waiting_since": None}
    series = read(tmp_path, 1, "2026-11-21", **tables)
    assert not [name for name, _ in series if "backlog" in name]
    series = read(tmp_path, 1, "2026-11-22", group_health=tables["group_health"])
    assert value(series, "backlog_messages", cluster="C") == 0
