"""Environment of Spark, without Spark: whether its packages fit, and what its failures mean.

The ranges are those of pyproject.toml, which holds for whoever installs with pip. A cluster, an
image or a notebook may bring others.
"""

import platform
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from ..errors import SparkError
from ..texts.failures import DAMAGE, advice_on_damage, one_line

#: The version from which on, and the one before which, a package runs the jobs.
SPARK_PACKAGE = "pyspark"
RANGES = {SPARK_PACKAGE: ("3.5", "5"), "pandas": ("2.2", "3")}

_WHAT_TO_INSTALL = "pip install 'rocketmq-rebalance-audit[spark]'"


def check_packages() -> None:
    """SparkError where this Python has no Spark or no pandas, or one that does not fit."""
    for package, (oldest, too_new) in RANGES.items():
        try:
            came = str(import_module(package).__version__)
        except ModuleNotFoundError as error:
            if error.name != package:
                raise
            raise SparkError(
                f"Spark needs the Python package {package}, which {sys.executable} does not have: "
                f"{_WHAT_TO_INSTALL}; small inputs need no Spark: --engine local"
            ) from error
        if not numbers_of(oldest) <= numbers_of(came) < numbers_of(too_new):
            raise SparkError(
                f"expected {package} {oldest} or later and before {too_new}, came {came} "
                f"({sys.executable}): {_WHAT_TO_INSTALL} brings one that fits"
            )
        if package == SPARK_PACKAGE and numbers_of(came) < (4, 0) and not find_spec("distutils"):
            raise SparkError(
                f"pyspark {came} needs the module distutils, which Python has no more from 3.12 on "
                f"and setuptools brings: pip install setuptools ({sys.executable})"
            )


def versions() -> Iterator[str]:
    """The versions that an audit runs on, for whoever reads a report of a defect."""
    yield f"Python {platform.python_version()}"
    for package in (SPARK_PACKAGE, "pyarrow", "numpy"):
        try:
            yield f"{package} {version(package)}"
        except PackageNotFoundError:
            yield f"no {package}"


def numbers_of(version: str) -> tuple[int, ...]:
    """The first two numbers of a version.

    >>> numbers_of("4.1.0.dev1"), numbers_of("5")
    ((4, 1), (5, 0))
    """
    numbers = [int(part) for part in version.split(".")[:2] if part.isdecimal()]
    return (*numbers, 0, 0)[:2]


#: Prints of Spark, Java and the workers, as regular expressions, and below each, indented, what it
#: means: the first that is found counts. A failure makes others, so the root comes before what
#: follows from it.
_OF_SPARK = r"""
PYTHON_VERSION_MISMATCH|Python in worker has different version
    the workers have another version of Python than the driver: set PYSPARK_PYTHON (or
    spark.pyspark.python) to the same version
ModuleNotFoundError: No module named '(?P<what>[^']+)'
    the workers' Python has no module {what}: install it there, or ship it with --py-files;
    PYSPARK_PYTHON says which Python it is
All masters are unresponsive
    no Spark master answered within a minute: check --master, and that the master runs and has this
    version of Spark
either HADOOP_CONF_DIR or YARN_CONF_DIR must be set
    --master yarn needs the cluster's configuration: set HADOOP_CONF_DIR or YARN_CONF_DIR
UnsupportedClassVersionError
    this Java is too old for Spark, which needs 17 or later: point JAVA_HOME to a later one, or
    unset it and pip install 'rocketmq-rebalance-audit[jre]'
OutOfMemoryError|GC overhead limit|Could not reserve enough space|insufficient memory for the Java
    Java ran out of memory: give it more (spark.driver.memory, spark.executor.memory;
    PYSPARK_SUBMIT_ARGS='--driver-memory 6g pyspark-shell'), or run on fewer cores
    (--master 'local[2]')
(?:^|[\s:])MemoryError|ArrowMemoryError
    a Python worker ran out of memory: run on fewer cores (--master 'local[2]'), or give the
    executors more (spark.executor.memoryOverhead)
No space left on device|Disk quota exceeded|File too large
    no space left on the disk: make room where the tables are written, or in Spark's folder for
    temporary files (SPARK_LOCAL_DIRS, else /tmp), and run again
(?i)Failed to create (?:a temp directory|any local dir|local dir)
    Spark cannot write into its folder for temporary files: set SPARK_LOCAL_DIRS to one with room
    that can be written to
Cannot run program "(?P<what>[^"\n]+)"
    the workers cannot run {what}: set PYSPARK_PYTHON (or spark.pyspark.python) to a Python that
    each of them has
Python worker (?:exited|failed to connect|.{0,20}crashed)|PYTHON_WORKER|port number from \S+daemon
    a Python worker ended in the midst of its work: something killed it, most often the system for
    want of memory (the kernel's log says so); run again, on fewer cores (--master 'local[2]') or
    with more memory (spark.executor.memoryOverhead)
ExecutorLostFailure|Lost executor|ExecutorDeadException
    an executor was lost again and again: see the cluster's log of it; most often it needs more
    memory (spark.executor.memory, spark.executor.memoryOverhead)
ClassNotFoundException: (?:Class )?(?P<what>[\w.$]+)
    Spark has no class {what}: add the package that brings it (spark.jars.packages;
    org.apache.hadoop:hadoop-aws for s3a://), of the version of Spark's Hadoop
No FileSystem for scheme "?(?P<what>[\w+.-]+)
    Spark knows no file system {what}://: check the path, or add the package that brings it
    (spark.jars.packages)
UnknownHostException: (?P<what>[\w.-]+)
    there is no host {what}: check --master and the paths
Service '(?P<what>[\w ]+)' failed after \d+ retries
    Spark found no free port for its {what}: set spark.driver.bindAddress or
    spark.port.maxRetries, or stop other sessions of Spark
Failed to open local file '(?P<what>[^'\n]+)'[^\n]*No such file
    a worker of Spark has no file {what}: put the files where the driver and all workers see them
    under one path, or give the audit DataFrames
(?:AccessControlException|AccessDeniedException|Permission denied)[: ]*(?P<what>[^\n]*)
    permission denied: {what}: give the user of the job the right to it
ConnectException: (?P<what>[^\n]*)
    a server cannot be reached: {what}: check that it runs, and the paths and --master
"""
_MEANINGS = [
    (re.compile(printed), " ".join(meaning.split()))
    for printed, meaning in re.findall(r"^(\S.*)\n((?: .*\n)+)", _OF_SPARK, re.M)
]

_JAVA_IS_GONE = (
    "Java ended in the midst of its work: something killed it, most often the system for want of "
    "memory (the kernel's log says so); run again, with less memory for Java (spark.driver.memory) "
    "or on a larger machine"
)
_GONE = re.compile(
    r"Answer from Java side is empty|while sending or receiving|Connection refused|"
    r"connecting to the Java server|Connection reset|Broken pipe"
)


def sentence_of_spark(text: str, log: str = "") -> str:
    """Explains a failure of Spark: ``text`` is the exception's, ``log`` what Java wrote.

    >>> sentence_of_spark("x\\nCaused by: java.net.UnknownHostException: lake: Name not known")
    'there is no host lake: check --master and the paths'
    >>> sentence_of_spark("An error occurred\\nCaused by: java.lang.IllegalStateException: odd\\n")
    'Spark failed: java.lang.IllegalStateException: odd'
    """
    for printed in (text, log):
        for pattern, sentence in _MEANINGS:
            if match := pattern.search(printed):
                found = {name: value or "" for name, value in match.groupdict().items()}
                return one_line(sentence.format(**found))
    if _GONE.search(text):
        return _JAVA_IS_GONE
    root = _root_cause(log if "JAVA_GATEWAY_EXITED" in text else text)
    # A worker reads files by PyArrow, as this process does.
    return advice_on_damage(root) if re.search(DAMAGE, root) else f"Spark failed: {root}"


#: Patterns of a text's root cause, best first.
_ROOTS = (
    # The last line of a Python stack: the first line behind it that is not indented.
    re.compile(r"^[ ]*Traceback \(most recent call last\):\n(?:[ ]+.*\n)+(\S.*)", re.M),
    re.compile(r"^Caused by: (.+)", re.M),
    re.compile(r"^(?:Exception in thread \"main\" |: |Error: )(.+)", re.M),
)


def _root_cause(text: str) -> str:
    for pattern in _ROOTS:
        if roots := pattern.findall(text):
            return one_line(roots[-1])
    lines = [line for line in text.splitlines() if line.strip()]
    return one_line(lines[0]) if lines else "no reason is given"
