"""The pandas UDFs around the core, ``rebalance_core``: the audit's, and those for columns.

``allocate`` and ``queue_findings`` are functions of columns as those of ``pyspark.sql.functions``:
``strategy`` is the name of a strategy, or a column with one for each row; ``queues`` an array of
structs with ``broker_name``, ``queue_id`` and, if there, ``topic``; ``client_ids`` an array of
texts, an id as often as processes use it. Columns may be given by name. ``register`` has both in
SQL.

Where one of them is null, or has a null in it, there is no result. Where Java's strategy throws, as
it does for an empty list, every client keeps what it has: there is no result either, and ``error``
of ``queue_findings`` has the reason. So it is with what only a row shows to be wrong: an unknown
strategy, a wrong parameter.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple
from functools import lru_cache
from itertools import chain, groupby
from typing import Any, NamedTuple, TypeAlias, cast

import pandas as pd
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import pandas_udf

from rebalance_core import (
    AllocationError,
    AllocationStrategy,
    MessageQueue,
    UnknownStrategyError,
    make_strategy,
    sort_client_ids,
    sort_message_queues,
)

from ..engines.batches import in_worker
from ..engines.engine import Work
from ..engines.pieces import pack_value, unpack_value
from ..errors import InputError
from .session import fitting_workers

#: A pandas UDF: from columns, or their names, to a column.
Udf: TypeAlias = Callable[..., Column]
#: Its types know no UDF over an iterator.
_pandas_udf = cast("Callable[..., Udf]", pandas_udf)

# ---------------------------------------------------------------- of the audit


def recompute_allocations(work: Work) -> Udf:
    """The UDF of the audit. ``question``: a situation, packed, with the lists that it names.

    The core computes who takes which queue. Questions of a group that follow each other are
    answered in parts: the first row of a part has the answer, packed, the others have null. So has
    a row without a question.
    """

    def group(question: Any) -> tuple[str, str] | None:
        return None if question is None else work.about(question)[:2]

    def answers(rows: Iterator[bytes | None]) -> Iterator[pd.Series]:
        questions = (None if row is None else unpack_value(row) for row in rows)
        for of_group, asked in groupby(questions, group):
            if of_group is None:
                yield pd.Series([None for _ in asked], dtype=object)
                continue
            for some in work.at_once(asked):
                answer = pack_value(0, "", work.answer(some)).data
                yield pd.Series([answer, *[None] * (len(some) - 1)], dtype=object)

    # Spark shows the name in plans, and takes the kind of the UDF from the hints.
    def recompute_allocations(question: Iterator[pd.Series]) -> Iterator[pd.Series]:
        return in_worker(answers(chain.from_iterable(question)))

    return _pandas_udf(recompute_allocations, "binary")


# ---------------------------------------------------------------- of columns

_QUEUE = "struct<topic:string,broker_name:string,queue_id:int>"
#: The type of ``allocate``: in RocketMQ's order of the ids what each of their processes takes.
SHARES = f"array<struct<client_id:string,processes:int,queues:array<{_QUEUE}>>>"
#: The type of ``queue_findings``: the queues that nobody takes, those that several processes take
#: (an id is there for each of its processes), ids of several processes, and why there are none.
FINDINGS = (
    f"struct<orphaned:array<{_QUEUE}>,"
    f"duplicate:array<struct<queue:{_QUEUE},client_ids:array<string>>>,"
    "stacked:array<struct<client_id:string,processes:int>>,error:string>"
)


def allocate(
    strategy: str | Column,
    queues: str | Column,
    client_ids: str | Column,
    parameters: Column | None = None,
    **named: Any,
) -> Column:
    """The takers of each queue: ``SHARES``, as every client of the group computes it for itself.

    Each process of an id that is there several times takes the share of the first, as in Java, and
    the share of the others falls to nobody. ``named`` are parameters of the strategy, those of
    ``rebalance_core.make_strategy``; ``parameters`` has those of each row, as JSON.

    Raises AllocationError for a strategy that is named here and unknown, or not made with these
    parameters, SparkError where the workers' Python cannot run it.

    >>> groups.select("consumer_group", allocate("AVG", "queues", "ids"))  # doctest: +SKIP
    >>> groups.select(allocate(F.col("strategy"), "queues", "ids"))  # doctest: +SKIP
    """
    return _called(_allocate, _columns(strategy, queues, client_ids, parameters, named))


def queue_findings(
    strategy: str | Column,
    queues: str | Column,
    client_ids: str | Column,
    parameters: Column | None = None,
    **named: Any,
) -> Column:
    """The findings of such a group: ``FINDINGS``. Takes and raises what ``allocate`` does.

    Where there is no client nobody takes a queue, whatever the strategy.

    >>> found = queue_findings("AVG", "queues", "ids").alias("found")  # doctest: +SKIP
    >>> groups.select(found).where("size(found.orphaned) > 0").show()  # doctest: +SKIP
    """
    return _called(_queue_findings, _columns(strategy, queues, client_ids, parameters, named))


def register(spark: SparkSession) -> None:
    """Both for SQL of this session, the parameters, if any, as JSON. Raises SparkError where the
    workers' Python cannot run them.

    >>> register(spark)  # doctest: +SKIP
    >>> spark.sql("SELECT rocketmq_allocate('AVG', queues, ids) FROM groups")  # doctest: +SKIP
    """
    udfs: Any = spark.udf
    with fitting_workers(spark):
        udfs.register("rocketmq_allocate", _allocate())
        udfs.register("rocketmq_queue_findings", _queue_findings())


def _called(make: Callable[[], Udf], columns: list[str | Column]) -> Column:
    """The column of a UDF that is made where the workers' Python fits."""
    with fitting_workers():
        return make()(*columns)


def _columns(
    strategy: str | Column,
    queues: str | Column,
    client_ids: str | Column,
    parameters: Column | None,
    named: dict[str, Any],
) -> list[str | Column]:
    if isinstance(strategy, str):
        try:
            if parameters is None:
                make_strategy(strategy, named)
        except UnknownStrategyError as error:
            hint = f"{error}; of a column of names: F.col({strategy!r})"
            raise UnknownStrategyError(hint) from error
        strategy = F.lit(strategy)
    if parameters is None and named:
        # A queue of CONFIG may be one of the core's.
        parameters = F.lit(json.dumps(named, default=astuple))
    return [strategy, queues, client_ids, *([] if parameters is None else [parameters])]


def _allocate() -> Udf:
    def allocate(*columns: pd.Series) -> pd.Series:
        return pd.Series(list(map(_shares, _groups(columns))), dtype=object)

    # A UDF belongs to Spark's or to Connect's session, whichever there is when it is made.
    return _pandas_udf(allocate, SHARES)


def _queue_findings() -> Udf:
    def queue_findings(*columns: pd.Series) -> pd.DataFrame:
        rows = list(map(_findings, _groups(columns)))
        return pd.DataFrame(rows, columns=list(_Findings._fields), dtype=object)

    return _pandas_udf(queue_findings, FINDINGS)


class _GroupRow(NamedTuple):
    """A row: what a client of the group has at hand when it computes its share."""

    strategy: str
    queues: list[MessageQueue]
    client_ids: list[str]
    parameters: str | None

    def taken(self) -> list[tuple[str, int, list[MessageQueue]]]:
        """Each id, in RocketMQ's order, with its processes and the queues that each one takes."""
        strategy = _made(self.strategy, self.parameters)
        # CONSISTENT_HASH hashes the topic of a queue, CONFIG names it.
        looks_at_topics = self.strategy.endswith(("CONSISTENT_HASH", "CONFIG"))
        if looks_at_topics and not all(queue.topic for queue in self.queues):
            raise AllocationError(
                f"{self.strategy} looks at the topics of queues: expected structs with topic, "
                "broker_name, queue_id"
            )
        queues = strategy.allocate_all("", self.queues, self.client_ids)
        processes = Counter(self.client_ids)
        return [(each, processes[each], queues[each]) for each in sort_client_ids(queues)]


class _Findings(NamedTuple):
    orphaned: list[Any] | None = None
    duplicate: list[Any] | None = None
    stacked: list[Any] | None = None
    error: str | None = None


def _shares(group: _GroupRow | None) -> list[dict[str, Any]] | None:
    if group is None:
        return None
    try:
        return [
            {"client_id": client_id, "processes": processes, "queues": list(map(_struct, queues))}
            for client_id, processes, queues in group.taken()
        ]
    except AllocationError:
        return None


def _findings(group: _GroupRow | None) -> _Findings:
    if group is None:
        return _Findings()
    try:
        taken = group.taken() if group.client_ids else []
    except AllocationError as error:
        return _Findings(error=str(error))
    takers: dict[MessageQueue, list[str]] = {queue: [] for queue in group.queues}
    for client_id, processes, queues in taken:
        for queue in filter(takers.__contains__, dict.fromkeys(queues)):  # CONFIG names any
            takers[queue] += [client_id] * processes
    in_order = [(_struct(queue), takers[queue]) for queue in sort_message_queues(takers)]
    return _Findings(
        [queue for queue, owners in in_order if not owners],
        [{"queue": queue, "client_ids": owners} for queue, owners in in_order if len(owners) > 1],
        [{"client_id": each, "processes": copies} for each, copies, _ in taken if copies > 1],
    )


def _groups(columns: Sequence[pd.Series]) -> Iterator[_GroupRow | None]:
    if len(columns) not in (3, 4):
        raise InputError(
            "expected strategy, queues, client_ids and, if any, parameters as JSON: came "
            f"{len(columns)} columns"
        )
    # A null of a text is NaN from pandas 3 on.
    plain = [each.astype(object).where(each.notna(), None) for each in columns]
    for strategy, queues, client_ids, *parameters in zip(*plain, strict=True):
        lists = (strategy, queues, client_ids)
        if any(each is None for each in lists) or any(each is None for each in client_ids):
            yield None
            continue
        found = [_queue(each) for each in queues]
        there = [queue for queue in found if queue is not None]
        is_whole = len(there) == len(found)
        given = parameters[0] if parameters else None
        yield _GroupRow(strategy, there, list(client_ids), given) if is_whole else None


def _queue(struct: Any) -> MessageQueue | None:
    """The queue of a struct; without a topic its topic is empty."""
    if struct is None:
        return None
    try:
        broker_name, queue_id = struct["broker_name"], struct["queue_id"]
    except (KeyError, ValueError, TypeError) as error:
        raise InputError(
            "expected queues as an array of structs with broker_name, queue_id and, if there, "
            f"topic; came {struct!r}"
        ) from error
    topic = struct["topic"] if "topic" in struct else None  # noqa: SIM401 - or a Row
    if broker_name is None or queue_id is None:
        return None
    return MessageQueue(topic or "", broker_name, int(queue_id))


def _struct(queue: MessageQueue) -> dict[str, Any]:
    return {
        "topic": queue.topic or None,
        "broker_name": queue.broker_name,
        "queue_id": queue.queue_id,
    }


@lru_cache(maxsize=256)
def _made(strategy: str, parameters: str | None) -> AllocationStrategy:
    try:
        given = None if parameters is None else json.loads(parameters)
    except ValueError as error:
        raise AllocationError(f"expected parameters as JSON, came {parameters!r}") from error
    return make_strategy(strategy, given)
