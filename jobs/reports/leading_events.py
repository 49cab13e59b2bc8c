"""The events that lead: which of a run's events the page, a message and the console name first.

They lie in the summary, so that whoever shows them reads no table. An event leads that explains a
finding, or touched more than its own group: of a healthy day's deploys only their number is there.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from heapq import nsmallest
from typing import Any, NamedTuple

from rebalance_core.texts import Text, from_parts

from ..declared.kinds import EVENT_KINDS, OF_ONE_GROUP
from ..languages.translated_rows import with_texts
from ..texts.shown import iso

_KEY = "events"
#: A summary has so many of them.
_MOST_EVENTS = 20
_NUMBERS = ("groups_touched", "queues_lost", "messages_lost", "queues_read_twice", "findings")


class LeadingEvent(NamedTuple):
    """An event in one line: what it was and what it cost; with its evidence.

    ``of_several``: it touched more groups than one.
    """

    cluster: str
    headline: Text
    evidence: Text
    of_several: bool = True


def packed(rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The rows of ``events``, as published and taken one by one, as a summary has them.

    ``total``; ``kinds``: how many of each kind; ``first``: those that lead, in the order in which
    they are shown.
    """
    kinds: Counter[str] = Counter()

    def leading() -> Iterator[Mapping[str, Any]]:
        for row in rows:
            kinds[row["kind"]] += 1
            if row["findings"] or row["kind"] not in OF_ONE_GROUP:
                yield row

    first = map(with_texts, nsmallest(_MOST_EVENTS, leading(), key=_weight))
    return {
        _KEY: {
            "total": kinds.total(),
            "kinds": {kind: kinds[kind] for kind in EVENT_KINDS if kinds[kind]},
            "first": [
                {
                    **{name: row[name] for name in ("event_id", "cluster", "kind", "subject")},
                    "begins": iso(row["begins"]),
                    "ends": row["ends"] and iso(row["ends"]),
                    **{name: row[name] for name in _NUMBERS},
                    **{name: _parts(row[name]) for name in ("headline", "evidence")},
                }
                for row in first
            ],
        }
    }


def _parts(text: str) -> list[Any]:
    """The parts of a text; for one that was masked as a whole, its English."""
    return (text if isinstance(text, Text) else Text("{text}", text=text)).parts()


def _weight(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """Sorts by groups touched, most first, then by cost."""
    cost, touched = row["queues_lost"] + row["queues_read_twice"], row["groups_touched"]
    many = -touched if touched > 1 else 0
    return many, -cost, -row["findings"], row["begins"], row["event_id"]


def leading_events(summary: Mapping[str, Any], most: int) -> tuple[list[LeadingEvent], int]:
    """The first ``most`` events, those that touched most groups first, and the number of others."""
    events = summary[_KEY]
    found = [
        LeadingEvent(
            row["cluster"],
            from_parts(row["headline"]),
            from_parts(row["evidence"]),
            row.get("groups_touched", 2) > 1,
        )
        for row in events["first"][:most]
    ]
    return found, events["total"] - len(found)
