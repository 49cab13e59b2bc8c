"""Refused lines, by who sent them -> gaps: the widest part of the input of which most was refused.

A cluster, a kind of lines, a broker, a client, a group, a topic or a file of which most was refused
is not known, however few its lines are among all. One fault refuses lines of several of these: the
part with the most lines is reported, the widest of equal ones; then what is left.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from rebalance_core.english import agreeing
from rebalance_core.grouping import grouped
from rebalance_core.texts import Text

from ..dumps.counts import (
    BROKER,
    CLIENT,
    ERRORS,
    GROUP,
    NAMESERVER,
    OTHERS,
    TOPIC,
    Counts,
    LineSender,
    RefusedLines,
)
from ..dumps.statement import CLUSTER_INFO, CONSUMER_CONNECTION
from ..engines.engine import Slice
from ..verdict.gaps import ANSWERS_FAILED, LINES_REFUSED, Gap

#: The fields of a sender that name a part of its cluster, the widest part first.
_PARTS = (
    *((), ("kind",), ("server",), ("client",), ("subject",)),
    *(("kind", "server"), ("kind", "client"), ("kind", "subject")),
    ("kind", "server", "client", "subject"),
)


class _Refused(NamedTuple):
    """The refused lines of one sender in one file."""

    file: str
    sender: LineSender
    of_sender: RefusedLines


class _Part(NamedTuple):
    """A part of the input: a file, or what the fields of its sender say."""

    sender: LineSender
    file: str = ""

    @property
    def text(self) -> Text:
        """The part in words."""
        if self.file:
            return Text("dump {file}", file=self.file)
        words = Text("cluster {name}", name=self.sender.cluster)
        for named in (self.sender.server, self.sender.client, self.sender.subject):
            if named:
                words = Text("{part} of {whole}", part=_in_words(*named), whole=words)
        kind = self.sender.kind
        return Text("{part} of {whole}", part=kind, whole=words) if kind else words


def _in_words(role: str, name: str) -> Text:
    if role == BROKER:
        return Text("broker {name}", name=name)
    if role == NAMESERVER:
        return Text("nameserver {name}", name=name)
    if role == CLIENT:
        return Text("client {name}", name=name)
    if role == GROUP:
        return Text("group {name}", name=name)
    if role == TOPIC:
        return Text("topic {name}", name=name)
    return Text("process {name}", name=name)


def refused_lines(
    slices: Sequence[Slice], counts: Counts, understood: Mapping[LineSender, int]
) -> tuple[list[Gap], int]:
    """A gap for each part of which most was refused; and of how many refused lines they are.

    ``understood``: the lines of each sender that were understood.
    """
    files = {slice_.number: slice_.path.removeprefix("file:") for slice_ in slices}
    refused = [
        _Refused(files[number], sender, of_sender)
        for number, by_sender in sorted(counts.refused_by.items())
        for sender, of_sender in by_sender.items()
    ]
    parts = grouped((part, each) for each in refused for part in _parts(each.sender, each.file))
    lines = _understood(parts, files, counts, understood)
    named: set[int] = set()
    gaps = [_gap(part, parts[part], lines[part]) for part in _widest(parts, lines, named)]
    return gaps, sum(each.of_sender.lines for each in refused if id(each) in named)


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
        if line_sender.kind in ERRORS
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
            yield Gap(ANSWERS_FAILED, text)


def _gap(part: _Part, refused: Sequence[_Refused], understood: int) -> Gap:
    number = sum(each.of_sender.lines for each in refused)
    text = agreeing(
        number,
        "{part}: {refused:,} of {lines:,} lines [was|were] not understood; the first: {reason}; "
        "the table quarantine has them: mend what writes them",
        part=part.text,
        refused=number,
        lines=number + understood,
        reason=refused[0].of_sender.reason,
    )
    return Gap(LINES_REFUSED, text)


def _parts(sender: LineSender, file: str) -> Iterator[_Part]:
    """The parts that lines of a sender are of."""
    if sender.cluster:
        whole = LineSender(sender.cluster)
        names = ({name: getattr(sender, name) for name in part} for part in _PARTS)
        yield from dict.fromkeys(_Part(whole._replace(**row)) for row in names)
    if file:
        yield _Part(OTHERS, file)


def _understood(
    parts: Mapping[_Part, object],
    files: Mapping[int, str],
    counts: Counts,
    understood: Mapping[LineSender, int],
) -> Counter[_Part]:
    """The lines of each part that were understood. Those of senders that were not counted each by
    itself may be of any.
    """
    others = understood.get(OTHERS, 0)
    found = Counter({part: others for part in parts if not part.file})
    for sender, lines in understood.items():
        for part in _parts(sender, ""):
            if part in parts:
                found[part] += lines
    for number, file in files.items():
        refused = sum(each.lines for each in counts.refused_by.get(number, {}).values())
        found[_Part(OTHERS, file)] += counts.lines[number] - refused
    return found


def _widest(
    parts: Mapping[_Part, Sequence[_Refused]], understood: Counter[_Part], named: set[int]
) -> Iterator[_Part]:
    """The parts of which most was refused, each time that with the most lines that none before has.

    ``named``: the ids of what they have; it grows. Of refused lists alone nothing is said here:
    their polls show for how long there was no other (``verdict.refused_lists``).
    """

    def left_of(part: _Part) -> tuple[int, bool]:
        left = [refused.of_sender for refused in parts[part] if id(refused) not in named]
        return -sum(each.lines for each in left), any(each.lines > each.polls for each in left)

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
