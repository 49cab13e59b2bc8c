"""The pandas UDF over the core: a frame of situations in, a frame of evaluations out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd

from jobs.judge.evaluation import EVALUATION, STATE_COLUMNS, evaluate_state, to_state
from rebalance_core import StrategyRule, StrategyRules


def evaluate_rows(
    rules: list[dict[str, Any]], default_strategy: str
) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """The function of the UDF: one row of ``STATE_COLUMNS`` in, one of ``EVALUATION`` out.

    It holds plain values alone, for it travels to the workers.
    """

    def evaluate_batch(states: pd.DataFrame) -> pd.DataFrame:
        strategy_rules = StrategyRules([StrategyRule(**rule) for rule in rules], default_strategy)
        rows = [
            evaluate_state(to_state(row), strategy_rules)
            for row in states[list(STATE_COLUMNS)].to_dict("records")
        ]
        return pd.DataFrame(rows, columns=[field.name for field in EVALUATION])

    return evaluate_batch
