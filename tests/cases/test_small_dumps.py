"""Small dumps, made line by line: what the whole audit says of them."""

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
    in_turn,
    instant,
    members,
    of_broker,
    of_slave,
    rounds,
    route,
    with_slave,
)
from tests.support.audited import lasting, queues


@pytest.mark.parametrize(
    "strategy",
    ["CompanyStrategy", "AllocateMachineRoomNearby", "AllocateMessageQueueByMachineRoom"],
)
def test_where_the_strategy_is_not_known_a_queue_that_nobody_holds_is_found(audit, strategy):
    def lines(missing):
        for minute in MINUTES:
            yield from asked(minute)
            for number, (client_id, share) in enumerate(SHARES.items()):
                held = [queue for queue in share if queue not in missing]
                yield holds(60 * minute + 3 + number, client_id, held, f"com.example.{strategy}")

    found = audit(lines(missing=[("broker-a", 0)]))
    assert queues(lasting(found["orphaned_queues"])) == {("T", "broker-a", 0)}
    assert [row["causes"] for row in found["orphaned_queues"]] == [["QUEUE_NOT_HELD"]]
    # It may be nobody's by the strategy: a restart brings nothing then.
    (fault,) = found["group_faults"]
    assert fault["remedy"].startswith("check whether the members' strategy gives these queues to")
    assert found["duplicate_queues"] == []
    (health,) = found["group_health"]
    assert health["coverage"] == "STRATEGY_NOT_KNOWN"

    assert audit(lines(missing=[]))["orphaned_queues"] == []


@pytest.mark.parametrize("of_b", [MEMBERS[:3], OFFLINE])
def test_who_holds_queues_of_a_broker_that_does_not_list_it_reads_them(audit, of_b):
    """The strategy is the company's own: only running infos show who has a queue."""

    def lines():
        yield from rounds(lambda _, name: of_b if name == "broker-b" else MEMBERS, in_turn)
        for minute in MINUTES:
            for number, (client_id, share) in enumerate(SHARES.items()):
                yield holds(60 * minute + 20 + number, client_id, share, "com.example.Own")

    assert audit(lines())["group_faults"] == []


def without_master(listed_by_slave):
    """The master of broker-a is down for five minutes; the nameserver gives only its slave then."""
    for minute in MINUTES:
        is_down, addrs = minute in range(5, 10), with_slave("broker-a")
        if is_down:
            del addrs["broker-a"]["0"]
        yield route(60 * minute, *BROKERS, addrs=addrs)
        yield members(60 * minute + 1, "broker-a", TIMED_OUT if is_down else MEMBERS)
        yield of_slave(members(60 * minute + 2, "broker-a", listed_by_slave))
        yield members(60 * minute + 3, "broker-b", MEMBERS)


def test_a_master_that_is_down_for_maintenance_leaves_nothing_where_its_slave_serves(audit):
    found = audit(without_master(MEMBERS))
    for table in ("orphaned_queues", "duplicate_queues", "group_faults"):
        assert found[table] == [], table


@pytest.mark.parametrize(
    ("listed_by_slave", "orphaned", "duplicate"),
    [
        # The first member does not reach the slave. It reads none of its queues, a0 and a1, and
        # draws broker-b's list alone. The others draw either: by the slave's list of three a0-a2
        # go to the second member and a3, b0, b1 to the third; by that of four a2 and a3 to the
        # second. So a0 and a1 are nobody's half of the time, and a3 is the second's and the third's
        # half of the time each, by draws of their own.
        (
            MEMBERS[1:],
            {("broker-a", 0): 0.5, ("broker-a", 1): 0.5, ("broker-a", 3): 0.25},
            {("broker-a", 3): 0.25},
        ),
        # The slave does not have the group: nobody reads a queue of it.
        (OFFLINE, {("broker-a", number): 1.0 for number in range(4)}, {}),
    ],
)
def test_what_clients_see_of_a_slave_counts_while_they_have_to_ask_it(
    audit, listed_by_slave, orphaned, duplicate
):
    found = audit(without_master(listed_by_slave))

    for table, wanted in (("orphaned_queues", orphaned), ("duplicate_queues", duplicate)):
        rows = found[table]
        told = {(row["broker_name"], row["queue_id"]): row["probability"] for row in rows}
        assert told == pytest.approx(wanted), table
        times = {(row["first_seen"], row["last_seen"], row["persistence"]) for row in rows}
        # While the master serves, nobody asks the slave.
        assert times <= {(instant(300), instant(540), "PERSISTENT")}, table


def refused_pulls(*refusing):
    """From 10:04 on these brokers do not let G consume, and H, of which nobody asks anything."""

    def read(minute, name):
        return 100 * minute + 5, 100 * (min(minute, 4) if name in refusing else minute)

    for minute in MINUTES:
        yield from asked(minute, read=read)
        for number, name in enumerate(BROKERS, start=1):
            is_refusing = minute >= 4 and name in refusing
            flags = {group: {"consumeEnable": not is_refusing} for group in "GH"}
            answer = {"subscriptionGroupTable": flags}
            yield of_broker("subscription_group", 60 * minute + number, name, answer)


def test_brokers_that_do_not_let_a_group_consume_are_the_cause(audit):
    found = audit(refused_pulls("broker-a", "broker-b"))
    (fault,) = found["group_faults"]
    assert (fault["fault"], fault["first_seen"]) == ("GROUP_NOT_CONSUMING", instant(240))
    assert fault["evidence"].endswith(
        "consumeEnable of the subscription group was false at broker-a and broker-b from 10:04:00 "
        "to 10:14:00 UTC: the brokers refuse every pull of the group"
    )
    assert fault["remedy"].startswith(
        "let the group consume again: mqadmin updateSubGroup -n ns:9876 -c C -g G -s true, and"
    )
    assert {row["consumer_group"] for row in found["group_health"]} == {"G"}
