"""Heartbeats with times of their own are refused, and nothing is published."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.errors import InputError
from jobs.schemas import HEARTBEATS, TOPIC_ROUTES
from tests.support.runs import audit_locally, task
from tests.support.snapshots import Row, at, heartbeat_row, route_row, write_tables


def heartbeats(cluster: str, group: str, *, step: int, period: int = 60) -> list[Row]:
    """Three members of a group, in ten rounds, one so many seconds after the other."""
    return [
        heartbeat_row(
            cluster=cluster,
            consumer_group=group,
            client_id=f"c{member}",
            snapshot_time=at(period * number + step * member),
        )
        for number in range(10)
        for member in range(3)
    ]


def tables(folder: Path, rows: list[Row]) -> Path:
    clusters = {row["cluster"] for row in rows}
    routes = [route_row(cluster=each, snapshot_time=at(0)) for each in clusters]
    write_tables(folder, [(HEARTBEATS, rows), (TOPIC_ROUTES, routes)])
    return folder


@pytest.mark.parametrize(
    ("period", "typed"),
    [
        (30, r"every 30 s.*round_seconds=60\)"),
        (61, r"every 61 s.*round_seconds=60\)"),
        (120, r"every 120 s.*round_seconds=120\)"),
        (300, r"round_seconds=300, settings=\{'heartbeat_expiry_seconds': 610\}\)"),
    ],
)
def test_a_stream_of_events_is_refused_with_what_to_type(
    tmp_path: Path, period: int, typed: str
) -> None:
    rows = heartbeats("A", "G", step=0) + heartbeats("B\n", "G", step=7, period=period)
    with pytest.raises(InputError, match=rf"(?s)heartbeats of cluster B\\n: .*{typed}") as error:
        audit_locally(task(tables(tmp_path / "snapshots", rows), tmp_path / "reports"))
    assert "command line" in error.value.console
    assert not list((tmp_path / "reports").rglob("*.json"))


def test_one_such_group_among_others_is_named_and_not_judged(tmp_path: Path) -> None:
    rows = [*heartbeats("A", "G1", step=0), *heartbeats("A", "G2", step=0)]
    rows += heartbeats("A", "G3", step=7)
    found = audit_locally(task(tables(tmp_path / "snapshots", rows), tmp_path / "reports"))
    health = {row["consumer_group"]: row for row in found.rows("group_health")}
    assert {name: row["coverage"] for name, row in health.items()} == {
        "G1": "AUDITED",
        "G2": "AUDITED",
        "G3": "AUDIT_FAILED",
    }
    assert "round_seconds=60" in health["G3"]["reason"]
    assert not [row for row in found.rows("group_faults") if row["consumer_group"] == "G3"]
