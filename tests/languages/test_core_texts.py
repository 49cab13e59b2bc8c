"""What the core says of a state, a client id and a change is Chinese for whoever asks for it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from jobs.languages.language import language
from rebalance_core import (
    AllocationError,
    Change,
    Member,
    Situation,
    State,
    StrategyRules,
    add_broker,
    evaluate,
    find_causes,
    find_faults,
    join,
    leave,
    make_strategy,
    mend,
    remove_broker,
    resize,
    separate_ids,
    subscribe_all,
    unify_list,
    use_strategy,
    what_if,
)
from rebalance_core.client_id import remedy_of, restart_of, without_secret
from rebalance_core.descriptions import queue_ranges
from rebalance_core.english import list_of
from rebalance_core.faults import FAULTS
from rebalance_core.message_queue import MessageQueue
from rebalance_core.processes import count_processes
from rebalance_core.texts import Text
from tests.core.test_causes import (
    FAULTY,
    MIXED,
    PLAIN,
    STATES,
    all_use,
)
from tests.languages.templates import has_words
from tests.support.snapshots import (
    client_list,
    member,
    one_list,
    one_list_each,
    route,
    route_broker,
    route_of,
    state,
)

ROOT = Path(__file__).parent.parent.parent
CATALOGUE = ROOT / "jobs" / "languages" / "zh"
CHINESE = language("zh")

#: What Chinese operators of RocketMQ write in Latin letters: names, settings, commands, tables.
LATIN = {
    *("RocketMQ", "Broker", "NameServer", "Proxy", "slave", "ID", "IP", "UTC", "Pod", "ASCII"),
    *("Java", "C", "C++", "Python", ".NET", "SDK", "gRPC", "ONS", "POP", "Pull", "assign"),
    *("AVG", "AVG_BY_CIRCLE", "CONFIG", "MACHINE_ROOM", "RETRY", "DEFAULT", "NAME", "false"),
    *("Node.js", "ali-ons"),
    *("client-go", "client-cpp", "consumer.WithInstance", "consumer.setInstanceName"),
    *("rocketmq-spring-boot-starter", "spring-cloud-starter-stream-rocketmq"),
    *("instanceName", "InstanceName", "setInstanceName", "SetPushConsumerInstanceName"),
    *("RocketMQPushConsumerLifecycleListener", "RocketMQMessageListener", "bean", "clientIP"),
    "-Drocketmq.client.name",
    *("consumeridcs", "config_queues", "autoCreateSubscriptionGroup", "bounds.topic_queues"),
    *("mqadmin", "updateSubGroup", "updateTopic", "-b", "-g", "-t", "-r", "-w", "-p"),
    "master",
    *("BROKER_ADDRESS", "READ_QUEUES", "WRITE_QUEUES", "strategies", "name", "params"),
    *("allocations", "allocation_drift", "enableSlaveActingMaster", "clientRebalance", "true"),
    *("setConsumeMode", "CLUSTER", "-c", "-m", "PULL", "instance_name", "ClientId", "ClientIP"),
    *("consumer.set_instance_name", "ACL", "SUB"),
}


def texts_in(text: Text) -> Iterator[Text]:
    """The text, and every text in it."""
    yield text
    for value in text.values.values():
        if isinstance(value, Text):
            yield from texts_in(value)


#: Two words of English in a row: a name of the states here is one word, or a filter.
PROSE = re.compile(r"[a-z]{2,} [a-z]{2,}")


def assert_chinese(text: str) -> None:
    """It is a text, each template in it has a translation, and no value is English by itself."""
    assert isinstance(text, Text), f"no text: {text!r}"
    for each in texts_in(text):
        if has_words(each.template):
            assert each.template in CHINESE.templates, each.template
        for value in each.values.values():
            if isinstance(value, str) and not isinstance(value, Text):
                assert not PROSE.search(value), f"{value!r} of {each.template!r}"
    assert Text(text.template, **text.values) == str(text)


def of_area(area: str) -> dict[str, str]:
    return tomllib.loads((CATALOGUE / f"{area}.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("area", ["core", "kinds"])
def test_a_translation_has_no_english_but_names_and_commands(area: str) -> None:
    for chinese in of_area(area).values():
        words = re.findall(r"-?[.]?[A-Za-z][\w.+-]*", re.sub(r"\{[^{}]*\}", "", chinese))
        assert {word.rstrip(".") for word in words} <= LATIN, chinese


def faults_of(situation: Situation) -> dict[str, tuple[str, str]]:
    evaluation = evaluate(situation.state, situation.rules)
    causes = find_causes(situation, evaluation)
    found = find_faults(situation, evaluation, causes)
    return {each.fault: (each.evidence, each.remedy) for each in found}


NO_MEMBER = state(client_lists=(), offline_brokers=(("broker-a", 0),))


def each(client_ids: str, **facts: Any) -> list[Member]:
    """A member for each letter."""
    return [member(client_id=client_id, **facts) for client_id in client_ids]


#: A state alone is judged by plain rules.
SITUATIONS: dict[str, State | Situation] = {
    **FAULTY,
    **{name: of for name, (of, *_) in MIXED.items()},
    "a topic that is not there": replace(one_list(["a"]), topic_routes=(route(),)),
    "two filters": one_list([m for n in "abc" for m in each(n, expression=f"TAG {n}")]),
    "no member": NO_MEMBER,
    "a ring without points": Situation(
        one_list(["a", "b"]), all_use("CONSISTENT_HASH", virtual_node_count=0)
    ),
    "an id as often as not": one_list_each({"broker-a": "aab", "broker-b": "aaab"}, queues=8),
}


def situation_of(name: str) -> Situation:
    found = SITUATIONS[name]
    return Situation(found, PLAIN) if isinstance(found, State) else found


@pytest.mark.parametrize("name", SITUATIONS)
def test_what_is_found_in_a_situation_is_chinese(name: str) -> None:
    situation = situation_of(name)
    evaluation = evaluate(situation.state, situation.rules)
    found = find_faults(situation, evaluation, find_causes(situation, evaluation))
    assert found
    for fault in found:
        assert_chinese(fault.evidence)
        assert_chinese(fault.remedy)
    moves = [move for fault in found for move in fault.moves]
    for taker in {taker for move in moves for taker in (*move.before, *move.after)}:
        if isinstance(taker, Text):
            assert_chinese(taker)
    for effect in evaluation.stacked:
        assert_chinese(effect.evidence)
        assert_chinese(effect.remedy)
    if evaluation.reason:
        assert_chinese(evaluation.reason)


def test_the_situations_have_every_fault_that_a_state_can_show() -> None:
    assert {fault for name in SITUATIONS for fault in faults_of(situation_of(name))} == set(FAULTS)


@given(STATES)
def test_whatever_is_found_in_a_state_is_chinese(any_state: State) -> None:
    for evidence, remedy in faults_of(Situation(any_state, PLAIN)).values():
        assert_chinese(evidence)
        assert_chinese(remedy)


#: A state, by plain rules, or with rules of its own.
NOT_AUDITED: dict[str, State | Situation] = {
    "every member broadcasts": one_list(["a"], message_model="BROADCASTING"),
    "nobody subscribes": one_list(["a"], subscribed=False),
    "all choose": one_list(["a"], chooses_queues=True),
    "no topic": state(topic=""),
    "no topic and no member": state(topic="", client_lists=()),
    "no broker has READ": state(topic_routes=(route(route_broker(perm=2)),)),
    "no route": state(topic_routes=()),
    "no such topic": state(topic_routes=(route(),)),
    "a strategy of the application": one_list(["a"], strategy="com.example.Mine"),
    "a strategy without its parameters": one_list(["a"], strategy="MACHINE_ROOM"),
    "a POP client": one_list(["a"], client_rebalance=False),
    "a gRPC client": one_list(["host@1@0@16r6jvdv1x"]),
    "a POP topic": replace(one_list(["a"]), request_mode="POP"),
    "no broker answered": state(client_lists=()),
    "one did not answer": replace(NO_MEMBER, topic_routes=(route_of("abc"),)),
    "only a broker beside the route answered": state(
        client_lists=(client_list("a", broker_name="elsewhere"),)
    ),
    "rooms without parameters": Situation(
        one_list_each({"room1@x": ["a"]}), all_use("MACHINE_ROOM", consumeridcs=None)
    ),
    "too many queues": Situation(one_list(["a"], 9), StrategyRules(most_queues=8)),
    "two zones": state(
        topic_routes=(
            route(route_broker(zone_name="z1"), route_broker(broker_name="b", zone_name="z2")),
        )
    ),
    "no member": NO_MEMBER,
}


@pytest.mark.parametrize("name", NOT_AUDITED)
def test_why_a_topic_is_not_computed_is_chinese(name: str) -> None:
    found = NOT_AUDITED[name]
    given = (found, PLAIN) if isinstance(found, State) else (found.state, found.rules)
    assert_chinese(evaluate(*given).reason)


def test_what_javas_strategy_throws_stays_as_java_writes_it() -> None:
    """An operator finds it in the client's log by these words."""
    rules = all_use("MACHINE_ROOM_NEARBY-AVG", broker_room={"x": "1"}, client_room={"a": "1"})
    reason = CHINESE.of(evaluate(one_list(["a"]), rules).reason)
    assert reason == (
        "Machine room is null for mq MessageQueue [topic=T, brokerName=broker-a, queueId=0]；"
        "出错的客户端会保留现有的队列"
    )


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("MINE", {}),
        ("MACHINE_ROOM_NEARBY-AVG", {}),
        ("MACHINE_ROOM_NEARBY-MACHINE_ROOM", {"broker_room": {"x": "1"}}),
        ("MACHINE_ROOM_NEARBY-CONFIG", {"broker_room": {"x": "1"}}),
    ],
)
def test_a_strategy_that_cannot_be_made_says_why_in_chinese(
    name: str, params: dict[str, object]
) -> None:
    with pytest.raises(AllocationError) as raised:
        make_strategy(name, params)
    assert str(raised.value) == raised.value.text
    assert_chinese(raised.value.text)


@pytest.mark.parametrize(
    "text",
    [
        remedy_of("10.0.0.1@order", "JAVA", 401),
        remedy_of("${ip}@1#55"),
        restart_of([]),
        restart_of(["a"]),
        restart_of([str(number) for number in range(30)], "GO"),
        without_secret(["10.0.0.1@ak|sk|GID_pay|1", "10.0.0.1@secret=1"]),
        *(count_processes("a@1", copies, None, None)[1] for copies in ([2], [2, 1], [2, 2])),
        count_processes("a@1#123456789012345", [2, 2], None, None)[1],
        list_of("abc"),
        list_of("abc", 1),
        queue_ranges(MessageQueue("T", name, number) for name in "abcdef" for number in (0, 2)),
        queue_ranges(MessageQueue("T", name, 0) for name in "abcdefgh"),
    ],
)
def test_what_is_said_of_clients_and_lists_is_chinese(text: str) -> None:
    assert_chinese(text)


CHANGES: list[Change] = [
    leave("a"),
    join("z"),
    separate_ids(),
    use_strategy("AVG_BY_CIRCLE"),
    subscribe_all(),
    add_broker("new", 1),
    add_broker("new", 8),
    remove_broker("broker-a"),
    resize(4),
    resize(1, "broker-a"),
    unify_list("broker-b"),
    *map(mend, ("DUPLICATE_CLIENT_ID", "SUBSCRIPTION_MISMATCH")),
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.text)
def test_a_change_and_its_steps_are_chinese(change: Change) -> None:
    stranger = member(client_id="c", subscribed=False)
    lists = one_list_each({"broker-a": ["a", "a", "b", stranger], "broker-b": ["a", "a", "b"]}, 8)
    with_slave = client_list("a", "a", broker_name="broker-b", broker_id=1)
    situation = Situation(replace(lists, client_lists=(*lists.client_lists, with_slave)), PLAIN)
    done = what_if(situation, [change])
    assert done.steps
    for text in (*done.changes, *done.steps):
        assert_chinese(text)
    for effect in done.after.stacked:
        assert_chinese(effect.evidence)
