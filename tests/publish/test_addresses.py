"""Where the brokers were asked last: what the commands of the page are filled in with."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from jobs.config.masking import Masking
from jobs.engines.pieces import all_values
from jobs.fold.kernel import Cutting
from jobs.fold.slice_facts import FACTS, BrokerPolls, Facts
from jobs.publish.publish import broker_addresses
from jobs.schemas import BROKER_POLLS

LAST = datetime(2026, 11, 20, 12, tzinfo=UTC)


def poll(minutes: float, name: str, address: str | None, broker_id: int = 0) -> dict[str, Any]:
    return {
        "cluster": "C",
        "snapshot_time": LAST + timedelta(minutes=minutes),
        "broker_name": name,
        "broker_id": broker_id,
        "broker_addr": address,
        "consumer_group": "G",
        "outcome": "NOT_ONLINE",
        "connections": 0,
    }


def addresses(rows: list[dict[str, Any]], zone: str | None = "UTC") -> Any:
    table = pa.Table.from_pylist(rows, schema=BROKER_POLLS.schema)
    # A lake's times without a zone are nanoseconds, as Arrow reads INT96.
    times = table["snapshot_time"].cast(pa.timestamp("us" if zone else "ns", zone))
    table = table.set_column(1, "snapshot_time", times)
    pieces = Cutting(1, 120).pieces(BROKER_POLLS, [table])
    return broker_addresses(Facts.of(all_values(pieces, FACTS)).polls, LAST, Masking())


# A lake's times may have no zone: they are in UTC.
@pytest.mark.parametrize("zone", ["UTC", None])
def test_the_address_that_was_asked_last_counts(zone: str | None) -> None:
    rows = [
        poll(-30, "long-ago", "10.0.0.9:1"),
        poll(-5, "moved", "10.0.0.1:1"),
        poll(0, "moved", "10.0.0.2:1"),
        poll(0, "both", "10.0.0.3:1"),
        poll(0, "both", "10.0.0.4:1", broker_id=1),
        poll(0, "slave", "10.0.0.5:1", broker_id=1),
        poll(0, "unknown", None),
    ]
    assert addresses(rows, zone) == {
        "C": {"both": "10.0.0.3:1", "moved": "10.0.0.2:1", "slave": "10.0.0.5:1"}
    }


def test_of_very_many_brokers_some_are_kept() -> None:
    rows = [poll(0, f"broker-{number:04}", "10.0.0.1:1") for number in range(1_200)]
    assert len(addresses(rows)["C"]) == 1_000


def test_a_lake_without_polls_has_none() -> None:
    assert broker_addresses(BrokerPolls(), LAST, Masking()) == {}
