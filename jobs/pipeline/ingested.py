"""What came in: the counts of an ingest job, as its manifest has them."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from jobs.errors import QuarantineError
from jobs.progress import Progress
from jobs.schemas import QUARANTINE
from jobs.settings import Settings
from jobs.storage import Location

#: Beside the tables: the counts of ``Ingested``, and what the ids of lists depend on.
MANIFEST = "ingested.json"


@dataclass(frozen=True)
class Ingested:
    """What came in. ``lines`` = lines read + ``quarantined``, always."""

    files: int
    bytes: int
    lines: int
    quarantined: int

    @property
    def quarantined_share(self) -> float:
        """The share of the lines that was not understood."""
        return self.quarantined / self.lines if self.lines else 0.0


def record_ingest(
    result: Ingested, snapshots: Location, settings: Settings, progress: Progress
) -> None:
    """Writes the manifest beside the tables, when all of them are there."""
    # An audit that lets heartbeats expire later or sooner makes the ids of lists anew.
    manifest = asdict(result) | {"heartbeat_expiry_seconds": settings.heartbeat_expiry_seconds}
    (snapshots / MANIFEST).replace_text(json.dumps(manifest) + "\n")
    progress.say(
        f"ingested {result.files} files, {result.lines:,} lines, {result.quarantined:,} quarantined"
    )


def check_quarantine(result: Ingested, snapshots: Location, settings: Settings) -> None:
    """QuarantineError where more lines were not understood than the settings allow."""
    if result.quarantined_share > settings.allowed_quarantine_share:
        raise QuarantineError(
            f"{result.quarantined:,} of {result.lines:,} lines were not understood "
            f"({result.quarantined_share:.1%}; allowed are "
            f"{settings.allowed_quarantine_share:.1%}): see {snapshots / QUARANTINE.name}"
        )
