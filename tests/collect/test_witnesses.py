"""No witness is missing: what is asked because of an answer, and that each answer is a line."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from jobs.config.bounds import DEFAULT_BOUNDS
from jobs.dumps.statements import RefusedLine, StatementReader
from tests.collect.test_rounds import Rounds, lists, of_cluster, one_round, run
from tests.support.frames import Frame
from tests.support.remote_cluster import RemoteCluster
from tests.support.replay import Answering, Manners, answer_frame, error


@pytest.fixture
def cluster() -> RemoteCluster:
    made = RemoteCluster()
    made.add_group("G", ["x", "y"], ["T"])
    made.add_group("H", ["u"], ["U"])
    return made


def changed(answers: Answering, code: int, body: bytes) -> Answering:
    def answer(asked: Frame) -> bytes | None:
        return answer_frame(body) if asked.code == code else answers(asked)

    return answer


#: As fastjson prints it: a subscription that no list and no offset has.
INFO = (
    b'{"mqTable":{{"brokerName":"a","queueId":0,"topic":"HELD"}:{"droped":false}},"properties":{},'
    b'"subscriptionSet":[{"subString":"*","topic":"ONLY_HERE"}]}'
)


def test_topics_that_only_a_running_info_has_are_asked_for_their_routes(
    cluster: RemoteCluster,
) -> None:
    answers = {
        address: changed(of, 307, INFO) if address in cluster.addresses else of
        for address, of in cluster.answers().items()
    }
    asked: Counter[Any] = Counter()

    async def body(rounds: Rounds) -> list[dict[str, Any]]:
        lines = await rounds.next()
        asked.update(rounds.asked(105))
        await rounds.next()
        asked.update(rounds.asked(105))
        return lines

    lines = run(body, answers, of_cluster(cluster))
    routes = {line["topic"] for line in lines if line["kind"] == "topic_route"}
    assert {"HELD", "ONLY_HERE"} <= routes
    # In the next round, in which nobody is asked for a running info, it is remembered.
    assert {asked[namesrv, "ONLY_HERE"] for namesrv in cluster.namesrvs} == {2}


def test_running_infos_are_asked_again_when_a_route_changes(cluster: RemoteCluster) -> None:
    route = (
        b'{"brokerDatas":[{"brokerName":"a","cluster":"C"}],"queueDatas":[{"readQueueNums":%d}]}'
    )
    queues = 4

    def namesrv(asked: Frame) -> bytes | None:
        if asked.code == 105 and asked.fields["topic"] == "T":
            return answer_frame(route % queues)
        return cluster._namesrv(asked)

    answers = {**cluster.answers(), **dict.fromkeys(cluster.namesrvs, namesrv)}

    async def body(rounds: Rounds) -> list[set[str]]:
        nonlocal queues
        asked = []
        for number in range(5):
            if number == 2:
                queues = 8
            await rounds.next()
            asked.append({group for _, group, *_ in rounds.asked(307)})
        return asked

    # The group of the topic alone, when its members have had the time to follow.
    target = of_cluster(cluster, running_infos_seconds=3_600, running_infos_after_seconds=45)
    assert run(body, answers, target) == [set(), {"G", "H"}, set(), {"G"}, set()]


@pytest.mark.parametrize("manners", [Manners(hangs_after=0), Manners(refuses=True)])
def test_a_slave_is_asked_for_offsets_where_its_master_is_away(
    cluster: RemoteCluster, manners: Manners
) -> None:
    lines = run(one_round, cluster.answers(), of_cluster(cluster), {"a:10911": manners})
    offsets = {
        (line["consumer_group"], line["broker_addr"]): "body" in line
        for line in lines
        if line["kind"] == "consume_stats"
    }
    assert offsets == {
        (group, address): address != "a:10911"
        for group in ("G", "H")
        for address in ("a:10911", "a:10941", "b:10911")
    } | {(group, "a:10911"): False for group in ("G", "H")}


def test_whatever_is_asked_is_a_line_that_is_understood(cluster: RemoteCluster) -> None:
    cluster.is_5 = True
    flags = b'{"subscriptionGroupTable":{"G":{"consumeEnable":false,"groupName":"G"},"H":{}}}'
    answers = {
        address: changed(of, 201, flags) if address in cluster.addresses else of
        for address, of in cluster.answers().items()
    }

    async def body(rounds: Rounds) -> tuple[list[dict[str, Any]], int]:
        lines = await rounds.next()
        return lines, len(rounds.replay.requests)

    lines, requests = run(body, answers, of_cluster(cluster))
    assert len(lines) == requests
    by_kind = Counter(line["kind"] for line in lines)
    assert by_kind["cluster_info"] == len(cluster.namesrvs)
    assert by_kind["subscription_group"] == 2
    assert by_kind["consumer_topics"] == 2 * 2
    assert {line["body"] for line in lines if line["kind"] == "subscription_group"} == {
        flags.decode()
    }
    for line in lines:
        assert not isinstance(
            StatementReader(DEFAULT_BOUNDS, None).read(json.dumps(line).encode()), RefusedLine
        )
    for kind, body in (("subscription_group", "[]"), ("cluster_info", "{}"), ("left_out", "{}")):
        wrong = {**next(line for line in lines if line["kind"] == "subscription_group")}
        wrong |= {"kind": kind, "body": body, "namesrv_addr": "ns1:9876"}
        assert isinstance(
            StatementReader(DEFAULT_BOUNDS, None).read(json.dumps(wrong).encode()), RefusedLine
        )


def test_two_clusters_behind_one_nameserver(cluster: RemoteCluster) -> None:
    """Clients send heartbeats to all brokers that they know: both clusters' list both groups."""
    cluster.brokers["other"] = {0: "other:10911"}
    for of_group in cluster.members.values():
        of_group["other:10911"] = of_group["a:10911"]

    def cluster_of(name: str) -> str:
        return "D" if name == "other" else "C"

    def namesrv(asked: Frame) -> bytes | None:
        whole = [
            {"brokerName": name, "cluster": cluster_of(name), "brokerAddrs": {"0": of[0]}}
            for name, of in cluster.brokers.items()
        ]
        # Somebody registers the address of a broker under another name, too.
        thief = {"brokerName": "z", "cluster": "E", "brokerAddrs": {"0": "a:10911"}}
        if asked.code == 106:
            table = {str(each["brokerName"]): each for each in [*whole, thief]}
            return answer_frame(json.dumps({"brokerAddrTable": table}).encode())
        if asked.code != 105:
            return None
        hosted = "D" if asked.fields["topic"] == "U" else "C"
        if asked.fields["topic"].startswith("%RETRY%"):
            return error(17, "No topic route info")
        datas = [each for each in whole if each["cluster"] == hosted]
        return answer_frame(json.dumps({"brokerDatas": datas, "queueDatas": []}).encode())

    answers = {**cluster.answers(), **dict.fromkeys(cluster.namesrvs, namesrv)}
    lines = run(one_round, answers, of_cluster(cluster))
    assert lists(lines) == {
        (group, address): 1
        for group in ("G", "H")
        for address in ("a:10911", "b:10911", "other:10911")
    }
    assert {(line["cluster"], line["broker_addr"]) for line in lines if "broker_addr" in line} == {
        ("C", "a:10911"),
        ("C", "b:10911"),
        ("D", "other:10911"),
    }
    routes = {
        (line["cluster"], line["topic"])
        for line in lines
        if line["kind"] == "topic_route" and "body" in line
    }
    assert routes == {("C", "T"), ("D", "U")}
