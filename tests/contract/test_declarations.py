"""What is declared once and used in many places: each test fails for what was forgotten.

A setting stands in jobs/config/settings.py and in conf/audit.toml; a table in jobs/schemas.py, and
is made by one step; a member's fact in jobs/declared/contents.py and in the core's Member; a kind
in jobs/declared/kinds.py and on its page (tests/docs/test_pages.py has more on pages).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from jobs.config import choices, settings
from jobs.config.masking import Masking
from jobs.config.terms import Terms
from jobs.declared.contents import MEMBER_FACTS, content_id, record_text
from jobs.declared.dossier import Dossier
from jobs.declared.kinds import (
    COMPUTED_NOT_HELD,
    EVENT_KINDS,
    FAULTS,
    HELD_NOT_COMPUTED,
    KINDS,
    QUEUE_FINDINGS,
    SEVERITIES,
    UNREADABLE,
    VERDICTS,
)
from jobs.judge.history import judge
from jobs.judge.observe.evaluation import state_of
from jobs.judge.observe.situations import Situations, TopicSituation
from jobs.judge.result import topic_problem
from jobs.judge.rules.case import Case
from jobs.rendering import drawings
from jobs.reports import words
from jobs.schemas import (
    ALLOCATIONS,
    EVENTS,
    FORMER_FINDINGS,
    GAPS,
    GROUP_FAULTS,
    QUARANTINE,
    REPORT_TABLES,
    VERDICT,
    comment_of,
)
from rebalance_core import REPAIRS, Member
from tests.support.settings_page import fields_of, is_section

# ---------------------------------------------------------------- settings


def declared(model: type, section: str = "") -> Iterator[tuple[str, str]]:
    """Section and key of every setting."""
    for key, field in fields_of(model).items():
        kinds = (field.annotation, *get_args(field.annotation))
        inner = [each for each in kinds if is_section(each)]
        if inner:
            yield from declared(inner[0], f"{section}.{key}".lstrip("."))
        else:
            yield section, key


def shown(text: str) -> set[tuple[str, str]]:
    """Section and key of every setting that a file has, or shows in a comment."""
    found: set[tuple[str, str]] = set()
    section = ""
    for line in text.splitlines():
        if header := re.match(r"(?:# )?\[+([\w.]+)\]+$", line):
            section = header[1]
        elif key := re.match(r"(?:# ?)?(\w+) = ", line):
            found.add((section, key[1]))
    return found


def test_the_file_that_ships_shows_settings_that_are_there_and_few_of_them(
    repository: Path,
) -> None:
    text = (repository / "conf" / "audit.toml").read_text(encoding="utf-8")
    found = shown(text)
    assert found <= set(declared(settings.Settings))
    assert 10 <= len(found) <= 15


def test_severities_are_the_same_wherever_they_are_chosen_from() -> None:
    assert choices.SEVERITIES == SEVERITIES == get_args(choices.Severity)


# ---------------------------------------------------------------- tables

#: Made by other steps than the judgement: of the evaluated situations, by ingest, by the writer.
MADE_ELSEWHERE = {ALLOCATIONS.name, QUARANTINE.name, VERDICT.name, GAPS.name}


def test_every_report_table_is_made_by_one_step() -> None:
    terms = Terms(180, 130, 900, 0.01, 0.5, Masking(), 100_000)
    made = judge(Case(Dossier("C", "G"), Situations({}), {}, terms)).keys()
    assert made | MADE_ELSEWHERE == {table.name for table in REPORT_TABLES}
    assert not made & MADE_ELSEWHERE


def test_what_is_graded_has_its_severity_published() -> None:
    graded = {*QUEUE_FINDINGS, GROUP_FAULTS.name}
    tables = {table.name: table for table in REPORT_TABLES}
    assert all("severity" in tables[name].schema.names for name in graded)


# ---------------------------------------------------------------- facts about a member

#: What depends on the topic: the core is given it from the member's subscriptions.
OF_TOPIC = {"subscribed", "subscribed_percent", "expression"}
NARROWED = {"doubtful_topics", "subscriptions"}
FACTS = [fact.name for fact in MEMBER_FACTS]


def test_the_core_has_every_fact_about_a_member_and_no_other() -> None:
    assert set(Member._fields) == {*FACTS, *OF_TOPIC} - NARROWED


#: Of each fact a value that the core takes over as it is, and another.
VALUES = {
    "client_id": ("a", "b"),
    "client_addr": ("h:1", "h:2"),
    "language": ("JAVA", "GO"),
    "version": (401, 300),
    "message_model": ("CLUSTERING", "BROADCASTING"),
    "strategy": ("AVG", "CONFIG"),
    "client_rebalance": (True, False),
    "is_expired": (False, True),
    "chooses_queues": (False, True),
    "subscription_source": ("HEARTBEAT", "GROUP_TABLE"),
}


@pytest.mark.parametrize("changed", [name for name in FACTS if name not in NARROWED])
def test_a_fact_makes_another_list_and_reaches_the_core(changed: str) -> None:
    members, ids = [], []
    for number in (0, 1):
        facts = {name: values[number * (name == changed)] for name, values in VALUES.items()}
        record = (*facts.values(), None, (("T", "TAG", "*"),))
        ids.append(content_id([record_text(MEMBER_FACTS, record)]))
        situation = TopicSituation("", "c", "G", "T", ((("x", 0), "list"),), (), (), (), ())
        of_state = state_of(situation, {"list": [record]})
        members.append(of_state.client_lists[0].members[0])
    assert ids[0] != ids[1]
    before, after = members
    assert before == Member(**{name: VALUES[name][0] for name in VALUES}, expression="TAG *")
    assert after == before._replace(**{changed: VALUES[changed][1]})


# ---------------------------------------------------------------- kinds


def test_every_kind_that_a_table_may_name_is_declared_and_every_declared_one_is_named() -> None:
    named = {*QUEUE_FINDINGS.values(), *VERDICTS, *FAULTS, HELD_NOT_COMPUTED, COMPUTED_NOT_HELD}
    named |= {UNREADABLE}
    assert named == KINDS.keys()
    assert REPAIRS.keys() <= set(FAULTS)


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_has_a_title_a_sentence_and_a_page(name: str, repository: Path) -> None:
    kind = KINDS[name]
    assert kind.title[:1].isupper()
    assert not kind.title.endswith(".")
    assert re.fullmatch(r"[A-Z].{10,}\.", kind.meaning)
    assert (repository / "docs" / "findings" / kind.page.partition("#")[0]).is_file()


def test_every_finding_of_a_queue_has_its_words() -> None:
    kinds = set(QUEUE_FINDINGS.values())
    assert set(drawings._MARKED) == kinds
    assert set(topic_problem._HOW) == kinds
    assert kinds <= set(words._WORDS)
    comment = comment_of(FORMER_FINDINGS.schema.field("kind"))
    assert kinds <= set(re.findall(r"\w+", comment))


@pytest.mark.parametrize("name", EVENT_KINDS)
def test_every_kind_of_event_has_a_title_a_sentence_and_its_row_on_the_page(
    name: str, repository: Path
) -> None:
    kind = EVENT_KINDS[name]
    assert kind.title[:1].isupper()
    assert re.fullmatch(r"[A-Z].{10,}\.", kind.meaning)
    assert f"\n| `{name}` |" in (repository / "docs" / "reading.md").read_text(encoding="utf-8")
    assert name in comment_of(EVENTS.schema.field("kind"))
