"""Statements about one consumer group -> its rows of the snapshot tables.

``heartbeats``, ``broker_polls``, ``member_lists``, ``client_states`` and ``queue_offsets``. What
depends on what: members are what heartbeats, running infos and log lines report; a list needs all
of them, for what a client reports first counts for the time before, too.

A dump may hold the same poll twice: a collector that retried, two overlapping files. Counting it
twice would turn every member into two. Of each broker, group and round the poll collected last
counts.

Offsets of static topics, which brokers give by physical queue, become those of the queues that
clients see. A logical queue lies on one broker after the other, each time in a queue of its own,
and is written to the last of these (``LogicQueueMappingItem`` 5.3.3). The route names that one
alone, and not the logical offset at which it begins; here it begins where the one before it ended,
so that a queue that moves to another broker goes on.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any, NamedTuple, TypeAlias, cast

import pyarrow as pa

from rebalance_core.message_queue import is_mock_broker

from ..declared.dossier import Broker
from ..declared.instants import Instant
from ..dumps.queues import QueueName
from ..dumps.statement import (
    CONSUMER_CONNECTION,
    CONSUMER_RUNNING_INFO,
    Connections,
    Content,
    FirstMapped,
    GroupFlags,
    HeartbeatOfGroup,
    LineSource,
    Log,
    LogLine,
    Offset,
    RequestMode,
    RunningInfo,
    Statement,
    Stats,
    log_of,
)
from ..engines.pieces import in_parts
from ..schemas import (
    ANSWERED,
    BROKER_POLLS,
    CLIENT_STATES,
    HEARTBEATS,
    LIST_REFUSED,
    MEMBER_LISTS,
    NO_ANSWER,
    NOT_ONLINE,
    QUEUE_OFFSETS,
)
from . import clients
from .lists import PIECE_ROWS, ListRows, table_of
from .members import Members

#: The offsets of each queue by round, as brokers give them.
Polled: TypeAlias = Mapping[Instant, Mapping[QueueName, Offset]]
#: A queue as its broker has it: broker name, queue id.
_Physical: TypeAlias = tuple[str, int]


def as_clients_see(
    polled: Polled, cluster: str, mapped: Mapping[tuple[str, str], FirstMapped]
) -> Iterator[tuple[Instant, Offset]]:
    """The offsets, of static topics by logical queue, round by round.

    ``mapped``: by cluster and static topic where its logical queues lie. A physical queue in which
    no logical one is written any more has no row: what nobody consumed of it waits in the logical
    one. Offsets that are of logical queues already, as mqadmin and the dashboard make them
    (``MQAdminUtils.convertPhysicalConsumeStats`` 5.3.3), stay as they are.

    Worked example: 500 messages lie in the first queue of a logical one, and 480 are consumed, when
    it moves. Of the next 30 none is consumed before these: it has 530 messages, and 480 consumed.
    """
    every = {topic for queues in polled.values() for topic, *_ in queues}
    topics = {name: _Topic(first) for name in every if (first := mapped.get((cluster, name)))}
    for round_, queues in sorted(polled.items(), key=itemgetter(0)):
        physical: dict[str, list[Offset]] = defaultdict(list)
        others: list[Offset] = []
        for offset in queues.values():
            is_other = offset.topic not in topics or is_mock_broker(offset.broker_name)
            (others if is_other else physical[offset.topic]).append(offset)
        # A rate is that of all queues of an answer, some of which get another broker's name.
        mixed = {offset.broker_name for offset in chain.from_iterable(physical.values())}
        for offset in others:
            is_mixed = offset.broker_name in mixed
            yield round_, offset._replace(given_per_1000_seconds=None) if is_mixed else offset
        for topic, offsets in physical.items():
            yield from ((round_, offset) for offset in topics[topic].logical(round_, offsets))


class _Topic:
    """A static topic, as far as its rounds were read."""

    def __init__(self, first: FirstMapped) -> None:
        #: The physical queues of each logical one, each with the first round that shows it.
        self._places: dict[tuple[str, int], list[tuple[Instant, _Physical]]] = defaultdict(list)
        in_order = sorted((epoch, queue, round_) for (queue, epoch), round_ in first.items())
        for _, queue, first_seen in in_order:
            places = self._places[queue.mock_broker, queue.queue_id]
            physical = queue.broker_name, queue.physical_id
            # Of two mappings clients take that of the higher epoch, whoever still gives the other
            # (``ClientMetadata.topicRouteData2EndpointsForStaticTopic`` 5.3.3).
            while places and places[-1][0] >= first_seen:
                places.pop()
            if not places or places[-1][1] != physical:
                places.append((first_seen, physical))
        #: The last offsets of each physical queue.
        self._last: dict[_Physical, Offset] = {}

    def logical(self, round_: Instant, polled: Iterable[Offset]) -> Iterator[Offset]:
        """The offsets of the logical queues, of those of the physical ones in a round."""
        now = {(offset.broker_name, offset.queue_id): offset for offset in polled}
        self._last |= now
        for (mock, number), places in self._places.items():
            # What came before the first route was mapped so, too.
            begun = sum(first_seen <= round_ for first_seen, _ in places) or 1
            until_now = [place for _, place in places[:begun]]
            if until_now[-1] not in now:
                continue
            # A commit goes to the physical queue of its messages (``ConsumerManageProcessor``
            # ``.rewriteRequestForStaticTopic`` 5.3.3), so that the last one with a commit has the
            # offset; -1 shows one without, and 0 here a logical queue of which none was committed.
            written = consumed = 0
            for last in filter(None, map(self._last.get, until_now)):
                consumed = written + last.consumer_offset if last.consumer_offset >= 0 else consumed
                written += last.broker_offset
            last = now[until_now[-1]]
            yield Offset(last.topic, mock, number, written, consumed, *last[5:])


#: A round, a broker's name and id, and the address that was asked.
_Asked: TypeAlias = tuple[Instant, str, int, str | None]

#: ``ResponseCode.CONSUMER_NOT_ONLINE``: the broker knows no member of the group.
CONSUMER_NOT_ONLINE = 206


class SnapshotTerms(NamedTuple):
    """The terms on which the snapshot tables depend besides the statements."""

    heartbeat_expiry_seconds: int
    #: The zone in which all clients print their times; None: each log's is inferred.
    client_log_time_zone: str | None = None
    #: The offset of each log from UTC: one log may be about several groups.
    log_offsets: Mapping[Log, Instant | None] = {}
    #: The places of logical queues, by cluster and static topic.
    mapped: Mapping[tuple[str, str], FirstMapped] = {}
    #: The configurations that brokers have, by cluster.
    configs: Mapping[str, clients.ClusterConfigs] = {}


def group_tables(
    statements: Sequence[Statement], terms: SnapshotTerms
) -> Iterator[tuple[str, pa.Table]]:
    """The tables of one group in one cluster, in pieces; the statements in order of time."""
    if not statements:
        return
    group = _Group(terms)
    cluster, name = _subject(statements[0]).values()
    # What a broker says of no group, as an error, has none.
    configs = terms.configs.get(cluster) if name else None
    configured = configs.rows(cluster, name) if configs else ()
    for rows in in_parts(chain(group.client_states(statements), configured), PIECE_ROWS):
        yield (
            CLIENT_STATES.name,
            pa.Table.from_pylist(rows, schema=CLIENT_STATES.schema),
        )
    as_polled = as_clients_see(group.offsets, cluster, terms.mapped)
    polled = ((time, *offset) for time, offset in as_polled)
    for offsets in in_parts(polled, PIECE_ROWS):
        names = ("snapshot_time", *Offset._fields)
        columns = dict(zip(names, zip(*offsets, strict=True), strict=True))
        yield (
            QUEUE_OFFSETS.name,
            table_of(QUEUE_OFFSETS, columns, **_subject(statements[0])),
        )
    if group.polls:
        yield from _poll_tables(group, terms)


def _subject(statement: Statement) -> dict[str, str]:
    return {"cluster": statement.cluster, "consumer_group": statement.subject}


class _Answered(NamedTuple):
    """The first and the last answer of a broker about offsets, and whether it ever gave some."""

    first_seen: Instant
    last_seen: Instant
    gave: bool


class _Group:
    """The reports about a group, as far as its statements were read."""

    def __init__(self, terms: SnapshotTerms) -> None:
        self._terms = terms
        self.members = Members()
        #: The poll collected last of each round, in order of time.
        self.polls: dict[_Asked, Statement] = {}
        #: The time of the first poll of each round in which a broker was asked again.
        self.first_polled: dict[_Asked, Instant] = {}
        #: The offsets of each round; the later answer counts of a queue that was asked for twice in
        #: one.
        self.offsets: dict[Instant, dict[tuple[str, str, int], Offset]] = {}
        #: The latest list of each broker, and the SDK of each client from the latest list with it:
        #: its language, and the ordinal of its MQVersion.
        self._lists: dict[Broker, Content] = {}
        self._sdks: dict[str, dict[str, Any]] = {}
        self._first_cached: clients.FirstCached = {}
        #: The highest committed offset of each queue, of those up to the broker's end.
        self._committed: dict[tuple[Any, ...], int] = {}
        #: The answers without any offset of brokers that had some, by round and broker name, with
        #: where the members begin then; and where they do by the latest list.
        self._empty: dict[tuple[Instant, str | None], tuple[Statement, str | None]] = {}
        self._consume_from_where: str | None = None
        #: The answers about offsets of each master, by its name and address.
        self._answered: dict[tuple[str | None, str | None], _Answered] = {}

    def client_states(self, statements: Sequence[Statement]) -> Iterator[dict[str, Any]]:
        """Reads the statements; gives the rows of ``client_states``."""
        for statement in statements:
            content, time = statement.content, statement.collected_at
            if isinstance(content, HeartbeatOfGroup):
                self.members.add_heartbeat(time, statement.source, content)
            elif statement.kind == CONSUMER_CONNECTION:
                self._add_poll(statement)
            elif isinstance(content, Stats):
                self._add_offsets(statement, content)
            elif isinstance(content, LogLine):
                self.members.add_log_line(time, content)
                offset = self._terms.log_offsets.get(log_of(statement, content))
                zone = self._terms.client_log_time_zone
                wrote_at = clients.logged_at(content.printed, time, zone, offset)
                yield clients.log_line_row(statement, content, wrote_at)
            elif isinstance(content, RequestMode | GroupFlags):
                yield clients.broker_row(statement, content)
            elif statement.kind == CONSUMER_RUNNING_INFO:
                client_id = cast("str", statement.source.client_id)
                if isinstance(content, RunningInfo):
                    self.members.add_running_info(time, client_id, content)
                sdk, committed = self._sdks.get(client_id, {}), self._committed
                yield clients.running_info_row(statement, sdk, self._first_cached, committed)
        for (round_, broker_name), (statement, begins) in self._empty.items():
            gave_some = {offset.broker_name for offset in self.offsets[round_].values()}
            if broker_name not in gave_some and self._took_over(statement.source):
                yield clients.no_offsets_row(statement, begins)

    def _took_over(self, source: LineSource) -> bool:
        """True if the broker at the address gave offsets, or took the place of one that did: two of
        one name, of which each registers in turn, answer in turn.
        """
        own = self._answered[source.broker_name, source.broker_addr]
        return own.gave or all(
            other.last_seen < own.first_seen
            for (name, address), other in self._answered.items()
            if name == source.broker_name and address != source.broker_addr
        )

    def _add_offsets(self, statement: Statement, stats: Stats) -> None:
        """A slave's answer without offsets does not show that its master has none."""
        queues = self.offsets.setdefault(_round(statement), {})
        queues.update({offset[:3]: offset for offset in stats.offsets})
        for offset in stats.offsets:
            if 0 < offset.consumer_offset <= offset.broker_offset:
                before = self._committed.get(offset[:3], 0)
                self._committed[offset[:3]] = max(before, offset.consumer_offset)
        name, broker_id = statement.source.broker_name, statement.source.broker_id
        if broker_id == 0:
            place, now = (name, statement.source.broker_addr), statement.collected_at
            first_seen, _, gave = self._answered.get(place, _Answered(now, now, False))
            self._answered[place] = _Answered(first_seen, now, gave or bool(stats.offsets))
            if not stats.offsets and name in {key[1] for key in self._committed}:
                self._empty[_round(statement), name] = statement, self._consume_from_where

    def _add_poll(self, poll: Statement) -> None:
        key, broker, answer = _asked(poll), _broker(poll), poll.content
        if (earlier := self.polls.pop(key, None)) is not None:
            self.first_polled.setdefault(key, earlier.collected_at)
        self.polls[key] = poll
        # One that repeats itself is the very same object, and costs nothing.
        if isinstance(answer, Connections) and self._lists.get(broker) is not answer:
            self._lists[broker] = answer
            self._consume_from_where = answer.consume_from_where or self._consume_from_where
            for connection in answer.connections:
                language, version = connection.language, connection.version
                self._sdks[connection.client_id] = {"language": language, "version": version}


def _broker(poll: Statement) -> Broker:
    # A poll without either is refused when its line is read, as is one without its round.
    return cast("Broker", (poll.source.broker_name, poll.source.broker_id))


def _asked(poll: Statement) -> _Asked:
    """Two brokers may have one name, each with a list of its own."""
    return _round(poll), *_broker(poll), poll.source.broker_addr


def _round(statement: Statement) -> Instant:
    return cast("Instant", statement.snapshot_time)


def _poll_tables(group: _Group, terms: SnapshotTerms) -> Iterator[tuple[str, pa.Table]]:
    """``broker_polls``, ``heartbeats`` and ``member_lists`` of polls in order of time."""
    polls = list(group.polls.values())
    answers = [
        (poll.collected_at, _broker(poll), poll.content)
        for poll in polls
        if isinstance(poll.content, Connections)
    ]
    lists = ListRows(group.members, answers, terms.heartbeat_expiry_seconds)
    subject = _subject(polls[0])
    for some in in_parts(polls, PIECE_ROWS):
        rows = []
        for poll in some:
            row: dict[str, Any] = subject | poll.source._asdict() | {"connections": 0}
            if isinstance(poll.content, Connections):
                row["connections"] = len(poll.content.connections)
                list_of_members = poll.collected_at, _broker(poll), poll.content
                row["list_id"] = lists.add(_round(poll), *list_of_members)
            row["outcome"] = outcome_of_poll(poll.source)
            row |= {"snapshot_time": poll.snapshot_time, "collected_at": poll.collected_at}
            row["first_collected_at"] = group.first_polled.get(_asked(poll))
            rows.append(row)
            if len(lists.rows) >= PIECE_ROWS:
                yield HEARTBEATS.name, lists.take_heartbeats(**subject)
        yield (
            BROKER_POLLS.name,
            pa.Table.from_pylist(rows, schema=BROKER_POLLS.schema),
        )
    if lists.rows:
        yield HEARTBEATS.name, lists.take_heartbeats(**subject)
    for piece in lists.member_lists(**subject):
        yield MEMBER_LISTS.name, piece


def outcome_of_poll(source: LineSource) -> str:
    """ANSWERED, NOT_ONLINE or NO_ANSWER, of a broker that was asked for a group's list.

    >>> [outcome_of_poll(LineSource(error_code=code)) for code in (None, 206, -1)]
    ['ANSWERED', 'NOT_ONLINE', 'NO_ANSWER']
    """
    if source.error_code in (None, LIST_REFUSED):
        return ANSWERED
    return NOT_ONLINE if source.says(CONSUMER_NOT_ONLINE, "not online") else NO_ANSWER
