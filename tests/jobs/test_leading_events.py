"""The events that lead: which they are, and that page, ticket, message and console begin so."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from jobs.alerts.message import make_message, problems_to_send, read_digest
from jobs.commands.batch import what_happened
from jobs.config.settings import Alerts
from jobs.languages.language import ENGLISH, language
from jobs.rendering.page import to_html, to_markdown
from jobs.rendering.page_values import build_report
from jobs.reports.leading_events import leading_events, packed
from jobs.reports.tables import PublishedTables
from jobs.storage import Location, Reports
from jobs.storage.summaries import check_summary
from rebalance_core.texts import Text
from tests.support.published import RowTables, published
from tests.support.written_reports import NOON, SUMMARY, publish, report_row


def event(kind: str = "MASTER_LEFT", minute: int = 0, **values: Any) -> dict[str, Any]:
    subject = values.get("subject", "broker-a")
    return {
        "event_id": f"id {minute}",
        "cluster": "C",
        "kind": kind,
        "subject": subject,
        "begins": NOON + timedelta(minutes=minute),
        "ends": None,
        "groups_touched": 1,
        "queues_lost": 0,
        "messages_lost": 0,
        "queues_read_twice": 0,
        "findings": 0,
        "headline": Text("the master of {broker} left", broker=f"{subject} {minute}"),
        "evidence": Text("no route names the master"),
        "texts": None,
        **values,
    }


DAY = [
    *(event("GROUP_DEPLOYED", minute) for minute in range(40)),
    event("GROUP_DEPLOYED", 50, findings=2),
    event(minute=52, groups_touched=32),
    event(minute=51, queues_lost=1),
    event("COLLECTOR_AWAY", 53),
]


def headlines(summary: dict[str, Any], most: int) -> list[str]:
    found, _ = leading_events(summary, most)
    return [str(each.headline).removeprefix("the master of broker-a ") for each in found]


def test_what_touched_many_groups_leads_then_what_cost_most_and_no_mere_deploy() -> None:
    summary = packed(DAY)
    assert summary["events"]["total"] == 44
    expected = {"MASTER_LEFT": 2, "COLLECTOR_AWAY": 1, "GROUP_DEPLOYED": 41}
    assert summary["events"]["kinds"] == expected
    assert headlines(summary, 1) == ["52 left"]
    assert headlines(summary, 2) == ["52 left", "51 left"]
    assert headlines(summary, 99) == ["52 left", "51 left", "50 left", "53 left"]
    assert leading_events(summary, 99)[1] == 40


def test_a_summary_has_the_first_ones_of_very_many() -> None:
    summary = packed([event(minute=n) for n in range(30)])
    assert len(summary["events"]["first"]) == 20
    assert leading_events(summary, 99)[1] == 10


def test_what_is_no_list_of_events_is_refused() -> None:
    check_summary(SUMMARY)
    check_summary({**SUMMARY, **packed(DAY)})
    for wrong in ([], {"total": 1}, {"total": 1, "first": [{"begins": "soon"}]}):
        with pytest.raises(ValueError, match="events"):
            check_summary({**SUMMARY, "events": wrong})


def test_a_text_that_was_masked_as_a_whole_is_english() -> None:
    summary = packed([event(evidence="(secret 3f2a9c) left")])
    assert [str(each.evidence) for each in leading_events(summary, 1)[0]] == [
        "(secret 3f2a9c) left"
    ]


def test_a_page_and_a_ticket_begin_with_what_happened() -> None:
    run = published(**packed([event(subject="<b>|x", groups_touched=2), *DAY[:3]]))
    report = build_report(run, RowTables(), 1)
    html = to_html(report, "out/reports")
    assert html.index('id="verdict"') < html.index('id="events"') < html.index('id="findings"')
    assert "<strong>the master of &lt;b&gt;|x 0 left</strong> (no route names the master)" in html
    assert "3 more events" in html
    ticket = to_markdown(report, "out/reports", language=language("zh"), finding_pages=None, top=10)
    assert "## 发生了什么\n\n- **the master of" not in ticket
    assert "## 发生了什么\n\n- **&lt;b&gt;\\|x 0 的主节点离开**（路由中没有主节点）\n" in ticket
    assert "What happened" not in to_html(build_report(published(), RowTables(), 1), "out/reports")


def test_a_message_begins_with_the_events_that_lead(tmp_path: Path) -> None:
    tables = {"orphaned_queues": [report_row("orphaned_queues")]}
    run = publish(tmp_path, "2026-11-20", tables, **packed(DAY))
    digest = read_digest(run, PublishedTables(Reports(Location(tmp_path)), run))
    message = make_message(digest, problems_to_send(digest, Alerts(), {}), Alerts(), ENGLISH, {})
    heading, *lines = message.lines
    # Beside one that touched several groups none of one alone.
    assert lines[0] == "• the master of broker-a 52 left"
    assert "consumed by nobody" in lines[1]
    # Where there is no room for any problem there is none for events.
    assert message.shortened(0)[0] == heading
    assert len(message.shortened(0)) == 2


def test_the_console_begins_with_the_events_that_lead() -> None:
    assert what_happened(published(**packed(DAY)), ENGLISH) == [
        *(f"the master of broker-a {n} left" for n in (52, 51, 50)),
        "and 41 more events: rebalance-audit show events",
    ]
    # Of a healthy day's deploys there is nothing to say.
    assert what_happened(published(**packed(DAY[:40])), ENGLISH) == []
