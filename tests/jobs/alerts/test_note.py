"""Notes: what was delivered is not delivered again, and a note that is damaged stops nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobs.alerts.note import NoteError, Notes
from jobs.storage import Location, PublishedRun, Reports

PAIR = ("C", "G", "T")
#: As the command wrote it before there were several destinations.
EARLIER = '{"date": "2026-11-20", "run_id": "run-1", "finding_ids": ["a", "b"]}\n'


def notes(folder: Path, warnings: list[str] | None = None) -> Notes:
    published = PublishedRun("2026-11-20", "run-2", {}, {})
    warn = pytest.fail if warnings is None else warnings.append
    return Notes(Reports(Location(folder)), published, warn)


def note_file(folder: Path) -> Path:
    (folder / "_alerts").mkdir(parents=True, exist_ok=True)
    return folder / "_alerts" / "dt=2026-11-20.json"


def test_each_destination_has_its_findings_and_its_incidents(tmp_path: Path) -> None:
    # The first night has no notes, and nothing to say of that.
    assert notes(tmp_path).delivered("") == notes(tmp_path).incidents("on-call") == set()
    notes(tmp_path).add("", {"a"})
    notes(tmp_path).add("chat", {"b"})
    notes(tmp_path).add("chat", {"c"})
    notes(tmp_path).set_incidents("on-call", {PAIR})
    notes(tmp_path).set_incidents("other", ())
    assert notes(tmp_path).delivered("") == {"a"}
    assert notes(tmp_path).delivered("chat") == {"b", "c"}
    assert notes(tmp_path).delivered("on-call") == set()
    assert notes(tmp_path).incidents("on-call") == {PAIR}
    assert notes(tmp_path).incidents("other") == notes(tmp_path).incidents("chat") == set()


def test_a_note_of_before_there_were_several_destinations_counts(tmp_path: Path) -> None:
    note_file(tmp_path).write_text(EARLIER)
    assert notes(tmp_path).delivered("") == {"a", "b"}
    assert notes(tmp_path).delivered("chat") == set()


BAD = [
    b"",
    b"{",
    b"[]",
    b"null",
    b"\xff",
    b"[" * 100_000,
    EARLIER.encode()[:40],
    b'{"finding_ids": 3}',
    b'{"finding_ids": [["a"]]}',
    b'{"finding_ids": ["a"], "destinations": []}',
]


@pytest.mark.parametrize("data", BAD, ids=range(len(BAD)))
def test_a_damaged_note_means_tell_again_and_is_said_once(tmp_path: Path, data: bytes) -> None:
    warnings: list[str] = []
    note_file(tmp_path).write_bytes(data)
    assert notes(tmp_path, warnings).delivered("") == set()
    assert len(warnings) == 1
    assert "findings that were posted are posted again" in warnings[0]
    assert str(note_file(tmp_path)) in warnings[0]
    assert "\n" not in warnings[0]
    # The next note mends it.
    notes(tmp_path).add("", {"a"})
    assert notes(tmp_path).delivered("") == {"a"}


@given(st.integers(0, len(EARLIER) - 1), st.binary(min_size=1, max_size=3))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_no_damage_of_a_note_is_an_error(tmp_path: Path, at: int, other: bytes) -> None:
    data = EARLIER.encode()
    note_file(tmp_path).write_bytes(data[:at] + other + data[at + len(other) :])
    warnings: list[str] = []
    assert isinstance(notes(tmp_path, warnings).delivered(""), frozenset)
    assert len(warnings) <= 1


def test_damaged_incidents_are_said_and_no_error(tmp_path: Path) -> None:
    note_file(tmp_path).with_name("incidents.json").write_text('{"destinations": {"a": ["x"]}}')
    warnings: list[str] = []
    assert notes(tmp_path, warnings).incidents("a") == set()
    assert len(warnings) == 1
    assert "close the incidents that are open now by hand" in warnings[0]


def test_a_note_that_cannot_be_written_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "_alerts").write_text("a file in the place of the folder")
    with pytest.raises(NoteError, match=r"_alerts/dt=2026-11-20\.json cannot be written \("):
        notes(tmp_path, []).add("", {"a"})
