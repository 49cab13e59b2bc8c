"""One Spark session for all tests that need one, reset after each; fixed hypothesis profiles."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from jobs.java import find_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Runs in Airflow's own environment: make test-airflow.
collect_ignore = ["airflow"]

settings.register_profile(
    "audit",
    deadline=None,
    derandomize="CI" in os.environ,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("audit")

# Without it the workers take whatever python3 is first on the PATH.
os.environ["PYSPARK_PYTHON"] = sys.executable
os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of several workers one has what starts Spark, before all else; a file is never divided.

    What a file reads or publishes for all its tests is so made once.
    """
    for item in items:
        if "java" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
    if config.pluginmanager.hasplugin("xdist"):
        items.sort(key=lambda item: item.get_closest_marker("spark") is None)
        for item in items:
            file = item.nodeid.partition("::")[0]
            group = "spark" if item.get_closest_marker("spark") else file
            item.add_marker(pytest.mark.xdist_group(group))


@pytest.fixture(scope="session")
def java() -> None:
    """A Java: that of the [jre] extra, on a machine that has none of its own."""
    os.environ.update(find_java(os.environ))


@pytest.fixture(scope="session")
def _spark_session(tmp_path_factory: pytest.TempPathFactory, java: None) -> Iterator[SparkSession]:
    from pyspark.sql import SparkSession  # noqa: PLC0415 - most tests need no Spark

    session = (
        SparkSession.builder.master("local[2]")
        .appName("rebalance-audit tests")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "2g")
        # Tiny data: every further partition is overhead alone.
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.sql.adaptive.enabled", "false")
        # Compiling a query takes longer than running it over a few rows.
        .config("spark.sql.codegen.wholeStage", "false")
        .config("spark.sql.codegen.factoryMode", "NO_CODEGEN")
        .config("spark.python.sql.dataFrameDebugging.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    yield session
    session.stop()


@pytest.fixture
def spark(_spark_session: SparkSession) -> Iterator[SparkSession]:
    """The session, without what a test before left in its cache or catalog."""
    yield _spark_session
    _spark_session.catalog.clearCache()
    for table in _spark_session.catalog.listTables():
        if table.isTemporary:
            _spark_session.catalog.dropTempView(table.name)


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the checkout."""
    return Path(__file__).parent.parent
