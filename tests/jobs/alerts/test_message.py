"""findings -> what a chat is told: what is worth it, and text that stays text."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.alerts.delivered import Delivered, DeliveredFinding
from jobs.alerts.message import (
    Digest,
    ids_of,
    make_message,
    problems_to_send,
    read_digest,
    resolved_places,
)
from jobs.alerts.services.service import inert
from jobs.alerts.services.text_message import OTHERS, Cause, Item, Message, shown
from jobs.config.settings import Alerts
from jobs.languages.language import ENGLISH, Language
from jobs.languages.language import language as language_of
from jobs.reports.problems import Problem, read_problems
from jobs.reports.run_findings import LeadingEvent
from jobs.reports.tables import Place, PublishedTables
from jobs.storage import Location, Reports
from tests.support.written_reports import NOON, publish, report_row


def digest(folder: Path, **tables: list[dict[str, Any]]) -> Digest:
    """That of a run of these tables."""
    published = publish(folder, "2026-11-20", tables)
    return read_digest(published, PublishedTables(Reports(Location(folder)), published))


def message_of(
    found: Digest, alerts: Alerts | None = None, language: Language = ENGLISH
) -> Message:
    alerts = alerts or Alerts()
    return make_message(found, problems_to_send(found, alerts, {}), alerts, language, {})


def told(folder: Path, alerts: Alerts | None = None, **tables: list[dict[str, Any]]) -> list[str]:
    """The lines of the message, but for the heading."""
    return message_of(digest(folder, **tables), alerts).lines[1:]


def delivered(*ids: str, severity: str = "CRITICAL", **values: Any) -> Delivered:
    """These findings as they were sent, of the date of ``digest``."""
    sent = DeliveredFinding(Place("C", "G", "T"), severity, "2026-11-20")._replace(**values)
    return dict.fromkeys(ids, sent)


def orphan(finding_id: str, **values: Any) -> dict[str, Any]:
    return report_row("orphaned_queues", finding_id=finding_id, **values)


def fault(name: str, **values: Any) -> dict[str, Any]:
    return report_row("group_faults", fault=name, **values)


def waiting(**values: Any) -> dict[str, Any]:
    waits = {"backlog": 500, "backlog_per_minute": 20.0, "waiting_since": NOON}
    return report_row("group_health", **waits, **values)


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
        (Alerts(), ["goes on", "new", "new", "warning"]),
        (Alerts(severity="CRITICAL"), ["goes on", "new"]),
        (Alerts(severity="INFO"), ["goes on", "improbable", "new", "new", "warning"]),
        (Alerts(send="OPEN"), ["goes on", "new", "new", "told"]),
        (Alerts(send="OPEN", severity="INFO"), ["goes on", "improbable", "new", "new", "told"]),
        (Alerts(send="ALWAYS", severity="CRITICAL"), ["goes on", "new", "told"]),
    ],
    ids=["new", "new critical", "new of any severity", "open", "open of any severity", "always"],
)
def test_what_was_not_told_lasts_is_severe_and_not_known_is_told(
    tmp_path: Path, alerts: Alerts, told: list[str]
) -> None:
    before = delivered("told")
    found = problems_to_send(digest(tmp_path, orphaned_queues=ORPHANS), alerts, before)
    assert sorted(id_ for _, of in found for finding in of for id_ in finding.ids) == told


def test_a_message_names_the_owner_of_each_group_and_may_be_of_some_alone(tmp_path: Path) -> None:
    rows = [orphan(name, consumer_group=name, topic=name) for name in ("ORDER_1", "PAY_1", "OTHER")]
    found = digest(tmp_path, orphaned_queues=rows)
    alerts = Alerts(owners={"ORDER_.*": "team orders", "PAY": "nobody", "PAY_.*": "pay\n@all"})

    def owners(groups: str, language: Language = ENGLISH) -> dict[str, str]:
        items = message_of(found.about(groups), alerts, language).items
        return {each.place.consumer_group: each.summary for each in items}

    summaries = owners(".*")
    assert summaries["ORDER_1"].endswith("; owner: team orders")
    # The pattern is of the whole name, and a name is one line.
    assert summaries["PAY_1"].endswith(r"; owner: pay\n@all")
    assert "owner" not in summaries["OTHER"]
    assert owners("(ORDER|PAY)_.*").keys() == {"ORDER_1", "PAY_1"}
    assert owners("ORDER_1", language_of("zh"))["ORDER_1"].endswith("；负责人：team orders")


def test_stalls_and_faults_without_queues_are_told_as_well(tmp_path: Path) -> None:
    stall, mismatch = report_row("stalled_queues"), fault("EXPRESSION_MISMATCH")
    passed = {"queue_id": 2, "status": None, "persistence": "TRANSIENT"}
    told_of = {"finding_id": "told"}
    found = digest(
        tmp_path,
        stalled_queues=[stall, stall | {"queue_id": 1} | told_of, stall | passed],
        # A fault that shows on stalls is told with them.
        group_faults=[
            *(mismatch, mismatch | {"topic": "told"} | told_of),
            fault("FROZEN_PROCESS", queues_affected=1),
        ],
    )
    told = {
        (each.kind, queue)
        for _, findings in problems_to_send(found, Alerts(), delivered("told"))
        for each in findings
        for _, queue in each.rows
    }
    assert told == {("STALLED", ("broker-a", 0)), ("EXPRESSION_MISMATCH", None)}


def test_a_message_says_for_how_many_nights_it_has_been_open(tmp_path: Path) -> None:
    rows = [
        orphan("1", open_since=NOON - timedelta(days=3), nights_open=4),
        orphan("2", queue_id=1, open_since=NOON, nights_open=1),
    ]
    (line,) = told(tmp_path, orphaned_queues=rows)
    told_now = "since 2026-11-17 12:00 UTC, open for 4 nights, first sent now"
    assert line.endswith(told_now)
    # Of the topic something was sent, and of another finding that it is worse now.
    found = digest(tmp_path / "again", orphaned_queues=rows)
    for before, said in (("CRITICAL", ""), ("WARNING", ", sent as WARNING before")):
        sent = delivered("1", severity=before)
        chosen = problems_to_send(found, Alerts(), sent)
        assert ids_of(chosen) == ({"2"} if before == "CRITICAL" else {"1", "2"})
        message = make_message(found, chosen, Alerts(), ENGLISH, sent)
        assert message.lines[1].endswith(f"open for 4 nights{said}")
        assert (" new or worse findings " in message.heading) is bool(said)


def test_the_message_has_the_worst_first_with_its_cause_and_repair(tmp_path: Path) -> None:
    strategies = {"topic": "T2", "causes": ["STRATEGY_MISMATCH"]}
    texts = {"evidence": "a uses <AVG>", "remedy": "one for all"}
    mild = {"finding_id": "3", "severity": "WARNING", "topic": "T1"}
    found = digest(
        tmp_path,
        orphaned_queues=[
            orphan("1", **strategies),
            orphan("1", **strategies, severity="WARNING"),
            orphan("2", topic="T2", queue_id=1, causes=["STRATEGY_MISMATCH", "GHOST_MEMBER"]),
        ],
        duplicate_queues=[report_row("duplicate_queues", **mild)],
        group_faults=[
            fault("STRATEGY_MISMATCH", topic="T2", queues_affected=2, **texts),
            fault("GHOST_MEMBER", topic="T2", queues_affected=1),
        ],
    )
    message = message_of(found)
    assert message.lines == [
        "Rebalance audit of 2026-11-20: 2 topics of 1 group have new findings (1 CRITICAL, 1 "
        "WARNING)",
        "• Still there: CRITICAL G / T2 (C): 2 queues consumed by nobody, "
        "since 2026-11-20 12:00 UTC",
        "    STRATEGY_MISMATCH: a uses <AVG>",
        "    Repair: one for all",
        "    GHOST_MEMBER: ",
        "    Repair: ",
        "• Still there: WARNING G / T1 (C): 1 queue consumed by several, "
        "since 2026-11-20 12:00 UTC",
    ]
    # The others are named all the same: incidents, and lines below a cause, are limited.
    short = message_of(found, Alerts(groups_shown=1))
    assert short.lines == message.lines
    assert (len(short.items), short.left_out) == (1, 1)


def test_a_topic_is_told_from_the_first_of_its_episodes_to_the_last(tmp_path: Path) -> None:
    def at(hour: int) -> datetime:
        return datetime(2026, 11, 20, hour, 30, tzinfo=timezone(timedelta(hours=8)))

    rows = [
        orphan("1", first_seen=at(9), last_seen=at(12), ongoing=False),
        orphan("2", first_seen=at(8), last_seen=at(11), ongoing=False),
    ]
    (line,) = told(tmp_path / "over", orphaned_queues=rows)
    assert line.endswith(", from 2026-11-20 00:30 UTC to 2026-11-20 04:30 UTC")
    (line,) = told(tmp_path / "one", orphaned_queues=[rows[0], {**rows[1], "ongoing": True}])
    assert line.endswith("")


def test_a_topic_whose_findings_have_gaps_says_for_how_much_of_the_time(tmp_path: Path) -> None:
    rows = [orphan("1", share_of_time=0.53), orphan("2", share_of_time=0.88), orphan("3")]
    (line,) = told(tmp_path, orphaned_queues=rows)
    assert line.endswith(", for at least 53 % of the time")


def test_a_stall_is_told_with_the_process_that_is_frozen(tmp_path: Path) -> None:
    def frozen(hour: int = 12, **values: Any) -> dict[str, Any]:
        last_seen = datetime(2026, 11, 20, hour, tzinfo=UTC)
        values |= {"client_ids": ["a"], "queues_affected": 1, "last_seen": last_seen}
        return fault("FROZEN_PROCESS", **values)

    faults = [
        frozen(13, evidence="the last"),
        frozen(evidence="the first"),
        frozen(14, evidence="of another", topic="T2"),
    ]
    stalls = [report_row("stalled_queues", topic=each, owners=["a"]) for each in ("T", "T2")]
    one = told(tmp_path / "stall", stalled_queues=stalls[:1], group_faults=faults[:2])
    assert "1 queue stalled, since" in one[0]
    assert one[1:] == ["    FROZEN_PROCESS: the last", "    Repair: "]
    both, first, second = told(tmp_path / "both", stalled_queues=stalls, group_faults=faults)
    cause = "1 group: a process is frozen, since 2026-11-20 12:00 UTC: G"
    assert both.startswith(f"• Still there: CRITICAL {cause}")
    assert ("G / T:" in first, "G / T2:" in second) == (True, True)


@pytest.mark.parametrize("column", ["cluster", "consumer_group", "topic", "evidence", "remedy"])
def test_no_column_of_a_message_begins_a_line(tmp_path: Path, column: str) -> None:
    hostile = {column: "a\n• CRITICAL\u202eb\x1b"}
    place = {} if column in ("evidence", "remedy") else hostile
    rows = [orphan("1", causes=["GHOST_MEMBER"], **place)]
    faults = [fault("GHOST_MEMBER", queues_affected=1, **hostile)]
    lines = told(tmp_path, orphaned_queues=rows, group_faults=faults)
    assert len(lines) == 3
    assert sum("a\\n• CRITICAL\\u202eb\\x1b" in line for line in lines) == 1


def test_names_times_and_remedies_are_whole_and_evidence_is_cut(tmp_path: Path) -> None:
    """RocketMQ takes names of 255 characters."""
    named = {"consumer_group": "g" * 255, "topic": "t" * 300}
    rows = [orphan("1", causes=["GHOST_MEMBER"], **named)]
    texts = {"evidence": "e" * 500, "remedy": "r" * 1_500}
    faults = [fault("GHOST_MEMBER", queues_affected=1, **texts, **named)]
    first, evidence, repair = told(tmp_path, orphaned_queues=rows, group_faults=faults)
    assert f" {'g' * 255} / {'t' * 254}… (C): " in first
    assert evidence.endswith(f" {'e' * 399}…")
    assert repair == f"    Repair: {'r' * 1_500}"


def test_a_fault_without_queues_is_told_and_of_many_faults_and_groups_some(tmp_path: Path) -> None:
    names = ["CONFIG_GAP", "EXPRESSION_MISMATCH", "GHOST_MEMBER", "ROOM_NOT_SERVED"]
    faults = [fault(name) for name in names]
    first, *explained = told(tmp_path / "faults", group_faults=faults)
    assert "A queue is in no CONFIG list" in first
    assert [line.split(":")[0].strip() for line in explained[::2]] == names[:3]
    rows = [orphan(str(n), topic=f"T{n}") for n in range(3)]
    two = Alerts(groups_shown=2)
    title, *lines = told(tmp_path / "groups", two, orphaned_queues=rows)
    assert title == "• Still there: CRITICAL 1 group: orphaned queue, since 2026-11-20 12:00 UTC: G"
    assert [line.split()[5].rstrip(":") for line in lines] == ["T0", "T1"]


@given(st.text(st.characters(exclude_categories=())), st.integers(1, 60))
def test_a_strangers_text_stays_on_one_line_of_some_length(text: str, longest: int) -> None:
    assert shown(text, longest).isprintable()
    assert len(shown(text, longest)) <= longest


def test_a_text_is_cut_after_it_is_spelt_out() -> None:
    """A name of what cannot be printed would be ten times as long."""
    assert shown("\U000e0001" * 10, 4) == "\\U0…"


def many(problems: int) -> Message:
    item = Item(Place("C", "G", "T"), "WARNING", True, "G / T", ("why", "repair"), ())
    return Message("2026-11-20", "run", "Audit", causes=(Cause.of_one(item),) * problems)


@given(st.integers(0, 6), st.integers(0, 30))
def test_what_does_not_fit_is_left_out_by_whole_lines_and_counted(problems: int, room: int) -> None:
    lines = many(problems).fitted(list, room, len)
    assert lines[0] == "Audit"
    assert len(lines) <= max(room, 2)
    summaries = lines.count("• G / T")
    if left_out := problems - summaries:
        assert lines[-1].startswith(f"and {left_out} more group")
    # No cause is there while a group is left out.
    assert summaries == problems or not [line for line in lines if line.startswith("    ")]
    # It is the most that fits.
    assert len(lines) == min(1 + 3 * problems, max(room, 2))


def test_resolved_is_what_was_judged_and_has_nothing_lasting_left(tmp_path: Path) -> None:
    orphans = [
        orphan("1", topic="lasts", status="PERSISTING"),
        orphan("2", topic="over", ongoing=False),
        orphan("3", topic="known", known_issue="OPS-1"),
        orphan("4", topic="transient", persistence="TRANSIENT"),
    ]
    judged = ["lasts", "over", "known", "transient", "healthy"]
    health = [report_row("group_health", topic=topic) for topic in judged]
    unjudged = report_row("group_health", topic="unjudged", coverage="STRATEGY_NOT_KNOWN")
    found = digest(tmp_path, orphaned_queues=orphans, group_health=[*health, unjudged])
    places = {Place("C", "G", topic) for topic in [*judged, "unjudged", "gone"]}
    resolved = [topic for _, _, topic in resolved_places(found, places)]
    assert resolved == ["healthy", "known", "over", "transient"]
    # The others are over when whatever is open has an incident of its own.
    assert OTHERS in resolved_places(found, {OTHERS, Place("C", "G", "lasts")})
    assert OTHERS not in resolved_places(found, {OTHERS})


def on_page(folder: Path) -> list[Problem]:
    reports = Reports(Location(folder))
    return read_problems(PublishedTables(reports, reports.resolve("2026-11-20")))


def test_the_message_says_of_a_problem_what_the_page_says(tmp_path: Path) -> None:
    """Also where it is sent for what is new alone."""
    rows = [
        orphan("1", status="PERSISTING", first_seen=NOON - timedelta(hours=3)),
        orphan("2", queue_id=1, severity="WARNING", certainty="POSSIBLE"),
        orphan("3", queue_id=2, persistence="TRANSIENT", severity="INFO", status=None),
    ]
    found = digest(tmp_path, orphaned_queues=rows)
    chosen = problems_to_send(found, Alerts(), delivered("1"))
    assert ids_of(chosen) == {"2"}
    (item,) = make_message(found, chosen, Alerts(), ENGLISH, {}).items
    (problem,) = on_page(tmp_path)
    assert (item.severity, item.is_ongoing) == (problem.severity, problem.ongoing)
    assert f": {problem.headline}, since {problem.first_seen:%Y-%m-%d %H:%M} UTC" in item.summary
    assert problem.first_seen == NOON - timedelta(hours=3)


def payments(number: int, **values: Any) -> dict[str, list[dict[str, Any]]]:
    """The tables of a run in which so many groups have a fault, and the retry topics of all."""
    faults, orphans = [], []
    for n in range(number):
        name = f"GID_payment-settlement-{n}"
        told = {
            "client_ids": [f"10.0.2.1{n}@app-DUP", "10.0.2.9@app"],
            "evidence": f"10.0.2.1{n}@app-DUP is used by 2 processes, {'and ' * 90}",
            "remedy": f"give each process its own name, {'then ' * 90}",
        }
        place = {"consumer_group": name, "topic": "TOPIC_payments", "queues_affected": 2}
        faults.append(fault("DUPLICATE_CLIENT_ID", **place, **told | values))
        for topic in ("TOPIC_payments", f"%RETRY%{name}"):
            orphans.append(orphan(f"{name} {topic}", consumer_group=name, topic=topic))
    return {"orphaned_queues": orphans, "group_faults": faults}


#: All that a message has beside its problems.
BESIDE = Alerts(
    owners={".*": "team payments, Wang Wei"},
    report_url="https://audit.example.org/report/dt={date}.html",
)
EVENTS = tuple(
    LeadingEvent("C", NOON, None, text, "x", 2)
    for text in ("the collector was away until 02:14:28: 13 groups touched", "e" * 500, "third")
)


def of_payments(folder: Path, number: int, **values: Any) -> Digest:
    return replace(digest(folder, **payments(number, **values)), events=EVENTS)


def test_the_problems_of_one_cause_are_one_line_with_all_names_and_a_remedy(tmp_path: Path) -> None:
    names = [f"GID_payment-settlement-{n}" for n in range(4)]
    lines = told(tmp_path, BESIDE, **payments(4, remedy="separate them"))
    assert lines[:2] == [
        "• Still there: CRITICAL 4 groups: several processes share one client id, "
        f"since 2026-11-20 12:00 UTC: {names[0]}, {names[1]}, {names[2]} and {names[3]}",
        "    Repair: separate them",
    ]
    page = "https://audit.example.org/report/dt=2026-11-20.html"
    assert lines[2:-1] == [
        line
        for name in names
        for line in (
            f"    Still there: CRITICAL {name} / TOPIC_payments: 1 queue consumed by nobody, "
            "also on the retry topic; owner: team payments, Wang Wei",
            f"    {page}#{name}/TOPIC_payments",
        )
    ]
    assert lines[-1] == f"The page: {page}"
    # A cause that is over says so, and a retry topic is one as on the page.
    heading = message_of(digest(tmp_path / "4", **payments(4))).heading
    assert ": 8 topics of 4 groups have new findings (8 CRITICAL)" in heading


def test_of_a_cause_what_waits_and_the_end_are_said_and_few_names(tmp_path: Path) -> None:
    over = {"ongoing": False, "last_seen": NOON + timedelta(minutes=5)}
    rows = [orphan(name, consumer_group=name, **over) for name in "ABC"]
    healths = [waiting(consumer_group=name, last_seen=NOON) for name in "ABC"]
    alerts = Alerts(groups_shown=2)
    lines = told(tmp_path, alerts, orphaned_queues=rows, group_health=healths)
    assert lines[0] == (
        "• Over since 12:05:00: CRITICAL 3 groups: orphaned queue, since 2026-11-20 12:00 UTC: "
        "A, B and 1 more group; 1,500 messages wait, 60 more a minute"
    )
    assert len(lines) == 1 + 2


def test_when_it_began_is_not_taken_for_when_the_oldest_message_came(tmp_path: Path) -> None:
    later = {"last_seen": NOON + timedelta(minutes=9)}
    orphans = [orphan("1", first_seen=NOON, **later)]
    found = digest(tmp_path, orphaned_queues=orphans, group_health=[waiting(**later)])
    heading, line = message_of(found).lines
    # It is the subject of a mail.
    assert heading.endswith("(1 CRITICAL); 500 messages wait, 20 more a minute")
    assert line == (
        "• Still there: CRITICAL G / T (C): 1 queue consumed by nobody, "
        "since 2026-11-20 12:00 UTC; 500 messages wait, 20 more a minute, "
        "the oldest from 2026-11-20 12:00 UTC"
    )


@pytest.mark.parametrize(
    ("backlog", "missing", "said"),
    [
        (0, 0, "no message waits"),
        (1_200, 2, "at least 1,200 messages wait (no offsets of 2 of 8 queues)"),
        (0, 2, "no message is known to wait (no offsets of 2 of 8 queues)"),
    ],
)
def test_that_nothing_waits_is_said_and_that_only_a_part_is_known(
    tmp_path: Path, backlog: int, missing: int, said: str
) -> None:
    partly = {"backlog": backlog, "queues": 8, "queues_without_offsets": missing}
    health = report_row("group_health", **partly)
    message = message_of(digest(tmp_path, orphaned_queues=[orphan("1")], group_health=[health]))
    assert message.heading.endswith(f"; {said}")
    assert message.lines[1].endswith(f"; {said}")


def test_where_there_is_no_room_links_go_first_then_each_group_then_why(tmp_path: Path) -> None:
    """Nothing is cut within a line; each service has the room that is its own."""
    message = message_of(of_payments(tmp_path, 3), BESIDE)

    def kinds(kept: int) -> str:
        shown = message.shortened(kept)[1:]
        begin = {"• Still th": "T", "    Repair": "R", "    Still ": "G", "    https:": "L"}
        return "".join(begin.get(each[:10], "") for each in shown)

    assert kinds(99) == "TRGLGLGL"
    assert [kinds(kept) for kept in (5, 2, 1)] == ["TRGGG", "TR", "T"]
    assert kinds(0) == ""
    assert "and 3 more groups and topics" in message.shortened(0)


def test_clusters_of_one_name_each_have_theirs_where_there_are_several(tmp_path: Path) -> None:
    rows = [orphan(each, cluster=each) for each in "AB"]
    health = [report_row("group_health", cluster=each) for each in "AB"]
    lines = told(tmp_path, orphaned_queues=rows, group_health=health)
    assert lines[0].endswith(": A / G and B / G")


def test_what_is_exact_is_whole_also_of_many(tmp_path: Path) -> None:
    """Incidents and programs get each by itself."""
    first, *_ = message_of(of_payments(tmp_path, 6), BESIDE).items
    said = "(C): 1 queue consumed by nobody, also on the retry topic, since 2026-11-20"
    assert said in first.summary
    assert len(first.explanations[0]) > 300
    assert first.owner == "team payments, Wang Wei"


def retries(folder: Path, *rows: dict[str, Any]) -> Digest:
    topics = {(each["consumer_group"], each["topic"]) for each in rows}
    health = [report_row("group_health", consumer_group=g, topic=t) for g, t in sorted(topics)]
    return digest(folder, orphaned_queues=list(rows), group_health=health)


def test_a_groups_retry_topic_goes_with_the_worst_of_its_topics(tmp_path: Path) -> None:
    found = retries(
        tmp_path,
        orphan("retry", topic="%RETRY%G"),
        orphan("mild", topic="A", severity="WARNING"),
        orphan("other", topic="B", severity="WARNING"),
        orphan("alone", consumer_group="H", topic="%RETRY%H"),
        orphan("of another", consumer_group="H2", topic="%RETRY%G"),
    )
    chosen = problems_to_send(found, Alerts(), {})
    assert ids_of(chosen) == {"retry", "mild", "other", "alone", "of another"}
    message = make_message(found, chosen, Alerts(), ENGLISH, {})
    assert ": 5 topics of 3 groups have new findings" in message.heading
    of_topic = {each.place.topic: each for each in message.items if each.place[:2] == ("C", "G")}
    # As bad as the worse of both, and where that one would be.
    assert message.items[0] == of_topic["A"]
    assert (of_topic["A"].severity, of_topic["B"].severity) == ("CRITICAL", "WARNING")
    with_retry = [each for each in message.items if "also on the retry topic" in each.summary]
    assert with_retry == [of_topic["A"]]
    topics = [finding.place.topic for finding in of_topic["A"].findings]
    assert sorted(topics) == ["%RETRY%G", "A"]
    # What is new of the retry topic alone is told by itself.
    (later, _), *_ = problems_to_send(found, Alerts(), delivered("mild", "other"))
    assert later.place == Place("C", "G", "%RETRY%G")


def test_an_incident_is_open_while_the_groups_retry_topic_has_something(tmp_path: Path) -> None:
    rows = [
        orphan("over", topic="A", ongoing=False),
        orphan("retry", topic="%RETRY%G"),
        orphan("of another", consumer_group="H", topic="A", ongoing=False),
    ]
    found = retries(tmp_path, *rows)
    a, of_another = Place("C", "G", "A"), Place("C", "H", "A")
    assert resolved_places(found, {a, of_another, OTHERS}) == (OTHERS, of_another)
    assert resolved_places(found, {OTHERS}) == ()
    over = retries(tmp_path / "over", *rows[::2], orphan("x", topic="%RETRY%G", ongoing=False))
    assert resolved_places(over, {a}) == (a,)


@pytest.mark.parametrize(
    ("former", "before", "ended"),
    [
        ([("over", "RESOLVED")], {"over": {}}, "Resolved: H\\n"),
        # Nobody was told of it, or was told that it is over.
        ([("over", "RESOLVED")], {}, ""),
        ([("over", "RESOLVED")], {"over": {"over": "2026-11-19", "end_is_sent": True}}, ""),
        # Nobody knows: it was not audited, the topic or another of the group.
        ([("over", "NOT_AUDITED")], {"over": {}}, ""),
        ([("over", "RESOLVED"), ("other", "NOT_AUDITED")], {"over": {}}, ""),
        ([("over", "RESOLVED")], {"over": {}, "else": {}}, ""),
        # It was over in a run for which no message was sent.
        ([], {"over": {"over": "2026-11-19"}}, "Resolved: H\\n"),
    ],
)
def test_a_message_names_the_groups_of_which_all_that_was_sent_is_over(
    tmp_path: Path, former: list[tuple[str, str]], before: dict[str, Any], ended: str
) -> None:
    place = {"consumer_group": "H\n", "topic": "T"}
    rows = [report_row("former_findings", finding_id=id_, status=of, **place) for id_, of in former]
    found = digest(tmp_path, former_findings=rows, orphaned_queues=[orphan("1")])
    sent = DeliveredFinding(Place("C", *place.values()), "CRITICAL", "2026-11-19")
    told_of = {id_: sent._replace(**values) for id_, values in before.items()}
    seen = found.seen_by(told_of, known_are_over=False)
    message = make_message(found, problems_to_send(found, Alerts(), seen), Alerts(), ENGLISH, seen)
    assert message.ended == ended
    assert ("; 1 finding resolved" in message.heading) >= bool(ended)


def test_a_message_ends_with_the_page_and_each_problem_has_its_place(tmp_path: Path) -> None:
    alerts = Alerts(report_url="https://audit.example/dt={date}.html")
    rows = [orphan("1", consumer_group="G/1 @all", topic="%RETRY%<x>")]
    message = message_of(digest(tmp_path, orphaned_queues=rows), alerts)
    page = "https://audit.example/dt=2026-11-20.html"
    assert message.lines[-1] == f"The page: {page}"
    assert inert(message.lines[-1]) == f"The page: {page}"
    assert inert(str(message.lines[-1])) != f"The page: {page}"
    assert message.items[0].url == f"{page}#G%2F1%20%40all/%25RETRY%25%3Cx%3E"
    assert "The page" not in "".join(told(tmp_path / "none", orphaned_queues=rows))
