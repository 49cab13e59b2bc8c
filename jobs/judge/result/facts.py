"""dossier -> what is worth a line of the group's health beside its findings, and is no alarm.

Each is a sentence with its numbers, and is joined to the reason of the topic's row.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

import numpy as np

from rebalance_core.client_kinds import placeholders_in
from rebalance_core.english import MOST_NAMES, agreeing, joined, list_of, named_broker, with_commas
from rebalance_core.findings import (
    AUDITED,
    QUEUES_CHOSEN,
    SHARED_BY_BROKER,
    STRATEGY_NOT_KNOWN,
)
from rebalance_core.grouping import grouped
from rebalance_core.message_queue import is_retry_topic
from rebalance_core.texts import Text

from ...declared.dossier import Dossier, QueueOffsets
from ...declared.instants import SECOND, Instant
from ..arrow_tables import Row
from ..observe.core_verdict import QueueKey
from ..observe.in_words import between, queues_in_words, waiting_in_words, zoned_clock
from ..rules.case import Case
from ..rules.found import GroupFindings
from ..rules.messages_again import retries, steps

#: Fewer messages say nothing of what is usual.
_FEWEST_MESSAGES = 100
#: Coverages with which the group has members that share the queues of the topic.
_HAS_READERS = (AUDITED, STRATEGY_NOT_KNOWN, QUEUES_CHOSEN, SHARED_BY_BROKER)
#: The polls that make a fact sure: what one shows may be of two moments.
_SEEN_TWICE = 2
#: An address that changes so often goes to and fro; one that moved and moved back does not.
_FLIPS = 3


def with_facts(case: Case, found: GroupFindings, rows: Iterable[Row]) -> Iterator[Row]:
    """The rows of ``group_health`` with the facts in their reasons; those that are the group's,
    whatever the topic, with its main one.
    """
    offsets = grouped((each.topic, each) for each in case.offsets.values())
    for row in rows:
        of_topic = offsets.get(row["topic"], ())
        facts = [*_one_queue_alone(of_topic), *_beyond(case, of_topic)]
        if row["coverage"] in _HAS_READERS and not _is_explained(found, row["topic"]):
            facts += _does_not_move(of_topic, case.persistence_seconds)
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
    last = max((int(queue.times[-1]) for queue in queues if queue.times.size), default=0)
    stays: dict[QueueKey, tuple[Instant, int]] = {}
    for queue in queues:
        waiting = queue.waiting
        moves = (np.diff(queue.consumer_offsets) != 0) | (waiting[:-1] <= 0)
        since = int(queue.times[np.flatnonzero(moves)[-1] + 1 if moves.any() else 0])
        if waiting[-1] > 0 and queue.times[-1] == last and last - since >= seconds * SECOND:
            stays[queue.broker_name, queue.queue_id] = since, int(waiting[-1])
    if stays:
        yield Text(
            "{waiting} in {queues}, whose offsets did not move {time}: no other queue moved and "
            "nothing new came, so it is not known whether anybody reads them; send a message and "
            "check that it is consumed",
            waiting=waiting_in_words(sum(messages for _, messages in stays.values())),
            queues=queues_in_words(stays),
            time=between(max(since for since, _ in stays.values()), last),
        )


def _one_queue_alone(queues: Sequence[QueueOffsets]) -> Iterator[Text]:
    """Notes that all that came to a topic is in one queue: one consumer has all the work."""
    queues = [offsets for offsets in queues if not is_retry_topic(offsets.topic)]
    written = [
        (offsets, came) for offsets in queues if (came := int(steps(offsets.broker_offsets).sum()))
    ]
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
    gives while the master is away.

    What the broker lost stays lost: an end that is below the last one before at some polls alone
    may be a slave's.

    Worked example: at one poll the offset is 40 ahead, at the next one 60 behind.
    """
    found: dict[str, dict[QueueKey, int]] = {}
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
        why, since = "EITHER", offsets.broker_offsets[start:]
        # An end that a slave may have given says nothing of the master's.
        if start and not any(one.is_within(offsets.times[start - 1], times[0]) for one in away):
            before = offsets.broker_offsets[start - 1]
            why = "LOST" if since.max() < before else "SET" if since.min() >= before else why
        queue = offsets.broker_name, offsets.queue_id
        found.setdefault(why, {})[queue] = int(ahead[-1])
    for why, of_queues in found.items():
        yield Text(
            _BEYOND[why],
            messages=max(of_queues.values()),
            queues=queues_in_words(of_queues),
        )


def _placeholders(dossier: Dossier) -> Iterator[Text]:
    """Placeholders in client ids that nothing replaced, also where each id is used once."""
    ids = {
        client_id for listed in dossier.list_members.values() for client_id in listed().client_ids
    }
    if found := placeholders_in(ids):
        yield Text(
            "client ids contain {placeholders}, a placeholder that nothing replaced: processes "
            "with the same id read the same queues, and nobody reads the others",
            placeholders=with_commas(found),
        )


def members_elsewhere(dossier: Dossier) -> Iterator[Text]:
    """The members that a group has in other clusters while it has none in this one."""
    if dossier.is_offline and dossier.elsewhere:
        clusters = [
            agreeing(
                last.members,
                "cluster {cluster} has {members} [member|members] at {time}",
                cluster=cluster,
                members=last.members,
                time=zoned_clock(last.time),
            )
            for cluster, last in sorted(dossier.elsewhere.items())
        ]
        yield Text(
            "no broker of this cluster lists a member, while {clusters}",
            clusters=list_of(
                clusters, MOST_NAMES, ("more cluster has members", "more clusters have members")
            ),
        )


def _deleted_with_members(case: Case) -> Iterator[Text]:
    """The members that a group has while no broker has a configuration of it any more."""
    config, last = case.no_config, case.dossier.last_listed
    if config is None or last is None or last.time < config.since or case.dossier.is_offline:
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
