"""Who the members are at a time: what slaves still list, and processes that share an id."""

from __future__ import annotations

import pytest

from tests.cases.small_dumps import (
    BROKERS,
    MEMBERS,
    MINUTES,
    OFFLINE,
    SHARES,
    TIMED_OUT,
    asked,
    holds,
    instant,
    members,
    of_slave,
    route,
    with_slave,
)
from tests.support.audited import lasting

SLAVES = with_slave("broker-a") | with_slave("broker-b")


@pytest.mark.parametrize(
    ("said", "begins"),
    [
        # All stop at 10:05, between the answer of a slave and that of its master.
        (OFFLINE, "10:05:00"),
        # The masters answer nothing any more: the slaves know.
        (TIMED_OUT, "10:06:00"),
    ],
)
def test_a_slave_that_is_asked_first_does_not_keep_who_has_stopped(audit, said, begins):
    def lines():
        for minute in MINUTES:
            yield route(60 * minute, *BROKERS, addrs=SLAVES)
            for name in BROKERS:
                yield of_slave(members(60 * minute + 1, name, MEMBERS if minute < 6 else OFFLINE))
                yield members(60 * minute + 3, name, MEMBERS if minute < 5 else said)

    found = audit(lines())
    (event,) = (each for each in found["events"] if each["kind"] == "GROUP_SCALED")
    assert event["headline"].startswith(f"{begins} group G was scaled from 4 to 0 members: ")
    if said is OFFLINE:
        assert "no queue lost" not in event["headline"]
        assert event["queues_lost"] == len(found["orphaned_queues"]) == 8


SHARED = ["10.0.0.1@app", "10.0.0.1@app", "10.0.0.2@2"]


@pytest.mark.parametrize(
    ("now", "what"),
    [
        (["10.0.0.1@app", "10.0.0.1@own", "10.0.0.2@2"], "1 of 3 members of G were replaced or "),
        ([*SHARED, "10.0.0.4@4"], "group G was scaled from 3 to 4 members"),
        (["10.0.0.1@app", "10.0.0.1@own", *MEMBERS[2:], "10.0.0.9@9"], "group G was scaled from 3"),
    ],
)
def test_a_process_that_gets_an_id_of_its_own_is_no_new_member(audit, now, what):
    """Two of three processes share an id until 10:08."""

    def lines():
        for minute in MINUTES:
            ids = SHARED if minute < 8 else now
            yield route(60 * minute, *BROKERS)
            for name in BROKERS:
                kept = [f"{each.split('@')[0]}:40{n:03}" for n, each in enumerate(ids)]
                yield members(60 * minute + 1, name, ids, addrs=kept)

    (event,) = audit(lines())["events"]
    assert what in event["headline"]


# ---------------------------------------------------------------- a slave alone


RETRY = "%RETRY%G"
ASKED = [("broker-a", 0), ("broker-a", 1), ("broker-b", 0)]


def polled(lacking):
    """From 10:04 on these (name, id) do not list the second member."""
    for minute in MINUTES:
        for topic, queues in (("T", 4), (RETRY, 1)):
            addrs = with_slave("broker-a")
            yield route(60 * minute, *BROKERS, topic=topic, queues=queues, addrs=addrs)
        for number, (name, broker_id) in enumerate(ASKED, start=1):
            is_lacking = minute >= 4 and (name, broker_id) in lacking
            listed = [MEMBERS[0], *MEMBERS[2:]] if is_lacking else MEMBERS
            given = members(60 * minute + number, name, listed, ("T", RETRY))
            yield of_slave(given) if broker_id else given


@pytest.mark.parametrize("lacking", [{("broker-a", 0)}, {("broker-a", 0), ("broker-a", 1)}])
def test_a_client_that_a_slave_lists_does_not_reach_the_master_by_it(audit, lacking):
    """It gets broker-b's list alone, by which the retry queue of broker-b is its own each time.

    By broker-b's list T's queues 2 and 3 of broker-a are its own too, which it does not read; the
    first member has 2 and the third has 3 where they draw broker-a's list.
    """
    found = audit(polled(lacking))
    orphans = {
        (row["topic"], row["broker_name"], row["queue_id"]): row["probability"]
        for row in lasting(found["orphaned_queues"])
    }
    assert orphans == {("T", "broker-a", 2): 0.5, ("T", "broker-a", 3): 0.5}
    (twice,) = lasting(found["duplicate_queues"])
    # The third member has it by broker-a's list.
    assert (twice["topic"], twice["broker_name"], twice["probability"]) == (RETRY, "broker-b", 0.5)
    assert twice["first_seen"] == instant(240)


def test_a_client_that_the_slave_alone_does_not_list_reads_everything(audit):
    found = audit(polled({("broker-a", 1)}))
    assert (found["orphaned_queues"], found["duplicate_queues"]) == ([], [])


@pytest.mark.parametrize("answer", [True, False])
def test_running_infos_that_came_are_not_asked_for(audit, answer):
    """Broker-a does not list the fourth member. All say each minute what they hold: by each list
    it would be two queues of broker-b or none, and it is these two.
    """

    def listed(minute, name):
        return MEMBERS[:3] if minute > 3 and name == "broker-a" else MEMBERS

    def lines():
        for minute in MINUTES:
            yield from asked(minute, listed)
            for number, (client_id, share) in enumerate(SHARES.items() if answer else ()):
                yield holds(60 * minute + 20 + number, client_id, share)

    remedies = [each["remedy"] for each in lasting(audit(lines())["group_faults"])]
    assert remedies
    assert any("would make it certain" in each for each in remedies) != answer
