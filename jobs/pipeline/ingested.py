"""What came in: the counts of an ingest job, as the summary of its manifest has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from jobs.errors import QuarantineError
from jobs.progress import Progress
from jobs.schemas import QUARANTINE
from jobs.settings import Settings
from jobs.storage import Snapshots, SnapshotWriter


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


def publish_ingest(
    result: Ingested,
    rows: Mapping[str, int],
    writer: SnapshotWriter,
    settings: Settings,
    progress: Progress,
) -> Snapshots:
    """Makes the tables the ones that are read; ``rows``: of each table those that were written."""
    # An audit that lets heartbeats expire later or sooner makes the ids of lists anew.
    summary = asdict(result) | {"heartbeat_expiry_seconds": settings.heartbeat_expiry_seconds}
    with progress.step("check of the tables"):
        published = writer.publish(rows, summary)
    progress.say(
        f"ingested {result.files} files, {result.lines:,} lines, {result.quarantined:,} quarantined"
    )
    return published


def check_quarantine(result: Ingested, snapshots: Snapshots, settings: Settings) -> None:
    """QuarantineError where more lines were not understood than the settings allow."""
    if result.quarantined_share > settings.allowed_quarantine_share:
        raise QuarantineError(
            f"{result.quarantined:,} of {result.lines:,} lines were not understood "
            f"({result.quarantined_share:.1%}; allowed are "
            f"{settings.allowed_quarantine_share:.1%}): see {snapshots.table(QUARANTINE.name)}"
        )
