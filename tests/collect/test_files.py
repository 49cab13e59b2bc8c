"""The folder of dumps: a round is there whole or not at all, whenever its writer ends."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.collect.dump_folder import DumpFolder
from jobs.collect.memory import ConnectionsOfId, GroupMemory, ListedBroker, Memory
from jobs.engines.files import list_local_files
from jobs.errors import AuditError, InputError
from jobs.storage import disk

#: 2026-11-20T10:00:00.250Z.
AT = 1_795_168_800_250_000

#: Writes rounds, whole ones of 2,000 lines, as fast as it can.
WRITER = """
import sys
from pathlib import Path
from jobs.collect.dump_folder import DumpFolder
folder = DumpFolder(Path(sys.argv[1]))
with folder.locked():
    print("ready", flush=True)
    for number in range(1_000_000):
        with folder.new_round(1_795_168_800_000_000 + number * 1_000, "") as file:
            for line in range(2_000):
                file.write({"number": number, "line": line})
"""


def dumps(folder: Path) -> list[Path]:
    """What a reader of the folder takes."""
    return [Path(file.path.removeprefix("file:")) for file in list_local_files([str(folder)]) or []]


def read(path: Path) -> list[dict[str, int]]:
    with gzip.open(path, "rt") as lines:
        return [json.loads(line) for line in lines]


def test_a_round_lies_by_its_date_and_time(tmp_path: Path) -> None:
    folder = DumpFolder(tmp_path / "new" / "dumps")
    with folder.locked():
        for name in ("", "east/1"):
            with folder.new_round(AT, name) as file:
                file.write({"kind": "Ä"})
        assert [str(each.relative_to(folder.root)) for each in dumps(folder.root)] == [
            "2026-11-20/100000.250-east_1.jsonl.gz",
            "2026-11-20/100000.250.jsonl.gz",
        ]
        assert read(dumps(folder.root)[0]) == [{"kind": "Ä"}]


def test_a_round_that_fails_leaves_nothing_to_be_read(tmp_path: Path) -> None:
    folder = DumpFolder(tmp_path)
    with folder.locked():
        with pytest.raises(ZeroDivisionError), folder.new_round(AT, "") as file:
            file.write({})
            assert dumps(tmp_path) == []
            raise ZeroDivisionError
        assert dumps(tmp_path) == []
        assert not list((tmp_path / ".collect").glob("*.tmp"))


@pytest.mark.e2e
@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_whoever_is_killed_leaves_whole_rounds_alone(tmp_path: Path, end: signal.Signals) -> None:
    for wait in (0.0, 0.031, 0.1):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True
        )
        assert writer.stdout is not None
        # The next one begins, although the last one ended as it did.
        assert writer.stdout.readline() == "ready\n"
        time.sleep(wait)
        while wait == 0.1 and not dumps(tmp_path):
            time.sleep(0.01)
        writer.send_signal(end)
        writer.wait()
        writer.stdout.close()
        for path in dumps(tmp_path):
            assert len(read(path)) == 2_000
    with DumpFolder(tmp_path).locked():
        assert not list((tmp_path / ".collect").glob("*.tmp"))


@pytest.mark.e2e
def test_a_full_disk_leaves_no_half_round_and_the_next_one_goes_on(tmp_path: Path) -> None:
    # A limit of the file size fails as a full disk does: in the middle of a write.
    code = """
import resource, sys
from pathlib import Path
from jobs.collect.dump_folder import DumpFolder
folder = DumpFolder(Path(sys.argv[1]))
with folder.locked():
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))
    try:
        with folder.new_round(1_000, "") as file:
            for number in range(200_000):
                file.write({"number": hash(str(number))})
    except OSError as error:
        print(type(error).__name__)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    with folder.new_round(2_000, "") as file:
        file.write({"number": 1})
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert done.stdout == "OSError\n"
    assert [path.name for path in dumps(tmp_path)] == ["000000.002.jsonl.gz"]
    assert not list((tmp_path / ".collect").glob("*.tmp"))


def test_two_collectors_do_not_write_into_one_folder(tmp_path: Path) -> None:
    with DumpFolder(tmp_path).locked():
        with (
            pytest.raises(AuditError, match=f"process {os.getpid()}.*another folder"),
            DumpFolder(tmp_path).locked(),
        ):
            pass
        with DumpFolder(tmp_path / "other").locked():
            pass
    with DumpFolder(tmp_path).locked():
        pass


def test_what_is_remembered_is_no_dump(tmp_path: Path) -> None:
    folder = DumpFolder(tmp_path)
    with folder.locked():
        folder.remember("", Memory())
        assert dumps(tmp_path) == []
    with pytest.raises(InputError):
        list_local_files([str(tmp_path / "nothing")])


def test_a_memory_that_cannot_be_read_is_an_empty_one(tmp_path: Path) -> None:
    folder = DumpFolder(tmp_path)
    with folder.locked():
        memory = Memory(topics={("C", "T"): 5})
        folder.remember("x", memory)
        assert folder.remembered("x") == memory
        (left,) = (tmp_path / ".collect").glob("memory*.json")
        for text in ("", "{", "[]", '{"brokers": 1}', left.read_text()[:-9]):
            left.write_text(text)
            assert folder.remembered("x") == Memory()


_NAMES = st.text(max_size=5)
_TIMES = st.integers(0, 2**60)
_GROUPS = st.builds(
    GroupMemory,
    seen_at=_TIMES,
    lists=st.dictionaries(
        _NAMES, st.dictionaries(_NAMES, st.builds(ConnectionsOfId, _TIMES, _TIMES))
    ),
    first_seen=st.dictionaries(_NAMES, _TIMES),
    changed_at=st.none() | _TIMES,
    wanted=st.dictionaries(_NAMES, _TIMES),
    refreshed_at=st.none() | _TIMES,
)
_MEMORIES = st.builds(
    Memory,
    brokers=st.dictionaries(
        st.builds(ListedBroker, _NAMES, _NAMES, st.integers(0, 9), _NAMES, st.booleans()), _TIMES
    ),
    groups=st.dictionaries(st.tuples(_NAMES, _NAMES), _GROUPS),
    topics=st.dictionaries(st.tuples(_NAMES, _NAMES), _TIMES),
    refused=st.dictionaries(st.tuples(_NAMES, st.integers(0, 500)), _TIMES),
)


@pytest.mark.long
@given(_MEMORIES)
def test_a_memory_comes_back_from_the_disk_as_it_was(memory: Memory) -> None:
    assert Memory.from_json(memory.to_json()) == memory


def test_the_names_of_new_folders_are_on_the_disk_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[Path] = []
    monkeypatch.setattr(disk, "sync", synced.append)
    folder = DumpFolder(tmp_path / "new" / "dumps")
    with folder.locked(), folder.new_round(AT, "") as file:
        file.write({})
    assert {tmp_path, tmp_path / "new", folder.root, folder.root / "2026-11-20"} <= set(synced)


def test_brokers_with_ever_new_names_leave_no_lists_in_the_memory() -> None:
    memory = Memory()
    for number in range(100):
        broker = ListedBroker("C", f"evil{number}", 0, "10.0.0.9:10911", True)
        memory.replace_brokers([broker], number)
        memory.group("C", "G").lists[broker.place] = {}
        memory.forget(number)
    assert memory.group("C", "G").lists == {"evil99/0": {}}
