"""findings against the previous run: NEW, PERSISTING, RESOLVED."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.judge.dossier import EarlierFinding
from jobs.judge.statuses import finding_id, former_findings, status
from tests.judge.phases import at


def finding(finding_id_, *, lasts=True, ongoing=True):
    persistence = "PERSISTENT" if lasts else "TRANSIENT"
    return {"finding_id": finding_id_, "persistence": persistence, "ongoing": ongoing}


@pytest.mark.parametrize(
    ("row", "expected"),
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
def test_a_finding_is_new_or_goes_on(row, expected):
    assert status(row, {"open"}) == expected


def test_without_a_previous_run_what_lasts_is_new():
    assert status(finding("lasts"), set()) == "NEW"
    assert status(finding("passed", lasts=False), set()) is None


def earlier(finding_id_, topic="T"):
    return EarlierFinding(
        finding_id_,
        *("ORPHANED", topic, "broker-a", 1, at(0), at(600), "CRITICAL", ("GHOST_MEMBER",)),
    )


def test_what_is_not_there_any_more_is_resolved_where_the_topic_was_recomputed():
    before = [earlier("goes on"), earlier("passes now"), earlier("gone"), earlier("not seen", "U")]
    now = [finding("goes on"), finding("passes now", lasts=False, ongoing=False)]

    rows = former_findings(before, now, audited={"T"})

    assert {(row["finding_id"], row["status"]) for row in rows} == {
        ("passes now", "RESOLVED"),
        ("gone", "RESOLVED"),
        # That another topic was recomputed says nothing.
        ("not seen", "NOT_AUDITED"),
    }


def test_a_former_finding_is_as_the_previous_run_had_it():
    (row,) = former_findings([earlier("gone")], [], audited=())

    assert (row["kind"], row["topic"], row["broker_name"], row["queue_id"]) == (
        *("ORPHANED", "T", "broker-a", 1),
    )
    assert (row["first_seen"], row["last_seen"], row["severity"]) == (at(0), at(600), "CRITICAL")
    assert row["causes"] == ("GHOST_MEMBER",)


def test_the_id_of_a_finding_is_that_of_its_queue_and_kind():
    queue = {
        "cluster": "DefaultCluster",
        "consumer_group": "G",
        "topic": "T",
        "broker_name": "broker-a",
        "queue_id": 0,
        "kind": "ORPHANED",
    }
    others = {
        "kind": "DUPLICATE",
        "queue_id": 1,
        "broker_name": "broker-b",
        "topic": "%RETRY%G",
        "consumer_group": "H",
        "cluster": "other",
    }

    # Users keep these ids in tickets and silences: they must not change from version to version.
    assert finding_id(**queue) == "b773ccbf7b5106df"
    ids = {finding_id(**queue | {name: value}) for name, value in others.items()}
    assert len(ids - {"b773ccbf7b5106df"}) == len(others)


@pytest.mark.parametrize(
    ("name", "queue_id", "expected"),
    [
        ("plain", 0, "e3e55263089a0307"),
        ("日本😀", 1, "49d7e17770e61886"),
        ('a"b\\c/d', 2, "c4381c0f78879e91"),
        ("tab\tnl\nbs\bff\fcr\r", 3, "513eeacafca99327"),
        # Control characters in upper case, and nothing else escaped.
        ("nul\x00\x01\x1f\x0b\x7f\x80\u2028\u2029", 4, "f30ac3c821c1088c"),
        ("\\u001f", 5, "42c5501be940eee9"),
        ("<&'>é", 6, "be83fd4fbfdce7e9"),
        ("\ufeffx\u200e", 7, "c526746dc3bb8a7c"),
    ],
)
def test_ids_are_those_that_spark_made(name, queue_id, expected):
    """0.1.0 hashed Spark's to_json of the names: these ids are what Spark 4 gave."""
    made = finding_id("c", name, f"%RETRY%{name}", f"b{name}", queue_id, "ORPHANED")
    assert made == expected


@given(st.text(), st.text())
def test_no_name_can_be_taken_for_another(one, other):
    """A name that holds quotes and commas must not end where another one begins."""
    ids = {
        finding_id("c", one, other, "b", 0, "ORPHANED"),
        finding_id("c", other, one, "b", 0, "ORPHANED"),
    }
    assert len(ids) == (1 if one == other else 2)
