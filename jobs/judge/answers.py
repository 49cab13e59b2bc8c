"""polls -> what each witness says at each snapshot of the group.

A round takes time: each broker and nameserver was asked at a time of its own, and two collectors
have two schedules. What a witness gave holds until it gives something else. Where one poll is
missing between two answers, it is bridged; a longer gap is a time in which nothing is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from jobs.instants import SECOND, Instant
from jobs.judge.dossier import Broker, PollRun, RouteRun
from jobs.schemas import ANSWERED, NO_ANSWER, NOT_ONLINE

Witness = TypeVar("Witness")
Numbers = NDArray[np.int64]

#: So many usual intervals between two answers of a broker are bridged: two polls in a row that are
#: missing are bad luck, three are a broker that does not answer ...
_BRIDGED_INTERVALS = 3.5
#: ... and always as long as a broker keeps a silent member (``ClientChannelInfo`` expiry, 120 s and
#: a scan each 10 s).
_BRIDGED_AT_LEAST: Instant = 130 * SECOND

#: Not asked, or nothing is known of the answer.
NOTHING = -1


@dataclass(frozen=True)
class Answers(Generic[Witness]):
    """What one witness answered, poll by poll, in time.

    ``contents`` are places in ``names``: list ids and outcomes of a broker, route ids of a
    nameserver. ``snapshots`` are the rounds, ``collected_at`` when it answered.
    """

    witness: Witness
    snapshots: Numbers
    collected_at: Numbers
    contents: Numbers
    names: Sequence[str]

    def at(self, snapshots: Numbers) -> Numbers:
        """By snapshot the place of the last poll up to it, or NOTHING."""
        places: Numbers = np.searchsorted(self.snapshots, snapshots, side="right") - 1
        return places

    def name_of(self, poll: int) -> str:
        """What it answered at a poll."""
        return self.names[int(self.contents[poll])]


def broker_answers(polls: Iterable[PollRun]) -> list[Answers[Broker]]:
    """The answers of each broker, one for each snapshot; those without an answer are left out.

    Of a broker that was asked twice in a round a list counts over another answer. The time of an
    answer may come in another run than its list: see ``PollRun``.
    """
    of_brokers: dict[Broker, list[PollRun]] = {}
    for run in polls:
        of_brokers.setdefault(run.broker, []).append(run)
    return [_of_witness(broker, runs) for broker, runs in sorted(of_brokers.items())]


def _of_witness(broker: Broker, runs: Sequence[PollRun]) -> Answers[Broker]:
    names = sorted({run.answer for run in runs})
    place_of = {name: place for place, name in enumerate(names)}
    # Of one snapshot lists come last: they are what counts.
    rank = {name: _rank(name) for name in names}
    snapshots = np.concatenate([np.array(run.times, np.int64) for run in runs])
    collected = np.concatenate([np.array(run.collected_at or run.times, np.int64) for run in runs])
    contents = np.concatenate([np.full(len(run.times), place_of[run.answer]) for run in runs])
    ranks = np.concatenate([np.full(len(run.times), rank[run.answer]) for run in runs])
    order = np.lexsort([collected, ranks, snapshots])
    snapshots, collected, contents = snapshots[order], collected[order], contents[order]
    if len(snapshots):
        starts = np.flatnonzero(np.append(True, snapshots[1:] != snapshots[:-1]))
        latest = np.maximum.reduceat(collected, starts)
        last = np.append(starts[1:], len(snapshots)) - 1
        snapshots, collected, contents = snapshots[last], latest, contents[last]
    return Answers(broker, snapshots, collected, contents, names)


def _rank(name: str) -> int:
    """A list counts over that there is none, and both over an answer of which nothing is known."""
    return _LEAST.index(name) if name in _LEAST else len(_LEAST)


_LEAST = (ANSWERED, NO_ANSWER, NOT_ONLINE)


def nameserver_answers(routes: Iterable[RouteRun]) -> list[Answers[str]]:
    """The routes of a topic that each nameserver gave, one for each snapshot."""
    of_nameservers: dict[str, list[RouteRun]] = {}
    for run in routes:
        of_nameservers.setdefault(run.namesrv_addr, []).append(run)
    found = []
    for name, runs in sorted(of_nameservers.items()):
        polls = [PollRun((name, 0), run.route_id, run.times, run.collected_at) for run in runs]
        answers = _of_witness((name, 0), polls)
        found.append(
            Answers(name, answers.snapshots, answers.collected_at, answers.contents, answers.names)
        )
    return found


def snapshots_of(answers: Iterable[Answers[Witness]]) -> Numbers:
    """Every snapshot in which some witness was asked, ascending."""
    every = [each.snapshots for each in answers]
    return np.unique(np.concatenate(every)) if every else np.zeros(0, np.int64)


def in_force(answers: Answers[Broker], snapshots: Numbers) -> Numbers:
    """By snapshot the broker's poll that counts, or NOTHING where it was not asked.

    In a round in which it did not answer, or was not asked, the answer before counts, where the
    next one comes soon enough (``_BRIDGED_INTERVALS``): what the list was in between is known from
    both. Where there is none, a poll without an answer counts as what it is.
    """
    places = answers.at(snapshots)
    if not len(answers.snapshots):
        return places
    is_own = (places >= 0) & (answers.snapshots[np.maximum(places, 0)] == snapshots)
    # ANSWERED without a list says as little as no answer: NO_ANSWER is what is published of both.
    silent = np.array([name in (ANSWERED, NO_ANSWER) for name in answers.names])
    answered = np.flatnonzero(~silent[answers.contents])
    if not len(answered):
        return np.where(is_own, places, NOTHING)
    gaps = np.diff(snapshots)
    usual = float(np.median(gaps)) if len(gaps) else 0.0
    longest = max(_BRIDGED_AT_LEAST, _BRIDGED_INTERVALS * usual)
    before = np.searchsorted(answered, places, side="right") - 1
    after = before + 1
    bridged = (before >= 0) & (after < len(answered))
    last = answered[np.maximum(before, 0)]
    following = answered[np.minimum(after, len(answered) - 1)]
    bridged &= answers.collected_at[following] - answers.collected_at[last] <= longest
    says_something = is_own & ~silent[answers.contents[np.maximum(places, 0)]]
    found: Numbers = np.where(
        says_something, places, np.where(bridged, last, np.where(is_own, places, NOTHING))
    )
    return found


def times_of(
    answers: Sequence[Answers[Witness]], places: Mapping[Witness, Numbers], snapshots: Numbers
) -> Numbers:
    """By snapshot when the last of the witnesses answered in that round."""
    latest = snapshots.copy()
    for each in answers:
        polls = places[each.witness]
        is_own = (polls >= 0) & (each.snapshots[np.maximum(polls, 0)] == snapshots)
        collected = each.collected_at[np.maximum(polls, 0)]
        latest = np.where(is_own, np.maximum(latest, collected), latest)
    return latest
