"""All about one group that the rules of time read, each made when it is first asked for."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from rebalance_core.findings import SHOWN_BY_HOLDINGS, Evaluation
from rebalance_core.message_queue import is_own_retry_topic, is_retry_topic
from rebalance_core.state import MASTER_ID

from ...config.terms import KnownIssueTerms, Terms
from ...declared.dossier import Dossier, EarlierFinding, ListedIds, QueueOffsets
from ...declared.instants import SECOND, Instant
from ...schemas import NO_ANSWER
from ..observe.brokers import Absence, NoConfig, masters_away, no_config
from ..observe.core_verdict import QueueKey, Verdict
from ..observe.holdings import find_holdings
from ..observe.holdings_index import Drift, HoldingsIndex, find_drift, index_holdings
from ..observe.routes import RouteChange, find_route_changes, queues_of, readable, readable_queues
from ..observe.situations import Situations
from ..observe.timeline import (
    Phase,
    Reassignment,
    Timeline,
    build_timeline,
    find_reassignments,
    phases_of,
    without_route,
)
from ..times import Extent, Timed, longest_at_edges, persistence, usual_gap_but_for_one
from .found import entries_of


@dataclass(frozen=True)
class Case:
    """A group: its dossier, its situations with the core's verdicts, and the terms.

    ``evaluated`` has every situation by its id, and maybe those of other groups. Mappings by topic
    have the topics with situations.
    """

    dossier: Dossier
    situations: Situations
    evaluated: Mapping[str, Verdict]
    terms: Terms

    @property
    def persistence_seconds(self) -> int:
        """The time after which a finding lasts."""
        return self.terms.persistence_seconds

    @property
    def expiry(self) -> Instant:
        """The time for which a broker keeps a silent member."""
        return self.terms.heartbeat_expiry_seconds * SECOND

    @cached_property
    def known_issues(self) -> Sequence[KnownIssueTerms]:
        """The known issues that may be about the group."""
        return entries_of(self.dossier, self.terms.known_issues)

    @cached_property
    def open_before(self) -> Mapping[str, EarlierFinding]:
        """The findings that were open in the run before, by id."""
        return {earlier.finding_id: earlier for earlier in self.dossier.earlier}

    @cached_property
    def main_topic(self) -> str | None:
        """The topic that is in most of the group's lists; retry topics are last, its own after all.

        What is the group's, whatever the topic, is reported once: with this one.
        """
        group = self.dossier.consumer_group
        in_lists = Counter(chain.from_iterable(map(set, self.dossier.list_topics.values())))

        def rank(topic: str) -> tuple[bool, bool, int, str]:
            is_own = is_own_retry_topic(topic, group)
            return is_own, is_retry_topic(topic), -in_lists[topic], topic

        shown = (topic for topic, timeline in self.timelines.items() if timeline.phases)
        return min(shown, key=rank, default=None)

    @cached_property
    def snapshots(self) -> Sequence[Instant]:
        """The group's snapshots, ascending."""
        return sorted({snapshot for run in self.dossier.polls for snapshot in run.times})

    @cached_property
    def unseen_since(self) -> Instant | None:
        """The last snapshot with an answer about the group, where its cluster was asked for longer:
        nobody knows what is still there. None: it was asked about to the end.
        """
        runs = (run for run in self.dossier.polls if run.answer != NO_ANSWER)
        answered = sorted({snapshot for run in runs for snapshot in run.times})
        ends = self.terms.last_rounds.get(self.dossier.cluster)
        if not answered or ends is None:
            return None
        most = longest_at_edges(usual_gap_but_for_one(np.diff(answered)))
        return answered[-1] if ends - answered[-1] > most else None

    def verdicts_at(self, topic: str, times: NDArray[np.int64]) -> list[Evaluation | None]:
        """The core's verdict on a topic at each of these times; None: no list was known yet."""
        ids = self.situations.in_force(topic, times)
        return [None if id_ is None else self.evaluated[id_].verdict for id_ in ids]

    def verdict_at(self, topic: str, time: Instant) -> Evaluation | None:
        """The core's verdict on a topic at one time."""
        return self.verdicts_at(topic, np.array([time]))[0]

    def extent(
        self, first_seen: Instant, last_seen: Instant, shown: int | None = None, *, ongoing: bool
    ) -> Extent:
        """The time between two moments, that is ``shown`` so often, by default in each snapshot."""
        if shown is None:
            shown = sum(first_seen <= snapshot <= last_seen for snapshot in self.snapshots)
        lasts = persistence(first_seen, last_seen, self.persistence_seconds)
        return Extent(first_seen, last_seen, shown, lasts, ongoing)

    @cached_property
    def members_in_time(self) -> Sequence[ListedIds]:
        """The group's members, each time that they change: all its topics have the same lists.

        A slave counts where its master gives no answer: asked some seconds before it, it may still
        list who has just stopped (``cases/test_members_in_time``).
        """
        ids_by_list: dict[str, frozenset[str]] = {}
        found, list_members = list[ListedIds](), self.dossier.list_members
        for period in next(iter(self.situations.by_topic.values()), ()):
            given = [answer for answer in period.situation.answers if answer[1] != NO_ANSWER]
            masters = {name for (name, id_), _ in given if id_ == MASTER_ID}
            lists = {
                list_ for (name, id_), list_ in given if id_ == MASTER_ID or name not in masters
            }
            # The lists of one period are kept: each period of a giant group has others, of half a
            # megabyte.
            ids_by_list = {
                list_: ids_by_list.get(list_) or frozenset(list_members[list_]().client_ids)
                for list_ in lists & list_members.keys()
            }
            members: frozenset[str] = frozenset().union(*ids_by_list.values())
            # Without a list nobody knows.
            if lists and (not found or found[-1].client_ids != members):
                stacked = self.evaluated[period.situation.situation_id].verdict.stacked
                shared = sum(max(stacked_id.processes, 1) - 1 for stacked_id in stacked)
                found.append(ListedIds(period.first_seen, members, shared))
        return found

    @cached_property
    def _phases(self) -> Mapping[str, Sequence[Phase]]:
        return {
            topic: list(phases_of(periods, self.evaluated, self.snapshots))
            for topic, periods in self.situations.by_topic.items()
        }

    @cached_property
    def timelines(self) -> Mapping[str, Timeline]:
        """The timeline of each topic."""
        return {topic: build_timeline(topic, phases) for topic, phases in self._phases.items()}

    @cached_property
    def without_route(self) -> Mapping[str, Timeline]:
        """The timeline of the periods without a known route, by topic."""
        return {topic: without_route(topic, phases) for topic, phases in self._phases.items()}

    @cached_property
    def route_changes(self) -> Mapping[str, Sequence[RouteChange]]:
        """The route changes of each topic, in time."""
        routes, most_queues = self.dossier.routes, self.terms.topic_queues
        return {
            topic: find_route_changes(routes.get(topic, ()), most_queues)
            for topic in self.situations.by_topic
        }

    @cached_property
    def no_config(self) -> NoConfig | None:
        """The time since which no broker has a configuration of the group."""
        return no_config(self.dossier)

    @cached_property
    def masters_away(self) -> Sequence[Absence]:
        """The times in which a broker had no master."""
        return [*masters_away(self.dossier)]

    def absences_in(self, time: Timed) -> list[Absence]:
        """The absences of masters that explain why queues did not move in a time."""
        return [away for away in self.masters_away if away.explains(time, self.snapshots)]

    @cached_property
    def reassignments(self) -> Mapping[str, Sequence[Reassignment]]:
        """The reassignments of each topic, in time."""
        return {topic: find_reassignments(timeline) for topic, timeline in self.timelines.items()}

    @cached_property
    def holdings(self) -> HoldingsIndex:
        """The queues that the processes held, by topic."""
        return index_holdings(find_holdings(self.dossier, self.timelines, self.route_changes))

    @cached_property
    def drift(self) -> Sequence[Drift]:
        """Differences between the queues that processes held and those computed for them.

        Consumers in order, and clients in Go, read nothing of a broker without a master, and keep
        its queues in their tables (``cases/test_offsets_and_masters``).
        """
        every = (holding for held in self.holdings.values() for holding in held.holdings)

        def is_kept(drift: Drift) -> bool:
            is_go = self.dossier.languages.get(drift.client_id) == "GO"
            keeps = drift.is_extra and (is_go or bool(self.dossier.consumes_in_order))
            return keeps and any(map(drift.is_within, self.masters_away))

        return [each for each in find_drift(every, self.persistence_seconds) if not is_kept(each)]

    @cached_property
    def offsets(self) -> Mapping[tuple[str, str, int], QueueOffsets]:
        """The offsets of each queue, by (topic, broker name, queue id)."""
        every = chain.from_iterable(self.dossier.offsets.values())
        return {(each.topic, each.broker_name, each.queue_id): each for each in every}

    @cached_property
    def readable(self) -> Mapping[str, Mapping[QueueKey, bool]]:
        """The queues that a nameserver gives, by situation in which nothing is computed; of each
        True if every one does. The clients of one that gives it read it in any case.
        """
        found: dict[str, Mapping[QueueKey, bool]] = {}
        for situation_id, situation in self.situations.distinct().items():
            if self.evaluated[situation_id].verdict.coverage in SHOWN_BY_HOLDINGS:
                by_all = readable_queues(situation.routes)
                every = chain.from_iterable(
                    queues_of(readable(each)) for _, each in situation.routes
                )
                found[situation_id] = {queue: queue in by_all for queue in every}
        return found
