"""What of the snapshot tables a window has."""

from __future__ import annotations

import pytest

from jobs.pipeline.audit import Window
from jobs.schemas import CLIENT_STATES
from tests.support.snapshots import at, frame, info_row, log_row

pytestmark = pytest.mark.spark


def test_running_infos_are_those_of_the_window_and_log_lines_those_up_to_its_end(spark):
    states = frame(
        spark,
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

    def kept(window):
        return {row["client_id"] for row in window.cut_client_states(states).collect()}

    lines = {"still in force", "collected later", "of unknown time"}
    assert kept(Window(at(60), at(120))) == {"within"} | lines
    assert kept(Window(until=at(120))) == {"early", "within"} | lines
    assert kept(Window(at(60))) == {row["client_id"] for row in states.collect()} - {"early"}
