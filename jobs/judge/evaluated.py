"""The core's verdict on a situation, as the rules of time read it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from jobs.languages.rows import with_texts

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
    """A client id that is more than once in a broker's list."""

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
    shows_owners: bool
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
            **_of_names(with_texts(row), _SCALARS),
            findings=tuple(map(_finding, row["findings"])),
            faults=tuple(map(_fault, row["faults"])),
            stacked=tuple(map(_stacked, row["stacked"])),
            unreadable=_queues(row["unreadable"]),
            allocations=lambda: tuple(map(_allocated, allocations())),
        )


_SCALARS = (
    "coverage",
    "reason",
    "shows_owners",
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


def _of_names(row: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    values = {name: row[name] for name in names}
    return {name: tuple(v) if isinstance(v, list) else v for name, v in values.items()}


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
    return FoundFault(**{**_of_names(with_texts(row), FoundFault._fields), "moves": moves})


def _stacked(row: Mapping[str, Any]) -> FoundStacked:
    return FoundStacked(**_of_names(with_texts(row), FoundStacked._fields))


def _allocated(row: Mapping[str, Any]) -> Allocated:
    return Allocated(**{**_of_names(row, Allocated._fields), "queues": _queues(row["queues"])})
