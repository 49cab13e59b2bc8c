"""What Spark's event log says of the UDF: ``python -m tests.support.event_log LOGS REPORTS``.

A line for each pandas UDF: its name, the rows that came out of it, summed over the tasks, and the
distinct situations of the reports of that audit. ``LOGS``: the spark.eventLog.dir of one audit.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.support.reports import PublishedReports

_ROWS = "number of output rows"


def rows_of_udfs(logs: Path) -> dict[str, int]:
    """By name of a UDF the rows that came out of all its nodes."""
    names: dict[int, str] = {}
    updates: Counter[int] = Counter()
    for event in _events(logs):
        if plan := event.get("sparkPlanInfo"):
            names |= _accumulators(plan)
        if event["Event"] == "SparkListenerTaskEnd":
            for each in event["Task Info"]["Accumulables"]:
                if each.get("Name") == _ROWS:
                    updates[each["ID"]] += int(each["Update"])
    found: Counter[str] = Counter()
    for number, name in names.items():
        found[name] += updates[number]
    return dict(found)


def situations(reports: Path) -> int:
    """The distinct situations of what was published."""
    rows = PublishedReports(reports).rows("state_runs")
    return len({(row["consumer_group"], row["topic"], row["state_id"]) for row in rows})


def _events(logs: Path) -> Iterator[dict[str, Any]]:
    for path in sorted(logs.rglob("*")):
        if path.is_file() and not path.name.startswith((".", "appstatus")):
            packed = "zstd" if path.suffix == ".zstd" else None
            with pa.input_stream(str(path), compression=packed) as stream:
                yield from map(json.loads, stream.read().splitlines())


def _accumulators(plan: dict[str, Any]) -> dict[int, str]:
    """Of each node of a UDF the accumulator of its rows, and the UDF's name."""
    found = {}
    if plan["nodeName"] == "ArrowEvalPython":
        name = re.sub(r".*?\[(\w+)\(.*", r"\1", plan["simpleString"])
        (number,) = (each["accumulatorId"] for each in plan["metrics"] if each["name"] == _ROWS)
        found[number] = name
    for child in plan["children"]:
        found |= _accumulators(child)
    return found


if __name__ == "__main__":
    of_logs, of_reports = map(Path, sys.argv[1:])
    for udf, rows in rows_of_udfs(of_logs).items():
        sys.stdout.write(f"{udf}: {rows} rows, {situations(of_reports)} situations\n")
