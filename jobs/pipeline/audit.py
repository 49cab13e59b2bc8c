"""The steps of the job ``jobs/audit.py``: snapshot tables -> pieces of groups -> report tables.

On every engine the same, each of them plain Python over bytes and columns.

Rows that break the contract of their table: what the run lacks for them, and when it is no run, is
here too. A row is named in the quarantine where it was read (``fold.checked_rows``). An id whose
content did not come is found when all tables were read: the polls that name it are not evidence.
"""

import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any

import pyarrow as pa

from rebalance_core.english import list_of
from rebalance_core.grouping import grouped
from rebalance_core.texts import Text

from .. import schemas
from ..config.settings import Settings
from ..config.terms import Terms
from ..config.window import future_after
from ..engines.engine import Engine
from ..engines.pieces import all_rows, all_values
from ..errors import ContractError, InputError
from ..fold.checked_rows import RefusedRows
from ..fold.kernel import OF_GROUPS, OF_TOPICS, Cutting, Dealing
from ..fold.slice_facts import FACTS, Facts, merge_facts
from ..publish.earlier import BROKERS, NAMESERVERS, EndedProblems, ended_problems, open_findings
from ..publish.run import EngineResult, Scope, Task
from ..texts.shown import iso, json_text, visible
from ..verdict.gaps import ROWS_LOST, Gap, clusters_alike, facts_missing, times_ahead
from ..verdict.silence import NEVER_ASKED, NEVER_LISTED, OFFSETS, ROUTES, AnswerTimes
from .gathered import with_events, without_events, without_failures
from .group_audit import GroupAudit, earlier_pieces
from .inputs import Inputs, strategy_rules, terms_of, window_of_last

_LOGGER = logging.getLogger(__name__)
_CONTENTS = {"list_id": schemas.MEMBER_LISTS.name, "route_id": schemas.ROUTE_CONTENTS.name}
#: The most groups and topics that are named.
_MOST_NAMED = 3


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
    for what was ``refused``; ``lost``: see ``lost_clusters``.
    """

    engine: Engine
    pieces: Any
    facts: Facts
    shards: int
    refused: pa.Table
    lost: Mapping[str, Sequence[str]]

    @cached_property
    def never_asked(self) -> frozenset[tuple[str, str]]:
        """The brokers in each cluster's routes that nobody asked (``Facts.never_asked``)."""
        return frozenset(self.facts.never_asked())

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
            lost_clusters=frozenset(self.lost),
            last_rounds={name: max(times) for name, times in self.facts.rounds.items() if times},
        )
        work = GroupAudit(terms, strategy_rules(settings))
        return self.engine.judge_groups(self.pieces.and_also(before), work)

    def scope(self, task: Task, inputs: Inputs) -> Scope:
        """The scope of the audit, and what earlier runs left open."""
        facts, ingested = self.facts, inputs.snapshots.ingested
        witnesses = {BROKERS: facts.brokers, NAMESERVERS: facts.nameservers}
        given: dict[str, AnswerTimes] = {
            ROUTES: facts.routes_at,
            OFFSETS: facts.offsets_at,
            NEVER_ASKED: dict.fromkeys(self.never_asked, ()),
            # Offsets of theirs came, and no broker was asked who the members are.
            NEVER_LISTED: dict.fromkeys(facts.offsets.keys() - facts.list_ids.keys(), ()),
        }
        return Scope.of(task, facts.rounds, witnesses, given, facts.polls, ingested)

    def allocations(self, task: Task, scope: Scope, inputs: Inputs) -> EngineResult:
        """The rows of the report tables, as they come."""
        facts, engine, settings = self.facts, self.engine, task.settings
        terms = terms_of(settings, scope.known_issues, inputs.snapshots.ingested)
        earlier = open_findings(task.history, scope.previous)
        ended = ended_problems(task.history, scope.previous)
        collected = engine.collect(self.judge(terms, earlier, settings, ended))
        others = {schemas.QUARANTINE, schemas.VERDICT, schemas.GAPS}
        if not inputs.snapshots.has(schemas.CLIENT_STATES.name):
            others.add(schemas.ALLOCATION_DRIFT)  # it needs what clients report of themselves
        tables = [table for table in schemas.REPORT_TABLES if table not in others]
        polled = [group for group in facts.polled if group[0] not in self.lost]
        in_rounds = without_events(collected, settings.heartbeat_expiry_seconds)
        pieces = with_events(without_failures(in_rounds, polled), facts, terms.masking)
        refused = chain([self.refused], inputs.quarantine())
        gaps = [
            *lost_rows(facts, self.lost),
            *times_ahead(facts.ahead),
            *clusters_alike(facts.clusters),
            *facts_missing(facts.indistinct, facts.never_routed()),
        ]
        return EngineResult(
            tables, pieces, refused, gaps, facts.asked, engine.name, engine.versions
        )


def fold_inputs(engine: Engine, inputs: Inputs, task: Task) -> FoldResult:
    """Reads the tables of a task.

    A warning where snapshots are left out because they lie in the future of the window; InputError
    where all do.
    """
    pieces, cutting = inputs.cut(engine, task.window, has_files=not task.are_staged)
    folded = fold_pieces(engine, pieces, cutting)
    facts, window, days = folded.facts, task.window, task.settings.bounds.future_days
    if not facts.ahead or window.future is None or window.ends != window.future:
        return folded
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
        ", ".join(f"{visible(name)} {ahead.rows:,}" for name, ahead in sorted(facts.ahead.items())),
        days,
    )
    return folded


def fold_pieces(engine: Engine, pieces: Any, cutting: Cutting) -> FoldResult:
    """The pieces of groups, with the routes of the topics to which each group subscribes.

    ContractError where most rows of a table break its contract, of each cluster.
    """
    facts = Facts.of(all_values(engine.gather(pieces.only(FACTS), merge_facts), FACTS))
    engine.plan_tasks(facts.rows.total(), len(facts.polled))
    rows = list(engine.collect(pieces.only(schemas.QUARANTINE.name)))
    read = all_rows(rows, schemas.QUARANTINE.name, schemas.QUARANTINE.schema)
    refused = pa.concat_tables([read, without_content(facts, cutting)])
    lost = lost_clusters(facts)
    dealing = Dealing(cutting.shards, facts.subscribers())
    routes = engine.by_shard(pieces.only(*OF_TOPICS), dealing.deal_routes)
    every = pieces.only(*OF_GROUPS).and_also(routes)
    return FoldResult(engine, every, facts, cutting.shards, refused, lost)


def without_content(facts: Facts, cutting: Cutting) -> pa.Table:
    """A row of the quarantine for each id whose content did not come, and so many at most as of a
    file.

    They are counted in the facts.
    """
    rows = []
    for table, column, subject, id_ in facts.without_content(list_ids=cutting.list_ids):
        came = "null" if id_ is None else repr(id_)
        reason = f"{column}: expected an id that table {_CONTENTS[column]} has, came {came}"
        facts.lost[table].add(RefusedRows(Counter({subject[0]: 1}), {column: reason}, {subject}))
        line = json_text({"cluster": subject[0], "of": subject[1], column: id_})
        reason = f"table {table}: {reason}"
        rows.append({"file": table, "line_number": 0, "reason": reason, "line": line})
    return pa.Table.from_pylist(rows[: cutting.quarantined_lines], schema=schemas.QUARANTINE.schema)


def lost_clusters(facts: Facts) -> dict[str, list[str]]:
    """The clusters of which most rows of a table break its contract, with these tables: what is
    left of such a cluster is not judged. Rows that name no cluster may be of any.

    ContractError where no cluster is left.
    """
    clusters = {cluster for _, cluster in facts.rows if cluster} or {""}
    found = grouped(
        (cluster, name)
        for cluster in sorted(clusters)
        for name, lost in sorted(facts.lost.items())
        if 2 * lost.rows[cluster] > facts.rows[name, cluster]
        or 2 * lost.rows[""] > _rows(facts, name)
    )
    if clusters == found.keys():
        broken = [
            f"table {name}: {lost.rows.total():,} of {_rows(facts, name):,} rows break its "
            "contract: " + "; ".join(lost.reasons[column] for column in sorted(lost.reasons))
            for name, lost in sorted(facts.lost.items())
            if any(name in tables for tables in found.values())
        ]
        hint = (
            "nothing was published: mend what writes the tables; docs/data_dictionary.md has what "
            "each column must hold"
        )
        raise ContractError("\n  ".join([*broken, hint]))
    return found


def _rows(facts: Facts, table: str) -> int:
    return sum(rows for (name, _), rows in facts.rows.items() if name == table)


def lost_rows(facts: Facts, lost_tables: Mapping[str, Sequence[str]]) -> Iterator[Gap]:
    """A gap for each table of a cluster that is lost for it, and for each other table of which rows
    were refused.
    """
    for cluster, tables in lost_tables.items():
        for name in tables:
            text = Text(
                "cluster {cluster} was not audited: {number:,} of its {rows:,} rows in table "
                "{table} break the contract, for example {example}; the table quarantine lists "
                "them",
                cluster=cluster,
                number=facts.lost[name].rows[cluster],
                rows=facts.rows[name, cluster],
                table=name,
                example=min(facts.lost[name].reasons.values()),
            )
            yield Gap(ROWS_LOST, text)
    for name, lost in sorted(facts.lost.items()):
        if all(cluster in lost_tables for cluster, *_ in lost.subjects):
            continue
        whose = sorted(visible("/".join(map(str, subject))) for subject in lost.subjects)
        text = Text(
            "table {table}: {number:,} of {rows:,} rows break its contract and were left out, "
            "for example {example} (of {whose}); the table quarantine lists them",
            table=name,
            number=lost.rows.total(),
            rows=_rows(facts, name),
            example=min(lost.reasons.values()),
            whose=list_of(whose, _MOST_NAMED),
        )
        yield Gap(ROWS_LOST, text)
