"""Fleets whose tables are streams of events: refused as such, and by rounds what they were."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from jobs.api import audit
from jobs.config.settings import Settings
from jobs.engines.local import LocalEngine
from jobs.errors import InputError
from jobs.pipeline.ingest import read_dumps
from jobs.schemas import HEARTBEATS
from jobs.shell.report import Report
from tests.simulation.clients import Process
from tests.simulation.collectors import ZERO
from tests.simulation.fleets import Fleet, draw_fleet
from tests.simulation.servers import Broker
from tests.simulation.situations import SITUATIONS
from tests.simulation.world import GROUP, RETRY
from tests.support.events import SHARE, late
from tests.support.snapshots import Row

SEED = 7
#: Situations in which one process after the other is gone and stays in a list for two minutes: a
#: row of such a list, taken for a heartbeat, makes it stay for two more. And those in which all is
#: over so soon that a minute decides whether it lasts. Of a client that reconnects the brokers'
#: lists differ until its old connections expire, in one and the same round or, of heartbeats that
#: come to each broker at another time, not.
BY_LISTS_ALONE = {
    "stateful_set_silent",
    "vm_and_broker_restarts",
    "reconnecting",
    "reconnecting_while_broker_restarts",
    "shared_id_that_reconnects",
    "flapping_connection",
    "strategy_rolled_out",
    "two_processes_in_a_busy_group",
}
#: No broker lists the group; a collector that asks each five minutes, seldomer than members expire.
NOT_EVENTS = {"behind_proxy", "vm_deploys_in_coarse_rounds"}
QUICK = {"rolling_deploy", "unreachable_broker"}
EVENTS = [
    pytest.param(name, marks=[] if name in QUICK else pytest.mark.house)
    for name in SITUATIONS
    if name not in BY_LISTS_ALONE | NOT_EVENTS
]


def tables_of(fleet: Fleet, folder: Path) -> dict[str, pa.Table]:
    fleet.write(folder)
    with LocalEngine() as engine:
        read = read_dumps(engine, engine.list_files([str(folder)]), Settings())
        tables = read.whole_tables(Settings())
    return {name: tables[name] for name in ("heartbeats", "topic_routes")}


def lasting(report: Report) -> set[tuple[object, ...]]:
    """The places and kinds of what lasts."""
    of_tables = {
        "orphaned_queues": ("topic", "broker_name", "queue_id"),
        "duplicate_queues": ("topic", "broker_name", "queue_id"),
        "group_faults": ("fault",),
    }
    return {
        (table, *[row[name] for name in names])
        for table, names in of_tables.items()
        for row in report[table].to_pylist()
        if row["persistence"] == "PERSISTENT"
    }


@pytest.mark.parametrize("name", EVENTS)
def test_events_have_the_findings_of_the_fleet_or_are_refused(name: str, tmp_path: Path) -> None:
    tables = tables_of(draw_fleet(name, [SITUATIONS[name]], SEED), tmp_path)
    wanted = lasting(audit(tables))
    for by in SHARE:
        events = tables | {"heartbeats": late(tables["heartbeats"], by)}
        with pytest.raises(InputError, match=rf"heartbeats of cluster {name}.*round_seconds=60"):
            audit(events)
        assert lasting(audit(events, round_seconds=60)) == wanted, by


def heard(rows: list[Row]) -> Callable[[Fleet], None]:
    """Writes down each heartbeat that a broker takes, as a sink does."""

    def listen(fleet: Fleet) -> None:
        def hear(broker: Broker, process: Process, client_addr: str) -> None:
            if not broker.knows_group or not -120_000 <= fleet.clock.now < fleet.until:
                return
            rows.append(
                {
                    "cluster": fleet.name,
                    "snapshot_time": ZERO + timedelta(milliseconds=fleet.clock.now),
                    "consumer_group": GROUP,
                    "broker_name": broker.name,
                    "broker_id": broker.broker_id,
                    "client_id": process.client_id,
                    "client_addr": client_addr,
                    "language": process.language,
                    "version": process.version,
                    "consume_type": "CONSUME_PASSIVELY",
                    "message_model": "CLUSTERING",
                    "subscription_source": "HEARTBEAT",
                    "subscriptions": [
                        {
                            "topic": topic,
                            "expression_type": "TAG",
                            "expression": "*" if topic == RETRY else process.expression,
                        }
                        for topic in sorted(process.subscriptions)
                    ],
                }
            )

        fleet.world.heartbeat_listeners.insert(0, hear)

    return listen


#: Of each there are two fleets.
HEARD = (
    *("three_deploys", "stateful_set_silent", "rolling_silent", "many_ghosts"),
    *("two_processes_with_one_id", "unreachable_broker"),
)


@pytest.mark.parametrize(
    "name", ["reconnecting", *(pytest.param(name, marks=pytest.mark.house) for name in HEARD)]
)
@pytest.mark.parametrize("seed", [3, pytest.param(4, marks=pytest.mark.house)])
def test_heartbeats_show_what_a_collector_was_given(name: str, seed: int, tmp_path: Path) -> None:
    rows: list[Row] = []
    tables = tables_of(draw_fleet(name, [SITUATIONS[name], heard(rows)], seed), tmp_path)
    events = tables | {"heartbeats": with_strategies(rows, tables["heartbeats"])}
    assert lasting(audit(events, round_seconds=60)) == lasting(audit(tables))


def with_strategies(rows: list[Row], lists: pa.Table) -> pa.Table:
    """The heartbeats, with the strategies that the clients' running infos showed."""
    names = ["client_id", "strategy", "strategy_source"]
    shown = {row.pop("client_id"): row for row in lists.select(names).to_pylist()}
    every = [row | shown.get(row["client_id"], {}) for row in rows]
    return pa.Table.from_pylist(every, HEARTBEATS.schema)
