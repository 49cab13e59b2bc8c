"""Statements about one topic -> rows of ``topic_routes``, ``route_polls``, ``route_contents``; and
those of a whole shard -> its rows of all snapshot tables: what travels to where they are.

A dump may hold the same poll twice: a collector that retried, two overlapping files. Of each
nameserver, topic and round the poll collected last counts.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import pyarrow as pa

from rebalance_core.grouping import grouped

from ..declared.contents import ROUTE_FACTS, content_id, record_text
from ..declared.instants import Instant
from ..dumps.reading import statements_of
from ..dumps.statement import LineSource, Route, RouteEntry, Statement
from ..engines.pieces import Piece, in_parts, pack_rows
from ..schemas import ROUTE_CONTENTS, ROUTE_POLLS, TOPIC_ROUTES
from .groups import SnapshotTerms, group_tables
from .lists import PIECE_ROWS, table_of

#: ``ResponseCode.TOPIC_NOT_EXIST``: the nameserver answered, and knows no such topic.
TOPIC_NOT_EXIST = 17

#: The row in ``topic_routes`` of a nameserver that knows no broker for the topic.
_NO_BROKER = (None, None, 0, 0, 0, None, None, None)


def topic_tables(statements: Iterable[Statement]) -> Iterator[tuple[str, pa.Table]]:
    """The tables of one topic in one cluster; the statements in order of time.

    A topic that the nameserver does not know gives one row without a broker in ``topic_routes``,
    and a route without brokers in ``route_contents``. Polls that the nameserver did not answer give
    no row: they are not evidence.
    """
    last: dict[tuple[Instant | None, str | None], Statement] = {}
    for statement in statements:
        last[statement.snapshot_time, statement.source.namesrv_addr] = statement
    answered = [poll for poll in last.values() if _has_answered(poll.source)]
    ids = {brokers: route_id(brokers) for brokers in dict.fromkeys(map(_brokers, answered))}
    for polls in in_parts(answered, PIECE_ROWS):
        columns: dict[str, Any] = {
            "snapshot_time": [poll.snapshot_time for poll in polls],
            "namesrv_addr": [poll.source.namesrv_addr for poll in polls],
            "collected_at": [poll.collected_at for poll in polls],
            "route_id": [ids[_brokers(poll)] for poll in polls],
        }
        yield ROUTE_POLLS.name, table_of(ROUTE_POLLS, columns, **_subject(polls[0]))
        rows = [
            (poll.snapshot_time, poll.source.namesrv_addr, *broker)
            for poll in polls
            for broker in _brokers(poll) or (_NO_BROKER,)
        ]
        names = ("snapshot_time", "namesrv_addr", *RouteEntry._fields)
        columns = dict(zip(names, zip(*rows, strict=True), strict=True))
        yield TOPIC_ROUTES.name, table_of(TOPIC_ROUTES, columns, **_subject(polls[0]))
    if answered:
        # Two routes that differ in the order of their brokers alone have one id.
        contents = {id_: list(dict.fromkeys(brokers)) for brokers, id_ in ids.items()}
        columns = {"route_id": list(contents), "brokers": list(contents.values())}
        yield ROUTE_CONTENTS.name, table_of(ROUTE_CONTENTS, columns, **_subject(answered[0]))


def _has_answered(source: LineSource) -> bool:
    """True if a nameserver answered; that it knows no such topic is an answer too.

    >>> _has_answered(LineSource(error_code=17)), _has_answered(LineSource(error_code=-1))
    (True, False)
    """
    return source.error_code is None or source.says(TOPIC_NOT_EXIST, "No topic route info")


def route_id(brokers: Iterable[RouteEntry]) -> str:
    """The id of a route's content."""
    return content_id([record_text(ROUTE_FACTS, broker) for broker in brokers])


def _brokers(poll: Statement) -> tuple[RouteEntry, ...]:
    return poll.content.brokers if isinstance(poll.content, Route) else ()


def _subject(poll: Statement) -> dict[str, str]:
    return {"cluster": poll.cluster, "topic": poll.subject}


#: The approximate bytes of tables that are held in a shard before they leave it.
_BYTES_AT_ONCE = 32 << 20


@dataclass(frozen=True)
class SubjectTables:
    """Makes the tables of the groups and topics of a shard."""

    terms: SnapshotTerms

    def make_tables(self, pieces: Sequence[Piece]) -> Iterator[Piece]:
        """The pieces of the tables."""
        made = chain.from_iterable(
            topic_tables(statements) if is_topic else group_tables(statements, self.terms)
            for (is_topic, _, _), statements in sorted(statements_of(pieces).items())
        )
        for tables in in_parts(made, _BYTES_AT_ONCE, lambda table: table[1].nbytes):
            for name, parts in grouped(tables).items():
                yield from pack_rows(pieces[0].shard, name, pa.concat_tables(parts))
            tables.clear()
