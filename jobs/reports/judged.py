"""The judgement of a topic at one moment: all that was found of it then, and at other times.

It is what ``explain`` says first; ``pipeline/moments.py`` makes it of the tables of a run.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..declared.kinds import QUEUE_FINDINGS
from .problems import Problem, ShownFault


@dataclass(frozen=True)
class Judged:
    """The judgement of a topic at one moment.

    ``worst``: the problem of the worst that was there then, so that a WARNING that goes on does not
    make a CRITICAL go on that was over at 10:09; None: nothing was. ``interrupted``: that of the
    worst that was there before and after, and not then. ``cause``: what explains ``worst``, else
    ``interrupted``. ``faults``: all of both. ``others``: the problem of the worst that was there at
    other times alone. ``queues``: by table the findings of queues in whose time the moment is, with
    their times as Instants.
    """

    worst: Problem | None = None
    interrupted: Problem | None = None
    cause: ShownFault | None = None
    faults: Sequence[ShownFault] = ()
    others: Problem | None = None
    queues: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)

    @property
    def wrong(self) -> set[tuple[str, str, int]]:
        """The queues in the time of whose findings the moment is, by kind."""
        return {
            (QUEUE_FINDINGS[table], row["broker_name"], row["queue_id"])
            for table, rows in self.queues.items()
            for row in rows
        }
