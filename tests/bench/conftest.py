"""A tiny fleet, written once for all tests of the bench."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.bench.fleets import SIZES, Tables, plain, write_fleet, write_ids


@pytest.fixture(scope="session")
def tiny(_spark_session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Tables:
    """The fleet TINY, as the benches compare it; the ids are written from a relative folder."""
    folder = tmp_path_factory.mktemp("bench") / "plain-TINY"
    write_fleet(_spark_session, plain(SIZES["TINY"]), Tables(folder))
    write_ids(Tables(Path(os.path.relpath(folder))))
    return Tables(folder)
