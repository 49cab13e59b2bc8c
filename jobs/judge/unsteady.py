"""dossier, timelines -> who does not stay: members that flap, clients that keep reconnecting."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence

from jobs.instants import Instant
from jobs.judge.channels import Channel
from jobs.judge.dossier import Dossier
from jobs.judge.episodes import FaultEpisode
from jobs.judge.flapping import flapping_members
from jobs.judge.reconnecting import find_reconnecting, reconnecting_faults
from jobs.judge.tables import Row
from jobs.judge.terms import Terms
from jobs.judge.timeline import Timeline
from rebalance_core.message_queue import is_retry_topic


def unsteady_members(
    dossier: Dossier,
    channels: Mapping[str, Sequence[Channel]],
    timelines: Mapping[str, Timeline],
    reassignments: Mapping[str, Sequence[Row]],
    faults: Sequence[FaultEpisode],
    terms: Terms,
) -> list[FaultEpisode]:
    """The faults FLAPPING and RECONNECTING of the group; ``channels`` by client id,
    ``reassignments`` by topic.

    Both are the group's, whatever the topic. They are reported once: for its main topic, or for the
    one in which old connections cost most queues.
    """
    topic = _main_topic(dossier, timelines)
    if topic is None:
        return []
    seconds, expiry = terms.persistence_seconds, terms.heartbeat_expiry_seconds
    phases = timelines[topic].phases

    def members_at(moment: Instant) -> int:
        """How many members the group has by then."""
        place = bisect_right(phases, moment, key=lambda phase: phase.first_seen)
        return phases[max(place - 1, 0)].evaluated.members

    flapping = flapping_members(
        topic, reassignments[topic], channels, timelines[topic].end, seconds, expiry, members_at
    )
    asked_at = [at for run in dossier.polls for at in run.answered_at]
    reconnecting = find_reconnecting(
        channels,
        dossier.clients,
        {client_id for fault in flapping for client_id in fault.client_ids},
        max(asked_at, default=timelines[topic].end),
        seconds,
        expiry,
        members_at,
    )
    snapshots = sorted({time for run in dossier.polls for time in run.times})
    return flapping + reconnecting_faults(reconnecting, faults, snapshots, topic)


def _main_topic(dossier: Dossier, timelines: Mapping[str, Timeline]) -> str | None:
    """The topic that is in most of the group's lists, its retry topic last."""
    audited = [topic for topic, timeline in timelines.items() if timeline.phases]
    in_lists = Counter(each for topics in dossier.list_topics.values() for each in set(topics))
    return min(
        audited,
        key=lambda topic: (is_retry_topic(topic), -in_lists[topic], topic),
        default=None,
    )
