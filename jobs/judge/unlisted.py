"""orphaned queues, offsets -> those that somebody reads all the same, whom no list shows.

Lists and routes may show no owner while somebody reads the queue: heartbeats do not get through and
the client goes on with what it had, or the members are behind a proxy. The offsets decide.
"""

from collections.abc import Iterable, Sequence

from rebalance_core.causes import GROUP_OFFLINE
from rebalance_core.english import agreeing
from rebalance_core.findings import CERTAIN, ORPHANED
from rebalance_core.grouping import grouped
from rebalance_core.repairs import GROUP_NOT_ON_BROKER, MASTER_AWAY
from rebalance_core.texts import Text

from ..kinds import UNLISTED_CONSUMER
from .case import Case
from .episodes import queue_episodes
from .extents import widest
from .findings import Fault, Found, QueueFinding
from .witnessed import witnessed
from .words import between, queues_in_words

#: The causes of orphans on brokers that list no member of the group.
_NOBODY_LISTED = frozenset({GROUP_OFFLINE, GROUP_NOT_ON_BROKER})

_REMEDY = Text(
    "check whether the members consume through a proxy, which alone lists them: then nothing is to "
    "be repaired. Else see why their heartbeats do not arrive (the broker's log, a firewall, "
    "authentication): a client that starts anew now gets no queue"
)


def queues_of_states(case: Case, found: Found) -> Found:
    """The orphaned and duplicate queues that single states show, as far as no offset refutes them,
    and the faults UNLISTED_CONSUMER of those that are refuted.
    """
    every = [
        witnessed(case, each)
        for timeline in case.timelines.values()
        for each in queue_episodes(timeline, case.persistence_seconds)
    ]
    return found.plus(unlisted_consumers(every), without_refuted(every))


def without_refuted(episodes: Sequence[QueueFinding]) -> list[QueueFinding]:
    """Without the orphans whose offsets move again and again.

    One that has an owner at times is read at times, which refutes nothing. Where the lists know no
    member at all and somebody reads the group's queues, those in which nothing waits and nothing
    comes are no evidence, and no orphans either: the retry topic's, as a rule. Without a master
    nothing can come: producers send to masters alone, and a slave takes nothing
    (``MQClientInstance.topicRouteData2TopicPublishInfo`` 4.2.0 to 5.3.3). Who holds a queue of it
    in order keeps it in its table (``ProcessQueue.isLockExpired`` keeps it from consuming alone),
    so that where nothing waits nobody lost it.
    """
    offline = [each for each in episodes if _is_read(each) and GROUP_OFFLINE in each.causes]

    def is_idle(each: QueueFinding) -> bool:
        is_offline = GROUP_OFFLINE in each.causes and any(map(each.overlaps, offline))
        is_caught_up = each.causes == (MASTER_AWAY,) and each.left.messages == 0
        return is_caught_up or (is_offline and not each.left.messages)

    return [each for each in episodes if not (_is_read(each) or is_idle(each))]


def _is_read(episode: QueueFinding) -> bool:
    return (episode.kind, episode.certainty, episode.moved) == (ORPHANED, CERTAIN, False)


def unlisted_consumers(episodes: Iterable[QueueFinding]) -> list[Fault]:
    """One fault per topic, over its queues that are orphans by the lists and that somebody reads.

    Only where a broker lists nobody at all. Else their reader may be listed: a member that
    chooses its queues itself, or one that the lists show otherwise than it is.
    """
    of_topics = grouped(
        (each.topic, each)
        for each in episodes
        if _is_read(each) and not _NOBODY_LISTED.isdisjoint(each.causes)
    )
    return [_fault(topic, of_topic) for topic, of_topic in of_topics.items()]


def _fault(topic: str, episodes: Sequence[QueueFinding]) -> Fault:
    extent = widest([each.extent for each in episodes])
    queues = {each.queue for each in episodes}
    return Fault(
        topic,
        extent._replace(share_of_time=1.0),
        UNLISTED_CONSUMER,
        agreeing(
            len(queues),
            "by the brokers' lists nobody owns {queues} {time}, and [its offset still advances|"
            "their offsets still advance]: somebody reads [it|them] whom the lists do not show "
            "there",
            queues=queues_in_words(queues),
            time=between(extent.first_seen, extent.last_seen),
        ),
        _REMEDY,
        broker_names=tuple(sorted({broker_name for broker_name, _ in queues})),
    )
