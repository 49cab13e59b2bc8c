"""A picture in text of who takes what: clients by queues, and a last row with what is wrong.

A large one has the brokers in which something is wrong or changes, and counts the others.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple, TypeAlias

import rebalance_core as core
from rebalance_core import Evaluation, MessageQueue
from rebalance_core.division import shown_id
from rebalance_core.english import agreeing, count, list_of
from rebalance_core.grouping import grouped
from rebalance_core.texts import Text

from ..texts.shown import cut, display_width, padded, visible
from .text_templates import Reader

_MOST_CLIENTS = 40
_MOST_DRAWN = 120
#: The most lines of a picture, but for the first brokers, which have as many as they need.
_MOST_LINES = 24

#: A line of a picture: its label, and by queue what is below the queue's number.
_PictureLine = tuple[str, Mapping[MessageQueue, str]]
#: A client id, the number of its processes that are alike, and whether they subscribe.
_PictureRow: TypeAlias = tuple[str, int, bool]


class TextPicture(NamedTuple):
    """A picture: its lines, none where nobody takes anything; how much it does not show."""

    lines: list[str]
    left_out: Text | None = None


def draw(
    reader: Reader,
    evaluation: Evaluation,
    *,
    concerned: Collection[str] = (),
    is_full: bool = False,
) -> TextPicture:
    """Clients by queues, and a last row that marks what is wrong; ``legend.txt`` says how.

    It has the brokers in which something is wrong, and those that are ``concerned``; where nothing
    is, the first ones. ``is_full``: it has every broker, queue and client. No line is wider than
    the reader has columns, but for a queue alone.
    """
    marks = _marks(evaluation)
    queues = core.sort_message_queues(evaluation.seen_queues)
    if not queues:
        return TextPicture([])
    rows = _rows(evaluation)
    if is_full or (len(queues) <= _MOST_DRAWN and len(rows) <= _MOST_CLIENTS):
        whole = [line for _, lines in _drawn(reader, queues, rows, marks) for line in lines]
        if is_full or len(whole) <= _MOST_LINES:
            return TextPicture(whole)
    wrong = {queue.broker_name for queue in marks}
    wanted = wrong.union(concerned)
    shown = [queue for queue in queues if queue.broker_name in wanted] or queues
    # The worst come first, for they are what is left of many.
    shown.sort(key=lambda queue: queue.broker_name not in wrong)
    if len(queues) > _MOST_DRAWN:
        shown = ([queue for queue in shown if queue in marks] or shown)[:_MOST_DRAWN]
    # Those with a queue that is shown, and those without any.
    there = set(shown)
    clients = [row for row, shares in rows.items() if not shares or there & shares.keys()]
    number = len(clients)
    if number > _MOST_CLIENTS:
        named = {c.client_id for f in evaluation.findings for c in f.claimants}
        clients = ([row for row in clients if row[0] in named] or clients)[:_MOST_CLIENTS]
    drawn: list[str] = []
    seen: set[MessageQueue] = set()
    for block, lines in _drawn(reader, shown, {row: rows[row] for row in clients}, marks):
        if drawn and len(drawn) + len(lines) > _MOST_LINES:
            break
        drawn += lines
        seen.update(chain.from_iterable(block))
    return TextPicture(drawn, _left_out(queues, seen, wanted, number - len(clients)))


#: Some queues of each of some brokers, which are drawn side by side.
_Block: TypeAlias = list[list[MessageQueue]]


def _drawn(
    reader: Reader,
    queues: Sequence[MessageQueue],
    rows: Mapping[_PictureRow, Mapping[MessageQueue, float]],
    marks: Mapping[MessageQueue, str],
) -> list[tuple[_Block, list[str]]]:
    """The picture of these queues and clients, block by block."""
    # Before a label is cut: what is left of a secret then would not be recognised.
    labels = [reader.shown(id_of(*row[:2])) for row in rows]
    wrong = reader.language("wrong")
    width = min(max(map(display_width, [*labels, wrong])), reader.width // 2)
    blocks = list(_blocks(queues, reader.width - width - 4))
    drawn = []
    for number, block in enumerate(blocks):
        there = [queue for part in block for queue in part]
        lines: list[_PictureLine] = [("", {queue: str(queue.queue_id) for queue in there})]
        for label, (row, shares) in zip(labels, rows.items(), strict=True):
            # Of several blocks each has those with a queue in it, the first those without any.
            if len(blocks) == 1 or not shares.keys().isdisjoint(there) or not (number or shares):
                mark = str(row[1]) if row[1] > 1 else "#"
                cells = {queue: _cell(shares.get(queue, 0.0), mark) for queue in there}
                lines.append((label, cells))
        lines.append((wrong, {queue: marks.get(queue, "") for queue in there}))
        drawn.append((block, list(_block(block, lines, width))))
    return drawn


def _left_out(
    queues: Collection[MessageQueue],
    seen: Collection[MessageQueue],
    wanted: Collection[str],
    clients: int,
) -> Text | None:
    """The number of brokers, of queues of the brokers shown, and of clients that are left out."""
    names = {queue.broker_name for queue in seen}
    brokers = {queue.broker_name for queue in queues} - names
    alike = len(brokers.difference(wanted)) if wanted else 0
    more = sum(queue.broker_name in names for queue in queues) - len(seen)
    others = len(brokers) - alike
    well = "{number:,} [broker|brokers] in which nothing is wrong or changes"
    parts = {
        count(others, "more broker"): others,
        agreeing(alike, well, number=alike): alike,
        count(more, "more queue"): more,
        count(clients, "more client"): clients,
    }
    shown = [words for words, number in parts.items() if number]
    template = "({parts} [is|are] not shown: --full shows all)"
    return agreeing(sum(parts.values()), template, parts=list_of(shown)) if shown else None


def id_of(client_id: str, processes: int) -> str:
    """The id as a person reads it, and how many processes have it, where there are several."""
    shown = shown_id(client_id)
    return Text("{client_id} (x{n})", client_id=shown, n=processes) if processes > 1 else shown


def _rows(evaluation: Evaluation) -> dict[_PictureRow, dict[MessageQueue, float]]:
    """The share of the views under which each queue is taken, by client id and processes."""
    rows: dict[_PictureRow, dict[MessageQueue, float]] = {}
    for allocation in evaluation.allocations:
        row = rows.setdefault(
            (allocation.client_id, allocation.processes, allocation.subscribed), defaultdict(float)
        )
        for queue in set(allocation.queues):
            row[queue] += allocation.view_weight
    return rows


def _marks(evaluation: Evaluation) -> dict[MessageQueue, str]:
    """The letters that mark what is wrong with each queue."""
    marks: dict[MessageQueue, str] = defaultdict(str)
    for finding in evaluation.findings:
        letter = finding.kind[0]
        marks[finding.queue] += letter if finding.certainty == "CERTAIN" else letter.lower()
    return marks


def _blocks(queues: Sequence[MessageQueue], width: int) -> Iterator[list[list[MessageQueue]]]:
    """The queues broker by broker, as many as go side by side."""
    by_broker = grouped((queue.broker_name, queue) for queue in queues)
    most = max(1, width // _cell_width(queues) - 1)
    parts = [of[n : n + most] for of in by_broker.values() for n in range(0, len(of), most)]
    block: list[list[MessageQueue]] = []
    for part in parts:
        if block and sum(map(_part_width, [*block, part])) > width:
            yield block
            block = []
        block.append(part)
    if block:
        yield block


def _cell_width(queues: Sequence[MessageQueue]) -> int:
    return max(3, 1 + len(str(max(queue.queue_id for queue in queues))))


def _part_width(part: Sequence[MessageQueue]) -> int:
    name_width = min(display_width(visible(part[0].broker_name)), 24)
    return max(_cell_width(part) * len(part), name_width) + 2


def _block(
    parts: Sequence[Sequence[MessageQueue]], lines: Sequence[_PictureLine], width: int
) -> Iterator[str]:
    """The lines of some queues below the names of their brokers; none that says nothing of them."""
    widths = [_part_width(part) - 2 for part in parts]

    def line(label: str, texts: Iterable[str]) -> str:
        cells = "  ".join(map(padded, texts, widths))
        return f"  {padded(cut(label, width), width)}  {cells}".rstrip()

    names = (visible(part[0].broker_name) for part in parts)
    yield line("", map(cut, names, widths))
    for label, marks in lines:
        if any(marks[queue] for part in parts for queue in part):
            cells = (
                "".join(f"{marks[queue]:>{_cell_width(part)}}" for queue in part) for part in parts
            )
            yield line(label, cells)


def _cell(share: float, full: str) -> str:
    return "." if share <= 0 else full if share > 1 - 1e-9 else "~"
