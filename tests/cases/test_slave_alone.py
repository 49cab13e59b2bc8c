"""A client that reaches a slave of a broker, and not its master."""

import pytest

from tests.cases.small_dumps import (
    BROKERS,
    MEMBERS,
    MINUTES,
    SHARES,
    asked,
    holds,
    instant,
    members,
    of_slave,
    route,
    with_slave,
)
from tests.support.audited import lasting

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
