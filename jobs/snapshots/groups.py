"""Statements about one consumer group -> its rows of the snapshot tables.

``heartbeats``, ``broker_polls``, ``member_lists``, ``client_states`` and ``queue_offsets``. What
depends on what: members are what heartbeats, running infos and log lines report; a list needs all
of them, for what a client reports first counts for the time before, too.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, cast

import pyarrow as pa

from ..dumps.statement import (
    CONSUMER_CONNECTION,
    CONSUMER_RUNNING_INFO,
    Connections,
    Content,
    GroupFlags,
    HeartbeatOfGroup,
    Log,
    LogLine,
    RequestMode,
    RunningInfo,
    Statement,
    Stats,
    log_of,
)
from ..instants import Instant
from ..judge.dossier import Broker
from ..schemas import (
    ANSWERED,
    BROKER_POLLS,
    CLIENT_STATES,
    HEARTBEATS,
    MEMBER_LISTS,
    QUEUE_OFFSETS,
)
from .answers import outcome_of_poll
from .clients import (
    SdkOfClient,
    broker_row,
    log_line_row,
    logged_at,
    running_info_row,
)
from .group_tables import GroupTables
from .lists import ListRows, Stays
from .members import Members
from .offsets import OffsetRows
from .tables import PIECE_ROWS, table_of_rows


class SnapshotTerms(NamedTuple):
    """What the snapshot tables depend on besides the statements."""

    heartbeat_expiry_seconds: int
    #: The zone in which all clients print their times; None: each log's is inferred.
    client_log_time_zone: str | None = None
    #: The offset of each log from UTC: one log may be about several groups.
    log_offsets: Mapping[Log, Instant | None] = {}


def group_tables(
    statements: Iterable[Statement], terms: SnapshotTerms
) -> Iterator[tuple[str, pa.Table]]:
    """The tables of one group in one cluster, in pieces; the statements in order of time."""
    members, offsets = Members(), OffsetRows()
    polls: dict[tuple[Instant, Broker], Statement] = {}
    client_states: list[dict[str, Any]] = []
    sdks = _Sdks()
    statement = None
    for statement in statements:
        content, time = statement.content, statement.collected_at
        if isinstance(content, HeartbeatOfGroup):
            members.add_heartbeat(time, statement.source, content)
        elif statement.kind == CONSUMER_CONNECTION:
            # Of a round the poll collected last counts.
            key = _round(statement), _broker(statement)
            polls.pop(key, None)
            polls[key] = statement
            sdks.add(key[1], content)
        elif isinstance(content, Stats):
            offsets.add(_round(statement), content)
        elif isinstance(content, LogLine):
            members.add_log_line(time, content)
            client_states.append(_log_line(statement, content, terms))
        elif isinstance(content, RequestMode | GroupFlags):
            client_states.append(broker_row(statement, content))
        elif statement.kind == CONSUMER_RUNNING_INFO:
            client_id = cast("str", statement.source.client_id)
            client_states.append(_running_info(statement, client_id, members, sdks.of(client_id)))
        if len(client_states) >= PIECE_ROWS:
            yield CLIENT_STATES.name, table_of_rows(CLIENT_STATES, client_states)
            client_states = []
    if statement is None:
        return
    if client_states:
        yield CLIENT_STATES.name, table_of_rows(CLIENT_STATES, client_states)
    for piece in offsets.tables(statement.cluster, statement.subject):
        yield QUEUE_OFFSETS.name, piece
    if polls:
        yield from _poll_tables(list(polls.values()), members, terms)


class _Sdks:
    """The SDK of each client, from the latest list that has the client."""

    def __init__(self) -> None:
        self._lists: dict[Broker, Content] = {}
        self._of_client: dict[str, SdkOfClient] = {}

    def add(self, broker: Broker, answer: Content) -> None:
        """A broker's answer; one that repeats itself is the very same object, and costs nothing."""
        if isinstance(answer, Connections) and self._lists.get(broker) is not answer:
            self._lists[broker] = answer
            for connection in answer.connections:
                self._of_client[connection.client_id] = connection.language, connection.version

    def of(self, client_id: str) -> SdkOfClient:
        """The SDK of a client; (None, None) where no list has had it."""
        return self._of_client.get(client_id, (None, None))


def _broker(poll: Statement) -> Broker:
    # A poll without either is refused when its line is read, as is one without its round.
    return cast("Broker", (poll.source.broker_name, poll.source.broker_id))


def _round(statement: Statement) -> Instant:
    return cast("Instant", statement.snapshot_time)


def _running_info(
    statement: Statement, client_id: str, members: Members, sdk: SdkOfClient
) -> dict[str, Any]:
    if isinstance(statement.content, RunningInfo) and statement.source.code is None:
        members.add_running_info(statement.collected_at, client_id, statement.content)
    return running_info_row(statement, sdk)


def _log_line(statement: Statement, line: LogLine, terms: SnapshotTerms) -> dict[str, Any]:
    offset = terms.log_offsets.get(log_of(statement, line))
    time = logged_at(line.printed, statement.collected_at, terms.client_log_time_zone, offset)
    return log_line_row(statement, line, time)


def _poll_tables(
    polls: list[Statement], members: Members, terms: SnapshotTerms
) -> Iterator[tuple[str, pa.Table]]:
    """``broker_polls``, ``heartbeats`` and ``member_lists`` of polls in order of time."""
    cluster, group = polls[0].cluster, polls[0].subject
    answers = [
        (poll.collected_at, _broker(poll), poll.content)
        for poll in polls
        if isinstance(poll.content, Connections)
    ]
    lists = ListRows(members, GroupTables(answers), terms.heartbeat_expiry_seconds, Stays(answers))
    rows: list[dict[str, Any]] = []
    for poll in polls:
        row = _broker_poll(poll)
        if row["outcome"] == ANSWERED and isinstance(poll.content, Connections):
            row["connections"] = len(poll.content.connections)
            row["list_id"] = lists.add(_round(poll), poll.collected_at, _broker(poll), poll.content)
        rows.append(row)
        if lists.rows >= PIECE_ROWS:
            yield HEARTBEATS.name, lists.take_heartbeats(cluster, group)
        if len(rows) >= PIECE_ROWS:
            yield BROKER_POLLS.name, table_of_rows(BROKER_POLLS, rows)
            rows = []
    if lists.rows:
        yield HEARTBEATS.name, lists.take_heartbeats(cluster, group)
    if rows:
        yield BROKER_POLLS.name, table_of_rows(BROKER_POLLS, rows)
    for piece in lists.member_lists(cluster, group):
        yield MEMBER_LISTS.name, piece


def _broker_poll(poll: Statement) -> dict[str, Any]:
    """The row of ``broker_polls`` of a poll that found nobody."""
    return {
        "cluster": poll.cluster,
        "snapshot_time": poll.snapshot_time,
        "broker_name": poll.source.broker_name,
        "broker_id": poll.source.broker_id,
        "broker_addr": poll.source.broker_addr,
        "consumer_group": poll.subject,
        "outcome": outcome_of_poll(poll.source),
        "error_code": poll.source.code,
        "error_message": poll.source.message,
        "connections": 0,
        "collected_at": poll.collected_at,
    }
