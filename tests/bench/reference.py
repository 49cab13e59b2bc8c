"""A second audit, slow and simple: every snapshot of every group and topic, one after the other.

    python -m tests.bench.reference --size S

No Spark, no fingerprints, no runs, no segments: PyArrow reads the rows of a snapshot, they become
the core's State, the core evaluates it, and the findings of consecutive snapshots are joined. What
the audit does between the tables and the core, and after it, is done here again in another way.
Its findings, over a fleet with all faults and strategies, are compared with the audit's, column by
column. Exits with 1 where they differ. What both take from ``rebalance_core`` is not tested by it:
for that there is ``truth.py``.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.dataset as ds

from jobs.pipeline.audit_on_spark import audit
from jobs.progress import Progress
from jobs.session import spark_session
from jobs.settings import Settings
from jobs.storage import Location, Reports
from rebalance_core import (
    ClientList,
    Evaluation,
    Member,
    RouteBroker,
    Situation,
    State,
    StrategyRule,
    StrategyRules,
    TopicRoute,
    evaluate,
    find_causes,
    normalise_expression,
)
from tests.bench.contenders.audit import task
from tests.bench.fleets import SIZES, ensure, named
from tests.support.fleet import fleet_settings

Row = dict[str, Any]
Broker = tuple[str, int]

#: A channel on which nothing comes is closed after so long, so what stays for longer is alive.
_CHANNEL_LIFE = timedelta(seconds=130)

#: What is compared: the columns of the two tables of faulty queues, but for those that follow from
#: these or need other inputs.
COLUMNS = (
    "kind",
    "consumer_group",
    "topic",
    "broker_name",
    "queue_id",
    "first_seen",
    "last_seen",
    "snapshots",
    "certainty",
    "persistence",
    "ongoing",
    "probability",
    "completeness",
    "claimants",
    "causes",
    "episode_first_seen",
    "episode_last_seen",
)


@dataclass
class GroupSnapshot:
    """What one round of polling brought of one group: each broker's list, and who has none."""

    lists: dict[Broker, list[Row]] = field(default_factory=lambda: defaultdict(list))
    offline: set[Broker] = field(default_factory=set)

    def addresses(self) -> tuple[Any, ...]:
        """Who stood in which list, connection by connection."""
        listed = {
            broker: tuple(sorted((m["client_id"], m["client_addr"]) for m in members))
            for broker, members in self.lists.items()
        }
        return tuple(sorted(listed.items()))


def rows_by_snapshot(snapshots: Path, table: str) -> dict[datetime, list[Row]]:
    """All rows of a table, by round of polling."""
    whole = ds.dataset(sorted((snapshots / table).glob("*.parquet")), format="parquet").to_table()
    rows: dict[datetime, list[Row]] = {}
    for snapshot_time in sorted(pc.unique(whole["snapshot_time"]).to_pylist()):
        at_time = whole.filter(pc.equal(whole["snapshot_time"], snapshot_time))
        rows[snapshot_time] = at_time.to_pylist()
    return rows


def groups_in_time(snapshots: Path) -> dict[str, dict[datetime, GroupSnapshot]]:
    """Each group's snapshots, ascending."""
    groups: dict[str, dict[datetime, GroupSnapshot]] = defaultdict(dict)

    def at(row: Row) -> GroupSnapshot:
        return groups[row["consumer_group"]].setdefault(row["snapshot_time"], GroupSnapshot())

    for rows in rows_by_snapshot(snapshots, "heartbeats").values():
        for row in rows:
            at(row).lists[row["broker_name"], row["broker_id"]].append(row)
    for rows in rows_by_snapshot(snapshots, "broker_polls").values():
        for row in rows:
            of_group = at(row)
            if row["outcome"] == "NOT_ONLINE" or (
                row["outcome"] == "ANSWERED" and not row["connections"]
            ):
                of_group.offline.add((row["broker_name"], row["broker_id"]))
    return {group: dict(sorted(in_time.items())) for group, in_time in groups.items()}


class Routes:
    """The routes of all topics, as of their last poll."""

    def __init__(self, snapshots: Path, max_age: timedelta) -> None:
        self._max_age = max_age
        self._polls: dict[str, dict[datetime, list[Row]]] = defaultdict(dict)
        for snapshot_time, rows in rows_by_snapshot(snapshots, "topic_routes").items():
            for row in rows:
                self._polls[row["topic"]].setdefault(snapshot_time, []).append(row)

    def at(self, topic: str, time_: datetime) -> list[Row]:
        """The rows of the topic's last poll by then; none where that is too long ago."""
        polls = self._polls.get(topic, {})
        if time_ in polls:
            return polls[time_]
        last = max((each for each in polls if each <= time_), default=None)
        return polls[last] if last is not None and time_ < last + self._max_age else []


def lasting_lists(in_time: dict[datetime, GroupSnapshot]) -> set[tuple[Any, ...]]:
    """The lists that once stayed just so for longer than a silent channel lives."""
    lasting: set[tuple[Any, ...]] = set()
    before: tuple[Any, ...] | None = None
    since = datetime.min.replace(tzinfo=UTC)
    for snapshot_time, snapshot in in_time.items():
        addresses = snapshot.addresses()
        if addresses != before:
            before, since = addresses, snapshot_time
        if snapshot_time - since > _CHANNEL_LIFE:
            lasting.add(addresses)
    return lasting


def to_member(row: Row, topic: str, expiry: timedelta) -> Member:
    """One connection, with what it has to do with the topic."""
    own = [each for each in row["subscriptions"] if each["topic"] == topic]
    heard = row["last_heartbeat_at"]
    chooses = bool(row["pull_consumer"]) or (
        row["consume_type"] == "CONSUME_ACTIVELY"
        and not row["subscriptions"]
        and row["subscription_source"] not in (None, "GROUP_TABLE")
    )
    return Member(
        client_id=row["client_id"],
        client_addr=row["client_addr"],
        subscribed=bool(own),
        expression=(
            normalise_expression(own[0]["expression_type"], own[0]["expression"]) if own else None
        ),
        is_expired=_is_expired(row["snapshot_time"], heard, expiry),
        chooses_queues=chooses,
        subscription_source=row["subscription_source"],
        message_model=row["message_model"] or "CLUSTERING",
        strategy=row["strategy"],
        client_rebalance=row["client_rebalance"],
        language=row["language"],
        version=row["version"],
    )


def _is_expired(time: datetime, last_heartbeat: datetime | None, expiry: timedelta) -> bool | None:
    """True: silent for longer than a broker keeps a connection. False: heard lately."""
    if last_heartbeat is None:
        return None
    silent = time - last_heartbeat
    return silent > expiry if silent > expiry or silent <= timedelta(seconds=90) else None


def to_routes(rows: list[Row]) -> tuple[TopicRoute, ...]:
    """Each nameserver's route."""
    routes: dict[str, list[RouteBroker]] = {}
    for row in rows:
        of_nameserver = routes.setdefault(row["namesrv_addr"], [])
        if row["broker_name"] is not None:
            ids = row["broker_ids"]
            of_nameserver.append(
                RouteBroker(
                    row["broker_name"],
                    None if ids is None else tuple(sorted(ids)),
                    row["perm"],
                    row["read_queue_nums"],
                    row["write_queue_nums"],
                    row["zone_name"],
                )
            )
    return tuple(TopicRoute(name, tuple(brokers)) for name, brokers in sorted(routes.items()))


@dataclass
class Seen:
    """One finding in one snapshot; ``place`` is its number among those where anything is known."""

    place: int
    time: datetime
    certainty: str
    probability: float
    completeness: float
    claimants: list[tuple[str, int, float]]
    causes: tuple[str, ...]


def findings_of_topic(
    group: str,
    topic: str,
    in_time: dict[datetime, GroupSnapshot],
    routes: Routes,
    rules: StrategyRules,
    settings: Settings,
) -> Iterator[Row]:
    """The rows of both tables of faulty queues for one group and topic."""
    lasting = lasting_lists(in_time)
    expiry = timedelta(seconds=settings.heartbeat_expiry_seconds)
    seen: dict[tuple[str, str, int], list[Seen]] = defaultdict(list)
    end, place = None, 0
    told: list[tuple[float, bool]] = []
    for snapshot_time, snapshot in in_time.items():
        state = State(
            consumer_group=group,
            topic=topic,
            client_lists=tuple(
                ClientList(*broker, tuple(to_member(row, topic, expiry) for row in members))
                for broker, members in snapshot.lists.items()
            ),
            topic_routes=to_routes(routes.at(topic, snapshot_time)),
            offline_brokers=tuple(sorted(snapshot.offline)),
            lasting=snapshot.addresses() in lasting,
        )
        evaluation = evaluate(state, rules)
        if evaluation.known:  # where nothing is known, nothing begins and nothing ends
            place, end = place + 1, snapshot_time
            differ = any(finding.certainty == "POSSIBLE" for finding in evaluation.findings)
            told.append((evaluation.completeness * len(state.topic_routes), differ))
            note_findings(seen, place, snapshot_time, Situation(state, rules), evaluation)
    numbers = known_places(told)
    for queue, times in seen.items():
        for each in times:
            each.place = numbers[each.place - 1]
        for row in rows_of_queue(times, settings.persistence_seconds):
            keys = ("kind", "broker_name", "queue_id")
            named_queue = dict(zip(keys, queue, strict=True))
            of_pair = {"consumer_group": group, "topic": topic, "ongoing": row["last_seen"] == end}
            yield {**named_queue, **of_pair, **row}


def known_places(told: list[tuple[float, bool]]) -> list[int]:
    """The places counted anew, without those that agree because fewer lists are known.

    ``told``: how much is known in each snapshot, and whether its lists differ.
    """
    places = []
    for number, (_, differ) in enumerate(told):
        before = next((told[n] for n in range(number, -1, -1) if told[n][1]), None)
        after = next((told[n] for n in range(number, len(told)) if told[n][1]), None)
        between = list(takewhile(lambda each: not each[1], told[number:]))
        between += takewhile(lambda each: not each[1], told[number::-1])
        is_blind = False
        if not differ and before is not None and after is not None:
            is_blind = max(share for share, _ in between) < min(before[0], after[0])
        places.append((places[-1] if places else 0) + (not is_blind))
    return places


def note_findings(
    seen: dict[tuple[str, str, int], list[Seen]],
    place: int,
    snapshot_time: datetime,
    situation: Situation,
    evaluation: Evaluation,
) -> None:
    """Adds one snapshot's findings to those that were seen before."""
    causes = find_causes(situation, evaluation)
    for finding in evaluation.findings:
        seen[finding.kind, finding.queue.broker_name, finding.queue.queue_id].append(
            Seen(
                place,
                snapshot_time,
                finding.certainty,
                finding.probability,
                evaluation.completeness,
                [(c.client_id, c.processes, round(c.probability, 9)) for c in finding.claimants],
                causes.names(finding),
            )
        )


def _split(times: list[Seen], is_break: Any) -> list[list[Seen]]:
    parts = [[times[0]]]
    for before, each in pairwise(times):
        if is_break(before, each):
            parts.append([])
        parts[-1].append(each)
    return parts


def rows_of_queue(times: list[Seen], persistence_seconds: int) -> Iterator[Row]:
    """Episodes of one finding, a row for each stretch of one certainty."""
    for episode in _split(times, lambda before, each: each.place > before.place + 1):
        first, last = episode[0].time, episode[-1].time
        persists = (last - first).total_seconds() >= persistence_seconds
        for stretch in _split(episode, lambda before, each: each.certainty != before.certainty):
            yield {
                "first_seen": stretch[0].time,
                "last_seen": stretch[-1].time,
                "snapshots": len(stretch),
                "certainty": stretch[0].certainty,
                "persistence": "PERSISTENT" if persists else "TRANSIENT",
                "probability": round(max(each.probability for each in stretch), 9),
                "completeness": round(min(each.completeness for each in stretch), 9),
                "claimants": tuple(sorted(stretch[-1].claimants)),
                "causes": causes_of(stretch, persistence_seconds),
                "episode_first_seen": first,
                "episode_last_seen": last,
            }


def causes_of(stretch: list[Seen], persistence_seconds: int) -> tuple[str, ...]:
    """Those that lasted; all of them where none did."""
    times: dict[str, list[datetime]] = defaultdict(list)
    for each in stretch:
        for cause in each.causes:
            times[cause].append(each.time)
    lasting = timedelta(seconds=persistence_seconds)
    lasted = [cause for cause, seen in times.items() if seen[-1] - seen[0] >= lasting]
    return tuple(sorted(lasted or times))


def reference_findings(snapshots: Path, settings: Settings) -> dict[tuple[Any, ...], Row]:
    """What the two tables of faulty queues must hold, by kind, group, topic, queue, beginning."""
    rules = StrategyRules(
        [StrategyRule(**each.to_rule()) for each in settings.strategies],
        settings.default_strategy,
    )
    routes = Routes(snapshots, timedelta(seconds=settings.route_max_age_seconds))
    rows = []
    for group, in_time in sorted(groups_in_time(snapshots).items()):
        # A topic stays with its group in all snapshots: with no member, nobody reads it.
        topics = {
            each["topic"]
            for snapshot in in_time.values()
            for members in snapshot.lists.values()
            for member in members
            for each in member["subscriptions"]
        }
        for topic in sorted(topics):
            rows += findings_of_topic(group, topic, in_time, routes, rules, settings)
    return {_key(row): row for row in rows}


def _key(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in COLUMNS[:6])


def audited_findings(reports: Location) -> dict[tuple[Any, ...], Row]:
    """What the audit published, in the shape of ``reference_findings``."""
    folder = Reports(reports)
    published = folder.resolve(None)
    rows = {}
    for kind, name in (("ORPHANED", "orphaned_queues"), ("DUPLICATE", "duplicate_queues")):
        place = folder.table(name, published.date, published.run_id)
        for row in place.parquet().to_table().to_pylist():
            row["kind"] = kind
            row["causes"] = tuple(row["causes"])
            row["probability"] = round(row["probability"], 9)
            row["completeness"] = round(row["completeness"], 9)
            row["claimants"] = tuple(
                sorted(
                    (c["client_id"], c["processes"], round(c["probability"], 9))
                    for c in row["claimants"]
                )
            )
            kept = {column: row[column] for column in COLUMNS}
            if _key(kept) in rows:
                raise ValueError(f"{name}: two rows of {_key(kept)}")
            rows[_key(kept)] = kept
    return rows


def differences(
    audited: dict[tuple[Any, ...], Row], reference: dict[tuple[Any, ...], Row]
) -> list[str]:
    """Every row that only one has, and every column in which they differ, in words."""
    told = [f"only the audit: {audited[key]}" for key in audited.keys() - reference.keys()]
    told += [f"only the reference: {reference[key]}" for key in reference.keys() - audited.keys()]
    for key in audited.keys() & reference.keys():
        told += [
            f"{key}: {column}: the audit {audited[key][column]}, here {reference[key][column]}"
            for column in COLUMNS
            if audited[key][column] != reference[key][column]
        ]
    return sorted(told)


def main() -> None:
    """Runs both, prints how they compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", choices=SIZES, default="S")
    parser.add_argument("--folder", type=Path, default=Path("build/bench"))
    args = parser.parse_args()
    tables = ensure(args.folder, f"full-{args.size}", named("full", args.size))
    folder = args.folder / f"reference-{args.size}"
    reports = Location(folder)
    reports.delete()
    with spark_session("reference") as spark:
        audit(spark, task(tables.snapshots, folder), Progress(quiet=True))
    started = time.perf_counter()
    reference = reference_findings(tables.snapshots, fleet_settings())
    seconds = time.perf_counter() - started
    told = differences(audited_findings(reports), reference)
    sys.stdout.write(
        f"{args.size}: {tables.heartbeats():,} heartbeats; {len(reference):,} findings by the "
        f"reference, in {seconds:.0f} s; {len(told):,} differences to the audit in "
        f"{len(COLUMNS)} columns\n"
    )
    sys.stdout.writelines(f"  {each}\n" for each in told[:10])
    sys.exit(1 if told or not reference else 0)


if __name__ == "__main__":
    main()
