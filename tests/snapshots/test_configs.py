"""Whether brokers have a configuration of a group, where not all of them always have one."""

from __future__ import annotations

import pytest

from jobs.dumps.counts import Counts
from jobs.dumps.statement import LineSource, Statement
from jobs.snapshots.clients import ClusterConfigs
from jobs.snapshots.groups import SnapshotTerms, group_tables


def rows_of(group, *answers):
    """(broker, whether it has the group) of each answer of two brokers."""
    counts = Counts()
    for name, of_broker in zip("ab", answers, strict=True):
        for n, groups in enumerate(of_broker):
            counts.add_configured(("C", groups), {(name, n): n})
    terms = SnapshotTerms(130, configs=ClusterConfigs.by_cluster(counts.configured))
    statement = Statement("subscription_group", "C", group, 0, 0, 0, LineSource("a", 0), None)
    return [
        (row["broker_name"], row["source"])
        for name, table in group_tables([statement], terms)
        for row in table.to_pylist()
        if row["source"] in ("CONFIGURED", "NOT_CONFIGURED")
    ]


HAS, NOT = ("G", "H"), ("H",)


def test_a_group_that_some_broker_always_has_makes_no_rows():
    assert rows_of("G", [HAS, HAS], [NOT, NOT]) == []
    assert rows_of("G", [HAS, NOT], [NOT, HAS]) == [
        ("a", "CONFIGURED"),
        ("a", "NOT_CONFIGURED"),
        ("b", "NOT_CONFIGURED"),
        ("b", "CONFIGURED"),
    ]


def test_an_answer_that_is_about_no_group_makes_no_rows():
    assert rows_of("", [HAS], [HAS]) == []


def test_of_two_answers_in_one_round_the_later_one_counts():
    counts = Counts()
    counts.add_configured(("C", NOT), {("a", 0): 5, ("a", 1): 9})
    counts.add_configured(("C", HAS), {("a", 0): 4, ("a", 1): 10})
    configs = ClusterConfigs.by_cluster(counts.configured)["C"]
    assert [row["source"] for row in configs.rows("C", "G")] == ["NOT_CONFIGURED", "CONFIGURED"]


def test_lists_that_repeat_themselves_are_one_of_all_rounds_and_masters():
    parts = [Counts(), Counts()]
    for number, part in enumerate(parts):
        for name in "ab":
            part.add_configured(("C", HAS), {(name, number): number})
    whole = Counts.of(parts).configured
    assert whole == {("C", HAS): {(name, n): n for n in range(2) for name in "ab"}}


@pytest.mark.parametrize(("last", "rows"), [(6, 0), (5, 16)])
def test_a_master_that_went_for_good_has_no_group_for_ever(last, rows):
    """a answers from round 0 to the last one of these, always with the group; b never has it."""
    counts = Counts()
    counts.add_configured(("C", HAS), {("a", round_): round_ for round_ in range(last + 1)})
    counts.add_configured(("C", NOT), {("b", round_): round_ for round_ in range(10)})
    configs = ClusterConfigs.by_cluster(counts.configured)["C"]
    assert len([*configs.rows("C", "G")]) == rows
