"""Slices of dumps -> pieces: statements for the shards of their groups and topics, lines that were
not understood, and what is counted of all lines.

The one reader of dumps, on every engine. A damaged archive gives what comes before the damage.

A line that is not understood is quarantined as it came, with its file, its line number and the
reason. Nothing is lost in between: lines read and lines quarantined add up to all lines. Of a file
the first ``bounds.quarantined_lines`` are kept, and one row counts the others.

A line with a kind was whole: what its body is lies with who sent it. One without a kind is none
that a collector wrote, and counts as damage of its file, in bytes: where the line feeds are gone
most of a file is one line.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa

from rebalance_core.english import agreeing
from rebalance_core.grouping import grouped
from rebalance_core.texts import Text

from ..config.bounds import Bounds
from ..declared.instants import Instant
from ..engines.engine import Opened, Slice
from ..engines.files import file_uri
from ..engines.pieces import FOR_ALL, Piece, all_values, pack_value, shard_of
from ..schemas import QUARANTINE
from .counts import (
    ERRORS,
    MOST_REFUSED,
    OTHERS,
    Counts,
    Damage,
    PlausibleTimes,
    RefusedLines,
    day_of,
)
from .statement import (
    CLIENT_LOG,
    CONSUMER_CONNECTION,
    SUBSCRIPTION_GROUP,
    TOPIC_ROUTE,
    ConfiguredGroups,
    LeftOut,
    LogLine,
    Route,
    SharedName,
    Statement,
    log_of,
)
from .statements import RefusedLine, StatementReader, as_quarantined
from .unpacking import BEGINNING, Archive, Line, RowLines, SliceLines, too_long

#: Kinds of pieces.
STATEMENTS, COUNTS = "statements", "counts"
#: The number of lines of each sender of a slice that were understood: asked for where lines were
#: refused.
UNDERSTOOD = "understood"

#: The subject of statements: a topic or a group, its cluster, its name.
StatementSubject: TypeAlias = tuple[bool, str, str]

#: Files come one after the other in the order of statements, and lines by their place in a slice:
#: this many bits hold the place, a size of 16 TiB.
_PLACE_BITS = 44
#: The most statements, and bytes of refused lines, that are held before they leave.
_STATEMENTS_AT_ONCE = 50_000
_REFUSED_AT_ONCE = 8 << 20

#: The groups and topics of a dump come again with each round.
_shard_of = lru_cache(maxsize=50_000)(shard_of)


@dataclass(frozen=True)
class DumpStep:
    """Slices of dumps -> pieces. It travels to where they are read."""

    shards: int
    bounds: Bounds
    plausible: PlausibleTimes | None = None

    def __call__(self, opened: Iterable[Opened]) -> Iterator[Piece]:
        """The pieces, slice by slice."""
        for slice_, content in opened:
            yield from _Reading(self, slice_).pieces(SliceLines(slice_, self.bounds, content))

    def of_rows(self, name: str, batches: Iterable[pa.RecordBatch]) -> Iterator[Piece]:
        """The pieces of lines that are rows of the named table, as ``RowLines``: one slice."""
        yield from _Reading(self, slice_of_rows(name)).pieces(RowLines(batches))


def slice_of_rows(name: str) -> Slice:
    """The one slice of all rows of a table of lines."""
    return Slice(0, "dump", name, 0)


class _Reading:
    """One slice, while it is read."""

    def __init__(self, step: DumpStep, slice_: Slice) -> None:
        self._slice = slice_
        self._bounds = step.bounds
        self._shards = step.shards
        self._reader = StatementReader(step.bounds, step.plausible)
        self._counts = Counts()
        self._damage = self._counts.damage[slice_.number] = Damage()
        self._refused_by = self._counts.refused_by[slice_.number] = {}
        self._statements: dict[int, list[Statement]] = defaultdict(list)
        self._held = 0
        self._refused: list[dict[str, Any]] = []
        self._refused_bytes = 0

    def pieces(self, lines: SliceLines | RowLines) -> Iterator[Piece]:
        archive = Archive(self._slice.size, self._bounds) if lines.is_archive else None
        begins = place = self._slice.number << _PLACE_BITS
        number, line, refused = 0, Line(b"", 0), None
        for number, line in enumerate(lines, 1):
            over = None if archive is None else archive.refuses(line.size)
            order = place if line.order is None else line.order
            refused = self._read(number, line, order, over)
            place += line.size + 1
            if self._held >= _STATEMENTS_AT_ONCE:
                yield from self._take()
            if self._refused_bytes >= _REFUSED_AT_ONCE:
                yield self._take_refused()
            if over is not None:
                lines.problem = Text("it has more text than the bounds of an archive allow")
                break
        if lines.problem is not None:
            if not number:
                number = 1
                self._refuse(0, RefusedLine(lines.problem), Line(b"", 0, has_end=False))
        elif not line.has_end and refused is not None and not refused.kind:
            ends = "its last line has {bytes:,} [byte|bytes] and no end"
            lines.problem = agreeing(line.size, ends, bytes=line.size)
        counts = self._counts
        if lines.problem is not None:
            counts.endings[self._slice.number] = lines.problem
        counts.bytes[self._slice.number] = place - begins - (not line.has_end)
        if (more := counts.refused - self._bounds.quarantined_lines) > 0:
            reason = (
                f"{more:,} more lines of this file, up to this one, were not understood "
                "(bounds.quarantined_lines)"
            )
            self._keep(number, reason, line._replace(text=b""))
        counts.lines[self._slice.number] = number
        yield from self._take()
        yield self._take_refused()
        understood = {sender: counted for sender, [counted] in self._reader.understood.items()}
        for sender, counted in understood.items():
            if sender.kind in ERRORS or sender.kind == CONSUMER_CONNECTION:
                counts.answers[sender._replace(client=(), subject=())] += counted
        yield pack_value(FOR_ALL, COUNTS, counts)
        yield pack_value(FOR_ALL, UNDERSTOOD, understood)

    def _read(self, number: int, line: Line, order: int, over: str | None) -> RefusedLine | None:
        if over is None and line.size > self._bounds.line_bytes:
            over = too_long(line.size, self._bounds)
        if over is not None:
            beginning = line._replace(text=line.text[:BEGINNING])
            return self._refuse(number, RefusedLine(over), beginning)
        found = self._reader.read(line.text, order)
        if isinstance(found, RefusedLine):
            self._hold(found.polls)
            return self._refuse(number, found, line)
        if found:
            self._counts.kinds[found[0].kind] += 1
        self._hold(found)
        return None

    def _hold(self, statements: Sequence[Statement]) -> None:
        for statement in statements:
            if not self._is_counted_alone(statement):
                shard = _shard_of(statement.subject, self._shards)
                self._statements[shard].append(statement)
        self._held += len(statements)

    def _is_counted_alone(self, statement: Statement) -> bool:
        """Counts a statement. True if that is all, for it is of no group or topic."""
        content, counts, cluster = statement.content, self._counts, statement.cluster
        round_ = statement.snapshot_time or statement.collected_at
        if isinstance(content, SharedName):
            counts.add_clusters((cluster, content.broker_name), round_, content.clusters)
            return True
        if isinstance(content, LeftOut):
            counts.add_left_out((cluster, content.what), round_, content.number)
            return True
        if isinstance(content, ConfiguredGroups):
            source = statement.source
            # A slave has what the master had some seconds before (``SlaveSynchronize`` 5.3.3).
            if source.broker_name is not None and not source.broker_id:
                answer = {(source.broker_name, round_): statement.collected_at}
                counts.add_configured((cluster, content.groups), answer)
            return True
        is_log = statement.kind == CLIENT_LOG
        counts.days[is_log, day_of(statement.collected_at), cluster] += 1
        if isinstance(content, Route):
            for logical in content.logical:
                counts.add_mapped((cluster, statement.subject), logical, round_)
        if isinstance(content, LogLine) and content.printed is not None:
            by = content.printed - statement.collected_at
            counts.add_ahead(log_of(statement, content), by)
        return False

    def _refuse(self, number: int, refused: RefusedLine, line: Line) -> RefusedLine:
        size = line.size + line.has_end
        self._counts.refused += 1
        self._counts.refused_bytes += size
        self._counts.refused_kinds[refused.kind] += 1
        if (sender := refused.sender) is not None:
            if sender not in self._refused_by and len(self._refused_by) >= MOST_REFUSED:
                sender = OTHERS
            none_refused = RefusedLines(0, 0, refused.reason)
            refused_there = self._refused_by.setdefault(sender, none_refused)
            refused_there.lines += 1
            refused_there.polls += len(refused.polls)
        if line.size > self._bounds.line_bytes:
            self._damage.long_lines += 1
            self._damage.long_bytes += size
        elif not refused.kind:
            self._damage.lines += 1
            self._damage.bytes += size
            self._damage.nul_bytes += line.text.count(0)
        if self._counts.refused <= self._bounds.quarantined_lines:
            self._keep(number, refused.reason, line)
        return refused

    def _keep(self, number: int, reason: str, line: Line) -> None:
        text, exact = as_quarantined(line.text)
        self._refused_bytes += len(line.text)
        is_row = line.order is not None
        self._refused.append(
            {
                "file": file_uri(self._slice.path) if line.file is None else line.file,
                # A row has no number that another run would give it again.
                "line_number": 0 if is_row else number,
                "reason": reason,
                "line": text,
                "line_bytes": exact,
            }
        )

    def _take(self) -> Iterator[Piece]:
        """The statements so far, column by column: what is the same object is packed once."""
        for shard, statements in self._statements.items():
            yield pack_value(shard, STATEMENTS, list(zip(*statements, strict=True)))
        self._statements.clear()
        self._held = 0

    def _take_refused(self) -> Piece:
        piece = pack_value(FOR_ALL, QUARANTINE.name, (self._slice.number, self._refused))
        self._refused, self._refused_bytes = [], 0
        return piece


def statements_of(pieces: Sequence[Piece]) -> dict[StatementSubject, list[Statement]]:
    """The statements of a shard's pieces, by subject, each subject's in order of time."""
    found = grouped(
        ((statement.kind == TOPIC_ROUTE, statement.cluster, statement.subject), statement)
        for columns in all_values(pieces, STATEMENTS)
        for statement in map(Statement, *columns)
    )
    for statements in found.values():
        statements.sort(key=lambda statement: (statement.collected_at, statement.order))
    return found


# ------------------------------------------------------------------ one kind of a dump alone

_GROUP_CONFIGS = f'"{SUBSCRIPTION_GROUP}"'.encode()


class GroupConfigs(NamedTuple):
    """The groups of one broker's last answer, and its snapshot; None: it answered with an error."""

    time: Instant
    groups: frozenset[str] | None


def last_group_configs(
    slices: Iterable[Slice], bounds: Bounds, cluster: str
) -> dict[str, GroupConfigs]:
    """The groups of which each broker of a cluster has a configuration by its last answer, by the
    broker's name.

    A group that was deleted is missing there, and its offsets may stay (``deleteSubGroup`` of 5.3.3
    without ``removeOffset``). Nothing else of a dump shows that it was deleted.
    """
    found: dict[str, GroupConfigs] = {}
    reader = StatementReader(bounds, None)
    for line in chain.from_iterable(SliceLines(slice_, bounds) for slice_ in slices):
        said = reader.read(line.text) if _GROUP_CONFIGS in line.text else []
        for statement in () if isinstance(said, RefusedLine) else said:
            time, name, content = statement.snapshot_time, statement.source.broker_name, None
            if statement.kind != SUBSCRIPTION_GROUP or statement.cluster != cluster:
                continue
            if isinstance(statement.content, ConfiguredGroups):
                content = frozenset(statement.content.groups)
            is_answer = content is not None or statement.content is None
            if is_answer and time is not None and name is not None:
                configs = GroupConfigs(time, content)
                last = found.get(name, configs)
                found[name] = configs if time >= last.time else last
    return found
