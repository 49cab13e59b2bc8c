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

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from sys import intern
from typing import Any, TypeAlias

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
from .senders import ERRORS, MOST_REFUSED, OTHERS, LineSender, RefusedLines
from .statement import (
    CLIENT_LOG,
    CONSUMER_CONNECTION,
    TOPIC_ROUTE,
    Configured,
    ConfiguredGroups,
    FirstMapped,
    GroupNames,
    LeftOut,
    Log,
    LogicalQueue,
    LogLine,
    Route,
    SharedName,
    Statement,
    log_of,
)
from .statements import RefusedLine, StatementReader, as_quarantined
from .times import PlausibleTimes, day_of
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
#: The most things left out that are counted each by itself, and the word for the others: there are
#: some ten.
_MOST_LEFT_OUT, _OTHERS_LEFT_OUT = 100, "other things"

#: The groups and topics of a dump come again with each round.
_shard_of = lru_cache(maxsize=50_000)(shard_of)


@dataclass
class Damage:
    """Lines without a kind and their bytes, with those that are NUL; and apart from these the lines
    that are longer than the bounds allow, and their bytes.
    """

    lines: int = 0
    bytes: int = 0
    nul_bytes: int = 0
    long_lines: int = 0
    long_bytes: int = 0

    def add(self, other: "Damage") -> None:
        """Adds that of another part of the file."""
        for name, number in vars(other).items():
            setattr(self, name, getattr(self, name) + number)


@dataclass
class Counts:
    """Counts of lines; ``lines`` and ``bytes`` (of text) by slice.

    ``refused``, ``refused_bytes``: of the lines that were not understood. ``kinds``: of the lines
    that have statements, and ``refused_kinds`` of those that were refused, how many there are of
    each kind. ``refused_by``: by slice those of each sender, but for damage and for what is of
    another time than most. ``answers``: the lines of each server, by kind and error, of lists and
    of ``ERRORS``. ``left_out``: by cluster and what it is the number that a collector left
    out in each round. ``clusters``: by cluster and broker name those in which a nameserver has the
    name, in each round in which they are several. ``damage``: by slice. ``endings``: by slice why
    its file lacks lines.
    ``days``: the statements by whether they are log lines, by day of ``collected_at``, and cluster.
    ``ahead``: by log by how much its printed times, taken for UTC, are at most ahead of
    ``collected_at``. ``mapped``: by cluster and static topic where its logical queues lie.
    ``configured``: the groups of which masters have a configuration; it grows with the changes.
    """

    lines: Counter[int] = field(default_factory=Counter)
    bytes: Counter[int] = field(default_factory=Counter)
    refused: int = 0
    refused_bytes: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    refused_kinds: Counter[str] = field(default_factory=Counter)
    refused_by: dict[int, dict[LineSender, RefusedLines]] = field(default_factory=dict)
    answers: Counter[LineSender] = field(default_factory=Counter)
    left_out: dict[tuple[str, str], dict[Instant, int]] = field(default_factory=dict)
    clusters: dict[tuple[str, str], dict[Instant, set[str]]] = field(default_factory=dict)
    damage: dict[int, Damage] = field(default_factory=dict)
    endings: dict[int, Text] = field(default_factory=dict)
    days: Counter[tuple[bool, int, str]] = field(default_factory=Counter)
    ahead: dict[Log, Instant] = field(default_factory=dict)
    mapped: dict[tuple[str, str], FirstMapped] = field(default_factory=dict)
    configured: Configured = field(default_factory=dict)

    @classmethod
    def of(cls, parts: "Iterable[Counts]") -> "Counts":
        """The counts of all slices."""
        whole = cls()
        for part in parts:
            whole.lines.update(part.lines)
            whole.bytes.update(part.bytes)
            whole.refused += part.refused
            whole.refused_bytes += part.refused_bytes
            whole.kinds.update(part.kinds)
            whole.refused_kinds.update(part.refused_kinds)
            for number, by_sender in part.refused_by.items():
                whole.add_refused(number, by_sender)
            whole.answers.update(part.answers)
            for key, of_rounds in part.left_out.items():
                for round_, number in of_rounds.items():
                    whole.add_left_out(key, round_, number)
            for of_name, in_rounds in part.clusters.items():
                for round_, clusters in in_rounds.items():
                    whole.add_clusters(of_name, round_, clusters)
            for number, damage in part.damage.items():
                whole.damage.setdefault(number, Damage()).add(damage)
            whole.endings |= part.endings
            whole.days.update(part.days)
            for log, by in part.ahead.items():
                whole.ahead[log] = max(whole.ahead.get(log, by), by)
            for topic, first in part.mapped.items():
                for logical, round_ in first.items():
                    whole.add_mapped(topic, logical, round_)
            for groups, answers in part.configured.items():
                whole.add_configured(groups, answers)
        return whole

    def add_mapped(
        self, topic: tuple[str, str], logical: tuple[LogicalQueue, int], round_: Instant
    ) -> None:
        """Adds where a logical queue lies; the first round of each mapping counts."""
        first = self.mapped.setdefault(topic, {})
        first[logical] = min(round_, first.get(logical, round_))

    def add_configured(
        self, groups: tuple[str, GroupNames], answers: Mapping[tuple[str, Instant], Instant]
    ) -> None:
        """Adds answers of masters of a cluster that have a configuration of just these groups."""
        there = self.configured.get(groups)
        if there is None:
            # Of two lists that differ nearly all names are the same.
            cluster, names = groups
            there = self.configured[cluster, tuple(map(intern, names))] = {}
        there.update(answers)

    def add_refused(self, number: int, by_sender: "dict[LineSender, RefusedLines]") -> None:
        """Adds what was refused of a slice, or of some of its rows."""
        there = self.refused_by.setdefault(number, {})
        for sender, refused in by_sender.items():
            of_sender = there.setdefault(sender, RefusedLines(0, 0, refused.reason))
            of_sender.lines += refused.lines
            of_sender.polls += refused.polls
            of_sender.reason = min(of_sender.reason, refused.reason)

    def add_left_out(self, key: tuple[str, str], round_: Instant, number: int) -> None:
        """Adds what a collector left out; of two collectors in a round the larger number counts."""
        if key not in self.left_out and len(self.left_out) >= _MOST_LEFT_OUT:
            key = key[0], _OTHERS_LEFT_OUT
        of_rounds = self.left_out.setdefault(key, {})
        of_rounds[round_] = max(number, of_rounds.get(round_, 0))

    def add_clusters(
        self, of_name: tuple[str, str], round_: Instant, clusters: Iterable[str]
    ) -> None:
        """Adds the clusters in which a nameserver has a broker name in a round."""
        self.clusters.setdefault(of_name, {}).setdefault(round_, set()).update(clusters)


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
        self._damage = Damage()
        self._refused_by: dict[LineSender, RefusedLines] = {}
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
        if lines.problem is not None:
            self._counts.endings[self._slice.number] = lines.problem
        self._counts.damage[self._slice.number] = self._damage
        self._counts.refused_by[self._slice.number] = self._refused_by
        self._counts.bytes[self._slice.number] = place - begins - (not line.has_end)
        more = self._counts.refused - self._bounds.quarantined_lines
        if more > 0:
            reason = (
                f"{more:,} more lines of this file, up to this one, were not understood "
                "(bounds.quarantined_lines)"
            )
            self._keep(number, reason, line._replace(text=b""))
        self._counts.lines[self._slice.number] = number
        yield from self._take()
        yield self._take_refused()
        understood = {sender: counted for sender, [counted] in self._reader.understood.items()}
        for sender, counted in understood.items():
            if sender.kind in ERRORS or sender.kind == CONSUMER_CONNECTION:
                of_server = sender._replace(client=(), subject=())
                self._counts.answers[of_server] += counted
        yield pack_value(FOR_ALL, COUNTS, self._counts)
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
            content = statement.content
            if isinstance(content, SharedName):
                of_name = statement.cluster, content.broker_name
                round_ = statement.snapshot_time or statement.collected_at
                self._counts.add_clusters(of_name, round_, content.clusters)
                continue
            if isinstance(content, LeftOut):
                round_ = statement.snapshot_time or statement.collected_at
                self._counts.add_left_out((statement.cluster, content.what), round_, content.number)
                continue
            if isinstance(content, ConfiguredGroups):
                self._add_configured(statement, content)
                continue
            self._count(statement)
            self._statements[_shard_of(statement.subject, self._shards)].append(statement)
        self._held += len(statements)

    def _add_configured(self, statement: Statement, content: ConfiguredGroups) -> None:
        source, round_ = statement.source, statement.snapshot_time
        # A slave has what the master had some seconds before (``SlaveSynchronize`` 5.3.3).
        if round_ is not None and source.broker_name is not None and not source.broker_id:
            answer = {(source.broker_name, round_): statement.collected_at}
            self._counts.add_configured((statement.cluster, content.groups), answer)

    def _count(self, statement: Statement) -> None:
        is_log = statement.kind == CLIENT_LOG
        self._counts.days[is_log, day_of(statement.collected_at), statement.cluster] += 1
        line = statement.content
        if isinstance(line, Route):
            round_ = statement.snapshot_time or statement.collected_at
            for logical in line.logical:
                self._counts.add_mapped((statement.cluster, statement.subject), logical, round_)
        if is_log and isinstance(line, LogLine) and line.printed is not None:
            log = log_of(statement, line)
            by = line.printed - statement.collected_at
            self._counts.ahead[log] = max(self._counts.ahead.get(log, by), by)

    def _refuse(self, number: int, refused: RefusedLine, line: Line) -> RefusedLine:
        size = line.size + line.has_end
        self._counts.refused += 1
        self._counts.refused_bytes += size
        self._counts.refused_kinds[refused.kind] += 1
        if (sender := refused.sender) is not None:
            of_sender = self._refused_by.get(sender)
            if of_sender is None:
                sender = sender if len(self._refused_by) < MOST_REFUSED else OTHERS
                of_sender = RefusedLines(0, 0, refused.reason)
                of_sender = self._refused_by.setdefault(sender, of_sender)
            of_sender.lines += 1
            of_sender.polls += len(refused.polls)
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
        ((each.kind == TOPIC_ROUTE, each.cluster, each.subject), each)
        for columns in all_values(pieces, STATEMENTS)
        for each in map(Statement, *columns)
    )
    for statements in found.values():
        statements.sort(key=lambda statement: (statement.collected_at, statement.order))
    return found
