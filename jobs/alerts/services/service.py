"""Base of the services: a message becomes requests, an answer becomes a verdict.

The service says what was delivered, and not the HTTP status: some answer 200 with an error code.
"""

import http.client
import json
import re
import socket
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple, TypeVar

from ...engines import in_background
from ...errors import AuditError
from .text_message import Link, Message

#: Seconds before a second attempt; each later one waits twice as long as the one before.
_FIRST_PAUSE = 1.0
LONGEST_PAUSE = 30.0

_Result = TypeVar("_Result")


class DeliveryError(AuditError):
    """Nobody took the message; what was published is published all the same."""


class Refusal(NamedTuple):
    """The reason why a message was not taken: our text only, as a server's may have the URL in it.

    ``wait``: the seconds to wait at least before another attempt; None where that would be refused
    as well.
    """

    reason: str
    wait: float | None = None


class Attempts(NamedTuple):
    """The limits of attempts: the time-out of each, their number, and the pause between them."""

    timeout_seconds: float
    number: int
    pause: Callable[[float], None]

    def make(self, once: Callable[[float], Refusal | None]) -> None:
        """Calls ``once`` with the time-out until it is not refused; DeliveryError at the end."""
        for attempt in range(1, self.number + 1):
            refusal = once(self.timeout_seconds)
            if refusal is None:
                return
            if refusal.wait is None or attempt == self.number:
                raise DeliveryError(refusal.reason)
            self.pause(min(max(refusal.wait, _FIRST_PAUSE * 2 ** (attempt - 1)), LONGEST_PAUSE))


def within(seconds: float, work: Callable[[], _Result], stop: Callable[[], None]) -> _Result:
    """Returns or raises what the work does; TimeoutError after so many seconds.

    A socket's time-out is for each read: a server that sends a byte now and then never meets it.
    Nor does it bound the look-up of a name. So the work is done in a thread. ``stop`` is called
    when the time is over, so that nothing is sent after all.
    """
    result = in_background(work)
    try:
        return result.result(seconds)
    except TimeoutError:
        stop()
        raise


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


#: Beginnings of a call to everybody, which some chats see even in plain text.
_CALL = re.compile(r"@(?=(?:all|channel|everyone|here|所有人)(?!\w))", re.IGNORECASE)
#: Parts of which chats make a link in plain text, the beginning of an address, or a mention: <@U1>.
_LINK = re.compile(r"(?<=:)(?=//)|(?<=www)(?=\.)|(?<=mailto)(?=:)|(?<=<)(?=[!@#])", re.IGNORECASE)
_ZERO_WIDTH_SPACE = "\u200b"
#: The refusal for a 2xx with a body that the service does not give.
NOT_ITS = Refusal("an answer that the service does not give")


@dataclass(frozen=True)
class Access:
    """The address of a service, and the secret for it; neither is shown."""

    url: str = field(repr=False)
    secret: str = field(default="", repr=False)


@dataclass(frozen=True)
class Service:
    """A service behind a webhook.

    ``hosts``: the hosts whose URLs are its, also those that end so. ``requests``: what is posted,
    one after the other. ``refusal``: what is wrong with an answer that is neither 5xx nor 429.
    """

    hosts: tuple[str, ...]
    requests: Callable[[Message, Access, datetime], Iterable[HttpRequest]]
    refusal: Callable[[Reply], Refusal | None]
    #: The URL where none is given; whether it needs a secret; whether it has incidents that end.
    url: str = ""
    needs_secret: bool = False
    has_incidents: bool = False

    def is_at(self, host: str) -> bool:
        """True if a URL with this host is the service's."""
        return any(host == each or host.endswith(f".{each}") for each in self.hosts)


def inert(line: str) -> str:
    """A line for whoever shows plain text: no address in it becomes a link, nobody is called.

    >>> inert("https://evil.example @all").replace("\u200b", "|")
    'https:|//evil.example @|all'
    """
    if isinstance(line, Link):
        return line
    return _CALL.sub(f"@{_ZERO_WIDTH_SPACE}", _LINK.sub(_ZERO_WIDTH_SPACE, line))


def status_refusal(answer: Reply) -> Refusal | None:
    """The refusal by an HTTP status: 2xx is taken; nobody follows a redirect."""
    if 200 <= answer.status < 300:
        return None
    redirect = ": a redirect, which is not followed" if 300 <= answer.status < 400 else ""
    return Refusal(f"HTTP status {answer.status}{redirect}")


def code_refusal(
    names: Iterable[str], reasons: Mapping[int, str], passing: Iterable[int], answer: Reply
) -> Refusal | None:
    """The refusal by a code in the answer: 0 is taken; ``passing`` are codes that may pass.

    ``names`` are the names of the code, the first that is there counts. An answer without a code
    is not the service's.
    """
    code = next((answer.values[name] for name in names if name in answer.values), None)
    if isinstance(code, bool) or not isinstance(code, int):
        return status_refusal(answer) or NOT_ITS
    if code == 0:
        return None
    reason = f": {reasons[code]}" if code in reasons else ""
    return Refusal(f"error code {code}{reason}", LONGEST_PAUSE if code in passing else None)
