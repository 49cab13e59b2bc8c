"""One measured run, in a process of its own: one contender, once, over one fleet.

    python -m tests.bench.measured audit --snapshots DIR --output DIR/audit --warm-up DIR

Starting the session and a first run over a small fleet (a JVM that has run nothing yet is slow in
another way every time) are told apart and do not count. Prints one line of JSON: seconds of wall
clock and of CPU of the whole tree of processes, and the peaks of memory, which do include both.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.bench.contenders import BY_MODULE
from tests.bench.processes import MemoryWatch, Peaks, cpu_seconds


@dataclass(frozen=True)
class Measured:
    """What one run took."""

    contender: str
    seconds: float
    cpu_seconds: float
    session_seconds: float
    warm_up_seconds: float
    #: MiB. ``python`` is the largest worker, or the process itself where there is no JVM.
    jvm: float
    python: float


def measure(name: str, snapshots: Path, output: Path, warm_up: Path | None) -> Measured:
    """Runs the contender in this process; its findings lie in ``output``."""
    contender = BY_MODULE[name]
    module: Any = importlib.import_module(f"tests.bench.contenders.{name}")
    started = time.perf_counter()
    with MemoryWatch(os.getpid()) as watch, ExitStack() as stack:
        spark = None
        if contender.uses_spark:
            from jobs.session import spark_session  # noqa: PLC0415 - only where it is used

            spark = stack.enter_context(spark_session(f"bench {name}"))
        ready = time.perf_counter()
        if warm_up is not None and spark is not None:
            module.run(spark, warm_up, output.parent / "warm-up" / name)
        before, begun = cpu_seconds(os.getpid()), time.perf_counter()
        module.run(spark, snapshots, output)
        seconds = time.perf_counter() - begun
        used = cpu_seconds(os.getpid()) - before
    if hasattr(module, "to_findings"):
        module.to_findings(output)
    peaks: Peaks = watch.peaks
    return Measured(
        contender=name,
        seconds=seconds,
        cpu_seconds=used,
        session_seconds=ready - started,
        warm_up_seconds=begun - ready,
        jvm=peaks.jvm,
        python=peaks.worker if contender.uses_spark else peaks.driver,
    )


def main() -> None:
    """Measures, and prints the line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("contender", choices=BY_MODULE)
    parser.add_argument("--snapshots", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--warm-up", type=Path, help="the snapshots of a small fleet")
    args = parser.parse_args()
    result = measure(args.contender, args.snapshots, args.output, args.warm_up)
    sys.stdout.write(json.dumps(asdict(result)) + "\n")


if __name__ == "__main__":
    main()
