"""records -> topic_routes: one row per broker of each route that a nameserver gave."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from jobs.conform import conform
from jobs.dumps.bodies import TOPIC_ROUTE
from jobs.schemas import TOPIC_ROUTES
from jobs.snapshots.polls import latest, with_error

#: ``ResponseCode.TOPIC_NOT_EXIST``: the nameserver answered, and knows no such topic.
TOPIC_NOT_EXIST = 17
NO_ROUTE_MESSAGE = rf"CODE: *{TOPIC_NOT_EXIST}\b|No topic route info"

#: ``MixAll.LOGICAL_QUEUE_MOCK_BROKER_PREFIX``; the scope ``__global__`` drops its own underscores
#: (``TopicQueueMappingUtils.getMockBrokerName``).
_MOCK_BROKER = "__syslo__"
GLOBAL_SCOPE = "__global__"


def mock_broker_name(scope: str) -> str:
    """The broker name under which clients see the logical queues of a static topic.

    >>> mock_broker_name("__global__"), mock_broker_name("s")
    ('__syslo__global__', '__syslo__s')
    """
    return _MOCK_BROKER + ("global__" if scope == GLOBAL_SCOPE else scope)


def make_topic_routes(records: DataFrame) -> DataFrame:
    """The table ``topic_routes``.

    A topic that the nameserver does not know gives one row without a broker. A static topic has
    one row for each scope, with its logical queues under the mock broker name that clients see,
    and the real brokers without queues: clients still ask those for the group's members.
    Polls that the nameserver did not answer give no row: nothing is known from them.
    """
    routes = latest(
        with_error(records.where(F.col("kind") == TOPIC_ROUTE), TOPIC_ROUTE),
        ["cluster", "snapshot_time", "namesrv_addr", "topic"],
    )
    unknown = F.coalesce(
        (F.col("code") == TOPIC_NOT_EXIST) | F.col("message").rlike(NO_ROUTE_MESSAGE),
        F.lit(False),
    )
    answered = routes.where(F.col("code").isNull() | unknown)
    brokers = F.when(F.col("code").isNull(), _brokers(F.col(TOPIC_ROUTE)))
    return conform(
        answered.select(
            "cluster", "snapshot_time", "namesrv_addr", "topic", F.explode_outer(brokers).alias("b")
        ).select(
            "cluster",
            "snapshot_time",
            "namesrv_addr",
            "topic",
            "b.broker_name",
            "b.broker_ids",
            "b.zone_name",
            *[
                F.coalesce(F.col(f"b.{name}"), F.lit(0)).alias(name)
                for name in ("perm", "read_queue_nums", "write_queue_nums")
            ],
        ),
        TOPIC_ROUTES,
    )


def _brokers(route: Column) -> Column:
    addresses = F.coalesce(route["brokerDatas"], F.array())
    queues = F.coalesce(route["queueDatas"], F.array())
    mappings = F.coalesce(F.map_values(route["topicQueueMappingByBroker"]), F.array())
    is_static = F.size(mappings) > 0
    names = F.array_distinct(
        F.concat(
            F.transform(addresses, lambda each: each["brokerName"]),
            F.transform(queues, lambda each: each["brokerName"]),
        )
    )
    physical = F.transform(
        names,
        lambda name: _broker(
            name,
            F.get(F.filter(addresses, lambda each: each["brokerName"] == name), F.lit(0)),
            F.get(F.filter(queues, lambda each: each["brokerName"] == name), F.lit(0)),
            is_static,
        ),
    )
    scopes = F.array_distinct(
        F.transform(mappings, lambda each: F.coalesce(each["scope"], F.lit(GLOBAL_SCOPE)))
    )
    logical = F.transform(
        scopes,
        lambda scope: F.struct(
            F.when(scope == GLOBAL_SCOPE, F.lit(mock_broker_name(GLOBAL_SCOPE)))
            .otherwise(F.concat(F.lit(_MOCK_BROKER), scope))
            .alias("broker_name"),
            F.array().cast("array<bigint>").alias("broker_ids"),
            F.lit(6).alias("perm"),
            _most_queues(mappings, scope).alias("read_queue_nums"),
            _most_queues(mappings, scope).alias("write_queue_nums"),
            F.lit(None).cast("string").alias("zone_name"),
        ),
    )
    return F.concat(physical, logical)


def _broker(name: Column, address: Column, queue: Column, is_static: Column) -> Column:
    ids = F.transform(
        F.coalesce(F.map_keys(address["brokerAddrs"]), F.array().cast("array<string>")),
        lambda key: key.try_cast("bigint"),
    )
    known = F.filter(ids, lambda id_: id_.isNotNull())
    queue_nums = {
        "read_queue_nums": queue["readQueueNums"],
        "write_queue_nums": queue["writeQueueNums"],
    }
    return F.struct(
        name.alias("broker_name"),
        F.array_sort(known).alias("broker_ids"),
        F.coalesce(queue["perm"], F.lit(0)).alias("perm"),
        *[
            F.when(is_static, F.lit(0)).otherwise(F.coalesce(nums, F.lit(0))).alias(column)
            for column, nums in queue_nums.items()
        ],
        address["zoneName"].alias("zone_name"),
    )


def _most_queues(mappings: Column, scope: Column) -> Column:
    of_scope = F.filter(
        mappings, lambda each: F.coalesce(each["scope"], F.lit(GLOBAL_SCOPE)) == scope
    )
    return F.coalesce(
        F.array_max(F.transform(of_scope, lambda each: each["totalQueues"])), F.lit(0)
    )
