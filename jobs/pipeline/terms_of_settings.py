"""settings, known issues -> the terms of the judgement."""

import re
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any, TypeAlias

from rebalance_core import StrategyRule, StrategyRules

from ..config.known_issues import KnownIssue
from ..config.settings import Settings
from ..declared.instants import Instant
from ..judge.terms import ClustersOfName, KnownIssueTerms, Terms

#: The key of the summary of an ingest.
_CLUSTERS = "clusters_of_names"

#: The clusters, by cluster and broker name, in which a nameserver has the name, round by round.
ClusterRounds: TypeAlias = Mapping[tuple[str, str], Mapping[Instant, Iterable[str]]]


def packed_clusters(clusters: ClusterRounds) -> dict[str, Any]:
    """The clusters of broker names that are in several, as the summary of an ingest has them."""
    rows = [
        [*of_name, sorted({*chain(*rounds.values())}), min(rounds), max(rounds)]
        for of_name, rounds in sorted(clusters.items())
    ]
    return {_CLUSTERS: rows} if rows else {}


def _clusters_of_names(
    ingested: Mapping[str, Any] | None,
) -> dict[tuple[str, str], ClustersOfName]:
    """The same, by cluster and name."""
    return {
        (cluster, name): ClustersOfName(*each)
        for cluster, name, *each in (ingested or {}).get(_CLUSTERS, ())
    }


def terms_of(
    settings: Settings,
    known_issues: Iterable[KnownIssue] = (),
    ingested: Mapping[str, Any] | None = None,
) -> Terms:
    """The terms of the judgement; the known issues are those that are in force. ``ingested``: the
    summary of the ingest of what is judged.
    """
    return Terms(
        persistence_seconds=settings.persistence_seconds,
        heartbeat_expiry_seconds=settings.heartbeat_expiry_seconds,
        route_max_age_seconds=settings.route_max_age_seconds,
        warning_probability=settings.severity.warning_probability,
        critical_probability=settings.severity.critical_probability,
        masking=settings.masking.to_masking(),
        topic_queues=settings.bounds.topic_queues,
        known_issues=tuple(map(_known_issue, known_issues)),
        clusters_of_names=_clusters_of_names(ingested),
    )


def _known_issue(entry: KnownIssue) -> KnownIssueTerms:
    return KnownIssueTerms(
        reason=entry.reason,
        patterns=tuple((key, re.compile(text)) for key, text in entry.patterns().items()),
        queues=None if entry.queues is None else frozenset(entry.queues),
        kinds=None if entry.kinds is None else frozenset(entry.kinds),
    )


def strategy_rules(settings: Settings) -> StrategyRules:
    """The settings' strategies as the core has them."""
    rules = [StrategyRule(**strategy.model_dump()) for strategy in settings.strategies]
    return StrategyRules(rules, settings.default_strategy, settings.bounds.topic_queues)
