"""Summary of a run, as readers take it; whether it is whole, as anybody may write a pointer."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any


def _is_time(value: Any) -> bool:
    try:
        return datetime.fromisoformat(value) is not None
    except (TypeError, ValueError):
        return False


#: Shapes by key: a type, a list of one shape, a shape of all values (under ``...``), or more keys.
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
    "known_issues": [{"reason": str, "expires": str, "expired": bool, "marked": dict}],
}


def check_summary(summary: Any) -> None:
    """ValueError where it is none of a run."""
    for name in _differing(summary, _SHAPE, "summary"):
        raise ValueError(f"its summary is none of a run: {name}")


def _differing(value: Any, shape: Any, name: str) -> Iterator[str]:
    """The names of the values that are not as the shape has them."""
    if not isinstance(shape, dict | list):
        is_so = isinstance(value, shape) if isinstance(shape, type | tuple) else shape(value)
        yield from () if is_so else [name]
    elif not isinstance(value, type(shape)):
        yield name
    else:
        values = value if isinstance(value, dict) else dict(enumerate(value))
        of_all = shape[0] if isinstance(shape, list) else shape.get(...)
        of_each: Any = dict.fromkeys(values, of_all) if of_all else shape
        for key, shape_there in of_each.items():
            yield from _differing(values.get(key), shape_there, f"{name}.{key}")
