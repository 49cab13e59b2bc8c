"""Strategies of clients: as seen of a client, as configured for its group, or as assumed.

Heartbeats carry no strategy, and ConsumerRunningInfo only a class name: the rooms of
MACHINE_ROOM_NEARBY, the list of CONFIG and the room names of MACHINE_ROOM are user code that
nothing shows. They come from the settings, as rules. What a name means follows from the client's
SDK: its language and version.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, TypeAlias

from .errors import AllocationError
from .message_queue import MessageQueue
from .strategies import ByConfig
from .strategy import AllocationStrategy, Sdk, original_id, sdk_of
from .strategy_factory import NEARBY, make_strategy
from .texts import Text

StrategySource = Literal["observed", "configured", "group", "assumed"]

#: Sources from the one that is worth most to the one that is worth least.
STRATEGY_SOURCES: tuple[StrategySource, ...] = ("observed", "configured", "group", "assumed")

#: Strategies that cannot be recomputed without parameters that only the settings can give.
NEED_PARAMETERS = ("CONFIG", "MACHINE_ROOM", NEARBY)


#: The expression of all clients.
_EVERY = ".*"


@dataclass(frozen=True, slots=True)
class StrategyRule:
    """The strategy that the clients of some groups use, and its parameters.

    ``groups`` and ``clients`` are regular expressions over the whole group name and client id.
    """

    groups: str
    name: str
    clients: str = _EVERY
    params: Mapping[str, Any] = field(default_factory=dict)


class KnownClient(NamedTuple):
    """The facts that decide the strategy of a client.

    ``observed`` is the strategy as it was seen of it, ``of_group`` what all observed members of
    its group use. ``language`` and ``version`` are those of its connection. ``orders_differ`` says
    that the names at hand sort bytewise otherwise than in Java: only then does the order matter.
    """

    consumer_group: str
    client_id: str
    observed: str | None
    of_group: str | None = None
    language: str | None = None
    version: int | None = None
    orders_differ: bool = False


#: A topic of RocketMQ's has some hundred queues. A writer of routes can claim any number.
MOST_TOPIC_QUEUES = 100_000


@dataclass(frozen=True, slots=True)
class ResolvedStrategy:
    """The strategy of a client, or why it cannot be recomputed (``unknown``, in words).

    ``name``: of one that cannot, that of user code is its class.
    """

    strategy: AllocationStrategy | None
    source: StrategySource
    unknown: str | None = None
    name: str = ""


#: All that decides it: the number of the rule, what was observed of the client and of its group,
#: the SDK, and whether its order matters.
_Key: TypeAlias = tuple[int | None, str | None, str | None, Sdk, bool]


class StrategyRules:
    """Resolves the strategy of a client. The first rule that matches group and client id counts.

    An observed name wins over the rule's name, for it is what the client itself reported; the
    rule's parameters are then used if it is for that same strategy. A client of which nothing was
    observed uses the rule's strategy, else what all observed members of its group use, else the
    default. Clients that compute the same use the very same strategy, whatever their SDK.

    ``most_queues``: a topic that has more queues is not recomputed.
    """

    def __init__(
        self,
        rules: Iterable[StrategyRule] = (),
        default: str = "AVG",
        most_queues: int = MOST_TOPIC_QUEUES,
    ) -> None:
        self.most_queues = most_queues
        self._rules = tuple(rules)
        self._patterns = [(re.compile(r.groups), re.compile(r.clients)) for r in self._rules]
        self._default = default
        # The group asked for last and the rules for it: the clients of a group come together.
        self._group: str | None = None
        self._of_group: list[tuple[int, re.Pattern[str]]] = []
        self._resolved: dict[_Key, ResolvedStrategy] = {}
        self._made: dict[tuple[str, int | None, Sdk], AllocationStrategy | str] = {}
        self._bytewise: dict[AllocationStrategy, AllocationStrategy] = {}

    def resolve(self, client: KnownClient) -> ResolvedStrategy:
        """The strategy of one client."""
        rule = self._matching(client.consumer_group, client.client_id)
        sdk = sdk_of(client.language, client.version)
        bytewise = client.orders_differ and sdk.sorts_bytewise
        key = (rule, client.observed, client.of_group, sdk, bytewise)
        if key not in self._resolved:
            self._resolved[key] = self._resolve(key)
        return self._resolved[key]

    def looks_at_ids(self, consumer_group: str) -> bool:
        """True if clients of the group that are alike but for their ids may use two strategies."""
        self._look_at(consumer_group)
        return any(clients.pattern != _EVERY for _, clients in self._of_group)

    def parameters_of(self, strategy: AllocationStrategy) -> Mapping[str, Any]:
        """The parameters with which a strategy that ``resolve`` gave was made."""
        number = next((rule for (_, rule, _), made in self._made.items() if made is strategy), None)
        return {} if number is None else self._rules[number].params

    def _matching(self, consumer_group: str, client_id: str) -> int | None:
        self._look_at(consumer_group)
        for number, clients in self._of_group:
            if clients.fullmatch(client_id):
                return number
        return None

    def _look_at(self, consumer_group: str) -> None:
        if consumer_group != self._group:
            self._group = consumer_group
            self._of_group = [
                (number, clients)
                for number, (groups, clients) in enumerate(self._patterns)
                if groups.fullmatch(consumer_group)
            ]

    def _resolve(self, key: _Key) -> ResolvedStrategy:
        rule_number, observed, of_group, sdk, bytewise = key
        rule = None if rule_number is None else self._rules[rule_number]
        names = (observed or None, rule.name if rule else None, of_group or None, self._default)
        by_source = zip(STRATEGY_SOURCES, names, strict=True)
        source, name = next((source, name) for source, name in by_source if name is not None)
        if rule is not None and name == NEARBY and rule.name.startswith(NEARBY + "-"):
            name = rule.name  # the running info names the class alone, not what it wraps
        name = sdk.strategy_name(name)
        if rule is None or rule.name != name or not (_needs_parameters(name) or rule.params):
            rule_number = None  # without parameters it is the same strategy, whoever names it
        made = self._make(name, rule_number, sdk)
        if isinstance(made, str):
            return ResolvedStrategy(None, source, made, name)
        if bytewise:
            made = self._bytewise.setdefault(made, made.sorting_bytewise())
        return ResolvedStrategy(made, source)

    def _make(self, name: str, rule_number: int | None, sdk: Sdk) -> AllocationStrategy | str:
        key = (name, rule_number, sdk)
        if key not in self._made:
            made = self._make_new(*key)
            if sdk is not Sdk.JAVA and isinstance(made, AllocationStrategy) and not made.variant:
                made = self._make(name, rule_number, Sdk.JAVA)
            self._made[key] = made
        return self._made[key]

    def _make_new(self, name: str, rule_number: int | None, sdk: Sdk) -> AllocationStrategy | str:
        if _needs_parameters(name) and rule_number is None:
            return Text(
                "the parameters of {strategy} are not in the settings: add them as [[strategies]] "
                'with name = "{strategy}" and params, and the shares are computed',
                strategy=name,
            )
        params = {} if rule_number is None else dict(self._rules[rule_number].params)
        try:
            return make_strategy(name, params, sdk)
        except AllocationError as error:
            return error.text


def _needs_parameters(name: str) -> bool:
    return name in NEED_PARAMETERS or name.startswith(NEARBY + "-")


class ChangedRules(StrategyRules):
    """Rules whose answer for some clients is another, given the client and the rules before."""

    def __init__(
        self,
        before: StrategyRules,
        answer: Callable[[KnownClient, StrategyRules], ResolvedStrategy],
    ) -> None:
        super().__init__(most_queues=before.most_queues)
        self.before = before
        self._answer = answer

    def resolve(self, client: KnownClient) -> ResolvedStrategy:
        """The changed answer."""
        return self._answer(client, self.before)


class PrescribedRules(ChangedRules):
    """Rules where some clients use one strategy, as their SDK computes it, whatever is observed.

    ``uses`` has by client id (None: of every other client) the strategy, and the rules that give
    its parameters. One object has all of them: a group of thousands of clients gets its strategies
    client by client.
    """

    def __init__(
        self, before: StrategyRules, uses: Mapping[str | None, tuple[str, StrategyRules]]
    ) -> None:
        super().__init__(before, self._prescribed)
        self.uses = uses

    def _prescribed(self, client: KnownClient, before: StrategyRules) -> ResolvedStrategy:
        for client_id in (client.client_id, original_id(client.client_id), None):
            if client_id in self.uses:
                strategy, rules = self.uses[client_id]
                return rules.resolve(client._replace(observed=strategy))
        return before.resolve(client)


#: The strategy that a client uses instead, by its id and what it uses now.
Override: TypeAlias = Callable[[str, AllocationStrategy], AllocationStrategy]


def overridden(rules: StrategyRules, override: Override) -> StrategyRules:
    """The rules by which clients whose strategy is known use another one."""

    def answer(client: KnownClient, before: StrategyRules) -> ResolvedStrategy:
        now = before.resolve(client)
        if now.strategy is None:
            return now
        return replace(now, strategy=override(client.client_id, now.strategy))

    return ChangedRules(rules, answer)


def as_held(rules: StrategyRules, held: Mapping[str, Sequence[MessageQueue]]) -> StrategyRules:
    """The rules by which a client whose strategy cannot be recomputed takes what it holds, by its
    id: for as long as no list changes it takes the same at each rebalance.
    """

    def answer(client: KnownClient, before: StrategyRules) -> ResolvedStrategy:
        found = before.resolve(client)
        if found.strategy is not None or client.client_id not in held:
            return found
        return replace(found, strategy=ByConfig(held[client.client_id]), unknown=None)

    return ChangedRules(rules, answer)


def prescribe(
    rules: StrategyRules, client_id: str | None, strategy: str, given: StrategyRules | None
) -> StrategyRules:
    """The rules where a client uses one strategy, as its SDK computes it, whatever is observed or
    configured; every client where none is named. The parameters are those of the rules ``given``,
    else those of the settings.

    A prescribed strategy was not observed, so it is not evidence about the group's other clients.
    """
    settings = rules
    while isinstance(settings, ChangedRules):  # what an earlier change prescribes counts no more
        settings = settings.before
    use = {client_id: (strategy, given or settings)}
    if not isinstance(rules, PrescribedRules):
        return PrescribedRules(rules, use)
    return PrescribedRules(rules.before, use if client_id is None else {**rules.uses, **use})
