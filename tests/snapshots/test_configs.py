"""Whether brokers have a configuration of a group, where not all of them always have one."""

from __future__ import annotations

from jobs.dumps.statement import ConfigAnswer, LineSource, Statement
from jobs.snapshots.groups import ClusterConfigs, SnapshotTerms, group_tables


def rows_of(group, *answers):
    """(broker, whether it has the group) of each answer of two brokers."""
    configured = {
        ("C", name): {n: ConfigAnswer(n, groups) for n, groups in enumerate(of_broker)}
        for name, of_broker in zip("ab", answers, strict=True)
    }
    terms = SnapshotTerms(130, configs=ClusterConfigs.by_cluster(configured))
    statement = Statement("subscription_group", "C", group, 0, 0, 0, LineSource("a", 0), None)
    return [
        (row["broker_name"], row["source"])
        for name, table in group_tables([statement], terms)
        for row in table.to_pylist()
        if row["source"] in ("CONFIGURED", "NOT_CONFIGURED")
    ]


HAS, NOT = frozenset({"G", "H"}), frozenset({"H"})


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
