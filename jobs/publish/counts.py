"""The tables that a run has written -> the numbers of its summary."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from jobs.schemas import CLIENT_STATES, GROUP_FAULTS, GROUP_HEALTH, REPORT_TABLES, RUNNING_INFO
from jobs.settings import SEVERITIES
from jobs.storage import Snapshots
from jobs.window import Window

#: Gives a table of the run by its name.
Tables = Callable[[str], ds.Dataset]
#: The column with the reason of the known issue that a finding matches; null: it matches none.
KNOWN_ISSUE = "known_issue"

#: The tables whose findings can be known issues.
_MARKED = [table for table in REPORT_TABLES if KNOWN_ISSUE in table.schema.names]
_STATUSES = ("NEW", "PERSISTING")


def count_findings(written: Tables) -> dict[str, Any]:
    """By graded table how many rows, how many persistent, and of each severity and status.

    ``known`` has the same counts of those that are known issues; they count in the others too. Of
    the faults those count that no finding of a queue shows: the others would count twice.
    """
    counts: dict[str, Any] = {}
    for table in _MARKED:
        names = table.schema.names
        if "severity" in names:
            columns = [name for name in ("severity", "persistence", "status") if name in names]
            counted = ds.field("queues_affected") == 0 if table is GROUP_FAULTS else None
            rows = written(table.name).to_table(columns=[*columns, KNOWN_ISSUE], filter=counted)
            known_issues = rows.filter(pc.is_valid(rows[KNOWN_ISSUE]))
            counts[table.name] = {
                **_count_values(rows, columns),
                "known": _count_values(known_issues, columns),
            }
    return counts


def _count_values(rows: pa.Table, columns: Sequence[str]) -> dict[str, int]:
    values: Counter[str | None] = Counter()
    for name in columns:
        values.update(rows[name].to_pylist())
    named = (*SEVERITIES, *(_STATUSES if "status" in columns else ()))
    return {
        "total": rows.num_rows,
        "persistent": values["PERSISTENT"],
        **{value: values[value] for value in named},
    }


def count_groups(written: Tables, inputs: Snapshots, window: Window) -> dict[str, Any]:
    """``assumptions``: how many audited groups rest on one: ``groups``, and how many on which.

    ``strategy``: nobody saw the strategy of some member (``strategy_source`` is assumed).
    ``subscriptions``: of some member only the group's table shows what it subscribes to
    (``subscription_source`` is GROUP_TABLE). Running infos of all members show both. ``asked``:
    of how many of these groups a member was asked for it, answered or not: to collect them is no
    advice.

    ``rounds``: how the rounds of questions were, in seconds. ``longest_seconds``: the usual round
    of the group whose rounds take longest; ``interval_seconds``: the longest usual time between two
    rounds of a group; ``groups_too_wide``: those whose rounds take longer than a fault has to last.
    """
    health = written(GROUP_HEALTH.name)
    is_audited = ds.field("coverage") == "AUDITED"

    def most(column: str) -> float | None:
        value: float | None = pc.max(health.to_table(columns=[column])[column]).as_py()
        return value

    strategy = _groups(health, is_audited & (ds.field("strategy_source") == "assumed"))
    by_table = is_audited & (ds.field("subscription_source") == "GROUP_TABLE")
    subscriptions = _groups(health, by_table)
    assumed = strategy | subscriptions
    return {
        "assumptions": {
            "groups": len(assumed),
            "asked": len(assumed & _asked(inputs, window)) if assumed else 0,
            "strategy": len(strategy),
            "subscriptions": len(subscriptions),
        },
        "rounds": {
            "longest_seconds": most("round_seconds"),
            "interval_seconds": most("round_interval_seconds"),
            "groups_too_wide": len(_groups(health, ds.field("rounds_too_wide"))),
        },
    }


def _asked(inputs: Snapshots, window: Window) -> set[tuple[str, str]]:
    """(cluster, group) of which a member was asked for its running info."""
    if not inputs.has(CLIENT_STATES.name):
        return set()
    states = inputs.parquet(CLIENT_STATES.name)
    of_window = window.filter_of(CLIENT_STATES, states.schema)
    return _groups(states, of_window & (ds.field("source") == RUNNING_INFO))


def _groups(table: ds.Dataset, condition: ds.Expression) -> set[tuple[str, str]]:
    key = ["cluster", "consumer_group"]
    rows = table.to_table(columns=key, filter=condition).group_by(key).aggregate([])
    return {(row[key[0]], row[key[1]]) for row in rows.to_pylist()}


def count_marked(written: Tables) -> dict[str, dict[str, int]]:
    """By the reason of a known issue how many rows of which tables it marked."""
    marked: dict[str, dict[str, int]] = defaultdict(dict)
    for table in _MARKED:
        reasons = written(table.name).to_table(columns=[KNOWN_ISSUE])[KNOWN_ISSUE].drop_null()
        for reason, rows in Counter(reasons.to_pylist()).items():
            marked[str(reason)][table.name] = rows
    return marked
