"""A picture of a few lines of equally many points, as SVG, on a logarithmic scale."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

_COLOURS = ("#1b6ca8", "#c0532f", "#3b8f4e", "#7a4fa3")
_WIDTH, _HEIGHT = 640, 400
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 20, 50, 90


@dataclass(frozen=True)
class Line:
    """A line's name and its values from left to right, all above 0."""

    name: str
    values: Sequence[float]


def draw(title: str, lines: Sequence[Line]) -> str:
    """The SVG text. The points stand at even distances; each line's name tells what they are.

    >>> draw("t", [Line("a", [1, 10])]).count("<circle")
    2
    """
    lowest = math.floor(math.log10(min(min(line.values) for line in lines)))
    highest = max(math.ceil(math.log10(max(max(line.values) for line in lines))), lowest + 1)

    def height(value: float) -> float:
        share = (math.log10(value) - lowest) / (highest - lowest)
        return _HEIGHT - _BOTTOM - share * (_HEIGHT - _TOP - _BOTTOM)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        f'<text x="{_LEFT}" y="24" font-size="15">{escape(title)}</text>',
    ]
    for power in range(lowest, highest + 1):
        for step in (1, 2, 5):
            value = step * 10.0**power
            if power == highest and step > 1:
                continue
            y = height(value)
            parts += [
                f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}" '
                'stroke="#dddddd"/>',
                f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{value:g}</text>',
            ]
    for number, line in enumerate(lines):
        colour = _COLOURS[number % len(_COLOURS)]
        width = _WIDTH - _LEFT - _RIGHT - 20
        points = [
            (_LEFT + 10 + width * at / max(1, len(line.values) - 1), height(value))
            for at, value in enumerate(line.values)
        ]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in points]
        y = _HEIGHT - _BOTTOM + 30 + 18 * number
        parts.append(f'<text x="{_LEFT}" y="{y}" fill="{colour}">{escape(line.name)}</text>')
    return "\n".join([*parts, "</svg>", ""])
