"""stretches -> timeline: the phases of a topic that say who owns what, numbered in time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from jobs.instants import Instant
from jobs.judge.evaluated import Evaluated
from jobs.judge.extents import Part, Run, runs_of
from jobs.judge.situations import Stretch
from rebalance_core.findings import POSSIBLE


class Phase(NamedTuple):
    """A stretch whose situation says who owns what, with its evaluation."""

    topic: str
    situation_id: str
    #: Counts the unbroken runs of the group's lists, whatever the topic.
    group_run: int
    first_seen: Instant
    last_seen: Instant
    snapshots: int
    evaluated: Evaluated
    #: 1, 2, ... in time within the topic.
    position: int
    #: It cannot tell whether what was found before has ended: see ``build_timeline``.
    is_blind: bool


@dataclass(frozen=True)
class Timeline:
    """The phases of one topic of the group, in time."""

    topic: str
    phases: tuple[Phase, ...]

    @property
    def end(self) -> Instant:
        """The last snapshot that says who owns what; only of a timeline with phases."""
        return self.phases[-1].last_seen

    @cached_property
    def runs(self) -> Sequence[Run]:
        """Of each phase its run, as episodes count them."""
        return runs_of(
            [
                Part(each.first_seen, each.last_seen, each.snapshots, not each.is_blind)
                for each in self.phases
            ]
        )

    @property
    def told(self) -> int:
        """How many snapshots tell what has ended."""
        return self.runs[-1].after if self.runs else 0


def build_timeline(
    topic: str, stretches: Sequence[Stretch], evaluated: Mapping[str, Evaluated]
) -> Timeline:
    """The timeline of a topic from its stretches in time and, by situation id, the evaluations.

    Stretches in which nothing was known (no broker answered, no route) are left out, so that they
    end no episode. A phase is blind where all lists agree for the one reason that fewer of them are
    known: lists differ before and after, and in all the time between them fewer answered than then,
    so that the list that differs may be among those that are missing.
    """
    informed = [
        (stretch, evaluation)
        for stretch in stretches
        if (evaluation := evaluated[stretch.situation.situation_id]).known
    ]
    blind = _blind([evaluation for _, evaluation in informed])
    phases = (
        Phase(
            topic,
            stretch.situation.situation_id,
            stretch.group_run,
            stretch.first_seen,
            stretch.last_seen,
            stretch.snapshots,
            evaluation,
            position,
            is_blind,
        )
        for position, ((stretch, evaluation), is_blind) in enumerate(
            zip(informed, blind, strict=True), start=1
        )
    )
    return Timeline(topic, tuple(phases))


def _blind(evaluations: Sequence[Evaluated]) -> list[bool]:
    """Of each evaluation in time, whether it is blind."""
    lists = [each.completeness * each.nameservers for each in evaluations]
    differing = [
        number
        for number, each in enumerate(evaluations)
        if any(finding.certainty == POSSIBLE for finding in each.findings)
    ]
    blind = [False] * len(evaluations)
    for before, after in pairwise(differing):
        most = max(lists[before + 1 : after], default=0.0)
        if most < lists[before] and most < lists[after]:
            blind[before + 1 : after] = [True] * (after - before - 1)
    return blind
