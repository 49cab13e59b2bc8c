"""Findings of the rules of time: queues, and faults of topics, each with the time of its episode.

All of it is frozen: a rule that knows better makes another one with ``replace``. Rows are made of
it once, at the end (``result.rows``). At the end: which of them a known issue is about.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeAlias

from rebalance_core.english import joined
from rebalance_core.faults import Fault as FoundFault
from rebalance_core.findings import DUPLICATE, ORPHANED, POSSIBLE
from rebalance_core.processes import StackedId
from rebalance_core.repairs import MANUAL_ASSIGNMENT, STALE_CHANNEL

from ...config.masking import Masking
from ...config.terms import KnownIssueTerms
from ...declared.dossier import Dossier
from ...declared.instants import Instant
from ...declared.kinds import ALLOCATES_OTHERWISE, CRITICAL, INFO, QUEUE_NOT_HELD, STACKED, STALLED
from ..observe.backlog import NOT_KNOWN, Backlog
from ..observe.core_verdict import FoundQueue, QueueKey
from ..times import Extent, Timed


@dataclass(frozen=True)
class _InTime:
    """Something of a topic, in its time."""

    topic: str
    extent: Extent

    @property
    def first_seen(self) -> Instant:
        """The first snapshot that shows it."""
        return self.extent.first_seen

    @property
    def last_seen(self) -> Instant:
        """The last snapshot that shows it."""
        return self.extent.last_seen

    def overlaps(self, other: Timed) -> bool:
        """True if both were there at some time."""
        return self.extent.overlaps(other)


@dataclass(frozen=True)
class QueueFinding(FoundQueue, _InTime):
    """One queue, orphaned or duplicate, over an episode that may have gaps: see ``times``.

    Worked example: the queue has no owner at 10:00, 10:01 and 10:03 for certain and at 10:04 with a
    probability of 0.6. The episode is from 10:00 to 10:04, CERTAIN (3 of 4 snapshots are), with a
    probability of 0.9 where it is shown and a share of 0.8: for 0.72 of the time nobody read it.

    CERTAIN where at least half of the snapshots that show it are, the mean is 0.9, and its share of
    the time is sure (``times.is_share_sure``). The
    probability is the mean over these snapshots, the claimants are those of the last phase. The
    causes, sorted, are those that lasted themselves; all of them where none did.
    """

    #: The lowest in the episode.
    completeness: float
    #: The source in the last phase.
    strategy_source: str | None
    #: The first and the last snapshot of each phase that shows it.
    times: tuple[tuple[Instant, Instant], ...] = ()
    #: The messages that were not consumed when it ended.
    left: Backlog = NOT_KNOWN
    #: True if what the processes held shows it; None: too few of them answered.
    held: bool | None = None
    #: True if the offsets show it; None: they do not decide it.
    moved: bool | None = None
    #: Its offsets advance at each poll of the episode, and nothing is left.
    is_always_read: bool = False
    #: True if at least half of the snapshots that show it are certain, whatever the others.
    is_mostly_certain: bool = False
    severity: str = INFO

    @property
    def all_times(self) -> tuple[tuple[Instant, Instant], ...]:
        """The times of its phases; its whole extent where it has none."""
        return self.times or ((self.first_seen, self.last_seen),)

    @property
    def unbroken_times(self) -> tuple[tuple[Instant, Instant], ...]:
        """The times in which its offsets show something of it: where it has gaps, those alone that
        show it, for it may be read in between.
        """
        return self.times if self.extent.share_of_time < 1 else ((self.first_seen, self.last_seen),)

    @property
    def share(self) -> float:
        """The share of the time in which the queue was so, as far as the snapshots show."""
        return self.probability * self.extent.share_of_time

    @property
    def is_read_throughout(self) -> bool:
        """True if it may be an orphan by the lists, and its offsets show none."""
        return self.kind == ORPHANED and self.certainty == POSSIBLE and self.is_always_read

    @property
    def is_locked(self) -> bool:
        """True if the lock of a group that consumes in order lets one of its claimants read it
        alone, unless what they hold shows otherwise: a broker gives the lock to one client id
        (``RebalanceLockManager`` 4.9.4 to 5.3.3), and so to all processes of that id.
        """
        # Processes of one id that differ otherwise are several claimants.
        ids = {claimant.client_id for claimant in self.claimants}
        is_of_ids = len(ids) == sum(claimant.processes for claimant in self.claimants) > 1
        return self.kind == DUPLICATE and is_of_ids and not self.held

    @property
    def is_doubtful(self) -> bool:
        """True if it depends on what clients draw, and nothing they hold and no offset shows it."""
        depends = self.certainty == POSSIBLE and not self.is_mostly_certain
        return depends and True not in (self.held, self.moved)


@dataclass(frozen=True)
class Stall(_InTime):
    """One queue that had an owner and did not move, over an unbroken run of its polls."""

    kind: ClassVar[str] = STALLED

    queue: QueueKey
    #: Messages not consumed at the end, and how many of them came in the run.
    backlog: int
    backlog_growth: int
    #: The client ids that it was computed for at the run's last poll but one.
    owners: tuple[str, ...]
    #: True if a process reported that it held the queue; None: too few of them answered.
    held: bool | None = None
    #: The reason: what its process does not do.
    why: str | None = None
    #: The worst severity: it may be that nothing is wrong.
    at_most: str = CRITICAL
    severity: str = INFO


def brokers_of(queues: Iterable[QueueKey]) -> tuple[str, ...]:
    """The names of the brokers of these queues, each once, sorted."""
    return tuple(sorted({broker_name for broker_name, _ in queues}))


@dataclass(frozen=True)
class FaultEpisode(FoundFault, _InTime):
    """One fault of a topic over an episode that may have gaps, as its last phase describes it.

    ``queues_affected`` is the most of all phases. ``unread_messages``: those in queues that left,
    the route or the members' subscriptions. ``may_be_ours``: the collector's own questions may have
    caused it (``silent``).
    """

    severity: str = INFO
    unread_messages: int | None = None
    #: The worst severity of a group that consumes nothing: it may be that nothing is wrong.
    at_most: str = CRITICAL
    may_be_ours: bool = False

    def saying(self, more: Sequence[str], **changes: Any) -> "FaultEpisode":
        """The same with more evidence, and with other values where they are given."""
        return replace(self, evidence=joined([self.evidence, *more]), **changes)

    def about(self, queues: Collection[QueueKey], **changes: Any) -> "FaultEpisode":
        """The same about these queues and their brokers, and with other values."""
        names = brokers_of(queues)
        return replace(self, broker_names=names, queues_affected=len(queues), **changes)

    @property
    def kind(self) -> str:
        """Its name among the kinds."""
        return self.fault


#: Causes of a finding that the holdings show and the computation does not.
_SHOWN_BY_HOLDINGS = frozenset({QUEUE_NOT_HELD, ALLOCATES_OTHERWISE})


def is_computed(finding: QueueFinding) -> bool:
    """True if lists and routes show the finding, and not what is held alone."""
    is_chosen = finding.strategy_source is None and MANUAL_ASSIGNMENT in finding.causes
    return _SHOWN_BY_HOLDINGS.isdisjoint(finding.causes) and not is_chosen


#: Findings with a severity and an id, which are compared with the previous published run.
Graded: TypeAlias = QueueFinding | Stall | FaultEpisode


@dataclass(frozen=True)
class StackedEpisode:
    """A client id that was more than once in a broker's list, over an episode."""

    topics: tuple[str, ...]
    extent: Extent
    #: Its evidence and remedy are those of the last phase that knew of most processes.
    stacked: StackedId

    @property
    def kind(self) -> str:
        """STACKED; or STALE_CHANNEL of one process that reconnected."""
        return STACKED if self.stacked.processes > 1 else STALE_CHANNEL


@dataclass(frozen=True)
class GroupFindings:
    """All that was found of a group so far."""

    queues: tuple[QueueFinding, ...] = ()
    stalls: tuple[Stall, ...] = ()
    faults: tuple[FaultEpisode, ...] = ()
    stacked: tuple[StackedEpisode, ...] = ()

    def with_faults(self, change: Callable[[FaultEpisode], FaultEpisode]) -> "GroupFindings":
        """The same with each fault as ``change`` has it."""
        return replace(self, faults=tuple(map(change, self.faults)))

    def plus(
        self,
        faults: Iterable[FaultEpisode],
        queues: Iterable[QueueFinding] = (),
        stalls: Iterable[Stall] = (),
    ) -> "GroupFindings":
        """The same with more."""
        more = (*self.queues, *queues), (*self.stalls, *stalls), (*self.faults, *faults)
        return GroupFindings(*more, self.stacked)


# ---------------------------------------------------------------- known issues


def entries_of(dossier: Dossier, entries: Iterable[KnownIssueTerms]) -> list[KnownIssueTerms]:
    """The entries that may be about a group: few are about any one."""
    place = {"clusters": [dossier.cluster], "groups": [dossier.consumer_group]}
    return [entry for entry in entries if _is_about(entry, place)]


def known_issue(
    finding: Graded | StackedEpisode, entries: Sequence[KnownIssueTerms], masking: Masking
) -> str | None:
    """The reason of the first entry that a finding matches; None: it matches none.

    All that an entry says has to fit. Where several names are concerned (the clients of a fault,
    the topics of a client id), a pattern has to match each; a finding that has no such name is not
    matched by a pattern for it. A client may be named by its true id, or as reports show it.
    """
    if not entries:
        return None
    queue_id = finding.queue[1] if isinstance(finding, QueueFinding | Stall) else None
    on_queue = (entry for entry in entries if entry.queues is None or queue_id in entry.queues)
    fitting = [entry for entry in on_queue if entry.kinds is None or finding.kind in entry.kinds]
    named = (names_of(finding), masking.mask_all(names_of(finding)))
    about = (entry.reason for names in named for entry in fitting if _is_about(entry, names))
    return next(about, None)


def known_coverage(topic: str, coverage: str, entries: Iterable[KnownIssueTerms]) -> str | None:
    """The reason of the first entry whose kinds name the coverage of a topic; None: there is none.

    A coverage is on no queue, broker or client. An entry without kinds is about findings alone.
    """
    names = {"topics": [topic], "brokers": (), "clients": ()}
    naming = (entry for entry in entries if coverage in (entry.kinds or ()) and not entry.queues)
    return next((entry.reason for entry in naming if _is_about(entry, names)), None)


def names_of(finding: Graded | StackedEpisode) -> Mapping[str, Sequence[str]]:
    """The names that a finding is about, by the keys of the patterns."""
    match finding:
        case StackedEpisode():
            # It is on no broker in particular.
            client_id = finding.stacked.client_id
            return {"topics": finding.topics, "brokers": (), "clients": [client_id]}
        case FaultEpisode():
            brokers, clients = finding.broker_names, finding.client_ids
        case Stall():
            brokers, clients = (finding.queue[0],), finding.owners
        case QueueFinding():
            brokers = (finding.queue[0],)
            clients = tuple(claimant.client_id for claimant in finding.claimants)
    return {"topics": [finding.topic], "brokers": brokers, "clients": clients}


def _is_about(entry: KnownIssueTerms, names: Mapping[str, Sequence[str]]) -> bool:
    """True if there are names for each of the entry's patterns of these keys, and all fit."""
    asked = ((names[key], pattern) for key, pattern in entry.patterns if key in names)
    return all(name and all(map(pattern.fullmatch, name)) for name, pattern in asked)
