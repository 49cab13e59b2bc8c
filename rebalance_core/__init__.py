"""The allocator: which client takes which queue, computed as every RocketMQ client computes it.

Standard library and NumPy only; no input or output, no clock. One module each:

    State -> possible_views -> find_processes -> compute_claims -> count_owners -> evaluate
          -> find_causes (over repairs.py) -> find_faults (words: descriptions.py; moves.py)
"""

from rebalance_core.causes import Causes, find_causes
from rebalance_core.changes import (
    Change,
    add_broker,
    apply_change,
    join,
    leave,
    mend,
    remove_broker,
    resize,
    separate_ids,
    subscribe_all,
    unify_list,
    use_strategy,
)
from rebalance_core.client_id import ClientId, ClientIdFormat, parse_client_id
from rebalance_core.descriptions import normalise_expression
from rebalance_core.errors import (
    AllocationError,
    ChangeError,
    InvalidParameterError,
    MissingParameterError,
    UnknownStrategyError,
    near_names,
)
from rebalance_core.faults import Fault, find_faults
from rebalance_core.findings import Evaluation, Finding, StackedEffect, evaluate
from rebalance_core.message_queue import (
    MessageQueue,
    java_string_key,
    sort_client_ids,
    sort_message_queues,
)
from rebalance_core.prediction import WhatIf, moves_by_client, what_if, what_if_of_group
from rebalance_core.repairs import REPAIRS, Situation, apply_repairs
from rebalance_core.state import ClientList, Member, RouteBroker, State, TopicRoute
from rebalance_core.strategies.base import AllocationStrategy
from rebalance_core.strategies.factory import make_strategy
from rebalance_core.strategy_rules import StrategyRule, StrategyRules

__all__ = [
    "REPAIRS",
    "AllocationError",
    "AllocationStrategy",
    "Causes",
    "Change",
    "ChangeError",
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
    "WhatIf",
    "add_broker",
    "apply_change",
    "apply_repairs",
    "evaluate",
    "find_causes",
    "find_faults",
    "java_string_key",
    "join",
    "leave",
    "make_strategy",
    "mend",
    "moves_by_client",
    "near_names",
    "normalise_expression",
    "parse_client_id",
    "remove_broker",
    "resize",
    "separate_ids",
    "sort_client_ids",
    "sort_message_queues",
    "subscribe_all",
    "unify_list",
    "use_strategy",
    "what_if",
    "what_if_of_group",
]
