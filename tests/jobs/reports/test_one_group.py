"""``show --group`` alone: what is wrong with the group, and its topics, on one screen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import CommandLine
from tests.support.written_reports import publish, report_row


def of(table: str, group: str, topic: str, **values: Any) -> dict[str, Any]:
    return report_row(table, consumer_group=group, topic=topic, **values)


TOPICS = [f"T{number}" for number in range(6)]
HEALTHS = {
    "WORST": dict.fromkeys([*TOPICS, "T7"], "AUDITED"),
    "OTHER": {"T0": "AUDITED"},
    "WELL": {"W": "AUDITED"},
    "HIDDEN": {"H": "BROADCASTING"},
}
TABLES = {
    "orphaned_queues": [
        *(of("orphaned_queues", "WORST", topic, causes=["GHOST_MEMBER"]) for topic in TOPICS),
        of("orphaned_queues", "OTHER", "T0", ongoing=False, status=None),
    ],
    "group_faults": [
        of("group_faults", "WORST", topic, fault="GHOST_MEMBER", client_ids=["10.0.0.1@app"])
        for topic in TOPICS
    ],
    "group_health": [
        of("group_health", group, topic, coverage=coverage)
        for group, topics in HEALTHS.items()
        for topic, coverage in topics.items()
    ],
}
Show = Callable[..., list[str]]


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    publish(folder := tmp_path_factory.mktemp("reports"), "2026-11-20", TABLES)
    return folder


@pytest.fixture
def show(reports: Path, cli: CommandLine) -> Show:
    def show(*arguments: str, code: int = 0) -> list[str]:
        return cli("show", *arguments, "--reports", reports, code=code).splitlines()

    return show


def test_a_group_has_its_worst_problems_whole_and_then_its_topics(show: Show) -> None:
    lines = show("--group", "WORST")
    assert lines[0].startswith("Still there  CRITICAL  WORST / T0: 1 queue consumed by nobody")
    begins = [line.split(":")[0].strip() for line in lines[1:6]]
    assert begins[:3] == ["who", "why", "when"]
    assert "and 2 more topics: show problems has them" in lines
    head = next(number for number, line in enumerate(lines) if line.startswith("topic "))
    assert lines[head - 1] == ""
    assert [line.split()[0] for line in lines[head + 2 :]] == [*TOPICS, "T7", "(7"]
    assert not any("OTHER" in line for line in lines)


def test_a_topic_has_those_of_all_its_groups_the_worst_first(show: Show) -> None:
    lines = show("--topic", "T0")
    found = [line for line in lines if " / T0: " in line]
    assert [line.split("  ")[0] for line in found] == ["Still there", "Over since 12:00:00"]
    assert "consumer_group" in next(line for line in lines if "coverage" in line)


@pytest.mark.parametrize(
    ("group", "said"),
    [
        ("WELL", "nothing was found: it was audited in the run of 2026-11-20"),
        ("HIDDEN", "nothing was found: not all of it was audited: group HIDDEN, topic H"),
    ],
)
def test_that_nothing_was_found_is_said_with_what_was_looked_at(
    show: Show, group: str, said: str
) -> None:
    assert show("--group", group)[0].startswith(said)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--group", "WORTS"], "no group 'WORTS' in the run of 2026-11-20: did you mean 'WORST'?"),
        (["--group", "WELL", "--format", "json"], "expected a table with --format or --columns"),
        (["--topic", "T0", "--columns", "topic"], "expected a table with --format or --columns"),
    ],
)
def test_what_cannot_be_shown_is_said(
    show: Show, cli: CommandLine, arguments: list[str], said: str
) -> None:
    show(*arguments, code=2)
    assert said in cli.err
