"""``spark.read.format("rocketmq_admin")`` against servers that answer as real ones do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import jobs
from jobs.collect.spark_source import RocketMQAdmin, register
from jobs.errors import SettingsError
from tests.support.remote_cluster import RemoteCluster
from tests.support.replay import Manners, Replay, in_thread

SECRET = "top-secret"  # noqa: S105


@pytest.fixture
def cluster() -> RemoteCluster:
    made = RemoteCluster(is_5=True)
    # An id that two processes have: the queues of its second place are nobody's.
    made.add_group("G", ["x", "y", "y"], ["T"])
    return made


@pytest.fixture
def servers(cluster: RemoteCluster) -> Iterator[Replay]:
    # a:10941 is a slave that hangs.
    manners = {"a:10941": Manners(hangs_after=0)}
    with in_thread(Replay(cluster.answers(), manners)) as replay:
        yield replay


@pytest.fixture
def config(tmp_path: Path, servers: Replay, cluster: RemoteCluster) -> Path:
    (tmp_path / "tools.yml").write_text(f"accessKey: reader\nsecretKey: {SECRET}\n")
    lines = [
        "timeout_seconds = 0.5",
        "[[clusters]]",
        f"namesrv = {json.dumps(list(cluster.namesrvs))}",
        f"account_file = {json.dumps(str(tmp_path / 'tools.yml'))}",
        "[clusters.connect_to]",
        *(f'"{address}" = "{at}"' for address, at in servers.connect_to.items()),
    ]
    (tmp_path / "collect.toml").write_text("\n".join(lines))
    return tmp_path / "collect.toml"


def read(spark: SparkSession, config: Path) -> DataFrame:
    register(spark)
    return spark.read.format("rocketmq_admin").option("config", str(config)).load()


@pytest.mark.spark
def test_a_live_round_in_the_shell(
    spark: SparkSession, config: Path, servers: Replay, cluster: RemoteCluster, capfd: Any
) -> None:
    answers = read(spark, config).cache()
    rows = answers.collect()
    # A partition is an address, and every row of it is of that address.
    assert answers.rdd.getNumPartitions() == len(cluster.namesrvs) + len(cluster.addresses)
    of_lists = {row.broker_addr: row for row in rows if row.kind == "consumer_connection"}
    assert of_lists.keys() == set(cluster.addresses)
    assert json.loads(of_lists["a:10911"].body)["connectionSet"]
    assert of_lists["a:10941"].error_code in (-1, -2)
    assert of_lists["a:10941"].body is None
    assert len({row.snapshot_time for row in rows}) == 1
    assert {row.kind for row in rows} == {
        *("consumer_connection", "consume_stats", "consumer_running_info"),
        *("message_request_mode", "topic_route", "cluster_info"),
        *("subscription_group", "consumer_topics"),
    }

    before = len(servers.requests)
    reports = jobs.audit_frames(**jobs.snapshot_frames(answers))
    assert len(servers.requests) == before
    assert [row.client_id for row in reports["stacked_client_ids"].collect()] == ["y"]
    assert not reports["orphaned_queues"].isEmpty()

    assert all(frame.fields["AccessKey"] == "reader" for _, frame in servers.requests)
    answers.explain(extended=True)
    answers.show()
    shown = capfd.readouterr()
    assert SECRET not in shown.out + shown.err + repr(rows)


@pytest.mark.spark
def test_where_no_nameserver_answers_the_reason_is_told(spark: SparkSession) -> None:
    register(spark)
    source = spark.read.format("rocketmq_admin").option("namesrv", "127.0.0.1:1")
    with pytest.raises(Exception, match=r"nothing to ask at 127\.0\.0\.1:1: no nameserver answers"):
        source.load().collect()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({}, "expected --namesrv HOST:PORT"),
        ({"namesrv": "n1"}, "expected host:port, came 'n1'"),
        ({"namesrv": "n1:1", "without": "lists"}, "expected some of"),
        ({"namesrv": "n1:1", "parallel": "many"}, "parallel"),
        ({"namesrv": "n1:1", "secret_key": SECRET}, "options that do not exist: secret_key"),
        ({"config": "collect.toml", "namesrv": "n1:1"}, "came also namesrv"),
    ],
)
def test_wrong_options_are_refused_and_no_secret_is_shown(
    options: dict[str, str], says: str
) -> None:
    with pytest.raises(SettingsError, match=says) as refused:
        RocketMQAdmin(options).reader(None)  # type: ignore[arg-type]
    assert SECRET not in str(refused.value)
