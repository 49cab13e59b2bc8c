"""dossier -> what happened to the brokers: masters that were away, addresses that changed; and the
time since which none has a configuration of the group.

``deleteSubGroup`` leaves the offsets, unless it is asked to remove them
(``AdminBrokerProcessor.deleteSubscriptionGroup`` 5.3.3, ``cleanOffset``): messages wait by the
numbers, and nobody is missing. A broker that creates groups by itself
(``autoCreateSubscriptionGroup``, the default) has it again as soon as a client of it sends a
heartbeat or pulls (``SubscriptionGroupManager.findSubscriptionGroupConfig`` 4.9.4 to 5.3.3).
Another one refuses each pull (SUBSCRIPTION_GROUP_NOT_EXIST, ``PullMessageProcessor``), and 5.x
leaves such a group out of each heartbeat (``ClientManageProcessor.heartBeat`` 5.1.4 and 5.3.3, not
4.9.8): its list drops members that live.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby, pairwise
from typing import Any, NamedTuple

import numpy as np

from rebalance_core.english import MOST_NAMES, agreeing, list_of
from rebalance_core.grouping import grouped
from rebalance_core.state import MASTER_ID
from rebalance_core.texts import Text

from ...declared.dossier import Broker, Dossier, RouteRun
from ...declared.instants import SECOND, Instant
from ...schemas import NO_ANSWER
from ..times import Extent, Timed
from .answers import BRIDGED_AT_LEAST, longest_bridge
from .in_words import between, zoned_clock

#: A silence of the master is not an absence before it lasts so long ...
_LEAST_SILENCE: Instant = 60 * SECOND
#: ... and a silence that no route shows takes so many rounds: two are bad luck.
_SILENT_ROUNDS = 3
#: The time after a master left or is back for which its own offsets and those of its slave may
#: differ: clients poll the route each 30 s, and commit each 5 s.
_TWO_COPIES: Instant = 60 * SECOND


#: Times by broker.
_Times = defaultdict[str, list[Sequence[Instant]]]


#: Times and addresses of each broker.
_Addresses = defaultdict[Broker, set[tuple[Instant, str]]]


class Absence(NamedTuple):
    """A time in which a broker had no master.

    ``begins``: the first snapshot that shows it; ``last_seen``: the last one; ``ends``: the first
    with the master again, None while there is none. ``unrouted``: no route names the master;
    ``silent``: it does not answer. ``followed``: the first snapshot in which a route sent clients
    to a slave, None if none did. Without a slave (``has_slave``) there is one copy of each offset.
    """

    broker_name: str
    begins: Instant
    last_seen: Instant
    ends: Instant | None
    unrouted: bool
    silent: bool
    followed: Instant | None = None
    has_slave: bool = True

    @property
    def what(self) -> Text:
        """The absence in words, with its time."""
        if self.ends is None:
            template = "the master of {broker} has been away since {time}"
            return Text(template, broker=self.broker_name, time=zoned_clock(self.begins))
        away = between(self.begins, self.ends)
        return Text("the master of {broker} was away {time}", broker=self.broker_name, time=away)

    def is_within(self, first_seen: Any, last_seen: Any) -> Any:
        """True for polls of its time or of the minute after it; also for arrays of polls.

        Two copies of an offset are those of two brokers until clients have committed to the new
        one. What the round before saw of the master was over when it left.
        """
        return (last_seen >= self.begins) & (
            self.ends is None or first_seen <= self.ends + _TWO_COPIES
        )

    def is_blind_between(self, first_seen: Any, last_seen: Any) -> Any:
        """True for polls between which an offset may have moved unseen.

        Once a route gives the slave alone, clients read from it and commit to it
        (``RemoteBrokerOffsetStore.updateConsumeOffsetToBroker``: 4.2.0 to 4.9.2 by
        ``findBrokerAddressInAdmin``, later by ``findBrokerAddressInSubscribe``, which falls back to
        a slave), so that its copy shows what they do. While they follow, and where the route still
        names a master that does not answer, it does not.
        """
        shows = self.followed is not None and first_seen >= self.followed + _TWO_COPIES
        shows &= self.ends is None or last_seen < self.ends
        return self.is_within(first_seen, last_seen) & self.has_slave & ~np.asarray(shows)

    def explains(self, time: Timed, snapshots: Sequence[Instant]) -> bool:
        """True if the absence explains why queues of the broker did not move in a time: the master
        left before the second snapshot of that time, and was away in it.
        """
        second = snapshots[min(bisect_right(snapshots, time.first_seen), len(snapshots) - 1)]
        return self.begins <= second and (self.ends is None or self.ends > time.first_seen)


class AddressChange(NamedTuple):
    """The broker is asked at another address from ``begins`` on.

    ``is_switch``: one of them is, or was, that of a slave: another server is the master.
    """

    broker: Broker
    begins: Instant
    before: str
    now: str
    is_switch: bool = False


def refusals(dossier: Dossier, time: Extent) -> dict[str, Sequence[Instant]]:
    """The brokers that refused every pull of the group in that time, by name: in which snapshots,
    ascending, ``consumeEnable`` was false for it (NO_PERMISSION, ``PullMessageProcessor`` 4.9.4).

    Worked example: rounds each 60 s, and the flag is false from 10:00:30 to 10:02:30. It is read as
    false at 10:01:00 and 10:02:00: the refusal is from the one to the other.
    """
    flags = sorted(dossier.consume_disabled.items())
    return {name: found for name, read_at in flags if (found := time.those_of(read_at))}


def masters_away(dossier: Dossier) -> Iterator[Absence]:
    """The times in which a broker of the group had no master, by broker and in time.

    A master is away in a snapshot in which it does not answer, or in which it is not asked and no
    nameserver's route names it, or in which a slave acts for it. When one left that is away all the
    time nobody knows; of one round alone it is said all the same, for it has no other time. One
    that the route lacked before it came was not away (``judge/test_events``).

    Worked example: rounds each 15 s. At 15:26:47 and 15:27:02 the master does not answer, and from
    15:27:02 on the route has the slave alone; at 15:32:17 it answers again. It left at 15:26:47 and
    was back at 15:32:17.
    """
    answered, silent, with_master, without = (_Times(list) for _ in range(4))
    slaves = {run.broker[0] for run in dossier.polls if run.broker[1]}
    for run in dossier.polls:
        name, broker_id = run.broker
        if not broker_id:
            (silent if run.answer == NO_ANSWER else answered)[name].append(run.times)
    for routes in dossier.routes.values():
        _add_masters(routes, with_master, without)
        brokers = chain.from_iterable(run.brokers for run in routes)
        slaves |= {broker.broker_name for broker in brokers if any(broker.broker_ids or ())}
    gone = silent.keys() | without.keys() | dossier.acting.keys()
    for name in sorted(topics_by_broker(dossier).keys() & gone):
        answers, silences, named, unnamed = (
            frozenset(chain.from_iterable(times_of.get(name, ())))
            for times_of in (answered, silent, with_master, without)
        )
        acts = frozenset(dossier.acting.get(name, ()))
        slave_serves = acts | (unnamed - named)
        absent, answers = silences | slave_serves, answers - acts
        every = sorted(answers | absent | named)
        runs = [(away, [*times]) for away, times in groupby(every, (absent - answers).__contains__)]
        for number, (away, times) in enumerate(runs):
            unrouted = not (acts | unnamed).isdisjoint(times)
            lasts = len(times) >= _SILENT_ROUNDS and times[-1] - times[0] >= _LEAST_SILENCE
            is_seen = len(runs) > 1 or len(times) == 1
            if away and is_seen and (unrouted or lasts):
                ends = runs[number + 1][1][0] if number + 1 < len(runs) else None
                is_silent = not silences.isdisjoint(times)
                followed = min(slave_serves.intersection(times), default=None)
                seen = times[0], times[-1], ends, unrouted, is_silent
                yield Absence(name, *seen, followed, has_slave=name in slaves)


def _add_masters(routes: Sequence[RouteRun], with_master: _Times, without: _Times) -> None:
    """Adds when a topic's routes named each broker's master, and when they lacked it."""
    first_seen: dict[tuple[str, str], Instant] = {}
    for run in routes:
        for broker in run.brokers:
            key = run.namesrv_addr, broker.broker_name
            first_seen[key] = min(run.times[0], first_seen.get(key, run.times[0]))
    for run in routes:
        ids = {broker.broker_name: broker.broker_ids for broker in run.brokers}
        for (addr, name), earliest in first_seen.items():
            if addr == run.namesrv_addr:
                named = name in ids and (ids[name] is None or 0 in (ids[name] or ()))
                # Before it came it was not away.
                times = (
                    run.times if name in ids else [time for time in run.times if time > earliest]
                )
                (with_master if named else without)[name].append(times)


def address_changes(dossier: Dossier) -> Iterator[AddressChange]:
    """Each time that a broker of the group was asked at another address from then on; where it was
    not asked at any, that routes gave another one.

    Addresses that are asked by turns are those of two collectors, or of several brokers of one
    name, and no change; but a master that changes places with a slave may change back. A slave
    that becomes the master, or the other way round, has changed its id and not its address
    (``cases/test_who_a_broker_is``).
    """
    topics, shared = topics_by_broker(dossier), {namesake.broker for namesake in dossier.namesakes}
    routes = [*chain.from_iterable(dossier.routes.values())]
    known = {(run.broker, run.broker_addr) for run in dossier.polls if run.broker_addr}
    known |= {(broker, addr) for run in routes for broker, addr, _ in run.addresses if addr}
    ids = grouped(((broker[0], addr), broker[1]) for broker, addr in known)
    several = {broker for broker, addrs in grouped(known).items() if len(addrs) > 1}
    asked: _Addresses = defaultdict(set)
    for run in (poll for poll in dossier.polls if poll.broker in several and poll.broker_addr):
        acting = () if run.broker[1] else dossier.acting.get(run.broker[0], ())
        times = (time for time in run.times if time not in acting)
        asked[run.broker].update((time, str(run.broker_addr)) for time in times)
    routed: _Addresses = defaultdict(set)
    for given in routes:
        for broker, addr, may_act in given.addresses:
            if addr and not may_act and broker in several:
                routed[broker].update((time, addr) for time in given.times)
    for broker, seen in sorted((routed | asked).items()):
        if broker in shared or broker[0] not in topics:
            continue
        times_by_addr = grouped((addr, time) for time, addr in seen)
        for (_, before), (begins, now) in pairwise(sorted(seen)):
            is_switch = any(len(ids[broker[0], addr]) > 1 for addr in (before, now))
            is_other = max(times_by_addr[before]) < min(times_by_addr[now])
            if before != now and (broker[1] == MASTER_ID if is_switch else is_other):
                yield AddressChange(broker, begins, before, now, is_switch)


def topics_by_broker(dossier: Dossier) -> Mapping[str, set[str]]:
    """The group's topics on each broker: what happens to another broker does not touch the group.
    A mock broker is none.

    Without any route the brokers that were asked.
    """
    found: dict[str, set[str]] = defaultdict(set)
    for topic, routes in dossier.routes.items():
        for run in routes:
            for broker in run.brokers:
                if not broker.is_mock:
                    found[broker.broker_name].add(topic)
    return found or {run.broker[0]: set() for run in dossier.polls}


class BrokerChange(NamedTuple):
    """A change of a broker, in words; and whether a slave serves it since, or is its master."""

    what: Text
    is_of_slave: bool = False


def last_change(
    dossier: Dossier,
    absences: Iterable[Absence],
    broker_name: str,
    first_seen: Instant,
    last_seen: Instant,
) -> BrokerChange | None:
    """The last change of the broker between two polls, as far as anything shows it."""
    every = (change for change in address_changes(dossier) if change.broker == (broker_name, 0))
    moved = [change for change in every if first_seen < change.begins <= last_seen]
    if moved:
        change = moved[-1]
        what = Text(
            "the master of {broker} changed at {time}, from {before} to {now}",
            broker=broker_name,
            time=zoned_clock(change.begins),
            before=change.before,
            now=change.now,
        )
        return BrokerChange(what, is_of_slave=True)
    begun = (one for one in absences if one.broker_name == broker_name and one.begins <= last_seen)
    away = [absence for absence in begun if absence.ends is None or absence.ends > first_seen]
    if away:
        last = away[-1]
        serves = last.followed is not None and (last.ends is None or last.ends > last_seen)
        return BrokerChange(last.what, is_of_slave=serves)
    polls = (run for run in dossier.polls if run[:2] == ((broker_name, 0), NO_ANSWER))
    silent = [time for run in polls for time in run.times if first_seen <= time <= last_seen]
    if not silent:
        return None
    time = zoned_clock(min(silent))
    return BrokerChange(Text("{broker} did not answer at {time}", broker=broker_name, time=time))


# ---------------------------------------------------------------- configurations of the group


class NoConfig(NamedTuple):
    """The time since which brokers have no configuration of a group.

    ``begins``: the first round from which on none of them had one. ``last_seen``: the last round in
    which one of them had one; None: none ever had. ``unknown``: the other brokers of the group,
    which did not say, or do not answer any more. ``has_members``: the group had members when it
    was deleted, or after it.
    """

    begins: Instant
    last_seen: Instant | None
    broker_names: Collection[str]
    unknown: Collection[str]
    has_members: bool

    @property
    def is_left_over(self) -> bool:
        """True if the group was deleted everywhere, and nobody consumed for it."""
        return not self.unknown and not self.has_members

    @property
    def what(self) -> Text:
        """The answers of the brokers, in words."""
        values = {
            "brokers": list_of(sorted(self.broker_names), MOST_NAMES),
            "since": zoned_clock(self.begins),
        }
        template = (
            "{brokers} [has|have] no subscription group of this name, and had none since {since}"
        )
        if self.last_seen is not None:
            values["until"] = zoned_clock(self.last_seen)
            template = (
                "{brokers} [has|have] no subscription group of this name since {since}, and had it "
                "until {until}: it was deleted"
            )
        what = agreeing(len(self.broker_names), template, **values)
        if not self.unknown:
            return what
        unknown = list_of(sorted(self.unknown), MOST_NAMES)
        return Text("{what}; of {unknown} it is not known", what=what, unknown=unknown)


def no_config(dossier: Dossier) -> NoConfig | None:
    """The time since which no broker has a configuration of the group, as their last answers say;
    None: one has, or none was asked.

    A broker that answers no more says nothing; one that no route gives any more, either, is gone
    (rocketmq#5400; ``cases/test_deleted``).

    Worked example: broker-a has it up to 10:02 and not at 10:03, broker-b up to 10:03 and not at
    10:04. It was deleted at 10:04.
    """
    rounds = np.unique([time for answers in dossier.configured.values() for time in answers])
    if not rounds.size:
        return None
    present = rounds[-1] - max(BRIDGED_AT_LEAST, longest_bridge(rounds))
    said = {name: of for name, of in dossier.configured.items() if max(of) >= present}
    if any(answers[max(answers)] for answers in said.values()):
        return None
    had = [time for answers in said.values() for time, has in answers.items() if has]
    lacked = [
        min(time for time in answers if time > max((t for t in answers if answers[t]), default=-1))
        for answers in said.values()
    ]
    begins, last_seen, last = max(lacked), max(had, default=None), dossier.last_listed
    # Members that a broker lists no more are gone at once where they stopped. Of rounds that are
    # further apart than it keeps a silent one nobody knows.
    is_seen = last_seen is None or begins - last_seen <= BRIDGED_AT_LEAST
    has_members = last is not None and last.time >= (begins if is_seen else last_seen or begins)
    polled = {run.broker[0] for run in dossier.polls if run.answer != NO_ANSWER}
    stored = {offsets.broker_name for queues in dossier.offsets.values() for offsets in queues}
    # Brokers of other groups never had it.
    names = [name for name, answers in said.items() if any(answers.values())] or said.keys()
    routes = [run for runs in dossier.routes.values() for run in runs]
    routed = {b.broker_name for run in routes if run.times[-1] >= present for b in run.brokers}
    gone = dossier.configured.keys() - routed if routes else set()
    return NoConfig(begins, last_seen, names, (polled | stored) - said.keys() - gone, has_members)
