"""Two processes on one folder, at every interleaving of their storage calls with few switches.

The writers do what the jobs do: a lease, tables, a manifest, the pointer, and clearing away.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import time
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from jobs.errors import InputError, LeaseError
from jobs.schemas import Table
from jobs.storage import (
    Location,
    PublishedRun,
    Reports,
    Snapshots,
    SnapshotWriter,
    TableFiles,
    publication,
)
from jobs.storage.location import parquet_of
from tests.faults.calls import EVERY, Storage
from tests.faults.late_store import LateStore
from tests.faults.schedules import Turns, plans
from tests.support.tables import write_table
from tests.support.written_reports import SUMMARY

pytestmark = pytest.mark.house

DATE = "2026-11-21"
TABLE = "heartbeats"
NUMBERS = Table(TABLE, "number", pa.schema({"n": pa.int64()}))
#: By run its rows: none has as many as another.
RUNS = {
    "20261121T000000Z-000000": 5,
    "20261122T000000Z-aaaaaa": 7,
    "20261122T000001Z-bbbbbb": 9,
    "20261123T000000Z-cccccc": 11,
}
BEFORE, ONE, OTHER, NEXT = RUNS
#: So often a writer looks again before it gives up.
PATIENCE = 3

Work = Callable[[], object]


def rows_of(run_id: str) -> pa.Table:
    return pa.table({"n": list(range(RUNS[run_id]))})


def audit(folder: Path | str, run_id: str, wait: float = PATIENCE) -> str:
    """Publishes a run of the date, as ``publish.publish`` does."""
    reports = Reports(Location(folder))
    with reports.publication(DATE).writing(run_id, wait, lambda _: None) as number:
        table = reports.table(TABLE, DATE, run_id)
        rows = write_table(NUMBERS, rows_of(run_id), table)
        files = {TABLE: TableFiles.written(reports.root, table, rows)}
        reports.publish(PublishedRun(DATE, run_id, SUMMARY, files, number))
    return run_id


def read_reports(folder: Path) -> str:
    """The run that a reader of the reports reads."""
    reports = Reports(Location(folder))

    def rows(published: PublishedRun) -> tuple[str, int]:
        return published.run_id, reports.dataset(published, TABLE).to_table().num_rows

    run_id, number = reports.read(DATE, rows)
    assert number == RUNS[run_id]
    return run_id


def ingest(folder: Path | str, run_id: str, wait: float = PATIENCE) -> str:
    with SnapshotWriter.open(Location(folder), run_id, wait, lambda _: None) as writer:
        rows = write_table(NUMBERS, rows_of(run_id), writer.table(TABLE))
        writer.publish({TABLE: rows}, {})
    return run_id


def read_snapshots(folder: Path) -> str:
    """The run that an audit of the snapshots reads."""
    snapshots = Snapshots.open(Location(folder))
    with snapshots.in_use():
        files = [(file.path, file.size) for file in snapshots.files(TABLE)]
        number = parquet_of(files, snapshots.root.file_system).to_table().num_rows
    assert snapshots.run_id is not None
    assert number == RUNS[snapshots.run_id]
    return snapshots.run_id


def age_claims(folder: Path, run_id: str) -> None:
    """As if the run had not renewed its claim for ten minutes."""
    past = time.time() - 600
    for claim in folder.glob(f"_claims/*/{run_id}~*.claim"):
        os.utime(claim, (past, past))


WRITE: dict[str, Callable[..., str]] = {"audit": audit, "ingest": ingest}
READ = {"audit": read_reports, "ingest": read_snapshots}


@pytest.fixture
def explore(tmp_path, counts):
    """Tries all schedules of two works on a folder in which one run was published."""

    def explored(
        kind: str,
        works: Callable[[Path], list[Work]],
        check: Callable[[Path, list[object]], str],
        *,
        switches: int,
        by_chance: int,
        pauses: bool = False,
        late: int = 0,
        is_conditional: bool = True,
    ) -> Counter[str]:
        folder = tmp_path / "folder"
        prepared = tmp_path / "prepared"
        WRITE[kind](prepared, BEFORE)
        outcomes = Counter[str]()

        def run(first: int, places: tuple[int, ...]) -> int:
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(prepared, folder)

            def on_switch(number: int) -> None:
                if pauses:
                    age_claims(folder, (ONE, OTHER)[number])

            turns = Turns(first, places, on_switch)
            with pytest.MonkeyPatch.context() as patch:
                storage = Storage(folder, turns.before)
                if late:
                    storage = LateStore(folder, turns.before, late, is_conditional=is_conditional)
                storage.install(patch)
                turns.install(patch)
                results = turns.run(works(folder))
            try:
                outcomes[check(folder, results)] += 1
            except AssertionError as error:
                error.add_note(f"first {first}, switches before calls {places}: {results}")
                raise
            counts[f"interleavings: {kind}, {works.__name__}"] += 1
            return turns.calls

        longest = max(run(0, ()), run(1, ()))
        # Whoever has to wait makes some calls more.
        for plan in itertools.islice(plans(longest + 8, switches, by_chance), 0, None, EVERY):
            run(*plan)
        return outcomes

    return explored


def check_whole(kind: str, folder: Path, results: list[object]) -> str:
    """The run that counts is whole, and is one of those that were published."""
    counting = READ[kind](folder)
    published = [each for each in results if isinstance(each, str)]
    assert counting in (published or [BEFORE])
    for each in results:
        if isinstance(each, Exception):
            assert isinstance(each, LeaseError), repr(each)
            assert "\n" not in str(each)
    return f"{len(published)} published"


def check_pointers(folder: Path, results: list[object]) -> None:
    """Each run that believes that it was published has a pointer."""
    pointers = (folder / "_published").glob("*.json")
    named = {json.loads(each.read_text())["run_id"] for each in pointers}
    assert {each for each in results if isinstance(each, str)} <= named


def check_mends(kind: str, folder: Path) -> None:
    """The next run leaves its files alone."""
    WRITE[kind](folder, NEXT, 0)
    assert READ[kind](folder) == NEXT
    others = {path.parent for path in folder.rglob("*.parquet") if NEXT not in str(path)}
    assert len(others) <= 1, "the run before, and no other"


@pytest.mark.parametrize("kind", ["audit", "ingest"])
def test_of_two_writers_one_waits_or_gives_up_and_nothing_is_half(explore, kind):
    def two_writers(folder: Path) -> list[Work]:
        return [lambda: WRITE[kind](folder, ONE), lambda: WRITE[kind](folder, OTHER)]

    tried = itertools.count()

    def check(folder: Path, results: list[object]) -> str:
        outcome = check_whole(kind, folder, results)
        if next(tried) % 10 == 0:
            check_mends(kind, folder)
        return outcome

    outcomes = explore(kind, two_writers, check, switches=2, by_chance=500)
    assert "0 published" not in outcomes, outcomes
    assert outcomes["2 published"]


@pytest.mark.parametrize("kind", ["audit", "ingest"])
def test_a_writer_that_wakes_up_after_its_lease_has_lapsed_breaks_nothing(explore, kind):
    def two_writers_that_sleep(folder: Path) -> list[Work]:
        return [lambda: WRITE[kind](folder, ONE), lambda: WRITE[kind](folder, OTHER)]

    def check(folder: Path, results: list[object]) -> str:
        pointer = json.loads(max((folder / "_published").glob("*.json")).read_text())
        assert READ[kind](folder) == pointer["run_id"], "the last one published has its tables"
        return check_whole(kind, folder, results)

    outcomes = explore(kind, two_writers_that_sleep, check, switches=2, by_chance=3000, pauses=True)
    assert outcomes["1 published"], outcomes


@pytest.mark.parametrize("is_conditional", [True, False])
@pytest.mark.parametrize("late", [10, 40, 10_000])
@pytest.mark.parametrize("kind", ["audit", "ingest"])
def test_of_two_writers_one_publishes_where_listings_are_late(
    explore, monkeypatch, kind, late, is_conditional
):
    """A store without conditional writes may not say who lost; nothing is torn there either."""
    monkeypatch.setattr(publication, "AT_WORK", timedelta(days=36_500))

    def two_late_writers(folder: Path) -> list[Work]:
        store = f"s3://{folder}"
        return [lambda: WRITE[kind](store, ONE), lambda: WRITE[kind](store, OTHER)]

    def check(folder: Path, results: list[object]) -> str:
        if is_conditional:
            check_pointers(folder, results)
        return check_whole(kind, folder, results)

    options = {"late": late, "is_conditional": is_conditional}
    outcomes = explore(kind, two_late_writers, check, switches=1, by_chance=300, **options)
    assert "0 published" not in outcomes, outcomes
    assert outcomes["1 published"] or late == 10, outcomes


@pytest.mark.parametrize("kind", ["audit", "ingest"])
def test_a_reader_sees_the_old_run_or_the_new_one_while_it_is_published(explore, kind):
    def writer_and_reader(folder: Path) -> list[Work]:
        return [lambda: WRITE[kind](folder, ONE), lambda: READ[kind](folder)]

    def check(folder: Path, results: list[object]) -> str:
        written, seen = results
        assert written == ONE, repr(written)
        if isinstance(seen, Exception):
            # An audit that reads old tables while they are replaced has nothing to publish.
            assert kind == "ingest", repr(seen)
            assert isinstance(seen, InputError), repr(seen)
            assert "another ingest replaced the tables" in str(seen)
            return "refused"
        assert seen in (BEFORE, ONE)
        return str(seen)

    outcomes = explore(kind, writer_and_reader, check, switches=2, by_chance=1000)
    assert outcomes[BEFORE]
    assert outcomes[ONE]
