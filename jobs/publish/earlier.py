"""The run before -> its open findings, as parts of the dossiers of their groups."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from jobs.judge.dossier import EARLIER
from jobs.schemas import DUPLICATE_QUEUES, LONG, ORPHANED_QUEUES, STRING
from jobs.storage import Published, Reports

_KINDS = {ORPHANED_QUEUES.name: "ORPHANED", DUPLICATE_QUEUES.name: "DUPLICATE"}

#: Rows of ``dossier.DOSSIER`` with this part alone.
_ROWS = pa.schema(
    [
        pa.field("cluster", STRING),
        pa.field("consumer_group", STRING),
        pa.field("earlier", EARLIER),
    ]
)


def open_findings(folder: Reports, previous: Published | None) -> pa.Table | None:
    """One row per finding that lasted and was not over in the run before; None where there is none.

    Whoever clears old tables away leaves the pointer: then nothing is known of that run.
    """
    if previous is None:
        return None
    rows: dict[tuple[str, str], tuple[str, str, dict[str, Any]]] = {}
    for name, kind in _KINDS.items():
        location = folder.table(name, previous.date, previous.run_id)
        if not location.files():
            return None
        is_open = (ds.field("persistence") == "PERSISTENT") & ds.field("ongoing")
        found = location.parquet().to_table(filter=is_open)
        for column in ("episode_first_seen", "last_seen"):
            place = found.schema.get_field_index(column)
            instants = found[column].cast(pa.timestamp("us", "UTC")).cast(LONG)
            found = found.set_column(place, column, instants)
        for row in found.to_pylist():
            key = (row["finding_id"], kind)
            if key not in rows or rows[key][2]["last_seen"] < row["last_seen"]:
                part = {field.name: row.get(field.name) for field in EARLIER}
                part |= {"kind": kind, "first_seen": row["episode_first_seen"]}
                rows[key] = (row["cluster"], row["consumer_group"], part)
    return pa.Table.from_pylist(
        [dict(zip(_ROWS.names, each, strict=True)) for each in rows.values()], schema=_ROWS
    )
