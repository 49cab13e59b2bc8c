"""One distinct state, from the row that a worker is given to the row that it answers with.

``python -m tests.bench.evaluation``: CPU time for each strategy and fault, and of large groups.
"""

from __future__ import annotations

import sys
import time
from typing import Any

from jobs.judge.evaluation import evaluate_state, to_state
from rebalance_core import StrategyRule, StrategyRules
from tests.support.fleet import BROKERS, fleet_settings
from tests.support.state_rows import in_columns

STRATEGIES = ("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH", "MACHINE_ROOM", "MACHINE_ROOM_NEARBY")
FAULTS = ("stacked", "view", "ghost")
#: Members, queues of each broker, brokers.
LARGE = ((1_000, 512, 8), (10_000, 4_096, 3))


def state_row(
    number: int,
    strategy: str = "AVG",
    fault: str = "",
    size: tuple[int, int, int] = (12, 8, 3),
) -> dict[str, Any]:
    """A group whose brokers have the same list, other than in addresses, but for the fault."""
    members, queues, broker_count = size
    brokers = [*BROKERS, *(f"room1@broker-{n}" for n in range(3, broker_count))]
    topic = f"T-{number}"
    ids = [f"10.0.{number % 250}.{n % 250}@room{n % 2 + 1}-{number + n}" for n in range(members)]
    if fault == "stacked":
        ids[1] = ids[5]
    listed = [
        {
            "broker_name": broker_name,
            "broker_id": 0,
            "client_id": client_id,
            "client_addr": f"10.0.0.{n % 250}:{broker_count * n + broker}",
            "subscriptions": [
                {"topic": each, "expression_type": "TAG", "expression": "*"}
                for each in (topic, "%RETRY%G")
            ],
            "is_expired": fault == "ghost" and n == 2,
            "chooses_queues": False,
            "subscription_source": "HEARTBEAT",
            "message_model": "CLUSTERING",
            "strategy": strategy,
            "client_rebalance": None,
            "language": "JAVA",
            "version": 401,
        }
        for n, client_id in enumerate(ids)
        for broker, broker_name in enumerate(brokers)
        if not (fault == "view" and n == 2 and broker == 2)
    ]
    routes = [
        {
            "namesrv_addr": "nameserver:9876",
            "broker_name": broker_name,
            "broker_ids": [0],
            "perm": 6,
            "read_queue_nums": queues,
            "write_queue_nums": queues,
            "zone_name": None,
        }
        for broker_name in brokers
    ]
    return in_columns(
        {
            "consumer_group": f"G{number}-{strategy}",
            "topic": topic,
            "members": listed,
            "offline": None,
            "routes": routes,
        }
    )


def milliseconds(rows: list[dict[str, Any]], times: int = 5) -> float:
    """For one row, in the best of some passes; ids are parsed and hashed anew in the first."""
    best = float("inf")
    settings = fleet_settings().strategies
    for _ in range(times):
        rules = StrategyRules([StrategyRule(**each.model_dump()) for each in settings])
        start = time.thread_time()
        for row in rows:
            evaluate_state(to_state(row), rules)
        best = min(best, (time.thread_time() - start) / len(rows) * 1e3)
    return best


def main() -> None:
    """Prints one line per case."""
    line = "{:<46}{:>12.3f} ms\n"
    for strategy in STRATEGIES:
        rows = [state_row(number, strategy) for number in range(60)]
        sys.stdout.write(line.format(f"12 members, 24 queues, {strategy}", milliseconds(rows)))
    for fault in FAULTS:
        rows = [state_row(number, fault=fault) for number in range(20)]
        sys.stdout.write(line.format(f"12 members, 24 queues, AVG, {fault}", milliseconds(rows)))
    for size in LARGE:
        members, queues, brokers = size
        for fault in ("", *FAULTS):
            case = f"{members:,} members, {queues * brokers:,} queues, AVG, {fault or 'healthy'}"
            took = milliseconds([state_row(1, fault=fault, size=size)], times=1)
            sys.stdout.write(line.format(case, took))


if __name__ == "__main__":
    main()
