"""A topic that a release no longer subscribes to: brokers give no offsets of it from then on."""

from __future__ import annotations

import pytest

from tests.cases.small_dumps import (
    BROKERS,
    MEMBERS,
    OFFLINE,
    TIMED_OUT,
    instant,
    members,
    offsets,
    route,
)


def released(without_u, left, *, comes=True, away=(), minutes=range(15), polls=range(60)):
    """100 messages a minute come to each queue of T and, if it ``comes``, of U. In ``without_u`` no
    member subscribes to U; in the minute before, ``left`` of them are not read in each of U's
    queues of broker-b. ``away``: by minute what the brokers answer then in place of a list;
    ``polls``: of offsets.
    """
    for minute in minutes:
        yield from (route(60 * minute, *BROKERS, topic=each) for each in "TU")
        topics = ("T",) if minute in without_u else ("T", "U")
        for number, name in enumerate(BROKERS, start=1):
            yield members(60 * minute + number, name, dict(away).get(minute, MEMBERS), topics)
            written = 1_000 + 100 * minute
            unread = left if name == "broker-b" and minute == min(without_u) - 1 else 3
            of_u = (written, written - unread) if comes else (1_000, 1_000)
            of_queues = {
                (topic, queue): of_u if topic == "U" else (written, written - 3)
                for topic in topics
                for queue in range(4)
            }
            if minute in polls:
                yield offsets(60 * minute + 10 + number, name, of_queues)


def test_messages_of_a_topic_that_a_release_gave_up_are_read_by_nobody(audit):
    (fault,) = audit(released(range(7, 15), left=150))["group_faults"]
    assert (fault["fault"], fault["topic"]) == ("GROUP_NOT_CONSUMING", "U")
    assert (fault["first_seen"], fault["ongoing"]) == (instant(420), True)
    assert (fault["severity"], fault["unread_messages"]) == ("CRITICAL", 600)
    assert fault["evidence"].startswith("no member has subscribed to the topic since 10:07:00 UTC")


def test_while_pods_are_replaced_each_broker_gives_the_offsets_when_it_can(audit):
    """40 messages wait in each queue of U and none come. Broker-a's table has U up to 10:04, that
    of broker-b once more at 10:05, by whose heartbeat came last.
    """

    def lines():
        for minute in range(15):
            yield from (route(60 * minute, *BROKERS, topic=each) for each in "TU")
            for number, name in enumerate(BROKERS, start=1):
                has_u = minute < 4 or (minute, number) in ((4, 1), (5, 2))
                yield members(60 * minute + number, name, MEMBERS, "TU" if has_u else "T")
                of_queues = {("T", queue): (1_000 + 100 * minute,) * 2 for queue in range(4)}
                if has_u:
                    of_queues |= {("U", queue): (700, 660) for queue in range(4)}
                yield offsets(60 * minute + 10 + number, name, of_queues)

    (fault,) = audit(lines())["group_faults"]
    assert (fault["fault"], fault["first_seen"]) == ("GROUP_NOT_CONSUMING", instant(360))
    assert (fault["queues_affected"], fault["unread_messages"]) == (8, 320)


def test_a_topic_that_is_given_up_while_messages_come_is_a_warning(audit):
    """What waits is on its way: less than came in the last minute. Nobody knows what came after."""
    (fault,) = audit(released(range(7, 15), left=90))["group_faults"]
    assert (fault["fault"], fault["severity"]) == ("GROUP_NOT_CONSUMING", "WARNING")
    assert "800 messages came to it between the last two polls of" in fault["evidence"]


@pytest.mark.parametrize("away", [{14: TIMED_OUT}, dict.fromkeys((10, 11), OFFLINE)])
def test_a_topic_stays_given_up_where_no_broker_answers_or_all_pods_restart(audit, away):
    faults = audit(released(range(7, 15), left=150, away=away))["group_faults"]
    (fault,) = (each for each in faults if each["fault"] == "GROUP_NOT_CONSUMING")
    assert (fault["first_seen"], fault["ongoing"]) == (instant(420), True)


@pytest.mark.parametrize(("before", "is_found"), [([29], False), ([0, 1], False), ([28, 29], True)])
def test_what_waited_at_one_poll_or_long_before_may_have_been_read(audit, before, is_found):
    """``before``: the polls while the members subscribe, which they do up to 10:29."""
    without_u = range(30, 38)
    polls = [*before, *without_u]
    lines = released(without_u, left=150, minutes=range(38), polls=polls)
    assert bool(audit(lines)["group_faults"]) == is_found


@pytest.mark.parametrize(
    "dump",
    [
        # Its producers had stopped, and all was read.
        {"without_u": range(7, 15), "left": 0, "comes": False},
        # A later heartbeat subscribes again.
        {"without_u": range(7, 13), "left": 150},
        # It was subscribed to for two minutes.
        {"without_u": [*range(5), *range(7, 15)], "left": 3},
    ],
)
def test_a_topic_that_ended_or_is_read_again_is_not_given_up(audit, dump):
    assert audit(released(**dump))["group_faults"] == []


# ---------------------------------------------------------------- stuck before


@pytest.mark.parametrize("offsets_end", [12, 16])
def test_a_group_that_was_stuck_before_it_gave_a_topic_up_has_one_fault(audit, offsets_end):
    """At 10:12 no member subscribes to U any more; 500 messages waited in each queue before."""

    def lines():
        for minute in range(30):
            second, written = 60 * minute, 1_000 + 100 * minute
            yield from (route(second, *BROKERS, topic=topic) for topic in "TU")
            for name in BROKERS:
                yield members(second + 1, name, MEMBERS, "TU" if minute < 12 else "T")
                of_queues = {("T", queue): (written, written - 3) for queue in range(4)}
                if minute < offsets_end:
                    of_queues |= {("U", queue): (written, 500) for queue in range(4)}
                yield offsets(second + 10, name, of_queues)

    (fault,) = audit(lines())["group_faults"]
    assert (fault["fault"], fault["topic"], fault["ongoing"]) == ("GROUP_NOT_CONSUMING", "U", True)
    assert fault["first_seen"] == instant(0)
