"""What Prometheus would answer: as much of its language as the rules and the dashboard use."""

from __future__ import annotations

import operator
import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import promql_parser as promql
from prometheus_client.parser import text_string_to_metric_families

#: The labels of a series, and its value.
Series = dict[frozenset[tuple[str, str]], float]
_OPERATORS: dict[str, Callable[[float, float], Any]] = {
    **{">": operator.gt, "<": operator.lt, "==": operator.eq},
    **{"+": operator.add, "-": operator.sub, "*": operator.mul},
}
_COMPARED = (">", "<", "==")
_AGGREGATES: dict[str, Callable[[list[float]], float]] = {"sum": sum, "max": max, "min": min}


class Exposed(NamedTuple):
    """Metrics as they are written, at a time."""

    samples: list[tuple[str, dict[str, str], float]]
    now: float

    @classmethod
    def of(cls, text: str, now: float) -> Exposed:
        families = text_string_to_metric_families(text)
        return cls([(s.name, s.labels, s.value) for each in families for s in each.samples], now)

    def ask(self, query: str) -> Series:
        """The series that a query gives; a number has no labels."""
        return self._ask(promql.parse(query))

    def _ask(self, query: Any) -> Series:
        if isinstance(query, promql.NumberLiteral):
            return {frozenset(): query.val}
        if isinstance(query, promql.ParenExpr):
            return self._ask(query.expr)
        if isinstance(query, promql.VectorSelector):
            return {
                frozenset(labels.items()): value
                for name, labels, value in self.samples
                if name == query.name and _fits(labels, query.matchers.matchers)
            }
        if isinstance(query, promql.AggregateExpr):
            kept = set(query.modifier.labels) if query.modifier else set()
            groups: dict[frozenset[tuple[str, str]], list[float]] = defaultdict(list)
            for labels, value in self._ask(query.expr).items():
                groups[frozenset(each for each in labels if each[0] in kept)].append(value)
            aggregate = _AGGREGATES[str(query.op)]
            return {labels: aggregate(values) for labels, values in groups.items()}
        if isinstance(query, promql.Call):
            return self._call(query)
        return _combined(str(query.op), self._ask(query.lhs), self._ask(query.rhs))

    def _call(self, query: Any) -> Series:
        if query.func.name == "time":
            return {frozenset(): self.now}
        (argument,) = query.args
        if query.func.name == "sort_desc":
            return self._ask(argument)
        assert query.func.name == "absent", query.func.name
        return {} if self._ask(argument) else {frozenset(): 1.0}


def _fits(labels: dict[str, str], matchers: Iterable[Any]) -> bool:
    return all(
        labels.get(each.name, "") == each.value
        if each.op == promql.MatchOp.Equal
        else re.fullmatch(each.value, labels.get(each.name, "")) is not None
        for each in matchers
    )


def _combined(name: str, left: Series, right: Series) -> Series:
    """Each series with the one of the same labels, or with a number."""
    of_all = right.get(frozenset()) if len(right) == 1 else None
    found = {}
    for labels, value in left.items():
        other = right.get(labels, of_all)
        if other is None:
            continue
        answer = _OPERATORS[name](value, other)
        if name in _COMPARED:
            if answer:
                found[labels] = value
        else:
            found[labels] = answer
    return found
