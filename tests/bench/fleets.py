"""The fleets that the benches run on: three sizes, laid out as a collector would, written once.

    python -m tests.bench.fleets --size M --kind plain --folder build/bench

Of each size there are two. ``full`` has every fault and strategy that ``tests.support.fleet`` has,
and faults in half of its groups.
``plain`` has the two plain strategies and only faults in which all brokers list the same members:
what a person would write instead of the audit can find those too, so that all ways can be compared
on one result.

Rows lie in the order in which they are collected: by snapshot, broker, group. Sorted by group and
version they would compress to nearly nothing, and reading them would look too cheap.

The same fleet ``with_ids`` is what ``ingest`` would have written: the polls have the ids of the
lists and routes that they brought, and every distinct content is there once.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from jobs.contract import has_columns
from jobs.fold.numbers import open_files
from jobs.pipeline.ingested import Ingested, publish_ingest
from jobs.publish.tables import write_table
from jobs.schemas import BROKER_POLLS, HEARTBEATS, MEMBER_LISTS, TOPIC_ROUTES
from jobs.session import spark_session
from jobs.storage import Location, Snapshots
from tests.support.fleet import (
    Fleet,
    describe_fleet,
    fleet_heartbeats,
    fleet_polls,
    fleet_routes,
    fleet_settings,
    true_findings,
)
from tests.support.ids import ids_locally
from tests.support.runs import QUIET, writing

#: A size is a number of rounds, and of groups of 12 members on 3 brokers. 1,440 rounds are a day.
SIZES = {
    "TINY": Fleet(groups=4, rounds=60, faulty=0.7, churn=0.05),
    "S": Fleet(groups=40, rounds=240),
    "M": Fleet(groups=100, rounds=1440),
    "L": Fleet(groups=1000, rounds=1440),
}
#: The night that the audit is meant for.
TARGET = Fleet(groups=5000, rounds=1440)

_PLAIN = {
    "faults": (
        "DUPLICATE_CLIENT_ID",
        "GHOST_MEMBER",
        "STRATEGY_MISMATCH",
        "SUBSCRIPTION_MISMATCH",
        "GROUP_OFFLINE",
        "ROUTE_CHANGED",
    ),
    "strategies": ("AVG", "AVG_BY_CIRCLE"),
}
_ROWS_PER_FILE = 650_000


@dataclass(frozen=True)
class Tables:
    """Where one fleet lies: the snapshot tables that the audit reads, and what is true of it."""

    folder: Path

    @property
    def snapshots(self) -> Path:
        """Has a folder for each snapshot table."""
        return self.folder / "snapshots"

    @property
    def with_ids(self) -> Path:
        """The same tables, and those with content ids."""
        return self.folder / "with_ids"

    @property
    def true_findings(self) -> Path:
        """One row per queue and faulty period of time."""
        return self.folder / "true_findings"

    def heartbeats(self) -> int:
        """How many rows the table of heartbeats has, exactly."""
        return int(json.loads((self.folder / "fleet.json").read_text())["heartbeat_rows"])


def plain(fleet: Fleet) -> Fleet:
    """The same fleet with what every way of doing it can find."""
    return replace(fleet, **_PLAIN)


def named(kind: str, size: str) -> Fleet:
    """The fleet of a size: ``full`` or ``plain``."""
    fleet = SIZES[size]
    return plain(fleet) if kind == "plain" else replace(fleet, faulty=0.5)


def ensure(folder: Path, name: str, fleet: Fleet) -> Tables:
    """The fleet's tables, written by a process of its own unless they lie there already."""
    tables = Tables(folder / name)
    marker = tables.folder / "fleet.json"
    wanted = json.loads(json.dumps(asdict(fleet)))
    if not marker.exists() or json.loads(marker.read_text())["fleet"] != wanted:
        shutil.rmtree(tables.folder, ignore_errors=True)
        _in_fresh_process("--write", str(tables.folder), "--fleet", json.dumps(wanted))
    return tables


def ensure_ids(tables: Tables) -> Tables:
    """The same, with the tables that have content ids of what is a member's fact now."""
    there = Snapshots.open(Location(tables.with_ids))
    lists = MEMBER_LISTS
    if there.run_id is None or not has_columns(lists, there.parquet(lists.name).schema):
        _in_fresh_process("--write-ids", str(tables.folder))
    return tables


def _in_fresh_process(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "tests.bench.fleets", *arguments], check=True)


def write_fleet(spark: SparkSession, fleet: Fleet, tables: Tables) -> None:
    """Writes the tables; the marker comes last, so that half a fleet is never taken for one."""
    versions_path = str(tables.folder / "versions")
    describe_fleet(spark, fleet).write.mode("overwrite").parquet(versions_path)
    versions = spark.read.parquet(versions_path)
    by_place = ["snapshot_time", "broker_name", "consumer_group", "client_id"]
    files = max(2, round(fleet.heartbeats / _ROWS_PER_FILE))
    heartbeats = str(tables.snapshots / "heartbeats")
    _as_collected(fleet_heartbeats(fleet, versions), by_place, files, heartbeats)
    polls = str(tables.snapshots / "broker_polls")
    _as_collected(fleet_polls(fleet, versions), by_place[:3], max(1, files // 8), polls)
    routes = str(tables.snapshots / "topic_routes")
    by_topic = ["snapshot_time", "topic", "broker_name"]
    _as_collected(fleet_routes(fleet, versions), by_topic, max(1, files // 8), routes)
    true_findings(fleet, versions).write.mode("overwrite").parquet(str(tables.true_findings))
    told = {"fleet": asdict(fleet), "heartbeat_rows": spark.read.parquet(heartbeats).count()}
    (tables.folder / "fleet.json").write_text(json.dumps(told) + "\n")


def write_ids(tables: Tables) -> None:
    """Writes the tables with content ids; the manifest comes last."""
    shutil.rmtree(tables.with_ids, ignore_errors=True)
    settings = fleet_settings()
    sources = [
        open_files(table, sorted(map(str, (tables.snapshots / table.name).glob("*.parquet"))))
        for table in (HEARTBEATS, BROKER_POLLS, TOPIC_ROUTES)
    ]
    with writing(tables.with_ids) as writer:
        written: dict[str, int] = {}
        for table in (HEARTBEATS, TOPIC_ROUTES):
            of_run = Path(writer.table(table.name).base)
            of_run.parent.mkdir(parents=True)
            # A link's target counts from where the link is: a relative folder leads nowhere.
            of_run.symlink_to((tables.snapshots / table.name).resolve())
            written[table.name] = writer.table(table.name).parquet().count_rows()
        for name, rows in ids_locally(*sources, settings.heartbeat_expiry_seconds).items():
            order = ["snapshot_time", "broker_name", "consumer_group", "namesrv_addr", "topic"]
            by = [(each, "ascending") for each in order if each in rows.column_names]
            in_order = rows.sort_by(by) if by[0][0] == order[0] else rows
            written[name] = write_table(in_order, writer.table(name))
        publish_ingest(Ingested(0, 0, 0, 0), written, writer, settings, QUIET)


def _as_collected(rows: DataFrame, order: list[str], files: int, path: str) -> None:
    ordered = rows.repartitionByRange(files, "snapshot_time") if files > 1 else rows.coalesce(1)
    ordered.sortWithinPartitions(*order).write.mode("overwrite").parquet(path)


def main() -> None:
    """Writes one fleet."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", choices=SIZES)
    parser.add_argument("--kind", choices=("plain", "full"), default="plain")
    parser.add_argument("--folder", type=Path, default=Path("build/bench"))
    parser.add_argument("--write", type=Path, help="just this folder, with --fleet")
    parser.add_argument("--fleet", help="the fields of the fleet, as JSON")
    parser.add_argument("--write-ids", type=Path, help="just the ids of what is in this folder")
    args = parser.parse_args()
    if args.write_ids is not None:
        write_ids(Tables(args.write_ids))
        return
    if args.write is None:
        ensure_ids(ensure(args.folder, f"{args.kind}-{args.size}", named(args.kind, args.size)))
        return
    fields = json.loads(args.fleet)
    lists = {name: tuple(fields[name]) for name in ("faults", "strategies", "healthy")}
    with spark_session("generate a fleet") as spark:
        write_fleet(spark, Fleet(**{**fields, **lists}), Tables(args.write))


if __name__ == "__main__":
    main()
