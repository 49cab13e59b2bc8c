"""The port against what the Java strategies returned: see tests/golden/README.md."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from rebalance_core import (
    AllocationError,
    MessageQueue,
    MissingParameterError,
    make_strategy,
    sort_client_ids,
    sort_message_queues,
)

GOLDEN = Path(__file__).parent.parent / "golden"
ILLEGAL_ARGUMENT = "java.lang.IllegalArgumentException"
NULL_POINTER = "java.lang.NullPointerException"


def read_cases(file_name: str) -> list[dict[str, Any]]:
    with (GOLDEN / file_name).open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


CASES = read_cases("allocations.jsonl") + read_cases("apache_tests.jsonl")
BY_STRATEGY = {
    name: [case for case in CASES if case["strategy"] == name]
    for name in sorted({case["strategy"] for case in CASES})
}


def queues_of(case: dict[str, Any]) -> list[MessageQueue] | None:
    return None if case["queues"] is None else [MessageQueue(*queue) for queue in case["queues"]]


def expected_of(case: dict[str, Any], client_id: str) -> list[MessageQueue]:
    # A client takes null for an empty list.
    return [MessageQueue(*queue) for queue in case["allocations"][client_id] or ()]


def expected_error(text: str) -> tuple[type[AllocationError], str | None]:
    java_class, _, message = text.partition(": ")
    if java_class == NULL_POINTER:
        return MissingParameterError, None
    assert java_class == ILLEGAL_ARGUMENT
    return AllocationError, message


def assert_raises(text: str, call: Any) -> None:
    error_class, message = expected_error(text)
    with pytest.raises(AllocationError) as raised:
        call()
    assert type(raised.value) is error_class
    assert message is None or str(raised.value) == message


def test_the_golden_files_hold_every_case() -> None:
    assert Counter(case["strategy"] for case in CASES) == {
        "AVG": 120,
        "AVG_BY_CIRCLE": 120,
        "CONFIG": 30,
        "CONSISTENT_HASH": 168,
        "MACHINE_ROOM": 85,
        "MACHINE_ROOM_NEARBY-AVG": 74,
        "MACHINE_ROOM_NEARBY-AVG_BY_CIRCLE": 62,
    }


@pytest.mark.parametrize("name", BY_STRATEGY)
def test_every_client_is_allocated_and_claims_what_java_allocates(name: str) -> None:
    for case in BY_STRATEGY[name]:
        try:
            check_each_client(case)
            check_all_clients_at_once(case)
            check_claims(case)
        except AssertionError as error:
            error.add_note(f"in the case {case['case']}")
            raise


def check_each_client(case: dict[str, Any]) -> None:
    strategy = make_strategy(case["strategy"], case["params"])
    assert strategy.name == case["strategy"]
    queues = queues_of(case)
    asked = dict.fromkeys((case["client_ids"] or []) + case.get("extra_client_ids", []))
    assert set(asked) == set(case["allocations"]) | set(case["errors"])
    # All of a case at once: below. Of many clients some are asked for themselves.
    some = [*asked][:: 1 + len(asked) // 20]
    for client_id in dict.fromkeys([*some, *case["errors"], *case.get("extra_client_ids", [])]):

        def call(client_id: str = client_id) -> list[MessageQueue]:
            return strategy.allocate(case["consumer_group"], client_id, queues, case["client_ids"])

        if client_id in case["errors"]:
            assert_raises(case["errors"][client_id], call)
        else:
            assert call() == expected_of(case, client_id), client_id


def check_all_clients_at_once(case: dict[str, Any]) -> None:
    strategy = make_strategy(case["strategy"], case["params"])
    asked = case["consumer_group"], queues_of(case), case["client_ids"]
    texts = {text for client_id, text in case["errors"].items() if client_id}
    if texts:
        (text,) = texts
        assert_raises(text, lambda: strategy.allocate_all(*asked))
    else:
        expected = {client_id: expected_of(case, client_id) for client_id in case["client_ids"]}
        assert strategy.allocate_all(*asked) == expected


def check_claims(case: dict[str, Any]) -> None:
    if any(case["errors"].values()) or case["queues"] is None or case["client_ids"] is None:
        return
    strategy = make_strategy(case["strategy"], case["params"])
    queues, client_ids = sort_message_queues(queues_of(case)), sort_client_ids(case["client_ids"])
    claims = strategy.claims(queues, client_ids)
    present = set(queues)
    assert claims.keys() == set(client_ids)
    for client_id, positions in claims.items():
        # CONFIG may also list queues that do not exist, or twice: nobody can claim those.
        expected = [q for q in dict.fromkeys(expected_of(case, client_id)) if q in present]
        assert [queues[position] for position in positions] == expected, client_id
