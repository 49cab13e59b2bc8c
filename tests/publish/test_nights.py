"""How each group was in a night, as the summary has it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import jobs.publish.publish
from tests.support.published import minute
from tests.support.written_reports import Row, publish, report_row

DAY = "2026-11-20"


def levels(folder: Path, **tables: list[Row]) -> dict[str, Any]:
    return publish(folder, DAY, tables).summary["groups"]


def orphan(finding_id: str, group: str = "G", **values: Any) -> Row:
    return report_row("orphaned_queues", finding_id=finding_id, consumer_group=group, **values)


def health(group: str, coverage: str = "AUDITED", topic: str = "T") -> Row:
    return report_row("group_health", consumer_group=group, coverage=coverage, topic=topic)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([orphan("a"), orphan("b", severity="WARNING")], ("CRITICAL", 1)),
        ([orphan("a", severity="WARNING"), orphan("b", severity="WARNING")], ("WARNING", 2)),
        # Twice in a night, and one finding.
        ([orphan("a"), orphan("a", severity="WARNING")], ("CRITICAL", 1)),
        ([orphan("a", persistence="TRANSIENT", severity="INFO")], ("INFO", 0)),
        ([orphan("a", known_issue="OPS-1")], ("INFO", 0)),
        ([orphan("a", known_issue="OPS-1"), orphan("b", severity="WARNING")], ("WARNING", 1)),
        ([], ("OK", 0)),
    ],
    ids=["worst", "same", "twice", "passed", "known", "known and another", "nothing"],
)
def test_a_group_is_as_bad_as_what_lasts_and_is_no_known_issue(
    tmp_path: Path, rows: list[Row], expected: tuple[str, int]
) -> None:
    found = levels(tmp_path, orphaned_queues=rows, group_health=[health("G")])
    group = found["clusters"]["C"]["G"]
    assert (group["level"], group["findings"]) == expected


def test_a_fault_counts_where_no_queue_shows_it(tmp_path: Path) -> None:
    faults = [
        report_row("group_faults", consumer_group="alone", fault="EXPRESSION_MISMATCH"),
        report_row("group_faults", consumer_group="shown", fault="GHOST_MEMBER", queues_affected=2),
    ]
    queue = orphan("q", "shown", causes=["GHOST_MEMBER"], known_issue="OPS-1")
    found = levels(tmp_path, group_faults=faults, orphaned_queues=[queue])
    group = {name: each["level"] for name, each in found["clusters"]["C"].items()}
    assert group == {"alone": "CRITICAL", "shown": "INFO"}


def test_a_group_of_which_nothing_was_judged_is_not_called_well(tmp_path: Path) -> None:
    known = {**health("known", "NO_TOPIC"), "known_issue": "OPS-1"}
    blind = {"unaudited_since": minute(5), "unaudited_until": minute(25)}
    rows = [
        *(health("partly"), health("partly", "NO_TOPIC", "U"), health("never", "NO_TOPIC")),
        *(health("by choice", "BROADCASTING"), known),
        {**health("for a time"), "unaudited_coverage": "NO_BROKER_ANSWERED", **blind},
    ]
    found = levels(tmp_path, group_health=rows)
    group = {name: each["level"] for name, each in found["clusters"]["C"].items()}
    not_audited = dict.fromkeys(("partly", "never", "for a time"), "NOT_AUDITED")
    assert group == {**not_audited, "by choice": "OK", "known": "OK"}


def test_of_too_many_groups_the_worst_are_named_and_the_others_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs.publish.publish, "MOST_GROUPS", 2)
    rows = [health(name) for name in "abc"] + [health("d", "NO_ROUTE")]
    found = levels(tmp_path, orphaned_queues=[orphan("1", "c")], group_health=rows)
    assert list(found["clusters"]["C"]) == ["c", "d"]
    assert found["left_out"] == 2
