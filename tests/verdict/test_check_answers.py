"""The answer to "did my fix work?": plain values in, and gone is earned."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.declared.instants import SECOND
from jobs.reports.run_findings import FindingRow
from jobs.reports.tables import Place
from jobs.verdict.check_answers import (
    CheckAnswers,
    Lack,
    NewLook,
    OffsetsSeen,
    OtherFault,
    answer,
)
from rebalance_core.texts import Text

MINUTE = 60 * SECOND
#: What lasts, in seconds and in minutes.
LEAST, MINUTES = 180, 3
#: The report ends at minute 0. The newer snapshots are of these minutes.
TEN = [n * MINUTE for n in range(1, 11)]


def finding(kind: str = "ORPHANED", **values: Any) -> FindingRow:
    place, causes = Place("C", "G", "T"), frozenset[str]()
    how_bad = "CRITICAL", True, True, 0, 0, None, 0, False
    return FindingRow("1", kind, place, ("a", 0), (), causes, *how_bad)._replace(**values)


def look(times: list[int] = TEN, **values: Any) -> NewLook:
    return NewLook(witnesses={"a": times, **values.pop("witnesses", {})}, **values)


def seen(first: int, last: int, *, ongoing: bool) -> FindingRow:
    times = {"first_seen": first * MINUTE, "last_seen": last * MINUTE}
    return finding(lasts=last - first >= MINUTES, ongoing=ongoing, **times)


def offsets(consumed: list[int], waiting: int) -> OffsetsSeen:
    times = [n * MINUTE for n in range(len(consumed))]
    return OffsetsSeen(times, consumed, [waiting] * len(consumed))


@pytest.mark.parametrize(
    ("new", "state", "at"),
    [
        # Nobody shows it, for long enough; and not for long enough yet.
        (look(), "GONE", None),
        (look(TEN[:4]), "GONE", None),
        (look(TEN[:3]), "NOT_YET", 4),
        (look(TEN[:1]), "NOT_YET", 4),
        # It is there, and lasts; or may pass; or went on after the report and went then.
        (look(sightings=[seen(1, 10, ongoing=True)]), "STILL_THERE", None),
        (look(sightings=[seen(9, 10, ongoing=True)]), "NOT_YET", 12),
        (look(sightings=[seen(1, 6, ongoing=False)]), "GONE", None),
        (look(sightings=[seen(1, 8, ongoing=False)]), "NOT_YET", 12),
        # One of two brokers looked for less; at first, at the end, or with a pause of an hour.
        (look(witnesses={"b": TEN[5:]}), "GONE", None),
        (look(witnesses={"b": TEN[:2]}), "NOT_YET", 12),
        (look(witnesses={"b": []}), "NOT_YET", 13),
        (look([MINUTE, 61 * MINUTE, 62 * MINUTE]), "NOT_YET", 64),
        # Nothing is newer than the report, or nothing came.
        (look([-MINUTE, 0]), "NOT_YET", None),
        (NewLook(), "NOT_YET", None),
        # Not all of it was read: up to a time, or at no time.
        (look(lacks=[Lack("a was silent", 4 * MINUTE)]), "GONE", None),
        (look(lacks=[Lack("a was silent", 8 * MINUTE)]), "NOT_YET", 12),
        (look(lacks=[Lack("not audited")]), "NOT_YET", None),
        # Nothing is left that it could be of.
        (look(left=Text("the queue left")), "GONE", None),
        (look(TEN[:1], left=Text("the queue left")), "NOT_YET", 4),
        (NewLook(is_deleted=True), "GONE", None),
        # Something came in its place: it counts, or is too new to.
        (look(others=[OtherFault("a stall", MINUTE, lasts=True)]), "OTHER_FAULT", None),
        (look(others=[OtherFault("a stall", 9 * MINUTE, lasts=False)]), "NOT_YET", 12),
        (look(TEN[:2], others=[OtherFault("a stall", MINUTE, lasts=True)]), "NOT_YET", 4),
        # What running infos show is gone when all who are listed have answered since.
        (look(members={"x": [MINUTE], "y": [2 * MINUTE]}), "GONE", None),
        (look(members={"x": [MINUTE], "y": [0]}), "NOT_YET", None),
        (look(members={"x": [MINUTE], "y": []}), "NOT_YET", None),
        (look(members={}), "NOT_YET", None),
        # A stall is gone when an offset moves, or nothing waits.
        (look(offsets=[offsets([5, 5, 5], 7), offsets([5, 5, 6], 7)]), "GONE", None),
        (look(offsets=[offsets([5, 5, 5], 0)]), "GONE", None),
        (look(offsets=[offsets([5, 5, 5], 7)]), "NOT_YET", None),
        (look(offsets=[]), "NOT_YET", None),
    ],
)
def test_gone_is_what_all_who_could_show_it_have_not_shown_for_long_enough(
    new: NewLook, state: str, at: int | None
) -> None:
    said = answer(finding(), new, LEAST)
    assert (said.state, said.at and said.at / MINUTE) == (state, at)
    assert said.reason


def test_of_several_the_one_that_can_be_said_last_decides_when() -> None:
    early, late = (
        answer(finding(), look(TEN[:1]), LEAST),
        answer(finding(), look([9 * MINUTE]), LEAST),
    )
    assert CheckAnswers([early, late]).at == late.at == 12 * MINUTE
    never = answer(finding(), look(lacks=[Lack("not audited")]), LEAST)
    assert CheckAnswers([early, never]).at is None
    assert CheckAnswers([early, never]).sentence.startswith("Cannot be said yet: ")
