"""How the audit's cost grows: with the rounds, the churn, the groups, and the members of a group.

    python -m tests.bench.curves --runs 3

One thing changes at a time; every run is a fresh process, and the runs alternate. The fleets have
no faults: those would be changes too. CPU seconds are told as well: they say more than the clock on
a machine that does other things. The fixed cost of a run (plans, small tables) is in all points.
The JSON keeps the curves that were measured before and are not measured now.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from tests.bench.fleets import ensure, plain
from tests.bench.measured import Measured
from tests.bench.run import Result, median, run_once, say
from tests.support.fleet import Fleet

#: The members times groups times rounds of the last stay the same; so does the number of queues
#: that a member has, about two and a half.
CURVES = {
    "rounds": {
        str(rounds): Fleet(groups=10, rounds=rounds, faulty=0) for rounds in (1, 10, 100, 1000)
    },
    "churn": {
        f"{churn:.1%}": Fleet(groups=30, rounds=300, churn=churn, faulty=0)
        for churn in (0.001, 0.01, 0.1, 1.0)
    },
    "groups": {
        str(groups): Fleet(groups=groups, rounds=100, faulty=0) for groups in (10, 30, 100, 300)
    },
    "members": {
        str(members): Fleet(
            groups=10_000 // members,
            rounds=12,
            members=members,
            queues_per_broker=members * 4 // 5,
            faulty=0,
        )
        for members in (10, 100, 1000, 10_000)
    },
}
#: The point that the others are told against.
BASE = {"rounds": "100", "churn": "1.0%", "groups": "100", "members": "10"}

AUDITS = ("audit", "audit_ids", "driver", "driver_ids")


def measure(
    folder: Path, contender: str, curves: Sequence[str], runs: int
) -> dict[str, dict[str, Result]]:
    """The medians of each point of some curves."""
    points = [(curve, point) for curve in curves for point in CURVES[curve]]
    measured: dict[tuple[str, str], list[Measured]] = {point: [] for point in points}
    for _ in range(runs):
        for curve, point in points:
            tables = ensure(folder, f"{curve}-{point}", plain(CURVES[curve][point]))
            run = run_once(contender, tables, folder, folder / "output-curves")
            measured[curve, point].append(run)
            say(f"{curve} {point}: {run.seconds:.1f} s, CPU {run.cpu_seconds:.1f} s")
    results: dict[str, dict[str, Result]] = {curve: {} for curve in curves}
    for curve, point in points:
        rows = ensure(folder, f"{curve}-{point}", plain(CURVES[curve][point])).heartbeats()
        results[curve][point] = median(measured[curve, point], point, rows)
    return results


def read(path: Path) -> dict[str, dict[str, Result]]:
    """What was measured before."""
    if not path.exists():
        return {}
    curves = json.loads(path.read_text())
    return {c: {p: Result(**each) for p, each in points.items()} for c, points in curves.items()}


def table_of(curve: str, results: dict[str, Result]) -> list[str]:
    """One curve as a Markdown table, ratios first."""
    base = results[BASE[curve]]
    lines = [
        f"| {curve} | time, {BASE[curve]} = 1 | CPU | s | CPU s | heartbeats | JVM MiB "
        "| all Python MiB |",
        "|---|---|---|---|---|---|---|---|",
    ]
    return lines + [
        f"| {point} | {each.seconds / base.seconds:.2f} | "
        f"{each.cpu_seconds / base.cpu_seconds:.2f} | {each.seconds:.2f} | "
        f"{each.cpu_seconds:.1f} | {each.heartbeats:,} | {each.jvm:,.0f} | {each.python:,.0f} |"
        for point, each in results.items()
    ]


def main() -> None:
    """Measures, prints a table for each curve, writes the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--contender", choices=AUDITS, default="audit")
    parser.add_argument("--only", choices=CURVES, nargs="+", default=list(CURVES))
    parser.add_argument("--folder", type=Path, default=Path("build/bench"))
    parser.add_argument("--json", type=Path, help="by default curves-CONTENDER.json there")
    args = parser.parse_args()
    path: Path = args.json or args.folder / f"curves-{args.contender}.json"
    results = read(path) | measure(args.folder, args.contender, args.only, args.runs)
    lines = []
    for curve in args.only:
        lines += [*table_of(curve, results[curve]), ""]
    told = {c: {p: asdict(each) for p, each in points.items()} for c, points in results.items()}
    path.write_text(json.dumps(told, indent=2) + "\n")
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
