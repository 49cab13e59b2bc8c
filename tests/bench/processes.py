"""What a tree of processes used: CPU seconds, and the peaks of memory of its JVM and its Python.

Read from /proc, so the benches run on Linux. A process that ended counts for its parent, as the
kernel does it. Spark's daemon of Python workers is the exception: it ignores the end of its workers
(SIGCHLD), and the kernel then counts them for nobody. So the watch remembers what each worker had
used when it was last seen: of a worker that ended, less than one look's distance is lost.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

_TICKS = os.sysconf("SC_CLK_TCK")
_SIGCHLD = 1 << (signal.SIGCHLD - 1)


def _stat(process: int) -> list[str] | None:
    """The fields of /proc/<pid>/stat from the state on; None where it is gone."""
    try:
        text = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return None
    return text.rpartition(")")[2].split()


def _status(process: int, name: str) -> str:
    """One line of /proc/<pid>/status, without its name; empty where the process is gone."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2] for line in lines if line.startswith(f"{name}:")), "")


def tree(root: int) -> Iterator[int]:
    """The process and all that descend from it, parents first."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (fields := _stat(int(entry.name))):
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    waiting = [root]
    while waiting:
        process = waiting.pop()
        yield process
        waiting += children.get(process, [])


def _mib(process: int, name: str) -> float:
    text = _status(process, name)
    return int(text.split()[0]) / 1024 if text else 0.0


def _name(process: int) -> str:
    return _status(process, "Name").strip()


@dataclass
class Peaks:
    """MiB: the most that the JVM had, that all Python had together at a time, and its largest.

    All Python: the process itself, its workers, and the daemon that they come from. Pages that they
    share count for each of them.
    """

    jvm: float = 0.0
    python: float = 0.0
    largest: float = 0.0


class Watch:
    """Looks at the tree every so often while the block runs.

    ``peaks`` has the highest of all looks, ``cpu_seconds()`` is user and system time of the tree by
    now, that of its ended processes included.
    """

    def __init__(self, root: int, seconds: float = 0.1) -> None:
        self.peaks = Peaks()
        self._root = root
        self._seconds = seconds
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._looking = threading.Lock()
        #: By process id and start: CPU ticks of the processes whose parents ignore their end.
        self._ignored: dict[tuple[int, str], int] = {}
        #: What the looks themselves used: they are in the tree that they look at.
        self._own_seconds = 0.0

    def cpu_seconds(self) -> float:
        """CPU seconds of the whole tree since it began."""
        with self._looking:
            others = self._look()
            own = self._own_seconds if self._root == os.getpid() else 0.0
            return (others + sum(self._ignored.values())) / _TICKS - own

    def _watch(self) -> None:
        while not self._done.wait(self._seconds):
            with self._looking:
                self._look()

    def _look(self) -> int:
        """The ticks of all processes but those whose parents ignore their end; these are kept."""
        began, peaks, together, others = time.thread_time(), self.peaks, 0.0, 0
        for process in tree(self._root):
            stat = _stat(process)
            if stat is None:
                continue
            # Of the fields after the name: 1 is the parent, 11 to 14 the times, 19 the start.
            ticks = sum(int(each) for each in stat[11:15])
            if process != self._root and _ignores_ends(int(stat[1])):
                self._ignored[process, stat[19]] = ticks
            else:
                others += ticks
            name, peak = _name(process), _mib(process, "VmHWM")
            if name.startswith("java"):
                peaks.jvm = max(peaks.jvm, peak)
            elif process == self._root or name.startswith("python"):
                peaks.largest = max(peaks.largest, peak)
                together += _mib(process, "VmRSS")
        # The kernel keeps the highest of one process exactly; of several, what the looks saw.
        peaks.python = max(peaks.python, together, peaks.largest)
        self._own_seconds += time.thread_time() - began
        return others

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._done.set()
        self._thread.join()
        self._look()


def _ignores_ends(process: int) -> bool:
    ignored = _status(process, "SigIgn").strip()
    return bool(ignored) and bool(int(ignored, 16) & _SIGCHLD)
