"""Text and JSON of a what-if: of one topic, or of every topic of a group.

``templates/what_if.txt`` has how it is laid out; what comes first is the answer, as long for two
thousand queues as for two.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import rebalance_core as core
from rebalance_core import Division, Evaluation, MessageQueue, WhatIf
from rebalance_core.descriptions import ASSIGN_EACH_ONCE, taken_by
from rebalance_core.division import queues_by_client, shown_id
from rebalance_core.english import MOST_NAMES, agreeing, count, joined, list_of, queues_in_words
from rebalance_core.findings import AUDITED, DUPLICATE, ORPHANED, QUEUES_CHOSEN, FindingKind
from rebalance_core.message_queue import is_own_retry_topic
from rebalance_core.prediction import (
    BACKLOG_NOT_KNOWN,
    FINDINGS_AFTER,
    FINDINGS_BETWEEN,
    MESSAGES_LEFT,
    OWNERS_NOT_KNOWN,
    READERS_NOT_LISTED,
    StateBetween,
    Ways,
)
from rebalance_core.texts import Text
from rebalance_core.views import readable_by_some

from ..judge.moment import Moment
from ..languages.language import Language
from .picture import draw
from .situation_text import size_and_wrong, wrong_in_words
from .text_templates import Reader, clock
from .words import begin

#: The moment of each topic of a group, and the effect of the changes on it.
Predictions = Sequence[tuple[Moment, WhatIf]]


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


def _sums(evaluations: Iterable[Evaluation]) -> dict[str, float]:
    sums: dict[str, float] = defaultdict(float)
    for evaluation in evaluations:
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


#: Dangers that nothing shows, and nothing rules out.
_DOUBTS = frozenset({BACKLOG_NOT_KNOWN, OWNERS_NOT_KNOWN, READERS_NOT_LISTED})
_REPAIRS = {
    FINDINGS_BETWEEN: Text("make all steps at one time: stop what changes, and start it together"),
    MESSAGES_LEFT: Text(
        "let nobody write to the queues that go (lower the number of write queues alone, or "
        "wipeWritePerm of the broker), wait until they are empty, and then take them away"
    ),
    BACKLOG_NOT_KNOWN: Text(
        "look at mqadmin consumerProgress, or collect consume_stats: messages may lie in the "
        "queues that go"
    ),
    OWNERS_NOT_KNOWN: Text("mend that first, and ask again"),
    READERS_NOT_LISTED: Text("find out first who reads it: rebalance-audit explain"),
}


def answer(predictions: Predictions) -> Iterator[Text]:
    """The sentences of the answer, the verdict first."""
    changed = [predicted for _, predicted in predictions if predicted.steps]
    unsafe = [(moment, predicted) for moment, predicted in predictions if not predicted.safe]
    use = _use(predictions)
    if not changed and all(what_if.before.coverage == QUEUES_CHOSEN for _, what_if in predictions):
        yield Text(
            "Nothing is computed: all members take their queues by assign(), and RocketMQ divides "
            "none among them."
        )
        for moment, _ in without_retries(predictions):
            yield from _held_now(moment)
        yield Text("To do: {repairs}.", repairs=ASSIGN_EACH_ONCE)
    elif not changed:
        yield Text("Nothing changes: it is already so at this time (--at asks about another one).")
    elif unsafe:
        moment, worst = max(unsafe, key=_badness)
        template = "NOT safe{where}: {harm}."
        if _DOUBTS.issuperset(worst.dangers):
            template = "NOT safe as far as the dumps show{where}: {harm}."
        where = Text(
            " for {topics} of {all:,}, {topic} above all",
            topics=count(len(unsafe), "topic"),
            all=len(predictions),
            topic=moment.state.topic,
        )
        harm = joined(_harm(worst, danger) for danger in worst.dangers)
        yield Text(template, where=where if len(predictions) > 1 else "", harm=harm)
        if use:
            yield Text("{sentence}.", sentence=begin(use))
        repairs = (_repair(worst, danger) for danger in worst.dangers)
        yield Text("To do: {repairs}.", repairs=joined(repair for repair in repairs if repair))
    elif not any(
        AUDITED in (what_if.before.coverage, what_if.after.coverage) for what_if in changed
    ):
        yield Text(
            "Safe: its queues are not divided by the clients ({coverage}).",
            coverage=changed[0].before.coverage,
        )
    else:
        is_sure = all(what_if.rollout.exhaustive for what_if in changed)
        safe = Text("Safe") if is_sure else Text("No harm was found")
        yield Text("{safe}, and {use}.", safe=safe, use=use) if use else Text("{safe}.", safe=safe)
    if any(what_if.is_as_held for what_if in changed):
        yield Text("Before it is what the members hold, as their last running infos say.")
    shown = [predicted for _, predicted in without_retries(predictions) if predicted.steps]
    if any(what_if.comparable for what_if in shown):
        yield _moving(shown)


def _held_now(moment: Moment) -> Iterator[Text]:
    """Sentences: each process with the queues of the topic in its last running info, and those
    that are wrong.
    """
    for last_report in moment.held[:MOST_NAMES]:
        queues = queues_in_words(last_report.queues) if last_report.queues else Text("no queue")
        template = "{client_id} has {queues} of {topic}."
        client_id = shown_id(last_report.client_id)
        yield Text(template, client_id=client_id, queues=queues, topic=moment.state.topic)
    if more := len(moment.held[MOST_NAMES:]):
        yield Text("and {number:,} more", number=more)
    holders = Counter(queue for last_report in moment.held for queue in last_report.queues)
    wrong = {DUPLICATE: {queue for queue, number in holders.items() if number > 1}}
    if moment.held_by_all:
        every = readable_by_some(moment.state)
        wrong[ORPHANED] = {(each.broker_name, each.queue_id) for each in every} - holders.keys()
    topic = moment.state.topic
    words = [
        taken_by(kind, [MessageQueue(topic, *queue) for queue in sorted(queues)])
        for kind, queues in wrong.items()
        if queues
    ]
    if words:
        yield Text("{sentence}.", sentence=begin(joined(words)))


def change_hands(predictions: Sequence[WhatIf]) -> Text:
    """The number of queues of these topics that change hands."""
    queues = sum(
        len(prediction.before.seen_queues | prediction.after.seen_queues)
        for prediction in predictions
    )
    moved = sum(len(prediction.moves) for prediction in predictions)
    return Text("{moved:,} of {queues} change hands", moved=moved, queues=count(queues, "queue"))


def without_retries(predictions: Predictions) -> Predictions:
    """The topics but the group's own retry topic, where there are others."""
    return [
        (moment, predicted)
        for moment, predicted in predictions
        if not is_own_retry_topic(moment.state.topic, moment.state.consumer_group)
    ] or predictions


def new_faults(predicted: WhatIf) -> tuple[core.Fault, ...]:
    """The faults behind the findings after all is done."""
    if not predicted.new_findings:
        return ()
    return _faults(predicted.situation_after, predicted.after)


def _faults(situation: core.Situation, evaluation: core.Evaluation) -> tuple[core.Fault, ...]:
    return core.find_faults(situation, evaluation, core.find_causes(situation, evaluation))


def _moving(changed: Sequence[WhatIf]) -> Text:
    """The queues that move, and those that may be wrong while clients find out."""
    if not any(what_if.moves for what_if in changed):
        return Text("No queue moves.")
    wrong = sum(
        what_if.settling.worst.queues_wrong for what_if in changed if what_if.settling.worst
    )
    if not wrong:
        return Text("{moves}.", moves=change_hands(changed))
    return Text(
        "{moves}; until every client knows, for up to {seconds} s, up to {queues} may be taken by "
        "both or by nobody.",
        moves=change_hands(changed),
        seconds=max(what_if.seconds for what_if in changed),
        queues=count(wrong, "queue"),
    )


# ------------------------------------------------------------------ harm, and what to do


def _badness(unsafe: tuple[Moment, WhatIf]) -> tuple[int, ...]:
    _, predicted = unsafe
    left, doubts = sum(predicted.messages_left.values()), _DOUBTS.issuperset(predicted.dangers)
    return not doubts, left, len(predicted.new_findings), predicted.rollout.harmed


def _harm(predicted: WhatIf, danger: str) -> str:
    if danger == FINDINGS_BETWEEN:
        return Text(
            "{harmed:,} of {states:,} states between the steps, in which a rollout may stay, have "
            "new duplicates or orphans",
            harmed=predicted.rollout.harmed,
            states=predicted.rollout.looked_at,
        )
    if danger == FINDINGS_AFTER:
        return agreeing(
            len(predicted.new_findings),
            "{queues} [is|are] new when all is done",
            queues=_by_kind(Counter(kind for kind, _ in predicted.new_findings)),
        )
    if danger == MESSAGES_LEFT:
        left = predicted.messages_left
        return agreeing(
            len(left),
            "{queues} with {messages} that the group has not consumed [goes|go], and nobody reads "
            "what is in [it|them] until [it is|they are] back",
            messages=count(sum(left.values()), "message"),
            queues=count(len(left), "queue"),
        )
    if danger == BACKLOG_NOT_KNOWN:
        unseen = [
            queue for queue in predicted.queues_gone if queue not in (predicted.backlog or {})
        ]
        return agreeing(
            len(unseen),
            "{queues} [goes|go] of which there are no offsets of the group",
            queues=count(len(unseen), "queue"),
        )
    if danger == READERS_NOT_LISTED:
        return Text(
            "somebody whom no broker lists reads this topic, and the lists, from which this is "
            "computed, do not show their share"
        )
    sides = (predicted.before, predicted.after)
    return Text(
        "who owns which queue cannot be computed before and after: {reason}",
        reason=next((side.reason for side in sides if side.coverage != AUDITED), ""),
    )


def _repair(predicted: WhatIf, danger: str) -> str:
    if danger == FINDINGS_AFTER:
        return next((fault.remedy for fault in new_faults(predicted)), "")
    return _REPAIRS[danger]


def _by_kind(numbers: Mapping[FindingKind, int]) -> str:
    duplicate = count(numbers[DUPLICATE], "duplicate queue")
    orphaned = count(numbers[ORPHANED], "orphaned queue")
    both = ((DUPLICATE, duplicate), (ORPHANED, orphaned))
    return list_of(words for kind, words in both if numbers[kind])


# ------------------------------------------------------------------ use


def _use(predictions: Predictions) -> Text | None:
    """The use of the changes: what they cure, or how many processes more or fewer have queues.

    None where owners are not known before and after, or there are new findings: a second reader of
    a queue is of no use.
    """
    known = [what_if for _, what_if in without_retries(predictions) if what_if.comparable]
    if not known or any(what_if.new_findings or what_if.is_read_unlisted for what_if in known):
        return None
    before = core.divide(what_if.before for what_if in known)
    after = core.divide(what_if.after for what_if in known)
    gone = Counter(kind for what_if in known for kind, _ in what_if.findings_gone)
    if gone:
        template = "of use: {cured} then [has|have] one owner; {division}"
        cured, number = _by_kind(gone), sum(gone.values())
        return agreeing(number, template, cured=cured, division=_division(before, after))
    gain, more = after.working - before.working, after.processes - before.processes
    takes_away = more < 0 or (more == 0 and after.queues < before.queues)
    division = _division(before, after)
    if gain < 0:
        template = "{number:,} fewer [process has|processes have] queues: {division}"
        return agreeing(-gain, template, number=-gain, division=division)
    if takes_away and not gain:
        return Text("no fewer processes have queues: {division}", division=division)
    if gain < more:
        template = "of use to {gain:,} of {more:,} more processes: {division}"
        some = Text(template, gain=gain, more=more, division=division)
        return some if gain else Text("of no use: {division}", division=division)
    if gain:
        template = "of use to {number:,} more [process|processes]: {division}"
        return agreeing(gain, template, number=gain, division=division)
    fullest = after.most * before.queues - before.most * after.queues
    if fullest:
        template = "of use, more even: {division}" if fullest < 0 else "less even: {division}"
        return Text(template, division=division)
    if mended := [fault for what_if in known for fault in _mended(what_if)]:
        template = "of use: {faults} [is|are] mended; {division}"
        faults = list_of(dict.fromkeys(mended))
        return agreeing(len(set(mended)), template, faults=faults, division=division)
    return Text("of no use by itself: {division}", division=division)


def _mended(predicted: WhatIf) -> Iterator[str]:
    """The faults that cost no queue as long as the members are so many, and are gone then."""
    if predicted.steps:
        after = {fault.fault for fault in _faults(predicted.situation_after, predicted.after)}
        before = _faults(predicted.situation, predicted.before)
        yield from (fault.fault for fault in before if fault.fault not in after)


def _division(before: Division, after: Division) -> Text:
    queues = count(after.queues, "queue")
    if after.idle:
        return agreeing(
            after.processes,
            "{queues}, {idle:,} of {processes:,} [process|processes] will be idle",
            queues=queues,
            idle=after.idle,
            processes=after.processes,
        )
    if after.most == before.most:
        return Text(
            "{queues}, at most {most:,} a process, as before", queues=queues, most=after.most
        )
    return Text(
        "{queues}, at most {most:,} a process, {before:,} before",
        queues=queues,
        most=after.most,
        before=before.most,
    )
