"""state tables of an earlier run, runs of the rounds since -> what one run over all would give.

A run publishes what it made between the fingerprints and the segments. The next one reads the
rounds since alone: runs that go on over the cut are joined, lists and routes that are known are
not collected again, and states that were evaluated are not evaluated again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from jobs.states.representatives import first_snapshots

#: Raise it whenever the same rounds give other state tables: other fingerprints, other columns,
#: another verdict of the core. What earlier versions published is then not taken over.
STATES_VERSION = 2

GROUP = ["cluster", "consumer_group"]
TOPIC = ["cluster", "topic"]


@dataclass(frozen=True)
class StateTables:
    """What a run knows of its rounds before it lays groups and topics over each other.

    ``group_runs``, ``route_runs``: as ``find_runs`` gives them. ``group_states``,
    ``route_states``: one row per fingerprint in them. ``evaluated_states``: one row per state, with
    the columns of ``evaluate_states``.
    """

    group_runs: DataFrame
    group_states: DataFrame
    route_runs: DataFrame
    route_states: DataFrame
    evaluated_states: DataFrame

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """The names of the tables."""
        return tuple(field.name for field in fields(cls))

    def items(self) -> Iterator[tuple[str, DataFrame]]:
        """The tables, each with its name."""
        return ((name, getattr(self, name)) for name in self.names())


def clip_runs(runs: DataFrame, is_within: Callable[[Column], Column]) -> DataFrame:
    """The runs with those snapshots alone that lie within; runs without any are gone."""
    times = F.filter("snapshot_times", is_within)
    return (
        runs.withColumn("snapshot_times", times)
        .where(F.size("snapshot_times") > 0)
        .withColumns(
            {
                "first_seen": F.element_at("snapshot_times", 1),
                "last_seen": F.element_at("snapshot_times", -1),
            }
        )
    )


def join_runs(earlier: DataFrame, later: DataFrame, keys: list[str]) -> DataFrame:
    """The runs of two stretches of time, as ``find_runs`` over both at once would give them.

    No snapshot is in both, and all of ``earlier`` lie before those of ``later``. The last run
    before and the first one since are one where nothing changed between them.
    """
    in_time = Window.partitionBy(*keys).orderBy("first_seen")
    changed = F.coalesce(F.col("fingerprint") != F.lag("fingerprint").over(in_time), F.lit(False))
    numbered = (
        earlier.unionByName(later)
        .withColumn("_changed", changed.cast("int"))
        .withColumn("run", F.sum("_changed").over(in_time))
    )
    return (
        numbered.groupBy(*keys, "run")
        .agg(
            F.first("fingerprint").alias("fingerprint"),
            F.array_sort(F.flatten(F.collect_list("snapshot_times"))).alias("snapshot_times"),
        )
        .select(
            *keys,
            "fingerprint",
            "run",
            F.element_at("snapshot_times", 1).alias("first_seen"),
            F.element_at("snapshot_times", -1).alias("last_seen"),
            "snapshot_times",
        )
    )


def without_known(runs: DataFrame, known_states: DataFrame, keys: list[str]) -> DataFrame:
    """The runs whose fingerprint has no row among the known states: they are to be collected."""
    known = known_states.select(*keys, "fingerprint")
    return runs.join(known, [*keys, "fingerprint"], "left_anti")


def known_group_states(
    group_runs: DataFrame, known_states: DataFrame, channel_expiry_seconds: int
) -> DataFrame:
    """Of the known group states those that the runs have; ``lasting`` is told from the runs."""
    in_runs = first_snapshots(group_runs, channel_expiry_seconds).drop("snapshot_time")
    return in_runs.join(known_states.drop("lasting"), [*GROUP, "fingerprint"], "inner")


def known_route_states(route_runs: DataFrame, known_states: DataFrame) -> DataFrame:
    """Of the known route states those that the runs have."""
    in_runs = route_runs.select(*TOPIC, "fingerprint")
    return known_states.join(in_runs, [*TOPIC, "fingerprint"], "left_semi")


def known_evaluations(
    segments: DataFrame, group_states: DataFrame, known_states: DataFrame
) -> DataFrame:
    """Of the evaluated states those that the segments have, and that would come out the same.

    A state's id tells its lists and its route. What else an evaluation depends on is ``lasting``,
    which lists become with time.
    """
    wanted = _lasting(segments, group_states)
    return known_states.join(wanted, ["state_id", "lasting"], "left_semi")


def _lasting(segments: DataFrame, group_states: DataFrame) -> DataFrame:
    """One row per state_id: ``lasting``."""
    of_lists = group_states.select(
        *GROUP, F.col("fingerprint").alias("group_fingerprint"), "lasting"
    )
    return (
        segments.select(*GROUP, "state_id", "group_fingerprint")
        .dropDuplicates(["state_id"])
        .join(of_lists, [*GROUP, "group_fingerprint"], "inner")
        .select("state_id", "lasting")
    )
