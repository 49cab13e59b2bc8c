"""The field book says what the audit finds in each dump of a public report."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from jobs.declared.kinds import KINDS, QUEUE_FINDINGS
from tests.cases.test_field import CASES, rows
from tests.support.audited import lasting

BOOK = Path(__file__).parent.parent.parent / "docs" / "field_book.md"
#: ``- Dump `client-go-510`: `ORPHANED`, `QUEUE_NOT_HELD`.``, with or without words in brackets.
_ENTRY = re.compile(r"^- Dump `([\w-]+)`((?:[^:`]|\n)*): ([^.]+)\.", re.M)


def entries() -> dict[str, set[str]]:
    text = BOOK.read_text(encoding="utf-8")
    return {case: set(re.findall(r"`(\w+)`", kinds)) for case, _, kinds in _ENTRY.findall(text)}


def test_every_dump_of_a_report_stands_in_the_book() -> None:
    assert sorted(entries()) == CASES


@pytest.mark.parametrize("case", CASES)
def test_the_book_has_what_lasts_in_the_dump(case: str) -> None:
    queues = {kind for table, kind in QUEUE_FINDINGS.items() if lasting(rows(case, table))}
    faults = {row["fault"] for row in lasting(rows(case, "group_faults"))}
    assert entries()[case] == queues | faults


def test_every_kind_that_the_book_names_exists() -> None:
    named = set(re.findall(r"`([A-Z]+(?:_[A-Z]+)+)`", BOOK.read_text(encoding="utf-8")))
    other = {"SHARED_BY_BROKER", "MESSAGES_LEFT"}  # a coverage, a danger of what-if
    assert named - other <= set(KINDS)
