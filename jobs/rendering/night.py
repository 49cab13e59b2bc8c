"""The night in one picture: what happened, in how many topics something was wrong, what waited.

Time across. Its numbers are those of the published tables: when findings were seen, the messages at
the polls of offsets.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np

from rebalance_core.english import agreeing, count, joined
from rebalance_core.texts import Text

from ..declared.kinds import CRITICAL, GRADED_TABLES, INFO, WARNING
from ..reports.run_findings import LeadingEvent
from ..reports.tables import PLACE, PublishedTables, place_of
from ..schemas import GROUP_FAULTS, PROBLEMS
from .drawings import Canvas, Drawing, Label, Shape, across, clock, ticks_between

#: The steps of time: a telephone shows no more.
_STEPS = 120
#: The severities that a topic can have in a step, the worst first.
_WORST_FIRST = (CRITICAL, WARNING, INFO)
_LASTING = _WORST_FIRST[:2]
#: Heights, in pixels: of the lane of events, of a chart, between two, below the last one.
_EVENTS, _CHART, _BETWEEN, _BELOW = 22.0, 64.0, 16.0, 24.0
#: Room at the right for half of the last time.
_RIGHT = 24.0
#: An event that is so short is drawn so broad.
_LEAST = 3.0


class NightPicture(NamedTuple):
    """The values of the picture, in steps of equal length from the first snapshot to the last.

    ``topics``: by severity, in how many topics of a group something of it was seen in a step, and
    nothing worse; WARNING and CRITICAL last and are no known issue, INFO is what passed, or was too
    new or too improbable to count. ``waiting``: the messages not consumed at the end of each step
    in the topics in which something counts; empty: no offsets came.
    """

    begins: datetime
    ends: datetime
    topics: Mapping[str, tuple[int, ...]]
    waiting: tuple[int, ...]
    events: Sequence[LeadingEvent]

    @property
    def sentence(self) -> str:
        """The picture in words, whose times are below the axis."""
        return self._said(timed=False)

    @property
    def description(self) -> str:
        """The same with the times, for who cannot see the axis."""
        return self._said(timed=True)

    def _said(self, *, timed: bool) -> str:
        def at(what: str, numbers: Sequence[int]) -> str:
            place = numbers.index(max(numbers)) + 1
            time = self.begins + (self.ends - self.begins) * place / _STEPS
            return Text("{what} (at {at:minute})", what=what, at=time) if timed else what

        lasting = (self.topics[severity] for severity in _LASTING)
        wrong = [sum(numbers) for numbers in zip(*lasting, strict=True)]
        parts = []
        if most := max(wrong):
            what = Text("lasting faults in up to {topics} at once", topics=count(most, "topic"))
            parts.append(at(what, wrong))
        if most := max(self.topics[INFO]):
            template = "what passed or does not count in up to {topics} at once"
            parts.append(at(Text(template, topics=count(most, "topic")), self.topics[INFO]))
        if self.waiting:
            first, last = (count(self.waiting[step], "message") for step in (0, -1))
            template = "in topics with lasting faults {first} waited at first, {last} at the end"
            parts.append(Text(template, first=first, last=last))
        if events := len(self.events):
            template = "{events} [has a mark|have marks]"
            parts.append(agreeing(events, template, events=count(events, "event")))
        return joined(parts)


def read_night(
    tables: PublishedTables, summary: Mapping[str, Any], events: Sequence[LeadingEvent]
) -> NightPicture | None:
    """The values of a run; None where nothing was found or happened, or in no time."""
    window = summary["window"]
    first_seen, last_seen = window.get("first_snapshot"), window.get("last_snapshot")
    if not first_seen or first_seen == last_seen:
        return None
    begins, ends = datetime.fromisoformat(first_seen), datetime.fromisoformat(last_seen)
    topics = _topics(tables, begins, ends)
    if not events and not any(map(any, topics.values())):
        return None
    return NightPicture(begins, ends, topics, _waiting(tables, begins, ends), events)


def _topics(
    tables: PublishedTables, begins: datetime, ends: datetime
) -> dict[str, tuple[int, ...]]:
    seen = {severity: defaultdict[Any, Any](_no_step) for severity in _WORST_FIRST}
    seconds = (ends - begins).total_seconds()

    def step(time: datetime) -> int:
        return min(max(int((time - begins).total_seconds() / seconds * _STEPS), 0), _STEPS - 1)

    for name in GRADED_TABLES:
        columns = [*PLACE, "severity", "first_seen", "last_seen"]
        counts = ["known_issue", *(["is_finding"] if name == GROUP_FAULTS.name else [])]
        rows = tables.read(name, [*columns, *counts])
        # A table has a row a queue: there may be a million.
        for row in rows.group_by([*columns, *counts]).aggregate([]).to_pylist():
            if row["known_issue"] is None and row.get("is_finding", True):
                steps = seen[row["severity"]][place_of(row)]
                steps[step(row["first_seen"]) : step(row["last_seen"]) + 1] = True
    topics, worse = {}, defaultdict[Any, Any](_no_step)
    for severity in _WORST_FIRST:
        number = np.zeros(_STEPS, np.int64)
        for place, steps in seen[severity].items():
            number += steps & ~worse[place]
            worse[place] = worse[place] | steps
        topics[severity] = tuple(number.tolist())
    return topics


def _no_step() -> "np.ndarray[Any, np.dtype[np.bool_]]":
    return np.zeros(_STEPS, bool)


def _waiting(tables: PublishedTables, begins: datetime, ends: datetime) -> tuple[int, ...]:
    column = tables.read(PROBLEMS.name, ["backlog_over_time"])["backlog_over_time"]
    step_ends = [begins + (ends - begins) * step / _STEPS for step in range(1, _STEPS + 1)]
    every = [points for points in column.to_pylist() if points]
    total = np.zeros(_STEPS, np.int64)
    for points in every:
        times = [point["at"] for point in points]
        messages = np.array([point["messages"] for point in points], np.int64)
        # Offsets of the last round may come a moment after its lists.
        last_ones = np.searchsorted(times, [*step_ends[:-1], max(ends, times[-1])], "right") - 1
        total += messages[np.maximum(last_ones, 0)]
    return tuple(total.tolist()) if every else ()


def draw_night(night: NightPicture, frame: Canvas) -> Drawing:
    """Events in a lane, below them a chart of topics, one of what passed, one of what waited."""
    left, right = frame.left, frame.width - _RIGHT
    at = across(night.begins, night.ends, left, right)
    shapes: list[Shape] = []
    labels: list[Label] = []
    y = 4.0
    if night.events:
        labels.append(Label("name", left - 8, y + 13, Text("events")))
        for event in night.events:
            x = at(event.begins)
            width = max(at(event.ends or night.ends) - x, _LEAST)
            path = f"M{x:.0f} {y + 5:.0f}h{width:.0f}v8h-{width:.0f}z"
            shapes.append(Shape("event", path, event.headline))
            shapes.append(Shape("since", f"M{x:.0f} {y + 13:.0f}V{{bottom}}"))
        y += _EVENTS
    charts: list[tuple[str, list[tuple[str, Sequence[int]]]]] = [
        (Text("topics wrong"), [(s.lower(), night.topics[s]) for s in _LASTING]),
        (Text("passed"), [("info", night.topics[INFO])]),
        (Text("waiting"), [("messages", night.waiting)]),
    ]
    for name, layers in charts:
        heights = map(sum, zip(*(values for _, values in layers), strict=True))
        highest = max(heights, default=0)
        if not highest:
            continue
        shapes += _stacked(layers, highest, (left, right, y, y + _CHART))
        labels += [
            Label("name", left - 8, y + 10, f"{highest:,}"),
            Label("name", left - 8, y + _CHART / 2 + 5, name),
            Label("name", left - 8, y + _CHART, "0"),
        ]
        y += _CHART + _BETWEEN
    bottom = y - _BETWEEN + 6 if len(labels) > 1 else y
    ticks = ticks_between(night.begins, night.ends, frame.ticks + 1)
    marks = "".join(f"M{at(tick):.0f} {bottom:.0f}v5" for tick in ticks)
    shapes.append(Shape("axis", f"M{left:.0f} {bottom:.0f}H{right:.0f}{marks}"))
    for tick in ticks:
        time = clock(tick, night.begins, night.ends)
        labels.append(Label("tick", at(tick), bottom + 17, time, time=tick))
    return Drawing(
        width=frame.width,
        height=bottom + _BELOW,
        title=Text("The night: events, topics with something wrong, messages waiting"),
        description=night.description,
        shapes=tuple(
            shape._replace(path=shape.path.replace("{bottom}", f"{bottom:.0f}")) for shape in shapes
        ),
        labels=tuple(labels),
    )


def _stacked(
    layers: Iterable[tuple[str, Sequence[int]]],
    highest: int,
    box: tuple[float, float, float, float],
) -> list[Shape]:
    """Areas of steps one above the other, the first at the foot; a path each."""
    left, right, top, bottom = box
    width, scale = (right - left) / _STEPS, (bottom - top) / highest
    foot = [0] * _STEPS
    shapes = [Shape("foot", f"M{left:.0f} {bottom:.0f}H{right:.0f}")]
    for css, values in layers:
        path = []
        for step, value in enumerate(values):
            if value:
                x, y = left + step * width, bottom - foot[step] * scale
                # What is there can be seen, however little of the whole it is.
                height = max(value * scale, 1.0)
                path.append(f"M{x:.1f} {y:.1f}h{width:.1f}v-{height:.1f}h-{width:.1f}z")
                foot[step] += value
        shapes.append(Shape(f"area {css}", "".join(path)))
    return shapes
