"""The answer of an audit from Python: its report tables, and what it says of a moment."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from html import escape
from typing import Any

import pyarrow as pa

from rebalance_core import Change
from rebalance_core.errors import near_names

from ..errors import InputError
from ..judge.moment import Moment
from ..pipeline.moments import (
    MomentQuestion,
    Prediction,
    ShellText,
    explain_moment,
    moments_of_tables,
    predict_moments,
)
from ..publish.run import Task
from ..rendering.write import Look, report_text
from ..reports.tables import PublishedTables, declared_table
from ..reports.text_templates import WIDTH
from ..schemas import RUNS
from ..storage import PublishedRun, Reports
from ..verdict.run_table import table_of_run
from ..verdict.verdict import read_verdict
from .asked import Time, time_in_utc
from .closing import closing_lines

#: The number of topics with pictures on the page in a notebook, as on that of ``report``.
_TOP = 10


class Report(Mapping[str, pa.Table]):
    """The result of an audit: the report tables by name, as Arrow, and answers about its moments.

    ``runs`` has the run itself, in one row.

    A shell shows the worst that was found, a notebook the page of ``rebalance-audit report``.
    """

    def __init__(self, task: Task, published: PublishedRun) -> None:
        self.summary = published.summary
        self._task = task
        self._published = published
        self._settings = task.settings
        self._reports = Reports(task.reports)
        self._tables = PublishedTables(self._reports, published)

    def __getitem__(self, name: str) -> pa.Table:
        if name == RUNS.name:
            return table_of_run(self._published, read_verdict(self._tables).row())
        if name not in self._published.tables:
            raise KeyError(f"no report table {name!r}: {near_names(name, self)}")
        return self._tables.read(name, declared_table(name).schema.names)

    def __iter__(self) -> Iterator[str]:
        return iter((*self._published.tables, RUNS.name))

    def __len__(self) -> int:
        return len(self._published.tables) + 1

    def explain(
        self,
        group: str,
        topic: str,
        at: Time | None = None,
        cluster: str | None = None,
        *,
        full: bool = False,
    ) -> ShellText:
        """Explains a topic: what this report has of it at a moment, why, what repairs it, and who
        takes what by lists and routes.

        ``at`` is a time or the text of one (UTC where it has no zone): the last snapshot up to it
        is explained; None: the last one. ``full``: the pictures have every broker, queue and
        client. Raises InputError for a group, topic, cluster or time that is not there, with those
        that come near, and SettingsError for what is not a time.
        """
        (moment,) = self._moments(self._question(group, topic, at, cluster))
        moment = replace(moment, date=self._published.date)
        return explain_moment(moment, self._settings, published=self._tables, is_full=full)

    def what_if(
        self,
        group: str,
        topic: str | None,
        changes: Change | Iterable[Change],
        at: Time | None = None,
        cluster: str | None = None,
        *,
        full: bool = False,
    ) -> Prediction:
        """Predicts what changes do to a topic of a group, one after the other; None: to all topics.

        Changes are made by the functions of ``rebalance_core``: leave, join, separate_ids,
        use_strategy, subscribe_all, add_broker, remove_broker, resize, unify_list, mend. Raises as
        ``explain`` does, InputError for what is not a change, and ChangeError where one cannot be
        made. ``full``: the pictures have every broker, queue and client.

        >>> report.what_if("G", "T", [leave("10.0.0.4@app")]).safe  # doctest: +SKIP
        """
        made = _changes_of(changes)
        moments = self._moments(self._question(group, topic, at, cluster))
        return predict_moments(moments, made, self._settings, is_full=full)

    def _question(
        self, group: str, topic: str | None, at: Time | None, cluster: str | None
    ) -> MomentQuestion:
        """The question, of what the run judged: its window, and its known issues."""
        time = time_in_utc("at", at)
        return MomentQuestion(
            group, topic, time, cluster, self._task.window, self._task.known_issues
        )

    def _moments(self, question: MomentQuestion) -> list[Moment]:
        return moments_of_tables(self._task.snapshots, question, self._settings)

    def __repr__(self) -> str:
        missing, lines = closing_lines(self._tables, self._settings, WIDTH)
        return "\n".join([*missing, *lines])

    def _repr_html_(self) -> str:
        """The page, in a frame: its style and script are not the notebook's."""
        settings = self._settings
        look = Look(_TOP, settings.paths.finding_pages, settings.reader)
        page, _ = report_text(self._reports, self._published, "html", look)
        return f'<iframe srcdoc="{escape(page)}" width="100%" height="800"></iframe>'


def _changes_of(given: Change | Iterable[Change]) -> list[Change]:
    changes: list[Any] = [given]
    if isinstance(given, Iterable) and not isinstance(given, str):
        changes = list(given)
    for change in changes:
        if not isinstance(change, Change):
            raise InputError(
                "expected changes that functions of rebalance_core make, as [separate_ids()], "
                f"came {change!r}"
            )
    return changes
