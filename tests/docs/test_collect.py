"""The collectors that the docs offer, against servers that answer as RocketMQ's do."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pyarrow.parquet as pq
import pytest

from jobs.pipeline.audit_on_driver import ingest
from jobs.progress import Progress
from jobs.settings import Settings
from jobs.storage import Location

COLLECT = Path(__file__).parent.parent.parent / "docs" / "collect"

QUEUE = "MessageQueue [topic=ORDER, brokerName=broker-a, queueId=0]"
#: Two processes with one id, and an id with whatever a person may type.
MEMBERS = [("10.0.0.1@1", 50120), ("10.0.0.1@1", 50121), ('10.0.0.2@a b;"é#&', 50122)]
SUBSCRIPTION = {"topic": "ORDER", "subString": "*", "expressionType": "TAG"}
NOT_ONLINE = "MQBrokerException: CODE: 206  DESC: the consumer group[G] not online"


def answer(path: str, query: dict[str, str]) -> Any:
    """What the dashboard has under ``data``; a text is an error, None no answer at all."""
    match path, query.get("address"):
        case "/cluster/list.query", _:
            addresses = {"broker-a": {"0": "a:1"}, "broker-b": {"0": "b:1", "1": "b:2"}}
            table = {name: {"brokerAddrs": of} for name, of in addresses.items()}
            return {"clusterInfo": {"brokerAddrTable": table}}
        case "/ops/homePage.query", _:
            return {"namesvrAddrList": ["n1:9876", "n2:9876"], "useVIPChannel": False}
        case "/consumer/groupList.query", _:
            return [{"group": "G", "count": 3}, {"group": "CID_RMQ_SYS_TRANS"}]
        case "/consumer/consumerConnection.query", "a:1":
            connections = [
                {"clientId": i, "clientAddr": f"h:{p}", "language": "JAVA", "version": 395}
                for i, p in MEMBERS
            ]
            return {
                "connectionSet": [{**each, "versionDesc": "V4_9_1"} for each in connections],
                "subscriptionTable": {"ORDER": SUBSCRIPTION},
                "consumeType": "CONSUME_PASSIVELY",
                "messageModel": "CLUSTERING",
            }
        case "/consumer/consumerConnection.query", "b:1":
            return NOT_ONLINE
        case "/topic/route.query", _:
            return {
                "brokerDatas": [{"brokerName": "broker-a", "brokerAddrs": {"0": "a:1"}}],
                "queueDatas": [
                    {"brokerName": "broker-a", "perm": 6, "readQueueNums": 4, "writeQueueNums": 4}
                ],
            }
        case "/consumer/consumerRunningInfo.query", _:
            return {
                "properties": {
                    "allocateMessageQueueStrategy": "org.apache.rocketmq.client.consumer."
                    "rebalance.AllocateMessageQueueAveragely@4926097b"
                },
                "mqTable": {QUEUE: {"droped": False, "lastPullTimestamp": 1795226584944}},
            }
        case "/consumer/queryTopicByConsumer.query", _:
            offsets = {"brokerName": "broker-a", "queueId": 0, "brokerOffset": 9}
            return [{"topic": "ORDER", "queueStatInfoList": [{**offsets, "consumerOffset": 7}]}]
    return None


@pytest.fixture
def dashboard() -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            data = answer(parts.path, {k: v[0] for k, v in parse_qs(parts.query).items()})
            envelope = {"status": 0, "data": data, "errMsg": None}
            if isinstance(data, str):
                envelope = {"status": -1, "data": None, "errMsg": data}
            self.send_response(504 if data is None else 200)
            self.end_headers()
            self.wfile.write(json.dumps(envelope).encode())

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing on the console."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()
    thread.join()


#: As mqadmin prints: noise, JSON that is none, a table whose columns an id breaks, stack traces.
MQADMIN = """\
#!{python}
import sys
name, *arguments = sys.argv[1:]
given = dict(zip(arguments[::2], arguments[1::2]))
print("RocketMQLog:WARN No appenders could be found for logger (x.y).")
if name == "topicRoute" and given["-n"] == "n2:9876":
    print("org.apache.rocketmq.client.exception.MQClientException: CODE: 17  DESC: No topic route")
elif name == "topicRoute":
    brokers = '"brokerAddrs":{{0:"a:1"}},"brokerName":"broker-a"'
    if given["-t"] == "ORDER":
        brokers += '}},{{"brokerAddrs":{{0:"b:1",1:"b:2"}},"brokerName":"broker-b"'
    queues = '"brokerName":"broker-a","perm":6,"readQueueNums":4,"writeQueueNums":4'
    routes = '\\n\\t"brokerDatas":[{{' + brokers + '}}],\\n\\t"queueDatas":[{{' + queues + '}}]'
    print('{{' + routes + '\\n}}')
elif given["-b"] == "a:1":
    print("#ClientId                            #ClientAddr            #Language  #Version")
    for number, (client_id, port) in enumerate({members!r}):
        print("%-36s %-22s %-10s %s" % (client_id, "10.31.79.112:%d" % port, "JAVA", "V4_9_1"))
    print("\\nBelow is subscription:\\n#Topic               #SubExpression")
    print("ORDER                TagA || TagB\\n%RETRY%G             *")
    print("\\nConsumeType: CONSUME_PASSIVELY\\nMessageModel: CLUSTERING")
    print("ConsumeFromWhere: CONSUME_FROM_LAST_OFFSET")
elif given["-b"] == "b:1":
    print("{not_online}", file=sys.stderr)
else:
    print("RemotingConnectException: connect to b:2 failed", file=sys.stderr)
"""


def collected(script: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, str(COLLECT / script), "--cluster", script, *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_lines_of_the_collectors_are_read_by_ingest(tmp_path: Path, dashboard: str) -> None:
    mqadmin = tmp_path / "mqadmin"
    mqadmin.write_text(
        MQADMIN.format(python=sys.executable, members=MEMBERS, not_online=NOT_ONLINE)
    )
    mqadmin.chmod(0o755)
    dumps = tmp_path / "dumps"
    dumps.mkdir()
    of_namesrvs = [each for address in ("n1:9876", "n2:9876") for each in ("--namesrv", address)]
    (dumps / "dashboard.jsonl").write_text(collected("dashboard.py", dashboard))
    (dumps / "mqadmin.jsonl").write_text(
        collected("mqadmin.py", *of_namesrvs, "--group", "G", "--mqadmin", str(mqadmin))
    )
    result = ingest([str(dumps)], Location(tmp_path / "out"), Settings(), Progress(quiet=True))
    assert result.quarantined == 0
    assert result.lines == (3 + 2 + 1 + 1) + (3 + 2 * 2)

    def rows(table: str, *columns: str) -> dict[str, list[tuple[Any, ...]]]:
        """By script the rows, sorted."""
        found = pq.read_table(tmp_path / "out" / table, columns=["cluster", *columns])
        by_script: dict[str, list[tuple[Any, ...]]] = {"dashboard.py": [], "mqadmin.py": []}
        for row in sorted(found.to_pylist(), key=str):
            by_script[row["cluster"]].append(tuple(row[name] for name in columns))
        return by_script

    polls = rows("broker_polls", "broker_name", "broker_id", "outcome", "connections")
    members = rows("heartbeats", "client_id", "broker_name", "message_model")
    for script in ("dashboard.py", "mqadmin.py"):
        assert polls[script] == [
            ("broker-a", 0, "ANSWERED", 3),
            ("broker-b", 0, "NOT_ONLINE", 0),
            ("broker-b", 1, "NO_ANSWER", 0),
        ]
        assert members[script] == sorted(
            (client_id, "broker-a", "CLUSTERING") for client_id, _ in MEMBERS
        )
    subscriptions = rows("heartbeats", "subscriptions")
    assert {s["expression"] for row in subscriptions["mqadmin.py"] for s in row[0]} == {
        "TagA || TagB",
        "*",
    }
    routes = rows("topic_routes", "namesrv_addr", "topic", "broker_name", "read_queue_nums")
    assert routes["dashboard.py"] == [("n1:9876;n2:9876", "ORDER", "broker-a", 4)]
    assert ("n1:9876", "%RETRY%G", "broker-a", 4) in routes["mqadmin.py"]
    assert ("n1:9876", "ORDER", "broker-a", 4) in routes["mqadmin.py"]
    offsets = rows("queue_offsets", "broker_offset", "consumer_offset")
    assert offsets["dashboard.py"] == [(9, 7)]
    states = rows("client_states", "client_id", "strategy")
    assert [strategy for _, strategy in states["dashboard.py"]] == ["AVG", "AVG"]
