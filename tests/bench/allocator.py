"""The allocator alone: all clients of a group at once, against sorting the lists once and Java.

``python -m tests.bench.allocator``, with ``--json FILE`` to write the numbers too. Medians in
microseconds of one core; ratios are what carries over to another machine.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

from rebalance_core import MessageQueue, make_strategy, sort_client_ids, sort_message_queues

SIZES = ((8, 4), (64, 16), (256, 64), (1024, 256), (4096, 1024))
STRATEGIES = ("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH")

#: Microseconds for all clients of the group, each calling its strategy as a real client does.
#: Java's own strategies, OpenJDK, one core, CPU time, measured on the same kind of machine.
JAVA = {
    "AVG": (0.80, 42, 1_040, 17_500, 354_000),
    "CONSISTENT_HASH": (29, 650, 22_000, 893_000, 60_000_000),
}
#: The same where the lists are sorted once, outside of the strategy; from the same source.
JAVA_SORTED_ONCE = {"AVG": (0.06, 0.41, 4.3, 61, 1_280)}

COLUMNS = {
    "strategy": "strategy",
    "queues": "queues",
    "clients": "clients",
    "sort": "sort",
    "allocate_all": "allocate_all",
    "claims": "claims",
    "all/sort": "allocate_all_by_sort",
    "queues/s": "queues_per_second",
    "java": "java",
    "java/all": "java_by_allocate_all",
    "java/claims": "java_by_claims",
    "java sorted": "java_sorted_once",
    "sorted/claims": "java_sorted_once_by_claims",
}


def median_microseconds(call: Callable[[], object], seconds: float = 0.3) -> float:
    """The median CPU time of as many calls as fit into the time, at least three."""
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < end:
        start = time.thread_time()
        call()
        times.append(time.thread_time() - start)
    return statistics.median(times) * 1e6


def measure(size: int) -> list[dict[str, str | float | None]]:
    """One row per strategy, for one of the sizes."""
    queue_count, client_count = SIZES[size]
    shuffle = random.Random(7).shuffle  # noqa: S311 - a benchmark's input
    queues = [MessageQueue("T", f"broker-{n % 8}", n // 8) for n in range(queue_count)]
    client_ids = [f"10.0.{n // 250}.{n % 250}@{n}#{n * 7919}" for n in range(client_count)]
    shuffle(queues)
    shuffle(client_ids)
    ordered, ordered_ids = sort_message_queues(queues), sort_client_ids(client_ids)
    sort = median_microseconds(lambda: (sort_message_queues(queues), sort_client_ids(client_ids)))
    rows: list[dict[str, str | float | None]] = []
    for name in STRATEGIES:
        strategy = make_strategy(name)
        every = median_microseconds(lambda s=strategy: s.allocate_all("G", queues, client_ids))
        claims = median_microseconds(lambda s=strategy: s.claims(ordered, ordered_ids))
        java = JAVA[name][size] if name in JAVA else None
        sorted_once = JAVA_SORTED_ONCE[name][size] if name in JAVA_SORTED_ONCE else None
        rows.append(
            {
                "strategy": name,
                "queues": queue_count,
                "clients": client_count,
                "sort": sort,
                "allocate_all": every,
                "claims": claims,
                "allocate_all_by_sort": every / sort,
                "queues_per_second": queue_count / claims * 1e6,
                "java": java,
                "java_by_allocate_all": java and java / every,
                "java_by_claims": java and java / claims,
                "java_sorted_once": sorted_once,
                "java_sorted_once_by_claims": sorted_once and sorted_once / claims,
            }
        )
    return rows


def _shown(value: str | float | None) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.0f}" if value >= 1_000 else f"{value:.2f}"
    return f"{value:,}" if isinstance(value, int) else value


def main() -> None:
    """Prints one line per size and strategy."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers to this file")
    to_file: Path | None = parser.parse_args().json
    line = "{:<16}{:>8}{:>9}" + "{:>15}" * (len(COLUMNS) - 3) + "\n"
    sys.stdout.write(line.format(*COLUMNS))
    rows = []
    for size in range(len(SIZES)):
        for row in measure(size):
            sys.stdout.write(line.format(*(_shown(row[key]) for key in COLUMNS.values())))
            rows.append(row)
    if to_file is not None:
        to_file.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
