"""The allocator: which client takes which queue, computed as every RocketMQ client computes it.

Standard library and NumPy only; no input or output, no clock.
"""

from __future__ import annotations

from rebalance_core.causes import Causes, find_causes
from rebalance_core.client_id import ClientId, ClientIdFormat, parse_client_id
from rebalance_core.errors import (
    AllocationError,
    InvalidParameterError,
    MissingParameterError,
    UnknownStrategyError,
)
from rebalance_core.faults import Fault, find_faults, normalise_expression
from rebalance_core.findings import Evaluation, Finding, StackedEffect, evaluate
from rebalance_core.message_queue import (
    MessageQueue,
    java_string_key,
    sort_client_ids,
    sort_message_queues,
)
from rebalance_core.repairs import REPAIRS, Situation, apply_repairs
from rebalance_core.state import ClientList, Member, RouteBroker, State, TopicRoute
from rebalance_core.strategies import AllocationStrategy, make_strategy
from rebalance_core.strategy_rules import StrategyRule, StrategyRules

__all__ = [
    "REPAIRS",
    "AllocationError",
    "AllocationStrategy",
    "Causes",
    "ClientId",
    "ClientIdFormat",
    "ClientList",
    "Evaluation",
    "Fault",
    "Finding",
    "InvalidParameterError",
    "Member",
    "MessageQueue",
    "MissingParameterError",
    "RouteBroker",
    "Situation",
    "StackedEffect",
    "State",
    "StrategyRule",
    "StrategyRules",
    "TopicRoute",
    "UnknownStrategyError",
    "apply_repairs",
    "evaluate",
    "find_causes",
    "find_faults",
    "java_string_key",
    "make_strategy",
    "normalise_expression",
    "parse_client_id",
    "sort_client_ids",
    "sort_message_queues",
]
