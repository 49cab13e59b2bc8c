"""The command: metrics to a file, messages to a webhook on this machine that keeps its secret."""

from __future__ import annotations

import json
import socket
import threading
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from jobs.alerts.webhook import WEBHOOK_VARIABLE, WebhookError, find_webhook, post
from jobs.cli import main
from jobs.errors import SettingsError
from tests.support.written_reports import publish, report_row

SECRET = "T0/B1/s3cr3t"  # noqa: S105


@dataclass
class Chat:
    """A webhook: the statuses that it answers with, one after the other, then 200; what it got."""

    url: str
    answers: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    messages: list[dict[str, Any]] = field(default_factory=list)
    methods: list[str] = field(default_factory=list)


@pytest.fixture
def chat() -> Iterator[Chat]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            chat.methods.append(f"{self.command} {self.headers['Content-Type']}")
            chat.messages.append(json.loads(body))
            status, headers = chat.answers.pop(0) if chat.answers else (200, {})
            self.send_response(status)
            for name, each in headers.items():
                self.send_header(name, each)
            self.end_headers()
            self.wfile.write(f"you called {self.path}".encode())

        do_GET = do_POST  # noqa: N815

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing on the console."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    chat = Chat(f"http://127.0.0.1:{server.server_port}/services/{SECRET}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield chat
    server.shutdown()
    server.server_close()
    thread.join()


def send(url: str, attempts: int = 3, timeout: float = 60) -> list[float]:
    """Posts a message; the pauses between the attempts."""
    pauses: list[float] = []
    post(url, {"text": "é"}, timeout, attempts, pauses.append)
    return pauses


def test_a_message_arrives_as_json(chat: Chat) -> None:
    assert send(chat.url) == []
    assert chat.messages == [{"text": "é"}]
    assert chat.methods == ["POST application/json; charset=utf-8"]


def test_what_may_pass_is_tried_again_after_a_while(chat: Chat) -> None:
    chat.answers = [(503, {}), (429, {"Retry-After": "7"})]
    assert send(chat.url) == [1.0, 7.0]
    assert len(chat.messages) == 3
    chat.answers = [(500, {"Retry-After": "99999"}), (500, {"Retry-After": "Fri, 31 Dec 1999"})]
    assert send(chat.url) == [30.0, 2.0]


@pytest.mark.parametrize(
    ("answers", "attempts", "posts", "said"),
    [
        ([(404, {})], 3, 1, "HTTP status 404"),
        ([(403, {})], 3, 1, "HTTP status 403"),
        ([(500, {})] * 3, 3, 3, "HTTP status 500"),
        ([(500, {})], 1, 1, "HTTP status 500"),
        ([(302, {"Location": "/elsewhere"})], 3, 1, "HTTP status 302"),
        ([(308, {"Location": "/elsewhere"})], 3, 1, "HTTP status 308"),
    ],
)
def test_what_is_refused_is_told_without_the_url(
    chat: Chat, answers: list[tuple[int, dict[str, str]]], attempts: int, posts: int, said: str
) -> None:
    chat.answers = list(answers)
    with pytest.raises(WebhookError, match=said) as raised:
        send(chat.url, attempts)
    assert len(chat.messages) == posts
    assert_secret_is_kept(raised.value)


def assert_secret_is_kept(error: BaseException) -> None:
    told = "".join(traceback.format_exception(error))
    assert "s3cr3t" not in told


def test_where_nobody_answers_the_attempts_end(chat: Chat) -> None:
    pauses: list[float] = []
    with pytest.raises(WebhookError, match=r"no answer \(ConnectionRefusedError\)") as raised:
        post(f"http://127.0.0.1:1/services/{SECRET}", {}, 60, 2, pauses.append)
    assert_secret_is_kept(raised.value)
    assert pauses == [1.0]  # none after the last attempt


def test_a_host_that_can_have_no_address_is_no_answer() -> None:
    with pytest.raises(WebhookError, match="no answer") as raised:
        send(f"http://{'a' * 64}.example/services/{SECRET}", attempts=1)
    assert_secret_is_kept(raised.value)


def test_a_webhook_that_hangs_is_given_up(chat: Chat, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/services/{SECRET}"
        with pytest.raises(WebhookError, match=r"no answer \(TimeoutError\)") as raised:
            send(url, attempts=1, timeout=0.2)
    assert_secret_is_kept(raised.value)


def test_the_url_comes_from_the_environment_before_the_file(tmp_path: Path) -> None:
    file = tmp_path / "webhook"
    file.write_bytes(b"https://chat.example/file \r\n# ours\n")
    from_environment = {WEBHOOK_VARIABLE: " https://chat.example/environment\n"}
    assert find_webhook(from_environment, str(file)) == "https://chat.example/environment"
    assert find_webhook({WEBHOOK_VARIABLE: ""}, str(file)) == "https://chat.example/file"
    with pytest.raises(SettingsError, match="came neither"):
        find_webhook({}, None)
    with pytest.raises(SettingsError, match=r"webhook_file .*nowhere: FileNotFoundError"):
        find_webhook({}, str(tmp_path / "nowhere"))


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
    with pytest.raises(SettingsError, match="expected a URL") as raised:
        find_webhook({WEBHOOK_VARIABLE: url}, None)
    assert_secret_is_kept(raised.value)


# ---------------------------------------------------------------- the command line

TABLES = {"orphaned_queues": [report_row("orphaned_queues", finding_id="one")]}


def run(monkeypatch: pytest.MonkeyPatch, folder: Path, url: str | None, *arguments: str) -> int:
    if url is None:
        monkeypatch.delenv(WEBHOOK_VARIABLE, raising=False)
    else:
        monkeypatch.setenv(WEBHOOK_VARIABLE, url)
    return main(["alert", "--reports", str(folder), *arguments])


def test_a_finding_is_told_once_however_often_the_date_is_audited(
    chat: Chat,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    publish(tmp_path, "2026-11-20", TABLES)
    assert run(monkeypatch, tmp_path, chat.url, "--webhook") == 0
    assert capsys.readouterr().out == "told of 1 findings of 2026-11-20\n"
    assert run(monkeypatch, tmp_path, chat.url, "--webhook") == 0
    assert capsys.readouterr().out == "nothing to tell of 2026-11-20\n"
    more = [*TABLES["orphaned_queues"], report_row("orphaned_queues", finding_id="two", topic="U")]
    publish(tmp_path, "2026-11-20", {"orphaned_queues": more}, run_id="run-2")
    assert run(monkeypatch, tmp_path, chat.url, "--webhook") == 0
    first, second = chat.messages
    assert "G / T " in first["text"]
    assert "G / U " in second["text"]
    assert "G / T " not in second["text"]


def test_a_webhook_that_fails_loses_neither_the_metrics_nor_the_message(
    chat: Chat,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    publish(tmp_path, "2026-11-20", TABLES)
    pointer = (tmp_path / "_published" / "dt=2026-11-20.json").read_text()
    metrics = tmp_path / "node_exporter" / "rebalance.prom"
    chat.answers = [(404, {})]
    assert run(monkeypatch, tmp_path, chat.url, "--metrics", str(metrics), "--webhook") == 4
    said = capsys.readouterr()
    assert "HTTP status 404; the reports are published" in said.err
    assert "s3cr3t" not in said.err + said.out
    assert "Traceback" not in said.err
    assert "rebalance_audit_findings{" in metrics.read_text()
    assert [path.name for path in metrics.parent.iterdir()] == ["rebalance.prom"]
    assert (tmp_path / "_published" / "dt=2026-11-20.json").read_text() == pointer
    assert run(monkeypatch, tmp_path, chat.url, "--webhook") == 0
    assert len(chat.messages) == 2


def test_metrics_alone_post_and_print_no_message(
    chat: Chat, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    publish(tmp_path, "2026-11-20", TABLES)
    metrics = tmp_path / "rebalance.prom"
    assert run(monkeypatch, tmp_path, chat.url, "--metrics", str(metrics)) == 0
    assert capsys.readouterr().out == f"metrics of 2026-11-20 written to {metrics}\n"
    assert chat.messages == []


def test_without_a_place_to_tell_it_the_message_is_printed_and_not_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    publish(tmp_path, "2026-11-20", TABLES)
    for _ in range(2):
        assert run(monkeypatch, tmp_path, None) == 0
        assert capsys.readouterr().out.startswith("*Rebalance audit of 2026-11-20*: 1 new finding ")


def test_always_tells_that_there_is_nothing(
    chat: Chat, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(tmp_path, "2026-11-20", {})
    assert run(monkeypatch, tmp_path, chat.url, "--webhook") == 0
    assert chat.messages == []
    assert run(monkeypatch, tmp_path, chat.url, "--webhook", "--set", "alerts.tell=ALWAYS") == 0
    assert chat.messages[0]["text"] == "*Rebalance audit of 2026-11-20*: no open findings"


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--webhook"], 2, "expected the webhook's URL in REBALANCE_AUDIT_WEBHOOK"),
        (["--date", "2026-11-19"], 3, "no published report of 2026-11-19"),
        (["--metrics", "/proc/rebalance.prom"], 4, "metrics cannot be written to /proc/"),
        (["--set", "alerts.tell=SOMETIMES"], 2, "alerts.tell: Input should be 'NEW', 'OPEN' or"),
    ],
)
def test_what_is_wrong_is_told_with_its_exit_code(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    code: int,
    said: str,
) -> None:
    publish(tmp_path, "2026-11-20", TABLES)
    assert run(monkeypatch, tmp_path, None, *arguments) == code
    error = capsys.readouterr().err
    assert said in error
    assert "Traceback" not in error
