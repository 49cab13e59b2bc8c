"""Simulated situations of which the truth is known: each is found as it was, and nothing else."""

from __future__ import annotations

import gzip
import random
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import pytest

from tests.support.audited import audit_dumps, lasting, queues

CASES = Path(__file__).parent.parent / "data" / "cases"


@cache
def audit(case):
    return audit_dumps([CASES / case / "dump.jsonl.gz"])


def at(hour_minute):
    hour, minute = hour_minute.split(":")
    return datetime(2026, 11, 20, int(hour), int(minute), tzinfo=UTC)


def faults(case, name=None):
    found = [row for row in lasting(audit(case)["group_faults"]) if name in (None, row["fault"])]
    return {row["fault"]: row for row in found} if name is None else found


def of_brokers(topic, **numbers):
    return {(topic, f"broker-{name}", n) for name, of_broker in numbers.items() for n in of_broker}


NOTHING_LASTS = ("orphaned_queues", "duplicate_queues", "group_faults", "stalled_queues")


@pytest.mark.parametrize(
    "case",
    [
        # A deploy that a slow collector saw; a rolling restart that brokers show at other times.
        "rolling_deploy_mqadmin_pace",
        "vm_rolling_restart",
    ],
)
def test_a_deploy_leaves_nothing_that_lasts(case):
    found = audit(case)
    for table in NOTHING_LASTS:
        assert lasting(found[table]) == [], table


def test_nameservers_that_differ_are_found_although_two_collectors_ask_them():
    case = "two_collectors_two_nameservers"
    found = audit(case)

    for fault in faults(case, "ROUTE_DIVERGENCE"):
        assert at("10:05") <= fault["first_seen"] <= at("10:09")
        assert fault["ongoing"]
        assert fault["severity"] in ("WARNING", "CRITICAL")
        assert "10.9.0.2:9876" in fault["evidence"]
    assert {row["topic"] for row in faults(case, "ROUTE_DIVERGENCE")} == {"T", "%RETRY%G"}
    assert not [row for row in found["group_faults"] if row["fault"] == "ROUTE_CHANGED"]
    # One client asks the second nameserver: it divides the queues of two brokers alone.
    assert queues(lasting(found["duplicate_queues"]), topic="T")


def test_a_connection_that_flaps_all_hour_is_a_fault_that_lasts():
    case = "drop_polls_escalates"
    found = audit(case)

    (fault,) = [row for row in faults(case, "BROKER_VIEW_DIVERGENCE") if row["topic"] == "T"]
    assert fault["last_seen"] - fault["first_seen"] > (at("10:50") - at("10:00"))
    rows = lasting(found["orphaned_queues"])
    # Away for 150 s, there for 100 s, all hour long.
    assert rows
    assert all(0.5 <= row["share_of_time"] < 0.85 for row in rows)
    assert all(row["certainty"] == "POSSIBLE" for row in rows)


def test_missing_polls_change_no_verdict(tmp_path):
    draw = random.Random(5)  # noqa: S311
    source = CASES / "unreachable_broker" / "dump.jsonl.gz"
    lines = gzip.decompress(source.read_bytes()).decode().splitlines(keepends=True)
    kept = [line for line in lines if "consumer_connection" not in line or draw.random() > 0.1]
    assert len(kept) < len(lines)
    (tmp_path / "dump.jsonl").write_text("".join(kept))

    def verdict(rows):
        return {
            (row["topic"], row["broker_name"], row["queue_id"], row["certainty"], row["severity"])
            for row in lasting(rows)
        }

    with_holes = audit_dumps([tmp_path / "dump.jsonl"])
    for table in ("orphaned_queues", "duplicate_queues"):
        assert verdict(with_holes[table]) == verdict(audit("unreachable_broker")[table])


def test_an_id_of_two_processes_is_found_in_a_group_that_never_rests():
    case = "duplicate_in_busy_group"
    found = audit(case)

    shared = "10.2.0.11@1#55555555555"
    rows = [row for row in found["stacked_client_ids"] if row["client_id"] == shared]
    assert {(row["verdict"], row["processes"], row["persistence"]) for row in rows} == {
        ("STACKED", 2, "PERSISTENT")
    }
    assert "DUPLICATE_CLIENT_ID" in faults(case)
    assert "STALE_CHANNEL" not in faults(case)
    assert len(queues(lasting(found["duplicate_queues"]), topic="T")) == 4
    assert len(queues(lasting(found["duplicate_queues"]), topic="%RETRY%G")) == 1
    assert len(queues(lasting(found["orphaned_queues"]))) == 5


@pytest.mark.parametrize(
    "case", ["reconnecting_process_custom_id", "reconnecting_process_custom_id_hb"]
)
def test_one_process_that_reconnects_is_one_process(case):
    found = audit(case)

    assert found["duplicate_queues"] == []
    assert "DUPLICATE_CLIENT_ID" not in {row["fault"] for row in found["group_faults"]}
    assert {row["verdict"] for row in found["stacked_client_ids"]} == {"STALE_CHANNEL"}
    # One row for the one id, whatever topics it has a slot of.
    (fault,) = faults(case, "RECONNECTING")
    assert fault["client_ids"] == ["10.2.0.11@app-1"]
    assert fault["ongoing"]
    assert fault["severity"] == "CRITICAL"
    assert "load balancer" in fault["remedy"]
    orphans = lasting(found["orphaned_queues"])
    assert len(queues(orphans, topic="T")) == 4
    assert all("RECONNECTING" in row["causes"] for row in orphans)


def test_who_does_not_reach_a_broker_holds_none_of_its_queues_twice():
    case = "unreachable_and_held_twice"
    found = audit(case)

    doubled = queues(lasting(found["duplicate_queues"]), topic="T")
    assert not doubled & of_brokers("T", b=range(8))
    assert set(faults(case)) == {"BROKER_VIEW_DIVERGENCE"}
    orphans = queues(lasting(found["orphaned_queues"]), topic="T")
    # What it has of that broker, but for the queues that others have whatever list they draw.
    assert orphans >= of_brokers("T", b=range(2, 7))


def test_members_that_all_use_one_nameserver_are_well_whatever_the_other_one_gives():
    case = "one_nameserver_for_all"
    found = audit(case)

    assert lasting(found["orphaned_queues"]) == lasting(found["duplicate_queues"]) == []
    for fault in faults(case, "ROUTE_DIVERGENCE"):
        assert (fault["severity"], fault["first_seen"]) == ("WARNING", at("10:05"))
    assert set(faults(case)) == {"ROUTE_DIVERGENCE"}


def test_two_restarts_of_a_process_and_one_of_its_broker_are_no_bad_connection():
    faults = audit("vm_and_broker_restarts")["group_faults"]
    assert "RECONNECTING" not in {row["fault"] for row in faults}


def test_a_fault_with_short_interruptions_is_one_fault():
    rows = [
        row
        for row in lasting(audit("fault_with_interruptions")["orphaned_queues"])
        if (row["broker_name"], row["queue_id"], row["topic"]) == ("broker-c", 4, "T")
    ]
    (row,) = rows
    assert at("10:06") <= row["first_seen"] <= at("10:09")
    assert at("10:20") <= row["last_seen"] <= at("10:24")
    assert 0.5 <= row["share_of_time"] < 1
    assert (row["certainty"], row["severity"]) == ("CERTAIN", "CRITICAL")
    assert row["causes"] == ["STRATEGY_MISMATCH"]


def test_a_table_that_flips_is_a_subscription_mismatch_of_nobody_knows_whom():
    """Three of six members subscribe to T2: half of its 12 queues are orphaned all the time."""
    found = audit("group_table_flips")
    (fault,) = found["group_faults"]
    assert (fault["fault"], fault["topic"]) == ("SUBSCRIPTION_MISMATCH", "T2")
    assert fault["client_ids"] == []
    assert "T2 in about 50 % of the polls" in fault["evidence"]
    assert "running info" in fault["remedy"] + fault["evidence"]
    rows = found["orphaned_queues"]
    assert len(rows) == 12
    for row in rows:
        assert (row["topic"], row["certainty"], row["probability"]) == ("T2", "POSSIBLE", 0.5)
        assert (row["persistence"], row["ongoing"]) == ("PERSISTENT", True)
        assert row["causes"] == ["SUBSCRIPTION_MISMATCH"]
    assert {row["subscription_source"] for row in found["group_health"]} == {"GROUP_TABLE"}


def test_a_member_that_subscribes_again_subscribes():
    """10.2.0.11 drops U at 10:06:40 and takes it again at 10:16:40."""
    found = audit("subscription_and_back")
    rows = found["orphaned_queues"]
    told = [(row["topic"], row["probability"], row["ongoing"]) for row in rows]
    assert told == [("U", 1.0, False)] * 3
    # Nobody saw the strategy: by AVG_BY_CIRCLE two of them would be others.
    assert sorted(row["certainty"] for row in rows) == ["CERTAIN", "POSSIBLE", "POSSIBLE"]
    assert len(queues(rows)) == 3
    for row in rows:
        assert at("10:06") <= row["first_seen"] <= at("10:08")
        assert at("10:15") <= row["last_seen"] <= at("10:17")
    assert [row["fault"] for row in found["group_faults"]] == ["SUBSCRIPTION_MISMATCH"]
    assert {row["subscription_source"] for row in found["group_health"]} == {"HEARTBEAT"}


def test_what_a_client_cannot_reach_it_does_not_read():
    case = "unreachable_broker"
    found = audit(case)

    orphans = {
        (row["broker_name"], row["queue_id"]): row
        for row in lasting(found["orphaned_queues"])
        if row["topic"] == "T"
    }
    # Its share of broker-b is nobody's unless another client draws broker-b's list.
    for number in (2, 3):
        row = orphans["broker-b", number]
        # Lists and routes alone: likely, and no answer shows it.
        assert row["severity"] == "WARNING"
        assert 0.5 <= row["probability"] <= 0.9
    doubled = queues(lasting(found["duplicate_queues"]), topic="T")
    assert not doubled & of_brokers("T", b=range(2, 6))
    assert not queues(found["orphaned_queues"]) & {("%RETRY%G", "broker-c", 0)}
    fault = faults(case)["BROKER_VIEW_DIVERGENCE"]
    assert "does not reach broker-b" in fault["evidence"]
    assert fault["severity"] == "WARNING"
    assert "; only lists and routes show this: the running infos" in fault["remedy"]
    assert "running infos" in fault["remedy"]
