"""Rows of states as the function of the UDF gets them, from records that are easy to write."""

from __future__ import annotations

from typing import Any

import numpy as np

from jobs.judge.evaluation import (
    COUNT_FIELDS,
    MEMBER_FIELDS,
    OFFLINE_FIELDS,
    ROUTE_FIELDS,
    UNREACHABLE_FIELDS,
)


def in_columns(of_row: dict[str, Any]) -> dict[str, Any]:
    """The record of a state, with those of its members and routes, in columns."""

    def of_member(each: dict[str, Any]) -> dict[str, Any]:
        own = [s for s in each["subscriptions"] or () if s["topic"] == of_row["topic"]]
        first = own[0] if own else {}
        return each | {
            "version": -1 if each["version"] is None else each["version"],
            "subscribed": bool(own),
            "subscribed_percent": 100,
            "expression_type": first.get("expression_type"),
            "expression": first.get("expression"),
        }

    members = of_row["members"]
    records = {
        "member": (MEMBER_FIELDS, members and [of_member(each) for each in members]),
        "offline": (OFFLINE_FIELDS, of_row["offline"]),
        "route": (ROUTE_FIELDS, of_row["routes"]),
        "count": (COUNT_FIELDS, of_row.get("counts")),
        "unreachable": (UNREACHABLE_FIELDS, of_row.get("unreachable")),
    }
    names = ("consumer_group", "topic", "request_mode")
    return {name: of_row.get(name) for name in names} | {
        f"{prefix}_{field}": None if each is None else array([record[field] for record in each])
        for prefix, (fields, each) in records.items()
        for field in fields
    }


def array(values: list[Any]) -> np.ndarray:
    """One-dimensional, whatever the values: lists among them stay lists."""
    result = np.empty(len(values), object)
    result[:] = values
    return result
