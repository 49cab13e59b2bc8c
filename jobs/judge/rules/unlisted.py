"""orphaned queues, offsets -> those that somebody reads all the same, whom no list shows.

Lists and routes may show no owner while somebody reads the queue: heartbeats do not get through and
the client goes on with what it had, or the members are behind a proxy. The offsets decide: of a
queue that moves twice or more, and in at least half of the times between polls, somebody reads
(``ReadIntervals.is_read``).
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np

from rebalance_core.causes import GROUP_OFFLINE
from rebalance_core.english import MOST_NAMES, agreeing, list_of
from rebalance_core.findings import CERTAIN, DUPLICATE, ORPHANED, POSSIBLE
from rebalance_core.grouping import grouped
from rebalance_core.repairs import (
    DUPLICATE_CLIENT_ID,
    GROUP_NOT_ON_BROKER,
    MASTER_AWAY,
    ROUTE_DIVERGENCE,
    STRATEGY_MISMATCH,
    SUBSCRIPTION_MISMATCH,
)
from rebalance_core.texts import Text

from ...declared.kinds import UNLISTED_CONSUMER
from ..observe.backlog import READ_AGAIN, last_up_to, reading, shows_what_waits
from ..observe.holdings_index import Drift
from ..observe.in_words import between, queues_in_words, zoned_clock
from ..times import widest
from .case import Case
from .episodes import not_refuted, queue_episodes, witnessed
from .found import FaultEpisode, GroupFindings, QueueFinding, brokers_of
from .stalls import spans

#: The causes of orphans on brokers that list no member of the group.
_NOBODY_LISTED = frozenset({GROUP_OFFLINE, GROUP_NOT_ON_BROKER})

_REMEDY = Text(
    "check whether the members consume through a proxy, which alone lists them: then there is "
    "nothing to repair. If not, find out why their heartbeats do not arrive (the broker's log, "
    "a firewall, authentication): a client that starts now gets no queue"
)

_FIND_READER = Text(
    "find who reads these queues, and end it: a process that left the brokers' lists and goes on "
    "(of a group that consumes in order, a broker's lock.log names who has the lock), a client of "
    "a proxy, or a program that pulls by itself"
)

_BY_ASSUMPTION = Text(
    "nobody saw the members' strategy, so that AVG is assumed where the settings name none; by "
    "AVG_BY_CIRCLE some of the queues would be others: running infos show which"
)

#: Causes by which a member has its queues for as long as nothing changes: the nameserver that it
#: stays with, its subscriptions, its strategy. By lists that differ its share changes at each draw.
_LASTING_DOUBTS = frozenset(
    {ROUTE_DIVERGENCE, SUBSCRIPTION_MISMATCH, STRATEGY_MISMATCH, DUPLICATE_CLIENT_ID}
)

_NOT_SO_HELD = Text("but all processes answered, and what they hold shows none of this")

_ONE_ROUTE = Text(
    "but the offsets of all these queues advance at each poll: no client has the shorter route"
)


def queues_of_states(case: Case, found: GroupFindings) -> GroupFindings:
    """The orphaned and duplicate queues that single states show, as far as no offset refutes them,
    and the faults UNLISTED_CONSUMER of those that are refuted.
    """
    seconds, orderly = case.persistence_seconds, bool(case.dossier.consumes_in_order)
    episodes = (one for of in case.timelines.values() for one in queue_episodes(of, seconds))
    every = [witnessed(case, _as_far_as_asked(case, episode)) for episode in episodes]
    parts = [(finding, not_refuted(case, finding)) for finding in every]
    judged = [one for _, held in parts for part in held for one in _parts(case, part)]
    kept, unheld = without_refuted(judged), [finding for finding, held in parts if not held]
    # Who waits for the lock does not read the queue (``orderly_mixed``).
    locked = [finding for finding in kept if orderly and finding.is_locked]
    kept = [finding for finding in kept if not (orderly and finding.is_locked)]
    harmless = [fault for fault in found.faults if _is_harmless_route(case, fault, kept)]

    def is_refuted(finding: QueueFinding) -> bool:
        is_of_route = finding.causes == (ROUTE_DIVERGENCE,) and any(
            _names_any(fault, [finding]) for fault in harmless
        )
        return is_of_route or _is_somebodys(case, finding)

    refuted = [*unheld, *locked, *filter(is_refuted, kept)]
    kept = [finding for finding in kept if not is_refuted(finding)]
    assumed = [finding for finding in kept if _is_assumed(finding)]
    moving = [finding for finding in every if _is_read_unlisted(case, finding)]

    def narrowed(fault: FaultEpisode) -> FaultEpisode:
        """The fault as far as its findings were refuted, with what shows it."""
        said = [_ONE_ROUTE] if fault in harmless else []
        # Without a queue where all findings that name it were refuted.
        if _names_any(fault, refuted) and not _names_any(fault, kept):
            fault = replace(fault, queues_affected=0)
        if not fault.queues_affected and _names_any(fault, unheld):
            said.append(_NOT_SO_HELD)
        fault = _offline_narrowed(fault.saying(said), moving, kept)
        return fault.saying([_BY_ASSUMPTION]) if _names_any(fault, assumed) else fault

    queues = [replace(one, certainty=POSSIBLE) if _is_assumed(one) else one for one in kept]
    return found.with_faults(narrowed).plus(unlisted_consumers(judged), queues)


def _is_assumed(finding: QueueFinding) -> bool:
    """True if a strategy that nobody saw decides it, and nothing shows that it is so.

    Something is wrong all the same, and as bad: by another strategy in another queue
    (``cases/test_assumed``).
    """
    return finding.is_assumed and True not in (finding.held, finding.moved)


def _names_any(fault: FaultEpisode, findings: Iterable[QueueFinding]) -> bool:
    """True if it is the cause of one of them, at its time."""
    return any(
        fault.fault in finding.causes and finding.topic == fault.topic and finding.overlaps(fault)
        for finding in findings
    )


def _is_somebodys(case: Case, orphan: QueueFinding) -> bool:
    """True if it is only in doubt who has a queue, not when, and its offset advances at each poll.

    Worked example: the group's table shows that half of the members subscribe to T, and not which.
    Each queue is nobody's with a probability of 0.5, all the time: of those that are read
    throughout it is known now (``cases/test_table_of_the_group``).
    """
    is_lasting = bool(orphan.causes) and _LASTING_DOUBTS.issuperset(orphan.causes)
    is_read = _is_read_to_its_end(case, orphan)
    return is_read and is_lasting and _as_far_as_asked(case, orphan) is orphan


def _is_read_to_its_end(case: Case, orphan: QueueFinding) -> bool:
    """True if the queue's offset advances at each poll, and polls come until the finding ends."""
    offsets = case.offsets.get((orphan.topic, *orphan.queue))
    is_read = orphan.is_read_throughout and orphan.moved is False
    return is_read and offsets is not None and shows_what_waits(offsets, orphan.last_seen)


def _is_harmless_route(case: Case, fault: FaultEpisode, findings: Sequence[QueueFinding]) -> bool:
    """True if the offsets of each queue that may have no owner, as nameservers give different
    routes, advance at each poll: then all clients have the longest of the routes, and no queue two
    owners.

    A client stays with one nameserver (``NettyRemotingClient`` 4.2.0 to 5.3.3), so that a queue has
    an owner all the time or never; and a shorter route gives no client more queues than a longer.
    ``cases/test_one_nameserver_lags`` has it; where it is not so see ``nameservers_differ``.

    Worked example: T grows from 8 to 12 queues at one of two nameservers. Were a client with the
    other, some of its 12 queues would not move; all 6 that may be without an owner are read.
    """
    # Where a list lacks clients of the shorter route, somebody has it.
    if fault.fault != ROUTE_DIVERGENCE or fault.client_ids:
        return False
    theirs = [finding for finding in findings if _names_any(fault, [finding])]
    if any(finding.kind == DUPLICATE and finding.held for finding in theirs):
        return False  # running infos show two that hold it
    orphans = [finding for finding in theirs if finding.kind == ORPHANED]
    return bool(orphans) and all(_is_read_to_its_end(case, orphan) for orphan in orphans)


def _as_far_as_asked(case: Case, finding: QueueFinding) -> QueueFinding:
    """A client may ask a broker whose list nobody knows: then nothing is so under every view
    (``cases/test_never_asked``).
    """
    routes, cluster = case.dossier.routes.get(finding.topic, ()), case.dossier.cluster
    brokers = chain.from_iterable(run.brokers for run in routes)
    names = {(cluster, broker.broker_name) for broker in brokers if broker.has_address}
    never = len(names & case.terms.never_asked) / max(len(names), 1)
    if not never:
        return finding
    probability = finding.probability * (1 - never)
    return replace(finding, certainty=POSSIBLE, probability=probability, is_mostly_certain=False)


def _is_read_unlisted(case: Case, orphan: QueueFinding) -> bool:
    """True if the offset of a queue for which a broker lists nobody at all moves again and again.

    An episode that has gaps may be read in these.
    """
    offsets = case.offsets.get((orphan.topic, *orphan.queue))
    return _is_unlisted(orphan) and reading(offsets, orphan.unbroken_times).moved >= READ_AGAIN


def _parts(case: Case, orphan: QueueFinding) -> Iterable[QueueFinding]:
    """The times in which nobody reads a queue that somebody reads whom no list shows.

    While its offset moves it has a reader; while messages wait in it and it does not, for longer
    than a message takes, it has none (rocketmq#10827). All else is as it is.

    Worked example: no broker lists a member from 10:00 on, and all queues move but for one, which
    moves up to 10:05: it is an orphan since then.
    """
    if not _is_read_unlisted(case, orphan):
        return [orphan]
    polls = case.offsets[(orphan.topic, *orphan.queue)]
    start = np.searchsorted(polls.times, orphan.first_seen)
    end = last_up_to(polls, orphan.last_seen)
    times, unmoved = polls.times[start : end + 1], polls.unmoved[start:end]
    parts: list[QueueFinding] = []
    for first, last in spans(unmoved):
        is_open = orphan.extent.ongoing and last == len(times) - 1
        begins, ends = int(times[first]), int(times[last])
        extent = case.extent(begins, ends, last - first + 1, ongoing=is_open)
        if extent.lasts:
            parts.append(witnessed(case, replace(orphan, extent=extent, times=())))
    return parts or [replace(orphan, moved=False)]


def _offline_narrowed(
    fault: FaultEpisode, moving: Sequence[QueueFinding], kept: Sequence[QueueFinding]
) -> FaultEpisode:
    """GROUP_OFFLINE of a group that has readers in no list: it is about the queues that nobody
    reads. Where all are read it is what the lists say, and harms nothing (client-cpp#318;
    ``cases/test_behind_a_proxy``).
    """
    if fault.fault != GROUP_OFFLINE or not any(map(fault.overlaps, moving)):
        return fault
    left = [finding for finding in kept if _names_any(fault, [finding])]
    if not left:
        return fault
    queues = {finding.queue for finding in left}
    extent = widest([finding.extent for finding in left])
    evidence = agreeing(
        len(queues),
        "no broker lists a member of the group, yet its offsets moved; since {time} messages "
        "wait in {queues}, and [its offset does|their offsets do] not move: nobody reads "
        "[it|them]",
        time=zoned_clock(extent.first_seen),
        queues=queues_in_words(queues),
    )
    remedy = Text(
        "ask the proxy, or whatever else lists the members, who should read these queues, and "
        "check whether it reaches {these_brokers}; if the members are gone, start them",
        these_brokers=list_of(brokers_of(queues), MOST_NAMES),
    )
    return fault.about(queues, extent=extent, evidence=evidence, remedy=remedy)


def without_refuted(episodes: Sequence[QueueFinding]) -> list[QueueFinding]:
    """Leaves out the orphans whose offsets move again and again.

    One that has an owner at times is read at times, which refutes nothing. Where the lists know no
    member at all and somebody reads the group's queues, those in which nothing waits and nothing
    comes are not evidence, and not orphans either: the retry topic's, as a rule (client-cpp#318).
    Without a master nothing can come: producers send to masters alone, and a slave takes nothing
    (``MQClientInstance.topicRouteData2TopicPublishInfo`` 4.2.0 to 5.3.3). Who holds a queue of it
    in order keeps it in its table (``ProcessQueue.isLockExpired`` keeps it from consuming alone),
    so that where nothing waits nobody lost it (``cases/test_offsets_and_masters``).
    """
    offline = [one for one in episodes if _is_read(one) and GROUP_OFFLINE in one.causes]

    def is_idle(episode: QueueFinding) -> bool:
        is_offline = GROUP_OFFLINE in episode.causes and any(map(episode.overlaps, offline))
        is_caught_up = episode.causes == (MASTER_AWAY,) and episode.left.messages == 0
        return is_caught_up or (is_offline and not episode.left.messages)

    return [episode for episode in episodes if not (_is_read(episode) or is_idle(episode))]


def _is_read(episode: QueueFinding) -> bool:
    return (episode.kind, episode.certainty, episode.moved) == (ORPHANED, CERTAIN, False)


def _is_unlisted(episode: QueueFinding) -> bool:
    """True if it is an orphan because a broker lists nobody at all. Else its reader may be listed:
    a member that chooses its queues itself, or one that the lists show otherwise than it is.
    """
    is_orphan = (episode.kind, episode.certainty) == (ORPHANED, CERTAIN)
    return is_orphan and not _NOBODY_LISTED.isdisjoint(episode.causes)


def unlisted_consumers(episodes: Iterable[QueueFinding]) -> list[FaultEpisode]:
    """One fault per topic, over its queues without an owner in the lists that somebody reads."""
    read = (episode for episode in episodes if _is_read(episode) and _is_unlisted(episode))
    by_topic = grouped((finding.topic, finding) for finding in read)
    template = (
        "by the brokers' lists nobody owns {queues} {time}, but [its offset still "
        "advances|their offsets still advance]: somebody who is not listed reads [it|them]"
    )
    faults = [_unlisted(topic_faults, template, _REMEDY) for topic_faults in by_topic.values()]
    return [replace(one, extent=one.extent._replace(share_of_time=1.0)) for one in faults]


def read_by_others(orphans: Sequence[QueueFinding], drift: Iterable[Drift]) -> FaultEpisode:
    """The fault of a topic's queues that no process held, and that somebody reads."""
    queues = {orphan.queue for orphan in orphans}
    missing = {one.client_id for one in drift if not one.is_extra and one.queue in queues}
    template = (
        "all processes answered, and none had {queues} in its running info {time}, but [its "
        "offset advances|their offsets advance]: somebody who is not listed reads [it|them]"
    )
    return replace(_unlisted(orphans, template, _FIND_READER), client_ids=tuple(sorted(missing)))


def _unlisted(orphans: Sequence[QueueFinding], template: str, remedy: Text) -> FaultEpisode:
    extent, queues = widest([one.extent for one in orphans]), {one.queue for one in orphans}
    named = {"queues": queues_in_words(queues), "time": between(*extent[:2])}
    evidence, names = agreeing(len(queues), template, **named), brokers_of(queues)
    topic = orphans[0].topic
    return FaultEpisode(topic, extent, UNLISTED_CONSUMER, evidence, remedy, broker_names=names)
