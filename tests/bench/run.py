"""The audit against its floors, and against what one would write instead.

    python -m tests.bench.run --largest M --json build/bench/comparison.json

Rounds alternate: every contender once, then every contender again, so that a machine that is busy
for a while is so for all. Every run is a fresh process (``measured.py``); medians are told. After
every run its findings are compared with what is true of the fleet: a difference fails the bench.
The audit is the only one that also gives causes, certainties, allocations and reassignments.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import shutil
import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

from tests.bench.contenders import BY_NAME, CONTENDERS
from tests.bench.findings import differences, read_findings
from tests.bench.fleets import TARGET, Tables, ensure_ids, ensure_size
from tests.bench.measured import Measured, in_fresh_process

SIZES = ("S", "M", "L", "XL")
FLOORS = ("floor_read", "floor_write")
#: Each contender runs once on these, whatever the rounds.
LONG = ("L", "XL")


@dataclass(frozen=True)
class Result:
    """The median of a contender's runs over one size."""

    contender: str
    size: str
    heartbeats: int
    runs: int
    seconds: float
    cpu_seconds: float
    session_seconds: float
    warm_up_seconds: float
    jvm: float
    python: float
    largest: float


def run_once(name: str, tables: Tables, folder: Path, output: Path) -> Measured:
    """One fresh process; what it found lies in the folder of its name in ``output``.

    Spark is warmed up by S, which lies in ``folder``: a fleet of seconds would warm up too little.
    What does without Spark is not warmed up.
    """
    shutil.rmtree(output / name, ignore_errors=True)
    arguments: list[str | Path] = [name, "--snapshots", _read_by(name, tables)]
    arguments += ["--output", output / name]
    if BY_NAME[name].uses_spark:
        arguments += ["--warm-up", _read_by(name, ensure_size(folder, "plain", "S"))]
    return in_fresh_process("tests.bench.measured", *arguments)


def _read_by(name: str, tables: Tables) -> Path:
    return ensure_ids(tables).with_ids if BY_NAME[name].has_ids else tables.snapshots


def check(name: str, tables: Tables, output: Path) -> None:
    """RuntimeError where the contender did not find just what is true."""
    if BY_NAME[name].finds:
        found = read_findings(output / name / "findings")
        told = differences(found, read_findings(tables.true_findings))
        if told:
            raise RuntimeError("\n".join([f"{name} on {tables.folder.name}:", *told]))


def median(runs: Sequence[Measured], size: str, heartbeats: int) -> Result:
    """Each number's own median."""
    numbers: tuple[str, ...] = ("seconds", "cpu_seconds", "session_seconds", "warm_up_seconds")
    numbers += ("jvm", "python", "largest")
    return Result(
        runs[0].contender,
        size,
        heartbeats,
        len(runs),
        *[statistics.median(getattr(run, name) for run in runs) for name in numbers],
    )


def contenders_on(size: str, names: Sequence[str]) -> list[str]:
    """Those of them that run on a size."""
    return [name for name in names if size != "XL" or BY_NAME[name].on_xl]


def compare(folder: Path, size: str, contenders: Sequence[str], rounds: int) -> list[Result]:
    """Some contenders on one size, alternating."""
    tables = ensure_size(folder, "plain", size)
    output = folder / f"output-{size}"
    runs: dict[str, list[Measured]] = {}
    for _ in range(rounds):
        for name in contenders:
            measured = run_once(name, tables, folder, output)
            check(name, tables, output)
            runs.setdefault(name, []).append(measured)
            say(f"{size} {name}: {measured.seconds:.1f} s, CPU {measured.cpu_seconds:.1f} s")
    return [median(each, size, tables.heartbeats()) for each in runs.values()]


def say(text: str) -> None:
    """To standard error: standard output has the table alone."""
    sys.stderr.write(f"bench: {text}\n")
    sys.stderr.flush()


def machine() -> dict[str, str]:
    """What the numbers were measured on."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    java = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False)
    return {
        "cores": str(len(os.sched_getaffinity(0))),
        "memory": f"{memory:.0f} GiB",
        "Python": platform.python_version(),
        "Java": java.stderr.splitlines()[0].split('"')[1],
        **{name: version(name) for name in ("pyspark", "polars", "duckdb")},
    }


def table_of(results: Sequence[Result], size: str) -> list[str]:
    """The results of one size as a Markdown table, ratios first.

    The unit is what reading the input and writing the output costs: both floors together; where
    they were not measured, the first contender.
    """
    of_size = [result for result in results if result.size == size]
    floors = [each for each in of_size if each.contender in FLOORS]
    unit = floors if len(floors) == len(FLOORS) else of_size[:1]
    seconds = sum(each.seconds for each in unit)
    cpu_seconds = sum(each.cpu_seconds for each in unit)
    name = "both floors" if unit is floors else BY_NAME[unit[0].contender].title
    lines = [
        f"{size}: {of_size[0].heartbeats:,} heartbeats; {name}: {seconds:.2f} s, "
        f"CPU {cpu_seconds:.2f} s",
        "",
        f"| | CPU, {name} = 1 | time | CPU s | s | heartbeats/s | JVM MiB | all Python MiB "
        "| runs |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for result in of_size:
        cells = [
            BY_NAME[result.contender].title,
            f"{result.cpu_seconds / cpu_seconds:.2f}",
            f"{result.seconds / seconds:.2f}",
            f"{result.cpu_seconds:.1f}",
            f"{result.seconds:.2f}",
            f"{result.heartbeats / result.seconds:,.0f}",
            f"{result.jvm:,.0f}" if result.jvm else "-",
            f"{result.python:,.0f}",
            str(result.runs),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def extrapolation(results: Sequence[Result]) -> str:
    """How long the target fleet would take, on the line through the two largest sizes."""
    audits = [result for result in results if result.contender == "audit"][-2:]
    if len(audits) < 2:
        return ""
    small, large = audits
    per_row = (large.seconds - small.seconds) / (large.heartbeats - small.heartbeats)
    seconds = large.seconds + per_row * (TARGET.heartbeats - large.heartbeats)
    return (
        f"{TARGET.heartbeats:,} heartbeats ({TARGET.groups:,} groups, {TARGET.rounds:,} rounds) "
        f"would take {seconds / 60:.0f} minutes, on the line through {small.size} and {large.size} "
        f"({per_row * 1e6:.2f} s per million heartbeats)"
    )


def main() -> None:
    """Measures, prints the tables, writes the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--largest", choices=SIZES, default="M")
    parser.add_argument("--smallest", choices=SIZES, default="S")
    parser.add_argument("--rounds", type=int, default=3, help="on L and XL: once")
    parser.add_argument("--only", help="these contenders, separated by commas")
    parser.add_argument("--folder", type=Path, default=Path("build/bench"))
    parser.add_argument("--json", type=Path, default=Path("build/bench/comparison.json"))
    args = parser.parse_args()
    names = args.only.split(",") if args.only else [each.name for each in CONTENDERS]
    results: list[Result] = []
    lines = [
        f"`{shlex.join(['python', '-m', 'tests.bench.run', *sys.argv[1:]])}` on "
        + ", ".join(f"{name} {value}" for name, value in machine().items()),
        "",
    ]
    for size in SIZES[SIZES.index(args.smallest) : SIZES.index(args.largest) + 1]:
        on_size = contenders_on(size, names)
        if not on_size:
            continue
        results += compare(args.folder, size, on_size, 1 if size in LONG else args.rounds)
        lines += [*table_of(results, size), ""]
    lines.append(extrapolation(results))
    args.json.parent.mkdir(parents=True, exist_ok=True)
    told = {"machine": machine(), "results": [asdict(result) for result in results]}
    args.json.write_text(json.dumps(told, indent=2) + "\n")
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
