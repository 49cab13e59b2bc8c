"""findings -> what a chat is told: what is worth it, and text that stays text."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.alerts.digest import Digest, read_digest
from jobs.alerts.message import escape, findings_to_tell, make_message
from jobs.settings import Alerts
from jobs.storage import Location, Published, Reports
from tests.support.written_reports import publish, report_row


def digest(folder: Path, published: Published) -> Digest:
    return read_digest(Reports(Location(folder)), published)


def ids(found: Digest, alerts: Alerts | None = None, told: tuple[str, ...] = ()) -> list[str]:
    return sorted(each.finding_id for each in findings_to_tell(found, alerts or Alerts(), told))


def orphan(finding_id: str, **values: Any) -> dict[str, Any]:
    return report_row("orphaned_queues", finding_id=finding_id, **values)


ORPHANS = [
    orphan("new"),
    orphan("new", certainty="POSSIBLE", severity="WARNING"),
    orphan("told"),
    orphan("warning", severity="WARNING", ongoing=False),
    orphan("goes on", status="PERSISTING"),
    orphan("known", known_issue="OPS-1"),
    orphan("passed", persistence="TRANSIENT", severity="INFO", status=None),
    orphan("improbable", severity="INFO"),
]


@pytest.mark.parametrize(
    ("alerts", "told"),
    [
        (Alerts(), ["new", "new", "warning"]),
        (Alerts(severity="CRITICAL"), ["new"]),
        (Alerts(severity="INFO"), ["improbable", "new", "new", "warning"]),
        (Alerts(tell="OPEN"), ["goes on", "new", "new", "told"]),
        (Alerts(tell="ALWAYS", severity="CRITICAL"), ["goes on", "new", "told"]),
    ],
    ids=str,
)
def test_what_is_new_lasts_is_severe_and_not_known_is_told(
    tmp_path: Path, alerts: Alerts, told: list[str]
) -> None:
    found = digest(tmp_path, publish(tmp_path, "2026-11-20", {"orphaned_queues": ORPHANS}))
    assert ids(found, alerts, ("told",)) == told


def test_stalls_and_faults_without_queues_are_new_where_the_run_before_had_them_not(
    tmp_path: Path,
) -> None:
    stall = report_row("stalled_queues")
    mismatch = report_row("group_faults", fault="EXPRESSION_MISMATCH")
    tables = {
        "stalled_queues": [stall, stall | {"queue_id": 1}],
        # One that causes findings is told with them.
        "group_faults": [mismatch, report_row("group_faults", fault="GHOST", queues_affected=1)],
    }
    first = publish(tmp_path, "2026-11-19", tables)
    assert len(ids(digest(tmp_path, first))) == 3
    tables["stalled_queues"] = [
        stall | {"ongoing": False},
        stall | {"queue_id": 2, "persistence": "TRANSIENT", "severity": "INFO"},
        stall | {"queue_id": 3},
    ]
    second = digest(tmp_path, publish(tmp_path, "2026-11-20", tables, previous=first))
    (new,) = findings_to_tell(second, Alerts(), ())
    assert new.queue == ("broker-a", 3)
    assert {each.status for each in second.findings if each.queue is None} == {"PERSISTING"}
    # It was over in the run before: now it is new again.
    third = publish(tmp_path, "2026-11-21", {"stalled_queues": [stall]}, previous=second.published)
    assert len(ids(digest(tmp_path, third))) == 1


def test_a_run_before_whose_tables_or_pointer_are_gone_leaves_everything_new(
    tmp_path: Path,
) -> None:
    stall = {"stalled_queues": [report_row("stalled_queues")]}
    first = publish(tmp_path, "2026-11-19", stall)
    second = publish(tmp_path, "2026-11-20", stall, previous=first)
    assert ids(digest(tmp_path, second)) == []
    shutil.rmtree(tmp_path / "stalled_queues" / "dt=2026-11-19")
    assert len(ids(digest(tmp_path, second))) == 1
    (tmp_path / "_published" / "dt=2026-11-19.json").unlink()
    assert len(ids(digest(tmp_path, second))) == 1


def test_the_message_has_the_worst_first_with_its_cause_and_repair(tmp_path: Path) -> None:
    published = publish(
        tmp_path,
        "2026-11-20",
        {
            "orphaned_queues": [
                orphan("1", topic="T2", causes=["STRATEGY_MISMATCH"]),
                orphan("1", topic="T2", causes=["STRATEGY_MISMATCH"], severity="WARNING"),
                orphan("2", topic="T2", queue_id=1, causes=["STRATEGY_MISMATCH"]),
            ],
            "duplicate_queues": [
                report_row("duplicate_queues", finding_id="3", severity="WARNING", topic="T1")
            ],
            "group_faults": [
                report_row(
                    "group_faults",
                    topic="T2",
                    fault="STRATEGY_MISMATCH",
                    queues_affected=2,
                    evidence="a uses <AVG>",
                    remedy="one for all",
                ),
                report_row("group_faults", topic="T2", fault="GHOST_MEMBER", queues_affected=1),
            ],
            "former_findings": [report_row("former_findings", status="RESOLVED")],
        },
    )
    found = digest(tmp_path, published)
    message = make_message(found, findings_to_tell(found, Alerts(), ()), Alerts())
    assert message["text"].splitlines() == [
        "*Rebalance audit of 2026-11-20*: 3 new findings (2 CRITICAL, 1 WARNING) in 2 groups and "
        "topics; 1 finding of the run before resolved",
        "• *CRITICAL* G / T2 (C): 2 orphaned queues, since 2026-11-20 12:00 UTC, ongoing",
        "    STRATEGY_MISMATCH: a uses &lt;AVG&gt;",
        "    Repair: one for all",
        "• *WARNING* G / T1 (C): 1 duplicate queue, since 2026-11-20 12:00 UTC, ongoing",
    ]
    one = Alerts(groups_told=1)
    short = make_message(found, findings_to_tell(found, one, ()), one)["text"]
    assert short.splitlines()[-1] == "and 1 more groups and topics"


@given(st.text(), st.integers(1, 60))
def test_a_strangers_text_stays_text_on_one_line(text: str, longest: int) -> None:
    shown = escape(text, longest)
    assert shown.isprintable() or "\u200b" in shown
    assert not re.search(r"[<>\n\r]", shown)
    assert not re.search(r"&(?!amp;|lt;|gt;)", shown)
    assert not re.search(r"@(all|channel|everyone|here)\b", shown, re.IGNORECASE)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<!channel>", "&lt;!channel&gt;"),
        ("<https://evil.example|G_ORDER>", "&lt;https://evil.example|G_ORDER&gt;"),
        ("10.0.0.1@here", "10.0.0.1@\u200bhere"),
        ("@Channel & co", "@\u200bChannel &amp; co"),
        ("a\n• *CRITICAL* b", "a\\n• *CRITICAL* b"),
        ("10.0.0.1@hereafter", "10.0.0.1@hereafter"),
    ],
)
def test_no_name_calls_everybody_makes_a_link_or_begins_a_line(text: str, shown: str) -> None:
    assert escape(text, 99) == shown


def test_a_long_name_is_cut_before_it_is_escaped() -> None:
    assert escape("&" * 10, 4) == "&amp;&amp;&amp;…"
