"""### Nightly rebalance audit of RocketMQ

`ingest`, `audit`, `report`, `gate`: once a night, over the whole day (UTC) before. A run by hand
audits the day before it too; the param `date` names another day.

#### Setting it up
Put this file into the folder of the DAGs: it imports nothing of the project. Airflow lives in an
environment of its own, for its Spark provider replaces a part of pyspark, and calls `spark-submit`:
the workers' PATH has that of the environment where the project is installed.

- Connection `spark_default`: the cluster. **Where it is missing Spark's hook takes YARN without a
  word.**
- Variable `rebalance_audit`, as JSON. `home` is a checkout after `make package`, `settings` the
  audit's; `dumps`, `snapshots` and `reports` are folders that Spark reaches, of which the first two
  have a folder for each date (`2026-11-20`). `gate` and `fail_on` may be left out: see below.

        {"home": "/opt/rebalance-audit", "settings": "/etc/rebalance-audit.toml",
         "dumps": "hdfs:///dumps", "snapshots": "hdfs:///snapshots", "reports": "hdfs:///reports",
         "gate": "fail", "fail_on": "CRITICAL"}

- `SPARK_CONF_DIR=<home>/conf` in the workers' environment: logs as JSON, and the Java of the
  `[jre]` extra on a machine without one. `conf/spark-defaults.conf` is taken without it.

#### The gate
It counts the findings of the published run that are of the severity `fail_on` (`CRITICAL`, unless
told otherwise) or worse; known issues do not count. Where there are any, `gate` says what becomes
of the run: `fail` (unless told otherwise) makes it red, `skip` leaves it green and what comes after
the gate undone, `pass` only logs. The params of a run come before the variable.

#### Triage notes
- **`ingest` failed.** The last line of the job says why. Exit code 3: there are no dumps of the
  date, or more lines were not understood than the settings allow (the table `quarantine` below
  the snapshots has each with its reason); mend the collector, clear the task. 2: the settings or
  the variable. 4: Spark or the machine; the retries are for this.
- **`audit` failed.** As above. An earlier report of the date, if there is one, is still in force.
- **`report` failed.** The tables are published and right; clear this task alone.
- **`gate` failed or was skipped.** The audit works: the cluster has findings. Read the report of
  the date. Clearing the gate says the same again; the next night tells whether it was mended.
- **All tasks wait.** One run at a time, for each day is compared with the one before.
- Clearing or retrying is always safe: a task replaces what it wrote, publishing is one replacement,
  and the same input gives the same rows. Clear several days in their order.

DAGs that read the reports are scheduled by the asset `rebalance_audit_reports`.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import (
    Asset,
    CronTriggerTimetable,
    ObjectStoragePath,
    Param,
    chain,
    dag,
    task,
)
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

REPORTS = Asset("rebalance_audit_reports")
SEVERITIES = ("INFO", "WARNING", "CRITICAL")
VERDICTS = ("fail", "skip", "pass")

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


def _submit(entry: str, arguments: list[str], **options: Any) -> SparkSubmitOperator:
    """The task that runs one of the project's spark-submit entries."""
    return SparkSubmitOperator(
        task_id=entry,
        name=f"rebalance-audit {entry} {DATE}",
        application=f"{_HOME}/jobs/{entry}.py",
        py_files=f"{_HOME}/dist/rebalance-audit.zip",
        properties_file=f"{_HOME}/conf/spark-defaults.conf",
        application_args=[*arguments, "--settings", _SETTINGS],
        **options,
    )


def _chosen(name: str, otherwise: str) -> str:
    return f"{{{{ params.{name} or var.json.rebalance_audit.get('{name}', '{otherwise}') }}}}"


# A verdict that failed to be read is no finding: but trying again reads the same.
@task(retries=0)
def gate(reports: str, date: str, verdict: str, fail_on: str) -> dict[str, int]:
    """Judges the published run of a date; gives, by table, the findings that are severe enough.

    Raises AirflowFailException or AirflowSkipException where there are any, as the verdict says.
    """
    if verdict not in VERDICTS or fail_on not in SEVERITIES:
        raise AirflowFailException(
            f"expected gate as one of {VERDICTS} and fail_on as one of {SEVERITIES}, "
            f"came {verdict!r} and {fail_on!r}"
        )
    root = ObjectStoragePath(reports)
    run_id = json.loads((root / "_published" / f"dt={date}.json").read_text())["run_id"]
    of_run = root / "summary" / f"dt={date}" / f"run={run_id}" / "summary.json"
    severe = SEVERITIES[SEVERITIES.index(fail_on) :]
    findings = json.loads(of_run.read_text())["findings"]
    counts = {table: _count(of_table, severe) for table, of_table in findings.items()}
    told = f"findings of {date} that are {' or '.join(severe)}: {counts}"
    if any(counts.values()) and verdict == "fail":
        raise AirflowFailException(told)
    if any(counts.values()) and verdict == "skip":
        raise AirflowSkipException(told)
    logging.getLogger(__name__).info(told)
    return counts


def _count(of_table: dict[str, Any], severe: Sequence[str]) -> int:
    known = of_table.get("known", {})
    return sum(of_table[severity] - known.get(severity, 0) for severity in severe)


@dag(
    doc_md=__doc__,
    # When the last rounds of the day are collected.
    schedule=CronTriggerTimetable("30 0 * * *", timezone="UTC", interval=timedelta(days=1)),
    catchup=False,
    # A day is compared with the one before it.
    max_active_runs=1,
    default_args={"retries": 2, "retry_delay": timedelta(minutes=5)},
    params={
        "date": Param(
            None, type=["null", "string"], format="date", description="else the day before"
        ),
        "gate": Param(None, enum=[None, *VERDICTS], description="else as the variable says"),
        "fail_on": Param(None, enum=[None, *SEVERITIES], description="else as the variable says"),
    },
    tags=["rocketmq"],
)
def rebalance_audit() -> None:
    """Dumps of a day in, a published and judged report out."""
    chain(
        _submit("ingest", ["--dumps", f"{_DUMPS}/{DATE}", "--snapshots", _SNAPSHOTS_OF_DATE]),
        _submit(
            "audit",
            ["--snapshots", _SNAPSHOTS_OF_DATE, "--reports", _REPORTS, "--date", DATE],
        ),
        _submit("report", ["--reports", _REPORTS, "--date", DATE], outlets=[REPORTS]),
        gate(_REPORTS, DATE, _chosen("gate", "fail"), _chosen("fail_on", "CRITICAL")),
    )


rebalance_audit()
