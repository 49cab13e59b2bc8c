"""The states of the bench have the faults that it names, and each bench of `make bench` starts."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

from jobs.judge.observe.evaluation import to_verdict
from rebalance_core import StrategyRule, StrategyRules
from rebalance_core.findings import evaluate
from rebalance_core.repairs import Situation
from tests.bench.evaluation import state
from tests.support.fleet import fleet_settings


@pytest.mark.parametrize(
    ("fault", "cause"),
    [
        ("", None),
        ("stacked", "DUPLICATE_CLIENT_ID"),
        ("view", "BROKER_VIEW_DIVERGENCE"),
        ("ghost", "GHOST_MEMBER"),
    ],
)
def test_a_state_has_the_fault_that_is_measured(fault: str, cause: str | None) -> None:
    rules = StrategyRules([StrategyRule(**e.model_dump()) for e in fleet_settings().strategies])
    measured = state(1, fault=fault)
    found = to_verdict(evaluate(measured, rules), Situation(measured, rules)).faults
    assert {each.fault for each in found} == ({cause} if cause else set())


def test_all_that_make_bench_starts_is_there() -> None:
    names = re.findall(
        r"-m (tests\.bench\.\w+)", (Path(__file__).parents[2] / "Makefile").read_text()
    )
    assert len(names) >= 8
    for name in names:
        assert callable(importlib.import_module(name).main)
