"""What the core said of a situation, as the rules of time read it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

#: (broker name, queue id).
QueueKey = tuple[str, int]


class Claimant(NamedTuple):
    """Who claims a queue."""

    client_id: str
    processes: int
    probability: float


class FoundQueue(NamedTuple):
    """A queue that is ORPHANED or DUPLICATE in the situation."""

    kind: str
    queue: QueueKey
    certainty: str
    probability: float
    claimants: tuple[Claimant, ...]
    causes: tuple[str, ...]


class Move(NamedTuple):
    """A queue that changes hands with a repair."""

    broker_name: str
    queue_id: int
    before: list[str]
    after: list[str]


class FoundFault(NamedTuple):
    """A fault of the situation."""

    fault: str
    evidence: str
    remedy: str
    client_ids: tuple[str, ...]
    client_addrs: tuple[str, ...]
    broker_names: tuple[str, ...]
    queues_affected: int
    findings_cleared: int
    findings_left: int
    moves: tuple[Move, ...]


class FoundStacked(NamedTuple):
    """A client id that stands more than once in a broker's list."""

    client_id: str
    id_format: str
    evidence: str
    remedy: str
    copies: int
    processes: int
    client_addrs: tuple[str, ...]
    versions: tuple[int, ...]
    languages: tuple[str, ...]
    slots_wasted: int
    queues_duplicated: int
    queues_orphaned: int


class Allocated(NamedTuple):
    """What the processes of one client id take under one view."""

    client_id: str
    processes: int
    subscribed: bool
    strategy: str
    strategy_source: str
    view_brokers: tuple[str, ...]
    view_weight: float
    view_queues: int
    view_clients: int
    queues: tuple[QueueKey, ...]


@dataclass(frozen=True)
class Evaluated:
    """The evaluation of one situation.

    ``allocations`` makes them anew at each call: of a large group there are many, and only what
    compares neighbours in time looks at them.
    """

    coverage: str
    reason: str
    known: bool
    completeness: float
    nameservers: int
    members: int
    processes: int
    queues: int
    idle_clients: int
    imbalance: int
    strategy_source: str | None
    subscription_source: str | None
    findings: tuple[FoundQueue, ...]
    faults: tuple[FoundFault, ...]
    stacked: tuple[FoundStacked, ...]
    unreadable: tuple[QueueKey, ...]
    allocations: Callable[[], tuple[Allocated, ...]]

    @classmethod
    def of_row(
        cls, row: Mapping[str, Any], allocations: Callable[[], Sequence[Mapping[str, Any]]]
    ) -> Evaluated:
        """From one row of ``EVALUATION`` without its allocations, and what gives these."""
        return cls(
            **{name: row[name] for name in _SCALARS},
            findings=tuple(map(_finding, row["findings"])),
            faults=tuple(map(_fault, row["faults"])),
            stacked=tuple(FoundStacked(**_with_tuples(each)) for each in row["stacked"]),
            unreadable=_queues(row["unreadable"]),
            allocations=lambda: tuple(map(_allocated, allocations())),
        )


_SCALARS = (
    "coverage",
    "reason",
    "known",
    "completeness",
    "nameservers",
    "members",
    "processes",
    "queues",
    "idle_clients",
    "imbalance",
    "strategy_source",
    "subscription_source",
)


def _with_tuples(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(v) if isinstance(v, list) else v for name, v in row.items()}


def _queues(rows: Sequence[Mapping[str, Any]]) -> tuple[QueueKey, ...]:
    return tuple((each["broker_name"], each["queue_id"]) for each in rows)


def _finding(row: Mapping[str, Any]) -> FoundQueue:
    return FoundQueue(
        row["kind"],
        (row["broker_name"], row["queue_id"]),
        row["certainty"],
        row["probability"],
        tuple(Claimant(**each) for each in row["claimants"]),
        tuple(row["causes"]),
    )


def _fault(row: Mapping[str, Any]) -> FoundFault:
    moves = tuple(Move(**each) for each in row["moves"])
    return FoundFault(**{**_with_tuples(row), "moves": moves})


def _allocated(row: Mapping[str, Any]) -> Allocated:
    return Allocated(**{**_with_tuples(row), "queues": _queues(row["queues"])})
