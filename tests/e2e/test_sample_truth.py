"""The audit of a real cluster's dumps, against what its consumer processes wrote down."""

from __future__ import annotations

import gzip
import json
from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from itertools import product
from math import prod
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.support.reports import PublishedReports
from tests.support.truth import CAPTURES, SITUATIONS, TopicTruth, rounds

pytestmark = pytest.mark.e2e

#: The brokers' lists differ, or a process is frozen: nothing is certain there.
UNCERTAIN = {"S14b", "S15"}
SETTLED = [
    truth
    for situation in SITUATIONS
    if situation not in UNCERTAIN
    for truth in rounds(situation)
    if truth.full
]

#: (consumer_group, topic, fault) of what lasted.
LASTING_FAULTS = {
    ("G_S2", "T_S2", "DUPLICATE_CLIENT_ID"),
    ("G_S2", "%RETRY%G_S2", "DUPLICATE_CLIENT_ID"),
    ("G_S3", "T_S3", "STRATEGY_MISMATCH"),
    ("G_S4", "T_S4B", "SUBSCRIPTION_MISMATCH"),
    ("G_S14b", "T_S14b", "FROZEN_PROCESS"),
    ("G_S15", "T_S15", "BROKER_VIEW_DIVERGENCE"),
    ("G_S15", "%RETRY%G_S15", "BROKER_VIEW_DIVERGENCE"),
}


TABLES = ("orphaned_queues", "duplicate_queues")
of_each_table = pytest.mark.parametrize("table", TABLES)


def fault(row: dict[str, object]) -> tuple[object, object, object]:
    return row["consumer_group"], row["topic"], row["fault"]


def queue(row: dict[str, object]) -> tuple[object, object]:
    return row["broker_name"], row["queue_id"]


def test_there_are_settled_rounds_of_every_situation() -> None:
    assert len(SETTLED) > 70
    assert {truth.situation for truth in SETTLED} == set(SITUATIONS) - UNCERTAIN


@pytest.mark.parametrize("truth", SETTLED, ids=str)
def test_orphans_and_duplicates_are_those_that_were_held(
    sample: PublishedReports, truth: TopicTruth
) -> None:
    where = (truth.consumer_group, truth.topic, truth.time)
    orphans = sample.at("orphaned_queues", *where)
    duplicates = sample.at("duplicate_queues", *where)
    assert {row["certainty"] for row in orphans + duplicates} <= {"CERTAIN"}
    assert {queue(row) for row in orphans} == truth.orphans
    assert {
        queue(row): sum(claimant["processes"] for claimant in row["claimants"])
        for row in duplicates
    } == truth.duplicates


@pytest.mark.parametrize("truth", SETTLED, ids=str)
def test_allocations_are_what_each_process_held(
    sample: PublishedReports, truth: TopicTruth
) -> None:
    (run,) = sample.at("state_runs", truth.consumer_group, truth.topic, truth.time)
    computed = {
        row["client_id"]: [sorted(queue(each) for each in row["queues"])] * row["processes"]
        for row in sample.rows("allocations")
        if row["state_id"] == run["state_id"]
    }
    assert computed == truth.held


def test_the_stacked_id_is_the_one_that_two_processes_share(sample: PublishedReports) -> None:
    (row,) = sample.rows("stacked_client_ids")
    assert (row["consumer_group"], row["client_id"]) == ("G_S2", "10.0.2.10@app-DUP")
    assert (row["processes"], row["verdict"], row["persistence"]) == (2, "STACKED", "PERSISTENT")


@of_each_table
def test_faults_last_and_deploys_pass(sample: PublishedReports, table: str) -> None:
    """And nothing lasts where nothing was wrong."""
    rows = sample.rows(table)
    lasting = {row["consumer_group"] for row in rows if row["persistence"] == "PERSISTENT"}
    certain = {row["consumer_group"] for row in rows if row["certainty"] == "CERTAIN"}
    faulty = {"G_S2", "G_S3"} | ({"G_S4"} if table == "orphaned_queues" else set())
    assert lasting == faulty | {"G_S15"}
    assert certain == faulty


def test_the_faults_that_last_are_those_that_were_set_up(sample: PublishedReports) -> None:
    lasting = [
        fault(row) for row in sample.rows("group_faults") if row["persistence"] == "PERSISTENT"
    ]
    assert Counter(lasting) == Counter(LASTING_FAULTS)


def test_what_passes_is_the_change_of_a_route_and_lists_that_differ_for_a_while(
    sample: PublishedReports,
) -> None:
    passing = [row for row in sample.rows("group_faults") if row["persistence"] == "TRANSIENT"]
    changes = [row for row in passing if row["fault"] == "ROUTE_CHANGED"]
    assert sorted((*fault(row)[:2], row["first_seen"]) for row in changes) == [
        ("G_S17", "T_S17", datetime(2026, 11, 21, 2, 14, 29, 268000, UTC)),
        ("G_S17", "T_S17", datetime(2026, 11, 21, 2, 15, 16, 427000, UTC)),
    ]
    others = [row for row in passing if row["fault"] != "ROUTE_CHANGED"]
    assert {(row["consumer_group"], row["fault"]) for row in others} == {
        ("G_S14b", "BROKER_VIEW_DIVERGENCE")
    }


def test_the_repair_of_every_fault_leaves_no_finding(sample: PublishedReports) -> None:
    rows = sample.rows("group_faults")
    assert {row["findings_left"] for row in rows} == {0}
    # A fault of findings clears some; the change of a route and a process that stands still have
    # none.
    without = {row["fault"] for row in rows if row["findings_cleared"] == 0}
    assert without == {"ROUTE_CHANGED", "FROZEN_PROCESS"}


@of_each_table
def test_the_causes_of_every_finding_are_the_faults_of_its_group(
    sample: PublishedReports, table: str
) -> None:
    causes_of = {group: [cause] for group, _, cause in LASTING_FAULTS}
    causes_of["G_S14b"] = ["BROKER_VIEW_DIVERGENCE"]
    rows = sample.rows(table)
    assert rows
    for row in rows:
        assert row["causes"] == causes_of[row["consumer_group"]], row


@pytest.mark.parametrize("situation", sorted(UNCERTAIN))
def test_all_that_went_wrong_was_possible_and_nothing_was_called_certain(
    sample: PublishedReports, situation: str
) -> None:
    for truth in rounds(situation):
        where = (truth.consumer_group, truth.topic, truth.time)
        for table, wrong in zip(TABLES, (truth.orphans, set(truth.duplicates)), strict=True):
            found = sample.at(table, *where)
            assert all(row["certainty"] == "POSSIBLE" for row in found)
            assert all(0 < row["probability"] < 1 for row in found)
            if situation == "S15" and table == "duplicate_queues":
                assert wrong <= {queue(row) for row in found}, truth


def test_the_queues_of_the_frozen_process_and_no_others_stalled(sample: PublishedReports) -> None:
    stalls = sample.rows("stalled_queues")
    assert {(row["topic"], *queue(row)) for row in stalls} == {
        ("T_S14b", "broker-a", 3),
        ("T_S14b", "broker-b", 0),
        ("T_S14b", "broker-b", 1),
    }
    assert len(stalls) == 3
    for row in stalls:
        assert row["persistence"] == "PERSISTENT"
        assert (row["backlog"], row["backlog_growth"]) == (20, 0)
        assert row["owners"] == ["10.0.14.22@app"]
    (frozen,) = [r for r in sample.rows("group_faults") if r["fault"] == "FROZEN_PROCESS"]
    assert frozen["client_ids"] == ["10.0.14.22@app"]
    assert frozen["evidence"] == (
        "queue 3 of broker-a and queues 0-1 of broker-b are computed for 10.0.14.22@app; none of "
        "them moved from 02:23:39 to 02:25:15 UTC while other clients' queues did; 60 messages wait"
    )


def test_messages_piled_up_in_the_queues_that_had_no_owner_and_in_no_others(
    sample: PublishedReports,
) -> None:
    orphans = [row for row in sample.rows("orphaned_queues") if row["topic"][:2] == "T_"]
    certain = [row for row in orphans if row["certainty"] == "CERTAIN"]
    assert {(row["backlog_growth"], row["severity"]) for row in certain} == {(20, "CRITICAL")}
    # Critical are those of the broker that one client cannot reach, where messages piled up: held
    # they were in 4 of 26 rounds. Of another queue one message was on its way.
    possible = {queue(row): row for row in orphans if row["consumer_group"] == "G_S15"}
    critical = {each for each, row in possible.items() if row["severity"] == "CRITICAL"}
    assert critical == {("broker-c", number) for number in range(4)}
    assert {possible[each]["persistence"] for each in critical} == {"PERSISTENT"}
    assert [possible[each]["probability"] for each in sorted(critical)] == pytest.approx(
        [2 / 3] * 4
    )
    assert possible["broker-b", 0]["backlog_growth"] == 1
    assert possible["broker-b", 0]["severity"] == "WARNING"
    twice = sample.rows("duplicate_queues")
    assert {row["orderly"] for row in orphans + twice} == {False}


@of_each_table
def test_what_the_processes_held_confirms_every_certain_finding(
    sample: PublishedReports, table: str
) -> None:
    rows = [row for row in sample.rows(table) if row["certainty"] == "CERTAIN"]
    assert rows
    assert {row["confirmed"] for row in rows} == {True}


@of_each_table
def test_no_confirmation_contradicts_what_the_processes_wrote_down(
    sample: PublishedReports, table: str
) -> None:
    wrong: dict[tuple[str, str], list[tuple[datetime, set[object]]]] = {}
    for situation in SITUATIONS:
        for truth in rounds(situation):
            queues = truth.orphans if table == "orphaned_queues" else truth.duplicates
            wrong.setdefault((truth.consumer_group, truth.topic), []).append(
                (truth.time, set(queues))
            )
    for row in sample.rows(table):
        was_so = any(
            queue(row) in queues
            for time, queues in wrong[row["consumer_group"], row["topic"]]
            if row["first_seen"] <= time <= row["last_seen"]
        )
        assert row["confirmed"] in (None, was_so), row


def test_the_lag_behind_a_route_change_is_drift_attributed_to_it_and_no_finding(
    sample: PublishedReports,
) -> None:
    for table in TABLES:
        assert "G_S17" not in {row["consumer_group"] for row in sample.rows(table)}
    changes = [
        row["first_seen"] for row in sample.rows("group_faults") if row["fault"] == "ROUTE_CHANGED"
    ]
    lagging = [r for r in sample.rows("allocation_drift") if r["consumer_group"] == "G_S17"]
    assert {row["client_id"] for row in lagging} == {f"10.0.17.{n}@app" for n in (1, 2, 3, 4)}
    for row in lagging:
        assert (row["attributed_to"], row["persistence"]) == ("ROUTE_CHANGED", "TRANSIENT")
        assert row["first_seen"] in changes
        assert row["last_seen"] - row["first_seen"] <= ROUTE_POLL_AND_REBALANCE


def test_log_lines_are_of_when_they_were_written(sample_output: Path) -> None:
    states = pq.read_table(sample_output / "snapshots" / "client_states").to_pylist()
    lines = [row for row in states if row["source"] == "CLIENT_LOG"]
    assert len(lines) == 360
    # The clients printed UTC, and the collector read each line at once.
    assert {row["logged_at"] - row["observed_at"] for row in lines} == {timedelta(0)}


def test_queues_that_nobody_can_read_are_named(sample: PublishedReports) -> None:
    found = {
        (row["topic"], row["broker_name"], row["queue_id"])
        for row in sample.rows("unreadable_queues")
    }
    beyond = {("T_S11", f"broker-{name}", number) for name in "abc" for number in range(4, 8)}
    without_read = {("T_S11c", "broker-c", number) for number in range(4)}
    assert found == beyond | without_read


def test_no_line_was_quarantined_and_every_group_has_its_coverage(sample: PublishedReports) -> None:
    assert sample.rows("quarantine") == []
    coverage = {
        (row["consumer_group"], row["topic"]): row["coverage"]
        for row in sample.rows("group_health")
    }
    assert coverage.pop(("G_S6", "T_S6")) == "BROADCASTING"
    # The broker makes one for every group; broadcasting members do not subscribe to it.
    assert coverage.pop(("G_S6", "%RETRY%G_S6")) == "NO_GROUP"
    assert set(coverage.values()) == {"AUDITED"}
    assert len(coverage) == 27


def test_clients_hold_what_is_computed_for_them_but_for_what_only_some_lists_give_them(
    sample: PublishedReports,
) -> None:
    drift = [
        row for row in sample.rows("allocation_drift") if row["attributed_to"] != "ROUTE_CHANGED"
    ]
    assert {row["consumer_group"] for row in drift} == {"G_S15"}
    # What the logs say that each client computed is everywhere what was recomputed.
    assert {row["source"] for row in drift} == {"RUNNING_INFO"}
    assert {row["drift"] for row in drift} == {"COMPUTED_NOT_HELD"}
    # Of the broker that it cannot reach nothing is computed for it.
    assert "10.0.15.3@app" not in {row["client_id"] for row in drift}
    assert all(row["probability"] < 1 for row in drift)


#: Until a client has rebalanced, and, after a change of the route, has also polled it.
REBALANCE = timedelta(seconds=20)
ROUTE_POLL_AND_REBALANCE = timedelta(seconds=50)


@pytest.mark.parametrize("situation", SITUATIONS)
def test_what_really_went_wrong_was_found_or_lay_within_a_reassignment(
    sample: PublishedReports, situation: str
) -> None:
    moving: dict[tuple[str, str], list[tuple[datetime, datetime]]] = defaultdict(list)
    for row in sample.rows("reassignments"):
        by_route = row["queues"] != row["queues_before"]
        lag = ROUTE_POLL_AND_REBALANCE if by_route else REBALANCE
        window = (row["changed_at"], (row["settled_at"] or row["changed_at"]) + lag)
        moving[row["consumer_group"], row["topic"]].append(window)
    for row in sample.rows("group_health"):  # what was before the window nobody saw
        start = (row["first_seen"], row["first_seen"] + REBALANCE)
        moving[row["consumer_group"], row["topic"]].append(start)
    wrong_rounds = 0
    for truth in rounds(situation):
        where = (truth.consumer_group, truth.topic, truth.time)
        for table, wrong in zip(TABLES, (truth.orphans, set(truth.duplicates)), strict=True):
            found = {queue(row) for row in sample.at(table, *where)}
            wrong_rounds += bool(wrong)
            assert wrong <= found or any(
                first <= truth.time <= last for first, last in moving[where[:2]]
            ), (truth, table)
    assert wrong_rounds or situation in ("S5", "S6", "S8", "S10", "S11", "V2")


def test_the_reassignment_of_a_frozen_clients_queues_is_a_transition(
    sample: PublishedReports,
) -> None:
    expired, gone, back = sorted(
        (
            row
            for row in sample.rows("reassignments")
            if (row["consumer_group"], row["topic"]) == ("G_S14b", "T_S14b")
        ),
        key=lambda row: row["changed_at"],
    )
    frozen = ["10.0.14.22@app"]
    assert (expired["lists_agree"], expired["settled_at"]) == (False, gone["changed_at"])
    assert (gone["lists_agree"], gone["clients_left"]) == (True, frozen)
    assert (back["lists_agree"], back["clients_joined"]) == (True, frozen)


def recorded_lists(situation: str, group: str) -> dict[datetime, list[list[str]]]:
    """By round the client ids that each master listed, as the dump has them."""
    lists: dict[datetime, list[list[str]]] = defaultdict(list)
    with gzip.open(CAPTURES / situation / "dump.jsonl.gz", "rt") as dump:
        for line in map(json.loads, dump):
            is_list = line["kind"] == "consumer_connection" and line["consumer_group"] == group
            if is_list and line["broker_id"] == 0:
                connections = json.loads(line["body"])["connectionSet"]
                time = datetime.fromisoformat(line["snapshot_time"])
                lists[time].append(sorted(each["clientId"] for each in connections))
    return lists


def test_the_probabilities_are_those_of_all_draws_over_the_recorded_lists(
    sample: PublishedReports,
) -> None:
    group, unreachable = "G_S15", ("10.0.15.3@app", "broker-c")
    for time, lists in recorded_lists("S15", group).items():
        clients = sorted({each for of_broker in lists for each in of_broker})
        for topic, numbers in (("T_S15", 4), (f"%RETRY%{group}", 1)):
            queues = [(f"broker-{name}", number) for name in "abc" for number in range(numbers)]
            likely: dict[tuple[str, tuple[str, int]], Fraction] = defaultdict(Fraction)
            # A broker that lacks a client for long is one that it cannot reach: it draws another
            # broker's list, and reads no queue of that broker.
            choices = [[each for each in lists if client in each] for client in clients]
            for draw in product(*choices):
                taken = Counter(
                    each
                    for client, drawn in zip(clients, draw, strict=True)
                    for each in averagely(queues, drawn, client)
                    if (client, each[0]) != unreachable
                )
                for each in queues:
                    if taken[each] != 1:
                        table = "duplicate_queues" if taken[each] else "orphaned_queues"
                        likely[table, each] += Fraction(1, prod(map(len, choices)))
            for table in TABLES:
                found = {
                    queue(row): row["probability"] for row in sample.at(table, group, topic, time)
                }
                expected = {each: float(p) for (name, each), p in likely.items() if name == table}
                assert found == pytest.approx(expected, rel=0, abs=1e-12), (table, time)


def averagely(
    queues: list[tuple[str, int]], client_ids: list[str], client_id: str
) -> list[tuple[str, int]]:
    """AVG once more, on its own: the first clients have one queue more where it does not divide."""
    size, rest = divmod(len(queues), len(client_ids))
    index = client_ids.index(client_id)
    start = index * size + min(index, rest)
    return queues[start : start + size + (index < rest)]
