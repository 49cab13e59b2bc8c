"""The run before -> its open findings, as parts of the dossiers of their groups."""

from __future__ import annotations

import logging
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from jobs.errors import DamagedError
from jobs.finding_ids import fault_id, stall_id
from jobs.judge.dossier import EARLIER
from jobs.kinds import QUEUE_FINDINGS
from jobs.schemas import GROUP_FAULTS, LONG, STALLED_QUEUES, STRING
from jobs.storage import Published, Reports

_LOGGER = logging.getLogger(__name__)
_TABLES = (*QUEUE_FINDINGS, GROUP_FAULTS.name)
_TIMES = ("first_seen", "episode_first_seen", "last_seen", "open_since")

#: Rows of ``dossier.DOSSIER`` with this part alone.
_ROWS = pa.schema(
    [
        pa.field("cluster", STRING),
        pa.field("consumer_group", STRING),
        pa.field("earlier", EARLIER),
    ]
)


def open_findings(folder: Reports, previous: Published | None) -> pa.Table | None:
    """One row per finding or fault that lasted and was not over in the run before; None where there
    is none.

    Whoever removes old tables leaves the pointer: then nothing is compared with that run.
    """
    if previous is None:
        return None
    rows: dict[tuple[str, str], tuple[str, str, dict[str, Any]]] = {}
    for name in _TABLES:
        if name not in previous.tables:
            continue
        is_open = (ds.field("persistence") == "PERSISTENT") & ds.field("ongoing")
        try:
            found = folder.dataset(previous, name).to_table(filter=is_open)
        except (DamagedError, OSError) as error:
            _LOGGER.warning("%s: nothing is compared with that run", error)
            return None
        for row in _in_instants(found).to_pylist():
            part = _part(name, row)
            key = (part["finding_id"], part["kind"])
            if key not in rows or rows[key][2]["last_seen"] < part["last_seen"]:
                rows[key] = (row["cluster"], row["consumer_group"], part)
    return pa.Table.from_pylist(
        [dict(zip(_ROWS.names, each, strict=True)) for each in rows.values()], schema=_ROWS
    )


def _in_instants(found: pa.Table) -> pa.Table:
    for column in _TIMES:
        place = found.schema.get_field_index(column)
        if place >= 0:
            instants = found[column].cast(pa.timestamp("us", "UTC")).cast(LONG)
            found = found.set_column(place, column, instants)
    return found


def _part(table: str, row: dict[str, Any]) -> dict[str, Any]:
    """A row as ``EARLIER`` has it; stalls and faults of earlier versions have no id yet."""
    part = {field.name: row.get(field.name) for field in EARLIER}
    part["first_seen"] = row.get("episode_first_seen") or row["first_seen"]
    group = row["cluster"], row["consumer_group"], row["topic"]
    if table == GROUP_FAULTS.name:
        made = fault_id(*group, row["fault"], row["client_ids"])
        return part | {
            "kind": row["fault"],
            "finding_id": row.get("finding_id") or made,
            "broker_name": "",
            "queue_id": -1,
        }
    part["kind"] = QUEUE_FINDINGS[table]
    if table == STALLED_QUEUES.name and not part["finding_id"]:
        part["finding_id"] = stall_id(*group, row["broker_name"], row["queue_id"])
    return part
