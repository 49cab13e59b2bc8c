"""What a collector left out, and lists that are no evidence: said where something lasting may have
been missed.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from jobs.declared.instants import SECOND
from jobs.engines.pieces import all_values
from jobs.fold.kernel import Cutting
from jobs.fold.slice_facts import FACTS, BrokerPolls, Facts
from jobs.schemas import BROKER_POLLS, LIST_REFUSED
from jobs.verdict.silence import left_out, packed_left_out, refused_lists

MINUTES = [minute * 60 * SECOND for minute in range(10)]
GROUPS = ("groups (most_groups)", "A")


def said(left: dict[int, int], rounds: dict[str, list[int]]) -> list[str]:
    summary = packed_left_out({(GROUPS[1], GROUPS[0]): {MINUTES[at]: n for at, n in left.items()}})
    return [str(gap.text) for gap in left_out(summary, rounds, 180)]


@pytest.mark.parametrize(
    ("left", "rounds", "words"),
    [
        ({4: 7}, MINUTES, ""),
        ({2: 7, 5: 7, 8: 7}, MINUTES, ""),
        (
            {3: 7, 4: 9, 5: 8},
            MINUTES,
            "9 groups (most_groups) in 3 rounds; .* 00:06:00",
        ),
        ({4: 7}, [MINUTES[4]], "7 groups (most_groups) in 1 round"),
        # A window that it was not in.
        ({3: 7, 4: 9, 5: 8}, MINUTES[6:], ""),
        # A number that the collector does not know.
        (dict.fromkeys(range(10), 1), MINUTES, "left out groups (most_groups) in 10 rounds"),
    ],
)
def test_what_was_left_out_for_as_long_as_what_lasts_is_said(
    left: dict[int, int], rounds: list[int], words: str
) -> None:
    found = said(left, {"A": rounds})
    assert bool(found) is bool(words)
    for text in found:
        for part in words.split(" .* "):
            assert part in text


def test_a_cluster_that_has_no_round_is_said_all_the_same() -> None:
    (text,) = said({4: 7}, {"B": MINUTES})
    assert text.startswith("cluster A: the collector left out 7 groups (most_groups) in 1 round")
    assert packed_left_out({}) == {}
    assert list(left_out(None, {"B": MINUTES}, 180)) == []


def polls(*rows: tuple[int, str, str, int | None]) -> BrokerPolls:
    """Rows of minute, broker, group and error code."""
    found: list[dict[str, Any]] = [
        {
            "cluster": "A",
            "snapshot_time": datetime.fromtimestamp(60 * minute, UTC),
            "broker_name": broker,
            "broker_id": 0,
            "consumer_group": group,
            "outcome": "ANSWERED",
            "error_code": code,
            "error_message": None if code is None else f"no clientId at {minute}",
            "connections": 0,
            "collected_at": datetime.fromtimestamp(60 * minute, UTC),
        }
        for minute, broker, group, code in rows
    ]
    table = pa.Table.from_pylist(found, schema=BROKER_POLLS.schema)
    # Small slices: a round lies in several of them.
    slices = [table.slice(start, 3) for start in range(0, len(table), 3)]
    pieces = [each for rows in slices for each in Cutting(1, 120).pieces(BROKER_POLLS, [rows])]
    return Facts.of(all_values(pieces, FACTS)).polls


def refused(*rows: tuple[int, str, str, int | None]) -> list[str]:
    return [str(gap.text) for gap in refused_lists(polls(*rows), 180)]


@pytest.mark.parametrize(
    ("minutes", "is_said"), [([4], False), ([3, 4], False), ([3, 4, 5], True), (range(10), True)]
)
def test_lists_that_are_no_evidence_for_long_are_said(minutes: list[int], is_said: bool) -> None:
    rows = [(at, "b", "G", LIST_REFUSED if at in minutes else None) for at in range(10)]
    assert bool(refused(*rows)) is is_said


def test_one_client_at_all_brokers_is_one_gap_and_so_is_a_broker_for_all_groups() -> None:
    rounds = range(6)
    (text,) = refused(*((at, name, "G", LIST_REFUSED) for at in rounds for name in "bcd"))
    assert text == (
        "cluster A: the lists of G that b/0, c/0, d/0 gave are no evidence in 6 rounds; the "
        "longest time was from 1970-01-01 00:00:00 UTC to 1970-01-01 00:05:00 UTC: no clientId at 5"
    )
    (text,) = refused(*((at, "b", name, LIST_REFUSED) for at in rounds for name in "GH"))
    assert text.startswith("cluster A: the lists of G, H that b/0 gave are no evidence")
    assert refused(*((at, "b", "G", 16) for at in rounds)) == []
