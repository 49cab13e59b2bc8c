"""``--since last``: the window begins where that of the last published run did, and all is read."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest

from jobs.config.window import Window
from jobs.schemas import BROKER_POLLS, HEARTBEATS, TOPIC_ROUTES
from jobs.storage import Reports
from tests.support.reports import PublishedReports
from tests.support.runs import audit_locally, task
from tests.support.snapshots import at, heartbeat_row, poll_row, route_row, write_tables


def write_rounds(folder: Path, *rounds: int, stacked: bool = False) -> None:
    """Rounds of one group, a minute apart; ``stacked``: a second copy of an id is there."""
    ports, times = (1, 2) if stacked else (1,), [at(60 * n) for n in rounds]
    listed = [{"snapshot_time": time, "client_addr": f"h:{n}"} for time in times for n in ports]
    rows = [
        (HEARTBEATS, [heartbeat_row(**each) for each in listed]),
        (BROKER_POLLS, [poll_row(connections=len(ports), snapshot_time=time) for time in times]),
        (TOPIC_ROUTES, [route_row(snapshot_time=time) for time in times]),
    ]
    write_tables(folder / str(rounds[0]), rows)
    for of, _ in rows:
        place = folder / "snapshots" / of.name
        place.mkdir(parents=True, exist_ok=True)
        (part,) = (folder / str(rounds[0]) / of.name).iterdir()
        part.rename(place / f"{rounds[0]}.parquet")


def run(folder: Path, window: Window | None = None, *, since_last: bool = True) -> PublishedReports:
    reports = folder / ("reports" if since_last else "others")
    return audit_locally(task(folder / "snapshots", reports, window, since_last=since_last))


def window_of(published: PublishedReports) -> tuple[str | None, str]:
    window = published.summary["window"]
    return window["since"], window["last_snapshot"]


def text(time: datetime) -> str:
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def test_it_begins_where_the_last_run_began_whatever_came_since(tmp_path: Path) -> None:
    write_rounds(tmp_path, *range(6))
    since = text(at(120))
    audit_locally(task(tmp_path / "snapshots", tmp_path / "reports", Window(since=at(120))))
    write_rounds(tmp_path, *range(6, 9))
    assert window_of(run(tmp_path)) == (since, text(at(480)))
    # And the next one where this one did; its end is its own.
    assert window_of(run(tmp_path, Window(until=at(420)))) == (since, text(at(360)))


def test_the_first_run_has_no_beginning_and_one_that_is_asked_for_counts(tmp_path: Path) -> None:
    write_rounds(tmp_path, *range(6))
    assert window_of(run(tmp_path)) == (None, text(at(300)))
    assert window_of(run(tmp_path, Window(since=at(60)))) == (text(at(60)), text(at(300)))
    assert window_of(run(tmp_path)) == (text(at(60)), text(at(300)))


@pytest.mark.long
def test_runs_of_a_growing_day_end_with_what_one_run_of_the_day_publishes(tmp_path: Path) -> None:
    """A fault that begins before a cut and ends after it; and rounds that come late."""
    window = Window(since=at(0))
    write_rounds(tmp_path, *range(4))
    run(tmp_path, window)
    write_rounds(tmp_path, *range(6, 10), stacked=True)
    run(tmp_path)
    write_rounds(tmp_path, 4, 5)
    write_rounds(tmp_path, *range(10, 14), stacked=True)
    last = run(tmp_path)

    whole = run(tmp_path, window, since_last=False)

    assert last.rows("duplicate_queues")
    assert [row["first_seen"] for row in last.rows("state_runs")] == [at(0), at(360)]
    for name in whole.published["tables"]:
        assert last.comparable(name) == whole.comparable(name), name


def test_a_run_that_died_is_not_the_last_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_rounds(tmp_path, *range(6))
    run(tmp_path, Window(since=at(60)))

    def die(*_: object) -> None:
        raise OSError("no space left")

    with monkeypatch.context() as patched:
        patched.setattr(Reports, "publish", die)
        with pytest.raises(OSError, match="no space left"):
            run(tmp_path, Window(since=at(180)))

    assert window_of(run(tmp_path))[0] == text(at(60))
