"""Text and JSON of a what-if: of one topic, or of every topic of a group.

``what_if_answer`` has what comes first, ``templates/what_if.txt`` how it is laid out.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import rebalance_core as core
from rebalance_core import Evaluation, MessageQueue, WhatIf
from rebalance_core.descriptions import taken_by
from rebalance_core.division import queues_by_client, shown_id
from rebalance_core.english import joined
from rebalance_core.findings import AUDITED, DUPLICATE, ORPHANED
from rebalance_core.prediction import StateBetween, Ways
from rebalance_core.texts import Text

from ..judge.moment import Moment
from ..languages.language import Language
from .picture import draw
from .situation_text import size_and_wrong, wrong_in_words
from .text_templates import Reader, clock
from .what_if_answer import Predictions, answer, change_hands, new_faults, without_retries


def what_if_lines(
    predictions: Predictions, language: Language, width: int, *, is_full: bool = False
) -> Iterator[str]:
    """The lines of a what-if: the answer, and then of one topic who takes what and what moves, of
    several what comes of each. ``is_full``: the pictures have every broker, queue and client.
    """
    moment, predicted = predictions[0]
    reader = Reader(moment.masking, language, width)
    concerned = {move.broker_name for move in predicted.moves}
    for finding in (*predicted.before.findings, *predicted.after.findings):
        concerned.add(finding.queue.broker_name)
    return reader.lines(
        "what_if.txt",
        answer=list(answer(predictions)),
        moment=moment,
        predictions=predictions,
        predicted=predicted,
        changes=_changes(predictions),
        changes_something=any(what_if.steps for _, what_if in predictions),
        unsafe=[
            (of_topic.state.topic, what_if) for of_topic, what_if in predictions if not what_if.safe
        ],
        draw=partial(draw, reader, concerned=concerned, is_full=is_full),
        moves_by_client=core.moves_by_client,
        in_one_line=_in_one_line,
        load=list(_load(predictions).items()),
        new_faults=new_faults,
        size_and_wrong=size_and_wrong,
        what_is_wrong=_what_is_wrong,
    )


def what_if_values(predictions: Predictions) -> dict[str, Any]:
    """The values of a what-if for JSON; docs/what_if.md has what each key is.

    Keys are added, never removed or changed.
    """
    moment = predictions[0][0]
    shared = without_retries(predictions)
    before = core.divide(predicted.before for _, predicted in shared)
    after = core.divide(predicted.after for _, predicted in shared)
    return {
        "cluster": moment.cluster,
        "consumer_group": moment.state.consumer_group,
        "as_of": clock(moment.snapshot_time),
        "changes": _changes(predictions),
        "safe": all(predicted.safe for _, predicted in predictions),
        "dangers": sorted({danger for _, predicted in predictions for danger in predicted.dangers}),
        "processes": {
            "before": before.processes,
            "idle_before": before.idle,
            "after": after.processes,
            "idle_after": after.idle,
        },
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
    return Text(template, moves=change_hands([predicted]), before=before, after=after)


def _changes(predictions: Predictions) -> list[str]:
    """The changes in words; one topic may not allow each of them."""
    longest = max((predicted.changes for _, predicted in predictions), key=len)
    others = (text for _, predicted in predictions for text in predicted.changes)
    return list(dict.fromkeys((*longest, *others)))


def _load(predictions: Predictions) -> dict[str, tuple[float | None, float | None]]:
    """Each client id's queues of all topics, before and after; None where it is not there."""
    no_retries = without_retries(predictions)
    before = _sums(predicted.before for _, predicted in no_retries)
    after = _sums(predicted.after for _, predicted in no_retries)
    return {
        shown_id(client_id): (before.get(client_id), after.get(client_id))
        for client_id in sorted(before | after)
    }


def _sums(of_topics: Iterable[Evaluation]) -> dict[str, float]:
    sums: dict[str, float] = defaultdict(float)
    for evaluation in of_topics:
        for client_id, queues in queues_by_client(evaluation.allocations).items():
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
                "client_ids": [shown_id(claimant.client_id) for claimant in finding.claimants],
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
