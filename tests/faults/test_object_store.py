"""Reports and snapshots in an object store: all commands, and connections that die."""

from __future__ import annotations

import json
import os
import random
import sys
import threading
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType

import pyarrow.fs as pafs
import pytest

pytest.importorskip("moto.server", reason="needs pip install 'moto[s3]' flask flask-cors")

from jobs.errors import AuditError
from jobs.storage import Location, Reports
from tests.faults.calls import EVERY
from tests.faults.nights import DATE, Nights, read_everything
from tests.faults.object_store import KEY, SECRET, ObjectStore, command, never, object_store

pytestmark = pytest.mark.house


@pytest.fixture(scope="module")
def store():
    with object_store() as started:
        yield started


def run(
    store: ObjectStore,
    folder: str,
    dumps: Path,
    place: Path,
    variables: Mapping[str, str] = MappingProxyType({}),
):
    settings = place / "settings.toml"
    settings.write_text("persistence_seconds = 60\n[publishing]\nwait_seconds = 0\n")
    where = ["--dumps", str(dumps), "--output", store.uri(folder)]
    options = [*where, "--engine", "local", "--settings", str(settings)]
    return command("run", *options, place=place, variables=variables)


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


#: A night on the store of 2 groups, in requests: it had 1,336 when each table was read 16 times.
_MOST_REQUESTS = 300


def test_a_second_run_makes_few_requests_and_no_markers_of_folders(nights, store, tmp_path, counts):
    for again in (False, True):
        store.requests.clear()
        assert run(store, "counted", nights.dumps, tmp_path).returncode == 0
        made = list(store.requests)
        assert len(made) < _MOST_REQUESTS, f"again {again}: {Counter(made).most_common(20)}"
        assert not [path for method, path in made if method == "PUT" and path.endswith("/")]
        whole = Counter(path for method, path in made if method in ("GET", "HEAD"))
        tables = {path: number for path, number in whole.items() if path.endswith(".parquet")}
        # Read back when it was written, and looked for by whoever reads the pointer.
        assert max(tables.values()) <= 4, tables
    counts["object store: requests of a second run"] += len(made)
    for method in ("GET", "HEAD", "PUT", "POST", "DELETE"):
        of_method = [each for each, _ in made if each == method]
        counts[f"object store: {method} of a second run"] += len(of_method)


def test_without_obstore_a_run_says_once_what_is_lost_and_makes_more_requests(
    nights, store, tmp_path
):
    # A folder of that name comes before the package.
    (tmp_path / "obstore.py").write_text("raise ImportError\n")
    variables = {"PYTHONPATH": f"{tmp_path}:{Path(__file__).parents[2]}"}
    for _again in range(2):
        ended = run(store, "without", nights.dumps, tmp_path, variables)
        assert ended.returncode == 0, ended.stderr
        assert ended.stderr.count("the store's own condition") == 1
        assert "[stores]" in ended.stderr
    assert without_paths(read(store, "without")) == without_paths(nights.new)


@pytest.mark.parametrize("has_obstore", [True, False])
def test_a_store_that_refuses_a_tenth_of_all_requests_costs_no_run(
    nights, store, tmp_path, counts, has_obstore
):
    variables = {}
    if not has_obstore:
        (tmp_path / "obstore.py").write_text("raise ImportError\n")
        variables = {"PYTHONPATH": f"{tmp_path}:{Path(__file__).parents[2]}"}
    chance = random.Random(48)  # noqa: S311 - no secret
    folder = f"busy-{has_obstore}"
    for number in range(max(3, 20 // EVERY)):
        store.refuses = lambda _method, _path: chance.random() < 0.1
        try:
            ended = run(store, folder, nights.dumps, tmp_path, variables)
        finally:
            store.refuses = never
        assert ended.returncode == 0, f"run {number}: {ended.stderr}"
        counts["object store: runs where a tenth is refused"] += 1
    assert without_paths(read(store, folder)) == without_paths(nights.new)


def test_a_store_that_refuses_all_is_said_to_throttle(nights, store, tmp_path):
    store.refuses = lambda method, _path: method != "HEAD"
    try:
        ended = command("report", "--reports", store.uri("none/reports"), place=tmp_path)
    finally:
        store.refuses = never
    assert ended.returncode == 4
    assert "the store throttles" in ended.stderr.splitlines()[-1]


def test_a_bucket_that_is_not_there_is_named(store, tmp_path):
    elsewhere = store.uri("reports").replace("@lake/", "@no-such-bucket/")
    for arguments in (
        ["report", "--reports", elsewhere],
        ["audit", "--snapshots", elsewhere, "--reports", elsewhere, "--engine", "local"],
        ["prune", "--keep", "1d", "--reports", elsewhere],
    ):
        ended = command(*arguments, place=tmp_path)
        assert ended.returncode == 3, ended.stderr
        last = ended.stderr.splitlines()[-1]
        assert "there is no bucket no-such-bucket for s3://no-such-bucket/reports" in last
        assert KEY not in ended.stderr


def in_environment(store: ObjectStore, _folder: Path) -> dict[str, str]:
    url = f"http://127.0.0.1:{store.port}"
    return {"AWS_ENDPOINT_URL": url, "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}


def by_profile(store: ObjectStore, folder: Path) -> dict[str, str]:
    keys = f"aws_access_key_id = {KEY}\naws_secret_access_key = {SECRET}\n"
    (folder / "credentials").write_text(f"[night]\n{keys}")
    return {
        "AWS_ENDPOINT_URL_S3": f"http://127.0.0.1:{store.port}",
        "AWS_SHARED_CREDENTIALS_FILE": str(folder / "credentials"),
        "AWS_PROFILE": "night",
    }


def by_file(store: ObjectStore, folder: Path) -> dict[str, str]:
    (folder / "config").write_text(
        f"[profile night]\nendpoint_url = http://127.0.0.1:{store.port}\nregion = us-east-1\n"
    )
    found = by_profile(store, folder) | {"AWS_CONFIG_FILE": str(folder / "config")}
    return {name: value for name, value in found.items() if name != "AWS_ENDPOINT_URL_S3"}


@pytest.mark.parametrize("set_up", [None, in_environment, by_profile, by_file])
def test_of_four_that_create_a_pointer_at_a_time_one_does_in_every_set_up(
    store, tmp_path, monkeypatch, counts, set_up
):
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    name = "uri" if set_up is None else set_up.__name__
    for variable, value in (set_up(store, tmp_path) if set_up else {}).items():
        monkeypatch.setenv(variable, value)

    def uri(path: str) -> str:
        plain = f"s3a://lake/{path}?allow_bucket_creation=true"
        return store.uri(path) if set_up is None else plain

    for number in range(40):
        places = [Location(uri(f"races-{name}/{number}.json")) for _ in range(4)]
        begin, made = threading.Barrier(len(places)), list[int]()

        def create(
            writer: int, places: list[Location] = places, begin=begin, made: list[int] = made
        ) -> None:
            begin.wait()
            with suppress(FileExistsError):
                places[writer].create_text(str(writer))
                made.append(writer)

        writers = [threading.Thread(target=create, args=(each,)) for each in range(len(places))]
        for each in writers:
            each.start()
        for each in writers:
            each.join()
        assert len(made) == 1, f"race {number}: {made}"
        assert places[0].read_text() == str(made[0])
        counts[f"object store: races with one winner, {name}"] += 1


def test_the_loser_of_two_runs_says_whose_report_counts_now(nights, store, tmp_path):
    assert run(store, "lost", nights.dumps, tmp_path).returncode == 0
    counting = reports(store, "lost").resolve(DATE).run_id
    claims = Location(store.uri(f"lost/reports/_claims/dt={DATE}"))
    (claims / "20261121T000000Z-aaaaaa~1~elsewhere~0.claim").write_new_text("")
    ended = run(store, "lost", nights.dumps, tmp_path)
    assert ended.returncode == 4
    last = ended.stderr.splitlines()[-1]
    assert "run 20261121T000000Z-aaaaaa (process 1 on elsewhere) is writing there" in last
    assert last.endswith(f"the report of {DATE} that counts now is that of run {counting}")


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
