"""The lines of a round on their way to its file, and what went wrong in it.

Each answer is one line of the dump, failed or not; what was left out of the round is a line, too.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from typing import Any

from ..declared.instants import Instant, to_datetime
from ..texts.shown import iso
from .client import EXPECTED, NOT_UNDERSTOOD, OK, Answer, RemotingClient
from .memory import ListedBroker
from .questions import Request

#: The answer to a question without an account (``AclException``; ACL 2.0: NO_PERMISSION).
_NO_PERMISSION, _ACL = 16, "AclException"

#: The bytes of lines that are written at a time; the bytes of a line without its body, about.
_BATCH, _LINE_BYTES = 1 << 20, 300
#: A small answer does not wait for others' lines to be written, up to so many bytes of them.
_LITTLE, _MOST_UNWRITTEN = 1 << 16, 4 << 20
#: The most troubles that are kept; there may be as many as lines.
_MOST_TROUBLES = 1_000


#: Writes a line.
Write = Callable[[dict[str, Any]], None]


class RoundLines:
    """The lines of one round. ``brokers``: those of the round, by address."""

    def __init__(
        self,
        snapshot_time: Instant,
        write: Write,
        client: RemotingClient,
        brokers: Mapping[str, ListedBroker],
        worker: Executor,
    ) -> None:
        self.snapshot_time, self._write, self.worker = snapshot_time, write, worker
        self._client, self._brokers = client, brokers
        #: The questions with their answers.
        self._lines: list[tuple[dict[str, Any], Answer]] = []
        self._unwritten = 0
        self._is_stopped = False
        self._writing = asyncio.Lock()
        #: The number of names left out, by address and reason.
        self._left_out: Counter[tuple[str, str]] = Counter()
        #: Troubles, by whom and of whom.
        self.troubles: list[str] = []
        #: The brokers that refuse to answer without an account, or with this one, by address.
        self.refusing: dict[str, str] = {}

    def add(self, question: Request, cluster: str, answer: Answer, **server: Any) -> None:
        """Adds the line of an answer; ``server``: who was asked."""
        self._add(question.code.kind, cluster, answer, **server, **question.who)

    def _add(self, kind: str, cluster: str, answer: Answer, **who: Any) -> None:
        time = iso(to_datetime(self.snapshot_time))
        about = {"kind": kind, "cluster": cluster, "snapshot_time": time, **who}
        self._lines.append((about, answer))
        self._unwritten += _LINE_BYTES + len(answer.body)
        if answer.code not in EXPECTED:
            self._note_trouble(answer, who)

    def leave_out(self, address: str, what: str, number: int = 1) -> None:
        """Counts what is left out of what an address gave; '' where many gave it."""
        if number:
            self._left_out[address, what] += number

    def end(self, name: str) -> None:
        """Adds a line, and a trouble, for each reason why something was left out.

        ``name``: the cluster's name where no broker shows it; it may be empty.
        """
        others = name or next((broker.cluster for broker in self._brokers.values()), "unknown")
        for (address, what), number in sorted(self._left_out.items()):
            broker = self._brokers.get(address)
            cluster = broker.cluster if broker else others
            body = json.dumps({"what": what, "number": number}).encode()
            said = Answer(address, OK, None, body, self._client.now())
            self._add("left_out", cluster, said, address=address)
            whose = f" of {self.name_of(address)}" if address else ""
            self.troubles.insert(0, f"left out: {number:,} {what}{whose}")

    async def make_room(self, brought: int) -> None:
        """Writes the lines that were added where they are many; ``brought``: bytes of the last."""
        waits = brought > _LITTLE or self._unwritten > _MOST_UNWRITTEN
        if self._unwritten > _BATCH and (waits or not self._writing.locked()):
            await self.flush()

    async def flush(self) -> None:
        """Writes the lines that were added, in a thread."""
        async with self._writing:
            lines, self._lines, self._unwritten = self._lines, [], 0
            loop = asyncio.get_running_loop()
            try:
                await loop.run_in_executor(self.worker, self._write_all, lines)
            except asyncio.CancelledError:
                self._is_stopped = True
                raise

    def name_of(self, address: str) -> str:
        """The address, with the name of the broker that lies there."""
        broker = self._brokers.get(address)
        if broker is None:
            return address
        slave = "" if broker.is_master else f", slave {broker.broker_id}"
        return f"{broker.broker_name}{slave} ({address})"

    def _write_all(self, lines: list[tuple[dict[str, Any], Answer]]) -> None:
        for about, answer in lines:
            if self._is_stopped:
                return
            # As a text a body takes up to four times its room: one of them at a time.
            self._write(answered_line(about, answer))

    def _note_trouble(self, answer: Answer, who: Mapping[str, Any]) -> None:
        """Keeps who did not answer, of whom; of an address that was given up that alone."""
        server, remark = self.name_of(answer.address), answer.remark or "no remark"
        if answer.code == _NO_PERMISSION or _ACL in remark:
            self.refusing.setdefault(answer.address, f"{server} answers: {remark}")
        elif answer.address not in self._client.given_up and len(self.troubles) < _MOST_TROUBLES:
            names = {"group": "consumer_group", "member": "client_id", "topic": "topic"}
            whom = ", ".join(f"{word} {who[name]}" for word, name in names.items() if name in who)
            # The server is named already.
            remark = remark.removeprefix(f"{answer.address}: ")
            error = remark if answer.code < OK else f"error {answer.code}: {remark}"
            self.troubles.append(": ".join(filter(None, [server, whom, error])))


def answered_line(about: Mapping[str, Any], answer: Answer) -> dict[str, Any]:
    """The line of a dump: what was asked, and the body as it came, or why there is none.

    >>> answered_line({"kind": "topic_route", "topic": "T"}, Answer("ns:1", 17, "No route", b"", 0))
    {'kind': 'topic_route', 'topic': 'T', 'collected_at': '1970-01-01T00:00:00.000Z', \
'error_code': 17, 'error_message': 'No route'}
    """
    line = {**about, "collected_at": iso(to_datetime(answer.collected_at))}
    code, remark = answer.code, answer.remark
    if answer.is_ok:
        try:
            return {**line, "body": answer.body.decode()}
        except UnicodeDecodeError as error:
            code, remark = NOT_UNDERSTOOD, f"{answer.address}: the body is no UTF-8: {error}"
    return {**line, "error_code": code, "error_message": remark or "no remark"}
