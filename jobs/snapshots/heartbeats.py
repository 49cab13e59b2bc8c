"""records -> heartbeats: the members in each broker's list, with what each of them said of itself.

A broker's list (ConsumerConnection) has the connections, but its subscription table is the
group's: the last heartbeat of any member overwrites it, so that in a mixed group it flips. What a
member subscribes to is therefore taken from its own last full heartbeat over that connection,
else from its running info, else from its heartbeats to other brokers (a collector may hear one
broker alone), else from the group's table; the row says which.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from jobs.conform import conform
from jobs.dumps.bodies import CONSUMER_CONNECTION, HEARTBEAT
from jobs.schemas import ANSWERED, HEARTBEATS
from jobs.snapshots.client_states import RUNNING_INFO_SOURCE
from jobs.snapshots.subscriptions import subscriptions_of

_CONNECTION = [
    "cluster",
    "broker_name",
    "broker_id",
    "consumer_group",
    "client_id",
    "client_addr",
]
_CLIENT = ["cluster", "consumer_group", "client_id"]

#: A member's heartbeat overwrites the group's table every 30 s, an expired member is gone after
#: 120 s: within this time every member's subscription has shown in the table.
GROUP_TABLE_SECONDS = 120

NEARBY = "MACHINE_ROOM_NEARBY"


def make_heartbeats(records: DataFrame, polls: DataFrame, client_states: DataFrame) -> DataFrame:
    """The table ``heartbeats`` from ``latest_polls``, the heartbeats and the client states."""
    members = _members(polls)
    heard = _heartbeat_events(records)
    with_own = _with_last_before(
        members,
        heard,
        _CONNECTION,
        {"own": "nearest", "last_heartbeat_at": "before"},
    )
    with_state = _with_last_before(
        with_own,
        _client_events(client_states).unionByName(_said_anywhere(heard), allowMissingColumns=True),
        _CLIENT,
        dict.fromkeys(("info", "elsewhere", "seen", "nearby", "rebalance", "pulls"), "nearest"),
    )
    rows = with_state.join(
        _group_tables(polls, with_state),
        ["cluster", "consumer_group", "poll_time"],
        "left",
    )
    own, info, elsewhere = F.col("own"), F.col("info"), F.col("elsewhere")
    empty = F.array().cast(HEARTBEATS.schema["subscriptions"].dataType)
    is_inner_known = (F.col("seen.strategy") == NEARBY) & F.col("nearby").isNotNull()
    return conform(
        rows.select(
            *_CONNECTION,
            "snapshot_time",
            "language",
            "version",
            *[
                F.coalesce(own[n], info[n], elsewhere[n], F.col(f"group_{n}")).alias(n)
                for n in ("consume_type", "message_model")
            ],
            F.coalesce(
                *[said["subscriptions"] for said in (own, info, elsewhere)],
                F.col("group_subscriptions"),
                empty,
            ).alias("subscriptions"),
            F.when(own["subscriptions"].isNotNull(), F.lit("HEARTBEAT"))
            .when(info["subscriptions"].isNotNull(), F.lit("RUNNING_INFO"))
            .when(elsewhere["subscriptions"].isNotNull(), F.lit("HEARTBEAT"))
            .otherwise(F.lit("GROUP_TABLE"))
            .alias("subscription_source"),
            F.when(is_inner_known, F.col("nearby"))
            .otherwise(F.col("seen.strategy"))
            .alias("strategy"),
            F.col("seen.source").alias("strategy_source"),
            F.col("rebalance").alias("client_rebalance"),
            F.col("pulls").alias("pull_consumer"),
            "last_heartbeat_at",
        ),
        HEARTBEATS,
    )


def _members(polls: DataFrame) -> DataFrame:
    connection = F.col(CONSUMER_CONNECTION)
    return (
        polls.where(F.col("outcome") == ANSWERED)
        .select(
            "cluster",
            "snapshot_time",
            F.col("collected_at").alias("poll_time"),
            "broker_name",
            "broker_id",
            "consumer_group",
            connection["consumeType"].alias("group_consume_type"),
            connection["messageModel"].alias("group_message_model"),
            F.explode(connection["connectionSet"]).alias("c"),
        )
        .select(
            "*",
            F.col("c.clientId").alias("client_id"),
            F.col("c.clientAddr").alias("client_addr"),
            F.col("c.language").alias("language"),
            F.col("c.version").alias("version"),
        )
        .drop("c")
    )


def _heartbeat_events(records: DataFrame) -> DataFrame:
    """One row per heartbeat and group: when, and ``own``, null where it leaves them out (V2)."""
    body = F.col(HEARTBEAT)
    groups = records.where(F.col("kind") == HEARTBEAT).select(
        "cluster",
        "broker_name",
        "broker_id",
        "client_addr",
        F.col("collected_at").alias("event_time"),
        body["clientID"].alias("client_id"),
        F.coalesce(body["withoutSub"], F.lit(False)).alias("without_sub"),
        F.explode(body["consumerDataSet"]).alias("data"),
    )
    subscriptions = subscriptions_of(
        F.coalesce(F.col("data.subscriptionDataSet"), F.array().cast(_SUBSCRIPTION_DATA))
    )
    # Heartbeat V2 leaves the subscriptions out of most heartbeats: an empty set with withoutSub
    # says nothing, without it that the member subscribes to nothing (assign()).
    is_full = ~F.col("without_sub") | (F.size(subscriptions) > 0)
    own = F.struct(
        F.col("data.consumeType").alias("consume_type"),
        F.col("data.messageModel").alias("message_model"),
        subscriptions.alias("subscriptions"),
    )
    return groups.select(
        "cluster",
        "broker_name",
        "broker_id",
        "client_addr",
        "client_id",
        F.col("data.groupName").alias("consumer_group"),
        "event_time",
        F.when(is_full, own).alias("own"),
        F.col("event_time").alias("last_heartbeat_at"),
    )


_SUBSCRIPTION_DATA = "array<struct<topic:string,subString:string,expressionType:string>>"


def _said_anywhere(heard: DataFrame) -> DataFrame:
    """What each client said of itself over any of its connections, when it first did."""
    said = heard.where(F.col("own").isNotNull())
    return (
        said.groupBy(*_CLIENT, "own")
        .agg(F.min("event_time").alias("event_time"))
        .withColumnRenamed("own", "elsewhere")
    )


def _client_events(client_states: DataFrame) -> DataFrame:
    answered = client_states.where(F.col("error_code").isNull())
    is_info = F.col("source") == RUNNING_INFO_SOURCE
    seen = F.struct("strategy", "source")
    return answered.select(
        *_CLIENT,
        F.col("observed_at").alias("event_time"),
        F.when(is_info, F.struct("consume_type", "message_model", "subscriptions")).alias("info"),
        F.when(F.col("strategy").isNotNull(), seen).alias("seen"),
        F.when(F.col("strategy").startswith(NEARBY + "-"), F.col("strategy")).alias("nearby"),
        F.col("client_rebalance").alias("rebalance"),
        F.col("pull_consumer").alias("pulls"),
    )


def _with_last_before(
    members: DataFrame, events: DataFrame, keys: list[str], wanted: dict[str, str]
) -> DataFrame:
    """Joins to every member the last event of its ``keys`` up to the time of its poll.

    ``wanted`` names the event's columns: of each the last value that is not null ("before"), or,
    where there is none so early, the first one after ("nearest"): what a process is it has been
    since it started, and a collector may have begun to listen later.
    """
    both = members.withColumns(
        {"event_time": F.col("poll_time"), "_member": F.lit(True)}
    ).unionByName(events.withColumn("_member", F.lit(False)), allowMissingColumns=True)
    # Of an event and a poll at the same instant the event comes first.
    up_to_here = (Window.unboundedPreceding, Window.currentRow)
    in_keys = Window.partitionBy(*keys)
    before = in_keys.orderBy("event_time", "_member").rowsBetween(*up_to_here)
    # Backwards in time and not first() to the end of the window: a frame that shrinks is computed
    # anew for every row, which is the square of a client's rows in a day.
    after = in_keys.orderBy(F.desc("event_time"), F.desc("_member")).rowsBetween(*up_to_here)
    values: dict[str, Column] = {}
    for name, how in wanted.items():
        value = F.last(name, ignorenulls=True).over(before)
        if how == "nearest":
            value = F.coalesce(value, F.last(name, ignorenulls=True).over(after))
        values[name] = value
    return (
        both.select(
            *[c for c in both.columns if c not in wanted], *[v.alias(n) for n, v in values.items()]
        )
        .where("_member")
        .drop("_member", "event_time")
    )


def _group_tables(polls: DataFrame, members: DataFrame) -> DataFrame:
    """One row per group and poll time that needs it: what the group's tables showed around it.

    One reading of a table that flips does not tell who subscribes to what: a member of which
    nothing else is known counts as subscribing to all that any broker's table showed.
    """
    needed = (
        members.where(
            F.coalesce(
                *[F.col(f"{said}.subscriptions") for said in ("own", "info", "elsewhere")]
            ).isNull()
        )
        .select("cluster", "consumer_group")
        .distinct()
    )
    table = F.map_values(F.col(CONSUMER_CONNECTION)["subscriptionTable"])
    around = (
        Window.partitionBy("cluster", "consumer_group")
        .orderBy(F.col("collected_at").cast("double"))
        .rangeBetween(-GROUP_TABLE_SECONDS, GROUP_TABLE_SECONDS)
    )
    return (
        polls.where(F.col("outcome") == ANSWERED)
        .join(needed, ["cluster", "consumer_group"], "left_semi")
        .select(
            "cluster",
            "consumer_group",
            F.col("collected_at").alias("poll_time"),
            F.array_sort(
                F.array_distinct(F.flatten(F.collect_list(subscriptions_of(table)).over(around)))
            ).alias("group_subscriptions"),
        )
        .dropDuplicates(["cluster", "consumer_group", "poll_time"])
    )
