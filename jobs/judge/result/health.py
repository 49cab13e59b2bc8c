"""periods -> group_health, state_runs, unreadable_queues: the rows of every topic that was seen,
whether or not the group could be recomputed; and how long a round of questions takes. What is worth
a line beside the findings, and is no alarm, is a sentence with its numbers in the reason.

Brokers that are asked a minute apart are compared as they were a minute apart. What changed in
between is followed (see ``membership``), but nothing shorter than a round can be seen.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from decimal import ROUND_HALF_UP, Decimal
from itertools import chain, groupby
from math import fsum
from typing import NamedTuple

import numpy as np

from rebalance_core import findings
from rebalance_core.client_id import placeholders_in
from rebalance_core.english import MOST_NAMES, agreeing, joined, list_of, named_broker, with_commas
from rebalance_core.findings import Evaluation
from rebalance_core.grouping import grouped
from rebalance_core.message_queue import is_retry_topic
from rebalance_core.texts import Text

from ...declared.dossier import Dossier, QueueOffsets, RouteRun
from ...declared.instants import SECOND, Instant
from ...declared.kinds import NO_GROUP, worst
from ...languages.translated_rows import TEXTS
from ...schemas import GROUP_HEALTH, NO_ANSWER, UNAUDITED
from ..observe.answers import asked_answers
from ..observe.arrow_tables import Row
from ..observe.backlog import TopicBacklog, shows_what_waits, still_waits, topic_backlog
from ..observe.core_verdict import QueueKey, Verdict
from ..observe.in_words import between, queues_in_words, waiting_in_words, zoned_clock
from ..observe.routes import readable
from ..observe.situations import Period
from ..rules.case import Case
from ..rules.found import GroupFindings, QueueFinding, Stall
from ..rules.messages_again import retries, steps
from ..times import usual_gap

_MINUTE = 60 * SECOND

#: The columns of a topic of which nothing was recomputed.
_NOTHING: Row = {
    **dict.fromkeys(("audited_snapshots", "members", "processes", "idle_clients", "imbalance"), 0),
    **dict.fromkeys(("completeness", "orphan_queue_minutes", "duplicate_queue_minutes"), 0.0),
    "strategy_source": None,
}


#: The columns that are those of the last evaluation that shows them.
_AT_THE_END = (
    *("coverage", "reason", "members", "processes", "queues", "idle_clients"),
    *("strategy_source", "subscription_source"),
)


def _backlog_columns(
    dossier: Dossier,
    topic: str,
    at_end: Period,
    end: Evaluation,
    time: Instant,
    found: Sequence[QueueFinding | Stall],
) -> Row:
    """The messages that wait in the topic at a time, and the number of its queues where that is not
    known.

    Old offsets do not show it. But what waited then in a queue that nobody has consumed since still
    waits: it counts, and so does the queue as one of which no more is known.

    Clients that broadcast keep their offsets themselves, and the broker's say nothing of them
    (``DefaultMQPushConsumerImpl.start``: ``LocalFileOffsetStore``).
    """
    not_known = {**TopicBacklog()._asdict(), "queues_without_offsets": None}
    if end.coverage == findings.BROADCASTING_GROUP:
        return not_known
    every = [queue for queue in dossier.offsets.get(topic, ()) if queue.times.size]
    offsets = [queue for queue in every if shows_what_waits(queue, time)]
    orphans = (one for one in found if one.kind == findings.ORPHANED and one.last_seen >= time)
    orphaned_since = {orphan.queue: orphan.first_seen for orphan in orphans}
    # A stranger chose how many queues a route has: they are counted, never made.
    queues: dict[str, int] = {}
    for _, brokers in at_end.situation.routes:
        for name, number in readable(brokers):
            queues[name] = max(number, queues.get(name, 0))
    known = {(offset.broker_name, offset.queue_id) for offset in offsets}
    queued = (((one.broker_name, one.queue_id), one) for one in every)
    others = ((queue, one) for queue, one in queued if queue not in known)
    left = [one for queue, one in others if still_waits(one, time, orphaned_since.get(queue))]
    waiting = topic_backlog([*offsets, *left])
    if not queues and not waiting.backlog:  # of which queues, without a route nobody knows
        return not_known
    in_route = sum(queue_id < queues.get(name, 0) for name, queue_id in known)
    missing = min(sum(queues.values()) - in_route, findings.MOST_INT)
    return {**waiting._asdict(), "queues_without_offsets": missing}


def group_health(case: Case, topic: str, found: Sequence[QueueFinding | Stall]) -> Row:
    """The row of ``group_health`` of a topic, audited or not, with the findings of its queues."""
    periods = case.situations.by_topic[topic]
    covered = [(one, case.evaluated[one.situation.situation_id].verdict) for one in periods]
    # A period that shows owners counts over a later one that does not.
    at_end, end = max(covered, key=lambda each: (each[1].shows_owners, each[0].last_seen))
    audited = (period.snapshots for period, seen in covered if seen.coverage == findings.AUDITED)
    complete = (evaluation.completeness for _, evaluation in covered if evaluation.shows_owners)
    return {
        "topic": topic,
        "snapshots": sum(period.snapshots for period in periods),
        "audited_snapshots": sum(audited),
        "first_seen": periods[0].first_seen,
        "last_seen": periods[-1].last_seen,
        "completeness": min(complete, default=0.0),
        **{name: getattr(end, name) for name in _AT_THE_END},
        **_silence(case.dossier, end),
        **_backlog_columns(case.dossier, topic, at_end, end, periods[-1].last_seen, found),
        **_unaudited(case, covered),
        "imbalance": end.most_queues - end.fewest_queues,
        "orphan_queue_minutes": _queue_minutes(findings.ORPHANED, found),
        "duplicate_queue_minutes": _queue_minutes(findings.DUPLICATE, found),
        "worst_severity": worst(finding.severity for finding in found) if found else None,
    }


def _unaudited(case: Case, covered: Sequence[tuple[Period, Evaluation]]) -> Row:
    """The longest time in which nobody knows the owners, where what lasts may have come and gone.

    It ends with the first snapshot that shows owners again, or with the last one of the topic. Of
    several coverages in that time the row has the first. Routes may be collected more seldom than
    lists: that the first one comes late is no such time while a route counts for as long, and
    while something can last after it.
    """
    times = [*(period.first_seen for period, _ in covered), covered[-1][0].last_seen]
    lasting = []
    for shows, run in groupby(range(len(covered)), lambda number: covered[number][1].shows_owners):
        first, *others = run
        last = [first, *others][-1]
        coverages = [evaluation.coverage for _, evaluation in covered[first : last + 1]]
        begins, ends = times[first], times[last + 1]
        waits_for_route = first == 0 and set(coverages) == {findings.ROUTE_NOT_KNOWN}
        left = times[-1] - ends
        comes_too_late = last + 1 < len(covered) and left < case.persistence_seconds * SECOND
        late = case.terms.route_max_age_seconds * (waits_for_route and not comes_too_late)
        if not shows and ends - begins >= max(case.persistence_seconds, late, 1) * SECOND:
            lasting.append((ends - begins, begins, ends, coverages[0]))
    _, *times_of_longest, coverage = max(lasting, default=(0, None, None, None))
    return dict(zip(UNAUDITED, (coverage, *times_of_longest), strict=True))


def _silence(dossier: Dossier, verdict: Evaluation) -> Row:
    """The reason with who gave no list of members in the whole window, and at which address."""
    answers = grouped((run.broker, run) for run in dossier.polls)
    silent = [
        Text("{broker} at {address}", broker=named_broker(*broker), address=runs[-1].broker_addr)
        for broker, runs in sorted(answers.items())
        if runs[-1].broker_addr and all(run.answer == NO_ANSWER for run in runs)
    ]
    if verdict.coverage not in (findings.NO_BROKER_ANSWERED, findings.NO_TOPIC) or not silent:
        return {}
    where = Text(
        "no list came from {brokers}: check whether the broker can be reached at this address "
        "(it registers its brokerIP1), and whether it refuses the request",
        brokers=list_of(silent, MOST_NAMES),
    )
    return {"reason": joined([verdict.reason, where])}


def _queue_minutes(kind: str, found: Iterable[QueueFinding | Stall]) -> float:
    """The minutes for which the queues were so, weighted by probability and share of the time."""
    minutes = fsum(
        (one.last_seen - one.first_seen) / _MINUTE * one.probability * one.extent.share_of_time
        for one in found
        if isinstance(one, QueueFinding) and one.kind == kind
    )
    return float(Decimal(repr(minutes)).quantize(Decimal("0.000001"), ROUND_HALF_UP))


def topic_without_group(topic: str, routes: Sequence[RouteRun]) -> Row:
    """The row of ``group_health`` of a topic that has a route and that no group subscribes to.

    Nobody reads the topic, or its readers were not polled. It keeps its row all the same.
    """
    times = sorted({time for run in routes for time in run.times})
    at_end = [readable(run.brokers) for run in routes if times[-1] in run.times]
    queues = sum(queues for _, queues in set(chain.from_iterable(at_end)))
    reason = Text("no member of any group in the dumps subscribes to the topic")
    row = topic_without_audit(topic, NO_GROUP, reason, times)
    return row | {"queues": min(queues, findings.MOST_INT)}


def topic_without_audit(topic: str, coverage: str, reason: Text, times: Sequence[Instant]) -> Row:
    """The row of ``group_health`` of a topic of which nothing was recomputed; ``times``: the
    snapshots that show it, ascending. Of the group nothing is known.
    """
    optional = {field.name for field in GROUP_HEALTH.schema if field.nullable} - {TEXTS}
    return {
        **dict.fromkeys(optional),
        **_NOTHING,
        "topic": topic,
        "coverage": coverage,
        "reason": reason,
        "snapshots": len(times),
        "first_seen": times[0],
        "last_seen": times[-1],
        "queues": 0,
    }


def state_runs(periods: Iterable[Period]) -> list[Row]:
    """The rows of ``state_runs``."""
    names = ("topic", "state_id", "first_seen", "last_seen", "snapshots")
    return [
        dict(zip(names, (of.topic, of.situation_id, *in_time), strict=True))
        for of, _, *in_time in periods
    ]


def unreadable_queues(periods: Iterable[Period], evaluated: Mapping[str, Verdict]) -> list[Row]:
    """The rows of ``unreadable_queues``: from the first to the last period that shows a queue."""
    shown = grouped(
        (queue, period)
        for period in periods
        for queue in evaluated[period.situation.situation_id].verdict.unreadable
    )
    return [
        {
            **asdict(queue),
            "first_seen": shown_periods[0].first_seen,
            "last_seen": shown_periods[-1].last_seen,
            "snapshots": sum(period.snapshots for period in shown_periods),
        }
        for queue, shown_periods in shown.items()
    ]


# ---------------------------------------------------------------- rounds


class Rounds(NamedTuple):
    """The usual round of a group, in seconds.

    ``seconds``: from its first answer to its last, the median. ``interval_seconds``: between two
    rounds of one broker, for of two collectors each may ask other brokers; None where each
    broker was asked once.
    """

    seconds: float
    interval_seconds: float | None


def find_rounds(dossier: Dossier) -> Rounds | None:
    """The usual round; None of a group that was not asked for."""
    answers = asked_answers(dossier.polls)
    if not answers:
        return None
    answered_at = np.concatenate([answer.collected_at for answer in answers])
    rounds = np.concatenate([answer.snapshots for answer in answers])
    in_time = answered_at[np.lexsort([answered_at, rounds])]
    _, answers_of_each = np.unique(rounds, return_counts=True)
    ends = np.cumsum(answers_of_each)
    widths = in_time[ends - 1] - in_time[ends - answers_of_each]
    gaps = np.concatenate([np.diff(answer.snapshots) for answer in answers])
    interval = usual_gap(gaps) / SECOND if gaps.size else None
    return Rounds(float(np.median(widths)) / SECOND, interval)


#: The columns of a group's rounds.
_OF_ROUNDS = ("rounds_too_wide", "round_seconds", "round_interval_seconds")


def with_rounds(row: Row, rounds: Rounds | None, persistence_seconds: int) -> Row:
    """The row of ``group_health`` with the columns of the group's rounds.

    The reason says so where rounds are too wide to compare what brokers list.
    """
    if rounds is None:
        return row | dict.fromkeys(_OF_ROUNDS)
    # One second is not wide, whatever has to last.
    reason, too_wide = row["reason"], rounds.seconds > max(persistence_seconds, 1)
    if too_wide:
        wide = Text(
            "a round of questions takes {seconds} s, longer than a fault has to last: answers "
            "that far apart can hardly be compared, so ask the brokers closer together",
            seconds=round(rounds.seconds),
        )
        reason = joined(part for part in (reason, wide) if part)
    return row | {"reason": reason} | dict(zip(_OF_ROUNDS, (too_wide, *rounds), strict=True))


# ---------------------------------------------------------------- facts that are no alarm

#: Fewer messages say nothing of what is usual.
_FEWEST_MESSAGES = 100
#: Coverages with which the group has members that share the queues of the topic.
_HAS_READERS = (findings.AUDITED, findings.SHARED_BY_BROKER, *findings.SHOWN_BY_HOLDINGS)
#: The polls that make a fact sure: what one shows may be of two moments.
_SEEN_TWICE = 2
#: An address that changes so often goes to and fro; one that moved and moved back does not.
_FLIPS = 3


def with_facts(case: Case, found: GroupFindings, rows: Iterable[Row]) -> Iterator[Row]:
    """The rows of ``group_health`` with the facts in their reasons; those that are the group's,
    whatever the topic, with its main one.
    """
    offsets = grouped((offsets_of.topic, offsets_of) for offsets_of in case.offsets.values())
    for row in rows:
        queues = offsets.get(row["topic"], ())
        facts = [*_one_queue_alone(queues), *_beyond(case, queues)]
        if row["coverage"] in _HAS_READERS and not _is_explained(found, row["topic"]):
            facts += _does_not_move(queues, case.persistence_seconds)
        if row["topic"] == case.main_topic:
            facts += [*retries(case), *_addresses_by_turns(case.dossier)]
            facts += [*_placeholders(case.dossier), *members_elsewhere(case.dossier)]
            facts += _deleted_with_members(case)
        yield row | {"reason": joined([row["reason"], *facts] if row["reason"] else facts)}


def _is_explained(found: GroupFindings, topic: str) -> bool:
    """True if something that goes on says why queues of the topic are not read."""
    every = (*found.queues, *found.stalls, *found.faults)
    return any(in_time.topic == topic and in_time.extent.ongoing for in_time in every)


def _does_not_move(queues: Sequence[QueueOffsets], seconds: int) -> Iterator[Text]:
    """The queues in which messages wait at the end and whose offsets have not moved for as long as
    what lasts: where no other queue moves and nothing new comes, no rule decides.

    Worked example: at 10:00 and at 10:05 the group is at 900 of 1,000 in every queue.
    """
    last_seen = max((int(queue.times[-1]) for queue in queues if queue.times.size), default=0)
    stays: dict[QueueKey, tuple[Instant, int]] = {}
    for queue in queues:
        waiting = queue.waiting
        moves = (np.diff(queue.consumer_offsets) != 0) | (waiting[:-1] <= 0)
        first_seen = int(queue.times[np.flatnonzero(moves)[-1] + 1 if moves.any() else 0])
        if (
            waiting[-1] > 0
            and queue.times[-1] == last_seen
            and last_seen - first_seen >= seconds * SECOND
        ):
            stays[queue.broker_name, queue.queue_id] = first_seen, int(waiting[-1])
    if stays:
        yield Text(
            "{waiting} in {queues}, whose offsets did not move {time}: no other queue moved and "
            "nothing new came, so it is not known whether anybody reads them; send a message and "
            "check that it is consumed",
            waiting=waiting_in_words(sum(messages for _, messages in stays.values())),
            queues=queues_in_words(stays),
            time=between(max(first_seen for first_seen, _ in stays.values()), last_seen),
        )


def _one_queue_alone(queues: Sequence[QueueOffsets]) -> Iterator[Text]:
    """Notes that all that came to a topic is in one queue: one consumer has all the work."""
    queues = [offsets for offsets in queues if not is_retry_topic(offsets.topic)]
    counted = ((offsets, int(steps(offsets.broker_offsets).sum())) for offsets in queues)
    written = [(offsets, came) for offsets, came in counted if came]
    if len(queues) > 1 and len(written) == 1 and written[0][1] >= _FEWEST_MESSAGES:
        ((queue, came),) = written
        yield Text(
            "all {messages:,} new messages went to queue {queue} of {broker}, one of {queues} "
            "queues: one consumer gets all of them (producers choose the queue, or a key is "
            "always the same)",
            messages=came,
            queue=queue.queue_id,
            broker=queue.broker_name,
            queues=len(queues),
        )


#: The reasons for which an offset may be beyond the broker's end, in words.
_BEYOND = {
    "LOST": "the group's offset is up to {messages:,} beyond the last message in {queues}, whose "
    "end went back and stayed so: the broker lost messages",
    "SET": "the group's offset is up to {messages:,} beyond the last message in {queues}: the "
    "offset was set too high",
    "EITHER": "the group's offset is up to {messages:,} beyond the last message in {queues}: the "
    "broker lost messages, or the offset was set too high",
}


def _beyond(case: Case, queues: Iterable[QueueOffsets]) -> Iterator[Text]:
    """The queues whose committed offset has been beyond the broker's end for as long as what lasts,
    up to the last poll, and does not move.

    A broker reads the two one after the other, of a queue that is written all the time
    (``AdminBrokerProcessor.getConsumeStats`` 4.9.4), and a slave has an end of some moments ago: an
    offset that is ahead now and then, or moves on, shows nothing. Nor does the end that a slave
    gives while the master is away (``cases/test_facts``).

    What the broker lost stays lost: an end that is below the last one before at some polls alone
    may be a slave's.

    Worked example: at one poll the offset is 40 ahead, at the next one 60 behind.
    """
    found: dict[str, dict[QueueKey, int]] = defaultdict(dict)
    for offsets in queues:
        ahead = offsets.consumer_offsets - offsets.broker_offsets
        others = np.flatnonzero(ahead <= 0)
        start = int(others[-1]) + 1 if others.size else 0
        times = offsets.times[start:]
        away = [one for one in case.masters_away if one.broker_name == offsets.broker_name]
        if (
            times.size < _SEEN_TWICE
            or times[-1] - times[0] < case.persistence_seconds * SECOND
            or (np.diff(offsets.consumer_offsets[start:]) > 0).any()
            or any(one.is_within(times[0], times[-1]) for one in away)
        ):
            continue
        why, written = "EITHER", offsets.broker_offsets[start:]
        # An end that a slave may have given says nothing of the master's.
        if start and not any(one.is_within(offsets.times[start - 1], times[0]) for one in away):
            before = offsets.broker_offsets[start - 1]
            why = "LOST" if written.max() < before else "SET" if written.min() >= before else why
        found[why][offsets.broker_name, offsets.queue_id] = int(ahead[-1])
    for why, ahead_by_queue in found.items():
        messages, where = max(ahead_by_queue.values()), queues_in_words(ahead_by_queue)
        yield Text(_BEYOND[why], messages=messages, queues=where)


def _placeholders(dossier: Dossier) -> Iterator[Text]:
    """Placeholders in client ids that nothing replaced, also where each id is used once."""
    ids = chain.from_iterable(listed().client_ids for listed in dossier.list_members.values())
    if found := placeholders_in(set(ids)):
        yield Text(
            "client ids contain {placeholders}, a placeholder that nothing replaced: processes "
            "with the same id read the same queues, and nobody reads the others",
            placeholders=with_commas(found),
        )


def members_elsewhere(dossier: Dossier) -> Iterator[Text]:
    """The members that a group has in other clusters while it has none in this one."""
    if dossier.is_offline and dossier.elsewhere:
        template = "cluster {cluster} has {members} [member|members] at {time}"
        clusters = [
            agreeing(number, template, cluster=cluster, members=number, time=zoned_clock(time))
            for cluster, (number, time) in sorted(dossier.elsewhere.items())
        ]
        more = ("more cluster has members", "more clusters have members")
        yield Text(
            "no broker of this cluster lists a member, while {clusters}",
            clusters=list_of(clusters, MOST_NAMES, more),
        )


def _deleted_with_members(case: Case) -> Iterator[Text]:
    """The members that a group has while no broker has a configuration of it any more."""
    config, last = case.no_config, case.dossier.last_listed
    if config is None or last is None or last.time < config.begins or case.dossier.is_offline:
        return
    yield Text(
        "{config}, and still has members ({members:,}): a broker that does not create groups by "
        "itself (autoCreateSubscriptionGroup=false) refuses each of their pulls; stop them, or "
        "create it again (mqadmin updateSubGroup)",
        config=config.what,
        members=last.members,
    )


def _addresses_by_turns(dossier: Dossier) -> Iterator[Text]:
    """The brokers whose address goes to and fro between the polls, and that give one list."""
    shared = {namesake.broker for namesake in dossier.namesakes}
    addressed = (run for run in dossier.polls if run.broker_addr and run.broker not in shared)
    polled = grouped((run.broker, run) for run in addressed)
    for broker, runs in sorted(polled.items()):
        if len({run.broker_addr for run in runs}) == 1:
            continue
        polls = sorted((time, run.broker_addr) for run in runs for time in run.times)
        addresses = [address for address, _ in groupby(polls, lambda each: each[1])]
        if len(addresses) > _FLIPS:
            yield Text(
                "{broker} was asked at {addresses} in turn ({changes:,} changes): two clusters "
                "have a broker of this name at one nameserver, or two collectors use two "
                "addresses",
                broker=named_broker(*broker),
                addresses=with_commas(sorted(set(addresses))),
                changes=len(addresses) - 1,
            )
