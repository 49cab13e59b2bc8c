"""The DAG that ships: parsed, judged task by task, and run for real on the sample dumps.

`make test-airflow` runs this on the lowest version of Airflow that the DAG supports, and on
Airflow 3.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.timetables.base import TimeRestriction
from jinja2 import UndefinedError
from pendulum import datetime as moment

from tests.airflow.conftest import DATA, ROOT, Airflow

try:
    from airflow.dag_processing.dagbag import DagBag
    from airflow.sdk.exceptions import (
        AirflowFailException,
        AirflowSkipException,
        ParamValidationError,
    )
    from airflow.sdk.execution_time import macros
    from airflow.serialization.serialized_objects import DagSerialization
except ModuleNotFoundError:  # Airflow 2
    from airflow import macros
    from airflow.exceptions import (
        AirflowFailException,
        AirflowSkipException,
        ParamValidationError,
    )
    from airflow.models.dagbag import DagBag
    from airflow.serialization.serialized_objects import SerializedDAG as DagSerialization

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
        "wait_for_dumps": {"ingest"},
        "ingest": {"audit"},
        "audit": {"report"},
        "report": {"alert", "gate"},
        "alert": set(),
        "gate": set(),
    }
    assert {task.task_id: task.retries for task in dag.tasks} == {
        **dict.fromkeys(following, 2),
        "gate": 0,
    }
    (asset,) = dag.get_task("report").outlets
    assert asset.uri.rstrip("/").endswith("rebalance_audit_reports")
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
    ("name", "value"),
    [
        ("date", "../../etc"),
        ("gate", "ignore"),
        ("fail_on", "WORST"),
        ("fail_on", "CRITICAL,WORST"),
        ("alert", "mail"),
        ("connection", 7),
    ],
)
def test_params_that_mean_nothing_are_refused(dag: Any, name: str, value: str) -> None:
    with pytest.raises(ParamValidationError):
        dag.params.get_param(name).resolve(value)


def rendered(dag: Any, text: str, variable: dict[str, Any], **params: Any) -> str:
    """A template of a task, with what the variable and the params of a run have."""
    given = {**dict.fromkeys(("alert", "connection", "known_issues")), **params}
    values = SimpleNamespace(json=SimpleNamespace(rebalance_audit=variable))
    return str(dag.get_template_env().from_string(text).render(params=given, var=values))


def test_what_a_run_names_comes_before_the_variable_and_nothing_is_no_argument(dag: Any) -> None:
    connection = dag.get_task("audit")._conn_id
    assert rendered(dag, connection, {}) == "spark_default"
    assert rendered(dag, connection, {"connection": "big"}) == "big"
    assert rendered(dag, connection, {"connection": "big"}, connection="small") == "small"
    (known,) = (each for each in dag.get_task("audit").application_args if "known" in each)
    assert rendered(dag, known, {}) == ""
    assert rendered(dag, known, {"known_issues": "a b.toml"}) == "--known-issues=a b.toml"
    assert rendered(dag, known, {}, known_issues="c.toml") == "--known-issues=c.toml"
    (webhook,) = (each for each in dag.get_task("alert").application_args if "webhook" in each)
    assert rendered(dag, webhook, {}) == ""
    assert rendered(dag, webhook, {"alert": "post"}) == "--webhook"
    assert rendered(dag, webhook, {"alert": "post"}, alert="print") == ""
    with pytest.raises(UndefinedError):
        rendered(dag, webhook, {"alert": "Post"})


def test_a_task_without_its_connection_fails_and_does_not_take_yarn(dag: Any) -> None:
    task = dag.get_task("alert")
    task._conn_id = "no_such_connection"
    with pytest.raises(AirflowFailException, match="there is no connection 'no_such_connection'"):
        task.execute({})


def test_each_task_names_what_it_read_and_wrote(dag: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = {name: f"s3://lake/{name}" for name in ("dumps", "snapshots", "reports")}

    def named(task_id: str) -> dict[str, str]:
        names: dict[str, str] = {}
        task = dag.get_task(task_id)
        for role in ("input", "output"):

            def add(_: Any, uri: str, role: str = role) -> None:
                names[role] = rendered(dag, uri, folders)

            monkeypatch.setattr(lineage, f"add_{role}_asset", add, raising=False)
        monkeypatch.setattr(task, "_conn_id", "spark_default")
        task.execute({})
        return names

    lineage = SimpleNamespace()
    module = sys.modules[type(dag.get_task("audit")).__module__]
    monkeypatch.setattr(module, "get_hook_lineage_collector", lambda: lineage)
    monkeypatch.setattr(SparkSubmitOperator, "execute", lambda *_: None)
    assert named("ingest") == {"input": "s3://lake/dumps", "output": "s3://lake/snapshots"}
    assert named("audit") == {"input": "s3://lake/snapshots", "output": "s3://lake/reports"}
    for task_id in ("report", "alert"):
        assert named(task_id) == {"input": "s3://lake/reports"}
    assert {"reads", "writes"} <= set(dag.get_task("audit").template_fields)


def dumps(folder: Path, *names: str, minutes_ago: float = 60) -> None:
    at = (datetime.now(UTC) - timedelta(minutes=minutes_ago)).timestamp()
    for name in names:
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("{}")
        os.utime(file, (at, at))


def test_late_dumps_are_waited_for_until_nothing_is_written_any_more(
    dag: Any, tmp_path: Path
) -> None:
    sensor = dag.get_task("wait_for_dumps")
    assert (sensor.mode, sensor.timeout) == ("reschedule", 6 * 3600)

    def are_complete() -> bool:
        return bool(sensor.python_callable(str(tmp_path / DAY)))

    assert not are_complete()
    # What ingest passes over is no dump.
    dumps(tmp_path / DAY, ".collect/lock", "_SUCCESS", "a/.half.jsonl")
    assert not are_complete()
    dumps(tmp_path / DAY, "a/round.jsonl.gz")
    assert are_complete()
    dumps(tmp_path / DAY, "later.jsonl", minutes_ago=5)
    assert not are_complete()
    # A round that is being written is none yet.
    dumps(tmp_path / DAY, "later.jsonl", minutes_ago=16)
    dumps(tmp_path / DAY, ".next.jsonl", minutes_ago=0)
    assert are_complete()


@pytest.fixture
def published(tmp_path: Path) -> Path:
    """Published reports with two critical findings, a warning and a gap."""
    point_to(tmp_path, {"CRITICAL": 2, "WARNING": 3, "INFO": 4, "INCOMPLETE": 1})
    return tmp_path


def point_to(reports: Path, gates: dict[str, int]) -> None:
    """Publishes a run with that much to close each gate, as the audit does."""
    values = {"run_id": "b", "summary": {"verdict": {"state": "WRONG", "gates": gates}}}
    digest = hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()
    pointer = reports / "_published" / f"dt={DAY}.000001.json"
    pointer.parent.mkdir(exist_ok=True)
    pointer.write_text(json.dumps({**values, "digest": digest}))


def judge(dag: Any, reports: Path, verdict: str, fail_on: str) -> Any:
    return dag.get_task("gate").python_callable(str(reports), DAY, verdict, fail_on)


def test_the_gate_fails_skips_or_passes_as_it_is_told(dag: Any, published: Path) -> None:
    with pytest.raises(AirflowFailException, match="'CRITICAL': 2, 'INCOMPLETE': 1"):
        judge(dag, published, "fail", "CRITICAL, INCOMPLETE")
    with pytest.raises(AirflowSkipException, match="'WARNING': 3"):
        judge(dag, published, "skip", "WARNING")
    assert judge(dag, published, "pass", "INFO") == {"INFO": 4}
    with pytest.raises(AirflowFailException, match="expected gate as one of"):
        judge(dag, published, "ignore", "CRITICAL")
    with pytest.raises(AirflowFailException, match="fail_on as some of"):
        judge(dag, published, "fail", "CRITICAL,NONE")


def test_the_gate_lets_a_day_pass_with_nothing_that_closes_it(dag: Any, published: Path) -> None:
    point_to(published, {"CRITICAL": 0, "WARNING": 0, "INFO": 0, "INCOMPLETE": 0})
    assert judge(dag, published, "fail", "CRITICAL,INCOMPLETE") == {"CRITICAL": 0, "INCOMPLETE": 0}


def test_a_day_on_which_nobody_looked_does_not_pass(dag: Any, published: Path) -> None:
    point_to(published, {"CRITICAL": 0, "WARNING": 0, "INFO": 0, "INCOMPLETE": 1})
    with pytest.raises(AirflowFailException, match="'INCOMPLETE': 1"):
        judge(dag, published, "fail", dag_default(dag))


def dag_default(dag: Any) -> str:
    """What ``fail_on`` is where nobody names it."""
    (template,) = (each for each in dag.get_task("gate").op_args if "fail_on" in str(each))
    return str(template).partition("'fail_on', '")[2].partition("'")[0]


def test_the_gate_lets_no_day_pass_whose_pointer_is_damaged(dag: Any, published: Path) -> None:
    pointer = published / "_published" / f"dt={DAY}.000001.json"
    whole = pointer.read_text()
    for damaged in (whole.replace('"CRITICAL": 2', '"CRITICAL": 0'), whole[:-9], "[]", ""):
        pointer.write_text(damaged)
        with pytest.raises(AirflowFailException, match="cannot be read"):
            judge(dag, published, "fail", "CRITICAL")


@pytest.fixture(scope="module")
def night(place: Path) -> Path:
    """The dumps of the day: one healthy group, one with a stacked client id."""
    (place / "settings.toml").write_text("persistence_seconds = 60\n")
    for situation in ("S1", "S2"):
        folder = place / "dumps" / DAY / situation
        folder.mkdir(parents=True)
        shutil.copy(DATA / situation / "dump.jsonl.gz", folder)
        at = (datetime.now(UTC) - timedelta(hours=1)).timestamp()
        os.utime(folder / "dump.jsonl.gz", (at, at))
    return place


def test_a_night_is_audited_reported_and_judged_and_may_be_run_again(
    airflow: Airflow, night: Path
) -> None:
    done = airflow("dags", "test", "rebalance_audit", "2026-11-22", expect=1)
    assert "the run of 2026-11-21 is WRONG: {'CRITICAL'" in done.stdout + done.stderr
    pointer = night / "reports" / "_published" / f"dt={DAY}.000001.json"
    first = json.loads(pointer.read_text())
    assert first["summary"]["rows"]["stacked_client_ids"] == 1
    assert first["summary"]["findings"]["orphaned_queues"]["CRITICAL"] == 4
    page = night / "reports" / "report" / f"dt={DAY}.html"
    assert "10.0.2.10@app-DUP" in page.read_text()
    assert "Rebalance audit of 2026-11-21: " in done.stdout + done.stderr
    # By hand, of the same date, and only to see.
    known = night / "known.toml"
    known.write_text("# none\n")
    params = json.dumps({"date": DAY, "gate": "pass", "known_issues": str(known)})
    airflow("dags", "test", "rebalance_audit", "--conf", params)
    second = json.loads(pointer.with_name(f"dt={DAY}.000002.json").read_text())
    assert second["run_id"] != first["run_id"]
    assert str(known) in second["summary"]["sources"].values()
    assert second["summary"]["rows"] == first["summary"]["rows"]
    assert second["summary"]["findings"] == first["summary"]["findings"]
