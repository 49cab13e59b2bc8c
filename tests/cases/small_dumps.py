"""Lines of small dumps: a group of four members, which two brokers list, minute by minute."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

BROKERS = ("broker-a", "broker-b")
MEMBERS = [f"10.0.0.{number}@{number}" for number in range(4)]
#: The queues of T, two of them each member's by AVG.
QUEUES = [(name, number) for name in BROKERS for number in range(4)]
SHARES = {client_id: QUEUES[2 * n : 2 * n + 2] for n, client_id in enumerate(MEMBERS)}
MINUTES = range(15)
OFFLINE = {"error_code": 206, "error_message": "the consumer group not online"}
TIMED_OUT = {"error_code": -1, "error_message": "timeout"}
NO_ROUTE = {"error_code": 17, "error_message": "No topic route info in name server"}
#: A class that every SDK has; any other name is one of a company's own.
AVG = "org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely"


def instant(second):
    return datetime(2026, 11, 20, 10, tzinfo=UTC) + timedelta(seconds=second)


def minute_of(line):
    """The minute of the line's round."""
    return int(line["snapshot_time"][14:16])


def line(kind, second, **values):
    at = instant(second).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    round_ = instant(second - second % 60).isoformat().replace("+00:00", "Z")
    return {"kind": kind, "cluster": "C", "snapshot_time": round_, "collected_at": at, **values}


def route(second, *names, topic="T", queues=4, addrs=()):
    """The route over these brokers; ``queues``: of all, or by name; ``addrs``: by name and id."""
    sizes = queues if isinstance(queues, dict) else dict.fromkeys(names, queues)
    addrs = {name: {"0": f"{name}:10911"} for name in names} | dict(addrs)
    body = {
        "brokerDatas": [
            {"brokerName": name, "cluster": "C", "brokerAddrs": addrs[name]} for name in names
        ],
        "queueDatas": [
            {"brokerName": name, "perm": 6, "topicSysFlag": 0}
            | dict.fromkeys(("readQueueNums", "writeQueueNums"), sizes.get(name, 4))
            for name in names
        ],
        "filterServerTable": {},
    }
    answer = {"body": json.dumps(body)} if names else NO_ROUTE
    return line("topic_route", second, namesrv_addr="ns:9876", topic=topic, **answer)


def with_slave(name):
    """The addresses of a broker that has a slave, for a route."""
    return {name: {"0": f"{name}:10911", "1": f"{name}:10921"}}


def of_slave(line):
    """The line as the slave of the broker said it."""
    return line | {"broker_id": 1, "broker_addr": f"{line['broker_name']}:10921"}


def of_broker(kind, second, broker_name, answer, **values):
    to = {"broker_name": broker_name, "broker_id": 0, "broker_addr": f"{broker_name}:10911"}
    said = answer if "error_code" in answer else {"body": json.dumps(answer)}
    return line(kind, second, **to, consumer_group="G", **values, **said)


def subscriptions(topics, tags="*"):
    fields = {"expressionType": "TAG", "subString": tags, "subVersion": 1}
    return [{**fields, "topic": topic} for topic in topics]


def members(second, broker_name, client_ids, topics=("T",), addrs=None, language="JAVA"):
    """A broker's list of the group's members, or the error that it gives."""
    if isinstance(client_ids, dict):
        return of_broker("consumer_connection", second, broker_name, client_ids)
    addrs = addrs or [
        f"{client_id.split('@')[0]}:40{broker_name[-1] == 'a':d}{number:02}"
        for number, client_id in enumerate(client_ids)
    ]
    told = {"language": language, "version": 401}
    body = {
        "connectionSet": [
            {"clientId": client_id, "clientAddr": address, **told}
            for client_id, address in zip(client_ids, addrs, strict=True)
        ],
        "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET",
        "consumeType": "CONSUME_PASSIVELY",
        "messageModel": "CLUSTERING",
        "subscriptionTable": {each["topic"]: each for each in subscriptions(topics)},
    }
    return of_broker("consumer_connection", second, broker_name, body)


def holds(second, client_id, held, strategy=AVG, tags="*", **properties):
    """The running info of a member that holds these queues.

    ``held``: queues, or by queue what differs from one that has nothing to do.
    """
    queue = {"cachedMsgCount": 0, "commitOffset": 1, "droped": False}
    facts = held if isinstance(held, dict) else {key: {} for key in held}
    table = {
        json.dumps({"brokerName": name, "queueId": number, "topic": "T"}): queue | of_queue
        for (name, number), of_queue in facts.items()
    }
    told = {
        "PROP_CONSUMEORDERLY": "false",
        "PROP_CONSUMER_START_TIMESTAMP": str(round(instant(-600).timestamp() * 1000)),
        "messageModel": "CLUSTERING",
    }
    if strategy:
        told["allocateMessageQueueStrategy"] = f"{strategy}@49"
    body = {
        "mqTable": table,
        "properties": told | properties,
        "statusTable": {},
        "subscriptionSet": subscriptions(["T"], tags),
    }
    return of_broker("consumer_running_info", second, "broker-a", body, client_id=client_id)


def offsets(second, broker_name, of_queue, tps=0.0):
    """Broker and consumer offset of all four queues, or by queue id, or by (topic, queue id)."""
    if isinstance(of_queue, tuple):
        of_queue = dict.fromkeys(range(4), of_queue)
    table = {}
    for key, (written, read) in of_queue.items():
        topic, number = key if isinstance(key, tuple) else ("T", key)
        queue = json.dumps({"brokerName": broker_name, "queueId": number, "topic": topic})
        table[queue] = {"brokerOffset": written, "consumerOffset": read, "lastTimestamp": 0}
    body = {"consumeTps": tps, "offsetTable": table}
    return of_broker("consume_stats", second, broker_name, body)


def asked(minute, listed=MEMBERS, read=None, names=BROKERS, **of_list):
    """What a nameserver and the brokers say in one minute.

    ``listed``: the members, or a function of minute and broker; ``read``: likewise the offsets,
    where a broker gives some.
    """
    yield route(60 * minute, *names)
    for number, name in enumerate(names, start=1):
        ids = listed(minute, name) if callable(listed) else listed
        yield members(60 * minute + number, name, ids, **of_list)
        now = read(minute, name) if callable(read) else read
        if now is not None:
            yield offsets(60 * minute + 10 + number, name, now)


def rounds(listed=MEMBERS, read=None, minutes=MINUTES, **of_all):
    """What they say in each of these minutes."""
    for minute in minutes:
        yield from asked(minute, listed, read, **of_all)


def in_turn(minute, _name=""):
    """Offsets of queues that are read as fast as they are written: 100 messages a minute."""
    return 100 * minute + 9, 100 * minute
