"""What a round of ``collect`` costs, on servers that are made up and run in a process of their own.

    python -m tests.bench.collecting --groups 1000 --brokers 20

The first round asks everything, running infos of all members included; later ones what a quiet
minute asks. Prints for each: seconds, CPU seconds of the collector alone, requests, bytes, lines,
and at the end its peak of memory and the most requests that were under way.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from jobs.collect.collector import Collector
from jobs.collect.dump_folder import DumpFolder
from jobs.declared.instants import SECOND
from tests.support.asking import client_of
from tests.support.remote_cluster import RemoteCluster
from tests.support.replay import Replay, remembered

NAMESRVS = ("ns1:9876", "ns2:9876")
#: Bytes of a running info: what one of 4.9.4 has for a topic and a retry topic on three brokers.
RUNNING_INFO_BYTES = 4_000


def main() -> None:
    """Prints a line for each round."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--groups", type=int, default=1000)
    parser.add_argument("--brokers", type=int, default=20)
    parser.add_argument("--members", type=int, default=4, help="of each group")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        asyncio.run(serve(args.groups, args.brokers, args.members))
        return
    sizes = [f"--groups={args.groups}", f"--brokers={args.brokers}", f"--members={args.members}"]
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.bench.collecting", "--serve", *sizes],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    connect_to = json.loads(server.stdout.readline())
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(collect(args.rounds, connect_to, Path(folder)))
    most, _ = server.communicate("\n")
    print(most.strip())  # noqa: T201 - this is what a bench is for


async def serve(groups: int, brokers: int, members: int) -> None:
    """Serves until a line comes; then prints the most requests under way."""
    cluster = RemoteCluster(NAMESRVS, {f"b{n}": {0: f"b{n}:10911"} for n in range(brokers)})
    cluster.running_info_bytes = RUNNING_INFO_BYTES
    for number in range(groups):
        ids = [f"10.0.{number % 256}.{each}@{each}" for each in range(members)]
        cluster.add_group(f"GROUP_{number:04}", ids, [f"TOPIC_{number:04}"])
    answers = {address: remembered(answer) for address, answer in cluster.answers().items()}
    async with Replay(answers) as replay:
        print(json.dumps(replay.connect_to), flush=True)  # noqa: T201
        await asyncio.to_thread(sys.stdin.readline)
        print(f"most under way: {replay.most_at_one} at one, {replay.most_at_all} in all")  # noqa: T201


async def collect(rounds: int, connect_to: dict[str, str], path: Path) -> None:
    """Rounds of a minute each by the collector's clock, and a line about each."""
    folder, late = DumpFolder(path), 0
    options = {"namesrv": NAMESRVS, "timeout_seconds": 30, "connect_to": connect_to}
    with folder.locked():
        async with client_of(lambda: time.time_ns() // 1000 + late, **options) as client:
            collector = Collector(client, folder)
            for number in range(rounds):
                before = resource.getrusage(resource.RUSAGE_SELF)
                done = await collector.collect()
                figures = done.figures
                used = resource.getrusage(resource.RUSAGE_SELF)
                cpu = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
                print(  # noqa: T201
                    f"round {number + 1}: {done.seconds:.1f} s, {cpu:.1f} CPU s, "
                    f"{figures.requests:,} requests, "
                    f"{figures.received_bytes / 1e6:.1f} MB received, "
                    f"{figures.lines:,} lines, {done.path.stat().st_size / 1e6:.2f} MB written, "
                    f"peak {used.ru_maxrss / 1024:.0f} MiB"
                )
                late += 60 * SECOND


if __name__ == "__main__":
    main()
