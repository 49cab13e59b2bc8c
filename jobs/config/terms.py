"""Terms of the judgement besides the dossiers: settings and known issues, as plain values.

It travels to Spark's workers, which have nothing but the standard library, NumPy, pandas and
PyArrow.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ..declared.instants import Instant
from .masking import Masking


@dataclass(frozen=True)
class KnownIssueTerms:
    """An entry of the known issues that is in force: see ``known_issues.KnownIssue``.

    Each pattern has to match the whole of every name that it is about.
    """

    reason: str
    patterns: tuple[tuple[str, re.Pattern[str]], ...]
    queues: frozenset[int] | None
    kinds: frozenset[str] | None


class ClustersOfName(NamedTuple):
    """The clusters in which a nameserver has one broker name, and the first and the last round in
    which they were several.
    """

    clusters: Sequence[str]
    first_seen: Instant
    last_seen: Instant


@dataclass(frozen=True)
class Terms:
    """The settings that decide, as plain values; see docs/settings.md."""

    persistence_seconds: int
    heartbeat_expiry_seconds: int
    route_max_age_seconds: int
    warning_probability: float
    critical_probability: float
    masking: Masking
    topic_queues: int
    known_issues: tuple[KnownIssueTerms, ...] = ()
    #: The names of brokers in each cluster's routes that nobody asked about any group.
    never_asked: frozenset[tuple[str, str]] = frozenset()
    #: The clusters of which most rows were refused: they are not judged.
    lost_clusters: frozenset[str] = frozenset()
    #: The broker names that nameservers have in several clusters, by cluster and name.
    clusters_of_names: Mapping[tuple[str, str], ClustersOfName] = field(default_factory=dict)
    #: The last round of each cluster, about whichever group.
    last_rounds: Mapping[str, Instant] = field(default_factory=dict)
