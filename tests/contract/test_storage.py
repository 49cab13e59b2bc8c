"""How much there is to read, told before a session is started; files that are replaced whole."""

from pathlib import Path

from jobs.dumps.files import list_local_files
from jobs.storage import Location


def test_files_folders_and_globs_count_each_file_once(tmp_path: Path):
    (tmp_path / "night").mkdir()
    (tmp_path / "night" / "a.jsonl").write_bytes(b"12345")
    (tmp_path / "night" / "b.jsonl.gz").write_bytes(b"123")
    named = [str(tmp_path / "night"), f"file://{tmp_path}/night/*.jsonl", f"{tmp_path}/{{night,x}}"]
    assert [file.size for file in list_local_files(named) or ()] == [5, 3]


def test_of_what_is_not_local_nothing_is_known(tmp_path: Path):
    assert list_local_files([str(tmp_path), "hdfs://namenode/dumps"]) is None


def test_who_reads_a_file_that_is_replaced_reads_the_old_text_to_its_end(tmp_path: Path):
    file = tmp_path / "metrics.prom"
    file.write_text("old")
    with file.open() as reader:
        Location(file).replace_text("new")
        assert reader.read() == "old"
    assert file.read_text() == "new"
    assert [each.name for each in tmp_path.iterdir()] == ["metrics.prom"]
