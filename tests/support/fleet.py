"""A generated fleet: snapshot tables of any size, faults with known truth in them, all seeded.

Each group lives through versions: periods of rounds in which its members, strategies and route
stay the same. A version is healthy or has one fault. The versions are made in Python, few as they
are; Spark lays them out over rounds, members and brokers. What is true of a faulty version is
worked out here on its own, from the two plain strategies alone: nothing of the audit is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from math import prod
from random import Random
from typing import Any

import pandas as pd
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.config.settings import Settings, StrategySetting
from jobs.schemas import BROKER_POLLS, HEARTBEATS, TOPIC_ROUTES, Table
from jobs.spark.schemas import spark_schema

CLUSTER = "fleet"
START = datetime(2026, 11, 20, tzinfo=UTC)
#: The rooms are in the names, for the groups that allocate by machine room.
BROKERS = ("room1@broker-a", "room1@broker-b", "room2@broker-c")

#: Of each kind of fault the fewest and the most rounds that it lasts; those of two are transient.
FAULTS = {
    "DUPLICATE_CLIENT_ID": (5, 30),
    "STALE_CHANNEL": (2, 2),
    "GHOST_MEMBER": (5, 30),
    "STRATEGY_MISMATCH": (5, 30),
    "SUBSCRIPTION_MISMATCH": (5, 30),
    "MANUAL_ASSIGNMENT": (5, 30),
    "MIXED_MESSAGE_MODEL": (5, 30),
    "EXPRESSION_MISMATCH": (5, 30),
    "BROKER_VIEW_DIVERGENCE": (2, 30),
    "GROUP_OFFLINE": (5, 30),
    # No fault of the group: the route grows, a broker does not answer.
    "ROUTE_CHANGED": (5, 30),
    "BROKER_SILENT": (2, 10),
}
_HEALTHY = "HEALTHY"
_STRATEGIES = ("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH", "MACHINE_ROOM", "MACHINE_ROOM_NEARBY")
#: The truth is worked out for these two.
_PLAIN = ("AVG", "AVG_BY_CIRCLE")


@dataclass(frozen=True)
class Fleet:
    """How large the fleet is, and how restless.

    ``churn`` is the share of the groups in which a client restarts from one round to the next,
    ``faulty`` the share of the groups that have faults, one after the other: those of ``faults``.
    ``strategies`` are what the healthy groups allocate by. Heartbeats: ``groups`` x ``members`` x
    3 brokers x ``rounds``.
    """

    groups: int
    rounds: int
    members: int = 12
    queues_per_broker: int = 8
    round_seconds: int = 60
    churn: float = 0.01
    faulty: float = 0.1
    seed: int = 1
    faults: tuple[str, ...] = tuple(FAULTS)
    strategies: tuple[str, ...] = _STRATEGIES
    #: The fewest and the most rounds between two faults of a group.
    healthy: tuple[int, int] = (6, 20)

    @property
    def heartbeats(self) -> int:
        """About how many rows the table of heartbeats has."""
        return self.groups * self.members * len(BROKERS) * self.rounds


def fleet_settings() -> Settings:
    """The settings that tell what nothing else can: the rooms."""
    rooms = [{"pattern": "(?P<room>room[0-9])@.*"}]
    return Settings(
        strategies=(
            StrategySetting(
                groups=".*-MACHINE_ROOM",
                name="MACHINE_ROOM",
                params={"consumeridcs": ["room1", "room2"]},
            ),
            StrategySetting(
                groups=".*-MACHINE_ROOM_NEARBY",
                name="MACHINE_ROOM_NEARBY-AVG",
                params={
                    "broker_room_patterns": rooms,
                    "client_room_patterns": [{"pattern": ".*@(?P<room>room[0-9])-.*"}],
                },
            ),
        )
    )


@dataclass(frozen=True)
class _Member:
    client_id: str
    port: int
    strategy: str
    subscribed: bool = True
    expression: str = "*"
    message_model: str = "CLUSTERING"
    chooses: bool = False
    silent: bool = False
    brokers: tuple[int, ...] = (0, 1, 2)


@dataclass(frozen=True)
class _Version:
    fault: str
    from_round: int
    until_round: int
    queues_per_broker: int
    members: tuple[_Member, ...]
    outcomes: tuple[str, ...] = ("ANSWERED",) * 3


def _versions(fleet: Fleet, number: int) -> tuple[str, list[_Version]]:
    """The group's name and its versions, which follow each other without a gap."""
    random = Random(f"{fleet.seed} {number}")  # noqa: S311 - reproducible, not secret
    is_faulty = random.random() < fleet.faulty
    strategy = random.choice(_PLAIN if is_faulty else fleet.strategies)
    ports = iter(range(1024, 1 << 30))
    serial = iter(range(1 << 30))

    def newcomer() -> _Member:
        each = next(serial)
        client_id = f"10.{number // 250}.{number % 250}.{each % 250}@room{each % 2 + 1}-{each}"
        return _Member(client_id, next(ports), strategy)

    members = tuple(newcomer() for _ in range(fleet.members))
    queues = fleet.queues_per_broker
    versions: list[_Version] = []
    round_ = 0
    faults = list(fleet.faults)
    random.shuffle(faults)
    while round_ < fleet.rounds:
        length = 1 if fleet.churn >= 1 else int(random.expovariate(max(fleet.churn, 1e-9))) + 1
        if is_faulty:
            # Long enough that what was before has settled, in the audit's eyes too.
            length = random.randint(*fleet.healthy)
        until = min(round_ + length, fleet.rounds)
        versions.append(_Version(_HEALTHY, round_, until, queues, members))
        round_ = until
        if not is_faulty:
            leaver = random.randrange(len(members))
            members = (*members[:leaver], newcomer(), *members[leaver + 1 :])
            continue
        fault = faults[len(versions) // 2 % len(faults)]
        until = round_ + random.randint(*FAULTS[fault])
        if until < fleet.rounds - 1:
            version = _with_fault(
                random, replace(versions[-1], from_round=round_, until_round=until), fault, ports
            )
            versions.append(version)
            queues = version.queues_per_broker
            if fault == "STALE_CHANNEL":
                members = version.members[:-1]
            round_ = until
    return f"G{number}-{strategy}", versions


#: What is otherwise of one member.
_OF_ONE: dict[str, dict[str, Any]] = {
    "GHOST_MEMBER": {"silent": True},
    "SUBSCRIPTION_MISMATCH": {"subscribed": False},
    "MANUAL_ASSIGNMENT": {"chooses": True},
    "MIXED_MESSAGE_MODEL": {"message_model": "BROADCASTING"},
    "EXPRESSION_MISMATCH": {"expression": "TagA"},
    "BROKER_VIEW_DIVERGENCE": {"brokers": (0, 1)},
}


def _with_fault(random: Random, version: _Version, fault: str, ports: Iterator[int]) -> _Version:
    members = list(version.members)
    one, other = random.sample(range(len(members)), 2)
    queues, outcomes = version.queues_per_broker, version.outcomes
    if fault == "DUPLICATE_CLIENT_ID":
        members[one] = replace(members[other], port=next(ports))
    elif fault == "STALE_CHANNEL":
        # It has connected anew; one broker has not noticed that the old connection is gone.
        members.append(replace(members[one], brokers=(random.randrange(3),)))
        members[one] = replace(members[one], port=next(ports))
    elif fault in _OF_ONE:
        members[one] = replace(members[one], **_OF_ONE[fault])
    elif fault == "STRATEGY_MISMATCH":
        changed = _PLAIN[members[one].strategy == _PLAIN[0]]
        members[one] = replace(members[one], strategy=changed)
    elif fault == "GROUP_OFFLINE":
        members, outcomes = [], ("NOT_ONLINE",) * 3
    elif fault == "ROUTE_CHANGED":
        queues += 1
    else:
        silent = random.randrange(3)
        outcomes = tuple("NO_ANSWER" if n == silent else "ANSWERED" for n in range(3))
    return replace(
        version,
        fault=fault,
        members=tuple(members),
        queues_per_broker=queues,
        outcomes=outcomes,
    )


# ---------------------------------------------------------------- what is true of a version


def _topics(group: str, queues_per_broker: int) -> dict[str, int]:
    return {f"T-{group}": queues_per_broker, f"%RETRY%{group}": 1}


def _takes(strategy: str, index: int, clients: int, queues: int) -> range:
    if strategy == "AVG_BY_CIRCLE":
        return range(index, queues, clients)
    size, rest = divmod(queues, clients)
    start = index * size + min(index, rest)
    return range(start, start + size + (index < rest))


def _true_findings(version: _Version, topic: str, queues: int) -> list[dict[str, Any]]:
    """The queues of the topic that have no owner, or several, at times or always."""
    names = [(broker, number) for broker in BROKERS for number in range(queues)]
    lists = [
        sorted(m.client_id for m in version.members if broker in m.brokers)
        for broker, outcome in enumerate(version.outcomes)
        if outcome == "ANSWERED"
    ]
    shares: list[list[float]] = []
    for member in version.members:
        claims = [0.0] * len(names)
        is_retry = topic.startswith("%RETRY%")
        takes_part = (member.subscribed or is_retry) and not member.silent and not member.chooses
        if len(member.brokers) == 1:
            continue  # a stale channel of another member
        if takes_part and member.message_model == "CLUSTERING":
            # A broker that lacks it for so long is one that it does not reach: it gets no list from
            # there, and reads no queue of it.
            reached = [BROKERS[broker] for broker in member.brokers]
            having = [listed for listed in lists if member.client_id in listed]
            for listed in having:
                slot = listed.index(member.client_id)
                for position in _takes(member.strategy, slot, len(listed), len(names)):
                    if names[position][0] in reached:
                        claims[position] += 1 / len(having)
        shares.append([1.0 if claim > 1 - 1e-9 else claim for claim in claims])
    found = []
    for position, (broker, number) in enumerate(names):
        column = [share[position] for share in shares]
        none = prod(1 - c for c in column)
        sure = sum(c == 1.0 for c in column)
        several = sure > 1 or sum(c > 0 for c in column) > 1
        if none > 0:
            found.append(("ORPHANED", broker, number, max(column, default=0.0) == 0))
        if several:
            found.append(("DUPLICATE", broker, number, sure > 1))
    return [
        {
            "topic": topic,
            "kind": kind,
            "broker_name": broker,
            "queue_id": number,
            "certainty": "CERTAIN" if certain else "POSSIBLE",
        }
        for kind, broker, number, certain in found
    ]


def _describe(fleet: Fleet, number: int) -> Iterator[dict[str, Any]]:
    group, versions = _versions(fleet, number)
    for version in versions:
        found = [
            finding
            for topic, queues in _topics(group, version.queues_per_broker).items()
            for finding in (
                () if version.fault == _HEALTHY else _true_findings(version, topic, queues)
            )
        ]
        without_finding = version.fault in ("EXPRESSION_MISMATCH", "MIXED_MESSAGE_MODEL")
        faulty = {finding["topic"] for finding in found}
        if without_finding:
            faulty.add(f"T-{group}")
        if version.fault == "MIXED_MESSAGE_MODEL":
            faulty.add(f"%RETRY%{group}")
        if version.fault == "ROUTE_CHANGED":
            faulty = {f"T-{group}"}
        yield {
            "consumer_group": group,
            "fault": version.fault,
            "from_round": version.from_round,
            "until_round": version.until_round,
            "read_queue_nums": version.queues_per_broker,
            "outcomes": list(version.outcomes),
            "members": [
                {
                    "client_id": m.client_id,
                    "port": m.port,
                    "strategy": m.strategy,
                    "message_model": m.message_model,
                    "consume_type": "CONSUME_ACTIVELY" if m.chooses else "CONSUME_PASSIVELY",
                    "topics": [] if m.chooses else _subscribed(group, m),
                    "expression": m.expression,
                    "silent": m.silent,
                    "brokers": list(m.brokers),
                }
                for m in version.members
            ],
            "findings": found,
            "faulty_topics": sorted(faulty),
        }


def _subscribed(group: str, member: _Member) -> list[str]:
    return [*([f"T-{group}"] if member.subscribed else []), f"%RETRY%{group}"]


_DESCRIPTION = (
    "consumer_group string, fault string, from_round int, until_round int, read_queue_nums int, "
    "outcomes array<string>, members array<struct<client_id:string,port:int,strategy:string,"
    "message_model:string,consume_type:string,topics:array<string>,expression:string,"
    "silent:boolean,brokers:array<int>>>, findings array<struct<topic:string,kind:string,"
    "broker_name:string,queue_id:int,certainty:string>>, faulty_topics array<string>"
)


def describe_fleet(spark: SparkSession, fleet: Fleet) -> DataFrame:
    """One row per group and version, with its members and what is true of it."""

    def describe(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for batch in batches:
            rows = [row for number in batch["id"] for row in _describe(fleet, int(number))]
            yield pd.DataFrame(rows)

    return spark.range(0, fleet.groups, 1, max(2, fleet.groups // 250)).mapInPandas(
        describe, _DESCRIPTION
    )


# ---------------------------------------------------------------- the tables


def _time(fleet: Fleet, round_: str) -> Column:
    return F.timestamp_seconds(F.lit(int(START.timestamp())) + F.expr(round_) * fleet.round_seconds)


def _in_rounds(fleet: Fleet, versions: DataFrame) -> DataFrame:
    """A row per version and round; some rounds were missed, never the first or last of a version.

    All groups of the fleet begin in round 0: what was before their first round nobody can tell.
    """
    rounds = versions.withColumn(
        "round", F.explode(F.sequence("from_round", F.col("until_round") - 1))
    )
    missed = (
        (F.pmod(F.xxhash64("consumer_group", "round", F.lit(fleet.seed)), F.lit(200)) == 0)
        & (F.col("round") > F.col("from_round"))
        & (F.col("round") < F.col("until_round") - 1)
    )
    return rounds.where(~missed).withColumns(
        {"cluster": F.lit(CLUSTER), "snapshot_time": _time(fleet, "round")}
    )


def _per_broker(rounds: DataFrame) -> DataFrame:
    names = F.array(*[F.lit(name) for name in BROKERS])
    return rounds.select("*", F.posexplode("outcomes").alias("broker", "outcome")).withColumns(
        {"broker_name": F.get(names, F.col("broker")), "broker_id": F.lit(0)}
    )


def _conform(rows: DataFrame, table: Table) -> DataFrame:
    """The columns of the table's schema, in its order and of its types; others are null."""
    return rows.selectExpr(
        *[
            f"CAST({f'`{field.name}`' if field.name in rows.columns else 'NULL'}"
            f" AS {field.dataType.simpleString()}) AS `{field.name}`"
            for field in spark_schema(table)
        ]
    )


def fleet_heartbeats(fleet: Fleet, versions: DataFrame) -> DataFrame:
    """The table ``heartbeats``."""
    listed = (
        _per_broker(_in_rounds(fleet, versions))
        .where(F.col("outcome") == "ANSWERED")
        .select("*", F.explode("members").alias("m"))
        .where(F.array_contains("m.brokers", F.col("broker")))
    )
    tags = F.transform(
        "m.topics",
        lambda topic: F.struct(
            topic.alias("topic"),
            F.lit("TAG").alias("expression_type"),
            F.when(topic.startswith("%RETRY%"), F.lit("*"))
            .otherwise(F.col("m.expression"))
            .alias("expression"),
        ),
    )
    # Each in its own rhythm, a little off at times. One that is silent was heard last before its
    # version began.
    off = F.pmod(F.xxhash64("m.client_id", "m.port", "broker", "round"), F.lit(1000))
    seconds = F.when(F.col("m.silent"), F.lit(1000)).otherwise(F.col("m.port") % 30)
    heard = F.col("snapshot_time") - F.make_interval(secs=seconds + off / 1000)
    return _conform(
        listed.select(
            "cluster",
            "snapshot_time",
            "broker_name",
            "broker_id",
            "consumer_group",
            "m.client_id",
            F.concat(
                F.split_part("m.client_id", F.lit("@"), F.lit(1)),
                F.lit(":"),
                F.col("m.port") * 3 + F.col("broker"),
            ).alias("client_addr"),
            F.lit("JAVA").alias("language"),
            F.lit(401).alias("version"),
            "m.consume_type",
            "m.message_model",
            tags.alias("subscriptions"),
            F.lit("HEARTBEAT").alias("subscription_source"),
            "m.strategy",
            F.lit("RUNNING_INFO").alias("strategy_source"),
            F.lit(None).alias("client_rebalance"),
            F.lit(None).alias("pull_consumer"),
            heard.alias("last_heartbeat_at"),
        ),
        HEARTBEATS,
    )


def fleet_polls(fleet: Fleet, versions: DataFrame) -> DataFrame:
    """The table ``broker_polls``."""
    here = F.filter("members", lambda m: F.array_contains(m["brokers"], F.col("broker")))
    rows = _per_broker(_in_rounds(fleet, versions)).withColumns(
        {
            "connections": F.when(F.col("outcome") == "ANSWERED", F.size(here)).otherwise(0),
            "broker_addr": F.concat("broker_name", F.lit(":10911")),
            "error_code": F.when(F.col("outcome") == "NOT_ONLINE", 206).when(
                F.col("outcome") == "NO_ANSWER", -1
            ),
            "error_message": F.lit(None),
        }
    )
    return _conform(rows, BROKER_POLLS)


def fleet_routes(fleet: Fleet, versions: DataFrame) -> DataFrame:
    """The table ``topic_routes``: polled in every round, by topic."""
    own = F.concat(F.lit("T-"), F.col("consumer_group"))
    retry = F.concat(F.lit("%RETRY%"), F.col("consumer_group"))
    topics = F.array(
        F.struct(own.alias("topic"), F.col("read_queue_nums").alias("queues")),
        F.struct(retry.alias("topic"), F.lit(1).alias("queues")),
    )
    rows = _per_broker(
        _in_rounds(fleet, versions).withColumn("t", F.explode(topics)).select("*", "t.*")
    )
    return _conform(
        rows.withColumns(
            {
                "namesrv_addr": F.lit("nameserver:9876"),
                "broker_ids": F.array(F.lit(0)),
                "perm": F.lit(6),
                "read_queue_nums": F.col("queues"),
                "write_queue_nums": F.col("queues"),
                "zone_name": F.lit(None),
            }
        ),
        TOPIC_ROUTES,
    )


def true_findings(fleet: Fleet, versions: DataFrame) -> DataFrame:
    """One row per group, topic, kind and queue of a faulty version: since when, until when, why."""
    return (
        versions.where(F.size("findings") > 0)
        .select("*", F.explode("findings").alias("f"))
        .select(
            "consumer_group",
            "f.*",
            F.col("fault").alias("cause"),
            _time(fleet, "from_round").alias("first_seen"),
            _time(fleet, "until_round - 1").alias("last_seen"),
        )
    )


def true_faults(fleet: Fleet, versions: DataFrame) -> DataFrame:
    """One row per group, topic and fault of a faulty version."""
    return versions.select(
        "consumer_group",
        F.explode("faulty_topics").alias("topic"),
        "fault",
        _time(fleet, "from_round").alias("first_seen"),
        _time(fleet, "until_round - 1").alias("last_seen"),
    )
