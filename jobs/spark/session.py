"""The one place that starts a Spark session, for the commands that start one themselves.

An audit in somebody's session runs in a copy of it, which has settings of its own: no setting of
the caller changes, also with several audits at a time.
"""

import atexit
import logging
import os
import signal
import sys
import traceback
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from shutil import rmtree
from socketserver import BaseServer
from tempfile import gettempdir, mkdtemp, mkstemp
from threading import RLock
from typing import Any, cast
from uuid import uuid4

from py4j.protocol import Py4JError
from pyspark import RDD, SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.utils import is_remote

from ..engines.environment import check_packages, numbers_of, sentence_of_spark
from ..errors import SparkError, stop_before
from ..java import find_java

#: Settings of the session that the console command starts, besides what the jobs need in any; under
#: spark-submit that is the cluster's business, and conf/spark-defaults.conf has what is advised.
_STARTED_WITH = {
    "spark.master": "local[*]",
    "spark.driver.memory": "3g",
    # Pieces pass through Java, and little stays there. Its usual collector lets a heap grow to all
    # that it may have; this one keeps it small, and takes less of the cores. Its second compiler
    # takes longer than it saves. The first one alone has 48 MB for its code unless it is given
    # more, and Java stops compiling when they are full.
    "spark.driver.extraJavaOptions": (
        "-Xms64m -XX:+UseSerialGC -XX:MinHeapFreeRatio=5 -XX:MaxHeapFreeRatio=10 "
        "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
    ),
    "spark.ui.enabled": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.log.level": "ERROR",
    # Else every call on a column is three: two of them send the JVM the line of Python.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
}

#: The most bytes of Java's output that are searched for the cause.
_MOST_LOG = 4 << 20

#: Options of Spark's readers: a path is a name and no glob, whatever is in it (DataSource.scala).
AS_NAMED = {"__globPaths__": "false"}

#: Settings that the jobs need in whatever session they run.
_NEEDED = {
    # Reports are instants; nothing may depend on where the cluster is.
    "spark.sql.session.timeZone": "UTC",
    # INT96, the default, has no zone: other readers then take the times for local ones.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # run=..., dt=... are names, never numbers or dates.
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
}


#: Settings that the jobs need of their own session besides. Pieces that the driver gives travel as
#: columns of Arrow. Plans are few and fixed: nothing is gained by planning again as they run. Files
#: are listed by name, which needs no job.
_FOR_PIECES = {
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(16 << 20),
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
}


_ROWS_OF_A_BATCH = "spark.sql.execution.arrow.maxRecordsPerBatch"


def _rows_of_a_batch(version: str) -> str:
    """The most rows of a batch in a version of Spark.

    A row is a situation, or a piece of megabytes or a whole file: bytes bound a batch, where Spark
    counts them, from 4.1 on. Before, a few rows make one.
    """
    return "10000" if numbers_of(version) >= (4, 1) else "4"


#: Packages that every worker needs.
_OF_A_WORKER = ("numpy", "pandas", "pyarrow", __package__, "rebalance_core")
#: The Python that Spark takes where PYSPARK_PYTHON is not set.
_DEFAULT = "python3"


#: The lock for what is changed for a moment, or by several audits at a time.
_LOCK = RLock()
#: The contexts whose workers take this Python, once for each audit that is under way.
_WITH_THIS_PYTHON: list[SparkContext] = []
#: The Python of each context of which a worker has shown that it can run the audit.
_FITTING: weakref.WeakKeyDictionary[SparkContext, str] = weakref.WeakKeyDictionary()


@contextmanager
def suited(spark: SparkSession) -> Iterator[SparkSession]:
    """A session beside this one that is as the jobs need it.

    It begins with what this one has, such as credentials of a store. Raises SparkError where
    Spark's packages or the workers' Python do not fit.
    """
    values = _NEEDED | _FOR_PIECES | {_ROWS_OF_A_BATCH: _rows_of_a_batch(spark.version)}
    with fitting_workers(spark):
        own = _copied(spark)
        # Spark Connect cannot copy a session before 4.1: there they are put back.
        before = {key: spark.conf.get(key, None) for key in values if own is spark}
        try:
            for key, value in values.items():
                own.conf.set(key, value)
            yield own
        finally:
            for key, old in before.items():
                spark.conf.unset(key) if old is None else spark.conf.set(key, old)


@contextmanager
def for_rows(own: SparkSession) -> Iterator[None]:
    """Lets rows of a caller be many in a batch, in a session that is suited."""
    own_size = str(own.conf.get(_ROWS_OF_A_BATCH))
    own.conf.set(_ROWS_OF_A_BATCH, max(own_size, "200", key=int))
    try:
        yield
    finally:
        own.conf.set(_ROWS_OF_A_BATCH, own_size)


def _copied(spark: Any) -> SparkSession:
    if not is_remote():
        with unnoticed(spark):
            return SparkSession(spark.sparkContext, spark._jsparkSession.cloneSession())
    if not hasattr(spark, "cloneSession"):
        return cast(SparkSession, spark)
    copied = spark.cloneSession()
    # Else Python asks the server at its end, where it is gone for ten minutes and more. What is
    # registered last comes first: before the client's own end.
    atexit.register(copied.client.close)
    return cast(SparkSession, copied)


def adopted(own: SparkSession, rows: DataFrame) -> DataFrame:
    """Somebody's rows in a copy of their session: they are written as that one writes.

    What was settled when they were made, as the zone of a cast, stays.
    """
    if rows.sparkSession is own:
        return rows
    if not is_remote():
        java = rows._jdf
        return DataFrame(java.ofRows(own._jsparkSession, java.queryExecution().analyzed()), own)
    # By a view of all sessions, for as long as a plan needs it: a plan that is given to another
    # session as it is would be settled again there, by the settings of that one, and what is kept
    # of it would not be known again.
    name = f"rebalance_audit_{uuid4().hex}"
    rows.createGlobalTempView(name)
    shared: Any = own.table(f"{own.conf.get('spark.sql.globalTempDatabase')}.{name}")
    # At the end of Python the server may be gone, with all its views.
    weakref.finalize(shared._plan, _drop, rows.sparkSession, name).atexit = False
    return cast(DataFrame, shared)


def _drop(spark: SparkSession, view: str) -> None:
    with suppress(Exception):  # the session may be stopped
        spark.catalog.dropGlobalTempView(view)


@contextmanager
def unnoticed(spark: SparkSession) -> Iterator[None]:
    """Lets a session be made, or be given rows, and not become what PySpark takes for the active.

    ``rdd.toDF()`` takes the session that was made last, ``getActiveSession()`` the one that was
    given rows last.
    """
    if is_remote():
        yield
        return
    java = spark._jsparkSession
    with _LOCK:
        to_df, active, before = RDD.toDF, SparkSession._activeSession, java.getActiveSession()
        try:
            yield
        finally:
            setattr(RDD, "toDF", to_df)  # noqa: B010 - for mypy
            SparkSession._activeSession = active
            if before.isDefined():
                java.setActiveSession(before.get())
            else:
                java.clearActiveSession()


@contextmanager
def fitting_workers(spark: SparkSession | None = None) -> Iterator[None]:
    """Lets Spark's workers run in a Python that fits this one, for all that is made in the block:
    a UDF keeps the Python of the moment in which it is made. None: the session that there is.

    Workers take the Python that PYSPARK_PYTHON names when the session starts, else the first
    ``python3`` on their PATH. In a notebook whose environment is not activated that is another one.
    Workers on this machine get this Python then, for the block. A Python that was named, or that is
    on another machine, is asked once with one small task. Raises SparkError where it does not fit.
    """
    check_packages()
    if is_remote():  # Spark Connect: the server chooses the Python, and checks its version.
        yield
        return
    context = SparkContext.getOrCreate() if spark is None else spark.sparkContext
    is_here = str(context.master).startswith("local")
    with _LOCK:
        is_lent = is_here and (context.pythonExec == _DEFAULT or context in _WITH_THIS_PYTHON)
        if is_lent:
            context.pythonExec = sys.executable
            _WITH_THIS_PYTHON.append(context)
    is_known = is_here and context.pythonExec == sys.executable
    if not is_known and _FITTING.get(context) != context.pythonExec:
        _ask_a_worker(context)
        _FITTING[context] = context.pythonExec
    try:
        yield
    finally:
        with _LOCK:
            if is_lent:
                _WITH_THIS_PYTHON.remove(context)
                # The last of several gives it back.
                if context not in _WITH_THIS_PYTHON:
                    context.pythonExec = _DEFAULT


def _ask_a_worker(context: SparkContext) -> None:
    try:
        context.parallelize([0], 1).foreach(_import_all)
    except (Py4JError, PySparkException) as error:
        raise SparkError(
            f"a worker of Spark cannot run the audit with {context.pythonExec}: "
            f"{sentence_of_spark(str(error))}"
        ) from error


def _import_all(_: int) -> None:
    for name in _OF_A_WORKER:
        import_module(name)


@contextmanager
def spark_session(
    name: str, master: str | None = None, *, verbose: bool = False
) -> Iterator[SparkSession]:
    """The session of one command: that of spark-submit where there is one, else a new one.

    Only a session that was started here is stopped here, and what its Java and its workers write
    goes into a file, which is kept where Spark fails; ``verbose``: to standard error.

    Raises JavaError where there is no Java to start one, and SparkError for every failure of Spark
    in the block: the cause in one line, and where the file is.
    """
    # Workers would else take whatever python3 is first on the PATH.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    log, failed = None, False
    if not (submitted or verbose):
        # A file that nobody else can read: what Spark logs may name client ids.
        handle, path = mkstemp(prefix="rebalance-audit-", suffix=".log")
        os.close(handle)
        log = Path(path)
    try:
        with _without_words_of_py4j(verbose):
            if submitted:
                builder = SparkSession.builder.appName(name)
                yield (builder if master is None else builder.master(master)).getOrCreate()
                return
            spark = _started(name, master, log)
            try:
                yield spark
            finally:
                # Where its Java is gone there is nothing left to stop.
                with suppress(Py4JError, ConnectionError):
                    spark.stop()
    # ConnectionError: of the connection to Java, which the jobs have no other of.
    except (Py4JError, PySparkException, ConnectionError) as error:
        # The stack of a command that was stopped in the midst of a call to Java is of no use.
        failed = stop_before(error) is None
        raise SparkError(_sentence(error, log)) from error
    finally:
        if log is not None and not failed:
            log.unlink(missing_ok=True)


def tasks_under_way(spark: SparkSession) -> tuple[int, int, str] | None:
    """The tasks done and in all, of the stages that run; None: no stage runs.

    May be asked by another thread. A session that is gone runs none.
    """
    try:
        tracker = spark.sparkContext.statusTracker()
        stages = list(map(tracker.getStageInfo, tracker.getActiveStageIds()))
    except (Py4JError, OSError, AttributeError):  # it was stopped in the midst of the question
        return None
    running = [stage for stage in stages if stage is not None]
    done = sum(stage.numCompletedTasks for stage in running)
    return (done, sum(stage.numTasks for stage in running), "tasks") if running else None


@contextmanager
def _same_answer_to_ctrl_c() -> Iterator[None]:
    """Takes back the handler that pyspark sets.

    It asks Java, over the connection on which the answer is waited for, to stop all jobs: that
    fails, with a stack. Stopping the session stops the jobs.
    """
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        # Signals reach the main thread alone, and only there has pyspark set a handler.
        if signal.getsignal(signal.SIGINT) is not handler:
            signal.signal(signal.SIGINT, handler)


@contextmanager
def _without_words_of_py4j(verbose: bool) -> Iterator[None]:
    """py4j logs the stack of what it raises as well, to whoever listens to the root logger.

    The server that workers send their counters to prints one too, where Java is gone.
    """

    def is_of_another(record: logging.LogRecord) -> bool:
        return verbose or "py4j" not in Path(record.pathname).parts

    def handle_error(server: BaseServer, request: Any, address: Any) -> None:
        # Versions of Spark name its class otherwise.
        if type(server).__module__ != "pyspark.accumulators":
            print_error(server, request, address)

    # Some of it comes by the root logger itself: that gives it a handler, for all loggers.
    root, py4j_logger = logging.getLogger(), logging.getLogger("py4j")
    root.addFilter(is_of_another)
    propagated, py4j_logger.propagate = py4j_logger.propagate, verbose
    print_error = BaseServer.handle_error
    if not verbose:
        setattr(BaseServer, "handle_error", handle_error)  # noqa: B010 - for mypy
    try:
        yield
    finally:
        setattr(BaseServer, "handle_error", print_error)  # noqa: B010 - for mypy
        root.removeFilter(is_of_another)
        py4j_logger.propagate = propagated


def _keep_private() -> None:
    """Lets the Java that is started next keep what it puts aside where nobody else can read it.

    Its blocks have the true ids of clients, and Spark gives them no rights of their own. Of a
    folder that cannot be written to Spark speaks itself.
    """
    named = os.environ.get("SPARK_LOCAL_DIRS") or gettempdir()
    with suppress(OSError):
        folders = [mkdtemp(prefix="rebalance-audit-", dir=place) for place in named.split(",")]
        os.environ["SPARK_LOCAL_DIRS"] = ",".join(folders)
        # Java lives as long as this process, whatever becomes of the session.
        for folder in folders:
            atexit.register(rmtree, folder, ignore_errors=True)


@_same_answer_to_ctrl_c()
def _started(name: str, master: str | None, log: Path | None) -> SparkSession:
    os.environ.update(find_java(os.environ))
    if SparkContext._gateway is None:
        _keep_private()
    # Where Java writes to the terminal it shows a progress bar, too; a log does not want it.
    shows_bar = log is None and sys.stderr.isatty()
    values = _STARTED_WITH | _NEEDED | ({} if master is None else {"spark.master": master})
    values["spark.ui.showConsoleProgress"] = str(shows_bar).lower()
    values["spark.app.name"] = name
    # Workers of this machine, with this Python, have the package where the daemon looks for it.
    is_this_python = os.environ["PYSPARK_PYTHON"] == sys.executable
    if is_this_python and values["spark.master"].startswith("local"):
        values["spark.python.daemon.module"] = f"{__package__}.daemon"
    conf = SparkConf().setAll([*values.items()])
    # A second session of a process goes on with the first one's Java.
    if log is not None and SparkContext._gateway is None:
        with log.open("ab") as file:
            output = {"stdout": file, "stderr": file}
            gateway = launch_gateway(conf, output)  # type: ignore[no-untyped-call]
        SparkContext(conf=conf, gateway=gateway)
    return SparkSession.builder.config(conf=conf).getOrCreate()


def _sentence(error: Exception, log: Path | None) -> str:
    """The sentence on the failure; its stack is added to the log."""
    text = _safely(error, str)
    stack = _safely(error, lambda error: "".join(traceback.format_exception(error)))
    if log is None:
        return f"{sentence_of_spark(text)}; --verbose shows the stack"
    written = log.read_bytes()[:_MOST_LOG].decode(errors="replace")
    kept = f"the stack is in {log}"
    try:
        with log.open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(f"\n{stack}")
    except OSError as unwritten:
        kept = f"the log {log} is not whole: {unwritten}"
    return f"{sentence_of_spark(text, written)}; {kept}"


def _safely(error: Exception, read: Callable[[Exception], str]) -> str:
    """A text of the error: py4j asks Java for it, which may be gone."""
    try:
        return read(error)
    except (Py4JError, OSError) as unread:
        return f"{type(error).__name__}: {unread}"
