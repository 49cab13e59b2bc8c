"""Statements about one topic -> rows of ``topic_routes``, ``route_polls``, ``route_contents``."""

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from ..contents import ROUTE_FACTS, content_id, record_text
from ..dumps.statement import Route, RouteBroker, Statement
from ..instants import Instant
from ..schemas import ROUTE_CONTENTS, ROUTE_POLLS, TOPIC_ROUTES
from .answers import has_answered_route
from .tables import PIECE_ROWS, table_of, table_of_rows

#: In ``topic_routes`` the row of a nameserver that knows no broker for the topic.
_NO_BROKER = (None, None, 0, 0, 0, None)


def topic_tables(statements: Iterable[Statement]) -> Iterator[tuple[str, pa.Table]]:
    """The tables of one topic in one cluster; the statements in order of time.

    A topic that the nameserver does not know gives one row without a broker in ``topic_routes``,
    and a route without brokers in ``route_contents``. Polls that the nameserver did not answer
    give no row: they are no evidence.
    """
    last: dict[tuple[Instant | None, str | None], Statement] = {}
    for statement in statements:
        last[statement.snapshot_time, statement.source.namesrv_addr] = statement
    answered = [poll for poll in last.values() if has_answered_route(poll.source)]
    ids: dict[tuple[RouteBroker, ...], str] = {}
    for start in range(0, len(answered), PIECE_ROWS):
        polls = answered[start : start + PIECE_ROWS]
        for poll in polls:
            brokers = _brokers(poll)
            if brokers not in ids:
                ids[brokers] = route_id(brokers)
        yield ROUTE_POLLS.name, _route_polls(polls, ids)
        yield TOPIC_ROUTES.name, _topic_routes(polls)
    if answered:
        yield ROUTE_CONTENTS.name, _route_contents(answered[0], ids)


def route_id(brokers: Iterable[RouteBroker]) -> str:
    """The id of a route's content."""
    return content_id([record_text(ROUTE_FACTS, broker) for broker in brokers])


def _brokers(poll: Statement) -> tuple[RouteBroker, ...]:
    return poll.content.brokers if isinstance(poll.content, Route) else ()


def _route_polls(polls: list[Statement], ids: dict[tuple[RouteBroker, ...], str]) -> pa.Table:
    columns: dict[str, Any] = {
        "cluster": polls[0].cluster,
        "topic": polls[0].subject,
        "snapshot_time": [poll.snapshot_time for poll in polls],
        "namesrv_addr": [poll.source.namesrv_addr for poll in polls],
        "collected_at": [poll.collected_at for poll in polls],
        "route_id": [ids[_brokers(poll)] for poll in polls],
    }
    return table_of(ROUTE_POLLS, len(polls), columns)


def _topic_routes(polls: list[Statement]) -> pa.Table:
    rows = [(poll, broker) for poll in polls for broker in _brokers(poll) or (_NO_BROKER,)]
    columns: dict[str, Any] = {
        "cluster": polls[0].cluster,
        "topic": polls[0].subject,
        "snapshot_time": [poll.snapshot_time for poll, _ in rows],
        "namesrv_addr": [poll.source.namesrv_addr for poll, _ in rows],
        **dict(
            zip(RouteBroker._fields, zip(*[broker for _, broker in rows], strict=True), strict=True)
        ),
    }
    return table_of(TOPIC_ROUTES, len(rows), columns)


def _route_contents(poll: Statement, ids: dict[tuple[RouteBroker, ...], str]) -> pa.Table:
    # Two routes that differ in the order of their brokers alone have one id.
    contents = {id_: brokers for brokers, id_ in ids.items()}
    rows = [
        {
            "cluster": poll.cluster,
            "topic": poll.subject,
            "route_id": id_,
            "brokers": list(dict.fromkeys(brokers)),
        }
        for id_, brokers in contents.items()
    ]
    return table_of_rows(ROUTE_CONTENTS, rows)
