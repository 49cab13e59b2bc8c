"""Situations that users of RocketMQ reported in public: what the audit says is the accepted answer.

Beside them stand situations of a real cluster: what the audit says is what its listeners got.
``expected.json`` beside each dump has what must be found, and what must not: see tests/data.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

import pytest

from tests.support.audited import audit_dumps, lasting

_DATA = Path(__file__).parent.parent / "data"
#: By public report; the field book has each.
CASES = sorted(path.name for path in (_DATA / "field").iterdir())
FOLDERS = {path.name: path for part in ("field", "clusters") for path in (_DATA / part).iterdir()}
SITUATIONS = sorted(FOLDERS)
_TEXTS = ("evidence", "remedy", "reason")
_WITH_TEXTS = ("group_faults", "stacked_client_ids", "group_health")


@cache
def audit():
    """All of them in one run: each is a cluster of its own."""
    return audit_dumps([FOLDERS[case] / "dump.jsonl.gz" for case in SITUATIONS])


def expected(case):
    return json.loads((FOLDERS[case] / "expected.json").read_text())


def rows(case, table):
    wanted = expected(case)
    return [
        row
        for row in audit()[table]
        if row["cluster"] == wanted["cluster"]
        and row.get("consumer_group") in (wanted["group"], "")
    ]


def names(case, table):
    topics = expected(case)["topics"]
    return {
        f"{row['topic']}/{row['broker_name']}/{row['queue_id']}"
        for row in lasting(rows(case, table))
        if row["topic"] in topics
    }


def text(case):
    return "\n".join(
        str(row.get(column) or "")
        for table in _WITH_TEXTS
        for row in rows(case, table)
        for column in _TEXTS
    )


@pytest.mark.parametrize("case", SITUATIONS)
def test_the_queues_that_are_wrong_are_found_and_no_others(case):
    wanted = expected(case)
    for table, key in (("orphaned_queues", "orphaned"), ("duplicate_queues", "duplicate")):
        if wanted.get(key) is not None:
            assert names(case, table) == set(wanted[key]), table
    stalled_or_orphaned = names(case, "stalled_queues") | names(case, "orphaned_queues")
    assert set(wanted.get("starved", ())) <= stalled_or_orphaned
    assert set(wanted.get("stalled", ())) <= stalled_or_orphaned
    assert not set(wanted.get("no_orphans", ())) & names(case, "orphaned_queues")


@pytest.mark.parametrize("case", SITUATIONS)
def test_the_faults_are_found_and_no_wrong_ones(case):
    wanted = expected(case)
    of_topics = [row for row in rows(case, "group_faults") if row["topic"] in wanted["topics"]]
    there = {row["fault"] for row in lasting(of_topics)}
    assert set(wanted["faults"]) <= there
    assert not there & set(wanted["must_not"])
    assert set(wanted.get("transient_faults", ())) <= {
        row["fault"] for row in rows(case, "group_faults")
    }
    stacked = {
        row["client_id"] for row in rows(case, "stacked_client_ids") if row["verdict"] == "STACKED"
    }
    assert set(wanted.get("stacked", ())) <= stacked


@pytest.mark.parametrize("case", SITUATIONS)
def test_the_words_help_whoever_reads_them(case):
    wanted, said = expected(case), text(case)
    for pattern in wanted.get("say", ()):
        assert re.search(pattern, said), pattern
    everything = json.dumps([rows(case, t) for t in audit()], default=str, ensure_ascii=False)
    for pattern in wanted.get("not_say", ()):
        assert not re.search(pattern, everything), pattern
    for pattern in wanted.get("lasting", ()):
        ongoing = [row for row in rows(case, "group_faults") if row["ongoing"]]
        assert any(re.search(pattern, row["evidence"]) for row in ongoing), pattern


@pytest.mark.parametrize("case", SITUATIONS)
def test_health_and_witnesses_are_as_the_report_has_them(case):
    wanted = expected(case)
    health = {row["topic"]: row for row in rows(case, "group_health")}
    for topic, number in wanted.get("idle", {}).items():
        assert health[topic]["idle_clients"] == number
    for topic, coverage in wanted.get("not_coverage", {}).items():
        assert health[topic]["coverage"] != coverage
    if wanted.get("confirmed_not_false"):
        for table in ("orphaned_queues", "duplicate_queues"):
            found = [row for row in rows(case, table) if row["topic"] in wanted["topics"]]
            assert not [row for row in found if row["confirmed"] is False]
