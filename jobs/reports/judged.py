"""The judgement of a topic at one moment: all that was found of it then, and at other times.

It is what ``explain`` says first; ``pipeline/judged_moments.py`` makes it of the tables of a run.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain
from typing import Any

from ..declared.kinds import QUEUE_FINDINGS, SEVERITIES, worst
from .problems import Problem, ShownFault


@dataclass(frozen=True)
class Judged:
    """The judgement of a topic at one moment.

    ``problem``: of all that was there then; None: nothing was. ``others``: of all that was there at
    other times alone. ``rows``: by table the findings and faults that were there then.
    """

    problem: Problem | None = None
    others: Problem | None = None
    rows: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)

    @property
    def queues(self) -> dict[str, Sequence[Mapping[str, Any]]]:
        """The findings of queues, by table."""
        return {table: self.rows.get(table, ()) for table in QUEUE_FINDINGS}

    @property
    def wrong(self) -> set[tuple[str, str, int]]:
        """The queues that were found wrong then, by kind."""
        return {
            (QUEUE_FINDINGS[table], row["broker_name"], row["queue_id"])
            for table, rows in self.queues.items()
            for row in rows
        }

    @property
    def severity(self) -> str:
        """The worst of what was there then, known issues aside where there is anything else."""
        return worst(row["severity"] for row in self._counted)

    @property
    def times(self) -> tuple[datetime, datetime, bool]:
        """The time of what is so bad: its beginning, its end, and True if it is there at the end.

        A WARNING that goes on does not make a CRITICAL go on that was over at 10:09.
        """
        those = [row for row in self._counted if row["severity"] == self.severity]
        return (
            min(row["open_since"] or row["first_seen"] for row in those),
            max(row["last_seen"] for row in those),
            any(row["ongoing"] for row in those),
        )

    @property
    def cause(self) -> ShownFault | None:
        """The fault that explains it, of several the one of the worst that was there then."""
        faults = self.problem.why if self.problem else []
        return max(faults, key=lambda each: SEVERITIES.index(each.severity), default=None)

    @property
    def _counted(self) -> list[Mapping[str, Any]]:
        every = list(chain.from_iterable(self.rows.values()))
        return [row for row in every if row["known_issue"] is None] or every
