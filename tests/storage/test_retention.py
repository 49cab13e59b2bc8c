"""What is old goes, what is not recognised stays, and a reader finds a date whole or not at all."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jobs.cli import main
from jobs.collect.dump_folder import DumpFolder, prune_dumps
from jobs.errors import InputError
from jobs.storage import Location, Reports, Snapshots, SnapshotWriter
from jobs.storage.publication import Publication
from jobs.storage.retention import PruneResult, Retention, prune_reports, prune_snapshots
from tests.support.reports import last_pointer
from tests.support.truth import CAPTURES
from tests.support.written_reports import publish, report_row

NOW = datetime(2026, 11, 22, 3, tzinfo=UTC)
DAYS = ["2026-11-01", "2026-11-18", "2026-11-19", "2026-11-20"]


def run_of(day: str, hours: int = 26) -> str:
    """The id of a run that began so many hours after the beginning of the day that it audits."""
    began = datetime.fromisoformat(day).replace(tzinfo=UTC) + timedelta(hours=hours)
    return f"{began:%Y%m%dT%H%M%S}Z-00000a"


def publish_day(folder: Path, day: str, run_id: str = "") -> None:
    """A date as the audit, ``report`` and ``alert`` leave it."""
    run_id = run_id or run_of(day)
    publish(folder, day, {"orphaned_queues": [report_row("orphaned_queues")]}, run_id=run_id)
    put(folder / "report" / f"dt={day}.html")
    put(folder / "_alerts" / f"dt={day}.json", "{}")


def put(path: Path, text: str = "x") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.fixture(scope="module")
def of_all_days(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reports")
    for day in DAYS:
        publish_day(folder, day)
    return folder


@pytest.fixture
def reports(of_all_days: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(of_all_days, tmp_path / "reports"))


def retention(keep_days: int | None = 3, now: datetime = NOW, **others: object) -> Retention:
    return Retention(keep_days, now, **others)  # type: ignore[arg-type]


def prune(folder: Path, *arguments: object, **others: object) -> PruneResult:
    return prune_reports(Reports(Location(folder)), retention(*arguments, **others))  # type: ignore[arg-type]


def names_in(pruned: PruneResult) -> dict[str, set[str]]:
    """By what was removed the names."""
    return {what: {name for name, _, _ in of_what} for what, of_what in pruned.removed.items()}


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def of_day(folder: Path, day: str) -> set[str]:
    return {name for name in files(folder) if day in name}


def dates(folder: Path) -> list[str]:
    return Reports(Location(folder)).dates()


def test_an_old_date_goes_with_all_that_is_of_it(reports: Path) -> None:
    size = sum((reports / name).stat().st_size for name in of_day(reports, "2026-11-01"))
    number = len(of_day(reports, "2026-11-01"))
    pruned = prune(reports)
    assert dates(reports) == DAYS[1:]
    assert not [path for path in reports.rglob("*") if "2026-11-01" in path.name], "folders too"
    assert names_in(pruned)["published dates"] == {"2026-11-01"}
    _, files_gone, sizes = zip(*pruned.removed["published dates"], strict=True)
    assert (sum(files_gone), sum(sizes)) == (number, size)
    assert not pruned.left
    assert not pruned.failed


@pytest.mark.parametrize(
    ("keep", "now", "kept"),
    [
        *((1, NOW, 1), (2, NOW, 2), (3, NOW, 3), (19, NOW, 3), (20, NOW, 4), (99_999, NOW, 4)),
        # Days are counted from the last date whatever the clock says.
        (3, datetime(2100, 1, 1, tzinfo=UTC), 3),
        # One that is slow removes less.
        (1, datetime(2026, 11, 18, 5, tzinfo=UTC), 3),
    ],
)
def test_so_many_days_are_kept_as_were_asked_for(
    reports: Path, keep: int, now: datetime, kept: int
) -> None:
    prune(reports, keep, now)
    assert dates(reports) == DAYS[-kept:]


def test_a_date_is_spared_that_was_just_audited(reports: Path) -> None:
    prune(reports, 1, spared=frozenset({"2026-11-01"}))
    assert dates(reports) == ["2026-11-01", "2026-11-20"]


def test_a_date_in_the_future_drives_no_other_out(reports: Path) -> None:
    publish_day(reports, "2100-01-01", run_of("2026-11-20"))
    prune(reports, 3)
    assert dates(reports) == [*DAYS[1:], "2100-01-01"]


def damage(reports: Path, day: str) -> None:
    """From now on the date cannot be read."""
    last_pointer(reports, f"dt={day}").write_text("")
    for manifest in (reports / "_manifests" / f"dt={day}").iterdir():
        manifest.write_text("{")


def test_nothing_goes_where_no_date_can_be_read(reports: Path) -> None:
    for day in DAYS:
        damage(reports, day)
    before = files(reports)
    assert not names_in(prune(reports, 1))
    assert before == files(reports)


def test_a_last_date_that_cannot_be_read_is_not_the_last_one(reports: Path) -> None:
    damage(reports, "2026-11-20")
    prune(reports, 1)
    assert "2026-11-19" in dates(reports)


def test_what_has_no_name_of_ours_stays(reports: Path) -> None:
    strangers = [
        "notes about 2026-11-01.txt",
        "_published/dt=2026-11-01.000001.json.bak",
        "_published/dt=2026-02-31.000001.json",
        "_manifests/dt=2026-11-01/mine.json",
        "report/dt=2026-11-01.pdf",
        "orphaned_queues/dt=2026-11-01/mine.parquet",
        "orphaned_queues/dt=2026-11-01/run=mine/part-0.parquet",
        "orphaned_queues/date=2026-11-01/run=20261102T020000Z-00000a/part-0.parquet",
        "_states/mine/dt=2026-11-01/run=20261102T020000Z-00000a/part-0.parquet",
        "_mine/dt=2026-11-01/run=20261102T020000Z-00000a/part-0.parquet",
        "a/b/dt=2026-11-01/run=20261102T020000Z-00000a/part-0.parquet",
    ]
    for name in strangers:
        put(reports / name)
    prune(reports, 1)
    assert [name for name in strangers if not (reports / name).is_file()] == []
    assert dates(reports)[-1] == DAYS[-1]


def test_a_dry_run_says_the_same_and_removes_nothing(reports: Path) -> None:
    before = files(reports)
    would = prune(reports, 2, dry_run=True)
    assert files(reports) == before
    did = prune(reports, 2)
    assert would.removed == did.removed
    which = "published dates: 2 (2026-11-01 to 2026-11-18), "
    assert next(would.lines(dry_run=True)).startswith(f"would remove {which}")
    assert next(did.lines(dry_run=False)).startswith(f"removed {which}")


class KilledError(BaseException):
    """No ``except`` of the program holds it."""


@pytest.fixture
def killed_at(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """From now on the process is killed when it wants to remove something for the nth time."""

    def kill_at(step: int) -> None:
        counted = iter(range(step))
        for name in ("delete", "delete_file"):
            original = getattr(Location, name)

            def until_killed(self: Location, original=original) -> None:
                # The claim of a process that was killed counts no more.
                if "_claims" not in str(self) and next(counted, None) is None:
                    raise KilledError
                original(self)

            monkeypatch.setattr(Location, name, until_killed)

    return kill_at


@pytest.mark.long
@pytest.mark.parametrize("step", range(0, 57, 8))
def test_killed_at_any_step_a_date_is_whole_or_gone_and_the_next_goes_on(
    reports: Path, killed_at: Callable[[int], None], monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    with monkeypatch.context():
        killed_at(step)
        with pytest.raises(KilledError):
            prune(reports, 1)
        monkeypatch.undo()
    folder = Reports(Location(reports))
    for day in DAYS:
        published = folder.find(day)
        assert day in dates(reports) or published is None
        for table in published.tables if published else ():
            folder.dataset(published, table).to_table()
    prune(reports, 1)
    assert dates(reports) == DAYS[-1:]
    assert {name for name in files(reports) if DAYS[-1] not in name} == set()


def test_a_date_that_another_run_writes_stays_this_time(reports: Path) -> None:
    publication = Reports(Location(reports)).publication("2026-11-01")
    with publication.writing("other", 0, lambda _: None):
        pruned = prune(reports)
        assert dates(reports) == DAYS
        assert pruned.left == ["dt=2026-11-01 stays this time: another run is writing there"]
    prune(reports)
    assert dates(reports) == DAYS[1:]


def test_what_cannot_be_removed_stops_no_other(
    reports: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = Location.delete

    def refused(self: Location) -> None:
        if "orphaned_queues/dt=2026-11-01" in str(self):
            raise PermissionError(13, "Permission denied", str(self))
        original(self)

    monkeypatch.setattr(Location, "delete", refused)
    pruned = prune(reports, 1)
    assert dates(reports) == DAYS[-1:]
    assert len(pruned.failed) == 1
    assert "dt=2026-11-01" in pruned.failed[0]
    assert "Permission denied" in pruned.failed[0]
    monkeypatch.undo()
    assert names_in(prune(reports, 1))["published dates"] == {"2026-11-01"}


def test_runs_that_died_go_after_a_day(reports: Path) -> None:
    old, young = "20261120T020000Z-00000d", f"{NOW - timedelta(hours=1):%Y%m%dT%H%M%S}Z-00000d"
    for run_id in (old, young):
        put(reports / "orphaned_queues" / "dt=2026-11-20" / f"run={run_id}" / "part-0.parquet")
        put(reports / "_manifests" / "dt=2026-11-20" / f"{run_id}.json")
        put(reports / "orphaned_queues" / "dt=2026-11-21" / f"run={run_id}" / "part-0.parquet")
    pruned = prune(reports)
    assert names_in(pruned)["runs that were not published"] == {old}
    assert not [name for name in files(reports) if old in name]
    assert len([name for name in files(reports) if young in name]) == 3
    assert run_of("2026-11-20") in str(of_day(reports, "2026-11-20"))


def test_the_run_before_goes_a_day_after_it_was_replaced(reports: Path) -> None:
    """A date may be audited again weeks later: whoever reads the run before has not ended yet."""
    day, first, second = "2026-11-20", run_of("2026-11-20"), run_of("2026-11-20", 27)
    publish_day(reports, day, second)
    replaced_at = last_pointer(reports, f"dt={day}").stat().st_mtime
    for hours, is_there in ((23, True), (25, False)):
        now = datetime.fromtimestamp(replaced_at, UTC) + timedelta(days=0, hours=hours)
        prune(reports, None, max(now, NOW))
        assert any(first in name for name in files(reports)) == is_there, hours
    assert any(second in name for name in of_day(reports, day))


def test_a_date_that_is_published_between_listing_and_lease_stays_whole(
    reports: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    day = "2026-11-01"
    written = run_of(day, 30)
    half = put(reports / "orphaned_queues" / f"dt={day}" / f"run={written}" / "part-0.parquet")
    original = Publication.writing

    def late(self: Publication, run_id: str, *rest: object) -> object:
        if run_id != written and day in str(self._manifests) and self._last() == 1:
            shutil.rmtree(half.parent)
            publish_day(reports, day, written)
        return original(self, run_id, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(Publication, "writing", late)
    pruned = prune(reports)
    assert pruned.left == [f"dt={day} stays this time: another run is writing there"]
    folder = Reports(Location(reports))
    published = folder.find(day)
    assert published is not None
    assert published.run_id == written
    for table in published.tables:
        folder.dataset(published, table).to_table()


def test_a_run_that_lost_its_pointer_stays(reports: Path) -> None:
    """Its manifest is all that is needed to publish it again."""
    last_pointer(reports, "dt=2026-11-19").unlink()
    before = of_day(reports, "2026-11-19")
    prune(reports)
    assert of_day(reports, "2026-11-19") == before


def test_files_that_a_killed_writer_left_go_after_a_day(reports: Path) -> None:
    names = [
        "_published/.dt=2026-11-20.000001.json.0123456789ab.tmp",
        "report/_x.html.0123456789ab.tmp",
        "_claims/dt=2026-11-20/20261120T020000Z-00000d~7~host~0a.claim",
    ]
    for name in names:
        put(reports / name)
    prune(reports, None, datetime.now(UTC))
    assert set(names) <= files(reports)
    prune(reports, None, datetime.now(UTC) + timedelta(days=2))
    assert not set(names) & files(reports)


# Snapshot tables


def ingested(folder: Path, *, dies: bool = False) -> str:
    """The id of an ingest of one empty table."""
    run_id = f"20261120T02{len(files(folder)) if folder.exists() else 0:04d}Z-00000a"
    with SnapshotWriter.open(Location(folder), run_id, 0, lambda _: None) as writer:
        place = Path(writer.table("heartbeats").base)
        place.mkdir(parents=True)
        pq.write_table(pa.table({"a": [1]}), place / "part-0.parquet")
        if not dies:
            writer.publish({"heartbeats": 1}, {})
    return run_id


def test_an_ingest_that_died_goes_and_the_last_one_stays(tmp_path: Path) -> None:
    last = ingested(tmp_path)
    dead = ingested(tmp_path, dies=True)
    put(tmp_path / "heartbeats" / "run=mine" / "part-0.parquet")
    prune_snapshots(Location(tmp_path), retention(1, NOW - timedelta(days=1, hours=5)))
    assert [name for name in files(tmp_path) if dead in name], "it began less than a day ago"
    pruned = prune_snapshots(Location(tmp_path), retention(1))
    assert names_in(pruned) == {"runs that were not published": {dead}}
    assert not [name for name in files(tmp_path) if dead in name]
    assert Snapshots.open(Location(tmp_path)).run_id == last
    assert (tmp_path / "heartbeats" / "run=mine" / "part-0.parquet").exists()


def test_tables_of_a_lake_stay(tmp_path: Path) -> None:
    names = ["heartbeats/part-0.parquet", "heartbeats/dt=2020-01-01/part-0.parquet"]
    for name in names:
        put(tmp_path / name)
    prune_snapshots(Location(tmp_path), retention(1))
    assert files(tmp_path) == set(names)


# Dumps


def dump(folder: Path, day: str, name: str = "") -> Path:
    time = datetime.fromisoformat(day).replace(hour=9, tzinfo=UTC)
    return put(DumpFolder(folder).path(int(time.timestamp()) * 1_000_000, name))


def dump_all(folder: Path) -> None:
    for day in DAYS:
        dump(folder, day)
        dump(folder, day, "east")


def test_old_days_of_dumps_go(tmp_path: Path) -> None:
    dump_all(tmp_path)
    put(tmp_path / ".collect" / "memory-east.json")
    put(tmp_path / "client-logs-2026-11-01" / "090000.000.jsonl.gz")
    would = prune_dumps(tmp_path, retention(2, dry_run=True))
    pruned = prune_dumps(tmp_path, retention(2))
    assert names_in(pruned) == names_in(would) == {"days of dumps": set(DAYS[:2])}
    assert sum(files for _, files, _ in pruned.removed["days of dumps"]) == 4
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == [".collect", *DAYS[2:], "client-logs-2026-11-01"]


def test_a_day_with_anything_else_in_it_stays_and_is_named(tmp_path: Path) -> None:
    dump(tmp_path, DAYS[0])
    put(tmp_path / DAYS[0] / "notes.txt")
    dump(tmp_path, DAYS[-1])
    pruned = prune_dumps(tmp_path, retention(1))
    assert pruned.left == [f"{tmp_path / DAYS[0]} stays: it has other files than rounds: notes.txt"]
    assert len(files(tmp_path)) == 3


def test_a_day_that_was_half_removed_is_seen_by_no_reader_and_goes_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dump_all(tmp_path)
    original, removed = Path.unlink, []

    def killed(self: Path, missing_ok: bool = False) -> None:
        if removed:
            raise KilledError
        removed.append(self)
        original(self, missing_ok)

    monkeypatch.setattr(Path, "unlink", killed)
    with pytest.raises(KilledError):
        prune_dumps(tmp_path, retention(1))
    monkeypatch.undo()
    assert not (tmp_path / DAYS[0]).exists()
    prune_dumps(tmp_path, retention(1))
    assert [path.name for path in tmp_path.iterdir()] == [DAYS[-1]]


def test_a_folder_of_dumps_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is none"):
        prune_dumps(tmp_path / "x", retention(1))


# The command


def said(capsys: pytest.CaptureFixture[str], code: int, *arguments: object) -> str:
    assert main(["prune", *map(str, arguments), "--quiet"]) == code
    captured = capsys.readouterr()
    return captured.out + captured.err


def test_the_command_says_what_it_removes(
    reports: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    would = said(capsys, 0, "--keep", "1w", "--reports", reports, "--dry-run")
    assert "would remove published dates: 1 (2026-11-01)" in would
    assert would.endswith("dry run: nothing was removed\n")
    assert dates(reports) == DAYS
    for removed in ("removed published dates: 1 (2026-11-01)", "nothing to remove"):
        assert removed in said(capsys, 0, "--keep", "7d", "--reports", reports)
        assert dates(reports) == DAYS[1:]


def test_dumps_alone_are_removed_where_they_alone_are_named(
    reports: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for day in DAYS:
        dump(tmp_path / "dumps", day)
    keep = ["--keep", "1d", "--set", f"paths.reports={reports}"]
    said(capsys, 0, *keep, "--dumps", tmp_path / "dumps")
    assert dates(reports) == DAYS
    assert len(files(tmp_path / "dumps")) == 1
    said(capsys, 0, *keep)
    assert dates(reports) == DAYS[-1:]


@pytest.mark.parametrize("text", ["0d", "-1d", "90", "d", "1.5d", "1m", "٣d", "100000d", ""])
def test_another_duration_is_refused(capsys: pytest.CaptureFixture[str], text: str) -> None:
    assert "expected a number of days or weeks" in said(capsys, 2, f"--keep={text}")


def test_it_has_to_be_said_what_is_kept_and_where(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "expected --keep, or retention.keep_days" in said(capsys, 2, "--reports", tmp_path)
    assert "expected --reports" in said(capsys, 2, "--keep", "1d")
    missing = tmp_path / "missing"
    for option in ("--reports", "--snapshots"):
        assert "there is none" in said(capsys, 3, "--keep", "1d", option, missing)
    keep = ("--set", "retention.keep_days=9")
    assert "nothing to remove" in said(capsys, 0, "--reports", tmp_path, *keep)


RUN = ["run", "--dumps", str(CAPTURES / "S2"), "--engine", "local"]


@pytest.mark.long
def test_a_run_removes_what_is_too_old_by_the_settings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reports = tmp_path / "reports"
    for day in ("2020-01-01", "2020-01-02"):
        publish_day(reports, day)
    run = [*RUN, "--output", str(tmp_path)]
    assert main(run) == 0
    assert dates(reports)[:2] == ["2020-01-01", "2020-01-02"]
    assert main([*run, "--set", "retention.keep_days=90"]) == 0
    assert "removed published dates: 2 (2020-01-01 to 2020-01-02)" in capsys.readouterr().err
    assert len(dates(reports)) == 1
    # Its findings were compared with a date that is gone now.
    assert main(["report", "--reports", str(reports)]) == 0
    assert main(["alert", "--reports", str(reports)]) == 0
    assert main(run) == 0


@pytest.mark.long
@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("prune_reports", "the run is published, but older reports were not removed"),
        ("closing_lines", " is published, but what it says could not be read (Permission denied"),
    ],
)
def test_a_run_has_succeeded_whatever_fails_after_it_was_published(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    what: str,
    said: str,
) -> None:
    def fails(*_: object) -> PruneResult:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(f"jobs.commands.batch.{what}", fails)
    assert main([*RUN, "--output", str(tmp_path)]) == 0
    assert said in capsys.readouterr().err
