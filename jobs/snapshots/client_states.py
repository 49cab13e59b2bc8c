"""records -> client_states: what clients said of themselves, in running infos and in their logs."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from jobs.conform import conform
from jobs.dumps.bodies import CLIENT_LOG, CONSUMER_RUNNING_INFO
from jobs.schemas import CLIENT_STATES
from jobs.snapshots.polls import with_error
from jobs.snapshots.subscriptions import subscriptions_of

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
_STRATEGY_PACKAGE = "org.apache.rocketmq.client.consumer.rebalance."


def make_client_states(records: DataFrame) -> DataFrame:
    """The table ``client_states``."""
    return _running_infos(records).unionByName(_log_lines(records))


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
        _boolean(properties["PROP_CONSUMEORDERLY"]).alias("consume_orderly"),
        _boolean(properties["clientRebalance"]).alias("client_rebalance"),
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
    short = F.regexp_replace(class_name, "^" + _STRATEGY_PACKAGE.replace(".", r"\."), "")
    names = F.create_map(*[F.lit(part) for pair in STRATEGY_CLASSES.items() for part in pair])
    return F.coalesce(F.try_element_at(names, short), class_name)


def _boolean(text: Column) -> Column:
    return F.lower(text).try_cast("boolean")


def _log_lines(records: DataFrame) -> DataFrame:
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
    )
    return conform(rows, CLIENT_STATES)
