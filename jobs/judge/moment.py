"""dossier -> moments: all about one topic at one time, or about each topic of a group.

What ``explain`` and ``what-if`` answer from: the same situation, the same evaluation and the same
history as the published tables have.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import NamedTuple

from rebalance_core import MessageQueue, State, StrategyRules, near_names
from rebalance_core.findings import SHOWN_BY_HOLDINGS
from rebalance_core.texts import Text

from ..config.masking import Masking
from ..config.terms import Terms
from ..declared.dossier import Dossier
from ..declared.instants import SECOND, Instant
from ..declared.kinds import QUEUE_FINDINGS, UNLISTED_CONSUMER
from ..errors import InputError
from ..schemas import RUNNING_INFO
from .history import judge
from .observe.arrow_tables import Row
from .observe.backlog import last_up_to, reading, shows_what_waits, still_waits
from .observe.core_verdict import QueueKey, Verdict
from .observe.evaluation import MemberFacts, at_once, evaluate, seen_states, state_of
from .observe.holdings import ProcessReport
from .observe.situations import Period, Situations
from .rules.case import Case


class LastReport(NamedTuple):
    """The last report of one process before the moment, of the queues that it holds."""

    client_id: str
    said_at: Instant
    queues: tuple[QueueKey, ...]


class ReadQueues(NamedTuple):
    """The queues of a topic that have readers by their offsets around a moment.

    Those of ``advancing`` are read by somebody, ``caught_up`` have nothing to read; in the others
    of which there are offsets messages wait.
    """

    advancing: int
    caught_up: int


@dataclass(frozen=True)
class Moment:
    """A topic of a group as of one snapshot.

    ``first_seen``, ``last_seen``: of the period in which the situation held. ``judged``: by table
    the rows of ``history.judge`` of the group, of all topics and times. ``backlog``: messages not
    consumed, by queue, at the last offsets polled up to the snapshot (``backlog_at``); of the
    queues of ``backlog_old`` these are old, and more may wait.
    """

    cluster: str
    state: State
    snapshot_time: Instant
    first_seen: Instant
    last_seen: Instant
    judged: Mapping[str, Sequence[Row]]
    held: tuple[LastReport, ...] = ()
    backlog: Mapping[MessageQueue, int] | None = None
    backlog_old: frozenset[MessageQueue] = frozenset()
    backlog_at: Instant | None = None
    #: The queues by what their offsets show; None where there are none.
    read: ReadQueues | None = None
    #: The kind and the queue of all that the core finds wrong at the moment; None: it does not know
    #: who owns what.
    computed: frozenset[tuple[str, QueueKey]] | None = None
    #: The first and the last snapshot that there is.
    snapshots: tuple[Instant, Instant] | None = None
    #: The date of the published run that judged it; None: it was judged for this answer.
    date: str | None = None
    #: The masking of client ids.
    masking: Masking = field(default_factory=Masking)

    @property
    def is_last(self) -> bool:
        """True if it is the last snapshot that there is."""
        return self.snapshots is not None and self.snapshot_time == self.snapshots[1]

    @property
    def held_by_all(self) -> Mapping[str, Sequence[MessageQueue]]:
        """The queues that each client id holds, where each process answered; else nothing."""
        topic = self.state.topic
        reported = {
            report.client_id: [MessageQueue(topic, *queue) for queue in report.queues]
            for report in self.held
        }
        listed = [client_list.members for client_list in self.state.client_lists]
        is_one_each = all(len({m.client_id for m in members}) == len(members) for members in listed)
        ids = {member.client_id for member in self.state.members}
        is_whole = len(self.held) == len(reported) and reported.keys() == ids and is_one_each
        return reported if is_whole else {}

    @property
    def is_read_unlisted(self) -> bool:
        """True if somebody reads the topic then whom no broker lists: UNLISTED_CONSUMER."""
        return any(
            (row["fault"], row["topic"]) == (UNLISTED_CONSUMER, self.state.topic)
            and row["first_seen"] <= self.snapshot_time <= row["last_seen"]
            for row in self.judged.get("group_faults", ())
        )


def find_moments(
    dossier: Dossier,
    found: Situations,
    members: Mapping[str, Sequence[MemberFacts]],
    topic: str | None,
    at: Instant | None,
    terms: Terms,
    rules: StrategyRules,
) -> list[Moment]:
    """The moment of the last snapshot up to ``at``, or of the last one; ``members`` by list id.

    One topic, or each topic of the group if ``topic`` is None, sorted by topic. Raises InputError
    where there is no snapshot so early, or the group has no such topic, or none at all; it names
    what comes near.
    """
    group, topics = dossier.consumer_group, set(dossier.topics()) - {""}
    if topic is None and not topics:
        raise InputError(f"no member of {group} subscribes to a topic")
    if topic is not None and topic not in topics:
        raise InputError(
            f"no member of {group} subscribes to the topic {topic!r}: {near_names(topic, topics)}"
        )
    times = sorted({time for run in dossier.polls for time in run.times})
    latest = times[-1] if at is None else at
    early = [time for time in times if time <= latest]
    if not early:
        template = (
            "{group} has no snapshot up to {came:iso}: its snapshots go from {first_seen:iso} to "
            "{last_seen:iso}"
        )
        raise InputError(
            Text(template, group=group, came=latest, first_seen=times[0], last_seen=times[-1])
        )
    snapshot_time = early[-1]
    evaluated: dict[str, Verdict] = {}
    for some in at_once(seen_states(found.distinct().values(), members)):
        evaluated |= evaluate(some, rules).by_id()
    case = Case(dossier, found, evaluated, terms)
    judged = judge(case)
    moments: list[Moment] = []
    for name in [topic] if topic is not None else sorted(topics):
        wrong = [
            (table, row)
            for table in QUEUE_FINDINGS
            for row in judged[table]
            if row["topic"] == name and row["first_seen"] <= snapshot_time <= row["last_seen"]
        ]
        orphans = [row for table, row in wrong if table == "orphaned_queues"]
        backlog, backlog_old, backlog_at = _backlog(dossier, name, snapshot_time, orphans)
        moments += [
            Moment(
                cluster=dossier.cluster,
                state=state_of(period.situation, members),
                snapshot_time=snapshot_time,
                first_seen=period.first_seen,
                last_seen=period.last_seen,
                judged=judged,
                held=_last_reports(
                    dossier, name, _counts_from(case, period, snapshot_time), snapshot_time
                ),
                backlog=backlog,
                backlog_old=backlog_old,
                backlog_at=backlog_at,
                read=_read(dossier, name, snapshot_time, [row for _, row in wrong], terms),
                computed=_computed(evaluated[period.situation.situation_id]),
                snapshots=(times[0], times[-1]),
                masking=terms.masking,
            )
            for period in found.by_topic[name]
            if period.first_seen <= snapshot_time <= period.last_seen
        ]
    return moments


def _computed(verdict: Verdict) -> frozenset[tuple[str, QueueKey]] | None:
    wrong = frozenset((finding.kind, finding.queue) for finding in verdict.findings)
    return wrong if verdict.verdict.shows_owners else None


def _counts_from(case: Case, period: Period, snapshot_time: Instant) -> Instant:
    """The time since when a report is of a process that is there: a period, or, where no list
    decides who has what, the time in which the group has these members.
    """
    if case.evaluated[period.situation.situation_id].verdict.coverage not in SHOWN_BY_HOLDINGS:
        return period.first_seen
    changes = (
        member.first_seen for member in case.members_in_time if member.first_seen <= snapshot_time
    )
    return max(changes, default=period.first_seen)


def _last_reports(
    dossier: Dossier, topic: str, first_seen: Instant, last_seen: Instant
) -> tuple[LastReport, ...]:
    """The last running info with queues of each process, of those from ``first_seen``
    to ``last_seen``.

    A report from before the situation began may be that of a process that is gone.
    """
    reported = [
        (said_at, run)
        for run in dossier.clients
        if run.source == RUNNING_INFO and run.error_code is None and run.queues is not None
        for said_at, _ in run.times
        if said_at is not None and first_seen <= said_at <= last_seen
    ]
    in_time = sorted(reported, key=itemgetter(0))
    last = {(run.client_id, run.start_timestamp or 0): (said_at, run) for said_at, run in in_time}
    return tuple(
        LastReport(client_id, said_at, tuple(sorted(ProcessReport(run).activities.get(topic, ()))))
        for (client_id, _), (said_at, run) in sorted(last.items())
    )


def _backlog(
    dossier: Dossier, topic: str, snapshot_time: Instant, orphans: Iterable[Row]
) -> tuple[dict[MessageQueue, int] | None, frozenset[MessageQueue], Instant | None]:
    """The waiting messages of each queue at its last poll by then, where these wait still; the
    queues of them of which more may have come; and the last of these polls.
    """
    first_seen = {(row["broker_name"], row["queue_id"]): row["first_seen"] for row in orphans}
    backlog, old, polled = {}, set(), []
    for offsets in dossier.offsets.get(topic, ()):
        if (place := last_up_to(offsets, snapshot_time)) < 0:
            continue
        is_known = shows_what_waits(offsets, snapshot_time)
        orphaned_since = first_seen.get((offsets.broker_name, offsets.queue_id))
        if is_known or still_waits(offsets, snapshot_time, orphaned_since):
            queue = MessageQueue(topic, offsets.broker_name, offsets.queue_id)
            backlog[queue] = int(offsets.waiting[place])
            polled.append(int(offsets.times[place]))
            if not is_known:
                old.add(queue)
    return backlog or None, frozenset(old), max(polled, default=None)


def _read(
    dossier: Dossier, topic: str, at: Instant, wrong: Iterable[Row], terms: Terms
) -> ReadQueues | None:
    """The queues by their offsets: of one in which something is ``wrong`` then, in the time of
    that; of another from ``persistence_seconds`` before the moment until so long after it.
    """
    around = terms.persistence_seconds * SECOND
    times = {
        (row["broker_name"], row["queue_id"]): (row["first_seen"], row["last_seen"])
        for row in wrong
    }
    advancing = caught_up = 0
    offsets = dossier.offsets.get(topic, ())
    for offset in offsets:
        time = times.get((offset.broker_name, offset.queue_id), (at - around, at + around))
        if reading(offset, [time]).moved:
            advancing += 1
        elif (place := last_up_to(offset, at)) >= 0 and not offset.waiting[place]:
            caught_up += 1
    return ReadQueues(advancing, caught_up) if offsets else None
