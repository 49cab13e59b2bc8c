"""The runs before -> by group what was open in the last one, and what was over in it."""

import logging
from typing import Any, TypeAlias

from rebalance_core.grouping import grouped

from ..declared.dossier import EarlierFinding
from ..declared.instants import Instant
from ..declared.kinds import GRADED_TABLES, NOT_AUDITED, QUEUE_FINDINGS
from ..errors import DamagedError
from ..reports.tables import PLACE, place_of
from ..schemas import FORMER_FINDINGS, GROUP_FAULTS, PROBLEMS
from ..storage import PublishedRun, ReportHistory

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
_COUNTED = {"standing": "COUNTED"}
_KEY = ("cluster", "consumer_group", "topic", "kind")
#: Values of the rows of findings that are open.
_OPEN = {"persistence": "PERSISTENT", "ongoing": True}


def open_findings(
    history: ReportHistory, previous: PublishedRun | None, nights: int = NIGHTS
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
        rows = _lasting(history, previous)
        ids, topics = _not_audited(history, previous)
    except (DamagedError, OSError) as error:
        _LOGGER.warning("%s: nothing is compared with that run", error)
        return {}
    if ids:
        before = open_findings(history, history.before(previous.date), nights - 1)
        for group, of_group in before.items():
            for earlier in of_group:
                is_fault = earlier.kind not in QUEUE_FINDINGS.values()
                if earlier.finding_id in ids or (is_fault and (*group, earlier.topic) in topics):
                    rows.setdefault((earlier.finding_id, earlier.kind), (group, earlier))
    return grouped(rows.values())


def ended_problems(history: ReportHistory, previous: PublishedRun | None) -> EndedProblems:
    """The problems that counted in one of the ``NIGHTS`` published dates before the run before, and
    not in that: by group, topic and kind when each was last seen.
    """
    ended: EndedProblems = {}
    there: set[tuple[str, ...]] = set()
    run = previous
    for _ in range(NIGHTS + 1):
        if run is None:
            break
        try:
            rows = history.rows(run, PROBLEMS.name, _COUNTED, [*_KEY, "last_seen"])
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
        run = history.before(run.date)
    return ended


def _lasting(history: ReportHistory, previous: PublishedRun) -> _EarlierRows:
    """The lasting findings in the tables of a run."""
    rows: _EarlierRows = {}
    for name in GRADED_TABLES:
        for row in history.rows(previous, name, _OPEN):
            finding = _finding(name, row)
            key = (finding.finding_id, finding.kind)
            if key not in rows or rows[key][1].last_seen < finding.last_seen:
                rows[key] = (row["cluster"], row["consumer_group"]), finding
    return rows


def _not_audited(
    history: ReportHistory, previous: PublishedRun
) -> tuple[set[str], set[tuple[str, ...]]]:
    """The ids of findings and the topics that a run found open before it and did not audit."""
    columns = [*PLACE, "finding_id"]
    left = history.rows(previous, FORMER_FINDINGS.name, {"status": NOT_AUDITED}, columns)
    return {row["finding_id"] for row in left}, {place_of(row) for row in left}


def _finding(table: str, row: dict[str, Any]) -> EarlierFinding:
    """A row as the next run compares it."""
    of_fault = {"kind": row.get("fault"), "broker_name": "", "queue_id": -1}
    of_table = of_fault if table == GROUP_FAULTS.name else {"kind": QUEUE_FINDINGS[table]}
    # A stall and a fault have no causes.
    values = {**row, "causes": tuple(row.get("causes") or ()), **of_table}
    return EarlierFinding(**{name: values[name] for name in EarlierFinding._fields})
