"""One giant group: 10,000 members on 3 brokers, in 200 rounds, and every round another state.

    python -m tests.bench.giant

A client restarts from each round to the next, so that each of the 600 lists of 10,000 connections
is another, and each of the 200 situations is evaluated. Prints the peaks of memory, and how the
tasks of each long stage shared the work: from Spark's event log.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tests.bench.contenders import audit
from tests.bench.fleets import Tables, ensure, ensure_ids, plain
from tests.bench.measured import Measured, in_fresh_process, measure, print_measured
from tests.support.fleet import Fleet

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FLEET = plain(
    Fleet(groups=1, rounds=200, members=10_000, queues_per_broker=4096, churn=1.0, faulty=0)
)
#: A stage is long that has so much of all tasks' time.
_LONG = 0.05


def audit_once(snapshots: Path, output: Path, event_log: Path) -> Measured:
    """One audit in this process, with an event log; without a warm-up, which is nothing here."""
    event_log.mkdir(parents=True, exist_ok=True)
    settings = {
        "enabled": "true",
        "dir": event_log.resolve().as_uri(),
        "compress": "false",
        "rolling.enabled": "false",
    }
    options = " ".join(f"--conf spark.eventLog.{name}={value}" for name, value in settings.items())
    os.environ["PYSPARK_SUBMIT_ARGS"] = f"{options} pyspark-shell"

    def work(spark: SparkSession | None) -> None:
        assert spark is not None
        audit.run(spark, snapshots, output)

    return measure("giant", work, None, uses_spark=True)


def long_stages(event_log: Path) -> list[str]:
    """In words, the seconds and the rows of each task of the long stages."""
    tasks: dict[int, list[tuple[float, int]]] = defaultdict(list)
    for path in event_log.iterdir():
        for line in path.read_text().splitlines():
            event = json.loads(line)
            if event["Event"] == "SparkListenerTaskEnd" and event.get("Task Metrics"):
                metrics = event["Task Metrics"]
                rows = metrics["Shuffle Read Metrics"]["Total Records Read"]
                tasks[event["Stage ID"]].append((metrics["Executor Run Time"] / 1000, rows))
    total = sum(seconds for each in tasks.values() for seconds, _ in each)
    return [
        f"stage {stage}: {_shares(each)}"
        for stage, each in sorted(tasks.items())
        if sum(seconds for seconds, _ in each) >= _LONG * total
    ]


def _shares(tasks: Sequence[tuple[float, int]]) -> str:
    return ", ".join(f"{seconds:.1f} s ({rows:,} rows from others)" for seconds, rows in tasks)


def main() -> None:
    """Audits, and prints what it took."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path("build/bench"))
    parser.add_argument("--with-ids", action="store_true", help="audit the tables with content ids")
    parser.add_argument("--once", nargs=3, type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.once:
        print_measured(audit_once(*args.once))
        return
    tables: Tables = ensure(args.folder, "giant", FLEET)
    snapshots = ensure_ids(tables).with_ids if args.with_ids else tables.snapshots
    event_log = args.folder / f"giant-events-{os.getpid()}"
    run = in_fresh_process(
        "tests.bench.giant", "--once", snapshots, args.folder / "output-giant", event_log
    )
    sys.stdout.write(
        f"{tables.heartbeats():,} heartbeats, {'with ids' if args.with_ids else 'from rows'}: "
        f"{run.seconds:.1f} s, CPU {run.cpu_seconds:.1f} s; JVM {run.jvm:,.0f} MiB; Python: "
        f"largest process {run.largest:,.0f} MiB, all together {run.python:,.0f} MiB\n"
    )
    sys.stdout.writelines(f"{each}\n" for each in long_stages(event_log))


if __name__ == "__main__":
    main()
