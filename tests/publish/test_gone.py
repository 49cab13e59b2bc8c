"""What a night lacks, by its rounds, by the clock, and against the night before."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from jobs.config.window import Window
from jobs.declared.instants import Instant, to_instant
from jobs.schemas import BROKER_POLLS, HEARTBEATS, TOPIC_ROUTES
from jobs.verdict.gaps import gaps_of
from jobs.verdict.silence import short_nights
from tests.support.published import minute
from tests.support.reports import PublishedReports
from tests.support.runs import audit_locally, task
from tests.support.snapshots import heartbeat_row, poll_row, route_row, write_tables

DAY = date(2026, 1, 5)
NIGHT = (to_instant(minute(0)), to_instant(minute(1_440)))
OPEN = (None, None)


def each_minute(first: int, last: int) -> list[Instant]:
    return [to_instant(minute(number)) for number in range(first, last)]


def late_or_early(
    rounds: dict[str, list[Instant]], edges: tuple[Instant | None, Instant | None]
) -> list[tuple[str, str]]:
    found = short_nights(rounds, *edges)
    return [(each.kind.removeprefix("ROUNDS_"), each.text.split()[1][:-1]) for each in found]


@pytest.mark.parametrize(
    ("rounds", "edges", "expected"),
    [
        ({"C": (0, 1_440)}, NIGHT, []),
        # A collector is started anew, or the last files are under way.
        ({"C": (9, 1_431)}, NIGHT, []),
        ({"C": (0, 720)}, NIGHT, [("END_EARLY", "C")]),
        ({"C": (720, 1_440)}, NIGHT, [("BEGIN_LATE", "C")]),
        # Without a window nothing but another cluster shows that there was more ...
        ({"C": (0, 720)}, OPEN, []),
        ({"C": (0, 720), "D": (0, 1_440)}, OPEN, [("END_EARLY", "C")]),
        ({"C": (0, 1_431), "D": (0, 1_440)}, OPEN, []),
        # ... and none that is of another time altogether.
        ({"C": (0, 20), "D": (600, 700)}, OPEN, []),
        # Of few rounds nobody knows how often they come: most of the night has to be missing.
        ({"C": (0, 4)}, NIGHT, [("END_EARLY", "C")]),
        ({"C": (0, 4), "D": (0, 1_440)}, OPEN, [("END_EARLY", "C")]),
        ({"C": (800, 804), "D": (0, 1_440)}, OPEN, [("BEGIN_LATE", "C")]),
        ({"C": (3, 4), "D": (0, 1)}, OPEN, []),
    ],
)
def test_a_cluster_that_begins_late_or_ends_early_is_said(
    rounds: dict[str, tuple[int, int]], edges: Any, expected: list[tuple[str, str]]
) -> None:
    times = {cluster: each_minute(*of) for cluster, of in rounds.items()}
    assert late_or_early(times, edges) == expected


def test_rounds_that_come_each_hour_may_miss_three_at_the_end() -> None:
    hours = [to_instant(minute(60 * hour)) for hour in range(22)]
    assert late_or_early({"C": hours}, NIGHT) == []
    assert late_or_early({"C": hours[:20]}, NIGHT) == [("END_EARLY", "C")]


class Nights:
    """Nights of some groups, brokers and nameservers, a round every ten minutes of a day."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._day = 0

    def audited(
        self,
        groups: tuple[str, ...] = ("G", "H"),
        brokers: tuple[str, ...] = ("a", "b"),
        nameservers: tuple[str, ...] = ("n1", "n2"),
        clusters: tuple[str, ...] = ("C", "D"),
        stacked: str = "",
        empty: tuple[str, ...] = (),
    ) -> PublishedReports:
        self._day += 1
        begins = datetime(2026, 1, 5, tzinfo=UTC) + timedelta(days=self._day)
        times = [begins + timedelta(minutes=10 * number) for number in range(144)]
        heartbeats, polls, routes = [], [], []
        for time in times:
            for cluster in clusters:
                of = {"cluster": cluster, "snapshot_time": time}
                routes += [
                    route_row(**of, broker_name=broker, namesrv_addr=nameserver)
                    for nameserver in nameservers
                    for broker in brokers
                ]
                for group in groups + empty:
                    for broker in brokers:
                        in_list = {**of, "broker_name": broker, "consumer_group": group}
                        outcome = "NOT_ONLINE" if group in empty else "ANSWERED"
                        polls.append(poll_row(**in_list, outcome=outcome))
                        if group not in empty:
                            copies = (1, 2) if group == stacked else (1,)
                            heartbeats += [
                                heartbeat_row(**in_list, client_addr=f"h:{n}") for n in copies
                            ]
        snapshots = self._folder / f"snapshots-{self._day}"
        tables = [(HEARTBEATS, heartbeats), (BROKER_POLLS, polls), (TOPIC_ROUTES, routes)]
        write_tables(snapshots, tables)
        window = Window.of_date(DAY + timedelta(days=self._day))
        return audit_locally(task(snapshots, self._folder / "reports", window))


def gaps(published: PublishedReports) -> list[str]:
    return [f"{each.kind} {each.text}" for each in gaps_of(published.summary)]


@pytest.fixture
def nights(tmp_path: Path) -> Nights:
    return Nights(tmp_path)


@pytest.mark.long
def test_what_was_there_and_is_gone_is_said_for_one_night(nights: Nights) -> None:
    assert gaps(nights.audited()) == []
    assert gaps(nights.audited()) == []
    less = nights.audited(("G",), ("a",), ("n1",))
    of = "in the previous run, but no longer in any dump"
    assert gaps(less) == [
        f"{kind} cluster {cluster}: {of}: {what}"
        for kind, what in (
            ("GROUP_GONE", "1 group (H)"),
            ("BROKER_GONE", "1 broker (b)"),
            ("NAMESERVER_GONE", "1 nameserver (n2)"),
        )
        for cluster in "CD"
    ]
    # On purpose, as it seems. A nameserver with another address is there.
    assert gaps(nights.audited(("G",), ("a",), ("n3",))) == []
    assert gaps(nights.audited(("G",), ("a",), ("n3",), ("D",))) == [
        "CLUSTER_GONE cluster C is no longer in any dump"
    ]
    assert gaps(nights.audited(("G",), ("a",), ("n3",), ("D",))) == []


@pytest.mark.long
def test_a_group_without_members_is_not_gone(nights: Nights) -> None:
    nights.audited()
    assert gaps(nights.audited(("G",), empty=("H",))) == []


@pytest.mark.long
def test_a_group_with_open_findings_is_gone_for_as_long_as_they_are_open(nights: Nights) -> None:
    found = nights.audited(stacked="H")
    assert found.rows("duplicate_queues")
    for _ in range(3):
        night = nights.audited(("G",))
        assert [each.split(":")[0] for each in gaps(night)] == [
            f"GROUP_GONE cluster {cluster}" for cluster in "CD"
        ]
        former = night.rows("former_findings")
        assert {row["status"] for row in former} == {"NOT_AUDITED"}
    assert {row["status"] for row in nights.audited(stacked="H").rows("duplicate_queues")} == {
        "PERSISTING"
    }


@pytest.mark.long
@pytest.mark.parametrize("window", [Window.of_date(DAY), Window()])
def test_a_cluster_whose_clock_is_ahead_is_said_by_name(tmp_path: Path, window: Window) -> None:
    times = {"C": datetime(2026, 1, 5, 12, tzinfo=UTC), "late": datetime(2027, 1, 5, tzinfo=UTC)}
    rows: dict[str, list[dict[str, Any]]] = {"heartbeats": [], "topic_routes": []}
    for cluster, begins in times.items():
        for number in range(4):
            of = {"cluster": cluster, "snapshot_time": begins + timedelta(minutes=number)}
            rows["heartbeats"].append(heartbeat_row(**of))
            rows["topic_routes"].append(route_row(**of))
    write_tables(
        tmp_path / "snapshots",
        [(HEARTBEATS, rows["heartbeats"]), (TOPIC_ROUTES, rows["topic_routes"])],
    )
    future = window if window.until else Window(future=datetime(2026, 12, 2, tzinfo=UTC))
    published = audit_locally(task(tmp_path / "snapshots", tmp_path / "reports", future))
    assert gaps(published) == [
        "TIMES_AHEAD cluster late: 8 rows from 2027-01-05 00:00:00 UTC to "
        "2027-01-05 00:03:00 UTC are in the future by this machine's clock, and not audited: "
        "correct the clock that stamped them"
    ]
