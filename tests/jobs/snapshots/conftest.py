"""Dump lines as the records that the snapshot steps are made of."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.dumps.lines import read_lines
from jobs.dumps.records import read_records


@pytest.fixture
def records(spark: SparkSession, tmp_path: Path) -> Callable[..., DataFrame]:
    """The lines, read as a dump file is; every one of them must be understood."""

    def read(*lines: str) -> DataFrame:
        dump = tmp_path / "dump.jsonl"
        dump.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        understood = read_records(read_lines(spark, [str(dump)])).cache()
        reasons = [row["reason"] for row in understood.where(F.col("reason").isNotNull()).collect()]
        assert reasons == []
        return understood

    return read
