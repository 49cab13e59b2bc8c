"""published tables -> one word for each group: what the strips of the last nights are made of.

It lies in the summary, so that whoever draws thirty nights reads thirty summaries and no table.
"""

from collections import defaultdict
from typing import Any, NamedTuple

from rebalance_core.findings import AUDITED

from ..kinds import GRADED_TABLES, INFO, LEVELS, NOT_AUDITED, OK, PERSISTENT, worst
from ..schemas import GROUP_HEALTH
from .counts import Tables, findings_of

#: A summary has so many groups at most, the worst ones.
MOST_GROUPS = 1_000


class _Group(NamedTuple):
    cluster: str
    consumer_group: str


def group_levels(written: Tables) -> dict[str, Any]:
    """``clusters``: by cluster and group its level, and how many findings give it that level.

    WARNING or CRITICAL: the worst of what lasts and is no known issue. INFO: something passed, is
    too new to count, or is a known issue. OK: nothing was found. NOT_AUDITED: no topic of it was
    judged.
    ``left_out``: groups that are not named, for there are more than ``MOST_GROUPS``.
    """
    found: dict[_Group, dict[str, str]] = defaultdict(dict)
    is_ok: dict[_Group, bool] = defaultdict(bool)
    for name in GRADED_TABLES:
        for row in findings_of(written, name):
            counts = row["persistence"] == PERSISTENT and row["known_issue"] is None
            of_group = found[_Group(row["cluster"], row["consumer_group"])]
            so_far = of_group.get(row["finding_id"], INFO)
            of_group[row["finding_id"]] = worst((so_far, row["severity"] if counts else INFO))
    health = written(GROUP_HEALTH.name).to_table(columns=[*_Group._fields, "coverage"])
    for row in health.to_pylist():
        is_ok[_Group(row["cluster"], row["consumer_group"])] |= row["coverage"] == AUDITED
    levels = {}
    for group in found.keys() | is_ok.keys():
        severities = list(found[group].values())
        level = worst(severities, OK if is_ok[group] else NOT_AUDITED)
        levels[group] = level, 0 if level == INFO else severities.count(level)
    in_order = sorted(
        levels, key=lambda group: (-LEVELS.index(levels[group][0]), -levels[group][1], group)
    )
    clusters: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
    for group in in_order[:MOST_GROUPS]:
        level, findings = levels[group]
        clusters[group.cluster][group.consumer_group] = {"level": level, "findings": findings}
    return {"clusters": dict(clusters), "left_out": len(in_order[MOST_GROUPS:])}
