"""findings, against the previous published run -> what is new, what goes on, what ended.

The open findings of the run before are parts of the dossier, like the runs of any witness. NEW and
PERSISTING are with the findings; what is RESOLVED, or was not audited this time, is in
``former_findings``. The run before is that of the last earlier date, whenever either was published:
a late night leaves the chain whole.
"""

from collections.abc import Container, Iterable, Mapping
from typing import NamedTuple

from ...declared.dossier import EarlierFinding
from ...declared.instants import Instant
from ...declared.kinds import (
    FROZEN_PROCESS,
    GROUP_NOT_CONSUMING,
    MESSAGES_FAIL,
    NOT_AUDITED,
    OFFSETS_GONE,
    OFFSETS_WENT_BACK,
    QUEUE_FINDINGS,
    READ_TWICE,
    SHOWN_BY_STALLS,
    STALLED,
    kind_of,
)
from ..arrow_tables import Row
from ..times.extents import Extent

NEW = "NEW"
PERSISTING = "PERSISTING"
RESOLVED = "RESOLVED"
#: The faults that offsets show.
BY_OFFSETS = frozenset(
    {
        *(FROZEN_PROCESS, GROUP_NOT_CONSUMING, OFFSETS_WENT_BACK, OFFSETS_GONE),
        *(READ_TWICE, MESSAGES_FAIL),
    }
)


class Openness(NamedTuple):
    """The status columns of a finding; None for what passed by itself."""

    status: str | None = None
    open_since: Instant | None = None
    nights_open: int | None = None


def openness(finding_id: str, extent: Extent, before: Mapping[str, EarlierFinding]) -> Openness:
    """The status of a finding against those that were open in the previous run, ``before`` by id.

    PERSISTING if it was open then and lasts or is not over; NEW if it lasts. A finding that goes on
    keeps its beginning, so that no run has to read more than the one before. A night that was not
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
    polled: Container[str],
) -> list[Row]:
    """The rows of ``former_findings``: what was open in the previous run and is not there any more.

    ``go_on`` are the ids of what is PERSISTING. RESOLVED where this window decides: the topic was
    recomputed, that is, in ``audited``, or of a stalled queue its offsets were asked for,
    ``polled``. NOT_AUDITED where it does not: then nothing shows it.

    Faults count only if they are NOT_AUDITED and no finding of a queue shows them: with these the
    others stay open.
    """
    before = list(earlier)
    shown = {(each.topic, cause) for each in before for cause in each.causes}
    shown |= {(each.topic, by) for each in before if each.kind == STALLED for by in SHOWN_BY_STALLS}
    rows = []
    for each in before:
        is_of_queue = each.kind in QUEUE_FINDINGS.values()
        decides = polled if each.kind == STALLED or each.kind in BY_OFFSETS else audited
        status = RESOLVED if each.topic in decides else NOT_AUDITED
        is_shown = (each.topic, each.kind) in shown or kind_of(each.kind).passes
        is_row = is_of_queue or (status == NOT_AUDITED and not is_shown)
        if is_row and each.finding_id not in go_on:
            rows.append({**each._asdict(), "status": status})
    return rows
