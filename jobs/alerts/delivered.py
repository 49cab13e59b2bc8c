"""Findings as a destination was sent them: what of a run is still due, and what is over.

A finding is sent once for as long as it is open, whatever date it is of; again where it is worse
than it was sent, and where it was over and is back. The date of a run counts here and no time: a
date that is audited every hour has the same findings every hour.
"""

import json
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, Field

from rebalance_core.grouping import grouped

from ..console.progress import Say
from ..declared.kinds import SEVERITIES, worst
from ..errors import AuditError
from ..reports.run_findings import PlaceFinding
from ..reports.tables import Place
from ..storage import Reports


class DeliveredFinding(NamedTuple):
    """A finding that a destination was sent.

    ``severity``: the worst that it was sent with. ``date``: the last date whose run shows what was
    sent. ``over``: the date of the run that shows that it is over; None: it is open, as far as it
    was audited. ``end_is_sent``: the destination knows that it is over.
    """

    place: Place
    severity: str
    date: str
    over: str | None = None
    end_is_sent: bool = False

    def is_of(self, finding: PlaceFinding, date: str) -> bool:
        """True if it was sent for this finding of the run of a date: it was not over since.

        What a later date has is not sent for an earlier one.

        >>> sent = DeliveredFinding(Place("C", "G", "T"), "WARNING", "2026-11-20")
        >>> sent.is_of(PlaceFinding(
        ...     place=sent.place, kind="ORPHANED", status="NEW", severity="WARNING", ongoing=True,
        ...     persistence="PERSISTENT", first_seen=None, last_seen=None), "2026-11-21")
        False
        """
        is_over = self.over is not None and self.over <= date
        if date <= self.date:
            return date < self.date or not (is_over and finding.ongoing)
        opened = finding.open_since
        # Nobody was alerted about the dates in which it ended and came back.
        is_back = opened is not None and opened.astimezone(UTC).date().isoformat() > self.date
        return not (is_over or finding.status == "NEW" or is_back)

    def has(self, finding: PlaceFinding, date: str) -> bool:
        """True if nothing of this finding is left to be sent.

        What an earlier date has was worse then, not now.
        """
        is_worse = worst([self.severity, finding.severity]) != self.severity
        return self.is_of(finding, date) and not (is_worse and date >= self.date)

    def after(
        self, date: str, shown: Iterable[PlaceFinding], *, is_judged: bool, known_are_over: bool
    ) -> "DeliveredFinding":
        """The same after the run of a date, which shows these findings of its id.

        ``is_judged``: without any it is over. ``known_are_over``: as a known issue it is, too.
        """
        if date < self.date:
            return self
        own = [finding for finding in shown if self.is_of(finding, date)]
        if any(finding.ongoing and not (known_are_over and finding.known_issue) for finding in own):
            return self._replace(date=date)
        if own:
            return self._replace(date=date, over=self.over or date)
        # Also where it is back, and was over in between.
        return self._replace(over=self.over or date) if shown or is_judged else self


#: Findings that were sent, by id.
Delivered = Mapping[str, DeliveredFinding]


def with_sent(
    delivered: Delivered, findings: Iterable[PlaceFinding], date: str
) -> dict[str, DeliveredFinding]:
    """The same with findings of the run of a date, which were sent now; the end of others, too."""
    noted = {
        id_: each._replace(end_is_sent=each.over is not None) for id_, each in delivered.items()
    }
    for id_, rows in grouped((id_, finding) for finding in findings for id_ in finding.ids).items():
        before, severity = delivered.get(id_), worst(row.severity for row in rows)
        if before is not None and any(before.is_of(row, date) for row in rows):
            severity, date_ = worst([severity, before.severity]), max(date, before.date)
            noted[id_] = noted[id_]._replace(severity=severity, date=date_)
        else:
            is_open = any(row.ongoing for row in rows)
            over = None if is_open else date
            noted[id_] = DeliveredFinding(rows[0].place, severity, date, over, not is_open)
    return noted


_DATE = r"\d{4}-\d{2}-\d{2}"


class NoteError(AuditError):
    """The note cannot be written."""


class _Alike(BaseModel):
    """Findings of a place that differ in nothing but their ids: a place may have very many."""

    place: Place
    severity: Literal[SEVERITIES]  # type: ignore[valid-type]
    date: str = Field(pattern=_DATE)
    over: str | None = Field(default=None, pattern=_DATE)
    end_is_sent: bool = False
    finding_ids: list[str]


class _Destination(BaseModel):
    findings: list[_Alike] = []
    incidents: list[Place] = []


class _Note(BaseModel):
    destinations: dict[str, _Destination] = {}


class Notes:
    """The note; it is read once, for nobody else writes it under the lease of ``alert``."""

    def __init__(self, reports: Reports, warn: Say) -> None:
        self._reports, self._warn = reports, warn
        self._folder = reports.root / "_alerts"
        self._place = self._folder / "note.json"
        self._note = self._read()

    def delivered(self, destination: str) -> Delivered:
        """The findings that a destination was sent, by id."""
        return {
            id_: DeliveredFinding(*(getattr(finding, name) for name in DeliveredFinding._fields))
            for finding in self._of(destination).findings
            for id_ in finding.finding_ids
        }

    def set_delivered(self, destination: str, delivered: Delivered) -> None:
        """Notes what a destination was sent; NoteError where it cannot."""
        first = next(iter(self._reports.dates()), "")
        kept = {id_: each for id_, each in delivered.items() if each.date >= first}
        alike = grouped((finding, id_) for id_, finding in kept.items())
        packed = [
            _Alike(**finding._asdict(), finding_ids=sorted(ids)) for finding, ids in alike.items()
        ]
        self._write(destination, {"findings": packed})

    def incidents(self, destination: str) -> frozenset[Place]:
        """The groups and topics of which a destination has an open incident."""
        return frozenset(self._of(destination).incidents)

    def set_incidents(self, destination: str, pairs: Collection[Place]) -> None:
        """Notes which incidents a destination has; NoteError where it cannot."""
        self._write(destination, {"incidents": sorted(set(pairs))})

    def _of(self, destination: str) -> _Destination:
        return self._note.destinations.get(destination, _Destination())

    def _read(self) -> _Note:
        try:
            return _Note.model_validate_json(self._place.read_text())
        except FileNotFoundError:
            if not self._folder.exists():
                return _Note()
            reason = "it is gone"
        except (OSError, ValueError) as error:
            reason = type(error).__name__ if isinstance(error, OSError) else "it is damaged"
        self._warn(
            f"{self._place} cannot be read ({reason}): what was posted and is open is posted "
            "again; close incidents that are over by hand"
        )
        return _Note()

    def _write(self, destination: str, values: Mapping[str, Any]) -> None:
        new = self._of(destination).model_copy(update=values)
        if new == self._of(destination):
            return
        self._note.destinations[destination] = new
        text = json.dumps(self._note.model_dump(exclude_defaults=True))
        try:
            self._place.replace_text(f"{text}\n")
        except OSError as error:
            raise NoteError(
                f"{self._place} cannot be written ({error.strerror or type(error).__name__}); "
                "let whoever runs alert write there"
            ) from error
