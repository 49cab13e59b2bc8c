"""Every contender finds what is true, on a tiny fleet: else their seconds compare nothing."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.bench.contenders import BY_NAME, CONTENDERS
from tests.bench.findings import differences, read_findings
from tests.bench.fleets import SIZES, Tables, plain, write_fleet, write_ids

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def tables(_spark_session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Tables:
    tables = Tables(tmp_path_factory.mktemp("fleet"))
    write_fleet(_spark_session, plain(SIZES["TINY"]), tables)
    write_ids(tables)
    return tables


@pytest.mark.parametrize("name", [each.name for each in CONTENDERS if each.finds])
def test_a_contender_finds_what_is_true(
    spark: SparkSession, tables: Tables, tmp_path: Path, name: str
) -> None:
    contender = BY_NAME[name]
    module: Any = importlib.import_module(f"tests.bench.contenders.{contender.module}")
    module.run(spark, tables.with_ids if contender.has_ids else tables.snapshots, tmp_path)
    if hasattr(module, "to_findings"):
        module.to_findings(tmp_path)
    true = read_findings(tables.true_findings)
    assert {row[3] for row in true} == {"ORPHANED", "DUPLICATE"}
    assert not differences(read_findings(tmp_path / "findings"), true)
