"""Servers that answer as recorded ones did, and misbehave on demand.

``Replay`` listens on a port of its own for each recorded address; ``connect_to`` tells a client
where. What was not recorded is answered as a broker or nameserver answers what it does not know.
"""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import re
import ssl
import struct
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tests.support.frames import Frame, decode, encode

FRAMES = Path(__file__).parent.parent / "data" / "frames"
#: What a request is signed with; an answer does not depend on it.
_SIGNED = {"AccessKey", "Signature", "SecurityToken"}
_OPAQUE = re.compile(rb'"opaque":-?\d+')
ROUTE, BROKERS, MEMBERS, OFFSETS, RUNNING_INFO = 105, 106, 203, 208, 307


class Exchange(NamedTuple):
    """A request and its answer, as bytes; an empty answer never came."""

    name: str
    address: str | None
    request: bytes
    response: bytes

    @property
    def asked(self) -> Frame:
        return decode(self.request[4:])

    @property
    def answered(self) -> Frame:
        return decode(self.response[4:])


def recorded(name: str) -> list[Exchange]:
    """The exchanges of one recording, by the name of its file."""
    with gzip.open(FRAMES / f"{name}.jsonl.gz", "rt") as lines:
        return [
            Exchange(
                line["name"],
                line["address"],
                base64.b64decode(line["request"]),
                base64.b64decode(line["response"]),
            )
            for line in map(json.loads, lines)
        ]


#: What an address answers to a request, as a frame's bytes with any opaque; None: nothing, ever.
Answering = Callable[[Frame], bytes | None]


def answering(exchanges: Iterable[Exchange]) -> dict[str, Answering]:
    """By address what its server answers."""
    by_address: defaultdict[str, dict[object, bytes]] = defaultdict(dict)
    for each in exchanges:
        if each.address is not None:
            by_address[each.address][_key(each.asked)] = each.response
    return {address: _answers(known) for address, known in by_address.items()}


def _key(asked: Frame) -> object:
    fields = {name: value for name, value in asked.fields.items() if name not in _SIGNED}
    return asked.code, asked.version, tuple(sorted(fields.items()))


def _answers(known: Mapping[object, bytes]) -> Answering:
    def answer(asked: Frame) -> bytes | None:
        response = known.get(_key(asked))
        return _not_known(asked) if response is None else response or None

    return answer


def _not_known(asked: Frame) -> bytes:
    group = asked.fields.get("consumerGroup")
    match asked.code:
        case 105:
            return error(17, f"No topic route info in name server: {asked.fields['topic']}")
        case 203:
            return error(206, f"the consumer group[{group}] not online")
        case 208:
            return answer_frame(b'{"consumeTps":0.0,"offsetTable":{}}')
        case 307:
            return error(1, f"The Consumer <{group}> <{asked.fields['clientId']}> not online")
        case _:
            return error(3, f" request type {asked.code} not supported")


def answer_frame(body: bytes) -> bytes:
    return encode(Frame(code=0, opaque=0, flag=1, version=401, body=body))


def error(code: int, remark: str) -> bytes:
    return encode(Frame(code=code, opaque=0, flag=1, version=401, remark=remark))


def remembered(answer: Answering) -> Answering:
    """The same, each answer made once: for servers that must be faster than who asks."""
    known: dict[object, bytes | None] = {}

    def answer_again(asked: Frame) -> bytes | None:
        key = _key(asked)
        if key not in known:
            known[key] = answer(asked)
        return known[key]

    return answer_again


def with_opaque(response: bytes, opaque: int) -> bytes:
    """The answer's bytes as the answer to the request of this number; the body stays."""
    mark = int.from_bytes(response[4:8], "big")
    header, body = response[8 : 8 + mark], response[8 + mark :]
    header = _OPAQUE.sub(b'"opaque":%d' % opaque, header)
    return struct.pack(">II", 4 + len(header) + len(body), len(header)) + header + body


@dataclass(frozen=True)
class Manners:
    """How a server misbehaves; as made it behaves.

    ``hangs_after``: answers that it gives before it answers no more. ``closes_at``: of every so
    many answers on a connection it sends the half of the last one, and closes. ``refuses``
    connections. ``delay`` in seconds before each answer; ``shuffles``: answers come in another
    order than the requests; ``dribbles``: they come byte by byte. ``junk``: what is sent in place
    of an answer.
    """

    hangs_after: int | None = None
    closes_at: int | None = None
    refuses: bool = False
    delay: float = 0.0
    shuffles: bool = False
    dribbles: bool = False
    junk: Callable[[bytes], bytes] | None = None


@dataclass
class Replay:
    """The servers; use it as ``async with``."""

    answers: Mapping[str, Answering]
    manners: Mapping[str, Manners] = field(default_factory=dict)
    tls: ssl.SSLContext | None = None
    requests: list[tuple[str, Frame]] = field(default_factory=list)
    connect_to: dict[str, str] = field(default_factory=dict)
    connections: int = 0
    #: The most requests that were under way at once, of one address and of all.
    most_at_one: int = 0
    most_at_all: int = 0
    under_way: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    given: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    _writing: dict[asyncio.StreamWriter, asyncio.Lock] = field(
        default_factory=lambda: defaultdict(asyncio.Lock)
    )
    _servers: list[asyncio.Server] = field(default_factory=list)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def __aenter__(self) -> Replay:
        for address in self.answers:
            server = await asyncio.start_server(
                lambda reader, writer, address=address: self._serve(address, reader, writer),
                "127.0.0.1",
                limit=1 << 20,
                ssl=self.tls,
            )
            port = server.sockets[0].getsockname()[1]
            self.connect_to[address] = f"127.0.0.1:{port}"
            if self.manners.get(address, Manners()).refuses:
                server.close()
            else:
                self._servers.append(server)
        return self

    async def __aexit__(self, *_: object) -> None:
        for server in self._servers:
            server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(
        self, address: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        given = iter(range(1, 1 << 60))
        try:
            while True:
                length = int.from_bytes(await reader.readexactly(4), "big")
                asked = decode(await reader.readexactly(length))
                self.requests.append((address, asked))
                self.under_way[address] += 1
                self.most_at_one = max(self.most_at_one, self.under_way[address])
                self.most_at_all = max(self.most_at_all, sum(self.under_way.values()))
                answer = asyncio.create_task(self._answer(address, asked, writer, given))
                self._tasks.add(answer)
                answer.add_done_callback(self._tasks.discard)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _answer(
        self, address: str, asked: Frame, writer: asyncio.StreamWriter, given: Iterator[int]
    ) -> None:
        manners = self.manners.get(address, Manners())
        response = self.answers[address](asked)
        await asyncio.sleep(manners.delay + (asked.opaque * 7 % 5 * 0.002) * manners.shuffles)
        self.given[address] += 1
        if response is None or (
            manners.hangs_after is not None and self.given[address] > manners.hangs_after
        ):
            await asyncio.sleep(15)
            self.under_way[address] -= 1
            return
        self.under_way[address] -= 1
        data = with_opaque(response, asked.opaque)
        if manners.junk is not None:
            data = manners.junk(data)
        if manners.closes_at and next(given) % manners.closes_at == 0:
            writer.write(data[: len(data) // 2])
            writer.close()
        elif manners.dribbles:
            async with self._writing[writer]:
                for place in range(len(data)):
                    writer.write(data[place : place + 1])
                    await asyncio.sleep(0)
        elif not writer.is_closing():
            writer.write(data)


@contextmanager
def in_thread(replay: Replay) -> Iterator[Replay]:
    """The servers in a thread of their own, for a client that is another process."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    asyncio.run_coroutine_threadsafe(replay.__aenter__(), loop).result(10)
    try:
        yield replay
    finally:
        asyncio.run_coroutine_threadsafe(replay.__aexit__(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()
