"""The ingest job in the driver's own process, for small inputs: no Spark, the same tables.

The statements of all files are held at a time. Reader and tables are those of the job on Spark.
"""

from __future__ import annotations

import io
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from jobs.dumps.files import InputFile, read_gzip
from jobs.dumps.statement import Statement
from jobs.dumps.statements import Reader, Refused
from jobs.pipeline.ingested import Ingested, record_ingest
from jobs.progress import Progress
from jobs.publish.tables import write_table
from jobs.schemas import QUARANTINE, SNAPSHOT_TABLES
from jobs.settings import Settings
from jobs.snapshots.clients import log_offsets
from jobs.snapshots.groups import SnapshotTerms, in_time
from jobs.snapshots.steps import Subject, subject_of, subject_tables
from jobs.snapshots.tables import table_of_rows
from jobs.storage import Location

#: What java.net.URI quotes.
_NOT_IN_URI = frozenset(' "#%<>?[\\]^`{|}')


class _Dumps:
    """What the files hold, by subject; and what in them was not understood."""

    def __init__(self, files: Sequence[InputFile]) -> None:
        self.statements: dict[Subject, list[Statement]] = defaultdict(list)
        self.quarantined: list[dict[str, Any]] = []
        self.lines = 0
        self._reader = Reader()
        for file in files:
            self._read(file)

    def _read(self, file: InputFile) -> None:
        """Takes in a file; of a damaged archive what comes before the damage."""
        text, problem = _text(file)
        if problem is not None and not text:
            self.lines += 1
            self.quarantined.append(_quarantined(file.path, 0, problem, b""))
        for number, line in enumerate(_lines(text), 1):
            self._read_line(file, number, line)

    def _read_line(self, file: InputFile, number: int, line: bytes) -> None:
        self.lines += 1
        found = self._reader.read(line, self.lines)
        if isinstance(found, Refused):
            self.quarantined.append(_quarantined(_uri(file.path), number, found.reason, line))
            return
        for statement in found:
            self.statements[subject_of(statement)].append(statement)


def ingest_locally(
    files: Sequence[InputFile], snapshots: Location, settings: Settings, progress: Progress
) -> tuple[Ingested, dict[str, pa.Table]]:
    """Reads the files and writes the snapshot tables under ``snapshots``, replacing what was there.

    Gives the tables too. Whether too many lines were not understood is for the caller to check: see
    ``ingested.check_quarantine``.
    """
    with progress.step("records") as step:
        dumps = _Dumps(files)
        step.rows = dumps.lines
    tables = _tables(dumps, settings)
    for name, table in tables.items():
        with progress.step(name) as step:
            (snapshots / name).delete()
            step.rows = write_table(table, snapshots / name)
    result = Ingested(
        len(files), sum(file.size for file in files), dumps.lines, len(dumps.quarantined)
    )
    record_ingest(result, snapshots, settings, progress)
    return result, tables


def tables_of_dumps(files: Sequence[InputFile], settings: Settings) -> dict[str, pa.Table]:
    """The snapshot tables of the files, in memory; nothing is written."""
    return _tables(_Dumps(files), settings)


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


def _text(file: InputFile) -> tuple[bytes, str | None]:
    """What can be read of a file, and what is wrong with it."""
    if file.path.endswith(".gz"):
        unpacked = io.BytesIO()
        problem = read_gzip(file.path, unpacked)
        return unpacked.getvalue(), problem
    location = Location(file.path)
    with location.file_system.open_input_stream(location.base, compression=None) as stream:
        return bytes(stream.read()), None


def _lines(text: bytes) -> Iterator[bytes]:
    """The lines: they end at a line feed alone, the last one also where there is none."""
    stream = io.BytesIO(text)
    for line in stream:
        yield line.removesuffix(b"\n")


def _uri(path: str) -> str:
    """The path as Spark names the file that a line is in: a URI.

    >>> _uri("file:/dumps/night 1.jsonl")
    'file:/dumps/night%201.jsonl'
    """
    return "".join([f"%{ord(each):02X}" if each in _NOT_IN_URI else each for each in path])


def _quarantined(file: str, number: int, reason: str, line: bytes) -> dict[str, Any]:
    try:
        text, exact = line.decode(), None
    except UnicodeDecodeError:
        text, exact = line.decode(errors="replace"), line
    return {
        "file": file,
        "line_number": number,
        "reason": reason,
        "line": text,
        "line_bytes": exact,
    }
