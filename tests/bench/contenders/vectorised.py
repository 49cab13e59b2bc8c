"""A pandas UDF over views: one NumPy pass over a whole batch of them, without deduplication."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import pandas_udf

from tests.bench.contenders.episodes import in_all_views, write_episodes
from tests.bench.contenders.views import VIEW, views_with_clients

Numbers = NDArray[np.int64]


def _in_rows(counts: Numbers) -> Numbers:
    """0, 1, ... within each of rows of these lengths, one after the other."""
    return np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)


def find(views: pd.DataFrame) -> pd.DataFrame:
    """The positions of the orphaned and the duplicated queues of each view."""
    queues = views["queue_count"].to_numpy(np.int64)
    clients = np.array([len(ids) for ids in views["ids"]], np.int64)
    view = np.repeat(np.arange(len(views)), clients)
    index = _in_rows(clients)
    ids, circle, takes = (np.concatenate([*views[name], []]) for name in ("ids", "circle", "takes"))
    # Ids are sorted, so copies stand together: the slot of all of them is that of the first.
    is_first = np.ones(len(ids), bool)
    is_first[1:] = (ids[1:] != ids[:-1]) | (view[1:] != view[:-1])
    slot = index[np.maximum.accumulate(np.where(is_first, np.arange(len(ids)), 0))]
    takes, circle = takes.astype(bool), circle.astype(bool)
    q, n = queues[view], clients[view]
    size, rest = q // n, q % n
    count = size + (slot < rest)
    start = np.where(circle, slot, slot * size + np.minimum(slot, rest))
    step = np.where(circle, n, 1)
    taken = np.where(takes, count, 0)
    claims = np.repeat(start, taken) + np.repeat(step, taken) * _in_rows(taken)
    offsets = np.cumsum(queues) - queues
    owners = np.bincount(np.repeat(offsets[view], taken) + claims, minlength=int(queues.sum()))
    position = _in_rows(queues)

    def per_view(chosen: NDArray[np.bool_]) -> list[Any]:
        ends = np.cumsum(np.add.reduceat(chosen, offsets)) if len(queues) else []
        return np.split(position[chosen], ends[:-1]) if len(queues) else []

    return pd.DataFrame({"orphans": per_view(owners == 0), "duplicates": per_view(owners > 1)})


def run(spark: SparkSession, snapshots: Path, output: Path) -> None:
    """Arrays go to Python as they are, in batches of Spark's own default size."""
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "10000")
    views = views_with_clients(spark, snapshots)
    arrays = F.struct(
        F.col("clients.client_id").alias("ids"),
        F.transform("clients", lambda c: c["strategy"] == "AVG_BY_CIRCLE").alias("circle"),
        F.transform(
            "clients", lambda c: c["heard"] & F.array_contains(c["topics"], F.col("topic"))
        ).alias("takes"),
        F.size("queues").alias("queue_count"),
    )
    evaluate = pandas_udf(find, "orphans array<int>, duplicates array<int>")
    rows = views.select(*VIEW, "queues", evaluate(arrays).alias("found"))
    found = in_all_views(spark, snapshots, rows, F.col("found.orphans"), F.col("found.duplicates"))
    write_episodes(spark, snapshots, found, output)
