"""Questions answered without Spark, against what the audit of the same dumps published."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from jobs.dumps.plain import read_dumps
from jobs.pipeline.moments import moment_of_dumps, moment_of_tables, situation_of
from jobs.settings import Settings, load_settings
from jobs.snapshots.plain import make_group_rows
from jobs.states.evaluation import to_row
from jobs.states.plain import Moment
from jobs.storage import Location
from rebalance_core import evaluate
from tests.support.reports import PublishedReports
from tests.support.truth import CAPTURES, SITUATIONS

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def settings(repository: Path) -> Settings:
    """Those that the sample was audited with."""
    return load_settings(repository / "conf" / "audit.toml", ["persistence_seconds=60"])


@pytest.fixture(scope="module")
def snapshots(sample_output: Path) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """By table and group (or topic) the rows that ``ingest`` wrote."""
    keys = {
        "heartbeats": "consumer_group",
        "broker_polls": "consumer_group",
        "topic_routes": "topic",
    }
    tables: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for name, key in keys.items():
        by_key: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for row in pq.read_table(sample_output / "snapshots" / name).to_pylist():
            by_key[row[key]].append(row)
        tables[name] = by_key
    return tables


def comparable(rows: list[dict[str, Any]], columns: list[str]) -> list[str]:
    """The rows as sorted texts, with those of their columns."""
    return sorted(
        json.dumps({name: _plain(row.get(name)) for name in columns}, sort_keys=True)
        for row in rows
    )


def _plain(value: Any) -> Any:
    return value.astimezone(UTC).isoformat() if isinstance(value, datetime) else value


@pytest.mark.parametrize("situation", SITUATIONS)
def test_the_rows_of_a_group_are_those_that_ingest_wrote(
    snapshots: dict[str, dict[str, list[dict[str, Any]]]], situation: str
) -> None:
    dumps = read_dumps([str(CAPTURES / situation)], f"G_{situation}")
    assert dumps.refused == 0
    rows = make_group_rows(dumps.records, next(iter(dumps.clusters)), f"G_{situation}")
    for name, of_group in (
        ("heartbeats", rows.heartbeats),
        ("broker_polls", rows.broker_polls),
    ):
        written = snapshots[name][f"G_{situation}"]
        columns = [column for column in written[0] if column in of_group[0]]
        assert len(columns) >= 7
        assert comparable(of_group, columns) == comparable(written, columns), name
    routes = [row for row in rows.topic_routes if row["topic"] == f"T_{situation}"]
    written = snapshots["topic_routes"][f"T_{situation}"]
    assert comparable(routes, list(written and written[0])) == comparable(
        written, list(written and written[0])
    )


Find = Callable[[str, str, datetime], Moment]


@pytest.fixture(params=["dumps", "tables"])
def find(request: pytest.FixtureRequest, sample_output: Path, settings: Settings) -> Find:
    """Finds a state in dump files, or in snapshot tables."""

    def of_dumps(group: str, topic: str, at: datetime) -> Moment:
        dump = CAPTURES / group.removeprefix("G_")
        return moment_of_dumps([str(dump)], group, topic, at, None, settings)

    def of_tables(group: str, topic: str, at: datetime) -> Moment:
        location = Location(str(sample_output / "snapshots"))
        return moment_of_tables(location, group, topic, at, None, settings)

    return of_dumps if request.param == "dumps" else of_tables


def test_every_state_is_evaluated_as_it_was_published(
    sample_reports: PublishedReports, sample_output: Path, settings: Settings, find: Find
) -> None:
    """To the last word: findings with their causes, faults with evidence and moves, allocations."""
    published = {row["state_id"]: row for row in _evaluated_states(sample_reports)}
    runs = [row for row in sample_reports.rows("state_runs") if row["topic"]]
    assert len(runs) > 60
    for run in runs:
        # The first snapshot of a run, and a time within it that is no snapshot's.
        for at in (run["first_seen"], run["last_seen"]):
            moment = find(run["consumer_group"], run["topic"], at)
            assert (moment.first_seen, moment.last_seen) == (run["first_seen"], run["last_seen"])
            situation = situation_of(moment, settings)
            evaluated = to_row(evaluate(situation.state, situation.rules), situation)
            of_state = published[run["state_id"]]
            assert moment.state.lasting == of_state["lasting"]
            columns = list(evaluated)
            assert comparable([evaluated], columns) == comparable([of_state], columns), run


def _evaluated_states(reports: PublishedReports) -> list[dict[str, Any]]:
    folder = (
        reports.reports
        / "_states"
        / "evaluated_states"
        / f"dt={reports.published['date']}"
        / f"run={reports.published['run_id']}"
    )
    return [
        row
        for path in sorted(folder.glob("*.parquet"))
        for row in pq.read_table(path, partitioning=None).to_pylist()
    ]
