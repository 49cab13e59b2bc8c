"""Sightings of all shards -> the table of events: the same however the groups were cut."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from jobs.config.masking import Masking
from jobs.config.settings import Settings
from jobs.declared.instants import SECOND
from jobs.engines.local import LocalEngine
from jobs.engines.pieces import pack_rows, unpack_rows
from jobs.fold.kernel import Cutting
from jobs.fold.slice_facts import Facts
from jobs.languages.translated_rows import with_texts
from jobs.pipeline.audit import fold_pieces
from jobs.pipeline.gathered import with_events
from jobs.pipeline.ingest import read_dumps
from jobs.pipeline.inputs import terms_of
from tests.cases.small_dumps import OFFLINE, members, route

HOUR = 3600 * SECOND
FIELD = Path(__file__).parent.parent.parent / "data" / "field"
SETTINGS = Settings(persistence_seconds=60)


@cache
def tables() -> Any:
    with LocalEngine() as engine:
        files = engine.list_files([str(path) for path in sorted(FIELD.glob("*/*.gz"))])
        return read_dumps(engine, files, SETTINGS).whole_tables(SETTINGS)


@cache
def published(shards: int) -> dict[str, Any]:
    """By table the rows that an audit in so many shards publishes."""
    return published_of(tables(), shards)


def published_of(of_dumps: Any, shards: int) -> dict[str, Any]:
    cutting = Cutting(shards, SETTINGS.heartbeat_expiry_seconds, list_ids=True, route_ids=True)
    rows: dict[str, Any] = {}
    with LocalEngine() as engine:
        pieces = engine.given(
            piece
            for each in cutting.tables()
            for piece in cutting.pieces(each, [of_dumps[each.name]])
        )
        folded = fold_pieces(engine, pieces, cutting)
        judged = engine.collect(folded.judge(terms_of(SETTINGS), {}, SETTINGS))
        for piece in with_events(judged, folded.facts, Masking()):
            rows.setdefault(piece.kind, []).extend(unpack_rows(piece.data).to_pylist())
    return rows


@pytest.mark.long
def test_however_groups_are_cut_into_shards_the_events_are_the_same() -> None:
    assert published(7)["events"] == published(1)["events"]
    assert {row["kind"] for row in published(1)["events"]} >= {"MASTER_LEFT", "GROUP_SCALED"}


@pytest.mark.long
def test_a_finding_names_an_event_that_is_there_and_begins_in_its_time() -> None:
    events = published(1)["events"]
    named = 0
    for table in ("orphaned_queues", "duplicate_queues", "stalled_queues", "group_faults"):
        for row in published(1).get(table, ()):
            of_row = [each for each in events if each["event_id"] == row["event_id"]]
            assert bool(of_row) == (row["event_id"] is not None)
            named += bool(of_row)
            assert not of_row or any(
                each["begins"] <= row["first_seen"] and row["finding_id"] in each["finding_ids"]
                for each in of_row
            )
    assert named
    assert sum(each["findings"] for each in events) <= named


def test_the_time_without_rounds_is_an_event_of_all_groups_and_secrets_are_masked() -> None:
    minute = 60 * SECOND
    rounds = {n * minute for n in (*range(10), *range(40, 50))}
    facts = Facts({"c|token=s3cr3t": rounds}, {("c|token=s3cr3t", "G"), ("other", "H")})

    (piece,) = with_events([], facts, Masking())

    (row,) = unpack_rows(piece.data).to_pylist()
    assert (row["kind"], row["groups"]) == ("COLLECTOR_AWAY", ["G"])
    assert row["headline"].startswith("00:09:00 the collector was away until 00:40:00")
    assert "s3cr3t" not in str(row)


def gone(at_once: int, in_turn: int) -> Iterator[dict[str, Any]]:
    """The lists of groups that lose their only member: so many in minute 5, others one by one."""
    minutes_of = [*[5] * at_once, *range(1, 2 * in_turn, 2)]
    for minute in range(20):
        yield route(60 * minute, "broker-a")
        for number, last in enumerate(minutes_of):
            listed = [f"10.0.0.{number}@1"] if minute < last else OFFLINE
            yield members(60 * minute + 1, "broker-a", listed) | {"consumer_group": f"G{number:02}"}


@pytest.mark.parametrize(
    ("at_once", "in_turn", "kinds"),
    [
        (20, 0, {"MEMBERS_LEFT": 1}),
        (20, 9, {"MEMBERS_LEFT": 1, "GROUP_SCALED": 8}),
        (2, 0, {"GROUP_SCALED": 2}),
        (0, 9, {"GROUP_SCALED": 9}),
    ],
)
def test_groups_that_lose_all_members_at_once_have_one_event_in_place_of_their_own(
    at_once: int, in_turn: int, kinds: dict[str, int], tmp_path: Path
) -> None:
    """One of those that leave one after the other does so in the very minute."""
    path = tmp_path / "dump.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in gone(at_once, in_turn)))
    with LocalEngine() as engine:
        found = read_dumps(engine, engine.list_files([str(path)]), SETTINGS).whole_tables(SETTINGS)
    for shards in (1, 7):
        rows = published_of(found, shards)
        assert Counter(row["kind"] for row in rows["events"]) == kinds
        ids = {id_ for row in rows["events"] for id_ in (row["event_id"], *row["merged_event_ids"])}
        assert {row["event_id"] for row in rows["group_faults"]} <= ids
        of_many = [row for row in rows["events"] if row["kind"] == "MEMBERS_LEFT"]
        assert [row["groups_touched"] for row in of_many] == [20 + (in_turn > 0)] * (at_once > 2)
        assert all(row["headline"].startswith("10:05:00 ") for row in of_many)
        for each in of_many:
            named = [row for row in rows["problems"] if row["event_ids"] == [each["event_id"]]]
            words = f"the loss of all members of {each['groups_touched']} groups at 10:05:00"
            assert [row["began_with"] for row in named] == [words] * each["groups_touched"]
        assert all(row["began_with"] for row in rows["problems"])


@pytest.mark.parametrize(
    ("last", "headline"),
    [
        (23 * HOUR, "10:00:00 the collector was away until 23:00:00: 1 group touched"),
        (
            34 * HOUR,
            "1970-01-01 10:00:00 the collector was away until 1970-01-02 10:00:00: 1 group touched",
        ),
    ],
)
def test_an_event_of_a_run_over_several_days_has_its_date(last: int, headline: str) -> None:
    rounds = {*range(9 * HOUR, 10 * HOUR + 1, HOUR // 60), last}
    (piece,) = with_events([], Facts({"c": rounds}, {("c", "G"): set()}), Masking())
    rows = map(with_texts, unpack_rows(piece.data).to_pylist())
    assert [row["headline"] for row in rows] == [headline]


def test_other_tables_pass_as_they_come() -> None:
    (piece,) = pack_rows(3, "group_load", pa.table({"n": [1]}))
    assert list(with_events([piece], Facts(), Masking())) == [piece]
