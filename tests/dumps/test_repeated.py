"""A line that came before with other times means what it means to a new reader."""

from __future__ import annotations

import json
from itertools import product

import pytest

from jobs.config.bounds import DEFAULT_BOUNDS
from jobs.dumps.counts import Days, PlausibleTimes
from jobs.dumps.statement import KINDS, Statement
from jobs.dumps.statements import RefusedLine, StatementReader
from tests.dumps.samples import line

TIMES = (
    "2026-01-05T09:00:30Z",
    "2026-01-05T09:00:00Z",
    "2026-01-05T09:01:00.5+00:00",
    "2031-01-05T09:00:00Z",
    "2026-01-05T09:00",
    "2026-01-05T09:00:00Z\\u0020",
    'x","kind":"topic_route',
    "\\",
    'x\\"y',
    "",
)


AT = "2026-01-05T09:00:30Z"
ESCAPED = {"<c>": AT, "collected_at": "collected\\u005fat"}
#: By shape what is written otherwise, and with what the line begins.
SHAPES: dict[int, tuple[dict[str, str], str]] = {
    # The time of an object inside comes first.
    2: ({}, f'"extra": {{"collected_at": "{AT}"}}'),
    7: (ESCAPED, '"extra": {"collected_at": "<c>"}'),
    # Of a key that comes twice the last one counts.
    3: ({}, f'"collected_at": "{AT}"'),
    4: ({"<c>": AT}, '"collected_at": "<c>"'),
    6: ({"<s>": AT}, '"snapshot_time": "<s>"'),
    8: (ESCAPED, '"collected_at": "<c>"'),
    5: ({'"<s>"': "null"}, ""),
}


def written(kind: str, collected_at: str, snapshot_time: str | None, shape: int) -> bytes:
    """A line with the times as they are given, in several ways of writing it."""
    text = line(kind, collected_at="<c>", snapshot_time="<s>" if snapshot_time else None)
    if shape == 1:
        text = json.dumps(json.loads(text), separators=(",", ":"), sort_keys=True)
    changes, begins = SHAPES.get(shape, ({}, ""))
    for old, new in changes.items():
        text = text.replace(old, new)
    if begins:
        text = text.replace("{", f"{{{begins}, ", 1)
    return text.replace("<c>", collected_at).replace("<s>", snapshot_time or "").encode()


@pytest.mark.parametrize(("kind", "shape"), list(product(KINDS, range(9))))
def test_a_line_that_comes_again_has_its_own_times(kind: str, shape: int) -> None:
    reader = StatementReader(DEFAULT_BOUNDS, None)
    for collected_at, snapshot_time in product(TIMES, [*TIMES, None]):
        each = written(kind, collected_at, snapshot_time, shape)
        assert reader.read(each) == StatementReader(DEFAULT_BOUNDS, None).read(each)


def test_a_line_that_comes_again_is_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = StatementReader(DEFAULT_BOUNDS, None)
    first = reader.read(line("heartbeat").encode())
    monkeypatch.setattr("jobs.dumps.statements.parse_json", None)
    again = reader.read(line("heartbeat", collected_at="2026-01-05T10:00:00Z").encode(), 7)
    assert isinstance(first, list)
    assert isinstance(again, list)
    (before,), (now,) = first, again
    assert isinstance(now, Statement)
    assert now == before._replace(collected_at=1_767_607_200_000_000, order=7)
    assert now.content is before.content


def test_a_line_that_comes_again_has_a_plausible_time() -> None:
    day = 20_458
    plausible = PlausibleTimes({False: Days(day, day, around=0)})
    reader = StatementReader(plausible=plausible, bounds=DEFAULT_BOUNDS)
    assert isinstance(reader.read(line("heartbeat").encode()), list)
    later = line("heartbeat", collected_at="2026-02-05T09:00:00Z").encode()
    assert isinstance(reader.read(later), RefusedLine)
    late = line("topic_route", collected_at="2026-01-05T09:00:10Z").encode()
    assert isinstance(reader.read(late), list)
    of_other_round = line("topic_route", snapshot_time="2025-01-05T09:00:00Z").encode()
    assert reader.read(of_other_round) == StatementReader(
        plausible=plausible, bounds=DEFAULT_BOUNDS
    ).read(of_other_round)
