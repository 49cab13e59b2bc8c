"""What has to be on the disk before the pointer is replaced, so that the power may fail then."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest

from tests.faults.calls import Call
from tests.faults.test_one_night import calls_of


@pytest.mark.long
def test_all_files_are_on_the_disk_before_the_pointer_is_replaced(nights, tmp_path):
    calls = calls_of(nights, tmp_path)
    pointers = [call for call in calls if call.operation == "link" and "/_published/" in call.path]
    assert len(pointers) == 2
    for pointer in pointers:
        root = pointer.path.split("/", maxsplit=1)[0]
        before = [
            call
            for call in calls
            if call.number < pointer.number and call.path.split("/", maxsplit=1)[0] == root
        ]
        written = {call.path for call in before if is_of_run(call)}
        assert len(written) > 8
        synced = {call.path for call in before if call.operation == "sync"}
        assert written <= synced, sorted(written - synced)
        # The names in the folders, too: the run's in its table, the table's in the root.
        folders = {str(above) for path in written for above in PurePosixPath(path).parents}
        assert folders - {"."} <= synced, sorted(folders - synced)
        after = [
            call for call in calls if call.operation == "sync" and call.number > pointer.number
        ]
        assert any(call.path == f"{root}/_published" for call in after)


def is_of_run(call: Call) -> bool:
    return call.operation == "create" and call.path.endswith(".parquet")
