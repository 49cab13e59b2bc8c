"""The steps of the judgement over streams of Arrow batches, in Spark's workers or in the driver.

dossiers -> situations -> evaluated situations
dossiers, evaluated situations -> rows of every report table
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from jobs.contents import MEMBER_FACTS
from jobs.judge.dossier import Broker, Dossier, DossierReader, read_dossiers
from jobs.judge.evaluation import ANY_TOPIC_FIELDS, PROCESS_COUNTS, UNREACHABLE, make_state
from jobs.judge.history import Row, judge
from jobs.judge.situations import Situation, Situations, find_situations
from jobs.judge.tables import to_table
from jobs.judge.terms import Terms
from jobs.masking import Masking
from jobs.packed import pack
from jobs.schemas import (
    ALLOCATIONS,
    LONG,
    NO_ANSWER,
    NOT_ONLINE,
    REPORT_TABLES,
    ROUTE_BROKERS,
    STRING,
)
from rebalance_core import State
from rebalance_core.state import SURE

_NAMED: list[pa.Field[Any]] = [pa.field("broker_name", STRING), pa.field("broker_id", LONG)]
#: Of a list these clients alone, or all but these; null: all.
_SOME_CLIENTS = [pa.field(name, pa.list_(STRING)) for name in ("only", "without")]
_ANSWER = [*_NAMED, pa.field("list_id", STRING), *_SOME_CLIENTS]
_ROUTE = [pa.field("namesrv_addr", STRING), pa.field("brokers", ROUTE_BROKERS)]
_COLUMNS: dict[str, Any] = {
    **dict.fromkeys(("cluster", "consumer_group", "topic", "situation_id"), STRING),
    "request_mode": STRING,
    "answers": pa.list_(pa.struct(_ANSWER)),
    "offline": pa.list_(pa.struct(_NAMED)),
    "counts": PROCESS_COUNTS,
    "unreachable": UNREACHABLE,
    "routes": pa.list_(pa.struct(_ROUTE)),
    **dict.fromkeys(("first_seen", "last_seen", "periods"), LONG),
}

#: One row per situation of a group's topic: what it is made of, and when it was first and last so.
SITUATIONS = pa.schema([pa.field(name, type_) for name, type_ in _COLUMNS.items()])

#: So many rows of reports are made before they leave a step.
_ROWS_AT_ONCE = 20_000

#: A member of a list: its facts, in the order of ``contents.MEMBER_FACTS``.
MemberFacts = tuple[Any, ...]


def situation_batches(
    terms: Terms,
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The step from rows of ``DOSSIER`` to rows of ``SITUATIONS``."""

    def step(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for dossier in read_dossiers(batches):
            rows = list(_situation_rows(dossier, terms))
            if rows:
                yield pa.RecordBatch.from_pylist(rows, schema=SITUATIONS)

    return step


def _situation_rows(dossier: Dossier, terms: Terms) -> Iterator[Row]:
    found = situations_of(dossier, terms)
    for periods in found.by_topic.values():
        by_id: dict[str, list[Any]] = defaultdict(list)
        for period in periods:
            by_id[period.situation.situation_id].append(period)
        for situation_id, of_situation in by_id.items():
            situation = of_situation[0].situation
            yield {
                "cluster": dossier.cluster,
                "consumer_group": dossier.consumer_group,
                "topic": situation.topic,
                "situation_id": situation_id,
                "request_mode": situation.request_mode,
                "answers": [
                    {
                        "broker_name": each.broker[0],
                        "broker_id": each.broker[1],
                        "list_id": each.list_id,
                        "only": each.only,
                        "without": each.without,
                    }
                    for each in listed(situation)
                ],
                "offline": [
                    {"broker_name": name, "broker_id": broker_id}
                    for name, broker_id in offline(situation)
                ],
                "counts": [each._asdict() for each in situation.process_counts],
                "unreachable": [
                    {"client_id": client_id, "broker_name": name}
                    for client_id, name in situation.unreachable
                ],
                "routes": [
                    {"namesrv_addr": name, "brokers": [each._asdict() for each in brokers]}
                    for name, brokers in situation.routes
                ],
                "first_seen": of_situation[0].first_seen,
                "last_seen": of_situation[-1].last_seen,
                "periods": len(of_situation),
            }


def situations_of(dossier: Dossier, terms: Terms) -> Situations:
    """The situations of a dossier, by the settings."""
    return find_situations(dossier, terms.heartbeat_expiry_seconds, terms.route_max_age_seconds)


class ListPart(NamedTuple):
    """Of a broker's list the members of ``only`` these clients, or all ``without`` these."""

    broker: Broker
    list_id: str
    only: tuple[str, ...] | None = None
    without: tuple[str, ...] | None = None

    def has(self, client_id: str) -> bool:
        """Whether the members of the client belong to the part."""
        if self.only is not None:
            return client_id in self.only
        return self.without is None or client_id not in self.without


def listed(situation: Situation) -> list[ListPart]:
    """The lists that the brokers gave, part by part: see ``membership.Patch``."""
    parts: list[ListPart] = []
    for broker, answer in situation.answers:
        patches = [patch for patch in situation.patches if patch.broker == broker]
        if any(patch.later == NOT_ONLINE for patch in patches):
            continue
        if answer not in (NOT_ONLINE, NO_ANSWER):
            replaced = [client_id for patch in patches for client_id in patch.client_ids]
            parts.append(ListPart(broker, answer, None, tuple(replaced) or None))
        parts += [ListPart(broker, patch.later, patch.client_ids) for patch in patches]
    return parts


def offline(situation: Situation) -> list[tuple[str, int]]:
    """The brokers that answered that the group has no member there."""
    later = {patch.broker: patch.later for patch in situation.patches}
    return [
        broker for broker, answer in situation.answers if later.get(broker, answer) == NOT_ONLINE
    ]


def state_of(
    consumer_group: str,
    situation: Situation,
    members: Mapping[str, Sequence[MemberFacts]],
) -> State:
    """The core's state of a situation; ``members`` by list id."""
    topic = situation.topic
    return make_state(
        consumer_group,
        topic,
        members=(
            (*part.broker, *_of_topic(member, topic))
            for part in listed(situation)
            for member in members[part.list_id]
            if part.has(member[_CLIENT_ID])
        ),
        offline=offline(situation),
        counts=situation.process_counts,
        unreachable=situation.unreachable,
        request_mode=situation.request_mode,
        routes=(
            (namesrv_addr, *broker)
            for namesrv_addr, brokers in situation.routes
            for broker in brokers or [_NO_BROKER]
        ),
    )


#: What a nameserver gives that does not know the topic.
_NO_BROKER = (None, None, 0, 0, 0, None)
_VERSION = ANY_TOPIC_FIELDS.index("version")
_CLIENT_ID = ANY_TOPIC_FIELDS.index("client_id")


def _of_topic(member: MemberFacts, topic: str) -> tuple[Any, ...]:
    """The facts as ``evaluation.MEMBER_FIELDS`` has them, but for the broker."""
    *any_topic, doubtful_topics, subscriptions = member
    if any_topic[_VERSION] is None:
        any_topic[_VERSION] = -1
    for of_topic, expression_type, expression in subscriptions or ():
        if of_topic == topic:
            percent = dict(doubtful_topics).get(topic, SURE) if doubtful_topics else SURE
            return (*any_topic, True, percent, expression_type, expression)
    return (*any_topic, False, SURE, None, None)


#: What _of_topic relies on.
assert [each.name for each in MEMBER_FACTS[-2:]] == ["doubtful_topics", "subscriptions"]  # noqa: S101


def judgement_batches(
    terms: Terms, *, saves: bool = False
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The step from rows of ``JUDGED_DOSSIER`` to packed rows of the report tables.

    With ``saves`` also of what the next audit goes on from: see ``SAVED_PARTS``.
    """

    def step(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        reader = DossierReader()
        rows: dict[str, list[Row]] = defaultdict(list)
        for batch in batches:
            # At once: those of a giant group are more than one row of Spark can hold.
            yield pack(_as_they_are(batch, terms.masking, saves=saves))
            for dossier in reader.read(batch):
                _judge(dossier, terms, rows)
                if sum(map(len, rows.values())) >= _ROWS_AT_ONCE:
                    yield _packed(rows)
        for dossier in reader.rest():
            _judge(dossier, terms, rows)
        yield _packed(rows)

    return step


def _as_they_are(
    batch: pa.RecordBatch, masking: Masking, *, saves: bool
) -> Iterator[tuple[str, pa.Table]]:
    """The pieces of tables that are parts of dossiers.

    What is saved for the next audit has the true ids, for that audit compares them.
    """
    yield ALLOCATIONS.name, masked_client_ids(allocation_rows(batch), masking)
    if saves:
        yield from ((name, saved_rows(batch, name)) for name in SAVED_PARTS)


def _judge(dossier: Dossier, terms: Terms, rows: dict[str, list[Row]]) -> None:
    """Adds the rows of the dossier's group."""
    judged = judge(dossier, situations_of(dossier, terms), dossier.evaluated, terms)
    for name, of_table in judged.items():
        # The last thing that is done: until here the order of the true ids counts.
        rows[name] += terms.masking.mask_all(of_table)


def _packed(rows: dict[str, list[Row]]) -> pa.RecordBatch:
    """The rows in pieces that one row of Spark can hold; then there are none."""
    pieces = [
        (name, to_table(_TABLES[name], of_table[start : start + _ROWS_AT_ONCE]))
        for name, of_table in rows.items()
        for start in range(0, len(of_table), _ROWS_AT_ONCE)
    ]
    rows.clear()
    return pack(pieces)


#: What the next audit goes on from, by the part of the dossiers that has it: a table each, with the
#: part's fields behind the group's two columns.
SAVED_PARTS = {"poll_runs": "poll", "routes": "route", "evaluated": "evaluated"}


def saved_rows(batch: pa.RecordBatch, name: str) -> pa.Table:
    """The rows of one of ``SAVED_PARTS``."""
    part = SAVED_PARTS[name]
    rows = batch.filter(batch.column(part).is_valid())
    column: Any = rows.column(part)
    columns = {each: rows.column(each) for each in ("cluster", "consumer_group")}
    return pa.table(columns | {field.name: column.field(field.name) for field in column.type})


_TABLES = {table.name: table for table in REPORT_TABLES}


def masked_client_ids(rows: pa.Table, masking: Masking) -> pa.Table:
    """The rows with what their column ``client_id`` holds of secrets masked."""
    column = rows.schema.get_field_index("client_id")
    masked = [masking.mask_column(chunk) for chunk in rows.column(column).chunks]
    return rows.set_column(column, rows.schema.field(column), pa.chunked_array(masked, STRING))


def allocation_rows(batch: pa.RecordBatch) -> pa.Table:
    """The rows of ``allocations`` of the evaluated situations in a batch, by Arrow alone: of a
    large group there are too many to make each a Python object.
    """
    rows = batch.filter(batch.column("evaluated").is_valid())
    evaluated: Any = rows.column("evaluated")
    of_situation = evaluated.field("allocations")
    lengths = np.asarray(pc.list_value_length(of_situation), dtype=np.int64)
    owners: Any = pa.array(np.repeat(np.arange(rows.num_rows), lengths))
    flat: Any = pc.list_flatten(of_situation)
    columns: dict[str, Any] = {
        "cluster": rows.column("cluster").take(owners),
        "consumer_group": rows.column("consumer_group").take(owners),
        "topic": evaluated.field("topic").take(owners),
        "state_id": evaluated.field("situation_id").take(owners),
    }
    columns |= {field.name: flat.field(field.name) for field in flat.type}
    return pa.table({name: columns[name] for name in ALLOCATIONS.schema.names}).cast(
        ALLOCATIONS.schema
    )
