"""answers -> rounds: how long a round of questions takes, and how often one comes.

Brokers that are asked a minute apart are compared as they were a minute apart. What changed in
between is followed (see ``membership``), but nothing shorter than a round can be seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from jobs.instants import SECOND
from jobs.judge.answers import Answers, Numbers, asked_answers, snapshots_of
from jobs.judge.dossier import Broker, Dossier
from jobs.judge.intervals import usual_gap
from jobs.judge.tables import Row
from rebalance_core.english import joined
from rebalance_core.texts import Text


class Rounds(NamedTuple):
    """The usual round of a group, in seconds.

    ``seconds``: from its first answer to its last, the median. ``interval_seconds``: between two
    rounds of one broker, for of two collectors each may ask other brokers; None where each
    broker was asked once.
    """

    seconds: float
    interval_seconds: float | None


def is_too_wide(round_seconds: float, persistence_seconds: int) -> bool:
    """Whether a round takes longer than what is to be found has to last.

    One second is not wide, whatever has to last.

    >>> is_too_wide(240.0, 180), is_too_wide(0.4, 0)
    (True, False)
    """
    return round_seconds > max(persistence_seconds, 1)


def find_rounds(dossier: Dossier) -> Rounds | None:
    """The usual round; None of a group that was not asked for."""
    answers = asked_answers(dossier.polls)
    snapshots = snapshots_of(answers)
    if not len(snapshots):
        return None
    first, last = _edges(answers, snapshots)
    gaps = [(gap, 1) for each in answers for gap in np.diff(each.snapshots).tolist()]
    return Rounds(
        float(np.median(last - first)) / SECOND,
        usual_gap(gaps) / SECOND if gaps else None,
    )


def with_rounds(row: Row, rounds: Rounds | None, persistence_seconds: int) -> Row:
    """The row of ``group_health`` with the columns of the group's rounds.

    The reason says so where rounds are too wide to compare what brokers list.
    """
    reason = row["reason"]
    too_wide = rounds and is_too_wide(rounds.seconds, persistence_seconds)
    if rounds is not None and too_wide:
        reason = joined(part for part in (reason, _too_wide(rounds.seconds)) if part)
    return row | {
        "reason": reason,
        "rounds_too_wide": too_wide,
        "round_seconds": rounds and rounds.seconds,
        "round_interval_seconds": rounds and rounds.interval_seconds,
    }


def _too_wide(seconds: float) -> Text:
    return Text(
        "a round of questions takes {seconds} s, longer than a fault has to last: brokers that "
        "are asked so far apart can hardly be compared, so ask them closer together",
        seconds=round(seconds),
    )


def _edges(answers: Sequence[Answers[Broker]], snapshots: Numbers) -> tuple[Numbers, Numbers]:
    """By snapshot when the first and the last answer came."""
    first = np.full(len(snapshots), np.iinfo(np.int64).max)
    last = np.full(len(snapshots), np.iinfo(np.int64).min)
    for each in answers:
        places = np.searchsorted(snapshots, each.snapshots)
        np.minimum.at(first, places, each.collected_at)
        np.maximum.at(last, places, each.collected_at)
    return first, last
