"""Spark's own standalone cluster on loopback, from the pip-installed Spark, with conf/ in force."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

REPOSITORY = Path(__file__).resolve().parents[2]
_SPARK = Path(pyspark.__file__).parent


def environment() -> dict[str, str]:
    """That of a cluster's machine: the interpreter with the packages, nothing of the checkout."""
    own = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return own | {
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_HOME": str(_SPARK),
        "SPARK_CONF_DIR": str(REPOSITORY / "conf"),
        # A daemon needs little; its default is 1 GiB.
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_LOCAL_IP": "127.0.0.1",
    }


#: Starts a command for which one folder is an empty one of its own: a machine without a share.
APART = ("unshare", "--mount", "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"')


@contextmanager
def _daemon(
    log: Path, *arguments: str, apart: Path | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """One of Spark's daemons in the foreground, stopped at the end, by force if it must be."""
    command = [str(_SPARK / "bin" / "spark-class"), *arguments]
    if apart is not None:
        command = [*APART, str(apart), *command]
    with log.open("wb") as output:
        running = subprocess.Popen(
            command, env=environment(), stdout=output, stderr=output, cwd=log.parent
        )
        try:
            yield running
        finally:
            running.terminate()
            try:
                running.wait(15)
            except subprocess.TimeoutExpired:
                running.kill()
                running.wait()


def _free_port() -> int:
    """A port that nobody listens on at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _await_text(
    log: Path, text: str, times: int, daemons: Sequence[subprocess.Popen[bytes]]
) -> None:
    """Waits until a log has the text so often; RuntimeError where a daemon has ended before."""
    while log.read_text(errors="replace").count(text) < times:
        if any(daemon.poll() is not None for daemon in daemons):
            raise RuntimeError(f"expected {times} x {text!r} in {log}; a daemon has ended")
        time.sleep(0.2)


@contextmanager
def cluster(
    folder: Path, workers: int, memory: str = "2g", apart: Path | None = None
) -> Iterator[str]:
    """A master and its workers, each with one core and so much memory; gives the master's URL.

    ``apart``: a folder that each worker has for itself, and empty.

    Their logs lie in the folder: ``master.log``, ``worker-0.log``, ...
    """
    port = _free_port()
    deploy = "org.apache.spark.deploy"
    at = ("--host", "127.0.0.1", "--port")
    master_log = folder / "master.log"
    with ExitStack() as stack:
        master = (f"{deploy}.master.Master", *at, str(port), "--webui-port", str(_free_port()))
        daemons = [stack.enter_context(_daemon(master_log, *master))]
        url = f"spark://127.0.0.1:{port}"
        _await_text(master_log, "Starting Spark master at", 1, daemons)
        for number in range(workers):
            place = folder / f"worker-{number}"
            worker = (f"{deploy}.worker.Worker", "--host", "127.0.0.1", "--cores", "1")
            worker += ("--memory", memory, "--work-dir", str(place))
            worker += ("--webui-port", str(_free_port()), url)
            log = folder / f"worker-{number}.log"
            daemons.append(stack.enter_context(_daemon(log, *worker, apart=apart)))
        _await_text(master_log, "Registering worker", workers, daemons)
        yield url


def submit(
    master: str,
    package: Path,
    entry: Path,
    arguments: Sequence[str],
    cwd: Path,
    *,
    executor_memory: str = "1500m",
    java_options: str = "",
) -> subprocess.CompletedProcess[str]:
    """One entry through spark-submit, from another directory; its output is in the error."""
    command = [str(_SPARK / "bin" / "spark-submit"), "--master", master]
    command += ["--executor-memory", executor_memory, "--driver-memory", "2g"]
    command += ["--conf", "spark.driver.host=127.0.0.1", "--conf", "spark.ui.enabled=false"]
    command += ["--driver-java-options", java_options]
    command += ["--conf", f"spark.executor.extraJavaOptions={java_options}"]
    command += ["--py-files", str(package), str(entry), *arguments]
    done = subprocess.run(
        command, env=environment(), cwd=cwd, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise RuntimeError(f"{entry.name}: {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done
