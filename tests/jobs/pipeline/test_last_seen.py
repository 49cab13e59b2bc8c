"""A group that nobody asks about any more is not known to be wrong at the end of the night."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.api import audit
from jobs.reports.problems import read_problems
from jobs.reports.words import begin
from jobs.schemas import HEARTBEATS, TOPIC_ROUTES
from jobs.verdict.verdict import read_verdict
from tests.support.snapshots import at, heartbeat_row, route_row, table

pytestmark = pytest.mark.long

ROUNDS = 60


def night(last: int, *, mended: int = ROUNDS) -> Any:
    """A run of rounds each minute. G has two processes with one id up to the round ``mended``, and
    is asked about up to the round ``last``; H is well, and is asked about to the end.
    """
    lists = [
        heartbeat_row(
            consumer_group=group,
            client_id=f"10.0.0.{member}@app",
            client_addr=f"h{member}-{process}:1",
            snapshot_time=at(60 * number),
        )
        for group, rounds in (("G", last + 1), ("H", ROUNDS))
        for number in range(rounds)
        for member in range(2)
        for process in range(2 if (group, member) == ("G", 0) and number < mended else 1)
    ]
    routes = [route_row(snapshot_time=at(60 * number)) for number in range(ROUNDS)]
    tables = {"heartbeats": table(HEARTBEATS, lists), "topic_routes": table(TOPIC_ROUTES, routes)}
    return audit(tables)


@pytest.mark.parametrize(
    ("last", "mended", "now", "remark"),
    [
        (39, 60, "there when last seen at 00:39:00", "1 was there when the group was last asked"),
        # Files come late: a few rounds less are none.
        (51, 60, "still there", "1 is still there in the last snapshot."),
        (59, 60, "still there", "1 is still there in the last snapshot."),
        # It ended, however long ago the group was last asked about.
        (39, 20, "over since 00:19:00", "None of them is left in the last snapshot."),
    ],
)
def test_still_there_is_said_of_what_was_looked_for_to_the_end(
    last: int, mended: int, now: str, remark: str
) -> None:
    report = night(last, mended=mended)
    (problem,) = read_problems(report._tables)
    assert (problem.place.consumer_group, str(problem.now)) == ("G", now)
    verdict = read_verdict(report._tables)
    assert str(verdict.remarks[0]).startswith(remark)
    assert verdict.ongoing + verdict.unseen == (mended == ROUNDS)
    page = report._repr_html_()
    assert ("still there" in page.lower()) is (now == "still there")
    assert begin(now).split(" at ")[0] in page or now.startswith("over")
