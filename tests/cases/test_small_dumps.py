"""Small dumps, made line by line: what the whole audit says of them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from tests.support.audited import lasting, queues

MEMBERS = [f"10.0.0.{number}@{number}" for number in range(4)]
#: The queues of T, two of them each member's by AVG.
QUEUES = [(name, number) for name in ("broker-a", "broker-b") for number in range(4)]
MINUTES = range(15)
OFFLINE = {"error_code": 206, "error_message": "the consumer group not online"}
TIMED_OUT = {"error_code": -1, "error_message": "timeout"}


def instant(second):
    return datetime(2026, 11, 20, 10, tzinfo=UTC) + timedelta(seconds=second)


def line(kind, second, **values):
    at = instant(second).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    round_ = instant(second - second % 60).isoformat().replace("+00:00", "Z")
    return {"kind": kind, "cluster": "C", "snapshot_time": round_, "collected_at": at, **values}


def route(second, *broker_names, topic="T"):
    data = [
        {"brokerName": name, "cluster": "C", "brokerAddrs": {"0": f"{name}:10911"}}
        for name in broker_names
    ]
    numbers = {"perm": 6, "readQueueNums": 4, "writeQueueNums": 4, "topicSysFlag": 0}
    body = {
        "brokerDatas": data,
        "queueDatas": [{"brokerName": name, **numbers} for name in broker_names],
        "filterServerTable": {},
    }
    values = {"namesrv_addr": "ns:9876", "topic": topic, "body": json.dumps(body)}
    return line("topic_route", second, **values)


def of_broker(kind, second, broker_name, answer, **values):
    to = {
        "broker_name": broker_name,
        "broker_id": 0,
        "broker_addr": f"{broker_name}:10911",
        "consumer_group": "G",
    }
    said = answer if "error_code" in answer else {"body": json.dumps(answer)}
    return line(kind, second, **to, **values, **said)


def subscriptions(topics):
    fields = {"expressionType": "TAG", "subString": "*", "subVersion": 1}
    return [{**fields, "topic": topic} for topic in topics]


def members(second, broker_name, client_ids, topics=("T",)):
    """A broker's list of the group's members, or the error that it gives."""
    if isinstance(client_ids, dict):
        return of_broker("consumer_connection", second, broker_name, client_ids)
    connections = [
        {
            "clientId": client_id,
            "clientAddr": f"{client_id.split('@')[0]}:40{broker_name[-1] == 'a':d}{number:02}",
            "language": "JAVA",
            "version": 401,
        }
        for number, client_id in enumerate(client_ids)
    ]
    body = {
        "connectionSet": connections,
        "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET",
        "consumeType": "CONSUME_PASSIVELY",
        "messageModel": "CLUSTERING",
        "subscriptionTable": {each["topic"]: each for each in subscriptions(topics)},
    }
    return of_broker("consumer_connection", second, broker_name, body)


def holds(second, client_id, held, strategy):
    """The running info of a member that holds these queues."""
    queue = {"cachedMsgCount": 0, "commitOffset": 1, "droped": False}
    table = {
        json.dumps({"brokerName": name, "queueId": number, "topic": "T"}): queue
        for name, number in held
    }
    body = {
        "mqTable": table,
        "properties": {
            "PROP_CONSUMEORDERLY": "false",
            "PROP_CONSUMER_START_TIMESTAMP": str(round(instant(-600).timestamp() * 1000)),
            "allocateMessageQueueStrategy": f"com.example.{strategy}@49",
            "messageModel": "CLUSTERING",
        },
        "statusTable": {},
        "subscriptionSet": subscriptions(["T"]),
    }
    return of_broker("consumer_running_info", second, "broker-a", body, client_id=client_id)


def offsets(second, broker_name, of_queue):
    """By queue id its broker and consumer offset."""
    table = {
        json.dumps({"brokerName": broker_name, "queueId": number, "topic": "T"}): {
            "brokerOffset": written,
            "consumerOffset": read,
            "lastTimestamp": 0,
        }
        for number, (written, read) in of_queue.items()
    }
    body = {"consumeTps": 0.0, "offsetTable": table}
    return of_broker("consume_stats", second, broker_name, body)


def fleet(minute):
    """What a healthy group's servers say in one minute."""
    return [
        route(60 * minute, "broker-a", "broker-b"),
        members(60 * minute + 1, "broker-a", MEMBERS),
        members(60 * minute + 2, "broker-b", MEMBERS),
    ]


@pytest.mark.parametrize(
    "strategy",
    ["CompanyStrategy", "AllocateMachineRoomNearby", "AllocateMessageQueueByMachineRoom"],
)
def test_where_the_strategy_is_not_known_a_queue_that_nobody_holds_is_found(audit, strategy):
    def lines(missing):
        for minute in MINUTES:
            yield from fleet(minute)
            for number, client_id in enumerate(MEMBERS):
                held = [q for q in QUEUES[2 * number : 2 * number + 2] if q not in missing]
                yield holds(60 * minute + 3 + number, client_id, held, strategy)

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


def maintenance(minutes, away):
    """Broker-a is out of the route for some minutes, and 400 messages wait there."""
    for minute in minutes:
        is_away = minute in away
        yield route(60 * minute, *(["broker-b"] if is_away else ["broker-a", "broker-b"]))
        yield members(60 * minute + 1, "broker-a", TIMED_OUT if is_away else MEMBERS)
        yield members(60 * minute + 2, "broker-b", MEMBERS)
        if not is_away:
            yield offsets(60 * minute + 3, "broker-a", dict.fromkeys(range(4), (1_000, 900)))


def test_a_broker_out_of_the_route_is_critical_until_it_is_back(audit):
    def left(lines):
        found = audit(lines)["group_faults"]
        return [
            (row["ongoing"], row["persistence"], row["severity"])
            for row in found
            if row["fault"] == "QUEUES_LEFT_ROUTE"
        ]

    assert left(maintenance(range(10), away=range(5, 10))) == [(True, "PERSISTENT", "CRITICAL")]
    assert left(maintenance(range(15), away=range(5, 10))) == [(False, "PERSISTENT", "INFO")]


def test_five_releases_in_an_hour_are_no_flapping(audit):
    def lines():
        for minute in range(60):
            pods = [f"10.0.{minute // 12}.{number}@{number}" for number in range(4)]
            yield route(60 * minute, "broker-a", "broker-b")
            yield members(60 * minute + 1, "broker-a", pods)
            yield members(60 * minute + 2, "broker-b", pods)

    assert audit(lines())["group_faults"] == []


def without_master(listed_by_slave):
    """The master of broker-a is down for five minutes; the nameserver gives only its slave then."""
    for minute in MINUTES:
        is_down = minute in range(5, 10)
        given = route(60 * minute, "broker-a", "broker-b")
        body = json.loads(given["body"])
        slave = {"1": "broker-a:10921"}
        body["brokerDatas"][0]["brokerAddrs"] = slave | ({} if is_down else {"0": "broker-a:10911"})
        yield given | {"body": json.dumps(body)}
        yield members(60 * minute + 1, "broker-a", TIMED_OUT if is_down else MEMBERS)
        of_slave = members(60 * minute + 2, "broker-a", listed_by_slave)
        yield of_slave | {"broker_id": 1, "broker_addr": "broker-a:10921"}
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


def test_a_release_that_no_longer_subscribes_to_a_topic_leaves_it_to_nobody(audit):
    def lines():
        for minute in range(15):
            yield from (route(60 * minute, "broker-a", "broker-b", topic=each) for each in "TU")
            topics = ("T", "U") if minute < 6 else ("U",)
            for number, name in enumerate(("broker-a", "broker-b"), start=1):
                yield members(60 * minute + number, name, MEMBERS, topics)
                # 100 messages a minute in each queue; the last that are read are those of 10:06.
                read = 100 * min(minute, 6)
                of_queues = dict.fromkeys(range(4), (100 * minute, read))
                yield offsets(60 * minute + 10 + number, name, of_queues)

    (fault,) = audit(lines())["group_faults"]
    assert (fault["fault"], fault["topic"]) == ("GROUP_NOT_CONSUMING", "T")
    assert (fault["severity"], fault["queues_affected"]) == ("CRITICAL", 8)
    assert (fault["first_seen"], fault["ongoing"]) == (instant(420), True)
    assert fault["evidence"].endswith("no member subscribes to the topic any more")


def refused_pulls(*refusing):
    """From 10:04 on these brokers do not let G consume, and H, of which nobody asks anything."""
    for minute in MINUTES:
        yield route(60 * minute, "broker-a", "broker-b")
        for number, name in enumerate(("broker-a", "broker-b"), start=1):
            yield members(60 * minute + number, name, MEMBERS)
            is_refusing = minute >= 4 and name in refusing
            flags = {group: {"consumeEnable": not is_refusing} for group in "GH"}
            answer = {"subscriptionGroupTable": flags}
            yield of_broker("subscription_group", 60 * minute + number, name, answer)
            read = 100 * (min(minute, 4) if name in refusing else minute)
            of_queues = dict.fromkeys(range(4), (100 * minute + 5, read))
            yield offsets(60 * minute + 10 + number, name, of_queues)


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


def test_one_broker_that_does_not_let_a_group_consume_stalls_its_queues(audit):
    found = audit(refused_pulls("broker-b"))
    assert found["group_faults"] == []
    assert {
        (row["broker_name"], row["queue_id"], row["why"]) for row in found["stalled_queues"]
    } == {
        (
            "broker-b",
            number,
            "the broker refuses every pull of the group: consumeEnable of its subscription group "
            "is false",
        )
        for number in range(4)
    }
