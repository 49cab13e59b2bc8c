"""Runs of polls -> when each broker was asked, at which address, and about whom it did not answer.

The driver has to know this of all slices. Brokers and rounds are few. Of groups the polls without
an answer are kept, as runs: a broker that is away all night leaves one of each group in each round.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from ..declared.instants import Instant
from ..schemas import BOOLEAN, BROKER_POLLS, LONG, NO_ANSWER, STRING
from .numbers import Rows, int64, pc
from .runs import REFUSED, merge_runs

BROKER = ("cluster", "broker_name", "broker_id")
_ROUND, _OF_GROUP = (*BROKER, "snapshot_time"), (*BROKER, "consumer_group")
#: One row per broker and round: whether it answered about any group, an address that was asked, and
#: for how long it was asked again about one.
_OF_ROUND = {"answered": BOOLEAN, "broker_addr": STRING, "asked_for": LONG}
ROUNDS = pa.schema(
    {name: BROKER_POLLS.schema.field(name).type for name in BROKER}
    | {"snapshot_time": LONG}
    | _OF_ROUND
)

#: The values of some columns, and a round.
_KeyAndTime: TypeAlias = tuple[tuple[Any, ...], Instant]


@dataclass
class BrokerPolls:
    """The rounds of all brokers, as rows of ``ROUNDS``; the runs of polls without an answer, and of
    those whose list was refused.
    """

    rounds: Rows = field(default_factory=ROUNDS.empty_table)
    unanswered: list[Rows] = field(default_factory=list)
    refused: list[Rows] = field(default_factory=list)

    @classmethod
    def of_all(cls, parts: "Iterable[BrokerPolls]") -> "BrokerPolls":
        """Merges those of all slices."""
        every = list(parts)
        rounds = _distinct(broker_polls.rounds for broker_polls in every)
        unanswered = _together(runs for broker_polls in every for runs in broker_polls.unanswered)
        refused = _together(runs for broker_polls in every for runs in broker_polls.refused)
        return cls(rounds, unanswered, refused)

    def add(self, runs: Rows) -> None:
        """Adds runs of polls, as rows of ``runs.POLL_RUNS``."""
        silent = runs.filter(pc.equal(runs["outcome"], NO_ANSWER))
        if silent.num_rows:
            self.unanswered.append(silent.select([*_OF_GROUP, "times"]))
        refused = runs.filter(pc.equal(runs["outcome"], REFUSED))
        if refused.num_rows:
            self.refused.append(refused.select([*_OF_GROUP, "error_message", "times"]))
        polls = _each_poll(runs, [*BROKER, "broker_addr", "asked_for", "outcome"])
        polls = polls.append_column("answered", pc.not_equal(polls["outcome"], NO_ANSWER))
        self.rounds = _distinct([self.rounds, polls.select(ROUNDS.names)])

    def rows(self, names: Sequence[str], rounds: Rows | None = None) -> Iterator[_KeyAndTime]:
        """The values of these columns and the time of each round, or of some of them."""
        chosen = self.rounds if rounds is None else rounds
        keys = zip(*(chosen[name].to_pylist() for name in names), strict=True)
        return zip(keys, chosen["snapshot_time"].to_pylist(), strict=True)

    def unanswered_in(self, rounds: Rows) -> Iterator[_KeyAndTime]:
        """The broker, the group and the time of each poll without an answer in some rounds."""
        for runs in self.unanswered:
            polls = _each_poll(runs, _OF_GROUP)
            there = polls.join(rounds.select(_ROUND), [*_ROUND], join_type="left semi")
            yield from self.rows(_OF_GROUP, there)

    def refused_lists(self) -> Iterator[_KeyAndTime]:
        """The broker, the group, the reason and the time of each poll whose list was refused."""
        names = [*_OF_GROUP, "error_message"]
        for runs in self.refused:
            yield from self.rows(names, _each_poll(runs, names))


def _together(parts: Iterable[Rows]) -> list[Rows]:
    """Each run once: the slices of many tasks have parts of the same ones."""
    every = list(parts)
    return [merge_runs(pa.concat_tables(every))] if every else []


def _each_poll(runs: Rows, names: Sequence[str]) -> Rows:
    """The columns of the runs and ``snapshot_time``, a row for each poll."""
    times = runs["times"].combine_chunks()
    of_polls = np.repeat(np.arange(len(times)), int64(pc.list_value_length(times)))
    rows = runs.select(names).take(pa.array(of_polls))
    return rows.append_column("snapshot_time", pc.struct_field(times.flatten(), "snapshot_time"))


def _distinct(rounds: Iterable[Rows]) -> Rows:
    every = pa.concat_tables([ROUNDS.empty_table(), *(each.cast(ROUNDS) for each in rounds)])
    found = every.group_by([*_ROUND]).aggregate([(name, "max") for name in _OF_ROUND])
    return found.rename_columns(ROUNDS.names)
