"""The page about alerts: each block of settings and each command works as it stands there."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from jobs.alerts.alerting import SERVICES, find_destination
from jobs.cli import main
from jobs.config.settings import Alerts, load_settings
from tests.support import services
from tests.support.services import SIGNING_SECRET, fake
from tests.support.written_reports import publish, report_row

PAGE = Path(__file__).parent.parent.parent / "docs" / "alerts.md"
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)
SETTINGS = [text for kind, text in BLOCKS if kind == "toml"]
COMMANDS = [text for kind, text in BLOCKS if kind == "sh"]


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    """A folder in the place of /etc/rebalance-audit, with a URL and a secret."""
    for name, text in (("webhook", "https://chat.example/x"), ("secret", SIGNING_SECRET)):
        (tmp_path / name).write_text(f"{text}\n")
        (tmp_path / name).chmod(0o600)
    return tmp_path


def settings(text: str, secrets: Path) -> Alerts:
    file = secrets / "audit.toml"
    file.write_text(text.replace("/etc/rebalance-audit", str(secrets)))
    return load_settings(file).alerts


@pytest.mark.parametrize("text", SETTINGS, ids=range(len(SETTINGS)))
def test_every_block_of_settings_makes_destinations(text: str, secrets: Path) -> None:
    alerts = settings(text, secrets)
    for each in alerts.destinations or (alerts,):
        if each.service == "APPRISE":
            (secrets / "webhook").write_text("json://chat.example/x\n")
        if each.service or each.webhook_file:
            assert find_destination(each, {}, pytest.fail).service == (each.service or "JSON")


def test_every_service_has_a_block() -> None:
    shown = set(re.findall(r'^service = "(\w+)"', PAGE.read_text(encoding="utf-8"), re.M))
    assert shown == {*SERVICES, "APPRISE", "EMAIL"}


#: Those of one service with a webhook, by its name.
WITH_WEBHOOK = {
    names[0]: text
    for text in SETTINGS
    if len(names := re.findall(r'^service = "(\w+)"', text, re.M)) == 1 and names[0] in SERVICES
}


def alert(text: str, secrets: Path) -> None:
    """Posts the findings of a day by these settings."""
    tables = {"orphaned_queues": [report_row("orphaned_queues")]}
    publish(secrets / "reports", "2026-11-20", tables)
    settings(text, secrets)
    where = ["--reports", str(secrets / "reports"), "--settings", str(secrets / "audit.toml")]
    assert main(["alert", *where, "--webhook"]) == 0


@pytest.mark.long
@pytest.mark.parametrize("name", SERVICES)
def test_what_a_block_sets_up_delivers(
    name: str, secrets: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = WITH_WEBHOOK[name]
    rules, path, _ = services.SERVICES[name]
    with fake(rules, path) as service:
        (secrets / "webhook").write_text(f"{service.url}\n")
        if "webhook_file" not in text:
            named = 'webhook_file = "/etc/rebalance-audit/webhook"'
            text = text.replace("[alerts]", f"[alerts]\n{named}")
        alert(text, secrets)
    assert len(service.posted) == 1
    assert capsys.readouterr().out == "posted 1 finding of 2026-11-20\n"


@pytest.mark.parametrize("text", COMMANDS, ids=range(len(COMMANDS)))
def test_every_command_works(
    text: str, here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    publish(Path("out/reports"), "2026-11-20", {"orphaned_queues": [report_row("orphaned_queues")]})
    command = text.replace("/var/lib/node_exporter", str(here))
    program, *arguments = shlex.split(command)
    assert program == "rebalance-audit"
    with fake(services.taken, "/x") as service:
        monkeypatch.setenv("REBALANCE_AUDIT_WEBHOOK", service.url)
        assert main(arguments) == 0
    assert len(service.posted) == ("--webhook" in arguments)
    assert (here / "rebalance.prom").exists() == ("--metrics" in arguments)
    assert capsys.readouterr().out


def test_the_fields_of_the_json_are_those_of_the_page(secrets: Path) -> None:
    with fake(services.taken, "/x") as service:
        (secrets / "webhook").write_text(f"{service.url}\n")
        alert('[alerts]\nwebhook_file = "/etc/rebalance-audit/webhook"', secrets)
    (body,) = service.bodies
    section = PAGE.read_text(encoding="utf-8").partition("### JSON")[2].partition("```toml")[0]
    named = set(re.findall(r"`(\w+)`", section))
    assert {*body, *body["problems"][0]} <= named, json.dumps(body)


@pytest.mark.parametrize(
    ("page", "language"), [(PAGE, "en"), (PAGE.parent / "zh" / PAGE.name, "zh")]
)
def test_the_example_is_the_message_of_the_sample(
    page: Path, language: str, sample: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    url = "https://audit.example.org/report/dt={date}.html"
    alert = ["alert", *sample, "--set", f'alerts.report_url="{url}"', "--language", language]
    assert main(alert) == 0
    lines = iter(capsys.readouterr().out.splitlines())
    blocks = re.findall(r"^```text\n(Rebalance audit.*?)^```", page.read_text("utf-8"), re.M | re.S)
    for shown in blocks[0].splitlines():
        # What is left out of a line, or of lines, is three dots.
        begin, whole = shown.removesuffix("...").rstrip(), not shown.endswith("...")
        assert any(each == begin if whole else each.startswith(begin) for each in lines), shown


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The options that name the reports of the sample dumps, and its settings."""
    data = PAGE.parent.parent / "tests" / "data"
    settings = ["--settings", str(data / "sample.toml"), "--quiet"]
    output = tmp_path_factory.mktemp("sample")
    dumps = sorted(map(str, (data / "captures").glob("*/dump.jsonl.gz")))
    run = ["run", "--engine", "local", "--output", str(output), *settings]
    assert main([*run, "--dumps", *dumps]) == 0
    return ["--reports", str(output / "reports"), *settings]
