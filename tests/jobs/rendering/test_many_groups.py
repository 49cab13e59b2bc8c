"""The page of 300 groups: whom the on-call looks for is in the file, and it is small.

The groups are those of the captured, field and case dumps, over and over under other names.
"""

from __future__ import annotations

import html
import re
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from jobs.config.settings import Settings
from jobs.declared.kinds import INFO
from jobs.languages.language import ENGLISH
from jobs.rendering.page import FindingPages, to_html
from jobs.rendering.page_values import PageValues, build_report
from jobs.reports.words import in_general
from tests.support.audited import Rows, audit_dumps
from tests.support.published import RowTables, published

pytestmark = pytest.mark.long

DATA = Path(__file__).parents[2] / "data"
#: Of a hundred groups so many have a fault, as in fleets that were collected.
FAULTY = 18


@cache
def groups() -> tuple[list[dict[str, Rows]], list[dict[str, Rows]]]:
    """The rows of each group by table: of those with a fault that lasts, and of the others."""
    files = sorted(DATA.glob("*/*/dump.jsonl.gz"))
    of_groups: dict[str, dict[str, Rows]] = defaultdict(lambda: defaultdict(list))
    for table, rows in audit_dumps(files, Settings(persistence_seconds=60)).items():
        for row in rows:
            group = row.get("consumer_group") or ""
            # A shorter name is a part of other words.
            if len(group) > 2:
                of_groups[group][table].append(row)
    faulty, healthy = [], []
    for tables in of_groups.values():
        levels = {row["severity"] for row in tables["group_faults"]}
        levels |= {row["worst_severity"] for row in tables["group_health"]}
        (faulty if levels - {INFO, None} else healthy).append(tables)
    return faulty, healthy


def renamed(value: Any, before: str, after: str) -> Any:
    if isinstance(value, str):
        return value.replace(before, after)
    if isinstance(value, list):
        return [renamed(each, before, after) for each in value]
    if isinstance(value, dict):
        return {name: renamed(each, before, after) for name, each in value.items()}
    return value


@cache
def fleet() -> PageValues:
    """A published night of 300 groups."""
    faulty, healthy = groups()
    tables: dict[str, Rows] = defaultdict(list)
    for n in range(300):
        rank, place = divmod(n, 100)
        chosen = faulty if place < FAULTY else healthy
        of_group = chosen[(rank * FAULTY + place) % len(chosen)]
        name = of_group["group_health"][0]["consumer_group"]
        for table, rows in of_group.items():
            copies = (renamed(row, name, f"{name}-{n:04}") for row in rows)
            tables[table] += [row | {"cluster": "DefaultCluster"} for row in copies]
    return build_report(published(), RowTables(**tables), 10)


@cache
def page() -> str:
    pages = FindingPages.of_this_installation(ENGLISH)
    return to_html(fleet(), "/home/alice/night/reports", None, pages)


def text_of(page: str) -> str:
    return html.unescape(re.sub("<[^>]*>", "", page.replace("<wbr>", "")))


def test_at_300_groups_every_culprit_is_in_the_file_by_its_client_id() -> None:
    told, text = fleet(), text_of(page())
    assert len(told.counted) >= 54
    causes = {problem.main_kind.name for problem in told.counted}
    assert len(causes) >= 10
    culprits = {each for problem in told.counted for each in problem.client_ids}
    assert len(culprits) > 20
    assert {each for each in culprits if each not in text} == set()


def test_at_300_groups_every_faulty_topic_has_a_repair_and_link_each_cause_a_picture() -> None:
    told, text = fleet(), text_of(page())
    drawn = {card.problem.main_kind for card in told.cards if card.pictures}
    assert drawn >= {cause.kind for cause in told.causes}
    for problem in told.counted:
        anchor = told.anchors[problem.place]
        assert page().count(f'id="{anchor}"') == 1
        assert problem.is_of_retry_topic or f'href="#{anchor}"' in page()
        if problem.cause:
            assert str(problem.cause.evidence) in text or problem.is_of_retry_topic
            remedies = (str(problem.remedy)[1:], str(in_general(problem.remedy))[1:])
            assert any(each in text for each in remedies)


def test_no_remedy_points_at_what_it_does_not_name() -> None:
    pointing = re.compile(r"\b(these|those) (clients|brokers|processes)\b")
    remedies = [fault.remedy for problem in fleet().problems for fault in problem.faults]
    assert not list(filter(pointing.search, remedies))


def test_no_path_of_the_machine_is_on_the_page_which_can_be_mailed_and_names_every_group() -> None:
    assert "alice" not in page()
    assert len(page().encode()) < 600_000
    names = set(re.findall(r"[\w%-]+-\d{4}\b", page().replace("<wbr>", "")))
    assert {row["consumer_group"] for row in fleet().health} <= names
