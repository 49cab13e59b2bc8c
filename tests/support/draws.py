"""A random state, whose probabilities are those of all its draws counted one by one."""

from __future__ import annotations

import math
from itertools import product
from random import Random

import numpy as np
import pytest

from rebalance_core import State, StrategyRules, evaluate
from rebalance_core.processes import find_processes
from rebalance_core.views import possible_views
from tests.support.snapshots import member, one_list_each

_BROKERS = ("broker-a", "broker-b", "broker-c")


def check_a_random_state(random: Random) -> bool:
    """Makes a state and compares what is found with every draw; whether anything is found."""
    of_state, rules = _random_state(random)
    evaluation = evaluate(of_state, rules)
    if evaluation.coverage == "NOT_SUBSCRIBED":
        assert evaluation.findings == ()
        return False
    found = {(f.kind, f.queue.queue_id): f.probability for f in evaluation.findings}
    assert found == pytest.approx(_draw_all(of_state, rules), rel=0, abs=1e-12), of_state
    certain = {f.certainty for f in evaluation.findings if f.probability > 1 - 1e-12}
    assert certain <= {"CERTAIN"}
    return bool(found)


def _random_state(random: Random) -> tuple[State, StrategyRules]:
    lists = {
        name: [
            member(client_id=random.choice("abcd"), subscribed=random.random() < 0.8)
            for _ in range(random.randint(1, 4))
        ]
        for name in _BROKERS[: random.randint(1, 3)]
    }
    of_state = one_list_each(lists, queues=random.randint(1, 6))
    default = random.choice(["AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH"])
    return of_state, StrategyRules(default=default)


def _draw_all(of_state: State, rules: StrategyRules) -> dict[tuple[str, int], float]:
    """Every process draws every view: the probabilities of no owner and of several, by queue."""
    views = possible_views(of_state).views
    single = [process for process in find_processes(of_state, rules) for _ in range(process.count)]
    count = max(q.queue_id for view in views for q in view.queues) + 1
    takes = np.zeros((len(views), len(single), count), dtype=int)
    for number, view in enumerate(views):
        for row, process in enumerate(single):
            if process.subscribed:
                own = process.strategy.strategy.allocate(
                    "G", process.client_id, list(view.queues), list(view.client_ids)
                )
                takes[number, row, [each.queue_id for each in own]] = 1
    draws = np.array(list(product(range(len(views)), repeat=len(single))))
    likely = np.array([view.weight for view in views])[draws].prod(axis=1)
    owners = takes[draws, np.arange(len(single))].sum(axis=1)
    return {
        (kind, queue_id): math.fsum(likely[faulty[:, queue_id]])
        for kind, faulty in (("ORPHANED", owners == 0), ("DUPLICATE", owners > 1))
        for queue_id in range(count)
        if faulty[:, queue_id].any()
    }
