"""Times of answers -> the brokers and nameservers that were silent for too long.

A broker answered in a round where it answered about any group. For too long: ``reach.py`` has the
rule. A broker that restarts is away for a minute or two, and what its members hold has not changed
then.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from rebalance_core.english import MOST_NAMES, names
from rebalance_core.grouping import grouped
from rebalance_core.texts import Text

from ..config.settings import Settings
from ..config.window import Window
from ..declared.instants import SECOND, Instant
from ..fold.numbers import micros, pc
from ..schemas import BROKER_POLLS, LONG, NO_ANSWER
from .gaps import (
    BROKER_SILENT,
    NAMESERVER_SILENT,
    OFFSETS_MISSING,
    SNAPSHOT_TIME_STANDS,
    Gap,
    time_text,
)
from .reach import RoundTimes, Silence, longest_silence, usual_interval

if TYPE_CHECKING:  # it imports pandas, some 55 MiB
    import pyarrow.dataset as ds

_BROKER = ("cluster", "broker_name", "broker_id")
_ROUND = (*_BROKER, "snapshot_time")
_ADDRESS = "broker_addr"
#: The time from the first answer of a round to the last one, of a broker that was asked again.
_ASKED_FOR, _ASKED_AGAIN = "asked for", ("first_collected_at", "collected_at")
#: Two collectors may give their rounds the time of one minute.
_LEAST_AGAIN = 60 * SECOND
#: The key of a poll: cluster, broker name and id, and maybe group.
_PollKey: TypeAlias = tuple[Any, ...]


#: Kinds of ``AnswerTimes``: routes by nameservers, offsets by brokers; never anything by brokers of
#: routes, or about the members of groups of which offsets came.
ROUTES, OFFSETS, NEVER_ASKED, NEVER_LISTED = "routes", "offsets", "never asked", "never listed"
#: The snapshots of an answer, by cluster and who gave it.
AnswerTimes: TypeAlias = Mapping[tuple[str, str], Collection[Instant]]


def silences(
    polls: ds.Dataset | None,
    window: Window,
    rounds: RoundTimes,
    given: Mapping[str, AnswerTimes],
    settings: Settings,
) -> Iterator[Gap]:
    """The gaps of all who answered for a while and then no more, of brokers that never did, or that
    nobody ever asked, and of groups of which nobody asked who the members are; of rounds that have
    one time.

    ``polls``: ``broker_polls``, where the input has them. ``rounds``: by cluster all of them.
    """
    of_masters: AnswerTimes = {}
    least = settings.persistence_seconds * SECOND
    if polls is not None:
        of_brokers = _rounds(polls, window)
        yield from _standing(of_brokers, least)
        yield from silent_brokers(polls, window, of_brokers, least)
        by_master = (pc.field("broker_id") == 0) & pc.field("answered")
        of_masters = grouped(_rows(of_brokers.filter(by_master), ("cluster", "broker_name")))
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
        end = max(times) if any(max(times) < each for each in others) else None
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


def silent_brokers(
    polls: ds.Dataset, window: Window, asked_in: pa.Table, least: Instant
) -> Iterator[Gap]:
    """A gap for each broker that never answered, or not for as long as what has to last; and for
    each group about which a broker gave no answer for so long, though it answered about others.
    """
    asked = grouped(_rows(asked_in, _BROKER))
    silent = asked_in.filter(pc.invert(asked_in["answered"])).sort_by("snapshot_time")
    without = grouped(_rows(silent, _BROKER))
    keys = zip(*(silent[name].to_pylist() for name in _BROKER), strict=True)
    addresses = dict(zip(keys, silent[_ADDRESS].to_pylist(), strict=True))

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
    answered = asked_in.filter(asked_in["answered"]).select(_ROUND)
    for key, of_group in sorted(_groups_without(polls, window, answered).items(), key=str):
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


def _standing(asked_in: pa.Table, least: Instant) -> Iterator[Gap]:
    """A gap for each cluster in which one broker was asked about one group for so long in what is
    one round; in a round that takes long each question is asked once.
    """
    again = asked_in.filter(pc.field(_ASKED_FOR) >= max(least, _LEAST_AGAIN))
    rows = again.sort_by(_ASKED_FOR).select(["cluster", "snapshot_time", _ASKED_FOR]).to_pylist()
    for cluster, row in sorted({row["cluster"]: row for row in rows}.items()):
        text = Text(
            "cluster {cluster}: snapshot_time stays at {at} while collected_at goes on for "
            "{seconds:,.0f} s, so that these rounds count as one: let the collector give each "
            "round a time of its own",
            cluster=cluster,
            at=time_text(row["snapshot_time"]),
            seconds=row[_ASKED_FOR] / SECOND,
        )
        yield Gap(SNAPSHOT_TIME_STANDS, text)


def _named(key: _PollKey, address: str | None) -> str:
    """A broker, and at which address it was last asked without an answer, where that is known."""
    name = f"{key[1]}/{key[2]}"
    return Text("{broker} at {address}", broker=name, address=address) if address else name


def _rounds(polls: ds.Dataset, window: Window) -> pa.Table:
    """Each broker's rounds: whether it answered about any group, an address that was asked, and for
    how long it was asked again about one.
    """
    there = set(polls.schema.names)
    columns: Any = {name: pc.field(name) for name in _ROUND}
    columns["answered"] = pc.field("outcome") != NO_ANSWER
    columns[_ADDRESS] = pc.field(_ADDRESS) if _ADDRESS in there else pc.scalar("")
    columns[_ASKED_FOR] = pc.scalar(pa.scalar(None, LONG))
    if {*_ASKED_AGAIN} <= there:
        first, last = (micros(pc.field(name)) for name in _ASKED_AGAIN)
        columns[_ASKED_FOR] = last - first
    values: Any = [(name, "max") for name in columns.keys() - {*_ROUND}]

    def distinct(table: pa.Table) -> pa.Table:
        found = table.group_by([*_ROUND]).aggregate(values)
        return found.rename_columns([*_ROUND, *(name for name, _ in values)])

    # A day of a large fleet has too many polls to be held.
    found = [distinct(each) for each in _batches(polls, window, columns)]
    return distinct(pa.concat_tables(found or [polls.scanner(columns=columns).head(0)]))


def _groups_without(
    polls: ds.Dataset, window: Window, answered: pa.Table
) -> Mapping[_PollKey, Collection[Instant]]:
    """The rounds in which each broker did not answer about a group; ``answered``: the rounds in
    which it answered about others.
    """
    names = [*_ROUND, "consumer_group"]
    without: dict[_PollKey, set[Instant]] = defaultdict(set)
    for batch in _batches(polls, window, names, pc.field("outcome") == NO_ANSWER):
        of_one = batch.join(answered, [*_ROUND], join_type="left semi")
        for key, time in _rows(of_one, (*_BROKER, "consumer_group")):
            without[key].add(time)
    return without


def _batches(
    polls: ds.Dataset, window: Window, columns: Any, where: Any = None
) -> Iterator[pa.Table]:
    of_window = window.filter_of(BROKER_POLLS, polls.schema)
    rows = of_window if where is None else of_window & where
    for batch in polls.to_batches(columns=columns, filter=rows, fragment_readahead=1):
        yield pa.Table.from_batches([batch])


def _rows(table: pa.Table, key: Collection[str]) -> Iterator[tuple[_PollKey, Instant]]:
    """The key and the time of each row."""
    keys = zip(*(table[name].to_pylist() for name in key), strict=True)
    times = micros(table["snapshot_time"].combine_chunks()).to_pylist()
    return zip(keys, times, strict=True)
