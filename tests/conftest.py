"""One Spark session for all tests that need one, reset after each; fixed hypothesis profiles."""

from __future__ import annotations

import gc
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from jobs.java import find_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Modules and tests stay to the end: to look through them again and again is for nothing.
gc.disable()

# What a run remembers is not the business of whoever runs the tests.
os.environ["XDG_STATE_HOME"] = mkdtemp(prefix="rebalance-audit-tests-")

# They run in environments of their own: make test-airflow, make test-browser.
collect_ignore = ["airflow", "browser"]

settings.register_profile(
    "audit",
    # Further inputs of every property: make fuzz.
    max_examples=20,
    deadline=None,
    derandomize="CI" in os.environ,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile("many", settings.get_profile("audit"), max_examples=200)
settings.load_profile("audit")

# Java's second compiler, and the threads of its collector, take more here than they save.
QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC"

# Without it the workers take whatever python3 is first on the PATH.
os.environ["PYSPARK_PYTHON"] = sys.executable
os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
# Where nothing compiled is kept, each worker compiles all tests, each command the package.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# They import the checkout by the name of its folder, wherever Java was started.
os.environ["PYTHONPATH"] = os.pathsep.join(
    [str(Path(__file__).parent.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
)


#: The marks of what is no unit test.
KINDS = ("spark", "e2e", "long", "house", "alone")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What needs a Java starts Spark; it comes first, then the files of what takes long.

    So no worker is left alone with a long file at the end. ``tiny`` is the fleet of the benches.
    """
    for item in items:
        fixtures = getattr(item, "fixturenames", ())
        if "java" in fixtures:
            item.add_marker(pytest.mark.spark)
        if "tiny" in fixtures:
            item.add_marker(pytest.mark.house)
        if not any(map(item.get_closest_marker, KINDS)):
            item.add_marker(pytest.mark.unit)
    slow = {
        item.path
        for item in items
        if item.get_closest_marker("e2e") or item.get_closest_marker("long")
    }
    items.sort(key=lambda item: (not item.get_closest_marker("spark"), item.path not in slow))
    on_spark = [item.nodeid for item in items if item.get_closest_marker("spark")]
    if "PYTEST_XDIST_WORKER" in os.environ:
        # The scheduler, in another process, sees names alone.
        place = Path(os.environ["TESTS_ON_SPARK"], os.environ["PYTEST_XDIST_WORKER"])
        place.write_text(json.dumps(on_spark))


def pytest_collection_finish() -> None:
    """From here on what comes and goes alone is looked through for garbage."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Of several workers one has what starts Spark; a file is never divided."""
    from tests.support.workers import SparkTogether  # noqa: PLC0415 - needs xdist

    return SparkTogether(config, log)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config) -> None:
    """Before the workers are started: where they say which tests start Spark."""
    folder = TemporaryDirectory(prefix="tests-on-spark-")
    config.add_cleanup(folder.cleanup)
    os.environ["TESTS_ON_SPARK"] = folder.name


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
        .config("spark.driver.extraJavaOptions", QUICK_JAVA)
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
    # The catalog's own listing fails on a view where nothing is compiled.
    for table in _spark_session.sql("SHOW TABLES").collect():
        if table.isTemporary:
            _spark_session.catalog.dropTempView(table.tableName)


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the checkout."""
    return Path(__file__).parent.parent


@pytest.fixture(scope="module", autouse=True)
def _quick_disk(request: pytest.FixtureRequest) -> Iterator[None]:
    """No test but those of disks waits until a file is on one: that was most of a publication."""
    with pytest.MonkeyPatch.context() as patch:
        if not {"faults", "storage"} & set(request.path.parts):
            patch.setattr(os, "fsync", lambda _: None)
        yield


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, which is the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
