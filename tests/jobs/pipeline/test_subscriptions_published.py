"""What is assumed of a group, and whether its members were asked, from dumps to the summary."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.runs import audit_locally, ingest_locally, task


@pytest.mark.parametrize("is_asked", [False, True])
def test_a_group_whose_members_were_asked_in_vain_is_counted_as_asked(
    repository: Path, tmp_path: Path, is_asked: bool
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
    asked.write_text((json.dumps(told) + "\n") * is_asked, "utf-8")
    dumps = [repository / "tests" / "data" / "cases" / "group_table_flips", asked]
    ingest_locally([str(each) for each in dumps[: 1 + is_asked]], tmp_path / "snapshots")
    published = audit_locally(task(tmp_path / "snapshots", tmp_path / "reports"))
    assumptions = {"groups": 1, "asked": int(is_asked), "strategy": 1, "subscriptions": 1}
    assert published.summary["assumptions"] == assumptions
