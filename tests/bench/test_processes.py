"""The watch counts what the kernel counts for nobody: processes whose parents ignore their end."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from tests.bench.processes import Peaks, Watch

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


@pytest.mark.long
def test_a_process_that_its_parent_waits_for_counts_in_full() -> None:
    assert _cpu_seconds_of_ended_child("signal.SIG_DFL") >= 0.5


@pytest.mark.long
def test_a_process_whose_parent_ignores_its_end_counts_as_last_seen() -> None:
    # Only that it counts: how much of it a busy machine lets the watch see is not certain.
    assert _cpu_seconds_of_ended_child("signal.SIG_IGN") > 0.1


#: Two children, of which one is called as told; each has so many MiB at the same time.
_FAMILY = """
import os, sys
for name in ("python3", sys.argv[1]):
    ready, done = os.pipe(), os.pipe()
    if os.fork() == 0:
        with open("/proc/self/comm", "w") as comm:
            comm.write(name)
        held = b"x" * (int(sys.argv[2]) << 20)
        os.write(ready[1], b".")
        os.close(done[1])
        os.read(done[0], 1)
        os._exit(0)
    os.read(ready[0], 1)
print("ready", flush=True)
sys.stdin.read()
"""
_MIB = 60


def _peaks_of_family(second: str) -> Peaks:
    command = [sys.executable, "-c", _FAMILY, second, str(_MIB)]
    with (
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent,
        Watch(parent.pid, seconds=0.02) as watch,
    ):
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"ready\n"
        watch.cpu_seconds()
        parent.communicate()
    return watch.peaks


def test_all_python_is_what_its_processes_have_at_the_same_time() -> None:
    peaks = _peaks_of_family("python3.11")
    assert peaks.python > 2 * _MIB > peaks.largest > _MIB
    assert peaks.jvm == 0


def test_the_jvm_is_apart_from_all_python() -> None:
    peaks = _peaks_of_family("java")
    assert 2 * _MIB > peaks.jvm > _MIB
    assert 2 * _MIB > peaks.python >= peaks.largest > _MIB


def test_a_peak_counts_that_was_over_before_the_watch_looked() -> None:
    # Memory of one process goes up and down between two looks.
    code = "import sys; b'x' * (60 << 20); print('over', flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"over\n"
        with Watch(process.pid) as watch:
            watch.cpu_seconds()
        process.communicate()
    assert watch.peaks.python > _MIB


def test_the_looks_of_a_watch_do_not_count() -> None:
    with Watch(os.getpid(), seconds=60) as watch:
        before, began = watch.cpu_seconds(), time.process_time()
        while time.process_time() < began + 0.3:
            counted = watch.cpu_seconds() - before
    assert counted < 0.15
