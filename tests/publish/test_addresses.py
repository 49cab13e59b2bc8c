"""Where the brokers were asked last: what the commands of the page are filled in with."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jobs.config.masking import Masking
from jobs.publish.addresses import broker_addresses
from jobs.storage import Location, Snapshots

LAST = datetime(2026, 11, 20, 12, tzinfo=UTC)


def poll(minutes: float, name: str, address: str | None, broker_id: int = 0) -> dict[str, Any]:
    return {
        "cluster": "C",
        "snapshot_time": LAST + timedelta(minutes=minutes),
        "broker_name": name,
        "broker_id": broker_id,
        "broker_addr": address,
    }


def addresses(folder: Path, rows: list[dict[str, Any]], zone: str | None = "UTC") -> Any:
    (folder / "broker_polls").mkdir()
    table = pa.Table.from_pylist(rows)
    times = table["snapshot_time"].cast(pa.timestamp("us", zone))
    table = table.set_column(1, "snapshot_time", times)
    pq.write_table(table, folder / "broker_polls" / "part-0.parquet")
    return broker_addresses(Snapshots.open(Location(folder)), LAST, Masking())


# A lake's times may have no zone: they are in UTC.
@pytest.mark.parametrize("zone", ["UTC", None])
def test_the_address_that_was_asked_last_counts(tmp_path: Path, zone: str | None) -> None:
    rows = [
        poll(-30, "long-ago", "10.0.0.9:1"),
        poll(-5, "moved", "10.0.0.1:1"),
        poll(0, "moved", "10.0.0.2:1"),
        poll(0, "both", "10.0.0.3:1"),
        poll(0, "both", "10.0.0.4:1", broker_id=1),
        poll(0, "slave", "10.0.0.5:1", broker_id=1),
        poll(0, "unknown", None),
        poll(1, "later", "10.0.0.6:1"),
    ]
    assert addresses(tmp_path, rows, zone) == {
        "C": {"both": "10.0.0.3:1", "moved": "10.0.0.2:1", "slave": "10.0.0.5:1"}
    }


def test_of_very_many_brokers_some_are_kept(tmp_path: Path) -> None:
    rows = [poll(0, f"broker-{number:04}", "10.0.0.1:1") for number in range(1_200)]
    assert len(addresses(tmp_path, rows)["C"]) == 1_000


def test_a_lake_without_addresses_has_none(tmp_path: Path) -> None:
    (tmp_path / "heartbeats").mkdir()
    assert broker_addresses(Snapshots.open(Location(tmp_path)), LAST, Masking()) == {}
