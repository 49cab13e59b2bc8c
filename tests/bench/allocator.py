"""The allocator alone: all clients of a group at once, against sorting the lists once.

``make bench``. Medians in microseconds; ratios are what carries over to another machine.
"""

from __future__ import annotations

import random
import statistics
import sys
import time
from collections.abc import Callable

from rebalance_core import MessageQueue, make_strategy, sort_client_ids, sort_message_queues

SIZES = ((8, 4), (64, 16), (256, 64), (1024, 256), (4096, 1024))
STRATEGIES = ("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH")


def median_microseconds(call: Callable[[], object], seconds: float = 0.3) -> float:
    """The median of as many calls as fit into the time, at least three."""
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e6


def main() -> None:
    """Prints one line per strategy and size."""
    shuffle = random.Random(7).shuffle  # noqa: S311 - a benchmark's input
    line = "{:<16}{:>8}{:>8}{:>12}{:>14}{:>12}{:>8}{:>16}\n"
    sys.stdout.write(
        line.format(
            "strategy", "queues", "clients", "sort", "allocate_all", "claims", "ratio", "queues/s"
        )
    )
    for queue_count, client_count in SIZES:
        queues = [MessageQueue("T", f"broker-{n % 8}", n // 8) for n in range(queue_count)]
        client_ids = [f"10.0.{n // 250}.{n % 250}@{n}#{n * 7919}" for n in range(client_count)]
        shuffle(queues)
        shuffle(client_ids)
        ordered, ordered_ids = sort_message_queues(queues), sort_client_ids(client_ids)
        sort = median_microseconds(
            lambda q=queues, c=client_ids: (sort_message_queues(q), sort_client_ids(c))
        )
        for name in STRATEGIES:
            strategy = make_strategy(name)
            every = median_microseconds(
                lambda s=strategy, q=queues, c=client_ids: s.allocate_all("G", q, c)
            )
            claims = median_microseconds(
                lambda s=strategy, q=ordered, c=ordered_ids: s.claims(q, c)
            )
            sys.stdout.write(
                line.format(
                    name,
                    queue_count,
                    client_count,
                    f"{sort:.1f}",
                    f"{every:.1f}",
                    f"{claims:.1f}",
                    f"{every / sort:.2f}",
                    f"{queue_count / claims * 1e6:,.0f}",
                )
            )


if __name__ == "__main__":
    main()
