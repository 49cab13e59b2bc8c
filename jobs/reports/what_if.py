"""What changes would do, in words and as JSON: of one topic, or of every topic of a group."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from jobs.judge.moment import Moment
from jobs.languages.language import ENGLISH, Language
from jobs.reports.explain import (
    LEGEND,
    WIDTH,
    and_more,
    as_of,
    clock,
    fault_lines,
    heading,
    in_lines,
    indented,
    picture,
    queue_marks,
    size_and_wrong,
    taken_queues,
    wrong_of,
)
from jobs.text import padded, visible
from rebalance_core import (
    Evaluation,
    MessageQueue,
    Situation,
    WhatIf,
    find_causes,
    find_faults,
    moves_by_client,
)
from rebalance_core.descriptions import queue_ranges
from rebalance_core.english import agreeing, count, joined, names
from rebalance_core.findings import AUDITED, DUPLICATE, ORPHANED
from rebalance_core.loads import queues_by_client
from rebalance_core.message_queue import is_retry_topic
from rebalance_core.moves import shown_id
from rebalance_core.prediction import (
    BACKLOG_NOT_KNOWN,
    FINDINGS_AFTER,
    FINDINGS_BETWEEN,
    MESSAGES_LEFT,
    OWNERS_NOT_KNOWN,
    Between,
    Ways,
)
from rebalance_core.texts import Text

_MOST_LINES = 40
_MOST_CLIENTS = 40
#: The columns of a queue's name, where queues are listed.
_QUEUE_WIDTH = 25

#: Of every topic of a group: the topic's moment, and what the changes do to it.
Predictions = Sequence[tuple[Moment, WhatIf]]


def what_if_lines(
    situation: Situation,
    predicted: WhatIf,
    moment: Moment,
    language: Language = ENGLISH,
    width: int = WIDTH,
) -> Iterator[str]:
    """What changes would do to a topic: who takes what then, what moves, what lies in between."""
    return in_lines(
        _predicted(situation, predicted, moment, language, width), moment.masking, language, width
    )


#: A fault that is over by the last snapshot: --at asks about the time when it was there.
_NOTHING = Text("Nothing changes: it is so already at this time (--at asks about another one).")


def what_if_group_lines(
    predictions: Predictions, language: Language = ENGLISH, width: int = WIDTH
) -> Iterator[str]:
    """What changes would do to every topic of a group, and how many queues each client has then."""
    return in_lines(_predicted_of_group(predictions), predictions[0][0].masking, language, width)


def what_if_values(predictions: Predictions) -> dict[str, Any]:
    """What changes would do, as values for JSON; docs/what_if.md has what each key is.

    Keys are added, never removed or changed.
    """
    moment = predictions[0][0]
    return {
        "cluster": moment.cluster,
        "consumer_group": moment.state.consumer_group,
        "as_of": clock(moment.snapshot_time),
        "changes": _changes(predictions),
        "safe": all(predicted.safe for _, predicted in predictions),
        "dangers": sorted({danger for _, predicted in predictions for danger in predicted.dangers}),
        "topics": [_values(moment, predicted) for moment, predicted in predictions],
        "clients": [
            {"client_id": client_id, "queues_before": before, "queues_after": after}
            for client_id, (before, after) in _load(predictions).items()
        ],
    }


def _predicted_of_group(predictions: Predictions) -> Iterator[str]:
    moment = predictions[0][0]
    yield Text(
        "{group} on {topics}, cluster {cluster}",
        group=moment.state.consumer_group,
        topics=count(len(predictions), "topic"),
        cluster=moment.cluster,
    )
    yield as_of(moment)
    yield from _asked(_changes(predictions))
    yield ""
    unsafe = [
        (of_topic.state.topic, predicted)
        for of_topic, predicted in predictions
        if not predicted.safe
    ]
    if unsafe:
        yield Text(
            "NOT safe, for {topics} of {all}: see below",
            topics=count(len(unsafe), "topic"),
            all=len(predictions),
        )
    elif all(not predicted.steps for _, predicted in predictions):
        yield _NOTHING
        return
    else:
        yield Text("Safe for every topic")
    yield ""
    for of_topic, predicted in predictions:
        yield _of_topic(of_topic.state.topic, _in_one_line(predicted))
    for topic, predicted in unsafe:
        yield ""
        yield _of_topic(topic, Text("before: {state}", state=size_and_wrong(predicted.before)))
        yield _of_topic(topic, Text("after: {state}", state=size_and_wrong(predicted.after)))
        yield from _not_known(predicted)
        yield from _verdict(predicted)
        if predicted.new_findings:
            yield from _new_faults(predicted)
    load = _load(predictions)
    yield ""
    yield Text("Queues of all topics (without the retry topic) that a process has, before -> after")
    for number, (client_id, (before, after)) in enumerate(load.items()):
        if number == _MOST_CLIENTS:
            yield indented(and_more(len(load) - number))
            break
        yield indented(
            Text(
                "{client_id}: {before} -> {after}",
                client_id=client_id,
                before=_number(before),
                after=_number(after),
            )
        )


def _of_topic(topic: str, text: Text) -> Text:
    return Text("{topic}: {text}", topic=topic, text=text)


def _in_one_line(predicted: WhatIf) -> Text:
    if not predicted.steps:
        return Text("nothing changes")
    if AUDITED not in (predicted.before.coverage, predicted.after.coverage):
        coverage = predicted.before.coverage
        return Text("its queues are not divided by the clients ({coverage})", coverage=coverage)
    return Text(
        "safe, {moves}; before: {before}; after: {after}"
        if predicted.safe
        else "NOT safe, {moves}; before: {before}; after: {after}",
        moves=_change_hands(predicted),
        before=wrong_of(predicted.before),
        after=wrong_of(predicted.after),
    )


def _change_hands(predicted: WhatIf) -> Text:
    queues = count(_queues_in_all(predicted), "queue")
    return Text("{moved:,} of {queues} change hands", moved=len(predicted.moves), queues=queues)


def _changes(predictions: Predictions) -> list[str]:
    """The changes in words; one topic may not allow each of them."""
    longest = max((predicted.changes for _, predicted in predictions), key=len)
    others = (text for _, predicted in predictions for text in predicted.changes)
    return list(dict.fromkeys((*longest, *others)))


def _load(predictions: Predictions) -> dict[str, tuple[float | None, float | None]]:
    """By client id its queues of all topics before and after; None where it is not there."""
    no_retries = [
        (m, predicted) for m, predicted in predictions if not is_retry_topic(m.state.topic)
    ] or predictions
    before = _sums(predicted.before for _, predicted in no_retries)
    after = _sums(predicted.after for _, predicted in no_retries)
    return {
        shown_id(client_id): (before.get(client_id), after.get(client_id))
        for client_id in sorted(before | after)
    }


def _sums(of_topics: Iterable[Evaluation]) -> dict[str, float]:
    sums: dict[str, float] = defaultdict(float)
    for each in of_topics:
        for client_id, queues in queues_by_client(each.allocations).items():
            sums[client_id] += queues
    return {client_id: round(queues, 9) for client_id, queues in sums.items()}


def _number(queues: float | None) -> str:
    return Text("not there") if queues is None else f"{queues:,.4g}"


# ------------------------------------------------------------------ as JSON


def _values(moment: Moment, predicted: WhatIf) -> dict[str, Any]:
    return {
        "topic": moment.state.topic,
        "safe": predicted.safe,
        "dangers": list(predicted.dangers),
        "steps": list(predicted.steps),
        "before": _evaluation(predicted.before),
        "after": _evaluation(predicted.after),
        "moves": [
            _queue(move.queue) | {"before": list(move.before), "after": list(move.after)}
            for move in predicted.moves
        ],
        "rollout": _ways(predicted.rollout),
        "settling": _ways(predicted.settling) | {"seconds": predicted.seconds},
        "queues_gone": [
            _queue(queue) | {"messages_left": (predicted.backlog or {}).get(queue)}
            for queue in predicted.queues_gone
        ],
    }


def _evaluation(evaluation: Evaluation) -> dict[str, Any]:
    return {
        "coverage": evaluation.coverage,
        "reason": evaluation.reason,
        "queues": evaluation.queues,
        "processes": evaluation.processes,
        "idle_clients": evaluation.idle_clients,
        "findings": [
            {
                "kind": finding.kind,
                **_queue(finding.queue),
                "certainty": finding.certainty,
                "probability": finding.probability,
                "client_ids": [shown_id(each.client_id) for each in finding.claimants],
            }
            for finding in evaluation.findings
        ],
    }


def _ways(ways: Ways) -> dict[str, Any]:
    worst = ways.worst
    return {
        "looked_at": ways.looked_at,
        "exhaustive": ways.exhaustive,
        "harmed": ways.harmed,
        "worst": worst
        and {
            "done": list(worst.done),
            "duplicates": [_queue(queue) for queue in worst.duplicates],
            "orphans": [_queue(queue) for queue in worst.orphans],
        },
    }


def _queue(queue: MessageQueue) -> dict[str, Any]:
    return {"broker_name": queue.broker_name, "queue_id": queue.queue_id}


# ------------------------------------------------------------------ one topic in words


def _predicted(
    situation: Situation, predicted: WhatIf, moment: Moment, language: Language, width: int
) -> Iterator[str]:
    yield from heading(situation, moment)
    yield from _asked(predicted.changes)
    yield ""
    yield Text("Before: {state}", state=size_and_wrong(predicted.before))
    yield Text("After:  {state}", state=size_and_wrong(predicted.after))
    yield from _not_known(predicted)
    if not predicted.steps:
        yield _NOTHING
        return
    yield from picture(Text("Before"), predicted.before, moment.masking, language, width)
    yield from picture(Text("After"), predicted.after, moment.masking, language, width)
    yield LEGEND
    if predicted.comparable:
        yield from _moves(predicted, language)
    yield ""
    yield from _verdict(predicted)
    if predicted.new_findings:
        yield from _new_faults(predicted)


# ------------------------------------------------------------------ what a change does


def _asked(changes: Sequence[str]) -> Iterator[str]:
    yield ""
    for number, change in enumerate(changes):
        yield Text("    and: {change}" if number else "What if: {change}", change=change)


def _not_known(predicted: WhatIf) -> Iterator[str]:
    for evaluation, what in (
        (predicted.before, Text("Cannot be computed before it")),
        (predicted.after, Text("Cannot be computed after it")),
    ):
        if evaluation.coverage != AUDITED:
            yield Text(
                "{what}: {coverage}, {reason}",
                what=what,
                coverage=evaluation.coverage,
                reason=evaluation.reason,
            )


def _moves(predicted: WhatIf, language: Language) -> Iterator[str]:
    yield ""
    if not predicted.moves:
        yield Text("No queue moves.")
        return
    yield _change_hands(predicted)
    for number, (client_id, (gives, takes)) in enumerate(moves_by_client(predicted.moves).items()):
        if number == _MOST_LINES:
            yield "  ..."
            break
        yield indented(_changed_queues(client_id, gives, takes))
    yield ""
    yield _columns(language("queue"), Text("from -> to"))
    for move in predicted.moves[:_MOST_LINES]:
        before, after = (
            joined(each, "{before} + {next}") or Text("nobody")
            for each in (move.before, move.after)
        )
        yield _columns(
            visible(f"{move.queue.broker_name} {move.queue.queue_id}"),
            Text("{before} -> {after}", before=before, after=after),
        )
    if len(predicted.moves) > _MOST_LINES:
        yield indented(and_more(len(predicted.moves) - _MOST_LINES))


def _changed_queues(
    client_id: str, gives: Sequence[MessageQueue], takes: Sequence[MessageQueue]
) -> Text:
    given, taken = queue_ranges(gives), queue_ranges(takes)
    if not gives:
        return Text("{client_id} takes {taken}", client_id=client_id, taken=taken)
    if not takes:
        return Text("{client_id} gives up {given}", client_id=client_id, given=given)
    return Text(
        "{client_id} gives up {given}, takes {taken}", client_id=client_id, given=given, taken=taken
    )


def _columns(queue: str, moves: Text) -> Text:
    return Text("  {queue}  {moves}", queue=padded(queue, _QUEUE_WIDTH), moves=moves)


def _queues_in_all(predicted: WhatIf) -> int:
    of = [
        taken_queues(evaluation) | set(queue_marks(evaluation))
        for evaluation in (predicted.before, predicted.after)
    ]
    return len(set().union(*of))


def _verdict(predicted: WhatIf) -> Iterator[str]:
    """Whether it is safe, why not, and what happens while clients find out."""
    for danger in predicted.dangers:
        yield from _DANGERS[danger](predicted)
    if (
        predicted.safe
        and predicted.steps
        and AUDITED in (predicted.before.coverage, predicted.after.coverage)
    ):
        yield _how_safe(predicted)
    yield from _settling(predicted)


def _settling(predicted: WhatIf) -> Iterator[str]:
    worst = predicted.settling.worst
    if worst is None:
        return
    yield _looked_at(
        Text(
            "Until every client has seen the change, for up to {seconds} s after all is done (a "
            "client that crashes stays listed for some 120 s more), up to {queues} may be taken "
            "by both or by nobody",
            seconds=predicted.seconds,
            queues=count(worst.wrong, "queue"),
        ),
        predicted.settling,
    )
    when = Text("Worst, before any:")
    if worst.done:
        when = Text("Worst, when only these have seen it: {clients}:", clients=names(worst.done, 4))
    yield indented(when)
    yield indented(indented(_what_is_wrong(worst)))


def _between(predicted: WhatIf) -> Iterator[str]:
    rollout = predicted.rollout
    yield _looked_at(
        Text(
            "NOT safe in a rolling way, step by step ({steps}): states in between have duplicates "
            "or orphans that were not there before, for as long as the rollout stays there: "
            "{harmed} of {states}",
            steps=count(len(predicted.steps), "step"),
            harmed=rollout.harmed,
            states=rollout.looked_at,
        ),
        rollout,
    )
    if rollout.worst is not None:
        done = names(rollout.worst.done, 4)
        yield indented(Text("Worst, with this done and no more: {steps}:", steps=done))
        yield indented(indented(_what_is_wrong(rollout.worst)))


def _findings_after(_: WhatIf) -> Iterator[str]:
    yield Text("NOT safe: when all is done there are findings that were not there before.")


def _messages_left(predicted: WhatIf) -> Iterator[str]:
    left = predicted.messages_left
    in_all = sum(left.values())
    danger = agreeing(
        in_all,
        "NOT safe: {messages} that the group has not consumed [lies|lie] in queues that go: "
        "{queues}.",
        messages=count(in_all, "message"),
        queues=queue_ranges(left),
    )
    yield Text(
        "{danger} Nobody reads them until the queues are back. First lower the number of write "
        "queues alone, wait until these queues are empty, then lower the number of read queues.",
        danger=danger,
    )


def _backlog_not_known(predicted: WhatIf) -> Iterator[str]:
    unseen = [queue for queue in predicted.queues_gone if queue not in (predicted.backlog or {})]
    danger = agreeing(
        len(unseen),
        "NOT safe as far as the dumps show: {queues} [goes|go]",
        queues=queue_ranges(unseen),
    )
    yield Text(
        "{danger}, and the dumps have no offsets of the group there, so messages may lie in them "
        "that nobody reads afterwards. Look at consumerProgress, or collect consume_stats.",
        danger=danger,
    )


def _owners_not_known(_: WhatIf) -> Iterator[str]:
    yield Text(
        "NOT safe as far as the dumps show: who owns which queue cannot be computed before and "
        "after, so nothing shows that every queue has one owner."
    )


_DANGERS = {
    FINDINGS_BETWEEN: _between,
    FINDINGS_AFTER: _findings_after,
    MESSAGES_LEFT: _messages_left,
    BACKLOG_NOT_KNOWN: _backlog_not_known,
    OWNERS_NOT_KNOWN: _owners_not_known,
}


def _how_safe(predicted: WhatIf) -> Text:
    if len(predicted.steps) == 1:
        return Text("Safe: it is one step, and its end has no finding that was not there before.")
    safe = Text(
        "Safe in a rolling way, step by step ({steps}): no state in between has a duplicate or an "
        "orphan that was not there before"
        if predicted.rollout.exhaustive
        else "No harm was found in a rolling way, step by step ({steps}): no state in between has "
        "a duplicate or an orphan that was not there before",
        steps=count(len(predicted.steps), "step"),
    )
    return _looked_at(safe, predicted.rollout)


def _looked_at(sentence: Text, ways: Ways) -> Text:
    """The sentence with how many states it rests on."""
    if ways.states == 0 or (ways.exhaustive and ways.states == 1):
        return Text("{sentence}.", sentence=sentence)
    if ways.exhaustive:
        return Text(
            "{sentence} (all {states} states looked at).", sentence=sentence, states=ways.states
        )
    states: str = f"{ways.states:,}"
    if ways.states >= 10**9:
        states = Text("about 10^{digits}", digits=len(str(ways.states)) - 1)
    return Text(
        "{sentence} ({looked_at} of {states} states looked at: another may be worse).",
        sentence=sentence,
        looked_at=ways.looked_at,
        states=states,
    )


_TAKEN = {
    DUPLICATE: "{queues} [is|are] taken by several",
    ORPHANED: "{queues} [is|are] taken by nobody",
}


def _what_is_wrong(between: Between) -> str:
    wrong = {DUPLICATE: between.duplicates, ORPHANED: between.orphans}
    return joined(
        agreeing(len(queues), _TAKEN[kind], queues=queue_ranges(queues))
        for kind, queues in wrong.items()
        if queues
    )


def _new_faults(predicted: WhatIf) -> Iterator[str]:
    """Why there are findings when all is done."""
    causes = find_causes(predicted.situation_after, predicted.after)
    for fault in find_faults(predicted.situation_after, predicted.after, causes):
        yield from fault_lines(fault)
