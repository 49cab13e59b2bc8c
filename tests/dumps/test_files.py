"""Which files the operator's paths name, whatever the files are called, and on both engines."""

from __future__ import annotations

import errno
import gzip
import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from jobs.cli import main
from jobs.engines.files import file_uri, list_local_files
from jobs.errors import InputError
from jobs.spark.spark_engine import SparkEngine
from tests.dumps.samples import line

#: Names of files that a glob, a URI, a shell or a terminal would take for something else.
NAMES = (
    *("d[1]", "d1", "x*", "xy", "q?", "b{c,d}", "bc", "a b", " a ", "50%", "a%20b", "%41", "h#1"),
    *("back\\slash", "10:00:00", "file:x", "a=b&c+d", "-d", "~", "@a", "it's", 'say "hi"', "日本"),
    *("e\u0301", "emoji😀", "line\nfeed", "re\rturn", "tab\tx", "esc\x1b[31m", "del\x7f"),
    *("no\u00a0break", "wide\u3000space", "line\u2028separator", "next\u0085line", "bidi\u202ex"),
    "zero\u200bwidth",
)


@pytest.fixture
def dumps(tmp_path: Path) -> Path:
    """A folder with a file of each name, in which two lines are statements and one is none."""
    folder = tmp_path / "dumps [a]"
    folder.mkdir()
    for name in NAMES:
        (folder / f"{name}.jsonl").write_text(
            f"{line('topic_route')}\n{line('consumer_connection')}\n{name!r}"
        )
    return folder


def listed(*paths: object) -> list[str]:
    return [
        Path(file.path.removeprefix("file:")).name
        for file in list_local_files([str(each) for each in paths]) or []
    ]


def test_a_path_that_is_there_is_no_glob(dumps: Path) -> None:
    assert sorted(listed(dumps)) == sorted(f"{name}.jsonl" for name in NAMES)
    for name in NAMES:
        assert listed(dumps / f"{name}.jsonl") == [f"{name}.jsonl"]
        assert listed(f"file:{dumps}/{name}.jsonl") == [f"{name}.jsonl"]


def test_a_path_that_is_not_there_is_a_glob_of_hadoops(dumps: Path) -> None:
    beside = dumps.parent / "dumps ?a?"
    assert listed(f"{beside}/d[12].jsonl") == ["d1.jsonl"]
    assert listed(f"{beside}/d[[]1].jsonl") == ["d[1].jsonl"]
    assert listed(rf"{beside}/x\*.json?") == ["x*.jsonl"]
    assert listed(f"{beside}/x[^*].jsonl") == ["xy.jsonl"]
    assert listed(f"{beside}/{{xy,d{{1,2}}}}.jsonl") == ["d1.jsonl", "xy.jsonl"]
    assert listed(f"{beside}/*%*") == ["%41.jsonl", "50%.jsonl", "a%20b.jsonl"]


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("", "came an empty text"),
        ("nowhere[", r"no dump at /.*/nowhere\["),
        ("a\nb*", r"no dump at /.*/a\\nb\*"),
        ("x" * 300, "no dump at /.*/xxx"),
        ("a\0b", r"no dump at /.*/a\\x00b"),
        ("file:x.jsonl", "expected file:///PATH on this machine, came file:x.jsonl"),
        ("file://host/x", "expected file:///PATH on this machine, came file://host/x"),
        ("file:////x", "expected file:///PATH on this machine, came file:////x"),
        ("/dev/null", "expected a file or a folder, came a pipe, a socket or a device"),
        ("-", "no dump at /.*/-"),
        ("~", "no dump at /.*/~"),
    ],
)
def test_what_is_no_file_is_told_in_one_line(here: Path, path: str, said: str) -> None:
    with pytest.raises(InputError, match=said) as error:
        list_local_files([path])
    assert str(error.value).isprintable()


@pytest.mark.parametrize(
    "path", ["{0}/a/d.jsonl", "{0}/a/", "{0}//a///", "/{0}/a", "{0}/b/../a", "file:{0}/a",
             "file://{0}/a/", "file:{0}/b/../a//d.jsonl", "a", "./a", "../{1}/a"],
)  # fmt: skip
def test_a_folder_may_be_written_in_many_ways(here: Path, path: str) -> None:
    (here / "a").mkdir()
    (here / "a" / "d.jsonl").write_text("")

    files = list_local_files([path.format(here, here.name)])

    assert files is not None
    assert [file.path for file in files] == [f"file:{here}/a/d.jsonl"]


def test_each_file_is_read_once_also_where_links_lead_to_it(tmp_path: Path) -> None:
    day, other = tmp_path / "dumps" / "2026-11-20", tmp_path / "other"
    day.mkdir(parents=True)
    other.mkdir()
    (day / "a.jsonl.gz").write_bytes(gzip.compress(b"{}"))
    (other / "b.jsonl").write_text("{}")
    (day / "LATEST").symlink_to(day / "a.jsonl.gz")
    (day.parent / "latest").symlink_to(day)
    (day / "up").symlink_to("..")
    (day / "other").symlink_to(other)
    (other / "back").symlink_to(day)

    assert listed(day.parent) == ["a.jsonl.gz", "b.jsonl"]
    assert listed(day.parent / "latest") == ["a.jsonl.gz", "b.jsonl"]
    assert listed(day / "LATEST") == ["LATEST"]
    assert listed(day / "LATEST", day) == ["a.jsonl.gz", "b.jsonl"]


def test_what_cannot_be_read_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "gone\n.jsonl").symlink_to("nowhere")
    with pytest.raises(InputError, match=r"gone\\n.jsonl: No such file.*a link that leads nowhere"):
        list_local_files([str(tmp_path)])
    (tmp_path / "gone\n.jsonl").unlink()
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="pipe: expected a file or a folder"):
        list_local_files([str(tmp_path)])
    (tmp_path / "pipe").unlink()
    (tmp_path / os.fsdecode(b"\xff.jsonl")).write_text("")
    with pytest.raises(InputError, match=r"\\udcff.jsonl: the name is no UTF-8; rename the file"):
        list_local_files([str(tmp_path)])


@pytest.mark.parametrize("function", ["scandir", "lstat"])
def test_a_folder_that_may_not_be_entered_is_no_empty_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: str
) -> None:
    """Nothing refuses root, so that a system that refuses stands in."""

    def refuse(path: Any, *_: Any, **__: Any) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(os, function, refuse)
    what = {"scandir": "cannot list a folder of dumps", "lstat": "cannot reach a dump"}[function]
    said = rf"{what}: Permission denied: {tmp_path}: give user \d+ the right to it, or run as"
    with pytest.raises(InputError, match=said):
        list_local_files([str(tmp_path)])


def close(folder: Path, patch: pytest.MonkeyPatch) -> Path:
    """Makes a folder that may not be entered, beside one with a dump: root's system refuses it."""
    for each in (folder, folder.parent / "open"):
        each.mkdir(parents=True)
        (each / "d.jsonl").write_text("")
    (folder.parent / "round").symlink_to("round")

    def guarded(function: Any, *, itself: bool = True) -> Any:
        def call(path: Any, *rest: Any, **named: Any) -> Any:
            if folder in Path(path).parents or (itself and Path(path) == folder):
                raise PermissionError(errno.EACCES, "Permission denied", str(path))
            return function(path, *rest, **named)

        return call

    patch.setattr(os, "scandir", guarded(os.scandir))
    patch.setattr(os, "lstat", guarded(os.lstat, itself=False))
    patch.setattr(os, "access", lambda path, _: Path(path) != folder)
    return folder


@pytest.fixture
def closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return close(tmp_path / "night" / "closed", monkeypatch)


@pytest.mark.parametrize(
    "pattern",
    ["*/*", "*/d.jsonl", "*/d*", "c*/*", "{open,closed}/*", "{open,closed}/d.jsonl", "**/*.jsonl",
     "*", "closed/*", "closed/d.jsonl", "[^o]*/[d]*"],
)  # fmt: skip
def test_a_glob_leaves_no_closed_folder_out_in_silence(closed: Path, pattern: str) -> None:
    said = (
        r"cannot (list a folder of dumps|reach a dump): Permission denied: "
        rf"{closed}: give user \d+ the right to it, or run as"
    )
    with pytest.raises(InputError, match=said):
        list_local_files([f"{closed.parent}/{pattern}"])


@pytest.mark.parametrize(
    "pattern", ["o*/*", "[^ci]*/*", "open/*", "{open,other}/*", "op?n/d.jsonl", "*n/*"]
)
def test_a_closed_folder_that_a_glob_does_not_enter_does_no_harm(
    closed: Path, pattern: str
) -> None:
    assert listed(f"{closed.parent}/{pattern}") == ["d.jsonl"]


@pytest.mark.parametrize("path", ["", "/*", "/*/*", "/**/*.jsonl"])
def test_the_folder_for_repairs_of_a_disk_is_not_one_of_dumps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    close(tmp_path / "disk" / "lost+found", monkeypatch)
    (tmp_path / "disk" / "round").unlink()
    assert listed(f"{tmp_path}/disk{path}") == ["d.jsonl"]


def test_a_link_into_a_closed_folder_may_be_a_folder(
    closed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Link:
        name, path = "link", str(closed.parent / "link")

        def is_dir(self) -> bool:
            raise PermissionError(errno.EACCES, "Permission denied", self.path)

    monkeypatch.setattr(os, "scandir", lambda _: nullcontext([Link()]))
    with pytest.raises(InputError, match=f"Permission denied: {closed.parent}/link: give user"):
        list_local_files([f"{closed.parent}/*/*"])
    with pytest.raises(InputError, match="no dump at"):
        list_local_files([f"{closed.parent}/o*/*"])


def test_a_link_into_a_closed_folder_is_not_to_be_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = tmp_path / "link.jsonl"
    link.symlink_to("closed/d.jsonl")

    def refuse(path: Any, **_: Any) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr("jobs.engines.files.os.stat", refuse)
    monkeypatch.setattr("jobs.engines.files.os.path.isdir", lambda _: False)
    with pytest.raises(InputError, match=f"reach a dump: Permission denied: {link}: give user"):
        list_local_files([str(link)])


def quarantined(snapshots: Path) -> list[tuple[str, int, str]]:
    files = [each for each in snapshots.rglob("*.parquet") if "quarantine" in each.parts]
    rows = [row for file in files for row in pq.read_table(file).to_pylist()]
    return sorted((row["file"], row["line_number"], row["reason"]) for row in rows)


@pytest.mark.spark
def test_both_engines_read_every_file_under_the_same_name(
    spark: SparkSession, dumps: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def session(*_: object, **__: object) -> Iterator[SparkSession]:
        yield spark

    monkeypatch.setattr("jobs.spark.session.spark_session", session)
    # Nothing can be read of the first archive, something of the second.
    (dumps / "no [archive].gz").write_text("{}")
    cut = gzip.compress(b"x\n" + os.urandom(90_000).hex().encode())[:-9]
    (dumps / "cut {archive}%20.gz").write_bytes(cut)
    # A folder of tables beside which others match it as a glob.
    tables = {engine: tmp_path / f"{engine} [ab]*{{c,d}}%20#?:日" for engine in ("local", "spark")}
    (tmp_path / "spark axd%20#x:日" / "snapshots" / "heartbeats").mkdir(parents=True)
    command = ["run", "--dumps", str(dumps), "--quiet", "--set", "allowed_quarantine_share=1"]

    for engine, output in tables.items():
        assert main([*command, "--engine", engine, "--output", str(output)]) == 0

    refused = [quarantined(output / "snapshots") for output in tables.values()]
    assert refused[0] == refused[1]
    files = {file for file, _, _ in refused[0]}
    assert {file_uri(f"file:{dumps}/{name}.jsonl") for name in NAMES} < files
    assert len(files) == len(NAMES) + 2


@pytest.mark.spark
def test_spark_lists_the_very_same_files(spark: SparkSession, dumps: Path) -> None:
    engine = SparkEngine(spark)
    for paths in ([str(dumps)], [f"{dumps.parent}/dumps ?a?/d[12]*"], [f"file://{dumps}/x*.jsonl"]):
        assert engine.list_files(paths) == list_local_files(paths) != []
    # Other file systems are listed by Spark itself, with globs.
    plain = dumps.parent / "plain"
    plain.mkdir()
    conf = spark.sparkContext._jsc.hadoopConfiguration()
    conf.set("fs.viewfs.mounttable.plain.link./dumps", f"file:{plain}")
    for name in ("a", "bc", "d", "_hidden"):
        (plain / f"{name}.jsonl").write_text(name)
    found = engine.list_files(["viewfs://plain/dumps/{a,bc}.jsonl", f"{dumps}/bc.jsonl"])
    assert [file.path for file in found] == [
        f"file:{dumps}/bc.jsonl",
        "viewfs://plain/dumps/a.jsonl",
        "viewfs://plain/dumps/bc.jsonl",
    ]
    assert [file.size for file in found[1:]] == [1, 2]
    hidden = "names begin with _ or . are skipped by Spark"
    with pytest.raises(InputError, match=hidden):
        engine.list_files(["viewfs://plain/dumps/_hidden.jsonl"])


@pytest.mark.spark
@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("odd://a/b", "cannot list odd://a/b: "),
        ("viewfs://tmp/dumps/nowhere", "no dump at viewfs://tmp/dumps/nowhere"),
        ("file://host/x", "expected file:///PATH on this machine"),
        ("/nowhere[", r"no dump at /nowhere\["),
        ("", "came an empty text"),
    ],
)
def test_what_spark_cannot_list_is_told_in_one_line(
    spark: SparkSession, path: str, said: str
) -> None:
    conf = spark.sparkContext._jsc.hadoopConfiguration()
    conf.set("fs.viewfs.mounttable.tmp.link./dumps", "file:/tmp")
    with pytest.raises(InputError, match=said) as error:
        SparkEngine(spark).list_files([path])
    assert str(error.value).isprintable()
