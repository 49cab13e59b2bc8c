"""Whether the findings of a contender are those that are true, row by row.

The audit joins what was wrong with a queue again within half an hour to one episode; no other way
does, nor does the generator. So rows of one queue that are no further apart are compared as one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import timedelta
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

_SCHEMA = pa.schema(
    [
        *[(name, pa.string()) for name in ("consumer_group", "topic", "broker_name", "kind")],
        ("queue_id", pa.int32()),
        ("first_seen", pa.timestamp("us", "UTC")),
        ("last_seen", pa.timestamp("us", "UTC")),
    ]
)
Row = tuple[Any, ...]
#: An episode of the audit has no longer gap (``jobs.judge.times``).
_LONGEST_GAP = timedelta(minutes=30)


def read_findings(folder: Path) -> Counter[Row]:
    """The rows of the Parquet files in a folder, those of one queue joined over short gaps."""
    table = ds.dataset(sorted(folder.glob("*.parquet")), format="parquet").to_table(_SCHEMA.names)
    columns = table.cast(_SCHEMA).to_pydict().values()
    return Counter(_joined(zip(*columns, strict=True)))


def _joined(rows: Iterable[Row]) -> Iterator[Row]:
    """Rows that overlap are left apart: no way may find a queue twice at a time."""
    for queue, of_queue in groupby(sorted(rows), lambda row: row[:-2]):
        times = [row[-2:] for row in of_queue]
        first, last = times[0]
        for next_first, next_last in times[1:]:
            if not last < next_first <= last + _LONGEST_GAP:
                yield *queue, first, last
                first = next_first
            last = next_last
        yield *queue, first, last


def differences(found: Counter[Row], true: Counter[Row], shown: int = 5) -> list[str]:
    """What was found and is not true, and the other way round, in words; nothing where equal."""
    told = []
    for words, rows in (("found, not true", found - true), ("true, not found", true - found)):
        if rows:
            told.append(f"{rows.total():,} {words}:")
            told += [f"  {' '.join(str(value) for value in row)}" for row in sorted(rows)[:shown]]
    return told
