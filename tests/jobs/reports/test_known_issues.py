"""findings against the known issues: which are marked, and by which entry."""

from __future__ import annotations

from datetime import date

import pytest
from chispa import assert_df_equality

from jobs.errors import SettingsError
from jobs.known_issues import KnownIssue
from jobs.reports.known_issues import MARKED_TABLES, check_patterns, mark_known
from jobs.schemas import REPORT_TABLES
from tests.support.snapshots import CLUSTER, frame

pytestmark = pytest.mark.spark

QUEUES = (
    "cluster string, consumer_group string, topic string, broker_name string, queue_id int, "
    "claimants array<struct<client_id:string,processes:int,probability:double>>"
)
STACKED = (
    "cluster string, consumer_group string, topics array<string>, client_id string, verdict string"
)
FAULTS = (
    "cluster string, consumer_group string, topic string, fault string, client_ids array<string>, "
    "broker_names array<string>"
)


def entry(reason="why", groups=".*", **keys):
    return KnownIssue(groups=groups, reason=reason, expires=date(2026, 12, 31), **keys)


def queue(group="G", topic="T", broker="broker-a", queue_id=0, clients=()):
    claimants = [(client_id, 1, 1.0) for client_id in clients]
    return (CLUSTER, group, topic, broker, queue_id, claimants)


def reasons(spark, table, schema, rows, *entries):
    """The reason of each row, by its place."""
    marked = mark_known({table: frame(spark, schema, rows)}, entries)[table]
    return [row.known_issue for row in marked.coalesce(1).collect()]


@pytest.mark.parametrize(
    ("known", "is_marked"),
    [
        (entry(groups="G"), True),
        (entry(groups="G|H"), True),
        (entry(groups="H"), False),
        (entry(groups="g"), False),
        (entry(clusters=f"{CLUSTER}"), True),
        (entry(clusters="other"), False),
        (entry(topics="T"), True),
        (entry(topics="%RETRY%.*"), False),
        (entry(brokers="broker-[ab]"), True),
        (entry(brokers="broker"), False),  # over the whole name
        (entry(queues=(0, 3)), True),
        (entry(queues=(1,)), False),
        (entry(kinds=("DUPLICATE", "STALLED")), True),
        (entry(kinds=("ORPHANED",)), False),
        (entry(clients=r"10\.0\.0\..*"), True),
        (entry(clients=r"10\.0\.0\.1@.*"), False),  # each of them
        (entry(groups="G", topics="T", queues=(0,), kinds=("ORPHANED",)), False),
    ],
    ids=str,
)
def test_all_that_an_entry_says_has_to_fit(spark, known, is_marked):
    found = [queue(clients=("10.0.0.1@a", "10.0.0.2@a"))]

    assert reasons(spark, "duplicate_queues", QUEUES, found, known) == [
        "why" if is_marked else None
    ]


def test_the_first_entry_that_matches_marks_a_finding(spark):
    found = [queue(group=group) for group in ("A", "B", "C")]
    known = [entry("one", "A"), entry("two", "A|B")]

    assert reasons(spark, "orphaned_queues", QUEUES, found, *known) == ["one", "two", None]


def test_a_finding_without_a_client_is_not_known_by_one(spark):
    known = entry(clients=".*")

    assert reasons(spark, "orphaned_queues", QUEUES, [queue()], known) == [None]


@pytest.mark.parametrize(
    ("pattern", "name", "is_marked"),
    [
        ("a", "a\n", False),  # $ would match before the end of the line
        ("a|b", "xb", False),
        ("a.c", "a.c", True),
        ("G\\.1", "G.1", True),
        ("日本.*", "日本-1", True),
        ("'", "'", True),
    ],
)
def test_a_pattern_goes_over_the_whole_name(spark, pattern, name, is_marked):
    found = reasons(spark, "orphaned_queues", QUEUES, [queue(group=name)], entry(groups=pattern))

    assert found == ["why" if is_marked else None]


def test_a_stacked_id_is_known_by_its_verdict_and_where_all_its_topics_are(spark):
    found = [
        (CLUSTER, "G", ["T", "%RETRY%G"], "id", verdict) for verdict in ("STACKED", "STALE_CHANNEL")
    ]

    def marked(**keys):
        every = reasons(spark, "stacked_client_ids", STACKED, found, entry(**keys))
        return [each is not None for each in every]

    assert marked(kinds=("STACKED",)) == [True, False]
    assert marked(topics="T") == [False, False]
    assert marked(topics="T|%RETRY%G") == [True, True]
    assert marked(clients="id", kinds=("STALE_CHANNEL",)) == [False, True]
    assert marked(brokers=".*") == [False, False]  # it is on no broker in particular
    assert marked(queues=(0,)) == [False, False]


def test_a_fault_is_known_by_its_name_its_clients_and_its_brokers(spark):
    found = [
        (CLUSTER, "G", "T", "STRATEGY_MISMATCH", ["a", "b"], []),
        (CLUSTER, "G", "T", "ROUTE_DIVERGENCE", [], ["broker-a"]),
    ]

    def marked(**keys):
        every = reasons(spark, "group_faults", FAULTS, found, entry(**keys))
        return [each is not None for each in every]

    assert marked(kinds=("ROUTE_DIVERGENCE",)) == [False, True]
    assert marked(clients="a") == [False, False]
    assert marked(clients="[ab]") == [True, False]
    assert marked(brokers="broker-.*") == [False, True]


def test_a_stall_is_known_by_its_owners(spark):
    schema = QUEUES.partition("claimants")[0] + "owners array<string>"
    found = [(CLUSTER, "G", "T", "broker-a", 0, ["a", "b"])]

    assert reasons(spark, "stalled_queues", schema, found, entry(clients="a")) == [None]
    known = entry(clients="a|b", kinds=("STALLED",))
    assert reasons(spark, "stalled_queues", schema, found, known) == ["why"]


def test_without_entries_the_tables_stay_as_they_are(spark):
    tables = {"orphaned_queues": frame(spark, QUEUES, [queue()])}

    assert_df_equality(mark_known(tables, [])["orphaned_queues"], tables["orphaned_queues"])


def test_every_table_that_can_be_marked_has_the_column():
    with_column = {table.name for table in REPORT_TABLES if "known_issue" in table.schema.names}
    assert with_column == set(MARKED_TABLES)


def test_a_pattern_that_only_python_reads_is_refused(spark):
    known = [entry("one"), entry("two", groups="(?P<name>G)", topics="a{")]
    with pytest.raises(SettingsError) as raised:
        check_patterns(spark, known)
    assert "known_issues.1.groups" in str(raised.value)
    assert "known_issues.1.topics" in str(raised.value)
    assert "known_issues.0" not in str(raised.value)
    check_patterns(spark, known[:1])
