"""The events that lead: which of a run's events the page, a message and the console name first.

An event leads that explains a finding, or touched more than its own group: of a healthy day's
deploys only their number is shown.
"""

from collections.abc import Mapping
from datetime import datetime
from heapq import nsmallest
from typing import Any, NamedTuple

import pyarrow.compute as pc

from ..declared.kinds import OF_ONE_GROUP
from ..languages.translated_rows import TEXTS, with_texts
from ..schemas import EVENTS
from .tables import Tables

_COLUMNS = (
    *("event_id", "cluster", "kind", "begins", "ends", "headline", "evidence", "findings"),
    *("groups_touched", "queues_lost", "queues_read_twice", TEXTS),
)


class LeadingEvent(NamedTuple):
    """An event in one line: what it was and what it cost; with its evidence.

    ``ends`` is None where it goes on. ``groups_touched``: how many.
    """

    cluster: str
    begins: datetime
    ends: datetime | None
    headline: str
    evidence: str
    groups_touched: int


def leading_events(tables: Tables, most: int) -> tuple[list[LeadingEvent], int]:
    """The first ``most`` events, those that touched most groups first, and the number of others."""
    rows = tables.read(EVENTS.name, _COLUMNS)
    leading = rows.filter((pc.field("findings") > 0) | ~pc.field("kind").isin(OF_ONE_GROUP))
    first = map(with_texts, nsmallest(most, leading.to_pylist(), key=_weight))
    found = [LeadingEvent(*(row[name] for name in LeadingEvent._fields)) for row in first]
    return found, rows.num_rows - len(found)


def _weight(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """Sorts by groups touched, most first, then by cost."""
    cost, touched = row["queues_lost"] + row["queues_read_twice"], row["groups_touched"]
    many = -touched if touched > 1 else 0
    return many, -cost, -row["findings"], row["begins"], row["event_id"]
