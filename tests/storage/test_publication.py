"""A run becomes the one that counts; what is left of others is cleared away, and no more."""

from __future__ import annotations

import json
import logging
import os
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from jobs.errors import DamagedError, InputError, LeaseError
from jobs.schemas import Table
from jobs.storage import Location, PublishedRun, Reports, Snapshots, TableFiles, publication
from jobs.storage.manifest import sealed, unsealed
from jobs.storage.publication import Publication
from tests.support import written_reports
from tests.support.reports import edit_pointer, last_pointer
from tests.support.tables import write_table

DATE = "2026-11-21"


def write(place: Location, rows: int = 1) -> int:
    numbers = pa.table({"n": list(range(rows))})
    return write_table(Table("numbers", "a number", numbers.schema), numbers, place)


def publish(folder: Path, run_id: str, rows: int = 3) -> PublishedRun:
    reports = Reports(Location(folder))
    with reports.publication(DATE).writing(run_id, 0, lambda _: None) as number:
        place = reports.table("group_health", DATE, run_id)
        count = write(place, rows)
        files = {"group_health": TableFiles.written(reports.root, place, count)}
        published = PublishedRun(DATE, run_id, written_reports.SUMMARY, files, number)
        reports.publish(published)
    return published


def runs_below(folder: Path) -> set[str]:
    return {path.name.removeprefix("run=") for path in folder.glob("*/dt=*/run=*")}


def pointers(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "_published").iterdir())


def test_the_run_that_was_published_last_counts_and_the_one_before_stays_readable(tmp_path):
    reports = Reports(Location(tmp_path))
    publish(tmp_path, "a")
    first = publish(tmp_path, "b", 2)
    assert publish(tmp_path, "c") == reports.find(DATE)
    assert runs_below(tmp_path) == {"c"}
    assert [each.name for each in (tmp_path / "_replaced" / f"dt={DATE}").iterdir()] == ["b"]
    assert reports.dataset(first, "group_health").count_rows() == 2
    manifests = (tmp_path / "_manifests" / f"dt={DATE}").iterdir()
    assert {each.stem for each in manifests} == {"b", "c"}
    assert pointers(tmp_path) == [f"dt={DATE}.{number:06}.json" for number in (1, 2, 3)]
    assert reports.dates() == [DATE]


def test_whoever_reads_the_folder_finds_each_date_once(tmp_path):
    for run_id, rows in (("a", 2), ("b", 5), ("c", 3)):
        publish(tmp_path, run_id, rows)
        folder = tmp_path / "group_health"
        assert ds.dataset(folder, partitioning="hive").count_rows() == rows
        assert len(duckdb.read_parquet(f"{folder}/**/*.parquet")) == rows


def test_who_is_at_a_run_when_it_is_replaced_has_it_whole_or_the_new_one(tmp_path):
    """The files go in the midst of the read, or before they are opened."""
    reports = Reports(Location(tmp_path))
    publish(tmp_path, "a", 2)
    seen: list[str] = []

    def use(run: PublishedRun) -> int:
        rows = reports.dataset(run, "group_health")
        if not seen:
            publish(tmp_path, "b", 5)
        seen.append(run.run_id)
        return len(rows.to_table())

    assert reports.read(DATE, use) == 5
    assert seen == ["a", "b"]

    def use_late(run: PublishedRun) -> int:
        if run.run_id == "b":
            publish(tmp_path, "c", 7)
        return reports.dataset(run, "group_health").count_rows()

    assert reports.read(DATE, use_late) == 5
    publish(tmp_path, "d", 1)
    assert reports.read(DATE, use_late) == 1


def test_of_a_pointer_that_somebody_removed_the_run_before_counts_from_where_it_lies(tmp_path):
    reports = Reports(Location(tmp_path))
    publish(tmp_path, "a", 2)
    publish(tmp_path, "b", 5)
    last_pointer(tmp_path, f"dt={DATE}").unlink()
    found = reports.find(DATE)
    assert found
    assert found.run_id == "a"
    assert reports.dataset(found, "group_health").count_rows() == 2


def test_a_run_that_was_killed_before_it_cleared_away_is_mended_by_the_next(tmp_path, monkeypatch):
    publish(tmp_path, "a")
    with monkeypatch.context() as killed:
        killed.setattr(Publication, "_clear", lambda *_: None)
        publish(tmp_path, "b")
    assert runs_below(tmp_path) == {"a", "b"}
    publish(tmp_path, "c")
    assert runs_below(tmp_path) == {"c"}
    assert [each.name for each in (tmp_path / "_replaced" / f"dt={DATE}").iterdir()] == ["b"]


def test_pointers_go_after_a_day(tmp_path):
    for run_id in "abc":
        publish(tmp_path, run_id)
    for path in (tmp_path / "_published").iterdir():
        os.utime(path, (0, 0))
    publish(tmp_path, "d")
    assert pointers(tmp_path) == [f"dt={DATE}.{number:06}.json" for number in (3, 4)]


def test_of_a_run_that_died_nothing_is_left_by_the_next(tmp_path):
    place = Reports(Location(tmp_path)).table("group_health", DATE, "dead")
    write(place)
    half = tmp_path / "_published" / f".dt={DATE}.000001.json.0123456789ab.tmp"
    half.parent.mkdir()
    half.write_text("{")
    publish(tmp_path, "a")
    assert runs_below(tmp_path) == {"a"}
    assert [each.name for each in half.parent.iterdir()] == [f"dt={DATE}.000001.json"]


def test_a_run_with_a_claim_is_not_cleared_away(tmp_path, monkeypatch):
    place = Reports(Location(tmp_path)).table("group_health", DATE, "at-work")
    write(place)
    with Reports(Location(tmp_path)).publication(DATE).writing("at-work", 0, lambda _: None):
        monkeypatch.setattr(publication, "lease", lambda *_: nullcontext(Location(tmp_path)))
        publish(tmp_path, "a")
    assert runs_below(tmp_path) == {"at-work", "a"}


def test_a_run_whose_claim_was_removed_before_it_had_a_number_writes_nothing(tmp_path, monkeypatch):
    """The one that removed it may still clear away what it takes for a dead run's."""
    of_date = Reports(Location(tmp_path)).publication(DATE)
    winner = publish(tmp_path, "before")

    def sleep() -> int:
        nonlocal winner
        for claim in (tmp_path / "_claims").rglob("*.claim"):
            claim.unlink()
        monkeypatch.undo()
        winner = publish(tmp_path, "meanwhile")
        return 2

    monkeypatch.setattr(of_date, "_last", sleep)
    with (
        pytest.raises(LeaseError, match=r"^this run slept .* another one took its turn"),
        of_date.writing("slow", 0, lambda _: None),
    ):
        pytest.fail("it began to write")
    assert Reports(Location(tmp_path)).find(DATE) == winner


def test_a_writer_that_lost_sees_it_at_that_moment(tmp_path):
    reports = Reports(Location(tmp_path))
    with reports.publication(DATE).writing("slow", 0, lambda _: None) as number:
        for claim in (tmp_path / "_claims").rglob("*.claim"):
            claim.unlink()
        winner = publish(tmp_path, "fast")
        with pytest.raises(
            LeaseError, match=f"another run published dt={DATE} below .* run fast counts .* again$"
        ):
            reports.publish(PublishedRun(DATE, "slow", {}, {}, number))
    assert reports.find(DATE) == winner


def test_the_last_run_counts_although_listings_are_late(tmp_path, monkeypatch):
    publish(tmp_path, "a")
    publish(tmp_path, "b")
    listed = Location.infos

    def late(folder: Location, **which: bool) -> list[Any]:
        infos = listed(folder, **which)
        return [info for info in infos if not info.base_name.endswith(".000002.json")]

    monkeypatch.setattr(Location, "infos", late)
    last = publish(tmp_path, "c")
    assert Reports(Location(tmp_path)).find(DATE) == last
    assert pointers(tmp_path) == [f"dt={DATE}.{number:06}.json" for number in (1, 2, 3)]


@pytest.mark.parametrize("error", [FileExistsError(17, "again"), OSError(5, "Input/output error")])
def test_what_fails_after_it_has_created_the_pointer_has_published(tmp_path, monkeypatch, error):
    """A disk that fails late, or a server that dies and is asked again."""
    create = Location.create_text

    def fails_late(self: Location, text: str) -> None:
        create(self, text)
        raise error

    monkeypatch.setattr(Location, "create_text", fails_late)
    assert publish(tmp_path, "a") == Reports(Location(tmp_path)).find(DATE)


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("Publication._clear", "is published, but what earlier runs left"),
        ("Location.delete_file", "was not removed"),
    ],
)
def test_what_fails_after_the_pointer_is_a_warning_for_the_run_counts(
    tmp_path, monkeypatch, caplog, what, said
):
    def fails(*_: object) -> None:
        raise OSError("AWS Error SLOW_DOWN")

    of_what, name = what.split(".")
    with monkeypatch.context() as patch:
        patch.setattr({"Publication": Publication, "Location": Location}[of_what], name, fails)
        published = publish(tmp_path, "a")
    assert Reports(Location(tmp_path)).find(DATE) == published
    (line,) = caplog.messages
    assert said in line
    assert "the store throttles" in line


def test_a_disk_that_fails_before_it_has_created_the_pointer_has_not(tmp_path, monkeypatch):
    def fails(_self: Location, _text: str) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(Location, "create_text", fails)
    with pytest.raises(OSError, match="Input/output error"):
        publish(tmp_path, "a")
    assert Reports(Location(tmp_path)).find(DATE) is None


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
    pointer = last_pointer(tmp_path, f"dt={DATE}")
    pointer.write_bytes(b"{\xff")
    with caplog.at_level(logging.WARNING):
        assert Reports(Location(tmp_path)).find(DATE) == published
    (record,) = caplog.records
    assert str(pointer) in record.getMessage()
    assert "run a counts; the next run mends it" in record.getMessage()
    published = publish(tmp_path, "b")
    assert pointer.read_bytes() == b"{\xff"
    assert Reports(Location(tmp_path)).find(DATE) == published


def test_of_a_pointer_that_cannot_be_read_a_run_with_missing_files_does_not_count(tmp_path):
    publish(tmp_path, "a")
    last_pointer(tmp_path, f"dt={DATE}").write_text("")
    for path in tmp_path.rglob("*.parquet"):
        path.unlink()
    assert Reports(Location(tmp_path)).find(DATE) is None


def test_a_pointer_of_another_date_or_folder_or_number_does_not_count(tmp_path, caplog):
    here, other = tmp_path / "here", tmp_path / "other"
    publish(here, "a")
    publish(other, "b")
    pointer = last_pointer(here, f"dt={DATE}")
    reports = Reports(Location(here))
    cases = {
        "it is of dt=2026-11-21": (pointer, pointer.with_name("dt=2026-11-22.000001.json")),
        "it is of another folder": (last_pointer(other, f"dt={DATE}"), pointer),
        "it is pointer 1": (pointer, pointer.with_name(f"dt={DATE}.000002.json")),
    }
    for reason, (source, target) in cases.items():
        with caplog.at_level(logging.WARNING):
            whole = target.read_bytes() if target.exists() else b""
            target.write_bytes(source.read_bytes())
            found = reports.find(target.name[3:13])
        assert (found and found.run_id) == ("a" if DATE in target.name else None)
        assert reason in caplog.records[-1].getMessage()
        target.write_bytes(whole) if whole else target.unlink()


@pytest.mark.parametrize(
    "forged",
    [
        {},
        {"window": {"last_snapshot": 7}},
        {"rows": {"group_health": "many"}},
        {"groups": []},
        {"known_issues": [{}]},
        {"started_at": "yesterday"},
    ],
)
def test_a_forged_summary_is_named_and_the_run_before_counts(tmp_path, caplog, forged):
    def forge(values: dict[str, Any]) -> None:
        values["summary"] = {**values["summary"], **forged} if forged else {}

    honest = written_reports.publish(tmp_path, DATE, {})
    edit_pointer(last_pointer(tmp_path, f"dt={DATE}"), forge)
    with caplog.at_level(logging.WARNING):
        assert Reports(Location(tmp_path)).find(DATE) == honest
    assert "cannot be read (its summary is none of a run" in caplog.records[-1].getMessage()


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
    pointer = last_pointer(tmp_path, f"dt={DATE}")
    said = {"name": f"dt={DATE}", "number": 1, **said}
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
