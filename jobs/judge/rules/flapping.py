"""reassignments -> members that come and go again and again.

Each time a member joins or leaves, all members divide the queues anew: some are read twice for a
moment, some by nobody, and all that was fetched and not consumed is fetched again.

A deploy replaces every process once, however many there are; a rollback does it twice. A process
that crashes and is started again, or a connection that breaks and is made again, is replaced by one
that is replaced as well. So the longest row of lives that follow one another distinguishes the two,
where the number of those that came does not. From 4 lives on, each begun within 15 min after the
one before, it flaps; 5 releases in a row in which nearly all (0.8) are replaced are none.
"""

from collections.abc import Collection, Iterable, Sequence
from itertools import chain, pairwise
from math import inf
from typing import NamedTuple

import numpy as np

from rebalance_core.client_id import parse_client_id
from rebalance_core.english import MOST_NAMES, count, list_of
from rebalance_core.grouping import grouped
from rebalance_core.texts import Text

from ...declared.instants import SECOND, Instant, together
from ...declared.kinds import FLAPPING, PERSISTENT
from ..observe.timeline import Reassignment
from ..times import Extent, persistence, usual_gap_but_for_one
from .case import Case
from .found import FaultEpisode, GroupFindings

#: The fewest lives that follow one another; a deploy and its rollback are two.
FEWEST_LIVES = 4
#: The longest time between two of them: at least four an hour.
MOST_BETWEEN_LIVES = 15 * 60 * SECOND
_HOUR = 3600 * SECOND
#: A release may leave a few members as they are.
_NEARLY_ALL = 0.8
#: The fewest releases in a row for processes that keep their hosts to be none: all of them crash.
_FEWEST_RELEASES = 5

_REMEDY = (
    "find out why {these_processes} end: what their orchestrator says about restarts (liveness "
    "probe, out of memory, eviction), an autoscaler that goes back and forth, or heartbeats that "
    "do not get through; until then raise the probe's timeout or fix the number of processes"
)
#: Whoever comes and goes, where each process has a host of its own.
_OF_SEVERAL_HOSTS = Text("processes of several hosts")


class Life(NamedTuple):
    """The time for which something was there; ``ends`` None: it is there still."""

    name: str
    begins: Instant
    ends: Instant | None


def successions(lives: Iterable[Life], overlap: Instant, most_apart: Instant) -> list[list[Life]]:
    """The rows of lives that follow one another, the longest that there are.

    A life follows another that began before it and ended by its start; an end counts ``overlap``
    earlier, for what breaks without a word stays listed for so long. Each begins at most
    ``most_apart`` after the one before it: else a new row begins.

    >>> restarts = [Life("a", n, n + 2) for n in range(4)]
    >>> [len(row) for row in successions(restarts, overlap=1, most_apart=5)]
    [4]
    >>> old = [Life("old", 0, n) for n in range(1, 5)]
    >>> new = [Life("new", n, None) for n in range(1, 5)]
    >>> [len(row) for row in successions([*old, *new], overlap=1, most_apart=5)]
    [2]
    """
    rows: list[list[Life]] = []
    last_ends = -inf
    in_order = sorted(
        (inf if life.ends is None else max(life.begins, life.ends - overlap), life)
        for life in lives
    )
    for ends, life in in_order:
        if rows and (life.begins < last_ends or life.begins <= rows[-1][-1].begins):
            continue
        if not rows or life.begins - rows[-1][-1].begins > most_apart:
            rows.append([])
        rows[-1].append(life)
        last_ends = ends
    return rows


class _Flapper(NamedTuple):
    """A client that comes and goes, in words, with the lives of all its client ids at that time."""

    who: str
    row: Sequence[Life]
    lives: Sequence[Life]


def flapping_members(case: Case, found: GroupFindings) -> GroupFindings:
    """The one fault of a group whose members come and go again and again, or none.

    Members are counted by the host in their client ids, for most ids are new with each process;
    where the hosts are new as well (a pod for each), over the whole group. A release is left out,
    in which nearly all of the group's members are replaced, each once (``judge/test_flapping``).

    Worked example: a process of 10.0.0.7 crashes every four minutes, and each time joins with
    another id: ten ids that follow one another. A deploy of twenty pods has twenty new ids, none of
    which leaves again.
    """
    if case.main_topic is None:
        return found
    lives = _lives(case.reassignments[case.main_topic])
    releases = _releases(case, case.main_topic)
    rows = together(releases, _ends, MOST_BETWEEN_LIVES)
    few = (row for row in rows if len(row) < _FEWEST_RELEASES)
    own_lives = _without(chain.from_iterable(few), lives)
    hosts = grouped((parse_client_id(life.name).address or life.name, life) for life in own_lives)
    flappers: list[_Flapper] = []
    for host, host_lives in hosts.items():
        (first, *others) = sorted({life.name for life in host_lives})
        flappers += _flappers(case, host if others else first, host_lives)
    if not flappers:
        flappers = _flappers(case, _OF_SEVERAL_HOSTS, _without(releases, lives))
    return found.plus([_fault(case, case.main_topic, flappers)] if flappers else ())


def _lives(reassignments: Iterable[Reassignment]) -> list[Life]:
    """The lives of the client ids that joined: what was there from the beginning joined nobody."""
    joined: dict[str, Instant] = {}
    lives: list[Life] = []
    for row in reassignments:
        joined |= dict.fromkeys(row.clients_joined, row.changed_at)
        for client_id in row.clients_left:
            if client_id in joined:
                lives.append(Life(client_id, joined.pop(client_id), row.changed_at))
    return lives + [Life(client_id, begins, None) for client_id, begins in joined.items()]


def _releases(case: Case, topic: str) -> list[list[Reassignment]]:
    """The changes of each release of the whole group.

    They follow each other within a round, or within the time after which a process that stopped
    without a word is gone. Each member comes once in it and stays, and those that came are nearly
    all members at its end.
    """
    changes, members_at = case.reassignments[topic], case.timelines[topic].members_at
    apart = max(case.expiry, usual_gap_but_for_one(np.diff(case.snapshots)))
    waves = together(changes, lambda change: (change.changed_at, change.changed_at), apart)
    return [
        wave
        for wave in waves
        if any(row.clients_left for row in wave)
        and len(_came_to_stay(wave)) >= max(2, _NEARLY_ALL * members_at(wave[-1].changed_at))
    ]


def _came_to_stay(wave: Iterable[Reassignment]) -> set[str]:
    """The client ids that joined in the wave; none where one of them left again in it."""
    joined: set[str] = set()
    for row in wave:
        if not joined.isdisjoint([*row.clients_left, *row.clients_joined]):
            return set()
        joined |= {*row.clients_joined}
    return joined


def _ends(wave: Sequence[Reassignment]) -> tuple[Instant, Instant]:
    return wave[0].changed_at, wave[-1].changed_at


def _without(releases: Iterable[Sequence[Reassignment]], lives: Iterable[Life]) -> list[Life]:
    """The lives that did not begin with one of the releases."""
    begun = {
        (name, row.changed_at) for wave in releases for row in wave for name in row.clients_joined
    }
    return [life for life in lives if (life.name, life.begins) not in begun]


def _flappers(case: Case, who: str, lives: Sequence[Life]) -> list[_Flapper]:
    return [
        _Flapper(
            who, row, [life for life in lives if row[0].begins <= life.begins <= row[-1].begins]
        )
        for row in successions(lives, case.expiry, MOST_BETWEEN_LIVES)
        if len(row) >= FEWEST_LIVES
        and persistence(row[0].begins, row[-1].begins, case.persistence_seconds) == PERSISTENT
    ]


def _fault(case: Case, topic: str, flappers: Sequence[_Flapper]) -> FaultEpisode:
    lives = [life for flapper in flappers for life in flapper.lives]
    first_seen = min(life.begins for life in lives)
    last_seen = max(life.begins if life.ends is None else life.ends for life in lives)
    changes = (row for row in case.reassignments[topic] if row.clients_joined or row.clients_left)
    times = [row.changed_at for row in changes if first_seen <= row.changed_at <= last_seen]
    in_turn = chain.from_iterable(pairwise(flapper.row) for flapper in flappers)
    usual = max(later.begins - one.begins for one, later in in_turn)
    ongoing = case.timelines[topic].phases[-1].last_seen - last_seen <= usual
    extent = Extent(first_seen, last_seen, len(set(times)), PERSISTENT, ongoing)
    client_ids = sorted({life.name for life in lives})
    channels = chain(*(case.situations.channels.get(client_id, ()) for client_id in client_ids))
    addresses = {channel.client_addr for channel in channels if extent.overlaps(channel)}
    lives_of = grouped((flapper.who, life) for flapper in flappers for life in flapper.lives)
    # Who joined when, those that did most often first.
    often = dict(sorted(lives_of.items(), key=lambda item: (-len(item[1]), item[0])))
    evidence = Text(
        "{joined}; meanwhile members joined or left {times}, {per_hour} per hour, and each time "
        "all queues are divided again",
        joined=list_of((_joined(who, lives) for who, lives in often.items()), MOST_NAMES),
        times=count(len(times), "time"),
        per_hour=per_hour(len(times), first_seen, last_seen),
    )
    remedy = Text(_REMEDY, these_processes=_processes_of(often))
    clients = tuple(client_ids), tuple(sorted(addresses))
    return FaultEpisode(topic, extent, FLAPPING, evidence, remedy, *clients)


def _processes_of(flappers: Collection[str]) -> Text:
    if _OF_SEVERAL_HOSTS in flappers:  # then it is the only one
        return _OF_SEVERAL_HOSTS
    return Text("the processes of {these_clients}", these_clients=list_of(flappers, MOST_NAMES))


def per_hour(times: int, first_seen: Instant, last_seen: Instant) -> int:
    """The number of times an hour, of what happened ``times`` times between two moments."""
    return round(times * _HOUR / max(last_seen - first_seen, SECOND))


def _joined(who: str, lives: Sequence[Life]) -> Text:
    times, client_ids = count(len(lives), "time"), len({life.name for life in lives})
    if client_ids == 1:
        return Text("{who} joined {times}", who=who, times=times)
    return Text("{who} joined {times} with {ids} client ids", who=who, times=times, ids=client_ids)
