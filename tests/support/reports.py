"""Published reports as plain rows, read as a user's own script would read them."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from jobs.storage.manifest import sealed, unsealed

Row = dict[str, Any]


def last_pointer(folder: Path, name: str) -> Path:
    """The pointer of the run that counts, below a folder of reports or snapshot tables."""
    return max((folder / "_published").glob(f"{name}.*.json"))


def edit_pointer(pointer: Path, change: Callable[[Row], object]) -> None:
    """Changes what a pointer says, as a run would have written it."""
    values = unsealed(pointer.read_text())
    change(values)
    pointer.write_text(sealed(values))


class PublishedReports:
    """The published run of a date under a folder, or that of the last one."""

    def __init__(self, reports: Path, date: str = "*") -> None:
        self.reports = reports
        self.pointer = last_pointer(reports, f"dt={date}")
        self.published = json.loads(self.pointer.read_text())

    @property
    def summary(self) -> Row:
        return self.published["summary"]

    def rows(self, table: str) -> list[Row]:
        folder = (
            self.reports
            / table
            / f"dt={self.published['date']}"
            / f"run={self.published['run_id']}"
        )
        return [
            row
            for path in sorted(folder.glob("*.parquet"))
            for row in pq.read_table(path, partitioning=None).to_pylist()
        ]

    def at(self, table: str, group: str, topic: str, time: datetime) -> list[Row]:
        """The rows of a group and topic whose run of snapshots holds the time."""
        return [
            row
            for row in self.rows(table)
            if row["consumer_group"] == group
            and row["topic"] == topic
            and row["first_seen"] <= time <= row["last_seen"]
        ]

    def comparable(
        self, table: str, groups: set[str] | None = None, without: str = "run_id"
    ) -> list[str]:
        """The rows (of some groups) as sorted texts, for comparing two runs, without their ids and
        another column.
        """
        return sorted(
            json.dumps({**row, "run_id": "", without: ""}, default=str, sort_keys=True)
            for row in self.rows(table)
            if groups is None or row.get("consumer_group") in groups
        )
