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
from itertools import chain
from typing import Any, NamedTuple, TypeAlias, cast

import pandas as pd
import pyarrow as pa
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import pandas_udf
from pyspark.sql.pandas.types import from_arrow_schema

import rebalance_core as core
from rebalance_core.strategy_factory import strategy_of

from ..engines.batches import SITUATION, in_worker
from ..engines.engine import Work
from ..engines.pieces import in_parts
from ..errors import InputError
from ..judge.observe.core_verdict import SHARES as SHARES_OF_A_SITUATION
from ..judge.observe.evaluation import MEMBERS_AT_ONCE
from .session import fitting_workers

#: A pandas UDF: from columns, or their names, to a column.
Udf: TypeAlias = Callable[..., Column]
#: Its types know no UDF over an iterator.
_pandas_udf = cast("Callable[..., Udf]", pandas_udf)

# ---------------------------------------------------------------- of the audit


#: The answer for a situation: the shares of each client, typed, and the rest of the verdict.
RECOMPUTED = from_arrow_schema(pa.schema({"shares": SHARES_OF_A_SITUATION, "verdict": pa.binary()}))


def recompute_allocations(work: Work) -> Udf:
    """The UDF of the audit: ``RECOMPUTED`` of each situation.

    Its columns are those of ``batches.SITUATION``: strategy, queues, client ids and what else a
    person reads of a situation, and the rest of it, packed. The core computes from all of them who
    takes which queue. A row without a situation, as that with the groups of a shard, has null.
    """

    def recomputed(row: tuple[Any, ...]) -> tuple[Any, ...]:
        return (None, None) if row[-1] is None else work.recompute(row)

    # Spark shows the name in plans, and takes the kind of the UDF from the hints.
    def recompute_allocations(
        batches: Iterator[tuple[pd.Series, ...]],
    ) -> Iterator[pd.DataFrame]:
        rows = chain.from_iterable(zip(*map(_plain, columns), strict=True) for columns in batches)
        parts = in_parts(rows, MEMBERS_AT_ONCE, lambda row: int(row[_CONNECTIONS] or 0))
        names = RECOMPUTED.names
        return in_worker(
            pd.DataFrame(list(map(recomputed, part)), columns=names, dtype=object) for part in parts
        )

    return _pandas_udf(recompute_allocations, RECOMPUTED)


_CONNECTIONS = SITUATION.names.index("connections")


def _plain(column: pd.Series) -> pd.Series:
    """The column with None for null: a null of a text is NaN from pandas 3 on."""
    return column.astype(object).where(column.notna(), None)


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
                core.make_strategy(strategy, named)
        except core.UnknownStrategyError as error:
            hint = f"{error}; of a column of names: F.col({strategy!r})"
            raise core.UnknownStrategyError(hint) from error
        strategy = F.lit(strategy)
    if parameters is None and named:
        # A queue of CONFIG may be one of the core's.
        parameters = F.lit(json.dumps(named, default=astuple))
    return [strategy, queues, client_ids, *([] if parameters is None else [parameters])]


# A UDF belongs to Spark's or to Connect's session, whichever there is when it is made.


def _allocate() -> Udf:
    def allocate(*columns: pd.Series) -> pd.Series:
        return pd.Series(list(map(_shares, _groups(columns))), dtype=object)

    return _pandas_udf(allocate, SHARES)


def _queue_findings() -> Udf:
    def queue_findings(*columns: pd.Series) -> pd.DataFrame:
        rows = list(map(_findings, _groups(columns)))
        return pd.DataFrame(rows, columns=list(_Findings._fields), dtype=object)

    return _pandas_udf(queue_findings, FINDINGS)


class _GroupRow(NamedTuple):
    """A row: what a client of the group has at hand when it computes its share."""

    strategy: str
    queues: list[core.MessageQueue]
    client_ids: list[str]
    parameters: str | None = None

    def taken(self) -> list[tuple[str, int, list[core.MessageQueue]]]:
        """Each id, in RocketMQ's order, with its processes and the queues that each one takes."""
        strategy = strategy_of(self.strategy, self.parameters)
        # CONSISTENT_HASH hashes the topic of a queue, CONFIG names it.
        looks_at_topics = self.strategy.endswith(("CONSISTENT_HASH", "CONFIG"))
        if looks_at_topics and not all(queue.topic for queue in self.queues):
            raise core.AllocationError(
                f"{self.strategy} looks at the topics of queues: expected structs with topic, "
                "broker_name, queue_id"
            )
        queues = strategy.allocate_all("", self.queues, self.client_ids)
        processes = Counter(self.client_ids)
        return [(name, processes[name], queues[name]) for name in core.sort_client_ids(queues)]


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
    except core.AllocationError:
        return None


def _findings(group: _GroupRow | None) -> _Findings:
    if group is None:
        return _Findings()
    try:
        taken = group.taken() if group.client_ids else []
    except core.AllocationError as error:
        return _Findings(error=str(error))
    takers: dict[core.MessageQueue, list[str]] = {queue: [] for queue in group.queues}
    for client_id, processes, queues in taken:
        for queue in filter(takers.__contains__, dict.fromkeys(queues)):  # CONFIG names any
            takers[queue] += [client_id] * processes
    in_order = [(_struct(queue), takers[queue]) for queue in core.sort_message_queues(takers)]
    return _Findings(
        [queue for queue, owners in in_order if not owners],
        [{"queue": queue, "client_ids": owners} for queue, owners in in_order if len(owners) > 1],
        [{"client_id": name, "processes": copies} for name, copies, _ in taken if copies > 1],
    )


def _groups(columns: Sequence[pd.Series]) -> Iterator[_GroupRow | None]:
    if len(columns) not in (3, 4):
        raise InputError(
            "expected strategy, queues, client_ids and, if any, parameters as JSON: came "
            f"{len(columns)} columns"
        )
    for strategy, structs, client_ids, *parameters in zip(*map(_plain, columns), strict=True):
        is_whole = not any(list_ is None for list_ in (strategy, structs, client_ids))
        queues = list(map(_queue, structs)) if is_whole else []
        there = [queue for queue in queues if queue is not None]
        if is_whole and len(there) == len(queues) and all(name is not None for name in client_ids):
            yield _GroupRow(strategy, there, list(client_ids), *parameters)
        else:
            yield None


def _queue(struct: Any) -> core.MessageQueue | None:
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
    return core.MessageQueue(topic or "", broker_name, int(queue_id))


def _struct(queue: core.MessageQueue) -> dict[str, Any]:
    return {
        "topic": queue.topic or None,
        "broker_name": queue.broker_name,
        "queue_id": queue.queue_id,
    }
