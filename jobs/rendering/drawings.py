"""Pictures as shapes with coordinates: what the templates write down as SVG.

One path holds all cells of one owner, so that a picture of a day stays small. Colour is never
alone: owners have numbers, orphans a lattice and a cross, duplicates stripes.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from rebalance_core.english import count, with_commas
from rebalance_core.grouping import grouped
from rebalance_core.texts import Text

from ..declared.kinds import kind_of
from ..reports.run_findings import PlaceQueue
from ..reports.words import in_words
from ..texts.shown import beginning, display_width
from . import pictures
from .pictures import client_of, is_at_times, named_taker, whole

#: The number of colours of owners; the number in a cell distinguishes those of one colour.
COLOURS = 12
_LEFT = 172.0
#: Room for half of the last time below a timeline.
_RIGHT = 40.0
_LANE = 18.0
_CELL = 20.0
_CHARACTER = 6.7
#: The most takers that a picture of an allocation has rows for.
_MOST_TAKERS = 30
#: The characters of a taker's name that fit beside it.
_NAME = 31
#: The words for a mark, by kind, always and at times.
_MARKED = {
    "ORPHANED": (Text("orphaned"), Text("at times orphaned")),
    "DUPLICATE": (Text("duplicate"), Text("at times duplicate")),
    "STALLED": (Text("stalled"), Text("at times stalled")),
}


class Canvas(NamedTuple):
    """The size of a timeline, in pixels.

    ``ticks``: so many steps of time fit; ``longest_name``: so many characters of a name do.
    """

    width: float
    left: float
    ticks: int
    longest_name: int


WIDE = Canvas(width=960, left=_LEFT, ticks=6, longest_name=24)
#: The canvas for a telephone, on which nothing is to lie beyond the edge.
NARROW = Canvas(width=344, left=110, ticks=2, longest_name=15)


class Shape(NamedTuple):
    """A path with a class, and a title where it shows more than its neighbours."""

    css: str
    path: str
    title: str = ""


class Label(NamedTuple):
    """A short text at a place; ``time``: the moment that it gives."""

    css: str
    x: float
    y: float
    text: str
    title: str = ""
    time: datetime | None = None


class Drawing(NamedTuple):
    """A picture: its size, its name, what it shows in words, what is drawn, from back to front."""

    width: float
    height: float
    title: str
    description: str
    shapes: tuple[Shape, ...]
    labels: tuple[Label, ...]

    @property
    def label_groups(self) -> dict[str, list[Label]]:
        """The labels by class."""
        return grouped((label.css, label) for label in self.labels)


def colour(number: int) -> str:
    """The class of the colour of an owner's number."""
    return f"o{number % COLOURS}"


def shorten(text: str, longest: int) -> str:
    """The text with its middle left out, in so many columns: a Chinese character takes two.

    >>> shorten("10.0.2.10@application-DUP", 12), shorten("订单消费者组", 8)
    ('10.0.2…n-DUP', '订单…组')
    """
    if display_width(text) <= longest:
        return text
    head = longest // 2
    tail = beginning(text[::-1], longest - head - 1)[::-1]
    return f"{beginning(text, head)}…{tail}"


def across(
    begins: datetime, ends: datetime, left: float, right: float
) -> Callable[[datetime], float]:
    """Makes the function that gives a time its place between two edges, where outer ones end."""
    seconds = max((ends - begins).total_seconds(), 1.0)

    def at(time: datetime) -> float:
        share = (time - begins).total_seconds() / seconds
        return left + min(max(share, 0.0), 1.0) * (right - left)

    return at


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _box(x: float, y: float, width: float, height: float) -> str:
    """A rectangle, in whole pixels."""
    left, right = round(x), max(round(x + width), round(x) + 1)
    return f"M{left} {round(y)}h{right - left}v{round(height)}h{left - right}z"


def _run(start: float, end: float, y: float) -> str:
    """A lane's period, as a line as broad as the lane: half as long to write as a rectangle."""
    left, right = round(start), round(end)
    return f"M{left} {round(y)}h{right - left}" if right > left else ""


def draw_timeline(
    timeline: pictures.TimelinePicture, numbers: Mapping[str, int], frame: Canvas = WIDE
) -> Drawing:
    """Time across, queues down; a lane above them for each fault and one for who came and left.

    ``numbers`` has the number of each owner.
    """
    begins, ends = timeline.begins, timeline.ends
    at = across(begins, ends, frame.left, frame.width - _RIGHT)
    names_end = frame.left - 6
    shapes: list[Shape] = []
    labels: list[Label] = []
    y = 2.0
    for fault, periods in timeline.faults.items():
        labels.append(Label("name", names_end, y + 13, shorten(fault, frame.longest_name), fault))
        path = "".join(_box(at(s), y + 4, max(at(e) - at(s), 3.0), _LANE - 8) for s, e in periods)
        shapes.append(Shape("fault", path, kind_of(fault).title))
        y += _LANE
    if timeline.changes:
        labels.append(Label("name", names_end, y + 13, Text("joined ▲ left ▼")))
        for change in timeline.changes:
            title = Text("{time} {change}", time=clock(change.at, begins, ends), change=change.text)
            shapes.append(Shape("change", _sign(change.sign, at(change.at), y + 9), title))
        y += _LANE
    top = y + 2
    runs: list[Shape] = []
    marks: list[Shape] = []
    for number, lane in enumerate(timeline.lanes):
        y = top + number * _LANE
        name = f"{lane.queue.broker_name} {lane.queue.queue_id}"
        labels.append(Label("name", names_end, y + 13, shorten(name, frame.longest_name), name))
        for period in lane.periods:
            x, width = at(period.begins), at(period.ends) - at(period.begins)
            owners = _numbers(period.takers, numbers)
            css = _owner_class(period.takers, numbers)
            runs.append(Shape(f"run {css}", _run(x, x + width, y + _LANE / 2)))
            if owners and max(len(owners) * _CHARACTER + 4, 18) <= width:
                is_marked = any(
                    m.begins < period.ends and period.begins < m.ends for m in lane.marks
                )
                css = "marked" if is_marked else "owner"
                labels.append(Label(css, x + width / 2, y + 13, owners))
        for mark in lane.marks:
            x, width = at(mark.begins), max(at(mark.ends) - at(mark.begins), 3.0)
            marks.append(_mark(mark, x, y, width))
            if mark.kind == "ORPHANED" and not mark.possible and width >= 12:
                sign = Text("✕ nobody") if width >= 90 else "✕"
                labels.append(Label("nobody", x + width / 2, y + 13, sign))
    bottom = top + len(timeline.lanes) * _LANE
    ticks = ticks_between(begins, ends, frame.ticks)
    shapes += [*_joined(runs), *_joined(marks)]
    shapes.append(Shape("axis", "".join(f"M{_number(at(t))} {_number(bottom)}v5" for t in ticks)))
    labels += [Label("tick", at(t), bottom + 17, clock(t, begins, ends), time=t) for t in ticks]
    found = Counter(mark.kind for lane in timeline.lanes for mark in lane.marks)
    marked = [
        Text("{periods} {kind}", periods=count(n, "period"), kind=in_words(kind))
        for kind, n in sorted(found.items())
    ]
    return Drawing(
        width=frame.width,
        height=bottom + 24,
        title=Text("Who consumed which queue, and when"),
        description=Text(
            "{queues} from {begins} to {ends} {zone}, {owners}; {marked}. "
            "The table of findings says the same in words.",
            queues=count(len(timeline.lanes), "queue"),
            begins=clock(begins, begins, ends),
            ends=clock(ends, begins, ends),
            zone=Text("{at:offset}", at=ends),
            owners=count(len(timeline.client_ids), "owner"),
            marked=with_commas(marked) or Text("nothing marked"),
        ),
        shapes=tuple(shapes),
        labels=tuple(labels),
    )


def _joined(shapes: Iterable[Shape]) -> list[Shape]:
    """Joins shapes that look alike into one path, in the order in which paths are drawn."""
    paths = grouped(((shape.css, shape.title), shape.path) for shape in shapes)
    return [Shape(css, "".join(each), title) for (css, title), each in sorted(paths.items())]


def _sign(sign: str, x: float, y: float) -> str:
    """An upward triangle for who joined, a downward one for who left, a diamond for both."""
    place = f"M{_number(x)} {_number(y)}"
    return place + {"+": "m0-5l5 9h-10z", "-": "m0 5l5-9h-10z"}.get(sign, "m0-6l5 6l-5 6l-5-6z")


def _mark(mark: pictures.Mark, x: float, y: float, width: float) -> Shape:
    """A certain finding fills its lane; a possible orphan the upper half, a duplicate the lower."""
    kind, possible, lasts = mark.kind, mark.possible, mark.lasts
    finding = _MARKED[kind][possible]
    title = finding if lasts else Text("{finding}, for a moment", finding=finding)
    css = f"mark {kind.lower()}{'' if lasts else ' passed'}"
    if kind == "STALLED":
        return Shape(css, _box(x, y + _LANE - 5, width, 4), title)
    height = (_LANE - 2) / 2 if possible else _LANE - 2
    below = height if possible and kind == "DUPLICATE" else 0
    return Shape(css, _box(x, y + 1 + below, width, height), title)


def _owner_class(takers: Sequence[pictures.Taker], numbers: Mapping[str, int]) -> str:
    if not takers:
        return "none"
    if len({taker.client_id for taker in takers}) > 1:
        return "several"
    return colour(numbers[takers[0].client_id])


def _numbers(takers: Sequence[pictures.Taker], numbers: Mapping[str, int]) -> str:
    """Owners by number: ``1+3`` where several take the queue, ``1x2`` for two of one id.

    ``1/3`` where one or the other does.
    """
    at_times = any(taker.share < 1 - 1e-9 for taker in takers)
    named = sorted(
        (numbers[t.client_id], f"x{t.processes}" if t.processes > 1 else "") for t in takers
    )
    return ("/" if at_times else "+").join(f"{number}{times}" for number, times in named)


def ticks_between(begins: datetime, ends: datetime, most: int) -> list[datetime]:
    """Round times, with at most so many steps between them."""
    span = (ends - begins).total_seconds()
    steps = (1, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200)
    days = 86_400 * max(-(-span // (86_400 * most)), 1)
    step = next((s for s in steps if span / s <= most), days)
    first = -(-begins.timestamp() // step) * step
    times = (datetime.fromtimestamp(first + n * step, UTC) for n in range(most + 2))
    return [time for time in times if time <= ends]


def clock(time: datetime, begins: datetime, ends: datetime) -> Text:
    """A time of a picture with these ends."""
    hours = (ends - begins) / timedelta(hours=1)
    template = "{at:month_minute}" if hours > 24 else "{at:minute}" if hours > 1 else "{at:clock}"
    return Text(template, at=time)


def draw_allocation(
    allocation: pictures.AfterRepair, numbers: Mapping[str, int], *, repaired: bool
) -> Drawing:
    """Clients down, queues across; what the repair moves is framed in the picture after it."""
    takes = allocation.then if repaired else allocation.now
    gone = allocation.gone if repaired else frozenset()
    queues = list(allocation.queues)
    involved = {
        whole(taker)
        for queue in queues
        if allocation.now[queue] != allocation.then[queue]
        for taker in (*allocation.now[queue], *allocation.then[queue])
    }
    chosen = sorted(allocation.takers, key=lambda taker: taker not in involved)[:_MOST_TAKERS]
    rows = [taker for taker in allocation.takers if taker in set(chosen)]
    top = 40.0
    places = [(_LEFT + 48 + column * _CELL, queue) for column, queue in enumerate(queues)]
    labels = _column_heads(places, top)
    cells: list[Shape] = []
    for number, taker in enumerate(rows):
        y = top + number * _CELL
        # The number of the client id behind a taker as it is shown; 0 where it has none.
        owner_number = numbers.get(taker) or numbers.get(client_of(taker)) or 0
        client = f"{owner_number} {client_of(taker)}" if owner_number else client_of(taker)
        name = named_taker(taker, client)
        shown = named_taker(taker, shorten(client, _NAME - len(name) + len(client)))
        labels.append(Label("name", _LEFT + 42, y + 14, shown, name))
        for x, queue in places:
            here = [t for t in takes[queue] if whole(t) == taker]
            if not here:
                continue
            before = [t for t in allocation.now[queue] if whole(t) == taker]
            styles = [colour(owner_number) if owner_number else "several"]
            if len(takes[queue]) > 1 and not is_at_times(here[0]):
                styles.append("mark duplicate")
            if repaired and sorted(here) != sorted(before):
                styles.append("moved")
            cells += [Shape(css, _cell(x, y)) for css in styles]
            sign = "~" if is_at_times(here[0]) else str(len(here)) if len(here) > 1 else "●"
            labels.append(Label("owner", x + _CELL / 2, y + 14, sign))
    y = top + len(rows) * _CELL
    labels.append(Label("name", _LEFT + 42, y + 14, Text("nobody")))
    orphans = {queue for queue in queues if not takes[queue] and queue not in gone}
    for x, queue in places:
        if queue in orphans:
            cells.append(Shape("mark orphaned", _cell(x, y)))
            labels.append(Label("nobody", x + _CELL / 2, y + 14, "✕"))
        elif queue in gone:
            labels.append(Label("owner", x + _CELL / 2, y + 14, "–"))  # noqa: RUF001 - a dash
    # One line a row, in pieces as broad as a cell, where nobody takes a queue.
    middles = (round(top + (number + 0.5) * _CELL) for number in range(len(rows) + 1))
    width = len(queues) * _CELL
    grid = "".join(f"M{round(_LEFT + 49)} {middle}h{round(width - 2)}" for middle in middles)
    # Marks and frames lie over the cells.
    over = sorted(_joined(cells), key=lambda shape: shape.css.startswith("m"))
    doubled = sum(
        len(takes[queue]) > 1 and not any(map(is_at_times, takes[queue])) for queue in queues
    )
    left_out = len(allocation.takers) - len(rows)
    drawn = Text(
        "{clients} and {queues}: {orphans} with nobody, {doubled} with several",
        clients=count(len(rows), "client"),
        queues=count(len(queues), "queue"),
        orphans=len(orphans),
        doubled=doubled,
    )
    if left_out:
        clients = count(left_out, "client")
        drawn = Text("{drawn}; {clients} not drawn", drawn=drawn, clients=clients)
    return Drawing(
        width=_LEFT + 56 + width,
        height=y + _CELL + 4,
        title=Text("After the repair") if repaired else Text("As it is"),
        description=drawn,
        shapes=(Shape("cells none", grid), *over),
        labels=tuple(labels),
    )


def _cell(x: float, y: float) -> str:
    return _box(x + 1, y + 1, _CELL - 2, _CELL - 2)


def _column_heads(places: Sequence[tuple[float, PlaceQueue]], top: float) -> list[Label]:
    """The number of each queue, and above them the brokers'; ``places``: where a column begins."""
    heads = [Label("tick", x + _CELL / 2, top - 6, str(queue.queue_id)) for x, queue in places]
    for broker_name, columns in grouped((queue.broker_name, x) for x, queue in places).items():
        middle = (columns[0] + columns[-1] + _CELL) / 2
        fits = max(int(len(columns) * _CELL / _CHARACTER), 3)
        heads.append(Label("tick", middle, top - 22, shorten(broker_name, fits), broker_name))
    return heads
