"""A moment in words and as a small picture: what was judged of it, who takes what, and why.

``templates/explain.txt`` has how it is laid out; here is what it says.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import rebalance_core as core
from rebalance_core import Evaluation, MessageQueue, Situation, TopicRoute
from rebalance_core.descriptions import queue_ranges
from rebalance_core.english import agreeing, count, joined, with_commas, within
from rebalance_core.findings import AUDITED, DUPLICATE, ORPHANED, TOO_MANY_QUEUES
from rebalance_core.grouping import grouped
from rebalance_core.processes import Process, find_processes
from rebalance_core.texts import Text
from rebalance_core.views import possible_views, readable_by_some

from ..declared.kinds import QUEUE_FINDINGS
from ..judge.moment import Moment
from ..judge.observe.core_verdict import QueueKey
from ..languages.language import Language
from ..texts.shown import day_and_time
from ..texts.waiting import NOTHING, WaitingMessages
from .picture import draw, id_of
from .problems import Problem, ShownFault
from .text_templates import Reader, clock
from .words import begin, in_words


@dataclass(frozen=True)
class Judged:
    """The judgement of a topic at one moment.

    ``worst``: the problem of the worst that was there then, so that a WARNING that goes on does not
    make a CRITICAL go on that was over at 10:09; None: nothing was. ``interrupted``: that of the
    worst that was there before and after, and not then. ``cause``: what explains ``worst``, else
    ``interrupted``. ``faults``: all of both. ``others``: the problem of the worst that was there at
    other times alone. ``queues``: by table the findings of queues in whose time the moment is, with
    their times as Instants.
    """

    worst: Problem | None = None
    interrupted: Problem | None = None
    cause: ShownFault | None = None
    faults: Sequence[ShownFault] = ()
    others: Problem | None = None
    queues: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)

    @property
    def wrong(self) -> set[tuple[str, str, int]]:
        """The queues in the time of whose findings the moment is, by kind."""
        return {
            (QUEUE_FINDINGS[table], row["broker_name"], row["queue_id"])
            for table, rows in self.queues.items()
            for row in rows
        }


_MOST_CLIENTS = 40
#: The most brokers that a sentence names.
_MOST_BROKERS = 8
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
    backlog = [(queue, number) for queue, number in (moment.backlog or {}).items() if number]
    most_waiting = sorted(backlog, key=lambda waits: (-waits[1], waits[0]))[:_MOST_BACKLOGS]
    waiting = _waiting(moment, evaluation).text
    sentences = [*_standings(judged, evaluation)]
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
        most_waiting=most_waiting,
        cured=_cured(situation, evaluation, judged),
    )


def _standings(judged: Judged, evaluation: Evaluation) -> Iterator[Text]:
    """The sentences of what was judged: of what was there, and of what was interrupted."""
    problem, interrupted = judged.worst, judged.interrupted
    if problem is not None and problem.standing == "HARMLESS":
        yield Text("Nothing is wrong today, but members differ: {what}.", what=problem.what)
    elif problem is not None:
        template = "{now}, {severity} from {begins} on: {what}; {certainty}."
        yield _judged(problem, template, now=begin(problem.now))
    elif interrupted is None and evaluation.coverage == AUDITED:
        yield Text("Nothing is wrong at this moment.")
    elif interrupted is None:
        yield Text("Nothing was found, and who owns which queue is not known at this moment.")
    if interrupted is not None:
        template = (
            "Interrupted at this moment, {severity} from {begins} to {last_seen}: {what}; "
            "{certainty}."
        )
        yield _judged(interrupted, template, last_seen=day_and_time(interrupted.last_seen))


def _judged(problem: Problem, template: str, **values: str) -> Text:
    """The sentence of a problem; of a known issue with the reasons."""
    text = Text(
        template,
        severity=problem.severity,
        begins=day_and_time(problem.begins),
        what=within(problem.what),
        certainty=in_words(problem.certainty),
        **values,
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
        "At other times, from {first_seen} to {last_seen}, {severity}: {what} (--at {last_seen}).",
        severity=others.severity,
        first_seen=clock(others.first_seen),
        last_seen=clock(others.last_seen),
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
        owned = evaluation.queues - len({finding.queue for finding in evaluation.findings})
        lists = Text("{owned:,} have one by lists", owned=owned)
    held = Text("no process said")
    if moment.held:
        processes = count(len(moment.held), "process", "processes")
        number = len({queue for last_report in moment.held for queue in last_report.queues})
        held = Text("{processes} said to hold {number:,}", processes=processes, number=number)
    offsets = Text("there are no offsets")
    if (read := moment.read) is not None:
        offsets = Text("{advancing:,} advance by offsets", advancing=read.advancing)
        if read.caught_up:
            more = read.caught_up
            offsets = Text("{offsets}, {more:,} are caught up", offsets=offsets, more=more)
    return [lists, held, offsets]


def _refuted(evaluation: Evaluation, judged: Judged) -> list[MessageQueue]:
    """The queues that lists and routes alone give to several or to nobody, where the rules know
    better.
    """
    return [
        finding.queue
        for finding in evaluation.findings
        if (finding.kind, finding.queue.broker_name, finding.queue.queue_id) not in judged.wrong
    ]


def _cured(
    situation: Situation, evaluation: Evaluation, judged: Judged
) -> tuple[tuple[str, ...], Evaluation] | None:
    """The cure of the first finding that was judged too: of a group with several faults one after
    the other.
    """
    refuted = set(_refuted(evaluation, judged))
    found = next((finding for finding in evaluation.findings if finding.queue not in refuted), None)
    if found is None:
        return None
    causes = core.find_causes(situation, evaluation)
    cure = next(iter(causes.cures.get((found.kind, found.queue), ())), None)
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


# ------------------------------------------------------------------ why


def _route(route: TopicRoute) -> Text:
    """The line of a nameserver's route: the queues that consumers see."""
    in_order = sorted(route.brokers, key=lambda broker: broker.broker_name)
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
    return grouped(
        (_trait(process), id_of(process.client_id, process.count)) for process in processes
    )


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
        for line_rows in alike.values():
            yield table, line_rows[0], [(row["broker_name"], row["queue_id"]) for row in line_rows]


def _ranges(moment: Moment, queues: Iterable[QueueKey]) -> str:
    return queue_ranges(MessageQueue(moment.state.topic, *queue) for queue in sorted(queues))
