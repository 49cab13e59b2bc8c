"""One distinct state: the core's verdict on it, and what it says of its findings.

``python -m tests.bench.evaluation``: CPU time for each strategy and fault, and of large groups.
"""

from __future__ import annotations

import sys
import time

from jobs.judge.observe.evaluation import to_verdict
from rebalance_core import StrategyRule, StrategyRules
from rebalance_core.findings import evaluate
from rebalance_core.repairs import Situation
from rebalance_core.state import ClientList, Member, RouteBroker, State, TopicRoute
from tests.support.fleet import BROKERS, fleet_settings

STRATEGIES = ("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH", "MACHINE_ROOM", "MACHINE_ROOM_NEARBY")
FAULTS = ("stacked", "view", "ghost")
#: Members, queues of each broker, brokers.
LARGE = ((1_000, 512, 8), (10_000, 4_096, 3))


def state(
    number: int,
    strategy: str = "AVG",
    fault: str = "",
    size: tuple[int, int, int] = (12, 8, 3),
) -> State:
    """A group whose brokers have the same list, other than in addresses, but for the fault."""
    members, queues, broker_count = size
    brokers = [*BROKERS, *(f"room1@broker-{n}" for n in range(3, broker_count))]
    ids = [f"10.0.{number % 250}.{n % 250}@room{n % 2 + 1}-{number + n}" for n in range(members)]
    if fault == "stacked":
        ids[1] = ids[5]
    lists = tuple(
        ClientList(
            broker_name,
            0,
            tuple(
                Member(
                    client_id,
                    f"10.0.0.{n % 250}:{broker_count * n + place}",
                    strategy=strategy,
                    language="JAVA",
                    version=401,
                    is_expired=fault == "ghost" and n == 2,
                    subscription_source="HEARTBEAT",
                )
                for n, client_id in enumerate(ids)
                if not (fault == "view" and n == 2 and place == 2)
            ),
        )
        for place, broker_name in enumerate(brokers)
    )
    of_brokers = (RouteBroker(each, (0,), 6, queues, queues) for each in brokers)
    route = TopicRoute("nameserver:9876", tuple(of_brokers))
    return State(f"G{number}-{strategy}", f"T-{number}", lists, (route,))


def milliseconds(states: list[State], times: int = 5) -> float:
    """For one state, in the best of some passes; ids are parsed and hashed anew in the first."""
    best = float("inf")
    settings = fleet_settings().strategies
    for _ in range(times):
        rules = StrategyRules([StrategyRule(**each.model_dump()) for each in settings])
        start = time.thread_time()
        for each in states:
            to_verdict(evaluate(each, rules), Situation(each, rules))
        best = min(best, (time.thread_time() - start) / len(states) * 1e3)
    return best


def main() -> None:
    """Prints one line per case."""
    line = "{:<46}{:>12.3f} ms\n"
    for strategy in STRATEGIES:
        states = [state(number, strategy) for number in range(60)]
        sys.stdout.write(line.format(f"12 members, 24 queues, {strategy}", milliseconds(states)))
    for fault in FAULTS:
        states = [state(number, fault=fault) for number in range(20)]
        sys.stdout.write(line.format(f"12 members, 24 queues, AVG, {fault}", milliseconds(states)))
    for size in LARGE:
        members, queues, brokers = size
        for fault in ("", *FAULTS):
            case = f"{members:,} members, {queues * brokers:,} queues, AVG, {fault or 'healthy'}"
            took = milliseconds([state(1, fault=fault, size=size)], times=1)
            sys.stdout.write(line.format(case, took))


if __name__ == "__main__":
    main()
