"""A run that goes on from the last one reads the rounds since alone: it gives what a full one does."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.pipeline.audit import Run, audit
from jobs.pipeline.window import Window
from jobs.progress import Progress
from jobs.schemas import (
    BROKER_POLLS,
    CLIENT_STATES,
    HEARTBEATS,
    QUEUE_OFFSETS,
    TOPIC_ROUTES,
)
from jobs.settings import Settings
from jobs.states.continued import StateTables
from jobs.storage import Location
from tests.support.fleet import (
    START,
    Fleet,
    describe_fleet,
    fleet_heartbeats,
    fleet_polls,
    fleet_routes,
    fleet_settings,
)
from tests.support.reports import PublishedReports
from tests.support.snapshots import (
    frame,
    heartbeat_row,
    info_row,
    offset_row,
    poll_row,
    route_row,
    subscriptions,
)

pytestmark = pytest.mark.spark

_runs = count(1)


def run(
    spark: SparkSession,
    snapshots: Path,
    reports: Path,
    window: Window | None = None,
    settings: Settings | None = None,
    *,
    since_last: bool = True,
) -> PublishedReports:
    published = audit(
        spark,
        Location(snapshots),
        Location(reports),
        window or Window(),
        settings or Settings(),
        Run(f"run-{next(_runs)}", datetime(2026, 12, 1, tzinfo=UTC)),
        Progress(quiet=True),
        since_last=since_last,
    )
    return PublishedReports(reports, date=published.date)


def tables(published: PublishedReports) -> dict[str, list[str]]:
    return {name: published.comparable(name) for name in published.published["tables"]}


def states(published: PublishedReports) -> dict[str, list[str]]:
    """The rows of the state tables as sorted texts; what is collected has no order."""

    def text(value: Any) -> str:
        if isinstance(value, list):
            return str(sorted(text(each) for each in value))
        if isinstance(value, dict):
            return str({name: text(each) for name, each in sorted(value.items())})
        return str(value)

    of_run = f"dt={published.published['date']}/run={published.published['run_id']}"
    return {
        name: sorted(
            text(row)
            for path in (published.reports / "_states" / name / of_run).glob("*.parquet")
            for row in pq.read_table(path, partitioning=None).to_pylist()
        )
        for name in StateTables.names()
    }


# ---------------------------------------------------------------- a fleet, published in parts

FLEET = Fleet(groups=16, rounds=200, members=5, queues_per_broker=4, churn=0.02, faulty=0.7)
#: The first round that the second run, and the third, is the first to read.
CUTS = (90, 150)


def moment(round_: int) -> datetime:
    return START + timedelta(seconds=60 * round_)


@dataclass(frozen=True)
class Parts:
    """The snapshot tables of the fleet and of some groups made for what may happen at a cut."""

    frames: dict[str, DataFrame]

    def write(self, folder: Path, first: int, end: int, *, garbled: bool = False) -> None:
        """The rounds of a part, in files of their own; garbled: as many, with other members."""
        for name, rows in self.frames.items():
            part = rows.where(
                F.col("snapshot_time").between(F.lit(moment(first)), F.lit(moment(end - 1)))
            )
            if garbled:
                part = part.withColumns({c: F.lit(v) for c, v in GARBAGE[name].items()})
            staged = folder / "_staged"
            part.coalesce(1).write.mode("overwrite").parquet(str(staged))
            (folder / name).mkdir(parents=True, exist_ok=True)
            (file,) = staged.glob("*.parquet")
            file.replace(folder / name / f"part-{first}.parquet")


GARBAGE: dict[str, dict[str, Any]] = {
    "heartbeats": {"client_id": "garbage", "consumer_group": "GARBAGE"},
    "broker_polls": {"outcome": "NO_ANSWER"},
    "topic_routes": {"read_queue_nums": 99, "topic": "garbage"},
    "queue_offsets": {},
    "client_states": {},
}


def special_rows() -> dict[str, list[tuple[Any, ...]]]:
    """Groups by name: what happens to them happens at the first cut, or over it."""
    cut = CUTS[0]
    rows: dict[str, list[tuple[Any, ...]]] = {name: [] for name in GARBAGE}
    for round_ in range(FLEET.rounds):
        time = {"snapshot_time": moment(round_)}
        # One list has the id twice, from shortly before the cut on: two channels, until they last.
        copies = (1, 2) if cut - 2 <= round_ < cut + 40 else (1,)
        members = {
            "STACKED": [{"client_addr": f"a:{port}"} for port in copies],
            # It subscribes to another topic from the cut on.
            "LATE_TOPIC": [{"subscriptions": subscriptions("T", *["T2"] * (round_ >= cut))}],
            "LATE_ROUTE": [{"subscriptions": subscriptions("T3")}],
            # Unchanged but for its last round before the cut: the run does not go on over it.
            "RESTARTED": [{"client_id": "b" if round_ == cut - 1 else "a"}],
            **({"NEW_GROUP": [{}]} if round_ >= cut else {"GONE_GROUP": [{}]}),
        }
        rows["heartbeats"] += [
            heartbeat_row(consumer_group=group, **time, **member)
            for group, of_group in members.items()
            for member in of_group
        ]
        rows["broker_polls"] += [
            poll_row(consumer_group=group, connections=len(of_group), **time)
            for group, of_group in members.items()
        ]
        for topic in ("T", "T2", "T3"):
            queues = 6 if topic == "T3" and round_ >= cut else 4
            # The route of T is polled now and then: it holds over the cut.
            if topic != "T" or round_ % 7 == 0:
                rows["topic_routes"].append(
                    route_row(topic=topic, read_queue_nums=queues, write_queue_nums=8, **time)
                )
        rows["queue_offsets"] += [
            offset_row(
                consumer_group="LATE_ROUTE",
                topic="T3",
                queue_id=queue_id,
                broker_offset=100 + round_,
                consumer_offset=100 if queue_id == 0 else 100 + round_,
                **time,
            )
            for queue_id in range(4)
        ]
        if round_ % 10 == 0:
            rows["client_states"].append(info_row("a", 0, [0, 1], consumer_group="STACKED", **time))
    return rows


def in_parts(spark: SparkSession) -> Parts:
    versions = describe_fleet(spark, FLEET).cache()
    special = special_rows()
    made = {
        HEARTBEATS: fleet_heartbeats(FLEET, versions),
        BROKER_POLLS: fleet_polls(FLEET, versions),
        TOPIC_ROUTES: fleet_routes(FLEET, versions),
    }
    frames = {}
    for table in (HEARTBEATS, BROKER_POLLS, TOPIC_ROUTES, QUEUE_OFFSETS, CLIENT_STATES):
        rows = frame(spark, table, special[table.name])
        if table in made:
            rows = rows.unionByName(made[table])
        frames[table.name] = rows.cache()
    return Parts(frames)


def test_a_fleet_published_in_parts_is_that_of_one_full_run_and_no_round_is_read_twice(
    spark: SparkSession, tmp_path: Path
) -> None:
    parts = in_parts(spark)
    snapshots, reports = tmp_path / "snapshots", tmp_path / "reports"
    parts.write(tmp_path / "whole", 0, FLEET.rounds)
    full = run(
        spark,
        tmp_path / "whole",
        tmp_path / "full",
        settings=fleet_settings(),
        since_last=False,
    )
    cuts = (0, *CUTS, FLEET.rounds)
    made = []
    for first, end in pairwise(cuts):
        parts.write(snapshots, first, end)
        made.append(run(spark, snapshots, reports, settings=fleet_settings()))
        # Whoever reads these rounds again reads garbage.
        parts.write(snapshots, first, end, garbled=True)

    continued = made[-1]
    assert [each.summary["continued"]["until"] for each in made] == [
        None,
        *(f"{moment(cut - 1):%Y-%m-%dT%H:%M:%S}.000000+00:00" for cut in CUTS),
    ]
    expected = tables(full)
    assert [name for name in expected if not expected[name]] == ["former_findings"]
    assert tables(continued) == expected
    assert states(continued) == states(full)

    # What was to happen at the first cut happened.
    cut = moment(CUTS[0])
    over_it = {
        row["consumer_group"]
        for row in continued.rows("state_runs")
        if row["first_seen"] < cut <= row["last_seen"]
    }
    assert len(over_it) > 3
    verdicts = [
        {r["verdict"] for r in each.rows("stacked_client_ids") if r["consumer_group"] == "STACKED"}
        for each in (made[0], continued)
    ]
    assert verdicts == [{"STALE_CHANNEL"}, {"STACKED"}]
    late_topic = [
        {r["topic"] for r in each.rows("state_runs") if r["consumer_group"] == "LATE_TOPIC"}
        for each in (made[0], continued)
    ]
    assert late_topic == [{"T"}, {"T", "T2"}]
    assert min(
        r["first_seen"] for r in continued.rows("state_runs") if r["topic"] == "T2"
    ) == moment(0)
    assert [
        (row["fault"], row["first_seen"])
        for row in continued.rows("group_faults")
        if row["consumer_group"] == "LATE_ROUTE" and row["fault"] == "ROUTE_CHANGED"
    ] == [("ROUTE_CHANGED", cut)]
