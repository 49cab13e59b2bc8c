"""What changes would do to every topic of a group: the text, and the values for a program."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from jobs.config.settings import Settings
from jobs.declared.instants import to_instant
from jobs.judge.moment import Moment
from jobs.pipeline.moments import predict_moments
from rebalance_core import Change, MessageQueue, join, leave, resize, use_strategy
from tests.support.snapshots import BROKER, at, one_list

RETRY = "%RETRY%G"


def group(
    clients: Sequence[str], queues: Mapping[str, int], backlog: Mapping[int, int] | None = None
) -> list[Moment]:
    """A group's moments; the same messages wait in the queues of each topic."""
    now = to_instant(at(0))
    moments = []
    for topic, number in queues.items():
        state = replace(one_list(list(clients), queues=number), topic=topic)
        waiting = backlog and {MessageQueue(topic, BROKER, n): of for n, of in backlog.items()}
        moments.append(Moment("C", state, now, now, now, {}, (), waiting, backlog_at=now))
    return moments


def text_of(told) -> str:
    """The text as one line."""
    return " ".join(str(told.text).split())


def predicted(moments: list[Moment], *changes: Change):
    return predict_moments(moments, changes, Settings())


def test_every_topic_has_its_line_and_every_client_its_load():
    told = predicted(group(["a", "b"], {"T": 5, "U": 5, RETRY: 1}), join("c"))
    text = str(told.text)

    assert told.safe
    assert text.startswith("Safe, and of use to 1 more process: 10 queues, at most 4 a process, 6 ")
    assert (
        "\n\nG on 3 topics, cluster C, as of 2026-01-05T00:00:00.000Z\nWhat if: c joins\n" in text
    )
    for topic in ("T", "U"):
        assert f"\n{topic}: safe, 2 of 5 queues change hands; before: every queue has one" in text
    # 5 queues are 3 and 2, then 2, 2 and 1; the retry topic does not count.
    assert text.endswith("  a: 6 -> 4\n  b: 4 -> 4\n  c: not there -> 2")


def test_what_is_not_safe_of_one_topic_is_not_safe_of_the_group():
    told = predicted(group(["a", "b"], {"T": 4, "U": 1}), use_strategy("AVG_BY_CIRCLE"))
    text = str(told.text)

    assert not told.safe
    assert text.startswith("NOT safe for 1 topic of 2, T above all: 2 of 2 states between the ")
    assert "\nT: NOT safe, 2 of 4 queues change hands" in text
    assert "\nU: safe, 0 of 1 queue change hands" in text
    assert "In a rolling way, step by step (2 steps), the worst state in between" in text
    assert told.values["dangers"] == ["FINDINGS_BETWEEN"]


def test_messages_in_queues_that_go_are_counted_with_what_to_do():
    told = predicted(group(["a"], {"T": 4, "U": 2}, {0: 0, 1: 0, 2: 7, 3: 2}), resize(2))

    said = "go, and nobody reads what is in them until they are back."
    assert f"T above all: 2 queues with 9 messages that the group has not consumed {said}" in (
        text_of(told)
    )
    one = predicted(group(["a"], {"T": 4}, {0: 0, 1: 0, 2: 0, 3: 1}), resize(3))
    said = "goes, and nobody reads what is in it until it is back."
    assert f"1 queue with 1 message that the group has not consumed {said}" in text_of(one)
    assert "To do: let nobody write to the queues that go" in text_of(told)
    assert "Not consumed, in queues that go: queues 2-3 of broker-a" in text_of(told)
    of_topic = told.values["topics"][0]
    assert (of_topic["safe"], of_topic["dangers"]) == (False, ["MESSAGES_LEFT"])
    assert of_topic["queues_gone"] == [
        {"broker_name": "broker-a", "queue_id": 2, "messages_left": 7},
        {"broker_name": "broker-a", "queue_id": 3, "messages_left": 2},
    ]
    assert told.values["topics"][1]["safe"], "it has 2 queues already"


def test_the_values_are_json_with_these_keys():
    told = predicted(group(["a", "b"], {"T": 4}), leave("b"))
    values = json.loads(json.dumps(told.values))

    assert values.keys() == {
        "cluster", "consumer_group", "as_of", "changes", "safe", "dangers", "topics", "clients",
        "processes",
    }  # fmt: skip
    assert values["processes"] == {"before": 2, "idle_before": 0, "after": 1, "idle_after": 0}
    assert (values["changes"], values["safe"], values["dangers"]) == (["b leaves"], True, [])
    assert values["clients"] == [
        {"client_id": "a", "queues_before": 2, "queues_after": 4},
        {"client_id": "b", "queues_before": 2, "queues_after": None},
    ]
    (topic,) = values["topics"]
    assert topic.keys() == {
        "topic", "safe", "dangers", "steps", "before", "after", "moves", "rollout", "settling",
        "queues_gone",
    }  # fmt: skip
    assert topic["before"].keys() == {
        "coverage", "reason", "queues", "processes", "idle_clients", "findings",
    }  # fmt: skip
    assert topic["moves"][0] == {
        "broker_name": "broker-a", "queue_id": 2, "before": ["b"], "after": ["a"],
    }  # fmt: skip
    assert topic["rollout"].keys() == {"looked_at", "exhaustive", "harmed", "worst"}
    assert topic["settling"]["seconds"] == 20


def test_a_finding_has_its_queue_and_who_takes_it():
    told = predicted(group(["a", "b"], {"T": 3}), join("b"))
    findings = told.values["topics"][0]["after"]["findings"]
    assert {(each["kind"], each["queue_id"]) for each in findings} == {
        ("DUPLICATE", 1), ("ORPHANED", 2),
    }  # fmt: skip
    assert findings[0].keys() == {
        "kind", "broker_name", "queue_id", "certainty", "probability", "client_ids",
    }  # fmt: skip
