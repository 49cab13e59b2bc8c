"""One post: it arrives, ends in its time whatever the server does, and keeps its URL secret."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from jobs.alerts.services.service import Attempts, DeliveryError, HttpRequest, Refusal, Reply, post
from tests.support.services import TOKEN, Fake, fake, taken

#: Much more than a loaded machine needs for a post that does not hang.
AMPLE = 60.0


@pytest.fixture
def service() -> Iterator[Fake]:
    with fake(taken, f"/hook/{TOKEN}") as service:
        yield service


def send(url: str, timeout: float = AMPLE) -> Reply | Refusal:
    return post(HttpRequest(url, {"text": "é"}), timeout)


def test_a_message_arrives_as_json(service: Fake) -> None:
    answer = send(service.url)
    assert isinstance(answer, Reply)
    assert answer.status == 200
    (posted,) = service.posted
    assert posted.body == {"text": "é"}
    assert posted.headers["Content-Type"] == "application/json; charset=utf-8"


@pytest.mark.parametrize(
    ("answer", "wait"),
    [
        ((500, {}, ""), 0.0),
        ((503, {"Retry-After": "7"}, ""), 7.0),
        ((429, {"Retry-After": "99999"}, ""), 99999.0),
        ((429, {"Retry-After": "Fri, 31 Dec 1999"}, ""), 0.0),
    ],
)
def test_what_may_pass_says_how_long_to_wait(
    service: Fake, answer: tuple[int, dict[str, str], str], wait: float
) -> None:
    service.answers = [answer]
    assert send(service.url) == Refusal(f"HTTP status {answer[0]}", wait)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(service: Fake, status: int) -> None:
    with fake(taken, "/elsewhere") as elsewhere:
        service.answers = [(status, {"Location": elsewhere.url}, "")]
        answer = send(service.url)
    assert isinstance(answer, Reply)
    assert answer.status == status
    assert elsewhere.posted == []


def test_a_long_answer_is_not_read_to_its_end(service: Fake) -> None:
    service.answers = [(200, {}, "x" * 10_000_000)]
    answer = send(service.url)
    assert isinstance(answer, Reply)
    assert len(answer.text) == 65536


@pytest.mark.parametrize("text", ["", "[]", '"x"', "{", "[" * 100_000, '{"a": 1'])
def test_an_answer_that_is_no_object_has_no_values(text: str) -> None:
    assert Reply(200, text).values == {}


def test_a_lone_surrogate_in_a_name_does_not_stop_a_message(service: Fake) -> None:
    assert isinstance(post(HttpRequest(service.url, {"text": "a\ud800b"}), AMPLE), Reply)
    assert service.bodies == [{"text": "a?b"}]


@contextmanager
def server(behave: Callable[[socket.socket], None]) -> Iterator[str]:
    """A server of one connection at a time that behaves so, until it is gone; its URL."""

    def serve() -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            with connection:
                try:
                    behave(connection)
                except OSError:
                    continue

    listening = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/hook/{TOKEN}"
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()


def silent(connection: socket.socket) -> None:
    while connection.recv(4096):
        pass


def drips(beginning: bytes, drop: bytes) -> Callable[[socket.socket], None]:
    """One that sends a little again and again, sooner than a time-out of each read would end it."""

    def behave(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(beginning)
        while True:
            connection.sendall(drop)
            time.sleep(0.02)

    return behave


@pytest.mark.long
@pytest.mark.parametrize(
    "behave",
    [
        silent,
        drips(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        drips(b"HTTP/1.1 200 OK\r\nX: ", b"x"),
        drips(b"HTTP/1.1 200 OK\r\nContent-Length: 60000\r\n\r\n", b"x"),
        drips(b"HTTP/1.1 500 No\r\nContent-Length: 60000\r\n\r\n", b"x"),
    ],
    ids=["silent", "interim answers", "a header", "a body", "the body of an error"],
)
def test_the_time_is_that_of_the_whole_post(behave: Callable[[socket.socket], None]) -> None:
    with server(behave) as url:
        began = time.monotonic()
        refusal = send(url, timeout=0.1)
    # A limit for each read would never end it; a busy machine is late by less than this.
    assert time.monotonic() - began < 20
    assert refusal == Refusal("no answer: not within 0.1 s", 0.0)


def test_a_server_that_never_greets_by_tls_is_given_up() -> None:
    with server(silent) as url:
        refusal = send(url.replace("http:", "https:"), timeout=0.1)
    assert refusal == Refusal("no answer: not within 0.1 s", 0.0)


def test_a_post_that_was_given_up_ends() -> None:
    """What goes on in the background would deliver a message that counts as not delivered."""
    ended = threading.Event()
    drip = drips(b"", b"HTTP/1.1 100 Continue\r\n\r\n")

    def behave(connection: socket.socket) -> None:
        try:
            drip(connection)
        except OSError:
            ended.set()

    with server(behave) as url:
        send(url, timeout=0.1)
        assert ended.wait(AMPLE)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        (f"http://127.0.0.1:1/hook/{TOKEN}", "no answer: the connection was refused"),
        (f"http://{'a' * 64}.example/hook/{TOKEN}", "no answer: "),
        (f"http://{TOKEN}.invalid/", "no answer: the host's name has no address"),
    ],
)
def test_who_cannot_be_reached_is_no_answer(url: str, reason: str) -> None:
    refusal = send(url)
    assert isinstance(refusal, Refusal)
    assert refusal.reason.startswith(reason)
    assert TOKEN not in refusal.reason
    assert refusal.wait == 0.0


def test_nothing_that_is_printed_has_the_url() -> None:
    request = HttpRequest(f"https://chat.example/{TOKEN}", {"routing_key": TOKEN})
    assert TOKEN not in repr(request) + repr(Reply(200, TOKEN))


# ---------------------------------------------------------------- attempts


def attempt(refusals: list[Refusal | None], number: int = 3) -> list[float]:
    """Makes the attempts; the pauses between them."""
    pauses: list[float] = []
    Attempts(1, number, pauses.append).make(lambda _timeout: refusals.pop(0))
    return pauses


def test_what_may_pass_is_tried_again_after_a_while() -> None:
    assert attempt([None]) == []
    assert attempt([Refusal("a", 0.0), Refusal("b", 7.0), None]) == [1.0, 7.0]
    assert attempt([Refusal("a", 99999.0), Refusal("b", 0.0), None]) == [30.0, 2.0]


def test_what_would_be_refused_again_is_not_tried_again() -> None:
    refusals = [Refusal("no such channel"), None]
    with pytest.raises(DeliveryError, match="no such channel"):
        attempt(refusals)
    assert refusals == [None]


def test_the_last_refusal_is_the_error_and_nothing_waits_after_it() -> None:
    pauses: list[float] = []
    refusals = [Refusal("first", 0.0), Refusal("second", 0.0)]
    with pytest.raises(DeliveryError, match="second"):
        Attempts(1, 2, pauses.append).make(lambda _timeout: refusals.pop(0))
    assert pauses == [1.0]
