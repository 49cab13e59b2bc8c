"""One measured run, in a process of its own: one contender, once, over one fleet.

    python -m tests.bench.measured audit --snapshots DIR --output DIR/audit --warm-up DIR

Starting the session and a first run over a small fleet (a JVM that has run nothing yet is slow in
another way every time) are told apart and do not count. Prints one line of JSON: seconds of wall
clock and of CPU of the whole tree of processes, and the peaks of memory, which do include both.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from jobs.java import find_java
from tests.bench.contenders import BY_NAME
from tests.bench.processes import Peaks, Watch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: What is measured: it gets the session, or None where it does without.
Work = Callable[["SparkSession | None"], None]


@dataclass(frozen=True)
class Measured:
    """What one run took."""

    contender: str
    seconds: float
    cpu_seconds: float
    session_seconds: float
    warm_up_seconds: float
    #: MiB, the peaks: of the JVM, of all Python together, and of the largest Python process.
    jvm: float
    python: float
    largest: float


def measure(
    name: str,
    work: Work,
    warm_up: Work | None,
    *,
    uses_spark: bool,
    java_options: str | None = None,
) -> Measured:
    """Does the work in this process, after the warm-up; Spark is set as the commands set it, or
    Java gets these options and no other.
    """
    started = time.perf_counter()
    with Watch(os.getpid()) as watch, ExitStack() as stack:
        spark = None
        if uses_spark:
            from jobs.spark.session import spark_session  # noqa: PLC0415 - only where it is used

            if java_options is None:
                spark = stack.enter_context(spark_session(f"bench {name}"))
            else:
                spark = stack.enter_context(other_session(name, java_options))
        ready = time.perf_counter()
        if warm_up is not None:
            warm_up(spark)
        before, begun = watch.cpu_seconds(), time.perf_counter()
        work(spark)
        seconds = time.perf_counter() - begun
        used = watch.cpu_seconds() - before
    peaks: Peaks = watch.peaks
    return Measured(
        contender=name,
        seconds=seconds,
        cpu_seconds=used,
        session_seconds=ready - started,
        warm_up_seconds=begun - ready,
        jvm=peaks.jvm,
        python=peaks.python,
        largest=peaks.largest,
    )


#: As it was for every contender in 0.2.0, and is best for so short a work: a floor does not move
#: with what the audit asks of Java.
OF_FLOORS = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"


@contextmanager
def other_session(name: str, java_options: str) -> Iterator[SparkSession]:
    """Spark as it comes, but for its memory and these options of Java."""
    from pyspark.sql import SparkSession  # noqa: PLC0415 - only where it is used

    os.environ.update(find_java(os.environ))
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[*]").appName(f"bench {name}")
    spark = (
        builder.config("spark.driver.memory", "3g")
        .config("spark.driver.extraJavaOptions", java_options)
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )
    try:
        yield spark
    finally:
        spark.stop()


def measure_contender(name: str, snapshots: Path, output: Path, warm_up: Path | None) -> Measured:
    """Runs the contender in this process; its findings lie in ``output``."""
    contender = BY_NAME[name]
    module = contender.module()

    def work(spark: SparkSession | None) -> None:
        module.run(spark, snapshots, output)

    def warm(spark: SparkSession | None) -> None:
        module.run(spark, warm_up, output.parent / "warm-up" / name)

    measured = measure(
        name,
        work,
        None if warm_up is None else warm,
        uses_spark=contender.uses_spark,
        java_options="" if contender.is_usual else None if contender.finds else OF_FLOORS,
    )
    if contender.finds and hasattr(module, "to_findings"):
        module.to_findings(output)
    return measured


def in_fresh_process(module: str, *arguments: str | Path) -> Measured:
    """What the module prints, run by a process of its own; RuntimeError where it fails."""
    command: Sequence[str] = [sys.executable, "-m", module, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{shlex.join(command)} failed:\n{done.stderr}")
    return Measured(**json.loads(done.stdout.splitlines()[-1]))


def print_measured(measured: Measured) -> None:
    """The line that ``in_fresh_process`` reads."""
    sys.stdout.write(json.dumps(asdict(measured)) + "\n")


def main() -> None:
    """Measures, and prints the line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("contender", choices=BY_NAME)
    parser.add_argument("--snapshots", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--warm-up", type=Path, help="the snapshots of a small fleet")
    args = parser.parse_args()
    print_measured(measure_contender(args.contender, args.snapshots, args.output, args.warm_up))


if __name__ == "__main__":
    main()
