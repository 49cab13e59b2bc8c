"""A folder as the pages take it for granted, and Spark in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession


@pytest.fixture
def folder(here: Path, repository: Path) -> Path:
    """The working directory: as that of the sample, with ``tests`` of the checkout besides."""
    (here / "tests").symlink_to(repository / "tests")
    for name in ("conf", "dumps"):
        (here / name).symlink_to(f"tests/data/sample/{name}")
    return here


@pytest.fixture
def spark_here(spark: SparkSession) -> Iterator[SparkSession]:
    """The session; for it, too, relative paths begin at the working directory."""
    java = spark._jvm.org.apache.hadoop.fs
    files = java.FileSystem.getLocal(spark._jsc.hadoopConfiguration()).getRaw()
    local = java.FileSystem.get(files.getUri(), spark._jsc.hadoopConfiguration())
    before = local.getWorkingDirectory()
    local.setWorkingDirectory(java.Path(Path.cwd().as_uri()))
    yield spark
    local.setWorkingDirectory(before)
