"""Tables of a run -> a published run: files, summary, and the pointer that readers follow.

The numbers of the summary are those of the rows on their way to the files (``Tally``).
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.dataset as ds

from rebalance_core.findings import AUDITED
from rebalance_core.state import GROUP_TABLE
from rebalance_core.texts import Text

from .. import schemas
from ..config.choices import SEVERITIES
from ..config.known_issues import KnownIssues
from ..config.masking import Masking
from ..console.progress import Progress
from ..declared import kinds
from ..declared.coverage import was_audited
from ..declared.instants import SECOND, Instant, to_instant
from ..engines.pieces import FOR_ALL, pack_rows
from ..fold.slice_facts import BrokerPolls
from ..languages.translated_rows import TEXTS, texts_of
from ..reports.tables import PLACE, Tables
from ..storage import Location, PublishedRun, Reports, Snapshots, TableFiles
from ..texts.shown import iso
from ..verdict.gaps import Gap, first, gaps_of, packed
from ..verdict.silence import (
    left_out,
    missed_rounds,
    refused_lists,
    short_nights,
    silences,
    slow_rounds,
    too_short,
)
from ..verdict.verdict import make_verdict
from .earlier import gone, witnesses_of
from .run import EngineResult, Scope, Task
from .table_writer import masked_pieces, write_tables

#: The version of summary.json and the report tables; a higher number only adds.
SCHEMA_VERSION = 1
#: The time before the last round of which the addresses count.
_RECENT: Instant = 600 * SECOND
#: The summary of a run is read often, and has to stay small: the most brokers, and the most groups,
#: the worst ones.
_MOST_BROKERS = MOST_GROUPS = 1_000

CountedRow = dict[str, Any]
#: A cluster, and a consumer group of it.
GroupKey: TypeAlias = tuple[str, str]

#: The tables whose findings can be known issues.
_MARKED = [table.name for table in schemas.REPORT_TABLES if "known_issue" in table.schema.names]
_OF_GROUPS = ["strategy_source", "subscription_source", "rounds_too_wide"]
_SECONDS = ["round_seconds", "round_interval_seconds"]

_GRADES = ("severity", "persistence", "status", "known_issue")
#: The tables of which rows that are alike in these columns are counted: there may be a million.
_COUNTED: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(kinds.GRADED_TABLES, _GRADES),
    schemas.GROUP_FAULTS.name: (*_GRADES, "is_finding"),
    "unreadable_queues": PLACE,
    schemas.ALLOCATION_DRIFT.name: (*PLACE, "drift", "persistence", "attributed_to"),
    schemas.EVENTS.name: ("kind",),
}
#: The tables of which these columns are kept.
_KEPT: Mapping[str, Sequence[str]] = {
    schemas.PROBLEMS.name: [
        name
        for name in schemas.PROBLEMS.schema.names
        if name not in ("faults", "remedy", "backlog_over_time", TEXTS)
    ],
    schemas.GROUP_HEALTH.name: (
        *(
            *PLACE,
            "coverage",
            "reason",
            "known_issue",
            *_OF_GROUPS,
            *_SECONDS,
            *schemas.UNAUDITED,
            TEXTS,
        ),
    ),
    schemas.FORMER_FINDINGS.name: (*PLACE, "status", "severity"),
    "stacked_client_ids": (*PLACE[:2], "topics", "verdict", "persistence", "known_issue"),
}


def publish(
    task: Task, scope: Scope, made: EngineResult, inputs: Snapshots, progress: Progress
) -> PublishedRun:
    """Writes the tables of a run and its summary, and makes it the one that counts.

    Another run that is writing reports of the date is waited for: see ``Publication.writing``.

    Until the last step readers see the run before; whatever fails before it leaves that untouched.
    """
    folder = Reports(task.reports)
    run_id = task.run.run_id
    masking = task.settings.masking.to_masking()
    wait = task.settings.publishing.wait_seconds
    quarantine = (masked_pieces(schemas.QUARANTINE, refused, masking) for refused in made.refused)
    tables, pieces = [*made.tables, schemas.QUARANTINE], chain(made.pieces, *quarantine)

    def place_of(name: str) -> Location:
        return folder.table(name, scope.date, run_id)

    tally = Tally()
    with folder.publication(scope.date).writing(run_id, wait, progress.say) as number:
        with progress.step("report tables") as step:
            counts = write_tables(pieces, tables, place_of, tally.add)
            gaps = [*_gaps(inputs.ingested, task, made, scope, tally, masking)]
            seconds = task.settings.persistence_seconds
            slow = {
                masking.mask(cluster): usual
                for cluster, usual in slow_rounds(scope.rounds, seconds).items()
            }
            verdict = make_verdict(run_id, tally, tally.findings(), gaps, slow)
            for table, rows in (
                (schemas.VERDICT, [verdict.row()]),
                (schemas.GAPS, verdict.rows_of_gaps()),
            ):
                table_rows = [{**row, TEXTS: texts_of(row)} for row in rows]
                made_of = pa.Table.from_pylist(table_rows, schema=table.schema)
                verdict_pieces = pack_rows(FOR_ALL, table.name, made_of)
                counts |= write_tables(verdict_pieces, [table], place_of)
            step.rows = sum(counts.values())
        with progress.step("check of the reports"):
            files = {
                name: TableFiles.written(folder.root, place_of(name), rows)
                for name, rows in counts.items()
            }
        previous = scope.previous
        summary = {
            "schema_version": SCHEMA_VERSION,
            "run_id": run_id,
            "started_at": iso(task.run.started_at),
            "duration_seconds": round(progress.elapsed(), 3),
            "engine": made.engine,
            "date": scope.date,
            "window": {
                "since": task.window.since and iso(task.window.since),
                "until": task.window.until and iso(task.window.until),
                "first_snapshot": iso(scope.first_seen),
                "last_snapshot": iso(scope.last_seen),
            },
            "rows": counts,
            "findings": tally.findings(),
            **tally.groups(made.asked),
            "events": tally.events(),
            "groups": tally.levels(),
            "known_issues": _known_issues(scope, task.known_issues, tally, masking),
            "previous": previous and {"date": previous.date, "run_id": previous.run_id},
            "inputs": {
                "snapshots": str(task.snapshots),
                "sizes": {
                    table.name: sum(file.size for file in inputs.files(table.name))
                    for table in schemas.SNAPSHOT_TABLES
                },
                # Its gaps have names of clients, and beginnings of lines.
                "ingested": masking.mask_all(inputs.ingested),
            },
            **packed(gaps),
            "slow_rounds": slow,
            "witnesses": witnesses_of(scope.witnesses, masking),
            "brokers": broker_addresses(scope.polls, scope.last_seen, masking),
            "versions": dict(made.versions),
            "settings": task.settings.fingerprint(),
            "settings_set": masking.mask_all(task.settings.overrides()),
            # Which files they and the known issues came from: nobody may have named them.
            "sources": masking.mask_all(dict(task.sources)),
            "verdict": verdict.packed(),
        }
        published = PublishedRun(scope.date, run_id, summary, files, number)
        folder.publish(published)
    return published


def _gaps(
    ingested: Mapping[str, Any] | None,
    task: Task,
    made: EngineResult,
    scope: Scope,
    written: "Tally",
    masking: Masking,
) -> Iterator[Gap]:
    """Gaps of the input, in dumps, refused rows, rows of the future, rounds and polls, and against
    the run before. What a run has written is masked already.
    """
    persistence_seconds, ends = task.settings.persistence_seconds, task.window.until
    # A window of which a part has not been yet ends with the beginning of the run.
    ends = ends and min(ends, task.run.started_at)
    window = [None if time is None else to_instant(time) for time in (task.window.since, ends)]
    found = [
        *made.gaps,
        *left_out(ingested, scope.rounds, persistence_seconds),
        *too_short(scope.rounds, persistence_seconds),
        *missed_rounds(scope.rounds, persistence_seconds),
        *short_nights(scope.rounds, *window),
        *gone(task.history, scope.previous, written, scope.witnesses, masking),
        *refused_lists(scope.polls, persistence_seconds),
        *silences(scope.polls, scope.rounds, scope.given, task.settings),
    ]
    for kind, text in (*gaps_of(ingested), *first(found)):
        masked = masking.mask_all(text)
        yield Gap(kind, masked if isinstance(masked, Text) else Text("{text}", text=masked))


def _known_issues(
    scope: Scope, known_issues: KnownIssues, tally: "Tally", masking: Masking
) -> list[dict[str, Any]]:
    """Every entry, whether it has expired, and how many rows of which tables it marked."""
    marked = tally.marked() if scope.known_issues else {}
    return [
        {
            "reason": masking.mask(entry.reason),
            "expires": entry.expires.isoformat(),
            "expired": entry not in scope.known_issues,
            "marked": marked.get(masking.mask(entry.reason), {}),
        }
        for entry in known_issues.known_issues
    ]


def broker_addresses(
    polls: BrokerPolls, last_snapshot: datetime, masking: Masking
) -> dict[str, dict[str, str]]:
    """The address of each broker that was asked last, by cluster and name: its master's, if asked.

    Brokers whose address is in no poll of the last ten minutes are left out, and of very many the
    last by name.
    """
    earliest = to_instant(last_snapshot) - _RECENT
    asked = polls.rows(["cluster", "broker_name", "broker_id", "broker_addr"])
    # The smallest id is the master; of an address that changed the later counts.
    asked_last = sorted(
        (-broker_id, time, cluster, broker_name, address)
        for (cluster, broker_name, broker_id, address), time in asked
        if address and time >= earliest
    )
    found = {(cluster, name): address for *_, cluster, name, address in asked_last}
    addresses: dict[str, dict[str, str]] = {}
    for (cluster, broker_name), address in sorted(found.items())[:_MOST_BROKERS]:
        cluster_addresses = addresses.setdefault(masking.mask(cluster), {})
        cluster_addresses[masking.mask(broker_name)] = masking.mask(address)
    return addresses


class Tally(Tables):
    """The columns of the rows that went to the files of which a summary and a verdict are made.

    Of tables that may be long the distinct rows, with their number.
    """

    def __init__(self) -> None:
        super().__init__(self._kept)
        self._rows: dict[str, list[pa.Table]] = defaultdict(list)

    def add(self, name: str, rows: pa.Table) -> None:
        """Takes rows of a table, as they are written."""
        if name in _COUNTED:
            columns = list(_COUNTED[name])
            alike = rows.select(columns).group_by(columns, use_threads=False)
            self._rows[name].append(alike.aggregate([([], "count_all")]))
        elif name in _KEPT:
            self._rows[name].append(rows.select(list(_KEPT[name])))

    def _kept(self, name: str) -> Any:
        return ds.dataset(pa.concat_tables(self._rows[name])) if self._rows[name] else None

    def counted(self, name: str) -> Iterator[CountedRow]:
        """The distinct rows of a table, each with its number as ``rows``."""
        for rows in self._rows[name]:
            for row in rows.to_pylist():
                yield {**row, "rows": row.get("count_all", 1)}

    def findings(self) -> dict[str, Any]:
        """The number of rows of each graded table: in all, persistent, and by severity and status.

        Faults count only if no finding of a queue shows them: the others would count twice.
        ``known`` has the same of those that are known issues; they count in the others too.
        """
        found = {}
        for name in kinds.GRADED_TABLES:
            rows = [row for row in self.counted(name) if row.get("is_finding", True)]
            known = [row for row in rows if row["known_issue"] is not None]
            found[name] = {**_grades(rows), "known": _grades(known)}
        return found

    def groups(self, asked: Collection[GroupKey]) -> dict[str, Any]:
        """``assumptions``: how many audited groups rest on one: ``groups``, and how many on which.

        ``strategy``: nobody saw the strategy of some member (``strategy_source`` is assumed).
        ``subscriptions``: of some member only the group's table shows what it subscribes to
        (``subscription_source`` is GROUP_TABLE). Running infos of all members show both.
        ``asked``: of how many of these groups a member was asked for it, answered or not: to
        collect them is no advice.

        ``rounds``: how the rounds of questions were, in seconds. ``longest_seconds``: the usual
        round of the group whose rounds take longest; ``interval_seconds``: the longest usual time
        between two rounds of a group; ``groups_too_wide``: those whose rounds take longer than a
        fault has to last.
        """
        columns = ["cluster", "consumer_group", "coverage", *_OF_GROUPS, *_SECONDS]
        rows = self.read(schemas.GROUP_HEALTH.name, columns).to_pylist()
        audited = [row for row in rows if row["coverage"] == AUDITED]
        strategy = {_group(row) for row in audited if row["strategy_source"] == "assumed"}
        subscriptions = {
            _group(row) for row in audited if row["subscription_source"] == GROUP_TABLE
        }
        assumed = strategy | subscriptions
        longest, interval = (
            max((row[name] for row in rows if row[name] is not None), default=None)
            for name in _SECONDS
        )
        return {
            "assumptions": {
                "groups": len(assumed),
                "asked": len(assumed.intersection(asked)),
                "strategy": len(strategy),
                "subscriptions": len(subscriptions),
            },
            "rounds": {
                "longest_seconds": longest,
                "interval_seconds": interval,
                "groups_too_wide": len({_group(row) for row in rows if row["rounds_too_wide"]}),
            },
        }

    def events(self) -> dict[str, Any]:
        """The number of events: in all, and of each kind that there is."""
        found = _numbers(self.counted(schemas.EVENTS.name), "kind")
        in_order = {kind: found[kind] for kind in kinds.EVENT_KINDS if found[kind]}
        return {"total": found.total(), "kinds": in_order}

    def marked(self) -> dict[str, dict[str, int]]:
        """The number of rows of each table that the reason of a known issue marked."""
        found: dict[str, dict[str, int]] = defaultdict(dict)
        for name in _MARKED:
            for reason, rows in _numbers(self.counted(name), "known_issue").items():
                if reason is not None:
                    found[reason][name] = rows
        return found

    def levels(self) -> dict[str, Any]:
        """``clusters``: by cluster and group its level, and how many findings give it that level.

        So whoever draws thirty nights reads thirty summaries and no table.

        WARNING or CRITICAL: the worst of what lasts and is not a known issue. NOT_AUDITED: some
        topic of it was not judged (``coverage.was_audited``) and is not a known issue. INFO:
        something passed, is too new to count, or is a known issue. OK: nothing was found.
        ``known``: the worst that known issues explain, where there is any. ``left_open``: the worst
        of what was open before and nobody looked for, where there is any. ``left_out``: groups that
        are not named, for there are more than ``MOST_GROUPS``.
        """
        levels: dict[GroupKey, list[tuple[str, int]]] = defaultdict(list)
        beside: dict[GroupKey, dict[str, str]] = defaultdict(dict)

        def worse(group: GroupKey, name: str, severity: str) -> None:
            beside[group][name] = kinds.worst([severity, beside[group].get(name, kinds.INFO)])

        for row in self.counted(schemas.PROBLEMS.name):
            is_counted = row["standing"] == "COUNTED"
            level = row["worst_severity"] if is_counted else kinds.INFO
            levels[_group(row)].append((level, row["worst_findings"]))
            if row["standing"] == "KNOWN":
                worse(_group(row), "known", row["severity"])
        for row in self.counted(schemas.GROUP_HEALTH.name):
            is_audited = was_audited(row) or row["known_issue"] is not None
            levels[_group(row)].append((kinds.OK if is_audited else kinds.NOT_AUDITED, 0))
        for row in self.counted(schemas.FORMER_FINDINGS.name):
            if row["status"] == kinds.NOT_AUDITED:
                levels[_group(row)].append((kinds.NOT_AUDITED, 0))
                worse(_group(row), "left_open", row["severity"])
        found: dict[GroupKey, dict[str, Any]] = {}
        for group, every in levels.items():
            level = max((name for name, _ in every), key=kinds.LEVELS.index)
            findings = sum(number for name, number in every if name == level)
            found[group] = {"level": level, "findings": findings, **beside.get(group, {})}
        in_order = sorted(
            found.items(),
            key=lambda item: (-kinds.LEVELS.index(item[1]["level"]), -item[1]["findings"], item[0]),
        )
        clusters: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
        for (cluster, name), level_of_group in in_order[:MOST_GROUPS]:
            clusters[cluster][name] = level_of_group
        return {"clusters": dict(clusters), "left_out": len(in_order[MOST_GROUPS:])}


def _group(row: CountedRow) -> GroupKey:
    return row["cluster"], row["consumer_group"]


def _numbers(rows: Iterable[CountedRow], column: str) -> Counter[Any]:
    """The number of rows with each value of a column."""
    found: Counter[Any] = Counter()
    for row in rows:
        found[row[column]] += row["rows"]
    return found


def _grades(rows: Sequence[CountedRow]) -> dict[str, int]:
    severities, persistence, statuses = (_numbers(rows, name) for name in _GRADES[:3])
    return {
        "total": severities.total(),
        "persistent": persistence[kinds.PERSISTENT],
        **{severity: severities[severity] for severity in SEVERITIES},
        **{status: statuses[status] for status in ("NEW", "PERSISTING")},
    }
