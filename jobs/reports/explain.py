"""A situation in words and as a small picture: who takes what, why, what is wrong.

For terminals and notebooks: plain text, no colour needed. Lines are made of ids and names that
strangers chose, so each is shown by ``visible`` as it leaves here.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Any, NamedTuple

from jobs.instants import Instant, to_datetime
from jobs.judge.evaluated import QueueKey
from jobs.judge.moment import Moment
from jobs.kinds import OF_ONE_CLIENT
from jobs.masking import Masking
from jobs.text import iso, of_the_time, visible
from rebalance_core import (
    Evaluation,
    Fault,
    MessageQueue,
    Situation,
    apply_change,
    evaluate,
    find_causes,
    find_faults,
    leave,
    sort_message_queues,
)
from rebalance_core.english import count, list_of, named_broker, names, noun
from rebalance_core.faults import find_moves, queue_ranges, shown_id
from rebalance_core.findings import (
    AUDITED,
    CERTAIN,
    DUPLICATE,
    ORPHANED,
    TOO_MANY_QUEUES,
)
from rebalance_core.processes import find_processes
from rebalance_core.views import possible_views

#: Wide enough for a terminal, narrow enough for a ticket.
_WIDTH = 100
_MOST_CLIENTS = 40
_MOST_QUEUES = 120
_MOST_BROKERS = 40
#: For so few clients it is told what each one's leaving would do.
_MOST_LEAVING = 12
#: So many queues with a backlog are named.
_MOST_BACKLOGS = 8


def explain_lines(situation: Situation, moment: Moment) -> Iterator[str]:
    """Who takes what of a topic, why, what is wrong, what causes and repairs it, and what if."""
    return in_lines(_explained(situation, moment))


def in_lines(lines: Iterable[str]) -> Iterator[str]:
    """The lines with what strangers chose made visible, and long ones folded."""
    for line in map(visible, lines):
        indent = " " * (len(line) - len(line.lstrip(" ")) + 4)
        yield from wrap(
            line,
            _WIDTH,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        ) or [""]


def _explained(situation: Situation, moment: Moment) -> Iterator[str]:
    evaluation = evaluate(situation.state, situation.rules)
    causes = find_causes(situation, evaluation)
    faults = find_faults(situation, evaluation, causes)
    yield from heading(situation, moment)
    yield f"{size_of(evaluation)}; {wrong_of(evaluation)}"
    if evaluation.reason:
        yield f"{evaluation.coverage}: {evaluation.reason}"
    yield from picture("Who takes what", evaluation, moment.masking)
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
            are = noun(len(cure), "is", "are")
            title = f"When {list_of(cure)} {are} mended ({wrong_of(after)})"
            yield from picture(title, after, moment.masking)
    yield from _leaving(situation, evaluation, moment.masking)


# ------------------------------------------------------------------ parts of both


def heading(situation: Situation, moment: Moment) -> Iterator[str]:
    """The group, the topic and the time."""
    state = situation.state
    yield f"{state.consumer_group} on {state.topic}, cluster {moment.cluster}"
    so = ""
    if moment.first_seen != moment.last_seen:
        so = f" (the same from {clock(moment.first_seen)} to {clock(moment.last_seen)})"
    yield f"as of {clock(moment.snapshot_time)}{so}"


def clock(time: Instant) -> str:
    """The time as ISO 8601."""
    return iso(to_datetime(time))


def size_of(evaluation: Evaluation) -> str:
    """How many queues, processes and client ids there are."""
    ids = len({allocation.client_id for allocation in evaluation.allocations})
    behind = "" if ids in (0, evaluation.processes) else f" behind {count(ids, 'client id')}"
    processes = count(evaluation.processes, "process", "processes")
    return f"{count(evaluation.queues, 'queue')}, {processes}{behind}"


def wrong_of(evaluation: Evaluation) -> str:
    """How many queues are taken by several or by nobody."""
    if evaluation.coverage != AUDITED:
        return "not audited"
    kinds = Counter(finding.kind for finding in evaluation.findings)
    if not kinds:
        return "every queue has one owner"
    return f"{kinds[DUPLICATE]:,} duplicate, {kinds[ORPHANED]:,} orphaned"


# ------------------------------------------------------------------ the picture


def picture(title: str, evaluation: Evaluation, masking: Masking) -> Iterator[str]:
    """Clients by queues, and a last row that marks what is wrong; ``LEGEND`` says how."""
    marks = queue_marks(evaluation)
    queues = sort_message_queues({*marks, *taken_queues(evaluation)})
    yield ""
    if not queues:
        yield f"{title}: nothing is taken"
        return
    shown = queues
    if len(queues) > _MOST_QUEUES:
        shown = ([queue for queue in queues if queue in marks] or queues)[:_MOST_QUEUES]
    rows = _rows(evaluation)
    clients = list(rows)
    if len(clients) > _MOST_CLIENTS:
        wanted = {shown_id(c.client_id) for f in evaluation.findings for c in f.claimants}
        of_wanted = [row for row in clients if row[0] in wanted]
        clients = (of_wanted or clients)[:_MOST_CLIENTS]
    yield title
    # Before a label is cut: what is left of a secret then would not be recognised.
    labels = [masking.mask(_label(row)) for row in clients]
    lines = [
        _Line(label, str(row[1]) if row[1] > 1 else "#", rows[row])
        for label, row in zip(labels, clients, strict=True)
    ]
    width = min(max([len(_WRONG), *(len(line.label) for line in lines)]), _WIDTH // 2)
    for block in _blocks(shown, _WIDTH - width - 4):
        yield from _block(block, lines, marks, width)
    left_out = {"queue": len(queues) - len(shown), "client": len(rows) - len(clients)}
    if any(left_out.values()):
        told = list_of(count(number, f"more {what}") for what, number in left_out.items() if number)
        yield f"  ({told} {noun(sum(left_out.values()), 'is', 'are')} not shown)"


class _Line(NamedTuple):
    """A client's line: its label, the mark of what it takes for certain, its shares by queue."""

    label: str
    mark: str
    shares: dict[MessageQueue, float]


LEGEND = (
    "(# takes it, 2: two processes do, ~ at times, . does not; "
    "D duplicate, O orphaned, d and o at times)"
)
_WRONG = "wrong"
_RowKey = tuple[str, int, bool]


def _label(row: _RowKey) -> str:
    client_id, processes, _ = row
    shown = visible(client_id)
    return f"{shown} (x{processes})" if processes > 1 else shown


def _rows(evaluation: Evaluation) -> dict[_RowKey, dict[MessageQueue, float]]:
    """By client id and processes the share of the views under which each queue is taken."""
    rows: dict[_RowKey, dict[MessageQueue, float]] = {}
    for allocation in evaluation.allocations:
        row = rows.setdefault(
            (shown_id(allocation.client_id), allocation.processes, allocation.subscribed), {}
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
    return max(_cell_width(part) * len(part), min(len(visible(part[0].broker_name)), 24)) + 2


def _block(
    parts: Sequence[Sequence[MessageQueue]],
    lines: Sequence[_Line],
    marks: dict[MessageQueue, str],
    width: int,
) -> Iterator[str]:
    def line(label: str, of_parts: Iterable[str]) -> str:
        return f"  {label:<{width}}  {'  '.join(of_parts)}".rstrip()

    def padded(text: str, part: Sequence[MessageQueue]) -> str:
        return f"{text:<{_part_width(part) - 2}}"

    def cells(texts: Iterable[str], part: Sequence[MessageQueue]) -> str:
        return padded("".join(f"{text:>{_cell_width(part)}}" for text in texts), part)

    yield line("", (padded(_cut(visible(p[0].broker_name), _part_width(p) - 2), p) for p in parts))
    yield line("", (cells((str(queue.queue_id) for queue in part), part) for part in parts))
    for label, mark, shares in lines:
        of_label = (cells((_cell(shares.get(q, 0.0), mark) for q in p), p) for p in parts)
        yield line(_cut(label, width), of_label)
    if any(queue in marks for part in parts for queue in part):
        yield line(_WRONG, (cells((marks.get(q, "") for q in p), p) for p in parts))


def _cell(share: float, full: str) -> str:
    if share <= 0:
        return "."
    return full if share > 1 - 1e-9 else "~"


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."


# ------------------------------------------------------------------ why


def _why(situation: Situation) -> Iterator[str]:
    state = situation.state
    views = possible_views(state)
    yield ""
    yield "Why: each client allocates for itself, from these lists"
    for view in views.views[:_MOST_CLIENTS]:
        ids = Counter(view.client_ids)
        share = "" if views.agree else f" ({view.weight:.0%} of the times)"
        yield (
            f"  asked of {', '.join(view.brokers)}{share}: {count(len(view.queues), 'queue')}, "
            f"{count(len(view.client_ids), 'client id')}"
        )
        for number, (client_id, copies) in enumerate(ids.items()):
            if number == _MOST_CLIENTS:
                yield f"    and {len(ids) - number} more"
                break
            again = f"   {copies} times: {copies} slots" if copies > 1 else ""
            yield f"    {shown_id(client_id)}{again}"
    if views.completeness < 1 and state.client_lists:
        yield f"  (the lists of {views.completeness:.0%} of the topic's brokers are known)"
    for broker in state.offline_brokers[:_MOST_BROKERS]:
        yield f"  {named_broker(*broker)} knows no member of the group"
    if len(state.offline_brokers) > _MOST_BROKERS:
        yield f"  {len(state.offline_brokers) - _MOST_BROKERS} more brokers know no member of it"
    for route in state.topic_routes:
        in_order = sorted(route.brokers, key=lambda each: each.broker_name)
        brokers = ", ".join(
            f"{broker.broker_name} {broker.read_queue_nums}"
            + ("" if broker.is_readable else " (not readable)")
            for broker in in_order[:_MOST_BROKERS]
        )
        if len(in_order) > _MOST_BROKERS:
            brokers += f", and {len(in_order) - _MOST_BROKERS} more brokers"
        yield f"  route of {route.namesrv_addr}: queues to read: {brokers or 'no broker'}"
    for text, ids_with in _traits(situation).items():
        yield f"  {text}: {names(ids_with, 8)}"


def _traits(situation: Situation) -> dict[str, list[str]]:
    """What processes do, in words, and the ids of those that do."""
    traits: dict[str, list[str]] = defaultdict(list)
    for process in find_processes(situation.state, situation.rules):
        strategy = process.strategy
        name = strategy.strategy.full_name if strategy.strategy else strategy.unknown
        text = f"strategy {name} ({strategy.source})"
        if process.chooses_queues:
            text = "takes a slot and no queue: chooses its queues itself, by assign()"
        elif not process.subscribed:
            text = "takes a slot and no queue: does not subscribe to the topic"
        elif process.silent:
            text = "takes a slot and no queue: its last heartbeat is too old"
        elif process.broadcasting:
            text = "reads every queue and takes a slot: broadcasts"
        elif process.share < 1:
            text += f", if it subscribes at all, which is {process.share:.0%} probable"
        times = f" (x{process.count})" if process.count > 1 else ""
        traits[text].append(f"{shown_id(process.client_id)}{times}")
    return traits


# ------------------------------------------------------------------ what is wrong


def _findings(evaluation: Evaluation) -> Iterator[str]:
    yield ""
    yield "Findings"
    for kind, text in ((DUPLICATE, "taken by several"), (ORPHANED, "taken by nobody")):
        found = [finding for finding in evaluation.findings if finding.kind == kind]
        if not found:
            continue
        worst = max(found, key=lambda each: each.probability)
        sure = all(finding.certainty == CERTAIN for finding in found)
        how = "for certain" if sure else f"at times, at most {worst.probability:.0%} of them"
        yield f"  {text}, {how}: {queue_ranges(finding.queue for finding in found)}"


def fault_lines(fault: Fault) -> Iterator[str]:
    """A fault, its repair, and what the repair does."""
    yield ""
    yield f"{fault.fault}: {fault.evidence}"
    yield f"  repair: {fault.remedy}"
    if fault.cleared or fault.moves:
        yield (
            f"  with it, findings that go: {fault.cleared:,}, that stay: {fault.left:,}; queues "
            f"that change hands: {len(fault.moves):,}"
        )


def _leaving(situation: Situation, evaluation: Evaluation, masking: Masking) -> Iterator[str]:
    """What each client's leaving would do: the smallest of the what-ifs, and the commonest."""
    clients = sorted({a.client_id for a in evaluation.allocations if a.subscribed})
    if evaluation.coverage != AUDITED or not 1 < len(clients) <= _MOST_LEAVING:
        return
    yield ""
    yield "What if a process of it leaves (more: rebalance-audit what-if --help)"
    shown = {client_id: visible(masking.mask(client_id)) for client_id in clients}
    width = max(map(len, shown.values()))
    for client_id in clients:
        changed = apply_change(situation, leave(client_id))
        after = evaluate(changed.state, changed.rules)
        moved = len(find_moves(evaluation, after))
        yield f"  {shown[client_id]:<{width}}  queues that move: {moved:,}; {wrong_of(after)}"


# ------------------------------------------------------------------ time, holdings, backlog

_KINDS = (("orphaned_queues", "orphaned"), ("duplicate_queues", "duplicate"))
#: What queues have in common that are told together.
_ALIKE = ("first_seen", "last_seen", "share_of_time", "persistence", "severity")


def _since(moment: Moment) -> Iterator[str]:
    """Since when each finding and fault is there, and how much waits because of it."""
    lines: list[str] = []
    for table, kind in _KINDS:
        of_episode: dict[tuple[Any, ...], list[Mapping[str, Any]]] = defaultdict(list)
        for row in moment.episodes[table]:
            of_episode[tuple(row[name] for name in _ALIKE)].append(row)
        for _, rows in sorted(of_episode.items()):
            waiting = sum(row["backlog"] or 0 for row in rows)
            backlog = f", {count(waiting, 'message')} not consumed" if waiting else ""
            lines.append(
                f"  {kind} {_when(rows[0])} ({rows[0]['persistence']}, {rows[0]['severity']}): "
                f"{_queue_ranges(moment, rows)}{backlog}"
            )
    for row in moment.episodes["stalled_queues"]:
        lines.append(
            f"  stalled {_span(row['first_seen'], row['last_seen'])} ({row['persistence']}, "
            f"{row['severity']}): {_queue_ranges(moment, [row])}, computed for "
            f"{list_of(row['owners']) or 'nobody'}"
        )
    for row in moment.episodes["group_faults"]:
        whose = f" of {shown_id(row['client_ids'][0])}" if row["fault"] in OF_ONE_CLIENT else ""
        lines.append(f"  {row['fault']}{whose} {_when(row)} ({row['persistence']})")
    if lines:
        yield ""
        yield "Since when"
        yield from lines


def _when(row: Mapping[str, Any]) -> str:
    """From when to when, and for how much of it, where there are gaps."""
    share = of_the_time(row["share_of_time"])
    return f"{_span(row['first_seen'], row['last_seen'])}{share and f', {share}'}"


def _span(first: Instant, last: Instant) -> str:
    if first == last:
        return f"in the snapshot of {clock(first)}"
    return f"from {clock(first)} to {clock(last)}"


def _queue_ranges(moment: Moment, rows: Iterable[Mapping[str, Any]]) -> str:
    return _ranges(moment, ((row["broker_name"], row["queue_id"]) for row in rows))


def _ranges(moment: Moment, queues: Iterable[QueueKey]) -> str:
    return queue_ranges(MessageQueue(moment.state.topic, *queue) for queue in sorted(queues))


def _held(moment: Moment) -> Iterator[str]:
    """What each process said that it holds, and the queues of which none or several said so."""
    if not moment.held:
        return
    yield ""
    yield "What the processes hold, as their last running infos say"
    for held in moment.held[:_MOST_CLIENTS]:
        queues = _ranges(moment, held.queues) if held.queues else "no queue"
        yield f"  {shown_id(held.client_id)}: {queues} (at {clock(held.said_at)})"
    if len(moment.held) > _MOST_CLIENTS:
        yield f"  and {len(moment.held) - _MOST_CLIENTS} more"
    holders = Counter(queue for held in moment.held for queue in held.queues)
    several = [queue for queue, number in holders.items() if number > 1]
    if several:
        yield f"  held by several: {_ranges(moment, several)}"


def _backlog(moment: Moment) -> Iterator[str]:
    """How many messages wait, and where most of them do."""
    if moment.backlog is None or moment.backlog_at is None:
        return
    yield ""
    in_all = sum(moment.backlog.values())
    yield f"Not consumed at {clock(moment.backlog_at)}: {count(in_all, 'message')}"
    most = sorted(moment.backlog.items(), key=lambda each: (-each[1], each[0]))
    for (broker_name, queue_id), waiting in [each for each in most if each[1]][:_MOST_BACKLOGS]:
        yield f"  {broker_name} {queue_id}: {count(waiting, 'message')}"
