"""The note: what was delivered is not delivered again, and one that is damaged stops nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobs.alerts.delivered import DeliveredFinding, Notes
from jobs.reports.tables import Place
from jobs.storage import Location, Reports
from tests.support.written_reports import publish

T, U = Place("C", "G", "T"), Place("C", "G", "U")
A = DeliveredFinding(T, "CRITICAL", "2026-11-20")
B = DeliveredFinding(U, "WARNING", "2026-11-19", "2026-11-20", end_is_sent=True)
NOTE = (
    '{"destinations": {"": {"findings": [{"place": ["C", "G", "T"], "severity": "CRITICAL", '
    '"date": "2026-11-20", "finding_ids": ["a"]}], "incidents": [["C", "G", "T"]]}}}\n'
)


def notes(folder: Path, warnings: list[str] | None = None) -> Notes:
    warn = pytest.fail if warnings is None else warnings.append
    return Notes(Reports(Location(folder)), warn)


def note_file(folder: Path, name: str = "note.json") -> Path:
    (folder / "_alerts").mkdir(parents=True, exist_ok=True)
    return folder / "_alerts" / name


def test_each_destination_has_its_findings_and_its_incidents(tmp_path: Path) -> None:
    # The first night has no note, and nothing to say of that.
    assert notes(tmp_path).delivered("") == {}
    assert notes(tmp_path).incidents("on-call") == set()
    notes(tmp_path).set_delivered("", {"a": A, "b": A, "c": B})
    notes(tmp_path).set_delivered("chat", {"b": B})
    notes(tmp_path).set_incidents("on-call", {T})
    assert notes(tmp_path).delivered("") == {"a": A, "b": A, "c": B}
    assert notes(tmp_path).delivered("chat") == {"b": B}
    assert notes(tmp_path).delivered("on-call") == {}
    assert notes(tmp_path).incidents("on-call") == {T}
    assert notes(tmp_path).incidents("chat") == set()


def test_what_no_report_shows_any_more_is_forgotten(tmp_path: Path) -> None:
    publish(tmp_path, "2026-11-20", {})
    notes(tmp_path).set_delivered("", {"a": A, "b": B})
    assert notes(tmp_path).delivered("") == {"a": A}


BAD = [
    b"",
    b"{",
    b"[]",
    b"null",
    b"\xff",
    b"[" * 100_000,
    NOTE.encode()[:60],
    NOTE.replace("CRITICAL", "BAD").encode(),
    NOTE.replace("2026-11-20", "today").encode(),
    NOTE.replace('["a"]', "3").encode(),
]


@pytest.mark.parametrize("data", BAD, ids=range(len(BAD)))
def test_a_damaged_note_means_tell_again_and_is_said_once(tmp_path: Path, data: bytes) -> None:
    warnings: list[str] = []
    note_file(tmp_path).write_bytes(data)
    bad = notes(tmp_path, warnings)
    assert bad.delivered("") == {}
    assert bad.incidents("") == set()
    (warning,) = warnings
    assert "(it is damaged): what was posted and is open is posted again" in warning
    assert "close incidents that are over by hand" in warning
    assert str(note_file(tmp_path)) in warning
    assert "\n" not in warning
    # The next note mends it.
    bad.set_delivered("", {"a": A})
    assert notes(tmp_path).delivered("") == {"a": A}


def test_a_note_that_is_gone_is_said(tmp_path: Path) -> None:
    notes(tmp_path).set_delivered("", {"a": A})
    note_file(tmp_path).unlink()
    warnings: list[str] = []
    assert notes(tmp_path, warnings).delivered("") == {}
    assert len(warnings) == 1
    assert "(it is gone): what was posted and is open is posted again" in warnings[0]


@given(st.integers(0, len(NOTE) - 1), st.binary(min_size=1, max_size=3))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_no_damage_of_a_note_is_an_error(tmp_path: Path, at: int, other: bytes) -> None:
    data = NOTE.encode()
    note_file(tmp_path).write_bytes(data[:at] + other + data[at + len(other) :])
    warnings: list[str] = []
    assert isinstance(notes(tmp_path, warnings).delivered(""), dict)
    assert len(warnings) <= 1
