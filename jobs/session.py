"""The one place that starts a Spark session, for the commands that own theirs."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from jobs.java import find_java

#: What the console command starts its own session with; under spark-submit that is the cluster's
#: business, and conf/spark-defaults.conf has what is advised.
_OWN_SESSION = {
    "spark.master": "local[*]",
    "spark.driver.memory": "3g",
    "spark.ui.enabled": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.log.level": "ERROR",
    # Else every call on a column is three: two of them tell the JVM which line of Python it is.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
}

#: Over a small input Java's second compiler takes longer than it saves. The first one alone has 48
#: MB for its code unless it is given more, and Java stops compiling when they are full.
_FOR_SHORT_COMMANDS = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
}

#: What the jobs need in whatever session they run.
_NEEDED = {
    # Reports are instants; nothing may depend on where the cluster stands.
    "spark.sql.session.timeZone": "UTC",
    # INT96, the default, has no zone: other readers then take the times for local ones.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # run=..., dt=... are names, never numbers or dates.
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
}


def _advised(spark: SparkSession) -> dict[str, str]:
    """What is better than Spark's default where nobody has chosen."""
    return {
        # 200 is too many for most nights: every partition of every step is a task.
        "spark.sql.shuffle.partitions": str(2 * spark.sparkContext.defaultParallelism),
    }


#: What the audit needs of the session. A situation of a large group is megabytes, one of a small
#: group a few kilobytes, and as Python objects both are some ten times that: bytes count since
#: Spark 4.1. Its few plans are fixed, so that nothing is gained by planning again as they run, and
#: each stage would be a job of its own. Lists are collected by sorting, one at a time: a hash table
#: of them holds the members of all situations of a task at once, which a giant group fills a heap
#: with, and falls back to sorting after 128 keys.
_FOR_AUDIT = {
    "spark.sql.execution.useObjectHashAggregateExec": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "500",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(4 << 20),
    "spark.sql.adaptive.enabled": "false",
}


#: What ingest needs of the session: a line may be megabytes, and what a step writes comes in pieces
#: of megabytes. Its one exchange is by the names of groups.
_FOR_INGEST = {
    "spark.sql.execution.arrow.maxBytesPerBatch": str(16 << 20),
    "spark.sql.adaptive.enabled": "false",
}


@contextmanager
def suited_to_ingest(spark: SparkSession) -> Iterator[None]:
    """Within the block the session is as ingest needs it; then as it was."""
    with _set(spark, _FOR_INGEST):
        yield


@contextmanager
def suited_to_audit(spark: SparkSession) -> Iterator[None]:
    """Within the block the session is as the audit needs it; then as it was."""
    with _set(spark, _FOR_AUDIT):
        yield


@contextmanager
def _set(spark: SparkSession, values: dict[str, str]) -> Iterator[None]:
    before = {key: spark.conf.get(key, None) for key in values}
    for key, value in values.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, old in before.items():
            if old is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, old)


@contextmanager
def spark_session(
    name: str, master: str | None = None, *, is_short: bool = False
) -> Iterator[SparkSession]:
    """The session of one command: that of spark-submit where there is one, else a new one.

    ``is_short``: whether the command is expected to be done within a minute or two. Only a session
    that was started here is stopped here. Raises JavaError where there is no Java to start one.
    """
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    # Workers would else take whatever python3 is first on the PATH.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(name)
    if not submitted:
        os.environ.update(find_java(os.environ))
        for key, value in (_OWN_SESSION | (_FOR_SHORT_COMMANDS if is_short else {})).items():
            builder = builder.config(key, value)
        # A terminal shows Spark's own progress bar; a log file does not want it.
        builder = builder.config("spark.ui.showConsoleProgress", str(sys.stderr.isatty()).lower())
    if master is not None:
        builder = builder.master(master)
    spark = builder.getOrCreate()
    chosen = spark.sparkContext.getConf()
    for key, value in _NEEDED.items():
        spark.conf.set(key, value)
    for key, value in _advised(spark).items():
        if not chosen.contains(key):
            spark.conf.set(key, value)
    try:
        yield spark
    finally:
        if not submitted:
            spark.stop()
