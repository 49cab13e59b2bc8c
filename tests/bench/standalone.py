"""The same audit on a standalone cluster of two workers on loopback, and here: the same rows?

    python -m tests.bench.standalone --size M

Starts Spark's own master and two workers with one core each, sends both audits through
spark-submit with the packaged zip, and compares all published tables, row by row. Nothing of the
checkout is on the executors' path. Exits with 1 where a table differs.
"""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

from tests.bench.fleets import SIZES, ensure, named
from tests.support.reports import PublishedReports

REPOSITORY = Path(__file__).resolve().parents[2]
_SPARK = Path(pyspark.__file__).parent
_WORKERS = 2
_DEADLINE_SECONDS = 60


def environment() -> dict[str, str]:
    """That of a cluster's machine: the interpreter with the packages, nothing of the checkout."""
    own = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return own | {"PYSPARK_PYTHON": sys.executable, "SPARK_HOME": str(_SPARK)}


@contextmanager
def process(log: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """One of Spark's daemons in the foreground, stopped at the end."""
    command = [str(_SPARK / "bin" / "spark-class"), *arguments]
    with log.open("wb") as output:
        running = subprocess.Popen(
            command, env=environment(), stdout=output, stderr=output, cwd=log.parent
        )
        try:
            yield running
        finally:
            running.terminate()
            running.wait(30)


def free_port() -> int:
    """A port that nobody listens on at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def await_text(log: Path, text: str, times: int) -> None:
    """Waits until a daemon has written the text so often; TimeoutError where it does not."""
    deadline = time.monotonic() + _DEADLINE_SECONDS
    while time.monotonic() < deadline:
        if log.exists() and log.read_text(errors="replace").count(text) >= times:
            return
        time.sleep(0.5)
    raise TimeoutError(f"expected {times} x {text!r} in {log} within {_DEADLINE_SECONDS} s")


@contextmanager
def cluster(folder: Path) -> Iterator[str]:
    """A master and its workers, each with one core; gives the master's URL."""
    port = free_port()
    deploy = "org.apache.spark.deploy"
    at = ("--host", "127.0.0.1", "--port")
    master_log = folder / "master.log"
    with ExitStack() as stack:
        master = (f"{deploy}.master.Master", *at, str(port), "--webui-port", str(free_port()))
        stack.enter_context(process(master_log, *master))
        url = f"spark://127.0.0.1:{port}"
        await_text(master_log, "Starting Spark master at", 1)
        for number in range(_WORKERS):
            place = folder / f"worker-{number}"
            worker = (f"{deploy}.worker.Worker", "--host", "127.0.0.1", "--cores", "1")
            worker += ("--memory", "2g", "--work-dir", str(place))
            worker += ("--webui-port", str(free_port()), url)
            stack.enter_context(process(folder / f"worker-{number}.log", *worker))
        await_text(master_log, "Registering worker", _WORKERS)
        yield url


def submit(master: str, package: Path, snapshots: Path, reports: Path, settings: Path) -> float:
    """One audit through spark-submit, from another directory; gives its seconds."""
    memory = "spark.executor.memory=1500m"
    command = [str(_SPARK / "bin" / "spark-submit"), "--master", master, "--conf", memory]
    command += ["--driver-memory", "2g", "--conf", "spark.driver.host=127.0.0.1"]
    command += ["--py-files", str(package), str(REPOSITORY / "jobs" / "audit.py")]
    command += ["--snapshots", str(snapshots), "--reports", str(reports)]
    command += ["--settings", str(settings), "--quiet"]
    started = time.monotonic()
    subprocess.run(command, env=environment(), cwd=reports.parent, check=True)
    return time.monotonic() - started


def main() -> None:
    """Audits twice and compares."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", choices=SIZES, default="M")
    parser.add_argument("--folder", type=Path, default=Path("build/bench"))
    args = parser.parse_args()
    tables = ensure(args.folder, f"full-{args.size}", named("full", args.size))
    folder = (args.folder / f"standalone-{args.size}").resolve()
    folder.mkdir(parents=True, exist_ok=True)
    make = ["make", "-s", "-C", str(REPOSITORY), "package", f"PYTHON={sys.executable}"]
    subprocess.run([*make, f"DIST={folder}"], check=True)
    package, settings = folder / "rebalance-audit.zip", folder / "settings.toml"
    settings.write_text(ROOMS)
    snapshots = tables.snapshots.resolve()
    took = {"local[2]": submit("local[2]", package, snapshots, folder / "here", settings)}
    with cluster(folder) as url:
        took["standalone, 2 workers"] = submit(url, package, snapshots, folder / "there", settings)
    here, there = (PublishedReports(folder / name) for name in ("here", "there"))
    differing = []
    for table in here.published["tables"]:
        rows, others = here.comparable(table), there.comparable(table)
        if rows != others:
            differing.append(table)
        sys.stdout.write(f"{table}: {len(rows):,} rows, {len(others):,} on the cluster\n")
    for where, seconds in took.items():
        sys.stdout.write(f"{where}: {seconds:.1f} s, start of the session included\n")
    sys.stdout.write(f"tables that differ: {', '.join(differing) or 'none'}\n")
    sys.exit(1 if differing else 0)


#: The rooms of the generated fleet (``tests.support.fleet.fleet_settings``), as a user writes them.
ROOMS = """\
[[strategies]]
groups = ".*-MACHINE_ROOM"
name = "MACHINE_ROOM"
params = { consumeridcs = ["room1", "room2"] }

[[strategies]]
groups = ".*-MACHINE_ROOM_NEARBY"
name = "MACHINE_ROOM_NEARBY-AVG"

[strategies.params]
broker_room_patterns = [{ pattern = "(?P<room>room[0-9])@.*" }]
client_room_patterns = [{ pattern = ".*@(?P<room>room[0-9])-.*" }]
"""


if __name__ == "__main__":
    main()
