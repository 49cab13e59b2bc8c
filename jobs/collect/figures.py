"""Figures about the collector in Prometheus' text format, for node_exporter's textfile collector.

Labels are the names of clusters and the addresses of servers: as many as there are servers.
"""

from collections import Counter as Count
from collections.abc import Mapping
from dataclasses import dataclass, field

import prometheus_client
from prometheus_client import Counter, Gauge

from ..texts.shown import visible

_MOST_LABELS = 2_000
_PREFIX = "rebalance_audit_collect_"
#: Metrics by name of the figure: the class, the name, and what it counts.
_METRICS = {
    "rounds": (Counter, "rounds", "Rounds that were written"),
    "missed": (
        Counter,
        "missed",
        "Rounds that failed, or whose time was over before the last one ended",
    ),
    "requests": (Counter, "requests", "Requests sent"),
    "received_bytes": (Counter, "received_bytes", "Bytes of the answers' bodies"),
    "lines": (Counter, "lines", "Lines written"),
    "last_seconds": (Gauge, "last_round_seconds", "How long the last round took"),
    "last_at_seconds": (Gauge, "last_round_timestamp_seconds", "snapshot_time of the last round"),
}


@dataclass
class Figures:
    """Counts of a round of one cluster, or of all since the collector started.

    ``errors``: by address and code, the answers that were errors; codes below 0 are those of
    ``client.py``.
    """

    rounds: int = 0
    missed: int = 0
    requests: int = 0
    received_bytes: int = 0
    lines: int = 0
    last_seconds: float | None = None
    last_at_seconds: float | None = None
    errors: Count[tuple[str, int]] = field(default_factory=Count)

    def count_error(self, address: str, code: int, times: int = 1) -> None:
        """Adds an error; who makes up codes and addresses cannot make labels without end."""
        is_label = (address, code) in self.errors or len(self.errors) < _MOST_LABELS
        self.errors[(address, code) if is_label else ("others", 0)] += times

    def add(self, one: "Figures") -> None:
        """Adds what is counted in a round."""
        for name, (kind, *_) in _METRICS.items():
            if kind is Counter:
                setattr(self, name, getattr(self, name) + getattr(one, name))
        for (address, code), times in one.errors.items():
            self.count_error(address, code, times)


def metrics_text(figures: Mapping[str, Figures]) -> str:
    """The figures by the name of the cluster.

    >>> print(metrics_text({"C": Figures(rounds=3)}).splitlines()[2])
    rebalance_audit_collect_rounds_total{cluster="C"} 3.0
    """
    # When a counter was made is of no use, and doubles the text.
    prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]
    registry = prometheus_client.CollectorRegistry()
    figures = {visible(cluster): each for cluster, each in figures.items()}
    for name, (kind, metric, what) in _METRICS.items():
        made = kind(_PREFIX + metric, what, ["cluster"], registry=registry)
        for cluster, each in figures.items():
            if (value := getattr(each, name)) is not None:
                made.labels(cluster).inc(value)
    errors = Counter(
        _PREFIX + "errors",
        "Answers that were errors; -1 no answer in time, -2 not reached, -3 not understood",
        ["cluster", "address", "code"],
        registry=registry,
    )
    for cluster, each in figures.items():
        for (address, code), times in sorted(each.errors.items()):
            errors.labels(cluster, visible(address), str(code)).inc(times)
    return prometheus_client.generate_latest(registry).decode()
