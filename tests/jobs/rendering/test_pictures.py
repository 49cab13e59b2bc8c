"""Who had which queue when, and who would have it after the repair."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from jobs.rendering.drawings import draw_allocation, draw_timeline
from jobs.rendering.pictures import (
    MOST_LANES,
    AfterRepair,
    Queue,
    States,
    Timeline,
    after_repair,
    number_clients,
    timeline,
)
from tests.support.published import (
    allocation,
    finding,
    minute,
    queue,
    run,
    two_processes_share_one_client_id,
)

TABLES = two_processes_share_one_client_id()


def states(tables: dict[str, list[dict[str, Any]]] = TABLES) -> States:
    return States(tables["state_runs"], tables["allocations"])


def seen() -> Timeline:
    findings = {"ORPHANED": TABLES["orphaned_queues"], "DUPLICATE": TABLES["duplicate_queues"]}
    picture = timeline(states(), findings, TABLES["group_faults"], TABLES["reassignments"])
    assert picture is not None
    return picture


def repaired() -> AfterRepair:
    repair = after_repair(states(), TABLES["group_faults"][0])
    assert repair is not None
    return repair


def test_a_lane_tells_who_took_the_queue_until_the_next_state() -> None:
    lane = seen().lanes[2]
    assert lane.queue == Queue("broker-a", 2)
    before, after = lane.stretches
    assert [taker.client_id for taker in before.takers] == ["b"]
    assert before.end == after.start == minute(10)
    assert after.takers == ()
    assert after.end == minute(20)  # the last snapshot, and one interval
    assert [(m.kind, m.start, m.end, m.possible) for m in lane.marks] == [
        ("ORPHANED", minute(10), minute(20), False)
    ]


def test_states_with_the_same_taker_are_one_stretch() -> None:
    tables = {
        "state_runs": [run("s1", 0, 4), run("s2", 5, 9)],
        "allocations": [allocation("s1", "a", [0]), allocation("s2", "a", [0])],
    }
    (stretch,) = states(tables).stretches(Queue("broker-a", 0), minute(0), minute(60))
    assert (stretch.start, stretch.end) == (minute(0), minute(10))


def test_time_of_which_nothing_is_known_stays_empty() -> None:
    tables = {
        "state_runs": [run("s1", 0, 4), run("s1", 30, 34)],
        "allocations": [allocation("s1", "a", [0])],
    }
    stretches = states(tables).stretches(Queue("broker-a", 0), minute(0), minute(60))
    assert [(each.start, each.end) for each in stretches] == [
        (minute(0), minute(5)),
        (minute(30), minute(35)),
    ]


def test_a_client_that_takes_a_queue_under_some_views_takes_a_share() -> None:
    rows = [
        allocation("s1", "a", [0], view_weight=0.75),
        allocation("s1", "b", [0], view_weight=0.25),
    ]
    tables = {"state_runs": [run("s1", 0, 4)], "allocations": rows}
    (stretch,) = states(tables).stretches(Queue("broker-a", 0), minute(0), minute(60))
    assert [(taker.client_id, taker.share) for taker in stretch.takers] == [
        ("a", 0.75),
        ("b", 0.25),
    ]


def test_the_picture_is_of_the_time_around_the_findings() -> None:
    runs = [run("s1", 0, 599), run("s2", 600, 609), run("s1", 610, 1439)]
    late = finding(first_seen=minute(600), last_seen=minute(609))
    picture = timeline(States(runs, []), {"ORPHANED": [late]}, [], [])
    assert picture is not None
    assert picture.start < minute(600)
    assert picture.end > minute(610)
    assert picture.end - picture.start < timedelta(minutes=30)


def test_of_many_queues_the_faulty_ones_are_drawn() -> None:
    rows = [allocation("s1", "a", list(range(100)))]
    picture = timeline(States([run("s1", 0, 30)], rows), {"ORPHANED": [finding(99)]}, [], [])
    assert picture is not None
    assert len(picture.lanes) == MOST_LANES
    assert picture.lanes[-1].queue == Queue("broker-a", 99)
    assert picture.lanes_left_out == 100 - MOST_LANES


def test_who_left_is_a_change() -> None:
    (change,) = seen().changes
    assert (change.sign, change.text) == ("-", "b left, 2 queues moved")


def test_the_repair_is_the_allocation_with_its_moves() -> None:
    repair = repaired()
    queues = [Queue("broker-a", number) for number in range(4)]
    assert [repair.now[each] for each in queues] == [("a", "a"), ("a", "a"), (), ()]
    assert [repair.then[each] for each in queues] == [
        ("a",),
        ("a",),
        ("a (process 2)",),
        ("a (process 2)",),
    ]
    assert repair.takers == ("a", "a (process 2)")
    assert repair.moved == 4


def test_without_moves_there_is_nothing_to_preview() -> None:
    assert after_repair(states(), {**TABLES["group_faults"][0], "moves": []}) is None


def test_orphans_and_duplicates_are_drawn_with_more_than_a_colour() -> None:
    drawing = draw_timeline(seen(), {"a": 1, "b": 2})
    assert {shape.css for shape in drawing.shapes} >= {"mark orphaned", "mark duplicate"}
    texts = [label.text for label in drawing.labels]
    assert texts.count("✕ nobody") == 2
    assert texts.count("1x2") == 2  # two processes of one id
    assert "2 stretches duplicate, 2 stretches orphaned" in drawing.description


def test_the_allocation_is_drawn_as_it_is_and_after_the_repair() -> None:
    numbers = number_clients(["a", "b"])
    now = draw_allocation(repaired(), numbers, repaired=False)
    then = draw_allocation(repaired(), numbers, repaired=True)
    assert now.description == "2 clients and 4 queues: 2 with nobody, 2 with several"
    assert then.description == "2 clients and 4 queues: 0 with nobody, 0 with several"
    assert "moved" in {shape.css for shape in then.shapes}
    assert "✕" not in {label.text for label in then.labels}


def test_a_member_without_queues_has_a_row_too() -> None:
    tables = {
        **TABLES,
        "allocations": [*TABLES["allocations"], allocation("s2", "idle", [])],
    }
    repair = after_repair(states(tables), TABLES["group_faults"][0])
    assert repair is not None
    assert "idle" in repair.takers


def test_clients_are_numbered_as_rocketmq_sorts_them() -> None:
    assert number_clients(["b", "a", "B"]) == {"B": 1, "a": 2, "b": 3}


def test_a_queue_is_told_from_one_of_another_broker() -> None:
    rows = [
        allocation("s1", "a", [0]),
        {**allocation("s1", "b", []), "queues": [queue(0, "broker-b")]},
    ]
    assert States([run("s1", 0, 1)], rows).queues == {Queue("broker-a", 0), Queue("broker-b", 0)}
