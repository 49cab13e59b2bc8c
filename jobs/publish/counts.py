"""The tables that a run has written -> the numbers of its summary."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import Any, TypeAlias

from rebalance_core.findings import AUDITED
from rebalance_core.state import GROUP_TABLE

from ..config.choices import SEVERITIES
from ..declared.kinds import (
    GRADED_TABLES,
    INFO,
    LEVELS,
    NOT_AUDITED,
    OK,
    PERSISTENT,
    QUEUE_FINDINGS,
    worst,
)
from ..reports.problems import PlaceFinding, Problem
from ..reports.tables import Tables
from ..schemas import GROUP_FAULTS, GROUP_HEALTH, REPORT_TABLES
from ..verdict.coverage import was_audited

CountedRow = dict[str, Any]
#: A cluster, and a consumer group of it.
GroupKey: TypeAlias = tuple[str, str]

#: The tables whose findings can be known issues.
_MARKED = [table.name for table in REPORT_TABLES if "known_issue" in table.schema.names]
_STATUSES = ("NEW", "PERSISTING")
_TABLE_OF = {kind: table for table, kind in QUEUE_FINDINGS.items()}
_OF_GROUPS = ["strategy_source", "subscription_source", "rounds_too_wide"]
_SECONDS = ["round_seconds", "round_interval_seconds"]
#: A summary has so many groups at most, the worst ones.
MOST_GROUPS = 1_000


def count_findings(problems: Iterable[Problem]) -> dict[str, Any]:
    """The number of rows of each graded table: in all, persistent, and of each severity and status.

    Faults count only if no finding of a queue shows them: the others would count twice. ``known``
    has the same counts of those that are known issues; they count in the others too.
    """
    rows: dict[str, list[PlaceFinding]] = {name: [] for name in _MARKED if name in GRADED_TABLES}
    for problem in problems:
        for finding in problem.findings:
            rows[_TABLE_OF.get(finding.kind, GROUP_FAULTS.name)].append(finding)
    return {
        name: {
            **_count_grades(findings),
            "known": _count_grades([each for each in findings if each.known_issue is not None]),
        }
        for name, findings in rows.items()
    }


def _count_grades(findings: Iterable[PlaceFinding]) -> dict[str, int]:
    """A finding has a row for each of its ids."""
    values: Counter[str | None] = Counter()
    for each in findings:
        rows = len(each.ids)
        for value in ("total", each.severity, each.persistence, each.status):
            values[value] += rows
    named = {value: values[value] for value in (*SEVERITIES, *_STATUSES)}
    return {"total": values["total"], "persistent": values[PERSISTENT], **named}


def count_groups(written: Tables, asked: Collection[GroupKey]) -> dict[str, Any]:
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
    columns = ["cluster", "consumer_group", "coverage", *_OF_GROUPS, *_SECONDS]
    rows = written.read(GROUP_HEALTH.name, columns).to_pylist()
    audited = [row for row in rows if row["coverage"] == AUDITED]

    def groups(rows: Sequence[CountedRow], column: str, value: object) -> set[GroupKey]:
        return {(row["cluster"], row["consumer_group"]) for row in rows if row[column] == value}

    strategy = groups(audited, "strategy_source", "assumed")
    subscriptions = groups(audited, "subscription_source", GROUP_TABLE)
    assumed = strategy | subscriptions
    longest, interval = (
        max((row[name] for row in rows if row[name] is not None), default=None) for name in _SECONDS
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


def count_marked(written: Tables) -> dict[str, dict[str, int]]:
    """The number of rows of each table that the reason of a known issue marked."""
    marked: dict[str, dict[str, int]] = defaultdict(dict)
    for name in _MARKED:
        reasons = written.read(name, ["known_issue"])["known_issue"].drop_null()
        for reason, rows in Counter(reasons.to_pylist()).items():
            marked[str(reason)][name] = rows
    return marked


def group_levels(problems: Iterable[Problem], written: Tables) -> dict[str, Any]:
    """``clusters``: by cluster and group its level, and how many findings give it that level.

    So whoever draws thirty nights reads thirty summaries and no table.

    WARNING or CRITICAL: the worst of what lasts and is not a known issue. NOT_AUDITED: some topic
    of it was not judged (``coverage.was_audited``) and is not a known issue. INFO: something
    passed, is too new to count, or is a known issue. OK: nothing was found. ``left_out``: groups
    that are not named, for there are more than ``MOST_GROUPS``.
    """
    found: dict[GroupKey, dict[str, str]] = defaultdict(dict)
    audited: dict[GroupKey, bool] = {}
    for problem in problems:
        of_group = found[problem.place[:2]]
        for finding in problem.findings:
            counts = finding.persistence == PERSISTENT and finding.known_issue is None
            level = finding.severity if counts else INFO
            for each in finding.ids:
                of_group[each] = worst((of_group.get(each, INFO), level))
    columns = ["cluster", "consumer_group", "coverage", "unaudited_coverage", "known_issue"]
    for row in written.read(GROUP_HEALTH.name, columns).to_pylist():
        key = row["cluster"], row["consumer_group"]
        is_audited = was_audited(row) or row["known_issue"] is not None
        audited[key] = audited.get(key, True) and is_audited
    levels = {}
    for key in found.keys() | audited.keys():
        severities = list(found[key].values())
        every = [*severities, OK if audited.get(key, True) else NOT_AUDITED]
        level = max(every, key=LEVELS.index)
        levels[key] = level, 0 if level == INFO else severities.count(level)
    in_order = sorted(levels, key=lambda key: (-LEVELS.index(levels[key][0]), -levels[key][1], key))
    clusters: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
    for cluster, group in in_order[:MOST_GROUPS]:
        level, findings = levels[cluster, group]
        clusters[cluster][group] = {"level": level, "findings": findings}
    return {"clusters": dict(clusters), "left_out": len(in_order[MOST_GROUPS:])}
