"""Texts and JSON of a what-if: of one topic, or of every topic of a group.

``templates/what_if.txt`` and ``templates/what_if_of_group.txt`` have how it is laid out.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import rebalance_core as core
from rebalance_core import Evaluation, MessageQueue, WhatIf
from rebalance_core.descriptions import taken_by
from rebalance_core.english import count, joined
from rebalance_core.findings import AUDITED, DUPLICATE, ORPHANED
from rebalance_core.loads import queues_by_client
from rebalance_core.message_queue import is_own_retry_topic
from rebalance_core.moves import shown_id
from rebalance_core.prediction import StateBetween, Ways
from rebalance_core.texts import Text

from ..judge.moment import Moment
from ..languages.language import Language
from .situation_text import draw, size_and_wrong, wrong_in_words
from .text_templates import Reader, clock

#: The moment of each topic of a group, and the effect of the changes on it.
Predictions = Sequence[tuple[Moment, WhatIf]]


def what_if_lines(
    predicted: WhatIf, moment: Moment, language: Language, width: int
) -> Iterator[str]:
    """The lines of a what-if of a topic: who takes what then, what moves, what lies in between."""
    reader = Reader(moment.masking, language, width)
    return reader.lines(
        "what_if.txt",
        **_FACTS,
        moment=moment,
        predicted=predicted,
        changes=predicted.changes,
        draw=partial(draw, reader),
        moves_by_client=core.moves_by_client,
    )


def what_if_group_lines(predictions: Predictions, language: Language, width: int) -> Iterator[str]:
    """The lines of a what-if of all topics of a group, and the queues of each client then."""
    moment = predictions[0][0]
    return Reader(moment.masking, language, width).lines(
        "what_if_of_group.txt",
        **_FACTS,
        moment=moment,
        predictions=predictions,
        changes=_changes(predictions),
        changes_something=any(predicted.steps for _, predicted in predictions),
        unsafe=[(situation.state.topic, each) for situation, each in predictions if not each.safe],
        in_one_line=_in_one_line,
        load=list(_load(predictions).items()),
    )


def what_if_values(predictions: Predictions) -> dict[str, Any]:
    """The values of a what-if for JSON; docs/what_if.md has what each key is.

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


def _in_one_line(predicted: WhatIf) -> Text:
    if not predicted.steps:
        return Text("nothing changes")
    if AUDITED not in (predicted.before.coverage, predicted.after.coverage):
        coverage = predicted.before.coverage
        return Text("its queues are not divided by the clients ({coverage})", coverage=coverage)
    before, after = wrong_in_words(predicted.before), wrong_in_words(predicted.after)
    template = "NOT safe, {moves}; before: {before}; after: {after}"
    if predicted.safe:
        template = "safe, {moves}; before: {before}; after: {after}"
    return Text(template, moves=_change_hands(predicted), before=before, after=after)


def _change_hands(predicted: WhatIf) -> Text:
    queues = count(len(predicted.before.seen_queues | predicted.after.seen_queues), "queue")
    return Text("{moved:,} of {queues} change hands", moved=len(predicted.moves), queues=queues)


def _changes(predictions: Predictions) -> list[str]:
    """The changes in words; one topic may not allow each of them."""
    longest = max((predicted.changes for _, predicted in predictions), key=len)
    others = (text for _, predicted in predictions for text in predicted.changes)
    return list(dict.fromkeys((*longest, *others)))


def _load(predictions: Predictions) -> dict[str, tuple[float | None, float | None]]:
    """Each client id's queues of all topics, before and after; None where it is not there."""
    no_retries = [
        (m, predicted)
        for m, predicted in predictions
        if not is_own_retry_topic(m.state.topic, m.state.consumer_group)
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
            "duplicates": list(map(_queue, worst.duplicates)),
            "orphans": list(map(_queue, worst.orphans)),
        },
    }


def _queue(queue: MessageQueue) -> dict[str, Any]:
    return {"broker_name": queue.broker_name, "queue_id": queue.queue_id}


# ------------------------------------------------------------------ in words


def _what_is_wrong(between: StateBetween) -> str:
    wrong = {DUPLICATE: between.duplicates, ORPHANED: between.orphans}
    return joined(taken_by(kind, queues) for kind, queues in wrong.items() if queues)


def _new_faults(predicted: WhatIf) -> tuple[core.Fault, ...]:
    """The faults behind the findings after all is done."""
    if not predicted.new_findings:
        return ()
    causes = core.find_causes(predicted.situation_after, predicted.after)
    return core.find_faults(predicted.situation_after, predicted.after, causes)


#: Values that both texts need.
_FACTS: dict[str, Any] = {
    "change_hands": _change_hands,
    "new_faults": _new_faults,
    "size_and_wrong": size_and_wrong,
    "what_is_wrong": _what_is_wrong,
}
