"""What was delivered: whether a finding of a run is it, and what a run makes of it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from jobs.alerts.delivered import DeliveredFinding
from jobs.reports.run_findings import PlaceFinding
from jobs.reports.tables import Place
from tests.support.written_reports import NOON

DAYS = ["2026-11-18", "2026-11-19", "2026-11-20", "2026-11-21"]
SENT = DeliveredFinding(Place("C", "G", "T"), "WARNING", DAYS[1])


def finding(**values: Any) -> PlaceFinding:
    shown = {"severity": "WARNING", "persistence": "PERSISTENT", "ongoing": True, "status": "NEW"}
    times = {"first_seen": NOON, "last_seen": NOON}
    return PlaceFinding(place=SENT.place, kind="ORPHANED", **times, **(shown | values))


@pytest.mark.parametrize(
    ("day", "shown", "sent", "has"),
    [
        (1, {}, {}, True),
        (1, {"severity": "CRITICAL"}, {}, False),
        # A date before has nothing that is new, however bad it was then.
        (0, {"severity": "CRITICAL"}, {"over": DAYS[1]}, True),
        (2, {"status": "PERSISTING"}, {}, True),
        (2, {"status": "PERSISTING", "severity": "CRITICAL"}, {}, False),
        # It is back: in the next night, in the same one, or while nobody was alerted.
        (2, {}, {}, False),
        (1, {}, {"over": DAYS[1]}, False),
        (2, {"status": "PERSISTING"}, {"over": DAYS[2]}, False),
        (3, {"status": "PERSISTING", "open_since": datetime(2026, 11, 20, tzinfo=UTC)}, {}, False),
        (3, {"status": "PERSISTING", "open_since": datetime(2026, 11, 19, tzinfo=UTC)}, {}, True),
        # It is over, as it was sent.
        (1, {"ongoing": False}, {"over": DAYS[1]}, True),
        # The date after which it is over is asked again.
        (1, {}, {"over": DAYS[2]}, True),
    ],
)
def test_a_finding_was_delivered_until_it_is_worse_or_back(
    day: int, shown: dict[str, Any], sent: dict[str, Any], has: bool
) -> None:
    assert SENT._replace(**sent).has(finding(**shown), DAYS[day]) is has


@pytest.mark.parametrize(
    ("day", "shown", "options", "then"),
    [
        (2, [{"status": "PERSISTING"}], {}, {"date": DAYS[2]}),
        (2, [{"status": "PERSISTING", "ongoing": False}], {}, {"date": DAYS[2], "over": DAYS[2]}),
        # Not audited: nothing is known. Audited: it is over.
        (2, [], {}, {}),
        (2, [], {"is_judged": True}, {"over": DAYS[2]}),
        # It was over in between, and is back: not yet sent.
        (2, [{}], {}, {"over": DAYS[2]}),
        (0, [], {"is_judged": True}, {}),
        # A known issue ends an incident, and no other message says so.
        (1, [{"known_issue": "OPS-1"}], {}, {}),
        (1, [{"known_issue": "OPS-1"}], {"known_are_over": True}, {"over": DAYS[1]}),
    ],
)
def test_a_run_shows_whether_what_was_delivered_is_over(
    day: int, shown: list[dict[str, Any]], options: dict[str, bool], then: dict[str, Any]
) -> None:
    given = {"is_judged": False, "known_are_over": False, **options}
    rows = [finding(**each) for each in shown]
    assert SENT.after(DAYS[day], rows, **given) == SENT._replace(**then)
