"""channels -> clients that connect again and again.

A connection that breaks without a word stays in the broker's list for up to 130 s, beside the new
one: its slot is nobody's. Once that passes by itself. Where it comes again and again it does not:
there is always an old connection, and always a slot without an owner.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, pairwise
from typing import NamedTuple, TypeAlias

from rebalance_core.english import count, joined, list_of
from rebalance_core.findings import POSSIBLE
from rebalance_core.repairs import STALE_CHANNEL
from rebalance_core.texts import Text

from ..instants import SECOND, Instant
from ..kinds import FLAPPING, PERSISTENT, RECONNECTING
from .case import Case
from .channels import Channel, Starts, by_broker, starts_of
from .dossier import Broker
from .extents import Extent, together
from .findings import Fault, Found, QueueFinding
from .flapping import Life, successions
from .grouping import grouped
from .words import MOST_NAMES

#: At least so many connections were replaced on a broker: a deploy and its rollback replace two.
_FEWEST = 3
#: At least two of them an hour: what a proxy closes once a day does no harm.
_MOST_APART = 30 * 60 * SECOND
_HOUR = 3600 * SECOND
#: A client heartbeats each 30 s, which finds the new broker, and polls come each minute or so.
_AT_ONCE = 60 * SECOND
_NEARLY_ALL = 0.75
#: A start time is that of the client's clock.
_CLOCKS_DIFFER = 5 * SECOND
_SEVERAL = 2

_NETWORK = (
    "look at what is between {this_client} and {these_brokers} (load balancer, NAT, proxy, "
    "firewall: idle timeouts, connections that are reset) and for heartbeats that time out (3 s): "
    "pauses in the client's GC log, a broker that answers slowly; where many clients do so at "
    "once, at the broker itself"
)
_RESTARTS = (
    "see why the process of {this_client} ends again and again: what its orchestrator says of "
    "restarts (liveness probe, out of memory), the end of its log; let it shut down in order, so "
    "that no old connection is left behind"
)


def reconnecting_clients(case: Case, found: Found) -> Found:
    """The faults RECONNECTING, or FLAPPING of who restarts each time, of the group.

    They are reported once: for its main topic, or for the one in which old connections cost most
    queues. An old connection of a client that reconnects again and again has its remedy.
    """
    flapping = [fault.client_ids for fault in found.faults if fault.fault == FLAPPING]
    reconnecting = find_reconnecting(case, frozenset(chain.from_iterable(flapping)))
    faults = reconnecting_faults(case, reconnecting, found.faults)
    return replace(found, faults=(*with_remedies(found.faults, faults), *faults))


class Reconnecting(NamedTuple):
    """A client id whose connections were replaced again and again, the brokers taken together."""

    client_id: str
    first_seen: Instant
    last_seen: Instant
    #: On the broker where it was most often.
    times: int
    broker_names: tuple[str, ...]
    client_addrs: tuple[str, ...]
    ongoing: bool
    #: The broker listed an old connection beside the new one.
    left_behind: bool
    #: The process was another one each time.
    restarts: bool


#: A broker, and when it saw a client connect anew, each time after the time before.
_Row: TypeAlias = tuple[Broker, Sequence[Instant]]
#: At which brokers and when connections were seen first.
_Connected: TypeAlias = frozenset[tuple[Broker, Instant]]


def find_reconnecting(case: Case, flapping: Collection[str]) -> list[Reconnecting]:
    """The client ids that connect again and again; not those that leave all lists in between, which
    are in ``flapping``.

    Worked example: at 10:02, 10:04 and 10:06 a client has another port on broker-a, and each port
    stays listed for 130 s after its last heartbeat: three connections were replaced within four
    minutes. Two processes that share an id have two ports each time, and replace none; twelve that
    share one and are deployed replace twelve, but none of the new ones.

    What nearly all members of the group do at a time on a broker, once or twice, is a restart of
    the broker; a client that was in no list before it came anew was restarted. Neither counts. A
    connection of a new process, as its start time shows, is no reconnection, but may be one of many
    restarts.
    """
    channels, starts = case.situations.channels, starts_of(case.dossier.clients)
    if case.main_topic is None or not channels:
        return []
    found: list[Reconnecting] = []
    of_processes = {
        client_id: _of_new_processes(of_id, starts.get(client_id, ()))
        for client_id, of_id in channels.items()
    }
    members_at = case.timelines[case.main_topic].members_at
    of_brokers = _restarts_of_brokers(channels, of_processes, members_at)
    for client_id, of_id in sorted(channels.items()):
        if client_id in flapping:
            continue
        away = [(each.broker, each.first_seen) for each in of_id if _was_away(each, of_id)]
        for rows in _rows(case, of_id, of_brokers.union(away)):
            whole = _taken_together(case, of_id, rows, starts.get(client_id, ()))
            of_one_process = (
                sum((broker, at) not in of_processes[client_id] for at in times)
                for broker, times in rows
            )
            if whole.restarts or max(of_one_process) >= _FEWEST:
                found.append(whole)
    return found


def _of_new_processes(channels: Sequence[Channel], starts: Starts) -> _Connected:
    """Where and when the first connections of processes were seen whose start times are known."""
    first_seen = sorted((each.broker, each.first_seen) for each in channels)
    return frozenset(
        first_seen[place]
        for broker in {each.broker for each in channels}
        for start in {start for _, start in starts}
        if (place := bisect_left(first_seen, (broker, start - _CLOCKS_DIFFER))) < len(first_seen)
        and first_seen[place][0] == broker
    )


def _was_away(channel: Channel, channels: Iterable[Channel]) -> bool:
    """Whether the client was in no list before: its broker was asked and did not list it, and no
    connection to another broker that was there then lasted on.
    """
    before = [each for each in channels if each.first_seen < channel.first_seen]
    gone = [each.gone_by for each in before if each.broker == channel.broker]
    return bool(gone) and all(
        by is not None
        and by < channel.first_seen
        and all(each.last_seen < channel.first_seen for each in before if each.first_seen <= by)
        for by in gone
    )


def _restarts_of_brokers(
    channels: Mapping[str, Sequence[Channel]],
    of_processes: Mapping[str, _Connected],
    members_at: Callable[[Instant], int],
) -> _Connected:
    """The brokers and times at which nearly all members came anew; not where that is so again and
    again, as with a load balancer that drops all connections.
    """
    came = grouped(
        (broker, (each.first_seen, client_id))
        for client_id, of_id in channels.items()
        for broker, of_broker in by_broker(of_id).items()
        for each in of_broker[1:]
        if (broker, each.first_seen) not in of_processes[client_id]
    )
    times = {broker: _of_nearly_all(sorted(each), members_at) for broker, each in came.items()}
    return frozenset(
        (broker, time)
        for broker, of_broker in times.items()
        if len(together(of_broker, lambda each: (each, each), _AT_ONCE)) < _FEWEST
        for time in of_broker
    )


def _of_nearly_all(
    came: Sequence[tuple[Instant, str]], members_at: Callable[[Instant], int]
) -> list[Instant]:
    """The times around which most of the members came anew, ascending."""
    times: list[Instant] = []
    for time in sorted({time for time, _ in came}):
        first = bisect_left(came, (time - _AT_ONCE, ""))
        end = bisect_left(came, (time + _AT_ONCE + 1, ""))
        members = len({client_id for _, client_id in came[first:end]})
        if members >= _SEVERAL and members >= _NEARLY_ALL * members_at(time):
            times.append(time)
    return times


def _rows(case: Case, channels: Iterable[Channel], expected: _Connected) -> list[list[_Row]]:
    """The rows of all brokers without what is ``expected``, those that overlap in time together."""
    rows: list[_Row] = []
    at_least = case.persistence_seconds * SECOND
    for broker, of_broker in by_broker(channels).items():
        lives = [
            Life(each.client_addr, each.first_seen, each.gone_by and each.last_seen)
            for each in of_broker
        ]
        # The first connection of all replaces none.
        first = lives[0].start
        for in_turn in successions(lives, case.expiry, _MOST_APART):
            starts = (life.start for life in in_turn if life.start > first)
            times = [start for start in starts if (broker, start) not in expected]
            if len(times) >= _FEWEST and times[-1] - times[0] >= at_least:
                rows.append((broker, times))
    return together(rows, lambda row: (row[1][0], row[1][-1]))


def _taken_together(
    case: Case, channels: Sequence[Channel], rows: Sequence[_Row], starts: Starts
) -> Reconnecting:
    end = case.asked_until
    first_seen = min(times[0] for _, times in rows)
    last_seen = max(times[-1] for _, times in rows)
    connections = Counter(broker for broker, times in rows for _ in times)
    most = max(connections.values())
    addresses = {
        each.client_addr
        for each in channels
        if each.broker in connections
        and each.first_seen <= last_seen
        and first_seen <= (each.gone_by or end)
    }
    longest = max(later - one for _, times in rows for one, later in pairwise(times))
    return Reconnecting(
        channels[0].client_id,
        first_seen,
        last_seen,
        most,
        tuple(sorted({name for name, _ in connections})),
        tuple(sorted(addresses)),
        ongoing=end - last_seen <= longest,
        left_behind=any(
            one.first_seen < later.first_seen <= one.last_seen
            for of_broker in by_broker(channels).values()
            for one, later in pairwise(of_broker)
        ),
        restarts=_restarts(starts, first_seen, last_seen, most),
    )


def _restarts(starts: Starts, first_seen: Instant, last_seen: Instant, connections: int) -> bool:
    """Whether new connections are new processes, as the start times of its running infos say.

    Of a process that lives for a minute few questions meet each of them: what counts is how many of
    the answers, or of the connections where these are fewer, are those of a new one.
    """
    met = [start for moment, start in starts if first_seen <= moment <= last_seen]
    new = {start for start in met if first_seen <= start}
    return len(new) > 1 and 2 * len(new) > min(connections, len(met))


def reconnecting_faults(
    case: Case, found: Sequence[Reconnecting], faults: Iterable[Fault]
) -> list[Fault]:
    """One fault for each client, of the topic in which its old connections cost most queues
    (``faults`` has their STALE_CHANNEL); where they cost none, of the group's main topic.

    A process that restarts under the same id has a new connection each time, too. That is a member
    that comes and goes, so fast that no list shows it gone: FLAPPING.
    """
    stale = grouped(
        (client_id, fault)
        for fault in faults
        if fault.fault == STALE_CHANNEL
        for client_id in fault.client_ids
    )
    others = sum(not each.restarts for each in found) - 1
    made: list[Fault] = []
    for each in found:
        plain = _fault(case, each, others)
        costs = [fault for fault in stale.get(each.client_id, ()) if fault.overlaps(plain)]
        if costs and not each.restarts:
            worst = max(
                costs,
                key=lambda fault: (fault.queues_affected, fault.topic == plain.topic, fault.topic),
            )
            plain = replace(plain, topic=worst.topic, queues_affected=worst.queues_affected)
        made.append(plain)
    return made


def _fault(case: Case, each: Reconnecting, others: int) -> Fault:
    hosts = sorted({address.rpartition(":")[0] for address in each.client_addrs})
    per_hour = round(each.times * _HOUR / max(each.last_seen - each.first_seen, SECOND))
    often = Text("{times}, {per_hour} per hour", times=count(each.times, "time"), per_hour=per_hour)
    brokers = list_of(each.broker_names, MOST_NAMES)
    if each.restarts:
        remedy = Text(_RESTARTS, this_client=each.client_id)
        what = Text(
            "{client} restarted {often}: it has other connections to {brokers}, and its running "
            "infos a new start time, each time",
            client=each.client_id,
            often=often,
            brokers=brokers,
        )
    else:
        remedy = Text(_NETWORK, this_client=each.client_id, these_brokers=brokers)
        what = Text(
            "{client} reconnected to {brokers} {often}, from {addresses} of {hosts}",
            client=each.client_id,
            brokers=brokers,
            often=often,
            addresses=count(len(each.client_addrs), "address", "addresses"),
            hosts=list_of(hosts, MOST_NAMES),
        )
    parts = [what]
    if each.left_behind:
        parts.append(Text("the broker lists the old connection for up to 130 s beside the new one"))
    if others == 1 and not each.restarts:
        parts.append(Text("so does 1 other client of the group"))
    elif others > 1 and not each.restarts:
        parts.append(Text("so do {others:,} other clients of the group", others=others))
    seen = sum(each.first_seen <= time <= each.last_seen for time in case.snapshots)
    return Fault(
        case.main_topic or "",
        Extent(each.first_seen, each.last_seen, seen, PERSISTENT, each.ongoing),
        FLAPPING if each.restarts else RECONNECTING,
        evidence=joined(parts),
        remedy=remedy,
        client_ids=(each.client_id,),
        client_addrs=each.client_addrs,
        broker_names=each.broker_names,
    )


def blamed(_: Case, found: Found) -> Found:
    """The queues that an old connection causes have the cause RECONNECTING meanwhile.

    Each connection takes the queues and gives them back within a round or two. Where some snapshots
    show them with their owner, nobody knows how it was between two of them: it is POSSIBLE.
    """
    reconnecting = [fault for fault in found.faults if fault.fault == RECONNECTING]

    def blame(finding: QueueFinding) -> QueueFinding:
        if STALE_CHANNEL not in finding.causes or not any(map(finding.overlaps, reconnecting)):
            return finding
        has_gaps = finding.extent.share_of_time < 1
        return replace(
            finding,
            causes=tuple(sorted({*finding.causes, RECONNECTING})),
            certainty=POSSIBLE if has_gaps else finding.certainty,
        )

    return replace(found, queues=tuple(map(blame, found.queues)))


def with_remedies(faults: Iterable[Fault], unsteady: Sequence[Fault]) -> tuple[Fault, ...]:
    """The faults; an old connection of a client that reconnects again and again is not left alone.

    By itself one passes (``STALE_CHANNEL_REMEDY``); what brings the next one is to be repaired,
    in every topic in which it takes a slot.
    """
    remedies = {fault.client_ids: fault.remedy for fault in unsteady if fault.fault == RECONNECTING}
    return tuple(
        replace(fault, remedy=remedies[fault.client_ids])
        if fault.fault == STALE_CHANNEL and fault.client_ids in remedies
        else fault
        for fault in faults
    )
