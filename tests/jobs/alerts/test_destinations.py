"""Secrets: where they come from, and that nobody sees them."""

from __future__ import annotations

import traceback
from pathlib import Path

import pytest

from jobs.alerts.alerting import (
    SECRET_VARIABLE,
    WEBHOOK_VARIABLE,
    SecretSources,
    find_destination,
)
from jobs.config.settings import Alerts, NamedDestination, load_settings
from jobs.errors import SettingsError

SECRET = "T0/B1/s3cr3t"  # noqa: S105


def assert_secret_is_kept(error: BaseException) -> None:
    assert "s3cr3t" not in "".join(traceback.format_exception(error))


def found(environment: dict[str, str], file: Path | None, warnings: list[str] | None = None) -> str:
    warn = pytest.fail if warnings is None else warnings.append
    secrets = SecretSources("alerts", "", environment, warn)
    return secrets.find(WEBHOOK_VARIABLE, "webhook_file", file and str(file))


def test_the_url_comes_from_the_environment_before_the_file(tmp_path: Path) -> None:
    file = tmp_path / "webhook"
    file.write_bytes(b"https://chat.example/file \r\n# ours\n")
    file.chmod(0o600)
    from_environment = {WEBHOOK_VARIABLE: " https://chat.example/environment\n"}
    assert found(from_environment, file) == "https://chat.example/environment"
    assert found({WEBHOOK_VARIABLE: ""}, file) == "https://chat.example/file"
    assert found({}, None) == ""


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (None, r"alerts\.webhook_file .*webhook cannot be read: No such"),
        (b"s3cr3t\xff", "UnicodeDecodeError"),
        (b"\nhttps://chat.example", "its first line is empty"),
    ],
)
def test_a_file_that_cannot_be_read_is_named_and_not_shown(
    tmp_path: Path, data: bytes | None, said: str
) -> None:
    if data is not None:
        (tmp_path / "webhook").write_bytes(data)
    with pytest.raises(SettingsError, match=said) as raised:
        found({}, tmp_path / "webhook")
    assert_secret_is_kept(raised.value)


@pytest.mark.parametrize(("mode", "warns"), [(0o600, False), (0o640, False), (0o644, True)])
def test_a_file_that_everybody_can_read_is_said(tmp_path: Path, mode: int, warns: bool) -> None:
    file = tmp_path / "webhook"
    file.write_text(f"https://chat.example/{SECRET}\n")
    file.chmod(mode)
    warnings: list[str] = []
    assert found({}, file, warnings) == f"https://chat.example/{SECRET}"
    assert len(warnings) == warns
    assert all("chmod o-rw" in each and "s3cr3t" not in each for each in warnings)


@pytest.mark.parametrize(
    "url",
    [
        f"chat.example/{SECRET}",
        f"ftp://chat.example/{SECRET}",
        f"file:///{SECRET}",
        f"https://chat.example:port/{SECRET}",
        f"https://chat.example:0/{SECRET}",
        f"https://chat.example/{SECRET} x",
        f"https://chat.example/{SECRET}\nX: y",
        f"https://chat.example/{SECRET}\x7f",
        f"https://[::1/{SECRET}",
        f"https:///{SECRET}",
        f"https://chat.example/{SECRET}é",
    ],
)
def test_what_is_no_url_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(SettingsError, match="expected the webhook's URL as") as raised:
        find_destination(Alerts(), {WEBHOOK_VARIABLE: url}, pytest.fail)
    assert_secret_is_kept(raised.value)


def test_pagerduty_has_its_url_and_needs_its_key() -> None:
    settings = Alerts(service="PAGERDUTY")
    ready = find_destination(settings, {SECRET_VARIABLE: "key"}, pytest.fail)
    assert (ready.service, ready.has_incidents) == ("PAGERDUTY", True)
    with pytest.raises(SettingsError, match="PAGERDUTY needs a secret: expected it in REBALANCE"):
        find_destination(settings, {}, pytest.fail)


def test_a_named_destination_has_variables_of_its_own() -> None:
    settings = NamedDestination(name="on-call", severity="CRITICAL")
    environment = {f"{WEBHOOK_VARIABLE}_ON_CALL": "https://hooks.slack.com/services/x"}
    ready = find_destination(settings, environment, pytest.fail)
    assert (ready.to.name, ready.service, ready.to.severity) == ("on-call", "SLACK", "CRITICAL")
    with pytest.raises(SettingsError, match="came neither") as raised:
        find_destination(settings, {WEBHOOK_VARIABLE: "https://other"}, pytest.fail)
    assert "REBALANCE_AUDIT_WEBHOOK_ON_CALL" in str(raised.value)


@pytest.mark.parametrize(
    ("url", "service"),
    [("https://chat.example/x", "JSON"), ("https://x.logic.azure.com", "TEAMS")],
)
def test_a_service_that_calls_nobody_takes_no_mentions(url: str, service: str) -> None:
    settings = Alerts(owners={".*": "ops"}, mentions={"ops": "U1"})
    with pytest.raises(SettingsError, match=f"alerts.mentions: expected one of .*{service}"):
        find_destination(settings, {WEBHOOK_VARIABLE: url}, pytest.fail)


def test_nothing_that_is_printed_of_a_destination_has_its_secrets() -> None:
    environment = {WEBHOOK_VARIABLE: f"https://chat.example/{SECRET}", SECRET_VARIABLE: SECRET}
    assert "s3cr3t" not in repr(find_destination(Alerts(), environment, pytest.fail))


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("alerts.service=IRC", "alerts.service: expected 'SLACK'"),
        ('alerts.destinations=[{name="A"}]', "alerts.destinations.0.name: expected a text like"),
        ('alerts.destinations=[{name="a"},{name="a"}]', "destinations of different names"),
        ('alerts={service="SLACK",destinations=[{name="a"}]}', "expected service in each of the"),
        ("alerts.service=EMAIL", "alerts: expected a section email"),
        (
            'alerts={service="SLACK",email={host="h",sender="a@b",recipients=["c@d"]}}',
            "alerts: expected no section email, for service is SLACK",
        ),
        ('alerts.mentions={"ops"="U1"}', "alerts: expected mentions of names in owners, came"),
        (
            'alerts={owners={".*"="ops"},destinations=[{name="a",mentions={"op"="U1"}}]}',
            "expected mentions of names in owners, came \\['op'\\]",
        ),
        (
            'alerts={owners={".*"="ops"},mentions={"ops"="<!channel>"}}',
            "alerts.mentions.ops: expected a text like",
        ),
        ('alerts.email={host="h",sender="a@b",recipients=["c"]}', "alerts.email.recipients.0:"),
    ],
)
def test_settings_that_cannot_be_are_refused_by_their_path(override: str, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        load_settings(None, [override])
