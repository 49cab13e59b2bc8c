"""The DAG that ships: parsed, judged task by task, and run for real on the sample dumps.

`make test-airflow` runs this on the lowest version of Airflow that the DAG supports, and on
Airflow 3.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sqlite3
import sys
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from zipfile import ZipFile

import pytest
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.timetables.base import TimeRestriction
from pendulum import datetime as moment

import rebalance_audit
from rebalance_audit.airflow import rebalance_audit_dag
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

DAY, NEXT_DAY = "2026-11-21", "2026-11-22"


@pytest.fixture(scope="session")
def dags(airflow: Airflow, dag_file: Path) -> Any:
    """The DAGs as the scheduler parses them."""
    bag = DagBag(str(dag_file))
    assert bag.import_errors == {}
    assert sorted(bag.dags) == ["audit_orders", "audit_payments"]
    return bag.dags


@pytest.fixture(scope="session")
def dag(dags: Any) -> Any:
    return dags["audit_orders"]


def test_the_package_is_that_of_the_wheel() -> None:
    assert Path(rebalance_audit.__file__).is_relative_to(sys.prefix)


def test_the_tasks_follow_each_other_and_all_that_may_pass_are_tried_again(dag: Any) -> None:
    following = {task.task_id: task.downstream_task_ids for task in dag.tasks}
    assert following == {
        "wait_for_dumps": {"ingest"},
        "ingest": {"audit"},
        "audit": {"report", "verdict"},
        "report": {"alert"},
        "alert": set(),
        "verdict": {"gate", "in_order"},
        "gate": set(),
        "in_order": set(),
    }
    assert {task.task_id: task.retries for task in dag.tasks} == {
        **dict.fromkeys(following, 2),
        **dict.fromkeys(("gate", "in_order"), 0),
    }
    assert (dag.max_active_runs, dag.catchup) == (1, False)
    assert "Triage notes" in dag.doc_md


def test_the_arguments_of_the_owner_reach_the_dag_and_each_task(dags: Any) -> None:
    for dag_id, tag in (("audit_orders", "order"), ("audit_payments", "payment")):
        assert set(dags[dag_id].tags) == {tag}
        for task in dags[dag_id].tasks:
            assert task.execution_timeout == timedelta(hours=2), task.task_id
            assert task.pool == "audits"
            assert task.on_failure_callback


def test_each_dag_has_folders_an_asset_and_names_of_its_own(dags: Any) -> None:
    for dag_id in ("audit_orders", "audit_payments"):
        cluster = dag_id.removeprefix("audit_")
        updating = [task for task in dags[dag_id].tasks if task.outlets]
        assert [task.task_id for task in updating] == ["verdict"]
        assert updating[0].outlets[0].uri.rstrip("/").endswith(f"{dag_id}_reports")
        audit = dags[dag_id].get_task("audit")
        assert audit.name.startswith(f"{dag_id} audit ")
        assert f"/{cluster}/snapshots/" in " ".join(audit.application_args)
        assert not any("checkout" in each or str(ROOT) in each for each in audit.application_args)


@pytest.mark.parametrize("wrong", [{"gate": "ignore"}, {"alert": "mail"}, {"fail_on": "WORST"}])
def test_an_argument_that_means_nothing_is_refused(wrong: dict[str, str]) -> None:
    folders = dict.fromkeys(("dumps", "snapshots", "reports"), "/data")
    with pytest.raises(ParamValidationError, match=repr(*wrong.values())):
        rebalance_audit_dag("wrong", **folders, **wrong)


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
        ("known_issues", 7),
    ],
)
def test_params_that_mean_nothing_are_refused(dag: Any, name: str, value: str) -> None:
    with pytest.raises(ParamValidationError):
        dag.params.get_param(name).resolve(value)


def rendered(dag: Any, text: str, **params: Any) -> str:
    """A template of a task, with the params of a run."""
    given = {"known_issues": None, "alert": "print", **params}
    return str(dag.get_template_env().from_string(text).render(params=given))


def test_what_a_run_has_no_use_for_is_no_argument(dag: Any) -> None:
    (known,) = (each for each in dag.get_task("audit").application_args if "known" in each)
    assert rendered(dag, known) == ""
    assert rendered(dag, known, known_issues="a b.toml") == "--known-issues=a b.toml"
    (webhook,) = (each for each in dag.get_task("alert").application_args if "webhook" in each)
    assert rendered(dag, webhook) == ""
    assert rendered(dag, webhook, alert="post") == "--webhook"


def test_a_task_without_its_connection_fails_and_does_not_take_yarn() -> None:
    folders = dict.fromkeys(("dumps", "snapshots", "reports"), "/data")
    task = rebalance_audit_dag("d", **folders, spark={"conn_id": "no_such"}).get_task("alert")
    with pytest.raises(AirflowFailException, match="there is no connection 'no_such'"):
        task.execute({})


def test_spark_gets_the_packages_as_installed_beside_those_of_the_owner(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given: dict[str, Any] = {}

    def submit(task: Any, _context: Any) -> None:
        theirs, ours = task.py_files.split(",")
        given.update(theirs=theirs, ours=ours, names=ZipFile(ours).namelist())

    monkeypatch.setattr(SparkSubmitOperator, "execute", submit)
    folders = dict.fromkeys(("dumps", "snapshots", "reports"), "/data")
    spark = {"conn_id": "spark_of_ours", "py_files": "theirs.zip", "executor_memory": "7g"}
    task = rebalance_audit_dag("d", **folders, spark=spark).get_task("audit")
    task.execute({})
    assert given["theirs"] == "theirs.zip"
    assert {"rebalance_audit/cli.py", "rebalance_core/__init__.py"} <= {*given["names"]}
    assert "rebalance_audit/reports/templates/explain.txt" in given["names"]
    assert not Path(given["ours"]).exists()
    assert Path(task.application).is_file()
    assert task._executor_memory == "7g"


def test_each_task_names_what_it_read_and_wrote(monkeypatch: pytest.MonkeyPatch) -> None:
    folders = {name: f"s3://lake/{name}" for name in ("dumps", "snapshots", "reports")}
    dag = rebalance_audit_dag("d", **folders, spark={"conn_id": "spark_of_ours"})

    def named(task_id: str) -> dict[str, str]:
        names: dict[str, str] = {}
        task = dag.get_task(task_id)
        for role in ("input", "output"):

            def add(_: Any, uri: str, role: str = role) -> None:
                names[role] = uri

            monkeypatch.setattr(lineage, f"add_{role}_asset", add, raising=False)
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


NOTHING = dict.fromkeys(("INFO", "WARNING", "CRITICAL", "INCOMPLETE"), 0)


def point_to(
    reports: Path, gates: dict[str, int], day: str = DAY, number: int = 1, **summary: Any
) -> Path:
    """Publishes a run with that much to close each gate, as the audit does; gives its pointer."""
    verdict = {"state": "WRONG", "sentence": "2 topics are bad.", "gates": gates}
    values = {"run_id": f"{day}-{number}", "summary": {"verdict": verdict, **summary}}
    digest = hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()
    pointer = reports / "_published" / f"dt={day}.{number:06}.json"
    pointer.parent.mkdir(exist_ok=True)
    pointer.write_text(json.dumps({**values, "digest": digest}))
    return pointer


def verdict_of(dag: Any, reports: Path, day: str = DAY) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the task gives of a day, and the extra of its asset's event."""
    task = dag.get_task("verdict")
    events = {each: SimpleNamespace(extra={}) for each in task.outlets}
    found = task.python_callable(str(reports), day, task=task, outlet_events=events)
    (event,) = events.values()
    return found, event.extra


def judge(dag: Any, found: dict[str, Any], mode: str, fail_on: str) -> None:
    dag.get_task("gate").python_callable(found, mode, fail_on)


def test_the_event_has_the_run_and_its_verdict(dag: Any, tmp_path: Path) -> None:
    gates = {"CRITICAL": 2, "WARNING": 3, "INFO": 4, "INCOMPLETE": 1}
    point_to(tmp_path, NOTHING)
    point_to(tmp_path, gates, number=2)
    point_to(tmp_path, NOTHING, NEXT_DAY)
    found, extra = verdict_of(dag, tmp_path)
    assert extra == {"date": DAY, "run": f"{DAY}-2", "state": "WRONG", "counts": gates}
    assert found == {**extra, "sentence": "2 topics are bad."}
    with pytest.raises(AirflowFailException, match="no published report of 2026-11-20"):
        verdict_of(dag, tmp_path, "2026-11-20")


def test_the_gate_fails_skips_or_passes_as_it_is_told(
    dag: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    point_to(tmp_path, {"CRITICAL": 2, "WARNING": 3, "INFO": 4, "INCOMPLETE": 1})
    found, _ = verdict_of(dag, tmp_path)
    told = "is WRONG: 2 topics are bad. {'CRITICAL': 2, 'INCOMPLETE': 1}"
    with pytest.raises(AirflowFailException, match=told):
        judge(dag, found, "fail", "CRITICAL, INCOMPLETE")
    with pytest.raises(AirflowSkipException, match="'WARNING': 3"):
        judge(dag, found, "skip", "WARNING")
    with caplog.at_level("INFO"):
        judge(dag, found, "pass", "INFO")
    assert "2 topics are bad. {'INFO': 4}" in caplog.text


def test_the_gate_lets_a_day_pass_with_nothing_that_closes_it(dag: Any, tmp_path: Path) -> None:
    point_to(tmp_path, NOTHING | {"INFO": 3})
    found, _ = verdict_of(dag, tmp_path)
    judge(dag, found, "fail", "CRITICAL,INCOMPLETE")


def test_a_day_on_which_nobody_looked_does_not_pass(dag: Any, tmp_path: Path) -> None:
    point_to(tmp_path, NOTHING | {"INCOMPLETE": 1})
    found, _ = verdict_of(dag, tmp_path)
    with pytest.raises(AirflowFailException, match="'INCOMPLETE': 1"):
        judge(dag, found, "fail", dag.params["fail_on"])


def test_no_day_passes_whose_pointer_is_damaged(dag: Any, tmp_path: Path) -> None:
    pointer = point_to(tmp_path, NOTHING | {"CRITICAL": 2})
    whole = pointer.read_text()
    for damaged in (whole.replace('"CRITICAL": 2', '"CRITICAL": 0'), whole[:-9], "[]", ""):
        pointer.write_text(damaged)
        with pytest.raises(AirflowFailException, match="cannot be read"):
            verdict_of(dag, tmp_path)


@pytest.mark.parametrize(
    ("previous", "told"),
    [
        ({"date": DAY, "run_id": f"{DAY}-2"}, None),
        # The day was audited again, or late, or it was the first of all.
        ({"date": DAY, "run_id": f"{DAY}-1"}, f"compared with the run {DAY}-1 of {DAY}"),
        ({"date": "2026-11-20", "run_id": "x"}, "compared with the run x of 2026-11-20"),
        (None, "compared with nothing"),
    ],
)
def test_a_day_is_out_of_order_where_the_next_was_compared_with_another_run(
    dag: Any, tmp_path: Path, previous: dict[str, str] | None, told: str | None
) -> None:
    def check() -> None:
        dag.get_task("in_order").python_callable(str(tmp_path), verdict_of(dag, tmp_path)[0])

    point_to(tmp_path, NOTHING)
    point_to(tmp_path, NOTHING, number=2)
    check()
    point_to(tmp_path, NOTHING, NEXT_DAY, previous=previous)
    point_to(tmp_path, NOTHING, "2026-11-25", previous={"date": NEXT_DAY, "run_id": "y"})
    if told is None:
        check()
        return
    with pytest.raises(AirflowFailException, match=told) as failed:
        check()
    assert f"Clear the run of {NEXT_DAY} from the task audit on" in str(failed.value)
    assert "the last is 2026-11-25" in str(failed.value)


def give_dumps(place: Path, cluster: str, day: str, *situations: str) -> None:
    for situation in situations:
        folder = place / cluster / "dumps" / day / situation
        folder.mkdir(parents=True)
        shutil.copy(DATA / situation / "dump.jsonl.gz", folder)
        at = (datetime.now(UTC) - timedelta(hours=1)).timestamp()
        os.utime(folder / "dump.jsonl.gz", (at, at))


@pytest.fixture(scope="module")
def night(place: Path, dag_file: Path) -> Path:
    """The dumps of the day: one healthy group, one with a stacked client id; and of a cluster in
    which nothing is wrong.
    """
    (place / "settings.toml").write_text("persistence_seconds = 60\n")
    give_dumps(place, "orders", DAY, "S1", "S2")
    give_dumps(place, "payments", DAY, "S1")
    return place


def events(place: Path) -> list[tuple[str, dict[str, Any]]]:
    """The events of assets so far, in time: the task that made one, and its extra."""
    with closing(sqlite3.connect(place / "airflow" / "airflow.db")) as database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master")]
        table = "asset_event" if "asset_event" in tables else "dataset_event"
        query = f"SELECT source_task_id, extra FROM {table} ORDER BY id"  # noqa: S608
        return [(task_id, json.loads(extra)) for task_id, extra in database.execute(query)]


def test_a_night_is_audited_reported_and_judged_and_may_be_run_again(
    airflow: Airflow, night: Path
) -> None:
    done = airflow("dags", "test", "audit_orders", NEXT_DAY, expect=1)
    said = done.stdout + done.stderr
    pointer = night / "orders" / "reports" / "_published" / f"dt={DAY}.000001.json"
    first = json.loads(pointer.read_text())
    sentence = first["summary"]["verdict"]["sentence"]
    assert "lasting faults" in sentence
    assert f"the run of 2026-11-21 is WRONG: {sentence} {{'CRITICAL'" in said
    assert first["summary"]["rows"]["stacked_client_ids"] == 1
    assert first["summary"]["findings"]["orphaned_queues"]["CRITICAL"] == 4
    page = night / "orders" / "reports" / "report" / f"dt={DAY}.html"
    assert "10.0.2.10@app-DUP" in page.read_text()
    assert "Rebalance audit of 2026-11-21: " in said
    # Nothing of the checkout was used.
    assert str(ROOT / "jobs") not in said
    assert str(Path(sys.prefix)) in said
    assert (night / "failed.txt").read_text() == "gate failed\n"
    (task_id, extra) = events(night)[-1]
    assert (task_id, extra["run"], extra["state"]) == ("verdict", first["run_id"], "WRONG")
    assert extra["counts"] == first["summary"]["verdict"]["gates"]
    # By hand, of the same date, and only to see.
    known = night / "known.toml"
    known.write_text("# none\n")
    params = json.dumps({"date": DAY, "gate": "pass", "known_issues": str(known)})
    airflow("dags", "test", "audit_orders", "--conf", params)
    second = json.loads(pointer.with_name(f"dt={DAY}.000002.json").read_text())
    assert second["run_id"] != first["run_id"]
    assert str(known) in second["summary"]["sources"].values()
    assert second["summary"]["rows"] == first["summary"]["rows"]
    assert second["summary"]["findings"] == first["summary"]["findings"]
    assert events(night)[-1][1]["run"] == second["run_id"]
    # The other cluster has what is its own.
    done = airflow("dags", "test", "audit_payments", NEXT_DAY)
    assert "is INCOMPLETE: Nothing lasting was found" in done.stdout + done.stderr
    assert events(night)[-1][1]["state"] == "INCOMPLETE"
    (of_payments,) = (night / "payments" / "reports" / "_published").iterdir()
    assert of_payments.name == pointer.name


def test_a_day_that_is_audited_after_the_next_one_says_so(airflow: Airflow, night: Path) -> None:
    give_dumps(night, "payments", NEXT_DAY, "S1")
    of_day, of_next = (json.dumps({"date": day}) for day in (DAY, NEXT_DAY))
    airflow("dags", "test", "audit_payments", "--conf", of_next)
    done = airflow("dags", "test", "audit_payments", "--conf", of_day, expect=1)
    assert f"Clear the run of {NEXT_DAY} from the task audit on" in done.stdout + done.stderr
    assert (night / "failed.txt").read_text().endswith("in_order failed\n")
