"""What readers take from a run's summary, and whether it has that: anybody may write a pointer."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any


def _is_time(value: Any) -> bool:
    try:
        return datetime.fromisoformat(value) is not None
    except (TypeError, ValueError):
        return False


#: By key a type, a list of one shape, a shape of all values (under ``...``), or more keys.
_SHAPE: Any = {
    "started_at": _is_time,
    "duration_seconds": (int, float),
    "window": {"since": lambda value: value is None or _is_time(value), "last_snapshot": _is_time},
    "rows": {...: int},
    "inputs": {"snapshots": str, "ingested": (dict, type(None))},
    "incomplete": [list],
    "brokers": {...: {...: str}},
    "groups": {"clusters": {...: {...: {"level": str}}}, "left_out": int},
    "assumptions": {"groups": int, "asked": int},
    "rounds": {"groups_too_wide": int},
    "events": {
        "total": int,
        "first": [{"begins": _is_time, "cluster": str, "headline": list, "evidence": list}],
    },
    "known_issues": [{"reason": str, "expires": str, "expired": bool, "marked": dict}],
}


def check_summary(summary: Any) -> None:
    """ValueError where it is none of a run."""
    if wrong := _differs(summary, _SHAPE):
        raise ValueError(f"its summary is none of a run: {wrong}")


def _differs(value: Any, shape: Any, name: str = "summary") -> str:
    """The name of the first value that is not as the shape has it; empty where all are."""
    if isinstance(shape, list):
        of = dict.fromkeys(range(len(value)), shape[0]) if isinstance(value, list) else None
        return name if of is None else _first(dict(enumerate(value)), of, name)
    if isinstance(shape, Mapping):
        if not isinstance(value, Mapping):
            return name
        return _first(value, dict.fromkeys(value, shape[...]) if ... in shape else shape, name)
    is_so = isinstance(value, shape) if isinstance(shape, type | tuple) else shape(value)
    return "" if is_so else name


def _first(values: Mapping[Any, Any], shapes: Mapping[Any, Any], name: str) -> str:
    found = (_differs(values.get(key), of, f"{name}.{key}") for key, of in shapes.items())
    return next(filter(None, found), "")
