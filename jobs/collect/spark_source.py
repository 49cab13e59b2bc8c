"""``spark.read.format("rocketmq_admin")``: a live round as a DataFrame, one row per answer.

    from jobs.collect.spark_source import register

    register(spark)
    answers = spark.read.format("rocketmq_admin").option("namesrv", "10.0.0.1:9876").load().cache()

The columns are those of a dump's lines (docs/dumps.md), times as the texts that they are there. A
partition is an address, so that executors ask in parallel; where there are fewer tasks than
addresses, some are asked after others. Each action asks anew, unless the answers are cached.

Options: ``namesrv`` (several with commas), ``name``, ``clusters``, ``groups`` and ``without``
(several with commas), ``topics``, ``account_file``, ``timeout_seconds``, ``parallel``, ``rate``,
``round_seconds``, ``running_infos_of_each_broker``; or ``config``, a file that the driver reads, as
docs/collect/collect.toml. No option has a key: an executor takes the account from its environment
or from the account file, as the command does.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from jobs.collect.client import ClientOptions, tls_context
from jobs.collect.planned import Unanswered, ask_planned, plan
from jobs.collect.rounds import Target
from jobs.collect.signature import find_account
from jobs.environment import fitting_workers
from jobs.errors import AuditError, SettingsError
from jobs.instants import Instant, to_instant

_COLUMNS = {
    "kind": "string",
    "cluster": "string",
    "snapshot_time": "string",
    "collected_at": "string",
    "namesrv_addr": "string",
    "topic": "string",
    "broker_name": "string",
    "broker_id": "bigint",
    "broker_addr": "string",
    "consumer_group": "string",
    "client_id": "string",
    "body": "string",
    "error_code": "int",
    "error_message": "string",
}
_OF_CLUSTER = {"namesrv", "name", "clusters", "groups", "topics", "without", "account_file"}
_LISTS = {"namesrv", "groups", "without"}
_OF_ROUND = {
    "timeout_seconds",
    "parallel",
    "rate",
    "round_seconds",
    "running_infos_of_each_broker",
}


def register(spark: SparkSession) -> None:
    """Registers the format with a session; SparkError where its workers do not fit."""
    with fitting_workers(spark):
        spark.dataSource.register(RocketMQAdmin)


class RocketMQAdmin(DataSource):
    """The format ``rocketmq_admin``; only for batches: ``collect`` is for round after round."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "rocketmq_admin"

    def schema(self) -> str:
        """The columns of a dump's lines."""
        return ", ".join(f"{name} {type_}" for name, type_ in _COLUMNS.items())

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002 - always all columns
        """SettingsError for options that are wrong."""
        return _Reader(_sources(self.options))


@dataclass(frozen=True)
class _Source:
    """One cluster, and how its servers are asked: without keys, for it goes through plans.

    ``tls``: the arguments of ``tls_context``.
    """

    target: Target
    options: ClientOptions
    account_file: str | None
    tls: tuple[str, str | None, str | None, str | None] | None

    def client(self) -> ClientOptions:
        """The options, with what this process has of account and certificates."""
        return replace(
            self.options,
            account=find_account(os.environ, self.account_file),
            tls=None if self.tls is None else tls_context(*self.tls),
        )


@dataclass
class _Address(InputPartition):
    """What is asked of one address."""

    source: _Source
    address: str
    planned: Sequence[Unanswered]


class _Reader(DataSourceReader):
    def __init__(self, sources: Sequence[_Source]) -> None:
        self._sources = sources

    def partitions(self) -> Sequence[InputPartition]:
        """One for each address; AuditError where no nameserver answers."""
        snapshot_time = _now()
        found = []
        for source in self._sources:
            addresses = asyncio.run(plan(source.target, source.client(), _now, snapshot_time))
            if not addresses:
                raise AuditError(
                    f"nothing to ask at {', '.join(source.target.namesrvs)}: no nameserver "
                    "answers, or no broker names a group that is wanted; see what "
                    "`rebalance-audit collect` prints about them"
                )
            found += [_Address(source, *each) for each in addresses.items()]
        return found

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        """The rows of one address; whatever fails is a row."""
        assert isinstance(partition, _Address)  # noqa: S101 - partitions() makes no other
        source = partition.source
        asked = ask_planned(
            partition.address, partition.planned, source.client(), _now, source.target.longest
        )
        for line in asyncio.run(asked):
            yield tuple(line.get(name) for name in _COLUMNS)


def _sources(given: Mapping[str, str]) -> list[_Source]:
    # A worker may have no pydantic; the driver has.
    from jobs.collect.options import load_options  # noqa: PLC0415

    unknown = sorted(given.keys() - _OF_CLUSTER - _OF_ROUND - {"config"})
    if unknown:
        # Without the values: one may be a key that does not belong here.
        raise SettingsError(f"rocketmq_admin: options that do not exist: {', '.join(unknown)}")
    cluster: dict[str, Any] = {
        name: _parts(given[name]) if name in _LISTS else given[name]
        for name in _OF_CLUSTER
        if name in given
    }
    of_round = {name: given[name] for name in _OF_ROUND if name in given}
    options = load_options(given.get("config"), {"dumps": "-", **of_round}, cluster)
    return [
        _Source(
            options.target(each),
            replace(options.client(each, {}), account=None, tls=None),
            each.account_file,
            None
            if each.tls is None
            else (each.tls.verify, each.tls.authorities, each.tls.certificate, each.tls.key),
        )
        for each in options.clusters
    ]


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")]


def _now() -> Instant:
    return to_instant(datetime.now(UTC))
