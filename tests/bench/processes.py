"""What a tree of processes used: CPU seconds, and the highest memory of its JVM and its Python.

Read from /proc, so the benches run on Linux. A process that ended counts for its parent, as the
kernel does it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

_TICKS = os.sysconf("SC_CLK_TCK")


def _stat(process: int) -> list[str] | None:
    """The fields of /proc/<pid>/stat from the state on; None where it is gone."""
    try:
        text = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return None
    return text.rpartition(")")[2].split()


def tree(root: int) -> Iterator[int]:
    """The process and all that descend from it."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (fields := _stat(int(entry.name))):
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    waiting = [root]
    while waiting:
        process = waiting.pop()
        yield process
        waiting += children.get(process, [])


def cpu_seconds(root: int) -> float:
    """User and system time of the tree, those of its ended processes included."""
    fields = [stat for process in tree(root) if (stat := _stat(process))]
    return sum(int(ticks) for stat in fields for ticks in stat[11:15]) / _TICKS


def peak_mib(process: int) -> float:
    """The most that the process had in memory at a time (VmHWM); 0 where it is gone."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


def _name(process: int) -> str:
    try:
        return Path(f"/proc/{process}/comm").read_text().strip()
    except OSError:
        return ""


@dataclass
class Peaks:
    """MiB: of the JVM, of the largest Python worker under it, and of the Python that started it."""

    jvm: float = 0.0
    worker: float = 0.0
    driver: float = 0.0


class MemoryWatch:
    """Looks at the tree every so often while the block runs; ``peaks`` has the highest of all."""

    def __init__(self, root: int, seconds: float = 0.2) -> None:
        self.peaks = Peaks()
        self._root = root
        self._seconds = seconds
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def _watch(self) -> None:
        while not self._done.wait(self._seconds):
            self._look()

    def _look(self) -> None:
        peaks = self.peaks
        for process in tree(self._root):
            peak = peak_mib(process)
            if process == self._root:
                peaks.driver = max(peaks.driver, peak)
            elif _name(process).startswith("java"):
                peaks.jvm = max(peaks.jvm, peak)
            elif _name(process).startswith("python"):
                peaks.worker = max(peaks.worker, peak)

    def __enter__(self) -> MemoryWatch:
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
