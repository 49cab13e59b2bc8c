"""Every failure as one sentence: what happened, and what to do about it."""

from __future__ import annotations

import errno
import os
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import pytest
from pyarrow.lib import ArrowInvalid

from jobs.engines.environment import sentence_of_spark
from jobs.errors import stop_before
from jobs.texts.failures import is_of_the_machine, sentence_of


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(errno.ENOSPC, "No space left", "/lake/x"), "/lake/x: make room on that "),
        (OSError(errno.EDQUOT, "Disk quota exceeded", "/lake/x"), "raise the quota"),
        (OSError(errno.EROFS, "Read-only file system", "/lake"), "/lake: name a folder that can"),
        (OSError(errno.EMFILE, "Too many open files"), "ulimit -n"),
        (OSError("Unable to load libhdfs"), "Unable to load libhdfs: check the server, the path"),
        (OSError("AWS Error NETWORK_CONNECTION during GetObject"), "GetObject: check the server"),
        (PermissionError(errno.EACCES, "Permission denied", "/lake"), "/lake: give user "),
        (FileNotFoundError(errno.ENOENT, "No such file", "/a\nb"), r"/a\nb: check the path"),
        # PyArrow has no name of a file, but a message.
        (
            OSError(errno.ENOSPC, "Error writing bytes. Detail: no space left"),
            "no space left: Error writing bytes: make room on that disk",
        ),
        # A damaged file is nobody's defect but the disk's.
        (
            ArrowInvalid(
                "Could not open Parquet input source '/lake/a b.parquet': Parquet magic "
                "bytes not found in footer."
            ),
            "the file /lake/a b.parquet is damaged: restore it, or write its table again",
        ),
        (OSError("Corrupt snappy compressed data."), "a file is damaged: Corrupt snappy"),
        (MemoryError(), "out of memory: give the process more"),
        (BrokenProcessPool("x"), "killed for want of memory as likely as not: take fewer"),
        (ModuleNotFoundError("No module named 'x'", name="x"), "package x is not installed"),
    ],
    ids=repr,
)
def test_the_failures_of_a_machine_say_what_to_do(error: Exception, said: str) -> None:
    sentence = sentence_of(error)
    assert said in sentence
    assert "\n" not in sentence
    assert is_of_the_machine(error)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ArrowInvalid("a"), "ArrowInvalid: a"),
        (ValueError("corrupt"), "ValueError: corrupt"),
        (ZeroDivisionError("division by zero"), "ZeroDivisionError: division by zero"),
        (ValueError("a\n\x1b[31mb"), r"ValueError: a \x1b[31mb"),
        (ValueError("x" * 10_000), f"ValueError: {'x' * 500}..."),
        (AssertionError(), "AssertionError"),
    ],
    ids=repr,
)
def test_any_other_failure_is_named_with_its_message_in_a_line(error: Exception, said: str) -> None:
    assert sentence_of(error) == said
    assert not is_of_the_machine(error)


def test_a_current_directory_that_is_gone_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(FileNotFoundError) as raised:
        os.getcwd()  # noqa: PTH109 - what pathlib calls
    assert sentence_of(raised.value).startswith("the current directory is gone: ")


JAVA = "An error occurred while calling o1.parquet.\n: org.apache.spark.SparkException: Job aborted"


SILENT = "Answer from Java side is empty"


@pytest.mark.parametrize(
    ("text", "log", "said"),
    [
        # What each of these failures made Spark 4.3 say, shortened.
        ("x [PYTHON_VERSION_MISMATCH] 3.12", "", "another version of Python than the driver"),
        ("  x\nModuleNotFoundError: No module named 'pyarrow'", "", "has no module pyarrow: "),
        ("stopped SparkContext", "Reason: All masters are unresponsive!", "no Spark master answe"),
        ("[JAVA_GATEWAY_EXITED]", "either HADOOP_CONF_DIR or YARN_CONF_DIR must be set", "yarn ne"),
        (f"{JAVA}\nCaused by: java.lang.OutOfMemoryError: x", "", "Java ran out of mem"),
        (SILENT, "java.lang.OutOfMemoryError: x", "Java ran out of mem"),
        ("Traceback (most recent call last):\n  x\nMemoryError\n", "", "Python worker ran out of "),
        (f"{JAVA}\nCaused by: java.io.IOException: No space left on device", "", "no space left"),
        (SILENT, "Failed to create local dir in /x.", "SPARK_LOCAL_DIRS"),
        ("Python worker exited unexpectedly (crashed)", "", "a Python worker ended in the midst"),
        ("EOFException occurred while reading the port number from pyspark.daemon's", "", "a Pyth"),
        ('Cannot run program "/x/python": error=2', "", "the workers cannot run /x/python: set P"),
        ("ExecutorLostFailure (executor 1 exited)", "", "an executor was lost again and again"),
        ("ClassNotFoundException: Class org.apache.S3A not found", "", "no class org.apache.S3A:"),
        ('No FileSystem for scheme "oss"', "", "Spark knows no file system oss://: "),
        ("Caused by: java.net.UnknownHostException: lake", "", "there is no host lake: "),
        ("BindException: Service 'sparkDriver' failed after 16 retries", "", "its sparkDriver:"),
        ("AccessControlException: user=me, access=WRITE", "", "denied: user=me, access=WRITE: "),
        ("java.net.ConnectException: Call to lake:8020", "", "be reached: Call to lake:"),
        ("[Errno 2] Failed to open local file '/d/x'. x: No such file", "", "no file /d/x: put "),
        (SILENT, "", "Java ended in the midst of its work"),
        ("[Errno 111] Connection refused", "", "Java ended in the midst of its work"),
    ],
    ids=str,
)
def test_a_failure_of_spark_is_told_by_its_cause(text: str, log: str, said: str) -> None:
    sentence = sentence_of_spark(text, log)
    assert said in sentence
    assert "\n" not in sentence


@pytest.mark.parametrize(
    ("text", "log", "root"),
    [
        (f"{JAVA}\n\tat x\nCaused by: a.B: one\n\tat y\nCaused by: c.D: two\n", "", "c.D: two"),
        (f"{JAVA}\n\tat x", "", "org.apache.spark.SparkException: Job aborted"),
        ('Traceback (most recent call last):\n  File "x"\nKeyError: 1\n\tat y', "", "KeyError: 1"),
        ("[JAVA_GATEWAY_EXITED] x", 'Exception in thread "main" a.B: no\n\tat x', "a.B: no"),
        ("[JAVA_GATEWAY_EXITED] x", "Error: Could not create the VM", "Could not create the VM"),
        ("[JAVA_GATEWAY_EXITED] x", "", "no reason is given"),
        ("[PATH_NOT_FOUND] no x\n\nmore", "", "[PATH_NOT_FOUND] no x"),
    ],
    ids=str,
)
def test_of_what_nobody_foresaw_the_root_cause_is_told(text: str, log: str, root: str) -> None:
    assert sentence_of_spark(text, log) == f"Spark failed: {root}"


def test_a_damaged_file_is_no_defect_of_spark() -> None:
    """A worker's PyArrow reads it, not Java."""
    text = (
        f"{JAVA}\nCaused by: org.apache.spark.api.python.PythonException:\n"
        'Traceback (most recent call last):\n  File "kernel.py", line 1, in read\n'
        "pyarrow.lib.ArrowInvalid: Could not open Parquet input source '/lake/a b.parquet': "
        "Parquet magic bytes not found in footer.\n\tat x"
    )
    said = "the file /lake/a b.parquet is damaged: restore it, or write its table again"
    assert sentence_of_spark(text).startswith(said)


def test_a_failure_that_came_of_a_stop_is_none_of_spark() -> None:
    stopped, failed = ConnectionError("gone"), ConnectionError("gone")
    stopped.__context__ = OSError("the socket is closed")
    stopped.__context__.__context__ = KeyboardInterrupt()
    failed.__context__ = OSError("the socket is closed")
    assert isinstance(stop_before(stopped), KeyboardInterrupt)
    assert stop_before(failed) is None
