"""A lake's tables came through no ingest: the audit holds them to the bounds, and to the clock."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow.dataset as ds
import pytest

from jobs.config.window import Window, future_after
from jobs.errors import InputError
from jobs.schemas import HEARTBEATS, TOPIC_ROUTES
from jobs.storage import Location, PublishedRun, Reports
from tests.support.runs import audit_locally, task
from tests.support.snapshots import (
    at,
    heartbeat_row,
    route_row,
    subscriptions,
    table,
    write_tables,
)

_FUTURE = datetime(2100, 1, 1, tzinfo=UTC)
#: The clock of the runs of these tests: see ``task``.
_NOW = datetime(2026, 12, 1, tzinfo=UTC)


def test_a_route_of_billions_of_queues_is_left_out_by_name_and_no_other(tmp_path: Path) -> None:
    """Of U the route is a giant's in the second round alone, which is no change of its queues."""
    rounds = [at(0), at(60)]
    heartbeats = [
        heartbeat_row(
            client_id=client, snapshot_time=time, subscriptions=subscriptions("T", "U", "V")
        )
        for client in ("a", "b")
        for time in rounds
    ]
    giant = {"read_queue_nums": 2**31 - 1, "write_queue_nums": 0}
    names = [f"b{number}" for number in range(3)]
    routes = [
        *[route_row(topic="T", snapshot_time=time) for time in rounds],
        route_row(topic="U", read_queue_nums=8),
        *[route_row(topic="U", broker_name=n, snapshot_time=at(60), **giant) for n in names],
        *[route_row(topic="V", broker_name=n, **giant) for n in names],
        route_row(topic="NOBODYS", broker_name="b", read_queue_nums=2**31 - 1),
        route_row(topic="NOBODYS", broker_name="c", read_queue_nums=2**31 - 1),
    ]
    write_tables(tmp_path / "in", [(HEARTBEATS, heartbeats), (TOPIC_ROUTES, routes)])

    reports = audit_locally(task(tmp_path / "in", tmp_path / "out"))

    health = {row["topic"]: row for row in reports.rows("group_health")}
    assert health["T"]["coverage"] == "AUDITED"
    assert (health["U"]["snapshots"], health["U"]["audited_snapshots"]) == (2, 1)
    assert health["V"]["coverage"] == "TOO_MANY_QUEUES"
    assert health["V"]["reason"] == (
        "a route of the topic has 6,442,450,941 queues, and at most 100,000 are recomputed "
        "(bounds.topic_queues in the settings)"
    )
    assert health["V"]["queues"] == 2**31 - 1
    assert health["NOBODYS"]["queues"] == 2**31 - 1
    assert [row["fault"] for row in reports.rows("group_faults")] == []


# ------------------------------------------------------------------ the future


def lake(folder: Path, *times: datetime) -> Path:
    rows = [(HEARTBEATS, heartbeat_row), (TOPIC_ROUTES, route_row)]
    write_tables(folder, [(of, [make(snapshot_time=time) for time in times]) for of, make in rows])
    return folder


def test_a_round_of_the_future_is_left_out_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    window = Window(future=future_after(_NOW, 1))
    snapshots = lake(tmp_path / "in", at(0), at(60), _FUTURE)

    reports = audit_locally(task(snapshots, tmp_path / "out", window))

    assert reports.published["date"] == at(0).date().isoformat()
    assert "snapshots after 2026-12-02T00:00:00" in caplog.text
    assert "(rows by cluster: DefaultCluster 2)" in caplog.text
    assert "bounds.future_days is 1" in caplog.text


def test_a_date_of_the_future_is_published_only_where_it_is_asked_for(tmp_path: Path) -> None:
    snapshots = lake(tmp_path / "in", _FUTURE)
    window = Window(future=future_after(_NOW, 1))
    with pytest.raises(InputError, match=r"every snapshot at .* is later than 2026-12-02T00:00:00"):
        audit_locally(task(snapshots, tmp_path / "out", window))
    assert Reports(Location(tmp_path / "out")).dates() == []

    of_date = Window.of_date(date(2100, 1, 1))
    published = audit_locally(task(snapshots, tmp_path / "out", of_date)).published
    assert published["date"] == "2100-01-01"


def test_a_date_of_the_future_is_neither_the_last_one_nor_the_one_before(tmp_path: Path) -> None:
    snapshots = lake(tmp_path / "in", at(0), _FUTURE)
    audit_locally(task(snapshots, tmp_path / "out", Window.of_date(date(2100, 1, 1))))
    folder = Location(tmp_path / "out")
    with pytest.raises(InputError, match="lie in the future: 2100-01-01; name one of these dates"):
        Reports(folder, "2026-12-02").resolve(None)
    assert Reports(folder, "2026-12-02").resolve("2100-01-01").date == "2100-01-01"

    window = Window(future=future_after(_NOW, 1))
    again = audit_locally(task(snapshots, tmp_path / "out", window, since_last=True))

    assert again.summary["previous"] is None
    assert again.summary["window"]["since"] is None, "it does not go on from 2100"
    last: PublishedRun = Reports(folder, "2026-12-02").resolve(None)
    assert last.date == at(0).date().isoformat()


# ------------------------------------------------------------------ the first and the last moment


def count_rows(window: Window) -> int:
    rows = ds.dataset(table(HEARTBEATS, [heartbeat_row()]))
    return rows.count_rows(filter=window.filter_of(HEARTBEATS, rows.schema))


def test_windows_reach_to_both_ends_of_the_calendar() -> None:
    first, last = Window.of_date(date.min), Window.of_date(date.max)

    assert (first.last_date, last.last_date) == ("0001-01-01", "9999-12-31")
    assert first.earlier(900).since is None
    assert first.since == datetime(1, 1, 1, tzinfo=UTC)
    assert last.until == datetime.max.replace(tzinfo=UTC)
    for window in (first, last):
        assert count_rows(window) == 0
    assert future_after(_NOW, 4_000_000) == last.until


def test_an_end_in_the_future_is_no_end_that_gives_the_reports_their_date() -> None:
    future = future_after(_NOW, 1)
    assert Window(until=_NOW, future=future).last_date == "2026-11-30"
    assert Window(until=_NOW, future=future).newest_date == "2026-11-30"
    later = replace(Window(until=_NOW + timedelta(days=400)), future=future)
    assert later.last_date is None
    assert (later.ends, later.newest_date) == (future, "2026-12-01")
