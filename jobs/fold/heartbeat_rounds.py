"""Heartbeats, each with a time of its own -> the lists of brokers, round by round.

A sink of events has a row for each heartbeat, at the time at which it came; the audit reads rounds:
whom each broker listed when it was asked. A broker lists a connection from its heartbeat on until
it was silent for too long (``heartbeat_expiry_seconds``). So a round has the connections whose last
heartbeat up to then is no older than that, as that heartbeat has them. A client that stops in order
leaves a broker at once, and sends nothing: here it stays until it expires.

What a round shows depends on what came before it, so there is one only where that is known:

- ``warm_up``: after the beginning of a broker's stream each connection needs the time to send its
  heartbeat; until then those that did not would look as if they joined.
- A stream ends, and nobody has left: no round is later than the first of the streams that end
  together.
- A broker of which nothing came for longer than the expiry, while others went on, gave no answer;
  where nothing came of any, nobody asked.
- A group that has nobody left on a broker of which others' heartbeats come is not online there.

The other tables only get the time of the round in which they would have been collected.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ..declared.instants import SECOND, Instant
from ..engines.pieces import in_parts
from ..errors import InputError, SettingsError
from ..schemas import (
    ANSWERED,
    BROKER_POLLS,
    CLIENT_STATES,
    HEARTBEATS,
    NO_ANSWER,
    NOT_ONLINE,
    QUEUE_OFFSETS,
    TIMESTAMP,
)
from ..texts.shown import visible
from .numbers import NO_NUMBER, Array, Numbers, Rows, int64, key_numbers, pc, segments
from .slice_facts import BROKER

_LOGGER = logging.getLogger(__name__)

#: The key of a broker's lists of a group: these are put into rounds by themselves.
OF_A_BROKER = ("cluster", "consumer_group", "broker_name", "broker_id")
CONNECTION = (*OF_A_BROKER, "client_id", "client_addr")
A_QUEUE = ("cluster", "consumer_group", "topic", "broker_name", "queue_id")
#: The tables whose times have to be those of rounds. A route holds until the next one comes,
#: whenever that is.
IN_ROUNDS = (HEARTBEATS, BROKER_POLLS, CLIENT_STATES, QUEUE_OFFSETS)

_LONGEST_ROUND = 3600
_FOREVER: Instant = 1 << 62
#: The rows that are put into rounds at a time, where they come in parts.
_MOST_ROWS = 1 << 19
#: The columns of the polls that are made.
POLLS = pa.schema(
    field.with_nullable(True)
    for field in BROKER_POLLS.schema
    if field.name in {*OF_A_BROKER, "snapshot_time", "outcome", "connections"}
)
#: The time over which it is measured how heartbeats recur, in the middle of the table.
_MEASURED: Instant = 2 * _LONGEST_ROUND * SECOND

#: The name of a broker: cluster, broker name, broker id.
ClusterBroker = tuple[str, str, int]


class TimeSpan(NamedTuple):
    """A time, with both its ends."""

    first_seen: Instant
    last_seen: Instant


class Recurrence(NamedTuple):
    """Intervals between heartbeats: the longest time between two of one connection within the
    expiry, and how many were within it and beyond it; ``lasts``: the time in which that was looked
    for.
    """

    longest: Instant
    within: int
    beyond: int
    lasts: Instant


def checked_round_seconds(given: Any) -> int:
    """The length of a round. SettingsError for what is no whole number from 1 to 3600."""
    if type(given) is not int or not 1 <= given <= _LONGEST_ROUND:
        raise SettingsError(
            f"round_seconds: expected a whole number of seconds from 1 to {_LONGEST_ROUND}, "
            f"as 60, came {given!r}"
        )
    return given


@dataclass(frozen=True)
class HeartbeatRounds:
    """The rounds of a collector that would have asked all brokers each ``length``.

    ``streams``: of each broker the spans in which heartbeats of it came, ascending.
    """

    length: Instant
    expiry: Instant
    warm_up: Instant
    streams: Mapping[ClusterBroker, Sequence[TimeSpan]]

    @classmethod
    def of(
        cls,
        round_seconds: int,
        expiry_seconds: int,
        streams: Mapping[ClusterBroker, Sequence[TimeSpan]],
        recurrence: Recurrence,
    ) -> "HeartbeatRounds":
        """The rounds by what was measured.

        InputError where connections send their heartbeats more seldom than a broker waits for them.
        """
        expiry = expiry_seconds * SECOND
        spans = list(chain.from_iterable(streams.values()))
        # Of times in a wrong unit no two of a connection lie near enough to be measured.
        short = sum(span.last_seen - span.first_seen <= expiry for span in spans)
        is_apart = len(spans) > 2 * len(streams) and 2 * short > len(spans)
        is_rare = recurrence.within == 0 and is_apart
        is_late = recurrence.lasts > expiry and recurrence.beyond >= max(recurrence.within, 1)
        if is_late or is_rare:
            raise InputError(
                "heartbeats: expected each connection at least once in "
                f"heartbeat_expiry_seconds = {expiry_seconds}, for a broker drops it then; most "
                "come again later than that. Give every heartbeat that came; or, if the table has "
                "only some of them, set heartbeat_expiry_seconds to more than the time between two "
                "of one connection, as settings={'heartbeat_expiry_seconds': 600}. Times "
                "that count milliseconds are timestamp_millis, not timestamp_seconds"
            )
        warm_up = recurrence.longest if recurrence.within else expiry
        made = cls(round_seconds * SECOND, expiry, warm_up, streams)
        without = sorted(
            cluster
            for cluster, asked in made.asked.items()
            if all(span.first_seen > span.last_seen for span in asked)
        )
        if without and len(without) == len(made.asked):
            first, last = min(spans).first_seen, max(span.last_seen for span in spans)
            raise InputError(
                f"heartbeats: expected some rounds of round_seconds = {round_seconds}, came none: "
                f"the heartbeats last {(last - first) // SECOND} s, and the first "
                f"{warm_up // SECOND} s of "
                "them do not show every member yet. Give more of them, or a smaller round_seconds"
            )
        if without:
            _LOGGER.warning(
                "cluster %s is not audited: its heartbeats are too few for a round of %d s; give "
                "more of them, or a smaller round_seconds",
                ", ".join(map(visible, without)),
                round_seconds,
            )
        return made

    @cached_property
    def asked(self) -> Mapping[str, Sequence[TimeSpan]]:
        """The spans of each cluster in which its brokers were asked, from round to round."""
        every: dict[str, list[TimeSpan]] = {}
        for (cluster, *_), spans in self.streams.items():
            every.setdefault(cluster, []).extend(spans)
        return {
            cluster: [self._together(whole, spans) for whole in merged(spans, self.expiry)]
            for cluster, spans in every.items()
        }

    def _together(self, whole: TimeSpan, spans: Sequence[TimeSpan]) -> TimeSpan:
        """The rounds of a span of a cluster: as long as all those brokers send that begin, and
        end, together, for none does so at the same moment.
        """
        first_seen, last_seen, reach = whole.first_seen, whole.last_seen, self.expiry
        begins = (s.first_seen for s in spans if 0 <= s.first_seen - first_seen <= reach)
        ends = (s.last_seen for s in spans if 0 <= last_seen - s.last_seen <= reach)
        return self._rounds_in(max(begins) + self.warm_up, min(ends))

    def answered(self, broker: ClusterBroker) -> list[TimeSpan]:
        """The spans in which the broker answered, from round to round."""
        return [
            self._rounds_in(max(known[0] + self.warm_up, asked[0]), min(known[1], asked[1]))
            for asked in self.asked.get(broker[0], ())
            for known in self.streams.get(broker, ())
        ]

    def _rounds_in(self, first_seen: Instant, last_seen: Instant) -> TimeSpan:
        return TimeSpan(self.after(first_seen), last_seen // self.length * self.length)

    def after(self, time: Any) -> Any:
        """The first round that is not before a time, or of each of some times."""
        return -(-time // self.length) * self.length

    def times(self, spans: Iterable[TimeSpan]) -> Numbers:
        """All rounds of the spans."""
        every = [np.arange(span.first_seen, span.last_seen + 1, self.length) for span in spans]
        return np.unique(np.concatenate([np.zeros(0, np.int64), *every]))


def merged(spans: Iterable[TimeSpan], apart: Instant) -> list[TimeSpan]:
    """The spans in time, as one where they are no further apart than that.

    >>> merged([TimeSpan(7, 8), TimeSpan(0, 3), TimeSpan(4, 5)], 1)
    [TimeSpan(first_seen=0, last_seen=5), TimeSpan(first_seen=7, last_seen=8)]
    """
    begins, ends = np.array(sorted(spans), np.int64).reshape(-1, 2).T
    return _spans(begins, np.maximum.accumulate(ends), apart)


def _spans(begins: Numbers, ends: Numbers, apart: Instant) -> list[TimeSpan]:
    """One span for all that follow each other and are no further apart than that."""
    cuts = [0, *(np.flatnonzero(begins[1:] - ends[:-1] > apart) + 1).tolist(), len(ends)]
    return [TimeSpan(int(begins[a]), int(ends[b - 1])) for a, b in pairwise(cuts) if a < b]


def as_rounds(
    tables: Mapping[str, pa.Table], round_seconds: int, expiry_seconds: int
) -> dict[str, pa.Table]:
    """The snapshot tables by rounds, ``broker_polls`` among them, where the heartbeats and other
    rows have times of their own.

    SettingsError for a length that is none; InputError: see ``HeartbeatRounds.of``.
    """
    length = checked_round_seconds(round_seconds)
    rounds = rounds_of(tables[HEARTBEATS.name], length, expiry_seconds)
    found = dict(tables)
    for table in IN_ROUNDS:
        if table.name in tables:
            found[table.name] = in_rounds(table.name, tables[table.name], rounds)
    if BROKER_POLLS.name not in tables:
        found[BROKER_POLLS.name] = polls_of(connections(found[HEARTBEATS.name]), rounds)
    return found


def rounds_of(heartbeats: pa.Table, round_seconds: int, expiry_seconds: int) -> HeartbeatRounds:
    """The rounds that a table of events allows. InputError: see ``HeartbeatRounds.of``."""
    times, rows = _with_times(heartbeats)
    apart = expiry_seconds * SECOND
    streams: dict[ClusterBroker, list[TimeSpan]] = {}
    for places in _equal_keys([times, *_keys(rows, BROKER)], but=1):
        broker_times = times[places]
        streams[broker_of(rows, int(places[0]))] = _spans(broker_times, broker_times, apart)
    measured = measured_around(int(np.median(times)) if times.size else 0)
    within = (times >= measured.first_seen) & (times <= measured.last_seen)
    recurrence = _recurrence([key[within] for key in _keys(rows, CONNECTION)], times[within], apart)
    return HeartbeatRounds.of(round_seconds, expiry_seconds, streams, recurrence)


def measured_around(time: Instant) -> TimeSpan:
    """The span over which the recurrence of heartbeats is measured, of a table that has half of
    its rows before this time.
    """
    return TimeSpan(time - _MEASURED // 2, time + _MEASURED // 2)


def _recurrence(keys: Sequence[Numbers], times: Numbers, expiry: Instant) -> Recurrence:
    if not times.size:
        return Recurrence(0, 0, 0, 0)
    order = np.lexsort([times, *keys])
    is_same = np.ones(max(len(order) - 1, 0), np.bool_)
    for key in keys:
        is_same &= np.diff(key[order]) == 0
    gaps = np.diff(times[order])[is_same]
    short = gaps[gaps <= expiry]
    lasts = int(times.max() - times.min())
    return Recurrence(int(short.max(initial=0)), len(short), len(gaps) - len(short), lasts)


# ---------------------------------------------------------------- rows


def _with_times(rows: pa.Table) -> tuple[Numbers, Rows]:
    """The rows that have a time, and these."""
    rows = rows.filter(pc.is_valid(rows["snapshot_time"])).combine_chunks()
    return int64(rows["snapshot_time"]), rows


def _keys(rows: Rows, names: Sequence[str]) -> list[Numbers]:
    """The numbers of the columns of a key; of one that is not there the same for all."""
    there = [name for name in names if name in rows.column_names]
    return [key_number for name in there for key_number in key_numbers(_column(rows, name))]


def _column(rows: Rows, name: str) -> Array:
    column = rows[name].combine_chunks()
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def broker_of(rows: Rows, place: int) -> ClusterBroker:
    """The broker of a row."""
    cluster, name, id_ = (rows[column][place].as_py() for column in BROKER)
    return cluster, name, id_


def in_rounds(name: str, rows: pa.Table, rounds: HeartbeatRounds) -> pa.Table:
    """The rows of a snapshot table at the times of rounds; heartbeats as ``listed`` has them."""
    if name == HEARTBEATS.name:
        return listed(rows, rounds)
    times, timed = _with_times(rows)
    at = rounds.after(times)
    came = _at(timed, at)
    if name == BROKER_POLLS.name:
        # What was collected before its round would count for the round before.
        for column in ("collected_at", "first_collected_at"):
            came = _with_nulls(came, column, at != times)
    if name == QUEUE_OFFSETS.name:
        # Of several polls in a round the last one is what the round shows.
        keys = [*_keys(came, A_QUEUE), at]
        order = np.lexsort([times, *keys])
        ends = np.append(segments([key[order] for key in keys], len(order)), len(order))[1:]
        came = came.take(pa.array(np.sort(order[ends - 1])))
    return pa.concat_tables([came, _without_time(rows)])


def _without_time(rows: Rows) -> Rows:
    return rows.filter(pc.is_null(rows["snapshot_time"]))


def listed(
    heartbeats: pa.Table, rounds: HeartbeatRounds, within: TimeSpan | None = None
) -> pa.Table:
    """The connections that each broker listed in each round, by groups, brokers and rounds.

    ``within``: only the rounds from its beginning on and before its end. Rows without a time come
    as they are, last: what breaks its contract is refused where it is read. ``last_heartbeat_at``
    is null: who is listed here has not expired, and no more is known.
    """
    times, rows = _with_times(heartbeats)
    keys = _keys(rows, CONNECTION)
    order = np.lexsort([times, *keys[::-1]])
    in_order = times[order]
    heard = in_order
    if "last_heartbeat_at" in rows.column_names:
        # A row of a list may say that its member was last heard long before: it is in the list
        # until the next one comes.
        last_heard = int64(_column(rows, "last_heartbeat_at"), NO_NUMBER)
        heard = np.minimum(np.where(last_heard == NO_NUMBER, times, last_heard)[order], in_order)
    first_seen = rounds.after(in_order)
    last_seen = np.maximum(heard + rounds.expiry, in_order + rounds.warm_up)
    starts = segments([key[order] for key in keys], len(order))
    # Each but the last of a connection holds until the next one comes.
    following = np.append(in_order[1:], 0) - 1
    following[[*(starts[1:] - 1), *([-1] if len(order) else [])]] = _FOREVER
    last_seen = np.minimum(last_seen, following)
    if within is not None:
        first_seen = np.maximum(first_seen, rounds.after(within.first_seen))
        last_seen = np.minimum(last_seen, within.last_seen - 1)
    number = np.maximum((last_seen - first_seen) // rounds.length + 1, 0)
    row_numbers = np.repeat(np.arange(len(order)), number)
    nth = np.arange(len(row_numbers)) - np.repeat(np.cumsum(number) - number, number)
    places, at = order[row_numbers], first_seen[row_numbers] + nth * rounds.length
    known = _is_known(rows, places, at, rounds)
    places, at = places[known], at[known]
    list_keys = [key[places] for key in _keys(rows, OF_A_BROKER)]
    by_list = np.lexsort([at, *list_keys[::-1]])
    made = _at(rows.take(pa.array(places[by_list])), at[by_list])
    made = _with_nulls(made, "last_heartbeat_at", np.ones(made.num_rows, np.bool_))
    return pa.concat_tables([made, _without_time(heartbeats)])


def _is_known(rows: Rows, places: Numbers, at: Numbers, rounds: HeartbeatRounds) -> Any:
    """True where the broker of the row answered in the round."""
    known = np.zeros(len(places), np.bool_)
    for some in _equal_keys([key[places] for key in _keys(rows, BROKER)]):
        for first_seen, last_seen in rounds.answered(broker_of(rows, int(places[some[0]]))):
            known[some] |= (at[some] >= first_seen) & (at[some] <= last_seen)
    return known


def _equal_keys(columns: Sequence[Numbers], but: int = 0) -> Iterator[Numbers]:
    """The places of the rows of each key, in order; ``but``: so many columns are no part of it."""
    order = np.lexsort(columns)
    starts = segments([column[order] for column in columns[but:]], len(order))
    for start, end in pairwise([*starts.tolist(), len(order)]):
        yield order[start:end]


def _at(rows: Rows, at: Numbers) -> Rows:
    place = rows.column_names.index("snapshot_time")
    field = rows.schema.field(place)
    return rows.set_column(place, field, pa.array(at).cast(TIMESTAMP).cast(field.type))


def _with_nulls(rows: Rows, name: str, where: Any) -> Rows:
    """The rows with null in a column where that is true; as they are without the column."""
    if name not in rows.column_names:
        return rows
    place = rows.column_names.index(name)
    column = pc.if_else(pa.array(where), pa.scalar(None, rows[name].type), rows[name])
    return rows.set_column(place, rows.schema.field(place), column)


def _tables(batches: Iterable[pa.RecordBatch], most: int) -> Iterator[pa.Table]:
    parts = in_parts(batches, most, lambda batch: batch.num_rows)
    return (pa.Table.from_batches(some) for some in parts)


def whole_parts(
    batches: Iterable[pa.RecordBatch], key: Sequence[str], most: int = _MOST_ROWS
) -> Iterator[pa.Table]:
    """Rows that come by a key, about so many at a time, those of a key in one part."""
    held: Rows = None
    for came in _tables(batches, most):
        held = came if held is None else pa.concat_tables([held, came])
        last = int(segments(_keys(held, key), held.num_rows)[-1])
        if last:
            yield held.slice(0, last)
            held = held.slice(last)
    if held is not None:
        yield held


def listed_in_parts(
    batches: Iterable[pa.RecordBatch], rounds: HeartbeatRounds, most: int = _MOST_ROWS
) -> Iterator[pa.Table]:
    """The same of rows that come by groups, brokers and times, about so many at a time: of a giant
    group some rounds at a time, with the heartbeats that still count for the next ones.
    """
    held, begins = None, -_FOREVER
    for came in _tables(batches, most):
        held = came if held is None else pa.concat_tables([held, came])
        starts = segments(_keys(held, OF_A_BROKER), held.num_rows)
        if len(starts) > 1:
            # Of the first some rounds may be there already.
            yield listed(held.slice(0, int(starts[1])), rounds, TimeSpan(begins, _FOREVER))
            yield listed(held.slice(int(starts[1]), int(starts[-1] - starts[1])), rounds)
            held, begins = held.slice(int(starts[-1])), -_FOREVER
        if held.num_rows >= most:
            times, timed = _with_times(held)
            ends = int(times.max(initial=begins))
            yield listed(held, rounds, TimeSpan(begins, ends))
            held, begins = timed.filter(pa.array(times >= ends - rounds.expiry)), ends
    if held is not None:
        yield listed(held, rounds, TimeSpan(begins, _FOREVER))


# ---------------------------------------------------------------- polls


def connections(listed_rows: pa.Table) -> pa.Table:
    """The number of connections in each list, of rows as ``listed`` gives them."""
    times, rows = _with_times(listed_rows.select([*OF_A_BROKER, "snapshot_time"]))
    starts = segments([*_keys(rows, OF_A_BROKER), times], len(times))
    sizes = np.diff(np.append(starts, len(times)))
    lists: pa.Table = rows.take(pa.array(starts))
    return lists.append_column("connections", pa.array(sizes))


def polls_of(lists: pa.Table, rounds: HeartbeatRounds) -> pa.Table:
    """Answers of each broker about each group, from the first round on in which it listed a member,
    as rows of ``broker_polls``; ``lists``: their ``connections``.
    """
    times, rows = _with_times(lists)
    starts = segments(_keys(rows, OF_A_BROKER), len(times))
    sizes = int64(rows["connections"])
    # Of each poll the place of a list of its broker, its round, its connections, its outcome.
    polls = [(np.zeros(0, np.int64),) * 4]
    for start, end in pairwise([*starts.tolist(), len(times)]):
        came, broker = times[start:end], broker_of(rows, start)
        asked = rounds.times(rounds.asked[broker[0]])
        asked = asked[asked >= came.min()]
        number = np.zeros(len(asked), np.int64)
        number[np.searchsorted(asked, came)] = sizes[start:end]
        answered = np.isin(asked, rounds.times(rounds.answered(broker)))
        outcome = np.select([number > 0, answered], [0, 1], 2)
        polls.append((np.full(len(asked), start), asked, number, outcome))
    places, asked, number, outcome = map(np.concatenate, zip(*polls, strict=True))
    values = dict(zip(OF_A_BROKER, rows.select([*OF_A_BROKER]).take(pa.array(places)), strict=True))
    values["snapshot_time"] = pa.array(asked)
    values["outcome"] = pa.array([ANSWERED, NOT_ONLINE, NO_ANSWER]).take(pa.array(outcome))
    values["connections"] = pa.array(number)
    return pa.table([values[f.name].cast(f.type) for f in POLLS], schema=POLLS)
