"""The watch counts what the kernel counts for nobody: processes whose parents ignore their end."""

from __future__ import annotations

import subprocess
import sys

from tests.bench.processes import Watch

#: Uses CPU for about half a second, in a child that has ended before the parent does.
_PARENT = """
import os, signal, sys, time
signal.signal(signal.SIGCHLD, {handler})
if os.fork() == 0:
    end = time.process_time() + 0.5
    while time.process_time() < end:
        pass
    os._exit(0)
try:
    os.wait()
except ChildProcessError:
    pass
print("ended", flush=True)
sys.stdin.read()
"""


def _cpu_seconds_of_ended_child(handler: str) -> float:
    command = [sys.executable, "-c", _PARENT.format(handler=handler)]
    with (
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent,
        Watch(parent.pid, seconds=0.02) as watch,
    ):
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"ended\n"
        used = watch.cpu_seconds()
        parent.communicate()
    return used


def test_a_process_that_its_parent_waits_for_counts_in_full() -> None:
    assert _cpu_seconds_of_ended_child("signal.SIG_DFL") >= 0.5


def test_a_process_whose_parent_ignores_its_end_counts_as_last_seen() -> None:
    # Only that it counts: how much of it a busy machine lets the watch see is not certain.
    assert _cpu_seconds_of_ended_child("signal.SIG_IGN") > 0.1
