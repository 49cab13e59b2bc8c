"""How bad it is: findings, stalls, and the faults behind them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jobs.declared.dossier import Dossier
from jobs.judge.observe.backlog import Backlog
from jobs.judge.result.severity import Harms, finding_severity
from jobs.judge.rules.episodes import fault_episodes
from jobs.judge.rules.why import OTHER_FILTER
from rebalance_core.findings import Claimant
from tests.judge.lists import started
from tests.judge.phases import TERMS, fault, phase, queue_finding, stall, timeline


def finding(kind, probability, unread_share, **values):
    left = Backlog(unread_share=unread_share)
    return queue_finding(kind=kind, probability=probability, left=left, **values)


@pytest.mark.parametrize(
    ("persistence", "kind", "probability", "unread_share", "orderly", "severity"),
    [
        ("PERSISTENT", "ORPHANED", 1.0, None, None, "CRITICAL"),
        ("PERSISTENT", "ORPHANED", 0.5, 0.0, False, "CRITICAL"),
        ("PERSISTENT", "ORPHANED", 0.49, 0.0, True, "WARNING"),
        ("PERSISTENT", "ORPHANED", 0.49, None, None, "WARNING"),
        ("PERSISTENT", "ORPHANED", 0.49, -0.5, None, "WARNING"),
        # A few messages are always on their way.
        ("PERSISTENT", "ORPHANED", 0.1, 0.04, None, "WARNING"),
        # Messages pile up: nobody reads it, however improbable that looked.
        ("PERSISTENT", "ORPHANED", 0.1, 0.1, None, "CRITICAL"),
        ("PERSISTENT", "ORPHANED", 0.1, 0.5, None, "CRITICAL"),
        ("PERSISTENT", "ORPHANED", 0.09, 0.5, None, "INFO"),
        ("PERSISTENT", "DUPLICATE", 1.0, None, None, "WARNING"),
        ("PERSISTENT", "DUPLICATE", 1.0, 0.5, False, "WARNING"),
        ("PERSISTENT", "DUPLICATE", 0.1, None, None, "WARNING"),
        ("PERSISTENT", "DUPLICATE", 0.09, None, True, "INFO"),
        # Two that read a queue break the order that the group is to keep.
        ("PERSISTENT", "DUPLICATE", 0.5, None, True, "CRITICAL"),
        ("PERSISTENT", "DUPLICATE", 0.49, None, True, "WARNING"),
        ("TRANSIENT", "ORPHANED", 1.0, 0.5, None, "INFO"),
        ("TRANSIENT", "DUPLICATE", 1.0, None, True, "INFO"),
    ],
)
def test_severity_follows_persistence_probability_and_the_harm_that_is_done(
    persistence, kind, probability, unread_share, orderly, severity
):
    found = finding(kind, probability, unread_share, persistence=persistence)
    assert finding_severity(found, TERMS, orderly=orderly) == severity


@pytest.mark.parametrize(
    ("claimants", "held", "severity"),
    [
        # A broker gives the lock of a queue to one client id ...
        ([("a", 1), ("b", 1)], None, "WARNING"),
        # ... and so to all processes that have it.
        ([("a", 2)], None, "CRITICAL"),
        ([("a", 2), ("b", 1)], None, "CRITICAL"),
        # They differ otherwise: a JAVA and a GO client, or one is in one list only.
        ([("a", 1), ("a", 1)], None, "CRITICAL"),
        ([("a", 1), ("b", 1)], True, "CRITICAL"),
    ],
)
def test_the_order_is_kept_where_one_of_two_ids_waits_for_the_lock(claimants, held, severity):
    both = tuple(Claimant(*each, 1.0) for each in claimants)
    found = finding("DUPLICATE", 1.0, None, claimants=both, held=held)
    assert finding_severity(found, TERMS, orderly=True) == severity


@pytest.mark.parametrize(
    ("kind", "unread_share", "held", "severity"),
    [
        # Read throughout. That it is held makes it no matter of what clients draw alone.
        ("ORPHANED", 0.0, True, "WARNING"),
        ("ORPHANED", 0.1, True, "CRITICAL"),
        ("DUPLICATE", 0.0, True, "CRITICAL"),
        # What no holder and no offset shows; that messages pile up shows it.
        ("ORPHANED", None, False, "WARNING"),
        ("ORPHANED", 0.1, False, "CRITICAL"),
        ("DUPLICATE", None, False, "WARNING"),
    ],
)
def test_what_is_possible_is_a_warning_unless_it_is_held_or_messages_pile_up(
    kind, unread_share, held, severity
):
    of = {"held": True, "is_always_read": True} if held else {}
    found = finding(kind, 0.5 if held else 0.9, unread_share, certainty="POSSIBLE", **of)
    assert finding_severity(found, TERMS, orderly=True) == severity
    assert not replace(found, held=True).is_doubtful
    assert not replace(found, moved=True).is_doubtful


def test_filters_that_differ_are_as_bad_as_the_stalls_that_they_explain():
    mismatch = fault_of("EXPRESSION_MISMATCH", queues_affected=0)
    assert graded(mismatch) == "WARNING"
    assert graded(mismatch, stalls=[stall(severity="CRITICAL")]) == "WARNING"
    stalls = [stall(severity="CRITICAL", why=OTHER_FILTER)]
    assert graded(mismatch, stalls=stalls) == "CRITICAL"


def test_a_fault_is_doubtful_while_its_findings_are():
    doubtful = Harms([row("WARNING", first=200, certainty="POSSIBLE")], [], 0.5)
    assert doubtful.are_doubtful(fault_of())
    assert not doubtful.are_doubtful(fault_of(last=180))
    assert not doubtful.are_doubtful(fault_of("STRATEGY_MISMATCH"))
    assert not Harms([row("CRITICAL")], [], 0.5).are_doubtful(fault_of())
    # The offsets of another queue show it: lists and routes are not all.
    moved = replace(row("CRITICAL", first=200, certainty="POSSIBLE"), moved=True)
    both = Harms([row("WARNING", first=200, certainty="POSSIBLE"), moved], [], 0.5)
    assert not both.are_doubtful(fault_of())
    improbable = row("WARNING", first=200, certainty="POSSIBLE", probability=0.4)
    assert not Harms([improbable], [], 0.5).are_doubtful(fault_of())


@pytest.mark.parametrize(
    ("told", "orderly"),
    [
        ([False, True, None], True),
        ([False], False),
        ([None], None),  # asked, and did not say
        ([], None),  # not asked
    ],
)
def test_a_group_is_orderly_where_any_client_of_it_says_so(told, orderly):
    clients = [started("a", 0)._replace(consume_orderly=each) for each in told]
    assert Dossier("C", "G", clients=clients).consumes_in_order is orderly


def fault_of(name="GHOST_MEMBER", first=0, last=300, **overrides):
    found = fault(name, **overrides)
    (episode,) = fault_episodes(timeline(phase(1, first, last, faults=(found,))), 180)
    return episode


def row(severity, first=0, last=300, **values):
    return queue_finding(first, last, severity=severity, **values)


def graded(fault_, findings=(), stalls=()):
    return Harms(findings, stalls, 0.5).severity_of(fault_)


def test_findings_of_another_cause_topic_or_time_say_nothing_of_a_fault():
    for other in (
        row("CRITICAL", causes=["STRATEGY_MISMATCH"]),
        row("CRITICAL", topic="T2"),
        row("CRITICAL", first=301, last=600),
    ):
        assert graded(fault_of(first=0, last=300), [row("WARNING"), other]) == "WARNING"
    touching = row("CRITICAL", first=300, last=600)
    assert graded(fault_of(first=0, last=300), [touching]) == "CRITICAL"


def test_a_lasting_fault_that_shows_on_no_queue_is_a_warning_unless_it_passes_by_itself():
    """Members that filter differently lose messages, and no queue tells."""
    for name, last, severity in (
        ("EXPRESSION_MISMATCH", 300, "WARNING"),
        ("MIXED_MESSAGE_MODEL", 300, "WARNING"),
        ("EXPRESSION_MISMATCH", 60, "INFO"),
        # The clients follow a new route; the broker drops an old connection.
        ("ROUTE_CHANGED", 300, "INFO"),
        ("STALE_CHANNEL", 300, "INFO"),
    ):
        assert graded(fault_of(name, last=last, queues_affected=0)) == severity
    # One cause of a lasting finding among others, there for a moment.
    assert graded(fault_of(last=60), [row("CRITICAL")]) == "INFO"


def test_a_frozen_process_is_as_bad_as_the_stalls_of_its_queues():
    frozen = fault_of("FROZEN_PROCESS", client_ids=("a",))
    stalls = [
        stall(severity="WARNING"),
        stall(severity="CRITICAL", owners=("b",)),
        stall(severity="CRITICAL", topic="T2"),
    ]
    assert graded(frozen, stalls=stalls) == "WARNING"
    both = stall(severity="CRITICAL", owners=("a", "b"))
    assert graded(frozen, stalls=[*stalls, both]) == "CRITICAL"
    # What several queues say of a stall says nothing of another fault.
    assert graded(fault_of(), [row("WARNING")], [stall(severity="CRITICAL")]) == "WARNING"
