"""Nights of changed lines: dump files, runs over them, and all rows that come of it."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.dataset as ds

from jobs.schemas import SNAPSHOT_TABLES
from tests.fuzz.mutations import changed_line
from tests.support.reports import PublishedReports

_CAPTURES = Path(__file__).parent.parent / "data" / "captures"


@cache
def recorded_nights() -> tuple[tuple[bytes, ...], ...]:
    """The lines of each capture."""
    return tuple(
        tuple(gzip.decompress(path.read_bytes()).splitlines())
        for path in sorted(_CAPTURES.glob("*/dump.jsonl.gz"))
    )


def changed_night(lines: Sequence[bytes], random: Random, share: float) -> list[bytes]:
    """The lines, of which that share has a change; none has a line feed."""
    return [
        changed_line(line, random).replace(b"\n", b" ") if random.random() < share else line
        for line in lines
    ]


def write_dump(lines: Sequence[bytes], folder: Path, random: Random, files: int) -> None:
    """The lines in so many files, plain or compressed, some with a last line that does not end."""
    folder.mkdir(parents=True)
    places = sorted(random.randrange(len(lines) + 1) for _ in range(files - 1))
    for number, (start, end) in enumerate(zip([0, *places], [*places, len(lines)], strict=True)):
        part = list(lines[start:end])
        content = b"".join(line + b"\n" for line in part)
        # An empty line that does not end is no line.
        if part and part[-1] and random.choice((True, False)):
            content = content[:-1]
        name = f"part {number:02}.jsonl"
        if random.choice((True, False)):
            # In several members, as the files of a rotated log that were put together.
            place = random.randrange(len(content) + 1)
            members = gzip.compress(content[:place]) + gzip.compress(content[place:])
            (folder / f"{name}.gz").write_bytes(members)
        else:
            (folder / name).write_bytes(content)


def arguments(dump: Path, output: Path, engine: str) -> list[str]:
    """Those of a run of everything, however much of it is quarantined."""
    return [
        *("run", "--dumps", str(dump), "--output", str(output), "--engine", engine),
        *("--set", "allowed_quarantine_share=1", "--set", "persistence_seconds=60"),
    ]


def run_process(
    dump: Path, output: Path, engine: str, *options: str, environment: Mapping[str, str]
) -> None:
    """Runs the audit in a process of its own, by either engine."""
    done = subprocess.run(
        [sys.executable, "-m", "jobs.cli", *arguments(dump, output, engine), *options],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{done.returncode}:\n{done.stdout}\n{done.stderr}"


def snapshot_rows(output: Path) -> dict[str, list[str]]:
    """By table the rows that ingest wrote, as sorted texts."""
    rows = {}
    for table in SNAPSHOT_TABLES:
        files = sorted(str(path) for path in (output / "snapshots" / table.name).rglob("*.parquet"))
        rows[table.name] = comparable(ds.dataset(files, partitioning=None).to_table().to_pylist())
    return rows


def report_rows(output: Path) -> dict[str, list[str]]:
    """By table the rows that were published, as sorted texts."""
    reports = PublishedReports(output / "reports")
    return {name: reports.comparable(name) for name in reports.published["tables"]}


def comparable(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Rows as texts, sorted."""
    return sorted(json.dumps(row, default=repr, sort_keys=True) for row in rows)
