"""The ingest job in the driver's process, for small inputs: no Spark, the same tables.

The statements of all files are held at a time. Reader and tables are those of the job on Spark.
"""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from jobs.bounds import Bounds
from jobs.dumps.files import InputFile, file_uri
from jobs.dumps.statement import CLIENT_LOG, Statement
from jobs.dumps.statements import Reader, Refused, as_quarantined, too_long
from jobs.dumps.times import PlausibleTimes, day_of
from jobs.dumps.unpacking import Archive, Line, Lines
from jobs.pipeline.ingested import Ingested, publish_ingest
from jobs.progress import Progress, Step
from jobs.publish.tables import write_table
from jobs.schemas import QUARANTINE, SNAPSHOT_TABLES
from jobs.settings import Settings
from jobs.snapshots.clients import log_offsets
from jobs.snapshots.groups import SnapshotTerms, in_time
from jobs.snapshots.steps import Subject, subject_of, subject_tables
from jobs.snapshots.tables import table_of_rows
from jobs.storage import Snapshots, SnapshotWriter

_LOGGER = logging.getLogger(__name__)


class _Dumps:
    """What the files hold, by subject; and what in them was not understood."""

    def __init__(
        self,
        files: Sequence[InputFile],
        bounds: Bounds,
        step: Step,
        plausible: PlausibleTimes | None = None,
    ) -> None:
        self.statements: dict[Subject, list[Statement]] = defaultdict(list)
        self.quarantined: list[dict[str, Any]] = []
        self.lines = 0
        self._bounds = bounds
        self._reader = Reader(bounds, plausible)
        for file in step.each(files, "files"):
            self._read(file)

    @classmethod
    def of(cls, files: Sequence[InputFile], bounds: Bounds, step: Step) -> _Dumps:
        """The files, without the lines whose times contradict those of the others."""
        dumps = cls(files, bounds, step)
        days = Counter(
            (each.kind == CLIENT_LOG, day_of(each.collected_at))
            for statements in dumps.statements.values()
            for each in statements
        )
        plausible = PlausibleTimes.of(days, bounds)
        if left_out := plausible.left_out(days):
            _LOGGER.warning(left_out)
            return cls(files, bounds, step, plausible)
        return dumps

    def _read(self, file: InputFile) -> None:
        """Takes in a file; of a damaged archive what comes before the damage."""
        before = self.lines
        lines = Lines(file.path, self._bounds)
        archive = Archive(file.size, self._bounds) if file.is_archive else None
        for number, line in enumerate(lines, 1):
            over = None if archive is None else archive.refuses(line.size)
            self._read_line(file, number, line, over)
            if over is not None:
                return
        if lines.problem is not None and self.lines == before:
            self.lines += 1
            self.quarantined.append(_quarantined(file_uri(file.path), 0, lines.problem, b""))

    def _read_line(self, file: InputFile, number: int, line: Line, over: Refused | None) -> None:
        self.lines += 1
        if line.size > self._bounds.line_bytes:
            over = over or too_long(line.size, self._bounds)
        found = over or self._reader.read(line.text, self.lines)
        if isinstance(found, Refused):
            kept = found.kept(line.text)
            self.quarantined.append(_quarantined(file_uri(file.path), number, found.reason, kept))
            return
        for statement in found:
            self.statements[subject_of(statement)].append(statement)


def ingest_locally(
    files: Sequence[InputFile], writer: SnapshotWriter, settings: Settings, progress: Progress
) -> tuple[Ingested, dict[str, pa.Table], Snapshots]:
    """Reads the files and writes the snapshot tables, which then count instead of what was there.

    Gives the tables too. Whether too many lines were not understood is for the caller to check: see
    ``ingested.check_quarantine``.
    """
    with progress.step("records") as step:
        dumps = _Dumps.of(files, settings.bounds.to_bounds(), step)
        step.rows = dumps.lines
    rows: dict[str, int] = {}
    with progress.step("snapshot tables") as step:
        tables = _tables(dumps, settings)
        for name, table in step.each(tables.items(), "tables"):
            step.part = name
            rows[name] = write_table(table, writer.table(name))
        step.rows = sum(rows.values())
    result = Ingested(
        len(files), sum(file.size for file in files), dumps.lines, len(dumps.quarantined)
    )
    return result, tables, publish_ingest(result, rows, writer, settings, progress)


def tables_of_dumps(files: Sequence[InputFile], settings: Settings) -> dict[str, pa.Table]:
    """The snapshot tables of the files, in memory; nothing is written."""
    return _tables(_Dumps.of(files, settings.bounds.to_bounds(), Step()), settings)


def _tables(dumps: _Dumps, settings: Settings) -> dict[str, pa.Table]:
    logs = (each for statements in dumps.statements.values() for each in statements)
    terms = SnapshotTerms(
        settings.heartbeat_expiry_seconds, settings.client_log_time_zone, log_offsets(logs)
    )
    pieces: dict[str, list[pa.Table]] = {table.name: [] for table in SNAPSHOT_TABLES}
    for subject, statements in sorted(dumps.statements.items()):
        for name, piece in subject_tables(subject, in_time(statements), terms):
            pieces[name].append(piece)
    pieces[QUARANTINE.name].append(table_of_rows(QUARANTINE, dumps.quarantined))
    return {
        table.name: pa.concat_tables([table.schema.empty_table(), *pieces[table.name]])
        for table in SNAPSHOT_TABLES
    }


def _quarantined(file: str, number: int, reason: str, line: bytes) -> dict[str, Any]:
    text, exact = as_quarantined(line)
    return {
        "file": file,
        "line_number": number,
        "reason": reason,
        "line": text,
        "line_bytes": exact,
    }
