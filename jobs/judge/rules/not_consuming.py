"""offsets, periods -> groups that have members and consume nothing of a topic.

For ``persistence_seconds`` (180 s) or longer messages wait and come, and no offset of the topic
moves; or no member subscribes to it for as long, and messages are left.

Of a stalled queue another one of the topic shows that the group works. Where no queue moves, only
time shows it: messages wait and come, and no offset moves. The whole group may be forbidden to
consume (``SubscriptionGroupConfig.consumeEnable`` false: each broker refuses every pull with
NO_PERMISSION, ``PullMessageProcessor`` 4.9.4), suspended, or hang, as on a database that is gone.
"""

from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain

import numpy as np

from rebalance_core.english import MOST_NAMES, agreeing, count, joined, list_of
from rebalance_core.findings import (
    NO_BROKER_ANSWERED,
    NO_READABLE_QUEUE,
    NOT_SUBSCRIBED,
    QUEUES_CHOSEN,
    SHARED_BY_BROKER,
    Evaluation,
)
from rebalance_core.texts import Text

from ...declared.dossier import Dossier
from ...declared.instants import SECOND, Instant
from ...declared.kinds import CRITICAL, GROUP_NOT_CONSUMING, WARNING
from ...schemas import NOT_CONSUMING, NOT_COUNTING, NOT_FINISHING
from ...texts.shown import shell_word
from ..observe.backlog import left_unread, shows_what_waits
from ..observe.brokers import refusals
from ..observe.holdings import Holding
from ..observe.in_words import between, clients_in_words, waiting_in_words, zoned_clock
from ..observe.situations import Period
from .case import Case
from .found import FaultEpisode, GroupFindings, QueueFinding, brokers_of
from .messages_again import gave_nothing
from .stalls import Flags, Longs, Polls, not_moving, orphans_by_topic, restart_who_miscounts, spans
from .why import MAY_BE_FILTERED, UPDATE_GO, left_out_by_filter

#: A flag that is false is named, but for dumps without the brokers' flags.
_LET_CONSUME = Text(
    "check whether the application suspended its consumers and, where the dump has no lines of "
    "subscription_group, whether the group may consume: with consumeEnable false each broker "
    "refuses every pull (mqadmin updateSubGroup -c CLUSTER -g GROUP -s true)"
)
_SEE_LISTENERS = Text(
    "take a thread dump of a client (jstack): its listener waits for something, such as a "
    "database, a lock or a call without a time-out; fix that, then restart the clients"
)
_SEE_CLIENTS = Text(
    "see in the log of a client, and of its proxy where it has one, whether it asks for messages "
    "and what it is answered, and whether its listener waits for something; then restart the "
    "clients"
)
_BRING_BACK = (
    "bring the masters of {brokers} back: slaves serve pulls from 5.0 on only with "
    "slaveReadEnable=true, and consumers in order lock their queues at the master alone"
)
_GO_BACK = Text(
    "go back to the release, or the kind of consumer, of the members before, or find out why the "
    "new ones get no messages"
)
_SUBSCRIBE = Text(
    "let the members subscribe to the topic again; if this was intended, stop its producers"
)


def not_consuming(case: Case, found: GroupFindings) -> GroupFindings:
    """One fault per topic and unbroken run of polls over which messages wait and no offset moves.

    Some of them wait in a queue that has an owner, and more come meanwhile: a group with nothing to
    do is well, and queues without an owner are orphans; where some queue keeps up, the others are
    stalled. It is as long as ``persistence_seconds``, for a message may take its time. So is a
    topic to which no member subscribes any more, as after a release without it, whether or not
    offsets of it still come.
    """
    orphans = orphans_by_topic(found)
    faults: list[FaultEpisode] = []
    for polls in not_moving(case):
        faults += _topic_faults(case, polls, orphans.get(polls.topic, ()))
    # A group that was stuck before it gave the topic up is so still.
    known = {fault.topic for fault in faults if fault.extent.ongoing}
    for topic, periods in case.situations.by_topic.items():
        if topic not in known:
            faults += _no_longer_subscribed(case, topic, periods)
    return found.plus(faults)


def _no_longer_subscribed(
    case: Case, topic: str, periods: Sequence[Period]
) -> Iterator[FaultEpisode]:
    """The fault of a topic to which no member subscribes any more, up to the end, where messages
    are left that were not on their way, or came up to then.

    A broker leaves such a topic out of the group's offsets (``getConsumeStats`` of
    ``AdminBrokerProcessor`` 4.9.4 and 5.3.3), so that the last ones are of before: what waits by
    them nobody reads.

    Worked example: pods are replaced from 10:04 to 10:07 by a release without U. By the offsets of
    10:06 there are 300 messages in two queues whose pods were the first; none come any more. Were
    all pods replaced at once, nothing would wait: that 800 came in the last minute is all it shows.

    ``cases/test_no_longer_subscribed`` has each exception.
    """
    verdicts = [case.evaluated[period.situation.situation_id].verdict for period in periods]
    start = len(periods) - 1
    while start >= 0 and verdicts[start].coverage == NO_BROKER_ANSWERED:
        start -= 1  # which shows nothing
    if start < 0 or verdicts[start].coverage != NOT_SUBSCRIBED:
        return
    given_up = start
    # While no process is listed, as in a restart, nobody subscribes again.
    while start and (verdicts[start].coverage == NOT_SUBSCRIBED or not verdicts[start].processes):
        given_up = start if verdicts[start].coverage == NOT_SUBSCRIBED else given_up
        start -= 1
    if not any(verdict.readers for verdict in verdicts[: start + 1]):
        return
    first_seen, last_seen = periods[given_up].first_seen, periods[-1].last_seen
    every = [offsets for offsets in case.dossier.offsets.get(topic, ()) if offsets.times.size]
    last_poll = max((int(offsets.times[-1]) for offsets in every), default=0)
    # What waited at one poll, or long before, may have been on its way. While pods are replaced a
    # broker gives offsets of the topic or not, by whose heartbeat came last.
    several = (offsets for offsets in every if offsets.times.size > 1)
    polls = [offsets for offsets in several if shows_what_waits(offsets, last_poll)]
    lasts = case.persistence_seconds * SECOND
    is_known = any(shows_what_waits(poll, first_seen) for poll in polls)
    if not is_known or last_poll >= first_seen + lasts:
        return
    # What the group's table showed counts for as long as a member may be silent.
    later = case.snapshots[bisect_right(case.snapshots, last_poll) :]
    first_seen = min(first_seen, *later[:1])
    queues = {(poll.broker_name, poll.queue_id) for poll in polls}
    waiting = sum(left.at_last for poll in polls if (left := left_unread(poll, None)))
    came = sum(int(step) for poll in polls for step in np.diff(poll.broker_offsets)[-1:])
    # A release that subscribes to a topic and is taken back soon leaves it as it was.
    first_poll = min(int(poll.times[0]) for poll in polls)
    was_taken_back = last_poll - first_poll < lasts and first_poll - case.snapshots[0] > case.expiry
    extent = case.extent(first_seen, last_seen, ongoing=True)
    if not extent.lasts or not (waiting or (came > 0 and not was_taken_back)):
        return
    shown = Text("by its last offsets, {waiting}", waiting=waiting_in_words(waiting))
    if not waiting:
        template = (
            "{messages:,} [message|messages] came to it between the last two polls of its offsets"
        )
        shown = agreeing(came, template, messages=came)
    evidence = Text(
        "no member has subscribed to the topic since {time}; {shown}, and brokers give none "
        "for a topic without a subscription",
        time=zoned_clock(first_seen),
        shown=shown,
    )
    fault = FaultEpisode(topic, extent, GROUP_NOT_CONSUMING, evidence, _SUBSCRIBE)
    yield fault.about(queues, unread_messages=waiting)


def _topic_faults(
    case: Case, polls: Polls, orphans: Sequence[QueueFinding]
) -> Iterator[FaultEpisode]:
    verdicts = case.verdicts_at(polls.topic, polls.times)
    has_members = [verdict is not None and _should_read(verdict) for verdict in verdicts]
    waits = polls.unmoved & ~polls.orphaned(orphans) & has_members
    shown = (waits & ~polls.hidden(case)).any(axis=0)
    asked = np.flatnonzero(polls.paired.any(axis=0))
    is_stuck = waits.any(axis=0) & ~_may_move(polls) & ~polls.any_keeps_up
    for start, end in spans(is_stuck[asked]):
        verdict = verdicts[asked[end - 1]]
        if verdict is not None and shown[asked[start:end]].any():
            yield from _fault(case, polls, asked[start:end], verdict)


def _should_read(verdict: Evaluation) -> bool:
    """True if members are listed that should move the topic's offsets, whether or not anybody knows
    which of them has which queue; or that no longer subscribe to it.

    Who broadcasts keeps its offsets itself (``cases/test_shared_by_broker``); a queue that no
    broker lets anybody read is UNREADABLE (``PullMessageProcessor`` 4.9.4 refuses each pull of a
    topic without PERM_READ).
    """
    if verdict.coverage == NOT_SUBSCRIBED:
        return verdict.processes > 0
    return verdict.readers > 0 and verdict.coverage != NO_READABLE_QUEUE


def _may_move(polls: Polls) -> Flags:
    """True for each poll since whose predecessor an offset of the topic may have moved.

    A queue that was missing from some polls may have moved at each of them, unless messages wait in
    it before and after and it is where it was: a master that comes back has offsets of long ago.
    Nobody knows what a queue does that is not polled any more (``judge/test_not_consuming``).
    """
    edges = np.zeros(len(polls.times) + 1, np.int64)
    rows, ends = np.nonzero(polls.paired & ~polls.unmoved)
    np.add.at(edges, polls.before[rows, ends] + 1, 1)
    np.add.at(edges, ends + (polls.step[rows, ends] != 0), -1)
    last = len(polls.times) - 1 - np.argmax(polls.present[:, ::-1], axis=1)
    np.add.at(edges, last + 1, 1)
    return np.asarray(np.cumsum(edges)[:-1] > 0)


def _fault(case: Case, polls: Polls, columns: Longs, verdict: Evaluation) -> Iterator[FaultEpisode]:
    """``verdict``: on the topic at the last of the columns."""
    last = int(columns[-1])
    rows = np.flatnonzero(polls.paired[:, columns].any(axis=1))
    first = int(polls.before[:, columns[0]][polls.unmoved[:, columns[0]]].min())
    extent = polls.extent(case, first, last, len(columns) + 1)
    waiting, before = (_waiting(polls, rows, column) for column in (last, first))
    if not extent.lasts:
        return
    stuck = {polls.queues[row][0] for row in np.flatnonzero(polls.unmoved[:, columns].any(axis=1))}
    away = case.absences_in(extent)
    is_away = stuck <= {absence.broker_name for absence in away}
    # Nothing comes to a broker without a master (``cases/test_offsets_and_masters``).
    if waiting <= before and not is_away:
        return
    queues_polled = case.dossier.offsets[polls.topic]
    if verdict.coverage == QUEUES_CHOSEN and not gave_nothing(queues_polled, extent):
        # Who chooses its queues may keep its offsets elsewhere: a pull names the one that it is
        # from (``DefaultMQPullConsumer.pull`` 4.9.4 to 5.3.3; ``cases/test_held_alone``).
        return
    what = Text(
        "the group has members, and none of its offsets moved {time}; {waiting}, {growth:,} more "
        "than at the start",
        time=between(extent.first_seen, extent.last_seen),
        waiting=waiting_in_words(waiting),
        growth=waiting - before,
    )
    queues = [polls.queues[row] for row in rows.tolist()]
    broker_names = brokers_of(queues)
    is_popped, at_most = verdict.coverage == SHARED_BY_BROKER, CRITICAL
    if is_away:
        evidence = [absence.what for absence in away if absence.broker_name in stuck]
        remedies = [Text(_BRING_BACK, brokers=list_of(sorted(stuck), MOST_NAMES))]
    elif verdict.coverage == NOT_SUBSCRIBED:
        evidence, remedies = [Text("no member subscribes to the topic any more")], [_SUBSCRIBE]
    else:
        # Reading that showed at neither of the last two polls is over.
        still = polls.times[columns[-2]] if len(columns) > 1 else extent.first_seen
        reported = (one for one in case.holdings[polls.topic].holdings if not one.process.is_log)
        answers = [holding for holding in reported if extent.overlaps(holding)]
        every = refusals(case.dossier, extent)
        refused = {name: every[name] for name in broker_names if name in every}
        refuse = {name for name, times in refused.items() if times[-1] >= still} >= {*broker_names}
        evidence, remedies = _why(answers, case.dossier.languages, is_popped, refuse)
        if refused:
            evidence.insert(0, _refused(refused))
            remedies.insert(0, _enable(case.dossier, polls.topic, refused))
        if came := _newcomers(case, polls, int(columns[0])):
            evidence.append(came)
            remedies.insert(0, _GO_BACK)
        if is_popped and verdict.is_filtered and _SEE_LISTENERS not in remedies:
            at_most = WARNING
            evidence.append(MAY_BE_FILTERED)
        if left_out := left_out_by_filter(case, polls.topic, (), extent, answers):
            at_most = left_out.at_most
            evidence = [left_out.what]
            remedies = [UPDATE_GO, *(remedies if at_most == WARNING else ())]
    said, remedy = joined([what, *evidence]), joined(remedies)
    fault = FaultEpisode(polls.topic, extent, GROUP_NOT_CONSUMING, said, remedy)
    yield fault.about(queues, at_most=at_most)


def _waiting(polls: Polls, rows: Longs, column: int) -> int:
    """The messages that wait at a poll, each queue as it was last polled by then."""
    latest = np.where(polls.present[rows, column], column, polls.before[rows, column])
    return int(polls.backlog[rows, latest].sum())


def _why(
    answers: Sequence[Holding], languages: Mapping[str, str], is_popped: bool, all_refuse: bool
) -> tuple[list[Text], list[Text]]:
    """Evidence and remedies: running infos show whether the clients have messages at all, but for
    those that they get by POP (``is_popped``). The brokers' flags explain it where all brokers of
    the queues refuse until its end (``all_refuse``).
    """
    evidence: list[Text] = []
    remedies: list[Text] = []
    answered = {answer.process.client_id for answer in answers}
    miscount, blocked, unfinished = (
        {answer.process.client_id for answer in answers if activity in answer.activities.values()}
        for activity in (NOT_COUNTING, NOT_CONSUMING, NOT_FINISHING)
    )
    if miscount:
        template = (
            "{clients} [counts|count] cached messages, up to the limit, and [has|have] none, "
            "so that [it pulls|they pull] no more until a restart"
        )
        clients = clients_in_words(miscount, languages)
        evidence.append(agreeing(len(miscount), template, clients=clients))
        remedies.append(restart_who_miscounts(miscount))
    if hang := blocked or unfinished:
        template = "{clients} [does|do] not finish the first message of [its cache|their caches]"
        if blocked:
            template = (
                "{clients} [has messages in its cache and consumes|have messages in their caches "
                "and consume] none of them"
            )
        evidence.append(agreeing(len(hang), template, clients=clients_in_words(hang, {})))
        remedies.append(_SEE_LISTENERS)
    elif answered and not is_popped and not miscount:
        template = (
            "{clients} answered, and no client has a message waiting for its listener: the "
            "brokers give them none"
        )
        evidence.append(Text(template, clients=count(len(answered), "client")))
    if not (hang or miscount or all_refuse):
        look = _SEE_CLIENTS if is_popped else _SEE_LISTENERS
        remedies += [_LET_CONSUME] if answered and not is_popped else [_LET_CONSUME, look]
    return evidence, remedies


def _newcomers(case: Case, polls: Polls, column: int) -> Text | None:
    """The members, where all came as the offsets stopped to move, which is at the poll; None: some
    were there before, or nobody was that consumed (clients#1168).

    Worked example: until 10:02 one member reads, from 10:03 on another one is listed, and no offset
    has moved since 10:02.
    """
    moves = np.flatnonzero((polls.paired & (polls.step > 0))[:, :column].any(axis=0))
    if not len(moves):
        return None
    last_move, at = polls.times[[moves[-1], column]].tolist()
    lists = case.members_in_time
    before = set[str]().union(*(one.client_ids for one in lists if one.first_seen <= last_move))
    now = next((list_ for list_ in reversed(lists) if list_.first_seen <= at), None)
    if now is None or not (before and now.client_ids) or now.client_ids & before:
        return None
    template = (
        "{clients} [is the only member|are all its members], listed since {time}: other members "
        "consumed before"
    )
    clients = clients_in_words(now.client_ids, case.dossier.languages)
    return agreeing(
        len(now.client_ids), template, clients=clients, time=zoned_clock(now.first_seen)
    )


def _refused(refused: Mapping[str, Sequence[Instant]]) -> Text:
    return agreeing(
        len(refused),
        "consumeEnable of the subscription group was false at {brokers} {time}: [the broker "
        "refuses|the brokers refuse] every pull of the group",
        brokers=list_of(refused, MOST_NAMES),
        time=between(min(chain(*refused.values())), max(chain(*refused.values()))),
    )


def _enable(dossier: Dossier, topic: str, names: Collection[str]) -> Text:
    """The command that lets the group consume: at the only broker that refuses, where its address
    is known, else at all masters of the cluster (``UpdateSubGroupSubCommand`` 4.9.4)."""
    masters = [run for run in dossier.polls if run.broker[0] in names and not run.broker[1]]
    routes = dossier.routes.get(topic)
    address = max(masters, key=lambda run: run.times[-1]).broker_addr if masters else None
    where = f"-c {shell_word(dossier.cluster)}"
    if len(names) == 1 and address is not None:
        where = f"-b {shell_word(address)}"
    namesrv = max(routes, key=lambda run: run.times[-1]).namesrv_addr if routes else "NAMESRV_ADDR"
    return Text(
        "let the group consume again: mqadmin updateSubGroup -n {namesrv} {where} -g {group} "
        "-s true, and with it all options of the group that are not mqadmin's defaults, because "
        "it sets them all",
        namesrv=shell_word(namesrv),
        where=where,
        group=shell_word(dossier.consumer_group),
    )
