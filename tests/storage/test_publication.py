"""A run becomes the one that counts; what is left of others is cleared away, and no more."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from jobs.errors import DamagedError, InputError
from jobs.publish.tables import write_table
from jobs.schemas import Table
from jobs.storage import Location, Published, Reports, Snapshots, TableFiles
from jobs.storage.manifest import sealed, unsealed

DATE = "2026-11-21"


def write(place: Location, rows: int = 1) -> int:
    numbers = pa.table({"n": list(range(rows))})
    return write_table(Table("numbers", "a number", numbers.schema), numbers, place)


def publish(folder: Path, run_id: str, rows: int = 3) -> Published:
    reports = Reports(Location(folder))
    with reports.publication(DATE).writing(run_id, 0, lambda _: None) as held:
        place = reports.table("group_health", DATE, run_id)
        count = write(place, rows)
        files = {"group_health": TableFiles.written(reports.root, place, count)}
        published = Published(DATE, run_id, ("group_health",), {}, files)
        reports.publish(published, held)
    return published


def runs_below(folder: Path) -> set[str]:
    return {path.name.removeprefix("run=") for path in folder.glob("*/dt=*/run=*")}


def test_the_run_that_was_published_last_counts_and_the_one_before_is_cleared_away(tmp_path):
    publish(tmp_path, "a")
    assert publish(tmp_path, "b") == Reports(Location(tmp_path)).find(DATE)
    assert runs_below(tmp_path) == {"b"}
    assert [each.stem for each in (tmp_path / "_manifests" / f"dt={DATE}").iterdir()] == ["b"]


def test_of_a_run_that_died_nothing_is_left_by_the_next(tmp_path):
    place = Reports(Location(tmp_path)).table("group_health", DATE, "dead")
    write(place)
    half = tmp_path / "_published" / f".dt={DATE}.json.0123456789ab.tmp"
    half.parent.mkdir()
    half.write_text("{")
    publish(tmp_path, "a")
    assert runs_below(tmp_path) == {"a"}
    assert [each.name for each in half.parent.iterdir()] == [f"dt={DATE}.json"]


def test_a_run_with_a_claim_is_not_cleared_away(tmp_path):
    """A writer that lost its lease and wakes up publishes at worst; it removes nobody's tables."""
    place = Reports(Location(tmp_path)).table("group_health", DATE, "at-work")
    write(place)
    claims = tmp_path / "_claims" / f"dt={DATE}"
    claims.mkdir(parents=True)
    (claims / "at-work~1.broken").write_text("")
    publish(tmp_path, "a")
    assert runs_below(tmp_path) == {"a", "at-work"}


def test_the_run_that_counts_is_not_cleared_away_by_another(tmp_path):
    publish(tmp_path, "a")
    reports = Reports(Location(tmp_path))
    reports.publication(DATE).clear([tmp_location(tmp_path)], {"late"}, "run=")
    assert runs_below(tmp_path) == {"a"}


def tmp_location(folder: Path) -> Location:
    return Location(folder / "group_health" / f"dt={DATE}")


def test_a_table_with_other_rows_than_were_written_is_not_published(tmp_path):
    reports = Reports(Location(tmp_path))
    place = reports.table("group_health", DATE, "a")
    write(place, 2)
    with pytest.raises(DamagedError, match=r"3 rows were written .* and 2 are there in 1 files"):
        TableFiles.written(reports.root, place, 3)
    with pytest.raises(DamagedError, match="nothing was published"):
        TableFiles.written(reports.root, reports.table("none", DATE, "a"), 0)


def test_a_pointer_that_cannot_be_read_is_kept_for_whoever_wants_to_see_it(tmp_path, caplog):
    published = publish(tmp_path, "a")
    pointer = tmp_path / "_published" / f"dt={DATE}.json"
    pointer.write_bytes(b"{\xff")
    with caplog.at_level(logging.WARNING):
        assert Reports(Location(tmp_path)).find(DATE) == published
    (record,) = caplog.records
    assert str(pointer) in record.getMessage()
    assert "run a counts; the next run mends it" in record.getMessage()
    publish(tmp_path, "b")
    assert (tmp_path / "_published" / f"dt={DATE}.unreadable-b").read_text() == "{\\xff"
    assert json.loads(pointer.read_text())["run_id"] == "b"


def test_of_a_pointer_that_cannot_be_read_a_run_with_missing_files_does_not_count(tmp_path):
    publish(tmp_path, "a")
    (tmp_path / "_published" / f"dt={DATE}.json").write_text("")
    for path in tmp_path.rglob("*.parquet"):
        path.unlink()
    assert Reports(Location(tmp_path)).find(DATE) is None


@pytest.mark.parametrize(
    "said",
    [
        {"run_id": "x", "tables": [1], "summary": {}, "files": {}},
        {"run_id": "x", "tables": [], "summary": 1, "files": {}},
        {"run_id": "../x", "tables": [], "summary": {}, "files": {}},
        {"run_id": "x", "tables": ["../t"], "summary": {}, "files": {"../t": []}},
        {"run_id": "x", "tables": ["t"], "summary": {}},
        {"run_id": "x", "tables": ["t"], "summary": {}, "files": {}},
        {"run_id": "x", "tables": ["t"], "summary": {}, "files": {"t": [{"path": "t/x"}]}},
    ],
)
def test_a_pointer_of_another_hand_does_not_count(tmp_path, said: dict[str, Any]):
    publish(tmp_path, "a")
    pointer = tmp_path / "_published" / f"dt={DATE}.json"
    for text in (sealed(said), json.dumps({**said, "files": {"t": []}})):
        pointer.write_text(text)
        found = Reports(Location(tmp_path)).find(DATE)
        assert found is not None
        assert found.run_id == "a"


def test_a_lake_may_have_files_beside_its_tables(tmp_path):
    write(Location(tmp_path / "heartbeats"))
    for name in ("_SUCCESS", "README", "ingested.json"):
        (tmp_path / name).write_text("{}")
    assert Snapshots.open(Location(tmp_path)).run_id is None
    write(Location(tmp_path / "x" / "run=20261121T000000Z-0a1b2c"))
    with pytest.raises(InputError, match="no whole ingest"):
        Snapshots.open(Location(tmp_path))


def test_a_server_that_does_not_answer_is_no_bad_pointer(tmp_path, monkeypatch):
    publish(tmp_path, "a")

    def fail(_self: Location) -> bytes:
        raise OSError("AWS Error NETWORK_CONNECTION")

    monkeypatch.setattr(Location, "read_bytes", fail)
    with pytest.raises(OSError, match="NETWORK_CONNECTION"):
        Reports(Location(tmp_path)).find(DATE)


def test_a_manifest_is_read_as_it_was_written_and_not_otherwise():
    values = {"run_id": "a", "files": {"t": []}, "umlaut": "ä"}
    text = sealed(values)
    assert unsealed(text) == unsealed(text.encode()) == values
    with pytest.raises(ValueError, match="digest is another"):
        unsealed(text.replace('"a"', '"b"'))
    with pytest.raises(ValueError, match="no digest"):
        unsealed(json.dumps(values))
    for bad in ("", "7", "[]", "null", "[" * 100_000, b"\xff"):
        with pytest.raises(ValueError, match=r"."):
            unsealed(bad)
