"""The fleets lie where the benches look for them, whatever folder they are asked for."""

from __future__ import annotations

import pytest

from jobs.storage import Location, Snapshots
from tests.bench.fleets import Tables

pytestmark = pytest.mark.spark


def test_tables_with_ids_have_all_heartbeats_though_the_folder_was_relative(tiny: Tables) -> None:
    # As `make bench` asks for it: --folder build/bench.
    with_ids = Snapshots.open(Location(tiny.with_ids))
    assert with_ids.parquet("heartbeats").count_rows() == tiny.heartbeats() > 0
