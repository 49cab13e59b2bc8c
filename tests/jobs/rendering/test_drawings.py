"""The pictures' shapes: each where its time and its queue are, and like what it stands for."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise

import pytest

from jobs.rendering.drawings import NARROW, WIDE, Canvas, Drawing, draw_allocation, draw_timeline
from jobs.rendering.pictures import (
    AfterRepair,
    Handover,
    Lane,
    Mark,
    Ownership,
    Span,
    Taker,
    TimelinePicture,
)
from jobs.reports.run_findings import PlaceQueue
from jobs.texts.shown import display_width
from tests.support.published import minute

Box = tuple[int, int, int, int]


def picture(
    *lanes: Lane,
    until: float = 60,
    changes: tuple[Handover, ...] = (),
    faults: Mapping[str, Sequence[Span]] | None = None,
) -> Drawing:
    """The drawing of these lanes, from minute 0 on; a, b and c are 1, 2 and 3."""
    times, clients = (minute(0), minute(until)), frozenset("abc")
    timeline = TimelinePicture(*times, lanes, 0, changes, faults or {}, clients)
    return draw_timeline(timeline, {"a": 1, "b": 2, "c": 3})


def lane(number: int, *marks: Mark, takers: tuple[Taker, ...] = (), until: float = 60) -> Lane:
    periods = (Ownership(minute(0), minute(until), takers),)
    return Lane(PlaceQueue("broker-a", number), periods, marks)


def mark(kind: str, first: float, last: float, **values: bool) -> Mark:
    told = {"possible": False, "lasts": True, **values}
    return Mark(kind, minute(first), minute(last), **told)


def boxes(drawing: Drawing, css: str) -> list[Box]:
    """Left, top, right and bottom of the rectangles of a class, and of lines without a height."""
    paths = "".join(shape.path for shape in drawing.shapes if shape.css == css)
    found = re.findall(r"M(\d+) (\d+)h(\d+)(?:v(\d+)h-\d+z)?", paths)
    return [(int(x), int(y), int(x) + int(w), int(y) + int(h or 0)) for x, y, w, h in found]


def places(drawing: Drawing, css: str) -> dict[str, tuple[float, float]]:
    return {label.text: (label.x, label.y) for label in drawing.labels if label.css == css}


def test_what_is_drawn_lies_where_its_time_and_its_queue_are() -> None:
    drawing = picture(
        lane(0, mark("ORPHANED", 20, 40)),
        lane(7, mark("DUPLICATE", 30, 90)),
        changes=(Handover(minute(20), "-", "b left"), Handover(minute(40), "+", "b joined")),
        faults={"GHOST_MEMBER": [(minute(20), minute(40))]},
    )
    ticks = {text: round(x) for text, (x, _) in places(drawing, "tick").items()}
    assert list(ticks) == [f"10:{m:02}:00" for m in range(0, 60, 10)] + ["11:00:00"]
    ((left, top, right, bottom),) = boxes(drawing, "mark orphaned")
    assert (left, right) == (ticks["10:20:00"], ticks["10:40:00"])
    ((_, lower_top, end, lower_bottom),) = boxes(drawing, "mark duplicate")
    assert end == ticks["11:00:00"]  # no further than the picture
    names = places(drawing, "name")
    assert top < names["broker-a 0"][1] < bottom < lower_top < names["broker-a 7"][1] < lower_bottom
    ((left, fault_top, right, fault_bottom),) = boxes(drawing, "fault")
    assert (left, right) == (ticks["10:20:00"], ticks["10:40:00"])
    lane_of_changes = names["joined ▲ left ▼"][1]
    assert fault_top < names["GHOST_MEMBER"][1] < fault_bottom + 2 < lane_of_changes < top
    signs = [shape.path for shape in drawing.shapes if shape.css == "change"]
    assert [round(float(path[1:].split()[0])) for path in signs] == [left, right]
    assert [path.partition("m")[2] for path in signs] == ["0 5l5-9h-10z", "0-5l5 9h-10z"]
    for run, y in zip(boxes(drawing, "run none"), (top + bottom, lower_top + lower_bottom),
                      strict=True):  # fmt: skip
        assert run == (ticks["10:00:00"], y // 2, ticks["11:00:00"], y // 2)
    assert lower_bottom < min(y for _, y in places(drawing, "tick").values()) < drawing.height


def test_marks_tell_certain_from_possible_and_lasting_from_passing() -> None:
    drawing = picture(
        lane(0, mark("ORPHANED", 0, 30), mark("STALLED", 30, 60)),
        lane(1, mark("ORPHANED", 0, 30, possible=True), mark("DUPLICATE", 0, 30, possible=True)),
        lane(2, mark("DUPLICATE", 0, 30, lasts=False), mark("ORPHANED", 30, 30, lasts=False)),
    )
    upper, whole = sorted(boxes(drawing, "mark orphaned"), key=lambda box: box[3] - box[1])
    (lower,) = boxes(drawing, "mark duplicate")
    (foot,) = boxes(drawing, "mark stalled")
    assert (upper[3] - upper[1], lower[3] - lower[1]) == (8, 8)
    assert whole[3] - whole[1] == 16
    assert upper[3] == lower[1] == upper[1] + 8
    assert whole[1] < foot[1] < foot[3] <= whole[3] + 1
    assert boxes(drawing, "mark duplicate passed")[0][3] > lower[3]
    ((left, _, right, _),) = boxes(drawing, "mark orphaned passed")
    assert right == left + 3  # what was seen once can be seen
    titles = {shape.css: shape.title for shape in drawing.shapes if shape.css.startswith("mark")}
    assert titles["mark duplicate"] == "at times duplicate"
    assert titles["mark orphaned passed"] == "orphaned, for a moment"
    # An orphan says so in words where there is room, and nothing of the sort where it is possible.
    assert [each.text for each in drawing.labels if each.css == "nobody"] == ["✕ nobody"]
    narrow = picture(lane(0, mark("ORPHANED", 0, 3)), lane(1, mark("ORPHANED", 0, 0.5)))
    assert list(places(narrow, "nobody")) == ["✕"]


@pytest.mark.parametrize(
    ("takers", "text", "css"),
    [
        ((), None, "run none"),
        ((Taker("b", 1, 1.0),), "2", "run o2"),
        ((Taker("a", 2, 1.0),), "1x2", "run o1"),
        ((Taker("b", 1, 1.0), Taker("a", 1, 1.0)), "1+2", "run several"),
        ((Taker("c", 1, 0.75), Taker("a", 1, 0.25)), "1/3", "run several"),
        ((Taker("c", 1, 0.25),), "3", "run o3"),
    ],
    ids=str,
)
def test_a_cell_has_the_colour_and_the_number_of_its_owner(
    takers: tuple[Taker, ...], text: str | None, css: str
) -> None:
    drawing = picture(lane(0, takers=takers))
    assert list(places(drawing, "owner")) == ([text] if text else [])
    assert boxes(drawing, css)
    # No number where there is no room for it, and another one where a mark lies under it.
    assert not places(picture(lane(0, takers=takers, until=1)), "owner")
    marked = picture(lane(0, mark("STALLED", 59, 60), takers=takers))
    assert list(places(marked, "marked")) == ([text] if text else [])
    after = picture(lane(0, mark("STALLED", 30, 60), takers=takers, until=30))
    assert list(places(after, "owner")) == ([text] if text else [])


@pytest.mark.parametrize(
    ("minutes", "first", "last", "number"),
    [
        (0.1, "10:00:00", "10:00:06", 7),
        (5, "10:00:00", "10:05:00", 6),
        (14, "10:00:00", "10:10:00", 3),
        (60, "10:00:00", "11:00:00", 7),
        (90, "10:00", "11:30", 7),
        (24 * 60, "12:00", "06:00", 4),
        (25 * 60, "11-20 12:00", "11-21 06:00", 4),
        (20 * 24 * 60, "11-23 00:00", "12-09 00:00", 5),
    ],
)
def test_ticks_are_round_times(minutes: float, first: str, last: str, number: int) -> None:
    drawing = picture(lane(0, until=minutes), until=minutes)
    labels = [label for label in drawing.labels if label.css == "tick"]
    assert (labels[0].text, labels[-1].text) == (first, last)
    assert len(labels) == number
    # Whole, the last one too: half of each lies to its right.
    assert all(172 <= label.x <= drawing.width - len(label.text) * 6.7 / 2 for label in labels)
    (axis,) = (shape.path for shape in drawing.shapes if shape.css == "axis")
    assert axis.count("M") == len(labels)


def test_without_changes_there_is_no_lane_for_them() -> None:
    assert "joined ▲ left ▼" not in places(picture(lane(0)), "name")
    drawing = picture(lane(0), changes=(Handover(minute(1), "*", "both"),))
    (change,) = (shape for shape in drawing.shapes if shape.css == "change")
    assert change.title == "10:01:00 both"
    assert change.path.endswith("m0-6l5 6l-5 6l-5-6z")


# ---------------------------------------------------------------- the allocation


def repair(
    now: list[tuple[str, ...]], then: list[tuple[str, ...]], takers: tuple[str, ...]
) -> AfterRepair:
    queues = tuple(PlaceQueue("broker-a" if n < 2 else "broker-b", n) for n in range(len(now)))
    return AfterRepair(
        fault={"fault": "STRATEGY_MISMATCH", "findings_left": 0},
        takers=takers,
        queues=queues,
        queues_left_out=0,
        now=dict(zip(queues, now, strict=True)),
        then=dict(zip(queues, then, strict=True)),
    )


def test_the_allocation_marks_what_is_wrong_and_frames_what_moves() -> None:
    at_times = "a (at times)"
    changed = repair(
        [("a", "a"), ("a", "b"), (at_times,), ()],
        [("a",), ("a", "b"), ("b",), ("c (process 2)",)],
        ("a", "b", "c (process 2)"),
    )
    numbers = {"a": 1, "b": 2, "c": 3}
    now = draw_allocation(changed, numbers, repaired=False)
    then = draw_allocation(changed, numbers, repaired=True)
    assert (now.title, then.title) == ("As it is", "After the repair")
    columns = {text: round(x) for text, (x, _) in places(now, "tick").items() if text.isdigit()}
    rows = {text: y for text, (_, y) in places(now, "name").items()}
    assert list(rows) == ["1 a", "2 b", "3 c (process 2)", "nobody"]

    def cells(drawing: Drawing, css: str) -> list[tuple[str, str]]:
        """Row and column of each cell of a class."""
        return sorted(
            (row.split()[-1], column)
            for left, top, right, bottom in boxes(drawing, css)
            for row, y in rows.items()
            for column, x in columns.items()
            if left < x < right and top < y < bottom
        )

    assert cells(now, "mark duplicate") == [("a", "0"), ("a", "1"), ("b", "1")]
    assert cells(then, "mark duplicate") == [("a", "1"), ("b", "1")]
    assert cells(now, "mark orphaned") == [("nobody", "3")]
    assert list(places(now, "nobody")) == ["✕"]
    assert cells(then, "mark orphaned") == []
    assert cells(now, "o1") == [("a", "0"), ("a", "1"), ("a", "2")]
    assert cells(then, "o3") == [("2)", "3")]
    assert cells(now, "moved") == []
    assert cells(then, "moved") == [("2)", "3"), ("a", "0"), ("b", "2")]
    signs = sorted(label.text for label in now.labels if label.css == "owner")
    assert signs == ["2", "~", "●", "●"]
    # What lies over the cells is drawn after them.
    order = [shape.css.split()[0] for shape in then.shapes]
    assert order.index("mark") > order.index("cells")
    assert order[-1] == "moved"
    assert now.description == "3 clients and 4 queues: 1 with nobody, 2 with several"
    brokers = [label.title for label in now.labels if label.title.startswith("broker")]
    assert brokers == ["broker-a", "broker-b"]


def test_of_many_clients_those_that_the_repair_concerns_are_drawn() -> None:
    takers = tuple(f"c{number:02}" for number in range(40))
    stay = [(taker,) for taker in takers[:35]]
    concerned = repair([*stay, ("c39",)], [*stay, ("c38",)], takers)
    drawing = draw_allocation(concerned, {}, repaired=True)
    names = list(places(drawing, "name"))
    assert len(names) == 31
    assert names[-3:] == ["c38", "c39", "nobody"]
    assert "30 clients and 36 queues" in drawing.description
    assert drawing.description.endswith("; 10 clients not drawn")


@pytest.mark.parametrize(
    ("name", "begin", "end"),
    [
        ("10.0.2.10@an-application-of-a-long-name#1", "1 10.0.2.10@", "ong-name#1"),
        # A Chinese character is wider than a Latin one: counted as one, it would be cut off.
        ("10.0.2.10@" + "订单消费者" * 5, "1 10.0.2.10@订", "费者"),
    ],
)
def test_a_long_name_is_cut_and_whole_in_its_title(name: str, begin: str, end: str) -> None:
    drawing = draw_allocation(repair([(name,)], [(name,)], (name,)), {name: 1}, repaired=False)
    (label, *_) = (label for label in drawing.labels if label.css == "name")
    assert label.title == f"1 {name}"
    assert label.text.startswith(begin)
    assert label.text.endswith(end)
    assert display_width(label.text) in ((31,) if label.text.isascii() else (29, 30, 31))


def test_a_time_before_or_after_the_picture_lies_at_its_edge() -> None:
    early = mark("ORPHANED", -10, 10)
    ((left, _, _, _),) = boxes(picture(lane(0, early)), "mark orphaned")
    assert left == 172
    instant = TimelinePicture(minute(0), minute(0), (lane(0),), 0, (), {}, frozenset())
    assert draw_timeline(instant, {}).height > 0


@pytest.mark.parametrize("frame", [WIDE, NARROW], ids=["wide", "narrow"])
@pytest.mark.parametrize("minutes", [1, 59, 24 * 60, 40 * 24 * 60])
def test_nothing_lies_beyond_the_edge_of_a_timeline(frame: Canvas, minutes: float) -> None:
    lanes = (lane(0, mark("ORPHANED", 0, minutes), takers=(Taker("a", 1, 1.0),), until=minutes),)
    times = (minute(0), minute(minutes))
    change = Handover(minute(minutes), "+", "b joined")
    faults = {"SUBSCRIPTION_MISMATCH": [times]}
    timeline = TimelinePicture(*times, lanes, 0, (change,), faults, frozenset("abc"))
    drawing = draw_timeline(timeline, {"a": 1}, frame)
    for label in drawing.labels:
        width = len(label.text) * 6.7
        left = {"name": label.x - width}.get(label.css, label.x - width / 2)
        assert left >= 0, label
        assert left + width <= drawing.width, label
    ticks = sorted((label.x, len(label.text)) for label in drawing.labels if label.css == "tick")
    assert len(ticks) >= 1
    for (x, characters), (following, others) in pairwise(ticks):
        assert following - x > (characters + others) / 2 * 6.7
    assert drawing.width == frame.width
