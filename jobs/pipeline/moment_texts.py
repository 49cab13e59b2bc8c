"""``explain`` and ``what_if``: the answers about moments that were found, as texts."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from rebalance_core import Change, Situation
from rebalance_core import what_if_of_group as predict_group

from ..config.settings import Settings
from ..judge.moment import Moment
from ..reports.situation_text import explain_lines
from ..reports.tables import Tables
from ..reports.text_templates import WIDTH
from ..reports.what_if import what_if_lines, what_if_values
from .judged_moments import judged_of
from .terms_of_settings import strategy_rules


class ShellText(str):
    """A text that a shell shows as it is, when it is the value of a line."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def explain_moment(
    moment: Moment,
    settings: Settings,
    width: int = WIDTH,
    *,
    published: Tables | None = None,
    is_full: bool = False,
) -> ShellText:
    """The text of ``explain`` for a moment that was found.

    ``published``: the tables of the run that judged it, if there is one (``judged_of``).
    """
    situation = Situation(moment.state, strategy_rules(settings))
    judged = judged_of(moment, published)
    lines = explain_lines(situation, moment, judged, settings.reader, width, is_full=is_full)
    return _masked(lines, settings)


@dataclass(frozen=True)
class Prediction:
    """The effect that changes would have on each topic of a group that was asked about.

    ``text`` for a person, ``values`` for a program (the keys of ``--format json``), both without
    the secrets that client ids hold. ``safe``: no topic has a state on the way, or an end, that
    speaks against it.
    """

    text: ShellText
    values: dict[str, Any]
    safe: bool

    def __repr__(self) -> str:
        return str(self.text)


def predict_moments(
    moments: Sequence[Moment],
    changes: Sequence[Change],
    settings: Settings,
    width: int = WIDTH,
    *,
    is_full: bool = False,
) -> Prediction:
    """Predicts the effect of changes on the topics of a group; each moment is of one topic.

    Raises ChangeError where no topic allows a change.
    """
    rules = strategy_rules(settings)
    situations = {moment.state.topic: Situation(moment.state, rules) for moment in moments}
    unread = {moment.state.topic: moment.backlog for moment in moments}
    unlisted = {moment.state.topic for moment in moments if moment.is_read_unlisted}
    held = {moment.state.topic: moment.held_by_all for moment in moments}
    answers = predict_group(situations, changes, unread, unlisted, held)
    predictions = [(moment, answers[moment.state.topic]) for moment in moments]
    lines = what_if_lines(predictions, settings.reader, width, is_full=is_full)
    values = settings.masking.to_masking().mask_all(what_if_values(predictions))
    is_safe = all(what_if.safe for what_if in answers.values())
    return Prediction(_masked(lines, settings), values, is_safe)


def _masked(lines: Iterable[str], settings: Settings) -> ShellText:
    """The lines as they are shown: without the secrets that client ids hold."""
    return ShellText(settings.masking.to_masking().mask("\n".join(lines)))
