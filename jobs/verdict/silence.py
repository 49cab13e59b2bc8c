"""Times of answers -> the brokers and nameservers that were silent for too long.

A broker answered in a round where it answered about any group. For too long: ``reach.py`` has the
rule. A broker that restarts is away for a minute or two, and what its members hold has not changed
then.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any, TypeAlias

import pyarrow.compute as pc

from rebalance_core.english import MOST_NAMES, names
from rebalance_core.grouping import grouped
from rebalance_core.texts import Text

from ..config.settings import Settings
from ..declared.instants import SECOND, Instant
from ..fold.slice_facts import BROKER, BrokerPolls
from .gaps import (
    BROKER_SILENT,
    NAMESERVER_SILENT,
    OFFSETS_MISSING,
    SNAPSHOT_TIME_STANDS,
    Gap,
    time_text,
)
from .reach import RoundTimes, Silence, longest_silence, usual_interval

#: The key of a poll: cluster, broker name and id, and maybe group.
_PollKey: TypeAlias = tuple[Any, ...]

#: Kinds of ``AnswerTimes``: routes by nameservers, offsets by brokers; never anything by brokers of
#: routes, or about the members of groups of which offsets came.
ROUTES, OFFSETS, NEVER_ASKED, NEVER_LISTED = "routes", "offsets", "never asked", "never listed"
#: The snapshots of an answer, by cluster and who gave it.
AnswerTimes: TypeAlias = Mapping[tuple[str, str], Collection[Instant]]


def silences(
    polls: BrokerPolls,
    rounds: RoundTimes,
    given: Mapping[str, AnswerTimes],
    settings: Settings,
) -> Iterator[Gap]:
    """The gaps of all who answered for a while and then no more, of brokers that never did, or that
    nobody ever asked, and of groups of which nobody asked who the members are; of rounds that have
    one time.

    ``polls``: when each broker was asked, where that is known. ``rounds``: by cluster all of them.
    """
    least = settings.persistence_seconds * SECOND
    yield from _standing(polls, least)
    yield from silent_brokers(polls, least)
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
    yield from _missing_offsets(given[OFFSETS], rounds, of_masters, least)
    # A route counts for so long.
    of_routes = max(least, settings.route_max_age_seconds * SECOND)
    for (cluster, name), times in sorted(given[ROUTES].items()):
        # In place of a nameserver another may come.
        others = (min(each) for (where, _), each in given[ROUTES].items() if where == cluster)
        end = max(times) if any(max(times) < other for other in others) else None
        asked = [each for each in rounds.get(cluster, ()) if end is None or each < end]
        if silence := _came_no_more(times, asked, of_routes):
            text = Text(
                "nameserver {name} of cluster {cluster} gave no route from {since} to {until}",
                name=name,
                cluster=cluster,
                **silence.words,
            )
            yield Gap(NAMESERVER_SILENT, text)


def _missing_offsets(
    given: AnswerTimes, rounds: RoundTimes, of_masters: AnswerTimes, least: Instant
) -> Iterator[Gap]:
    """A gap for each cluster of which no offsets came for so long; of another one for each broker
    whose master answered then about members.
    """
    by_cluster = grouped((cluster, (name, times)) for (cluster, name), times in given.items())
    for cluster, of_brokers in sorted(by_cluster.items()):
        at_any = set().union(*(times for _, times in of_brokers))
        if silence := _came_no_more(at_any, rounds.get(cluster, ()), least):
            text = Text(
                "cluster {cluster}: no broker gave offsets from {since} to {until}: whether its "
                "queues were consumed then is not known",
                cluster=cluster,
                **silence.words,
            )
            yield Gap(OFFSETS_MISSING, text)
            continue
        for name, times in sorted(of_brokers):
            if silence := _came_no_more(times, of_masters.get((cluster, name), ()), least):
                text = Text(
                    "broker {broker} of cluster {cluster} gave lists and no offsets from {since} "
                    "to {until}: whether its queues were consumed then is not known",
                    broker=name,
                    cluster=cluster,
                    **silence.words,
                )
                yield Gap(OFFSETS_MISSING, text)


def _came_no_more(
    times: Collection[Instant], rounds: Collection[Instant], least: Instant
) -> Silence | None:
    """The longest silence of rounds that brought nothing of what came at these ``times``.

    What came for the first time in the midst was not asked for before; of what came a few times
    nobody knows how often it is asked for.
    """
    usual = usual_interval(times)
    if usual is None:
        return None
    return longest_silence([each for each in rounds if each > min(times)], times, usual, least)


def silent_brokers(polls: BrokerPolls, least: Instant) -> Iterator[Gap]:
    """A gap for each broker that never answered, or not for as long as what has to last; and for
    each group about which a broker gave no answer for so long, though it answered about others.
    """
    asked = grouped(polls.rows(BROKER))
    silent = polls.rounds.filter(~pc.field("answered")).sort_by("snapshot_time")
    without = grouped(polls.rows(BROKER, silent))
    at = (key for key, _ in polls.rows([*BROKER, "broker_addr"], silent))
    addresses = {key[:-1]: key[-1] for key in at}

    def silence_of(key: _PollKey, missing: Collection[Instant]) -> Silence | None:
        usual = usual_interval(asked[key]) or 0
        return longest_silence(asked[key], set(asked[key]) - set(missing), usual, least)

    for key, times in sorted(without.items(), key=str):
        values = {"broker": _named(key, addresses.get(key)), "cluster": key[0]}
        if len(times) == len(asked[key]):
            text = Text("broker {broker} of cluster {cluster} never answered", **values)
            yield Gap(BROKER_SILENT, text)
        elif silence := silence_of(key, times):
            text = Text(
                "broker {broker} of cluster {cluster} did not answer in {rounds:,} rounds; the "
                "longest silence was from {since} to {until}",
                **values,
                rounds=len(times),
                **silence.words,
            )
            yield Gap(BROKER_SILENT, text)
    of_groups = grouped(polls.unanswered_in(polls.rounds.filter(pc.field("answered"))))
    for key, of_group in sorted(of_groups.items(), key=str):
        if silence := silence_of(key[:-1], of_group):
            text = Text(
                "broker {broker} of cluster {cluster} did not answer about {group} in "
                "{rounds:,} rounds, but about other groups; the longest silence was from "
                "{since} to {until}",
                broker=f"{key[1]}/{key[2]}",
                cluster=key[0],
                group=key[-1],
                rounds=len(of_group),
                **silence.words,
            )
            yield Gap(BROKER_SILENT, text)


def _standing(polls: BrokerPolls, least: Instant) -> Iterator[Gap]:
    """A gap for each cluster in which one broker was asked about one group for so long in what is
    one round; in a round that takes long each question is asked once.
    """
    again = polls.rounds.filter(pc.field("asked_for") >= least)
    rows = again.sort_by("asked_for").to_pylist()
    for cluster, row in sorted({row["cluster"]: row for row in rows}.items()):
        text = Text(
            "cluster {cluster}: snapshot_time stays at {at} while collected_at goes on for "
            "{seconds:,.0f} s, so that these rounds count as one: let the collector give each "
            "round a time of its own",
            cluster=cluster,
            at=time_text(row["snapshot_time"]),
            seconds=row["asked_for"] / SECOND,
        )
        yield Gap(SNAPSHOT_TIME_STANDS, text)


def _named(key: _PollKey, address: str | None) -> str:
    """A broker, and at which address it was last asked without an answer, where that is known."""
    name = f"{key[1]}/{key[2]}"
    return Text("{broker} at {address}", broker=name, address=address) if address else name
