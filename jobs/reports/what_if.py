"""What changes would do, in words and as JSON: of one topic, or of every topic of a group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jobs.judge.moment import Moment
from jobs.reports.explain import (
    LEGEND,
    clock,
    fault_lines,
    heading,
    in_lines,
    picture,
    queue_marks,
    size_of,
    taken_queues,
    wrong_of,
)
from rebalance_core import (
    Evaluation,
    MessageQueue,
    Situation,
    WhatIf,
    find_causes,
    find_faults,
    moves_by_client,
)
from rebalance_core.english import count, names, noun
from rebalance_core.faults import queue_ranges, shown_id
from rebalance_core.findings import AUDITED
from rebalance_core.loads import queues_by_client
from rebalance_core.message_queue import is_retry_topic
from rebalance_core.prediction import (
    BACKLOG_NOT_KNOWN,
    FINDINGS_AFTER,
    FINDINGS_BETWEEN,
    MESSAGES_LEFT,
    OWNERS_NOT_KNOWN,
    Between,
    Ways,
)

_MOST_LINES = 40
_MOST_CLIENTS = 40

#: Of every topic of a group: the topic's moment, and what the changes do to it.
Predictions = Sequence[tuple[Moment, WhatIf]]


def what_if_lines(situation: Situation, told: WhatIf, moment: Moment) -> Iterator[str]:
    """What changes would do to a topic: who takes what then, what moves, what lies in between."""
    return in_lines(_predicted(situation, told, moment))


#: A fault that is over by the last snapshot: --at asks about the time when it was there.
_NOTHING = "Nothing changes: it is so already at this time (--at asks about another one)."


def what_if_group_lines(predictions: Predictions) -> Iterator[str]:
    """What changes would do to every topic of a group, and how many queues each client has then."""
    return in_lines(_predicted_of_group(predictions))


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
        "safe": all(told.safe for _, told in predictions),
        "dangers": sorted({danger for _, told in predictions for danger in told.dangers}),
        "topics": [_values(moment, told) for moment, told in predictions],
        "clients": [
            {"client_id": client_id, "queues_before": before, "queues_after": after}
            for client_id, (before, after) in _load(predictions).items()
        ],
    }


def _predicted_of_group(predictions: Predictions) -> Iterator[str]:
    moment = predictions[0][0]
    state = moment.state
    yield (
        f"{state.consumer_group} on {count(len(predictions), 'topic')}, cluster {moment.cluster}"
    )
    yield f"as of {clock(moment.snapshot_time)}"
    yield from _asked(_changes(predictions))
    yield ""
    unsafe = [(of_topic.state.topic, told) for of_topic, told in predictions if not told.safe]
    if unsafe:
        topics = noun(len(unsafe), "topic")
        yield f"NOT safe, for {len(unsafe)} {topics} of {len(predictions)}: see below"
    elif all(not told.steps for _, told in predictions):
        yield _NOTHING
        return
    else:
        yield "Safe for every topic"
    yield ""
    for of_topic, told in predictions:
        yield f"{of_topic.state.topic}: {_in_one_line(told)}"
    for topic, told in unsafe:
        yield ""
        yield f"{topic}: before: {size_of(told.before)}; {wrong_of(told.before)}"
        yield f"{topic}: after: {size_of(told.after)}; {wrong_of(told.after)}"
        yield from _not_known(told)
        yield from _verdict(told)
        if told.new_findings:
            yield from _new_faults(told)
    load = _load(predictions)
    yield ""
    yield "Queues of all topics (without the retry topic) that a process has, before -> after"
    for number, (client_id, (before, after)) in enumerate(load.items()):
        if number == _MOST_CLIENTS:
            yield f"  and {len(load) - number} more"
            break
        yield f"  {client_id}: {_number(before)} -> {_number(after)}"


def _in_one_line(told: WhatIf) -> str:
    if not told.steps:
        return "nothing changes"
    if AUDITED not in (told.before.coverage, told.after.coverage):
        return f"its queues are not divided by the clients ({told.before.coverage})"
    moves = f"{len(told.moves):,} of {count(_queues_in_all(told), 'queue')} change hands"
    wrong = f"before: {wrong_of(told.before)}; after: {wrong_of(told.after)}"
    return f"{'safe' if told.safe else 'NOT safe'}, {moves}; {wrong}"


def _changes(predictions: Predictions) -> list[str]:
    """The changes in words; one topic may not allow each of them."""
    longest = max((told.changes for _, told in predictions), key=len)
    others = (text for _, told in predictions for text in told.changes)
    return list(dict.fromkeys((*longest, *others)))


def _load(predictions: Predictions) -> dict[str, tuple[float | None, float | None]]:
    """By client id its queues of all topics before and after; None where it is not there."""
    own = [(m, told) for m, told in predictions if not is_retry_topic(m.state.topic)] or predictions
    before, after = (
        _sums([queues_by_client(each.allocations) for each in evaluations])
        for evaluations in ([told.before for _, told in own], [told.after for _, told in own])
    )
    return {
        shown_id(client_id): (before.get(client_id), after.get(client_id))
        for client_id in sorted(before | after)
    }


def _sums(of_topics: Sequence[Mapping[str, float]]) -> dict[str, float]:
    ids = sorted({client_id for each in of_topics for client_id in each})
    return {each: round(sum(of.get(each, 0.0) for of in of_topics), 9) for each in ids}


def _number(queues: float | None) -> str:
    return "not there" if queues is None else f"{queues:,.4g}"


# ------------------------------------------------------------------ as JSON


def _values(moment: Moment, told: WhatIf) -> dict[str, Any]:
    return {
        "topic": moment.state.topic,
        "safe": told.safe,
        "dangers": list(told.dangers),
        "steps": list(told.steps),
        "before": _evaluation(told.before),
        "after": _evaluation(told.after),
        "moves": [
            _queue(move.queue) | {"before": list(move.before), "after": list(move.after)}
            for move in told.moves
        ],
        "rollout": _ways(told.rollout),
        "settling": _ways(told.settling) | {"seconds": told.seconds},
        "queues_gone": [
            _queue(queue) | {"messages_left": (told.backlog or {}).get(queue)}
            for queue in told.queues_gone
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


def _predicted(situation: Situation, told: WhatIf, moment: Moment) -> Iterator[str]:
    yield from heading(situation, moment)
    yield from _asked(told.changes)
    yield ""
    yield f"Before: {size_of(told.before)}; {wrong_of(told.before)}"
    yield f"After:  {size_of(told.after)}; {wrong_of(told.after)}"
    yield from _not_known(told)
    if not told.steps:
        yield _NOTHING
        return
    yield from picture("Before", told.before, moment.masking)
    yield from picture("After", told.after, moment.masking)
    yield LEGEND
    if told.comparable:
        yield from _moves(told)
    yield ""
    yield from _verdict(told)
    if told.new_findings:
        yield from _new_faults(told)


# ------------------------------------------------------------------ what a change does


def _asked(changes: Sequence[str]) -> Iterator[str]:
    yield ""
    for number, change in enumerate(changes):
        yield f"{'What if' if number == 0 else '    and'}: {change}"


def _not_known(told: WhatIf) -> Iterator[str]:
    for when, evaluation in (("before", told.before), ("after", told.after)):
        if evaluation.coverage != AUDITED:
            yield f"Cannot be computed {when} it: {evaluation.coverage}, {evaluation.reason}"


def _moves(told: WhatIf) -> Iterator[str]:
    yield ""
    if not told.moves:
        yield "No queue moves."
        return
    yield f"{len(told.moves):,} of {count(_queues_in_all(told), 'queue')} change hands"
    for number, (client_id, (gives, takes)) in enumerate(moves_by_client(told.moves).items()):
        if number == _MOST_LINES:
            yield "  ..."
            break
        parts = [
            f"{verb} {queue_ranges(queues)}"
            for verb, queues in (("gives up", gives), ("takes", takes))
            if queues
        ]
        yield f"  {client_id} {', '.join(parts)}"
    yield ""
    yield "  queue                      from -> to"
    for move in told.moves[:_MOST_LINES]:
        queue = f"{move.queue.broker_name} {move.queue.queue_id}"
        before, after = (" + ".join(each) or "nobody" for each in (move.before, move.after))
        yield f"  {queue:<25}  {before} -> {after}"
    if len(told.moves) > _MOST_LINES:
        yield f"  and {len(told.moves) - _MOST_LINES:,} more"


def _queues_in_all(told: WhatIf) -> int:
    of = [
        taken_queues(evaluation) | set(queue_marks(evaluation))
        for evaluation in (told.before, told.after)
    ]
    return len(set().union(*of))


def _verdict(told: WhatIf) -> Iterator[str]:
    """Whether it is safe, why not, and what happens while clients find out."""
    for danger in told.dangers:
        yield from _DANGERS[danger](told)
    if told.safe and told.steps and AUDITED in (told.before.coverage, told.after.coverage):
        yield _how_safe(told)
    yield from _settling(told)


def _settling(told: WhatIf) -> Iterator[str]:
    worst = told.settling.worst
    if worst is None:
        return
    yield (
        f"Until every client has seen the change, for up to {told.seconds} s after all is done (a "
        f"client that crashes stays listed for some 120 s more), up to "
        f"{count(worst.wrong, 'queue')} may be taken by both or by "
        f"nobody{_looked_at(told.settling)}."
    )
    who = f"when only these have seen it: {names(worst.done, 4)}" if worst.done else "before any"
    yield f"  Worst, {who}:"
    yield f"    {_what_is_wrong(worst)}"


def _between(told: WhatIf) -> Iterator[str]:
    rollout = told.rollout
    yield (
        f"NOT safe in a rolling way, step by step ({count(len(told.steps), 'step')}): states in "
        "between have duplicates or orphans that were not there before, for as long as the rollout "
        f"stays there: {rollout.harmed} of {rollout.looked_at}{_looked_at(rollout)}."
    )
    if rollout.worst is not None:
        yield f"  Worst, with this done and no more: {names(rollout.worst.done, 4)}:"
        yield f"    {_what_is_wrong(rollout.worst)}"


def _findings_after(_: WhatIf) -> Iterator[str]:
    yield "NOT safe: when all is done there are findings that were not there before."


def _messages_left(told: WhatIf) -> Iterator[str]:
    left = told.messages_left
    yield (
        f"NOT safe: {count(sum(left.values()), 'message')} that the group has not consumed "
        f"{noun(sum(left.values()), 'lies', 'lie')} in queues that go: {queue_ranges(left)}. "
        "Nobody reads them until the queues are back. First lower the number of write queues "
        "alone, wait until these queues are empty, then lower the number of read queues."
    )


def _backlog_not_known(told: WhatIf) -> Iterator[str]:
    unseen = [queue for queue in told.queues_gone if queue not in (told.backlog or {})]
    yield (
        f"NOT safe as far as the dumps show: {queue_ranges(unseen)} "
        f"{noun(len(unseen), 'goes', 'go')}, and the dumps have no offsets "
        "of the group there, so messages may lie in them that nobody reads afterwards. Look at "
        "consumerProgress, or collect consume_stats."
    )


def _owners_not_known(_: WhatIf) -> Iterator[str]:
    yield (
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


def _how_safe(told: WhatIf) -> str:
    if len(told.steps) == 1:
        return "Safe: it is one step, and its end has no finding that was not there before."
    sure = "Safe" if told.rollout.exhaustive else "No harm was found"
    return (
        f"{sure} in a rolling way, step by step ({count(len(told.steps), 'step')}): no state in "
        "between has a duplicate or an orphan that was not there "
        f"before{_looked_at(told.rollout)}."
    )


def _looked_at(ways: Ways) -> str:
    if ways.states == 0:
        return ""
    if ways.exhaustive:
        return f" (all {ways.states} states looked at)" if ways.states > 1 else ""
    states = f"{ways.states:,}" if ways.states < 10**9 else f"about 10^{len(str(ways.states)) - 1}"
    return f" ({ways.looked_at} of {states} states looked at: another may be worse)"


def _what_is_wrong(between: Between) -> str:
    parts = [
        f"{queue_ranges(queues)} {noun(len(queues), 'is', 'are')} taken by {whom}"
        for queues, whom in ((between.duplicates, "several"), (between.orphans, "nobody"))
        if queues
    ]
    return "; ".join(parts)


def _new_faults(told: WhatIf) -> Iterator[str]:
    """Why there are findings when all is done."""
    causes = find_causes(told.situation_after, told.after)
    for fault in find_faults(told.situation_after, told.after, causes):
        yield from fault_lines(fault)
