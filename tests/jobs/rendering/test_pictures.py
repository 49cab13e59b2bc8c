"""Who had which queue when, and who would have it after the repair."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from jobs.rendering.drawings import draw_allocation
from jobs.rendering.pictures import (
    MOST_LANES,
    AfterRepair,
    States,
    TimelinePicture,
    after_repair,
    number_clients,
    timeline,
)
from jobs.reports.run_findings import PlaceFinding, PlaceQueue, read_findings
from tests.support.published import (
    RowTables,
    allocation,
    fault,
    finding,
    minute,
    queue,
    run,
    two_processes_share_one_client_id,
)

TABLES = two_processes_share_one_client_id()


A_0 = PlaceQueue("broker-a", 0)


def states(tables: dict[str, list[dict[str, Any]]] = TABLES) -> States:
    return States(tables["state_runs"], tables["allocations"])


def found(**tables: list[dict[str, Any]]) -> tuple[PlaceFinding, ...]:
    return next(iter(read_findings(RowTables(**tables)).values()))


def drawn(
    of: States | None = None,
    findings: tuple[PlaceFinding, ...] = (),
    faults: Sequence[dict[str, Any]] = (),
    changes: Sequence[dict[str, Any]] = (),
) -> TimelinePicture:
    picture = timeline(of or states(), findings, list(faults), list(changes))
    assert picture is not None
    return picture


def seen() -> TimelinePicture:
    return drawn(None, found(**TABLES), TABLES["group_faults"], TABLES["reassignments"])


def repaired(fault: dict[str, Any] = TABLES["group_faults"][0], **tables: Any) -> AfterRepair:
    repair = after_repair(states(TABLES | tables), fault)
    assert repair is not None
    return repair


def test_a_lane_tells_who_took_the_queue_until_the_next_state() -> None:
    lane = seen().lanes[2]
    assert lane.queue == PlaceQueue("broker-a", 2)
    before, after = lane.periods
    assert [taker.client_id for taker in before.takers] == ["b"]
    assert before.ends == after.begins == minute(10)
    assert after.takers == ()
    assert after.ends == minute(20)  # the last snapshot, and one interval
    assert [(m.kind, m.begins, m.ends, m.possible) for m in lane.marks] == [
        ("ORPHANED", minute(10), minute(20), False)
    ]


def test_states_with_the_same_taker_are_one_period() -> None:
    of = States([run("s1", 0, 4), run("s2", 5, 9)], [allocation(n, "a", [0]) for n in ("s1", "s2")])
    (period,) = of.periods(A_0, minute(0), minute(60))
    assert (period.begins, period.ends) == (minute(0), minute(10))
    (part,) = of.periods(A_0, minute(6), minute(7))
    assert (part.begins, part.ends) == (minute(6), minute(7))


def test_time_of_which_nothing_is_known_stays_empty() -> None:
    of = States([run("s1", 0, 4), run("s1", 30, 34)], [allocation("s1", "a", [0])])
    times = [(each.begins, each.ends) for each in of.periods(A_0, minute(0), minute(60))]
    assert times == [(minute(0), minute(5)), (minute(30), minute(35))]


def test_a_client_that_takes_a_queue_under_some_views_takes_a_share() -> None:
    shares = [("a", 0.75), ("b", 0.25)]
    rows = [allocation("s1", own, [0], view_weight=share) for own, share in shares]
    (period,) = States([run("s1", 0, 4)], rows).periods(A_0, minute(0), minute(60))
    assert [(taker.client_id, taker.share) for taker in period.takers] == shares


def change(**values: Any) -> tuple[str, str]:
    """Sign and words of a reassignment."""
    row = {**TABLES["reassignments"][0], "clients_left": [], "queues_moved": 1, **values}
    (found,) = drawn(changes=[row]).changes
    return found.sign, found.text


def test_who_came_and_left_and_what_else_changed_is_told() -> None:
    names = [f"c{number}" for number in range(5)]
    assert change(clients_joined=["b"]) == ("+", "b joined, 1 queue moved")
    several = change(clients_joined=names[:3], clients_left=["b"], queues_moved=1200)
    assert several == ("*", "c0, c1 and c2 joined, b left, 1,200 queues moved")
    assert change(clients_left=names) == ("-", "c0, c1, c2 and 2 more left, 1 queue moved")
    assert change(queues=1) == ("*", "1 queue instead of 4, 1 queue moved")


def test_changes_outside_of_the_picture_are_not_in_it() -> None:
    row = TABLES["reassignments"][0]
    rows = [{**row, "changed_at": minute(number)} for number in (-1, 0, 20, 21)]
    assert [each.at for each in drawn(changes=rows).changes] == [minute(0), minute(20)]


def test_the_faults_that_took_longest_have_bars_the_longest_first() -> None:
    def lasting(name: str, *times: tuple[float, float]) -> list[dict[str, Any]]:
        return [fault(name, first_seen=minute(s), last_seen=minute(e)) for s, e in times]

    rows = [
        *lasting("GHOST_MEMBER", (12, 13), (2, 6)),
        *lasting("ROUTE_CHANGED", (4, 4)),
        *lasting("STRATEGY_MISMATCH", (0, 19)),
        *lasting("CONFIG_GAP", (4, 6)),
        *lasting("CONFIG_OVERLAP", (4, 8)),
    ]
    faults = drawn(faults=rows).faults
    longest = ["STRATEGY_MISMATCH", "GHOST_MEMBER", "CONFIG_OVERLAP", "CONFIG_GAP"]
    assert list(faults) == longest
    assert faults["GHOST_MEMBER"] == [(minute(2), minute(7)), (minute(12), minute(14))]


def test_without_findings_the_picture_is_of_all_snapshots() -> None:
    picture = drawn()
    assert (picture.begins, picture.ends) == (minute(0), minute(20))
    assert timeline(States([], []), (), [], []) is None


def test_around_the_findings_is_an_eighth_of_their_time_and_four_snapshots_at_least() -> None:
    of = States([run("s1", 0, 599)], [])
    cases = [([(300, 309)], 296, 314), ([(200, 279), (300, 359)], 180, 380), ([(0, 599)], 0, 600)]
    for times, start, end in cases:
        rows = [finding(first_seen=minute(s), last_seen=minute(e)) for s, e in times]
        picture = drawn(of, found(orphaned_queues=rows[:1], duplicate_queues=rows[1:]))
        assert (picture.begins, picture.ends) == (minute(start), minute(end))
    picture = drawn(of, faults=[fault(first_seen=minute(300), last_seen=minute(309))])
    assert (picture.begins, picture.ends) == (minute(296), minute(314))


def test_what_a_snapshot_shows_lasts_to_the_next_one_if_this_comes_in_time() -> None:
    # In whatever order the table has its rows.
    of = States([run("s3", 13, 14), run("s1", 0, 4), run("s2", 7, 9)], [])
    assert of.extent == (minute(0), minute(15))
    assert of.interval == timedelta(minutes=1)
    ends = {4: 7, 9: 10, 14: 15}
    assert [of.ends_of(minute(last)) for last in ends] == [minute(end) for end in ends.values()]
    shown = {-1: None, 0: "s1", 4: "s1", 5: None, 7: "s2", 14: "s3", 15: None}
    assert {each: of.state_at(minute(each)) for each in shown} == shown
    rare = States([run("s1", 0, 0), run("s2", 5, 5), run("s3", 10, 10)], [])
    assert rare.interval == timedelta(minutes=5)
    assert States([run("s1", 0, 0)], []).interval == timedelta(minutes=1)


def test_a_stall_ends_where_it_was_seen_last_and_a_finding_with_the_snapshot() -> None:
    row = finding(certainty="POSSIBLE", persistence="TRANSIENT")
    findings = found(stalled_queues=[{**row, "certainty": None}], orphaned_queues=[row])
    picture = drawn(None, findings)
    marks = {mark.kind: mark for mark in picture.lanes[0].marks}
    assert marks["STALLED"].ends == minute(19)
    assert marks["ORPHANED"].ends == minute(20)
    assert (marks["STALLED"].possible, marks["ORPHANED"].possible) == (False, True)
    assert not marks["ORPHANED"].lasts


def test_faulty_queues_come_before_healthy_ones_of_lower_numbers() -> None:
    rows = [allocation("s1", "a", list(range(40)))]
    faulty = [finding(number) for number in range(10, 40)]
    of = States([run("s1", 0, 30)], rows)
    picture = drawn(of, found(orphaned_queues=faulty))
    assert [lane.queue.queue_id for lane in picture.lanes] == list(range(10, 10 + MOST_LANES))
    assert picture.lanes_left_out == 40 - MOST_LANES
    few = drawn(of, found(orphaned_queues=faulty[-1:]))
    assert [lane.queue.queue_id for lane in few.lanes] == [*range(MOST_LANES - 1), 39]


def test_the_repair_shows_what_moves_and_of_the_rest_as_much_as_has_room() -> None:
    tables = {
        "state_runs": [run("s1", 0, 9)],
        "allocations": [
            allocation("s1", "a", list(range(38)), view_weight=0.5),
            allocation("s1", "b", [39], processes=2),
            allocation("s1", "d", [38]),
            allocation("other", "c", [0]),
        ],
    }
    moves = [{**queue(39), "before": ["b", "b"], "after": ["b (process 2)"]}]
    row = fault(last_seen=minute(9), moves=moves, findings_cleared=3, findings_left=1)
    repair = repaired(row, **tables)
    assert [each.queue_id for each in repair.queues] == [*range(MOST_LANES - 1), 39]
    assert repair.now[PlaceQueue("broker-a", 38)] == ("d",)
    assert repair.queues_left_out == 40 - MOST_LANES
    assert repair.now[PlaceQueue("broker-a", 0)] == ("a (at times)",)
    assert repair.now[PlaceQueue("broker-a", 39)] == ("b", "b")
    assert repair.takers == ("a", "b", "b (process 2)", "d")
    assert repair.moved == 1
    assert (repair.fault["findings_cleared"], repair.fault["findings_left"]) == (3, 1)
    assert after_repair(states(tables), {**row, "last_seen": minute(10)}) is None


def test_the_repair_is_the_allocation_with_its_moves() -> None:
    repair = repaired()
    queues = [PlaceQueue("broker-a", number) for number in range(4)]
    assert [repair.now[each] for each in queues] == [("a", "a"), ("a", "a"), (), ()]
    then = [("a",), ("a",), ("a (process 2)",), ("a (process 2)",)]
    assert [repair.then[each] for each in queues] == then
    assert repair.takers == ("a", "a (process 2)")
    assert repair.moved == 4


def test_without_moves_there_is_nothing_to_preview() -> None:
    assert after_repair(states(), {**TABLES["group_faults"][0], "moves": []}) is None


def test_a_member_without_queues_has_a_row_too() -> None:
    own = [*TABLES["allocations"], allocation("s2", "idle", [])]
    assert "idle" in repaired(allocations=own).takers


def test_clients_are_numbered_as_rocketmq_sorts_them() -> None:
    assert number_clients(["b", "a", "B"]) == {"B": 1, "a": 2, "b": 3}


def test_a_queue_is_told_from_one_of_another_broker() -> None:
    of_b = {**allocation("s1", "b", []), "queues": [queue(0, "broker-b")]}
    of = States([run("s1", 0, 1)], [allocation("s1", "a", [0]), of_b])
    assert set(of.takers["s1"]) == {A_0, PlaceQueue("broker-b", 0)}


def test_a_queue_that_has_left_the_route_is_gone_and_not_nobodys() -> None:
    """One nameserver's route had it alone: when all give the same route it is in none."""
    only_one = {**queue(1), "before": ["a"], "after": []}
    divergence = fault("ROUTE_DIVERGENCE", moves=[only_one], findings_left=1)
    changed = repaired(divergence)
    assert changed.gone == {PlaceQueue("broker-a", 1)}
    drawing = draw_allocation(changed, {"a": 1}, repaired=True)
    assert ": 0 with nobody," in drawing.description
    # What a repair does not reach is still nobody's.
    other = repaired(fault("GHOST_MEMBER", moves=[only_one], findings_left=1))
    assert other.gone == frozenset()
    assert ": 1 with nobody," in draw_allocation(other, {"a": 1}, repaired=True).description
