"""Strategies made from a name and parameters, as settings hold them."""

import json
from collections.abc import Mapping
from functools import lru_cache

from ..errors import (
    AllocationError,
    InvalidParameterError,
    MissingParameterError,
    UnknownStrategyError,
)
from ..texts import Text
from .averagely import Averagely, AveragelyByCircle
from .base import AllocationStrategy
from .by_config import ByConfig
from .by_machine_room import ByMachineRoom, GoMachineRoom, MachineRoomUnfiltered
from .consistent_hash import ConsistentHash, GoConsistentHash
from .machine_room_nearby import NEARBY, MachineRoomNearby
from .parameters import Params, wrong
from .sdk import Sdk

#: The strategies of Java's client by name, but for MACHINE_ROOM_NEARBY, which wraps one of them.
STRATEGIES: Mapping[str, type[AllocationStrategy]] = {
    strategy.name: strategy
    for strategy in (Averagely, AveragelyByCircle, ByConfig, ConsistentHash, ByMachineRoom)
}
#: Strategies that SDKs compute in another way under the same name.
_VARIANTS: Mapping[tuple[Sdk, str], type[AllocationStrategy]] = {
    (Sdk.GO, ConsistentHash.name): GoConsistentHash,
    (Sdk.GO, ByMachineRoom.name): GoMachineRoom,
    (Sdk.JAVA_BEFORE_4_8_0, ByMachineRoom.name): MachineRoomUnfiltered,
}
#: The names by class of org.apache.rocketmq.client.consumer.rebalance. A running info shows the
#: class alone: neither what MACHINE_ROOM_NEARBY wraps, nor any parameter.
JAVA_CLASSES: Mapping[str, str] = {
    MachineRoomNearby.java_class: NEARBY,
    **{strategy.java_class: name for name, strategy in STRATEGIES.items()},
}


def make_strategy(
    name: str, params: Params | None = None, sdk: Sdk = Sdk.JAVA
) -> AllocationStrategy:
    """The strategy of that name (Java's ``getName()``), with its parameters.

    For another SDK it is what that SDK computes under the name; where that is another strategy
    (``Sdk.strategy_name``) the parameters are not looked at.

    Parameters, each only for the strategy that uses it:

    - CONSISTENT_HASH: ``virtual_node_count``, points per client id (default 10).
    - CONFIG: ``config_queues``, a list of MessageQueue or [topic, broker name, queue id].
    - MACHINE_ROOM: ``consumeridcs``, the rooms whose queues are shared out.
    - MACHINE_ROOM_NEARBY-<inner>: ``broker_room`` by broker name and ``client_room`` by client
      id (null or "" is not a room); ``broker_room_patterns`` and ``client_room_patterns``, lists of
      {"pattern": ..., "room": ...} for names not listed, where the pattern must match the whole
      name and may have a group named ``room`` instead of the key; and what the inner one uses.

    Raises UnknownStrategyError for another name; InvalidParameterError for an unknown key, a
    wrong type or a bad expression; MissingParameterError where Java's constructor throws a
    NullPointerException, and for a nearby MACHINE_ROOM without ``consumeridcs``, which in Java
    fails later and for some clients only; AllocationError for a negative
    ``virtual_node_count``, with Java's text.

    >>> make_strategy("CONSISTENT_HASH", {"virtual_node_count": 3}).name
    'CONSISTENT_HASH'
    >>> make_strategy(
    ...     "MACHINE_ROOM_NEARBY-AVG",
    ...     {
    ...         "broker_room_patterns": [{"pattern": "(?P<room>room[0-9])-.*"}],
    ...         "client_room_patterns": [{"pattern": "10[.]1[.].*", "room": "room1"}],
    ...     },
    ... ).name
    'MACHINE_ROOM_NEARBY-AVG'
    """
    if (other := sdk.strategy_name(name)) != name:
        return make_strategy(other)
    if not isinstance(name, str) or name.removeprefix(f"{NEARBY}-") not in STRATEGIES:
        raise UnknownStrategyError(
            Text(
                "unknown strategy {name}: expected one of {names}, or {prefix} before one of them",
                name=repr(name),
                names=", ".join(STRATEGIES),
                prefix=f"{NEARBY}-",
            )
        )
    given = {} if params is None else params
    if not isinstance(given, Mapping):
        raise wrong(name, "params", "a table of parameters", params)
    inner_name = name.removeprefix(f"{NEARBY}-")
    strategy = _VARIANTS.get((sdk, inner_name), STRATEGIES[inner_name])
    is_nearby = inner_name != name
    accepted = (*(MachineRoomNearby.parameters if is_nearby else ()), *strategy.parameters)
    unknown = [key for key in given if key not in accepted]
    if unknown:
        listed = ", ".join(accepted) or "none"
        raise InvalidParameterError(
            f"{name}: unknown parameters {', '.join(map(repr, unknown))}; accepted: {listed}"
        )
    inner = strategy.from_params(given)
    if not is_nearby:
        return inner
    nearby = MachineRoomNearby.around(inner, given)
    if isinstance(inner, ByMachineRoom) and given.get("consumeridcs") is None:
        raise MissingParameterError(
            Text("{strategy} needs consumeridcs: expected a list, got none", strategy=name)
        )
    return nearby


@lru_cache(maxsize=256)
def strategy_of(name: str, parameters: str | None = None) -> AllocationStrategy:
    """The strategy of a row: its name, and its parameters as JSON. Raises as ``make_strategy``.

    >>> strategy_of("CONSISTENT_HASH", '{"virtual_node_count": 3}').name
    'CONSISTENT_HASH'
    """
    try:
        given = None if parameters is None else json.loads(parameters)
    except ValueError as error:
        raise AllocationError(f"expected parameters as JSON, came {parameters!r}") from error
    return make_strategy(name, given)
