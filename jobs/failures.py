"""Any failure as one sentence: what happened, and what to do about it.

``sentence_of`` is for what Python raises, ``sentence_of_spark`` for what Spark and Java say. Both
know the failures of machines, disks and clusters, which are the operator's to mend. Of all others
they give the root cause alone: its class and its message.
"""

import errno
import os
import re
from concurrent.futures import BrokenExecutor
from pathlib import Path

from .text import visible

#: A message is one line that a person reads.
_LONGEST = 500

#: By errno what to do.
_REMEDIES = {
    errno.ENOSPC: "make room on that disk, and run again",
    errno.EDQUOT: "raise the quota or make room, and run again",
    errno.EFBIG: "raise the limit of the size of files (ulimit -f), and run again",
    errno.EROFS: "name a folder that can be written to, or mount it so",
    errno.EMFILE: "raise the limit of open files (ulimit -n), and run again",
    errno.ENFILE: "raise the system's limit of open files, and run again",
    errno.EIO: "check the disk or the network share, and run again",
    errno.ESTALE: "check the network share, and run again",
    errno.ENOMEM: "free memory, and run again",
}


def sentence_of(error: BaseException) -> str:
    """What a Python exception means for whoever runs the command.

    >>> sentence_of(OSError(28, "No space left on device", "/lake/x"))
    'No space left on device: /lake/x: make room on that disk, and run again'
    >>> sentence_of(ZeroDivisionError("division by zero"))
    'ZeroDivisionError: division by zero'
    """
    if isinstance(error, OSError) and error.errno is not None:
        return _of_system(error)
    if isinstance(error, MemoryError):
        return (
            "out of memory: give the process more, audit a shorter time (--since, --until), or "
            "take --engine spark"
        )
    if isinstance(error, BrokenExecutor):
        return (
            "a process of the audit ended in the midst of its work, killed for want of memory as "
            "likely as not: take fewer (--workers), or give the machine more"
        )
    if isinstance(error, ModuleNotFoundError):
        return (
            f"the Python package {error.name} is not installed: install it, "
            "pip install 'rocketmq-rebalance-audit[spark]' for what Spark needs"
        )
    text = _one_line(str(error))
    if _is_of_damage(error):
        return _of_damage(text)
    if isinstance(error, OSError) and text:
        # PyArrow's, of a server: an object store, HDFS.
        return f"{text}: check the server, the path and who may use it, and run again"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def is_of_the_machine(error: BaseException) -> bool:
    """Whether it is the machine's failure and no defect of the program: no stack explains more."""
    # One without a number is PyArrow's: an object store that does not answer, say.
    return isinstance(error, MemoryError | ModuleNotFoundError | OSError) or _is_of_damage(error)


#: What PyArrow raises for a file whose bytes are not what was written.
_DAMAGE = (
    r"(?i)\bcorrupt|magic bytes not found|is not a parquet file|deserialize thrift|"
    r"Unexpected end of (?:stream|input)|(?:CRC|checksum) verification failed"
)


def _is_of_damage(error: BaseException) -> bool:
    is_of_arrow = type(error).__module__.startswith("pyarrow") or isinstance(error, OSError)
    return is_of_arrow and re.search(_DAMAGE, str(error)) is not None


def _of_damage(text: str) -> str:
    """What to do about a damaged file, by its name where the message has it.

    >>> _of_damage("Could not open Parquet input source '/lake/a.parquet': magic bytes not found")
    'the file /lake/a.parquet is damaged: restore it, or write its table again, and run again'
    """
    file = re.search(r"'((?:/|\w+:/)[^']+)'|((?:/|\w+:/)\S+\.parquet)", text)
    what = f"the file {file[1] or file[2]} is damaged" if file else f"a file is damaged: {text}"
    return f"{what}: restore it, or write its table again, and run again"


def _of_system(error: OSError) -> str:
    names = [visible(str(each)) for each in (error.filename, error.filename2) if each is not None]
    # PyArrow has the name of the file in its message alone.
    what = ": ".join([error.strerror or "", *names]) if names else _of_arrow(str(error))
    if error.errno in (errno.EACCES, errno.EPERM):
        remedy = f"give user {os.geteuid()} the right to it, or run as another user"
    elif error.errno == errno.ENOENT and not names and _is_nowhere():
        return "the current directory is gone: change to one that is there, and run again"
    else:
        other = "check the path, and run again" if "/" in what else "--verbose shows where"
        remedy = _REMEDIES.get(error.errno or 0, other)
    return f"{what}: {remedy}"


def _of_arrow(text: str) -> str:
    """PyArrow's message, the system's part of it first.

    >>> _of_arrow("[Errno 13] Failed to open local file '/x'. Detail: [errno 13] Permission denied")
    "Permission denied: Failed to open local file '/x'"
    """
    what, _, detail = _one_line(re.sub(r"\[[Ee]rrno \d+\] ", "", text)).partition(". Detail: ")
    return f"{detail}: {what}" if detail else what


def _is_nowhere() -> bool:
    try:
        Path.cwd()
    except FileNotFoundError:
        return True
    return False


#: What Spark, Java and the workers print, and what it means: the first that is found counts. A
#: failure makes others, so the root comes before what follows from it.
_OF_SPARK: tuple[tuple[str, str], ...] = (
    (
        r"PYTHON_VERSION_MISMATCH|Python in worker has different version",
        "the workers have another version of Python than the driver: set PYSPARK_PYTHON (or "
        "spark.pyspark.python) to the same version",
    ),
    (
        r"ModuleNotFoundError: No module named '(?P<what>[^']+)'",
        "the workers' Python has no module {what}: install it there, or ship it with --py-files; "
        "PYSPARK_PYTHON says which Python it is",
    ),
    (
        r"All masters are unresponsive",
        "no Spark master answered within a minute: check --master, and that the master runs and "
        "has this version of Spark",
    ),
    (
        r"either HADOOP_CONF_DIR or YARN_CONF_DIR must be set",
        "--master yarn needs the cluster's configuration: set HADOOP_CONF_DIR or YARN_CONF_DIR",
    ),
    (
        r"OutOfMemoryError|GC overhead limit|Could not reserve enough space|"
        r"insufficient memory for the Java Runtime",
        "Java ran out of memory: give it more (spark.driver.memory, spark.executor.memory; "
        "PYSPARK_SUBMIT_ARGS='--driver-memory 6g pyspark-shell'), or run on fewer cores "
        "(--master 'local[2]')",
    ),
    (
        r"(?:^|[\s:])MemoryError|ArrowMemoryError",
        "a Python worker ran out of memory: run on fewer cores (--master 'local[2]'), or give the "
        "executors more (spark.executor.memoryOverhead)",
    ),
    (
        r"No space left on device|Disk quota exceeded|File too large",
        "no space left on the disk: make room where the tables are written, or in Spark's folder "
        "for temporary files (SPARK_LOCAL_DIRS, else /tmp), and run again",
    ),
    (
        r"(?i)Failed to create (?:a temp directory|any local dir|local dir)[^\n]{0,40}?"
        r"(?P<what>/[^\s.,]+)?",
        "Spark cannot write into its folder for temporary files: set SPARK_LOCAL_DIRS to one with "
        "room that can be written to",
    ),
    (
        r"Cannot run program \"(?P<what>[^\"\n]+)\"",
        "the workers cannot run {what}: set PYSPARK_PYTHON (or spark.pyspark.python) to a Python "
        "that each of them has",
    ),
    (
        r"Python worker (?:exited unexpectedly|failed to connect|.{0,20}crashed)|PYTHON_WORKER|"
        r"reading the port number from \S+daemon",
        "a Python worker ended in the midst of its work: something killed it, most often the "
        "system for want of memory (the kernel's log says so); run again, on fewer cores "
        "(--master 'local[2]') or with more memory (spark.executor.memoryOverhead)",
    ),
    (
        r"ExecutorLostFailure|Lost executor|ExecutorDeadException",
        "an executor was lost again and again: see the cluster's log of it; most often it needs "
        "more memory (spark.executor.memory, spark.executor.memoryOverhead)",
    ),
    (
        r"ClassNotFoundException: (?:Class )?(?P<what>[\w.$]+)",
        "Spark has no class {what}: add the package that brings it (spark.jars.packages; "
        "org.apache.hadoop:hadoop-aws for s3a://), of the version of Spark's Hadoop",
    ),
    (
        r"No FileSystem for scheme \"?(?P<what>[\w+.-]+)",
        "Spark knows no file system {what}://: check the path, or add the package that brings it "
        "(spark.jars.packages)",
    ),
    (
        r"UnknownHostException: (?P<what>[\w.-]+)",
        "there is no host {what}: check --master and the paths",
    ),
    (
        r"Service '(?P<what>[\w ]+)' failed after \d+ retries",
        "Spark found no free port for its {what}: set spark.driver.bindAddress or spark.port."
        "maxRetries, or stop other sessions of Spark",
    ),
    (
        r"(?:AccessControlException|AccessDeniedException|Permission denied)[: ]*(?P<what>[^\n]*)",
        "permission denied: {what}: give the user of the job the right to it",
    ),
    (
        r"Read-only file system",
        "the file system is read-only: name a folder that can be written to",
    ),
    (
        r"ConnectException: (?P<what>[^\n]*)",
        "a server cannot be reached: {what}: check that it runs, and the paths and --master",
    ),
)

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
    """What a failure of Spark means: ``text`` is the exception's, ``log`` what Java wrote.

    >>> sentence_of_spark("x\\nCaused by: java.net.UnknownHostException: lake: Name not known")
    'there is no host lake: check --master and the paths'
    >>> sentence_of_spark("An error occurred\\nCaused by: java.lang.IllegalStateException: odd\\n")
    'Spark failed: java.lang.IllegalStateException: odd'
    """
    for printed in (text, log):
        for pattern, sentence in _OF_SPARK:
            match = re.search(pattern, printed)
            if match:
                found = {name: value or "" for name, value in match.groupdict().items()}
                return _one_line(sentence.format(**found))
    if _GONE.search(text):
        return _JAVA_IS_GONE
    root = _root_cause(log if "JAVA_GATEWAY_EXITED" in text else text)
    # A worker reads files by PyArrow, as this process does.
    return _of_damage(root) if re.search(_DAMAGE, root) else f"Spark failed: {root}"


#: Where a text names what it all began with, best first.
_ROOTS = (
    # The last line of a Python stack: the first line behind it that is not indented.
    re.compile(r"^[ ]*Traceback \(most recent call last\):\n(?:[ ]+.*\n)+(?P<root>\S.*)", re.M),
    re.compile(r"^Caused by: (?P<root>.+)", re.M),
    re.compile(r"^(?:Exception in thread \"main\" |: |Error: )(?P<root>.+)", re.M),
)


def _root_cause(text: str) -> str:
    for pattern in _ROOTS:
        found = [match["root"] for match in pattern.finditer(text)]
        if found:
            return _one_line(found[-1])
    lines = [line for line in text.splitlines() if line.strip()]
    return _one_line(lines[0]) if lines else "no reason is given"


def _one_line(text: str) -> str:
    words = visible(" ".join(text.split()))
    return words if len(words) <= _LONGEST else f"{words[:_LONGEST]}..."


def was_stopped(error: BaseException) -> bool:
    """Whether somebody stopped the command, and this failure only came of that.

    >>> stopped = OSError("the connection is gone")
    >>> stopped.__context__ = KeyboardInterrupt()
    >>> was_stopped(stopped), was_stopped(OSError("disk full"))
    (True, False)
    """
    before = error.__context__
    while before is not None and isinstance(before, Exception):
        before = before.__context__
    return before is not None
