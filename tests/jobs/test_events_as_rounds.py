"""The audit from Python of heartbeats with times of their own."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
import pytest

from jobs.api import audit
from jobs.errors import InputError, SettingsError
from tests.support.events import DUPLICATE, ORPHANED, lasting_queues, late, three_groups


def test_a_sink_may_give_heartbeats_twice_and_in_any_order() -> None:
    tables = three_groups()
    tables["heartbeats"] = late(tables["heartbeats"], "connection")
    once = audit(tables, round_seconds=60)
    rows = tables["heartbeats"].to_pylist()
    again = [*rows, *rows[::3]]
    Random(7).shuffle(again)  # noqa: S311 - reproducible, not secret
    tables["heartbeats"] = pa.Table.from_pylist(again, tables["heartbeats"].schema)
    twice = audit(tables, round_seconds=60)
    assert "T_TWICE" in twice.explain("TWICE", "T_TWICE")
    assert lasting_queues(twice["duplicate_queues"]) == DUPLICATE
    assert lasting_queues(twice["orphaned_queues"]) == ORPHANED
    for name in once.keys() - {"runs", "verdict"}:  # they name the run
        of_each = [sorted(map(str, each[name].to_pylist())) for each in (once, twice)]
        assert of_each[0] == of_each[1], name


@pytest.mark.parametrize(
    ("source", "seconds", "error", "words"),
    [
        ("dumps/", 60, InputError, "round_seconds: expected tables"),
        (three_groups(), 0.5, SettingsError, "a whole number of seconds from 1 to 3600"),
    ],
)
def test_what_is_no_length_or_no_table_is_an_error(
    source: Any, seconds: Any, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        audit(source, round_seconds=seconds)
