"""Brokers' lists of a group: rows of ``heartbeats`` and ``member_lists``.

Most polls find the same members as the poll before, with the same true of each. A list is resolved
once for as long as that lasts, and its rows are then numbers of members that are kept once.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa

from rebalance_core.state import GROUP_TABLE

from ..declared.contents import MEMBER_FACTS, content_id, is_expired, record_text, silence_bounds
from ..declared.dossier import Broker
from ..declared.instants import HEARTBEAT_INTERVAL, SECOND, Instant
from ..dumps.statement import Connections
from ..engines.pieces import in_parts
from ..schemas import HEARTBEATS, MEMBER_LISTS, MEMBERS, Table
from .group_tables import Doubt, GroupTables, ShownFacts, TimedAnswer, share_of_others
from .members import NEVER, MemberRow, Members, member_at

#: The approximate number of rows of a piece of a table: a giant group's day is not held as one.
PIECE_ROWS = 1 << 15


def table_of(table: Table, columns: Mapping[str, Any], **same: str) -> pa.Table:
    """The table's columns, each of its declared type and in its order.

    A column is a sequence of values (times in microseconds) or an Arrow array; ``same``: the
    columns in which all rows have one text.
    """
    rows = len(next(iter(columns.values())))
    every = {**columns, **{name: [value] * rows for name, value in same.items()}}
    return pa.Table.from_pydict(every, schema=table.schema)


#: Two heartbeats in a row that did not come were not lost: the client stopped ...
_SILENCE: Instant = 75 * SECOND
#: ... unless it left before: a client listed for longer than two heartbeats did not sign off.
_LISTED = 2 * HEARTBEAT_INTERVAL
#: ... before the next heartbeat was due, in the middle of that time as likely as not.
_STOPPED_AFTER = HEARTBEAT_INTERVAL // 2


def _is_silent(time: Instant, heartbeats: Sequence[Instant], last_heard: Instant | None) -> bool:
    """True if the client has stopped for good to send heartbeats, as what came later shows.

    ``heartbeats`` are those of the client over any of its connections, so that one that reconnects
    is not silent; ``last_heard`` is when the last one of any member came: until then somebody
    listened. A broker drops a client that stopped without a word 120 to 130 s later; until then its
    slot is in everybody's list. A client that is heard from again was only frozen: it holds its
    queues meanwhile, and a frozen process is another fault.

    >>> _is_silent(50 * SECOND, [0], 99 * SECOND), _is_silent(10 * SECOND, [0], 99 * SECOND)
    (True, False)
    >>> _is_silent(50 * SECOND, [0, 200 * SECOND], None), _is_silent(50 * SECOND, [0], None)
    (False, False)
    """
    if not heartbeats or last_heard is None:
        return False
    last_heartbeat = heartbeats[-1]
    return last_heard - last_heartbeat > _SILENCE and time - last_heartbeat > _STOPPED_AFTER


class _Stays:
    """The stays of clients in a broker's list, poll by poll."""

    def __init__(self, polls: Iterable[TimedAnswer]) -> None:
        #: The last polls of a client's stays in a broker's list, ascending, by broker and client
        #: id.
        self._last_polls: dict[tuple[Broker, str], list[Instant]] = defaultdict(list)
        here: dict[Broker, tuple[Instant, Connections | None, set[str]]] = {}
        for time, broker, answer in polls:
            before, answer_before, ids = here.get(broker, (time, None, set()))
            if answer_before is not answer:
                came = {connection.client_id for connection in answer.connections}
                for client_id in ids - came:
                    self._last_polls[broker, client_id].append(before)
                ids = came
            here[broker] = time, answer, ids
        for broker, (*_, ids) in here.items():
            for client_id in ids:
                self._last_polls[broker, client_id].append(NEVER)

    def last_poll(self, broker: Broker, client_id: str, time: Instant) -> Instant:
        """The last poll of the stay that the time is in; NEVER where no poll shows its end."""
        ends = self._last_polls[broker, client_id]
        return ends[bisect_left(ends, time)]


@dataclass
class _ResolvedList:
    """A broker's list, with what is true of each of its members before ``ends``."""

    answer: Connections
    ends: Instant = NEVER
    #: The members, by their numbers.
    numbers: list[int] = field(default_factory=list)
    #: The times of heartbeats, over each connection, and over any connection of its client.
    heartbeats: "list[tuple[array[int], array[int]]]" = field(default_factory=list)
    #: The facts of the group's tables, where some member's subscriptions are from there.
    shown: ShownFacts | None = None
    #: The ids of the list, by which of its members are expired.
    ids: dict[tuple[bool | None, ...], str] = field(default_factory=dict)


class ListRows:
    """The rows of one group's lists. Polls are added in order of time."""

    def __init__(
        self,
        members: Members,
        answers: Sequence[TimedAnswer],
        heartbeat_expiry_seconds: int,
    ) -> None:
        """``answers``: all lists that brokers gave, in order of time."""
        self._members = members
        self._tables, self._stays = GroupTables(answers), _Stays(answers)
        self._bounds = silence_bounds(heartbeat_expiry_seconds)
        self._numbers: dict[MemberRow, int] = {}
        self._distinct: list[MemberRow] = []
        self._texts: dict[tuple[int, bool | None], str] = {}
        self._last: dict[Broker, _ResolvedList] = {}
        #: The distinct members of each list, by list id: their numbers, and whether they are
        #: expired.
        self._lists: dict[str, tuple[tuple[int, bool | None], ...]] = {}
        #: The member's number, the round, the last heartbeat, and whether it is silent, of each row
        #: of ``heartbeats`` that was not taken yet.
        self.rows: list[tuple[int, Instant, Instant | None, bool]] = []

    def add(
        self, snapshot_time: Instant, time: Instant, broker: Broker, answer: Connections
    ) -> str | None:
        """Takes in a poll that was ANSWERED; gives the id of the list, None if it is empty."""
        if not answer.connections:
            return None
        resolved = self._last.get(broker)
        if resolved is None or not self._holds(resolved, time, broker, answer):
            resolved = self._last[broker] = self._resolve(time, broker, answer)
        last_heard = self._members.last_heard.get(broker)
        flags: list[bool | None] = []
        for member, (heartbeats, client_heartbeats), connection in zip(
            resolved.numbers, resolved.heartbeats, answer.connections, strict=True
        ):
            client_id = connection.client_id
            number = bisect_right(heartbeats, time)
            last_heartbeat = heartbeats[number - 1] if number else None
            is_silent = (
                last_heartbeat is not None
                and _is_silent(time, client_heartbeats, last_heard)
                and self._stays.last_poll(broker, client_id, time) - last_heartbeat > _LISTED
            )
            self.rows.append((member, snapshot_time, last_heartbeat, is_silent))
            silence = None if last_heartbeat is None else snapshot_time - last_heartbeat
            flags.append(is_expired(silence, self._bounds, is_silent=is_silent))
        expired = tuple(flags)
        if expired not in resolved.ids:
            members = zip(resolved.numbers, expired, strict=True)
            by_text = {self._text(*member): member for member in members}
            list_id = resolved.ids[expired] = content_id(by_text)
            self._lists.setdefault(list_id, tuple(by_text.values()))
        return resolved.ids[expired]

    def _holds(
        self, resolved: _ResolvedList, time: Instant, broker: Broker, answer: Connections
    ) -> bool:
        """True if all that was true of the members of a list still is."""
        return (
            time < resolved.ends
            and resolved.answer[:-1] == answer[:-1]  # all but the group's table
            and (resolved.shown is None or resolved.shown == self._tables.at(time, broker))
        )

    def _resolve(self, time: Instant, broker: Broker, answer: Connections) -> _ResolvedList:
        resolved = _ResolvedList(answer)
        shown = self._tables.at(time, broker)
        members: list[MemberRow] = []
        for connection in answer.connections:
            member, ends = member_at(time, broker, connection, answer, self._members, shown)
            if member.subscription_source == GROUP_TABLE:
                resolved.shown = shown
            resolved.ends = min(resolved.ends, ends)
            client_id, client_addr, *_ = connection
            heard = self._members.connections[*broker, client_id, client_addr]
            client_heartbeats = self._members.heartbeats[*broker, client_id]
            resolved.heartbeats.append((heard.heartbeats, client_heartbeats))
            members.append(member)
        if resolved.shown is not None and shown.doubtful_topics:
            members = _with_shares_of_others(members)
        for member in members:
            number = self._numbers.setdefault(member, len(self._distinct))
            if number == len(self._distinct):
                self._distinct.append(member)
            resolved.numbers.append(number)
        return resolved

    def _text(self, number: int, is_expired: bool | None) -> str:
        if (number, is_expired) not in self._texts:
            facts = self._distinct[number].facts(is_expired=is_expired)
            self._texts[number, is_expired] = record_text(MEMBER_FACTS, facts)
        return self._texts[number, is_expired]

    def take_heartbeats(self, **subject: str) -> pa.Table:
        """The rows of ``heartbeats`` since the last time that they were taken."""
        numbers, *times_and_flags = zip(*self.rows, strict=True)
        used, position = np.unique(np.array(numbers, dtype=np.int64), return_inverse=True)
        members = [self._distinct[number] for number in used]
        columns: dict[str, Any] = {
            name: pa.array(values, type=HEARTBEATS.schema.field(name).type).take(position)
            for name, values in zip(MemberRow._fields, zip(*members, strict=True), strict=True)
        }
        names = ("snapshot_time", "last_heartbeat_at", "is_silent")
        columns |= zip(names, times_and_flags, strict=True)
        self.rows.clear()
        return table_of(HEARTBEATS, columns, **subject)

    def member_lists(self, **subject: str) -> Iterator[pa.Table]:
        """The rows of ``member_lists``: each list that came in, once."""
        for lists in in_parts(self._lists.items(), PIECE_ROWS, lambda content: len(content[1])):
            positions: dict[tuple[int, bool | None], int] = {}
            position = [
                positions.setdefault(member, len(positions))
                for _, members in lists
                for member in members
            ]
            facts = [self._distinct[n].facts(is_expired=expired) for n, expired in positions]
            structs = pa.array(facts, type=MEMBERS.value_type).take(pa.array(position))
            lengths = (len(members) for _, members in lists)
            ends = pa.array(accumulate(lengths, initial=0), pa.int32())
            columns = {
                "list_id": [list_id for list_id, _ in lists],
                "members": pa.ListArray.from_arrays(ends, structs, type=MEMBERS),
            }
            yield table_of(MEMBER_LISTS, columns, **subject)


def _with_shares_of_others(members: Sequence[MemberRow]) -> list[MemberRow]:
    """The members of a list, where the shares of doubtful topics are those of the members that
    only the table shows: what the others report themselves is certain."""
    sure = [
        {topic for topic, *_ in member.subscriptions}
        for member in members
        if member.doubtful_topics is None
    ]

    def shared(doubts: Iterable[Doubt]) -> Iterator[Doubt]:
        for topic, percent in doubts:
            subscribed = sum(topic in topics for topics in sure)
            yield topic, share_of_others(percent, len(members), len(sure), subscribed)

    return [
        member._replace(doubtful_topics=tuple(shared(member.doubtful_topics)))
        if member.doubtful_topics
        else member
        for member in members
    ]
