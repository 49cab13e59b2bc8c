"""Counts of the lines of dumps -> what of each file is missing.

Lost is what was not understood by lines or by bytes, whichever is the larger share: where the line
feeds of a file are gone, most of it is one line.

- A file without text is empty: a disk was full when it was written.
- A file ends early where its archive does, where a bound stopped its reading, and where its last
  line has no end and is none that a collector wrote.
- NUL bytes are what a crash of a machine leaves in place of what was written.
- A line over ``bounds.line_bytes`` is not read.
- A file is damaged where more than ``allowed_quarantine_share`` of its bytes are in lines that no
  collector wrote. Lines whose bodies alone were refused are not damage: they lie with their sender
  (``refused_lines``).
- The share of all lines is the last resort, where not all that was refused has a name.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from rebalance_core.english import agreeing
from rebalance_core.texts import Text

from ..dumps.counts import Counts, Damage, ImplausibleLines, LineSender
from ..engines.engine import Slice
from ..verdict.gaps import (
    DUMP_CUT,
    DUMP_DAMAGED,
    DUMP_EMPTY,
    LINE_TOO_LONG,
    LINES_LOST,
    NUL_BYTES,
    TIMES_APART,
    Gap,
    first,
)
from .refused_lines import failed_answers, refused_lines

#: The factor of the allowed share of refused lines that is too much, whatever the kinds.
_FAR_BEYOND = 10


@dataclass
class _File:
    """The counts of a file, over all its slices."""

    lines: int = 0
    bytes: int = 0
    damage: Damage = field(default_factory=Damage)
    ending: Text | None = None


class LostShare(NamedTuple):
    """More than is allowed was not understood.

    ``kinds``: those of which most lines were not; "" for lines without a kind.
    """

    share: float
    kinds: Sequence[str]


def too_much(counts: Counts, allowed: float) -> LostShare | None:
    """The lost share if more was not understood than is allowed, by lines or by bytes; else None.

    Lines of one odd member are said, and are not an error: most lines of their kind were
    understood. Lines without a kind are one, and so is more than ten times the allowed share.
    """
    shares = (counts.refused, counts.lines.total()), (counts.refused_bytes, counts.bytes.total())
    share = max(refused / every if every else 0.0 for refused, every in shares)
    kinds = [
        kind
        for kind, refused in sorted(counts.refused_kinds.items())
        if refused > counts.kinds[kind]
    ]
    beyond = share > _FAR_BEYOND * allowed or (share > allowed and kinds)
    return LostShare(share, kinds) if beyond else None


def losses(
    slices: Sequence[Slice],
    counts: Counts,
    understood: Mapping[LineSender, int],
    allowed: float,
    apart: Mapping[str, ImplausibleLines],
) -> list[Gap]:
    """The gaps of all files, of those that were refused, and of the clusters whose lines are of
    another time, ``apart``; ``understood``: how many lines of each sender were.
    """
    files: dict[str, _File] = {}
    for slice_ in slices:
        file = files.setdefault(slice_.path.removeprefix("file:"), _File())
        file.lines += counts.lines[slice_.number]
        file.bytes += counts.bytes[slice_.number]
        file.damage.add(counts.damage.get(slice_.number, Damage()))
        file.ending = counts.endings.get(slice_.number, file.ending)
    found = [gap for name, file in files.items() for gap in _file_gaps(name, file, allowed)]
    of_senders, named = refused_lines(slices, counts, understood)
    found += [*of_senders, *failed_answers(counts)]
    if named < counts.refused and too_much(counts, allowed):
        found.append(_gap_of_all(counts))
    found += [_gap_of_cluster(cluster, times) for cluster, times in apart.items()]
    return first(found)


def _file_gaps(name: str, file: _File, allowed: float) -> Iterator[Gap]:
    damage = file.damage
    if damage.nul_bytes and re.search(r"\.(?:tar|tgz)(?:\.gz)?$", name):
        # The NULs that end its members are no crash of a machine, and its end is no cut.
        text = Text("dump {file} is a tar archive: unpack it, and run again", file=name)
        yield Gap(NUL_BYTES, text)
        return
    if not file.lines:
        yield Gap(DUMP_EMPTY, Text("dump {file} is empty (was the disk full?)", file=name))
    if file.ending is not None:
        text = agreeing(
            file.lines,
            "dump {file} ends early after {lines:,} [line|lines]: {what}",
            file=name,
            lines=file.lines,
            what=file.ending,
        )
        yield Gap(DUMP_CUT, text)
    if damage.nul_bytes:
        text = agreeing(
            damage.nul_bytes,
            "dump {file} has {bytes:,} NUL [byte|bytes], as a machine's crash leaves behind: "
            "that part is lost",
            file=name,
            bytes=damage.nul_bytes,
        )
        yield Gap(NUL_BYTES, text)
    if damage.bytes > allowed * file.bytes:
        text = agreeing(
            damage.lines,
            "dump {file} is damaged: {lost:,} of its {bytes:,} bytes are in {lines:,} [line|lines] "
            "that no collector wrote",
            file=name,
            lost=damage.bytes,
            bytes=file.bytes,
            lines=damage.lines,
        )
        yield Gap(DUMP_DAMAGED, text)
    if damage.long_lines:
        text = agreeing(
            damage.long_lines,
            "dump {file}: {lines:,} [line|lines] of {bytes:,} bytes [was|were] not read: "
            "longer than bounds.line_bytes allows",
            file=name,
            lines=damage.long_lines,
            bytes=damage.long_bytes,
        )
        yield Gap(LINE_TOO_LONG, text)


def _gap_of_all(counts: Counts) -> Gap:
    text = Text(
        "{refused:,} of {lines:,} lines, {lost:,} of {bytes:,} bytes of all dumps, were not "
        "understood: more than allowed_quarantine_share",
        refused=counts.refused,
        lines=counts.lines.total(),
        lost=counts.refused_bytes,
        bytes=counts.bytes.total(),
    )
    return Gap(LINES_LOST, text)


def _gap_of_cluster(cluster: str, times: ImplausibleLines) -> Gap:
    text = agreeing(
        times.lines,
        "cluster {cluster}: {lines:,} [line|lines] of {days} [is|are] left out because most "
        "lines of the dumps are of another time (bounds.dump_days); the table quarantine has "
        "them: correct the collector's clock, or ingest dumps of other years separately",
        cluster=cluster,
        lines=times.lines,
        days=times.days,
    )
    return Gap(TIMES_APART, text)
