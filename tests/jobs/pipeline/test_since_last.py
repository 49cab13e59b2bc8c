"""Runs that go on from the last one read the rounds since alone, and give what full ones do."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from jobs.fold.continued import SavedTables
from jobs.pipeline.continuing import STATES_VERSION, Continuation, Inputs, continue_from
from jobs.schemas import (
    BROKER_POLLS,
    CLIENT_STATES,
    HEARTBEATS,
    QUEUE_OFFSETS,
    TOPIC_ROUTES,
)
from jobs.settings import Settings
from jobs.storage import Location, Reports, Snapshots
from jobs.window import Window
from tests.support.fleet import (
    FAULTS,
    START,
    Fleet,
    describe_fleet,
    fleet_heartbeats,
    fleet_polls,
    fleet_routes,
    fleet_settings,
)
from tests.support.reports import PublishedReports, edit_pointer
from tests.support.runs import as_ingested, audit_by_spark, task
from tests.support.snapshots import (
    Row,
    frame,
    heartbeat_row,
    info_row,
    offset_row,
    poll_row,
    route_row,
    subscriptions,
    table,
)

pytestmark = pytest.mark.spark


def run(
    spark: SparkSession,
    snapshots: Path,
    reports: Path,
    window: Window | None = None,
    settings: Settings | None = None,
    *,
    since_last: bool = True,
) -> PublishedReports:
    return audit_by_spark(spark, task(snapshots, reports, window, settings, since_last=since_last))


def tables(published: PublishedReports) -> dict[str, list[str]]:
    return {name: published.comparable(name) for name in published.published["tables"]}


def states(published: PublishedReports) -> dict[str, list[str]]:
    """The rows of the state tables as sorted texts; what is collected has no order."""

    def text(value: Any) -> str:
        if isinstance(value, list):
            return str(sorted(text(each) for each in value))
        if isinstance(value, dict):
            return str({name: text(each) for name, each in sorted(value.items())})
        return str(value)

    of_run = f"dt={published.published['date']}/run={published.published['run_id']}"
    return {
        name: sorted(
            text(row)
            for path in (published.reports / "_states" / name / of_run).glob("*.parquet")
            for row in pq.read_table(path, partitioning=None).to_pylist()
        )
        for name in SavedTables.names()
    }


# ---------------------------------------------------------------- a fleet, published in parts

FLEET = Fleet(groups=16, rounds=120, members=5, queues_per_broker=4, churn=0.02, faulty=0.7, seed=2)
#: The first round that came after the first run, and after the second. The last one before each was
#: still being collected then: the next run is to read it again.
CUTS = (60, 90)


def moment(round_: int) -> datetime:
    return START + timedelta(seconds=60 * round_)


@dataclass(frozen=True)
class Parts:
    """The snapshot tables of the fleet and of some groups made for what may happen at a cut."""

    rows: dict[str, pa.Table]

    def write(self, folder: Path, first: int, end: int, seen: str = "whole") -> None:
        """The rounds of a part, in files of their own.

        ``begun``: one broker's answers of the last round are not there yet. ``audited``: all rows
        are there, those of all rounds but the last with something else in them.
        """
        last = pa.scalar(moment(end - 1))
        for name, rows in self.rows.items():
            time = pc.field("snapshot_time")
            part = rows.filter((time >= pa.scalar(moment(first))) & (time <= last))
            is_last = pc.equal(part["snapshot_time"], last)
            if seen == "begun" and GARBAGE[name]:
                of_broker = pc.ends_with(part["broker_name"], "broker-b")
                part = part.filter(pc.invert(pc.and_(is_last, of_broker)))
            elif seen == "audited":
                for column, value in GARBAGE[name].items():
                    place = part.schema.get_field_index(column)
                    values = pc.if_else(is_last, part[column], value)
                    part = part.set_column(place, column, values.cast(part.schema[place].type))
            (folder / name).mkdir(parents=True, exist_ok=True)
            pq.write_table(part, folder / name / f"part-{first}.parquet")


GARBAGE: dict[str, dict[str, Any]] = {
    "heartbeats": {"client_id": "garbage", "consumer_group": "GARBAGE"},
    "broker_polls": {"outcome": "NO_ANSWER"},
    "topic_routes": {"read_queue_nums": 99, "topic": "garbage"},
    "queue_offsets": {},
    "client_states": {},
}


def special_rows() -> dict[str, list[Row]]:
    """Groups by name: what happens to them happens at the first cut, or over it."""
    cut = CUTS[0]
    rows: dict[str, list[Row]] = {name: [] for name in GARBAGE}
    for round_ in range(FLEET.rounds):
        time = {"snapshot_time": moment(round_)}
        # One of two lists has the id twice, from shortly before the cut on. That is an old channel,
        # until it has lasted for longer than a broker keeps one.
        copies = (1, 2) if cut - 2 <= round_ < cut + 20 else (1,)
        members = {
            "STACKED": [
                {"broker_name": "broker-c", "client_addr": "a:9"},
                *[{"client_addr": f"a:{port}"} for port in copies],
            ],
            # It subscribes to another topic from the cut on.
            "LATE_TOPIC": [{"subscriptions": subscriptions("T", *["T2"] * (round_ >= cut))}],
            "LATE_ROUTE": [{"subscriptions": subscriptions("T3")}],
            # As it was, but for the last round that is not read again: no run goes on over it.
            "RESTARTED": [{"client_id": "b" if round_ == cut - 2 else "a"}],
            **({"NEW_GROUP": [{}]} if round_ >= cut else {"GONE_GROUP": [{}]}),
        }
        rows["heartbeats"] += [
            heartbeat_row(consumer_group=group, **time, **member)
            for group, of_group in members.items()
            for member in of_group
        ]
        rows["broker_polls"] += [
            poll_row(consumer_group=group, connections=len(of_group), **time)
            for group, of_group in members.items()
        ]
        for topic in ("T", "T2", "T3"):
            # It changes with the first round that is read again.
            queues = 6 if topic == "T3" and round_ >= cut - 1 else 4
            # The route of T is polled now and then: it holds over the cut.
            if topic != "T" or round_ % 7 == 0:
                rows["topic_routes"].append(
                    route_row(topic=topic, read_queue_nums=queues, write_queue_nums=8, **time)
                )
        rows["queue_offsets"] += [
            offset_row(
                consumer_group="LATE_ROUTE",
                topic="T3",
                queue_id=queue_id,
                broker_offset=100 + round_,
                consumer_offset=100 if queue_id == 0 else 100 + round_,
                **time,
            )
            for queue_id in range(4)
        ]
        if round_ % 10 == 0:
            rows["client_states"].append(
                info_row(
                    "a", 0, [0, 1], consumer_group="STACKED", observed_at=moment(round_), **time
                )
            )
    return rows


def in_parts(spark: SparkSession) -> Parts:
    versions = describe_fleet(spark, FLEET).cache()
    assert {row.fault for row in versions.select("fault").distinct().collect()} >= set(FAULTS)
    special = special_rows()
    made = {
        HEARTBEATS: fleet_heartbeats(FLEET, versions),
        BROKER_POLLS: fleet_polls(FLEET, versions),
        TOPIC_ROUTES: fleet_routes(FLEET, versions),
    }
    tables = {}
    for of in (HEARTBEATS, BROKER_POLLS, TOPIC_ROUTES, QUEUE_OFFSETS, CLIENT_STATES):
        rows = frame(spark, of, special[of.name])
        if of in made:
            rows = rows.unionByName(made[of])
        tables[of.name] = rows.toArrow()
    return Parts(tables)


def test_a_fleet_published_in_parts_is_that_of_one_full_run_and_no_round_is_read_twice(
    spark: SparkSession, tmp_path: Path
) -> None:
    parts = in_parts(spark)
    snapshots, reports = tmp_path / "snapshots", tmp_path / "reports"
    parts.write(tmp_path / "whole", 0, FLEET.rounds)
    full = run(
        spark,
        tmp_path / "whole",
        tmp_path / "full",
        settings=fleet_settings(),
        since_last=False,
    )
    cuts = (0, *CUTS, FLEET.rounds)
    made, so_far = [], []
    for first, end in pairwise(cuts):
        parts.write(snapshots, first, end, "begun" if end < FLEET.rounds else "whole")
        made.append(run(spark, snapshots, reports, settings=fleet_settings()))
        so_far.append({name: made[-1].rows(name) for name in ("state_runs", "stacked_client_ids")})
        # Whoever reads these rounds again reads garbage.
        parts.write(snapshots, first, end, "audited")

    continued = made[-1]
    assert [each.summary["continued"]["until"] for each in made] == [
        None,
        *(f"{moment(cut - 1):%Y-%m-%dT%H:%M:%S}.000000+00:00" for cut in CUTS),
    ]
    expected = tables(full)
    assert [name for name in expected if not expected[name]] == ["former_findings"]
    assert tables(continued) == expected
    assert states(continued) == states(full)

    # What was to happen at the first cut happened.
    cut = moment(CUTS[0])
    over_it = {
        row["consumer_group"]
        for row in continued.rows("state_runs")
        if row["first_seen"] < cut <= row["last_seen"]
    }
    assert len(over_it) > 3
    verdicts = [
        {row["verdict"] for row in each["stacked_client_ids"] if row["consumer_group"] == "STACKED"}
        for each in so_far
    ]
    assert (verdicts[0], verdicts[-1]) == ({"STALE_CHANNEL"}, {"STACKED"})
    topics = [
        {row["topic"] for row in each["state_runs"] if row["consumer_group"] == "LATE_TOPIC"}
        for each in so_far
    ]
    assert (topics[0], topics[-1]) == ({"T"}, {"T", "T2"})
    assert min(
        r["first_seen"] for r in continued.rows("state_runs") if r["topic"] == "T2"
    ) == moment(0)
    assert [
        (row["fault"], row["first_seen"])
        for row in continued.rows("group_faults")
        if row["consumer_group"] == "LATE_ROUTE" and row["fault"] == "ROUTE_CHANGED"
    ] == [("ROUTE_CHANGED", moment(CUTS[0] - 1))]


# ---------------------------------------------------------------- what a run may not go on from

WINDOW = Window(since=moment(0))


def write_rounds(folder: Path, *rounds: int, late: str = "") -> None:
    """Rounds of one group, in files of their own; late: one more row of that table alone."""
    rows = {
        HEARTBEATS: [
            heartbeat_row(client_id=client_id, snapshot_time=moment(round_))
            for round_ in rounds
            for client_id in ("late" if late else "a", "b")
        ],
        BROKER_POLLS: [poll_row(connections=2, snapshot_time=moment(round_)) for round_ in rounds],
        TOPIC_ROUTES: [route_row(snapshot_time=moment(round_)) for round_ in rounds],
    }
    for of, of_table in rows.items():
        if late in ("", of.name):
            (folder / of.name).mkdir(parents=True, exist_ok=True)
            name = f"{late}{'-'.join(map(str, rounds))}.parquet"
            pq.write_table(table(of, of_table), folder / of.name / name)


@pytest.fixture(scope="module")
def published(_spark_session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six rounds, and their reports; no test changes them."""
    folder = tmp_path_factory.mktemp("published")
    write_rounds(folder / "snapshots", *range(6))
    run(_spark_session, folder / "snapshots", folder / "reports", WINDOW)
    return folder


@pytest.fixture
def copied(published: Path, tmp_path: Path) -> Path:
    """A copy of them that is the test's own."""
    folder = tmp_path / "copied"
    shutil.copytree(published, folder)
    pointer = pointer_of(folder)
    moved = json.loads(pointer.read_text().replace(str(published), str(folder)))
    edit_pointer(pointer, lambda said: said.update(summary=moved["summary"]))
    return folder


def pointer_of(folder: Path) -> Path:
    (pointer,) = (folder / "reports" / "_published").iterdir()
    return pointer


def continuation(
    folder: Path, window: Window = WINDOW, settings: Settings | None = None
) -> Continuation:
    reports = Reports(Location(folder / "reports"))
    inputs = Inputs(Snapshots.open(Location(folder / "snapshots")), settings or Settings())
    return continue_from(reports, reports.last(None), window, inputs)


def test_rounds_that_the_last_run_read_are_answered_for(copied: Path) -> None:
    assert continuation(copied).until == moment(5)
    write_rounds(copied / "snapshots", 6, 7)
    assert continuation(copied).until == moment(5)
    # More of the last round: it is read again anyway.
    write_rounds(copied / "snapshots", 5, late="heartbeats")
    found = continuation(copied)
    assert found.until == moment(5)
    assert found.rest(WINDOW) == Window(since=moment(5))
    assert found.rest(Window(since=moment(6))) == Window(since=moment(6))
    assert continuation(copied, Window(since=moment(3))).until == moment(5)
    assert continuation(copied, Window(since=moment(1), until=moment(3))).until == moment(5)


@pytest.mark.parametrize("name", ["heartbeats", "broker_polls", "topic_routes"])
@pytest.mark.parametrize("round_", [2, -10])
def test_rows_that_came_late_are_noticed_and_every_round_is_read(
    copied: Path, name: str, round_: int
) -> None:
    write_rounds(copied / "snapshots", round_, late=name)
    found = continuation(copied)
    # Of the time before the window only routes count.
    if round_ < 0 and name != "topic_routes":
        assert found.until == moment(5)
        return
    assert found.until is None
    assert f"{name} has" in str(found.reason)
    assert found.rest(WINDOW) == WINDOW
    assert found.last is not None  # equal situations are equal situations


def edit_recorded(folder: Path, **values: Any) -> None:
    edit_pointer(pointer_of(folder), lambda said: said["summary"]["states"].update(values))


def forget_states(folder: Path) -> None:
    edit_pointer(pointer_of(folder), lambda said: said["summary"].pop("states"))


def delete_a_state_table(folder: Path) -> None:
    shutil.rmtree(folder / "reports" / "_states" / "member_lists")


def delete_a_file_of_a_state_table(folder: Path) -> None:
    for file in (folder / "reports" / "_states" / "evaluated").rglob("*.parquet"):
        file.unlink()


def delete_what_was_published(folder: Path) -> None:
    shutil.rmtree(folder / "reports")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (delete_what_was_published, "no run was published yet"),
        (forget_states, "no state tables of version"),
        (lambda folder: edit_recorded(folder, version=STATES_VERSION + 1), "of version"),
        (lambda folder: edit_recorded(folder, settings="others"), "other settings"),
        (delete_a_state_table, "member_lists of run .* is not there"),
        (delete_a_file_of_a_state_table, "evaluated of run .* is not there, or not whole"),
    ],
)
def test_nothing_is_taken_over_of_a_run_that_does_not_fit(
    copied: Path, change: Callable[[Path], None], reason: str
) -> None:
    change(copied)
    found = continuation(copied)
    assert (found.last, found.until) == (None, None)
    assert re.search(reason, str(found.reason))
    assert "every round of the window is read" in found.sentence()


@pytest.mark.parametrize(
    ("change", "window", "reason"),
    [
        (lambda folder: edit_recorded(folder, snapshots="elsewhere"), WINDOW, "read elsewhere"),
        (
            lambda folder: as_ingested(folder / "snapshots", files=1),
            WINDOW,
            "ingested anew",
        ),
        (lambda _folder: None, Window(since=moment(-1)), "began later"),
        (lambda _folder: None, Window(), "began later"),
        (lambda _folder: None, Window.of_date(date(2026, 11, 21)), "ended before"),
        (lambda _folder: None, Window(since=moment(5)), "ended before"),
    ],
)
def test_situations_alone_are_taken_over_where_the_rounds_are_others(
    copied: Path,
    change: Callable[[Path], Any],
    window: Window,
    reason: str,
) -> None:
    change(copied)
    found = continuation(copied, window)
    assert found.until is None
    assert reason in str(found.reason)
    assert found.last is not None
    assert f"evaluated situations of {found.last.run_id} count" in found.sentence()


def test_a_run_that_died_and_rows_that_came_late_leave_the_chain_whole(
    spark: SparkSession, copied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshots, reports = copied / "snapshots", copied / "reports"
    (first,) = (reports / "_states" / "poll_runs" / "dt=2026-11-20").iterdir()
    write_rounds(snapshots, 6, 7)

    def die(*_: object) -> None:
        raise OSError("no space left")

    with monkeypatch.context() as patched:
        patched.setattr(Reports, "publish", die)
        with pytest.raises(OSError, match="no space left"):
            run(spark, snapshots, reports, WINDOW)
    assert len(list(first.parent.iterdir())) == 2

    went_on = run(spark, snapshots, reports)
    assert went_on.summary["window"]["since"] == "2026-11-20T00:00:00.000Z"
    assert went_on.summary["continued"]["run_id"] == first.name.removeprefix("run=")
    assert went_on.summary["continued"]["reason"] is None
    kept = {first.name, f"run={went_on.published['run_id']}"}
    assert {path.name for path in first.parent.iterdir()} == kept

    write_rounds(snapshots, 3, late="heartbeats")
    read_all = run(spark, snapshots, reports, WINDOW)
    assert "heartbeats has" in read_all.summary["continued"]["reason"]
    full = run(spark, snapshots, copied / "full", WINDOW, since_last=False)
    assert full.summary["continued"] is None
    assert tables(read_all) == tables(full)
    assert tables(read_all)["state_runs"] != tables(went_on)["state_runs"]


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ('{"reason":["as the night before found"]}', "as the night before found"),
        # An earlier version saved its texts in English alone: they are made anew.
        (None, ""),
    ],
)
def test_a_night_evaluates_no_situation_that_the_night_before_did(
    spark: SparkSession, copied: Path, parts: str | None, reason: str
) -> None:
    for file in (copied / "reports" / "_states" / "evaluated").rglob("*.parquet"):
        rows = pq.read_table(file, partitioning=None)
        place = rows.schema.get_field_index("reason")
        marked = pa.array(["as the night before found"] * len(rows), pa.string())
        rows = rows.set_column(place, "reason", marked).drop_columns(["texts"])
        if parts is not None:
            rows = rows.append_column("texts", pa.array([parts] * len(rows), pa.string()))
        pq.write_table(rows, file.with_name("marked.parquet"))
        file.unlink()
    edit_pointer(pointer_of(copied), lambda said: said.update(files=None))
    write_rounds(copied / "snapshots", *range(1440, 1446))

    night = run(spark, copied / "snapshots", copied / "reports", Window.of_date(date(2026, 11, 21)))

    assert night.published["date"] == "2026-11-21"
    (health,) = night.rows("group_health")
    assert (health["reason"], health["snapshots"]) == (reason, 6)
