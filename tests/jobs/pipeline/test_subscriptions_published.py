"""What members subscribe to, from dumps to published tables: two situations with their truth."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.support.reports import PublishedReports
from tests.support.runs import audit_locally, ingest_locally, task


@pytest.fixture
def published(request: pytest.FixtureRequest, repository: Path, tmp_path: Path) -> PublishedReports:
    dumps = repository / "tests" / "data" / "cases" / request.param
    ingest_locally([str(dumps)], tmp_path / "snapshots")
    return audit_locally(task(tmp_path / "snapshots", tmp_path / "reports"))


def clock(hour: int, minute: int) -> datetime:
    return datetime(2026, 11, 20, hour, minute, tzinfo=UTC)


@pytest.mark.parametrize("published", ["subscription_and_back"], indirect=True)
def test_a_member_subscribes_to_what_it_said_last_wherever_it_said_it(published):
    # 10.2.0.11 drops U at 10:06:40 and takes it again at 10:16:40; its broker is polled to 10:23.
    rows = published.rows("orphaned_queues")
    assert [(row["topic"], row["certainty"], row["ongoing"]) for row in rows] == [
        ("U", "CERTAIN", False)
    ] * 3
    assert min(row["first_seen"] for row in rows) >= clock(10, 6)
    assert max(row["last_seen"] for row in rows) <= clock(10, 17)
    assert [row["fault"] for row in published.rows("group_faults")] == ["SUBSCRIPTION_MISMATCH"]
    assert {row["subscription_source"] for row in published.rows("group_health")} == {"HEARTBEAT"}


@pytest.mark.parametrize("published", ["group_table_flips"], indirect=True)
def test_a_table_that_flips_is_a_mismatch_of_which_nobody_knows_whose(published):
    # Three of six members subscribe to T2: half of its 12 queues are orphaned all the time.
    rows = published.rows("orphaned_queues")
    assert len(rows) == 12
    for row in rows:
        assert (row["topic"], row["certainty"], row["probability"]) == ("T2", "POSSIBLE", 0.5)
        assert (row["persistence"], row["ongoing"]) == ("PERSISTENT", True)
        assert row["causes"] == ["SUBSCRIPTION_MISMATCH"]
    (fault,) = published.rows("group_faults")
    assert (fault["fault"], fault["client_ids"]) == ("SUBSCRIPTION_MISMATCH", [])
    assert "T2 in about 50 % of the polls" in fault["evidence"]
    health = {row["topic"]: row for row in published.rows("group_health")}
    assert {row["subscription_source"] for row in health.values()} == {"GROUP_TABLE"}
    assumptions = {"groups": 1, "asked": 0, "strategy": 1, "subscriptions": 1}
    assert published.summary["assumptions"] == assumptions


def test_a_group_whose_members_were_asked_in_vain_is_counted_as_asked(
    repository: Path, tmp_path: Path
) -> None:
    # The collector asked one of its six members, which did not answer: to collect is no advice.
    told = {
        **{"kind": "consumer_running_info", "consumer_group": "G"},
        **{"snapshot_time": "2026-11-20T10:10:00Z", "collected_at": "2026-11-20T10:10:01Z"},
        **{"broker_name": "broker-a", "broker_id": 0, "broker_addr": "10.1.0.1:10911"},
        **{"cluster": "sub5_mismatch_staggered_nohb", "client_id": "10.2.0.10@1"},
        **{"error_code": -1, "error_message": "timeout"},
    }
    asked = tmp_path / "asked.jsonl"
    asked.write_text(json.dumps(told) + "\n", "utf-8")
    dumps = repository / "tests" / "data" / "cases" / "group_table_flips"
    ingest_locally([str(dumps), str(asked)], tmp_path / "snapshots")
    published = audit_locally(task(tmp_path / "snapshots", tmp_path / "reports"))
    assert {key: published.summary["assumptions"][key] for key in ("groups", "asked")} == {
        "groups": 1,
        "asked": 1,
    }
