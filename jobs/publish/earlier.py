"""The runs before -> by group what was open in the last one, and what was over in it."""

import logging
from collections.abc import Sequence
from typing import Any, TypeAlias

import pyarrow.dataset as ds

from rebalance_core.grouping import grouped

from ..declared.instants import Instant
from ..declared.kinds import GRADED_TABLES, NOT_AUDITED, QUEUE_FINDINGS
from ..errors import DamagedError
from ..judge.dossier import EarlierFinding
from ..reports.tables import PLACE, place_of
from ..schemas import FORMER_FINDINGS, GROUP_FAULTS, LONG, PROBLEMS
from ..storage import PublishedRun, Reports

_LOGGER = logging.getLogger(__name__)

#: After so many published dates in which nobody looked, what was open is forgotten: the group may
#: be gone for good.
NIGHTS = 7

#: Open findings by cluster and group.
OpenFindings: TypeAlias = dict[tuple[str, str], list[EarlierFinding]]
#: Findings by id and kind, with the group of each.
_EarlierRows: TypeAlias = dict[tuple[str, str], tuple[tuple[str, str], EarlierFinding]]

#: The last times that problems were seen which were over in the run before, by group, topic and
#: kind.
EndedProblems: TypeAlias = dict[tuple[str, str], dict[tuple[str, str], Instant]]
_KEY = ("cluster", "consumer_group", "topic", "kind")
_TIMES = {"first_seen", "last_seen", "open_since"}


def open_findings(
    folder: Reports, previous: PublishedRun | None, nights: int = NIGHTS
) -> OpenFindings:
    """Findings and faults of each group that lasted and were not over in the run before.

    Topics that it did not audit are as the run before it left them, and so on for ``nights``
    published dates: a night in which nobody looked neither ends what was open nor makes it new. A
    fault goes on with the queues of its topic, or is itself among what was not audited.

    None of them where nothing can be compared: there is no such run, or its tables are gone.
    """
    if previous is None or not nights:
        return {}
    try:
        rows = _lasting(folder, previous)
        ids, topics = _not_audited(folder, previous)
    except (DamagedError, OSError) as error:
        _LOGGER.warning("%s: nothing is compared with that run", error)
        return {}
    if ids:
        before = open_findings(folder, folder.before(previous.date), nights - 1)
        for group, of_group in before.items():
            for each in of_group:
                is_fault = each.kind not in QUEUE_FINDINGS.values()
                if each.finding_id in ids or (is_fault and (*group, each.topic) in topics):
                    rows.setdefault((each.finding_id, each.kind), (group, each))
    return grouped(rows.values())


def ended_problems(folder: Reports, previous: PublishedRun | None) -> EndedProblems:
    """The problems that counted in one of the ``NIGHTS`` published dates before the run before, and
    not in that: by group, topic and kind when each was last seen.
    """
    ended: EndedProblems = {}
    there: set[tuple[str, ...]] = set()
    run, is_counted = previous, ds.field("standing") == "COUNTED"
    for _ in range(NIGHTS + 1):
        if run is None:
            break
        try:
            rows = _rows_of(folder, run, PROBLEMS.name, is_counted, [*_KEY, "last_seen"])
        except (DamagedError, OSError) as error:
            _LOGGER.warning("%s: nothing is known to have returned since", error)
            break
        for row in rows:
            key = tuple(row[name] for name in _KEY)
            if run is previous:
                there.add(key)
            elif key not in there:
                cluster, group, topic, kind = key
                ended.setdefault((cluster, group), {}).setdefault((topic, kind), row["last_seen"])
        run = folder.before(run.date)
    return ended


def _rows_of(
    folder: Reports,
    run: PublishedRun,
    name: str,
    filter_: ds.Expression,
    columns: Sequence[str] | None = None,
) -> list[dict[str, Any]]:
    """The rows of a table of a run, with some of its columns or all; times as Instants."""
    if name not in run.tables:
        return []
    written = folder.dataset(run, name)
    shown = {each: ds.field(each) for each in columns or written.schema.names}
    shown |= {each: shown[each].cast(LONG) for each in shown.keys() & _TIMES}
    rows: list[dict[str, Any]] = written.to_table(columns=shown, filter=filter_).to_pylist()
    return rows


def _lasting(folder: Reports, previous: PublishedRun) -> _EarlierRows:
    """The lasting findings in the tables of a run."""
    rows: _EarlierRows = {}
    is_open = (ds.field("persistence") == "PERSISTENT") & ds.field("ongoing")
    for name in GRADED_TABLES:
        for row in _rows_of(folder, previous, name, is_open):
            finding = _finding(name, row)
            key = (finding.finding_id, finding.kind)
            if key not in rows or rows[key][1].last_seen < finding.last_seen:
                rows[key] = (row["cluster"], row["consumer_group"]), finding
    return rows


def _not_audited(folder: Reports, previous: PublishedRun) -> tuple[set[str], set[tuple[str, ...]]]:
    """The ids of findings and the topics that a run found open before it and did not audit."""
    is_left = ds.field("status") == NOT_AUDITED
    left = _rows_of(folder, previous, FORMER_FINDINGS.name, is_left, [*PLACE, "finding_id"])
    return {row["finding_id"] for row in left}, {place_of(row) for row in left}


def _finding(table: str, row: dict[str, Any]) -> EarlierFinding:
    """A row as the next run compares it."""
    of_fault = {"kind": row.get("fault"), "broker_name": "", "queue_id": -1}
    of_table = of_fault if table == GROUP_FAULTS.name else {"kind": QUEUE_FINDINGS[table]}
    # A stall and a fault have no causes.
    values = {**row, "causes": tuple(row.get("causes") or ()), **of_table}
    return EarlierFinding(**{name: values[name] for name in EarlierFinding._fields})
