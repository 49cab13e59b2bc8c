"""A situation in words and as a small picture: who takes what, why, what is wrong.

For terminals and notebooks: plain text, no colour needed. Lines are made of ids and names that
strangers chose, so each is shown by ``visible`` as it leaves here, in the language of the reader.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from jobs.instants import Instant, to_datetime
from jobs.judge.evaluated import QueueKey
from jobs.judge.moment import Moment
from jobs.kinds import OF_ONE_CLIENT
from jobs.languages.language import ENGLISH, Language
from jobs.masking import Masking
from jobs.text import cut, display_width, folded, iso, of_the_time, padded, visible
from rebalance_core import (
    Evaluation,
    Fault,
    MessageQueue,
    Situation,
    TopicRoute,
    apply_change,
    evaluate,
    find_causes,
    find_faults,
    leave,
    sort_message_queues,
)
from rebalance_core.descriptions import queue_ranges
from rebalance_core.english import agreeing, count, joined, list_of, named_broker, names
from rebalance_core.findings import AUDITED, CERTAIN, DUPLICATE, ORPHANED, TOO_MANY_QUEUES
from rebalance_core.moves import find_moves, shown_id
from rebalance_core.processes import Process, find_processes
from rebalance_core.texts import Text
from rebalance_core.views import View, possible_views

#: Wide enough for a terminal, narrow enough for a ticket.
WIDTH = 100
_MOST_CLIENTS = 40
_MOST_QUEUES = 120
_MOST_BROKERS = 40
#: What a client that leaves would do is shown for so few clients at most.
_MOST_LEAVING = 12
#: So many queues with a backlog are named.
_MOST_BACKLOGS = 8


def explain_lines(
    situation: Situation, moment: Moment, language: Language = ENGLISH, width: int = WIDTH
) -> Iterator[str]:
    """Who takes what of a topic, why, what is wrong, what causes and repairs it, and what if."""
    return in_lines(_explained(situation, moment, language, width), moment.masking, language, width)


def in_lines(
    lines: Iterable[str], masking: Masking, language: Language, width: int
) -> Iterator[str]:
    """The lines in a language, with what strangers chose made visible, and long ones folded.

    Secrets are masked first: where an id ends is seen by English marks and blanks, not by Chinese.
    """
    for line in map(masking.mask_all, lines):
        yield from folded(visible(language.of(line)), width)


def indented(line: str) -> Text:
    """The line further to the right.

    >>> indented(Text("repair: {remedy}", remedy="restart it"))
    '  repair: restart it'
    """
    return Text("  {line}", line=line)


def _explained(
    situation: Situation, moment: Moment, language: Language, width: int
) -> Iterator[str]:
    evaluation = evaluate(situation.state, situation.rules)
    causes = find_causes(situation, evaluation)
    faults = find_faults(situation, evaluation, causes)
    yield from heading(situation, moment)
    yield size_and_wrong(evaluation)
    if evaluation.reason:
        yield Text("{code}: {text}", code=evaluation.coverage, text=evaluation.reason)
    yield from picture(Text("Who takes what"), evaluation, moment.masking, language, width)
    yield LEGEND
    if evaluation.coverage != TOO_MANY_QUEUES:
        yield from _why(situation)
    if evaluation.findings:
        yield from _findings(evaluation)
    for fault in faults:
        yield from fault_lines(fault)
    yield from _since(moment)
    yield from _held(moment)
    yield from _backlog(moment)
    if evaluation.findings and causes.after:
        # The cure of the first finding: of a group with several faults one after the other.
        cure = causes.cures[evaluation.findings[0].kind, evaluation.findings[0].queue][0]
        if cure in causes.after:
            after = causes.after[cure]
            title = agreeing(
                len(cure),
                "When {faults} [is|are] mended ({wrong})",
                faults=list_of(cure),
                wrong=wrong_of(after),
            )
            yield from picture(title, after, moment.masking, language, width)
    yield from _leaving(situation, evaluation, moment.masking)


# ------------------------------------------------------------------ parts of both


def heading(situation: Situation, moment: Moment) -> Iterator[str]:
    """The group, the topic and the time."""
    state = situation.state
    yield Text(
        "{group} on {topic}, cluster {cluster}",
        group=state.consumer_group,
        topic=state.topic,
        cluster=moment.cluster,
    )
    time = as_of(moment)
    if moment.first_seen != moment.last_seen:
        first, last = clock(moment.first_seen), clock(moment.last_seen)
        time = Text("{as_of} (the same from {first} to {last})", as_of=time, first=first, last=last)
    yield time


def as_of(moment: Moment) -> Text:
    """Of which time it is."""
    return Text("as of {time}", time=clock(moment.snapshot_time))


def clock(time: Instant) -> str:
    """The time as ISO 8601."""
    return iso(to_datetime(time))


def size_and_wrong(evaluation: Evaluation) -> Text:
    """How many queues and processes there are, and how many queues are taken by several or none."""
    return Text("{size}; {wrong}", size=size_of(evaluation), wrong=wrong_of(evaluation))


def size_of(evaluation: Evaluation) -> Text:
    """How many queues, processes and client ids there are."""
    queues = count(evaluation.queues, "queue")
    processes = count(evaluation.processes, "process", "processes")
    ids = len({allocation.client_id for allocation in evaluation.allocations})
    if ids in (0, evaluation.processes):
        return Text("{queues}, {processes}", queues=queues, processes=processes)
    return Text(
        "{queues}, {processes} behind {client_ids}",
        queues=queues,
        processes=processes,
        client_ids=count(ids, "client id"),
    )


def wrong_of(evaluation: Evaluation) -> Text:
    """How many queues are taken by several or by nobody."""
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


def picture(
    title: str, evaluation: Evaluation, masking: Masking, language: Language, most: int
) -> Iterator[str]:
    """Clients by queues, and a last row that marks what is wrong; ``LEGEND`` says how.

    No line is wider than ``most``, but for a queue alone.
    """
    marks = queue_marks(evaluation)
    queues = sort_message_queues({*marks, *taken_queues(evaluation)})
    yield ""
    if not queues:
        yield Text("{title}: nothing is taken", title=title)
        return
    shown = queues
    if len(queues) > _MOST_QUEUES:
        shown = ([queue for queue in queues if queue in marks] or queues)[:_MOST_QUEUES]
    rows = _rows(evaluation)
    clients = list(rows)
    if len(clients) > _MOST_CLIENTS:
        wanted = {c.client_id for f in evaluation.findings for c in f.claimants}
        of_wanted = [row for row in clients if row[0] in wanted]
        clients = (of_wanted or clients)[:_MOST_CLIENTS]
    yield title
    # Before a label is cut: what is left of a secret then would not be recognised.
    labels = [masking.mask(visible(language.of(_id_of(*row[:2])))) for row in clients]
    lines = [
        _Line(label, str(row[1]) if row[1] > 1 else "#", rows[row])
        for label, row in zip(labels, clients, strict=True)
    ]
    wrong = language("wrong")
    widest = max(display_width(label) for label in (wrong, *labels))
    width = min(widest, most // 2)
    for block in _blocks(shown, most - width - 4):
        yield from _block(block, lines, marks, wrong, width)
    yield from _left_out(len(queues) - len(shown), len(rows) - len(clients))


def _left_out(queues: int, clients: int) -> Iterator[str]:
    """How much a picture does not show."""
    parts = []
    if queues:
        parts.append(count(queues, "more queue"))
    if clients:
        parts.append(count(clients, "more client"))
    if parts:
        yield indented(
            agreeing(queues + clients, "({parts} [is|are] not shown)", parts=list_of(parts))
        )


class _Line(NamedTuple):
    """A client's line: its label, the mark of what it takes for certain, its shares by queue."""

    label: str
    mark: str
    shares: dict[MessageQueue, float]


LEGEND = Text(
    "(# takes it, 2: two processes do, ~ at times, . does not; "
    "D duplicate, O orphaned, d and o at times)"
)
_RowKey = tuple[str, int, bool]


def _id_of(client_id: str, processes: int) -> str:
    """The id as a person reads it, and how many processes have it, where there are several."""
    shown = shown_id(client_id)
    return Text("{client_id} (x{n})", client_id=shown, n=processes) if processes > 1 else shown


def _rows(evaluation: Evaluation) -> dict[_RowKey, dict[MessageQueue, float]]:
    """By client id and processes the share of the views under which each queue is taken."""
    rows: dict[_RowKey, dict[MessageQueue, float]] = {}
    for allocation in evaluation.allocations:
        row = rows.setdefault(
            (allocation.client_id, allocation.processes, allocation.subscribed), {}
        )
        for queue in set(allocation.queues):
            row[queue] = row.get(queue, 0.0) + allocation.view_weight
    return rows


def taken_queues(evaluation: Evaluation) -> set[MessageQueue]:
    """The queues that somebody takes, under some view at least."""
    return {queue for allocation in evaluation.allocations for queue in allocation.queues}


def queue_marks(evaluation: Evaluation) -> dict[MessageQueue, str]:
    """By queue the letters that mark what is wrong with it."""
    marks: dict[MessageQueue, str] = {}
    for finding in evaluation.findings:
        letter = finding.kind[0]
        shown = letter if finding.certainty == "CERTAIN" else letter.lower()
        marks[finding.queue] = marks.get(finding.queue, "") + shown
    return marks


def _blocks(queues: Sequence[MessageQueue], width: int) -> Iterator[list[list[MessageQueue]]]:
    """The queues broker by broker, as many as go side by side."""
    by_broker: dict[str, list[MessageQueue]] = defaultdict(list)
    for queue in queues:
        by_broker[queue.broker_name].append(queue)
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
    parts: Sequence[Sequence[MessageQueue]],
    lines: Sequence[_Line],
    marks: dict[MessageQueue, str],
    wrong: str,
    width: int,
) -> Iterator[str]:
    def line(label: str, of_parts: Iterable[str]) -> str:
        return f"  {padded(label, width)}  {'  '.join(of_parts)}".rstrip()

    def cells(texts: Iterable[str], part: Sequence[MessageQueue]) -> str:
        row = "".join(f"{text:>{_cell_width(part)}}" for text in texts)
        return padded(row, _part_width(part) - 2)

    def name(part: Sequence[MessageQueue]) -> str:
        most = _part_width(part) - 2
        return padded(cut(visible(part[0].broker_name), most), most)

    yield line("", map(name, parts))
    yield line("", (cells((str(queue.queue_id) for queue in part), part) for part in parts))
    for label, mark, shares in lines:
        of_label = (cells((_cell(shares.get(q, 0.0), mark) for q in p), p) for p in parts)
        yield line(cut(label, width), of_label)
    if any(queue in marks for part in parts for queue in part):
        yield line(wrong, (cells((marks.get(q, "") for q in p), p) for p in parts))


def _cell(share: float, full: str) -> str:
    if share <= 0:
        return "."
    return full if share > 1 - 1e-9 else "~"


# ------------------------------------------------------------------ why


def _why(situation: Situation) -> Iterator[str]:
    state = situation.state
    views = possible_views(state)
    yield ""
    yield Text("Why: each client allocates for itself, from these lists")
    for view in views.views[:_MOST_CLIENTS]:
        yield indented(_view(view, agree=views.agree))
        ids = Counter(view.client_ids)
        for number, (client_id, copies) in enumerate(ids.items()):
            if number == _MOST_CLIENTS:
                yield indented(indented(and_more(len(ids) - number)))
                break
            shown = shown_id(client_id)
            if copies > 1:
                shown = Text("{client_id}   {n} times: {n} slots", client_id=shown, n=copies)
            yield indented(indented(shown))
    if views.completeness < 1 and state.client_lists:
        yield indented(
            Text(
                "(the lists of {share:.0%} of the topic's brokers are known)",
                share=views.completeness,
            )
        )
    for broker in state.offline_brokers[:_MOST_BROKERS]:
        name = named_broker(*broker)
        yield indented(Text("{broker} knows no member of the group", broker=name))
    if len(state.offline_brokers) > _MOST_BROKERS:
        number = len(state.offline_brokers) - _MOST_BROKERS
        yield indented(Text("{number} more brokers know no member of it", number=number))
    for route in state.topic_routes:
        yield indented(_route(route))
    for text, ids_with in _traits(situation).items():
        yield indented(Text("{trait}: {client_ids}", trait=text, client_ids=names(ids_with, 8)))


def _view(view: View, *, agree: bool) -> Text:
    """A list that clients may get, and how often they get it."""
    whom = Text("asked of {brokers}", brokers=joined(view.brokers, "{before}, {next}"))
    if not agree:
        whom = Text("{asked} ({share:.0%} of the times)", asked=whom, share=view.weight)
    return Text(
        "{asked}: {queues}, {client_ids}",
        asked=whom,
        queues=count(len(view.queues), "queue"),
        client_ids=count(len(view.client_ids), "client id"),
    )


def and_more(number: int) -> Text:
    """How many lines are left out."""
    return Text("and {number:,} more", number=number)


def _route(route: TopicRoute) -> Text:
    """Which queues a nameserver gives to consumers."""
    in_order = sorted(route.brokers, key=lambda each: each.broker_name)
    brokers = [
        Text(
            "{broker} {queues}" if broker.is_readable else "{broker} {queues} (not readable)",
            broker=broker.broker_name,
            queues=broker.read_queue_nums,
        )
        for broker in in_order[:_MOST_BROKERS]
    ]
    if len(in_order) > _MOST_BROKERS:
        brokers.append(Text("and {number} more brokers", number=len(in_order) - _MOST_BROKERS))
    return Text(
        "route of {nameserver}: queues to read: {brokers}",
        nameserver=route.namesrv_addr,
        brokers=joined(brokers, "{before}, {next}") or Text("no broker"),
    )


def _traits(situation: Situation) -> dict[Text, list[str]]:
    """What processes do, in words, and the ids of those that do."""
    traits: dict[Text, list[str]] = defaultdict(list)
    for process in find_processes(situation.state, situation.rules):
        traits[_trait(process)].append(_id_of(process.client_id, process.count))
    return traits


#: What shows a strategy.
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
        return Text(
            "{strategy}, if it subscribes at all, which is {share:.0%} probable",
            strategy=text,
            share=process.share,
        )
    return text


# ------------------------------------------------------------------ what is wrong


def _findings(evaluation: Evaluation) -> Iterator[str]:
    yield ""
    yield Text("Findings")
    for kind, taken in (
        (DUPLICATE, Text("taken by several")),
        (ORPHANED, Text("taken by nobody")),
    ):
        found = [finding for finding in evaluation.findings if finding.kind == kind]
        if not found:
            continue
        worst = max(found, key=lambda each: each.probability)
        how = Text("for certain")
        if any(finding.certainty != CERTAIN for finding in found):
            how = Text("at times, at most {share:.0%} of them", share=worst.probability)
        queues = queue_ranges(finding.queue for finding in found)
        yield indented(Text("{taken}, {how}: {queues}", taken=taken, how=how, queues=queues))


def fault_lines(fault: Fault) -> Iterator[str]:
    """A fault, its repair, and what the repair does."""
    yield ""
    yield Text("{code}: {text}", code=fault.fault, text=fault.evidence)
    yield indented(Text("repair: {remedy}", remedy=fault.remedy))
    if fault.cleared or fault.moves:
        yield indented(
            Text(
                "with it, findings that go: {cleared:,}, that stay: {left:,}; queues that change "
                "hands: {moves:,}",
                cleared=fault.cleared,
                left=fault.left,
                moves=len(fault.moves),
            )
        )


def _leaving(situation: Situation, evaluation: Evaluation, masking: Masking) -> Iterator[str]:
    """What each client's leaving would do: the smallest of the what-ifs, and the commonest."""
    clients = sorted({a.client_id for a in evaluation.allocations if a.subscribed})
    if evaluation.coverage != AUDITED or not 1 < len(clients) <= _MOST_LEAVING:
        return
    yield ""
    yield Text("What if a process of it leaves (more: rebalance-audit what-if --help)")
    shown = {client_id: visible(masking.mask(client_id)) for client_id in clients}
    width = max(map(display_width, shown.values()))
    for client_id in clients:
        changed = apply_change(situation, leave(client_id))
        after = evaluate(changed.state, changed.rules)
        yield indented(
            Text(
                "{client_id}  queues that move: {moved:,}; {wrong}",
                client_id=padded(shown[client_id], width),
                moved=len(find_moves(evaluation, after)),
                wrong=wrong_of(after),
            )
        )


# ------------------------------------------------------------------ time, holdings, backlog

_KINDS = {"orphaned_queues": Text("orphaned"), "duplicate_queues": Text("duplicate")}
#: What queues have in common that share a line.
_ALIKE = ("first_seen", "last_seen", "share_of_time", "persistence", "severity")


def _since(moment: Moment) -> Iterator[str]:
    """Since when each finding and fault is there, and how much waits because of it."""
    lines: list[str] = []
    for table, kind in _KINDS.items():
        of_episode: dict[tuple[Any, ...], list[Mapping[str, Any]]] = defaultdict(list)
        for row in moment.episodes[table]:
            of_episode[tuple(row[name] for name in _ALIKE)].append(row)
        for _, rows in sorted(of_episode.items()):
            lines.append(_queues_since(moment, kind, rows))
    for row in moment.episodes["stalled_queues"]:
        lines.append(
            Text(
                "stalled {when} ({persistence}, {severity}): {queues}, computed for {owners}",
                when=_span(row["first_seen"], row["last_seen"]),
                persistence=row["persistence"],
                severity=row["severity"],
                queues=_queue_ranges(moment, [row]),
                owners=list_of(row["owners"]) or Text("nobody"),
            )
        )
    for row in moment.episodes["group_faults"]:
        fault = row["fault"]
        if fault in OF_ONE_CLIENT:
            client = shown_id(row["client_ids"][0])
            fault = Text("{fault} of {client}", fault=fault, client=client)
        lines.append(
            Text(
                "{what} {when} ({persistence})",
                what=fault,
                when=_when(row),
                persistence=row["persistence"],
            )
        )
    if lines:
        yield ""
        yield Text("Since when")
        yield from map(indented, lines)


def _queues_since(moment: Moment, kind: Text, rows: Sequence[Mapping[str, Any]]) -> Text:
    """The queues of one episode."""
    waiting = sum(row["backlog"] or 0 for row in rows)
    queues = _queue_ranges(moment, rows)
    if waiting:
        messages = count(waiting, "message")
        queues = Text("{queues}, {messages} not consumed", queues=queues, messages=messages)
    return Text(
        "{what} {when} ({persistence}, {severity}): {queues}",
        what=kind,
        when=_when(rows[0]),
        persistence=rows[0]["persistence"],
        severity=rows[0]["severity"],
        queues=queues,
    )


def _when(row: Mapping[str, Any]) -> Text:
    """From when to when, and for how much of it, where there are gaps."""
    when = _span(row["first_seen"], row["last_seen"])
    share = of_the_time(row["share_of_time"])
    return Text("{when}, {share}", when=when, share=share) if share else when


def _span(first: Instant, last: Instant) -> Text:
    if first == last:
        return Text("in the snapshot of {time}", time=clock(first))
    return Text("from {first} to {last}", first=clock(first), last=clock(last))


def _queue_ranges(moment: Moment, rows: Iterable[Mapping[str, Any]]) -> str:
    return _ranges(moment, ((row["broker_name"], row["queue_id"]) for row in rows))


def _ranges(moment: Moment, queues: Iterable[QueueKey]) -> str:
    return queue_ranges(MessageQueue(moment.state.topic, *queue) for queue in sorted(queues))


def _held(moment: Moment) -> Iterator[str]:
    """What each process holds by its last running info, and the queues that several hold."""
    if not moment.held:
        return
    yield ""
    yield Text("What the processes hold, as their last running infos say")
    for held in moment.held[:_MOST_CLIENTS]:
        yield indented(
            Text(
                "{client_id}: {queues} (at {time})",
                client_id=shown_id(held.client_id),
                queues=_ranges(moment, held.queues) if held.queues else Text("no queue"),
                time=clock(held.said_at),
            )
        )
    if len(moment.held) > _MOST_CLIENTS:
        yield indented(and_more(len(moment.held) - _MOST_CLIENTS))
    holders = Counter(queue for held in moment.held for queue in held.queues)
    several = [queue for queue, number in holders.items() if number > 1]
    if several:
        yield indented(Text("held by several: {queues}", queues=_ranges(moment, several)))


def _backlog(moment: Moment) -> Iterator[str]:
    """How many messages wait, and where most of them do."""
    if moment.backlog is None or moment.backlog_at is None:
        return
    yield ""
    in_all = count(sum(moment.backlog.values()), "message")
    time = clock(moment.backlog_at)
    yield Text("Not consumed at {time}: {messages}", time=time, messages=in_all)
    most = sorted(moment.backlog.items(), key=lambda each: (-each[1], each[0]))
    for (broker_name, queue_id), waiting in [each for each in most if each[1]][:_MOST_BACKLOGS]:
        queue = f"{broker_name} {queue_id}"
        messages = count(waiting, "message")
        yield indented(Text("{queue}: {messages}", queue=queue, messages=messages))
