"""### Nightly rebalance audit of RocketMQ

`wait_for_dumps`, `ingest`, `audit`, `report`, then `alert` and `gate`: once a night, over the whole
day (UTC) before. A run by hand audits the day before it too; the param `date` names another day.
It runs on Airflow 2.10, 2.11 and 3.

#### Setting it up
Put this file into the folder of the DAGs: it imports nothing of the project. Airflow needs another
environment, for its Spark provider replaces a part of Spark's package, and calls `spark-submit`:
the workers' PATH has that of the environment where the project is installed.

- Connection `spark_default`: the cluster, in client mode. `connection` of the variable names
  another one. A connection that does not exist fails the task.
- Variable `rebalance_audit`, as JSON. `home` is a checkout after `make package`, `settings` the
  audit's; `dumps`, `snapshots` and `reports` are folders that Spark reaches, of which the first two
  have a folder for each date (`2026-11-20`). The last five may be left out; a param of a run comes
  before them. `known_issues` is a file, else that of the checkout.

        {"home": "/opt/rebalance-audit", "settings": "/etc/rebalance-audit.toml",
         "dumps": "hdfs:///dumps", "snapshots": "hdfs:///snapshots", "reports": "hdfs:///reports",
         "connection": "spark_default", "known_issues": "/etc/rebalance-audit/known_issues.toml",
         "alert": "post", "gate": "fail", "fail_on": "CRITICAL,INCOMPLETE"}

- `SPARK_CONF_DIR=<home>/conf` in the workers' environment: logs as JSON, and the Java of the
  `[jre]` extra on a machine without one. `conf/spark-defaults.conf` is taken without it.

#### Late dumps
`wait_for_dumps` looks into the folder of the date every five minutes, and holds no worker in
between. It goes on when the folder has files and the last of them is 15 minutes old. After six
hours it fails.

#### The alert
`alert` prints the message of the run into its log. With `post` it sends it, to what the settings
name below `[alerts]`. The URL and the secret of a service are in the workers' environment
(`REBALANCE_AUDIT_WEBHOOK`, `REBALANCE_AUDIT_SECRET`) or in the files that the settings name. It is
beside the gate: neither waits for the other.

#### The gate
It reads the verdict of the published run. `fail_on` names what closes it, with commas between:
a severity, by findings of it or worse that are no known issues, and `INCOMPLETE`, by what was not
read or not audited. The default is `CRITICAL,INCOMPLETE`. Where it is closed, `gate` decides what
becomes of the run: `fail`, the default, makes it red, `skip` leaves it green and what comes after
the gate undone, `pass` only logs.

#### Triage notes
- **`wait_for_dumps` failed.** There are no dumps of the date, or files are still written into its
  folder. Mend the collector, or the copy of its files, and clear the task.
- **`ingest` failed.** The last line of the job has the reason. Exit code 3: there are no dumps of
  the date, or more lines were not understood than the settings allow (the table `quarantine` below
  the snapshots has each with its reason); mend the collector, clear the task. 2: the settings or
  the variable. 4: Spark or the machine; the retries are for this.
- **`audit` failed.** As above. An earlier report of the date, if there is one, is still in force.
- **`report` failed.** The tables are published and right; clear this task alone.
- **`alert` failed.** The report is published. The log names the service that did not take the
  message; clear this task: what was delivered is not sent again.
- **`gate` failed or was skipped.** The audit works: the cluster has findings, or not all of it was
  read and audited; the log names which. Read the report of the date. Clearing the gate gives the
  same again; the next night shows whether it was mended.
- **All tasks wait.** One run at a time, for each day is compared with the one before.
- Clearing or retrying is always safe: a task replaces what it wrote, a run is published by the
  creation of one file, and the same input gives the same rows. Clear several days in their order.

DAGs that read the reports are scheduled by the asset `rebalance_audit_reports`. OpenLineage gets
the folders that a task read and wrote, where they are URIs of `file`, `s3` or `gs`.
"""

import hashlib
import json
import logging
from datetime import UTC, datetime, timedelta
from pathlib import PurePosixPath
from typing import Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.providers.common.compat.lineage.hook import get_hook_lineage_collector

try:
    from airflow.sdk import (
        Asset,
        BaseHook,
        CronTriggerTimetable,
        ObjectStoragePath,
        Param,
        chain,
        dag,
        task,
    )
    from airflow.sdk.exceptions import (
        AirflowFailException,
        AirflowNotFoundException,
        AirflowSkipException,
    )
except ModuleNotFoundError:  # Airflow 2
    from airflow.datasets import Dataset as Asset
    from airflow.decorators import dag, task
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

REPORTS = Asset("rebalance_audit_reports")
GATES = ("INFO", "WARNING", "CRITICAL", "INCOMPLETE")
#: Gates that make a run red by default: a lasting finding that loses messages, and a gap.
FAIL_ON = "CRITICAL,INCOMPLETE"
#: Some of them with commas between.
_SOME_GATES = rf"^({'|'.join(GATES)})(\s*,\s*({'|'.join(GATES)}))*$"
VERDICTS = ("fail", "skip", "pass")
ALERTS = ("print", "post")
#: The type of a param that may be left out.
TEXT = ["null", "string"]
#: Dumps are complete when nothing was written for so long. A round a minute is usual.
SETTLED = timedelta(minutes=15)

#: The day before the run. One that nobody scheduled has no data interval, and no ``ds``.
DATE = (
    "{{ params.date or (dag_run.data_interval_start | ds if dag_run.data_interval_start "
    "else macros.ds_add(dag_run.run_after | ds, -1)) }}"
)
_HOME, _SETTINGS, _DUMPS, _SNAPSHOTS, _REPORTS = (
    f"{{{{ var.json.rebalance_audit.{name} }}}}"
    for name in ("home", "settings", "dumps", "snapshots", "reports")
)
#: A folder for each date: ingest replaces what it wrote, of that date alone.
_SNAPSHOTS_OF_DATE = f"{_SNAPSHOTS}/{DATE}"


def _chosen(name: str, otherwise: str) -> str:
    return f"{{{{ params.{name} or var.json.rebalance_audit.get('{name}', '{otherwise}') }}}}"


#: Arguments that are empty where the run has no use for them.
_KNOWN_ISSUES = (
    "{% set file = params.known_issues or var.json.rebalance_audit.get('known_issues') %}"
    "{{ '--known-issues=' ~ file if file else '' }}"
)
# A word that is none of the two is undefined, and fails the task.
_WEBHOOK = (
    "{{ {'print': '', 'post': '--webhook'}"
    "[params.alert or var.json.rebalance_audit.get('alert', 'print')] }}"
)


class SubmitOperator(SparkSubmitOperator):  # type: ignore[misc]  # Airflow lives elsewhere
    """Submits with a connection that may be a template, and leaves arguments out that are empty.

    ``reads``, ``writes``: folders, by whose names OpenLineage knows what went in and came out.
    """

    template_fields = (*SparkSubmitOperator.template_fields, "_conn_id", "reads", "writes")

    def __init__(self, *, reads: str, writes: str | None = None, **options: Any) -> None:
        super().__init__(**options)
        self.reads, self.writes = reads, writes

    def execute(self, context: Any) -> None:
        """Fails without the connection, for which Spark's hook would take YARN without a word."""
        try:
            BaseHook.get_connection(self._conn_id)
        except AirflowNotFoundException:
            raise AirflowFailException(
                f"there is no connection {self._conn_id!r}: make it, of the type Spark, or name "
                "another one in the param or the variable"
            ) from None
        self.application_args: list[str] = [each for each in self.application_args or () if each]
        super().execute(context)
        lineage = get_hook_lineage_collector()
        lineage.add_input_asset(self, uri=self.reads)
        if self.writes:
            lineage.add_output_asset(self, uri=self.writes)


def _submit(entry: str, arguments: list[str], **options: Any) -> SubmitOperator:
    """The task that runs one of the project's spark-submit entries."""
    return SubmitOperator(
        task_id=entry,
        conn_id=_chosen("connection", "spark_default"),
        name=f"rebalance-audit {entry} {DATE}",
        application=f"{_HOME}/jobs/{entry}.py",
        py_files=f"{_HOME}/dist/rebalance-audit.zip",
        properties_file=f"{_HOME}/conf/spark-defaults.conf",
        application_args=[*arguments, "--settings", _SETTINGS],
        **options,
    )


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
    files = [file for file in _files_below(root) if _is_read(file, root.path)]
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


def _files_below(root: ObjectStoragePath) -> list[str]:
    try:
        return list(root.fs.find(root.path))
    except FileNotFoundError:
        return []


def _is_read(file: str, folder: str) -> bool:
    """True if ingest reads the file: it passes over hidden ones, and those below hidden folders."""
    below = PurePosixPath(file).parts[len(PurePosixPath(folder).parts) :]
    return not any(part.startswith(("_", ".")) for part in below)


# A verdict that failed to be read is not a finding: but trying again reads the same. The other
# tasks do not use --fail-on: Airflow would try any exit code but 0 again.
@task(retries=0)
def gate(reports: str, date: str, verdict: str, fail_on: str) -> dict[str, int]:
    """Judges the published run of a date; gives, by gate of ``fail_on``, what closes it.

    Raises AirflowFailException or AirflowSkipException where anything does, by the verdict.
    """
    gates = [each.strip() for each in fail_on.split(",")]
    if verdict not in VERDICTS or not set(gates) <= set(GATES):
        raise AirflowFailException(
            f"expected gate as one of {VERDICTS} and fail_on as some of {GATES} with commas "
            f"between, came {verdict!r} and {fail_on!r}"
        )
    pointer = _last_pointer(ObjectStoragePath(reports) / "_published", date)
    found = _verdict(pointer.read_bytes(), str(pointer))
    counts = {each: int(found["gates"][each]) for each in gates}
    message = f"the run of {date} is {found['state']}: {counts}"
    if any(counts.values()) and verdict == "fail":
        raise AirflowFailException(message)
    if any(counts.values()) and verdict == "skip":
        raise AirflowSkipException(message)
    logging.getLogger(__name__).info(message)
    return counts


def _last_pointer(folder: ObjectStoragePath, date: str) -> ObjectStoragePath:
    """The pointer to the run of a date that counts: see ``jobs.storage.publication``."""
    named = [each for each in folder.iterdir() if each.name.startswith(f"dt={date}.")]
    if not named:
        raise AirflowFailException(f"no published report of {date} below {folder}")
    return max(named, key=lambda each: each.name)


def _verdict(text: bytes, place: str) -> dict[str, Any]:
    """The verdict in a pointer; AirflowFailException where it is not what a run wrote.

    See ``jobs.storage.manifest.unsealed`` and ``jobs.verdict.verdict``.
    """
    try:
        values: dict[str, Any] = dict(json.loads(text))
        digest = values.pop("digest")
        sealed = json.dumps(values, ensure_ascii=True, sort_keys=True).encode("ascii")
        if digest != hashlib.sha256(sealed).hexdigest():
            raise ValueError("its digest is another than that of its text")
        verdict: dict[str, Any] = values["summary"]["verdict"]
    except (ValueError, TypeError, KeyError) as error:
        raise AirflowFailException(
            f"{place} cannot be read ({error}): audit the date again"
        ) from error
    return verdict


@dag(
    doc_md=__doc__,
    # When the last rounds of the day are collected.
    schedule=CronTriggerTimetable("30 0 * * *", timezone="UTC", interval=timedelta(days=1)),
    # Airflow 2 asks for one. Without catching up the first run is that of the last night.
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    # A day is compared with the one before it.
    max_active_runs=1,
    default_args={"retries": 2, "retry_delay": timedelta(minutes=5)},
    params={
        "date": Param(None, type=TEXT, format="date", description="else the day before"),
        "connection": Param(None, type=TEXT, description="of Spark; else that of the variable"),
        "known_issues": Param(None, type=TEXT, description="a file; else that of the variable"),
        "alert": Param(None, enum=[None, *ALERTS], description="else that of the variable"),
        "gate": Param(None, enum=[None, *VERDICTS], description="else that of the variable"),
        "fail_on": Param(None, type=TEXT, pattern=_SOME_GATES, description=f"such as {FAIL_ON}"),
    },
    tags=["rocketmq"],
)
def rebalance_audit() -> None:
    """Dumps of a day in, a published and judged report out."""
    chain(
        wait_for_dumps(f"{_DUMPS}/{DATE}"),
        _submit(
            "ingest",
            ["--dumps", f"{_DUMPS}/{DATE}", "--snapshots", _SNAPSHOTS_OF_DATE],
            reads=_DUMPS,
            writes=_SNAPSHOTS,
        ),
        _submit(
            "audit",
            [
                *("--snapshots", _SNAPSHOTS_OF_DATE, "--reports", _REPORTS, "--date", DATE),
                _KNOWN_ISSUES,
            ],
            reads=_SNAPSHOTS,
            writes=_REPORTS,
        ),
        _submit(
            "report", ["--reports", _REPORTS, "--date", DATE], reads=_REPORTS, outlets=[REPORTS]
        ),
        [
            _submit("alert", ["--reports", _REPORTS, "--date", DATE, _WEBHOOK], reads=_REPORTS),
            gate(_REPORTS, DATE, _chosen("gate", "fail"), _chosen("fail_on", FAIL_ON)),
        ],
    )


rebalance_audit()
