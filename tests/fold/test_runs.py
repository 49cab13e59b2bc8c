"""Parts of runs -> runs, parts of contents -> contents."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.declared.contents import MEMBER_FACTS, ROUTE_FACTS, content_id, record_text
from jobs.fold.numbers import NO_NUMBER, collect
from jobs.fold.runs import (
    CLIENT_RUNS,
    OFFSET_RUNS,
    POLL_RUNS,
    ContentIds,
    Contents,
    Record,
    in_use,
    merge_runs,
    reunite,
)
from jobs.schemas import LONG


def member(client_id: str, client_addr: str | None = "h:1") -> Record:
    values: dict[str, Any] = dict.fromkeys((fact.name for fact in MEMBER_FACTS), None)
    return tuple((values | {"client_id": client_id, "client_addr": client_addr}).values())


A, B, C = member("a"), member("b"), member("c")
NOBODY = member("a", None)


def id_of(*records: Record) -> str:
    return content_id(record_text(MEMBER_FACTS, each) for each in records)


# ---------------------------------------------------------------- contents


@pytest.mark.parametrize(
    ("records", "kept"),
    [
        ([], []),
        ([A], [A]),
        ([B, A], [A, B]),
        # One connection that comes twice, and a client with two connections. Equal rows are one
        # also where the address is not known: nothing else is the same however they are cut.
        ([A, B, A], [A, B]),
        ([member("a", "h:2"), A], [A, member("a", "h:2")]),
        ([NOBODY, NOBODY], [NOBODY]),
        ([NOBODY, A, NOBODY, A], [A, NOBODY]),
    ],
)
def test_a_content_has_each_connection_once_in_an_order_that_is_always_the_same(
    records: list[Record], kept: list[Record]
) -> None:
    ids = ContentIds(MEMBER_FACTS)
    for order in (records, records[::-1]):
        id_, found = ids.identify(order)
        assert sorted(found, key=str) == sorted(kept, key=str)
        assert id_ == id_of(*kept)
    assert ids.identify(records)[1] == ids.identify(records[::-1])[1]


def test_a_broker_is_once_in_a_route_and_of_two_rows_that_differ_both_are() -> None:
    server = (None, ("h:1",), False)
    one, other = ("b", (0,), 6, 4, 4, *server), ("b", (0,), 4, 4, 4, *server)
    ids = ContentIds(ROUTE_FACTS)
    assert ids.identify([one, one])[1] == [one]
    assert len(ids.identify([one, other])[1]) == 2


def test_equal_records_of_other_facts_are_other_contents() -> None:
    """In Python 1 and True are equal."""
    number = next(fact for fact in ROUTE_FACTS if fact.name == "perm")
    truth = next(fact for fact in MEMBER_FACTS if fact.name == "chooses_queues")
    ids = {
        ContentIds([fact]).identify([(value,)])[0] for fact, value in ((number, 1), (truth, True))
    }
    assert len(ids) == 2


# ---------------------------------------------------------------- statements in parts


def listed(*runs: tuple[str, str, list[int]]) -> pa.Table:
    """Runs of (broker, id of the list, times)."""
    rows = [
        {
            "cluster": "c",
            "consumer_group": "G",
            "broker_name": broker,
            "broker_id": 0,
            "outcome": "ANSWERED",
            "list_id": list_id,
            "times": [{"snapshot_time": time, "collected_at": None} for time in times],
        }
        for broker, list_id, times in runs
    ]
    return pa.Table.from_pylist(rows, POLL_RUNS)


def reunited(
    contents: list[list[Record]], *runs: tuple[str, int, list[int]]
) -> set[tuple[str, str, tuple[int, ...]]]:
    """(broker, clients, times) of what is put together."""
    ids = ContentIds(MEMBER_FACTS)
    named = [ids.identify(each) for each in contents]
    parts = Contents(
        listed(*[(name, named[place][0], at) for name, place, at in runs]), dict(named)
    )
    whole = reunite(parts)
    assert whole.runs.schema == POLL_RUNS
    keys = whole.runs.select(["broker_name", "list_id"]).to_pylist()
    assert len(keys) == len({tuple(each.values()) for each in keys}), "a run is one row"
    return {
        (
            run["broker_name"],
            "".join(str(record[0]) for record in whole.records[run["list_id"]]),
            tuple(each["snapshot_time"] for each in run["times"]),
        )
        for run in whole.runs.to_pylist()
    }


@pytest.mark.parametrize(
    ("contents", "parts", "whole"),
    [
        (
            [[A], [B]],
            [("x", 0, [2]), ("x", 0, [1, 2]), ("x", 1, [3]), ("y", 0, [1])],
            {("x", "a", (1, 2)), ("x", "b", (3,)), ("y", "a", (1,))},
        ),
        # At 2 the first slice has a, the second b; before and after it each is whole.
        (
            [[A], [B], [A, B]],
            [("x", 0, [1, 2]), ("x", 1, [2]), ("x", 2, [3])],
            {("x", "a", (1,)), ("x", "ab", (2, 3))},
        ),
        # Three parts with one connection in two of them.
        (
            [[A], [A, B], [C]],
            [("x", 0, [1]), ("x", 1, [1]), ("x", 2, [1])],
            {("x", "abc", (1,))},
        ),
        # Parts of one broker are not those of another at the same time.
        (
            [[A], [B]],
            [("x", 0, [1]), ("y", 1, [1]), ("x", 1, [1])],
            {("x", "ab", (1,)), ("y", "b", (1,))},
        ),
        # The same twice.
        ([[A, B]], [("x", 0, [1]), ("x", 0, [1])], {("x", "ab", (1,))}),
        ([[NOBODY]], [("x", 0, [1]), ("x", 0, [1])], {("x", "a", (1,))}),
    ],
)
def test_the_parts_of_a_statement_are_one_and_each_becomes_runs(
    contents: list[list[Record]], parts: list[tuple[str, int, list[int]]], whole: set[Any]
) -> None:
    assert reunited(contents, *parts) == whole


def test_nothing_is_reunited_of_nothing() -> None:
    whole = reunite(Contents(POLL_RUNS.empty_table(), {}))
    assert (whole.runs.num_rows, whole.records) == (0, {})


def test_contents_that_no_run_names_are_left_out() -> None:
    contents = Contents(listed(("x", "1", [1])), {"1": [A], "2": [B]})
    assert in_use(contents).records == {"1": [A]}


# ---------------------------------------------------------------- runs in parts


def test_polls_of_one_answer_are_merged_in_time_with_the_times_of_the_answers() -> None:
    def run(*times: tuple[int, int | None], outcome: str = "NO_ANSWER") -> dict[str, Any]:
        at = [{"snapshot_time": time, "collected_at": came} for time, came in times]
        key = {"cluster": "c", "consumer_group": "G", "broker_name": "b", "broker_id": 0}
        return key | {"outcome": outcome, "list_id": None, "times": at}

    parts = [run((3, 4), (1, None)), run((3, 4), (2, 5)), run((3, None)), run((1, 1), outcome="X")]
    merged = merge_runs(pa.Table.from_pylist(parts, POLL_RUNS))
    assert merged.schema == POLL_RUNS
    by_outcome = {row["outcome"]: row["times"] for row in merged.to_pylist()}
    assert by_outcome["X"] == run((1, 1))["times"]
    assert by_outcome["NO_ANSWER"] == run((1, None), (2, 5), (3, None), (3, 4))["times"]


def test_offsets_are_merged_list_beside_list() -> None:
    queue = {"cluster": "c", "consumer_group": "G", "topic": "T", "broker_name": "b", "queue_id": 1}
    names = ("times", "broker_offsets", "consumer_offsets", "given")

    def polls(*lists):
        return dict(zip(names, lists, strict=True))

    parts = [
        queue | polls([2, 1], [20, 10], [7, 8], [None, 4]),
        queue | polls([2, 3], [20, 5], [7, 9], [None, 6]),
        queue | {"queue_id": 2} | polls([1], [1], [1], [0]),
    ]
    merged = merge_runs(pa.Table.from_pylist(parts, OFFSET_RUNS)).sort_by("queue_id").to_pylist()
    wanted = polls([1, 2, 3], [10, 20, 5], [8, 7, 9], [4, None, 6])
    assert merged == [queue | wanted, parts[2]]


def test_reports_of_clients_are_one_run_where_all_that_they_say_is_equal() -> None:
    nothing: dict[str, Any] = dict.fromkeys(CLIENT_RUNS.names)
    queue = {"topic": "T", "broker_name": "b", "queue_id": 1, "dropped": False}
    report = nothing | {"cluster": "c", "consumer_group": "G", "source": "CLIENT_LOG"}
    parts = [
        report | {"queues": queues, "times": [time], "observed_at": [at]}
        for queues, time, at in [
            *(([queue], 2, 5), ([queue], None, 4), ([queue, queue], 1, 1)),
            *(([], 1, 1), (None, 1, 1), (None, 1, 1)),
        ]
    ]
    merged = merge_runs(pa.Table.from_pylist(parts, CLIENT_RUNS)).to_pylist()
    said = [
        (row["queues"], list(zip(row["times"], row["observed_at"], strict=True))) for row in merged
    ]
    once = [([queue, queue], [(1, 1)]), ([], [(1, 1)]), (None, [(1, 1)])]
    assert sorted(said, key=str) == sorted([([queue], [(None, 4), (2, 5)]), *once], key=str)


texts = st.sampled_from([None, "", "a", "b"])
some_runs = st.lists(
    st.tuples(texts, texts, st.lists(st.integers(0, 5), min_size=1, max_size=4)), max_size=8
)


@given(some_runs, st.integers(1, 4))
def test_runs_are_merged_the_same_in_one_step_or_in_several(
    runs: list[tuple[str | None, str | None, list[int]]], number: int
) -> None:
    schema = pa.schema([("one", pa.string()), ("two", pa.string()), ("times", pa.list_(LONG))])

    def table(rows: list[tuple[str | None, str | None, list[int]]]) -> pa.Table:
        values = [dict(zip(schema.names, row, strict=True)) for row in rows]
        return pa.Table.from_pylist(values, schema)

    wanted: dict[tuple[str | None, str | None], set[int]] = {}
    for one, two, times in runs:
        wanted.setdefault((one, two), set()).update(times)
    at_once = merge_runs(table(runs))
    parts = [merge_runs(table(runs[start::number])) for start in range(number)]
    for merged in (at_once, merge_runs(pa.concat_tables([schema.empty_table(), *parts]))):
        rows = merged.to_pylist()
        assert len(rows) == len(wanted)
        assert {(row["one"], row["two"]): row["times"] for row in rows} == {
            key: sorted(times) for key, times in wanted.items()
        }


# ---------------------------------------------------------------- collect


def test_rows_are_collected_by_their_keys_and_equal_rows_count_once() -> None:
    keys = [np.array([2, 1, 2, 1, 2]), np.array([0, 0, 0, 0, 0])]
    values = np.array([9, 5, 8, 5, NO_NUMBER])
    found = collect(keys, [values])
    assert keys[0][found.first].tolist() == [1, 2]
    assert found.lists(values).to_pylist() == [[5], [None, 8, 9]]


def test_rows_with_equal_values_and_other_keys_stay_apart() -> None:
    found = collect([np.array([1, 1, 2]), np.array([1, 2, 1])], [np.array([7, 7, 7])])
    assert len(found.starts) == len(found.order) == 3


def test_nothing_is_collected_of_nothing() -> None:
    nothing = np.zeros(0, np.int64)
    found = collect([nothing], [nothing])
    assert (len(found.order), len(found.starts)) == (0, 0)
    assert found.lists(nothing).to_pylist() == []


@given(st.lists(st.tuples(*[st.integers(0, 3)] * 4), max_size=40))
def test_what_is_collected_is_what_sets_of_rows_are(rows: list[tuple[int, ...]]) -> None:
    columns = [np.array(column, np.int64) for column in zip(*rows, strict=True)] or [
        np.zeros(0, np.int64)
    ] * 4
    found = collect(columns[:2], columns[2:])
    wanted: dict[tuple[int, ...], set[tuple[int, ...]]] = {}
    for row in rows:
        wanted.setdefault(row[:2], set()).add(row[2:])
    keys = zip(*[column[found.first].tolist() for column in columns[:2]], strict=True)
    lists = [found.lists(column).to_pylist() for column in columns[2:]]
    came = {key: list(zip(*values, strict=True)) for key, *values in zip(keys, *lists, strict=True)}
    assert came == {key: sorted(values) for key, values in wanted.items()}
