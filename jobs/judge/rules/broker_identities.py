"""dossier -> the same with each broker as who it is: a broker is its cluster, name and address.

Two things give one name and id to several servers. A slave that acts for its master is given as id
0, and the master is away all the same. And two brokers of one name, as of two clusters behind one
nameserver, register in turn, and each takes the place of the other
(``RouteInfoManager.registerBroker`` 4.9.4 to 5.3.3 replaces the address of the id, each 30 s). Both
were seen on 5.3.3 (field book: "A name or an address with two meanings").
Clients of either read all the same; each has its own members and offsets. Routes show it where each
address came twice after the other, polls from three times on: a failover may be taken back.
"""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence, Set
from dataclasses import replace
from itertools import chain, groupby, pairwise
from operator import attrgetter, itemgetter
from typing import NamedTuple

import numpy as np

from rebalance_core.english import count, joined, list_of, named_broker
from rebalance_core.grouping import grouped
from rebalance_core.message_queue import is_retry_topic
from rebalance_core.state import MASTER_ID
from rebalance_core.texts import Text

from ...config.terms import ClustersOfName
from ...declared.dossier import (
    AddressSeen,
    Broker,
    Dossier,
    Namesakes,
    PollRun,
    QueueOffsets,
    RouteRun,
)
from ...declared.instants import SECOND, Instant
from ...declared.kinds import DUPLICATE_BROKER_NAME
from ...schemas import ANSWERED, NO_ANSWER, NOT_ONLINE
from ..observe.answers import BRIDGED_AT_LEAST, longest_bridge
from ..observe.brokers import topics_by_broker
from ..observe.in_words import zoned_clock
from ..times import Extent, persistence, usual_gap
from .case import Case
from .found import FaultEpisode, GroupFindings

#: An address that a route gave so many times comes in turn with another such; one comes back after
#: a failover that was taken back, too ...
_TURNS = 2
#: ... and twice where it was taken back twice: a route then shows the slave under its own id, and
#: of polls of id 0 alone nothing does.
_TURNS_ASKED = 3
#: A nameserver takes a broker out of a cluster when it leaves, and one that is silent after 120 s,
#: by a search each 5 or 10 s (``RouteInfoManager.scanNotActiveBroker`` 4.9.4 to 5.3.3).
_FORGOTTEN_AFTER: Instant = 130 * SECOND

_EACH_ITS_OWN = Text(
    "each of them has its own members, messages and offsets: what one of them lacks is not missing"
)
#: ``unRegisterBroker`` 5.3.3 takes the name out of the cluster that the last broker of it names.
_OR_MOVED = Text(
    "or one broker changed its cluster while others of its name ran: then a nameserver has its old "
    "cluster until it is restarted"
)
_REMEDY = Text(
    "give one of these brokers another name (brokerName in its configuration) and restart it: "
    "its messages and the offsets of its groups stay. Brokers that share a nameserver need "
    "different names, in different clusters too"
)


class _Seen(NamedTuple):
    """A server gave, or was asked at, an address: when, in which round, and its answer."""

    at: Instant
    round_: Instant
    addr: str
    answer: str | None = None


def by_identity(dossier: Dossier) -> Dossier:
    """The dossier by who each broker is: the very same where each name and id is one server."""
    return _without_namesakes(_with_acting(dossier))


# ---------------------------------------------------------------- slaves that act


def _with_acting(dossier: Dossier) -> Dossier:
    """The dossier with the times in which a slave acted for its master; then its list is that of id
    0, as clients see it.

    It acts where the last route has it as id 0 and lets nobody write (``RoutedAddress.may_act``). A
    master whose topic nobody may write looks the same, and has no other id
    (``cases/test_who_a_broker_is``).
    """
    runs = [*chain.from_iterable(dossier.routes.values())]
    if not any(address.may_act for run in runs for address in run.addresses):
        return dossier
    routed = [(time, address) for run in runs for address in run.addresses for time in run.times]
    slaves = {(name, addr) for (name, broker_id), addr in _addresses(dossier) if broker_id}
    routed_by_name = grouped(
        (address.broker[0], (time, address.addr if address.may_act else ""))
        for time, address in routed
        if address.broker[1] == MASTER_ID
    )
    in_time = {name: sorted(times) for name, times in routed_by_name.items()}
    acting: dict[str, set[Instant]] = defaultdict(set)

    def as_clients_see(run: PollRun, time: Instant) -> Broker:
        name, addr = run.broker[0], run.broker_addr or ""
        routes = in_time.get(name, ())
        place = bisect_right(routes, time, key=itemgetter(0)) - 1
        if place < 0 or (name, addr) not in slaves or routes[place][1] != addr:
            return run.broker
        acting[name].add(time)
        return name, MASTER_ID

    polls = []
    for run in dossier.polls:
        seen = grouped((as_clients_see(run, time), time) for time in run.times)
        polls += [_part(run, times)._replace(broker=broker) for broker, times in seen.items()]
    return replace(dossier, polls=polls, acting=acting)


def _addresses(dossier: Dossier) -> set[tuple[Broker, str]]:
    """The addresses of each broker name and id, of routes and of those that were asked."""
    routes = chain.from_iterable(dossier.routes.values())
    given = {(address.broker, address.addr) for run in routes for address in run.addresses}
    return given | {(run.broker, run.broker_addr or "") for run in dossier.polls}


def _part(run: PollRun, times: Collection[Instant]) -> PollRun:
    """The run with some of its snapshots."""
    polls = zip(run.times, run.answered_at, strict=True)
    snapshots, answered_at = zip(*(poll for poll in polls if poll[0] in times), strict=True)
    return run._replace(times=snapshots, answered_at=answered_at)


# ---------------------------------------------------------------- several brokers of one name


def _without_namesakes(dossier: Dossier) -> Dossier:
    """The dossier in which no list of one broker counts against that of another of its name.

    Of both the last list counts that has all members of the other. Where neither has, or that of
    one is not known, nobody knows who the members are: an answer without content. Offsets are those
    of the one whose lists count most often. A group that one has is on the name
    (``cases/test_who_a_broker_is``; of the group ``cases/test_deleted``).
    """
    found = find_namesakes(dossier)
    if not found:
        return dossier
    shared = {namesakes.broker for namesakes in found}
    polls = [run for run in dossier.polls if run.broker not in shared]
    offsets, configured = dict(dossier.offsets), dict(dossier.configured)
    for namesakes in found:
        name, asked = namesakes.broker[0], _addressed(dossier, namesakes)
        counting = _that_count(dossier, namesakes, _asked(asked))
        polls += counting
        for topic, queues in offsets.items():
            offsets[topic] = [_without_others(name, asked, counting, queue) for queue in queues]
        if said := configured.get(name):
            configured[name] = {time: True for time, has in said.items() if has} or said
    return replace(dossier, polls=polls, offsets=offsets, configured=configured, namesakes=found)


def _addressed(dossier: Dossier, names: Namesakes) -> list[PollRun]:
    """The polls of brokers of one name; where their address was not collected, at the one that
    routes gave last.
    """
    given = sorted(
        (round_, address.addr) for address in names.addresses for round_ in address.rounds
    )
    rounds = [round_ for round_, _ in given]

    def addr_at(round_: Instant) -> str:
        return given[max(bisect_right(rounds, round_) - 1, 0)][1]

    found = []
    for run in (poll for poll in dossier.polls if poll.broker == names.broker):
        at = grouped((run.broker_addr or addr_at(round_), round_) for round_ in run.times)
        found += [_part(run, times)._replace(broker_addr=addr) for addr, times in at.items()]
    return found


def find_namesakes(dossier: Dossier) -> list[Namesakes]:
    """The names and ids that several servers have, with the addresses that come in turn.

    Two addresses that each come back after the other, in the routes of one nameserver; or that are
    asked in turn, once more, and mostly answer otherwise: two collectors that ask one broker at two
    addresses get the same list. No address is one that the name has under another id as well: a
    master and its slave change places in a failover, and may change back
    (``cases/test_who_a_broker_is`` has each of these).

    Worked example: the route has 10.0.0.1 as broker-a, then 10.0.0.2, then each of them again.
    """
    sequences: dict[Broker, list[tuple[int, list[_Seen]]]] = defaultdict(list)
    polls = [run for run in dossier.polls if run.broker_addr]
    overlapping = _overlapping((run.broker, run.broker_addr, run.times) for run in polls)
    for broker, runs in grouped((run.broker, run) for run in polls).items():
        if broker in overlapping and _mostly_differ(asked := _asked(runs)):
            sequences[broker].append((_TURNS_ASKED, asked))
    routes = [run for run in chain.from_iterable(dossier.routes.values()) if run.addresses]
    for route_runs in grouped((run.namesrv_addr, run) for run in routes).values():
        overlapping = _overlapping(
            (address.broker, address.addr, run.times)
            for run in route_runs
            for address in run.addresses
        )
        for broker, given in grouped(_given(route_runs, overlapping)).items():
            sequences[broker].append((_TURNS, sorted(given)))
    addrs, found = _addresses(dossier), []
    for broker, own_sequences in sorted(sequences.items()):
        others = {addr for (name, id_), addr in addrs if name == broker[0] and id_ != broker[1]}
        rounds: dict[str, set[Instant]] = defaultdict(set)
        for turns, sequence in own_sequences:
            in_turn = _in_turn(sequence, turns) - others
            for seen in sequence if len(in_turn) > 1 else ():
                if seen.addr in in_turn:
                    rounds[seen.addr].add(seen.round_)
        if rounds:
            addresses = [AddressSeen(addr, sorted(times)) for addr, times in rounds.items()]
            addresses.sort(key=lambda address: (address.rounds[0], address.addr))
            found.append(Namesakes(broker, tuple(addresses)))
    return found


def _overlapping(
    seen: Iterable[tuple[Broker, str | None, Sequence[Instant]]],
) -> set[Broker]:
    """The brokers of which one address came before another one was over: nearly none, and the
    rounds are many.
    """
    times: dict[Broker, dict[str | None, tuple[Instant, Instant]]] = defaultdict(dict)
    for broker, addr, rounds in seen:
        first_seen, last_seen = times[broker].get(addr, (rounds[0], rounds[-1]))
        times[broker][addr] = min(first_seen, rounds[0]), max(last_seen, rounds[-1])
    return {
        broker
        for broker, by_addr in times.items()
        if any(
            after <= last_seen for (_, last_seen), (after, _) in pairwise(sorted(by_addr.values()))
        )
    }


def _asked(runs: Iterable[PollRun]) -> list[_Seen]:
    """The polls of a broker whose address is known, as they were answered."""
    return sorted(
        _Seen(at, round_, run.broker_addr, run.answer)
        for run in runs
        if run.broker_addr
        for round_, at in zip(run.times, run.answered_at, strict=True)
    )


def _given(runs: Iterable[RouteRun], brokers: Set[Broker]) -> Iterator[tuple[Broker, _Seen]]:
    for run in runs:
        for broker, addr, _ in (address for address in run.addresses if address.broker in brokers):
            for round_, at in zip(run.times, run.answered_at, strict=True):
                yield broker, _Seen(at, round_, addr)


def _in_turn(seen: Iterable[_Seen], turns: int) -> set[str]:
    """The addresses that come so many times, each time after another one."""
    came = Counter(addr for addr, _ in groupby(seen, key=attrgetter("addr")))
    return {addr for addr, times in came.items() if addr and times >= turns}


def _mostly_differ(asked: Sequence[_Seen]) -> bool:
    """True if at least half of the times at which the address changes the answer changes, too."""
    changes = [(one, later) for one, later in pairwise(asked) if one.addr != later.addr]
    return 2 * sum(one.answer != later.answer for one, later in changes) >= len(changes) > 0


def _that_count(dossier: Dossier, names: Namesakes, asked: Sequence[_Seen]) -> list[PollRun]:
    """The answers that count of the brokers of one name, by round."""
    rounds = np.unique([seen.round_ for seen in asked])
    longest = max(BRIDGED_AT_LEAST, longest_bridge(rounds))
    last: dict[str, _Seen] = {}
    counting: dict[Instant, tuple[str, Instant, str]] = {}
    for seen in asked:
        if seen.answer not in (ANSWERED, NO_ANSWER):
            last[seen.addr] = seen
        recent = [one for one in last.values() if seen.at - one.at <= longest]
        one = _with_all_members(dossier, recent) if recent else seen
        is_known = len(recent) == len(names.addresses) or (one and one.answer != NOT_ONLINE)
        answer = one.answer if one and is_known else ANSWERED
        counting[seen.round_] = (one.addr if one else seen.addr, seen.at, answer or ANSWERED)
    return [
        PollRun(names.broker, answer, (round_,), (at,), addr)
        for round_, (addr, at, answer) in sorted(counting.items())
    ]


def _with_all_members(dossier: Dossier, seen: Sequence[_Seen]) -> _Seen | None:
    """The answer that has all members of the others; None: none has."""

    def members(answer: _Seen) -> frozenset[str]:
        listed = dossier.list_members.get(answer.answer or "")
        return frozenset(listed().client_ids) if listed else frozenset()

    most = max(seen, key=lambda answer: (len(members(answer)), answer.at))
    return most if all(members(answer) <= members(most) for answer in seen) else None


def _without_others(
    name: str, asked: Iterable[PollRun], counting: Iterable[PollRun], offsets: QueueOffsets
) -> QueueOffsets:
    """The offsets of a queue without the polls at another address than the one that counts."""
    if offsets.broker_name != name:
        return offsets
    rounds = grouped((run.broker_addr, len(run.times)) for run in counting)
    main = max(rounds, key=lambda addr: (sum(rounds[addr]), addr or ""))
    others = [time for run in asked if run.broker_addr != main for time in run.times]
    kept = ~np.isin(offsets.times, others)
    columns = [column[kept] if len(column) else column for column in offsets[3:]]
    return QueueOffsets(*offsets[:3], *columns)


# ---------------------------------------------------------------- the fault


def duplicate_broker_names(case: Case, found: GroupFindings) -> GroupFindings:
    """One fault for each name that several brokers have, with the first topic that is on it.

    The addresses show it that come in turn, or a nameserver that has the name in two clusters: of
    a broker that moved it has the old one until its connection there is over, and not for long
    (``cases/test_who_a_broker_is``).
    """
    dossier, faults = case.dossier, list[FaultEpisode]()
    topics_of = topics_by_broker(dossier)
    by_name = {namesakes.broker[0]: namesakes for namesakes in dossier.namesakes}
    several = case.terms.clusters_of_names.items()
    shared = {name: given for (in_, name), given in several if in_ == dossier.cluster}
    for name in sorted(by_name.keys() | shared.keys()):
        topics = topics_of.get(name, set()) & case.situations.by_topic.keys()
        names, clusters = by_name.get(name), shared.get(name)
        extent = _time_of_turns(case, names) if names else clusters and _time_shared(case, clusters)
        if topics and extent:
            topic = min(topics, key=lambda topic: (is_retry_topic(topic), topic))
            said = _said_of(case, name, names, clusters)
            evidence = joined([*said, _EACH_ITS_OWN, *([] if names else [_OR_MOVED])])
            fault = FaultEpisode(topic, extent, DUPLICATE_BROKER_NAME, evidence, _REMEDY)
            faults.append(replace(fault, broker_names=(name,)))
    return found.plus(faults)


def _time_of_turns(case: Case, names: Namesakes) -> Extent:
    """The time from the second address until one alone was seen."""
    first_seen = sorted(address.rounds[0] for address in names.addresses)[1]
    last_seen = sorted(address.rounds[-1] for address in names.addresses)[-2]
    rarest = max(int(np.diff(address.rounds).max()) for address in names.addresses)
    return _extent(case, first_seen, last_seen, rarest, case.persistence_seconds)


def _time_shared(case: Case, shared: ClustersOfName) -> Extent | None:
    """The first to the last round in which a nameserver has the name in several clusters;
    None: it was over when a broker that moved is, or was in no round of the group.
    """
    times = [
        snapshot for snapshot in case.snapshots if shared.first_seen <= snapshot <= shared.last_seen
    ]
    if not times:
        return None
    apart = usual_gap(np.diff(case.snapshots))
    extent = _extent(case, times[0], times[-1], apart, _FORGOTTEN_AFTER // SECOND)
    return extent if extent.lasts or extent.ongoing else None


def _extent(
    case: Case, first_seen: Instant, last_seen: Instant, apart: Instant, least_seconds: int
) -> Extent:
    """``apart``: so far apart are rounds that show it."""
    ongoing = case.snapshots[-1] - last_seen <= 2 * apart
    seen = sum(first_seen <= snapshot <= last_seen for snapshot in case.snapshots)
    return Extent(
        first_seen, last_seen, seen, persistence(first_seen, last_seen, least_seconds), ongoing
    )


def _said_of(
    case: Case, name: str, names: Namesakes | None, shared: ClustersOfName | None
) -> Iterator[Text]:
    if names:
        yield Text(
            "{number} brokers have the name {broker}, and each that registers with a nameserver "
            "takes the place of the other: {addresses}",
            number=len(names.addresses),
            broker=named_broker(*names.broker),
            addresses=list_of(map(_in_words, names.addresses)),
        )
    if not shared:
        return
    clusters = list_of(shared.clusters)
    if names:
        yield Text("the nameservers have the name in the clusters {clusters}", clusters=clusters)
        return
    yield Text(
        "the nameservers have {broker} in the clusters {clusters}: several brokers have this name, "
        "and each that registers takes the place of the other",
        broker=name,
        clusters=clusters,
    )
    runs = chain.from_iterable(case.dossier.routes.values())
    given = chain.from_iterable(run.addresses for run in runs)
    masters = {address.addr for address in given if address.broker == (name, MASTER_ID)} - {""}
    met = list_of(sorted(masters))
    if len(masters) == 1:
        yield Text("all rounds met {address}; where the other one is, none shows", address=met)
    elif masters:
        yield Text("rounds met {addresses}", addresses=met)


def _in_words(address: AddressSeen) -> Text:
    return Text(
        "{addr} ({rounds}, from {since} to {until})",
        addr=address.addr,
        rounds=count(len(address.rounds), "round"),
        since=zoned_clock(address.rounds[0]),
        until=zoned_clock(address.rounds[-1]),
    )
