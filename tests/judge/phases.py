"""Phases, evaluations and rows as the rules of time get them, from the few values that matter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jobs.config.masking import Masking
from jobs.config.terms import Terms
from jobs.declared.dossier import Dossier, RouteRun
from jobs.declared.instants import SECOND, Instant
from jobs.judge.observe.core_verdict import FoundQueue, QueueAllocation, Verdict
from jobs.judge.observe.situations import Period, Situations, TopicSituation
from jobs.judge.observe.timeline import Phase, Timeline
from jobs.judge.rules.case import Case
from jobs.judge.rules.found import QueueFinding, Stall
from jobs.judge.times import Extent
from rebalance_core.division import Move
from rebalance_core.faults import Fault
from rebalance_core.findings import (
    AUDITED,
    BROADCASTING_GROUP,
    NOT_SUBSCRIBED,
    Claimant,
    Evaluation,
)
from rebalance_core.processes import StackedId
from rebalance_core.state import RouteBroker

TOPIC = "T"
TERMS = Terms(
    persistence_seconds=180,
    heartbeat_expiry_seconds=130,
    route_max_age_seconds=900,
    warning_probability=0.1,
    critical_probability=0.5,
    masking=Masking(),
    topic_queues=100_000,
)


def case(**facts: Any) -> Case:
    """A case of which the rules read these facts: of 180 s that something has to last."""
    given = {"dossier": Dossier("C", "G"), "situations": Situations({}), "evaluated": {}}
    given |= {"terms": TERMS}
    found = Case(**given | {name: facts.pop(name) for name in given.keys() & facts})
    values = {"masters_away": (), "members_in_time": (), "snapshots": (at(0), at(60))}
    # What a case makes when it is first asked for it is taken from here.
    vars(found).update(values | {"no_config": None} | facts)
    return found


def at(second: float) -> Instant:
    """So many seconds after the beginning."""
    return round(second * SECOND)


def evaluated(allocations: Sequence[QueueAllocation] = (), **overrides: Any) -> Verdict:
    """A healthy situation, but for these; what is no field of it is of the core's verdict."""
    values: dict[str, Any] = {"nameservers": 1}
    values |= dict.fromkeys(("findings", "faults"), ())
    verdict: dict[str, Any] = {
        "coverage": AUDITED,
        "reason": "",
        "completeness": 1.0,
        "members": 2,
        "processes": 2,
        "queues": 4,
        "idle_clients": 0,
        "most_queues": 2,
        "fewest_queues": 2,
        "strategy_source": "assumed",
        "subscription_source": "HEARTBEAT",
    }
    for name, value in overrides.items():
        (values if name in values else verdict)[name] = value
    nobody_reads = verdict["coverage"] in (BROADCASTING_GROUP, NOT_SUBSCRIBED)
    verdict.setdefault("readers", 0 if nobody_reads else verdict["processes"])
    return Verdict(Evaluation(**verdict), **values, allocations=lambda: tuple(allocations))


def finding(
    probability: float = 1.0,
    kind: str = "ORPHANED",
    queue_id: int = 0,
    claimants: Sequence[Claimant] = (),
    causes: Sequence[str] = ("STRATEGY_MISMATCH",),
) -> FoundQueue:
    certainty = "CERTAIN" if probability == 1.0 else "POSSIBLE"
    queue = ("broker-a", queue_id)
    return FoundQueue(kind, queue, certainty, probability, tuple(claimants), tuple(causes))


def fault(name: str = "STRATEGY_MISMATCH", **overrides: Any) -> Fault:
    values: dict[str, Any] = {
        "fault": name,
        "evidence": "a uses CIRCLE, b AVG",
        "remedy": "use one",
        "client_ids": ("a",),
        "client_addrs": ("h:1",),
        "broker_names": ("broker-a",),
        "queues_affected": 2,
        "cleared": 2,
        "left": 0,
        "moves": (Move(TOPIC, "broker-a", 0, ("a",), ("b",)),),
    }
    return Fault(**values | overrides)


def extent(first: float = 0, last: float = 300, **overrides: Any) -> Extent:
    """Of a snapshot a minute, without a gap."""
    values = {"persistence": "PERSISTENT", "ongoing": True, "share_of_time": 1.0} | overrides
    return Extent(at(first), at(last), int(last - first) // 60 + 1, **values)


def queue_finding(first: float = 0, last: float = 300, **overrides: Any) -> QueueFinding:
    """An orphan of broker-a; what is no field of it is of its extent."""
    values: dict[str, Any] = {
        "topic": TOPIC,
        "kind": "ORPHANED",
        "queue": ("broker-a", 0),
        "certainty": "CERTAIN",
        "probability": 1.0,
        "completeness": 1.0,
        "claimants": (),
        "strategy_source": "observed",
        "causes": ("GHOST_MEMBER",),
    }
    of_extent = {name: overrides.pop(name) for name in Extent._fields if name in overrides}
    return QueueFinding(extent=extent(first, last, **of_extent), **values | overrides)


def stall(first: float = 0, last: float = 300, **overrides: Any) -> Stall:
    """A stall of a queue of broker-a, whose owner is a."""
    values = {"topic": TOPIC, "queue": ("broker-a", 0), "owners": ("a",)}
    values |= {"backlog": 10, "backlog_growth": 5}
    of_extent = {name: overrides.pop(name) for name in Extent._fields if name in overrides}
    return Stall(extent=extent(first, last, **of_extent), **values | overrides)


def stacked_id(client_id: str = "a", **overrides: Any) -> StackedId:
    values: dict[str, Any] = {
        "client_id": client_id,
        "id_format": "JAVA_PID",
        "evidence": "listed 2 times",
        "remedy": "give each its own",
        "copies": 2,
        "processes": 2,
        "is_settled": True,
        "client_addrs": ("h:1", "h:2"),
        "versions": (401,),
        "languages": ("JAVA",),
        "slots_wasted": 1,
        "queues_duplicated": 2,
        "queues_orphaned": 3,
    }
    return StackedId(**values | overrides)


def period(
    situation_id: str, first: float, last: float, *, topic: str = TOPIC, group_run: int = 0
) -> Period:
    """Of a snapshot a minute."""
    situation = TopicSituation(situation_id, "c", "G", topic, (), (), (), (), ())
    return Period(situation, group_run, at(first), at(last), int(last - first) // 60 + 1)


def phase(position: int, first: float, last: float, **overrides: Any) -> Phase:
    """A phase of a snapshot a minute; what is no field of it is of its evaluation."""
    values: dict[str, Any] = {
        "topic": TOPIC,
        "situation_id": f"s{position}",
        "group_run": position,
        "first_seen": at(first),
        "last_seen": at(last),
        "snapshots": int(last - first) // 60 + 1,
        "position": position,
        "is_blind": False,
        "watch": 0,
    }
    of_phase = {name: value for name, value in overrides.items() if name in values}
    of_evaluation = {name: value for name, value in overrides.items() if name not in values}
    return Phase(**values | of_phase, evaluated=evaluated(**of_evaluation))


def timeline(*phases: Phase, topic: str = TOPIC) -> Timeline:
    return Timeline(topic, tuple(each._replace(topic=topic) for each in phases))


def broker(name: str = "broker-a", queues: int = 4, **overrides: Any) -> RouteBroker:
    """A broker of a route with so many queues to read."""
    values: dict[str, Any] = {
        "broker_name": name,
        "broker_ids": (0,),
        "perm": 6,
        "read_queue_nums": queues,
        "write_queue_nums": queues,
        "zone_name": None,
    }
    return RouteBroker(**values | overrides)


def route(brokers: Sequence[RouteBroker], *seconds: float, namesrv_addr: str = "ns-1") -> RouteRun:
    """What a nameserver gave at these seconds."""
    times = tuple(map(at, seconds))
    return RouteRun(namesrv_addr, repr(brokers), tuple(brokers), times, times)
