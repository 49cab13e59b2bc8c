"""The ingest job: dumps in, snapshot tables and quarantine out, nothing lost between them."""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from operator import itemgetter
from statistics import mode
from typing import Any

import pyarrow as pa

from rebalance_core.english import count

from ..config.settings import Settings
from ..console.progress import Progress, StepShare
from ..dumps.counts import Counts, ImplausibleLines, LineSender, PlausibleTimes
from ..dumps.reading import COUNTS, STATEMENTS, UNDERSTOOD, DumpStep
from ..dumps.unpacking import READ
from ..engines.engine import Engine, InputFile, Slice
from ..engines.files import slices_of
from ..engines.pieces import FOR_ALL, Piece, all_rows, all_values, pack_rows, unpack_value
from ..errors import QuarantineError
from ..fold.checked_rows import checked_rows
from ..publish.table_writer import write_tables
from ..schemas import QUARANTINE, SNAPSHOT_TABLES
from ..snapshots.clients import ClusterConfigs, log_offset
from ..snapshots.groups import SnapshotTerms
from ..snapshots.topics import SubjectTables
from ..storage import Snapshots, SnapshotWriter
from ..texts.shown import visible
from ..verdict.gaps import Gap, packed
from ..verdict.silence import LeftOutRounds, packed_left_out
from .inputs import ClusterRounds, packed_clusters
from .lost_lines import losses, too_much

_LOGGER = logging.getLogger(__name__)
_MB = 1_000_000
#: The number of refused lines that are looked at for the reason that most have.
_MOST_REASONS = 10_000


@dataclass(frozen=True)
class IngestCounts:
    """Counts of what came in. ``lines`` = lines read + ``quarantined``, always.

    ``incomplete``: what of the files is missing. ``left_out``: by cluster and what it is the number
    that a collector left out in each round. ``clusters``: by cluster and broker name those in
    which a nameserver has the name, in each round in which they are several.
    """

    files: int
    bytes: int
    lines: int
    quarantined: int
    incomplete: Sequence[Gap] = field(default=(), compare=False)
    left_out: LeftOutRounds = field(default_factory=dict, compare=False)
    clusters: ClusterRounds = field(default_factory=dict, compare=False)

    def summary(self) -> dict[str, Any]:
        """The entry of the manifest of an ingest."""
        counts = ("files", "bytes", "lines", "quarantined")
        found = {name: getattr(self, name) for name in counts} | packed(self.incomplete)
        return found | packed_left_out(self.left_out) | packed_clusters(self.clusters)


def ingest(
    engine: Engine,
    dumps: Sequence[str],
    writer: SnapshotWriter,
    settings: Settings,
    progress: Progress,
) -> IngestCounts:
    """Reads dumps and writes the snapshot tables, which then count instead of what was there.

    Raises InputError where the dumps are missing, and QuarantineError, after everything was
    written, where more lines were not understood than the settings allow.
    """
    files = engine.list_files(dumps)
    size = sum(file.size for file in files)
    with progress.step("records") as step:
        step.meter = _meter(size)
        read = read_dumps(engine, files, settings)
        step.rows = read.lines
    with progress.step("snapshot tables") as step:
        rows = write_tables(read.tables(settings), SNAPSHOT_TABLES, writer.table)
        step.rows = sum(rows.values())
    incomplete = read.incomplete(settings)
    counts = read.counts
    came = len(files), size, read.lines, counts.refused, incomplete
    result = IngestCounts(*came, counts.left_out, counts.clusters)
    published = publish_ingest(result, rows, writer, settings, progress)
    refused = checked_rows(published, QUARANTINE, ["file", "line_number", "reason", "line"])
    check_quarantine(counts, refused, str(published.table(QUARANTINE.name)), settings)
    return result


def publish_ingest(
    result: IngestCounts,
    rows: Mapping[str, int],
    writer: SnapshotWriter,
    settings: Settings,
    progress: Progress,
) -> Snapshots:
    """Makes the tables the ones that are read; ``rows``: of each table those that were written."""
    # An audit that lets heartbeats expire later or sooner makes the ids of lists anew.
    summary = result.summary() | {"heartbeat_expiry_seconds": settings.heartbeat_expiry_seconds}
    with progress.step("check of the tables"):
        published = writer.publish(rows, summary)
    progress.say(
        f"ingested {count(result.files, 'file')}, {count(result.lines, 'line')}, "
        f"{result.quarantined:,} not understood"
    )
    return published


def check_quarantine(
    counts: Counts, refused: Iterable[pa.Table], place: str, settings: Settings
) -> None:
    """QuarantineError where more lines, or bytes, were not understood than the settings allow.

    ``refused``: the rows of the quarantine, of which a person finds all at ``place``.
    """
    allowed = settings.allowed_quarantine_share
    if lost := too_much(counts, allowed):
        kinds = ", ".join(filter(None, lost.kinds))
        most_lines = f"most lines of {kinds}, " if kinds else ""
        where, remedy = _commonest(refused)
        size = counts.bytes.total()
        in_bytes = f" {counts.refused_bytes:,} of {size:,} bytes," if size else ""
        raise QuarantineError(
            f"{where}{counts.refused:,} of {counts.lines.total():,} lines,{in_bytes} were not "
            f"understood ({lost.share:.1%}; {allowed:.1%} is allowed), "
            f"{most_lines}see {place}: {remedy}, and run again"
        )


#: The advice on a file that is not a dump, by its ending.
_OTHER_FILES = {
    "parquet": "name the folder of dumps; rebalance-audit audit --snapshots reads tables",
    "csv": "name the folder of dumps; a CSV file is not one",
    **dict.fromkeys(("bz2", "tar", "tgz", "xz", "zip", "zst"), "unpack it, or pack it as .gz"),
}


#: The advice by how the reason begins.
_HOW_TO_MEND = {
    "expected UTF-8 text, came UTF-16": "convert the file to UTF-8 (iconv -f UTF-16 -t UTF-8)",
    "expected one JSON object, came '[": "write one object a line, as jq -c '.[]' does "
    "(docs/dumps.md has their form)",
    "expected one JSON object, came '{'": "write each object in one line, as jq -c . does "
    "(docs/dumps.md has their form)",
    "it is not packed by gzip": "rename it, or pack it",
}


def _commonest(refused: Iterable[pa.Table]) -> tuple[str, str]:
    """The reason that most of the refused lines have, with the first line that has it; a remedy."""
    remedy = "mend what writes such lines (docs/dumps.md has their form)"
    rows = chain.from_iterable(batch.to_pylist() for batch in refused)
    in_order = sorted(islice(rows, _MOST_REASONS), key=itemgetter("file", "line_number", "line"))
    if not in_order:
        return "", remedy
    reasons = [row["reason"].partition(", came ")[0] for row in in_order]
    first = in_order[reasons.index(mode(reasons))]
    line = f" line {first['line_number']}" if first["line_number"] else ""
    is_row = not first["line_number"] and first["line"]
    if not first["line_number"] and not is_row:
        remedy = "copy the file again"
    for begin, advice in _HOW_TO_MEND.items():
        if first["reason"].startswith(begin):
            remedy = advice
    where = f"{visible(first['file'].removeprefix('file:'))}{line}: {visible(first['reason'])}; "
    ending = "" if is_row else first["file"].rpartition(".")[2].lower()
    return where, _OTHER_FILES.get(ending, remedy)


def _meter(size: int) -> Callable[[], StepShare | None]:
    """Makes the meter of ``size`` bytes to read; it gives None where other processes read."""
    before = READ.bytes

    def share() -> StepShare | None:
        done = min(READ.bytes - before, size)
        return (done // _MB, size // _MB, "MB") if done and size >= _MB else None

    return share


@dataclass(frozen=True)
class ReadDumps:
    """The lines of all dumps: pieces of statements, refused lines, and what is counted."""

    engine: Engine
    slices: Sequence[Slice]
    pieces: Any
    counts: Counts
    #: The lines of each cluster that are left out, for they are of another time than most.
    apart: Mapping[str, ImplausibleLines]

    @property
    def lines(self) -> int:
        """The number of lines."""
        return self.counts.lines.total()

    def incomplete(self, settings: Settings) -> list[Gap]:
        """The gaps of the files, and of those whose lines were refused."""
        # The lines of each sender that were understood; none where no line was refused.
        understood: Counter[LineSender] = Counter()
        if any(self.counts.refused_by.values()):
            for value in all_values(self.engine.collect(self.pieces.only(UNDERSTOOD)), UNDERSTOOD):
                understood.update(value)
        share = settings.allowed_quarantine_share
        return losses(self.slices, self.counts, understood, share, self.apart)

    def tables(self, settings: Settings) -> Iterator[Piece]:
        """The pieces of all snapshot tables, the kind of each its table's name."""
        yield from self.engine.collect(self.snapshot_pieces(settings))
        yield from self.quarantine()

    def whole_tables(self, settings: Settings) -> dict[str, pa.Table]:
        """All snapshot tables, in memory; what is missing is warned of."""
        for gap in self.incomplete(settings):
            _LOGGER.warning("%s", gap.text)
        pieces = list(self.tables(settings))
        return {table.name: all_rows(pieces, table.name, table.schema) for table in SNAPSHOT_TABLES}

    def snapshot_pieces(self, settings: Settings) -> Any:
        """The same, where they are made and without the quarantine."""
        offsets = {log: log_offset(by) for log, by in self.counts.ahead.items()}
        configs = ClusterConfigs.by_cluster(self.counts.configured)
        expiry, zone = settings.heartbeat_expiry_seconds, settings.client_log_time_zone
        terms = SnapshotTerms(expiry, zone, offsets, self.counts.mapped, configs)
        return self.engine.by_shard(self.pieces.only(STATEMENTS), SubjectTables(terms).make_tables)

    def quarantine(self) -> Iterator[Piece]:
        """The pieces of the refused lines."""
        # The reader of a range counts from its beginning: the lines of its file before each slice.
        before: dict[int, int] = {}
        lines_by_file: Counter[str] = Counter()
        for slice_ in self.slices:
            before[slice_.number] = lines_by_file[slice_.path]
            lines_by_file[slice_.path] += self.counts.lines[slice_.number]
        for piece in self.engine.collect(self.pieces.only(QUARANTINE.name)):
            number, rows = unpack_value(piece.data)
            for row in rows:
                row["line_number"] += before[number]
            table = pa.Table.from_pylist(rows, schema=QUARANTINE.schema)
            yield from pack_rows(FOR_ALL, QUARANTINE.name, table)


def read_dumps(engine: Engine, files: Sequence[InputFile], settings: Settings) -> ReadDumps:
    """Reads all lines of files; twice where the times of some contradict those of most."""
    slices = slices_of(files)
    size = sum(file.unpacked_size for file in files)
    return read_all(engine, slices, size, settings, lambda step: engine.map(slices, step))


def read_all(
    engine: Engine,
    slices: Sequence[Slice],
    size: int,
    settings: Settings,
    map_lines: Callable[[DumpStep], Any],
) -> ReadDumps:
    """The same of lines that ``map_lines`` brings to a step; ``size``: about so many bytes."""
    shards, bounds = engine.shards(size), settings.bounds

    def read(step: DumpStep, apart: Mapping[str, ImplausibleLines]) -> ReadDumps:
        pieces = map_lines(step)
        counts = Counts.of(all_values(engine.collect(pieces.only(COUNTS)), COUNTS))
        return ReadDumps(engine, slices, pieces, counts, apart)

    found = read(DumpStep(shards, bounds), {})
    plausible = PlausibleTimes.of(found.counts.days, bounds)
    if apart := plausible.apart(found.counts.days):
        return read(DumpStep(shards, bounds, plausible), apart)
    return found
