"""A moment in words and as a small picture: what was judged of it, who takes what, and why.

``templates/explain.txt`` has how it is laid out; here is what it says.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

import rebalance_core as core
from rebalance_core import Evaluation, MessageQueue, Situation, TopicRoute
from rebalance_core.descriptions import queue_ranges
from rebalance_core.english import agreeing, count, joined, list_of, with_commas, within
from rebalance_core.findings import AUDITED, DUPLICATE, ORPHANED, TOO_MANY_QUEUES
from rebalance_core.grouping import grouped
from rebalance_core.moves import shown_id
from rebalance_core.processes import Process, find_processes
from rebalance_core.texts import Text
from rebalance_core.views import possible_views, readable_by_some

from ..declared.kinds import QUEUE_FINDINGS
from ..judge.core_verdict import QueueKey
from ..judge.moment import Moment
from ..languages.language import Language
from ..texts.shown import cut, day_and_time, display_width, padded, visible
from ..texts.waiting import NOTHING, WaitingMessages
from .judged import Judged
from .problems import Problem
from .text_templates import Reader, clock
from .words import begin, in_words

_MOST_CLIENTS = 40
_MOST_DRAWN = 120
#: The most lines of a picture, but for the first brokers, which have as many as they need.
_MOST_LINES = 24
_MOST_BROKERS = 40
#: The most queues with a backlog that are named.
_MOST_BACKLOGS = 8


def explain_lines(
    situation: Situation,
    moment: Moment,
    judged: Judged,
    language: Language,
    width: int,
    *,
    is_full: bool = False,
) -> Iterator[str]:
    """The explanation of a topic: what was judged of the moment, and why; and then what the core
    computes of lists and routes alone. ``is_full``: the pictures have every broker, queue and
    client.
    """
    reader = Reader(moment.masking, language, width)
    evaluation = core.evaluate(situation.state, situation.rules)
    waits = sorted((moment.backlog or {}).items(), key=lambda each: (-each[1], each[0]))
    waiting = _waiting(moment, evaluation).text
    sentences = [_standing(judged, evaluation)]
    if waiting:
        sentences.append(Text("{sentence}.", sentence=begin(waiting)))
    wrong = {broker_name for _, broker_name, _ in judged.wrong}
    return reader.lines(
        "explain.txt",
        moment=moment,
        faults=judged.faults,
        cause=judged.cause,
        evaluation=evaluation,
        standing=joined(sentences, "{before} {next}"),
        at_other_times=at_other_times(judged.others),
        readers=joined(_readers(moment, evaluation)),
        size_and_wrong=size_and_wrong,
        refuted=queue_ranges(_refuted(evaluation, judged)),
        wrong_in_words=wrong_in_words,
        draw=partial(draw, reader, concerned=wrong, is_full=is_full),
        is_full=is_full,
        most_clients=_MOST_CLIENTS,
        most_brokers=_MOST_BROKERS,
        views=None if evaluation.coverage == TOO_MANY_QUEUES else possible_views(situation.state),
        route_line=_route,
        traits=_traits(situation),
        since=list(_since(judged)),
        kind_in_words=lambda table: in_words(QUEUE_FINDINGS[table]),
        ranges=partial(_ranges, moment),
        most_waiting=[each for each in waits if each[1]][:_MOST_BACKLOGS],
        cured=_cured(situation, evaluation, judged),
    )


def _standing(judged: Judged, evaluation: Evaluation) -> Text:
    """The sentence of what was judged: whether it is over, how bad it is, what it is, how sure."""
    problem = judged.worst
    if problem is None and evaluation.coverage != AUDITED:
        return Text("Nothing was found, and who owns which queue is not known at this moment.")
    if problem is None:
        return Text("Nothing is wrong at this moment.")
    if problem.standing == "HARMLESS":
        return Text("Nothing is wrong today, but members differ: {what}.", what=problem.what)
    text = Text(
        "{now}, {severity} from {first} on: {what}; {certainty}.",
        now=begin(problem.now),
        severity=problem.severity,
        first=day_and_time(problem.began),
        what=within(problem.what),
        certainty=in_words(problem.certainty),
    )
    if problem.standing != "KNOWN":
        return text
    reasons = joined(problem.known_issues)
    return Text("Known issue ({reasons}): {text}", reasons=reasons, text=text)


def at_other_times(others: Problem | None) -> Text | None:
    """The judgement of the topic at other times alone, in a sentence."""
    if others is None:
        return None
    return Text(
        "At other times, from {first} to {last}, {severity}: {what} (--at {last}).",
        severity=others.severity,
        first=clock(others.first_seen),
        last=clock(others.last_seen),
        what=within(others.what),
    )


def _waiting(moment: Moment, evaluation: Evaluation) -> WaitingMessages:
    """The messages that wait then, and the queues whose offsets do not show all of them."""
    if moment.backlog is None or evaluation.coverage == TOO_MANY_QUEUES:
        return NOTHING
    known = moment.backlog.keys() - moment.backlog_old
    missing = len(readable_by_some(moment.state) - known)
    messages = sum(moment.backlog.values())
    return WaitingMessages(messages, queues=evaluation.queues, without_offsets=missing)


def _readers(moment: Moment, evaluation: Evaluation) -> list[Text]:
    """The readers by each kind of witness: lists and routes, what processes hold, offsets."""
    lists = Text("not known by lists")
    if evaluation.coverage == AUDITED:
        owned = evaluation.queues - len({each.queue for each in evaluation.findings})
        lists = Text("{owned:,} have one by lists", owned=owned)
    held = Text("no process said")
    if moment.held:
        processes = count(len(moment.held), "process", "processes")
        number = len({queue for each in moment.held for queue in each.queues})
        held = Text("{processes} said to hold {number:,}", processes=processes, number=number)
    offsets = Text("there are no offsets")
    if (read := moment.read) is not None:
        template = "{advancing:,} advance by offsets, {caught_up:,} caught up"
        offsets = Text(template, advancing=read.advancing, caught_up=read.caught_up)
    return [lists, held, offsets]


def _refuted(evaluation: Evaluation, judged: Judged) -> list[MessageQueue]:
    """The queues that lists and routes alone give to several or to nobody, where the rules know
    better.
    """
    return [
        each.queue
        for each in evaluation.findings
        if (each.kind, each.queue.broker_name, each.queue.queue_id) not in judged.wrong
    ]


def _cured(
    situation: Situation, evaluation: Evaluation, judged: Judged
) -> tuple[tuple[str, ...], Evaluation] | None:
    """The cure of the first finding that was judged too: of a group with several faults one after
    the other.
    """
    refuted = set(_refuted(evaluation, judged))
    found = next((each for each in evaluation.findings if each.queue not in refuted), None)
    if found is None:
        return None
    causes = core.find_causes(situation, evaluation)
    cures = causes.cures.get((found.kind, found.queue), ())
    cure = next(iter(cures), None)
    return (cure, causes.after[cure]) if cure is not None and cure in causes.after else None


# ------------------------------------------------------------------ in a few words


def size_and_wrong(evaluation: Evaluation) -> Text:
    """The number of queues and processes, and of queues that several take or nobody takes."""
    counts = {
        "queues": count(evaluation.queues, "queue"),
        "processes": count(evaluation.processes, "process", "processes"),
    }
    size = Text("{queues}, {processes}", **counts)
    number = len({allocation.client_id for allocation in evaluation.allocations})
    if number not in (0, evaluation.processes):
        ids = count(number, "client id")
        size = Text("{queues}, {processes} behind {client_ids}", **counts, client_ids=ids)
    return Text("{size}; {wrong}", size=size, wrong=wrong_in_words(evaluation))


def wrong_in_words(evaluation: Evaluation) -> Text:
    """The number of queues that several take or nobody takes."""
    if evaluation.coverage != AUDITED:
        return Text("not audited")
    kinds = Counter(finding.kind for finding in evaluation.findings)
    if not kinds:
        return Text("every queue has one owner")
    return Text(
        "{duplicate:,} duplicate, {orphaned:,} orphaned",
        duplicate=kinds[DUPLICATE],
        orphaned=kinds[ORPHANED],
    )


# ------------------------------------------------------------------ the picture


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
    clients = list(rows)
    if len(clients) > _MOST_CLIENTS:
        named = {c.client_id for f in evaluation.findings for c in f.claimants}
        clients = ([row for row in clients if row[0] in named] or clients)[:_MOST_CLIENTS]
    drawn: list[str] = []
    seen: set[MessageQueue] = set()
    for block, lines in _drawn(reader, shown, {row: rows[row] for row in clients}, marks):
        if drawn and len(drawn) + len(lines) > _MOST_LINES:
            break
        drawn += lines
        seen.update(chain.from_iterable(block))
    return TextPicture(drawn, _left_out(queues, seen, wanted, len(rows) - len(clients)))


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
    labels = [reader.shown(_id_of(*row[:2])) for row in rows]
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
    numbers = (
        (len(brokers) - alike, count(len(brokers) - alike, "more broker")),
        (
            alike,
            agreeing(
                alike,
                "{number:,} [broker|brokers] in which nothing is wrong or changes",
                number=alike,
            ),
        ),
        (more, count(more, "more queue")),
        (clients, count(clients, "more client")),
    )
    parts = [words for number, words in numbers if number]
    template = "({parts} [is|are] not shown: --full shows all)"
    total = sum(number for number, _ in numbers)
    return agreeing(total, template, parts=list_of(parts)) if parts else None


def _id_of(client_id: str, processes: int) -> str:
    """The id as a person reads it, and how many processes have it, where there are several."""
    shown = shown_id(client_id)
    return Text("{client_id} (x{n})", client_id=shown, n=processes) if processes > 1 else shown


def _rows(evaluation: Evaluation) -> dict[_PictureRow, dict[MessageQueue, float]]:
    """The share of the views under which each queue is taken, by client id and processes."""
    rows: dict[_PictureRow, dict[MessageQueue, float]] = {}
    for each in evaluation.allocations:
        row = rows.setdefault((each.client_id, each.processes, each.subscribed), defaultdict(float))
        for queue in set(each.queues):
            row[queue] += each.view_weight
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
    for label, of_queues in lines:
        if any(of_queues[queue] for part in parts for queue in part):
            cells = (
                "".join(f"{of_queues[queue]:>{_cell_width(part)}}" for queue in part)
                for part in parts
            )
            yield line(label, cells)


def _cell(share: float, full: str) -> str:
    return "." if share <= 0 else full if share > 1 - 1e-9 else "~"


# ------------------------------------------------------------------ why


def _route(route: TopicRoute) -> Text:
    """The line of a nameserver's route: the queues that consumers see."""
    in_order = sorted(route.brokers, key=lambda each: each.broker_name)
    brokers = [
        Text(
            "{broker} {queues}" if broker.is_readable else "{broker} {queues} (not readable)",
            broker=broker.broker_name,
            queues=broker.read_queue_nums,
        )
        for broker in in_order[:_MOST_BROKERS]
    ]
    if more := in_order[_MOST_BROKERS:]:
        template = "and {number} more [broker|brokers]"
        brokers.append(agreeing(len(more), template, number=len(more)))
    return Text(
        "route of {nameserver}: queues to read: {brokers}",
        nameserver=route.namesrv_addr,
        brokers=with_commas(brokers) or Text("no broker"),
    )


def _traits(situation: Situation) -> dict[Text, list[str]]:
    """Traits of processes in words, with the ids of those that have them."""
    processes = find_processes(situation.state, situation.rules)
    return grouped((_trait(each), _id_of(each.client_id, each.count)) for each in processes)


#: Evidence of a strategy.
_SOURCES = {
    "observed": Text("observed"),
    "configured": Text("configured"),
    "group": Text("as others of the group"),
    "assumed": Text("assumed"),
}


def _trait(process: Process) -> Text:
    if process.chooses_queues:
        return Text("takes a slot and no queue: chooses its queues itself, by assign()")
    if not process.subscribed:
        return Text("takes a slot and no queue: does not subscribe to the topic")
    if process.silent:
        return Text("takes a slot and no queue: its last heartbeat is too old")
    if process.broadcasting:
        return Text("reads every queue and takes a slot: broadcasts")
    strategy, source = process.strategy.strategy, _SOURCES[process.strategy.source]
    if strategy is None:
        reason = process.strategy.unknown
        return Text("strategy not computed, {reason} ({source})", reason=reason, source=source)
    text = Text("strategy {name} ({source})", name=strategy.full_name, source=source)
    if process.share < 1:
        template = "{strategy}, if it subscribes at all, which is {share:.0%} probable"
        return Text(template, strategy=text, share=process.share)
    return text


# ------------------------------------------------------------------ since when

#: Columns in which queues that share a line are equal.
_EQUAL_IN_A_LINE = ("first_seen", "last_seen", "persistence", "severity")


def _since(judged: Judged) -> Iterator[tuple[str, Mapping[str, Any], list[QueueKey]]]:
    """The findings of queues that share a line: their table, what they share, and the queues."""
    for table, rows in judged.queues.items():
        alike = grouped((tuple(row[name] for name in _EQUAL_IN_A_LINE), row) for row in rows)
        for of_line in alike.values():
            yield table, of_line[0], [(row["broker_name"], row["queue_id"]) for row in of_line]


def _ranges(moment: Moment, queues: Iterable[QueueKey]) -> str:
    return queue_ranges(MessageQueue(moment.state.topic, *queue) for queue in sorted(queues))
