"""Apprise on this machine: what a service behind its json:// gets, and what is said if it fails."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from jobs.alerts.alerting import WEBHOOK_VARIABLE, ReadyDestination, find_destination
from jobs.alerts.services.apprise import literal, masked
from jobs.alerts.services.service import Attempts, DeliveryError
from jobs.alerts.services.text_message import Link, Message
from jobs.config.settings import Alerts
from jobs.errors import AuditError, SettingsError
from tests.jobs.alerts.test_services import HOSTILE, message
from tests.support.services import TOKEN, Answer, Fake, Posted, fake, taken

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
#: Of all attempts at most; nothing here waits for it.
PATIENCE = 60.0


@pytest.fixture
def chat() -> Iterator[Fake]:
    with fake(taken, f"/hook/{TOKEN}") as service:
        yield service


def url_of(service: Fake, query: str = "") -> str:
    return service.url.replace("http://", "json://") + query


def ready(url: str) -> ReadyDestination:
    return find_destination(Alerts(service="APPRISE"), {WEBHOOK_VARIABLE: url}, pytest.fail)


def deliver(url: str, sent: Message, attempts: int = 1, seconds: float = PATIENCE) -> None:
    ready(url).deliver(sent, NOON, Attempts(seconds, attempts, pytest.fail))


def test_a_service_gets_the_heading_as_title_lines_as_text_and_how_bad_it_is(chat: Fake) -> None:
    deliver(url_of(chat), message())
    (body,) = chat.bodies
    assert chat.posted[0].path == f"/hook/{TOKEN}"
    assert body["title"] == "Rebalance audit of 2026-11-20: found"
    assert body["message"] == "• G / T (C)\n    GHOST_MEMBER: because"
    assert body["type"] == "failure"


def test_a_message_that_nothing_was_found_has_a_text_and_is_no_failure(chat: Fake) -> None:
    deliver(url_of(chat), Message("2026-11-20", "run-1", "Audit: no open findings", (), 0))
    assert chat.bodies[0]["message"] == "Audit: no open findings"
    assert chat.bodies[0]["type"] == "info"


def test_names_stay_text_whatever_the_service_makes_of_text(chat: Fake) -> None:
    deliver(url_of(chat), message(f":fire: \\n {HOSTILE} @wang _b_"))
    text = chat.bodies[0]["message"]
    assert ":fire: \\n " in text
    for mark in ("<!", "<@", "](", "*", "`", "~", "@wang", "@all", "://", " _", "<a", "<f"):
        assert mark not in text
    deliver(url_of(chat, "?format=markdown"), message("[G](b) _i_"))
    deliver(url_of(chat, "?format=html"), message("<b>G</b>"))
    markdown, html = (each["message"].replace("\u200b", "") for each in chat.bodies[1:])
    assert "\\[G\\]\\(b\\) \\_i\\_" in markdown
    assert "&lt;b&gt;G&lt;/b&gt;" in html


def test_the_link_of_the_page_stays_one() -> None:
    page = "https://audit.example.org/a_b/*.html"
    assert literal(Link(f"The page: {page}", page)) == f"The page: {page}"


@pytest.fixture
def at_most_160(monkeypatch: pytest.MonkeyPatch) -> None:
    from apprise.plugins.custom_json import NotifyJSON  # noqa: PLC0415 - an extra

    monkeypatch.setattr(NotifyJSON, "body_maxlen", 160)


def test_no_more_is_sent_than_the_service_takes(chat: Fake, at_most_160: None) -> None:
    deliver(url_of(chat), message(number=50))
    (body,) = chat.bodies
    assert len(body["title"] + body["message"]) <= 160
    assert "more groups and topics" in body["message"]


def test_what_is_too_long_as_html_comes_in_parts(chat: Fake, at_most_160: None) -> None:
    deliver(url_of(chat, "?format=html"), message("&" * 80))
    parts = [each["message"] for each in chat.bodies]
    assert max(map(len, parts)) <= 160
    assert sum(each.count("&amp;") for each in parts) == 80


def test_an_attempt_waits_no_longer_than_the_settings_say(monkeypatch: pytest.MonkeyPatch) -> None:
    import requests  # noqa: PLC0415 - an extra

    waits: list[Any] = []

    def request(*_: Any, timeout: Any, **__: Any) -> Any:
        waits.append(timeout)
        raise requests.ConnectionError

    monkeypatch.setattr(requests, "request", request)
    with pytest.raises(DeliveryError):
        deliver("json://chat.example/?rto=600", message(), seconds=7)
    assert waits == [(7, 7)]


def test_apprise_makes_the_attempts_of_the_settings(chat: Fake) -> None:
    chat.answers = [(503, {}, "")]
    deliver(url_of(chat, "?wait=0"), message(), attempts=2)
    assert len(chat.posted) == 2
    chat.answers = [(503, {}, "")] * 2
    with pytest.raises(DeliveryError, match=r"error=503"):
        deliver(url_of(chat, "?wait=0"), message(), attempts=2)
    assert len(chat.posted) == 4


def test_the_line_of_the_log_is_in_the_error_and_nowhere_else(
    chat: Fake, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lines for developers have the URL, whatever level the log of the process has."""
    logged: list[logging.LogRecord] = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            logged.append(record)

    monkeypatch.setattr(logging.root, "handlers", [Handler()])
    monkeypatch.setattr(logging.getLogger("apprise"), "propagate", True)
    chat.answers = [(404, {}, TOKEN)]
    with pytest.raises(DeliveryError) as raised:
        deliver(url_of(chat), message())
    assert str(raised.value) == "Failed to send JSON POST notification: Page not found., error=404."
    assert not [each for each in logged if each.name == "apprise"]
    assert capsys.readouterr() == ("", "")


def test_a_service_that_cannot_be_reached_is_said_without_its_url() -> None:
    with pytest.raises(DeliveryError, match=r"Connection error .* to \*\*\*\.$"):
        deliver(f"json://{TOKEN}.invalid/x", message())


@pytest.mark.parametrize("query", ["", "?optional=yes"])
def test_no_redirect_is_followed_and_nothing_makes_a_failure_well(chat: Fake, query: str) -> None:
    chat.answers = [(307, {"Location": chat.url}, "")]
    with pytest.raises(DeliveryError):
        deliver(url_of(chat, query), message())
    assert len(chat.posted) == 1


@pytest.mark.long
def test_all_attempts_together_end_in_their_time_whatever_the_server_does() -> None:
    done = threading.Event()

    def slow(_: Posted) -> Answer:
        done.wait(PATIENCE)
        return 200, {}, ""

    with fake(slow, "/") as service:
        try:
            # Its URL says that it is to be waited for.
            never = url_of(service, "?rto=600&retry=10")
            with pytest.raises(DeliveryError, match=r"not within 1\.1 s"):
                deliver(never, message(), seconds=0.1)
            assert not done.is_set()
        finally:
            done.set()


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("nothing://s3cr3t/x", "expected a URL that Apprise knows"),
        ("s3cr3t", "expected a URL that Apprise knows"),
        ("tgram://s3cr3t", "expected a URL that Apprise knows"),
        ("dingtalk://SECs3cr3t@s3cr3t", "expected service DINGTALK"),
        ("feishu://s3cr3t12345", "expected service FEISHU"),
        ("lark://s3cr3t12345", "expected service FEISHU"),
        ("https://open.larksuite.com/open-apis/bot/v2/hook/s3cr3t12345", "service FEISHU"),
        ("wecombot://s3cr3t12345", "expected service WECOM"),
    ],
)
def test_a_url_that_apprise_does_not_know_or_does_not_hear_is_refused_and_not_shown(
    url: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SettingsError, match=said) as raised:
        ready(url)
    assert "s3cr3t" not in str(raised.value)
    assert capsys.readouterr() == ("", "")


def test_a_url_of_apprise_needs_its_service() -> None:
    with pytest.raises(SettingsError, match="a URL of Apprise needs service APPRISE"):
        find_destination(Alerts(), {WEBHOOK_VARIABLE: "tgram://s3cr3t/x"}, pytest.fail)


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "apprise", None)
    with pytest.raises(AuditError, match=r"pip install 'rocketmq-rebalance-audit\[apprise\]'"):
        ready(f"json://{TOKEN}/x")


def test_no_part_of_the_url_is_in_a_line_of_the_log() -> None:
    url = "tgram://123456789:ab-Cd_ef/p%40ss/12/?x=k%3Dy"
    text = "bot123456789 AB-cd_ef p@ss at 12 k=y of x, 1234\nnext"
    assert masked(text, url) == "bot*** *** *** at *** *** of ***, 1234\\nnext"
    assert masked("x" * 900, url) == "x" * 399 + "…"
