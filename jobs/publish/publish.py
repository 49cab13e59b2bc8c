"""Tables of a run -> a published run: files, summary, and the pointer that readers follow."""

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from rebalance_core.texts import Text

from ..config.known_issues import KnownIssues
from ..config.masking import Masking
from ..console.progress import Progress
from ..declared.instants import to_instant
from ..reports.leading_events import packed as packed_events
from ..reports.problems import find_problems
from ..reports.tables import Tables
from ..schemas import EVENTS, QUARANTINE, SNAPSHOT_TABLES
from ..storage import Location, PublishedRun, Reports, Snapshots, TableFiles
from ..texts.shown import iso
from ..verdict.gaps import Gap, first, gaps_of, packed
from ..verdict.left_out import left_out
from ..verdict.reach import missed_rounds, short_nights, slow_rounds, too_short
from ..verdict.refused_lists import refused_lists
from ..verdict.silence import silences
from ..verdict.verdict import make_verdict
from .addresses import broker_addresses
from .counts import count_findings, count_groups, count_marked, group_levels
from .gone import gone, witnesses_of
from .run import EngineResult, Scope, Task
from .table_writer import masked_pieces, write_tables

#: The version of summary.json and the report tables; a higher number only adds.
SCHEMA_VERSION = 1
_ROWS_AT_ONCE = 1_000


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
    quarantine = (masked_pieces(QUARANTINE, each, masking) for each in made.refused)
    tables, pieces = [*made.tables, QUARANTINE], chain(made.pieces, *quarantine)

    def place_of(name: str) -> Location:
        return folder.table(name, scope.date, run_id)

    with folder.publication(scope.date).writing(run_id, wait, progress.say) as number:
        with progress.step("report tables") as step:
            counts = write_tables(pieces, tables, place_of)
            step.rows = sum(counts.values())
        with progress.step("check of the reports"):
            files = {
                name: TableFiles.written(folder.root, place_of(name), rows)
                for name, rows in counts.items()
            }
        written = {name: of_table.parquet(folder.root) for name, of_table in files.items()}
        previous = scope.previous
        tables_written = Tables(written.get)
        problems = find_problems(tables_written)
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
                "first_snapshot": iso(scope.first),
                "last_snapshot": iso(scope.last),
            },
            "rows": counts,
            "findings": count_findings(problems),
            **count_groups(tables_written, made.asked),
            # There may be many: few at a time.
            **packed_events(
                row
                for batch in written[EVENTS.name].to_batches(batch_size=_ROWS_AT_ONCE)
                for row in batch.to_pylist()
            ),
            "groups": group_levels(problems, tables_written),
            "known_issues": _known_issues(scope, task.known_issues, tables_written, masking),
            "previous": previous and {"date": previous.date, "run_id": previous.run_id},
            "inputs": {
                "snapshots": str(task.snapshots),
                "sizes": {
                    table.name: sum(file.size for file in inputs.files(table.name))
                    for table in SNAPSHOT_TABLES
                },
                # Its gaps have names of clients, and beginnings of lines.
                "ingested": masking.mask_all(inputs.ingested),
            },
            **packed(_gaps(inputs.ingested, task, made, scope, tables_written, masking)),
            "slow_rounds": {
                masking.mask(cluster): seconds
                for cluster, seconds in slow_rounds(
                    scope.rounds, task.settings.persistence_seconds
                ).items()
            },
            "witnesses": witnesses_of(scope.witnesses, masking),
            "brokers": broker_addresses(scope.polls, scope.last, masking),
            "versions": dict(made.versions),
            "settings": task.settings.fingerprint(),
            "settings_set": masking.mask_all(task.settings.overrides()),
            # Which files they and the known issues came from: nobody may have named them.
            "sources": masking.mask_all(dict(task.sources)),
        }
        summary |= make_verdict(summary, tables_written, problems).packed()
        published = PublishedRun(scope.date, run_id, summary, files, number)
        folder.publish(published)
    return published


def _gaps(
    ingested: Mapping[str, Any] | None,
    task: Task,
    made: EngineResult,
    scope: Scope,
    written: Tables,
    masking: Masking,
) -> Iterator[Gap]:
    """Gaps of the input, in dumps, refused rows, rows of the future, rounds and polls, and against
    the run before. What a run has written is masked already.
    """
    persistence_seconds = task.settings.persistence_seconds
    found = [
        *made.gaps,
        *left_out(ingested, scope.rounds, persistence_seconds),
        *too_short(scope.rounds, persistence_seconds),
        *missed_rounds(scope.rounds, persistence_seconds),
        *_short_nights(task, scope),
        *gone(Reports(task.reports), scope.previous, written, scope.witnesses, masking),
        *refused_lists(scope.polls, persistence_seconds),
        *silences(scope.polls, scope.rounds, scope.given, task.settings),
    ]
    for kind, text in (*gaps_of(ingested), *first(found)):
        masked = masking.mask_all(text)
        yield Gap(kind, masked if isinstance(masked, Text) else Text("{text}", text=masked))


def _short_nights(task: Task, scope: Scope) -> Iterator[Gap]:
    """A window of which a part has not been yet ends with the beginning of the run."""
    since, until = task.window.since, task.window.until
    return short_nights(
        scope.rounds,
        None if since is None else to_instant(since),
        None if until is None else to_instant(min(until, task.run.started_at)),
    )


def _known_issues(
    scope: Scope, known_issues: KnownIssues, written: Tables, masking: Masking
) -> list[dict[str, Any]]:
    """Every entry, whether it has expired, and how many rows of which tables it marked."""
    marked = count_marked(written) if scope.known_issues else {}
    return [
        {
            "reason": masking.mask(entry.reason),
            "expires": entry.expires.isoformat(),
            "expired": entry not in scope.known_issues,
            "marked": marked.get(masking.mask(entry.reason), {}),
        }
        for entry in known_issues.known_issues
    ]
