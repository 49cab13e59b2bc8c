"""The events that lead: which they are, and that page, ticket, message and console begin so."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from jobs.alerts.message import make_message, problems_to_send, read_digest
from jobs.config.settings import Alerts
from jobs.languages.language import ENGLISH, language
from jobs.languages.translated_rows import texts_of
from jobs.rendering.page import to_html, to_markdown
from jobs.rendering.page_values import build_report
from jobs.reports.run_findings import leading_events
from jobs.reports.tables import PublishedTables
from jobs.shell.closing import what_happened
from jobs.storage import Location, Reports
from rebalance_core.texts import Text
from tests.support.published import RowTables, published
from tests.support.written_reports import NOON, publish, report_row


def event(kind: str = "MASTER_LEFT", minute: int = 0, **values: Any) -> dict[str, Any]:
    subject = values.get("subject", "broker-a")
    row = {
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
        **values,
    }
    return row | {"texts": texts_of(row)}


DAY = [
    *(event("GROUP_DEPLOYED", minute) for minute in range(40)),
    event("GROUP_DEPLOYED", 50, findings=2),
    event(minute=52, groups_touched=32),
    event(minute=51, queues_lost=1),
    event("COLLECTOR_AWAY", 53),
]


def headlines(tables: Any, most: int) -> list[str]:
    found, _ = leading_events(tables, most)
    return [str(each.headline).removeprefix("the master of broker-a ") for each in found]


def test_what_touched_many_groups_leads_then_what_cost_most_and_no_mere_deploy() -> None:
    tables: Any = RowTables(events=DAY)
    assert headlines(tables, 1) == ["52 left"]
    assert headlines(tables, 2) == ["52 left", "51 left"]
    assert headlines(tables, 99) == ["52 left", "51 left", "50 left", "53 left"]
    assert leading_events(tables, 99)[1] == 40


def test_a_text_that_was_masked_as_a_whole_is_english() -> None:
    tables: Any = RowTables(events=[event(evidence="(secret 3f2a9c) left")])
    (found,), _ = leading_events(tables, 1)
    assert found.evidence == "(secret 3f2a9c) left"


def test_a_page_and_a_ticket_begin_with_what_happened() -> None:
    events = [event(subject="<b>|x", groups_touched=2), *DAY[:3]]
    report = build_report(published(), RowTables(events=events), 1)
    html = to_html(report, "out/reports")
    assert html.index('id="verdict"') < html.index('id="events"') < html.index('id="findings"')
    assert "<strong>the master of &lt;b&gt;|x 0 left</strong> (no route names the master)" in html
    assert "3 more events" in html
    ticket = to_markdown(report, "out/reports", language=language("zh"), finding_pages=None, top=10)
    assert "## 发生了什么\n\n- **the master of" not in ticket
    assert "## 发生了什么\n\n- **&lt;b&gt;\\|x 0 的主节点离开**（路由中没有主节点）\n" in ticket
    assert "What happened" not in to_html(build_report(published(), RowTables(), 1), "out/reports")


def test_a_message_begins_with_the_events_that_lead(tmp_path: Path) -> None:
    events = [report_row("events", **each) for each in DAY]
    tables = {"orphaned_queues": [report_row("orphaned_queues")], "events": events}
    run = publish(tmp_path, "2026-11-20", tables)
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
    tables: Any = RowTables(events=DAY)
    assert what_happened(tables, ENGLISH) == [
        *(f"the master of broker-a {n} left" for n in (52, 51, 50)),
        "and 41 more events: rebalance-audit show events",
    ]
    # Of a healthy day's deploys there is nothing to say.
    healthy: Any = RowTables(events=DAY[:40])
    assert what_happened(healthy, ENGLISH) == []
