"""lists, connections -> findings about client ids: several processes of one, and secrets in one."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain, pairwise
from typing import TypeVar

from rebalance_core.client_id import without_secret
from rebalance_core.english import MOST_NAMES, agreeing, joined, list_of
from rebalance_core.grouping import grouped
from rebalance_core.processes import StackedId
from rebalance_core.repairs import DUPLICATE_CLIENT_ID
from rebalance_core.texts import Text

from ...declared.instants import Instant
from ...declared.kinds import PERSISTENT, SECRET_IN_CLIENT_ID
from ..observe.in_words import between
from ..observe.timeline import Phase
from ..times import Extent, Portion, episodes_of, runs_of
from .case import Case
from .found import FaultEpisode, GroupFindings, StackedEpisode

Value = TypeVar("Value", str, int)

_REPLACE_IT = Text("then replace the secret, for the logs have it")

#: A phase that shows an id stacked.
_ShownId = tuple[Phase, StackedId]


def stacked_ids(case: Case, found: GroupFindings) -> GroupFindings:
    """The client ids that are more than once in a broker's list, over the topics of the group.

    An episode of an id may have gaps. Evidence and remedy are those of the last phase that knew of
    most processes.

    The id's copies are the group's, whatever the topic: the timelines are put together by the
    group's runs, and the queues of all topics are added up.
    """
    # Runs without owners end no episode: no stacked id is found in them.
    by_run = grouped(
        ((phase.group_run, phase.watch), phase)
        for timeline in case.timelines.values()
        for phase in timeline.phases
        if phase.verdict.shows_owners
    )
    in_time = [phases for _, phases in sorted(by_run.items())]
    runs = runs_of(list(map(_part, in_time)))
    stacked: list[StackedEpisode] = []
    for episode in episodes_of(runs, map(_shown_ids, in_time), case.persistence_seconds):
        topics = _union([phase.topic for phase, _ in shown] for shown in episode.shown)
        stacked.append(StackedEpisode(topics, episode.extent, _whole(episode.shown)))
    return replace(found, stacked=tuple(stacked))


def _shown_ids(phases: Iterable[Phase]) -> Iterable[tuple[str, Sequence[_ShownId]]]:
    """The stacked ids of a run of the group's lists, each with all that the run shows of it."""
    return grouped(
        (stacked.client_id, (phase, stacked))
        for phase in phases
        for stacked in phase.verdict.stacked
    ).items()


def _part(phases: Sequence[Phase]) -> Portion:
    """The part of the window in which the group's lists stayed so, from the phases of its topics.

    It has the snapshots of the topic with most: another had no route for a time.
    """
    snapshots: Counter[str] = Counter()
    for phase in phases:
        snapshots[phase.topic] += phase.snapshots
    first_seen = min(phase.first_seen for phase in phases)
    last_seen = max(phase.last_seen for phase in phases)
    return Portion(first_seen, last_seen, max(snapshots.values()), watch=phases[0].watch)


def _whole(runs: Sequence[Sequence[_ShownId]]) -> StackedId:
    """All that the runs show of an id: every value, and of numbers the most."""
    every = [one for shown in runs for _, one in shown]
    _, most = max(chain(*runs), key=lambda shown: (shown[1].processes, shown[0].last_seen))
    return most._replace(
        client_addrs=_union(one.client_addrs for one in every),
        versions=_union(one.versions for one in every),
        languages=_union(one.languages for one in every),
        slots_wasted=max(one.slots_wasted for one in every),
        queues_duplicated=max(_queues_at_once(run, "queues_duplicated") for run in runs),
        queues_orphaned=max(_queues_at_once(run, "queues_orphaned") for run in runs),
    )


def _queues_at_once(shown: Iterable[_ShownId], column: str) -> int:
    """The queues of all topics in one run.

    A run is cut where a topic's route changes: its parts follow each other, so that the most of
    them counts; its topics are at the same time, so that their queues add up.
    """
    most: Counter[str] = Counter()
    for phase, stacked in shown:
        most[phase.topic] = max(most[phase.topic], getattr(stacked, column))
    return most.total()


def _union(parts: Iterable[Iterable[Value]]) -> tuple[Value, ...]:
    return tuple(sorted({value for part in parts for value in part}))


# ---------------------------------------------------------------- old copies


def old_copies(case: Case, found: GroupFindings) -> GroupFindings:
    """The shared ids of which one copy is an old process, with that in the remedy.

    A pod whose node hangs is started on another node with the id that it had (a StatefulSet), and
    both processes read as soon as the node goes on. No id of its own helps there: the old one is to
    end (``cases/test_copies``).
    """

    def with_old_copy(fault: FaultEpisode) -> FaultEpisode:
        old = _old_copy(case, fault) if fault.fault == DUPLICATE_CLIENT_ID else None
        if old is None:
            return fault
        host, last_seen, back_at = old
        ending = Text(
            "or, if this is one pod that was restarted on another host, stop the old process at "
            "{host}: it was silent {time}, and still runs",
            host=host,
            time=between(last_seen, back_at),
        )
        return replace(fault, remedy=joined([fault.remedy, ending]))

    return found.with_faults(with_old_copy)


def _old_copy(case: Case, fault: FaultEpisode) -> tuple[str, Instant, Instant] | None:
    """A host that was gone for a time, in which another one began that is there when it is back;
    when it was seen last, and when it was back.

    A broker keeps a silent process for a time: so long before the other one may have begun.
    """
    every = case.situations.channels.get(fault.client_ids[0], ())
    # Nobody knows the host of a connection without an address.
    channels = [one for one in every if one.client_addr and one.first_seen <= fault.last_seen]
    by_host = grouped((channel.client_addr.rpartition(":")[0], channel) for channel in channels)
    begun = {host: min(channel.first_seen for channel in own) for host, own in by_host.items()}
    for host, own in by_host.items():
        in_time = sorted(own, key=lambda channel: channel.first_seen)
        for one, later in pairwise(in_time):
            last_seen = max(past.last_seen for past in in_time if past.first_seen <= one.first_seen)
            others = chain.from_iterable(
                channels_of_other
                for other, channels_of_other in by_host.items()
                if begun[host] < last_seen - case.expiry < begun[other]
            )
            back_at = later.first_seen
            if last_seen < back_at and any(o.first_seen < back_at <= o.last_seen for o in others):
                return host, last_seen, back_at
    return None


# ---------------------------------------------------------------- secrets


def secrets(case: Case, found: GroupFindings) -> GroupFindings:
    """The fault SECRET_IN_CLIENT_ID, once for the group: it is with the group's first topic, and
    about all of them.

    A secret in a list of members can be read by whoever may list them, and is in the logs of
    brokers and clients (sca#1633). That does not pass when the client leaves: the fault lasts,
    however short it was seen. ``client_ids`` are shown masked in all that leaves the judgement;
    here they are the true ones.
    """
    masking, every, lists = case.terms.masking, case.snapshots, case.dossier.list_members
    # Nearly no group has one: then each of its ids is looked at once, and no list a second time.
    ids = {client_id for members in lists.values() for client_id in members().client_ids}
    secret = set(masking.with_secret(ids))
    runs = (run for run in (case.dossier.polls if secret else ()) if run.answer in lists)
    shown = [(secret.intersection(lists[run.answer]().client_ids), run.times) for run in runs]
    client_ids = tuple(sorted({*chain.from_iterable(ids for ids, _ in shown)}))
    topics = sorted(topic for topic in case.dossier.topics() if topic)
    if not client_ids or not topics:
        return found
    times = sorted({*chain.from_iterable(times_of_run for ids, times_of_run in shown if ids)})
    within = [time for time in every if times[0] <= time <= times[-1]]
    share, ongoing = len(times) / len(within), times[-1] == every[-1]
    topic = next((topic for topic in topics if not topic.startswith("%")), topics[0])
    extent = Extent(times[0], times[-1], len(times), PERSISTENT, ongoing, share)
    evidence = agreeing(
        len(client_ids),
        "the client [id|ids] {clients} [holds|hold] a secret, which is masked here: whoever lists "
        "the members of the group, or reads a log of a broker or of a client, can read it",
        clients=list_of(map(masking.mask, client_ids), MOST_NAMES),
    )
    remedy = joined([without_secret(client_ids), _REPLACE_IT])
    fault = FaultEpisode(topic, extent, SECRET_IN_CLIENT_ID, evidence, remedy, client_ids)
    return found.plus([fault])
