"""Every surface of a published run: what each says of it."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import yaml

from jobs.alerts.alerting import Sender, alert
from jobs.alerts.message import read_digest
from jobs.alerts.metrics import metrics_text
from jobs.commands.batch import is_closed
from jobs.config.choices import GATES
from jobs.config.settings import Alerts, Settings
from jobs.rendering.nights import read_history
from jobs.rendering.write import Look, report_text
from jobs.reports.tables import PublishedTables
from jobs.shell.closing import closing_lines
from jobs.shell.report import Report
from jobs.storage import Location, PublishedRun, Reports
from tests.support.promql import Exposed
from tests.support.written_reports import NOON

_MONITORING = Path(__file__).parents[2] / "docs" / "monitoring"


@dataclass
class Surfaces:
    """What each surface says of one run."""

    page: str
    ticket: str
    night: str
    console: str
    exit_codes: dict[str, int]
    alert: str
    metrics: dict[str, float]
    #: Prometheus' rules that fire, by severity; what the tiles of the dashboard show, by title.
    rules: dict[str, set[str]]
    tiles: dict[str, float | str]
    gate: dict[str, int]
    in_python: str

    @property
    def texts(self) -> dict[str, str]:
        names = ("page", "ticket", "console", "alert", "in_python")
        return {name: " ".join(getattr(self, name).split()) for name in names}


@cache
def verdict_of_the_dag() -> Callable[..., dict[str, Any]]:
    """The task of the DAG that its gate judges, without Airflow: its imports are replaced by what
    does nothing.
    """

    def task(function: Any = None, **_: Any) -> Any:
        return function or (lambda of: of)

    vars(task)["sensor"] = task
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
    of_sdk = {
        **dict.fromkeys(("BaseHook", "Param", "CronTriggerTimetable", "chain"), lambda *_, **__: 0),
        **{"Asset": str, "ObjectStoragePath": Path, "task": task},
        "DAG": None,
    }
    vars(stub["airflow.sdk"]).update(of_sdk)
    errors = ("AirflowFailException", "AirflowNotFoundException", "AirflowSkipException")
    vars(stub["airflow.sdk.exceptions"]).update(
        {name: type(name, (Exception,), {}) for name in errors}
    )
    file = Path(__file__).parents[2] / "jobs" / "airflow" / "__init__.py"
    spec = importlib.util.spec_from_file_location("the_dag", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        for name, each in stub.items():
            patch.setitem(sys.modules, name, each)
        spec.loader.exec_module(module)
    return module.verdict  # type: ignore[no-any-return]


def surfaces_of(folder: Path, day: str) -> Surfaces:
    """What each surface says of the run of a day, of the reports in a folder."""
    reports, settings = Reports(Location(folder)), Settings()
    published = reports.resolve(day)
    tables = PublishedTables(reports, published)
    missing, lines = closing_lines(tables, settings, 1_000)
    sender = Sender(Alerts(severity="WARNING"), {}, NOON, lambda _: None)
    metrics = metrics_text(read_digest(published, tables), tables, 20)
    prometheus = Exposed.of(metrics, NOON.timestamp())
    exposed = re.findall(r"^rebalance_audit_(\S+) ([\d.e+]+)$", metrics, re.M)
    look = Look(10)
    return Surfaces(
        page=_visible(report_text(reports, published, "html", look)[0]),
        ticket=report_text(reports, published, "markdown", look)[0].replace("\\_", "_"),
        night=read_history(reports, day, 1).nights[0].level,
        console="\n".join([*missing, *lines]),
        exit_codes={gate: int(is_closed(published, [gate])) for gate in GATES},
        alert="\n".join(alert(reports, None, sender)),
        metrics={name: float(value) for name, value in exposed},
        rules=_rules(prometheus),
        tiles=_tiles(prometheus),
        gate=verdict_of_the_dag()(str(folder), day, task=SimpleNamespace(outlets=[]))["counts"],
        in_python=repr(_in_python(folder, published, settings)),
    )


@cache
def _read_rules() -> list[dict[str, Any]]:
    return yaml.safe_load((_MONITORING / "rules.yaml").read_text())["groups"][0]["rules"]  # type: ignore[no-any-return]


def _rules(prometheus: Exposed) -> dict[str, set[str]]:
    """The rules about the findings of a run that fire, by severity."""
    fires: dict[str, set[str]] = {}
    for rule in _read_rules():
        if prometheus.ask(rule["expr"]):
            fires.setdefault(rule["labels"]["severity"], set()).add(rule["alert"])
    return fires


def _tiles(prometheus: Exposed) -> dict[str, float | str]:
    """The tiles of the dashboard: a number each, or the label that is its name."""
    shown: dict[str, float | str] = {}
    for panel in json.loads((_MONITORING / "dashboard.json").read_text())["panels"]:
        if panel["type"] == "stat":
            (target,) = panel["targets"]
            series = prometheus.ask(target["expr"].replace("$cluster", ".*"))
            ((labels, value),) = series.items()
            label = target["legendFormat"].strip("{}")
            is_name = panel["options"].get("textMode") == "name"
            shown[panel["title"]] = dict(labels)[label] if is_name else value
    return shown


def _visible(html: str) -> str:
    """What a reader sees of the page, with the level of its verdict; but for the glossary."""
    body = html.partition("<body")[2].partition('<section id="words"')[0]
    kept = re.sub(r'<section id="verdict" class="verdict (\w+)"[^>]*>', r"LEVEL:\1 ", body)
    return re.sub(r"<[^>]+>", "", kept).replace("&#39;", "'")


def _in_python(folder: Path, published: PublishedRun, settings: Settings) -> Report:
    report = Report.__new__(Report)
    report.summary, report._published, report._settings = published.summary, published, settings
    report._reports = Reports(Location(folder))
    report._tables = PublishedTables(report._reports, published)
    return report
