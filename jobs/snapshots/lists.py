"""Brokers' lists of a group: rows of ``heartbeats`` and ``member_lists``.

Most polls find the same members as the poll before, with the same true of each. A list is resolved
once for as long as that lasts, and its rows are then numbers of members that are kept once.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import repeat

import numpy as np
import pyarrow as pa

from jobs.contents import MEMBER_FACTS, content_id, record_text
from jobs.dumps.statement import Connections
from jobs.instants import SECOND, Instant
from jobs.judge.dossier import Broker
from jobs.schemas import HEARTBEATS, MEMBER_LISTS, MEMBERS
from jobs.snapshots.history import NEVER
from jobs.snapshots.members import GROUP_TABLE, GroupTables, Member, Members, member_at
from jobs.snapshots.tables import PIECE_ROWS, table_of


class _Resolved:
    """A broker's list, with what is true of each of its members until ``until``."""

    def __init__(self, answer: Connections) -> None:
        self.answer = answer
        #: The members, by their numbers.
        self.numbers: list[int] = []
        #: When the heartbeats over each connection came.
        self.heartbeats: list[array[int]] = []
        self.until: Instant = NEVER
        #: What the group's tables showed, where some member's subscriptions are from there.
        self.around: object = None
        #: The ids of the list, by which of its members are expired.
        self.ids: dict[tuple[bool, ...], str] = {}


class ListRows:
    """The rows of one group's lists. Polls are added in order of time."""

    def __init__(
        self, members: Members, tables: GroupTables, heartbeat_expiry_seconds: int
    ) -> None:
        self._members = members
        self._tables = tables
        self._expiry = heartbeat_expiry_seconds * SECOND
        self._numbers: dict[Member, int] = {}
        self._known: list[Member] = []
        self._texts: dict[tuple[int, bool], str] = {}
        self._last: dict[Broker, _Resolved] = {}
        #: By list id the numbers of its members, and which of them are expired.
        self._lists: dict[str, tuple[Sequence[int], Sequence[bool]]] = {}
        self._clear()

    def _clear(self) -> None:
        self._rows: list[int] = []
        self._snapshot_times: list[Instant] = []
        self._last_heartbeats: list[Instant | None] = []

    @property
    def rows(self) -> int:
        """How many rows of ``heartbeats`` were not taken yet."""
        return len(self._rows)

    def add(
        self, snapshot_time: Instant, time: Instant, broker: Broker, answer: Connections
    ) -> str | None:
        """Takes in a poll that was ANSWERED; gives the id of the list, None if it is empty."""
        if not answer.connections:
            return None
        resolved = self._last.get(broker)
        if resolved is None or not self._holds(resolved, time, answer):
            resolved = self._last[broker] = self._resolve(time, broker, answer)
        last_heartbeats = [
            heartbeats[number - 1] if (number := bisect_right(heartbeats, time)) else None
            for heartbeats in resolved.heartbeats
        ]
        self._rows += resolved.numbers
        self._snapshot_times += repeat(snapshot_time, len(resolved.numbers))
        self._last_heartbeats += last_heartbeats
        # A flag and not an age, so that a list does not become another one with every poll. False
        # where no heartbeat of the member was collected: nothing is known of it then.
        latest_expired = snapshot_time - self._expiry
        expired = tuple([last is not None and last < latest_expired for last in last_heartbeats])
        list_id = resolved.ids.get(expired)
        if list_id is None:
            list_id = resolved.ids[expired] = self._list_id(resolved.numbers, expired)
        return list_id

    def _holds(self, resolved: _Resolved, time: Instant, answer: Connections) -> bool:
        """Whether all that was true of the members of a list still is."""
        before = resolved.answer
        return (
            time < resolved.until
            and before.connections == answer.connections
            and before.consume_type == answer.consume_type
            and before.message_model == answer.message_model
            and (resolved.around is None or resolved.around == self._tables.around(time))
        )

    def _resolve(self, time: Instant, broker: Broker, answer: Connections) -> _Resolved:
        resolved = _Resolved(answer)
        for connection in answer.connections:
            member, until = member_at(time, broker, connection, answer, self._members, self._tables)
            if member.subscription_source == GROUP_TABLE:
                resolved.around = member.subscriptions
            resolved.until = min(resolved.until, until)
            resolved.numbers.append(self._number(member))
            resolved.heartbeats.append(self._members.of_connection(broker, connection).heartbeats)
        return resolved

    def _number(self, member: Member) -> int:
        number = self._numbers.setdefault(member, len(self._known))
        if number == len(self._known):
            self._known.append(member)
        return number

    def _list_id(self, numbers: Sequence[int], expired: Sequence[bool]) -> str:
        list_id = content_id([self._text(*each) for each in zip(numbers, expired, strict=True)])
        self._lists.setdefault(list_id, (numbers, expired))
        return list_id

    def _text(self, number: int, is_expired: bool) -> str:
        text = self._texts.get((number, is_expired))
        if text is None:
            facts = self._known[number].facts(is_expired=is_expired)
            text = self._texts[number, is_expired] = record_text(MEMBER_FACTS, facts)
        return text

    def take_heartbeats(self, cluster: str, group: str) -> pa.Table:
        """The rows of ``heartbeats`` since the last time that they were taken."""
        used, position = np.unique(np.array(self._rows, dtype=np.int64), return_inverse=True)
        members = [self._known[number] for number in used]
        columns = {
            name: pa.array(values, type=HEARTBEATS.schema.field(name).type).take(position)
            for name, values in zip(Member._fields, zip(*members, strict=True), strict=True)
        }
        piece = table_of(
            HEARTBEATS,
            len(self._rows),
            {
                **columns,
                "cluster": cluster,
                "consumer_group": group,
                "snapshot_time": self._snapshot_times,
                "last_heartbeat_at": self._last_heartbeats,
            },
        )
        self._clear()
        return piece

    def member_lists(self, cluster: str, group: str) -> Iterator[pa.Table]:
        """The rows of ``member_lists``: each list that came in, once."""
        ids: list[str] = []
        members: list[tuple[int, bool]] = []
        ends = [0]
        for list_id, (numbers, expired) in self._lists.items():
            ids.append(list_id)
            members += zip(numbers, expired, strict=True)
            ends.append(len(members))
            if len(members) >= PIECE_ROWS:
                yield self._member_lists(cluster, group, ids, members, ends)
                ids, members, ends = [], [], [0]
        if ids:
            yield self._member_lists(cluster, group, ids, members, ends)

    def _member_lists(
        self,
        cluster: str,
        group: str,
        ids: list[str],
        members: list[tuple[int, bool]],
        ends: list[int],
    ) -> pa.Table:
        positions: dict[tuple[int, bool], int] = {}
        position = [positions.setdefault(each, len(positions)) for each in members]
        facts = [self._known[number].facts(is_expired=expired) for number, expired in positions]
        structs = pa.array(facts, type=MEMBERS.value_type).take(pa.array(position))
        return table_of(
            MEMBER_LISTS,
            len(ids),
            {
                "cluster": cluster,
                "consumer_group": group,
                "list_id": ids,
                "members": pa.ListArray.from_arrays(
                    pa.array(ends, pa.int32()), structs, type=MEMBERS
                ),
            },
        )
