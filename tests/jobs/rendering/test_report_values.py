"""What the report says, as values: the verdict, the findings of a topic, health and coverage."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.rendering.page import to_html
from jobs.rendering.page_values import Card, PageValues, build_report
from jobs.rendering.pictures import Pictures, ranges
from tests.support.published import (
    RowTables,
    allocation,
    fault,
    finding,
    health,
    minute,
    published,
    queue,
    run,
    two_processes_share_one_client_id,
)

INFO = {"severity": "INFO", "persistence": "TRANSIENT", "ongoing": False}


def report(top: int = 10, **tables: list[dict[str, Any]]) -> PageValues:
    return build_report(published(), RowTables(**tables), top)


def drawn(card: Card) -> Pictures:
    assert card.pictures is not None
    return card.pictures


PASSED = "1 topic had a short disturbance and recovered (deploy, restart)."
BEGUN = (
    "In 1 topic something does not count: it was not seen for long yet, is too unlikely, or harms "
    "nobody."
)
KNOWN = "In 1 topic something is a known issue, which does not count."


@pytest.mark.parametrize(
    ("orphans", "level", "sentence", "remarks"),
    [
        ([], "OK", "Nothing was found.", []),
        ([finding(**INFO)], "INFO", "Nothing lasting was found.", [PASSED]),
        ([finding(**INFO | {"ongoing": True})], "INFO", "Nothing lasting was found.", [BEGUN]),
        ([finding(known_issue="OPS-1")], "OK", "Nothing was found.", [KNOWN]),
        (
            [finding(severity="WARNING", ongoing=False)],
            "WARNING",
            "1 topic of 1 group has lasting faults.",
            ["None of them is left in the last snapshot."],
        ),
        (
            [finding(), finding(topic="T2", severity="WARNING", ongoing=False)],
            "CRITICAL",
            "2 topics of 1 group have lasting faults, 1 critical.",
            ["1 is still there in the last snapshot, 1 critical."],
        ),
        (
            [finding(ongoing=False), finding(1, severity="WARNING")],
            "CRITICAL",
            "1 topic of 1 group has lasting faults, 1 critical.",
            ["1 is still there in the last snapshot, none critical."],
        ),
        (
            [finding(), finding(consumer_group="G2")],
            "CRITICAL",
            "2 topics of 2 groups have lasting faults, all critical.",
            ["2 are still there in the last snapshot."],
        ),
        (
            [finding()],
            "CRITICAL",
            "1 topic of 1 group has lasting faults, 1 critical.",
            ["1 is still there in the last snapshot."],
        ),
    ],
)
def test_the_verdict_counts_what_lasts_and_nobody_knows(
    orphans: list[dict[str, Any]], level: str, sentence: str, remarks: list[str]
) -> None:
    verdict = report(orphaned_queues=orphans).verdict
    assert (verdict.level, verdict.sentence, list(verdict.remarks)) == (level, sentence, remarks)


def test_the_verdict_says_what_was_not_audited_and_what_cannot_be_read() -> None:
    rows = [health(), health(topic="U", coverage="NO_BROKER_ANSWERED")]
    verdict = report(group_health=rows, unreadable_queues=[finding(0), finding(1)]).verdict
    assert verdict.level == "INCOMPLETE"
    assert verdict.remarks == (
        "1 thing was not read or not audited.",
        "In 1 topic queues are written that nobody can read.",
    )


def test_findings_that_differ_in_nothing_but_the_queue_are_one_line_the_worst_first() -> None:
    rows = [
        finding(3, backlog=5),
        finding(2, backlog=7),
        finding(1),
        finding(0, severity="WARNING"),
        finding(4, ongoing=False),
        finding(5, first_seen=minute(2)),
        finding(6, causes=None, status=None, certainty=None, known_issue="OPS-1", **INFO),
    ]
    stalled = [finding(7, severity="WARNING", ongoing=False, backlog=0)]
    (card,) = report(orphaned_queues=rows, stalled_queues=stalled).cards
    told = [(f.kind, f.severity, f.ongoing, ranges("T", f.queues)) for f in card.findings]
    assert told == [
        ("ORPHANED", "CRITICAL", True, "queue 5 of broker-a"),
        ("ORPHANED", "CRITICAL", True, "queues 1-3 of broker-a"),
        ("ORPHANED", "WARNING", True, "queue 0 of broker-a"),
        ("ORPHANED", "CRITICAL", False, "queue 4 of broker-a"),
        ("STALLED", "WARNING", False, "queue 7 of broker-a"),
    ]
    assert [each.waiting.messages for each in card.findings] == [None, 12, None, None, 0]
    first, (last,) = card.findings[0], report(orphaned_queues=rows[-1:]).cards[0].findings
    assert (first.certainty, first.status) == ("CERTAIN", "NEW")
    assert first.causes == ("DUPLICATE_CLIENT_ID",)
    assert (last.causes, last.status, last.certainty) == ((), None, None)
    assert last.known_issue == "OPS-1"


def test_a_topic_is_told_with_its_own_rows_alone() -> None:
    tables = two_processes_share_one_client_id()
    others = two_processes_share_one_client_id(topic="T2")
    both = {name: [*rows, *others[name]] for name, rows in tables.items()}
    first, second = report(**both).cards
    (alone,) = report(**tables).cards
    assert (first.findings, first.pictures) == (alone.findings, alone.pictures)
    assert (first.anchor, second.anchor) == ("G/T", "G/T2")
    assert [each.pictures is None for each in report(top=1, **both).cards] == [False, True]


def test_every_cause_has_a_picture_before_one_has_two() -> None:
    """Of 54 topics ten had pictures, eight of them of one cause."""
    tables = two_processes_share_one_client_id()
    for number in range(5):
        others = two_processes_share_one_client_id(topic=f"T{number}")
        tables = {name: [*rows, *others[name]] for name, rows in tables.items()}
    mild = {"topic": "mild", "queues_affected": 0, "severity": "WARNING"}
    tables["group_faults"].append(fault("GHOST_MEMBER", **mild))
    found = report(top=3, **tables)
    pictured = [each.problem.place.topic for each in found.cards if each.pictures]
    assert pictured == ["T", "T0", "mild"]
    assert len(found.cards) == 7
    assert not any(each.pictures for each in report(top=0, **tables).cards)


def test_the_moves_are_told_in_words_and_the_owners_by_number() -> None:
    (card,) = report(**two_processes_share_one_client_id()).cards
    detail = drawn(card)
    assert [tuple(row.values()) for row in detail.moved] == [
        ("queues 0-1 of broker-a", "a x 2", "a"),
        ("queues 2-3 of broker-a", "nobody", "a (process 2)"),
    ]
    assert detail.repair is not None
    assert detail.repair.moved == 4
    assert detail.numbers == {"a": 1, "b": 2}


def test_the_repair_is_that_of_the_fault_that_explains_most_and_moves_anything() -> None:
    tables = two_processes_share_one_client_id()
    (shared,) = tables["group_faults"]
    moves = shared["moves"]
    tables["group_faults"] = [
        fault("GHOST_MEMBER", queues_affected=9),
        fault("STRATEGY_MISMATCH", queues_affected=1, moves=moves),
        {**shared, "last_seen": minute(12), "moves": moves[:1]},
        {**shared, "queues_affected": 4},
    ]
    detail = drawn(report(**tables).cards[0])
    assert detail.repair is not None
    assert (detail.repair.fault["fault"], detail.repair.moved) == ("DUPLICATE_CLIENT_ID", 4)
    tables["group_faults"] = [fault("GHOST_MEMBER")]
    detail = drawn(report(**tables).cards[0])
    assert (detail.repair, detail.moved) == (None, ())


def test_many_owners_and_queues_are_counted_where_they_are_left_out() -> None:
    runs, own = [run("s", 0, 30)], [allocation("s", f"c{n:02}", [n]) for n in range(60)]
    detail = drawn(report(orphaned_queues=[finding(60)], state_runs=runs, allocations=own).cards[0])
    assert detail.timeline is not None
    assert detail.timeline.lanes_left_out == 61 - 24
    assert len(detail.numbers) == 23
    several = [allocation("s", f"c{n:02}", [0]) for n in range(60)]
    crowd = report(orphaned_queues=[finding(0)], state_runs=runs, allocations=several)
    assert len(drawn(crowd.cards[0]).numbers) == 60
    page = to_html(crowd, "reports")
    assert page.count('<span class="swatch o') == 40
    assert "and 20 more" in page


def test_former_findings_and_unreadable_queues_of_a_place_are_one_row() -> None:
    rows = [
        finding(2, kind="ORPHANED", status="RESOLVED", first_seen=minute(1)),
        finding(1, kind="ORPHANED", status="RESOLVED", last_seen=minute(30)),
        finding(1, kind="DUPLICATE", status="NOT_AUDITED"),
    ]
    former = report(former_findings=rows).former
    assert [(each["status"], each["kind"], each["queues"]) for each in former] == [
        ("NOT_AUDITED", "DUPLICATE", "queue 1 of broker-a"),
        ("RESOLVED", "ORPHANED", "queues 1-2 of broker-a"),
    ]
    early, late = finding(0, first_seen=minute(1)), finding(1, last_seen=minute(30))
    unreadable = report(unreadable_queues=[early, late, finding(0, topic="A")]).unreadable
    expected = [("A", "queue 0 of broker-a"), ("T", "queues 0-1 of broker-a")]
    assert [(each["place"].topic, each["queues"]) for each in unreadable] == expected
    for last in (former[1], unreadable[1]):
        assert (last["first_seen"], last["last_seen"]) == (minute(1), minute(30))


def test_only_lasting_drift_that_no_change_explains_is_counted() -> None:
    by_topic = {"T0": "SHARE_KEPT", "T2": "SHARE_KEPT"}
    by_topic |= {"T3": "ROUTE_CHANGED", "T4": "STATE_CHANGED"}
    rows = [finding(topic=topic, attributed_to=each) for topic, each in by_topic.items()]
    rows += [finding(topic="T1", attributed_to=each) for each in (None, "OTHER_LIST")]
    rows += [finding(topic="T5", attributed_to=None, persistence="TRANSIENT")]
    rows = [{**row, "drift": "HELD_NOT_COMPUTED"} for row in rows]
    assert report(allocation_drift=rows).verdict.others["HELD_NOT_COMPUTED"] == 3


def test_a_groups_health_is_that_of_all_its_topics() -> None:
    most = {"worst_severity": "WARNING", "members": 3, "idle_clients": 1, "backlog": 1_200}
    more = {"processes": 5, "queues": 8, "backlog": 34, "worst_severity": "INFO"}
    worse = {"imbalance": 2, "completeness": 0.5, "duplicate_queue_minutes": 2.0}
    rows = [
        health(**most, orphan_queue_minutes=1.0),
        health(topic="U", **more, **worse),
        health(topic="V", coverage="NOT_SUBSCRIBED", orphan_queue_minutes=3.0),
        health(topic="W", coverage="NO_GROUP", consumer_group=""),
    ]
    (group,) = report(group_health=rows).health
    assert (group["severity"], group["topics"], group["audited"]) == ("WARNING", 3, 2)
    assert (group["members"], group["processes"], group["queues"]) == (3, 5, 16)
    assert (group["idle_clients"], group["imbalance"], group["completeness"]) == (1, 2, 0.5)
    assert (group["orphan_minutes"], group["duplicate_minutes"]) == (4.0, 2.0)
    assert "<td>1,234</td>" in to_html(report(group_health=rows), "r")


def test_the_worst_group_comes_first() -> None:
    groups: dict[str, dict[str, Any]] = {
        "critical": {"worst_severity": "CRITICAL"},
        "longest": {"worst_severity": "WARNING", "duplicate_queue_minutes": 10.0},
        "long": {"worst_severity": "WARNING", "orphan_queue_minutes": 9.0},
        "passed": {"worst_severity": "INFO"},
        "not audited": {"coverage": "NO_BROKER_ANSWERED"},
        "partly known": {"completeness": 0.5},
        "best known": {"cluster": "B"},
        "fine": {},
    }
    rows = [health(consumer_group=name, **told) for name, told in sorted(groups.items())]
    assert [each["consumer_group"] for each in report(group_health=rows).health] == list(groups)


def test_a_group_whose_fault_no_queue_shows_is_as_bad_as_the_fault() -> None:
    """Its topic has no route, so that no queue of it was audited."""
    unknown = fault("UNKNOWN_TOPIC", severity="WARNING", status="NEW", finding_id="f")
    rows = [health(coverage="ROUTE_NOT_KNOWN"), health(consumer_group="other")]
    told = report(group_health=rows, group_faults=[unknown])
    expected = [("G", "WARNING"), ("other", "")]
    assert [(each["consumer_group"], each["severity"]) for each in told.health] == expected
    row = to_html(told, "r").partition('<tr id="group-1"')[2].partition("</tr>")[0]
    assert ("WARNING" in row, "not audited" in row) == (True, False)


def test_coverage_tells_what_was_audited_and_how_well() -> None:
    rows = [
        health(topic="A", audited_snapshots=59),
        health(topic="B", strategy_source="assumed", completeness=0.75),
        health(topic="C", completeness=0.5),
        health(topic="Z", coverage="NOT_SUBSCRIBED", completeness=0.0, audited_snapshots=0),
        health(topic="Y", coverage="NO_BROKER_ANSWERED", strategy_source="assumed"),
        health(topic="X", coverage="NO_BROKER_ANSWERED", reason="why"),
    ]
    coverage = report(group_health=rows).coverage
    assert (coverage["audited"], coverage["partly"], coverage["assumed"]) == (3, 1, 1)
    incomplete = [(place.topic, share) for place, share in coverage["incomplete"]]
    assert incomplete == [("C", 0.5), ("B", 0.75)]
    assert [each["place"].topic for each in coverage["not_audited"]] == ["Z", "X", "Y"]
    assert coverage["not_audited"][1]["reason"] == "why"
    assert coverage["by_coverage"] == [("NOT_SUBSCRIBED", 1), ("NO_BROKER_ANSWERED", 2)]


def test_a_topic_that_was_not_audited_for_a_time_is_not_fine() -> None:
    blind = health(
        topic="A",
        unaudited_coverage="NO_BROKER_ANSWERED",
        unaudited_since=minute(1),
        unaudited_until=minute(2),
    )
    (group,) = report(group_health=[blind, health(topic="B")]).health
    assert (group["audited"], group["left_out"]) == (2, 1)


def test_quarantined_lines_are_counted_by_reason_the_commonest_first() -> None:
    rows = [
        *({"reason": "b", "file": f"file-{n}"} for n in (2, 1)),
        *({"reason": f"a{n:02}", "file": "f"} for n in range(30)),
    ]
    quarantine = report(quarantine=rows).quarantine
    assert (quarantine["lines"], quarantine["lines_in"]) == (32, None)
    assert quarantine["reasons"][:2] == [("b", 2, "file-1"), ("a00", 1, "f")]
    assert len(quarantine["reasons"]) == 20
    run_of_dumps = published(inputs={"ingested": {"lines": 100, "quarantined": 0}})
    assert build_report(run_of_dumps, RowTables(), 1).quarantine["lines_in"] == 100


def test_a_stall_is_as_certain_in_the_table_of_its_card_as_in_its_badge() -> None:
    """Offsets show it: the table of stalls has no column that says how sure it is."""
    html = to_html(report(stalled_queues=[finding(certainty=None)]), "r")
    table = html.partition("Findings of this topic")[2].partition("</table>")[0]
    assert "<td>certain</td>" in table


def test_queues_of_one_number_on_two_brokers_are_two() -> None:
    rows = [finding(0), finding(0, **queue(0, "broker-b"))]
    (problem,) = report(orphaned_queues=rows).problems
    assert problem.lasting == {"ORPHANED": 2}
