"""The allocator: which client takes which queue, computed as every RocketMQ client computes it.

Standard library and NumPy only; no input or output, no clock. One module each:

    State -> possible_views -> find_processes -> compute_claims -> count_owners -> evaluate
          -> find_causes (over repairs.py) -> find_faults (words: descriptions.py)

A module imports those before it in this order, and none behind it:

    grouping, texts < english < errors, message_queue, client_id < strategy < strategies
    < strategy_factory < strategy_rules < state < views < processes < claims < findings < division
    < repairs < causes < descriptions < faults < changes < prediction
"""

from .causes import Causes as Causes
from .causes import find_causes as find_causes
from .changes import Change as Change
from .changes import add_broker as add_broker
from .changes import apply_change as apply_change
from .changes import join as join
from .changes import leave as leave
from .changes import mend as mend
from .changes import remove_broker as remove_broker
from .changes import resize as resize
from .changes import separate_ids as separate_ids
from .changes import subscribe_all as subscribe_all
from .changes import unify_list as unify_list
from .changes import use_strategy as use_strategy
from .client_id import ClientId as ClientId
from .client_id import ClientIdFormat as ClientIdFormat
from .client_id import parse_client_id as parse_client_id
from .descriptions import normalise_expression as normalise_expression
from .division import Division as Division
from .division import divide as divide
from .errors import AllocationError as AllocationError
from .errors import ChangeError as ChangeError
from .errors import InvalidParameterError as InvalidParameterError
from .errors import MissingParameterError as MissingParameterError
from .errors import UnknownStrategyError as UnknownStrategyError
from .errors import near_names as near_names
from .faults import Fault as Fault
from .faults import find_faults as find_faults
from .findings import Evaluation as Evaluation
from .findings import Finding as Finding
from .findings import evaluate as evaluate
from .message_queue import MessageQueue as MessageQueue
from .message_queue import java_string_key as java_string_key
from .message_queue import sort_client_ids as sort_client_ids
from .message_queue import sort_message_queues as sort_message_queues
from .prediction import WhatIf as WhatIf
from .prediction import moves_by_client as moves_by_client
from .prediction import what_if as what_if
from .prediction import what_if_of_group as what_if_of_group
from .repairs import REPAIRS as REPAIRS
from .repairs import Situation as Situation
from .repairs import apply_repairs as apply_repairs
from .state import ClientList as ClientList
from .state import Member as Member
from .state import RouteBroker as RouteBroker
from .state import State as State
from .state import TopicRoute as TopicRoute
from .strategy import AllocationStrategy as AllocationStrategy
from .strategy_factory import make_strategy as make_strategy
from .strategy_rules import StrategyRule as StrategyRule
from .strategy_rules import StrategyRules as StrategyRules
