"""``explain`` and ``what_if``: questions about one group and topic, from a shell or a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING

from jobs.judge.moment import Moment
from jobs.pipeline.moments import Question, moment_of_frames
from jobs.pipeline.terms import strategy_rules
from jobs.reports.explain import explain_lines, what_if_lines
from jobs.settings import Settings
from rebalance_core import Change, Situation, WhatIf
from rebalance_core import what_if as predict

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: One row per queue that changes hands.
_MOVE = "broker_name string, queue_id int, before array<string>, after array<string>"


class Text(str):
    """A text that a shell shows as it is, when it is the value of a line."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def explain(
    heartbeats: DataFrame,
    topic_routes: DataFrame,
    group: str,
    topic: str,
    broker_polls: DataFrame | None = None,
    client_states: DataFrame | None = None,
    queue_offsets: DataFrame | None = None,
    *,
    at: datetime | None = None,
    cluster: str | None = None,
    settings: Settings | None = None,
) -> Text:
    """Who takes what of a topic, why, what is wrong, what repairs it and what if, as a text.

    ``at`` is a time (UTC where it has no zone): the last snapshot up to it is explained; None: the
    last one. Raises InputError for a group, topic, cluster or time that is not there, with those
    that come near, and ContractError where a table has not the columns that it must have.

    >>> explain(heartbeats, topic_routes, "G_S2", "T_S2")  # doctest: +SKIP
    G_S2 on T_S2, cluster DefaultCluster
    ...
    """
    chosen = settings or Settings()
    question = Question(group, topic, in_utc(at), cluster)
    moment = moment_of_frames(
        heartbeats, topic_routes, broker_polls, client_states, queue_offsets, question, chosen
    )
    return explain_moment(moment, chosen)


@dataclass(frozen=True)
class Prediction:
    """What changes would do: ``text`` for a person, ``told`` for a program, ``moves`` for Spark."""

    text: Text
    told: WhatIf
    _spark: SparkSession

    def __repr__(self) -> str:
        return str(self.text)

    @cached_property
    def moves(self) -> DataFrame:
        """One row per queue that changes hands: broker_name, queue_id, and who takes it."""
        rows = [
            (move.queue.broker_name, move.queue.queue_id, list(move.before), list(move.after))
            for move in self.told.moves
        ]
        return self._spark.createDataFrame(rows, _MOVE)


def what_if(
    heartbeats: DataFrame,
    topic_routes: DataFrame,
    group: str,
    topic: str,
    changes: Sequence[Change],
    broker_polls: DataFrame | None = None,
    client_states: DataFrame | None = None,
    queue_offsets: DataFrame | None = None,
    *,
    at: datetime | None = None,
    cluster: str | None = None,
    settings: Settings | None = None,
) -> Prediction:
    """What the changes would do to a group and topic, one after the other.

    Changes are made by the functions of ``rebalance_core``: leave, join, own_ids, use_strategy,
    subscribe_all, add_broker, remove_broker, resize, unify_list, mend. Raises as ``explain`` does,
    and ChangeError where a change cannot be made.

    >>> from rebalance_core import leave
    >>> predicted = what_if(heartbeats, topic_routes, "G", "T", [leave("10.0.0.4@app")])
    ... # doctest: +SKIP
    >>> predicted.moves.show()  # doctest: +SKIP
    """
    chosen = settings or Settings()
    question = Question(group, topic, in_utc(at), cluster)
    moment = moment_of_frames(
        heartbeats, topic_routes, broker_polls, client_states, queue_offsets, question, chosen
    )
    told, text = predict_moment(moment, changes, chosen)
    return Prediction(text, told, heartbeats.sparkSession)


def explain_moment(moment: Moment, settings: Settings) -> Text:
    """The text of ``explain`` for a moment that was found."""
    return Text("\n".join(explain_lines(Situation(moment.state, strategy_rules(settings)), moment)))


def predict_moment(
    moment: Moment, changes: Sequence[Change], settings: Settings
) -> tuple[WhatIf, Text]:
    """What the changes do to a moment that was found, and the text of it."""
    situation = Situation(moment.state, strategy_rules(settings))
    told = predict(situation, changes)
    return told, Text("\n".join(what_if_lines(situation, told, moment)))


def in_utc(time: datetime | None) -> datetime | None:
    """The time with a zone: UTC where it had none."""
    return time.replace(tzinfo=UTC) if time is not None and time.tzinfo is None else time
