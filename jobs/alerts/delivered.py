"""Findings as a destination was sent them: what of a run is still due, and what is over.

A finding is sent once for as long as it is open, whatever date it is of; again where it is worse
than it was sent, and where it was over and is back. The date of a run counts here and no time: a
date that is audited every hour has the same findings every hour.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC
from typing import NamedTuple

from rebalance_core.grouping import grouped

from ..declared.kinds import worst
from ..reports.place_findings import PlaceFinding
from ..reports.tables import Place


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
        of_this = [finding for finding in shown if self.is_of(finding, date)]
        if any(
            finding.ongoing and not (known_are_over and finding.known_issue) for finding in of_this
        ):
            return self._replace(date=date)
        if of_this:
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
