"""findings, against the known issues -> the same findings, those that are known marked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import and_

from pyspark.errors import IllegalArgumentException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.errors import SettingsError
from jobs.kinds import QUEUE_FINDINGS, STALLED
from jobs.known_issues import KnownIssue

#: The column with the reason why a finding is known; null where it is not.
KNOWN_ISSUE = "known_issue"


@dataclass(frozen=True)
class _Names:
    """What a table's rows are called, in SQL: ``kind`` a text, the others arrays; None: no name."""

    kind: str
    clients: str | None
    brokers: str | None
    topics: str = "array(topic)"
    groups: str = "array(consumer_group)"
    clusters: str = "array(cluster)"
    has_queue: bool = False


def _of_queues(kind: str, clients: str) -> _Names:
    return _Names(f"'{kind}'", clients, "array(broker_name)", has_queue=True)


_NAMES = {
    **{
        table: _of_queues(kind, "owners" if kind == STALLED else "claimants.client_id")
        for table, kind in QUEUE_FINDINGS.items()
    },
    "stacked_client_ids": _Names("verdict", "array(client_id)", None, topics="topics"),
    "group_faults": _Names("fault", "client_ids", "broker_names"),
}

#: The tables whose findings can be known.
MARKED_TABLES = tuple(_NAMES)


def not_marked() -> Column:
    """The column ``known_issue`` of findings that nothing is known of yet."""
    return F.lit(None).cast("string")


def mark_known(
    tables: Mapping[str, DataFrame], entries: Iterable[KnownIssue]
) -> dict[str, DataFrame]:
    """The tables, with ``known_issue`` of each finding: the reason of the first entry it matches.

    The entries are taken as they come: whether they have expired is the caller's to know.
    """
    known = list(entries)
    if not known:
        return dict(tables)
    marked = {
        name: rows.withColumn(KNOWN_ISSUE, _reason(_NAMES[name], known))
        for name, rows in tables.items()
        if name in _NAMES
    }
    return {**tables, **marked}


def _reason(names: _Names, entries: Iterable[KnownIssue]) -> Column:
    reasons = [F.when(_matches(names, each), F.lit(each.reason)) for each in entries]
    return F.coalesce(*reasons, not_marked())


def _matches(names: _Names, entry: KnownIssue) -> Column:
    conditions = []
    for key, pattern in entry.patterns().items():
        named: str | None = getattr(names, key)
        if named is None:
            return F.lit(False)
        conditions.append(_each_is(F.expr(named), pattern))
    if entry.queues is not None:
        if not names.has_queue:
            return F.lit(False)
        conditions.append(F.col("queue_id").isin(*entry.queues))
    if entry.kinds is not None:
        conditions.append(F.expr(names.kind).isin(*entry.kinds))
    return reduce(and_, conditions)


def _each_is(names: Column, pattern: str) -> Column:
    """Whether there are names and the pattern matches the whole of each."""
    return (F.size(names) > 0) & F.forall(names, lambda name: name.rlike(_whole(pattern)))


def _whole(pattern: str) -> str:
    return rf"\A(?:{pattern})\z"


def check_patterns(spark: SparkSession, entries: Iterable[KnownIssue]) -> None:
    """Raises SettingsError, before anything runs, with every pattern that Java cannot read."""
    # Spark would say so too, when the tables are written: after all the work.
    regex = spark.sparkContext._jvm.java.util.regex  # type: ignore[union-attr]
    problems = []
    for number, entry in enumerate(entries):
        for key, pattern in entry.patterns().items():
            try:
                regex.Pattern.compile(_whole(pattern))
            except IllegalArgumentException as error:
                said = str(error).partition(" near index")[0]
                problems.append(f"  known_issues.{number}.{key}: {said}, came {pattern!r}")
    if problems:
        raise SettingsError(
            "known issues: expected regular expressions that Java reads:\n" + "\n".join(problems)
        )
