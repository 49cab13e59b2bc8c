"""Sightings of all shards -> the table of events: the same however the groups were cut."""

from __future__ import annotations

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
from jobs.fold.kernel import Cutting, Facts
from jobs.languages.translated_rows import with_texts
from jobs.pipeline.audit import fold_pieces
from jobs.pipeline.ingest import tables_of_dumps
from jobs.pipeline.merged_events import with_events
from jobs.pipeline.terms_of_settings import terms_of

HOUR = 3600 * SECOND
FIELD = Path(__file__).parent.parent.parent / "data" / "field"
SETTINGS = Settings(persistence_seconds=60)


@cache
def tables() -> Any:
    with LocalEngine() as engine:
        files = engine.list_files([str(path) for path in sorted(FIELD.glob("*/*.gz"))])
        return tables_of_dumps(engine, files, SETTINGS)


@cache
def published(shards: int) -> dict[str, Any]:
    """By table the rows that an audit in so many shards publishes."""
    cutting = Cutting(shards, SETTINGS.heartbeat_expiry_seconds, list_ids=True, route_ids=True)
    rows: dict[str, Any] = {}
    with LocalEngine() as engine:
        pieces = engine.given(
            piece
            for each in cutting.tables()
            for piece in cutting.pieces(each, [tables()[each.name]])
        )
        folded = fold_pieces(engine, pieces, cutting)
        judged = engine.collect(folded.judge(terms_of(SETTINGS), {}, SETTINGS))
        for piece in with_events(judged, folded.facts, Masking()):
            rows.setdefault(piece.kind, []).extend(unpack_rows(piece.data).to_pylist())
    return rows


@pytest.mark.long
@pytest.mark.parametrize("shards", [2, 7, 40])
def test_however_groups_are_cut_into_shards_the_events_are_the_same(shards: int) -> None:
    assert published(shards)["events"] == published(1)["events"]
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
