"""findings, against the previous published run -> what is new, what goes on, what ended.

The open findings of the run before are parts of the dossier, like the runs of any witness. NEW and
PERSISTING are with the findings; what is RESOLVED, or was not audited this time, is in
``former_findings``. The run before is that of the last earlier date, whenever either was published:
a late night leaves the chain whole.
"""

from collections.abc import Container, Iterable, Mapping
from typing import NamedTuple

from ..instants import Instant
from ..kinds import NOT_AUDITED, QUEUE_FINDINGS, STALLED
from .dossier import EarlierFinding
from .extents import Extent
from .tables import Row

NEW = "NEW"
PERSISTING = "PERSISTING"
RESOLVED = "RESOLVED"


class Openness(NamedTuple):
    """Of a finding, as its columns are called; None for what passed by itself."""

    status: str | None = None
    open_since: Instant | None = None
    nights_open: int | None = None


def openness(finding_id: str, extent: Extent, before: Mapping[str, EarlierFinding]) -> Openness:
    """What a finding is against those that were open in the previous run, ``before`` by id.

    PERSISTING where it was open then and lasts or is not over; NEW where it lasts. What goes on
    takes over since when, so that no run has to read more than that one. A night that was not
    audited is not counted, and does not end what was open before it.
    """
    former = before.get(finding_id)
    if former is not None and (extent.lasts or extent.ongoing):
        since = min(extent.first_seen, former.open_since)
        return Openness(PERSISTING, since, former.nights_open + 1)
    return Openness(NEW, extent.first_seen, 1) if extent.lasts else Openness()


def former_findings(
    earlier: Iterable[EarlierFinding],
    go_on: Container[str],
    audited: Container[str],
    polled: Container[str] = (),
) -> list[Row]:
    """The rows of ``former_findings``: what was open in the previous run and is not there any more.

    ``go_on`` are the ids of what is PERSISTING. RESOLVED where this window decides: the topic was
    recomputed, that is, in ``audited``, or of a stalled queue its offsets were asked for,
    ``polled``. NOT_AUDITED where it does not: then nothing shows it. Faults are not among them: the
    table is one of queues.
    """
    decided = {kind: polled if kind == STALLED else audited for kind in QUEUE_FINDINGS.values()}
    return [
        {**each._asdict(), "status": RESOLVED if each.topic in decided[each.kind] else NOT_AUDITED}
        for each in earlier
        if each.kind in decided and each.finding_id not in go_on
    ]
