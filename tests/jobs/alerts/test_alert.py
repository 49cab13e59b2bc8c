"""The command: metrics to a file, messages to services on this machine, each of them once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jobs.alerts.alerting import SECRET_VARIABLE, WEBHOOK_VARIABLE
from jobs.alerts.services.pagerduty import incident_key
from tests.support.command_line import CommandLine
from tests.support.reports import last_pointer
from tests.support.services import (
    SIGNING_SECRET,
    TOKEN,
    Answer,
    Fake,
    Posted,
    fake,
    pagerduty,
    slack,
    taken,
)
from tests.support.written_reports import publish, report_row

DATE = "2026-11-20"


@pytest.fixture
def chat() -> Iterator[Fake]:
    with fake(taken, f"/hook/{TOKEN}") as service:
        yield service


@pytest.fixture
def reports(tmp_path: Path) -> Path:
    return tmp_path / "reports"


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    """A file of settings, beside the reports."""
    file = tmp_path / "audit.toml"
    file.write_text("")
    return file


class Alert:
    """The command, with what it says: ``out`` and ``err`` of the last time."""

    def __init__(
        self, folder: Path, settings: Path, monkeypatch: pytest.MonkeyPatch, cli: CommandLine
    ) -> None:
        self.command = ["alert", "--reports", folder, "--settings", settings]
        self.monkeypatch, self.cli = monkeypatch, cli
        self.out = self.err = ""

    def __call__(
        self, service: Fake | None, *arguments: str, secret: str | None = None, code: int = 0
    ) -> None:
        url = service and service.url
        for variable, value in ((WEBHOOK_VARIABLE, url), (SECRET_VARIABLE, secret)):
            if value is None:
                self.monkeypatch.delenv(variable, raising=False)
            else:
                self.monkeypatch.setenv(variable, value)
        self.out, self.err = self.cli(*self.command, *arguments, code=code), self.cli.err


@pytest.fixture
def alert(
    reports: Path, settings: Path, monkeypatch: pytest.MonkeyPatch, cli: CommandLine
) -> Alert:
    return Alert(reports, settings, monkeypatch, cli)


def orphan(finding_id: str, **values: Any) -> dict[str, Any]:
    return report_row("orphaned_queues", finding_id=finding_id, **values)


def audit(reports: Path, *orphans: dict[str, Any], date: str = DATE, run_id: str = "run-1") -> None:
    """Publishes a run with these orphans, of topics that were audited, as U was."""
    topics = {"T", "U", *(each["topic"] for each in orphans)}
    health = [report_row("group_health", topic=topic) for topic in sorted(topics)]
    tables = {"orphaned_queues": orphans, "group_health": health}
    publish(reports, date, tables, run_id=run_id)


def topics(service: Fake) -> list[list[str]]:
    """The topics of each message."""
    return [[each["topic"] for each in body["problems"]] for body in service.bodies]


def test_a_finding_is_posted_once_however_often_the_date_is_audited(
    chat: Fake, reports: Path, alert: Alert
) -> None:
    audit(reports, orphan("one"))
    alert(chat, "--webhook")
    assert alert.out == "posted 1 finding of 2026-11-20\n"
    alert(chat, "--webhook")
    assert alert.out == "nothing to send for 2026-11-20\n"
    audit(reports, orphan("one"), orphan("two", topic="U"), run_id="run-2")
    alert(chat, "--webhook")
    assert topics(chat) == [["T"], ["U"]]


def test_what_was_sent_is_printed_again_and_not_sent(
    chat: Fake, reports: Path, alert: Alert
) -> None:
    audit(reports, orphan("one"))
    alert(chat, "--webhook")
    posted = chat.bodies[0]
    alert(chat)
    assert alert.out == "nothing to send for 2026-11-20 (--again prints what it was sent)\n"
    alert(chat, "--again")
    assert "G / T" in alert.out
    alert(chat, "--again", "--service", "JSON")
    assert json.loads(alert.out) == posted
    alert(chat, "--webhook")
    assert (len(chat.bodies), alert.out) == (1, "nothing to send for 2026-11-20\n")


@pytest.mark.parametrize("service", ["SLACK", "FEISHU", "PAGERDUTY", "EMAIL"])
def test_a_message_is_printed_as_a_service_gets_it_without_its_secrets(
    service: str, reports: Path, alert: Alert, chat: Fake
) -> None:
    audit(reports, orphan("one"))
    alert(chat, "--service", service, secret=SIGNING_SECRET)
    assert chat.bodies == []
    assert "G / T" in alert.out
    assert not any(each in alert.out for each in (TOKEN, SIGNING_SECRET))
    if service == "EMAIL":
        assert alert.out.startswith("Subject: Rebalance audit of 2026-11-20")
    else:
        assert isinstance(json.loads(alert.out), dict)


@pytest.mark.parametrize("option", ["--again", "--service=JSON"])
def test_what_is_printed_is_not_sent_as_well(option: str, reports: Path, alert: Alert) -> None:
    audit(reports, orphan("one"))
    alert(None, option, "--webhook", code=2)
    assert "expected --again and --service alone" in alert.err


def test_a_service_that_fails_loses_neither_the_metrics_nor_the_message(
    chat: Fake, reports: Path, alert: Alert
) -> None:
    audit(reports, orphan("one"))
    pointer = last_pointer(reports, "dt=2026-11-20").read_text()
    metrics = reports.parent / "node_exporter" / "rebalance.prom"
    metrics.parent.mkdir()
    chat.answers = [(404, {}, "")]
    alert(chat, "--metrics", str(metrics), "--webhook", code=4)
    assert "the message was not delivered (JSON): HTTP status 404; the reports are" in alert.err
    assert "of whatever date, sends what is open" in alert.err
    assert TOKEN not in alert.err + alert.out
    assert "rebalance_audit_findings{" in metrics.read_text()
    assert [path.name for path in metrics.parent.iterdir()] == ["rebalance.prom"]
    assert last_pointer(reports, "dt=2026-11-20").read_text() == pointer
    alert(chat, "--webhook")
    assert topics(chat) == [["T"], ["T"]]


LATER = "2026-11-21"


def test_owners_of_findings_are_called_once(reports: Path, settings: Path, alert: Alert) -> None:
    rows = [orphan(name, consumer_group=name) for name in ("ORDER_1", "ORDER_2", "PAY_1", "OTHER")]
    audit(reports, *rows)
    settings.write_text(
        '[alerts]\nservice = "SLACK"\n[alerts.owners]\n"ORDER_.*" = "orders"\n"PAY_.*" = "pay"\n'
        '"NO" = "nobody"\n[alerts.mentions]\n"orders" = "U1"\n"nobody" = "U2"\n'
    )
    with fake(slack, f"/services/T0/B1/{TOKEN}") as chat:
        alert(chat, "--webhook")
    elements = chat.bodies[0]["blocks"][0]["elements"][0]["elements"]
    called = [each["user_id"] for each in elements if each["type"] == "user"]
    assert called == ["U1"]


def test_metrics_alone_post_and_print_no_message(chat: Fake, reports: Path, alert: Alert) -> None:
    audit(reports, orphan("one"))
    metrics = reports.parent / "rebalance.prom"
    alert(chat, "--metrics", str(metrics))
    assert alert.out == f"metrics of 2026-11-20 written to {metrics}\n"
    assert chat.posted == []


def test_metrics_are_for_everybody_and_follow_no_link(reports: Path, alert: Alert) -> None:
    """node_exporter is another user; through a link that somebody laid a file would be lost."""
    audit(reports)
    victim = reports.parent / "victim"
    victim.write_text("precious")
    metrics = reports.parent / "rebalance.prom"
    for name in ("rebalance.prom.new", "rebalance.prom.tmp", "rebalance.prom"):
        (reports.parent / name).symlink_to(victim)
    before = os.umask(0o022)
    try:
        alert(None, "--metrics", str(metrics))
    finally:
        os.umask(before)
    assert victim.read_text() == "precious"
    assert not metrics.is_symlink()
    assert metrics.stat().st_mode & 0o777 == 0o644


def test_without_a_destination_the_message_is_printed_alone(reports: Path, alert: Alert) -> None:
    audit(reports, orphan("one"))
    for _ in range(2):
        alert(None)
        begin = "Rebalance audit of 2026-11-20: 1 topic of 1 group has new findings "
        assert alert.out.startswith(begin)


def test_always_tells_that_there_is_nothing(chat: Fake, reports: Path, alert: Alert) -> None:
    audit(reports)
    alert(chat, "--webhook")
    assert chat.posted == []
    alert(chat, "--webhook", "--set", "alerts.send=ALWAYS")
    assert chat.bodies[0]["text"] == "Rebalance audit of 2026-11-20: no open findings"


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        # The exporter reads another folder: nobody would see that the metrics are missing.
        (["--metrics", "nowhere/rebalance.prom", "--webhook"], 3, "expected a folder for nowhere"),
        (["--metrics", "/proc/rebalance.prom"], 4, ": check the path, and run again"),
        (["--set", "alerts.send=SOMETIMES"], 2, "alerts.send: expected 'NEW', 'OPEN' or"),
    ],
)
def test_what_is_wrong_is_said_with_its_exit_code(
    reports: Path, alert: Alert, arguments: list[str], code: int, said: str
) -> None:
    audit(reports, orphan("one"))
    alert(None, *arguments, code=code)
    assert said in alert.err


def test_metrics_on_standard_output_have_no_other_line_in_between(
    chat: Fake, reports: Path, alert: Alert, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(reports.parent)
    audit(reports, orphan("one"))
    alert(chat, "--metrics", "-", "--webhook")
    assert all(line.startswith(("#", "rebalance_audit_")) for line in alert.out.splitlines())
    assert "rebalance_audit_findings{" in alert.out
    assert "metrics of 2026-11-20 written to standard output\n" in alert.err
    assert "posted 1 finding of 2026-11-20\n" in alert.err
    assert not (reports.parent / "-").exists()


# ---------------------------------------------------------------- notes


def test_a_note_that_cannot_be_written_is_one_line_after_the_post(
    chat: Fake, reports: Path, alert: Alert
) -> None:
    audit(reports, orphan("one"))
    (reports / "_alerts").write_text("a file in the place of the folder")
    alert(chat, "--webhook", code=4)
    assert "the message was delivered, and the next alert posts it again: " in alert.err
    assert "_alerts/note.json cannot be written" in alert.err
    assert topics(chat) == [["T"]]


def test_where_nobody_can_be_kept_out_the_message_is_posted_all_the_same(
    chat: Fake, reports: Path, alert: Alert
) -> None:
    audit(reports, orphan("one"))
    for each in (reports / "_claims").rglob("*"):
        assert each.is_dir()
    (reports / "_claims" / "alerts").write_text("a file in the place of the folder")
    alert(chat, "--webhook")
    assert "an alert at the same time would post the same" in alert.err
    assert topics(chat) == [["T"]]


@pytest.mark.e2e
def test_of_two_alerts_at_a_time_one_posts(reports: Path) -> None:
    audit(reports, orphan("one"))
    arrived, go_on = threading.Event(), threading.Event()

    def slow(_posted: Posted) -> Answer:
        arrived.set()
        go_on.wait(60)
        return 200, {}, ""

    def start() -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "jobs.cli", "alert", "--reports", str(reports)]
        return subprocess.Popen(
            [*command, "--webhook", "--set", "alerts.timeout_seconds=60"],
            env={**os.environ, WEBHOOK_VARIABLE: service.url},
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    with fake(slow, f"/hook/{TOKEN}") as service:
        first = start()
        assert arrived.wait(60)
        second = start()
        for line in second.stderr or ():
            if "waits for" in line:
                break
        go_on.set()
        said = sorted(each.communicate(timeout=60)[0] for each in (first, second))
    assert said == ["nothing to send for 2026-11-20\n", "posted 1 finding of 2026-11-20\n"]
    assert len(service.posted) == 1


# ---------------------------------------------------------------- several destinations


def test_each_destination_gets_what_it_did_not_get_and_one_that_fails_stops_no_other(
    chat: Fake, reports: Path, settings: Path, alert: Alert, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.write_text(
        '[[alerts.destinations]]\nname = "nowhere"\n'
        '[[alerts.destinations]]\nname = "team"\nservice = "SLACK"\n'
        '[[alerts.destinations]]\nname = "on-call"\nservice = "JSON"\nseverity = "CRITICAL"\n'
    )
    audit(reports, orphan("one"), orphan("two", topic="U", severity="WARNING"))
    with fake(slack, f"/services/T0/B1/{TOKEN}") as team:
        monkeypatch.setenv(f"{WEBHOOK_VARIABLE}_TEAM", team.url)
        monkeypatch.setenv(f"{WEBHOOK_VARIABLE}_ON_CALL", chat.url)
        team.answers = [(404, {}, "no_service")]
        alert(None, "--webhook", code=2)
        assert alert.out == "on-call: posted 1 finding of 2026-11-20\n"
        assert "alerts.destinations nowhere: expected the webhook's URL in REBAL" in alert.err
        assert "team: the message was not delivered (SLACK): no_service: the webhook" in alert.err
        monkeypatch.setenv(f"{WEBHOOK_VARIABLE}_NOWHERE", chat.url)
        alert(None, "--webhook")
    assert alert.out.splitlines() == [
        "nowhere: posted 2 findings of 2026-11-20",
        "team: posted 2 findings of 2026-11-20",
        "on-call: nothing to send for 2026-11-20",
    ]
    assert topics(chat) == [["T"], ["T", "U"]]


def test_a_destination_for_some_groups_gets_what_is_about_these_alone(
    chat: Fake, reports: Path, settings: Path, alert: Alert, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.write_text(
        '[[alerts.destinations]]\nname = "orders"\nservice = "JSON"\ngroups = "ORDER_.*"\n'
        '[[alerts.destinations]]\nname = "all"\nservice = "JSON"\n'
    )
    audit(reports, orphan("one"), orphan("two", consumer_group="ORDER_1", topic="U"))
    for name in ("ORDERS", "ALL"):
        monkeypatch.setenv(f"{WEBHOOK_VARIABLE}_{name}", chat.url)
    alert(None, "--webhook")
    assert topics(chat) == [["U"], ["T", "U"]]
    alert(None, "--webhook")
    # Nothing is left for either of them.
    assert "orders: nothing to send" in alert.out


# ---------------------------------------------------------------- incidents


def events(service: Fake) -> list[tuple[str, str]]:
    """Action and key of each event since the last time."""
    found = [(each["event_action"], each["dedup_key"]) for each in service.bodies]
    service.posted.clear()
    return found


ON_CALL = ("--webhook", "--set", "alerts.service=PAGERDUTY")


def test_an_incident_is_triggered_once_and_resolved_when_its_topic_is_well(
    reports: Path, alert: Alert
) -> None:
    of_t, of_u = incident_key(("C", "G", "T")), incident_key(("C", "G", "U"))
    with fake(pagerduty, "/v2/enqueue") as on_call:

        def told(*arguments: str) -> list[tuple[str, str]]:
            alert(on_call, *ON_CALL, *arguments, secret=SIGNING_SECRET)
            return events(on_call)

        audit(reports, orphan("one"), orphan("two", queue_id=1), orphan("three", topic="U"))
        assert told() == [("trigger", of_t), ("trigger", of_u)]
        assert told() == []
        # The next night: U goes on, T is well, of another topic nothing is known.
        audit(reports, orphan("three", topic="U", status="PERSISTING"), date="2026-11-21")
        assert told() == [("resolve", of_t)]
        assert alert.out == "posted 0 findings of 2026-11-21, and that 1 incident resolved\n"
        assert told() == []
        # An earlier date says nothing of now.
        audit(reports, date=DATE, run_id="run-2")
        assert told("--date", DATE) == []
        audit(reports, date="2026-11-22")
        assert told() == [("resolve", of_u)]
    noted = json.loads((reports / "_alerts" / "note.json").read_text())
    assert "incidents" not in noted["destinations"][""]


def test_an_incident_that_half_failed_is_known_and_resolved(reports: Path, alert: Alert) -> None:
    trigger = {"routing_key": SIGNING_SECRET, "event_action": "resolve", "dedup_key": "x"}
    with fake(pagerduty, "/v2/enqueue") as on_call:
        audit(reports, orphan("one"), orphan("two", topic="U"))
        on_call.answers = [pagerduty(Posted("", {}, trigger, 0)), (400, {}, "")]
        alert(on_call, *ON_CALL, secret=SIGNING_SECRET, code=4)
        assert len(events(on_call)) == 2
        audit(reports, orphan("two", topic="U"), run_id="run-2")
        alert(on_call, *ON_CALL, secret=SIGNING_SECRET)
        assert events(on_call) == [
            ("trigger", incident_key(("C", "G", "U"))),
            ("resolve", incident_key(("C", "G", "T"))),
        ]
