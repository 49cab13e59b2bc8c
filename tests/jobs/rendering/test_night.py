"""The night in one picture: its numbers are those of the tables, and it can be read as a text."""

from __future__ import annotations

import re
from typing import Any

import pytest

from jobs.rendering.drawings import NARROW, WIDE
from jobs.rendering.night import NightPicture, draw_night, read_night
from jobs.rendering.page import to_html
from jobs.rendering.page_values import build_report
from tests.support.published import RowTables, fault, finding, health, minute, published

WINDOW = {"first_snapshot": "2026-11-20T10:00:00Z", "last_snapshot": "2026-11-20T11:00:00Z"}
EVENT = {"kind": "MASTER_LEFT", "begins": minute(30), "headline": "<b> left", "findings": 0}
COSTS = {"event_id": "e", "groups_touched": 2, "queues_lost": 0, "queues_read_twice": 0}
PASSED = {"severity": "INFO", "persistence": "TRANSIENT", "ongoing": False}


def night(events: int = 0, **tables: list[dict[str, Any]]) -> NightPicture | None:
    given = {"group_health": [health()], "events": [EVENT | COSTS] * events} | tables
    return build_report(published(window=WINDOW), RowTables(**given), 10).night


def between(first: int, last: int, **values: Any) -> dict[str, Any]:
    return finding(first_seen=minute(first), last_seen=minute(last), **values)


def shown(found: NightPicture | None, severity: str) -> list[tuple[int, int]]:
    """How many topics, from which minute on."""
    assert found is not None
    numbers = found.topics[severity]
    assert len(numbers) == 120
    steps = [(n // 2, each) for n, each in enumerate(numbers)]
    return [each for n, each in enumerate(steps) if not n or steps[n - 1][1] != each[1]]


def test_a_topic_counts_once_by_its_worst_while_it_was_seen() -> None:
    rows = [
        between(10, 40, queue_id=0),
        between(20, 50, queue_id=1),
        between(5, 55, queue_id=2, severity="WARNING"),
        between(30, 60, topic="U", severity="WARNING"),
    ]
    found = night(orphaned_queues=rows)
    assert shown(found, "CRITICAL") == [(0, 0), (10, 1), (50, 0)]
    assert shown(found, "WARNING") == [(0, 0), (5, 1), (10, 0), (30, 1), (50, 2), (55, 1)]


def test_what_passed_is_apart_and_a_known_issue_and_a_shown_fault_are_in_nothing() -> None:
    rows = [
        between(10, 12, **PASSED),
        between(0, 60, topic="K", known_issue="OPS-1"),
        between(10, 40, topic="F", causes=["GHOST_MEMBER"]),
    ]
    of_queue = {"first_seen": minute(0), "last_seen": minute(60), "topic": "F"}
    faults = [fault("GHOST_MEMBER", queues_affected=3, **of_queue)]
    found = night(orphaned_queues=rows, group_faults=faults)
    assert shown(found, "INFO") == [(0, 0), (10, 1), (12, 0)]
    assert shown(found, "CRITICAL") == [(0, 0), (10, 1), (40, 0)]
    assert shown(found, "WARNING") == [(0, 0)]


def test_what_waits_is_that_of_the_polls_of_offsets() -> None:
    def over_time(*points: tuple[int, int]) -> dict[str, Any]:
        polls = [{"at": minute(at), "messages": messages} for at, messages in points]
        return {"backlog_over_time": polls}

    tables = RowTables(orphaned_queues=[between(0, 60)])
    of_topics = [
        over_time((0, 10), (30, 500), (59, 1_000)),
        over_time((20, 7), (60, 8)),
        over_time(),
    ]
    tables._tables["problems"] = of_topics
    found = read_night(tables, published(window=WINDOW).summary, ())  # type: ignore[arg-type]
    assert found is not None
    assert [found.waiting[minutes * 2] for minutes in (0, 19, 31, 59)] == [17, 17, 507, 1_007]
    assert found.waiting[-1] == 1_008


@pytest.mark.parametrize("frame", [WIDE, NARROW])
def test_the_picture_lies_within_its_frame_and_says_what_it_shows(frame: Any) -> None:
    drawing = draw_night(_full(), frame)
    assert "lasting faults in up to 1 topic at once (at 10:10)" in drawing.description
    assert "1 event has a mark" in drawing.description
    for shape in drawing.shapes:
        for x, y in re.findall(r"M([\d.]+) ([\d.]+)", shape.path):
            assert 0 <= float(x) <= frame.width
            assert 0 <= float(y) <= drawing.height
    assert [each.title for each in drawing.shapes if each.css == "event"] == ["<b> left"]


def _full() -> NightPicture:
    found = night(1, orphaned_queues=[between(10, 40)])
    assert found is not None
    return found


def test_a_night_in_which_nothing_was_found_has_no_picture() -> None:
    assert night() is None
    assert night(1) is not None
    run = published(window=WINDOW)
    html = to_html(build_report(run, RowTables(group_health=[health()]), 10), "r")
    assert 'class="night"' not in html
