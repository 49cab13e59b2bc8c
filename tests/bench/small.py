"""One capture: what a run costs from the prompt, and an audit in a session that is warm.

    python -m tests.bench.small

The first is a fresh process of ``rebalance-audit run`` for each sample dump, start of Python
included. The second audits the tables of one sample dump again and again in one Spark session.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from jobs.spark.session import spark_session
from tests.bench.contenders.audit import task
from tests.bench.engines import audit_on, ingest_on
from tests.bench.processes import Watch
from tests.support.truth import CAPTURES, SITUATIONS


def run_from_prompt(name: str, folder: Path) -> tuple[float, float]:
    """CPU seconds and seconds of ``run`` on one sample dump, as a process."""
    command = [str(Path(sys.executable).with_name("rebalance-audit")), "run", "--quiet"]
    command += ["--dumps", str(CAPTURES / name / "dump.jsonl.gz"), "--output", str(folder / name)]
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    seconds, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return used, seconds


def warm_audits(name: str, folder: Path, times: int) -> Iterator[tuple[float, float]]:
    """CPU seconds and seconds of each of some audits on Spark, one after the other."""
    snapshots = folder / f"{name}-snapshots"
    ingest_on(None, CAPTURES / name / "dump.jsonl.gz", snapshots)
    with Watch(os.getpid()) as watch, spark_session("bench small") as spark:
        for _ in range(times):
            before, started = watch.cpu_seconds(), time.perf_counter()
            audit_on(spark, task(snapshots, folder / f"{name}-warm"))
            yield watch.cpu_seconds() - before, time.perf_counter() - started


def main() -> None:
    """Prints a line for each sample dump, and one for each audit."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path("build/bench/small"))
    parser.add_argument("--runs", type=int, default=3, help="of each sample dump")
    parser.add_argument("--warm", default=SITUATIONS[0], choices=SITUATIONS)
    parser.add_argument("--audits", type=int, default=8, help="in one session")
    args = parser.parse_args()
    for name in SITUATIONS:
        runs = [run_from_prompt(name, args.folder) for _ in range(args.runs)]
        cpu_seconds, seconds = (statistics.median(each) for each in zip(*runs, strict=True))
        sys.stdout.write(f"run, {name}: CPU {cpu_seconds:.2f} s, {seconds:.2f} s\n")
    warm = enumerate(warm_audits(args.warm, args.folder, args.audits), 1)
    for number, (cpu_seconds, seconds) in warm:
        sys.stdout.write(
            f"audit on Spark, {args.warm}, no. {number} of the session: CPU {cpu_seconds:.2f} s, "
            f"{seconds:.2f} s\n"
        )


if __name__ == "__main__":
    main()
