"""Times of rounds and of answers -> the times in which what lasts would not have been seen.

Between two rounds nobody looks: what is seen twice was there in between, what is seen once is a
moment. So a silence is what is missing besides: from the first answer that is missing to the next
one that came, or to the last round. It is a gap where something that lasts could have begun and
ended in it: it takes ``persistence_seconds``, and more than one answer is missing. A single one
would have shown a moment.

Worked example, 180 s. Rounds each 60 s, of a broker that restarts: without the answers of 10:01 and
10:02 the silence ends at 10:03, after 120 s; without that of 10:03 too it is a gap. Rounds each
300 s: the answer of 10:05 alone is none, those of 10:05 and 10:10 are a gap.

What lasts for 180 s can come and go between any two rounds that are 300 s apart. Whoever set them
chose that: it is no gap of a night, and the report says it once (``slow_rounds``).

A broker answered in a round where it answered about any group. One that restarts is away for a
minute or two, and what its members hold has not changed then. One whose list was refused when it
was read was not silent; but what it gave is no evidence. So it is with a list that cannot be read,
and with one of which a connection has no client id: that member takes a share of the queues, and
nobody knows which (``dumps.typed``). The poll of such a list has an error code of its own, and the
reason.

A collector asks of so many brokers, groups, topics and members at most, and reads answers for so
long at most. What it left out it writes into the dump: what is beyond has no other line. One round
that lacks something lacks nothing that lasts.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow.compute as pc

from rebalance_core.english import MOST_NAMES, agreeing, names
from rebalance_core.grouping import grouped
from rebalance_core.texts import Text

from ..config.settings import Settings
from ..declared.instants import SECOND, Instant
from ..fold.slice_facts import BROKER, BrokerPolls
from ..judge.times import ONE_IS_MISSING, SEVERAL, longest_at_edges, reach, usual_gap
from . import gaps
from .gaps import (
    Gap,
    time_text,
)

#: The key of a poll: cluster, broker name and id, and maybe group.
_PollKey: TypeAlias = tuple[Any, ...]

#: Kinds of ``AnswerTimes``: routes by nameservers, offsets by brokers; never anything by brokers of
#: routes, or about the members of groups of which offsets came.
ROUTES, OFFSETS, NEVER_ASKED, NEVER_LISTED = "routes", "offsets", "never asked", "never listed"
#: The snapshots of an answer, by cluster and who gave it.
AnswerTimes: TypeAlias = Mapping[tuple[str, str], Collection[Instant]]
#: The rounds of each cluster.
RoundTimes = Mapping[str, Collection[Instant]]

#: An answer is due after nearly the usual time: rounds are not quite even.
_NEARLY = 0.9
#: The summary of a run is read often, and has to stay small.
_MOST_CLUSTERS = 20
#: The number that was left out in each round, by cluster and what it is.
LeftOutRounds: TypeAlias = Mapping[tuple[str, str], Mapping[Instant, int]]
#: The key of the summary of an ingest.
_LEFT_OUT = "left_out"


class Silence(NamedTuple):
    """A time without an answer: the first that is missing, and the next one that came, or the last
    round.
    """

    begins: Instant
    ends: Instant

    def length(self) -> Instant:
        """The time that it takes."""
        return self.ends - self.begins

    @property
    def words(self) -> dict[str, Any]:
        """The values for the slots of a sentence."""
        return {"since": time_text(self.begins), "until": time_text(self.ends)}


def usual_interval(times: Collection[Instant]) -> Instant | None:
    """The usual time between rounds; None: there are too few to know it."""
    return usual_gap(np.diff(sorted(times))) if len(times) > SEVERAL else None


def longest_silence(
    rounds: Collection[Instant], came: Collection[Instant], usual: Instant, least: Instant
) -> Silence | None:
    """The longest silence that is a gap, of ``least`` or more; ``came``: the rounds with an answer.

    ``usual``: the usual time between two answers, for who is not asked in each round, and for two
    collectors whose rounds are seconds apart; 0: not known.

    >>> longest_silence([0, 60, 120, 180, 240, 300], came=[60, 300], usual=60, least=180)
    Silence(begins=120, ends=300)
    >>> longest_silence([0, 60, 120, 180, 240, 300], came=[60, 240], usual=60, least=180)
    >>> longest_silence(range(0, 660, 60), came=[0, 600], usual=300, least=180)
    """
    every, answers = sorted(rounds), sorted(came)
    starts = [0, *(bisect_right(every, answer) for answer in answers)]
    stops = [*(bisect_left(every, answer) for answer in answers), len(every)]
    found = [Silence(0, 0)]
    between = zip([None, *answers], [*answers, None], starts, stops, strict=True)
    for before, after, start, stop in between:
        due: list[Instant] = []
        for time in every[start:stop]:
            latest = due[-1] if due else before
            if latest is None or time - latest >= _NEARLY * usual:
                due.append(time)
        if len(due) > 1:
            found.append(Silence(due[0], due[-1] if after is None else after))
    longest = max(found, key=Silence.length)
    return longest if longest.length() >= max(least, 1) else None


def silence_without(
    rounds: Collection[Instant], without: Collection[Instant], least: Instant
) -> Silence | None:
    """The longest silence that is a gap where these rounds brought nothing that counts; all of the
    time where none did.
    """
    if len(without) == len(rounds):
        return Silence(min(rounds), max(rounds))
    came = set(rounds).difference(without)
    return longest_silence(rounds, came, usual_interval(rounds) or 0, least)


def too_short(rounds: RoundTimes, persistence_seconds: int) -> Iterator[Gap]:
    """A gap for each cluster of which nothing could be seen to last, whatever was there."""
    for cluster, times in sorted(rounds.items()):
        covered = reach(sorted(times))
        if times and covered < persistence_seconds * SECOND:
            text = Text(
                "cluster {cluster}: the snapshots cover {covered:,.0f} s of the {needed:,} s that "
                "a fault needs to last, so that none can be found: audit more rounds at once "
                "(collect --every 60)",
                cluster=cluster,
                covered=covered // SECOND,
                needed=persistence_seconds,
            )
            yield Gap(gaps.ROUNDS_TOO_SHORT, text)


def slow_rounds(rounds: RoundTimes, persistence_seconds: int) -> dict[str, float]:
    """The seconds between two rounds, by cluster, where these are more than what has to last: the
    slowest clusters.
    """
    usual = {cluster: (usual_interval(times) or 0) / SECOND for cluster, times in rounds.items()}
    slow = {name: each for name, each in usual.items() if each > max(persistence_seconds, 1)}
    return dict(sorted(slow.items(), key=lambda item: (-item[1], item[0]))[:_MOST_CLUSTERS])


def missed_rounds(rounds: RoundTimes, persistence_seconds: int) -> Iterator[Gap]:
    """A gap for each cluster that lacks rounds between its first and its last, more than one after
    the other, for so long that what lasts may have come and gone.
    """
    for cluster, asked in sorted(rounds.items()):
        times = sorted(asked)
        usual = usual_interval(times)
        if not usual:
            continue
        length, earlier, later = max((b - a, a, b) for a, b in pairwise(times))
        # Two are missing, and what is more than the usual time is a silence.
        if length < max((1 + ONE_IS_MISSING) * usual, usual + persistence_seconds * SECOND):
            continue
        lengths = (later - earlier for earlier, later in pairwise(times))
        too_long = (length for length in lengths if length > ONE_IS_MISSING * usual)
        absent = sum(round(length / usual) - 1 for length in too_long)
        text = Text(
            "cluster {cluster}: a round comes every {seconds:.0f} s, and some are missing "
            "({number:,}); the longest gap is from {earlier} to {later}",
            cluster=cluster,
            seconds=usual / SECOND,
            number=absent,
            earlier=time_text(earlier),
            later=time_text(later),
        )
        yield Gap(gaps.ROUNDS_MISSING, text)


def short_nights(rounds: RoundTimes, since: Instant | None, until: Instant | None) -> Iterator[Gap]:
    """A gap for each cluster whose rounds begin well after the window, or another cluster, and for
    each whose rounds end well before; ``since``, ``until``: of the window, None where it is open.

    Well: more than three of its usual intervals, and more than ten minutes. A cluster with so few
    rounds that nobody knows its interval has to be away for more than half of the time. Clusters
    whose rounds are of other times altogether show nothing of each other.
    """
    times = {cluster: sorted(each) for cluster, each in rounds.items() if each}
    usual = {cluster: usual_interval(each) for cluster, each in times.items()}
    for cluster, own in sorted(times.items()):
        others = [
            (other_rounds[0], other_rounds[-1])
            for name, other_rounds in times.items()
            if usual[name] and name != cluster
            if other_rounds[0] <= own[-1] and own[0] <= other_rounds[-1]
        ]
        interval = usual[cluster]
        edges = [(since or own[0], until or own[-1]), *others]
        begins = min(own[0], *(at for at, _ in edges))
        ends = max(own[-1], *(at for _, at in edges))
        most = max(longest_at_edges(interval or 0), 0 if interval else (ends - begins) / 2)
        if own[0] - begins > most:
            text = Text(
                "cluster {cluster}: no round from {begin} until the first one at {first}",
                cluster=cluster,
                first=time_text(own[0]),
                begin=time_text(begins),
            )
            yield Gap(gaps.ROUNDS_BEGIN_LATE, text)
        if ends - own[-1] > most:
            text = Text(
                "cluster {cluster}: no round after the last one at {last} until {end}",
                cluster=cluster,
                last=time_text(own[-1]),
                end=time_text(ends),
            )
            yield Gap(gaps.ROUNDS_END_EARLY, text)


def packed_left_out(left_out: LeftOutRounds) -> dict[str, Any]:
    """The things left out as the summary of an ingest has them; empty where there are none."""
    rows = [[*key, list(numbers.items())] for key, numbers in sorted(left_out.items())]
    return {_LEFT_OUT: rows} if rows else {}


def left_out(
    ingested: Mapping[str, Any] | None,
    rounds: RoundTimes,
    persistence_seconds: int,
) -> Iterator[Gap]:
    """A gap for each thing that was left out of all rounds, or for as long as what has to last.

    ``rounds``: of each cluster all in the window. Rounds of a cluster that has none of these are
    taken for all of it.
    """
    for cluster, what, numbers in (ingested or {}).get(_LEFT_OUT, ()):
        number_at: dict[Instant, int] = dict(numbers)
        asked = set(rounds.get(cluster, number_at))
        without = asked & number_at.keys()
        silence = silence_without(asked, without, persistence_seconds * SECOND) if without else None
        if silence is None:
            continue
        most = max(number_at[time] for time in without)
        # Of some things a collector does not know the number.
        many = Text("{number:,} {what}", number=most, what=what) if most > 1 else what
        text = agreeing(
            len(without),
            "cluster {cluster}: the collector left out {many} in {rounds:,} [round|rounds]; the "
            "longest time was from {since} to {until}: raise the bound in its settings, or let it "
            "ask for less (docs/collect)",
            cluster=cluster,
            many=many,
            rounds=len(without),
            **silence.words,
        )
        yield Gap(gaps.LEFT_OUT, text)


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
    times_by_master: Any = grouped(polls.rows(("cluster", "broker_name"), by_master))
    for cluster, name in sorted(given.get(NEVER_ASKED, ())):
        text = Text(
            "broker {broker} of cluster {cluster} is in the routes, but no list or answer of it "
            "came, so which members it lists is not known; add it to what the collector asks",
            broker=name,
            cluster=cluster,
        )
        yield Gap(gaps.BROKER_SILENT, text)
    for cluster, groups in sorted(grouped(given.get(NEVER_LISTED, ())).items()):
        text = Text(
            "cluster {cluster}: offsets of {groups} came, but no list or answer about the members: "
            "nothing of this is audited; let the collector ask for the lists (consumer_connection)",
            cluster=cluster,
            groups=names(sorted(groups), MOST_NAMES),
        )
        yield Gap(gaps.BROKER_SILENT, text)
    yield from _missing_offsets(given[OFFSETS], rounds, times_by_master, least)
    # A route counts for so long.
    route_least = max(least, settings.route_max_age_seconds * SECOND)
    for (cluster, name), times in sorted(given[ROUTES].items()):
        # In place of a nameserver another may come.
        others = (min(each) for (where, _), each in given[ROUTES].items() if where == cluster)
        ends = max(times) if any(max(times) < other for other in others) else None
        asked = [time for time in rounds.get(cluster, ()) if ends is None or time < ends]
        if silence := _came_no_more(times, asked, route_least):
            text = Text(
                "nameserver {name} of cluster {cluster} gave no route from {since} to {until}",
                name=name,
                cluster=cluster,
                **silence.words,
            )
            yield Gap(gaps.NAMESERVER_SILENT, text)


def _missing_offsets(
    given: AnswerTimes, rounds: RoundTimes, times_by_master: AnswerTimes, least: Instant
) -> Iterator[Gap]:
    """A gap for each cluster of which no offsets came for so long; of another one for each broker
    whose master answered then about members.
    """
    by_cluster = grouped((cluster, (name, times)) for (cluster, name), times in given.items())
    for cluster, broker_times in sorted(by_cluster.items()):
        at_any = set().union(*(times for _, times in broker_times))
        if silence := _came_no_more(at_any, rounds.get(cluster, ()), least):
            text = Text(
                "cluster {cluster}: no broker gave offsets from {since} to {until}: whether its "
                "queues were consumed then is not known",
                cluster=cluster,
                **silence.words,
            )
            yield Gap(gaps.OFFSETS_MISSING, text)
            continue
        for name, times in sorted(broker_times):
            if silence := _came_no_more(times, times_by_master.get((cluster, name), ()), least):
                text = Text(
                    "broker {broker} of cluster {cluster} gave lists and no offsets from {since} "
                    "to {until}: whether its queues were consumed then is not known",
                    broker=name,
                    cluster=cluster,
                    **silence.words,
                )
                yield Gap(gaps.OFFSETS_MISSING, text)


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
    return longest_silence([time for time in rounds if time > min(times)], times, usual, least)


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
            yield Gap(gaps.BROKER_SILENT, text)
        elif silence := silence_of(key, times):
            text = Text(
                "broker {broker} of cluster {cluster} did not answer in {rounds:,} rounds; the "
                "longest silence was from {since} to {until}",
                **values,
                rounds=len(times),
                **silence.words,
            )
            yield Gap(gaps.BROKER_SILENT, text)
    unanswered_by_group = grouped(polls.unanswered_in(polls.rounds.filter(pc.field("answered"))))
    for key, unanswered in sorted(unanswered_by_group.items(), key=str):
        if silence := silence_of(key[:-1], unanswered):
            text = Text(
                "broker {broker} of cluster {cluster} did not answer about {group} in "
                "{rounds:,} rounds, but about other groups; the longest silence was from "
                "{since} to {until}",
                broker=f"{key[1]}/{key[2]}",
                cluster=key[0],
                group=key[-1],
                rounds=len(unanswered),
                **silence.words,
            )
            yield Gap(gaps.BROKER_SILENT, text)


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
        yield Gap(gaps.SNAPSHOT_TIME_STANDS, text)


def _named(key: _PollKey, address: str | None) -> str:
    """A broker, and at which address it was last asked without an answer, where that is known."""
    name = f"{key[1]}/{key[2]}"
    return Text("{broker} at {address}", broker=name, address=address) if address else name


class _RefusedLists(NamedTuple):
    """The lists of a group that a broker gave and that were refused; ``reason``: that of the last
    one.
    """

    cluster: str
    broker: str
    consumer_group: str
    reason: str
    rounds: int
    silence: Silence


def refused_lists(polls: BrokerPolls, persistence_seconds: int) -> Iterator[Gap]:
    """A gap for each broker, or for each group where these are fewer, whose lists were refused: all
    of a group, or for as long as what has to last.
    """
    lasting = _lasting(polls, persistence_seconds * SECOND)
    for cluster, refusals in grouped((refused.cluster, refused) for refused in lasting).items():
        by_broker = grouped((refused.broker, refused) for refused in refusals)
        by_group = grouped((refused.consumer_group, refused) for refused in refusals)
        for lists in min(by_group, by_broker, key=len).values():
            longest = max(lists, key=lambda refused: refused.silence.length())
            text = agreeing(
                longest.rounds,
                "cluster {cluster}: the lists of {groups} that {brokers} gave are no evidence in "
                "{rounds:,} [round|rounds]; the longest time was from {since} to {until}: {reason}",
                cluster=cluster,
                groups=names(sorted({list_.consumer_group for list_ in lists}), MOST_NAMES),
                brokers=names(sorted({list_.broker for list_ in lists}), MOST_NAMES),
                reason=longest.reason,
                rounds=longest.rounds,
                **longest.silence.words,
            )
            yield Gap(gaps.LISTS_REFUSED, text)


def _lasting(polls: BrokerPolls, least: Instant) -> Iterator[_RefusedLists]:
    refused: dict[tuple[Any, ...], dict[Instant, str]] = defaultdict(dict)
    for (*key, reason), time in polls.refused_lists():
        refused[tuple(key)][time] = str(reason)
    asked = grouped(polls.rows(BROKER)) if refused else {}
    for (*broker_key, group), reason_at in sorted(refused.items(), key=str):
        if silence := silence_without(asked[tuple(broker_key)], reason_at, least):
            cluster, name, broker_id = broker_key
            broker, reason = f"{name}/{broker_id}", reason_at[max(reason_at)]
            yield _RefusedLists(cluster, broker, group, reason, len(reason_at), silence)
