"""findings against the previous run: NEW, PERSISTING, RESOLVED."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.declared.dossier import EarlierFinding
from jobs.declared.kinds import fault_id, finding_id, stall_id
from jobs.judge.result.rows import former_findings, openness
from tests.judge.phases import at, extent


def time(first_seen=60, *, lasts=True, ongoing=True):
    persistence = "PERSISTENT" if lasts else "TRANSIENT"
    return extent(first_seen, first_seen, persistence=persistence, ongoing=ongoing)


@pytest.mark.parametrize(
    ("id_", "of", "expected"),
    [
        ("open", time(), "PERSISTING"),
        ("open", time(ongoing=False), "PERSISTING"),
        ("open", time(lasts=False), "PERSISTING"),  # the window begins in it
        ("open", time(lasts=False, ongoing=False), None),  # ended right after the window began
        ("other", time(), "NEW"),
        ("other", time(ongoing=False), "NEW"),
        ("other", time(lasts=False), None),
    ],
)
def test_a_finding_is_new_or_goes_on(id_, of, expected):
    assert openness(id_, of, {"open": earlier("open")}).status == expected
    if id_ == "other":
        assert openness(id_, of, {}).status == expected, "the same without a previous run"


def earlier(finding_id_, topic="T"):
    place = ("ORPHANED", topic, "broker-a", 1, at(0), at(600))
    return EarlierFinding(finding_id_, *place, "CRITICAL", ("GHOST_MEMBER",), at(0), 1)


def test_what_is_not_there_any_more_is_resolved_where_the_topic_was_recomputed():
    before = [earlier("goes on"), earlier("passes now"), earlier("gone"), earlier("not seen", "U")]
    rows = former_findings(before, {"goes on"}, audited={"T"}, polled=())
    # That another topic was recomputed says nothing.
    expected = {"passes now": "RESOLVED", "gone": "RESOLVED", "not seen": "NOT_AUDITED"}
    assert {row["finding_id"]: row["status"] for row in rows} == expected


def test_the_id_of_a_finding_is_that_of_its_queue_and_kind():
    names = ("cluster", "consumer_group", "topic", "broker_name", "queue_id", "kind")
    queue = dict(zip(names, ("DefaultCluster", "G", "T", "broker-a", 0, "ORPHANED"), strict=True))
    others = dict(zip(names, ("other", "H", "%RETRY%G", "broker-b", 1, "DUPLICATE"), strict=True))
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
    names = ((one, other), (other, one))
    ids = {finding_id("c", *each, "b", 0, "ORPHANED") for each in names}
    assert len(ids) == (1 if one == other else 2)


def marked(of, before=()):
    return openness("id", of, {each.finding_id: each for each in before})


def open_before(**values):
    return earlier("id")._replace(**values)


def test_a_finding_is_open_since_the_first_night_in_a_row_that_has_it():
    assert marked(time()) == ("NEW", at(60), 1)
    second = marked(time(), [open_before(open_since=at(0), nights_open=1)])
    assert second == ("PERSISTING", at(0), 2)
    third = marked(time(), [open_before(open_since=second[1], nights_open=second[2])])
    assert third == ("PERSISTING", at(0), 3)
    # What passed is not open; a night without it begins anew.
    was_open = open_before(open_since=at(0), nights_open=3)
    assert marked(time(lasts=False, ongoing=False), [was_open]) == (None, None, None)
    assert marked(time(), [earlier("another")._replace(nights_open=7)]) == ("NEW", at(60), 1)
    # A window that reaches behind the run before shows an earlier beginning.
    assert marked(time(first_seen=-600), [was_open])[1] == at(-600)


def test_a_fault_that_no_queue_shows_is_open_until_its_topic_is_audited_again():
    fault = earlier("f")._replace(kind="EXPRESSION_MISMATCH", broker_name="", queue_id=-1)
    by_offsets = fault._replace(finding_id="o", kind="GROUP_NOT_CONSUMING")
    passes = fault._replace(finding_id="p", kind="ROUTE_CHANGED")
    shown = fault._replace(finding_id="s", kind="GHOST_MEMBER")
    before = [fault, by_offsets, passes, shown, earlier("queue")]

    def not_audited(audited, polled, go_on=()):
        rows = former_findings(before, go_on, audited, polled)
        return {row["finding_id"] for row in rows if row["status"] == "NOT_AUDITED"}

    # With the queue the fault stays open that its finding names, and ROUTE_CHANGED passes.
    assert not_audited((), ()) == {"f", "o", "queue"}
    assert not_audited((), (), go_on={"f"}) == {"o", "queue"}
    assert not_audited({"T"}, ()) == {"o"}
    assert not_audited((), {"T"}) == {"f", "queue"}


def test_the_ids_of_stalls_and_faults_are_those_that_alerts_made():
    """Users have them in tickets: the values are those of the first version that sent them."""
    group = ("C", "G", "T")
    assert stall_id(*group, "broker-a", 0) == "a1e245e67b149a48"
    assert fault_id(*group, "EXPRESSION_MISMATCH", ["a"]) == "0b23c9ec94ad0cbb"
    assert fault_id(*group, "FROZEN_PROCESS", ["b", "a"]) == "6655fccc7d4c9bab"
    assert fault_id(*group, "FROZEN_PROCESS", ["a"]) != fault_id(*group, "FROZEN_PROCESS", ["b"])
