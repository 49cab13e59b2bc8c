"""The field book says what the audit finds in each dump of a report, and of the real cluster."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from jobs.declared.kinds import KINDS, QUEUE_FINDINGS
from tests.cases.test_field import CASES, SITUATIONS, expected, rows
from tests.support.audited import lasting

DOCS = Path(__file__).parent.parent.parent / "docs"
BOOK = DOCS / "field_book.md"
BOOKS = [BOOK, DOCS / "zh" / "field_book.md"]
#: ``- Dump `client-go-510`: `ORPHANED`, `QUEUE_NOT_HELD`.``, with or without words in brackets.
_ENTRY = re.compile(r"^- (?:Dump|采集文件) `([\w-]+)`((?:[^:：`]|\n)*)[:：] ?([^.。]+)[.。]", re.M)


def entries(book: Path = BOOK) -> dict[str, set[str]]:
    text = book.read_text(encoding="utf-8")
    return {case: set(re.findall(r"`(\w+)`", kinds)) for case, _, kinds in _ENTRY.findall(text)}


def test_every_dump_stands_in_the_book() -> None:
    assert sorted(entries()) == SITUATIONS


def test_both_languages_find_the_same_in_each_dump() -> None:
    english, chinese = (entries(book) for book in BOOKS)
    assert english == chinese


def threads(book: Path) -> list[tuple[str, str]]:
    """The reports and their addresses, in the order of the list at the end."""
    text = book.read_text(encoding="utf-8")
    return re.findall(r"^\[([\w-]+#\d+)\]: (https:\S+)$", text, re.M)


def test_every_report_leads_to_its_thread() -> None:
    text = BOOK.read_text(encoding="utf-8")
    named = set(re.findall(r"\[([\w-]+#\d+)\](?!: https:)", text))
    assert sorted(named) == sorted(report for report, _ in threads(BOOK))
    for report, address in threads(BOOK):
        assert address.endswith(f"/issues/{report.partition('#')[2]}")


def test_both_languages_lead_to_the_same_threads() -> None:
    english, chinese = (threads(book) for book in BOOKS)
    assert english == chinese


@pytest.mark.parametrize("case", SITUATIONS)
def test_the_book_has_what_lasts_in_the_dump(case: str) -> None:
    queues = {kind for table, kind in QUEUE_FINDINGS.items() if lasting(rows(case, table))}
    faults = {row["fault"] for row in lasting(rows(case, "group_faults"))}
    if case not in CASES and "ROUTE_DIVERGENCE" not in expected(case)["faults"]:
        # One nameserver of that cluster lacks a broker all the time.
        faults -= {"ROUTE_DIVERGENCE"}
    assert entries()[case] == queues | faults


def test_every_kind_that_the_book_names_exists() -> None:
    named = set(re.findall(r"`([A-Z]+(?:_[A-Z]+)+)`", BOOK.read_text(encoding="utf-8")))
    other = {"SHARED_BY_BROKER", "MESSAGES_LEFT"}  # a coverage, a danger of what-if
    assert named - other <= set(KINDS)
