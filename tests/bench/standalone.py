"""The same audit on a standalone cluster of two workers on loopback, and here: the same rows?

    python -m tests.bench.standalone --size M

Starts Spark's own master and two workers with one core each, sends both audits through
spark-submit with the packaged zip, and compares all published tables, row by row. Nothing of the
checkout is on the executors' path. Exits with 1 where a table differs.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

from tests.bench.fleets import COPIED, SIZES, ensure_size
from tests.support.reports import PublishedReports
from tests.support.standalone import REPOSITORY, cluster, submit

WORKERS = 2


def audit(master: str, package: Path, snapshots: Path, reports: Path, settings: Path) -> float:
    """One audit through spark-submit, from another directory; gives its seconds."""
    arguments = ["--snapshots", str(snapshots), "--reports", str(reports)]
    arguments += ["--settings", str(settings), "--quiet"]
    started = time.monotonic()
    submit(master, package, REPOSITORY / "jobs" / "audit.py", arguments, cwd=reports.parent)
    return time.monotonic() - started


def main() -> None:
    """Audits twice and compares."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--size", choices=[each for each in SIZES if each not in COPIED], default="M"
    )
    parser.add_argument("--folder", type=Path, default=Path("build/bench"))
    args = parser.parse_args()
    tables = ensure_size(args.folder, "full", args.size)
    folder = (args.folder / f"standalone-{args.size}").resolve()
    folder.mkdir(parents=True, exist_ok=True)
    make = ["make", "-s", "-C", str(REPOSITORY), "package", f"PYTHON={sys.executable}"]
    subprocess.run([*make, f"DIST={folder}"], check=True)
    package, settings = folder / "rebalance-audit.zip", folder / "settings.toml"
    settings.write_text(ROOMS)
    snapshots = tables.snapshots.resolve()
    took = {"local[2]": audit("local[2]", package, snapshots, folder / "here", settings)}
    with cluster(folder, WORKERS) as url:
        took["standalone, 2 workers"] = audit(url, package, snapshots, folder / "there", settings)
    here, there = (PublishedReports(folder / name) for name in ("here", "there"))
    differing = []
    for table in here.published["tables"]:
        rows, others = here.comparable(table), there.comparable(table)
        if rows != others:
            differing.append(table)
        sys.stdout.write(f"{table}: {len(rows):,} rows, {len(others):,} on the cluster\n")
    for where, seconds in took.items():
        sys.stdout.write(f"{where}: {seconds:.1f} s, start of the session included\n")
    sys.stdout.write(f"tables that differ: {', '.join(differing) or 'none'}\n")
    sys.exit(1 if differing else 0)


#: The rooms of the generated fleet (``tests.support.fleet.fleet_settings``), as a user writes them.
ROOMS = """\
[[strategies]]
groups = ".*-MACHINE_ROOM"
name = "MACHINE_ROOM"
params = { consumeridcs = ["room1", "room2"] }

[[strategies]]
groups = ".*-MACHINE_ROOM_NEARBY"
name = "MACHINE_ROOM_NEARBY-AVG"

[strategies.params]
broker_room_patterns = [{ pattern = "(?P<room>room[0-9])@.*" }]
client_room_patterns = [{ pattern = ".*@(?P<room>room[0-9])-.*" }]
"""


if __name__ == "__main__":
    main()
