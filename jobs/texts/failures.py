"""Any failure as one sentence: what happened, and what to do about it.

``sentence_of`` is for what Python raises; for what Spark and Java say see
``engines/environment.py``. Both know the failures of machines, disks and clusters, which are the
operator's to mend. Of all others they give the root cause alone: its class and its message.
"""

import errno
import os
import re
import tempfile
from concurrent.futures import BrokenExecutor
from pathlib import Path

from .secret_patterns import Secrets
from .shown import shortened, visible

#: Remedies by errno.
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
    """Explains a Python exception to whoever runs the command.

    >>> sentence_of(OSError(28, "No space left on device", "/lake/x"))
    'No space left on device: /lake/x: make room on that disk, and run again'
    >>> sentence_of(ZeroDivisionError("division by zero"))
    'ZeroDivisionError: division by zero'
    >>> sentence_of(OSError("AWS Error SLOW_DOWN during GetObject operation"))[:67]
    'AWS Error SLOW_DOWN during GetObject operation: the store throttles'
    """
    if isinstance(error, OSError) and error.errno is not None:
        return _system_sentence(error)
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
    text = one_line(str(error))
    if _is_of_damage(error):
        return advice_on_damage(text)
    if isinstance(error, OSError) and re.search(_THROTTLED, text):
        return (
            f"{text}: the store throttles, it takes no more requests for now (503 SlowDown): run "
            "again later, with fewer jobs at a time"
        )
    if isinstance(error, OSError) and text:
        # PyArrow's, of a server: an object store, HDFS.
        return f"{text}: check the server, the path and who may use it, and run again"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def is_of_the_machine(error: BaseException) -> bool:
    """True if it is the machine's failure, not a defect of the program: no stack explains more."""
    # An OSError without a number is PyArrow's: an object store that does not answer, say.
    kinds = MemoryError | BrokenExecutor | ModuleNotFoundError | OSError
    return isinstance(error, kinds) or _is_of_damage(error)


#: Errors of PyArrow for a file whose bytes are not what was written.
DAMAGE = (
    r"(?i)\bcorrupt|magic bytes not found|is not a parquet file|deserialize thrift|"
    r"Unexpected end of (?:stream|input)|(?:CRC|checksum) verification failed"
)


#: Words of PyArrow for a store that refuses requests because there are too many.
_THROTTLED = r"(?i)SLOW_?DOWN|THROTTL|SERVICE_UNAVAILABLE|TooManyRequests|ServerBusy"


def _is_of_damage(error: BaseException) -> bool:
    is_of_arrow = type(error).__module__.startswith("pyarrow") or isinstance(error, OSError)
    return is_of_arrow and re.search(DAMAGE, str(error)) is not None


def advice_on_damage(text: str) -> str:
    """The advice on a damaged file, by its name where the message has it.

    >>> advice_on_damage("Could not open Parquet source '/lake/a.parquet': magic bytes not found")
    'the file /lake/a.parquet is damaged: restore it, or write its table again, and run again'
    """
    file = re.search(r"'((?:/|\w+:/)[^']+)'|((?:/|\w+:/)\S+\.parquet)", text)
    what = f"the file {file[1] or file[2]} is damaged" if file else f"a file is damaged: {text}"
    return f"{what}: restore it, or write its table again, and run again"


def _system_sentence(error: OSError) -> str:
    names = [visible(str(name)) for name in (error.filename, error.filename2) if name is not None]
    # PyArrow has the name of the file in its message alone.
    what = ": ".join([error.strerror or "", *names]) if names else _arrow_sentence(str(error))
    if error.errno in (errno.EACCES, errno.EPERM):
        remedy = f"give user {os.geteuid()} the right to it, or run as another user"
    elif error.errno == errno.ENOENT and not names and _is_nowhere():
        return "the current directory is gone: change to one that is there, and run again"
    else:
        other = "check the path, and run again" if "/" in what else "--verbose shows where"
        remedy = _REMEDIES.get(error.errno or 0, other)
    return f"{what}: {remedy}"


def _arrow_sentence(text: str) -> str:
    """PyArrow's message, the system's part of it first.

    >>> _arrow_sentence("[Errno 13] Failed to open file '/x'. Detail: [errno 13] Permission denied")
    "Permission denied: Failed to open file '/x'"
    """
    what, _, detail = one_line(re.sub(r"\[[Ee]rrno \d+\] ", "", text)).partition(". Detail: ")
    return f"{detail}: {what}" if detail else what


def _is_nowhere() -> bool:
    try:
        Path.cwd()
    except FileNotFoundError:
        return True
    return False


def one_line(text: str) -> str:
    """A message as one line that a person reads."""
    return shortened(" ".join(text.split()))


def keep_stack(stack: str) -> str:
    """Keeps a stack in a file; gives where that is, and what to do with it."""
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="rebalance-audit-", suffix=".log", delete=False, errors="backslashreplace"
        ) as file:
            file.write(Secrets().mask(stack))
    except OSError as error:
        return f"--verbose shows the stack ({sentence_of(error)})"
    return f"this is a defect of the audit: report it with its stack, which is in {file.name}"
