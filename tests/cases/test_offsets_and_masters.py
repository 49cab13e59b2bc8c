"""What offsets show, and what they do not: small dumps, the truth reckoned before the run."""

from __future__ import annotations

from tests.cases.test_small_dumps import MEMBERS, MINUTES, fleet, instant, offsets
from tests.support.audited import queues


def never_committed(comes_to=()):
    """Broker-a's queues are read; of broker-b's, 500 messages each, the group has no offset yet.

    To those of ``comes_to`` a message comes each minute. Broker-b's first two queues are the third
    member's, the other two the fourth's.
    """
    for minute in MINUTES:
        yield from fleet(minute)
        read = dict.fromkeys(range(4), (100 * minute + 9, 100 * minute + 9))
        yield offsets(60 * minute + 10, "broker-a", read)
        new = {number: (500 + minute * (number in comes_to), 0) for number in range(4)}
        yield offsets(60 * minute + 11, "broker-b", new)


def test_a_queue_without_a_committed_offset_and_without_new_messages_has_nothing_to_read(audit):
    found = audit(never_committed())
    assert (found["group_faults"], found["stalled_queues"]) == ([], [])


def test_a_queue_whose_new_messages_are_never_committed_is_not_read(audit):
    found = audit(never_committed(comes_to=(0, 1)))
    assert queues(found["stalled_queues"]) == {("T", "broker-b", 0), ("T", "broker-b", 1)}
    (fault,) = found["group_faults"]
    assert (fault["fault"], fault["client_ids"]) == ("FROZEN_PROCESS", [MEMBERS[2]])
    assert fault["first_seen"] == instant(60)  # the first poll after a message came
