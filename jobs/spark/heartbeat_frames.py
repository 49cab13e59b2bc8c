"""DataFrames of heartbeats with times of their own -> by rounds: ``fold.heartbeat_rounds`` decides.

    when heartbeats of each broker came, to the driver -> rounds -> lists, a group in a task

What the driver asks for is distinct: a row for each broker and round. The rows of a group come
together, by brokers and times, and are put into rounds some at a time.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from ..declared.instants import SECOND, Instant
from ..fold.heartbeat_rounds import (
    A_QUEUE,
    CONNECTION,
    IN_ROUNDS,
    OF_A_BROKER,
    POLLS,
    ClusterBroker,
    HeartbeatRounds,
    Recurrence,
    TimeSpan,
    connections,
    in_rounds,
    listed_in_parts,
    measured_around,
    merged,
    polls_of,
    whole_parts,
)
from ..fold.slice_facts import BROKER
from ..schemas import BROKER_POLLS, HEARTBEATS, QUEUE_OFFSETS
from .dataframe_rows import prepared
from .spark_engine import TASKS_OF_A_CORE, cores_of

_TIME = "snapshot_time"
_Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True)
class FramesInRounds:
    """Prepared tables whose times are those of events, and the rounds that they allow."""

    rounds: HeartbeatRounds

    @classmethod
    def of(cls, heartbeats: DataFrame, round_seconds: int, expiry_seconds: int) -> "FramesInRounds":
        """Looks when heartbeats came. InputError: see ``HeartbeatRounds.of``."""
        expiry = expiry_seconds * SECOND
        timed = heartbeats.where(F.col(_TIME).isNotNull())
        streams, middle = _streams(timed, min(round_seconds * SECOND, max(expiry, SECOND)), expiry)
        recurrence = _recurrence(timed, measured_around(middle), expiry)
        return cls(HeartbeatRounds.of(round_seconds, expiry_seconds, streams, recurrence))

    def __call__(self, rows: Mapping[str, DataFrame]) -> dict[str, DataFrame]:
        """The tables by rounds, with ``broker_polls``; as they travel, as they came."""
        found = dict(rows)
        for table in IN_ROUNDS:
            if table.name in rows:
                found[table.name] = self._in_rounds(table.name, rows[table.name])
        if BROKER_POLLS.name not in rows:
            # Read once more, of few columns: those that say who is listed in which round.
            few = rows[HEARTBEATS.name].select(*CONNECTION, _TIME, "last_heartbeat_at")
            polls = _by_broker(few).mapInArrow(_polled(self.rounds), from_arrow_schema(POLLS))
            found |= prepared({BROKER_POLLS.name: polls})
        return found

    def _in_rounds(self, name: str, rows: DataFrame) -> DataFrame:
        if name == HEARTBEATS.name:
            return _by_broker(rows).mapInArrow(_listed(self.rounds), rows.schema)
        if name == QUEUE_OFFSETS.name:
            by_queue = _of_a_group_together(rows).sortWithinPartitions(*A_QUEUE)
            return by_queue.mapInArrow(_polls_of_queues(self.rounds), rows.schema)
        return rows.mapInArrow(_moved(name, self.rounds), rows.schema)


def _of_a_group_together(rows: DataFrame) -> DataFrame:
    tasks = TASKS_OF_A_CORE * cores_of(rows.sparkSession)
    return rows.repartition(tasks, "cluster", "consumer_group")


def _by_broker(rows: DataFrame) -> DataFrame:
    return _of_a_group_together(rows).sortWithinPartitions(*OF_A_BROKER, _TIME)


# ---------------------------------------------------------------- in a worker


def _listed(rounds: HeartbeatRounds) -> Callable[[_Batches], _Batches]:
    def lists_of_rounds(batches: _Batches) -> _Batches:
        for rows in listed_in_parts(batches, rounds):
            yield from rows.to_batches()

    return lists_of_rounds


def _polled(rounds: HeartbeatRounds) -> Callable[[_Batches], _Batches]:
    def polls_of_rounds(batches: _Batches) -> _Batches:
        lists = [connections(rows) for rows in listed_in_parts(batches, rounds)]
        if lists:
            yield from polls_of(pa.concat_tables(lists), rounds).to_batches()

    return polls_of_rounds


def _moved(name: str, rounds: HeartbeatRounds) -> Callable[[_Batches], _Batches]:
    def times_of_rounds(batches: _Batches) -> _Batches:
        for batch in batches:
            yield from in_rounds(name, pa.Table.from_batches([batch]), rounds).to_batches()

    return times_of_rounds


def _polls_of_queues(rounds: HeartbeatRounds) -> Callable[[_Batches], _Batches]:
    def last_of_each_round(batches: _Batches) -> _Batches:
        for rows in whole_parts(batches, A_QUEUE):
            yield from in_rounds(QUEUE_OFFSETS.name, rows, rounds).to_batches()

    return last_of_each_round


# ---------------------------------------------------------------- to the driver


def _streams(
    timed: DataFrame, bucket: Instant, expiry: Instant
) -> tuple[dict[ClusterBroker, list[TimeSpan]], Instant]:
    """The spans in which heartbeats of each broker came, and the time in the middle of all.

    Within a ``bucket``, which is no longer than the expiry, no span ends.
    """
    few = timed.groupBy(*BROKER, F.floor(F.col(_TIME) / bucket)).agg(
        F.min(_TIME), F.max(_TIME), F.count(F.lit(1))
    )
    every: dict[ClusterBroker, list[TimeSpan]] = defaultdict(list)
    rows_at = []
    for *broker, _, since, until, number in few.collect():
        every[(broker[0], broker[1], broker[2])].append(TimeSpan(since, until))
        rows_at.append((since, number))
    half, middle = sum(number for _, number in rows_at) / 2, 0
    for since, number in sorted(rows_at):
        middle, half = since, half - number
        if half <= 0:
            break
    return {broker: merged(each, expiry) for broker, each in every.items()}, middle


def _recurrence(timed: DataFrame, within: TimeSpan, expiry: Instant) -> Recurrence:
    time = F.col(_TIME)
    before = F.lag(time).over(Window.partitionBy(*CONNECTION).orderBy(time))
    gaps = timed.where(time.between(*within)).select(time, (time - before).alias("gap"))
    is_short = F.col("gap") <= expiry
    row = gaps.agg(
        F.max(F.when(is_short, F.col("gap"))),
        F.count_if(is_short),
        F.count_if(~is_short),
        F.max(time) - F.min(time),
    ).first()
    return Recurrence(*(each or 0 for each in row or (0, 0, 0, 0)))
