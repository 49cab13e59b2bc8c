"""Counts of the lines of dumps -> what of each file, and of each sender, is missing.

Lost is what was not understood by lines or by bytes, whichever is the larger share: where the line
feeds of a file are gone, most of it is one line.

- A file without text is empty: a disk was full when it was written.
- A file ends early where its archive does, where a bound stopped its reading, and where its last
  line has no end and is none that a collector wrote.
- NUL bytes are what a crash of a machine leaves in place of what was written.
- A line over ``bounds.line_bytes`` is not read.
- A file is damaged where more than ``allowed_quarantine_share`` of its bytes are in lines that no
  collector wrote. Lines whose bodies alone were refused are not damage: they lie with their sender.
- A cluster, a kind of lines, a broker, a client, a group, a topic or a file of which most was
  refused is not known, however few its lines are among all. One fault refuses lines of several of
  these: the part with the most lines is reported, the widest of equal ones; then what is left.
- The share of all lines is the last resort, where not all that was refused has a name.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from rebalance_core.english import agreeing
from rebalance_core.grouping import grouped
from rebalance_core.texts import Text

from ..dumps import counts as counting
from ..dumps.counts import Counts, Damage, ImplausibleLines
from ..dumps.statement import CLUSTER_INFO, CONSUMER_CONNECTION
from ..engines.engine import Slice
from ..verdict import gaps
from ..verdict.gaps import Gap, first

#: The factor of the allowed share of refused lines that is too much, whatever the kinds.
_FAR_BEYOND = 10


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
    understood: Mapping[counting.LineSender, int],
    allowed: float,
    apart: Mapping[str, ImplausibleLines],
) -> list[Gap]:
    """The gaps of all files, of those that were refused, and of the clusters whose lines are of
    another time, ``apart``; ``understood``: how many lines of each sender were.
    """
    files = {slice_.number: slice_.path.removeprefix("file:") for slice_ in slices}
    by_file = grouped((name, number) for number, name in files.items())
    found = [
        gap
        for name, numbers in by_file.items()
        for gap in _file_gaps(name, numbers, counts, allowed)
    ]
    lines_of_senders, named = refused_lines(files, counts, understood)
    found += [*lines_of_senders, *failed_answers(counts)]
    if named < counts.refused and too_much(counts, allowed):
        text = Text(
            "{refused:,} of {lines:,} lines, {lost:,} of {bytes:,} bytes of all dumps, were not "
            "understood: more than allowed_quarantine_share",
            refused=counts.refused,
            lines=counts.lines.total(),
            lost=counts.refused_bytes,
            bytes=counts.bytes.total(),
        )
        found.append(Gap(gaps.LINES_LOST, text))
    for cluster, times in apart.items():
        text = agreeing(
            times.lines,
            "cluster {cluster}: {lines:,} [line|lines] of {days} [is|are] left out because most "
            "lines of the dumps are of another time (bounds.dump_days); the table quarantine has "
            "them: correct the collector's clock, or ingest dumps of other years separately",
            cluster=cluster,
            lines=times.lines,
            days=times.days,
        )
        found.append(Gap(gaps.TIMES_APART, text))
    return first(found)


def _file_gaps(name: str, numbers: Sequence[int], counts: Counts, allowed: float) -> Iterator[Gap]:
    """The gaps of a file, over all its slices."""
    lines, size = (sum(by_slice[n] for n in numbers) for by_slice in (counts.lines, counts.bytes))
    damage = Damage()
    for number in numbers:
        damage.add(counts.damage.get(number, Damage()))
    if damage.nul_bytes and re.search(r"\.(?:tar|tgz)(?:\.gz)?$", name):
        # The NULs that end its members are no crash of a machine, and its end is no cut.
        text = Text("dump {file} is a tar archive: unpack it, and run again", file=name)
        yield Gap(gaps.NUL_BYTES, text)
        return
    if not lines:
        yield Gap(gaps.DUMP_EMPTY, Text("dump {file} is empty (was the disk full?)", file=name))
    if endings := [counts.endings[number] for number in numbers if number in counts.endings]:
        text = agreeing(
            lines,
            "dump {file} ends early after {lines:,} [line|lines]: {what}",
            file=name,
            lines=lines,
            what=endings[-1],
        )
        yield Gap(gaps.DUMP_CUT, text)
    if damage.nul_bytes:
        text = agreeing(
            damage.nul_bytes,
            "dump {file} has {bytes:,} NUL [byte|bytes], as a machine's crash leaves behind: "
            "that part is lost",
            file=name,
            bytes=damage.nul_bytes,
        )
        yield Gap(gaps.NUL_BYTES, text)
    if damage.bytes > allowed * size:
        text = agreeing(
            damage.lines,
            "dump {file} is damaged: {lost:,} of its {bytes:,} bytes are in {lines:,} [line|lines] "
            "that no collector wrote",
            file=name,
            lost=damage.bytes,
            bytes=size,
            lines=damage.lines,
        )
        yield Gap(gaps.DUMP_DAMAGED, text)
    if damage.long_lines:
        text = agreeing(
            damage.long_lines,
            "dump {file}: {lines:,} [line|lines] of {bytes:,} bytes [was|were] not read: "
            "longer than bounds.line_bytes allows",
            file=name,
            lines=damage.long_lines,
            bytes=damage.long_bytes,
        )
        yield Gap(gaps.LINE_TOO_LONG, text)


#: The fields of a sender that name a part of its cluster, the widest part first.
_PARTS = (
    *((), ("kind",), ("server",), ("client",), ("subject",)),
    *(("kind", "server"), ("kind", "client"), ("kind", "subject")),
    ("kind", "server", "client", "subject"),
)


#: The words for each part of a sender.
_ROLES = {
    counting.BROKER: "broker {name}",
    counting.NAMESERVER: "nameserver {name}",
    counting.CLIENT: "client {name}",
    counting.GROUP: "group {name}",
    counting.TOPIC: "topic {name}",
    counting.PROCESS: "process {name}",
}


class _Refused(NamedTuple):
    """The refused lines of one sender in one file."""

    file: str
    sender: counting.LineSender
    refused: counting.RefusedLines


class _Part(NamedTuple):
    """A part of the input: a file, or what the fields of its sender say."""

    sender: counting.LineSender
    file: str = ""

    @property
    def text(self) -> Text:
        """The part in words."""
        if self.file:
            return Text("dump {file}", file=self.file)
        words = Text("cluster {name}", name=self.sender.cluster)
        for named in (self.sender.server, self.sender.client, self.sender.subject):
            if named:
                role, name = named
                part = Text(_ROLES[role], name=name)
                words = Text("{part} of {whole}", part=part, whole=words)
        kind = self.sender.kind
        return Text("{part} of {whole}", part=kind, whole=words) if kind else words


def refused_lines(
    files: Mapping[int, str], counts: Counts, understood: Mapping[counting.LineSender, int]
) -> tuple[list[Gap], int]:
    """A gap for each part of which most was refused; and of how many refused lines they are.

    ``files``: by the number of each slice. ``understood``: the lines of each sender that were.
    """
    refused = [
        _Refused(files[number], sender, refused_there)
        for number, by_sender in sorted(counts.refused_by.items())
        for sender, refused_there in by_sender.items()
    ]
    parts = grouped((part, lost) for lost in refused for part in _parts(lost.sender, lost.file))
    lines = _understood(parts, files, counts, understood)
    named: set[int] = set()
    found = []
    for part in _widest(parts, lines, named):
        number = sum(lost.refused.lines for lost in parts[part])
        text = agreeing(
            number,
            "{part}: {refused:,} of {lines:,} lines [was|were] not understood; the first: "
            "{reason}; the table quarantine has them: mend what writes them",
            part=part.text,
            refused=number,
            lines=number + lines[part],
            reason=parts[part][0].refused.reason,
        )
        found.append(Gap(gaps.LINES_REFUSED, text))
    return found, sum(lost.refused.lines for lost in refused if id(lost) in named)


def failed_answers(counts: Counts) -> Iterator[Gap]:
    """A gap for each server that gave errors alone where it was asked for one kind of answers.

    A broker that gave no list either is silent, which is said already (``verdict.silence``).
    """
    with_lists = {
        (answer.cluster, answer.server)
        for answer in counts.answers
        if answer.kind == CONSUMER_CONNECTION and not answer.error
    }
    by_server = grouped(
        (line_sender._replace(error=""), (line_sender.error, lines))
        for line_sender, lines in counts.answers.items()
        if line_sender.kind in counting.ERRORS
    )
    for sender, answers in sorted(by_server.items()):
        is_listing = (sender.cluster, sender.server) in with_lists or sender.kind == CLUSTER_INFO
        if is_listing and all(error for error, _ in answers):
            number = sum(lines for _, lines in answers)
            text = agreeing(
                number,
                "{part}: {answers:,} [answer|answers], and none but errors: {error}; without them "
                "the audit may lack brokers, groups or offsets: see that the collector may ask",
                part=_Part(sender).text,
                answers=number,
                error=answers[0][0],
            )
            yield Gap(gaps.ANSWERS_FAILED, text)


def _parts(sender: counting.LineSender, file: str) -> Iterator[_Part]:
    """The parts that lines of a sender are of."""
    if sender.cluster:
        whole = counting.LineSender(sender.cluster)
        names = ({name: getattr(sender, name) for name in part} for part in _PARTS)
        yield from dict.fromkeys(_Part(whole._replace(**row)) for row in names)
    if file:
        yield _Part(counting.OTHERS, file)


def _understood(
    parts: Mapping[_Part, object],
    files: Mapping[int, str],
    counts: Counts,
    understood: Mapping[counting.LineSender, int],
) -> Counter[_Part]:
    """The lines of each part that were understood. Those of senders that were not counted each by
    itself may be of any.
    """
    others = understood.get(counting.OTHERS, 0)
    found = Counter({part: others for part in parts if not part.file})
    for sender, lines in understood.items():
        for part in _parts(sender, ""):
            if part in parts:
                found[part] += lines
    for number, file in files.items():
        refused = sum(lost.lines for lost in counts.refused_by.get(number, {}).values())
        found[_Part(counting.OTHERS, file)] += counts.lines[number] - refused
    return found


def _widest(
    parts: Mapping[_Part, Sequence[_Refused]], understood: Counter[_Part], named: set[int]
) -> Iterator[_Part]:
    """The parts of which most was refused, each time that with the most lines that none before has.

    ``named``: the ids of what they have; it grows. Of refused lists alone nothing is said here:
    their polls show for how long there was no other (``verdict.silence``).
    """

    def left_of(part: _Part) -> tuple[int, bool]:
        left = [lost.refused for lost in parts[part] if id(lost) not in named]
        return -sum(lost.lines for lost in left), any(lost.lines > lost.polls for lost in left)

    order = [(left_of(part)[0], place, part) for place, part in enumerate(parts)]
    heapify(order)
    while order:
        before, place, part = heappop(order)
        now, is_new = left_of(part)
        if now != before:
            heappush(order, (now, place, part))
        elif is_new and -now > understood[part]:
            named.update(map(id, parts[part]))
            yield part
