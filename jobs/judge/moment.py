"""dossier -> moments: all about one topic at one time, or about each topic of a group.

What ``explain`` and ``what-if`` answer from: the same situation, the same evaluation and the same
history as the published tables have.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import NamedTuple

from rebalance_core import MessageQueue, State, StrategyRules, near_names
from rebalance_core.texts import Text

from ..config.masking import Masking
from ..declared.instants import Instant
from ..declared.kinds import GRADED_TABLES, QUEUE_FINDINGS, SEVERITIES
from ..errors import InputError
from ..schemas import RUNNING_INFO
from .arrow_tables import Row
from .backlog import last_up_to, shows_what_waits, still_waits
from .case import Case
from .core_verdict import QueueKey, Verdict
from .dossier import Dossier
from .evaluation import MemberFacts, Question, answer, at_once, questions
from .history import judge
from .holdings import ProcessReport
from .situations import find_situations
from .terms import Terms


class LastReport(NamedTuple):
    """The last report of one process before the moment, of the queues that it holds."""

    client_id: str
    said_at: Instant
    queues: tuple[QueueKey, ...]


class FindingsElsewhere(NamedTuple):
    """The kinds of all that was found of a topic, the worst first, and when the worst was."""

    kinds: tuple[str, ...]
    first_seen: Instant
    last_seen: Instant


@dataclass(frozen=True)
class Moment:
    """A topic of a group as of one snapshot.

    ``first_seen``, ``last_seen``: of the period in which the situation held. ``episodes``: by
    table the rows of ``history.judge`` whose time holds the snapshot. ``backlog``: messages not
    consumed, by queue, at the last offsets polled up to the snapshot (``backlog_at``); of the
    queues of ``backlog_old`` these are old, and more may wait.
    """

    cluster: str
    state: State
    snapshot_time: Instant
    first_seen: Instant
    last_seen: Instant
    episodes: Mapping[str, Sequence[Row]]
    held: tuple[LastReport, ...] = ()
    backlog: Mapping[MessageQueue, int] | None = None
    backlog_old: frozenset[MessageQueue] = frozenset()
    backlog_at: Instant | None = None
    #: The first and the last snapshot that there is.
    snapshots: tuple[Instant, Instant] | None = None
    #: The findings of the topic at other times, where it has none at the moment.
    elsewhere: FindingsElsewhere | None = None
    #: The masking of client ids.
    masking: Masking = field(default_factory=Masking)


def find_moments(
    dossier: Dossier,
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
    until = times[-1] if at is None else at
    early = [time for time in times if time <= until]
    if not early:
        template = (
            "{group} has no snapshot up to {came:iso}: its snapshots go from {first:iso} to "
            "{last:iso}"
        )
        raise InputError(Text(template, group=group, came=until, first=times[0], last=times[-1]))
    snapshot_time = early[-1]
    found = find_situations(dossier, terms)
    evaluated: dict[str, Verdict] = {}
    for some in at_once(questions(found.distinct().values(), members)):
        evaluated |= answer(some, rules).by_id()
    judged = judge(Case(dossier, found, evaluated, terms))
    moments: list[Moment] = []
    for each in [topic] if topic is not None else sorted(topics):
        found_of = {
            table: [row for row in judged[table] if row["topic"] == each] for table in GRADED_TABLES
        }
        episodes = {
            table: [row for row in rows if row["first_seen"] <= snapshot_time <= row["last_seen"]]
            for table, rows in found_of.items()
        }
        backlog, backlog_old, backlog_at = _backlog(
            dossier, each, snapshot_time, episodes["orphaned_queues"]
        )
        moments += [
            Moment(
                cluster=dossier.cluster,
                state=Question(period.situation, members).state(),
                snapshot_time=snapshot_time,
                first_seen=period.first_seen,
                last_seen=period.last_seen,
                episodes=episodes,
                held=_held(dossier, each, period.first_seen, snapshot_time),
                backlog=backlog,
                backlog_old=backlog_old,
                backlog_at=backlog_at,
                snapshots=(times[0], times[-1]),
                elsewhere=None if any(episodes.values()) else _elsewhere(found_of),
                masking=terms.masking,
            )
            for period in found.by_topic[each]
            if period.first_seen <= snapshot_time <= period.last_seen
        ]
    return moments


def _elsewhere(found: Mapping[str, Sequence[Row]]) -> FindingsElsewhere | None:
    """The findings in these rows of a topic, by table; of equally bad ones the longest."""

    every = (
        (SEVERITIES.index(row["severity"]), row["last_seen"] - row["first_seen"], table, row)
        for table in found
        for row in found[table]
    )
    in_order = [each[2:] for each in sorted(every, key=itemgetter(0, 1), reverse=True)]
    if not in_order:
        return None
    kinds = dict.fromkeys(QUEUE_FINDINGS.get(table) or row["fault"] for table, row in in_order)
    _, worst = in_order[0]
    return FindingsElsewhere(tuple(kinds), worst["first_seen"], worst["last_seen"])


def _held(dossier: Dossier, topic: str, since: Instant, until: Instant) -> tuple[LastReport, ...]:
    """The last running info with queues of each process, of those from ``since`` to ``until``.

    A report from before the situation began may be that of a process that is gone.
    """
    reported = [
        (said_at, run)
        for run in dossier.clients
        if run.source == RUNNING_INFO and run.error_code is None and run.queues is not None
        for said_at, _ in run.times
        if said_at is not None and since <= said_at <= until
    ]
    in_time = sorted(reported, key=itemgetter(0))
    last = {(run.client_id, run.start_timestamp): (said_at, run) for said_at, run in in_time}
    by_process = sorted(last.items(), key=lambda each: (each[0][0], each[0][1] or 0))
    return tuple(
        LastReport(client_id, said_at, tuple(sorted(ProcessReport(run).activities.get(topic, ()))))
        for (client_id, _), (said_at, run) in by_process
    )


def _backlog(
    dossier: Dossier, topic: str, until: Instant, orphans: Iterable[Row]
) -> tuple[dict[MessageQueue, int] | None, frozenset[MessageQueue], Instant | None]:
    """The waiting messages of each queue at its last poll by then, where these wait still; the
    queues of them of which more may have come; and the last of these polls.
    """
    since = {(row["broker_name"], row["queue_id"]): row["first_seen"] for row in orphans}
    backlog, old, polled = {}, set(), []
    for each in dossier.offsets.get(topic, ()):
        if (place := last_up_to(each, until)) < 0:
            continue
        is_known = shows_what_waits(each, until)
        orphaned_since = since.get((each.broker_name, each.queue_id))
        if is_known or still_waits(each, until, orphaned_since):
            queue = MessageQueue(topic, each.broker_name, each.queue_id)
            backlog[queue] = int(each.waiting[place])
            polled.append(int(each.times[place]))
            if not is_known:
                old.add(queue)
    return backlog or None, frozenset(old), max(polled, default=None)
