"""Every surface shows the one verdict: whatever kind, coverage or gap there is, none leaves it out.

Published tables are generated, one for each thing that can be wrong, lost or not audited, and each
surface is asked what it makes of them.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from jobs.alerts.alert import Sender, alert
from jobs.alerts.message import read_digest
from jobs.alerts.metrics import metrics_text
from jobs.api import Report as AuditReport
from jobs.commands.batch import closing_lines, is_closed, what_is_missing
from jobs.kinds import FAULTS, KINDS, QUEUE_FINDINGS
from jobs.known_issues import KNOWN_KINDS
from jobs.rendering.nights import read_history
from jobs.rendering.write import Look, report_text
from jobs.reports.problems import find_problems
from jobs.reports.tables import PublishedTables
from jobs.settings import Alerts, Settings
from jobs.storage import Location, Published, Reports
from jobs.verdict.coverage import ACTIONS, COMPLETE
from jobs.verdict.gaps import GAPS, Gap, packed
from jobs.verdict.verdict import make_verdict
from rebalance_core import findings as core
from rebalance_core.texts import Text
from tests.support.written_reports import NOON, Row, publish, report_row

DAY = "2026-11-20"
PASSED = {"severity": "INFO", "persistence": "TRANSIENT", "ongoing": False, "status": None}


@dataclass
class Told:
    """What each surface says of one run."""

    page: str
    ticket: str
    night: str
    console: str
    exit_codes: dict[str, int]
    alert: str
    metrics: dict[str, float]
    gate: dict[str, int]
    in_python: str

    @property
    def texts(self) -> dict[str, str]:
        names = ("page", "ticket", "console", "alert", "in_python")
        return {name: " ".join(getattr(self, name).split()) for name in names}


@dataclass
class Case:
    """Tables, and what is right: the level of the run, and the words that every text has of it."""

    name: str
    tables: dict[str, list[Row]]
    level: str
    words: str = ""
    summary: dict[str, Any] = field(default_factory=dict)
    #: A series that is not zero.
    metric: str = ""
    #: Nobody is sent a message about what does not count.
    is_sent: bool = True


def cases() -> Iterator[Case]:
    healthy = {"group_health": [report_row("group_health")]}
    yield Case("nothing", healthy, "OK", metric='state{state="WELL"}', is_sent=False)
    for table, kind in QUEUE_FINDINGS.items():
        row = report_row(table, severity="WARNING", finding_id=kind)
        yield Case(kind, {**healthy, table: [row]}, "WARNING", "WARNING.*G", metric="findings")
    for number, fault in enumerate(FAULTS):
        # Each affects queues that no other row shows, or none.
        values = {"fault": fault, "queues_affected": 2 * (number % 2)}
        tables = {**healthy, "group_faults": [report_row("group_faults", **values)]}
        yield Case(fault, tables, "CRITICAL", f"CRITICAL.*{KINDS[fault].title}", metric=fault)
    yield from facts(healthy)
    known = report_row("orphaned_queues", known_issue="OPS-1")
    yield Case("known", {**healthy, "orphaned_queues": [known]}, "OK", "", {}, "findings", False)
    passed = report_row("orphaned_queues", **PASSED)
    yield Case("passed", {**healthy, "orphaned_queues": [passed]}, "INFO", "", {}, "", False)
    for coverage in (*ACTIONS, "A_LATER_ONE"):
        rows = [report_row("group_health", coverage=coverage, reason="no such luck")]
        words = f"{coverage.replace('_', ' ').lower()}.*G.*no such luck"
        metric = f'not_audited{{coverage="{coverage}"}}'
        yield Case(coverage, {"group_health": rows}, "INCOMPLETE", words, metric=metric)
        rows = [{**rows[0], "known_issue": "OPS-2"}]
        yield Case(f"{coverage} known", {"group_health": rows}, "OK", is_sent=False)
    for coverage in sorted(COMPLETE):
        rows = [report_row("group_health", coverage=coverage)]
        yield Case(coverage, {"group_health": rows}, "OK", is_sent=False)
    for kind in GAPS:
        gap = packed([Gap(kind, Text("there is a hole of {size}", size=7))])
        metric = f'gaps{{kind="{kind}"}}'
        yield Case(kind, healthy, "INCOMPLETE", "there is a hole of 7", gap, metric)
    left = report_row("former_findings", status="NOT_AUDITED")
    words = "1 finding of the run before was not looked for"
    tables = {**healthy, "former_findings": [left]}
    yield Case("left open", tables, "INCOMPLETE", words, metric="left_open")


def facts(healthy: dict[str, list[Row]]) -> Iterator[Case]:
    """Of the kinds that have no severity."""
    unreadable = report_row("unreadable_queues")
    words = "1 topic with queues that are written and cannot be read"
    tables = {**healthy, "unreadable_queues": [unreadable]}
    yield Case("UNREADABLE", tables, "OK", words, {}, 'rows{table="unreadable_queues"}', False)
    stacked = report_row("stacked_client_ids", topics=["T"], verdict="STACKED")
    words = "1 topic with a client id that several processes share"
    tables = {**healthy, "stacked_client_ids": [stacked]}
    yield Case("STACKED", tables, "OK", words, {}, "stacked_client_ids", False)
    for drift, words in (
        ("HELD_NOT_COMPUTED", "In 1 topic clients hold queues that are not in their share"),
        ("COMPUTED_NOT_HELD", "In 1 topic clients do not hold all queues of their share"),
    ):
        row = report_row("allocation_drift", drift=drift)
        tables = {**healthy, "allocation_drift": [row]}
        yield Case(drift, tables, "OK", words, {}, 'rows{table="allocation_drift"}', False)


CASES = [pytest.param(each, id=each.name) for each in cases()]


def test_every_kind_coverage_and_gap_has_a_case() -> None:
    names = {each.name.split()[0] for each in cases()}
    assert names >= {*KINDS, *GAPS, *ACTIONS, *COMPLETE}
    coverages = {
        value
        for name, value in vars(core).items()
        if name.isupper() and isinstance(value, str) and value in (*ACTIONS, *COMPLETE)
    }
    assert coverages == {*ACTIONS, *COMPLETE} - {"NO_GROUP"}
    assert {*ACTIONS} <= {*KNOWN_KINDS}


@pytest.fixture(scope="module")
def gate() -> Callable[..., dict[str, int]]:
    """The gate of the DAG, without Airflow: its imports are replaced by what does nothing."""

    def decorator(*_: Any, **__: Any) -> Callable[[Any], Any]:
        return lambda function: function

    stub: dict[str, ModuleType] = {}
    for name in (
        *("airflow", "airflow.sdk", "airflow.sdk.exceptions", "airflow.providers"),
        *("airflow.providers.apache", "airflow.providers.apache.spark"),
        *("airflow.providers.apache.spark.operators",),
        *("airflow.providers.apache.spark.operators.spark_submit", "airflow.providers.common"),
        *("airflow.providers.common.compat", "airflow.providers.common.compat.lineage"),
        *("airflow.providers.common.compat.lineage.hook",),
    ):
        stub[name] = ModuleType(name)
    operator = type("SparkSubmitOperator", (), {"template_fields": ()})
    spark = stub["airflow.providers.apache.spark.operators.spark_submit"]
    vars(spark)["SparkSubmitOperator"] = operator
    vars(stub["airflow.providers.common.compat.lineage.hook"])["get_hook_lineage_collector"] = None
    task = type("task", (), {"sensor": decorator, "__new__": lambda *_, **__: lambda of: of})
    of_sdk = {
        **dict.fromkeys(("BaseHook", "Param", "CronTriggerTimetable", "chain"), lambda *_, **__: 0),
        **{"Asset": str, "ObjectStoragePath": Path, "task": task},
        "dag": lambda **_: lambda _: lambda: None,
    }
    vars(stub["airflow.sdk"]).update(of_sdk)
    errors = ("AirflowFailException", "AirflowNotFoundException", "AirflowSkipException")
    vars(stub["airflow.sdk.exceptions"]).update(
        {name: type(name, (Exception,), {}) for name in errors}
    )
    file = Path(__file__).parents[2] / "jobs" / "airflow" / "rebalance_audit.py"
    spec = importlib.util.spec_from_file_location("the_dag", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        for name, each in stub.items():
            patch.setitem(sys.modules, name, each)
        spec.loader.exec_module(module)
    return module.gate  # type: ignore[no-any-return]


def told(folder: Path, case: Case, gate: Callable[..., dict[str, int]]) -> Told:
    published = publish(folder, DAY, case.tables, **case.summary)
    reports, settings = Reports(Location(folder)), Settings()
    tables = PublishedTables(reports, published)
    problems = find_problems(tables)
    verdict = make_verdict(published.summary, tables, problems)
    lines = closing_lines(published, verdict, problems, settings, 1_000)
    sender = Sender(Alerts(severity="WARNING"), {}, NOON, lambda _: None)
    metrics = metrics_text(read_digest(published, tables), tables, 20)
    exposed = re.findall(r"^rebalance_audit_(\S+) ([\d.e+]+)$", metrics, re.M)
    look = Look(10)
    return Told(
        page=_visible(report_text(reports, published, "html", look)[0]),
        ticket=report_text(reports, published, "markdown", look)[0].replace("\\_", "_"),
        night=read_history(reports, DAY, 1).nights[0].level,
        console="\n".join([*what_is_missing(verdict), *lines]),
        exit_codes={gate: int(is_closed(published, [gate])) for gate in GATES},
        alert="\n".join(alert(reports, None, sender)),
        metrics={name: float(value) for name, value in exposed},
        gate=gate(str(folder), DAY, "pass", ",".join(GATES)),
        in_python=repr(_in_python(folder, published, settings)),
    )


GATES = ("INFO", "WARNING", "CRITICAL", "INCOMPLETE")


def _visible(html: str) -> str:
    """What a reader sees of the page, with the level of its verdict; but for the glossary."""
    body = html.partition("<body")[2].partition('<section id="words"')[0]
    kept = re.sub(r'<section id="verdict" class="verdict (\w+)"[^>]*>', r"LEVEL:\1 ", body)
    return re.sub(r"<[^>]+>", "", kept).replace("&#39;", "'")


def _in_python(folder: Path, published: Published, settings: Settings) -> AuditReport:
    report = AuditReport.__new__(AuditReport)
    report.summary, report._published, report._settings = published.summary, published, settings
    report._reports = Reports(Location(folder))
    report._tables = PublishedTables(report._reports, published)
    return report


@pytest.mark.long
@pytest.mark.parametrize("case", CASES)
def test_all_surfaces_agree(
    case: Case, tmp_path: Path, gate: Callable[..., dict[str, int]]
) -> None:
    found = told(tmp_path, case, gate)
    assert f"LEVEL:{case.level.lower()}" in found.page
    assert found.ticket.splitlines()[0].startswith(f"# {case.level}") or not case.tables
    assert found.night == case.level
    state = {"CRITICAL": "WRONG", "WARNING": "WRONG", "INCOMPLETE": "INCOMPLETE"}
    right = state.get(case.level, "WELL")
    assert found.metrics[f'state{{state="{right}"}}'] == 1
    closed = {
        "CRITICAL": {"INFO", "WARNING", "CRITICAL"},
        "WARNING": {"INFO", "WARNING"},
        "INFO": {"INFO"},
        "INCOMPLETE": {"INCOMPLETE"},
    }.get(case.level, set())
    assert {gate for gate, code in found.exit_codes.items() if code} == closed
    assert {gate for gate, number in found.gate.items() if number} == closed
    assert found.alert.startswith("nothing to post") is not case.is_sent
    for surface, text in found.texts.items():
        if surface != "alert" or case.is_sent:
            assert re.search(case.words, text, re.IGNORECASE), surface
    if case.metric:
        series = {name for name, value in found.metrics.items() if value and case.metric in name}
        assert series, case.metric


def test_a_run_that_is_wrong_says_what_it_did_not_read_too(
    tmp_path: Path, gate: Callable[..., dict[str, int]]
) -> None:
    hole = packed([Gap(GAPS[0], Text("there is a hole"))])
    tables = {"orphaned_queues": [report_row("orphaned_queues")]}
    found = told(tmp_path, Case("both", tables, "CRITICAL", summary=hole), gate)
    assert found.exit_codes == dict.fromkeys(GATES, 1)
    assert all("there is a hole" in text for text in found.texts.values())
