"""Findings one by one, as the tables have them: for whoever asks about one by its id."""

from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ..declared.instants import Instant, to_instant
from ..declared.kinds import GRADED_TABLES, INFO, PERSISTENT, QUEUE_FINDINGS
from ..errors import InputError
from ..texts.shown import shortened
from .tables import PLACE, Place, Tables, by_place, place_of

_COLUMNS = (
    *("finding_id", "fault", "kind", "broker_name", "queue_id", "broker_names", "causes"),
    *("severity", "persistence", "ongoing", "first_seen", "last_seen"),
    *("known_issue", "backlog", "computed"),
)


class FindingRow(NamedTuple):
    """One episode of a finding; of a fault ``queue`` is None. ``is_held_alone``: only what the
    processes hold shows it, and not the lists and routes.
    """

    finding_id: str
    kind: str
    place: Place
    queue: tuple[str, int] | None
    broker_names: tuple[str, ...]
    causes: frozenset[str]
    severity: str
    lasts: bool
    ongoing: bool
    first_seen: Instant
    last_seen: Instant
    known_issue: str | None
    backlog: int
    is_held_alone: bool

    @property
    def counts(self) -> bool:
        """True if it belongs in the verdict."""
        return self.severity != INFO and self.known_issue is None


def place_of_finding(
    tables: Tables, finding_id: str, names: Sequence[str] = GRADED_TABLES
) -> Place:
    """The place of the finding of an id, in tables of these names; InputError: there is none."""
    for name in names:
        rows = tables.read(name, ["finding_id", *PLACE])
        for row in rows.filter(pc.field("finding_id") == pa.scalar(finding_id)).to_pylist():
            return place_of(row)
    raise InputError(
        f"no finding {shortened(finding_id)} in this run; its finding_id is a column of "
        f"{', '.join(GRADED_TABLES)}: show TABLE --columns finding_id,consumer_group,topic"
    )


def read_rows(
    tables: Tables,
    places: Collection[Place] | None = None,
    names: Sequence[str] = GRADED_TABLES,
) -> Iterator[FindingRow]:
    """The episodes of all findings and faults, of these places alone, in tables of these names."""
    for name in names:
        for place, rows in by_place(tables, name, _COLUMNS, places).items():
            for row in rows:
                yield _row(QUEUE_FINDINGS.get(name), place, row)


def _row(kind: str | None, place: Place, row: dict[str, Any]) -> FindingRow:
    kind = kind or row["fault"] or row["kind"]
    return FindingRow(
        row["finding_id"],
        kind,
        place,
        (row["broker_name"], row["queue_id"]) if kind in QUEUE_FINDINGS.values() else None,
        tuple(row["broker_names"] or ()),
        frozenset(row["causes"] or ()),
        row["severity"],
        row["persistence"] == PERSISTENT,
        bool(row["ongoing"]),
        to_instant(row["first_seen"]),
        to_instant(row["last_seen"]),
        row["known_issue"],
        row["backlog"] or 0,
        row["computed"] is False,
    )


def counted_rows(rows: Collection[FindingRow]) -> list[FindingRow]:
    """The rows that count, without the faults that a finding of a queue names as its cause."""
    counted = [row for row in rows if row.counts]
    named = {(row.place, cause) for row in counted for cause in row.causes}
    return [row for row in counted if row.queue or (row.place, row.kind) not in named]
