"""Reports in tables of Delta Lake and Iceberg: each date once, and never a part of a run."""

from __future__ import annotations

import dataclasses
import re
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog import load_catalog
from pyiceberg.utils.config import Config

import jobs.lakes.delta
import jobs.lakes.lake
from jobs.cli import main
from jobs.errors import AuditError, DamagedError, InputError
from jobs.lakes.delta import DeltaLake, address_of
from jobs.lakes.export import Exported, export
from jobs.lakes.iceberg import IcebergLake
from jobs.lakes.lake import RUN_ID, Lake, Replace
from jobs.schemas import REPORT_TABLES, Table
from jobs.storage import Location, Reports, location
from jobs.storage.manifest import TableFiles
from tests.faults.object_store import BUCKET, KEY, SECRET, command, object_store
from tests.support.written_reports import NOON, TABLES, Row, publish, report_row

DAY, DAY_BEFORE = "2026-11-20", "2026-11-19"
QUEUES = "orphaned_queues"
#: The first and the last are there to be written before and after.
NAMES = ("duplicate_queues", QUEUES, "stalled_queues")
#: A commit to a catalog takes its time.
FORMATS = ("delta", pytest.param("iceberg", marks=pytest.mark.long))


@pytest.fixture(params=FORMATS)
def format_(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with a catalog of Iceberg in it whose name is ``prod``."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYICEBERG_CATALOG__PROD__URI", f"sqlite:///{tmp_path}/catalog.db")
    monkeypatch.setenv("PYICEBERG_CATALOG__PROD__WAREHOUSE", f"file://{tmp_path}/warehouse")
    # PyIceberg reads the environment when it is imported.
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())
    return tmp_path


@pytest.fixture
def reports(place: Path) -> Reports:
    return Reports(Location(place / "reports"))


def open_lake(format_: str) -> Lake:
    return DeltaLake("lake") if format_ == "delta" else IcebergLake("prod.audit")


def read(format_: str, table: str = QUEUES) -> pa.Table:
    """A table as its format's library reads it."""
    if format_ == "delta":
        return pa.table(DeltaTable(f"lake/{table}").to_pyarrow_table())
    return load_catalog("prod").load_table(f"audit.{table}").scan().to_arrow()


def put(reports: Reports, day: str, lake: Lake, names: Sequence[str] = (QUEUES,)) -> Exported:
    """Exports one table or a few."""
    return export(reports, day, lake, [TABLES[name] for name in names])


def counts(format_: str, table: str = QUEUES) -> dict[str, int]:
    days = read(format_, table)["date"].value_counts().to_pylist()
    return {str(each["values"]): each["counts"] for each in days}


def audit(day: str, number: int, run: int = 0, **of_run: Any) -> None:
    """Publishes a run of a date that finds so many orphaned queues."""
    rows = [report_row(QUEUES, queue_id=each) for each in range(number)]
    publish(Path("reports"), day, {QUEUES: rows}, run_id=f"run-{run}", **of_run)


def test_a_date_that_was_audited_three_times_counts_once(format_: str, reports: Reports) -> None:
    lake = open_lake(format_)
    audit(DAY_BEFORE, 1)
    put(reports, DAY_BEFORE, lake)
    # A later run may find more than the one before, or less; none at all is a finding, too.
    for run, number in enumerate((3, 4, 0, 2)):
        audit(DAY, number, run)
        assert put(reports, DAY, lake).rows == number
        assert counts(format_) == {DAY_BEFORE: 1} | ({DAY: number} if number else {})
    put(reports, DAY, lake)
    assert counts(format_) == {DAY_BEFORE: 1, DAY: 2}


def test_the_lake_has_the_values_of_the_reports(format_: str, reports: Reports) -> None:
    rows = {table.name: [filled(table)] for table in REPORT_TABLES}
    for (row,) in rows.values():
        if "severity" in row:
            row["severity"] = "WARNING"  # the verdict on the run reads it
    publish(Path("reports"), DAY, rows)
    assert export(reports, DAY, open_lake(format_)).rows == len(REPORT_TABLES)
    for table in REPORT_TABLES:
        (row,) = read(format_, table.name).select(["date", *table.schema.names]).to_pylist()
        assert {**row, "date": str(row["date"])} == {"date": DAY, **rows[table.name][0]}


def filled(table: Table) -> Row:
    """A row with a value in every column: nothing is null, and no list is empty."""
    return {field.name: value_of(field.type) for field in table.schema}


def value_of(type_: pa.DataType) -> Any:
    if pa.types.is_list(type_):
        return [value_of(type_.value_type)]
    if pa.types.is_struct(type_):
        return {field.name: value_of(field.type) for field in type_}
    values: dict[Any, Any] = {
        pa.string(): "'x\n数\"",
        pa.binary(): b"\0\xff",
        pa.bool_(): True,
        pa.float64(): 0.25,
    }
    return NOON if pa.types.is_timestamp(type_) else values.get(type_, 7)


def test_columns_are_added_and_never_lost(format_: str, reports: Reports) -> None:
    lake = open_lake(format_)
    now = TABLES[QUEUES]
    older = Table(QUEUES, now.grain, now.schema.remove(now.schema.get_field_index("severity")))
    # The table is of a version that did not have the column yet.
    lake.open(older)
    assert "severity" not in read(format_).column_names
    for day in (DAY, DAY_BEFORE):
        audit(day, 1)
        put(reports, day, lake)
    severities = {str(row["date"]): row["severity"] for row in read(format_).to_pylist()}
    assert severities == {DAY_BEFORE: "CRITICAL", DAY: "CRITICAL"}


def test_a_table_that_the_run_does_not_have_loses_its_rows_of_the_date(
    format_: str, reports: Reports
) -> None:
    lake = open_lake(format_)
    audit(DAY, 2)
    put(reports, DAY, lake)
    published = reports.resolve(DAY)
    tables = tuple(each for each in published.tables if each != QUEUES)
    files = {}
    for name in tables:
        source = reports.table(name, DAY, "run-0").base
        target = Path(reports.table(name, DAY, "run-1").base)
        target.parent.mkdir(exist_ok=True)
        Path(source).rename(target)
        files[name] = TableFiles.written(
            reports.root, reports.table(name, DAY, "run-1"), published.files[name].rows
        )
    with reports.publication(DAY).writing("run-1", 0, lambda _: None) as number:
        run = dataclasses.replace(published, run_id="run-1", files=files, number=number)
        reports.publish(run)
    put(reports, DAY, lake)
    assert counts(format_) == {}


class Interrupted:
    """A lake in which something happens each time that a table is about to be changed."""

    def __init__(self, lake: Lake, meanwhile: Callable[[str], None]) -> None:
        self._lake = lake
        self._meanwhile = meanwhile

    def open(self, table: Table) -> Replace:
        replace, meanwhile = self._lake.open(table), self._meanwhile

        def late(date: str, run_id: str, rows: pa.Table) -> None:
            meanwhile(table.name)
            replace(date, run_id, rows)

        return late


@pytest.mark.parametrize("before", [0, 3])
def test_an_export_that_a_later_one_overtakes_does_not_bring_the_older_run_back(
    format_: str, reports: Reports, before: int
) -> None:
    if before:
        audit(DAY, before, 0)
        put(reports, DAY, open_lake(format_))
    audit(DAY, 5, 1)
    later = iter([2])

    def overtake(table: str) -> None:
        if table == QUEUES:
            for number in later:
                audit(DAY, number, 2)
                put(reports, DAY, open_lake(format_))

    done = put(reports, DAY, Interrupted(open_lake(format_), overtake), NAMES)
    assert (done.run_id, done.rows) == ("run-2", 2)
    assert counts(format_) == {DAY: 2}


def test_all_tables_are_of_one_run(format_: str, reports: Reports) -> None:
    """The date is audited again when some of its tables are written already."""
    audit(DAY, 5, 1)
    audits = iter([2])

    def audit_again(table: str) -> None:
        if table == NAMES[-1]:
            for number in audits:
                audit(DAY, number, 2)

    lake = Interrupted(open_lake(format_), audit_again)
    assert put(reports, DAY, lake, NAMES).run_id == "run-2"
    assert counts(format_) == {DAY: 2}


def test_whoever_never_gets_through_is_told(format_: str, reports: Reports) -> None:
    audit(DAY, 1)

    def overtake(table: str) -> None:
        put(reports, DAY, open_lake(format_))

    lake = Interrupted(open_lake(format_), overtake)
    with pytest.raises(
        AuditError, match=r"was not exported: others changed the table 10 times"
    ) as raised:
        put(reports, DAY, lake)
    assert "counts nothing twice" in raised.value.__notes__[0]


def test_two_dates_are_exported_at_once(format_: str, reports: Reports) -> None:
    days = {f"2026-11-{day}": day for day in (11, 12, 13)}
    for day, number in days.items():
        audit(day, number)
    failed: list[BaseException] = []

    def run(day: str) -> None:
        try:
            put(reports, day, open_lake(format_))
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(day,)) for day in days]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # One that does not get through says so, and comes to it when it is run again.
    assert all(isinstance(error, AuditError) for error in failed), failed
    for day in days:
        if failed:
            put(reports, day, open_lake(format_))
    assert counts(format_) == days


def test_damaged_reports_leave_the_lake_as_it_is(format_: str, reports: Reports) -> None:
    lake = open_lake(format_)
    audit(DAY, 3)
    put(reports, DAY, lake)
    audit(DAY, 2, 1)
    file = max(Path("reports", QUEUES).rglob("*.parquet"))
    file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(DamagedError, match="audit 2026-11-20 again"):
        put(reports, DAY, lake)
    assert counts(format_) == {DAY: 3}


def test_the_commit_names_the_run(format_: str, reports: Reports) -> None:
    audit(DAY, 1, 7)
    put(reports, DAY, open_lake(format_))
    if format_ == "delta":
        said = DeltaTable(f"lake/{QUEUES}").history(1)[0]
    else:
        snapshot = load_catalog("prod").load_table(f"audit.{QUEUES}").current_snapshot()
        assert snapshot is not None
        assert snapshot.summary is not None
        said = snapshot.summary.additional_properties
    assert said[RUN_ID] == "run-7"


def write_as_somebody_else(format_: str, theirs: pa.Table) -> None:
    if format_ == "delta":
        write_deltalake(f"lake/{QUEUES}", theirs)
    else:
        catalog = load_catalog("prod")
        catalog.create_namespace("audit")
        catalog.create_table(f"audit.{QUEUES}", theirs.schema).append(theirs)


def test_a_table_of_somebody_else_is_not_touched(format_: str, reports: Reports) -> None:
    audit(DAY, 1)
    theirs = pa.table({"sold": [1, 2]})
    write_as_somebody_else(format_, theirs)
    with pytest.raises(AuditError, match=r"another table: expected a column date, it has sold"):
        put(reports, DAY, open_lake(format_))
    assert read(format_).equals(theirs)


@pytest.mark.parametrize(
    ("column", "type_", "said"),
    [
        ("date", pa.string(), "expected the column date as date32[day], it is string"),
        ("queue_id", pa.string(), "expected the column queue_id as int32, it is string"),
        ("topic", pa.int64(), "expected the column topic as string, it is int64"),
    ],
)
def test_a_column_of_another_type_is_named_and_nothing_is_written(
    format_: str, reports: Reports, column: str, type_: pa.DataType, said: str
) -> None:
    """Where the library can, it writes one as the other without a word."""
    audit(DAY, 1)
    columns = {"date": pa.array(["2026-11-19"]).cast(pa.date32()), column: pa.array([None], type_)}
    theirs = pa.table(columns)
    write_as_somebody_else(format_, theirs)
    with pytest.raises(AuditError, match=re.escape(said)):
        put(reports, DAY, open_lake(format_))
    assert read(format_).num_rows == 1


# ---------------------------------------------------------------- the command


@pytest.fixture
def of_one_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command exports one table of all: that it is asked for all of them is seen elsewhere."""
    monkeypatch.setattr("jobs.lakes.export.export", put)


def exported(format_: str, *arguments: str) -> int:
    place = {"delta": ["--delta", "lake"], "iceberg": ["--iceberg", "prod.audit"]}[format_]
    return main(["export", "--reports", "reports", *place, *arguments, "--quiet"])


@pytest.mark.usefixtures("of_one_table")
def test_the_command_exports_the_last_date_a_date_or_every_date(
    format_: str, reports: Reports, capsys: pytest.CaptureFixture[str]
) -> None:
    days = {"2026-11-18": 1, DAY_BEFORE: 2, DAY: 3}
    for day, number in days.items():
        audit(day, number)
    assert exported(format_) == 0
    lake = open_lake(format_)
    assert capsys.readouterr().out == f"exported {DAY}, run run-0: 3 rows into {lake}\n"
    assert counts(format_) == {DAY: 3}
    assert exported(format_, "--date", DAY_BEFORE) == 0
    assert counts(format_) == {DAY: 3, DAY_BEFORE: 2}
    assert exported(format_, "--all-dates") == 0
    assert counts(format_) == days
    assert exported(format_, "--date", "2026-11-01") == 3
    assert "no published report of 2026-11-01" in capsys.readouterr().err


@pytest.mark.usefixtures("of_one_table")
def test_every_date_is_exported_where_all_of_them_lie_in_the_future(
    format_: str, reports: Reports, capsys: pytest.CaptureFixture[str]
) -> None:
    audit("2999-01-01", 1)
    assert exported(format_) == 3
    assert "lie in the future: 2999-01-01" in capsys.readouterr().err
    assert exported(format_, "--all-dates") == 0
    assert counts(format_) == {"2999-01-01": 1}


def test_a_folder_without_reports_is_named_whichever_dates_are_asked_for(
    reports: Reports, capsys: pytest.CaptureFixture[str]
) -> None:
    for dates in ([], ["--all-dates"]):
        assert exported("delta", *dates) == 3
        assert f"no published reports under {reports.root}" in capsys.readouterr().err


@pytest.mark.parametrize("folder", ["reports", "lake/../reports/", "link", f"reports/{QUEUES}"])
def test_no_table_of_delta_lake_comes_between_the_reports(
    folder: str, reports: Reports, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its files would count as rows of the reports for whoever reads these by a pattern."""
    audit(DAY, 1)
    (place / "link").symlink_to("reports")
    assert main(["export", "--reports", "reports", "--delta", folder, "--quiet"]) == 2
    assert f"a folder outside of the reports at {place}/reports" in capsys.readouterr().err
    assert [each.name for each in (place / "reports" / QUEUES).iterdir()] == [f"dt={DAY}"]


@pytest.mark.usefixtures("of_one_table")
def test_damage_of_one_date_does_not_keep_the_others_back(
    reports: Reports, capsys: pytest.CaptureFixture[str]
) -> None:
    days = ("2026-11-18", DAY_BEFORE, DAY)
    for number, day in enumerate(days, start=1):
        audit(day, number)
    (file,) = Path("reports", QUEUES, f"dt={DAY_BEFORE}").rglob("*.parquet")
    file.unlink()
    assert exported("delta", "--all-dates") == 4
    assert counts("delta") == {"2026-11-18": 1, DAY: 3}
    damage, last = capsys.readouterr().err.splitlines()
    assert f"{DAY_BEFORE} was not exported" in damage
    assert "audit 2026-11-19 again" in damage
    assert "1 of 3 dates not exported" in last


@pytest.mark.parametrize(("format_", "package"), [("delta", "deltalake"), ("iceberg", "pyiceberg")])
def test_a_library_that_is_not_installed_is_named_with_its_extra(
    format_: str,
    package: str,
    reports: Reports,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    audit(DAY, 1)
    monkeypatch.setitem(sys.modules, package, None)
    assert exported(format_) == 4
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{package} is not installed: pip install 'rocketmq-rebalance-audit[{format_}]'" in line


def test_a_lake_that_cannot_be_written_to_is_one_line(
    reports: Reports, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    audit(DAY, 1)
    (place / "lake").write_text("a file")
    assert exported("delta") == 4
    (line,) = capsys.readouterr().err.splitlines()
    assert f"Delta table {place}/lake/" in line
    assert "run the export again" in line


@pytest.mark.parametrize("name", ["audit", "prod.", ".audit", ""])
def test_a_lake_of_iceberg_is_a_catalog_and_a_namespace(name: str) -> None:
    with pytest.raises(InputError, match=r"as prod\.rebalance_audit"):
        IcebergLake(name)


def test_a_catalog_that_is_not_configured_is_named(
    reports: Reports, capsys: pytest.CaptureFixture[str]
) -> None:
    audit(DAY, 1)
    assert main(["export", "--reports", "reports", "--iceberg", "test.audit", "--quiet"]) == 3
    (line,) = capsys.readouterr().err.splitlines()
    assert "no Iceberg catalog test" in line
    assert "PYICEBERG_CATALOG__TEST__URI" in line


@pytest.mark.parametrize("name", ["[1]", "100%20", "a^b", "a|b", "a\\b", "a\nb"])
def test_a_folder_that_the_library_would_misread_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="export to another folder"):
        DeltaLake(f"lake/{name}")


@pytest.mark.parametrize("name", ["a b", "a#b", "a?b", "数", "a&b=c", "*"])
def test_other_names_are_taken_as_they_are(name: str, reports: Reports, place: Path) -> None:
    audit(DAY, 1)
    put(reports, DAY, DeltaLake(name))
    assert (place / name / QUEUES / "_delta_log").is_dir()


def test_options_that_delta_does_not_know_are_named() -> None:
    with pytest.raises(InputError, match=r"option tls_ca_file_path .* expected endpoint_override"):
        address_of("s3://lake/x?region=a&tls_ca_file_path=b")
    with pytest.raises(InputError, match=r"option x of the address: expected none"):
        address_of("gs://lake/x?x=1")


@pytest.fixture
def store() -> Iterator[Any]:
    with object_store() as found:
        yield found


@pytest.mark.e2e
def test_an_object_store_is_written_to_and_its_keys_are_never_shown(
    reports: Reports, place: Path, store: Any
) -> None:
    Location(store.uri("")).file_system.create_dir(BUCKET)
    uri = store.uri("lake").replace("&allow_bucket_creation=true", "").replace("s3:", "s3a:")
    for run, number in enumerate((3, 2)):
        audit(DAY, number, run)
        done = command("export", "--reports", "reports", "--delta", uri, place=place)
        assert done.returncode == 0, done.stderr
        assert f"{number} rows into s3a://lake/lake" in done.stdout
    address, options = address_of(uri)
    assert (
        DeltaTable(f"{address}/{QUEUES}", storage_options=options).to_pyarrow_table().num_rows == 2
    )

    store.dies = lambda method, _: method == "PUT"
    failed = command("export", "--reports", "reports", "--delta", uri, place=place)
    assert failed.returncode == 4
    assert "Delta table s3a://lake/lake/" in failed.stderr
    assert "x1b" not in failed.stderr
    for shown in (done, failed):
        assert SECRET not in shown.stdout + shown.stderr
        assert KEY not in shown.stdout + shown.stderr


def test_the_examples_of_addresses_types_and_paths_hold() -> None:
    import doctest  # noqa: PLC0415 - of this test alone

    for module, examples in ((jobs.lakes.delta, 2), (jobs.lakes.lake, 1), (location, 4)):
        assert doctest.testmod(module) == doctest.TestResults(failed=0, attempted=examples)
