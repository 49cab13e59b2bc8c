"""What rounds of five minutes show of a group that comes and goes, and what they do not."""

from __future__ import annotations

import pytest

from tests.cases.small_dumps import MEMBERS, OFFLINE, rounds


@pytest.mark.parametrize(
    ("every", "away", "certainty", "share_of_time"),
    [
        # It is away when it is asked, and back in between: nobody knows for how long.
        pytest.param(5, "x.x", "POSSIBLE", 2 / 3, id="two of three"),
        pytest.param(5, "xx.x", "POSSIBLE", 3 / 4, id="three of four"),
        pytest.param(5, "xxx.xx.xxx", "POSSIBLE", 8 / 10, id="again and again"),
        # It was away all the time, or but for one time between two long ones.
        pytest.param(5, "xxx", "CERTAIN", 1.0, id="all the time"),
        pytest.param(5, "xxxxx...xxxxx", "CERTAIN", 10 / 13, id="two long times"),
        # What lasts does not fit between two rounds of a minute.
        pytest.param(1, "x.x.x.x.x", "CERTAIN", 5 / 9, id="each minute"),
    ],
)
def test_what_few_coarse_rounds_interrupt_is_possible(audit, every, away, certainty, share_of_time):
    """``away``: by round whether no broker lists a member; before and after all are there."""
    shown = f"...{away}..."
    minutes = [every * number for number in range(len(shown))]
    nobody = {every * number for number, mark in enumerate(shown) if mark == "x"}
    lines = rounds(lambda minute, _: OFFLINE if minute in nobody else MEMBERS, minutes=minutes)

    orphans = audit(lines)["orphaned_queues"]

    assert len(orphans) == 8
    assert {row["causes"][0] for row in orphans} == {"GROUP_OFFLINE"}
    assert {row["certainty"] for row in orphans} == {certainty}
    (share,) = {row["share_of_time"] for row in orphans}
    assert share == pytest.approx(share_of_time)
    assert {row["severity"] for row in orphans} == {"CRITICAL"}
