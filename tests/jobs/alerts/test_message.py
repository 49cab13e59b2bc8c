"""findings -> what a chat is told: what is worth it, and text that stays text."""

from __future__ import annotations

import re
import shutil
from datetime import UTC, datetime, timedelta, timezone
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
        (Alerts(tell="OPEN", severity="INFO"), ["goes on", "improbable", "new", "new", "told"]),
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


def test_the_status_of_a_stall_is_that_of_an_orphan(tmp_path: Path) -> None:
    def stall(queue_id: int, **values: Any) -> dict[str, Any]:
        return report_row("stalled_queues", queue_id=queue_id, **values)

    passed = {"persistence": "TRANSIENT", "severity": "INFO"}
    over = {"ongoing": False, **passed}
    before = [stall(0), stall(1), stall(2), stall(3, **passed)]
    first = publish(tmp_path, "2026-11-19", {"stalled_queues": before})
    now = [stall(0), stall(1, **passed), stall(2, **over), stall(3), stall(4), stall(5, **passed)]
    found = digest(
        tmp_path, publish(tmp_path, "2026-11-20", {"stalled_queues": now}, previous=first)
    )
    # 1: the window begins in it; 2: it ended right after; 3: it had not lasted.
    statuses = ["PERSISTING", "PERSISTING", None, "NEW", "NEW", None]
    assert [each.status for each in found.findings] == statuses


def test_what_differs_in_one_name_is_another_finding(tmp_path: Path) -> None:
    names = ("cluster", "consumer_group", "topic", "broker_name", "queue_id")
    stalls = [
        report_row("stalled_queues", **{name: 7 if name == "queue_id" else "other"})
        for name in names
    ]
    faults = [report_row("group_faults", **{name: "other"}) for name in (*names[:3], "fault")]
    tables = {"stalled_queues": stalls, "group_faults": faults}
    found = digest(tmp_path, publish(tmp_path, "2026-11-20", tables))
    assert len(set(ids(found))) == len(stalls) + len(faults)


def test_a_fault_that_passed_is_no_finding(tmp_path: Path) -> None:
    faults = [report_row("group_faults", fault="EXPRESSION_MISMATCH", persistence="TRANSIENT")]
    assert (
        digest(tmp_path, publish(tmp_path, "2026-11-20", {"group_faults": faults})).findings == ()
    )


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
    assert short.splitlines()[-1] == "and 1 more group and topic"


def told(folder: Path, alerts: Alerts | None = None, **tables: list[dict[str, Any]]) -> list[str]:
    """The lines of the message, but for the heading."""
    alerts = alerts or Alerts()
    found = digest(folder, publish(folder, "2026-11-20", tables))
    message = make_message(found, findings_to_tell(found, alerts, ()), alerts)
    assert not message["unfurl_links"] | message["unfurl_media"]
    return message["text"].splitlines()[1:]


def test_a_topic_is_told_from_the_first_of_its_episodes_to_the_last(tmp_path: Path) -> None:
    def at(hour: int) -> datetime:
        return datetime(2026, 11, 20, hour, 30, tzinfo=timezone(timedelta(hours=8)))

    over = {"ongoing": False, "last_seen": at(10)}
    rows = [
        orphan("1", episode_first_seen=at(9), episode_last_seen=at(12), **over),
        orphan("2", episode_first_seen=at(8), episode_last_seen=at(11), **over),
    ]
    (line,) = told(tmp_path / "over", orphaned_queues=rows)
    assert line.endswith(", since 2026-11-20 00:30 UTC, until 2026-11-20 04:30 UTC")
    (line,) = told(tmp_path / "one", orphaned_queues=[rows[0], {**rows[1], "ongoing": True}])
    assert line.endswith(", ongoing")


def test_a_topic_whose_findings_have_gaps_says_for_how_much_of_the_time(tmp_path: Path) -> None:
    rows = [orphan("1", share_of_time=0.53), orphan("2", share_of_time=0.88), orphan("3")]
    (line,) = told(tmp_path, orphaned_queues=rows)
    assert line.endswith(", ongoing, for 53 % of the time at least")


def test_each_client_with_a_fault_of_its_own_is_a_finding_of_its_own(tmp_path: Path) -> None:
    """Who was told of one client that reconnects is told of the next one, too."""
    rows = [
        report_row("group_faults", fault=fault, client_ids=[client_id], severity="WARNING")
        for fault in ("RECONNECTING", "FLAPPING")
        for client_id in "ab"
    ]
    found = digest(tmp_path, publish(tmp_path, "2026-11-20", {"group_faults": rows}))
    kinds = {each.finding_id: each.kind for each in found.findings}
    assert sorted(kinds.values()) == ["FLAPPING", "RECONNECTING", "RECONNECTING"]


def test_a_stall_is_told_with_the_process_that_is_frozen(tmp_path: Path) -> None:
    def frozen(**values: Any) -> dict[str, Any]:
        return report_row("group_faults", fault="FROZEN_PROCESS", queues_affected=1, **values)

    faults = [
        frozen(evidence="the last", last_seen=datetime(2026, 11, 20, 13, tzinfo=UTC)),
        frozen(evidence="the first"),
        frozen(evidence="of another", topic="T2", last_seen=datetime(2026, 11, 20, 14, tzinfo=UTC)),
    ]
    stall, *explained = told(
        tmp_path / "stall", stalled_queues=[report_row("stalled_queues")], group_faults=faults
    )
    assert "1 stalled queue, since" in stall
    assert explained == ["    FROZEN_PROCESS: the last", "    Repair: "]
    tables = {
        "orphaned_queues": [orphan("1", causes=["GHOST_MEMBER"])],
        "group_faults": faults,
    }
    assert len(told(tmp_path / "orphan", **tables)) == 1
    both = {**tables, "stalled_queues": [report_row("stalled_queues")]}
    assert told(tmp_path / "both", **both)[1:] == explained


@pytest.mark.parametrize("column", ["cluster", "consumer_group", "topic", "evidence", "remedy"])
def test_no_column_of_a_message_is_markup(tmp_path: Path, column: str) -> None:
    hostile = {column: "<!channel>\n@here"}
    place = {} if column in ("evidence", "remedy") else hostile
    rows = [orphan("1", causes=["GHOST_MEMBER"], **place)]
    faults = [report_row("group_faults", fault="GHOST_MEMBER", queues_affected=1, **hostile)]
    lines = told(tmp_path, orphaned_queues=rows, group_faults=faults)
    assert len(lines) == 3
    assert sum("&lt;!channel&gt;\\n@\u200bhere" in line for line in lines) == 1


def test_names_and_evidence_are_cut(tmp_path: Path) -> None:
    rows = [orphan("1", consumer_group="g" * 200, topic="t" * 200, causes=["GHOST_MEMBER"])]
    texts = {"evidence": "e" * 500, "remedy": "r" * 500}
    named = {"consumer_group": "g" * 200, "topic": "t" * 200}
    faults = [report_row("group_faults", fault="GHOST_MEMBER", queues_affected=1, **texts, **named)]
    first, evidence, repair = told(tmp_path, orphaned_queues=rows, group_faults=faults)
    assert f" {'g' * 119}… / {'t' * 119}… (C): " in first
    assert evidence.endswith(f" {'e' * 399}…")
    assert repair.endswith(f" {'r' * 399}…")


def test_a_fault_without_queues_is_told_and_of_many_faults_and_groups_some(tmp_path: Path) -> None:
    names = ["CONFIG_GAP", "EXPRESSION_MISMATCH", "GHOST_MEMBER", "ROOM_NOT_SERVED"]
    faults = [report_row("group_faults", fault=name) for name in names]
    first, *explained = told(tmp_path / "faults", group_faults=faults)
    assert "no queue shows it" in first
    assert [line.split(":")[0].strip() for line in explained[::2]] == names[:3]
    rows = [orphan(str(n), topic=f"T{n}") for n in range(3)]
    two = Alerts(groups_told=2)
    *lines, last = told(tmp_path / "groups", two, orphaned_queues=rows)
    assert [line.split()[4] for line in lines] == ["T0", "T1"]
    assert last == "and 1 more group and topic"
    assert len(told(tmp_path / "all", two, orphaned_queues=rows[:2])) == 2


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
