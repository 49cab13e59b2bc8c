"""The run before -> its open findings, by group."""

import logging
from typing import Any

import pyarrow.dataset as ds

from rebalance_core.grouping import grouped

from ..errors import DamagedError
from ..judge.dossier import EarlierFinding
from ..kinds import GRADED_TABLES, QUEUE_FINDINGS
from ..schemas import GROUP_FAULTS, LONG
from ..storage import Published, Reports

_LOGGER = logging.getLogger(__name__)
_TIMES = ("first_seen", "last_seen", "open_since")


def open_findings(
    folder: Reports, previous: Published | None
) -> dict[tuple[str, str], list[EarlierFinding]]:
    """By cluster and group the findings and faults that lasted and were not over in the run before.

    None of them where nothing can be compared: there is no such run, or its tables are gone.
    """
    if previous is None:
        return {}
    rows: dict[tuple[str, str], tuple[tuple[str, str], EarlierFinding]] = {}
    for name in GRADED_TABLES:
        if name not in previous.tables:
            continue
        is_open = (ds.field("persistence") == "PERSISTENT") & ds.field("ongoing")
        try:
            written = folder.dataset(previous, name)
            columns = {each: ds.field(each) for each in written.schema.names}
            instants = {each: columns[each].cast(LONG) for each in _TIMES}
            found = written.to_table(columns={**columns, **instants}, filter=is_open)
        except (DamagedError, OSError) as error:
            _LOGGER.warning("%s: nothing is compared with that run", error)
            return {}
        for row in found.to_pylist():
            finding = _finding(name, row)
            key = (finding.finding_id, finding.kind)
            if key not in rows or rows[key][1].last_seen < finding.last_seen:
                rows[key] = (row["cluster"], row["consumer_group"]), finding
    return grouped(rows.values())


def _finding(table: str, row: dict[str, Any]) -> EarlierFinding:
    """A row as the next run compares it."""
    of_fault = {"kind": row.get("fault"), "broker_name": "", "queue_id": -1}
    of_table = of_fault if table == GROUP_FAULTS.name else {"kind": QUEUE_FINDINGS[table]}
    # A stall and a fault have no causes.
    values = {**row, "causes": tuple(row.get("causes") or ()), **of_table}
    return EarlierFinding(**{name: values[name] for name in EarlierFinding._fields})
