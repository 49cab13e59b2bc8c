"""The fold on Spark: snapshot tables -> dossiers, natively: the only step that sees every row.

All statements are folded by one function: those of one witness about one subject with
one content become a run, with the times as a list. There is no window and no order here: what came
first is for the judge to see.

A content has an id: see ``contents``. To make it of each of millions of lists would cost the text
of every row. In a healthy fleet almost every list equals the one before, so that lists are compared
by a fingerprint first, and the id is made of one list of each. A fingerprint is a multiset
hash: every row gives two differently seeded xxhash64, whose four 32-bit halves are summed. Sums do
not depend on the order of the rows, merge in partial aggregation, and, unlike those of XOR, differ
between two copies of a row and none.

How probably do two different lists of a group share a fingerprint? Where a row is in one and not
in the other, each half of its hashes must hit the one value that makes the sums equal: 2^-32 four
times over, 2^-128 in all, and 2^-128 again for hashing the sums. A day of 5,000 groups in which
every one of 1,440 snapshots is another list has 5,000 x 1,440^2 / 2 = 5 x 10^9 pairs: 3 x 10^-29.
Subscriptions enter the rows as one hash of 64 bits: a hundred different lists of subscriptions in
every group are 2.5 x 10^7 pairs, 1.3 x 10^-12 in all. (Against chance: xxhash64 is no defence
against somebody who looks for two lists that collide.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import pandas_udf
from pyspark.sql.pandas.types import from_arrow_type

from jobs.contents import HEARD_SECONDS, MEMBER_FACTS, ROUTE_FACTS, Fact, content_sql, record_sql
from jobs.fold.runs import POLL_RUNS, ROUTE_RUNS
from jobs.instants import SECOND
from jobs.judge.dossier import CLIENT, DOSSIER, OFFSETS, PARTS
from jobs.judge.evaluation import (
    COUNT_FIELDS,
    EVALUATION,
    MEMBER_FIELDS,
    OFFLINE_FIELDS,
    ROUTE_FIELDS,
    STATE_COLUMNS,
    UNREACHABLE_FIELDS,
)
from jobs.judge.udf import evaluate_rows
from jobs.schemas import ANSWERED, NOT_ONLINE, ROUTE_BROKERS
from rebalance_core.message_queue import RETRY_PREFIX
from rebalance_core.state import SURE

#: What a caller does with rows that are used more than once: to persist them, or nothing.
Keep = Callable[[DataFrame], DataFrame]


class Contents(NamedTuple):
    """Runs of one kind of witness, and each distinct content once.

    ``runs``: rows of ``POLL_RUNS`` or ``ROUTE_RUNS``; ``contents``: of ``member_lists`` or
    ``route_contents``, those alone that the runs have.
    """

    runs: DataFrame
    contents: DataFrame


def ddl(type_: pa.DataType) -> str:
    """The type as Spark's SQL has it."""
    return from_arrow_type(type_).simpleString()


# ---------------------------------------------------------------- statements to runs

_BROKER = ("cluster", "consumer_group", "broker_name", "broker_id")
_NAMESERVER = ("cluster", "topic", "namesrv_addr")


def find_runs(statements: DataFrame) -> DataFrame:
    """Statements with equal columns as one row, and ``times`` when they were made.

    A statement that was collected twice counts once.
    """
    by = ", ".join(n for n in statements.columns if n not in ("snapshot_time", "collected_at"))
    return query(
        "SELECT {by}, array_distinct(collect_list({polled})) AS times FROM {statements} "
        "GROUP BY {by}",
        {"by": by, "polled": _polled_sql("unix_micros(collected_at)")},
        statements=statements,
    )


def _polled_sql(collected_at: str) -> str:
    """An element of ``dossier.POLLED``."""
    return f"struct(unix_micros(snapshot_time) AS snapshot_time, {collected_at} AS collected_at)"


def query(text: str, words: Mapping[str, str] | None = None, **frames: DataFrame) -> DataFrame:
    """The rows of a query over DataFrames: few calls, however many columns there are.

    ``{name}`` is replaced by a DataFrame, or by one of the words. It is not one of the names that
    ``spark.sql`` gives to DataFrames: when it drops them, it also drops what is persisted under
    them, and whatever is persisted of that (Spark 4.1). So does every public way to drop a view.
    """
    spark = next(iter(frames.values())).sparkSession
    views = {name: f"_rebalance_audit_{uuid4().hex}" for name in frames}
    for name, value in {**(words or {}), **views}.items():
        text = text.replace(f"{{{name}}}", value)
    for name, frame in frames.items():
        frame.createTempView(views[name])
    try:
        return spark.sql(text)
    finally:
        catalog = spark._jsparkSession.sessionState().catalog()
        for view in views.values():
            catalog.dropTempView(view)


# ---------------------------------------------------------------- what brokers answered


def member_runs(
    heartbeats: DataFrame,
    broker_polls: DataFrame | None,
    heartbeat_expiry_seconds: int,
    keep: Keep = DataFrame.persist,
) -> Contents:
    """What each broker answered, from the rows of its lists and the polls that brought none.

    ``keep`` is called once, for the runs by fingerprint: few rows, which two steps read.
    """
    listed, contents = _identify(
        mark_members(heartbeats, heartbeat_expiry_seconds),
        _BROKER,
        MEMBER_FACTS,
        "members",
        "list_id",
        keep,
    )
    listed = listed.selectExpr(*_BROKER, f"'{ANSWERED}' AS outcome", "list_id", "times")
    if broker_polls is None:
        return Contents(listed, contents)
    # Of an answer with a list the poll has the time: the rows of lists have none.
    outcomes = find_runs(_polls(broker_polls, "CAST(NULL AS STRING)"))
    return Contents(listed.unionByName(outcomes), contents)


def member_runs_by_id(
    broker_polls: DataFrame, member_lists: DataFrame, keep: Keep = DataFrame.persist
) -> Contents:
    """The same from the ids that the polls have: one narrow row an answer is read."""
    polls = _polls(broker_polls, "list_id")
    runs = keep(find_runs(polls.where(f"list_id IS NOT NULL OR outcome <> '{ANSWERED}'")))
    contents = query(
        "SELECT l.cluster, l.consumer_group, l.list_id, l.members FROM {lists} l LEFT SEMI JOIN "
        "{runs} r USING (cluster, consumer_group, list_id)",
        lists=member_lists,
        runs=runs,
    )
    return Contents(runs.select(POLL_RUNS.names), contents)


def mark_members(heartbeats: DataFrame, heartbeat_expiry_seconds: int) -> DataFrame:
    """Adds ``is_expired`` and ``chooses_queues``.

    ``is_expired``: true where the last heartbeat is older than a broker keeps a silent connection,
    false where the connection was heard lately; null where neither is so, or where no heartbeat
    over it was collected. It is a flag and not an age, so that a list does not change with every
    snapshot.

    ``chooses_queues``: a ``DefaultMQPullConsumer``, whose application pulls what it likes, or one
    that pulls and itself reports that it subscribes to nothing: it takes its queues by ``assign()``
    (``DefaultLitePullConsumerImpl`` 5.3.3). What the group's table has does not count: the last
    heartbeat of any member wrote it.
    """
    silent = "unix_micros(snapshot_time) - unix_micros(last_heartbeat_at)"
    stopped = "is_silent OR " if "is_silent" in heartbeats.columns else ""
    return heartbeats.selectExpr(
        "*",
        f"CASE WHEN {stopped}{silent} > {heartbeat_expiry_seconds * SECOND}L THEN true "
        f"WHEN {silent} <= {HEARD_SECONDS * SECOND}L THEN false END AS is_expired",
        "coalesce(pull_consumer, false) OR coalesce(consume_type = 'CONSUME_ACTIVELY' "
        "AND size(subscriptions) = 0 AND subscription_source <> 'GROUP_TABLE', false) "
        "AS chooses_queues",
    )


def _polls(broker_polls: DataFrame, list_id: str) -> DataFrame:
    """The polls as statements; an answer with an empty list means the same as NOT_ONLINE.

    An answer that has neither a list nor an id is left as ANSWERED.
    """
    is_empty = f"outcome = '{ANSWERED}' AND connections = 0"
    return broker_polls.selectExpr(
        *_BROKER,
        "snapshot_time",
        _collected_at(broker_polls),
        f"IF({is_empty}, '{NOT_ONLINE}', outcome) AS outcome",
        f"IF(outcome = '{ANSWERED}' AND NOT ({is_empty}), {list_id}, NULL) AS list_id",
    )


def _collected_at(rows: DataFrame) -> str:
    """The column, of tables that were written without it as nulls."""
    return "collected_at" if "collected_at" in rows.columns else _NO_TIME


_NO_TIME = "CAST(NULL AS TIMESTAMP) AS collected_at"


# ---------------------------------------------------------------- what nameservers gave


def route_runs(topic_routes: DataFrame, keep: Keep = DataFrame.persist) -> Contents:
    """What each nameserver gave as the route of each topic, from the rows of the routes.

    A row without a broker: the nameserver does not know the topic, which is a route of none.
    """
    names = [fact.name for fact in ROUTE_FACTS if fact.name != "broker_ids"]
    rows = topic_routes.selectExpr(
        *_NAMESERVER,
        "snapshot_time",
        *names,
        # Their order has no meaning. (array_sort compares by an expression, which is not compiled.)
        "sort_array(broker_ids) AS broker_ids",
    )
    runs, contents = _identify(rows, _NAMESERVER, ROUTE_FACTS, "brokers", "route_id", keep)
    return Contents(runs.select(ROUTE_RUNS.names), contents)


def route_runs_by_id(route_polls: DataFrame, route_contents: DataFrame) -> Contents:
    """The same from the ids that the polls have."""
    polls = route_polls.selectExpr(
        *_NAMESERVER, "route_id", "snapshot_time", _collected_at(route_polls)
    )
    runs = find_runs(polls)
    return Contents(
        runs.select(ROUTE_RUNS.names),
        route_contents.select("cluster", "topic", "route_id", "brokers"),
    )


# ---------------------------------------------------------------- fingerprints and ids


def _identify(
    rows: DataFrame,
    witness: Sequence[str],
    facts: Sequence[Fact],
    contents_name: str,
    id_name: str,
    keep: Keep,
) -> tuple[DataFrame, DataFrame]:
    """Runs of what each witness reported, with ids, and the contents.

    The first two columns are the subject's, those after them the witness's.

    A row whose first fact is null is no record: the content has none.
    """
    first = facts[0].name
    hashed = ", ".join(_hashed(fact) for fact in facts)
    words = {
        "subject": ", ".join(witness[:2]),
        "witness": ", ".join(witness),
        "others": ", ".join(witness[2:]),
        "first": first,
        "record": "struct(" + ", ".join(f"r.{fact.name}" for fact in facts) + ")",
        "content": content_sql(f"transform({contents_name}, r -> {record_sql(facts, 'r')})"),
        "contents_name": contents_name,
        "id_name": id_name,
        "polled": _polled_sql("CAST(NULL AS BIGINT)"),
        "of_seed": ", ".join(
            f"IF({first} IS NULL, 0L, xxhash64({seed}, {hashed})) AS hash{seed}" for seed in (0, 1)
        ),
        "sums": ", ".join(
            f"sum(hash{seed} & 4294967295L) AS low{seed}, "
            f"sum(shiftrightunsigned(hash{seed}, 32)) AS high{seed}"
            for seed in (0, 1)
        ),
    }
    runs = keep(
        query(
            """
            SELECT {witness}, high, low, collect_list({polled}) AS times,
                   min(snapshot_time) AS snapshot_time
            FROM (
              SELECT {witness}, snapshot_time,
                     xxhash64(0, records, low0, high0, low1, high1) AS high,
                     xxhash64(1, records, low0, high0, low1, high1) AS low
              FROM (
                SELECT {witness}, snapshot_time, count({first}) AS records, {sums}
                FROM (SELECT {witness}, snapshot_time, {first}, {of_seed} FROM {rows})
                GROUP BY {witness}, snapshot_time
              )
            ) GROUP BY {witness}, high, low
            """,
            words,
            rows=rows,
        )
    )
    contents = keep(
        query(
            """
            SELECT *, {content} AS {id_name} FROM (
              SELECT /*+ BROADCAST(p) */ {subject}, p.high, p.low,
                     collect_list(IF(r.{first} IS NULL, NULL, {record})) AS {contents_name}
              FROM {rows} r JOIN (
                SELECT {subject}, high, low, at.* FROM (
                  SELECT {subject}, high, low, min(struct(snapshot_time, {others})) AS at
                  FROM {runs} GROUP BY {subject}, high, low
                )
              ) p USING ({witness}, snapshot_time)
              GROUP BY {subject}, p.high, p.low
            )
            """,
            words,
            rows=rows,
            runs=runs,
        )
    )
    identified = query(
        "SELECT {witness}, {id_name}, times FROM {runs} "
        "JOIN (SELECT {subject}, high, low, {id_name} FROM {contents}) "
        "USING ({subject}, high, low)",
        words,
        runs=runs,
        contents=contents,
    )
    return identified, contents.select(*witness[:2], id_name, contents_name)


def _hashed(fact: Fact) -> str:
    """What of a fact goes into xxhash64, which skips nulls: each null is marked as one."""
    name = fact.name
    if pa.types.is_list(fact.type) and pa.types.is_struct(fact.type.value_type):
        # Hashed once and not with both seeds: the longest column by far. A hash of arrays has no
        # boundaries: without its size, what one ends with could as well be what the next begins
        # with.
        return f"coalesce(size({name}), -1), xxhash64({name})"
    if pa.types.is_list(fact.type):
        return f"coalesce(size({name}), -1), {name}"
    return f"{name}, {name} IS NULL"


# ---------------------------------------------------------------- runs to dossiers


def fold(
    lists: Contents,
    routes: Contents,
    client_states: DataFrame | None = None,
    queue_offsets: DataFrame | None = None,
) -> DataFrame:
    """The rows of ``DOSSIER``, in any order."""
    topics = query(
        """
        SELECT cluster, consumer_group, list_id, array_distinct(filter(
          flatten(filter(transform(members, m -> m.subscriptions.topic), t -> t IS NOT NULL)),
          t -> t IS NOT NULL)) AS topics,
          members.client_id AS client_ids, members.client_addr AS client_addrs
        FROM {lists}
        """,
        lists=lists.contents,
    )
    parts = [
        _part("poll", lists.runs),
        _part("member_list", topics),
        _part("route", _routes_of_groups(_subscribed(topics, lists, queue_offsets), routes)),
    ]
    if client_states is not None:
        parts.append(_part("client", _client_runs(client_states)))
    if queue_offsets is not None:
        parts.append(_part("offsets", _offset_runs(queue_offsets)))
    rows = parts[0]
    for part in parts[1:]:
        rows = rows.unionAll(part)
    return rows


def _part(name: str, rows: DataFrame) -> DataFrame:
    """Rows of ``DOSSIER`` with one part."""
    columns = []
    for field in DOSSIER:
        if field.name == name:
            struct = ", ".join(f"'{each.name}', {each.name}" for each in PARTS[name])
            columns.append(f"CAST(named_struct({struct}) AS {ddl(field.type)}) AS {name}")
        elif field.name in PARTS:
            columns.append(f"CAST(NULL AS {ddl(field.type)}) AS {field.name}")
        else:
            columns.append(field.name)
    return rows.selectExpr(*columns)


def _subscribed(topics: DataFrame, lists: Contents, queue_offsets: DataFrame | None) -> DataFrame:
    """The topics of each group: those of its lists, and of a group of which no broker ever had a
    member those of its offsets. Nothing else shows what such a group consumed.
    """
    of_lists = topics.select("cluster", "consumer_group", "topics")
    if queue_offsets is None:
        return of_lists
    return query(
        """
        SELECT * FROM {of_lists}
        UNION ALL
        SELECT cluster, consumer_group, collect_set(topic) AS topics
        FROM {offsets}
        LEFT ANTI JOIN {lists} USING (cluster, consumer_group)
        LEFT SEMI JOIN {polls} USING (cluster, consumer_group)
        GROUP BY cluster, consumer_group
        """,
        of_lists=of_lists,
        offsets=queue_offsets,
        lists=lists.contents,
        polls=lists.runs,
    )


def _routes_of_groups(topics: DataFrame, routes: Contents) -> DataFrame:
    """Each route for every group that subscribes to its topic.

    A topic of no group goes to the group of its name (a retry topic's), or to the empty name.
    """
    return query(
        """
        SELECT cluster, topic, namesrv_addr, route_id, brokers, times,
               coalesce(consumer_group, IF(startswith(topic, '{retry}'),
                                           substring(topic, {after}), '')) AS consumer_group
        FROM {runs} JOIN {contents} USING (cluster, topic, route_id)
        LEFT JOIN (
          SELECT DISTINCT cluster, consumer_group, topic
          FROM (SELECT cluster, consumer_group, explode(topics) AS topic FROM {topics})
        ) USING (cluster, topic)
        """,
        {"retry": RETRY_PREFIX, "after": str(len(RETRY_PREFIX) + 1)},
        topics=topics,
        runs=routes.runs,
        contents=routes.contents,
    )


def _client_runs(client_states: DataFrame) -> DataFrame:
    """The runs of what each client process reports of itself."""
    names = [field.name for field in CLIENT if field.name not in ("times", "observed_at")]
    statements = client_states.selectExpr(
        "cluster",
        "consumer_group",
        *[_FOLDED_AS.get(name, name) for name in names],
        "struct(unix_micros(IF(source = 'CLIENT_LOG', logged_at, snapshot_time)) AS time, "
        "unix_micros(observed_at) AS observed_at) AS reported",
    )
    return query(
        """
        SELECT {by}, reported.time AS times, reported.observed_at AS observed_at
        FROM (SELECT {by}, collect_list(reported) AS reported FROM {statements} GROUP BY {by})
        """,
        {"by": ", ".join(["cluster", "consumer_group", *names])},
        statements=statements,
    )


#: The columns that are not as they are in ``client_states``: queues without ``last_pull_at``,
#: which changes with each answer.
_FOLDED_AS = {
    "start_timestamp": "unix_micros(start_timestamp) AS start_timestamp",
    "queues": "transform(queues, q -> struct(q.topic AS topic, q.broker_name AS broker_name, "
    "q.queue_id AS queue_id, q.dropped AS dropped)) AS queues",
}


def _offset_runs(queue_offsets: DataFrame) -> DataFrame:
    """The offsets of each queue, poll by poll."""
    return query(
        """
        SELECT {queue}, polls.time AS times, polls.broker_offset AS broker_offsets,
               polls.consumer_offset AS consumer_offsets
        FROM (
          SELECT {queue}, collect_list(struct(unix_micros(snapshot_time) AS time, broker_offset,
                                              consumer_offset)) AS polls
          FROM {offsets} GROUP BY {queue}
        )
        """,
        {"queue": ", ".join(["cluster", "consumer_group", *[f.name for f in OFFSETS][:3]])},
        offsets=queue_offsets,
    )


# ---------------------------------------------------------------- situations to evaluations

SITUATION_KEY = ("cluster", "consumer_group", "topic", "situation_id")


def situation_rows(situations: DataFrame, member_lists: DataFrame, partitions: int) -> DataFrame:
    """What ``STATE_COLUMNS`` need of each row of ``steps.SITUATIONS``, spread over the partitions.

    Lists travel by their ids, and a list comes to a situation without the subscriptions to other
    topics. Situations are few bytes and much work: they are spread by number, for to plan by bytes
    would give all of them to one core.
    """
    collected = query(
        """
        SELECT any_value(situation, true) AS situation, flatten(collect_list(members)) AS members
        FROM (
          SELECT /*+ REPARTITION({partitions}, situation_id) */ * FROM (
            SELECT situation_id,
                   struct(cluster, consumer_group, topic, situation_id, request_mode, offline,
                          counts, unreachable, {routes} AS routes) AS situation,
                   NULL AS members
            FROM {situations}
            UNION ALL
            SELECT /*+ SHUFFLE_HASH(a) */ situation_id, NULL AS situation, {members} AS members
            FROM (
              SELECT cluster, consumer_group, topic, situation_id, inline(answers)
              FROM {situations}
            ) a JOIN {lists} USING (cluster, consumer_group, list_id)
          )
        ) GROUP BY situation_id
        """,
        {"members": _MEMBERS, "routes": _ROUTES, "partitions": str(partitions)},
        situations=situations,
        lists=member_lists,
    )
    arrays = [
        f"{source}.{field} AS {prefix}_{field}"
        for prefix, source, fields in (
            ("member", "members", MEMBER_FIELDS),
            ("offline", "situation.offline", OFFLINE_FIELDS),
            ("count", "situation.counts", COUNT_FIELDS),
            ("unreachable", "situation.unreachable", UNREACHABLE_FIELDS),
            ("route", "situation.routes", ROUTE_FIELDS),
        )
        for field in fields
    ]
    scalars = [f"situation.{name}" for name in (*SITUATION_KEY, "request_mode")]
    return collected.selectExpr(*scalars, *arrays)


def evaluate(
    states: DataFrame, strategy_rules: list[dict[str, Any]], default_strategy: str
) -> DataFrame:
    """The columns of ``EVALUATION`` for each row of ``situation_rows``, by the pandas UDF."""
    # The overloads know only functionType, which warns; the kind follows from the type hints.
    evaluated = pandas_udf(  # type: ignore[call-overload]
        evaluate_rows(strategy_rules, default_strategy), ddl(EVALUATION)
    )
    columns = list(SITUATION_KEY)
    return states.select(*columns, evaluated(F.struct(*STATE_COLUMNS)).alias("evaluation")).select(
        *columns, "evaluation.*"
    )


def _struct(values: Mapping[str, str]) -> str:
    return "struct(" + ", ".join(f"{value} AS {name}" for name, value in values.items()) + ")"


#: The record of a member as the situation's topic has it: ``its`` is its subscription, or null.
_OF_MEMBER = {
    "broker_name": "broker_name",
    "broker_id": "broker_id",
    **{field: f"each.m.{field}" for field in MEMBER_FIELDS[2:]},
    "version": "coalesce(each.m.version, -1)",
    "subscribed": "each.its IS NOT NULL",
    "subscribed_percent": "coalesce(IF(each.its IS NULL, NULL, "
    f"get(filter(each.m.doubtful_topics, d -> d.topic = topic), 0).percent), {SURE})",
    "expression_type": "each.its.expression_type",
    "expression": "each.its.expression",
}
_MEMBERS = (
    "transform(transform(filter(members, m -> coalesce(array_contains(only, m.client_id), "
    "NOT array_contains(without, m.client_id), true)), m -> struct(m, "
    "get(filter(m.subscriptions, s -> s.topic = topic), 0) AS its)), "
    f"each -> {_struct(_OF_MEMBER)})"
)

# A null among numbers would make all of them floating-point in the worker.
_NUMBERS = ("perm", "read_queue_nums", "write_queue_nums")
_OF_ROUTE = {field: f"b.{field}" for field in ROUTE_FIELDS} | {
    "namesrv_addr": "r.namesrv_addr",
    **{name: f"coalesce(b.{name}, 0)" for name in _NUMBERS},
}
#: The records of the routes; of a nameserver that does not know the topic one without a broker.
_ROUTES = (
    f"flatten(transform(routes, r -> transform(IF(size(r.brokers) = 0, "
    f"array(CAST(NULL AS {ddl(ROUTE_BROKERS.value_type)})), r.brokers), "
    f"b -> {_struct(_OF_ROUTE)})))"
)
