"""Precision and recall of the audit over a generated fleet with every kind of fault in it.

    python -m tests.bench.truth --size S

Runs the audit as a user does, then joins what it published with what is true of the fleet, in
Spark: nothing is collected but the counts, so that it holds for 50 million heartbeats. A finding is
right where kind, queue, certainty, both times and the causes are; a fault where its kind, group,
topic and beginning are. Exits with 1 where anything is wrong or missing.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from functools import reduce
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.pipeline.audit_on_spark import audit
from jobs.progress import Progress
from jobs.session import spark_session
from jobs.storage import Location, Published, Reports
from tests.bench.contenders.audit import task
from tests.bench.fleets import SIZES, Tables, ensure, named

QUEUE = ["kind", "consumer_group", "topic", "broker_name", "queue_id"]
FINDING = [*QUEUE, "certainty", "first_seen", "last_seen", "cause"]
FAULT = ["consumer_group", "topic", "fault", "first_seen"]


@dataclass(frozen=True)
class Score:
    """How many rows were found, how many are true, and how many are both."""

    what: str
    found: int
    true: int
    both: int

    @property
    def is_perfect(self) -> bool:
        """Whether nothing is missing and nothing is false, of at least one."""
        return 0 < self.true == self.both == self.found

    def __str__(self) -> str:
        precision, recall = self.both / max(1, self.found), self.both / max(1, self.true)
        return f"| {self.what} | {self.found:,} | {self.true:,} | {precision:.4%} | {recall:.4%} |"


def score(what: str, found: DataFrame, true: DataFrame, columns: list[str]) -> Score:
    """Compares two tables as multisets of rows, by the columns: copies that are too many count."""
    counts = [
        rows.groupBy(*columns).agg(F.count(F.lit(1)).alias(name))
        for name, rows in (("found", found), ("true", true))
    ]
    numbers = [F.coalesce(name, F.lit(0)) for name in ("found", "true")]
    totals = (
        counts[0]
        .join(counts[1], columns, "full")
        .agg(*[F.coalesce(F.sum(each), F.lit(0)) for each in (*numbers, F.least(*numbers))])
        .first()
    )
    assert totals is not None
    return Score(what, *totals)


def published_findings(spark: SparkSession, reports: Reports, published: Published) -> DataFrame:
    """The two tables of faulty queues as one, with their causes as one text."""
    tables = []
    for kind, name in (("ORPHANED", "orphaned_queues"), ("DUPLICATE", "duplicate_queues")):
        place = reports.table(name, published.date, published.run_id)
        tables.append(spark.read.parquet(place.uri).withColumn("kind", F.lit(kind)))
    findings = reduce(DataFrame.unionByName, tables)
    return findings.withColumn("cause", F.array_join("causes", " and "))


def scores(spark: SparkSession, tables: Tables, reports: Reports) -> list[Score]:
    """The scores of the published run: whole findings, findings by less, and faults."""
    published = reports.resolve(None)
    found = published_findings(spark, reports, published).select(FINDING).cache()
    true = spark.read.parquet(str(tables.true_findings)).select(FINDING).cache()
    faults = reports.table("group_faults", published.date, published.run_id)
    by_columns = {
        "findings: all of it": FINDING,
        "findings: kind, queue, first seen": [*QUEUE, "first_seen"],
        "findings: ... and last seen": [*QUEUE, "first_seen", "last_seen"],
        "findings: ... and certainty": [*QUEUE, "first_seen", "certainty"],
        "findings: ... and causes": [*QUEUE, "first_seen", "cause"],
    }
    told = [score(what, found, true, columns) for what, columns in by_columns.items()]
    true_faults = spark.read.parquet(str(tables.true_faults))
    told.append(score("faults", spark.read.parquet(faults.uri), true_faults, FAULT))
    return told


def main() -> None:
    """Audits, and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", choices=SIZES, default="S")
    parser.add_argument("--folder", type=Path, default=Path("build/bench"))
    args = parser.parse_args()
    tables = ensure(args.folder, f"full-{args.size}", named("full", args.size))
    folder = args.folder / f"truth-{args.size}"
    reports = Location(folder)
    reports.delete()
    with spark_session("truth") as spark:
        audit(spark, task(tables.snapshots, folder), Progress(quiet=True))
        told = scores(spark, tables, Reports(reports))
    lines = [
        f"{args.size}: {tables.heartbeats():,} heartbeats, all faults, all strategies",
        "",
        "| | found | true | precision | recall |",
        "|---|---|---|---|---|",
        *[str(each) for each in told],
    ]
    sys.stdout.write("\n".join(lines) + "\n")
    sys.exit(0 if all(each.is_perfect for each in told) else 1)


if __name__ == "__main__":
    main()
