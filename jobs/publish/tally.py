"""The rows of a run on their way to its files -> the numbers of its summary."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.dataset as ds

from rebalance_core.findings import AUDITED
from rebalance_core.state import GROUP_TABLE

from ..config.choices import SEVERITIES
from ..declared.coverage import was_audited
from ..declared.kinds import (
    EVENT_KINDS,
    GRADED_TABLES,
    INFO,
    LEVELS,
    NOT_AUDITED,
    OK,
    PERSISTENT,
    worst,
)
from ..languages.translated_rows import TEXTS
from ..reports.tables import PLACE, Tables
from ..schemas import (
    ALLOCATION_DRIFT,
    EVENTS,
    FORMER_FINDINGS,
    GROUP_FAULTS,
    GROUP_HEALTH,
    PROBLEMS,
    REPORT_TABLES,
    UNAUDITED,
)

CountedRow = dict[str, Any]
#: A cluster, and a consumer group of it.
GroupKey: TypeAlias = tuple[str, str]

#: The tables whose findings can be known issues.
_MARKED = [table.name for table in REPORT_TABLES if "known_issue" in table.schema.names]
_STATUSES = ("NEW", "PERSISTING")
_OF_GROUPS = ["strategy_source", "subscription_source", "rounds_too_wide"]
_SECONDS = ["round_seconds", "round_interval_seconds"]
#: A summary has so many groups at most, the worst ones.
MOST_GROUPS = 1_000

_GRADES = ("severity", "persistence", "status", "known_issue")
_DRIFT = (*PLACE, "drift", "persistence", "attributed_to")
#: The tables of which rows that are alike in these columns are counted: there may be a million.
_COUNTED: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(GRADED_TABLES, _GRADES),
    GROUP_FAULTS.name: (*_GRADES, "is_finding"),
    "unreadable_queues": PLACE,
    ALLOCATION_DRIFT.name: _DRIFT,
    EVENTS.name: ("kind",),
}
#: The tables of which these columns are kept.
_KEPT: Mapping[str, Sequence[str]] = {
    PROBLEMS.name: [
        each
        for each in PROBLEMS.schema.names
        if each not in ("faults", "remedy", "backlog_over_time", TEXTS)
    ],
    GROUP_HEALTH.name: (
        *(*PLACE, "coverage", "reason", "known_issue", *_OF_GROUPS, *_SECONDS, *UNAUDITED, TEXTS),
    ),
    FORMER_FINDINGS.name: (*PLACE, "status", "severity"),
    "stacked_client_ids": (*PLACE[:2], "topics", "verdict", "persistence", "known_issue"),
}


class Tally(Tables):
    """The columns of the rows that went to the files of which a summary and a verdict are made.

    Of tables that may be long the distinct rows, with their number.
    """

    def __init__(self) -> None:
        super().__init__(self._kept)
        self._rows: dict[str, list[pa.Table]] = defaultdict(list)

    def add(self, name: str, rows: pa.Table) -> None:
        """Takes rows of a table, as they are written."""
        if name in _COUNTED:
            columns = list(_COUNTED[name])
            alike = rows.select(columns).group_by(columns, use_threads=False)
            self._rows[name].append(alike.aggregate([([], "count_all")]))
        elif name in _KEPT:
            self._rows[name].append(rows.select(list(_KEPT[name])))

    def _kept(self, name: str) -> Any:
        return ds.dataset(pa.concat_tables(self._rows[name])) if self._rows[name] else None

    def counted(self, name: str) -> Iterator[CountedRow]:
        """The distinct rows of a table, each with its number as ``rows``."""
        for rows in self._rows[name]:
            for row in rows.to_pylist():
                yield {**row, "rows": row.get("count_all", 1)}

    def findings(self) -> dict[str, Any]:
        """The number of rows of each graded table: in all, persistent, and by severity and status.

        Faults count only if no finding of a queue shows them: the others would count twice.
        ``known`` has the same of those that are known issues; they count in the others too.
        """
        found = {}
        for name in GRADED_TABLES:
            rows = [row for row in self.counted(name) if row.get("is_finding", True)]
            known = [row for row in rows if row["known_issue"] is not None]
            found[name] = {**_grades(rows), "known": _grades(known)}
        return found

    def groups(self, asked: Collection[GroupKey]) -> dict[str, Any]:
        """``assumptions``: how many audited groups rest on one: ``groups``, and how many on which.

        ``strategy``: nobody saw the strategy of some member (``strategy_source`` is assumed).
        ``subscriptions``: of some member only the group's table shows what it subscribes to
        (``subscription_source`` is GROUP_TABLE). Running infos of all members show both.
        ``asked``: of how many of these groups a member was asked for it, answered or not: to
        collect them is no advice.

        ``rounds``: how the rounds of questions were, in seconds. ``longest_seconds``: the usual
        round of the group whose rounds take longest; ``interval_seconds``: the longest usual time
        between two rounds of a group; ``groups_too_wide``: those whose rounds take longer than a
        fault has to last.
        """
        columns = ["cluster", "consumer_group", "coverage", *_OF_GROUPS, *_SECONDS]
        rows = self.read(GROUP_HEALTH.name, columns).to_pylist()
        audited = [row for row in rows if row["coverage"] == AUDITED]

        def groups(rows: Sequence[CountedRow], column: str, value: object) -> set[GroupKey]:
            return {(row["cluster"], row["consumer_group"]) for row in rows if row[column] == value}

        strategy = groups(audited, "strategy_source", "assumed")
        subscriptions = groups(audited, "subscription_source", GROUP_TABLE)
        assumed = strategy | subscriptions
        longest, interval = (
            max((row[name] for row in rows if row[name] is not None), default=None)
            for name in _SECONDS
        )
        return {
            "assumptions": {
                "groups": len(assumed),
                "asked": len(assumed.intersection(asked)),
                "strategy": len(strategy),
                "subscriptions": len(subscriptions),
            },
            "rounds": {
                "longest_seconds": longest,
                "interval_seconds": interval,
                "groups_too_wide": len(groups(rows, "rounds_too_wide", True)),
            },
        }

    def events(self) -> dict[str, Any]:
        """The number of events: in all, and of each kind that there is."""
        kinds: Counter[str] = Counter()
        for row in self.counted(EVENTS.name):
            kinds[row["kind"]] += row["rows"]
        in_order = {kind: kinds[kind] for kind in EVENT_KINDS if kinds[kind]}
        return {"total": kinds.total(), "kinds": in_order}

    def marked(self) -> dict[str, dict[str, int]]:
        """The number of rows of each table that the reason of a known issue marked."""
        found: dict[str, dict[str, int]] = defaultdict(dict)
        for name in _MARKED:
            reasons: Counter[str] = Counter()
            for row in self.counted(name):
                if row["known_issue"] is not None:
                    reasons[row["known_issue"]] += row["rows"]
            for reason, rows in reasons.items():
                found[reason][name] = rows
        return found

    def levels(self) -> dict[str, Any]:
        """``clusters``: by cluster and group its level, and how many findings give it that level.

        So whoever draws thirty nights reads thirty summaries and no table.

        WARNING or CRITICAL: the worst of what lasts and is not a known issue. NOT_AUDITED: some
        topic of it was not judged (``coverage.was_audited``) and is not a known issue. INFO:
        something passed, is too new to count, or is a known issue. OK: nothing was found.
        ``known``: the worst that known issues explain, where there is any. ``left_open``: the worst
        of what was open before and nobody looked for, where there is any. ``left_out``: groups that
        are not named, for there are more than ``MOST_GROUPS``.
        """
        levels: dict[GroupKey, list[tuple[str, int]]] = defaultdict(list)
        beside: dict[GroupKey, dict[str, str]] = defaultdict(dict)

        def worse(group: GroupKey, name: str, severity: str) -> None:
            beside[group][name] = worst([severity, beside[group].get(name, INFO)])

        for row in self.counted(PROBLEMS.name):
            is_counted = row["standing"] == "COUNTED"
            level = row["worst_severity"] if is_counted else INFO
            levels[_group(row)].append((level, row["worst_findings"]))
            if row["standing"] == "KNOWN":
                worse(_group(row), "known", row["severity"])
        for row in self.counted(GROUP_HEALTH.name):
            is_audited = was_audited(row) or row["known_issue"] is not None
            levels[_group(row)].append((OK if is_audited else NOT_AUDITED, 0))
        for row in self.counted(FORMER_FINDINGS.name):
            if row["status"] == NOT_AUDITED:
                levels[_group(row)].append((NOT_AUDITED, 0))
                worse(_group(row), "left_open", row["severity"])
        found: dict[GroupKey, dict[str, Any]] = {}
        for group, every in levels.items():
            level = max((each for each, _ in every), key=LEVELS.index)
            findings = sum(number for each, number in every if each == level)
            found[group] = {"level": level, "findings": findings, **beside.get(group, {})}

        def rank(group: GroupKey) -> tuple[int, int, GroupKey]:
            return -LEVELS.index(found[group]["level"]), -found[group]["findings"], group

        in_order = sorted(found, key=rank)
        clusters: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
        for key in in_order[:MOST_GROUPS]:
            cluster, name = key
            clusters[cluster][name] = found[key]
        return {"clusters": dict(clusters), "left_out": len(in_order[MOST_GROUPS:])}


def _group(row: CountedRow) -> GroupKey:
    return row["cluster"], row["consumer_group"]


def _grades(rows: Sequence[CountedRow]) -> dict[str, int]:
    values: Counter[str | None] = Counter()
    for row in rows:
        for value in ("total", row["severity"], row["persistence"], row["status"]):
            values[value] += row["rows"]
    named = {value: values[value] for value in (*SEVERITIES, *_STATUSES)}
    return {"total": values["total"], "persistent": values[PERSISTENT], **named}
