"""client runs and timelines -> holdings: what each process had, and what was computed for it.

A running info shows what its process holds at one moment (``ConsumerRunningInfo``). A log line
shows what its client computed for one topic (``RebalanceImpl.rebalanceByTopic``); it is printed
when the result changes, and only then, so that it is in force until the next one.
"""

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain, groupby, pairwise, zip_longest
from math import floor
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from rebalance_core.findings import QUEUES_CHOSEN
from rebalance_core.grouping import grouped
from rebalance_core.state import BROADCASTING, Unreachable

from ...declared.contents import PULLS
from ...declared.dossier import ClientRun, Dossier
from ...declared.instants import REBALANCE_INTERVAL, ROUTE_INTERVAL, Instant
from ...declared.kinds import ROUTE_CHANGED
from ...schemas import CLIENT_LOG, RUNNING_INFO
from .answers import longest_bridge
from .core_verdict import QueueKey
from .routes import RouteChange
from .timeline import Phase, Timeline

STATE_CHANGED = "STATE_CHANGED"
OTHER_LIST = "OTHER_LIST"

#: The longest time from a change of the route until a client has divided its queues by it.
_ROUTE_LAG = ROUTE_INTERVAL + REBALANCE_INTERVAL

#: The change of a route that never changed: before all moments.
_NEVER: Instant = -(2**63)
#: The end of a line that is never replaced: after all moments.
_FOR_EVER: Instant = 2**63

#: A lite pull consumer fills in ``mqTable`` from this version on (``DefaultLitePullConsumerImpl``
#: 5.1.1, by the number that ``MQVersion`` has for its snapshot).
_LITE_PULL_FILLS_IN = 434
#: ``mqTable`` is filled in by these for sure; a client in no list has no language.
_FILL_IN_THEIR_TABLE = (None, "JAVA", "GO")


class ReportingProcess(NamedTuple):
    """The process whose statements they are.

    Processes that share a client id differ in the start of their consumer (running infos), or in
    the host label of their log.
    """

    source: str
    client_id: str
    start_timestamp: Instant | None
    process: str | None

    @property
    def is_log(self) -> bool:
        """True if it comes from a log, which shows what the process computed, not what it held."""
        return self.source == CLIENT_LOG


class ComputedShare(NamedTuple):
    """The queues that each process of a client id takes under one view."""

    queues: frozenset[QueueKey]
    view_weight: float
    #: The lengths of the view's lists: of queues, of clients.
    lengths: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Holding:
    """The queues that one process had of one topic, in one period within one phase.

    A period of running infos has the ``rounds`` that follow each other with one answer, and when
    each of these answers came; the period of a log line has none: the line is in force from
    ``first_seen`` until ``last_seen``.
    """

    process: ReportingProcess
    topic: str
    first_seen: Instant
    last_seen: Instant
    #: The report of the process.
    run: ClientRun
    #: The queues that are not being released, each with what the process does not do with it; None:
    #: it does all. See ``ReportedQueue``.
    activities: Mapping[QueueKey, str | None]
    phase: Phase
    #: The queues that its client id takes, under each view of the phase; empty where it does not
    #: subscribe.
    computed: tuple[ComputedShare, ...]
    #: No change before it explains a difference any more.
    is_settled: bool
    #: The explanation of a difference: ROUTE_CHANGED, STATE_CHANGED or OTHER_LIST.
    explained_by: str | None
    rounds: tuple[Instant, ...] = ()
    #: The time of its answer in each round, in the same order: what is held is compared with what
    #: was computed then, however long the round took.
    moments: tuple[Instant, ...] = ()
    #: The line was printed in this very phase: its lengths show which of the views it had.
    has_lengths_of_phase: bool = False
    #: The rounds in which its answer is missing, and follows from two that agree. It shows that
    #: somebody holds a queue, and not that two do.
    bridged: frozenset[Instant] = frozenset()
    #: The brokers that it does not reach. It keeps their queues in its table and reads nothing of
    #: them: each attempt to pull sets ``lastPullTimestamp``, so that they never expire
    #: (``DefaultMQPushConsumerImpl.pullMessage`` 4.9.4).
    beyond_reach: frozenset[str] = frozenset()

    @property
    def broadcasts(self) -> bool:
        """True if it reads every queue for itself: it is nobody's owner."""
        return self.run.message_model == BROADCASTING

    @property
    def answered(self) -> Sequence[Instant]:
        """The rounds in which it answered itself."""
        return [round_ for round_ in self.rounds if round_ not in self.bridged]


def find_holdings(
    dossier: Dossier,
    timelines: Mapping[str, Timeline],
    changes: Mapping[str, Sequence[RouteChange]],
) -> list[Holding]:
    """Finds what each process held of each topic, in the phases that have its client id.

    ``changes`` has by topic those of its route. The holdings of one process and topic follow each
    other, in time.
    """
    answers, logs = _running_infos(dossier.clients), list(_logs(dossier.clients))
    client_ids = {reported.process.client_id for reported in chain[_Answer | _Line](answers, logs)}
    if not client_ids:
        return []
    holdings: list[Holding] = []
    for topic, timeline in timelines.items():
        changed_at = sorted(route_change.collected_at for route_change in changes.get(topic, ()))
        segments = _segments(timeline.phases, changed_at, client_ids)
        pieces = [piece for segment in segments for piece in segment.pieces()]
        for answer in answers:
            holdings += _answer_holdings(answer, pieces)
        holdings += _log_holdings([log for log in logs if log.topic in (None, topic)], segments)
    return holdings


# ---------------------------------------------------------------- what was computed


class _SituationShares(NamedTuple):
    """The shares computed in a situation for the client ids that hold or log something."""

    by_client: Mapping[str, tuple[ComputedShare, ...]]
    #: The number of processes behind each client id.
    copies: Mapping[str, int]
    #: (queues, clients) of the lists of every view.
    lengths: frozenset[tuple[int, int]]

    def beyond_reach(self, client_id: str, unreachable: Iterable[Unreachable]) -> frozenset[str]:
        """The brokers that no process of the id reaches."""
        lacking = Counter(name for client, name in unreachable if client in (None, client_id))
        processes = max(self.copies.get(client_id, 1), 1)
        for_all = {name for client, name in unreachable if client is None}
        return frozenset(for_all | {name for name, times in lacking.items() if times >= processes})


def _shares(phase: Phase, client_ids: Collection[str]) -> _SituationShares:
    if not phase.is_computed:
        return _SituationShares(dict.fromkeys(client_ids, ()), {}, frozenset())
    allocations = phase.evaluated.allocations()
    by_client: dict[str, tuple[ComputedShare, ...]] = defaultdict(tuple)
    copies: dict[str, float] = defaultdict(float)
    for allocation in allocations:
        if allocation.client_id in client_ids:
            # Each view counts the processes once, and the weights add up to 1.
            copies[allocation.client_id] += allocation.processes * allocation.view_weight
            lengths = allocation.view_queues, allocation.view_clients
            share = ComputedShare(frozenset(allocation.queues), allocation.view_weight, lengths)
            by_client[allocation.client_id] += (share,) if allocation.subscribed else ()
    return _SituationShares(
        dict(by_client),
        # A half counts as one: nothing shows that the process is not there.
        {client_id: floor(number + 0.5) for client_id, number in copies.items()},
        frozenset((allocation.view_queues, allocation.view_clients) for allocation in allocations),
    )


class _Segment(NamedTuple):
    """A phase, and from when on neither its route nor its lists explain that a client differs."""

    phase: Phase
    shares: Callable[[], _SituationShares]
    is_first: bool
    #: The last change of the route by then.
    changed_at: Instant
    settled_at: Instant
    #: Up to when it is sure to hold.
    last_seen: Instant
    #: The beginning of the next one.
    ends: Instant

    def explanation_at(self, moment: Instant) -> str | None:
        """The change that explains why a process holds something else at that moment.

        When the first phase began nobody saw. Between two phases either may be in force.
        """
        if moment > self.last_seen:
            return STATE_CHANGED
        if moment <= self.changed_at + _ROUTE_LAG:
            return ROUTE_CHANGED
        if not self.is_first and moment < self.phase.first_seen + REBALANCE_INTERVAL:
            return STATE_CHANGED
        return None

    def pieces(self) -> list["_Piece"]:
        """Its time, cut where another reason explains a difference, or none."""
        begins, ends = self.phase.first_seen, self.ends
        changes = self.settled_at, self.changed_at + _ROUTE_LAG + 1, self.last_seen + 1
        cuts = {begins, ends, *[change for change in changes if begins < change < ends]}
        return [(self, *edges) for edges in pairwise(sorted(cuts))]

    def make_holding(
        self, reported: "_Answer | _Line", first_seen: Instant, last_seen: Instant, **more: Any
    ) -> Holding:
        """The holding of the process from one time to another, as it reported it."""
        process, topic, run = reported.process, self.phase.topic, reported.report.run
        activities = reported.report.activities.get(topic, {})
        computed = self.shares().by_client[process.client_id]
        return Holding(
            process, topic, first_seen, last_seen, run, activities, self.phase, computed, **more
        )


#: A part of a segment from one time to another, without its end: one reason, or none, explains a
#: difference in it.
_Piece: TypeAlias = tuple[_Segment, Instant, Instant]


def _segments(
    phases: Sequence[Phase], changes: Sequence[Instant], client_ids: Collection[str]
) -> list[_Segment]:
    """The phases of one topic; ``changes``: when its route changed, ascending."""
    distinct = {phase.situation_id: phase for phase in phases}
    shares = {id_: cache(partial(_shares, phase, client_ids)) for id_, phase in distinct.items()}
    segments: list[_Segment] = []
    for phase, following in zip_longest(phases, phases[1:]):
        # After the last phase nobody looked: for a while it counts.
        last_seen = phase.last_seen if following else phase.last_seen + _ROUTE_LAG
        ends = following.first_seen if following else last_seen + 1
        phase_shares = shares[phase.situation_id]
        if phase.verdict.coverage == QUEUES_CHOSEN:
            # Neither lists nor routes change what a member takes by assign()
            # (``assign_overlap_gap``).
            chosen = False, _NEVER, phase.first_seen, ends - 1, ends
            segments.append(_Segment(phase, phase_shares, *chosen))
            continue
        if following and following.situation_id == phase.situation_id:
            last_seen = ends - 1
        # The change that began a phase was collected in its first round, after that one began.
        is_one_round = following and phase.last_seen == phase.first_seen
        changed = bisect_right(changes, ends - 1 if is_one_round else phase.last_seen)
        changed_at = changes[changed - 1] if changed else _NEVER
        settled_at = max(phase.first_seen + REBALANCE_INTERVAL, changed_at + _ROUTE_LAG)
        times = changed_at, settled_at, last_seen, ends
        segments.append(_Segment(phase, phase_shares, not segments, *times))
    return segments


class ProcessReport:
    """The report of a process about all its topics.

    ``activities``: by topic and queue, of those that are not being released, what it does not do
    with the queue; None: it does all.
    """

    def __init__(self, run: ClientRun) -> None:
        self.run = run
        self.activities: dict[str, dict[QueueKey, str | None]] = defaultdict(dict)
        for queue in run.queues or ():
            if not queue.dropped:
                self.activities[queue.topic][queue.broker_name, queue.queue_id] = queue.activity


# ---------------------------------------------------------------- running infos


class _Answer(NamedTuple):
    """The answer of a process in rounds that follow each other."""

    process: ReportingProcess
    report: ProcessReport
    rounds: tuple[Instant, ...]
    moments: tuple[Instant, ...]
    bridged: frozenset[Instant]


def _running_infos(clients: Sequence[ClientRun]) -> list[_Answer]:
    """The answers of one process after those of another, each process's in time.

    Several brokers may have forwarded the question of one round: what was observed last counts.
    In a round in which its answer is missing a process holds what it held before, where its next
    answer is the same and comes soon enough (``answers.longest_bridge``).
    """
    shown = (run for run in clients if run.source == RUNNING_INFO and _shows_its_queues(run))
    by_process = grouped(((run.client_id, run.start_timestamp), run) for run in shown)
    by_round = grouped(chain.from_iterable(run.times for run in chain(*by_process.values())))
    latest = {round_: max(moments) for round_, moments in by_round.items() if round_ is not None}
    rounds = sorted(latest.items())
    longest = longest_bridge(np.array(sorted(latest), np.int64))
    return [
        answer
        for runs in by_process.values()
        # Else it never shows a queue and need not: an SDK that may not fill in the table
        # (``judge/test_held``).
        if any(run.queues for run in runs)
        or all(run.language in _FILL_IN_THEIR_TABLE for run in runs)
        for answer in _in_time(runs, rounds, longest)
    ]


def _in_time(
    runs: Sequence[ClientRun], rounds: Sequence[tuple[Instant, Instant]], longest: float
) -> Iterator[_Answer]:
    """The answers of a process; ``rounds``: in which some process answered, in time, and when the
    last one did in each; ``longest``: how far apart two answers may be that are bridged.
    """
    observed = sorted(
        (snapshot, observed_at, number)
        for number, run in enumerate(runs)
        for snapshot, observed_at in run.times
        if snapshot is not None
    )
    latest = {snapshot: (observed_at, number) for snapshot, observed_at, number in observed}
    bridged: dict[Instant, tuple[Instant, int]] = {}
    for (one, (_, before)), (later, (_, after)) in pairwise(sorted(latest.items())):
        if before == after and later - one <= longest:
            start = bisect_right(rounds, one, key=itemgetter(0))
            stop = bisect_left(rounds, later, key=itemgetter(0))
            bridged |= {round_: (moment, before) for round_, moment in rounds[start:stop]}
    latest |= bridged
    process = ReportingProcess(RUNNING_INFO, runs[0].client_id, runs[0].start_timestamp, None)
    in_time = sorted((moment, number, round_) for round_, (moment, number) in latest.items())
    for number, answers in groupby(in_time, key=itemgetter(1)):
        moments, _, in_rounds = zip(*answers, strict=True)
        yield _Answer(process, ProcessReport(runs[number]), in_rounds, moments, frozenset(bridged))


def _shows_its_queues(run: ClientRun) -> bool:
    """True if what it holds compares with what is computed for it.

    Pull consumers leave the table of their queues empty whatever they pull, and
    ``DefaultMQPullConsumer`` pulls whatever its application likes (``judge/test_drift``).
    """
    is_answer = run.error_code is None and run.queues is not None and run.pull_consumer is not True
    fills_in = run.consume_type != PULLS or (run.version or 0) >= _LITE_PULL_FILLS_IN
    return is_answer and (bool(run.queues) or fills_in)


def _answer_holdings(answer: _Answer, pieces: Sequence[_Piece]) -> Iterator[Holding]:
    """A segment is in force from its first snapshot until the first one of the next."""
    client_id = answer.process.client_id
    first = bisect_right(pieces, answer.moments[0], key=itemgetter(2))
    end = bisect_right(pieces, answer.moments[-1], key=itemgetter(1))
    for segment, begins, ends in pieces[first:end]:
        within = slice(bisect_left(answer.moments, begins), bisect_left(answer.moments, ends))
        rounds, moments = answer.rounds[within], answer.moments[within]
        shares = segment.shares()
        if not moments or client_id not in shares.by_client:
            continue
        yield segment.make_holding(
            answer,
            moments[0],
            moments[-1],
            is_settled=segment.settled_at <= begins <= segment.last_seen,
            explained_by=segment.explanation_at(begins),
            rounds=rounds,
            moments=moments,
            bridged=answer.bridged.intersection(rounds),
            beyond_reach=shares.beyond_reach(client_id, segment.phase.unreachable),
        )


# ---------------------------------------------------------------- client logs


class _Line(NamedTuple):
    """A log line, in force until another of its log replaces it."""

    process: ReportingProcess
    topic: str | None
    logged_at: Instant
    ends: Instant
    report: ProcessReport


def _logs(clients: Sequence[ClientRun]) -> Iterator[_Line]:
    """The lines that a log has of one topic after those of another, each topic's in time.

    A broker's assignment is not a result of the client, but it replaces one.
    """
    by_log = grouped(
        (
            (ReportingProcess(CLIENT_LOG, run.client_id, None, run.process), run.topic),
            (logged_at, observed_at, number),
        )
        for number, run in enumerate(clients)
        if run.source == CLIENT_LOG
        for logged_at, observed_at in run.times
        if logged_at is not None
    )
    for log, printed in by_log.items():
        in_time = sorted(printed)
        for (logged_at, _, number), following in zip_longest(in_time, in_time[1:]):
            run, ends = clients[number], following[0] if following else _FOR_EVER
            if run.client_rebalance is not False and run.queues is not None:
                yield _Line(*log, logged_at, ends, ProcessReport(run))


#: The beginning and the end of a segment's phase.
_first_seen, _last_seen = attrgetter("phase.first_seen"), attrgetter("phase.last_seen")


def _log_holdings(lines: Iterable[_Line], segments: Sequence[_Segment]) -> Iterator[Holding]:
    """The periods of all logs of a topic.

    A log outlives its process, and its last line stays in force: where more logs than processes
    have the id, nothing shows which of them still run, and none counts (``S2``).
    """
    found = [period for line in lines for period in _periods(line, segments)]
    processes_of: dict[tuple[str, int], set[str | None]] = defaultdict(set)
    for holding, _ in found:
        processes_of[holding.process.client_id, holding.phase.position].add(holding.process.process)
    for holding, copies in found:
        # Logs without a label cannot be counted.
        if len(processes_of[holding.process.client_id, holding.phase.position] - {None}) <= copies:
            yield holding


def _periods(line: _Line, segments: Sequence[_Segment]) -> Iterator[tuple[Holding, int]]:
    """Each period of a line, with the processes behind its client id.

    A line counts from 20 s after it, or after the phase's first snapshot (50 s after the route
    changed), until the next line or the phase's last snapshot; the time in which the client may
    not know the new route yet is another period.
    """
    client_id, is_other_list = line.process.client_id, _is_other_list(line, segments)
    first = bisect_left(segments, line.logged_at, key=_last_seen)
    for segment in segments[first : bisect_right(segments, line.ends, key=_first_seen)]:
        shares = segment.shares()
        if not shares.by_client.get(client_id):
            continue
        ends = min(segment.phase.last_seen, line.ends)
        counts_from = max(line.logged_at + REBALANCE_INTERVAL, segment.settled_at)
        # Who joins or leaves is followed in a moment; clients have a route only once they have
        # polled it.
        follows = max(line.logged_at, segment.phase.first_seen)
        for first_seen, last_seen, explained_by in (
            (follows, min(segment.changed_at + _ROUTE_LAG, ends), ROUTE_CHANGED),
            (counts_from, ends, OTHER_LIST if is_other_list else None),
        ):
            if first_seen < last_seen:
                period = segment.make_holding(
                    line,
                    first_seen,
                    last_seen,
                    is_settled=explained_by != ROUTE_CHANGED,
                    explained_by=explained_by,
                    has_lengths_of_phase=line.logged_at >= segment.settled_at,
                )
                yield period, shares.copies[client_id]


def _is_other_list(line: _Line, segments: Sequence[_Segment]) -> bool:
    """True if the lengths that a line names are those of no view of a phase near it in time.

    Nobody saw what the lists were before the first snapshot.
    """
    run = line.report.run
    if run.queue_count is None or run.client_count is None:
        return False
    # A phase holds at most from the snapshot before it to the one after it, and clients lag it.
    first = max(bisect_left(segments, line.logged_at - _ROUTE_LAG, key=_first_seen) - 1, 0)
    end = bisect_right(segments, line.logged_at + _ROUTE_LAG, key=_last_seen) + 1
    client_id = line.process.client_id
    near = [segment for segment in segments[first:end] if client_id in segment.shares().by_client]
    return bool(near) and not any(
        (run.queue_count, run.client_count) in segment.shares().lengths
        or (segment.is_first and line.logged_at < segment.phase.first_seen + _ROUTE_LAG)
        for segment in near
    )
