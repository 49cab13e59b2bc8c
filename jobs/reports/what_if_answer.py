"""The answer of a what-if in a few sentences: is it safe, what harm and what use, what to do.

It comes before everything else, and is as long for two thousand queues as for two.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import rebalance_core as core
from rebalance_core import Division, WhatIf
from rebalance_core.descriptions import ASSIGN_EACH_ONCE, taken_by
from rebalance_core.division import shown_id
from rebalance_core.english import (
    MOST_NAMES,
    agreeing,
    count,
    joined,
    list_of,
    queues_in_words,
)
from rebalance_core.findings import AUDITED, DUPLICATE, ORPHANED, QUEUES_CHOSEN, FindingKind
from rebalance_core.message_queue import MessageQueue, is_own_retry_topic
from rebalance_core.prediction import (
    BACKLOG_NOT_KNOWN,
    FINDINGS_AFTER,
    FINDINGS_BETWEEN,
    MESSAGES_LEFT,
    OWNERS_NOT_KNOWN,
    READERS_NOT_LISTED,
)
from rebalance_core.texts import Text
from rebalance_core.views import readable_by_some

from ..judge.moment import Moment
from .words import begin

#: The moment of each topic of a group, and the effect of the changes on it.
Predictions = Sequence[tuple[Moment, WhatIf]]

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
    of_topic = moment.state.topic
    words = [
        taken_by(kind, [MessageQueue(of_topic, *queue) for queue in sorted(queues)])
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
