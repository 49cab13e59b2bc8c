"""What is wrong with a topic, put together from the rows of its findings and faults."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.judge.rules.why import CUT_OFF, NOBODY_HOLDS_IT, OTHER_FILTER
from jobs.reports.problems import Problem, read_problems, remedies_of
from jobs.reports.run_findings import read_findings
from rebalance_core.texts import Text, encode, for_slots
from tests.support.published import (
    RowTables,
    fault,
    finding,
    health,
    minute,
    two_processes_share_one_client_id,
)


def only(tables: RowTables) -> Problem:
    (problem,) = read_problems(tables)
    return problem


def test_a_problem_sums_up_a_topic() -> None:
    problem = only(RowTables(**two_processes_share_one_client_id()))
    assert problem.severity == "CRITICAL"
    assert problem.is_counted
    assert problem.ongoing
    assert problem.statuses == {"NEW"}
    assert problem.headline == "2 queues consumed by nobody and 2 consumed by several"
    assert (problem.first_seen, problem.last_seen) == (minute(10), minute(19))
    assert problem.remedy == "give each process its own instanceName"
    assert (problem.orphan_queue_minutes, problem.duplicate_queue_minutes) == (20.0, 20.0)


def test_who_it_is_about_is_not_of_a_fault_that_passed() -> None:
    # No member reaches a broker; one of them looked frozen before.
    lasts = fault("GROUP_NOT_ON_BROKER", client_ids=[])
    passed = fault(
        "FROZEN_PROCESS", client_ids=["c"], persistence="TRANSIENT", ongoing=False, severity="INFO"
    )
    assert only(RowTables(group_faults=[lasts, passed])).client_ids == ()
    assert only(RowTables(group_faults=[passed])).client_ids == ("c",)


def test_who_it_is_about_is_of_a_fault_that_is_still_there_where_it_is() -> None:
    """Two processes shared an id until minute 13; since minute 20 the group has no member."""
    over = {"ongoing": False, "first_seen": minute(6), "last_seen": minute(13)}
    shared = fault("DUPLICATE_CLIENT_ID", client_ids=["a"], **over)
    offline = fault("GROUP_OFFLINE", client_ids=[], first_seen=minute(20), last_seen=minute(30))
    orphan = finding(first_seen=minute(20), last_seen=minute(30), causes=["GROUP_OFFLINE"])
    tables = {"orphaned_queues": [orphan], "group_faults": [shared, offline]}
    problem = only(RowTables(**tables))
    assert (problem.main_kind.name, problem.client_ids) == ("GROUP_OFFLINE", ())
    ended = {**tables, "orphaned_queues": [orphan | over], "group_faults": [shared]}
    assert only(RowTables(**ended)).client_ids == ("a",)


def test_a_queue_with_several_runs_counts_once() -> None:
    runs = [finding(0), finding(0, first_seen=minute(30), last_seen=minute(40))]
    problem = only(RowTables(orphaned_queues=runs))
    assert problem.lasting == {"ORPHANED": 1}
    assert problem.last_seen == minute(40)


def test_what_passed_by_itself_does_not_count() -> None:
    passed = finding(severity="INFO", persistence="TRANSIENT", status=None, ongoing=False)
    problem = only(RowTables(duplicate_queues=[passed]))
    assert not problem.is_counted
    assert problem.statuses == set()
    assert problem.headline == "1 queue consumed by several, for a moment"
    begun = passed | {"ongoing": True}
    problem = only(RowTables(duplicate_queues=[begun]))
    idle = RowTables(duplicate_queues=[begun], group_health=[health(backlog=0)])
    # That nothing waits is worth a word where something lasts.
    assert only(idle).headline == problem.headline
    assert (problem.ongoing, problem.is_counted) == (True, False)
    assert problem.headline == "1 queue consumed by several, not seen for long yet"


def test_a_finding_that_depends_on_the_broker_asked_is_at_times() -> None:
    possible = finding(certainty="POSSIBLE")
    for rows, headline in (
        ([possible], "1 queue at times consumed by nobody"),
        ([possible, finding(1)], "2 queues consumed by nobody"),
    ):
        assert only(RowTables(orphaned_queues=rows)).headline == headline


def test_a_lasting_fault_without_findings_is_a_warning_and_a_passing_one_is_not() -> None:
    filters = fault("EXPRESSION_MISMATCH", queues_affected=0)
    problem = only(RowTables(group_faults=[filters]))
    assert (problem.severity, problem.is_counted) == ("WARNING", True)
    assert problem.headline == "Members filter the topic differently"
    for passes in ("ROUTE_CHANGED", "STALE_CHANNEL"):
        row = fault(passes, queues_affected=0, severity="INFO")
        assert not only(RowTables(group_faults=[row])).is_counted


def test_a_fault_is_as_bad_as_its_row_says() -> None:
    def severity(**values: Any) -> tuple[str, bool]:
        problem = only(RowTables(group_faults=[fault("EXPRESSION_MISMATCH", **values)]))
        return problem.severity, problem.is_counted

    for told, counts in (("CRITICAL", True), ("WARNING", True), ("INFO", False)):
        assert severity(queues_affected=0, severity=told) == (told, counts)
    assert severity(queues_affected=2, severity="CRITICAL") == ("CRITICAL", True)
    # How bad it is then stands in its findings, known issues and all.
    shown = {**finding(), "causes": ["EXPRESSION_MISMATCH"], "known_issue": "OPS-1"}
    faults = [fault("EXPRESSION_MISMATCH", queues_affected=2, severity="CRITICAL")]
    problem = only(RowTables(group_faults=faults, orphaned_queues=[shown]))
    assert problem.standing == "KNOWN"


def test_a_lasting_fault_that_is_too_improbable_to_warn_of_has_not_passed() -> None:
    (mild,) = only(RowTables(group_faults=[fault(severity="INFO")])).faults
    assert mild.lasts


def test_a_known_issue_is_shown_and_not_counted() -> None:
    known = finding(known_issue="OPS-1: moved next week")
    problem = only(RowTables(orphaned_queues=[known], group_faults=[fault()]))
    assert problem.standing == "KNOWN"
    assert not problem.is_counted
    assert problem.known_issues == ("OPS-1: moved next week",)
    assert problem.severity == "CRITICAL"


def test_what_no_known_issue_explains_counts_as_bad_as_it_is() -> None:
    rows = [finding(0, known_issue="OPS-1"), finding(1, severity="WARNING", ongoing=False)]
    problem = only(RowTables(orphaned_queues=rows))
    assert problem.is_counted
    assert problem.severity == "WARNING"
    assert not problem.ongoing
    assert problem.known_issues == ("OPS-1",)


def test_one_run_of_a_fault_that_nobody_knows_makes_it_count() -> None:
    of = fault("EXPRESSION_MISMATCH", queues_affected=0)
    filters = [of | {"known_issue": reason} for reason in ("OPS-1", None)]
    assert only(RowTables(group_faults=filters[:1])).standing == "KNOWN"
    assert only(RowTables(group_faults=filters)).is_counted


def test_the_worst_comes_first_and_the_known_last() -> None:
    rows = [
        finding(topic="passed", severity="INFO", persistence="TRANSIENT"),
        finding(topic="known", known_issue="OPS-1"),
        finding(topic="over", ongoing=False),
        finding(topic="long"),
        finding(topic="narrow"),
        finding(topic="wide"),
        finding(1, topic="wide"),
        finding(topic="warning", severity="WARNING"),
    ]
    lasted = [health(topic="long", orphan_queue_minutes=9.0)]
    problems = read_problems(RowTables(orphaned_queues=rows, group_health=lasted))
    order = ["long", "wide", "narrow", "warning", "over", "passed", "known"]
    assert [problem.place.topic for problem in problems] == order


def stall(owner: str = "b", **values: Any) -> dict[str, Any]:
    stalled = finding(severity="WARNING", owners=[owner], why="a listener hangs", certainty=None)
    return stalled | {"causes": None} | values


def test_a_stall_that_no_fault_explains_has_the_remedy_of_its_own_owner() -> None:
    """A nameserver lacked a broker in another hour, and at this time; the queue is read by b."""
    for first in (minute(10), minute(30)):
        lacks = fault("ROUTE_DIVERGENCE", severity="INFO", client_ids=[], queues_affected=9)
        lacks |= {"first_seen": first, "last_seen": minute(90)}
        problem = only(RowTables(stalled_queues=[stall()], group_faults=[lacks]))
        assert problem.cause is not None
        assert (problem.cause.fault, problem.client_ids) == ("STALLED", ("b",))
        assert problem.cause.evidence == "queue 0 of broker-a does not move; a listener hangs"
        assert problem.remedy == "fix what holds up these queues at b: a listener hangs"
        assert [each.fault for each in problem.faults] == ["STALLED", "ROUTE_DIVERGENCE"]


def test_a_stall_that_a_fault_explains_has_the_remedy_of_that_fault() -> None:
    frozen = fault("FROZEN_PROCESS", client_ids=["b"])
    (shown,) = only(RowTables(stalled_queues=[stall()], group_faults=[frozen])).faults
    assert shown.fault == "FROZEN_PROCESS"
    # Of another process, and in another hour.
    of_another = only(RowTables(stalled_queues=[stall("c")], group_faults=[frozen]))
    later = frozen | {"first_seen": minute(30), "last_seen": minute(40)}
    at_another_time = only(RowTables(stalled_queues=[stall()], group_faults=[later]))
    for problem in (of_another, at_another_time):
        assert [each.fault for each in problem.faults] == ["STALLED", "FROZEN_PROCESS"]


@pytest.mark.parametrize(
    ("kind", "explains"),
    [
        *(("FROZEN_PROCESS", "b"), ("CLIENT_NOT_ANSWERING", "b"), ("GHOST_MEMBER", "b")),
        *(("RECONNECTING", ""), ("STALE_CHANNEL", ""), ("UNLISTED_CONSUMER", "")),
        # What the stall says of itself decides.
        *(("EXPRESSION_MISMATCH", OTHER_FILTER), ("QUEUE_NOT_HELD", NOBODY_HOLDS_IT)),
        *(("BROKER_VIEW_DIVERGENCE", CUT_OFF), ("GROUP_NOT_ON_BROKER", CUT_OFF)),
        *(("MASTER_AWAY", "broker-a"), ("ROUTE_DIVERGENCE", "")),
    ],
)
def test_a_stall_is_explained_by_a_fault_that_holds_its_queue_up_and_by_no_other(
    kind: str, explains: str
) -> None:
    """``explains``: the owner or the broker that it is about, or what the stall says."""

    def causes(why: str, **about: Any) -> set[str]:
        values = {"severity": "WARNING", "queues_affected": 0, "client_ids": ["b"]}
        beside = fault(kind, **values | {"broker_names": ["broker-a"]} | about)
        tables = RowTables(stalled_queues=[stall(why=why)], group_faults=[beside])
        return {each.fault for each in only(tables).faults}

    is_of_owner_or_broker = explains in ("b", "broker-a")
    why = explains if explains and not is_of_owner_or_broker else "a listener hangs"
    assert causes(why) == ({kind} if explains else {kind, "STALLED"})
    if is_of_owner_or_broker:
        assert causes(why, client_ids=["c"], broker_names=["broker-b"]) == {kind, "STALLED"}
    else:
        assert causes("a listener hangs") == {kind, "STALLED"}


def test_where_a_stall_and_another_fault_count_the_remedy_says_both_each_for_its_own() -> None:
    """A client reconnects; beside it the listener of another one hangs."""
    beside = fault("RECONNECTING", client_ids=["c"], queues_affected=0, remedy="see to the NAT")

    def remedy(*stalls: dict[str, Any], **of_fault: Any) -> str:
        return only(RowTables(stalled_queues=[*stalls], group_faults=[beside | of_fault])).remedy

    held_up = "fix what holds up these queues at b: a listener hangs"
    assert remedy(stall()) == (
        f"1 queue stalled: {held_up}; a client keeps reconnecting: see to the NAT"
    )
    assert remedy() == "see to the NAT"
    # What passed by itself, or is over while the stall is not, asks for nothing.
    assert remedy(stall(), severity="INFO", persistence="TRANSIENT", ongoing=False) == held_up
    assert remedy(stall(), ongoing=False) == held_up


def event(kind: str = "GROUP_DEPLOYED", begins: float = 10, **values: Any) -> dict[str, Any]:
    times = {"begins": minute(begins), "ends": minute(begins + 1)}
    of = {"event_id": "e", "cluster": "C", "kind": kind, "subject": "G", "groups": ["G"]}
    return of | times | values


def test_a_problem_names_the_event_with_which_it_began() -> None:
    def began(*events: dict[str, Any], **of_finding: Any) -> str | None:
        rows = [finding(event_id="e", **of_finding), finding(1, first_seen=minute(14))]
        return only(RowTables(orphaned_queues=rows, events=[*events])).began_with

    assert began(event()) == "the deploy of G at 10:10:00"
    # It happened to the group before, and after.
    assert began(*(event(begins=each) for each in (2, 10, 30))) == "the deploy of G at 10:10:00"
    left = event("MASTER_LEFT", 9, subject="broker-a", ends=None)
    assert began(left) == "the loss of the master of broker-a at 10:09:00"
    assert began() is None
    # Something of it was there before.
    assert began(event(begins=16), first_seen=minute(16)) is None
    # It is open since the night before: what happened tonight is not what it began with.
    assert began(event(), open_since=minute(-1440)) is None
    tables = RowTables(orphaned_queues=[finding(event_id="e")], events=[event()])
    assert only(tables).times().endswith("10:10:00, began with the deploy of G at 10:10:00")


def test_remedies_that_differ_in_names_alone_are_one_for_each_of_what_they_name() -> None:
    def remedies(template: str, *every: tuple[str, str]) -> list[tuple[str, int]]:
        """Of groups by number, each with a client and a broker."""
        rows = []
        for number, (client, broker) in enumerate(every):
            values = {"this_client": client, "these_brokers": broker, "this_group": f"G{number}"}
            remedy = Text(template, **for_slots(template, values))
            about = {"client_ids": [client], "broker_names": [broker]}
            row = fault(consumer_group=f"G{number}", remedy=remedy, **about)
            rows.append(row | {"texts": encode({"remedy": remedy})})
        return remedies_of(read_problems(RowTables(group_faults=rows)))

    restart = "restart {this_client} at {these_brokers}"
    assert remedies(restart, *zip("abcdefa", "xxxxxxx", strict=True)) == [
        ("for each of: a, b, c and 3 more: restart the client at the brokers", 7)
    ]
    assert remedies(restart, ("a", "x"), ("a", "y")) == [
        ("for each of: x and y: restart the client at the brokers", 2)
    ]
    assert remedies(restart, ("a", "x"), ("a", "x")) == [("restart a at x", 2)]
    assert remedies("create {this_group}", ("a", "x"), ("a", "x")) == [
        ("for each of: G0 and G1: create GROUP", 2)
    ]


def test_what_is_there_then_how_bad_then_what_waits_comes_before_how_many_queues() -> None:
    """A dead test group of 24 idle queues is after 3 queues with two million messages."""
    rows = [
        *(finding(n, topic="idle") for n in range(24)),
        *(finding(n, topic="waits") for n in range(3)),
        finding(topic="over", ongoing=False),
        finding(topic="possible", certainty="POSSIBLE"),
        finding(topic="mild", severity="WARNING"),
    ]
    messages = {"idle": 0, "waits": 2_000_000, "over": 9_000_000}
    messages |= {"possible": 9_000_001, "mild": 9_000_002}
    lost = {"idle": 960.0, "waits": 3.0}
    waiting = [
        health(topic=each, backlog=number, orphan_queue_minutes=lost.get(each, 0.0))
        for each, number in messages.items()
    ]
    problems = read_problems(RowTables(orphaned_queues=rows, group_health=waiting))
    assert [each.place.topic for each in problems] == ["waits", "idle", "possible", "mild", "over"]
    assert problems[0].headline == "3 queues consumed by nobody; 2,000,000 messages wait"
    assert problems[1].headline == "24 queues consumed by nobody; no message waits"
    assert [each.certainty for each in problems[1:3]] == ["CERTAIN", "POSSIBLE"]


def test_messages_that_are_as_new_as_the_last_offsets_do_not_wait_since_then() -> None:
    def headline(since: float) -> str:
        row = health(backlog=12, waiting_since=minute(since), last_seen=minute(59))
        return only(RowTables(orphaned_queues=[finding()], group_health=[row])).headline

    assert headline(59) == "1 queue consumed by nobody; 12 messages wait"
    assert headline(58).endswith("12 messages wait, the oldest from 2026-11-20 10:58:00")


def test_a_fault_that_passed_is_no_cause_and_asks_nothing_where_queues_have_what_lasts() -> None:
    passed = fault("FROZEN_PROCESS", persistence="TRANSIENT", ongoing=False, severity="INFO")
    tables = RowTables(stalled_queues=[finding(causes=None)], group_faults=[passed])
    problem = only(tables)
    assert problem.cause is not None
    assert (problem.cause.fault, problem.main_kind.name) == ("STALLED", "STALLED")
    assert problem.remedy.startswith("find in the clients' logs which of them should read")
    begun = only(RowTables(stalled_queues=[finding()], group_faults=[{**passed, "ongoing": True}]))
    assert [each.fault for each in begun.there] == ["STALLED", "FROZEN_PROCESS"]


def test_the_main_cause_is_what_lasts_and_explains_most() -> None:
    faults = [
        fault("ROUTE_CHANGED", queues_affected=9, last_seen=minute(50)),
        fault("GHOST_MEMBER", queues_affected=1),
        fault("STRATEGY_MISMATCH", queues_affected=5),
        fault("STRATEGY_MISMATCH", queues_affected=4),
    ]
    problem = only(RowTables(orphaned_queues=[finding()], group_faults=faults))
    names = [each.fault for each in problem.faults]
    assert names == ["STRATEGY_MISMATCH", "GHOST_MEMBER", "ROUTE_CHANGED"]
    assert problem.faults[0].runs == 2


def test_a_problem_is_as_bad_as_its_worst_and_lasts_from_its_first_to_its_last() -> None:
    passed = finding(1, severity="INFO", persistence="TRANSIENT", ongoing=False)
    rows = [finding(2, severity="WARNING", first_seen=minute(5), last_seen=minute(30)), passed]
    early, late = (fault(first_seen=minute(s), last_seen=minute(e)) for s, e in ((2, 20), (20, 40)))
    for faults, first, last in (([], 5, 30), ([early], 2, 30), ([late], 5, 40)):
        problem = only(RowTables(orphaned_queues=rows, group_faults=faults))
        assert (problem.severity, problem.ongoing) == ("WARNING", True)
        assert (problem.first_seen, problem.last_seen) == (minute(first), minute(last))


def test_the_words_of_what_is_still_there_name_no_fault_that_is_over() -> None:
    # forty_groups, T_OFF: the nameservers agreed again, and the group consumed nothing to the end.
    there = fault("GROUP_NOT_CONSUMING", severity="CRITICAL", last_seen=minute(33))
    over = fault("ROUTE_DIVERGENCE", severity="WARNING", last_seen=minute(29), ongoing=False)
    problem = only(RowTables(group_faults=[there, over]))
    assert problem.headline == (
        "The group consumes nothing; over since 10:29:00: Nameservers give different routes"
    )
    # The time is that of what is named: T_STUCK had stalls before, which ended earlier.
    stall = finding(0, severity="CRITICAL", last_seen=minute(13), ongoing=False)
    told = only(RowTables(orphaned_queues=[stall], group_faults=[there, over])).headline
    assert told == "The group consumes nothing; over since 10:13:00: 1 queue consumed by nobody"
    both = only(RowTables(group_faults=[there, over | {"ongoing": True}]))
    assert both.headline == "The group consumes nothing and nameservers give different routes"


def test_what_is_over_has_the_time_of_its_severity() -> None:
    # forty_groups, G_DUP: a CRITICAL ended; a while later a WARNING came and went.
    critical = finding(0, severity="CRITICAL", last_seen=minute(13), ongoing=False)
    warning = fault("ROUTE_DIVERGENCE", severity="WARNING", ongoing=False)
    later = warning | {"first_seen": minute(27), "last_seen": minute(32)}
    problem = only(RowTables(orphaned_queues=[critical], group_faults=[later]))
    assert (problem.severity, problem.ongoing, problem.last_seen) == ("CRITICAL", False, minute(13))
    alike = only(
        RowTables(orphaned_queues=[critical], group_faults=[later | {"severity": "CRITICAL"}])
    )
    assert alike.last_seen == minute(32)


def test_a_problem_is_open_since_its_oldest_finding_or_fault() -> None:
    """What passed, or is of an earlier version, has no such time and takes none away."""
    since = [
        finding(0, open_since=minute(5), nights_open=2),
        finding(1, open_since=minute(0), nights_open=3),
        finding(2, open_since=None, nights_open=None),
    ]
    older = fault(open_since=minute(-60), nights_open=9)
    of_findings = only(RowTables(orphaned_queues=since))
    assert (of_findings.open_since, of_findings.nights_open) == (minute(0), 3)
    of_fault = only(RowTables(orphaned_queues=since, group_faults=[older]))
    assert (of_fault.open_since, of_fault.nights_open) == (minute(-60), 9)
    of_none = only(RowTables(orphaned_queues=since[2:], group_faults=[fault()]))
    assert (of_none.open_since, of_none.nights_open) == (None, 0)


def test_a_fault_that_passed_does_not_count_and_is_told_all_the_same() -> None:
    of_both = {"queues_affected": 0, "persistence": "TRANSIENT", "severity": "INFO"}
    passed = [fault(name, **of_both) for name in ("EXPRESSION_MISMATCH", "GHOST_MEMBER")]
    problem = only(RowTables(group_faults=passed))
    assert (problem.severity, problem.standing) == ("INFO", "BEGUN")
    both = "Members filter the topic differently and a member is listed and gone"
    assert problem.headline == both
    lasting = [{**row, "persistence": "PERSISTENT"} for row in passed]
    orphan = finding(severity="INFO", persistence="TRANSIENT")
    for tables, headline in (
        ({"group_faults": lasting}, both),
        ({"group_faults": [passed[0], lasting[1]]}, "A member is listed and gone"),
        ({"group_faults": lasting, "orphaned_queues": [orphan]}, both),
    ):
        assert only(RowTables(**tables)).headline == headline


def test_a_fault_is_told_by_its_worst_run_and_what_is_about_one_client_by_itself() -> None:
    runs = [
        fault(evidence="over", ongoing=False, queues_affected=9),
        fault(evidence="long", last_seen=minute(30)),
        fault(evidence="wide", queues_affected=6),
        fault(evidence="passed", persistence="TRANSIENT", queues_affected=99),
    ]
    problem = only(RowTables(group_faults=runs))
    assert [(each.evidence, each.runs) for each in problem.faults] == [("wide", 4)]
    for of_one in ("FROZEN_PROCESS", "DUPLICATE_CLIENT_ID", "RECONNECTING"):
        rows = [fault(of_one, client_ids=[each]) for each in ("a", "b", "b")]
        problem = only(RowTables(group_faults=rows))
        assert sorted(each.runs for each in problem.faults) == [1, 2]
    topics = [fault(topic=each) for each in ("T1", "T2")]
    assert [len(each.faults) for each in read_problems(RowTables(group_faults=topics))] == [1, 1]


def test_since_when_it_is_there_is_said_by_what_counts() -> None:
    """Something of the same topic that passed hours before is another thing."""
    passed = finding(1, severity="INFO", persistence="TRANSIENT", ongoing=False)
    passed["first_seen"] = minute(-90)
    problem = only(RowTables(orphaned_queues=[passed, finding()]))
    assert (problem.first_seen, problem.last_seen) == (minute(10), minute(19))
    assert only(RowTables(orphaned_queues=[passed])).first_seen == minute(-90)


def test_who_it_is_are_the_client_ids_of_the_first_fault_that_names_any() -> None:
    wide = fault("ROUTE_DIVERGENCE", queues_affected=9, client_ids=[])
    tables = RowTables(orphaned_queues=[finding()], group_faults=[wide, fault()])
    assert only(tables).client_ids == ("a",)
    assert only(RowTables(orphaned_queues=[finding()])).client_ids == ()


def test_a_finding_without_some_of_its_rows_has_the_messages_of_the_others() -> None:
    rows = [
        finding(number, finding_id=str(number), backlog=backlog)
        for number, backlog in enumerate((100, None, 20))
    ]
    ((every,),) = read_findings(RowTables(orphaned_queues=rows)).values()

    def left(*ids: str) -> tuple[list[str], int | None, str]:
        finding = every.without(ids)
        assert finding is not None
        return list(finding.ids), finding.waiting.messages, finding.waiting.text

    one = "(no offsets of 1 of {} queues)"
    assert left() == (["0", "1", "2"], 120, f"at least 120 messages wait {one.format(3)}")
    assert left("1") == (["0", "2"], 120, "120 messages wait")
    assert left("0") == (["1", "2"], 20, f"at least 20 messages wait {one.format(2)}")
    assert left("0", "2") == (["1"], None, "")
    assert every.without(["0", "1", "2"]) is None
    # A fault that no queue shows has an id and no queue.
    shown = fault("EXPRESSION_MISMATCH", queues_affected=0, finding_id="f")
    ((of_fault,),) = read_findings(RowTables(group_faults=[shown])).values()
    assert of_fault.without(["0"]) == of_fault
    assert of_fault.without(["f"]) is None
