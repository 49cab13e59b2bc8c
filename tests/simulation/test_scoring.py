"""The definitions of the scorer, and one small run of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rebalance_core.message_queue import MessageQueue
from tests.simulation.clock import MINUTE, SECOND
from tests.simulation.fleets import Fleet, draw_fleet
from tests.simulation.score import figures, heads, line_of, score_fleets, wilson
from tests.simulation.scoring import (
    FaultRow,
    Row,
    Score,
    begins_rightly,
    is_caused_so,
    judge_fault,
    judge_row,
    score,
    spells,
)
from tests.simulation.situations import SITUATIONS
from tests.simulation.truth import Truth

QUEUE = MessageQueue("T", "broker-a", 0)


@pytest.fixture
def fleet() -> Fleet:
    """Of 22 minutes or more; QUEUE is nobody's from 5:00 to 15:00, but for 30 s."""
    made = draw_fleet("healthy", [SITUATIONS["healthy"]], 1)
    truth = Truth()
    truth.queues_are(-MINUTE, {QUEUE})
    for time, queues in (
        (-MINUTE, {QUEUE}),
        (5 * MINUTE, set()),
        (10 * MINUTE, {QUEUE}),
        (10 * MINUTE + 30 * SECOND, set()),
        (15 * MINUTE, {QUEUE}),
    ):
        truth.reads(time, "p1", frozenset(queues))
    made.world.truth = truth
    for collector in made.collectors:
        # They polled what was before.
        collector.waiting.clear()
    return made


def orphan(start: int, end: int, certainty: str = "CERTAIN", **changed: object) -> Row:
    values: dict[str, Any] = {
        "persistence": "PERSISTENT",
        "probability": 1.0,
        "share_of_time": 1.0,
        "causes": (),
    } | changed
    return Row("healthy", "ORPHANED", QUEUE, start * MINUTE, end * MINUTE, certainty, **values)


@pytest.mark.parametrize(
    ("row", "is_true"),
    [
        (orphan(5, 15), True),
        # 9.5 of 12 minutes.
        (orphan(3, 15), False),
        (orphan(3, 15, share_of_time=0.8), True),
        (orphan(0, 20, "POSSIBLE"), True),
        (orphan(16, 20, "POSSIBLE"), False),
        # One round alone speaks for the time around it.
        (orphan(7, 7), True),
        (orphan(17, 17), False),
    ],
)
def test_a_row_is_true_if_the_queue_was_so_for_the_time_that_it_claims(
    fleet: Fleet, row: Row, is_true: bool
) -> None:
    assert judge_row(fleet, row).is_true == is_true


@pytest.mark.parametrize(("start", "end", "is_true"), [(2, 6, True), (16, 20, False)])
def test_a_transient_row_is_true_if_the_queue_was_so_at_any_moment(
    fleet: Fleet, start: int, end: int, is_true: bool
) -> None:
    row = orphan(start, end, persistence="TRANSIENT")
    assert judge_row(fleet, row).is_true == is_true


@pytest.mark.parametrize(("start", "rightly"), [(5, True), (13, False)])
def test_a_row_begins_rightly_near_the_time_at_which_it_began(
    fleet: Fleet, start: int, rightly: bool
) -> None:
    fleet.habits.interval, fleet.habits.drift = MINUTE, 0
    assert begins_rightly(fleet, orphan(start, 15)) == rightly


def test_a_cause_is_right_if_the_fleet_has_the_fault_then(fleet: Fleet) -> None:
    fleet.plant("RECONNECTING", 0, 2 * MINUTE)
    fleet.faults.add("FLAPPING")
    causes = ["RECONNECTING", "FLAPPING", "GROUP_OFFLINE"]
    found = [is_caused_so(fleet, orphan(7, 15, causes=(each,))) for each in causes]
    assert found == [False, True, False]
    assert is_caused_so(fleet, orphan(3, 15, causes=("RECONNECTING",)))


def fault(name: str, start: int, end: int, *client_ids: str) -> FaultRow:
    of_time = (start * MINUTE, end * MINUTE)
    return FaultRow("healthy", name, "T", *of_time, client_ids, (), "PERSISTENT", "WARNING")


def test_a_planted_fault_is_right_with_its_members_in_its_time(fleet: Fleet) -> None:
    pod = fleet.pods[0]
    (mine,) = pod.client_ids
    fleet.plant("RECONNECTING", 5 * MINUTE, 10 * MINUTE, pods=[pod])
    assert judge_fault(fleet, fault("RECONNECTING", 6, 9, mine))
    assert not judge_fault(fleet, fault("RECONNECTING", 6, 9, mine, "another"))
    assert not judge_fault(fleet, fault("RECONNECTING", 14, 20, mine))
    assert not judge_fault(fleet, fault("FLAPPING", 6, 9, mine))
    assert judge_fault(fleet, fault("ROUTE_CHANGED", 6, 9)) is None


@pytest.mark.parametrize(
    ("name", "start", "is_right", "begun"),
    [
        ("broker-a", 6, True, [True]),
        ("broker-b", 6, False, []),
        # Two rounds and what a round takes: at 7:10 at the latest.
        ("broker-a", 9, True, [False]),
        ("broker-b", 9, False, []),
    ],
)
def test_a_planted_fault_is_right_with_its_brokers_and_begins_when_it_began(
    fleet: Fleet, name: str, start: int, is_right: bool, begun: list[bool]
) -> None:
    fleet.habits.interval, fleet.habits.drift = MINUTE, 0
    fleet.plant("GROUP_NOT_ON_BROKER", 5 * MINUTE, 15 * MINUTE, broker_names=["broker-a"])
    row = replace(fault("GROUP_NOT_ON_BROKER", start, 15), broker_names=(name,))
    found = score(fleet, [], [], [row])
    assert [right for _, right in found.faults] == [is_right]
    assert [right for _, right in found.begun] == begun


@pytest.mark.parametrize(
    ("name", "start", "end", "is_right"),
    [
        *(("DUPLICATE_CLIENT_ID", 6, 9, True), ("DUPLICATE_CLIENT_ID", 1, 6, False)),
        *(("STALE_CHANNEL", 1, 6, True), ("STALE_CHANNEL", 6, 9, False)),
        *(("FROZEN_PROCESS", 11, 16, True), ("FROZEN_PROCESS", 1, 9, False)),
        ("GHOST_MEMBER", 11, 16, True),
    ],
)
def test_faults_of_processes_are_judged_by_what_ran_behind_the_id(
    fleet: Fleet, name: str, start: int, end: int, is_right: bool
) -> None:
    truth = fleet.truth
    truth.is_behind(0, "x", "p1", alive=True, works=True)
    truth.is_behind(5 * MINUTE, "x", "p2", alive=True, works=False)
    truth.is_behind(10 * MINUTE, "x", "p1", alive=False, works=False)
    assert judge_fault(fleet, fault(name, start, end, "x")) is is_right


def test_a_probability_is_close_within_a_factor_of_two(fleet: Fleet) -> None:
    assert judge_row(fleet, orphan(5, 15, "POSSIBLE", probability=0.5)).is_close
    assert not judge_row(fleet, orphan(5, 15, "POSSIBLE", probability=0.4)).is_close
    assert not judge_row(fleet, orphan(16, 20, "POSSIBLE", probability=0.1)).is_close


def test_a_short_gap_does_not_end_a_spell(fleet: Fleet) -> None:
    (spell,) = spells(fleet)
    assert (spell.start, spell.end) == (5 * MINUTE, 15 * MINUTE)
    assert spell.so == pytest.approx(0.95)


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        ([orphan(5, 15)], True),
        ([orphan(5, 8), orphan(12, 15)], True),
        ([orphan(5, 8)], False),
        ([orphan(5, 15, persistence="TRANSIENT")], False),
        ([], False),
    ],
)
def test_a_spell_is_found_where_lasting_rows_cover_half_of_it(
    fleet: Fleet, rows: list[Row], found: bool
) -> None:
    assert bool(score(fleet, rows, [], []).missed) != found


def test_a_stall_that_lasts_tells_an_orphan_too(fleet: Fleet) -> None:
    assert not score(fleet, [], [orphan(6, 15)], []).missed


def test_a_stall_is_true_while_nobody_handles_what_somebody_reads(fleet: Fleet) -> None:
    # From 16:00 on it is read and not handled, as by a listener that hangs.
    fleet.truth.reads(16 * MINUTE, "p1", frozenset({QUEUE}), frozenset())
    stalls = [replace(orphan(start, start + 4), kind="STALLED") for start in (1, 6, 16)]
    assert [each.is_true for each in score(fleet, [], stalls, []).stalls] == [False, True, True]


def test_a_fault_that_is_not_there_is_wrong_and_one_that_must_be_told_is_missed(
    fleet: Fleet,
) -> None:
    fleet.must.add("RECONNECTING")
    result = score(fleet, [], [], [fault("GROUP_OFFLINE", 0, 9)])
    assert (result.faults_missed, result.faults_wrong) == ({"RECONNECTING"}, {"GROUP_OFFLINE"})


@pytest.mark.parametrize(
    ("true", "of", "least", "most"),
    [
        (0, 10, 0.0, 0.2775),
        (10, 10, 0.7225, 1.0),
        (99, 100, 0.9455, 0.9982),
        (500, 1000, 0.469, 0.531),
    ],
)
def test_an_interval_is_that_of_wilson(true: int, of: int, least: float, most: float) -> None:
    assert wilson(true, of) == pytest.approx((least, most), abs=0.0005)


def test_a_line_has_what_lasts_by_severity_and_in_how_many_fleets_it_is_false(
    fleet: Fleet,
) -> None:
    fleet.plant("FLAPPING", 0)
    right, wrong = orphan(5, 15, severity="CRITICAL"), orphan(16, 20, severity="CRITICAL")
    faults = [fault("FLAPPING", 5, 15), replace(fault("RECONNECTING", 5, 15), severity="INFO")]
    passing = replace(right, persistence="TRANSIENT")
    scores = [score(fleet, rows, [], faults) for rows in ([right, passing], [right, wrong])]
    cells = [each.strip() for each in line_of("60 s", scores).split("|")[1:-1]]
    assert cells == [
        "60 s",
        "2",
        "66.7% [20.8%, 93.9%] of 3; false in 1",
        "66.7% [20.8%, 93.9%] of 3; false in 1",
        "100.0% [34.2%, 100.0%] of 2; false in 0",
    ]
    assert heads("rounds of")[0].count("|") == len(cells) + 1
    assert "none" in line_of("60 s", [Score(fleet)])


def test_where_nothing_is_wrong_every_fault_is_false_but_what_is_harmless(fleet: Fleet) -> None:
    # It says of no situation that it is there, or that it is not.
    other = fault("READ_TWICE", 5, 15)
    assert judge_fault(fleet, other) is False
    assert judge_fault(fleet, replace(other, severity="INFO")) is None
    fleet.faults.add("GHOST_MEMBER")
    assert judge_fault(fleet, other) is None


@pytest.mark.parametrize(("interval", "is_asked"), [(60, True), (120, True), (300, False)])
def test_a_fault_too_short_for_the_rounds_is_not_asked_for(
    fleet: Fleet, interval: int, is_asked: bool
) -> None:
    fleet.habits.interval = interval * SECOND
    fleet.plant("ROUTE_DIVERGENCE", 5 * MINUTE, 12 * MINUTE)
    fleet.plant("OFFSETS_WENT_BACK", 5 * MINUTE, 6 * MINUTE)
    missed = score(fleet, [], [], []).faults_missed
    assert missed == {"OFFSETS_WENT_BACK"} | ({"ROUTE_DIVERGENCE"} if is_asked else set())


@pytest.mark.long
def test_some_fleets_have_no_certain_lasting_row_that_is_false(tmp_path: Path) -> None:
    # The first ones are the deploys, the restarts, the churn and the duplicate ids.
    scores = score_fleets(14, 9, tmp_path / "truth", None, keep=False)
    rows = [judged for each in scores for judged in each.rows]
    assert any(judged.row.certainty == "CERTAIN" for judged in rows)
    false = [each for each in rows if each.row.certainty == "CERTAIN" and not each.is_true]
    assert not false
    assert any(line.startswith("situation") for line in figures(scores))
