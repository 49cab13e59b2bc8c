"""### Nightly rebalance audit of RocketMQ

`wait_for_dumps`, `ingest`, `audit`, then `report` and `alert`, and beside these `verdict`, `gate`
and `in_order`: once a night, over the whole day (UTC) before. A run by hand audits the day before
it too; the param `date` names another day. The other params are as in the file of the DAG, unless a
run is given others.

#### Late dumps
`wait_for_dumps` looks into the folder of the date every five minutes, and holds no worker in
between. It goes on when the folder has files and the last of them is 15 minutes old. After six
hours it fails.

#### The alert
`alert` prints the message of the run into its log. With `post` it sends it, to what the settings
name below `[alerts]`. The URL and the secret of a service are in the workers' environment
(`REBALANCE_AUDIT_WEBHOOK`, `REBALANCE_AUDIT_SECRET`) or in the files that the settings name. It is
beside the gate: neither waits for the other.

#### The asset
`verdict` reads the verdict of the published run, and updates the asset (in Airflow 2: the dataset)
that is called as the DAG and `_reports`: the tables and the verdict are published by then. The
event's `extra` has `date`, `run`, `state` and `counts`, by gate.

#### The gate
`fail_on` names what closes it, with commas between: a severity, by findings of it or worse that are
no known issues, and `INCOMPLETE`, by what was not read or not audited. Where it is closed, `gate`
decides what becomes of the run: `fail` makes it red, `skip` leaves it green and what comes after
the gate undone, `pass` only logs.

#### The order of nights
A day is compared with the one published before it. `in_order` fails where the next day was compared
with another run than this one, because this day was audited after it, or again.

#### Triage notes
- **`wait_for_dumps` failed.** There are no dumps of the date, or files are still written into its
  folder. Mend the collector, or the copy of its files, and clear the task.
- **`ingest` failed.** The last line of the job has the reason. Exit code 3: there are no dumps of
  the date, or more lines were not understood than the settings allow (the table `quarantine` below
  the snapshots has each with its reason); mend the collector, clear the task. 2: the settings, or
  an argument of the DAG. 4: Spark or the machine; the retries are for this.
- **`audit` failed.** As above. An earlier report of the date, if there is one, is still in force.
- **`report` failed.** The tables are published and right; clear this task alone.
- **`alert` failed.** The report is published. The log names the service that did not take the
  message; clear this task: what was delivered is not sent again.
- **`gate` failed or was skipped.** The audit works: the cluster has findings, or not all of it was
  read and audited; the log has the verdict. Read the report of the date. Clearing the gate gives
  the same again; the next night shows whether it was mended.
- **`in_order` failed.** This day is published and right; what the next one calls new, gone or open
  for so many nights may not be. Clear the next day from `audit` on, then the days after it in their
  order, then this task. Where several days are cleared at once, each that has a later one fails so.
- **All tasks wait.** One run at a time, for each day is compared with the one before.
- Clearing or retrying is always safe: a task replaces what it wrote, a run is published by the
  creation of one file, and the same input gives the same rows.

OpenLineage gets the folders that a task read and wrote, where they are URIs of `file`, `s3` or
`gs`.
"""

import hashlib
import json
import logging
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any
from zipfile import ZipFile

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.providers.common.compat.lineage.hook import get_hook_lineage_collector

try:
    from airflow.sdk import (
        DAG,
        Asset,
        BaseHook,
        CronTriggerTimetable,
        ObjectStoragePath,
        Param,
        chain,
        task,
    )
    from airflow.sdk.exceptions import (
        AirflowFailException,
        AirflowNotFoundException,
        AirflowSkipException,
    )
except ModuleNotFoundError:  # Airflow 2
    from airflow import DAG
    from airflow.datasets import Dataset as Asset
    from airflow.decorators import task
    from airflow.exceptions import (
        AirflowFailException,
        AirflowNotFoundException,
        AirflowSkipException,
    )
    from airflow.hooks.base import BaseHook
    from airflow.io.path import ObjectStoragePath
    from airflow.models.baseoperator import chain
    from airflow.models.param import Param
    from airflow.timetables.trigger import CronTriggerTimetable

GATES = ("INFO", "WARNING", "CRITICAL", "INCOMPLETE")
#: Some of them with commas between.
_SOME_GATES = rf"^({'|'.join(GATES)})(\s*,\s*({'|'.join(GATES)}))*$"
#: The type of a param that may be left out.
_TEXT = ["null", "string"]
#: Dumps are complete when nothing was written for so long. A round a minute is usual.
SETTLED = timedelta(minutes=15)

#: The day before the run. One that nobody scheduled has no data interval, and no ``ds``.
DATE = (
    "{{ params.date or (dag_run.data_interval_start | ds if dag_run.data_interval_start "
    "else macros.ds_add(dag_run.run_after | ds, -1)) }}"
)
#: Arguments that are empty where the run has no use for them.
_KNOWN_ISSUES = "{{ '--known-issues=' ~ params.known_issues if params.known_issues else '' }}"
_WEBHOOK = "{{ '--webhook' if params.alert == 'post' else '' }}"
#: Options of spark-submit that are advised, as in conf/spark-defaults.conf.
_ADVISED: Mapping[str, Any] = {
    "driver_memory": "3g",
    "conf": {"spark.python.sql.dataFrameDebugging.enabled": "false"},
}
#: The folder of this package, which has the entries of spark-submit.
_PACKAGE = Path(__file__).parents[1]


def rebalance_audit_dag(
    dag_id: str,
    *,
    dumps: str,
    snapshots: str,
    reports: str,
    settings: str | None = None,
    known_issues: str | None = None,
    alert: str = "print",
    gate: str = "fail",
    fail_on: str = "CRITICAL,INCOMPLETE",
    spark: Mapping[str, Any] | None = None,
    **dag_arguments: Any,
) -> DAG:
    """The DAG that audits a cluster each night; its docs, which Airflow shows, have what it does.

    ``dumps``, ``snapshots``, ``reports``: folders that Spark reaches, of this cluster alone; the
    first two have a folder for each date (``2026-11-20``). ``settings`` and ``known_issues``: files
    on the workers; without settings the built-in ones count. The folders and ``settings`` may be
    templates. ``alert``: ``print`` or ``post``; ``gate``: ``fail``, ``skip`` or ``pass``;
    ``fail_on``: some of ``GATES``. A run may be given others of the last four, as params.

    ``spark``: arguments of ``SparkSubmitOperator`` (``conn_id``, ``conf``, ``executor_memory``).
    ``dag_arguments``: those of the DAG, before ours; of ``default_args`` and ``params`` each name.
    """
    advised = {
        # When the last rounds of the day are collected.
        "schedule": CronTriggerTimetable("30 0 * * *", timezone="UTC", interval=timedelta(days=1)),
        # Airflow 2 asks for one. Without catching up the first run is that of the last night.
        "start_date": datetime(2026, 1, 1, tzinfo=UTC),
        "catchup": False,
        # A day is compared with the one before it.
        "max_active_runs": 1,
        "doc_md": __doc__,
        "tags": ["rocketmq"],
    }
    default_args = {"retries": 2, "retry_delay": timedelta(minutes=5)}
    params = {
        "date": Param(None, type=_TEXT, format="date", description="else the day before"),
        "known_issues": Param(known_issues, type=_TEXT, description="a file"),
        "alert": Param(alert, enum=["print", "post"]),
        "gate": Param(gate, enum=["fail", "skip", "pass"], description="where it is closed"),
        "fail_on": Param(fail_on, type="string", pattern=_SOME_GATES),
    }
    for param in params.values():
        # Airflow's error about a default does not say which.
        param.resolve()
    dag_arguments["default_args"] = default_args | (dag_arguments.get("default_args") or {})
    dag_arguments["params"] = params | (dag_arguments.get("params") or {})
    asset = Asset(f"{dag_id}_reports")
    # A folder for each date: ingest replaces what it wrote, of that date alone.
    dumps_of_date, snapshots_of_date = f"{dumps}/{DATE}", f"{snapshots}/{DATE}"
    reports_of_date = ["--reports", reports, "--date", DATE]

    def submit(entry: str, arguments: list[str], reads: str, writes: str | None) -> SubmitOperator:
        """The task that runs one of the package's spark-submit entries."""
        return SubmitOperator(
            task_id=entry,
            name=f"{dag_id} {entry} {DATE}",
            application=str(_PACKAGE / f"{entry}.py"),
            application_args=[*arguments, *(["--settings", settings] if settings else [])],
            reads=reads,
            writes=writes,
            **{**_ADVISED, **(spark or {})},
        )

    with DAG(dag_id, **{**advised, **dag_arguments}) as dag:
        arguments = ["--dumps", dumps_of_date, "--snapshots", snapshots_of_date]
        ingested = submit("ingest", arguments, reads=dumps, writes=snapshots)
        arguments = ["--snapshots", snapshots_of_date, *reports_of_date, _KNOWN_ISSUES]
        audited = submit("audit", arguments, reads=snapshots, writes=reports)
        chain(
            wait_for_dumps(dumps_of_date),
            ingested,
            audited,
            submit("report", reports_of_date, reads=reports, writes=None),
            submit("alert", [*reports_of_date, _WEBHOOK], reads=reports, writes=None),
        )
        found = verdict.override(outlets=[asset])(reports, DATE)
        chain(audited, found)
        judge(found, "{{ params.gate }}", "{{ params.fail_on }}")
        in_order(reports, found)
    return dag


class SubmitOperator(SparkSubmitOperator):  # type: ignore[misc]  # Airflow lives elsewhere
    """Submits with the packages as they are installed here, and leaves arguments out that are
    empty.

    ``reads``, ``writes``: folders, by whose names OpenLineage knows what went in and came out.
    """

    template_fields = (*SparkSubmitOperator.template_fields, "reads", "writes")

    def __init__(self, *, reads: str, writes: str | None, **options: Any) -> None:
        super().__init__(**options)
        self.reads, self.writes = reads, writes

    def execute(self, context: Any) -> None:
        """Fails without the connection, for which Spark's hook would take YARN without a word."""
        try:
            BaseHook.get_connection(self._conn_id)
        except AirflowNotFoundException:
            raise AirflowFailException(
                f"there is no connection {self._conn_id!r}: make it, of the type Spark, or name "
                "another one: rebalance_audit_dag(..., spark={'conn_id': ...})"
            ) from None
        self.application_args: list[str] = list(filter(None, self.application_args or ()))
        with TemporaryDirectory(prefix="rebalance-audit-") as folder:
            ours = str(zip_packages(Path(folder)))
            self.py_files: str = f"{self.py_files},{ours}" if self.py_files else ours
            super().execute(context)
        lineage = get_hook_lineage_collector()
        lineage.add_input_asset(self, uri=self.reads)
        if self.writes:
            lineage.add_output_asset(self, uri=self.writes)


def zip_packages(folder: Path) -> Path:
    """Writes the project's packages, as installed here, into a file for ``--py-files``."""
    path = folder / "rebalance-audit.zip"
    roots = {"rebalance_audit": _PACKAGE, "rebalance_core": _PACKAGE.parent / "rebalance_core"}
    with ZipFile(path, "w") as file:
        for name, root in roots.items():
            for path_of_file in sorted(root.rglob("*")):
                if "__pycache__" not in path_of_file.parts:
                    file.write(path_of_file, name / path_of_file.relative_to(root))
    return path


# Between two looks it holds no worker, and it needs no triggerer, as a deferred task would.
@task.sensor(
    mode="reschedule",
    poke_interval=timedelta(minutes=5).total_seconds(),
    timeout=timedelta(hours=6).total_seconds(),
)
def wait_for_dumps(folder: str) -> bool:
    """True if the folder of a date has dumps, and nothing was written into it for ``SETTLED``."""
    log = logging.getLogger(__name__)
    root = ObjectStoragePath(folder)
    try:
        found = root.fs.find(root.path)
    except FileNotFoundError:
        found = []
    files = [file for file in found if _is_read(file, root.path)]
    if not files:
        log.info("there are no dumps in %s yet", folder)
        return False
    try:
        times = map(root.fs.modified, files)
        last: datetime = max(time if time.tzinfo else time.replace(tzinfo=UTC) for time in times)
    except NotImplementedError:
        log.info("%s cannot say when its files were written: %d are there", folder, len(files))
        return True
    log.info("%d files in %s, the last one of %s", len(files), folder, last)
    is_settled: bool = datetime.now(UTC) - last >= SETTLED
    return is_settled


def _is_read(file: str, folder: str) -> bool:
    """True if ingest reads the file: it passes over hidden ones, and those below hidden folders."""
    below = PurePosixPath(file).parts[len(PurePosixPath(folder).parts) :]
    return not any(part.startswith(("_", ".")) for part in below)


@task
def verdict(reports: str, date: str, **context: Any) -> dict[str, Any]:
    """The verdict of the published run of a date: ``date``, ``run``, ``state``, ``counts`` by gate
    and its ``sentence``; all but the sentence is in the event of the task's asset, too.
    """
    pointer = _pointers(reports).get(date)
    if pointer is None:
        raise AirflowFailException(f"no published report of {date} below {reports}")
    run = _read(pointer)
    found = run["summary"]["verdict"]
    event = {"date": date, "run": run["run_id"], "state": found["state"], "counts": found["gates"]}
    for outlet in context["task"].outlets:
        context["outlet_events"][outlet].extra = event
    logging.getLogger(__name__).info("%s: %s", found["state"], found["sentence"])
    return {**event, "sentence": found["sentence"]}


# The same verdict is judged the same again. The other tasks do not use --fail-on: Airflow would try
# any exit code but 0 again.
@task(task_id="gate", retries=0)
def judge(verdict: dict[str, Any], mode: str, fail_on: str) -> None:
    """Raises AirflowFailException or AirflowSkipException, by the mode, where anything of
    ``fail_on`` closes the gate.
    """
    counts = {gate: verdict["counts"][gate] for gate in map(str.strip, fail_on.split(","))}
    message = "the run of {date} is {state}: {sentence}".format_map(verdict) + f" {counts}"
    if any(counts.values()) and mode != "pass":
        raise {"fail": AirflowFailException, "skip": AirflowSkipException}[mode](message)
    logging.getLogger(__name__).info(message)


@task(retries=0)
def in_order(reports: str, verdict: dict[str, Any]) -> None:
    """Raises AirflowFailException where the next date was compared with another run than this."""
    date, pointers = verdict["date"], _pointers(reports)
    later = sorted(pointer for pointer in pointers if pointer > date)
    if not later:
        return
    previous = _read(pointers[later[0]])["summary"]["previous"]
    if previous != {"date": date, "run_id": verdict["run"]}:
        template = "the run {run_id} of {date}" if previous else "nothing"
        compared = template.format_map(previous or {})
        raise AirflowFailException(
            f"{date} is published, and is right; but {later[0]} was published before it, and "
            f"compared with {compared}. Clear the run of {later[0]} from the task audit on, then "
            f"the later days in their order (the last is {later[-1]}), then this task"
        )


def _pointers(reports: str) -> dict[str, ObjectStoragePath]:
    """The pointer to the run that counts of each date: see ``storage/publication.py``."""
    files = (ObjectStoragePath(reports) / "_published").iterdir()
    # Of a date the one with the highest number is the last.
    named = sorted((file.name, file) for file in files if file.name.startswith("dt="))
    return {name.removeprefix("dt=").split(".")[0]: file for name, file in named}


def _read(pointer: ObjectStoragePath) -> dict[str, Any]:
    """The values of a pointer; AirflowFailException where they are not what a run wrote.

    See ``storage/manifest.py``, ``unsealed``, and ``verdict/verdict.py``, ``packed``.
    """
    try:
        values: dict[str, Any] = dict(json.loads(pointer.read_bytes()))
        digest = values.pop("digest")
        sealed = json.dumps(values, ensure_ascii=True, sort_keys=True).encode("ascii")
        if digest != hashlib.sha256(sealed).hexdigest():
            raise ValueError("its digest is another than that of its text")
        values["summary"]["verdict"]["sentence"]
    except (ValueError, TypeError, KeyError) as error:
        what = f"{pointer} cannot be read ({error}): audit the date again"
        raise AirflowFailException(what) from error
    return values
