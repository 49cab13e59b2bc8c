"""What of the snapshot tables a window has, by a filter of PyArrow."""

from __future__ import annotations

from datetime import datetime

import pyarrow.dataset as ds
import pytest

from jobs.config.window import Window
from jobs.schemas import CLIENT_STATES, HEARTBEATS
from tests.support.snapshots import at, heartbeat_row, info_row, log_row, table

STATES = table(
    CLIENT_STATES,
    [
        info_row("early", 50, []),
        info_row("within", 60, []),
        info_row("late", 120, []),
        log_row("p", "still in force", -600, []),
        log_row("p", "collected later", 100, [], observed_at=at(500)),
        log_row("p", "written later", 120, [], observed_at=at(100)),
        log_row("p", "of unknown time", 0, [], logged_at=None, observed_at=at(100)),
        log_row("p", "of unknown later time", 0, [], logged_at=None, observed_at=at(120)),
    ],
)
ALL = set(STATES["client_id"].to_pylist())


def kept(window: Window) -> set[str]:
    """The clients whose rows a window has."""
    rows = ds.dataset(STATES)
    filtered = rows.to_table(filter=window.filter_of(CLIENT_STATES, rows.schema))
    return set(filtered["client_id"].to_pylist())


def test_running_infos_are_those_of_the_window_and_log_lines_those_up_to_its_end() -> None:
    lines = {"still in force", "collected later", "of unknown time"}
    assert kept(Window(at(60), at(120))) == {"within"} | lines
    assert kept(Window(until=at(120))) == {"early", "within"} | lines
    assert kept(Window(at(60))) == ALL - {"early"}
    assert kept(Window()) == ALL


@pytest.mark.parametrize(
    ("window", "times"),
    [
        (Window(at(60), at(120)), [60]),
        (Window(since=at(60)), [60, 120]),
        (Window(until=at(60)), [0]),
        (Window(at(60), at(120)).earlier(60), [0, 60]),
        # Nothing is earlier than no beginning.
        (Window(until=at(120)).earlier(60), [0, 60]),
        (Window(), [0, 60, 120]),
    ],
)
def test_a_window_has_its_beginning_and_not_its_end(window: Window, times: list[int]) -> None:
    listed = table(HEARTBEATS, [heartbeat_row(snapshot_time=at(each)) for each in (0, 60, 120)])
    came = listed.filter(window.filter_of(HEARTBEATS, listed.schema))
    assert came["snapshot_time"].to_pylist() == [at(each) for each in times]


@pytest.mark.parametrize(
    ("until", "date"),
    [
        (datetime.fromisoformat("2026-01-06T00:00:00+00:00"), "2026-01-05"),
        (datetime.fromisoformat("2026-01-06T00:00:00.000001+00:00"), "2026-01-06"),
        # Nothing is before it.
        (datetime.fromisoformat("0001-01-01T00:00:00+00:00"), "0001-01-01"),
        (None, None),
    ],
)
def test_the_last_date_of_a_window_is_that_of_its_last_instant(
    until: datetime | None, date: str | None
) -> None:
    assert Window(until=until).last_date == date
