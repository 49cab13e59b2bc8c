"""Notes of ``alert`` on what was delivered already, beside the reports.

The note of a date has the ids of the findings that were delivered, so that a date that is audited
every hour does not send them every hour. One object has the incidents that are open, whatever date
they are of. Both are by the name of the destination. A note that cannot be read counts as empty.

NEW is against the last earlier date, so a date that is audited every hour has the same NEW findings
every hour. What was delivered is noted after the post: a crash between the two posts twice rather
than never. Incidents are noted before it: one that nobody noted would stay open.
"""

import json
from collections.abc import Collection
from typing import TypeVar

from pydantic import BaseModel

from ..console.progress import Say
from ..errors import AuditError
from ..reports.tables import Place
from ..storage import Location, PublishedRun, Reports


class NoteError(AuditError):
    """A note cannot be written."""


class _Note(BaseModel):
    """Lists are sorted. ``finding_ids``: those of the destination without a name, as notes had them
    before there were several.
    """

    finding_ids: list[str] = []
    destinations: dict[str, list[str]] = {}

    def of(self, destination: str) -> frozenset[str]:
        earlier = () if destination else self.finding_ids
        return frozenset(self.destinations.get(destination, earlier))


class _Incidents(BaseModel):
    destinations: dict[str, list[Place]] = {}


_Model = TypeVar("_Model", bound=BaseModel)


class Notes:
    """The notes of the runs of one date, and the open incidents."""

    def __init__(self, reports: Reports, published: PublishedRun, warn: Say) -> None:
        self._note = reports.delivered(published.date)
        self._incidents = reports.root / "_alerts" / "incidents.json"
        self._warn = warn

    def delivered(self, destination: str) -> frozenset[str]:
        """The ids of the findings of this date that a destination got."""
        note = self._read(_Note, self._note, "findings that were posted are posted again")
        return note.of(destination)

    def add(self, destination: str, finding_ids: Collection[str]) -> None:
        """Notes that a destination got these findings, too; NoteError where it cannot."""
        note = self._read(_Note, self._note)
        note.destinations[destination] = sorted(note.of(destination).union(finding_ids))
        self._write(self._note, note)

    def incidents(self, destination: str) -> frozenset[Place]:
        """The groups and topics of which a destination has an open incident."""
        consequence = "close the incidents that are open now by hand when they are over"
        note = self._read(_Incidents, self._incidents, consequence)
        return frozenset(note.destinations.get(destination, ()))

    def set_incidents(self, destination: str, pairs: Collection[Place]) -> None:
        """Notes which incidents a destination has; NoteError where it cannot."""
        note = self._read(_Incidents, self._incidents)
        note.destinations[destination] = sorted(set(pairs))
        self._write(self._incidents, note)

    def _read(self, model: type[_Model], place: Location, consequence: str = "") -> _Model:
        """The note; empty where there is none. With a consequence it warns of one that is bad."""
        try:
            return model.model_validate_json(place.read_text())
        except FileNotFoundError:
            return model()
        except (OSError, ValueError) as error:
            if consequence:
                reason = type(error).__name__ if isinstance(error, OSError) else "it is damaged"
                self._warn(f"{place} cannot be read ({reason}): {consequence}")
            return model()

    def _write(self, place: Location, note: BaseModel) -> None:
        try:
            place.replace_text(json.dumps(note.model_dump()) + "\n")
        except OSError as error:
            raise NoteError(
                f"{place} cannot be written ({error.strerror or type(error).__name__}); "
                "let whoever runs alert write there"
            ) from error
