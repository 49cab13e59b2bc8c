"""The note of ``alert`` on what each destination got, beside the reports.

    <reports>/_alerts/note.json     by destination what it was sent, and its open incidents

What was sent is noted after the post: a crash between the two posts twice rather than never.
Incidents are noted before it: one that nobody noted would stay open. So a note that is lost or
cannot be read counts as empty, and that is said once. What is older than the first published date
is forgotten: no report shows it any more.
"""

import json
import re
from collections.abc import Collection, Mapping
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import Any, Literal

from pydantic import BaseModel, Field

from rebalance_core.grouping import grouped

from ..console.progress import Say
from ..declared.kinds import PERSISTENT, SEVERITIES
from ..errors import AuditError
from ..reports.place_findings import PlaceFinding, read_findings
from ..reports.tables import Place, PublishedTables
from ..storage import Location, PublishedRun, Reports
from .delivered import Delivered, DeliveredFinding, with_sent

_DATE = r"\d{4}-\d{2}-\d{2}"
#: Files of earlier versions: one a date, with the ids that were delivered, and one of incidents.
_EARLIER = re.compile(rf"dt=({_DATE})\.json")
_EARLIER_INCIDENTS = "incidents.json"


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


class _EarlierNote(BaseModel):
    """``finding_ids``: those of the destination without a name, before there were several."""

    finding_ids: list[str] = []
    destinations: dict[str, list[str]] = {}


class _EarlierIncidents(BaseModel):
    destinations: dict[str, list[Place]] = {}


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
        self._write(destination, {"findings": _packed(kept)})

    def incidents(self, destination: str) -> frozenset[Place]:
        """The groups and topics of which a destination has an open incident."""
        return frozenset(self._of(destination).incidents)

    def set_incidents(self, destination: str, pairs: Collection[Place]) -> None:
        """Notes which incidents a destination has; NoteError where it cannot."""
        self._write(destination, {"incidents": sorted(set(pairs))})

    def _of(self, destination: str) -> _Destination:
        return self._note.destinations.get(destination, _Destination())

    def _read(self) -> _Note:
        note = _Note()
        try:
            return _Note.model_validate_json(self._place.read_text())
        except FileNotFoundError:
            if not self._folder.exists():
                return note
            note, reason = _of_earlier_versions(self._reports, self._folder), "it is gone"
        except (OSError, ValueError) as error:
            reason = type(error).__name__ if isinstance(error, OSError) else "it is damaged"
        if not note.destinations:
            self._warn(
                f"{self._place} cannot be read ({reason}): what was posted and is open is posted "
                "again; close incidents that are over by hand"
            )
        return note

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


def _packed(delivered: Delivered) -> list[_Alike]:
    alike = grouped((each, id_) for id_, each in delivered.items())
    return [_Alike(**each._asdict(), finding_ids=sorted(ids)) for each, ids in alike.items()]


def _of_earlier_versions(reports: Reports, folder: Location) -> _Note:
    """The note as earlier versions would have left it, with what their reports say of each id.

    What cannot be read any more is left out: it is posted again.
    """
    delivered: dict[str, dict[str, DeliveredFinding]] = {}
    incidents = _EarlierIncidents()
    for name in folder.children():
        match = _EARLIER.fullmatch(name)
        with suppress(AuditError, OSError, ValueError):
            if name == _EARLIER_INCIDENTS:
                incidents = _EarlierIncidents.model_validate_json((folder / name).read_text())
            elif match:
                note = _EarlierNote.model_validate_json((folder / name).read_text())
                found = reports.read(match[1], partial(_lasting, reports))
                for destination, ids in {"": note.finding_ids, **note.destinations}.items():
                    kept = (finding.without(set(finding.ids).difference(ids)) for finding in found)
                    before = delivered.get(destination, {})
                    delivered[destination] = with_sent(before, filter(None, kept), match[1])
    return _Note(
        destinations={
            name: _Destination(
                findings=_packed(delivered.get(name, {})),
                incidents=incidents.destinations.get(name, []),
            )
            for name in {**delivered, **incidents.destinations}
        }
    )


def _lasting(reports: Reports, published: PublishedRun) -> list[PlaceFinding]:
    findings = chain.from_iterable(read_findings(PublishedTables(reports, published)).values())
    return [finding for finding in findings if finding.persistence == PERSISTENT]
