"""channels -> clients that connect again and again.

A connection that breaks without a word stays in the broker's list for up to 130 s, beside the new
one: its slot is nobody's. Once that passes by itself. Where it comes again and again it does not:
there is always an old connection, and always a slot without an owner. It does from 3 connections on
that were replaced on a broker, at most 30 min apart and over ``persistence_seconds`` (180 s); what
nearly all members (0.75) do within 60 s, or one after the other, counts from 5 times in a row on.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, pairwise
from math import inf
from typing import NamedTuple, TypeAlias

import numpy as np

from rebalance_core.english import MOST_NAMES, count, joined, list_of
from rebalance_core.findings import POSSIBLE
from rebalance_core.grouping import grouped
from rebalance_core.repairs import STALE_CHANNEL
from rebalance_core.texts import Text

from ...declared.dossier import Broker
from ...declared.instants import SECOND, Instant, together
from ...declared.kinds import FLAPPING, PERSISTENT, RECONNECTING
from ..observe.channels import Channel, Starts, by_broker, starts_of
from ..times import usual_gap_but_for_one
from .case import Case
from .flapping import FEWEST_LIVES, MOST_BETWEEN_LIVES, Life, per_hour, successions
from .found import FaultEpisode, GroupFindings, QueueFinding, brokers_of
from .silent import UNDER_WAY, may_be_ours, unanswered_questions

#: The fewest connections replaced on a broker: a deploy and its rollback replace two.
_FEWEST_REPLACED = 3
#: The longest time between two of them, at least two an hour: what a proxy closes once a day does
#: no harm.
_MOST_BETWEEN_CONNECTIONS = 30 * 60 * SECOND
#: The fewest times in a row that nearly all members came anew, for it to be no deploy: a bad
#: release may have three within an hour, and a restart of the broker beside them.
_FEWEST_OF_ALL = 5
#: A client heartbeats each 30 s, which finds the new broker, and polls come each minute or so.
_AT_ONCE = 60 * SECOND
_NEARLY_ALL = 0.75
#: A start time is that of the client's clock.
_CLOCKS_DIFFER = 5 * SECOND

_NETWORK = (
    "look at what is between {this_client} and {these_brokers} (load balancer, NAT, proxy, "
    "firewall: idle timeouts, connections that are reset) and for heartbeats that time out (3 s): "
    "pauses in the client's GC log, a broker that answers slowly; where many clients do so at "
    "once, at the broker itself"
)
_RESTARTS = (
    "find out why the process of {this_client} ends again and again: what its orchestrator says "
    "about restarts (liveness probe, out of memory), the end of its log; let it shut down in "
    "order, so that no old connection is left behind"
)


def reconnecting_clients(case: Case, found: GroupFindings) -> GroupFindings:
    """The faults RECONNECTING, or FLAPPING of who restarts each time, of the group.

    One fault for each client: of the topic in which its old connections cost most queues, where
    they cost none of the group's main topic. By itself an old connection passes
    (``STALE_CHANNEL_REMEDY``); of a client that reconnects or restarts again and again what brings
    the next one is to be repaired, in every topic in which it takes a slot.

    A process that restarts under the same id has a new connection each time, too. That is a member
    that comes and goes, so fast that no list shows it gone: FLAPPING.
    """
    flapping = [fault.client_ids for fault in found.faults if fault.fault == FLAPPING]
    reconnecting = list(find_reconnecting(case, set(chain.from_iterable(flapping))))
    unanswered = unanswered_questions(case.dossier.clients)
    stale = grouped((one.client_ids, one) for one in found.faults if one.fault == STALE_CHANNEL)
    several = sum(not client.is_restarting for client in reconnecting)
    faults: list[FaultEpisode] = []
    for client in reconnecting:
        fault = _fault(case, client, several, stale.get((client.client_id,), ()))
        is_ours = _follows(client, unanswered.get(client.client_id, ()))
        faults.append(may_be_ours(fault) if is_ours else fault)
    remedies = {(STALE_CHANNEL, fault.client_ids): fault.remedy for fault in faults}

    def with_remedy(fault: FaultEpisode) -> FaultEpisode:
        return replace(fault, remedy=remedies.get((fault.fault, fault.client_ids), fault.remedy))

    return found.with_faults(with_remedy).plus(faults)


#: A broker, and when it saw a client connect anew, each time after the time before.
_Row: TypeAlias = tuple[Broker, Sequence[Instant]]
#: The brokers and times at which connections were seen first.
_Connected: TypeAlias = frozenset[tuple[Broker, Instant]]


class ReconnectingClient(NamedTuple):
    """A client id whose connections were replaced again and again, the brokers taken together."""

    client_id: str
    rows: Sequence[_Row]
    #: The process was another one each time.
    is_restarting: bool


def find_reconnecting(case: Case, flapping: Collection[str]) -> Iterator[ReconnectingClient]:
    """The client ids that connect again and again; not those that leave all lists in between, which
    are in ``flapping``.

    Worked example: at 10:02, 10:04 and 10:06 a client has another port on broker-a, and each port
    stays listed for 130 s after its last heartbeat: three connections were replaced within four
    minutes. Two processes that share an id have two ports each time, and replace none; twelve that
    share one and are deployed replace twelve, but none of the new ones.

    What nearly all members of the group do at a time on a broker is a restart of the broker
    (``vm_and_broker_restarts``), or a deploy, and what they do one after the other a deploy
    (``cases/test_deploys``); a client that was in no list before it came
    anew was restarted. None of these counts. A connection of a new process, as its start time
    shows, is not a reconnection, but may be one of many restarts (``judge/test_reconnecting``).
    """
    channels, starts = case.situations.channels, starts_of(case.dossier.clients)
    if case.main_topic is None or not channels:
        return
    firsts_by_id = {
        client_id: _first_connections(own, starts.get(client_id, ()))
        for client_id, own in channels.items()
    }
    common = _connections_of_nearly_all(case)
    for client_id in sorted(channels.keys() - flapping):
        own = channels[client_id]
        away = {(one.broker, one.first_seen) for one in own if _was_away(one, own)}
        for rows in _rows(case, own, common | away):
            is_restarting = _is_often(rows) and _has_restarted(starts.get(client_id, ()), rows)
            firsts = firsts_by_id[client_id]
            most = max(sum((broker, at) not in firsts for at in times) for broker, times in rows)
            if is_restarting or most >= _FEWEST_REPLACED:
                yield ReconnectingClient(client_id, rows, is_restarting)


def _first_connections(channels: Sequence[Channel], starts: Starts) -> _Connected:
    """The first connections of processes with known start times: at which broker, and when."""
    found: set[tuple[Broker, Instant]] = set()
    for broker, broker_channels in by_broker(channels).items():
        connected = [channel.first_seen for channel in broker_channels]
        for start in {start for _, start in starts}:
            first = bisect_left(connected, start - _CLOCKS_DIFFER)
            found.update((broker, at) for at in connected[first : first + 1])
    return frozenset(found)


def _was_away(channel: Channel, channels: Iterable[Channel]) -> bool:
    """True if the client was in no list before: its broker was asked and did not list it, and no
    connection to another broker that was there then lasted on.
    """
    came = channel.first_seen
    before = [one for one in channels if one.first_seen < came]
    went = [one.ends for one in before if one.broker == channel.broker]
    return bool(went) and all(
        by is not None
        and by < came
        and all(one.last_seen < came for one in before if one.first_seen <= by)
        for by in went
    )


def _connections_of_nearly_all(case: Case) -> _Connected:
    """The brokers and times at which nearly all members came anew; not where they do so again and
    again, as with a load balancer that drops all connections, or a release that crashes.

    Members are client ids here: while the old connection of each is listed beside its new one,
    nobody knows how many processes there are.
    """
    came = grouped(
        (broker, (channel.first_seen, client_id))
        for client_id, own in case.situations.channels.items()
        for broker, connected in by_broker(own).items()
        for channel in connected[1:]
    )

    def members_at(time: Instant) -> int:
        listed = case.members_in_time
        place = bisect_right(listed, time, key=lambda members: members.first_seen)
        return len(listed[max(place - 1, 0)].client_ids)

    found: set[tuple[Broker, Instant]] = set()
    for broker, connected in came.items():
        in_time = sorted(connected)
        at_once = together(_waves(in_time, members_at), lambda time: (time, time), _AT_ONCE)
        # A wave that two polls show is one after the other, too.
        waves = together([*at_once, *_in_turn(in_time, members_at)], _ends)
        spans = [sorted(set(chain.from_iterable(wave))) for wave in waves]
        for row in together(spans, _ends, _MOST_BETWEEN_CONNECTIONS):
            if len(row) < _FEWEST_OF_ALL:
                found.update((broker, time) for time in chain.from_iterable(row))
    return frozenset(found)


def _ends(times: Sequence[Instant]) -> tuple[Instant, Instant]:
    return times[0], times[-1]


def _in_turn(
    came: Sequence[tuple[Instant, str]], members_at: Callable[[Instant], int]
) -> Iterator[list[Instant]]:
    """The times at which the members came anew one after the other, each once: of each deploy.

    However often there is one: between two of them it is quiet for longer than one takes, or than
    two of its longest turns. Clients that lose their connections each in its own rhythm have no
    such time, and those that lose them all at once take no turns.

    >>> turns = [(0, "a"), (10, "b"), (20, "c")]
    >>> deploys = [(start + turn, name) for start in (0, 50) for turn, name in turns]
    >>> list(_in_turn(deploys, lambda _: 3))
    [[0, 10, 20], [50, 60, 70]]
    >>> list(_in_turn([(10 * turn, "abc"[turn % 3]) for turn in range(9)], lambda _: 3))
    []
    """
    waves: list[dict[str, Instant]] = [{}]
    for time, client_id in came:
        if client_id in waves[-1]:
            waves.append({})
        waves[-1][client_id] = time
    times = [sorted(set(wave.values())) for wave in waves]
    quiet = [inf, *(later[0] - one[-1] for one, later in pairwise(times)), inf]
    for number, (wave, turns) in enumerate(zip(waves, times, strict=True)):
        longest = max(np.diff(turns), default=0)
        is_of_all = len(wave) >= _NEARLY_ALL * members_at(turns[-1]) if turns else False
        takes = min(turns[-1] - turns[0], 2 * longest) if turns else 0
        if is_of_all and 0 < takes < min(quiet[number : number + 2]):
            yield turns


def _waves(
    came: Sequence[tuple[Instant, str]], members_at: Callable[[Instant], int]
) -> list[Instant]:
    """The times around which most of the members came anew, ascending."""

    def is_wave(time: Instant) -> bool:
        first = bisect_left(came, (time - _AT_ONCE, ""))
        end = bisect_left(came, (time + _AT_ONCE + 1, ""))
        members = len({client_id for _, client_id in came[first:end]})
        return members > 1 and members >= _NEARLY_ALL * members_at(time)

    return list(filter(is_wave, sorted({time for time, _ in came})))


def _rows(case: Case, channels: Iterable[Channel], expected: _Connected) -> list[list[_Row]]:
    """The rows of all brokers without what is ``expected``, those that overlap in time together."""
    rows: list[_Row] = []
    at_least = case.persistence_seconds * SECOND
    for broker, broker_channels in by_broker(channels).items():
        lives = [
            Life(channel.client_addr, channel.first_seen, channel.ends and channel.last_seen)
            for channel in broker_channels
        ]
        # The first connection of all replaces none.
        first_begins = lives[0].begins
        for in_turn in successions(lives, case.expiry, _MOST_BETWEEN_CONNECTIONS):
            begins = (life.begins for life in in_turn if life.begins > first_begins)
            times = [time for time in begins if (broker, time) not in expected]
            if len(times) >= _FEWEST_REPLACED and times[-1] - times[0] >= at_least:
                rows.append((broker, times))
    return together(rows, lambda row: (row[1][0], row[1][-1]))


def _is_often(rows: Iterable[_Row]) -> bool:
    """True if it comes anew as often as one that flaps: three deploys are less often."""
    return any(
        len(times) >= FEWEST_LIVES and times[-1] - times[0] <= (len(times) - 1) * MOST_BETWEEN_LIVES
        for _, times in rows
    )


def _has_restarted(starts: Starts, rows: Sequence[_Row]) -> bool:
    """True if new connections are new processes, as the start times of its running infos say.

    Few questions meet each process that lives for a minute: what counts is the share of the
    answers, or of the connections where these are fewer, that a new process gave.
    """
    first_seen, last_seen = _ends(_times(rows))
    met = [start for moment, start in starts if first_seen <= moment <= last_seen]
    new = {start for start in met if first_seen <= start}
    return len(new) > 1 and 2 * len(new) > min(max(_times_by_broker(rows).values()), len(met))


def _times(rows: Iterable[_Row]) -> list[Instant]:
    """The times of the new connections, ascending."""
    return sorted(at for _, times in rows for at in times)


def _times_by_broker(rows: Iterable[_Row]) -> Mapping[Broker, int]:
    return Counter(broker for broker, times in rows for _ in times)


def _follows(reconnecting: ReconnectingClient, questions: Sequence[Instant]) -> bool:
    """True if most connections came anew while a question to the client may have been under way."""
    times = _times(reconnecting.rows)
    after = [at for at in times if any(at - UNDER_WAY < question <= at for question in questions)]
    return not reconnecting.is_restarting and 2 * len(after) > len(times)


def _fault(
    case: Case, reconnecting: ReconnectingClient, several: int, stale: Iterable[FaultEpisode]
) -> FaultEpisode:
    """``several``: so many clients reconnect; ``stale``: this one's STALE_CHANNEL faults."""
    client_id, rows, restarts = reconnecting
    first_seen, last_seen = _ends(_times(rows))
    connections = _times_by_broker(rows)
    # When a broker answered last.
    last_answer = max(at for run in case.dossier.polls for at in run.answered_at)
    channels_by_broker = by_broker(case.situations.channels[client_id])
    addresses = {
        channel.client_addr
        for broker in connections
        for channel in channels_by_broker[broker]
        if channel.first_seen <= last_seen and first_seen <= (channel.ends or last_answer)
    }
    # An address may have no port, and one of them may be missing.
    hosts = sorted({address.rpartition(":")[0] or address for address in addresses} - {""})
    broker_names = brokers_of(connections)
    most = max(connections.values())
    # From the first to the last there is one time less than there are connections.
    hourly = per_hour(most - 1, first_seen, last_seen)
    often = Text("{times}, {per_hour} per hour", times=count(most, "time"), per_hour=hourly)
    brokers = list_of(broker_names, MOST_NAMES)
    if restarts:
        remedy = Text(_RESTARTS, this_client=client_id)
        what = Text(
            "{client} restarted {often}: each time it has new connections to {brokers}, and a "
            "new start time in its running info",
            client=client_id,
            often=often,
            brokers=brokers,
        )
    else:
        remedy = Text(_NETWORK, this_client=client_id, these_brokers=brokers)
        what = Text(
            "{client} reconnected to {brokers} {often}, from {addresses} of {hosts}",
            client=client_id,
            brokers=brokers,
            often=often,
            addresses=count(len(addresses), "address", "addresses"),
            hosts=list_of(hosts, MOST_NAMES),
        )
    parts = [what]
    in_turn = chain.from_iterable(map(pairwise, channels_by_broker.values()))
    if any(one.first_seen < later.first_seen <= one.last_seen for one, later in in_turn):
        parts.append(Text("the broker lists the old connection for up to 130 s beside the new one"))
    if several == 2 and not restarts:
        parts.append(Text("so does 1 other client of the group"))
    elif several > 2 and not restarts:
        parts.append(Text("so do {others:,} other clients of the group", others=several - 1))
    longest = max(later - one for _, times in rows for one, later in pairwise(times))
    extent = case.extent(first_seen, last_seen, ongoing=last_answer - last_seen <= longest)
    topic, lasting = case.main_topic or "", extent._replace(persistence=PERSISTENT)
    kind = FLAPPING if restarts else RECONNECTING
    concerned = (client_id,), tuple(sorted(addresses)), broker_names
    fault = FaultEpisode(topic, lasting, kind, joined(parts), remedy, *concerned)
    costs = [one for one in stale if one.overlaps(fault)]
    if restarts or not costs:
        return fault
    worst = max(costs, key=lambda one: (one.queues_affected, one.topic == fault.topic, one.topic))
    return replace(fault, topic=worst.topic, queues_affected=worst.queues_affected)


def blamed(case: Case, found: GroupFindings) -> GroupFindings:
    """The queues that an old connection causes have the cause RECONNECTING meanwhile.

    Each connection takes the queues and gives them back within a round or two. Where some snapshots
    show them with their owner, nobody knows how it was between two of them: it is POSSIBLE. So it
    is where rounds are further apart than a broker keeps an old connection: each shows another one
    (rocketmq#2509, with rounds each 300 s).
    """
    is_coarse = usual_gap_but_for_one(np.diff(case.snapshots)) > case.expiry
    reconnecting = [fault for fault in found.faults if fault.fault == RECONNECTING]

    def blame(finding: QueueFinding) -> QueueFinding:
        if STALE_CHANNEL not in finding.causes or not any(map(finding.overlaps, reconnecting)):
            return finding
        causes = tuple(sorted({*finding.causes, RECONNECTING}))
        is_possible = is_coarse or finding.extent.share_of_time < 1
        certainty = POSSIBLE if is_possible else finding.certainty
        return replace(finding, causes=causes, certainty=certainty)

    return replace(found, queues=tuple(map(blame, found.queues)))
