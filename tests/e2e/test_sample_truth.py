"""The audit of a real cluster's dumps, against what its consumer processes wrote down."""

from __future__ import annotations

import pytest

from tests.support.reports import PublishedReports
from tests.support.truth import SITUATIONS, TopicTruth, rounds

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
HEALTHY = ("S1", "S5", "S6", "S8", "S10", "S11", "S17", "V2")


def queue(row: dict[str, object]) -> tuple[object, object]:
    return row["broker_name"], row["queue_id"]


def test_there_are_settled_rounds_of_every_situation() -> None:
    assert len(SETTLED) > 70
    assert {truth.situation for truth in SETTLED} == set(SITUATIONS) - UNCERTAIN


@pytest.mark.parametrize("truth", SETTLED, ids=str)
def test_orphans_and_duplicates_are_those_that_were_held(
    sample_reports: PublishedReports, truth: TopicTruth
) -> None:
    where = (truth.consumer_group, truth.topic, truth.time)
    orphans = sample_reports.at("orphaned_queues", *where)
    duplicates = sample_reports.at("duplicate_queues", *where)
    assert {row["certainty"] for row in orphans + duplicates} <= {"CERTAIN"}
    assert {queue(row) for row in orphans} == truth.orphans
    assert {
        queue(row): sum(claimant["processes"] for claimant in row["claimants"])
        for row in duplicates
    } == truth.duplicates


@pytest.mark.parametrize("truth", SETTLED, ids=str)
def test_allocations_are_what_each_process_held(
    sample_reports: PublishedReports, truth: TopicTruth
) -> None:
    (run,) = sample_reports.at("state_runs", truth.consumer_group, truth.topic, truth.time)
    computed = {
        row["client_id"]: [sorted(queue(each) for each in row["queues"])] * row["processes"]
        for row in sample_reports.rows("allocations")
        if row["state_id"] == run["state_id"]
    }
    assert computed == truth.held


def test_the_stacked_id_is_the_one_that_two_processes_share(
    sample_reports: PublishedReports,
) -> None:
    (row,) = sample_reports.rows("stacked_client_ids")
    assert (row["consumer_group"], row["client_id"]) == ("G_S2", "10.0.2.10@app-DUP")
    assert (row["processes"], row["verdict"], row["persistence"]) == (2, "STACKED", "PERSISTENT")


@pytest.mark.parametrize("table", ["orphaned_queues", "duplicate_queues"])
def test_faults_last_and_deploys_pass(sample_reports: PublishedReports, table: str) -> None:
    rows = sample_reports.rows(table)
    lasting = {row["consumer_group"] for row in rows if row["persistence"] == "PERSISTENT"}
    certain = {row["consumer_group"] for row in rows if row["certainty"] == "CERTAIN"}
    faulty = {"G_S2", "G_S3"} | ({"G_S4"} if table == "orphaned_queues" else set())
    assert lasting == faulty | {"G_S15"}
    assert certain == faulty


def test_nothing_is_found_where_nothing_was_wrong(sample_reports: PublishedReports) -> None:
    found = {
        row["consumer_group"]
        for table in ("orphaned_queues", "duplicate_queues")
        for row in sample_reports.rows(table)
        if row["persistence"] == "PERSISTENT"
    }
    assert found.isdisjoint({f"G_{situation}" for situation in HEALTHY})


@pytest.mark.parametrize("situation", sorted(UNCERTAIN))
def test_all_that_went_wrong_was_possible_and_nothing_was_called_certain(
    sample_reports: PublishedReports, situation: str
) -> None:
    for truth in rounds(situation):
        where = (truth.consumer_group, truth.topic, truth.time)
        for table, wrong in (
            ("orphaned_queues", truth.orphans),
            ("duplicate_queues", set(truth.duplicates)),
        ):
            found = sample_reports.at(table, *where)
            assert all(row["certainty"] == "POSSIBLE" for row in found)
            assert all(0 < row["probability"] < 1 for row in found)
            if situation == "S15" and table == "duplicate_queues":
                assert wrong <= {queue(row) for row in found}, truth


def test_queues_that_nobody_can_read_are_named(sample_reports: PublishedReports) -> None:
    found = {
        (row["topic"], row["broker_name"], row["queue_id"])
        for row in sample_reports.rows("unreadable_queues")
    }
    beyond = {("T_S11", f"broker-{name}", number) for name in "abc" for number in range(4, 8)}
    without_read = {("T_S11c", "broker-c", number) for number in range(4)}
    assert found == beyond | without_read


def test_no_line_was_quarantined_and_every_group_has_its_coverage(
    sample_reports: PublishedReports,
) -> None:
    assert sample_reports.rows("quarantine") == []
    coverage = {
        (row["consumer_group"], row["topic"]): row["coverage"]
        for row in sample_reports.rows("group_health")
    }
    assert coverage.pop(("G_S6", "T_S6")) == "BROADCASTING"
    assert set(coverage.values()) == {"AUDITED"}
    assert len(coverage) == 27
