"""Dashboard and rules ask for what is written: each query against metrics as they come out."""

from __future__ import annotations

import json
import re
from collections import Counter as Count
from collections import defaultdict
from collections.abc import Iterator
from datetime import timedelta
from functools import cache
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import promql_parser as promql
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from jobs.alerts.message import read_digest
from jobs.alerts.metrics import metrics_text
from jobs.collect.client import Figures
from jobs.collect.collector import metrics_text as collector_text
from jobs.reports.tables import PublishedTables
from jobs.storage import Location, Reports
from tests.support.written_reports import NOON, publish, report_row

FOLDER = Path(__file__).parent.parent.parent / "docs" / "monitoring"
RULES = [
    rule
    for group in yaml.safe_load((FOLDER / "rules.yaml").read_text())["groups"]
    for rule in group["rules"]
]
DASHBOARD = json.loads((FOLDER / "dashboard.json").read_text())
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
#: Labels of metrics that are there, each with the values that it has.
Labels = dict[str, set[str]]


@cache
def written() -> dict[str, Labels]:
    """Every metric, of a run and of the collector, with its labels."""
    row = {"cluster": "C", "consumer_group": "G", "topic": "T"}
    waiting = {"backlog": 5, "waiting_since": NOON - timedelta(hours=1)}
    with TemporaryDirectory() as folder:
        tables = {
            "orphaned_queues": [report_row("orphaned_queues", **row)],
            "group_health": [report_row("group_health", **row, **waiting)],
        }
        published = publish(Path(folder), "2026-11-20", tables)
        tables = PublishedTables(Reports(Location(folder)), published)
        text = metrics_text(read_digest(published, tables), tables, 5)
    figures = Figures(last_seconds=1, last_at_seconds=1, errors=Count({("10.0.0.1:9876", -1): 1}))
    found: dict[str, Labels] = {}
    for family in text_string_to_metric_families(text + collector_text({"C": figures})):
        for sample in family.samples:
            labels = found.setdefault(sample.name, defaultdict(set))
            for name, value in sample.labels.items():
                labels[name].add(value)
    return found


def selectors(query: Any) -> Iterator[promql.VectorSelector]:
    """All selectors of a query, wherever they are in it."""
    if isinstance(query, promql.VectorSelector):
        yield query
    for part in ("expr", "lhs", "rhs", "vector_selector", "param"):
        if (inner := getattr(query, part, None)) is not None:
            yield from selectors(inner)
    for argument in getattr(query, "args", None) or ():
        yield from selectors(argument)


def labels_of(query: Any) -> set[str]:
    """The labels that the series of a query have, so that a text may name them."""
    if isinstance(query, promql.AggregateExpr):
        return set(query.modifier.labels) if query.modifier else set()
    if isinstance(query, promql.Call) and query.func.name == "absent":
        return set()
    return {label for each in selectors(query) for label in written()[each.name]}


def check(text: str) -> Any:
    """The query, parsed; fails where it asks for a metric, label or value that nobody writes."""
    query = promql.parse(text)
    found = list(selectors(query))
    assert len(found) == len(re.findall(r"rebalance_audit_\w+", text)) > 0
    for each in found:
        assert each.name in written(), each.name
        labels = written()[each.name]
        for matcher in each.matchers.matchers:
            assert matcher.name in labels, f"{each.name} has no label {matcher.name}"
            if matcher.op == promql.MatchOp.Equal:
                assert matcher.value in labels[matcher.name], f"{matcher.name}={matcher.value!r}"
            if matcher.op == promql.MatchOp.Re:
                assert any(re.fullmatch(matcher.value, value) for value in labels[matcher.name])
    for aggregate in re.findall(r"\bby \(([^)]*)\)", text):
        for label in aggregate.split(","):
            assert all(label.strip() in written()[each.name] for each in found), label
    return query


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_every_rule_asks_for_what_is_written_and_names_labels_that_it_has(
    rule: dict[str, Any],
) -> None:
    assert rule.keys() <= {"alert", "expr", "for", "labels", "annotations"}
    assert rule["labels"].keys() == {"severity"}
    assert rule["labels"]["severity"] in {"critical", "warning", "info"}
    assert rule["annotations"].keys() == {"summary", "description"}
    assert re.fullmatch(r"\d+[smhd]", rule.get("for", "0s"))
    named = set(re.findall(r"\$labels\.(\w+)", json.dumps(rule["annotations"])))
    assert named <= labels_of(check(rule["expr"]))
    for template in re.findall(r"\{\{(.*?)\}\}", json.dumps(rule["annotations"])):
        known = r" \$(value|labels\.\w+)( \| (humanize|humanizeDuration|humanizePercentage))? "
        assert re.fullmatch(known, template), template


def test_no_two_rules_have_one_name() -> None:
    assert max(Count(rule["alert"] for rule in RULES).values()) == 1


QUERIES = [
    pytest.param(target, id=f"{panel['title']} {target['refId']}")
    for panel in PANELS
    for target in panel["targets"]
]


@pytest.mark.parametrize("target", QUERIES)
def test_every_query_of_the_dashboard_asks_for_what_is_written(target: dict[str, Any]) -> None:
    text = target["expr"].replace("$cluster", ".*").replace("$__rate_interval", "5m")
    assert "$" not in text
    query = check(text)
    assert set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])) <= labels_of(query)


def test_the_variables_of_the_dashboard_are_those_that_its_queries_use() -> None:
    variables = {each["name"]: each for each in DASHBOARD["templating"]["list"]}
    assert set(variables) == {"datasource", "cluster"}
    definition = variables["cluster"]["definition"]
    ((metric, label),) = re.findall(r"^label_values\((\w+), (\w+)\)$", definition)
    assert label in written()[metric]
    sources = {json.dumps(each["datasource"]) for panel in PANELS for each in panel["targets"]}
    assert sources == {'{"type": "prometheus", "uid": "${datasource}"}'}


def test_the_panels_of_the_dashboard_do_not_cover_each_other() -> None:
    taken: set[tuple[int, int]] = set()
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        across, down = range(at["x"], at["x"] + at["w"]), range(at["y"], at["y"] + at["h"])
        cells = {*product(across, down)}
        assert at["x"] + at["w"] <= 24
        assert not cells & taken, panel["title"]
        taken |= cells


def test_the_dashboard_shows_every_metric_or_a_rule_watches_it() -> None:
    text = (FOLDER / "dashboard.json").read_text() + (FOLDER / "rules.yaml").read_text()
    unused = {name for name in written() if not re.search(rf"\b{name}\b", text)}
    # Lines say no more than the bytes.
    assert unused == {"rebalance_audit_collect_lines_total"}


def test_the_page_has_every_metric_of_a_run_with_its_labels() -> None:
    page = (FOLDER / "README.md").read_text()
    rows = re.findall(r"^- `(rebalance_audit_\w+)`(.*?): ", page, re.M)
    listed = {name: set(re.findall(r"`(\w+)`", labels)) for name, labels in rows}
    of_run = {name: set(labels) for name, labels in written().items() if "_collect_" not in name}
    assert listed == of_run


@pytest.mark.parametrize(
    "query",
    [
        "rebalance_audit_finding > 0",
        'rebalance_audit_findings{severity="FATAL"} > 0',
        'rebalance_audit_findings{level="INFO"} > 0',
        "sum by (topic) (rebalance_audit_findings) > 0",
        'time() - rebalance_audit_rows{table=~"none.*"}',
        "vector(1)",
    ],
)
def test_a_query_for_what_nobody_writes_would_be_seen(query: str) -> None:
    with pytest.raises(AssertionError):
        check(query)
