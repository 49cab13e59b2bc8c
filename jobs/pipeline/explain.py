"""``explain`` and ``what_if``: questions about one group and topic, from a shell or a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from jobs.judge.moment import Moment
from jobs.languages.language import language
from jobs.masking import Masking
from jobs.pipeline.moments import Question, moment_of_frames
from jobs.pipeline.terms import strategy_rules
from jobs.reports.explain import explain_lines
from jobs.reports.what_if import what_if_group_lines, what_if_lines, what_if_values
from jobs.settings import Settings
from rebalance_core import Change, Situation, WhatIf
from rebalance_core import what_if as predict
from rebalance_core import what_if_of_group as predict_group

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: One row per queue that changes hands.
_MOVE = "broker_name string, queue_id int, before array<string>, after array<string>"


class ShellText(str):
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
    route_polls: DataFrame | None = None,
    route_contents: DataFrame | None = None,
) -> ShellText:
    """Who takes what of a topic, why, what is wrong, what repairs it and what if, as a text.

    The text is in the language of the settings: ``Settings(language="zh")``.
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
        heartbeats,
        topic_routes,
        broker_polls,
        client_states,
        queue_offsets,
        question,
        chosen,
        route_polls,
        route_contents,
    )
    return explain_moment(moment, chosen)


@dataclass(frozen=True)
class Prediction:
    """What changes would do: ``text`` for people, ``answer`` for programs, ``moves`` for Spark."""

    text: ShellText
    answer: WhatIf
    _spark: SparkSession
    _masking: Masking

    def __repr__(self) -> str:
        return str(self.text)

    @property
    def told(self) -> WhatIf:
        """What ``answer`` was called before 0.2.0."""
        return self.answer

    @cached_property
    def moves(self) -> DataFrame:
        """One row per queue that changes hands: broker_name, queue_id, and who takes it."""
        rows = [
            # Plain texts: Java cannot read what a class of Python's is pickled as.
            (
                move.queue.broker_name,
                move.queue.queue_id,
                [str(each) for each in move.before],
                [str(each) for each in move.after],
            )
            for move in self._masking.mask_all(self.answer.moves)
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
    route_polls: DataFrame | None = None,
    route_contents: DataFrame | None = None,
) -> Prediction:
    """What the changes would do to a group and topic, one after the other.

    Changes are made by the functions of ``rebalance_core``: leave, join, separate_ids,
    use_strategy, subscribe_all, add_broker, remove_broker, resize, unify_list, mend. Raises as
    ``explain`` does, and ChangeError where a change cannot be made.

    >>> from rebalance_core import leave
    >>> predicted = what_if(heartbeats, topic_routes, "G", "T", [leave("10.0.0.4@app")])
    ... # doctest: +SKIP
    >>> predicted.moves.show()  # doctest: +SKIP
    """
    chosen = settings or Settings()
    question = Question(group, topic, in_utc(at), cluster)
    moment = moment_of_frames(
        heartbeats,
        topic_routes,
        broker_polls,
        client_states,
        queue_offsets,
        question,
        chosen,
        route_polls,
        route_contents,
    )
    answer, text = predict_moment(moment, changes, chosen)
    return Prediction(text, answer, heartbeats.sparkSession, chosen.masking.to_masking())


def explain_moment(moment: Moment, settings: Settings) -> ShellText:
    """The text of ``explain`` for a moment that was found."""
    situation = Situation(moment.state, strategy_rules(settings))
    return _masked(explain_lines(situation, moment, language(settings.language)), settings)


def predict_moment(
    moment: Moment, changes: Sequence[Change], settings: Settings
) -> tuple[WhatIf, ShellText]:
    """What the changes do to a moment that was found, and the text of it."""
    situation = Situation(moment.state, strategy_rules(settings))
    answer = predict(situation, changes, moment.unread)
    lines = what_if_lines(situation, answer, moment, language(settings.language))
    return answer, _masked(lines, settings)


@dataclass(frozen=True)
class GroupPrediction:
    """What changes would do to every topic of a group that was asked about.

    ``text`` for a person, ``values`` for a program (the keys of ``--format json``), both without
    the secrets that client ids hold. ``safe``: no topic has a state on the way, or an end, that
    speaks against it.
    """

    text: ShellText
    values: dict[str, Any]
    safe: bool


def predict_moments(
    moments: Sequence[Moment], changes: Sequence[Change], settings: Settings
) -> GroupPrediction:
    """What the changes do to the topics of a group; each moment is of one topic.

    Of one topic alone the text is that of ``predict_moment``. Raises ChangeError where no topic
    allows a change.
    """
    rules = strategy_rules(settings)
    situations = {each.state.topic: Situation(each.state, rules) for each in moments}
    unread = {each.state.topic: each.unread for each in moments}
    answers = predict_group(situations, changes, unread)
    predictions = [(each, answers[each.state.topic]) for each in moments]
    if len(moments) == 1:
        (moment,) = moments
        topic = moment.state.topic
        lines = what_if_lines(
            situations[topic], answers[topic], moment, language(settings.language)
        )
    else:
        lines = what_if_group_lines(predictions, language(settings.language))
    values = settings.masking.to_masking().mask_all(what_if_values(predictions))
    is_safe = all(each.safe for each in answers.values())
    return GroupPrediction(_masked(lines, settings), values, is_safe)


def _masked(lines: Iterable[str], settings: Settings) -> ShellText:
    """The lines as they are shown: without the secrets that client ids hold."""
    return ShellText(settings.masking.to_masking().mask("\n".join(lines)))


def in_utc(time: datetime | None) -> datetime | None:
    """The time with a zone: UTC where it had none."""
    return time.replace(tzinfo=UTC) if time is not None and time.tzinfo is None else time
