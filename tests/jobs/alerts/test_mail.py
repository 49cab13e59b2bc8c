"""E-mail: what a mail server gets, over which connection, and what its refusals mean."""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from email import message_from_bytes, policy
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from jobs.alerts.alerting import SECRET_VARIABLE, find_destination
from jobs.alerts.services.mail import mail_of, send
from jobs.alerts.services.service import Refusal
from jobs.alerts.services.text_message import Cause, Item, Message
from jobs.config.settings import Alerts, Email
from jobs.errors import SettingsError
from jobs.reports.tables import Place
from tests.support.services import MailServer, mail_server

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
PASSWORD = "pa55word"  # noqa: S105
AMPLE = 60.0
NAME = "G\ud800é\U0001f525 / T"
ITEM = Item(Place("C", "G", "T"), "CRITICAL", True, NAME, ("." * 99, ".", "x" * 2000), ())
HEADING = "Rebalance audit of 2026-11-20: 1 new finding"
MESSAGE = Message("2026-11-20", "run", HEADING, (ITEM,), causes=(Cause.of_one(ITEM),))


@pytest.fixture
def server() -> Iterator[MailServer]:
    with mail_server() as server:
        yield server


def email(port: int, **values: Any) -> Email:
    of_server = {"host": "localhost", "port": port, "security": "NONE"}
    recipients = ("a@example.org", "b@example.org")
    told = {**of_server, "sender": "audit@example.org", "recipients": recipients}
    return Email(**told | values)


def deliver(settings: Email, timeout: float = AMPLE) -> Refusal | None:
    return send(mail_of(MESSAGE, settings, NOON), settings, PASSWORD, timeout)


def test_the_mail_arrives_with_the_whole_message(server: MailServer) -> None:
    assert deliver(email(server.port)) is None
    (data,) = server.mails
    mail = message_from_bytes(data, policy=policy.default)
    assert mail["Subject"] == MESSAGE.heading
    assert mail["To"] == "a@example.org, b@example.org"
    assert mail["Auto-Submitted"] == "auto-generated"
    assert mail["Date"] == "Fri, 20 Nov 2026 12:00:00 +0000"
    assert mail["Message-ID"].endswith("@example.org>")
    lines = mail.get_content().splitlines()  # type: ignore[attr-defined]
    assert lines[:2] == [MESSAGE.heading, "• G?é\U0001f525 / T"]
    assert [line.strip() for line in lines[2:5]] == ["." * 99, ".", "x" * 2000]


@pytest.mark.parametrize(
    ("command", "answer", "refusal"),
    [
        ("MAIL", "550 no", Refusal("SMTP code 550")),
        ("MAIL", "451 later", Refusal("SMTP code 451", 0.0)),
        ("MAIL", "421 closing", Refusal("SMTP code 421", 0.0)),
        ("RCPT", "550 nobody", Refusal("SMTP code 550")),
        ("RCPT", "450 greylisted", Refusal("SMTP code 450", 0.0)),
        ("DATA", "554 spam", Refusal("SMTP code 554")),
    ],
)
def test_a_refusal_may_pass_or_not(
    server: MailServer, command: str, answer: str, refusal: Refusal
) -> None:
    server.answers = {command: answer}
    assert deliver(email(server.port)) == refusal
    assert server.mails == []


def test_a_server_that_offers_no_tls_gets_neither_a_password_nor_a_mail(server: MailServer) -> None:
    refusal = deliver(email(server.port, security="STARTTLS", user="audit"))
    assert refusal is not None
    assert "does not offer" in refusal.reason
    assert not [line for line in server.commands if line.split()[0] in ("AUTH", "MAIL")]


def test_a_server_that_hangs_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        refusal = deliver(email(silent.getsockname()[1]), timeout=0.1)
    assert refusal == Refusal("no answer: not within 0.1 s", 0.0)


def test_a_server_that_is_not_there_is_no_answer() -> None:
    assert deliver(email(1)) == Refusal("no answer: the connection was refused", 0.0)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl to make a certificate")
def test_with_starttls_the_login_and_the_mail_are_encrypted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
         "-nodes", "-keyout", key, "-out", certificate, "-days", "2", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=DNS:localhost"],
        check=True, capture_output=True,
    )  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with mail_server(context) as server:
        settings = email(server.port, security="STARTTLS", user="audit")
        refusal = deliver(settings)
        assert refusal is not None  # nobody vouches for this certificate
        assert "certificate is not trusted" in refusal.reason
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        assert deliver(settings) is None
        assert len(server.mails) == 1
        assert server.commands.index("STARTTLS") < len(server.commands)
        server.answers = {"AUTH": "535 5.7.8 no such user"}
        refused = deliver(settings)
    assert refused == Refusal("SMTP code 535: the user or the password is wrong")


@pytest.mark.parametrize(
    "values",
    [
        {"sender": "audit@example.org\nBcc: x@evil.example"},
        {"sender": "Audit <audit@example.org>"},
        {"sender": "audit"},
        {"recipients": ()},
        {"recipients": ("a@example.org, b@example.org",)},
        {"security": "NONE", "user": "audit"},
        {"host": ""},
    ],
)
def test_what_is_no_address_or_shows_a_password_is_refused(values: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        email(25, **values)


def test_a_user_has_a_password_and_a_password_a_user() -> None:
    without_user = Alerts(service="EMAIL", email=email(25))
    with_user = Alerts(service="EMAIL", email=email(25, security="TLS", user="audit"))
    without = [(with_user, {}), (without_user, {SECRET_VARIABLE: PASSWORD})]
    for settings, environment in without:
        with pytest.raises(SettingsError, match=r"expected email\.user and a password"):
            find_destination(settings, environment, pytest.fail)
    assert find_destination(Alerts(email=email(25)), {}, pytest.fail).service == "EMAIL"
