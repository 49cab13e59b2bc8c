"""the run before -> a group that is still offline: its queues, although no list names a topic.

Lists have the topics of a group. A group that has had no member all through the window has no list,
and where its offsets are not collected either, only the run before has what it should consume.
"""

from collections.abc import Collection

from rebalance_core.causes import GROUP_OFFLINE
from rebalance_core.descriptions import GROUP_OFFLINE_REMEDY
from rebalance_core.english import agreeing
from rebalance_core.findings import CERTAIN, ORPHANED
from rebalance_core.grouping import grouped

from ...schemas import ANSWERED, NO_ANSWER, NOT_ONLINE
from ..observe.core_verdict import QueueKey
from ..observe.in_words import queues_in_words
from ..times.extents import Extent, Portion, extent_of, runs_of
from ..times.intervals import watches
from .case import Case
from .found import FaultEpisode, GroupFindings, QueueFinding
from .witnessed import witnessed


def still_offline(case: Case, found: GroupFindings) -> GroupFindings:
    """The orphaned queues and the fault GROUP_OFFLINE of each topic that was offline in the run
    before, of a group that no broker lists all through the window.

    The topics that the window itself has are judged by it.
    """
    dossier = case.dossier
    answers = [run for run in dossier.polls if run.answer not in (NO_ANSWER, ANSWERED)]
    if {run.answer for run in answers} != {NOT_ONLINE}:
        return found
    snapshots = sorted({time for run in answers for time in run.times})
    # Nobody knows any more what it was before the last watch.
    since = watches(snapshots)[-1]
    runs = runs_of([Portion(time, time, 1) for time in snapshots if time >= since])
    extent = extent_of(runs, runs[-1].after, case.persistence_seconds)
    queues = [
        QueueFinding(
            earlier.topic,
            extent,
            ORPHANED,
            (earlier.broker_name, earlier.queue_id),
            CERTAIN,
            probability=1.0,
            completeness=1.0,
            claimants=(),
            strategy_source=None,
            causes=(GROUP_OFFLINE,),
        )
        for earlier in dossier.earlier
        if (earlier.kind == ORPHANED and GROUP_OFFLINE in earlier.causes)
        and earlier.topic not in case.timelines
    ]
    by_topic = grouped((queue.topic, queue.queue) for queue in queues)
    faults = [_fault(topic, set(of_topic), extent) for topic, of_topic in by_topic.items()]
    return found.plus(faults, (witnessed(case, queue) for queue in queues))


def _fault(topic: str, queues: Collection[QueueKey], extent: Extent) -> FaultEpisode:
    return FaultEpisode(
        topic,
        extent,
        GROUP_OFFLINE,
        agreeing(
            len(queues),
            "no broker that answered lists a member of the group, as in the run before: {queues} "
            "[is|are] taken by nobody",
            queues=queues_in_words(queues),
        ),
        GROUP_OFFLINE_REMEDY,
        broker_names=tuple(sorted({broker_name for broker_name, _ in queues})),
        queues_affected=len(queues),
    )
