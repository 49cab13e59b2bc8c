"""States of the core from records that are easy to write."""

from __future__ import annotations

from typing import Any

from jobs.judge.evaluation import MEMBER_FIELDS, OFFLINE_FIELDS, ROUTE_FIELDS, make_state
from rebalance_core import State
from rebalance_core.state import SURE, ProcessCount


def state_of_record(of_state: dict[str, Any]) -> State:
    """The state of a record, with those of its members and routes.

    A member has its subscriptions, of which those to the state's topic count.
    """
    topic = of_state["topic"]

    def of_member(each: dict[str, Any]) -> dict[str, Any]:
        own = [s for s in each["subscriptions"] or () if s["topic"] == topic]
        first = own[0] if own else {}
        return each | {
            "version": -1 if each["version"] is None else each["version"],
            "subscribed": bool(own),
            "subscribed_percent": SURE,
            "expression_type": first.get("expression_type"),
            "expression": first.get("expression"),
        }

    def records(name: str, fields: tuple[str, ...]) -> list[tuple[Any, ...]]:
        return [tuple(each[field] for field in fields) for each in of_state.get(name) or ()]

    members = [of_member(each) for each in of_state["members"] or ()]
    return make_state(
        of_state["consumer_group"],
        topic,
        members=[tuple(each[field] for field in MEMBER_FIELDS) for each in members],
        offline=records("offline", OFFLINE_FIELDS),
        routes=records("routes", ROUTE_FIELDS),
        counts=records("counts", ProcessCount._fields),
        unreachable=records("unreachable", ("client_id", "broker_name")),
        request_mode=of_state.get("request_mode"),
    )
