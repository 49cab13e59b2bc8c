"""records -> client_states: what clients said of themselves, in running infos and in their logs."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from jobs.conform import conform
from jobs.dumps.bodies import CLIENT_LOG, CONSUMER_RUNNING_INFO
from jobs.schemas import CLIENT_STATES
from jobs.snapshots.polls import with_error
from jobs.snapshots.subscriptions import subscriptions_of
from rebalance_core.state import BROADCASTING

RUNNING_INFO_SOURCE = "RUNNING_INFO"
CLIENT_LOG_SOURCE = "CLIENT_LOG"

#: The strategy's name by its class in org.apache.rocketmq.client.consumer.rebalance. A running
#: info shows the class alone: neither what MACHINE_ROOM_NEARBY wraps, nor any parameter.
STRATEGY_CLASSES = {
    "AllocateMessageQueueAveragely": "AVG",
    "AllocateMessageQueueAveragelyByCircle": "AVG_BY_CIRCLE",
    "AllocateMessageQueueByConfig": "CONFIG",
    "AllocateMessageQueueByMachineRoom": "MACHINE_ROOM",
    "AllocateMessageQueueConsistentHash": "CONSISTENT_HASH",
    "AllocateMachineRoomNearby": "MACHINE_ROOM_NEARBY",
}
STRATEGY_PACKAGE = "org.apache.rocketmq.client.consumer.rebalance."

#: Zones lie whole quarters of an hour from UTC, from 12 hours behind it to 14 ahead.
_QUARTER_SECONDS = 15 * 60
_MOST_BEHIND_SECONDS, _MOST_AHEAD_SECONDS = -12 * 3600, 14 * 3600
#: By how much the clocks of client and collector may differ.
_SKEW_SECONDS = 60


def make_client_states(records: DataFrame, client_log_time_zone: str | None = None) -> DataFrame:
    """The table ``client_states``; the zone is that in which the clients print their times.

    Without one each log's is inferred: see ``_logged_at``.
    """
    return _running_infos(records).unionByName(_log_lines(records, client_log_time_zone))


def _running_infos(records: DataFrame) -> DataFrame:
    infos = with_error(records.where(F.col("kind") == CONSUMER_RUNNING_INFO), CONSUMER_RUNNING_INFO)
    info = F.col(CONSUMER_RUNNING_INFO)
    properties = info["properties"]
    held = F.transform(
        info["mqTable"],
        lambda entry: F.struct(
            entry["key"]["topic"].alias("topic"),
            entry["key"]["brokerName"].alias("broker_name"),
            entry["key"]["queueId"].alias("queue_id"),
            F.coalesce(entry["value"]["droped"], F.lit(False)).alias("dropped"),
            F.timestamp_millis(entry["value"]["lastPullTimestamp"]).alias("last_pull_at"),
        ),
    )
    started = properties["PROP_CONSUMER_START_TIMESTAMP"].try_cast("bigint")
    rows = infos.select(
        "cluster",
        "snapshot_time",
        F.col("collected_at").alias("observed_at"),
        F.lit(None).alias("logged_at"),
        F.lit(RUNNING_INFO_SOURCE).alias("source"),
        "consumer_group",
        "client_id",
        "broker_name",
        "broker_id",
        "process",
        F.col("code").alias("error_code"),
        F.col("message").alias("error_message"),
        F.timestamp_millis(started).alias("start_timestamp"),
        _strategy_name(properties["allocateMessageQueueStrategy"]).alias("strategy"),
        properties["messageModel"].alias("message_model"),
        properties["PROP_CONSUME_TYPE"].alias("consume_type"),
        # The properties are the fields of the consumer's class, and this one has no other class.
        F.map_contains_key(properties, "registerTopics").alias("pull_consumer"),
        _boolean(properties["PROP_CONSUMEORDERLY"]).alias("consume_orderly"),
        _client_rebalance(properties).alias("client_rebalance"),
        subscriptions_of(info["subscriptionSet"]).alias("subscriptions"),
        F.lit(None).alias("topic"),
        F.lit(None).alias("queue_count"),
        F.lit(None).alias("client_count"),
        held.alias("queues"),
    )
    return conform(rows, CLIENT_STATES)


def _strategy_name(text: Column) -> Column:
    """The name of ``Class@hash``, else the class itself: user code that cannot be recomputed."""
    class_name = F.regexp_replace(text, "@[^@]*$", "")
    short = F.regexp_replace(class_name, "^" + STRATEGY_PACKAGE.replace(".", r"\."), "")
    names = F.create_map(*[F.lit(part) for pair in STRATEGY_CLASSES.items() for part in pair])
    return F.coalesce(F.try_element_at(names, short), class_name)


def _client_rebalance(properties: Column) -> Column:
    """False where the broker assigns the queues; null before 5.0, which cannot.

    ``RebalancePushImpl.clientRebalance`` 5.3.3: who consumes in order or broadcasts is never
    assigned any, whatever its setting.
    """
    own = _boolean(properties["clientRebalance"])
    orderly = F.coalesce(_boolean(properties["PROP_CONSUMEORDERLY"]), F.lit(False))
    broadcasts = F.coalesce(properties["messageModel"] == BROADCASTING, F.lit(False))
    return F.when(own.isNotNull(), own | orderly | broadcasts)


def _boolean(text: Column) -> Column:
    return F.lower(text).try_cast("boolean")


def _log_lines(records: DataFrame, time_zone: str | None) -> DataFrame:
    line = F.col(CLIENT_LOG)
    rows = records.where((F.col("kind") == CLIENT_LOG) & line.isNotNull()).select(
        "cluster",
        F.lit(None).alias("snapshot_time"),
        F.col("collected_at").alias("observed_at"),
        F.lit(CLIENT_LOG_SOURCE).alias("source"),
        line["consumer_group"].alias("consumer_group"),
        line["client_id"].alias("client_id"),
        F.lit(None).alias("broker_name"),
        F.lit(None).alias("broker_id"),
        "process",
        F.lit(None).alias("error_code"),
        F.lit(None).alias("error_message"),
        F.lit(None).alias("start_timestamp"),
        line["strategy"].alias("strategy"),
        F.lit(None).alias("message_model"),
        F.lit(None).alias("consume_type"),
        F.lit(None).alias("pull_consumer"),
        F.lit(None).alias("consume_orderly"),
        F.when(line["by_broker"], F.lit(False)).alias("client_rebalance"),
        F.lit(None).alias("subscriptions"),
        line["topic"].alias("topic"),
        line["queue_count"].alias("queue_count"),
        line["client_count"].alias("client_count"),
        F.transform(
            line["queues"],
            lambda queue: F.struct(
                queue["topic"].alias("topic"),
                queue["broker_name"].alias("broker_name"),
                queue["queue_id"].alias("queue_id"),
                F.lit(False).alias("dropped"),
                F.lit(None).cast("timestamp").alias("last_pull_at"),
            ),
        ).alias("queues"),
        _as_utc(line["logged_at"]).alias("printed"),
    )
    return conform(rows.withColumn("logged_at", _logged_at(time_zone)), CLIENT_STATES)


def _as_utc(printed: Column) -> Column:
    """The printed time as if it were UTC; 4.x has a comma before the milliseconds."""
    return F.concat(F.translate(printed, ",", "."), F.lit("Z")).try_cast("timestamp")


def _logged_at(time_zone: str | None) -> Column:
    """When the client wrote the line: its printed time, which has no zone, as an instant.

    4.x prints the local time of the host, 5.1 and later GMT+8 unless that was configured. All
    lines of a log have one offset from UTC, and no line is collected before it is written: without
    a zone the offset is the smallest quarter of an hour that leaves none later than collected, but
    for the skew of the clocks. That is exact where some line of the log was collected within 14
    minutes (a quarter of an hour less the skew). No zone at all explains a log that was collected
    a day later: null. A line without a time is of when it was collected.
    """
    printed, collected = F.col("printed"), F.col("observed_at")
    if time_zone is not None:
        return F.coalesce(F.to_utc_timestamp(printed, time_zone), collected)
    log = Window.partitionBy("cluster", F.coalesce("process", "client_id"))
    ahead = F.max(printed.cast("double") - collected.cast("double")).over(log)
    offset = F.ceil((ahead - _SKEW_SECONDS) / _QUARTER_SECONDS) * _QUARTER_SECONDS
    return F.when(printed.isNull(), collected).when(
        offset.between(_MOST_BEHIND_SECONDS, _MOST_AHEAD_SECONDS),
        F.timestamp_micros(F.unix_micros(printed) - offset * 1_000_000),
    )
