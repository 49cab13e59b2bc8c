"""The DAG that ships: parsed, judged task by task, and run for real on the sample dumps."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk.exceptions import (
    AirflowFailException,
    AirflowSkipException,
    ParamValidationError,
)
from airflow.sdk.execution_time import macros
from airflow.serialization.serialized_objects import DagSerialization
from airflow.timetables.base import TimeRestriction
from pendulum import datetime as moment

from tests.airflow.conftest import DATA, ROOT, Airflow

DAG_FILE = ROOT / "jobs" / "airflow" / "rebalance_audit.py"
DAY = "2026-11-21"


@pytest.fixture(scope="session")
def dag(airflow: Airflow) -> Any:
    """The DAG as the scheduler parses it, alone in a folder."""
    bag = DagBag(str(DAG_FILE))
    assert bag.import_errors == {}
    assert list(bag.dags) == ["rebalance_audit"]
    return bag.dags["rebalance_audit"]


def test_the_tasks_follow_each_other_and_all_but_the_gate_are_tried_again(dag: Any) -> None:
    following = {task.task_id: task.downstream_task_ids for task in dag.tasks}
    assert following == {
        "ingest": {"audit"},
        "audit": {"report"},
        "report": {"gate"},
        "gate": set(),
    }
    assert {task.task_id: task.retries for task in dag.tasks} == {
        "ingest": 2,
        "audit": 2,
        "report": 2,
        "gate": 0,
    }
    assert [asset.name for asset in dag.get_task("report").outlets] == ["rebalance_audit_reports"]
    assert (dag.max_active_runs, dag.catchup) == (1, False)
    assert "Triage notes" in dag.doc_md


def date_of(dag: Any, run: SimpleNamespace, date: str | None = None) -> str:
    arguments = dag.get_task("audit").application_args
    template = dag.get_template_env().from_string(arguments[arguments.index("--date") + 1])
    return str(template.render(params={"date": date}, dag_run=run, macros=macros))


@pytest.mark.parametrize("had_interval", [True, False])
def test_every_run_is_of_the_day_before_it_unless_told_otherwise(
    dag: Any, had_interval: bool
) -> None:
    at = datetime(2026, 11, 22, 9, 30, tzinfo=UTC)
    start = datetime(2026, 11, 21, 9, 30, tzinfo=UTC) if had_interval else None
    run = SimpleNamespace(run_after=at, logical_date=None, data_interval_start=start)
    assert date_of(dag, run) == DAY
    assert date_of(dag, run, "2026-11-03") == "2026-11-03"


def test_the_scheduler_gives_the_night_the_day_before(dag: Any) -> None:
    scheduled = DagSerialization.from_dict(DagSerialization.to_dict(dag))
    info = scheduled.timetable.next_dagrun_info(
        last_automated_data_interval=None,
        restriction=TimeRestriction(moment(2026, 11, 21, 12), None, catchup=True),
    )
    assert info.run_after == moment(2026, 11, 22, 0, 30)
    run = SimpleNamespace(run_after=info.run_after, data_interval_start=info.data_interval.start)
    assert date_of(dag, run) == DAY


@pytest.mark.parametrize(
    ("name", "value"), [("date", "../../etc"), ("gate", "ignore"), ("fail_on", "WORST")]
)
def test_params_that_are_none_are_refused(dag: Any, name: str, value: str) -> None:
    with pytest.raises(ParamValidationError):
        dag.params.get_param(name).resolve(value)


@pytest.fixture
def published(tmp_path: Path) -> Path:
    """Published reports with two critical orphans, a warning, and a later run that died."""
    orphans = {"total": 4, "CRITICAL": 2, "WARNING": 1, "INFO": 1}
    duplicates = {"total": 0, "CRITICAL": 0, "WARNING": 0, "INFO": 0}
    pointer = tmp_path / "_published" / f"dt={DAY}.json"
    pointer.parent.mkdir()
    pointer.write_text(json.dumps({"run_id": "b"}))
    for run_id, found in (("a", duplicates), ("b", orphans), ("c", duplicates)):
        summary = tmp_path / "summary" / f"dt={DAY}" / f"run={run_id}" / "summary.json"
        summary.parent.mkdir(parents=True)
        findings = {"orphaned_queues": found, "duplicate_queues": duplicates}
        summary.write_text(json.dumps({"findings": findings}))
    return tmp_path


def judge(dag: Any, reports: Path, verdict: str, fail_on: str) -> Any:
    return dag.get_task("gate").python_callable(str(reports), DAY, verdict, fail_on)


def test_the_gate_fails_skips_or_passes_as_it_is_told(dag: Any, published: Path) -> None:
    with pytest.raises(AirflowFailException, match="'orphaned_queues': 2"):
        judge(dag, published, "fail", "CRITICAL")
    with pytest.raises(AirflowSkipException, match="'orphaned_queues': 3"):
        judge(dag, published, "skip", "WARNING")
    counts = {"orphaned_queues": 4, "duplicate_queues": 0}
    assert judge(dag, published, "pass", "INFO") == counts
    with pytest.raises(AirflowFailException, match="expected gate as one of"):
        judge(dag, published, "ignore", "CRITICAL")


def test_the_gate_does_not_count_known_issues(dag: Any, published: Path) -> None:
    summary = published / "summary" / f"dt={DAY}" / "run=b" / "summary.json"
    values = json.loads(summary.read_text())
    values["findings"]["orphaned_queues"]["known"] = {"CRITICAL": 2, "WARNING": 0, "INFO": 1}
    summary.write_text(json.dumps(values))
    none = {"orphaned_queues": 0, "duplicate_queues": 0}
    assert judge(dag, published, "fail", "CRITICAL") == none
    with pytest.raises(AirflowFailException, match="'orphaned_queues': 1"):
        judge(dag, published, "fail", "WARNING")


def test_the_gate_lets_a_day_pass_without_findings(dag: Any, published: Path) -> None:
    (published / "_published" / f"dt={DAY}.json").write_text(json.dumps({"run_id": "c"}))
    none = {"orphaned_queues": 0, "duplicate_queues": 0}
    assert judge(dag, published, "fail", "INFO") == none


@pytest.fixture(scope="module")
def night(place: Path) -> Path:
    """The dumps of the day: one healthy group, one with a stacked client id."""
    (place / "settings.toml").write_text("persistence_seconds = 60\n")
    for situation in ("S1", "S2"):
        folder = place / "dumps" / DAY / situation
        folder.mkdir(parents=True)
        shutil.copy(DATA / situation / "dump.jsonl.gz", folder)
    return place


def test_a_night_is_audited_reported_and_judged_and_may_be_run_again(
    airflow: Airflow, night: Path
) -> None:
    done = airflow("dags", "test", "rebalance_audit", "2026-11-22", expect=1)
    assert "findings of 2026-11-21 that are CRITICAL" in done.stdout + done.stderr
    pointer = night / "reports" / "_published" / f"dt={DAY}.json"
    first = json.loads(pointer.read_text())
    assert first["summary"]["rows"]["stacked_client_ids"] == 1
    assert first["summary"]["findings"]["orphaned_queues"]["CRITICAL"] == 4
    page = night / "reports" / "report" / f"dt={DAY}.html"
    assert "10.0.2.10@app-DUP" in page.read_text()
    # By hand, of the same date, and only to see.
    params = json.dumps({"date": DAY, "gate": "pass"})
    airflow("dags", "test", "rebalance_audit", "--conf", params)
    second = json.loads(pointer.read_text())
    assert second["run_id"] != first["run_id"]
    assert second["summary"]["rows"] == first["summary"]["rows"]
    assert second["summary"]["findings"] == first["summary"]["findings"]
