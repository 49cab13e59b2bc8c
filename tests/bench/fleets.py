"""The fleets that the benches run on: four sizes, laid out as a collector would, written once.

    python -m tests.bench.fleets --size M --kind plain --folder build/bench

Of each size there are two. ``full`` has every fault and strategy that ``tests.support.fleet`` has,
and faults in half of its groups.
``plain`` has the two plain strategies and only faults in which all brokers list the same members:
what a person would write instead of the audit can find those too, so that all ways can be compared
on one result.

Rows lie in the order in which they are collected: by snapshot, broker, group. Sorted by group and
version they would compress to nearly nothing, and reading them would look too cheap.

XL is L four times over (``copies``): it is for the audit in one process, whose memory it asks for.

The same fleet ``with_ids`` is what ``ingest`` would have written: the polls have the ids of the
lists and routes that they brought, and every distinct content is there once.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from pyarrow.fs import LocalFileSystem
from pyspark.sql import DataFrame, SparkSession

from jobs.contract import has_columns
from jobs.fold.numbers import open_files
from jobs.pipeline.ingest import IngestCounts, publish_ingest
from jobs.schemas import (
    BROKER_POLLS,
    HEARTBEATS,
    MEMBER_LISTS,
    ROUTE_CONTENTS,
    ROUTE_POLLS,
    SNAPSHOT_TABLES,
    TOPIC_ROUTES,
)
from jobs.spark.session import spark_session
from jobs.storage import Location, Snapshots, SnapshotWriter
from tests.bench.copies import write_copies
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
from tests.support.tables import write_table

#: A size is a number of rounds, and of groups of 12 members on 3 brokers. 1,440 rounds are a day.
SIZES = {
    "TINY": Fleet(groups=4, rounds=60, faulty=0.7, churn=0.05),
    "S": Fleet(groups=40, rounds=240),
    "M": Fleet(groups=100, rounds=1440),
    "L": Fleet(groups=1000, rounds=1440),
    "XL": Fleet(groups=4000, rounds=1440),
}
#: By name the size that a size is copies of: nothing generates it.
COPIED = {"XL": "L"}
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
_TABLES = {table.name: table for table in SNAPSHOT_TABLES}


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

    @property
    def marker(self) -> Path:
        """Lies there once all else does."""
        return self.folder / "fleet.json"

    def heartbeats(self) -> int:
        """How many rows the table of heartbeats has, exactly."""
        return int(self._marked()["heartbeat_rows"])

    def fleet(self) -> dict[str, Any]:
        """The fields of the fleet; empty where it does not lie there whole."""
        return dict(self._marked()["fleet"]) if self.marker.exists() else {}

    def original(self) -> Tables | None:
        """What these are copies of; None where they were generated."""
        name = self._marked().get("copies_of")
        return None if name is None else Tables(self.folder.parent / name)

    def mark(self, fleet: Fleet, heartbeats: int, original: Tables | None = None) -> None:
        """Says that the fleet lies there whole."""
        told = {"fleet": asdict(fleet), "heartbeat_rows": heartbeats}
        if original is not None:
            told["copies_of"] = original.folder.name
        self.marker.write_text(json.dumps(told) + "\n")

    def _marked(self) -> dict[str, Any]:
        return dict(json.loads(self.marker.read_text()))


def plain(fleet: Fleet) -> Fleet:
    """The same fleet with what every way of doing it can find."""
    return replace(fleet, **_PLAIN)


def named(kind: str, size: str) -> Fleet:
    """The fleet of a size: ``full`` or ``plain``."""
    fleet = SIZES[size]
    return plain(fleet) if kind == "plain" else replace(fleet, faulty=0.5)


def ensure_size(folder: Path, kind: str, size: str) -> Tables:
    """The tables of a size, written unless they lie there already."""
    fleet, tables = named(kind, size), Tables(folder / f"{kind}-{size}")
    if size not in COPIED:
        return ensure(folder, tables.folder.name, fleet)
    original = ensure_size(folder, kind, COPIED[size])
    if not _lies_there(tables, fleet):
        shutil.rmtree(tables.folder, ignore_errors=True)
        copy_fleet(original, named(kind, COPIED[size]), tables, fleet)
    return tables


def ensure(folder: Path, name: str, fleet: Fleet) -> Tables:
    """The fleet's tables, written by a process of its own unless they lie there already."""
    tables = Tables(folder / name)
    if not _lies_there(tables, fleet):
        shutil.rmtree(tables.folder, ignore_errors=True)
        _in_fresh_process("--write", str(tables.folder), "--fleet", json.dumps(asdict(fleet)))
    return tables


def _lies_there(tables: Tables, fleet: Fleet) -> bool:
    return tables.fleet() == json.loads(json.dumps(asdict(fleet)))


def ensure_ids(tables: Tables) -> Tables:
    """The same, with the tables that have content ids of what is a member's fact now."""
    there = Snapshots.open(Location(tables.with_ids))
    lists = MEMBER_LISTS
    if there.run_id is None or not has_columns(lists, there.schema(lists.name)):
        original = tables.original()
        if original is None:
            _in_fresh_process("--write-ids", str(tables.folder))
        else:
            copy_ids(ensure_ids(original), tables)
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
    tables.mark(fleet, spark.read.parquet(heartbeats).count())


def write_ids(tables: Tables) -> None:
    """Writes the tables with content ids; the manifest comes last."""
    expiry_seconds = fleet_settings().heartbeat_expiry_seconds
    sources = [
        open_files(
            table,
            sorted(map(str, (tables.snapshots / table.name).glob("*.parquet"))),
            LocalFileSystem(),
        )
        for table in (HEARTBEATS, BROKER_POLLS, TOPIC_ROUTES)
    ]
    with _writing_ids(tables) as (writer, written):
        for name, rows in ids_locally(*sources, expiry_seconds).items():
            order = ["snapshot_time", "broker_name", "consumer_group", "namesrv_addr", "topic"]
            by = [(each, "ascending") for each in order if each in rows.column_names]
            in_order = rows.sort_by(by) if by[0][0] == order[0] else rows
            written[name] = write_table(_TABLES[name], in_order, writer.table(name))


@contextmanager
def _writing_ids(tables: Tables) -> Iterator[tuple[SnapshotWriter, dict[str, int]]]:
    """The writer of the tables with content ids, and their rows; the block has the other tables."""
    shutil.rmtree(tables.with_ids, ignore_errors=True)
    with writing(tables.with_ids) as writer:
        written: dict[str, int] = {}
        for table in (HEARTBEATS, TOPIC_ROUTES):
            of_run = Path(writer.table(table.name).base)
            of_run.parent.mkdir(parents=True, exist_ok=True)
            # A link's target counts from where the link is: a relative folder leads nowhere.
            of_run.symlink_to((tables.snapshots / table.name).resolve())
            written[table.name] = writer.table(table.name).parquet().count_rows()
        yield writer, written
        publish_ingest(IngestCounts(0, 0, 0, 0), written, writer, fleet_settings(), QUIET)


def copy_fleet(original: Tables, of: Fleet, tables: Tables, fleet: Fleet) -> None:
    """Writes a fleet as copies of another one, ``of``; the marker comes last."""
    copies = fleet.groups // of.groups
    rows = {
        folder.name: write_copies(folder, tables.snapshots / folder.name, copies, of.groups)
        for folder in sorted(original.snapshots.iterdir())
    }
    write_copies(original.true_findings, tables.true_findings, copies, of.groups)
    tables.mark(fleet, rows[HEARTBEATS.name], original)


def copy_ids(original: Tables, tables: Tables) -> None:
    """Writes the tables with content ids as copies of those of the original."""
    groups = original.fleet()["groups"]
    copies = tables.fleet()["groups"] // groups
    source = Snapshots.open(Location(original.with_ids))
    with _writing_ids(tables) as (writer, written):
        for table in (BROKER_POLLS, MEMBER_LISTS, ROUTE_POLLS, ROUTE_CONTENTS):
            folder, target = Path(source.table(table.name).base), writer.table(table.name)
            written[table.name] = write_copies(folder, Path(target.base), copies, groups)


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
        ensure_ids(ensure_size(args.folder, args.kind, args.size))
        return
    fields = json.loads(args.fleet)
    lists = {name: tuple(fields[name]) for name in ("faults", "strategies", "healthy")}
    with spark_session("generate a fleet") as spark:
        write_fleet(spark, Fleet(**{**fields, **lists}), Tables(args.write))


if __name__ == "__main__":
    main()
