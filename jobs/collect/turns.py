"""Turns of addresses: the questions that wait at each, and what one address may cost.

An address is asked by so many lanes at a time, by one until it has answered: those that hang must
not take the places of all others. Lists and routes come first, then offsets. Running infos, which
may take the whole time-out each, come when all the rest has been asked: who may be asked follows
from all of it. What an address names is bounded by
``Shares``; its bodies are read for a part of the round's time, and the round ends when its time
is over.

A broker passes a running info's question on: where no answer comes, the client was silent and not
the broker, and the address is not given up. After as many silent clients as may be asked at a time
the broker's others wait for the next round; those that wait longest come first.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Hashable, Iterable, Iterator
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from time import thread_time
from typing import Any, Generic, NamedTuple, TypeVar

from ..declared.instants import Instant
from . import names
from .client import CLIENT_SILENT, NO_ANSWER, NOT_REACHED, OK, Answer, RemotingClient
from .lines import RoundLines
from .memory import Memory
from .questions import EARLY, LAST, LATER, Request, RequestCode

#: After so many questions the others get each fourth turn: the groups may be made up.
_MANY_QUESTIONS = 500

#: A server that does not have the request (``RequestCode`` of a later version).
NOT_SUPPORTED = 3
#: Questions that brokers before 5.0 do not know.
_SINCE_5 = {RequestCode.QUERY_TOPICS_BY_CONSUMER, RequestCode.GET_ALL_MESSAGE_REQUEST_MODE}

#: The seconds that what is under way when the round's time is over may take.
_GRACE = 2.0
#: The most lines on what was not asked in time, each of one question; one line is for the rest.
_MOST_NOT_ASKED = 30_000
#: The part of the round's time after which the last ones are asked, whatever is still under way.
_SHARE_OF_FIRST = 1 / 2
#: A longer body is read in a thread.
_LONG = 1 << 14
#: The bodies of one address are read for this part of the round's time; the others are written.
_SHARE_OF_READING = 1 / 20

Then = Callable[[Answer, Any], None]


class _Job(NamedTuple):
    """A question that waits for its turn at an address; no two have the same ``urgency``."""

    urgency: tuple[int, Instant, int]
    question: Request
    then: Then


@dataclass
class _Address:
    """The questions that wait at an address, and its cost so far."""

    jobs: dict[int, list[_Job]] = field(default_factory=lambda: {EARLY: [], LATER: [], LAST: []})
    #: The names that it is still to be asked of, and how such a name becomes jobs.
    walks: list[tuple[int, Iterator[Any], Callable[[Any], None]]] = field(default_factory=list)
    lanes: int = 0
    has_answered: bool = False
    turns: int = 0
    #: Running infos that are under way, and those that did not come in time.
    infos: int = 0
    silent: int = 0
    read_seconds: float = 0.0


class LeastFirst:
    """A lock: of those that wait for it, who has cost least gets it next."""

    def __init__(self) -> None:
        self._waiting: list[tuple[float, int, asyncio.Future[None]]] = []
        self._order = count()
        self._is_taken = False

    @asynccontextmanager
    async def taken(self, cost: float) -> AsyncIterator[None]:
        """Holds the lock; ``cost``: what was done for who waits so far."""
        if self._is_taken:
            turn = asyncio.get_running_loop().create_future()
            heappush(self._waiting, (cost, next(self._order), turn))
            await turn
        self._is_taken = True
        try:
            yield
        finally:
            self._is_taken = bool(self._waiting)
            if self._waiting:
                heappop(self._waiting)[-1].set_result(None)


class Turns:
    """Asks what waits until all is asked, or the round's time is over."""

    def __init__(self, client: RemotingClient, memory: Memory, lines: RoundLines) -> None:
        self._client, self._memory, self._lines = client, memory, lines
        self._options, self._snapshot_time = client.options, lines.snapshot_time
        self._ends = 0.0
        self._order = count()
        self._addresses: defaultdict[str, _Address] = defaultdict(_Address)
        self._tasks: asyncio.TaskGroup | None = None
        self._reading = LeastFirst()
        self._not_asked = 0
        #: The lanes of all addresses; and set while there is none.
        self._lanes, self._is_quiet = 0, asyncio.Event()

    async def run(self, begin: Callable[[], None], begin_last: Callable[[], None]) -> None:
        """Asks what ``begin`` puts, and what follows from the answers; then so of ``begin_last``.

        Raises what these, the readers and the lines raise.
        """
        longest = self._options.longest_seconds
        self._ends = asyncio.get_running_loop().time() + longest
        try:
            async with asyncio.TaskGroup() as self._tasks:
                begin()
                # Those that answer without end do not keep the last ones out.
                with suppress(TimeoutError):
                    async with asyncio.timeout(longest * _SHARE_OF_FIRST):
                        await self._is_quiet.wait()
                begin_last()
        except BaseExceptionGroup as group:
            raise group.exceptions[0] from None
        if self._not_asked >= _MOST_NOT_ASKED:
            self._lines.leave_out("", "questions to servers that did not answer, or not in time")

    def put(self, address: str, question: Request, then: Then, begins: Instant = 0) -> None:
        """Has the question asked in its turn; what waits longest, as of ``begins``, comes first.

        ``then`` gets the answer, and what was found in it (``names.READERS``); None where it was
        not read.
        """
        urgency = question.code.urgency
        job = _Job((urgency, begins, next(self._order)), question, then)
        heappush(self._addresses[address].jobs[urgency], job)
        self._wake(address, 1)

    def put_each(
        self, address: str, urgency: int, walk: Iterator[Any], put: Callable[[Any], None]
    ) -> None:
        """Has each name of a ``Shares.walk`` put in its turn; ``wake`` where there may be some."""
        self._addresses[address].walks.append((urgency, walk, put))

    def wake(self, addresses: Iterable[str]) -> None:
        """Has the addresses asked that have nothing to do."""
        for address in addresses:
            self._wake(address, self._options.parallel)

    def has_too_many_silent(self, address: str) -> bool:
        """True if so many clients were silent, or are so far, that others would wait for them."""
        server = self._addresses[address]
        return server.silent + server.infos >= self._options.parallel

    def _wake(self, address: str, lanes: int) -> None:
        """Has the address asked by so many lanes more, if it may be."""
        assert self._tasks is not None  # noqa: S101 - run() has opened it
        server = self._addresses[address]
        most = self._options.parallel if server.has_answered else 1
        for _ in range(min(lanes, most - server.lanes)):
            server.lanes += 1
            self._lanes += 1
            self._is_quiet.clear()
            self._tasks.create_task(self._lane(address, server))

    async def _lane(self, address: str, server: _Address) -> None:
        while (job := self._next(address, server)) is not None:
            answer = await self._asked(address, server, job)
            self._not_asked += answer.code == NOT_REACHED
            server.silent += answer.code in (NO_ANSWER, CLIENT_SILENT) and job.urgency[0] == LAST
            try:
                if answer.code == NOT_SUPPORTED and job.question.code in _SINCE_5:
                    refused = (address, int(job.question.code))
                    self._memory.refused.setdefault(refused, self._snapshot_time)
                else:
                    job.then(answer, await self._read(server, job, answer))
                await self._lines.make_room(len(answer.body))
            finally:
                self._client.handled(answer)
        server.lanes -= 1
        self._lanes -= 1
        if not self._lanes:
            self._is_quiet.set()

    def _next(self, address: str, server: _Address) -> _Job | None:
        """The question that is next; None where there is none now."""
        is_failing = address in self._client.given_up or self._is_over()
        if is_failing and self._not_asked >= _MOST_NOT_ASKED:
            return None
        server.turns += 1
        order = (EARLY, LATER, LAST)
        if server.turns > _MANY_QUESTIONS and server.turns % 4 == 0:
            order = (LATER, EARLY, LAST) if server.infos else order[::-1]
        for urgency in order:
            jobs = server.jobs[urgency]
            for of, walk, put in server.walks:
                while of == urgency and not jobs and (name := next(walk)) is not None:
                    put(name)
            if jobs:
                return heappop(jobs)
        return None

    async def _asked(self, address: str, server: _Address, job: _Job) -> Answer:
        is_info = job.urgency[0] == LAST
        if self._is_over():
            return self._too_late(address)
        if is_info and self.has_too_many_silent(address):
            reason = "too many clients did not answer this broker; they are asked in the next round"
            return self._client.not_asked(address, reason)
        if (address, job.question.code) in self._memory.refused:
            return Answer(address, NOT_SUPPORTED, None, b"", self._snapshot_time)
        server.infos += is_info
        try:
            async with asyncio.timeout_at(self._ends + _GRACE):
                answer = await self._client.ask(address, job.question)
        except TimeoutError:
            return self._too_late(address)
        finally:
            server.infos -= is_info
        if answer.code >= OK:
            self._memory.answered[address] = self._snapshot_time
            if not server.has_answered:
                server.has_answered = True
                self.wake([address])
        return answer

    def _is_over(self) -> bool:
        return asyncio.get_running_loop().time() >= self._ends

    def _too_late(self, address: str) -> Answer:
        longest = self._options.longest_seconds
        return self._client.not_asked(address, f"the round took longer than {longest:g} s")

    async def _read(self, server: _Address, job: _Job, answer: Answer) -> Any:
        """Reads the answer; None where its server has taken too much time with others."""
        read = names.READERS.get(job.question.code)
        if read is None:
            return None
        is_long = len(answer.body) > _LONG
        # One at a time: what a body becomes takes many times its room.
        async with self._reading.taken(server.read_seconds) if is_long else nullcontext():
            most = self._options.longest_seconds * _SHARE_OF_READING
            is_too_late = is_long and self._is_over()
            try:
                if answer.body and (server.read_seconds > most or is_too_late):
                    raise names.TooMuchError(f"answers that were not read within {most:g} s")
                if not is_long:
                    return _timed(server, read, answer)
                loop, worker = asyncio.get_running_loop(), self._lines.worker
                return await loop.run_in_executor(worker, _timed, server, read, answer)
            except names.TooMuchError as error:
                self._lines.leave_out(answer.address, str(error))
                return None


def _timed(server: _Address, read: Callable[[Answer], Any], answer: Answer) -> Any:
    begins = thread_time()
    try:
        return read(answer)
    finally:
        server.read_seconds += thread_time() - begins


# ---------------------------------------------------------------- names that servers give

Name = TypeVar("Name", bound=Hashable)
#: The giver of a name: its cluster, and its address.
Giver = tuple[str, str]


class Shares(Generic[Name]):
    """The names that were taken, each under who gave it first.

    >>> shares: Shares[str] = Shares(3)
    >>> loud, quiet = ("C", "a:1"), ("C", "b:1")
    >>> [shares.add(name, loud) for name in ("x", "y", "z", "u")], shares.add("G", quiet)
    ([True, True, True, False], True)
    >>> ["x" in shares, "z" in shares, "G" in shares, shares.left_out]
    [True, False, True, 2]
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._names: set[Name] = set()
        #: The names by who gave them first, in the order in which they came.
        self.given: dict[Giver, list[Name]] = {}
        self.left_out = 0
        #: The givers of as many as any when there was no room left: no share grows from then on.
        self._refused: set[Giver] = set()

    def __contains__(self, name: Name) -> bool:
        return name in self._names

    def __len__(self) -> int:
        return len(self._names)

    def within(self, names: list[str]) -> list[str]:
        """The names of an answer, cut to as many as could be taken at all."""
        self.left_out += max(0, len(names) - self._most)
        return names[: self._most]

    def add(self, name: Name, giver: Giver) -> bool:
        """Takes the name, where there is room or can be made; whether it is among those taken."""
        if name in self._names:
            return True
        if len(self._names) >= self._most:
            self.left_out += 1
            if giver in self._refused:
                return False
            largest = max(self.given.values(), key=len)
            if len(self.given.get(giver, ())) + 1 >= len(largest):
                self._refused.add(giver)
                return False
            self._names.remove(largest.pop())
        self._names.add(name)
        self.given.setdefault(giver, []).append(name)
        return True

    def walk(self, cluster: str | None = None) -> Iterator[Name | None]:
        """All names that were given in a cluster (None: in any), one of each giver by turns.

        None where there is none now: those that come later are given then.

        >>> shares: Shares[str] = Shares(9)
        >>> [shares.add(name, ("C", "a:1")) for name in "xy"], shares.add("G", ("C", "b:1"))
        ([True, True], True)
        >>> walk = shares.walk("C")
        >>> next(walk), next(walk), next(walk), next(walk)
        ('x', 'G', 'y', None)
        """
        places: Counter[Giver] = Counter()
        while True:
            left = (
                giver
                for giver, names in self.given.items()
                if places[giver] < len(names) and cluster in (None, giver[0])
            )
            giver = min(left, key=places.__getitem__, default=None)
            if giver is None:
                yield None
            else:
                places[giver] += 1
                yield self.given[giver][places[giver] - 1]
