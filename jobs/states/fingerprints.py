"""snapshots -> fingerprints: what each group, and each route, looked like, in 128 bits.

In a healthy fleet almost every snapshot equals the one before, so nothing is collected, sorted or
sent to Python before it is known to be new. A fingerprint is a multiset hash: every row gives two
differently seeded xxhash64, whose four 32-bit halves are summed. Sums do not depend on the order
of the rows, merge in partial aggregation, and, unlike XOR, tell two copies of a row from none.

How probably do two different states of a group share a fingerprint? Where a row is in one and not
in the other, each half of its hashes must hit the one value that makes the sums equal: 2^-32 four
times over, 2^-128 in all, and 2^-128 again for hashing the sums. A day of 5,000 groups in which
every one of 1,440 snapshots is another state has 5,000 x 1,440^2 / 2 = 5 x 10^9 pairs: 3 x 10^-29.
Subscriptions enter the rows as one hash of 64 bits: a hundred different lists of subscriptions in
every group are 2.5 x 10^7 pairs, 1.3 x 10^-12 in all. (Against chance: xxhash64 is no defence
against somebody who looks for two lists that collide.)
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from jobs.states.polls import unlisted_brokers

_LOW_HALF = 0xFFFFFFFF


def multiset_fingerprint(rows: DataFrame, keys: list[str], values: list[Column]) -> DataFrame:
    """One row per ``keys``: the 128-bit fingerprint of the multiset of its rows' ``values``.

    Columns: the keys and ``fingerprint`` struct<high, low>. ``values`` are not null for
    rows of one kind (xxhash64 skips nulls: a null in one column equals a null in the next).
    """
    hashed = rows.select(
        *keys,
        F.xxhash64(F.lit(0), *values).alias("_first"),
        F.xxhash64(F.lit(1), *values).alias("_second"),
    )
    halves = [
        half
        for hash_ in ("_first", "_second")
        for half in (
            F.sum(F.col(hash_).bitwiseAND(F.lit(_LOW_HALF))),
            F.sum(F.shiftrightunsigned(hash_, 32)),
        )
    ]
    sums = hashed.groupBy(*keys).agg(
        F.count(F.lit(1)).alias("_count"),
        *[half.alias(f"_sum{number}") for number, half in enumerate(halves)],
    )
    of_sums = ["_count", *[f"_sum{number}" for number in range(len(halves))]]
    return sums.select(
        *keys,
        F.struct(
            F.xxhash64(F.lit(0), *of_sums).alias("high"),
            F.xxhash64(F.lit(1), *of_sums).alias("low"),
        ).alias("fingerprint"),
    )


def group_fingerprints(heartbeats: DataFrame, broker_polls: DataFrame | None) -> DataFrame:
    """One row per cluster, consumer_group, snapshot_time: who stood in which broker's list.

    Brokers that answered without a list, or not at all, count too: knowing less is another state.
    """
    keys = ["cluster", "consumer_group", "snapshot_time"]
    listed = heartbeats.select(
        *keys,
        F.lit("LISTED").alias("outcome"),
        "broker_name",
        "broker_id",
        "client_id",
        "client_addr",
        F.coalesce("language", F.lit("")).alias("language"),
        F.coalesce("version", F.lit(-1)).alias("version"),
        F.coalesce("message_model", F.lit("")).alias("message_model"),
        F.coalesce("strategy", F.lit("")).alias("strategy"),
        F.coalesce(F.col("client_rebalance").cast("int"), F.lit(-1)).alias("client_rebalance"),
        "is_expired",
        "chooses_queues",
        # A hash of arrays has no boundaries: without its size, what one ends with could as well
        # be what the next begins with.
        F.size("subscriptions").alias("subscription_count"),
        # Hashed once and not with both seeds: the longest column by far, and a group has but a
        # few different values of it.
        F.xxhash64("subscriptions").alias("subscriptions"),
    )
    if broker_polls is not None:
        unlisted = unlisted_brokers(broker_polls)
        listed = listed.unionByName(
            unlisted.select(*keys, "outcome", "broker_name", "broker_id"),
            allowMissingColumns=True,
        )
    values = [F.col(name) for name in listed.columns if name not in keys]
    return multiset_fingerprint(listed, keys, values)


def route_fingerprints(topic_routes: DataFrame) -> DataFrame:
    """One row per cluster, topic, snapshot_time: what the nameservers gave as the route."""
    return multiset_fingerprint(
        topic_routes,
        ["cluster", "topic", "snapshot_time"],
        [
            F.col("namesrv_addr"),
            F.coalesce("broker_name", F.lit("")),
            F.coalesce(F.size("broker_ids"), F.lit(-1)),
            # Not array_sort: that one compares by an expression, which is not compiled.
            F.sort_array(F.coalesce("broker_ids", F.array().cast("array<bigint>"))),
            F.col("perm"),
            F.col("read_queue_nums"),
            F.col("write_queue_nums"),
            F.coalesce("zone_name", F.lit("")),
        ],
    )
