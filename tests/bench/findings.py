"""Whether the findings of a contender are those that are true, row by row."""

from __future__ import annotations

from collections import Counter
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


def read_findings(folder: Path) -> Counter[Row]:
    """Every row of the Parquet files in a folder, and how often it stands there."""
    table = ds.dataset(sorted(folder.glob("*.parquet")), format="parquet").to_table(_SCHEMA.names)
    columns = table.cast(_SCHEMA).to_pydict().values()
    return Counter(zip(*columns, strict=True))


def differences(found: Counter[Row], true: Counter[Row], shown: int = 5) -> list[str]:
    """What was found and is not true, and the other way round, in words; nothing where equal."""
    told = []
    for words, rows in (("found, not true", found - true), ("true, not found", true - found)):
        if rows:
            told.append(f"{rows.total():,} {words}:")
            told += [f"  {' '.join(str(value) for value in row)}" for row in sorted(rows)[:shown]]
    return told
