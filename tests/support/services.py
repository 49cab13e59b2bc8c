"""Services that take alerts, on this machine; each answers as the true one does, errors too."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import socketserver
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

#: Status, headers, body.
Answer = tuple[int, dict[str, str], str]
TOKEN = "s3cr3t-t0ken"  # noqa: S105
SIGNING_SECRET = "SEC-s1gn1ng"  # noqa: S105


@dataclass
class Posted:
    """A request: its path with the query, its headers, its JSON."""

    path: str
    headers: dict[str, str]
    body: Any
    size: int


@dataclass
class Fake:
    """A service: what it answers to a request, and what came; ``answers`` go before its rules."""

    url: str
    rules: Callable[[Posted], Answer]
    answers: list[Answer] = field(default_factory=list)
    posted: list[Posted] = field(default_factory=list)

    @property
    def bodies(self) -> list[Any]:
        return [each.body for each in self.posted]


@contextmanager
def fake(rules: Callable[[Posted], Answer], path: str) -> Iterator[Fake]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            data = self.rfile.read(int(self.headers["Content-Length"]))
            posted = Posted(self.path, dict(self.headers), json.loads(data), len(data))
            service.posted.append(posted)
            status, headers, text = service.answers.pop(0) if service.answers else rules(posted)
            self.send_response(status)
            for name, each in headers.items():
                self.send_header(name, each)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing on the console."""

    class Server(ThreadingHTTPServer):
        def handle_error(self, *_: Any) -> None:
            """A client that gives up goes away."""

    server = Server(("127.0.0.1", 0), Handler)
    service = Fake(f"http://127.0.0.1:{server.server_port}{path}", rules)
    with serving(server):
        yield service


@contextmanager
def serving(server: socketserver.BaseServer) -> Iterator[None]:
    """The server in a thread of its own, until the block ends."""
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _json(**values: Any) -> Answer:
    return 200, {"Content-Type": "application/json"}, json.dumps(values)


def slack(posted: Posted) -> Answer:
    if posted.path != f"/services/T0/B1/{TOKEN}":
        return 404, {}, "no_service"
    blocks = posted.body.get("blocks", [])
    if len(json.dumps(blocks, ensure_ascii=False)) > 13_000:
        return 400, {}, "msg_blocks_too_long"
    known = all(block["type"] == "rich_text" for block in blocks)
    return (200, {}, "ok") if known and posted.body.get("text") else (400, {}, "invalid_payload")


def dingtalk(posted: Posted) -> Answer:
    query = {name: values[0] for name, values in parse_qs(urlsplit(posted.path).query).items()}
    if query.get("access_token") != TOKEN:
        return _json(errcode=300001, errmsg="token is not exist")
    text = f"{query.get('timestamp')}\n{SIGNING_SECRET}"
    sign = base64.b64encode(hmac.digest(SIGNING_SECRET.encode(), text.encode(), "sha256")).decode()
    too_old = abs(int(query.get("timestamp", 0)) / 1000 - time.time()) > 3600
    if query.get("sign") != sign or too_old:
        return _json(errcode=310000, errmsg="sign not match")
    if posted.size > 20_000 or posted.body["msgtype"] != "text":
        return _json(errcode=40035, errmsg="invalid parameter")
    return _json(errcode=0, errmsg="ok")


def feishu(posted: Posted) -> Answer:
    if posted.path != f"/open-apis/bot/v2/hook/{TOKEN}":
        return _json(code=19001, msg="param invalid: incoming webhook access token invalid")
    key = f"{posted.body.get('timestamp')}\n{SIGNING_SECRET}".encode()
    sign = base64.b64encode(hmac.new(key, b"", hashlib.sha256).digest()).decode()
    too_old = abs(int(posted.body.get("timestamp", 0)) - time.time()) > 3600
    if posted.body.get("sign") != sign or too_old:
        return _json(code=19021, msg="sign match fail or timestamp is not within one hour", data={})
    if posted.size > 20 * 1024 or posted.body["msg_type"] != "post":
        return _json(code=9499, msg="Bad Request", data={})
    (post,) = posted.body["content"]["post"].values()
    elements = [each for paragraph in post["content"] for each in paragraph]
    if not elements or any(each["tag"] not in ("text", "at", "a") for each in elements):
        return _json(code=9499, msg="Bad Request", data={})
    return _json(code=0, msg="success", data={}, StatusCode=0, StatusMessage="success")


def wecom(posted: Posted) -> Answer:
    if parse_qs(urlsplit(posted.path).query).get("key") != [TOKEN]:
        return _json(errcode=93000, errmsg="invalid webhook url")
    if posted.body["msgtype"] != "text":
        return _json(errcode=40008, errmsg="invalid message type")
    if len(posted.body["text"]["content"].encode()) > 2048:
        return _json(errcode=40058, errmsg="text.content exceed max length 2048")
    return _json(errcode=0, errmsg="ok")


def teams(posted: Posted) -> Answer:
    (attachment,) = posted.body["attachments"]
    is_card = attachment["contentType"] == "application/vnd.microsoft.card.adaptive"
    if posted.size > 28 * 1024:
        return 413, {}, ""
    return (202, {}, "") if is_card and posted.body["type"] == "message" else (400, {}, "")


def pagerduty(posted: Posted) -> Answer:
    def refused(text: str) -> Answer:
        return 400, {}, json.dumps({"status": "invalid event", "errors": [text]})

    event = posted.body
    if event["routing_key"] != SIGNING_SECRET:
        return refused("'routing_key' is not valid")
    if len(event.get("dedup_key", "")) > 255:
        return refused("'dedup_key' is too long")
    if event["event_action"] == "trigger":
        payload = event["payload"]
        if len(payload["summary"]) > 1024 or not payload["source"]:
            return refused("'payload' is not valid")
        if payload["severity"] not in ("critical", "error", "warning", "info"):
            return refused("'payload.severity' is not valid")
    elif event["event_action"] != "resolve":
        return refused("'event_action' is not valid")
    _, _, text = _json(status="success", message="Event processed", dedup_key=event["dedup_key"])
    return 202, {}, text


def taken(_posted: Posted) -> Answer:
    return 200, {}, ""


#: By the name in the settings: the rules, the path of the URL, whether a secret is needed.
SERVICES: dict[str, tuple[Callable[[Posted], Answer], str, bool]] = {
    "SLACK": (slack, f"/services/T0/B1/{TOKEN}", False),
    "DINGTALK": (dingtalk, f"/robot/send?access_token={TOKEN}", True),
    "FEISHU": (feishu, f"/open-apis/bot/v2/hook/{TOKEN}", True),
    "WECOM": (wecom, f"/cgi-bin/webhook/send?key={TOKEN}", False),
    "TEAMS": (teams, f"/workflows/x/triggers/manual/paths/invoke?sig={TOKEN}", False),
    "PAGERDUTY": (pagerduty, "/v2/enqueue", True),
    "JSON": (taken, f"/hook/{TOKEN}", False),
}


# ---------------------------------------------------------------- a mail server


@dataclass
class MailServer:
    """What a mail server got: the envelopes' recipients and the mails; ``answers`` by command."""

    port: int
    answers: dict[str, str] = field(default_factory=dict)
    commands: list[str] = field(default_factory=list)
    mails: list[bytes] = field(default_factory=list)


@contextmanager
def mail_server(tls: ssl.SSLContext | None = None) -> Iterator[MailServer]:
    """A server that offers STARTTLS with such a context, and a login when that was used."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.secure = False
            self.say("220 mail.example.org")
            while line := self.rfile.readline().decode().strip():
                mail.commands.append(line)
                command = line.split()[0].upper()
                if command == "QUIT":
                    self.say("221 bye")
                    return
                self.say(mail.answers.get(command) or self.answer(command))
                if command == "STARTTLS" and tls is not None:
                    self.secure = True
                    self.connection = tls.wrap_socket(self.connection, server_side=True)
                    self.rfile = self.connection.makefile("rb")
                if command == "DATA" and command not in mail.answers:
                    mail.mails.append(self.mail())
                    self.say("250 queued")

        def answer(self, command: str) -> str:
            if command == "EHLO" and self.secure:
                return "250-mail.example.org\r\n250 AUTH PLAIN"
            if command == "EHLO" and tls is not None:
                return "250-mail.example.org\r\n250 STARTTLS"
            codes = {"STARTTLS": "220 go on", "DATA": "354 go on", "AUTH": "235 welcome"}
            return codes.get(command, "250 ok")

        def mail(self) -> bytes:
            lines = []
            while (line := self.rfile.readline()) != b".\r\n":
                lines.append(line.removeprefix(b"."))
            return b"".join(lines)

        def say(self, text: str) -> None:
            self.connection.sendall(f"{text}\r\n".encode())

    class Server(socketserver.ThreadingTCPServer):
        def handle_error(self, *_: Any) -> None:
            """A client that does not trust the certificate goes away."""

    server = Server(("127.0.0.1", 0), Handler)
    mail = MailServer(server.server_address[1])
    with serving(server):
        yield mail
