"""The steps of the job ``jobs/audit.py``: snapshot tables -> pieces of groups -> report tables.

On every engine the same, each of them plain Python over bytes and columns.
"""

import logging
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any

import pyarrow as pa

from ..config.settings import Settings
from ..config.window import future_after
from ..console.progress import Progress
from ..engines.engine import Engine
from ..engines.pieces import all_rows, all_values
from ..errors import InputError
from ..fold.kernel import OF_GROUPS, OF_TOPICS, Cutting, Dealing
from ..fold.slice_facts import FACTS, Facts, merge_facts
from ..judge.terms import Terms
from ..publish.earlier import EndedProblems, ended_problems, open_findings
from ..publish.gone import BROKERS, NAMESERVERS
from ..publish.run import EngineResult, Scope, Task
from ..schemas import ALLOCATION_DRIFT, CLIENT_STATES, GAPS, QUARANTINE, REPORT_TABLES, VERDICT
from ..storage import Snapshots
from ..texts.shown import iso, visible
from ..verdict.gaps import clusters_alike, facts_missing, times_ahead
from ..verdict.silence import NEVER_ASKED, NEVER_LISTED, OFFSETS, ROUTES, AnswerTimes
from .failed_groups import without_failures
from .group_audit import GroupAudit, earlier_pieces
from .inputs import Inputs, window_of_last
from .lost_rows import lost_clusters, lost_rows, without_content
from .merged_events import with_events
from .refused_events import without_events
from .terms_of_settings import strategy_rules, terms_of

_LOGGER = logging.getLogger(__name__)


def opened(task: Task, inputs: Inputs | None, progress: Progress) -> tuple[Task, Inputs]:
    """The tables of a task, and the task with its window."""
    inputs = inputs or Inputs(Snapshots.open(task.snapshots), task.settings)
    progress.say(inputs.sentence())
    return with_window(task), inputs


def with_window(task: Task) -> Task:
    """The task with the window that its snapshots are read by.

    With ``since_last`` a window without a beginning begins where that of the last published run
    did. Whoever asks for a date of the future means it: of another window what lies in the future
    is counted.
    """
    window = task.window
    if task.since_last:
        window = window_of_last(task.history.last(window.newest_date), window)
    future = future_after(task.run.started_at, task.settings.bounds.future_days)
    if window.future is None and window.until is not None and window.until <= future:
        window = replace(window, future=future)
    return replace(task, window=window)


@dataclass(frozen=True)
class FoldResult:
    """The pieces of all groups, and what the driver has to know of them; the rows of the quarantine
    for what was refused.
    """

    engine: Engine
    pieces: Any
    facts: Facts
    shards: int
    refused: pa.Table

    @cached_property
    def never_asked(self) -> frozenset[tuple[str, str]]:
        """The brokers in each cluster's routes that nobody asked (``Facts.never_asked``)."""
        return frozenset(self.facts.never_asked())

    @cached_property
    def lost_clusters(self) -> frozenset[str]:
        """The clusters that are not judged (``lost_rows.lost_clusters``)."""
        return frozenset(lost_clusters(self.facts))

    def judge(
        self, terms: Terms, earlier: Any, settings: Settings, ended: EndedProblems | None = None
    ) -> Any:
        """The pieces of the report tables: each distinct situation goes through the core once, on
        Spark by the pandas UDF ``recompute_allocations``.
        """
        before = self.engine.given(earlier_pieces(earlier, ended or {}, self.shards))
        terms = replace(
            terms,
            never_asked=self.never_asked,
            lost_clusters=self.lost_clusters,
            last_rounds={name: max(each) for name, each in self.facts.rounds.items() if each},
        )
        work = GroupAudit(terms, strategy_rules(settings))
        return self.engine.judge_groups(self.pieces.and_also(before), work)

    def scope(self, task: Task, inputs: Inputs) -> Scope:
        """The scope of the audit, and what earlier runs left open."""
        facts = self.facts
        witnesses = {BROKERS: facts.brokers, NAMESERVERS: facts.nameservers}
        given: dict[str, AnswerTimes] = {
            ROUTES: facts.routes_at,
            OFFSETS: facts.offsets_at,
            NEVER_ASKED: dict.fromkeys(self.never_asked, ()),
            # Offsets of theirs came, and no broker was asked who the members are.
            NEVER_LISTED: dict.fromkeys(facts.offsets.keys() - facts.list_ids.keys(), ()),
        }
        polls, ingested = facts.polls, inputs.snapshots.ingested
        return Scope.of(task, facts.rounds, witnesses, given, polls, ingested)

    def allocations(self, task: Task, scope: Scope, inputs: Inputs) -> EngineResult:
        """The rows of the report tables, as they come."""
        terms = terms_of(task.settings, scope.known_issues, inputs.snapshots.ingested)
        earlier = open_findings(task.history, scope.previous)
        ended = ended_problems(task.history, scope.previous)
        judged = self.judge(terms, earlier, task.settings, ended)
        tables = [
            report_table
            for report_table in REPORT_TABLES
            if report_table not in (QUARANTINE, VERDICT, GAPS)
        ]
        if not inputs.snapshots.has(CLIENT_STATES.name):
            tables.remove(ALLOCATION_DRIFT)  # it needs what clients report of themselves
        polled = [each for each in self.facts.polled if each[0] not in self.lost_clusters]
        expiry = task.settings.heartbeat_expiry_seconds
        in_rounds = without_events(self.engine.collect(judged), expiry)
        of_groups = without_failures(in_rounds, polled)
        pieces = with_events(of_groups, self.facts, terms.masking)
        refused = chain([self.refused], inputs.quarantine())
        facts, engine = self.facts, self.engine
        gaps = [
            *lost_rows(facts),
            *times_ahead(facts.ahead),
            *clusters_alike(facts.clusters),
            *facts_missing(facts.indistinct, facts.never_routed()),
        ]
        return EngineResult(
            tables, pieces, refused, gaps, facts.asked, engine.name, engine.versions
        )


def fold_inputs(engine: Engine, inputs: Inputs, task: Task) -> FoldResult:
    """Reads the tables of a task."""
    pieces, cutting = inputs.cut(engine, task.window, has_files=not task.are_staged)
    folded = fold_pieces(engine, pieces, cutting)
    _tell_of_future(folded.facts, task, inputs)
    return folded


def _tell_of_future(facts: Facts, task: Task, inputs: Inputs) -> None:
    """A warning where snapshots are left out because they lie in the future of the window;
    InputError where all do.
    """
    window, days = task.window, task.settings.bounds.future_days
    if not facts.ahead or window.future is None or window.end != window.future:
        return
    if window.since is None and not facts.rounds and not facts.routes_at:
        raise InputError(
            f"every snapshot at {inputs.snapshots.root} is later than {iso(window.future)}, "
            f"this machine's clock plus bounds.future_days = {days}: "
            "nothing was published; set the clock right that is wrong, this machine's or the "
            "collector's",
            ", or ask for a date with --date",
        )
    _LOGGER.warning(
        "snapshots after %s lie in the future and are not audited (rows by cluster: %s): mend the "
        "clock that stamped them, or ask for their date with --date (bounds.future_days is %d)",
        iso(window.future),
        ", ".join(
            f"{visible(of)} {rows_ahead.rows:,}" for of, rows_ahead in sorted(facts.ahead.items())
        ),
        days,
    )


def fold_pieces(engine: Engine, pieces: Any, cutting: Cutting) -> FoldResult:
    """The pieces of groups, with the routes of the topics to which each group subscribes.

    ContractError where most rows of a table break its contract, of each cluster.
    """
    facts = Facts.of(all_values(engine.gather(pieces.only(FACTS), merge_facts), FACTS))
    engine.plan_tasks(facts.rows.total(), len(facts.polled))
    rows = list(engine.collect(pieces.only(QUARANTINE.name)))
    read = all_rows(rows, QUARANTINE.name, QUARANTINE.schema)
    refused = pa.concat_tables([read, without_content(facts, cutting)])
    lost_clusters(facts)  # ContractError
    dealing = Dealing(cutting.shards, facts.subscribers())
    routes = engine.by_shard(pieces.only(*OF_TOPICS), dealing.deal_routes)
    every = pieces.only(*OF_GROUPS).and_also(routes)
    return FoldResult(engine, every, facts, cutting.shards, refused)
