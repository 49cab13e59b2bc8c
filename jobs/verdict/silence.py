"""Times of answers -> the brokers and nameservers that were silent for too long.

A broker answered in a round where it answered about any group. A silence begins with the first
round without an answer, and ends with the next round that has one, or with the last round: a broker
that restarts is away for a minute or two, and what its members hold has not changed then.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Mapping
from itertools import groupby
from typing import Any, NamedTuple, TypeAlias

import pyarrow.compute as pc

from rebalance_core.english import MOST_NAMES, names
from rebalance_core.grouping import grouped
from rebalance_core.texts import Text

from ..config.settings import Settings
from ..declared.instants import SECOND, Instant
from ..fold.polled import BROKER, BrokerPolls
from .gaps import (
    BROKER_SILENT,
    NAMESERVER_SILENT,
    OFFSETS_MISSING,
    ONE_IS_LATE,
    Gap,
    time_text,
    usual_seconds,
)


class Silence(NamedTuple):
    """The longest time without an answer, and in how many rounds there was none."""

    since: Instant
    until: Instant
    rounds: int

    @property
    def words(self) -> dict[str, Any]:
        """The values for the slots of a sentence."""
        return {
            "rounds": self.rounds,
            "since": time_text(self.since),
            "until": time_text(self.until),
        }


def longest_silence(asked: Collection[Instant], without: Collection[Instant]) -> Silence:
    """The longest silence of a broker; ``asked``: all its rounds, ``without``: those in which it
    did not answer, at least one.

    >>> longest_silence([0, 60, 120, 180, 240], [0, 120, 180])
    Silence(since=120, until=240, rounds=3)
    """
    times, found, silent_at = sorted(asked), [], set(without)
    for silent, numbers in groupby(range(len(times)), lambda number: times[number] in silent_at):
        if silent:
            run = [*numbers]
            found.append((times[run[0]], times[min(run[-1] + 1, len(times) - 1)]))
    since, until = max(found, key=lambda each: each[1] - each[0])
    return Silence(since, until, len(without))


#: Kinds of ``AnswerTimes``: routes by nameservers, offsets by brokers; never anything by brokers of
#: routes, or about the members of groups of which offsets came.
ROUTES, OFFSETS, NEVER_ASKED, NEVER_LISTED = "routes", "offsets", "never asked", "never listed"
#: The snapshots of an answer, by cluster and who gave it.
AnswerTimes: TypeAlias = Mapping[tuple[str, str], Collection[Instant]]


def silences(
    polls: BrokerPolls,
    rounds: Mapping[str, Collection[Instant]],
    given: Mapping[str, AnswerTimes],
    settings: Settings,
) -> Iterator[Gap]:
    """The gaps of all who answered for a while and then no more, of brokers that never did, or that
    nobody ever asked, and of groups of which nobody asked who the members are.

    ``polls``: when each broker was asked, where that is known. ``rounds``: by cluster all of them.
    """
    yield from silent_brokers(polls, settings.persistence_seconds)
    by_master = polls.rounds.filter((pc.field("broker_id") == 0) & pc.field("answered"))
    of_masters: Any = grouped(polls.rows(("cluster", "broker_name"), by_master))
    for cluster, name in sorted(given.get(NEVER_ASKED, ())):
        text = Text(
            "broker {broker} of cluster {cluster} is in the routes, but no list or answer of it "
            "came, so which members it lists is not known; add it to what the collector asks",
            broker=name,
            cluster=cluster,
        )
        yield Gap(BROKER_SILENT, text)
    for cluster, groups in sorted(grouped(given.get(NEVER_LISTED, ())).items()):
        text = Text(
            "cluster {cluster}: offsets of {groups} came, but no list or answer about the members: "
            "nothing of this is audited; let the collector ask for the lists (consumer_connection)",
            cluster=cluster,
            groups=names(sorted(groups), MOST_NAMES),
        )
        yield Gap(BROKER_SILENT, text)
    least = settings.persistence_seconds * SECOND
    yield from _missing_offsets(given[OFFSETS], rounds, of_masters, least)
    for (cluster, name), times in sorted(given[ROUTES].items()):
        # In place of a nameserver another may come.
        others = (min(each) for (where, _), each in given[ROUTES].items() if where == cluster)
        end = max(times) if any(max(times) < each for each in others) else None
        asked = [each for each in rounds.get(cluster, ()) if end is None or each < end]
        if without := _without(times, asked, settings.route_max_age_seconds * SECOND):
            text = Text(
                "nameserver {name} of cluster {cluster} gave no route from {since} to {until}",
                name=name,
                cluster=cluster,
                **without,
            )
            yield Gap(NAMESERVER_SILENT, text)


def _missing_offsets(
    given: AnswerTimes,
    rounds: Mapping[str, Collection[Instant]],
    of_masters: AnswerTimes,
    least: Instant,
) -> Iterator[Gap]:
    """A gap for each cluster of which no offsets came for so long; of another one for each broker
    whose master answered then about members.
    """
    by_cluster = grouped((cluster, (name, times)) for (cluster, name), times in given.items())
    for cluster, of_brokers in sorted(by_cluster.items()):
        at_any = set().union(*(times for _, times in of_brokers))
        if without := _without(at_any, rounds.get(cluster, ()), least):
            text = Text(
                "cluster {cluster}: no broker gave offsets from {since} to {until}: whether its "
                "queues were consumed then is not known",
                cluster=cluster,
                **without,
            )
            yield Gap(OFFSETS_MISSING, text)
            continue
        for name, times in sorted(of_brokers):
            if without := _without(times, of_masters.get((cluster, name), ()), least):
                text = Text(
                    "broker {broker} of cluster {cluster} gave lists and no offsets from {since} "
                    "to {until}: whether its queues were consumed then is not known",
                    broker=name,
                    cluster=cluster,
                    **without,
                )
                yield Gap(OFFSETS_MISSING, text)


def _without(
    times: Collection[Instant], rounds: Collection[Instant], least: Instant
) -> dict[str, Any] | None:
    """The first and the last round, as values for a sentence, of the longest time in which rounds
    brought nothing of what came at these ``times``: ``least`` or more, and clearly longer than
    usual; None where there is none.

    What came for the first time in the midst was not asked for before.

    >>> minutes = [n * 60 * SECOND for n in range(10)]
    >>> _without(minutes[:5], minutes, 240 * SECOND)
    {'since': '1970-01-01 00:05:00 UTC', 'until': '1970-01-01 00:09:00 UTC'}
    >>> _without(minutes[::5], minutes, 240 * SECOND)
    """
    found = sorted(times)
    usual = usual_seconds(found)
    if usual is None:
        return None
    asked = sorted(rounds)
    # Between two of what came, and after the last: the rounds that brought nothing.
    begins = [bisect_right(asked, each) for each in found]
    ends = [*(bisect_left(asked, each) for each in found[1:]), len(asked)]
    spans = [
        (asked[end - 1] - asked[begin], asked[begin], asked[end - 1])
        for begin, end in zip(begins, ends, strict=True)
        if begin < end
    ]
    length, first, last = max(spans, default=(0, 0, 0))
    if not length >= max(least, ONE_IS_LATE * usual * SECOND) > 0:
        return None
    return {"since": time_text(first), "until": time_text(last)}


def silent_brokers(polls: BrokerPolls, persistence_seconds: int) -> Iterator[Gap]:
    """A gap for each broker that never answered, or not for as long as what has to last; and for
    each group about which a broker gave no answer for so long, though it answered about others.
    """
    least = persistence_seconds * SECOND
    asked = grouped(polls.rows(BROKER))
    silent = polls.rounds.filter(~pc.field("answered")).sort_by("snapshot_time")
    without = grouped(polls.rows(BROKER, silent))
    at = (key for key, _ in polls.rows([*BROKER, "broker_addr"], silent))
    addresses = {key[:-1]: key[-1] for key in at}
    for key, times in sorted(without.items(), key=str):
        values = {"broker": _named(key, addresses.get(key)), "cluster": key[0]}
        if len(times) == len(asked[key]):
            text = Text("broker {broker} of cluster {cluster} never answered", **values)
            yield Gap(BROKER_SILENT, text)
        elif _is_long(silence := longest_silence(asked[key], times), least):
            text = Text(
                "broker {broker} of cluster {cluster} did not answer in {rounds:,} rounds; the "
                "longest silence was from {since} to {until}",
                **values,
                **silence.words,
            )
            yield Gap(BROKER_SILENT, text)
    of_groups = grouped(polls.unanswered_in(polls.rounds.filter(pc.field("answered"))))
    for key, of_group in sorted(of_groups.items(), key=str):
        if _is_long(silence := longest_silence(asked[key[:-1]], of_group), least):
            text = Text(
                "broker {broker} of cluster {cluster} did not answer about {group} in "
                "{rounds:,} rounds, but about other groups; the longest silence was from "
                "{since} to {until}",
                broker=f"{key[1]}/{key[2]}",
                cluster=key[0],
                group=key[-1],
                **silence.words,
            )
            yield Gap(BROKER_SILENT, text)


def _named(key: tuple[Any, ...], address: str | None) -> str:
    """A broker, and at which address it was last asked without an answer, where that is known."""
    name = f"{key[1]}/{key[2]}"
    return Text("{broker} at {address}", broker=name, address=address) if address else name


def _is_long(silence: Silence, least: Instant) -> bool:
    return silence.until - silence.since >= least
