"""Every contender finds what is true, on a tiny fleet: else their seconds compare nothing."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.bench.contenders import BY_NAME, CONTENDERS
from tests.bench.findings import differences, read_findings
from tests.bench.fleets import Tables

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("name", [each.name for each in CONTENDERS if each.finds])
def test_a_contender_finds_what_is_true(
    spark: SparkSession, tiny: Tables, tmp_path: Path, name: str
) -> None:
    contender = BY_NAME[name]
    module: Any = importlib.import_module(f"tests.bench.contenders.{contender.module}")
    module.run(spark, tiny.with_ids if contender.has_ids else tiny.snapshots, tmp_path)
    if hasattr(module, "to_findings"):
        module.to_findings(tmp_path)
    true = read_findings(tiny.true_findings)
    assert {row[3] for row in true} == {"ORPHANED", "DUPLICATE"}
    assert not differences(read_findings(tmp_path / "findings"), true)
