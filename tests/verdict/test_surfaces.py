"""Every surface shows the one verdict: whatever kind, coverage or gap there is, none leaves it out.

Published tables are generated, one for each thing that can be wrong, lost or not audited, and each
surface is asked what it makes of them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from jobs.config.choices import GATES
from jobs.config.known_issues import KNOWN_KINDS
from jobs.declared.coverage import ACTIONS, COMPLETE
from jobs.declared.instants import to_instant
from jobs.declared.kinds import FAULTS, KINDS, QUEUE_FINDINGS
from jobs.reports.problems import read_problems
from jobs.reports.tables import PublishedTables
from jobs.schemas import VERDICT
from jobs.storage import Location, Reports
from jobs.verdict.gaps import GAPS, Gap, packed
from rebalance_core import findings as core
from rebalance_core.texts import Text
from tests.support.judged import with_problems
from tests.support.published import minute
from tests.support.surfaces import Surfaces, surfaces_of
from tests.support.written_reports import Row, publish, report_row

DAY = "2026-11-20"
PASSED = {"severity": "INFO", "persistence": "TRANSIENT", "ongoing": False, "status": None}


@dataclass
class Case:
    """Tables, and what is right: the level of the run, and the words that every text has of it."""

    name: str
    tables: dict[str, list[Row]]
    level: str
    words: str = ""
    summary: dict[str, Any] = field(default_factory=dict)
    #: Series that are not zero, each by a part of its name.
    metric: str = ""
    #: Nobody is sent a message about what does not count.
    is_sent: bool = True


def cases() -> Iterator[Case]:
    healthy = {"group_health": [report_row("group_health")]}
    yield Case("nothing", healthy, "OK", metric='state{state="WELL"}', is_sent=False)
    for table, kind in QUEUE_FINDINGS.items():
        row = report_row(table, severity="WARNING", finding_id=kind)
        yield Case(kind, {**healthy, table: [row]}, "WARNING", "WARNING.*G", metric="findings")
    for some in batched(FAULTS, 4):
        # They affect none, or queues that no other row shows; each is of a group of its own.
        groups = [{"consumer_group": f"G{n}", "queues_affected": n % 2} for n in range(4)]
        faults = [
            report_row("group_faults", fault=each, **of)
            for each, of in zip(some, groups, strict=False)
        ]
        words = "".join(f"(?=.*CRITICAL.*{KINDS[each].title})" for each in some)
        tables = {**healthy, "group_faults": faults}
        yield Case(" ".join(some), tables, "CRITICAL", words, metric=" ".join(some))
    yield from facts(healthy)
    known = report_row("orphaned_queues", known_issue="OPS-1")
    yield Case("known", {**healthy, "orphaned_queues": [known]}, "OK", "", {}, "findings", False)
    for kind in KINDS_OF_TIME:
        yield Case(*kind(healthy))
    passed = report_row("orphaned_queues", **PASSED)
    yield Case("passed", {**healthy, "orphaned_queues": [passed]}, "INFO", "", {}, "", False)
    for some in batched((*ACTIONS, "A_LATER_ONE"), 4):
        metric = " ".join(f'not_audited{{coverage="{each}"}}' for each in some)
        values = {"unaudited_since": minute(5), "unaudited_until": minute(25)}
        for name, column, said, more in (
            ("{}", "coverage", "{}.*G.*no such luck", {"reason": "no such luck"}),
            ("{} for a time", "unaudited_coverage", "for some time.*{}.*10:05.*10:25.*G", values),
        ):
            rows = [
                report_row("group_health", consumer_group=f"G{number}", **{column: each}, **more)
                for number, each in enumerate(some)
            ]
            shown = [said.format(each.replace("_", " ").lower()) for each in some]
            # A message has the first, and the number of the others.
            words = "".join(f"(?=.*{each})" for each in shown)
            words += f"|{min(shown)}.*and {len(some) - 1} more gap"
            names = name.format(" ".join(some))
            yield Case(names, {"group_health": rows}, "INCOMPLETE", words, metric=metric)
    known, complete = (
        [
            report_row("group_health", consumer_group=f"G{number}", coverage=coverage, **marked)
            for number, coverage in enumerate(coverages)
        ]
        for coverages, marked in ((ACTIONS, {"known_issue": "OPS-2"}), (sorted(COMPLETE), {}))
    )
    yield Case("all known", {"group_health": known}, "OK", is_sent=False)
    yield Case(" ".join(sorted(COMPLETE)), {"group_health": complete}, "OK", is_sent=False)
    for some in batched(GAPS, 5):
        holes = enumerate(some)
        gap = packed([Gap(kind, Text("there is a hole of {size}", size=n)) for n, kind in holes])
        every = "".join(f"(?=.*a hole of {n})" for n in range(len(some)))
        # A message has the first, and the number of the others.
        words = f"{every}|(?=.*a hole of 0; and {len(some) - 1} more gap)"
        metric = " ".join(f'gaps{{kind="{kind}"}}' for kind in some)
        yield Case(" ".join(some), healthy, "INCOMPLETE", words, gap, metric)
    slow, words = {"slow_rounds": {"C": 300.0}}, "In C a round comes every 300 s.*less than 600 s"
    yield Case("slow rounds", healthy, "OK", words, slow, is_sent=False)
    left = report_row("former_findings", status="NOT_AUDITED")
    words = "1 finding of the previous run was not checked"
    tables = {**healthy, "former_findings": [left]}
    yield Case("left open", tables, "INCOMPLETE", words, metric="left_open")


def over(healthy: dict[str, list[Row]]) -> tuple[Any, ...]:
    row = report_row("orphaned_queues", ongoing=False)
    return "over", {**healthy, "orphaned_queues": [row]}, "CRITICAL", "CRITICAL.*G", {}, "findings"


def over_and_there(healthy: dict[str, list[Row]]) -> tuple[Any, ...]:
    """What is still there is a WARNING; what is over was CRITICAL, and counts."""
    ends = {"first_seen": minute(4), "last_seen": minute(9)}
    rows = [
        report_row("orphaned_queues", ongoing=False, finding_id="a", **ends),
        report_row("orphaned_queues", severity="WARNING", finding_id="b", queue_id=1),
    ]
    words = "Still there.*WARNING.*1 queue consumed by nobody; over since 10:09:00: 1 queue"
    return "over and there", {**healthy, "orphaned_queues": rows}, "CRITICAL", words, {}, "findings"


def returned(healthy: dict[str, list[Row]]) -> tuple[Any, ...]:
    rows = with_problems(
        {**healthy, "orphaned_queues": [report_row("orphaned_queues")]},
        {("T", "ORPHANED"): to_instant(minute(-2000))},
    )
    return "returned", rows, "CRITICAL", "", {}, 'problems_by_status{cluster="C",status="RETURNED"}'


KINDS_OF_TIME = (over, over_and_there, returned)


def batched(kinds: Iterable[str], size: int) -> list[tuple[str, ...]]:
    every = [*kinds]
    return [tuple(every[place : place + size]) for place in range(0, len(every), size)]


def facts(healthy: dict[str, list[Row]]) -> Iterator[Case]:
    """Of the kinds that have no severity."""
    unreadable = report_row("unreadable_queues")
    words = "In 1 topic queues are written that nobody can read"
    tables = {**healthy, "unreadable_queues": [unreadable]}
    yield Case("UNREADABLE", tables, "OK", words, {}, 'rows{table="unreadable_queues"}', False)
    stacked = report_row("stacked_client_ids", topics=["T"], verdict="STACKED")
    words = "In 1 topic several processes share a client id"
    tables = {**healthy, "stacked_client_ids": [stacked]}
    yield Case("STACKED", tables, "OK", words, {}, "stacked_client_ids", False)
    for drift, words in (
        ("HELD_NOT_COMPUTED", "In 1 topic clients hold queues outside their share"),
        ("COMPUTED_NOT_HELD", "In 1 topic clients lack queues of their share"),
    ):
        row = report_row("allocation_drift", drift=drift)
        tables = {**healthy, "allocation_drift": [row]}
        yield Case(drift, tables, "OK", words, {}, 'rows{table="allocation_drift"}', False)


CASES = [pytest.param(each, id=each.name) for each in cases()]


def test_every_kind_coverage_and_gap_has_a_case() -> None:
    names = {word for each in cases() for word in each.name.split()}
    assert names >= {*KINDS, *GAPS, *ACTIONS, *COMPLETE}
    coverages = {
        value
        for name, value in vars(core).items()
        if name.isupper() and isinstance(value, str) and value in (*ACTIONS, *COMPLETE)
    }
    assert coverages == {*ACTIONS, *COMPLETE} - {"NO_GROUP", "AUDIT_FAILED"}
    assert {*ACTIONS} <= {*KNOWN_KINDS}


def told(folder: Path, case: Case) -> Surfaces:
    publish(folder, DAY, case.tables, **case.summary)
    return surfaces_of(folder, DAY)


@pytest.mark.long
@pytest.mark.parametrize("case", CASES)
def test_all_surfaces_agree(case: Case, tmp_path: Path) -> None:
    found = told(tmp_path, case)
    assert f"LEVEL:{case.level.lower()}" in found.page
    assert found.ticket.splitlines()[0].startswith(f"# {case.level}") or not case.tables
    assert found.night == case.level
    state = {"CRITICAL": "WRONG", "WARNING": "WRONG", "INCOMPLETE": "INCOMPLETE"}
    right = state.get(case.level, "WELL")
    assert found.metrics[f'state{{state="{right}"}}'] == 1
    assert_the_tables_say_so(tmp_path, case, found)
    closed = {
        "CRITICAL": {"INFO", "WARNING", "CRITICAL"},
        "WARNING": {"INFO", "WARNING"},
        "INFO": {"INFO"},
        "INCOMPLETE": {"INCOMPLETE"},
    }.get(case.level, set())
    assert {gate for gate, code in found.exit_codes.items() if code} == closed
    assert {gate for gate, number in found.gate.items() if number} == closed
    assert found.alert.startswith("nothing to send") is not case.is_sent
    for surface, text in found.texts.items():
        if surface != "alert" or case.is_sent:
            assert re.search(case.words, text, re.IGNORECASE), surface
    for each in case.metric.split():
        assert [name for name, value in found.metrics.items() if value and each in name], each


def assert_the_tables_say_so(folder: Path, case: Case, found: Surfaces) -> None:
    """The tables ``problems``, ``verdict`` and ``gaps``, and what is made of them alone."""
    reports = Reports(Location(folder))
    tables = PublishedTables(reports, reports.resolve(DAY))
    (verdict,) = tables.read("verdict", VERDICT.schema.names).to_pylist()
    problems = read_problems(tables)
    counted = [each for each in problems if each.is_counted]
    topics = Counter(each.worst_severity for each in counted)
    missing = tables.read("gaps", ["text"]).num_rows
    assert verdict["level"] == case.level
    assert (verdict["critical"], verdict["warning"]) == (topics["CRITICAL"], topics["WARNING"])
    assert verdict["ongoing"] == sum(each.ongoing for each in counted)
    by_status = Counter(each.status for each in counted)
    assert (verdict["new"], verdict["returned"]) == (by_status["NEW"], by_status["RETURNED"])
    assert verdict["missing"] == missing == found.metrics["missing"]
    tiles = found.tiles
    assert tiles["State"] == verdict["state"]
    assert (tiles["Critical topics"], tiles["Topics with warnings"]) == (
        (verdict["critical"], verdict["warning"])
    )
    assert tiles["Not read or not audited"] == missing
    fires = {
        "RebalanceAuditCritical": topics["CRITICAL"],
        "RebalanceAuditWarnings": topics["WARNING"],
        "RebalanceAuditIncomplete": missing,
    }
    for rule, number in fires.items():
        assert (rule in set().union(*found.rules.values())) == bool(number), rule
    assert ("critical" in found.rules) == bool(topics["CRITICAL"])
    for problem in counted:
        now = "Still there" if problem.ongoing else "Over since"
        for surface in ("page", "ticket", "console", "in_python", *["alert"] * problem.ongoing):
            said = found.texts[surface]
            group = re.escape(problem.place.consumer_group)
            assert re.search(f"{now}.{{0,60}}{group}", said), (surface, problem.place)
        if problem.returned:
            assert all("returned" in found.texts[each] for each in ("page", "console", "ticket"))


def test_a_run_that_is_wrong_says_what_it_did_not_read_too(tmp_path: Path) -> None:
    hole = packed([Gap(GAPS[0], Text("there is a hole"))])
    tables = {"orphaned_queues": [report_row("orphaned_queues")]}
    found = told(tmp_path, Case("both", tables, "CRITICAL", summary=hole))
    assert found.exit_codes == dict.fromkeys(GATES, 1)
    assert all("there is a hole" in text for text in found.texts.values())
