"""Which strategy a client uses: as seen of it, as configured for its group, or as assumed.

Heartbeats carry no strategy, and ConsumerRunningInfo only a class name: the rooms of
MACHINE_ROOM_NEARBY, the list of CONFIG and the room names of MACHINE_ROOM are user code that
nothing shows. They come from the settings, as rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from rebalance_core.errors import AllocationError
from rebalance_core.strategies import AllocationStrategy, make_strategy

StrategySource = Literal["observed", "configured", "group", "assumed"]

#: From the one that is worth most to the one that is worth least.
STRATEGY_SOURCES: tuple[StrategySource, ...] = ("observed", "configured", "group", "assumed")

NEARBY = "MACHINE_ROOM_NEARBY"
#: Strategies that cannot be recomputed without parameters that only the settings can tell.
NEED_PARAMETERS = ("CONFIG", "MACHINE_ROOM", NEARBY)


@dataclass(frozen=True, slots=True)
class StrategyRule:
    """For the clients of some groups: the strategy that they use, and its parameters.

    ``groups`` and ``clients`` are regular expressions over the whole group name and client id.
    """

    groups: str
    name: str
    clients: str = ".*"
    params: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ResolvedStrategy:
    """The strategy of a client, or why it cannot be recomputed (``unknown``, in words)."""

    strategy: AllocationStrategy | None
    source: StrategySource
    unknown: str | None = None


class StrategyRules:
    """Resolves the strategy of a client. The first rule that matches group and client id counts.

    An observed name wins over the rule's name, for it is what the client said of itself; the
    rule's parameters are then used if it is for that same strategy. A client of which nothing was
    observed uses the rule's strategy, else what all observed members of its group use, else the
    default.
    """

    def __init__(self, rules: Iterable[StrategyRule] = (), default: str = "AVG") -> None:
        self._rules = tuple(rules)
        self._patterns = [(re.compile(r.groups), re.compile(r.clients)) for r in self._rules]
        self._default = default
        self._resolved: dict[tuple[int | None, str | None, str | None], ResolvedStrategy] = {}
        self._made: dict[tuple[str, int | None], AllocationStrategy | str] = {}

    def resolve(
        self, consumer_group: str, client_id: str, observed: str | None, of_group: str | None = None
    ) -> ResolvedStrategy:
        """The strategy of one client; ``of_group`` is what all observed members of it use."""
        rule = self._matching(consumer_group, client_id)
        key = (rule, observed, of_group)
        resolved = self._resolved.get(key)
        if resolved is None:
            resolved = self._resolved[key] = self._resolve(rule, observed, of_group)
        return resolved

    def _matching(self, consumer_group: str, client_id: str) -> int | None:
        for number, (groups, clients) in enumerate(self._patterns):
            if groups.fullmatch(consumer_group) and clients.fullmatch(client_id):
                return number
        return None

    def _resolve(
        self, rule_number: int | None, observed: str | None, of_group: str | None
    ) -> ResolvedStrategy:
        rule = None if rule_number is None else self._rules[rule_number]
        source: StrategySource
        if observed:
            name, source = observed, "observed"
        elif rule is not None:
            name, source = rule.name, "configured"
        elif of_group:
            name, source = of_group, "group"
        else:
            name, source = self._default, "assumed"
        if rule is not None and name == NEARBY and rule.name.startswith(NEARBY + "-"):
            name = rule.name  # the running info names the class alone, not what it wraps
        made = self._make(name, rule_number if rule is not None and rule.name == name else None)
        if isinstance(made, str):
            return ResolvedStrategy(None, source, made)
        return ResolvedStrategy(made, source)

    def _make(self, name: str, rule_number: int | None) -> AllocationStrategy | str:
        key = (name, rule_number)
        if key not in self._made:
            self._made[key] = self._make_new(name, rule_number)
        return self._made[key]

    def _make_new(self, name: str, rule_number: int | None) -> AllocationStrategy | str:
        needs_parameters = name in NEED_PARAMETERS or name.startswith(NEARBY + "-")
        if needs_parameters and rule_number is None:
            return f"the parameters of {name} are not in the settings"
        params = {} if rule_number is None else dict(self._rules[rule_number].params)
        try:
            return make_strategy(name, params)
        except AllocationError as error:
            return str(error)
