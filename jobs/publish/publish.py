"""Tables of a run -> a published run: files, summary, and the pointer that readers follow."""

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

import pyarrow as pa

from rebalance_core.texts import Text

from ..config.known_issues import KnownIssues
from ..config.masking import Masking
from ..console.progress import Progress
from ..declared.instants import to_instant
from ..engines.pieces import FOR_ALL, Piece, pack_rows
from ..languages.translated_rows import TEXTS, texts_of
from ..schemas import GAPS, QUARANTINE, SNAPSHOT_TABLES, VERDICT
from ..storage import Location, PublishedRun, Reports, Snapshots, TableFiles
from ..texts.shown import iso
from ..verdict.gaps import Gap, first, gaps_of, packed
from ..verdict.left_out import left_out
from ..verdict.reach import missed_rounds, short_nights, slow_rounds, too_short
from ..verdict.refused_lists import refused_lists
from ..verdict.silence import silences
from ..verdict.verdict import RunVerdict, make_verdict
from .addresses import broker_addresses
from .gone import gone, witnesses_of
from .run import EngineResult, Scope, Task
from .table_writer import masked_pieces, write_tables
from .tally import Tally

#: The version of summary.json and the report tables; a higher number only adds.
SCHEMA_VERSION = 1


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

    tally = Tally()
    with folder.publication(scope.date).writing(run_id, wait, progress.say) as number:
        with progress.step("report tables") as step:
            counts = write_tables(pieces, tables, place_of, tally.add)
            gaps = [*_gaps(inputs.ingested, task, made, scope, tally, masking)]
            seconds = task.settings.persistence_seconds
            slow = {
                masking.mask(cluster): each
                for cluster, each in slow_rounds(scope.rounds, seconds).items()
            }
            verdict = make_verdict(run_id, tally, tally.findings(), gaps, slow)
            counts |= write_tables(_verdict_pieces(verdict), (VERDICT, GAPS), place_of)
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
                "first_snapshot": iso(scope.first),
                "last_snapshot": iso(scope.last),
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
                    for table in SNAPSHOT_TABLES
                },
                # Its gaps have names of clients, and beginnings of lines.
                "ingested": masking.mask_all(inputs.ingested),
            },
            **packed(gaps),
            "slow_rounds": slow,
            "witnesses": witnesses_of(scope.witnesses, masking),
            "brokers": broker_addresses(scope.polls, scope.last, masking),
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


def _verdict_pieces(verdict: RunVerdict) -> Iterator[Piece]:
    """The verdict and its gaps, of which all texts are masked, as pieces."""
    for table, rows in ((VERDICT, [verdict.row()]), (GAPS, verdict.rows_of_gaps())):
        with_texts = [{**row, TEXTS: texts_of(row)} for row in rows]
        yield from pack_rows(
            FOR_ALL, table.name, pa.Table.from_pylist(with_texts, schema=table.schema)
        )


def _gaps(
    ingested: Mapping[str, Any] | None,
    task: Task,
    made: EngineResult,
    scope: Scope,
    written: Tally,
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
        *gone(task.history, scope.previous, written, scope.witnesses, masking),
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
    scope: Scope, known_issues: KnownIssues, tally: Tally, masking: Masking
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
