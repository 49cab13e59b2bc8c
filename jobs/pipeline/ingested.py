"""What came in: the counts of an ingest job, as the summary of its manifest has them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rebalance_core.english import count
from rebalance_core.texts import Text

from ..errors import QuarantineError
from ..incomplete import packed
from ..progress import Progress
from ..schemas import QUARANTINE
from ..settings import Settings
from ..storage import Snapshots, SnapshotWriter

#: So many times the allowed share is too much, whatever the kinds.
_FAR_BEYOND = 10


@dataclass(frozen=True)
class Ingested:
    """What came in. ``lines`` = lines read + ``quarantined``, always.

    ``kinds``: of the lines that were understood, ``quarantined_kinds`` of the others, how many
    there are of each kind. ``incomplete``: of which files lines are missing.
    """

    files: int
    bytes: int
    lines: int
    quarantined: int
    kinds: Mapping[str, int] = field(default_factory=dict, compare=False)
    quarantined_kinds: Mapping[str, int] = field(default_factory=dict, compare=False)
    incomplete: Sequence[Text] = field(default=(), compare=False)

    @property
    def quarantined_share(self) -> float:
        """The share of the lines that was not understood."""
        return self.quarantined / self.lines if self.lines else 0.0

    @property
    def lost_kinds(self) -> list[str]:
        """The kinds of which most lines were not understood; lines without a kind are one."""
        return [
            kind
            for kind, lines in sorted(self.quarantined_kinds.items())
            if lines > self.kinds.get(kind, 0)
        ]

    def summary(self) -> dict[str, Any]:
        """What the manifest of an ingest has of it."""
        counts = ("files", "bytes", "lines", "quarantined")
        return {name: getattr(self, name) for name in counts} | packed(self.incomplete)


def publish_ingest(
    result: Ingested,
    rows: Mapping[str, int],
    writer: SnapshotWriter,
    settings: Settings,
    progress: Progress,
) -> Snapshots:
    """Makes the tables the ones that are read; ``rows``: of each table those that were written."""
    # An audit that lets heartbeats expire later or sooner makes the ids of lists anew.
    summary = result.summary() | {"heartbeat_expiry_seconds": settings.heartbeat_expiry_seconds}
    with progress.step("check of the tables"):
        published = writer.publish(rows, summary)
    progress.say(
        f"ingested {count(result.files, 'file')}, {count(result.lines, 'line')}, "
        f"{result.quarantined:,} not understood"
    )
    return published


def check_quarantine(result: Ingested, snapshots: Snapshots, settings: Settings) -> None:
    """QuarantineError where more lines were not understood than the settings allow.

    Lines of one odd member are said, and are no error: of their kind most were understood. More
    than ten times the allowed share is one in any case.
    """
    allowed = settings.allowed_quarantine_share
    share = result.quarantined_share
    if share > _FAR_BEYOND * allowed or (share > allowed and result.lost_kinds):
        kinds = ", ".join(kind or "no kind" for kind in result.lost_kinds)
        lost = f"most of those of {kinds}, " if kinds else ""
        raise QuarantineError(
            f"{result.quarantined:,} of {result.lines:,} lines were not understood "
            f"({share:.1%}; allowed are {allowed:.1%}), "
            f"{lost}see {snapshots.table(QUARANTINE.name)}"
        )
