"""published tables -> one word for each group: what the strips of the last nights are made of.

It lies in the summary, so that whoever draws thirty nights reads thirty summaries and no table.
"""

from collections import defaultdict
from typing import Any, TypeAlias

from rebalance_core.findings import AUDITED

from ..kinds import GRADED_TABLES, INFO, LEVELS, NOT_AUDITED, OK, PERSISTENT, worst
from ..schemas import GROUP_HEALTH
from .counts import Tables, findings_of

#: A summary has so many groups at most, the worst ones.
MOST_GROUPS = 1_000


#: A cluster, and a consumer group of it.
_Group: TypeAlias = tuple[str, str]


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
            of_group = found[row["cluster"], row["consumer_group"]]
            so_far = of_group.get(row["finding_id"], INFO)
            of_group[row["finding_id"]] = worst((so_far, row["severity"] if counts else INFO))
    health = written(GROUP_HEALTH.name).to_table(columns=["cluster", "consumer_group", "coverage"])
    for row in health.to_pylist():
        is_ok[row["cluster"], row["consumer_group"]] |= row["coverage"] == AUDITED
    levels = {}
    for key in found.keys() | is_ok.keys():
        severities = list(found[key].values())
        level = worst(severities, OK if is_ok[key] else NOT_AUDITED)
        levels[key] = level, 0 if level == INFO else severities.count(level)
    in_order = sorted(levels, key=lambda key: (-LEVELS.index(levels[key][0]), -levels[key][1], key))
    clusters: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
    for cluster, group in in_order[:MOST_GROUPS]:
        level, findings = levels[cluster, group]
        clusters[cluster][group] = {"level": level, "findings": findings}
    return {"clusters": dict(clusters), "left_out": len(in_order[MOST_GROUPS:])}
