"""Reports and snapshots in an object store: all commands, and connections that die."""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path

import pyarrow.fs as pafs
import pytest

pytest.importorskip("moto.server", reason="needs pip install 'moto[s3]' flask flask-cors")

from jobs.errors import AuditError
from jobs.storage import Location, Reports
from tests.faults.nights import DATE, Nights, read_everything
from tests.faults.object_store import KEY, SECRET, ObjectStore, command, never, object_store

pytestmark = pytest.mark.house


@pytest.fixture(scope="module")
def store():
    with object_store() as started:
        yield started


def run(store: ObjectStore, folder: str, dumps: Path, place: Path):
    settings = place / "settings.toml"
    settings.write_text("persistence_seconds = 60\n[publishing]\nwait_seconds = 0\n")
    where = ["--dumps", str(dumps), "--output", store.uri(folder)]
    return command("run", *where, "--engine", "local", "--settings", str(settings), place=place)


def reports(store: ObjectStore, folder: str) -> Reports:
    return Reports(Location(store.uri(folder)) / "reports")


def read(store: ObjectStore, folder: str):
    there = reports(store, folder)
    return there.read(DATE, lambda published: read_everything(there, published))


def without_paths(tables):
    """Quarantined lines name the dump's file; it is the same here."""
    return json.loads(json.dumps(tables, default=str))


def test_every_command_works_on_an_object_store_and_shows_no_secret(
    nights: Nights, store, tmp_path
):
    ended = run(store, "all", nights.dumps, tmp_path)
    assert ended.returncode == 0, ended.stderr
    shown = [ended.stdout, ended.stderr]
    assert without_paths(read(store, "all")) == without_paths(nights.new)
    where = ["--reports", store.uri("all/reports")]
    metrics = store.uri("all/metrics.prom")
    for arguments in (
        ["show", "group_health", *where],
        ["show", "summary", *where],
        ["report", *where],
        ["alert", *where, "--metrics", metrics],
        ["prune", "--keep", "1d", *where],
        ["audit", "--snapshots", store.uri("all/snapshots"), *where, "--engine", "local"],
        ["show", "no_such_table", *where],
    ):
        ended = command(*arguments, place=tmp_path)
        assert ended.returncode == (2 if "no_such_table" in arguments else 0), ended.stderr
        shown += [ended.stdout, ended.stderr]
    assert b"rebalance_audit" in Location(metrics).read_bytes()
    assert Location(store.uri(f"all/reports/report/dt={DATE}.html")).read_bytes()
    pointer = Location(store.uri(f"all/reports/_published/dt={DATE}.000001.json")).read_text()
    for text in [*shown, pointer]:
        assert SECRET not in text
        assert KEY not in text


def test_a_run_that_replaces_another_leaves_the_tables_of_both_and_no_more(nights, store, tmp_path):
    runs_of = []
    for _again in range(2):
        assert run(store, "again", nights.dumps, tmp_path).returncode == 0
        runs_of.append(reports(store, "again").resolve(DATE).run_id)
    there = Location(store.uri("again/reports"))
    files = there.file_system.get_file_info(pafs.FileSelector(there.base, recursive=True))
    runs = {info.path for info in files if "run=" in info.path}
    assert runs
    assert all(any(f"run={each}" in path for each in runs_of) for path in runs)
    assert not [info.path for info in files if info.path.endswith((".tmp", ".claim"))]


@pytest.mark.parametrize(
    ("name", "dies"),
    [
        ("the pointer", lambda method, path: method != "GET" and "_published" in path),
        ("a table", lambda method, path: method in ("PUT", "POST") and "/state_runs/" in path),
        ("a manifest", lambda method, path: method in ("PUT", "POST") and "_manifests" in path),
        ("any object", lambda method, _path: method in ("PUT", "POST")),
        ("reading", lambda method, path: method == "GET" and path.endswith(".parquet")),
    ],
)
def test_a_connection_that_dies_leaves_the_old_run_whole(
    nights, store, tmp_path, counts, name, dies
):
    folder = name.replace(" ", "-")
    assert run(store, folder, nights.before.parent / "dumps-before", tmp_path).returncode == 0
    store.dies = dies
    try:
        ended = run(store, folder, nights.dumps, tmp_path)
    finally:
        store.dies = never
    assert ended.returncode == 4, ended.stderr
    last = ended.stderr.splitlines()[-1]
    assert "Traceback" not in ended.stderr
    assert "defect of the audit" not in last, last
    assert SECRET not in ended.stderr
    assert without_paths(read(store, folder)) == without_paths(nights.old)
    ended = run(store, folder, nights.dumps, tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert without_paths(read(store, folder)) == without_paths(nights.new)
    counts["object store: connections that die"] += 1


def test_of_two_that_create_a_pointer_one_does(store):
    uri = store.uri("exclusive/_published/dt=2026-11-21.000001.json")
    made: list[str] = []

    def create(text: str) -> None:
        try:
            Location(uri).create_text(text)
        except FileExistsError:
            return
        made.append(text)

    writers = [threading.Thread(target=create, args=(str(number),)) for number in range(8)]
    for each in writers:
        each.start()
    for each in writers:
        each.join()
    assert [Location(uri).read_text()] == made
    assert SECRET not in str(Location(uri))


def test_an_exception_while_the_pointer_is_written_leaves_the_old_one(store, monkeypatch):
    place = Location(store.uri("pointer/_published/dt=2026-11-21.json"))
    place.replace_text("old")

    def fail(_self: Location, _data: bytes) -> None:
        with _self.file_system.open_output_stream(_self.base) as stream:
            stream.write(b"ne")
            raise AuditError("in the midst of it")

    with monkeypatch.context() as patch:
        # PyArrow writes where obstore is not there: that sends a text whole or not at all.
        patch.setitem(sys.modules, "obstore", None)
        place = Location(place.uri)
        patch.setattr(Location, "_put", fail)
        with pytest.raises(AuditError):
            place.replace_text("new")
    assert place.read_text() == "old"
    assert Location(store.uri("pointer/_published")).children() == ["dt=2026-11-21.json"]
