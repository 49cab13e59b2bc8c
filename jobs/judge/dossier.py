"""A dossier: all runs of all witnesses about one group and its topics. Small: it grows with the
changes, not with the rounds.

The fold gives dossiers as rows of ``DOSSIER``, each with one part of one group's, all rows of a
group next to each other. ``read_dossiers`` puts them together, group by group. To be judged, a
dossier gets the core's verdicts on its situations, as further rows (``JUDGED_DOSSIER``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute
from numpy.typing import NDArray

from jobs.instants import Instant
from jobs.judge.evaluated import Evaluated
from jobs.judge.evaluation import EVALUATION
from jobs.schemas import BOOLEAN, INT, LONG, REQUEST_MODE, ROUTE_BROKERS, STRING
from rebalance_core.state import POP, PULL

pc: Any = pyarrow.compute

#: (name, id) of a broker; 0 is the master.
Broker: TypeAlias = tuple[str, int]

_TIMES = pa.list_(LONG)
#: When a witness was asked: the round that the question belongs to, and when it answered (null:
#: not recorded). In any order.
POLLED = pa.list_(pa.struct([pa.field("snapshot_time", LONG), pa.field("collected_at", LONG)]))

POLL = pa.struct(
    [
        pa.field("broker_name", STRING),
        pa.field("broker_id", LONG),
        # ANSWERED, NOT_ONLINE (also: an empty list) or NO_ANSWER
        pa.field("outcome", STRING),
        # of what was ANSWERED; else null. ANSWERED without an id: the list comes in another part
        pa.field("list_id", STRING),
        pa.field("times", POLLED),
    ]
)
MEMBER_LIST = pa.struct(
    [
        pa.field("list_id", STRING),
        # the topics that some member of the list subscribes to
        pa.field("topics", pa.list_(STRING)),
        # of each member its client id and its address
        pa.field("client_ids", pa.list_(STRING)),
        pa.field("client_addrs", pa.list_(STRING)),
    ]
)
ROUTE = pa.struct(
    [
        pa.field("topic", STRING),
        pa.field("namesrv_addr", STRING),
        pa.field("route_id", STRING),
        pa.field("brokers", ROUTE_BROKERS),
        pa.field("times", POLLED),
    ]
)
CLIENT = pa.struct(
    [
        # RUNNING_INFO, CLIENT_LOG or REQUEST_MODE
        pa.field("source", STRING),
        pa.field("client_id", STRING),
        pa.field("process", STRING),
        pa.field("start_timestamp", LONG),
        pa.field("error_code", INT),
        pa.field("language", STRING),
        pa.field("version", INT),
        pa.field("message_model", STRING),
        pa.field("consume_type", STRING),
        pa.field("pull_consumer", BOOLEAN),
        pa.field("consume_orderly", BOOLEAN),
        pa.field("client_rebalance", BOOLEAN),
        pa.field("topic", STRING),
        pa.field("queue_count", INT),
        pa.field("client_count", INT),
        pa.field(
            "queues",
            pa.list_(
                pa.struct(
                    [
                        pa.field("topic", STRING),
                        pa.field("broker_name", STRING),
                        pa.field("queue_id", INT),
                        pa.field("dropped", BOOLEAN),
                    ]
                )
            ),
        ),
        # of each queue, in the same order
        pa.field("activities", pa.list_(STRING)),
        # of a running info its snapshot, of a log line when it was written (null: no zone fits) ...
        pa.field("times", _TIMES),
        # ... and when each was collected, in the same order
        pa.field("observed_at", _TIMES),
    ]
)
OFFSETS = pa.struct(
    [
        pa.field("topic", STRING),
        pa.field("broker_name", STRING),
        pa.field("queue_id", INT),
        # of each poll, in any order: its snapshot and the two offsets
        pa.field("times", _TIMES),
        pa.field("broker_offsets", pa.list_(LONG)),
        pa.field("consumer_offsets", pa.list_(LONG)),
    ]
)
#: An open finding of the run before: see ``statuses``.
EARLIER = pa.struct(
    [
        pa.field("finding_id", STRING),
        pa.field("kind", STRING),
        pa.field("topic", STRING),
        pa.field("broker_name", STRING),
        pa.field("queue_id", INT),
        pa.field("first_seen", LONG),
        pa.field("last_seen", LONG),
        pa.field("severity", STRING),
        pa.field("causes", pa.list_(STRING)),
        pa.field("open_since", LONG),
        pa.field("nights_open", INT),
    ]
)

PARTS = {
    "poll": POLL,
    "member_list": MEMBER_LIST,
    "route": ROUTE,
    "client": CLIENT,
    "offsets": OFFSETS,
    "earlier": EARLIER,
}

#: One row per part of a group's dossier; all of its parts but one are null.
DOSSIER = pa.schema(
    [
        pa.field("cluster", STRING),
        pa.field("consumer_group", STRING),
        *[pa.field(name, type_) for name, type_ in PARTS.items()],
    ]
)


#: The core's verdict on a situation of the group.
EVALUATED = pa.struct(
    [
        pa.field("situation_id", STRING),
        pa.field("topic", STRING),
        *EVALUATION,
    ]
)
JUDGED_DOSSIER = DOSSIER.append(pa.field("evaluated", EVALUATED))


class PollRun(NamedTuple):
    """What one broker answered about the group, and in which snapshots (ascending)."""

    broker: Broker
    #: The id of the list; NOT_ONLINE or NO_ANSWER where there is none; ANSWERED where the list
    #: comes in another run, and this one has the times of the answers.
    answer: str
    times: tuple[Instant, ...]
    #: When the broker answered, in the same order; none where all were asked at their snapshot.
    collected_at: tuple[Instant, ...] = ()

    @property
    def answered_at(self) -> tuple[Instant, ...]:
        """When each answer came, as far as that was collected; else its snapshot."""
        return self.collected_at or self.times


class ListedMembers(NamedTuple):
    """The connections of a list: client ids and addresses, in the same order."""

    client_ids: tuple[str, ...]
    client_addrs: tuple[str, ...]


class RouteBrokerRow(NamedTuple):
    """One broker of a route, as in ``contents.ROUTE_FACTS``."""

    broker_name: str
    broker_ids: tuple[int, ...] | None
    perm: int
    read_queue_nums: int
    write_queue_nums: int
    zone_name: str | None


class RouteRun(NamedTuple):
    """What one nameserver gave as the route of a topic, and in which snapshots (ascending)."""

    namesrv_addr: str
    route_id: str
    brokers: tuple[RouteBrokerRow, ...]
    times: tuple[Instant, ...]
    #: When the nameserver answered, in the same order; none where all were asked at their snapshot.
    collected_at: tuple[Instant, ...] = ()

    @property
    def answered_at(self) -> tuple[Instant, ...]:
        """When each answer came, as far as that was collected; else its snapshot."""
        return self.collected_at or self.times


class HeldQueue(NamedTuple):
    """A queue that a client holds or computed; dropped: it is being released.

    ``activity``: what the process does not do with it, as in ``client_states.activities``.
    """

    topic: str
    broker_name: str
    queue_id: int
    dropped: bool
    activity: str | None = None


class ClientRun(NamedTuple):
    """What one client process reported of itself, the same each time."""

    source: str
    client_id: str
    process: str | None
    start_timestamp: Instant | None
    error_code: int | None
    language: str | None
    version: int | None
    message_model: str | None
    consume_type: str | None
    pull_consumer: bool | None
    consume_orderly: bool | None
    client_rebalance: bool | None
    #: Of a log line; a running info is about all topics.
    topic: str | None
    queue_count: int | None
    client_count: int | None
    queues: tuple[HeldQueue, ...] | None
    #: (its snapshot, or when the line was written, when it was collected), ascending; None: the
    #: time at which the line was written cannot be found out.
    times: tuple[tuple[Instant | None, Instant], ...]


class QueueOffsets(NamedTuple):
    """The offsets of one queue, poll by poll, in time."""

    topic: str
    broker_name: str
    queue_id: int
    times: NDArray[np.int64]
    broker_offsets: NDArray[np.int64]
    consumer_offsets: NDArray[np.int64]


class EarlierFinding(NamedTuple):
    """A finding that was open in the run before.

    ``kind`` is that of a queue, or the name of a fault: then ``broker_name`` is empty and
    ``queue_id`` -1. ``open_since`` and ``nights_open`` are null where a run of version 0.1 made it.
    """

    finding_id: str
    kind: str
    topic: str
    broker_name: str
    queue_id: int
    first_seen: Instant
    last_seen: Instant
    severity: str
    causes: tuple[str, ...]
    open_since: Instant | None = None
    nights_open: int | None = None


@dataclass
class Dossier:
    """All runs about one group and its topics, in one cluster."""

    cluster: str
    consumer_group: str
    polls: list[PollRun] = field(default_factory=list)
    #: By list id the topics that some member of the list subscribes to.
    list_topics: dict[str, tuple[str, ...]] = field(default_factory=dict)
    #: By list id the connections of the list. Made when they are asked for: most groups have one
    #: list that all brokers give, and nothing to compare.
    list_members: dict[str, Callable[[], ListedMembers]] = field(default_factory=dict)
    #: By topic, those that no member subscribes to among them.
    routes: dict[str, list[RouteRun]] = field(default_factory=dict)
    clients: list[ClientRun] = field(default_factory=list)
    #: By topic how its brokers let the group consume it, POP or PULL: see ``_add_request_mode``.
    request_modes: dict[str, str] = field(default_factory=dict)
    #: By topic.
    offsets: dict[str, list[QueueOffsets]] = field(default_factory=dict)
    earlier: list[EarlierFinding] = field(default_factory=list)
    #: By the situation's id.
    evaluated: dict[str, Evaluated] = field(default_factory=dict)

    def topics(self) -> list[str]:
        """The topics that some member subscribed to at some time, sorted; one empty text where
        there is none: a group must not disappear.

        A topic stays with its group in the snapshots in which the group has no member: that is
        when all its queues have no owner. Of a group that no list ever had a member of, its offsets
        count: the topics in which messages wait that nobody reads.
        """
        subscribed = {topic for topics in self.list_topics.values() for topic in topics}
        if self.polls and not subscribed:
            subscribed = {topic for topic, of in self.offsets.items() if _waits_for_a_reader(of)}
        return sorted(subscribed) or ([""] if self.polls else [])


def _waits_for_a_reader(queues: Iterable[QueueOffsets]) -> bool:
    """Whether messages wait in the topic from poll to poll, and no offset of the group moves.

    A group that nobody needs any more has nothing waiting; one whose members no broker lists, as
    behind a proxy, moves.
    """
    waits = False
    for each in queues:
        if (each.consumer_offsets[1:] != each.consumer_offsets[:-1]).any():
            return False
        waiting = each.broker_offsets > each.consumer_offsets
        waits |= bool(waiting[-1:].any() and waiting[:-1].any())
    return waits


class DossierReader:
    """Puts dossiers together from batches of ``DOSSIER`` or ``JUDGED_DOSSIER``.

    All rows of a group are next to each other, over any number of batches.
    """

    def __init__(self) -> None:
        self._dossier: Dossier | None = None

    def read(self, batch: pa.RecordBatch) -> Iterator[Dossier]:
        """The dossiers that are whole: those before the last one in the batch."""
        clusters: list[Any] = batch.column("cluster").to_pylist()
        groups: list[Any] = batch.column("consumer_group").to_pylist()
        parts = [(name, batch.column(name)) for name in _ADD if name in batch.schema.names]
        present = {name: column.is_valid().to_numpy(zero_copy_only=False) for name, column in parts}
        for row, group in enumerate(zip(clusters, groups, strict=True)):
            dossier = self._dossier
            if dossier is None or (dossier.cluster, dossier.consumer_group) != group:
                yield from self.rest()
                dossier = self._dossier = Dossier(*group)
            for name, column in parts:
                if present[name][row]:
                    _ADD[name](dossier, column[row])

    def rest(self) -> Iterator[Dossier]:
        """The last dossier, once there is no batch any more."""
        if self._dossier is not None:
            dossier, self._dossier = self._dossier, None
            yield dossier


def read_dossiers(batches: Iterable[pa.RecordBatch]) -> Iterator[Dossier]:
    """The dossiers of all batches: see ``DossierReader``."""
    reader = DossierReader()
    for batch in batches:
        yield from reader.read(batch)
    yield from reader.rest()


#: The one part of a row that is there: a scalar of Arrow, whose fields are read one by one.
Part: TypeAlias = Any


def _times(value: Any) -> NDArray[np.int64]:
    return np.asarray(value.values.to_numpy(zero_copy_only=False), dtype=np.int64)


def _polled(value: Any) -> tuple[tuple[Instant, ...], tuple[Instant, ...]]:
    """The snapshots, ascending and each once, and when the answers of each came last."""
    snapshots, collected = (
        np.asarray(each.to_numpy(zero_copy_only=False), dtype=np.int64)
        for each in _collected(value.values)
    )
    order = np.lexsort([collected, snapshots])
    snapshots, collected = snapshots[order], collected[order]
    is_last = np.append(snapshots[1:] != snapshots[:-1], True)[: len(snapshots)]
    return tuple(snapshots[is_last].tolist()), tuple(collected[is_last].tolist())


def _collected(polled: Any) -> tuple[Any, Any]:
    snapshots, collected = polled.field("snapshot_time"), polled.field("collected_at")
    return snapshots, pc.coalesce(collected, snapshots)


def _add_poll(dossier: Dossier, part: Part) -> None:
    list_id = part["list_id"].as_py()
    dossier.polls.append(
        PollRun(
            (part["broker_name"].as_py(), part["broker_id"].as_py()),
            part["outcome"].as_py() if list_id is None else list_id,
            *_polled(part["times"]),
        )
    )


def _add_member_list(dossier: Dossier, part: Part) -> None:
    list_id = part["list_id"].as_py()
    client_ids, client_addrs = part["client_ids"].values, part["client_addrs"].values
    dossier.list_topics[list_id] = tuple(part["topics"].as_py())
    dossier.list_members[list_id] = lambda: ListedMembers(
        tuple(client_ids.to_pylist()), tuple(client_addrs.to_pylist())
    )


def _add_route(dossier: Dossier, part: Part) -> None:
    brokers = tuple(
        RouteBrokerRow(
            **{**each, "broker_ids": each["broker_ids"] and tuple(sorted(each["broker_ids"]))}
        )
        for each in part["brokers"].as_py()
    )
    dossier.routes.setdefault(part["topic"].as_py(), []).append(
        RouteRun(
            part["namesrv_addr"].as_py(),
            part["route_id"].as_py(),
            brokers,
            *_polled(part["times"]),
        )
    )


def _add_client(dossier: Dossier, part: Part) -> None:
    values: dict[str, Any] = part.as_py()
    if values["source"] == REQUEST_MODE:
        _add_request_mode(dossier, values["topic"], values["client_rebalance"])
        return
    queues, activities = values.pop("queues"), values.pop("activities")
    times = zip(values.pop("times"), values.pop("observed_at"), strict=True)
    in_order = sorted(times, key=lambda each: (each[0] is not None, each[0] or 0, each[1]))
    dossier.clients.append(
        ClientRun(
            **values,
            queues=None
            if queues is None
            else tuple(
                HeldQueue(**{**each, "dropped": bool(each["dropped"]), "activity": activity})
                for each, activity in zip_longest(queues, activities or ())
            ),
            times=tuple(in_order),
        )
    )


def _add_request_mode(dossier: Dossier, topic: str, client_rebalance: bool) -> None:
    """POP where some broker reported it at some time of the window, else PULL.

    Who changes the mode does it on one broker after the other, and clients follow at different
    times: while a queue may be shared, that several clients take it is no fault.
    """
    before = dossier.request_modes.get(topic, PULL)
    dossier.request_modes[topic] = before if client_rebalance else POP


def _add_offsets(dossier: Dossier, part: Part) -> None:
    times = _times(part["times"])
    order = np.argsort(times, kind="stable")
    topic = part["topic"].as_py()
    dossier.offsets.setdefault(topic, []).append(
        QueueOffsets(
            topic,
            part["broker_name"].as_py(),
            part["queue_id"].as_py(),
            times[order],
            _times(part["broker_offsets"])[order],
            _times(part["consumer_offsets"])[order],
        )
    )


def _add_earlier(dossier: Dossier, part: Part) -> None:
    values: dict[str, Any] = part.as_py()
    dossier.earlier.append(EarlierFinding(**{**values, "causes": tuple(values["causes"] or ())}))


def _add_evaluated(dossier: Dossier, part: Part) -> None:
    allocations = part["allocations"]
    row = {name: part[name].as_py() for name in _EVALUATED_AT_ONCE}
    dossier.evaluated[row["situation_id"]] = Evaluated.of_row(row, allocations.as_py)


#: Allocations are made Python objects only where they are looked at.
_EVALUATED_AT_ONCE = [column.name for column in EVALUATED if column.name != "allocations"]

_ADD = {
    "poll": _add_poll,
    "member_list": _add_member_list,
    "route": _add_route,
    "client": _add_client,
    "offsets": _add_offsets,
    "earlier": _add_earlier,
    "evaluated": _add_evaluated,
}
