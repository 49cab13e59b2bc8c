"""One question to one address: an answer, or the reason why there is none.

One connection an address, on which several questions are under way at a time. An address that did
not answer in time is given up until ``forget``: it would cost every later question its time-out. A
failure is not an exception but an ``Answer`` with the reason: a round goes on, whatever happens.
"""

import asyncio
import os
import re
import socket
from asyncio import IncompleteReadError, Semaphore, StreamReader, StreamWriter
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from ipaddress import IPv4Address, IPv6Address, ip_address
from ssl import SSLCertVerificationError
from typing import NamedTuple

from ..declared.instants import Instant
from ..engines import in_background
from . import frames
from .asked_clients import AskedClients
from .collect_options import Cluster, CollectOptions, split_address
from .frames import Account, Frame, FrameError, read_frame
from .questions import Request, RequestCode

#: Codes for what no server answers: RocketMQ has none below 0.
NO_ANSWER = -1
NOT_REACHED = -2
NOT_UNDERSTOOD = -3
OK = 0
#: Answers that are not trouble: no route, nobody of the group, a request that brokers of this
#: version do not have.
EXPECTED = {OK, 17, 206, 3}

#: The broker passed a question on, and the client did not answer it in time
#: (``ResponseCode.CONSUME_MSG_TIMEOUT``).
CLIENT_SILENT = 207

#: ``MQVersion`` V4_9_4: from it on a nameserver writes routes as JSON.
VERSION = 401

#: A connection that was idle for so long is not used again: what lies between may have dropped it
#: without a word, and a server closes it after 120 s.
_IDLE_SECONDS = 30.0
#: A shorter answer is always taken, but nothing is asked while too much of them is not handled: as
#: much as so many of the longest; of longer ones as much at a time. Of one address so many of the
#: longest in a round. Up to the second size an answer waits for its room.
_SHORT_BYTES, _WAITING_BYTES, _MOST_AT_ONCE, _MOST_LONGEST = 1 << 18, 1 << 20, 2, 16

_MOST_OF_A_REMARK, _MOST_LABELS = 4_096, 2_000


class Answer(NamedTuple):
    """The answer to a question, or its failure.

    ``code`` is the server's, or one of the negative ones above; ``remark`` is why it is not OK.
    """

    address: str
    code: int
    remark: str | None
    body: bytes
    collected_at: Instant

    @property
    def is_ok(self) -> bool:
        """True if the body is what was asked for."""
        return self.code == OK


@dataclass
class Figures:
    """Counts of a round of one cluster, or of all since the collector started.

    ``errors``: by address and code, the answers that were errors.
    """

    rounds: int = 0
    missed: int = 0
    requests: int = 0
    received_bytes: int = 0
    lines: int = 0
    last_seconds: float | None = None
    last_at_seconds: float | None = None
    errors: Counter[tuple[str, int]] = field(default_factory=Counter)

    def count_error(self, address: str, code: int, times: int = 1) -> None:
        """Adds an error; who makes up codes and addresses cannot make labels without end."""
        is_label = (address, code) in self.errors or len(self.errors) < _MOST_LABELS
        self.errors[(address, code) if is_label else ("others", 0)] += times

    def add(self, one: "Figures") -> None:
        """Adds what is counted in a round."""
        for name in ("rounds", "missed", "requests", "received_bytes", "lines"):
            setattr(self, name, getattr(self, name) + getattr(one, name))
        for (address, code), times in one.errors.items():
            self.count_error(address, code, times)


class _ClosedError(Exception):
    """The connection ended before the answer came."""


class _UnderWayError(Exception):
    """A question to the client may still be under way."""


class RemotingClient:
    """Asks nameservers and brokers; use it as ``async with``."""

    def __init__(
        self,
        options: CollectOptions,
        cluster: Cluster,
        clock: Callable[[], Instant],
        account: Account | None = None,
        slots: Semaphore | None = None,
        version: int = VERSION,
        asked_clients: AskedClients | None = None,
    ) -> None:
        self.options, self.cluster = options, cluster
        #: The clients that may not be asked for a running info now.
        self.asked_clients = asked_clients or AskedClients([":memory:"], clock())
        #: Figures of the round, by whoever gives new ones to a round.
        self.figures = Figures()
        #: The clock of the answers.
        self.now = clock
        self._account, self._version = account, version
        self._tls = None if cluster.tls is None else cluster.tls.to_context()
        self._slots = slots or Semaphore(options.parallel_in_all)
        #: Slots for addresses that have not answered: they must not take the places of those that
        #: do.
        self._first_slots = Semaphore(options.parallel_in_all)
        self._opening: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        #: The addresses that have answered since ``forget``.
        self._answered: set[str] = set()
        self._connections: dict[str, _Connection] = {}
        #: The addresses that are asked no more, and why.
        self.given_up: dict[str, str] = {}
        self._next_at: dict[str, float] = {}
        self._opaque = 0
        #: The bytes that came from each address in this round.
        self._received: Counter[str] = Counter()
        #: Bytes of answers that came and are not handled yet, of short ones and of long ones; and
        #: those of long ones that are under way.
        self._unhandled = [0, 0]
        self._has_handled = asyncio.Event()
        self.under_way: Counter[_Connection] = Counter()
        #: Places of nameservers on this machine or its link.
        self._own_places: set[str] = set()

    async def __aenter__(self) -> "RemotingClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        for connection in self._connections.values():
            connection.end()
        readings = (connection.reading for connection in self._connections.values())
        await asyncio.gather(*readings, return_exceptions=True)
        self._connections.clear()

    def forget(self) -> None:
        """Asks again what was given up: at the begin of a round."""
        for facts_of_address in (self.given_up, self._answered, self._opening, self._next_at):
            facts_of_address.clear()
        self._received.clear()
        self._unhandled = [0, 0]
        every = self._connections.items()
        self._connections = {at: one for at, one in every if not one.is_closed}

    def handled(self, answer: Answer) -> None:
        """Makes room for others: nobody holds this answer any more."""
        self._count_unhandled(-len(answer.body))

    def _count_unhandled(self, size: int) -> None:
        self._unhandled[abs(size) > _SHORT_BYTES] += size
        self._has_handled.set()

    async def _wait_until_handled(self) -> None:
        self._has_handled.clear()
        await self._has_handled.wait()

    async def take(self, connection: "_Connection", size: int, length: int) -> None:
        """Counts bytes that came of an answer; FrameError where its server has sent too many.

        If too much is held at once, the longest answer under way ends, or waits where even that is
        not very long: those who send without end must not keep others' answers out.
        """
        self._received[connection.address] += size
        most = _MOST_LONGEST * self.options.most_bytes
        if self._received[connection.address] > most:
            raise FrameError(f"more than {most >> 20} MiB came in this round")
        if length <= _SHORT_BYTES:
            return
        self.under_way[connection] += size
        most = _MOST_AT_ONCE * self.options.most_bytes
        while self._unhandled[True] + self.under_way.total() > most:
            longest, held = self.under_way.most_common(1)[0]
            if longest is connection and held <= _WAITING_BYTES:
                await self._wait_until_handled()
            else:
                longest.end(FrameError(f"more than {most >> 20} MiB are under way at once"))
                if longest is connection:
                    return

    async def ask(self, address: str, question: Request) -> Answer:
        """Asks the address; it raises for a code that is not in the list, nothing else."""
        RequestCode(question.code)
        await self._pace(address)
        async with self._slots if address in self._answered else self._first_slots:
            while self._unhandled[False] > _MOST_AT_ONCE * self.options.most_bytes:
                await self._wait_until_handled()
            if address in self.given_up:
                return self._answer_for_given_up(address)
            answer = await self._asked(address, question)
        if answer.code >= OK:
            self._answered.add(address)
        if answer.code not in EXPECTED:
            self.figures.count_error(address, answer.code)
        return answer

    async def _asked(self, address: str, question: Request) -> Answer:
        request, seconds = question.code, self.options.timeout_seconds
        what = f"{request.name} ({request:d})"
        client_id = question.who.get("client_id")
        self._opaque = opaque = (self._opaque + 1) & 0x7FFFFFFF
        try:
            fields = dict(question.fields)
            if self._account is not None:
                fields = self._account.sign(fields)
            data = frames.request(request, opaque, self._version, fields)
        except ValueError as error:
            return self.not_asked(address, f"the request cannot be written: {error}")
        try:
            async with asyncio.timeout(seconds):
                frame = await self._exchanged(address, opaque, data, client_id)
        except _UnderWayError as error:
            return self.not_asked(address, str(error))
        except TimeoutError:
            code, reason = NO_ANSWER, f"no answer to {what} within {seconds:g} s"
        except FrameError as error:
            code, reason = NOT_UNDERSTOOD, f"the answer to {what} is no frame: {error}"
        except _ClosedError as error:
            if address in self.given_up:
                return self._answer_for_given_up(address)
            reason = f"closed the connection twice, at {what}: {error}{self._hint(address, error)}"
            code = NOT_REACHED
        except (OSError, ValueError, OverflowError) as error:
            reason = f"cannot connect: {_reason(error)}{self._hint(address, error)}"
            code = NOT_REACHED
        else:
            self._count_unhandled(len(frame.body))
            if client_id is not None and frame.code != CLIENT_SILENT:
                self.asked_clients.ended(client_id)
            remark = frame.remark and frame.remark[:_MOST_OF_A_REMARK]
            return Answer(address, frame.code, remark, frame.body, self.now())
        reason = f"{address}: {reason}"
        # The broker passes a running info's question on: the silent one may be the client.
        if code != NO_ANSWER or request is not RequestCode.GET_CONSUMER_RUNNING_INFO:
            self._give_up(address, reason)
        return Answer(address, code, reason, b"", self.now())

    def _hint(self, address: str, error: Exception) -> str:
        """The likely reason why a connection ended so before its first answer; else empty."""
        if isinstance(error, SSLCertVerificationError):
            return "; [clusters.tls] in the file of --config says what to trust"
        if address in self._answered:
            return ""
        if self._tls is None and isinstance(error, _ClosedError):
            return "; a server that takes TLS alone does so: --tls"
        if self._tls is not None and isinstance(error, ConnectionResetError):
            return "; a server without TLS does so"
        return ""

    async def _exchanged(
        self, address: str, opaque: int, data: bytes, client_id: str | None
    ) -> Frame:
        """The answer; a question whose connection ended is asked once more over a new one.

        Not one that is for a client: it may have been passed on, and is under way.
        """
        for is_last in (False, True):
            connection = await self._connected(address)
            if client_id is not None and not self.asked_clients.ask(client_id, self.now()):
                raise _UnderWayError("a question to this client may still be under way")
            self.figures.requests += 1
            try:
                return await connection.ask(opaque, data)
            except _ClosedError:
                if is_last or address in self.given_up:
                    raise
        raise AssertionError  # the last one has returned or raised

    async def _connected(self, address: str) -> "_Connection":
        async with self._opening[address]:
            connection = self._connections.get(address)
            if connection is not None and connection.is_idle:
                connection.end()
            if connection is None or connection.is_closed:
                reader, writer = await self._opened(address)
                connection = _Connection(reader, writer, address, self)
                self._connections[address] = connection
            return connection

    async def _opened(self, address: str) -> tuple[StreamReader, StreamWriter]:
        """A connection to the first of its host's addresses that takes one."""
        host, port = split_address(self.cluster.connect_to.get(address, address))
        error = OSError("its name has no address")
        for at in await _resolved(host, port):
            self._check_place(address, at)
            name = host if self._tls else None
            try:
                return await asyncio.open_connection(
                    str(at), port, ssl=self._tls, server_hostname=name
                )
            except OSError as failed:
                error = failed
        raise error

    def _check_place(self, address: str, at: IPv4Address | IPv6Address) -> None:
        """ValueError for an address of a nameserver's choice where no broker may lie."""
        place = _place(at)
        if address in self.cluster.namesrv:
            self._own_places.add(place)
        elif address in self.cluster.connect_to:
            return
        elif self.cluster.brokers:
            if not any(at in broker for broker in self.cluster.brokers):
                raise ValueError(f"{at} is in none of the networks that brokers = [...] names")
        elif place and place not in self._own_places:
            raise ValueError(f"{at} is {place}; brokers = [...] in the options can allow it")

    async def _pace(self, address: str) -> None:
        if self.options.rate is not None:
            now = asyncio.get_running_loop().time()
            at = max(now, self._next_at.get(address, now))
            self._next_at[address] = at + 1 / self.options.rate
            await asyncio.sleep(at - now)

    def _give_up(self, address: str, reason: str) -> None:
        """Asks the address no more; what is under way there ends at once."""
        self.given_up.setdefault(address, reason)
        if connection := self._connections.get(address):
            connection.end()

    def not_asked(self, address: str, reason: str) -> Answer:
        """The answer to what was not sent, and why it was not."""
        reason = f"{address}: not asked: {reason}"
        return Answer(address, NOT_REACHED, reason, b"", self.now())

    def _answer_for_given_up(self, address: str) -> Answer:
        return self.not_asked(address, f"given up in this round: {self.given_up[address]}")


class _Connection:
    """A connection and the questions that wait on it."""

    def __init__(
        self, reader: StreamReader, writer: StreamWriter, address: str, client: RemotingClient
    ) -> None:
        self._reader, self._writer = reader, writer
        self.address, self._client = address, client
        self._waiting: dict[int, asyncio.Future[Frame]] = {}
        self.is_closed = False
        self._used_at = asyncio.get_running_loop().time()
        self.reading = asyncio.create_task(self._read())

    async def ask(self, opaque: int, data: bytes) -> Frame:
        """The answer of this number; _ClosedError or FrameError where the connection ends."""
        if self.is_closed:
            raise _ClosedError("it was closed before")
        answer: asyncio.Future[Frame] = asyncio.get_running_loop().create_future()
        self._waiting[opaque] = answer
        try:
            self._writer.write(data)
            return await answer
        finally:
            # A late answer finds nobody.
            self._waiting.pop(opaque, None)

    @property
    def is_idle(self) -> bool:
        """True if nothing is under way, and nothing came for a while."""
        unused = asyncio.get_running_loop().time() - self._used_at
        return not self._waiting and unused > _IDLE_SECONDS

    def end(self, reason: Exception | None = None) -> None:
        """Ends it; whoever waits for an answer gets the reason, else _ClosedError."""
        reason = reason or _ClosedError("it was given up")
        self.is_closed = True
        del self._client.under_way[self]
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(reason)
        self._writer.close()
        self.reading.cancel()

    async def _read(self) -> None:
        most, take = self._client.options.most_bytes, partial(self._client.take, self)
        try:
            while True:
                try:
                    frame = await read_frame(self._reader, most, take)
                finally:
                    del self._client.under_way[self]
                self._client.figures.received_bytes += len(frame.body)
                self._used_at = asyncio.get_running_loop().time()
                # Servers send requests too, and answers to what nobody waits for any more.
                if frame.is_answer and frame.code < OK:
                    raise FrameError(f"expected a code of 0 or more, came {frame.code}")
                waiting = self._waiting.get(frame.opaque) if frame.is_answer else None
                if waiting is not None and not waiting.done():
                    waiting.set_result(frame)
        except FrameError as error:
            self.end(error)
        except IncompleteReadError as error:
            part = f"{len(error.partial)} of {error.expected} bytes" if error.partial else "its end"
            self.end(_ClosedError(f"{part} came"))
        except OSError as error:
            self.end(_ClosedError(_reason(error)))


async def _resolved(host: str, port: int) -> list[IPv4Address | IPv6Address]:
    """The addresses of a host. Nobody waits for a resolver that hangs."""
    with suppress(ValueError):
        return [ip_address(host)]
    try:
        found = in_background(partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM))
    except RuntimeError as error:  # the system has no more threads
        raise OSError(str(error)) from error
    return [ip_address(at[0]) for *_, at in await asyncio.wrap_future(found)]


def _place(at: IPv4Address | IPv6Address) -> str:
    """The place of an address on this machine or its link; empty where it lies elsewhere.

    >>> [_place(ip_address(each)) for each in ("127.0.0.1", "::ffff:169.254.169.254", "10.0.0.1")]
    ['on this machine', 'on the link of this machine', '']
    """
    at = getattr(at, "ipv4_mapped", None) or at
    if at.is_loopback or at.is_unspecified:
        return "on this machine"
    if at.is_link_local:
        return "on the link of this machine"
    return "no address of a machine" if at.is_multicast else ""


def _reason(error: Exception) -> str:
    number = getattr(error, "errno", None)
    # OpenSSL and the resolver have other numbers.
    plain = isinstance(error, ConnectionError) or type(error) is OSError
    text = re.sub(r"^\[Errno -?\d+\] ", "", str(error))
    return os.strerror(number) if plain and number else text or type(error).__name__
