"""findings against the previous run: NEW, PERSISTING, RESOLVED."""

from __future__ import annotations

import pytest

from jobs.reports.statuses import first_status, former_findings, open_findings, with_status
from tests.support.snapshots import CLUSTER, at, frame

pytestmark = pytest.mark.spark

FINDINGS = (
    "finding_id string, kind string, cluster string, consumer_group string, topic string, "
    "broker_name string, queue_id int, first_seen timestamp, last_seen timestamp, "
    "episode_first_seen timestamp, severity string, causes array<string>, persistence string, "
    "ongoing boolean"
)
HEALTH = "cluster string, consumer_group string, topic string, audited_snapshots bigint"


def finding(finding_id, *, group="G", lasts=True, ongoing=True, first=0, last=600):
    persistence = "PERSISTENT" if lasts else "TRANSIENT"
    times = (at(first), at(last), at(0))
    return (
        *(finding_id, "ORPHANED", CLUSTER, group, "T", "broker-a", 1),
        *(*times, "CRITICAL", ["DUPLICATE_CLIENT_ID"], persistence, ongoing),
    )


def findings(spark, *rows):
    return frame(spark, FINDINGS, rows)


def test_a_finding_is_open_where_it_had_lasted_and_was_not_over(spark):
    night = findings(
        spark,
        finding("open", first=300, last=600),
        finding("open", first=0, last=299),  # with another certainty, before
        finding("over", ongoing=False),
        finding("passing", lasts=False),
    )

    (row,) = open_findings(night).collect()

    assert (row.finding_id, row.kind, row.queue_id) == ("open", "ORPHANED", 1)
    assert (row.last_seen - row.first_seen).total_seconds() == 600


@pytest.mark.parametrize(
    ("row", "status"),
    [
        (finding("open"), "PERSISTING"),
        (finding("open", ongoing=False), "PERSISTING"),
        (finding("open", lasts=False), "PERSISTING"),  # the window begins in it
        (finding("open", lasts=False, ongoing=False), None),  # ended right after the window began
        (finding("other"), "NEW"),
        (finding("other", ongoing=False), "NEW"),
        (finding("other", lasts=False), None),
    ],
)
def test_a_finding_is_new_or_goes_on(spark, row, status):
    before = open_findings(findings(spark, finding("open")))

    (found,) = with_status(findings(spark, row), before).collect()

    assert found.status == status


def test_without_a_previous_run_what_lasts_is_new(spark):
    rows = findings(spark, finding("lasts"), finding("passed", lasts=False))
    told = {row.finding_id: row.status for row in first_status(rows).collect()}
    assert told == {"lasts": "NEW", "passed": None}


def test_what_is_not_there_any_more_is_resolved_where_the_group_was_recomputed(spark):
    before = open_findings(
        findings(
            spark,
            finding("goes on"),
            finding("passes now"),
            finding("gone"),
            finding("not seen", group="H"),
        )
    )
    now = findings(spark, finding("goes on"), finding("passes now", lasts=False, ongoing=False))
    # That another topic, or the group in another cluster, was recomputed says nothing.
    others = [("other", "H", "T", 5), (CLUSTER, "H", "U", 5)]
    health = frame(spark, HEALTH, [(CLUSTER, "G", "T", 5), (CLUSTER, "H", "T", 0), *others])

    rows = former_findings(now, before, health).collect()

    assert {(row.finding_id, row.status) for row in rows} == {
        ("passes now", "RESOLVED"),
        ("gone", "RESOLVED"),
        ("not seen", "NOT_AUDITED"),
    }
