"""Posts to a webhook. Its URL is a secret: it is in no argument, no log and no error."""

import http.client
import json
import socket
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from .delivery import Refusal, within

#: Nobody answers more to a message; the rest is not read.
_LONGEST_ANSWER = 64 << 10
_TOO_MANY_REQUESTS = 429


@dataclass(frozen=True)
class HttpRequest:
    """The JSON to post, and its address."""

    url: str = field(repr=False)
    body: Any = field(repr=False)


@dataclass(frozen=True)
class Reply:
    """The answer of a server; ``text`` is its beginning."""

    status: int
    text: str = field(repr=False)
    retry_after: float = 0.0

    @property
    def values(self) -> dict[str, Any]:
        """The JSON object of the answer; empty where it is none."""
        with suppress(ValueError, RecursionError):
            values = json.loads(self.text)
            if isinstance(values, dict):
                return values
        return {}


def json_bytes(value: Any) -> bytes:
    """The value as JSON, in UTF-8; a lone surrogate of a name is replaced.

    What is measured against a service's limit (``json_size``) is what is sent.

    >>> json_bytes({"text": "é"}).decode()
    '{"text": "é"}'
    """
    return json.dumps(value, ensure_ascii=False).encode("utf-8", errors="replace")


def json_size(value: Any) -> int:
    """The number of bytes that a value takes as JSON."""
    return len(json_bytes(value))


def post(request: HttpRequest, timeout_seconds: float) -> Reply | Refusal:
    """Posts once; the whole of it, from the look-up of the name to the answer, has this time.

    A Refusal is what may pass: no answer, 5xx, 429 (with what its Retry-After says).
    """
    connections = _Ending()
    exchange = partial(_exchange, request, timeout_seconds, connections)
    try:
        answer = within(timeout_seconds, exchange, connections.end)
    # The texts of errors may have the URL in them, and so may what a proxy answers.
    except (OSError, ValueError, http.client.HTTPException) as error:
        return Refusal(f"no answer: {why(error, timeout_seconds)}", 0.0)
    if answer.status >= 500 or answer.status == _TOO_MANY_REQUESTS:
        return Refusal(f"HTTP status {answer.status}", answer.retry_after)
    return answer


def _exchange(request: HttpRequest, timeout_seconds: float, connections: "_Ending") -> Reply:
    sent = urllib.request.Request(  # noqa: S310 - what reads the URL lets http and https through
        request.url,
        data=json_bytes(request.body),
        headers={"Content-Type": "application/json; charset=utf-8"},
        method="POST",
    )
    opener = urllib.request.build_opener(_AsAnswered, connections)
    with opener.open(sent, timeout=timeout_seconds) as answer:
        text = answer.read(_LONGEST_ANSWER).decode("utf-8", errors="replace")
        seconds = answer.headers.get("Retry-After", "")
        return Reply(answer.status, text, float(seconds) if seconds.isdecimal() else 0.0)


def why(error: Exception, timeout_seconds: float) -> str:
    """The reason why a server could not be reached, in our words; else the error's class.

    >>> why(urllib.error.URLError(ConnectionRefusedError(111, "to a secret place")), 10)
    'the connection was refused'
    """
    if isinstance(error, urllib.error.URLError) and isinstance(error.reason, Exception):
        error = error.reason
    for kind, words in (
        (TimeoutError, f"not within {timeout_seconds:g} s"),
        (ConnectionRefusedError, "the connection was refused"),
        (socket.gaierror, "the host's name has no address"),
        (ssl.SSLCertVerificationError, "the host's certificate is not trusted"),
    ):
        if isinstance(error, kind):
            return words
    return type(error).__name__


def shut_down(sockets: Iterable[socket.socket | None]) -> None:
    """Ends connections, whatever waits for them in other threads."""
    for each in sockets:
        if isinstance(each, socket.socket):
            # Not the method of an SSL socket: that would go on in clear text for a moment.
            with suppress(OSError):
                socket.socket.shutdown(each, socket.SHUT_RDWR)


class _Ending(urllib.request.HTTPHandler, urllib.request.HTTPSHandler):
    """Does as the handlers do; what it connects can be ended from outside."""

    def __init__(self) -> None:
        super().__init__()
        self._opened: list[http.client.HTTPConnection] = []
        self._ended = False

    def end(self) -> None:
        """Wakes what waits for the server; what was not sent is not sent any more."""
        self._ended = True
        shut_down(httpconnection.sock for httpconnection in self._opened)

    def do_open(self, http_class: Any, *args: Any, **options: Any) -> http.client.HTTPResponse:
        """Connects over TCP or TLS; no connection goes on that began before the end."""
        handler = self

        class Watched(http_class):  # type: ignore[misc]
            def connect(self) -> None:
                handler._opened.append(self)
                super().connect()
                if handler._ended:
                    raise TimeoutError

        return super().do_open(Watched, *args, **options)


class _AsAnswered(urllib.request.HTTPErrorProcessor):
    """Follows no redirect: the POST would arrive as a GET, or at a host that nobody named."""

    def http_response(self, request: Any, response: Any) -> Any:  # noqa: ARG002 - the base names it
        """The answer, whatever its status."""
        return response

    https_response = http_response
