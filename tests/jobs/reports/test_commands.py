"""The commands of a card: a shell reads in them what was meant, whatever a name contains."""

from __future__ import annotations

import os
import subprocess
from itertools import pairwise
from typing import Any

import pytest

from jobs.config.settings import Settings, load_settings
from jobs.declared.kinds import KINDS
from jobs.languages.language import ENGLISH
from jobs.rendering.page import FindingPages
from jobs.reports.commands import Commands, commands_for
from jobs.reports.problems import read_problems
from jobs.texts.shown import shell_word
from tests.support.published import RowTables, fault, finding, published

PAGES = FindingPages.of_this_installation(ENGLISH)


def commands(reports: str = "out/reports", **values: Any) -> Commands:
    summary = {
        "inputs": {"snapshots": "out/snap shots"},
        "brokers": {"C": {"broker-a": "10.0.0.1:10911", "broker-b": "10.0.0.2:10911"}},
    } | values.pop("summary", {})
    tables = RowTables(orphaned_queues=[finding(**values)], group_faults=[fault(**values)])
    (problem,) = read_problems(tables)
    return commands_for(problem, published(**summary), reports, PAGES.checks)


def words(line: str) -> list[str]:
    """The words that bash makes of a line, of which it expands nothing else."""
    done = subprocess.run(
        ["bash", "-c", f"printf '%s\\0' {line}"],
        capture_output=True,
        check=True,
        env={**os.environ, "LC_ALL": "C.UTF-8"},
    )
    assert not done.stderr
    return done.stdout.decode().split("\0")[:-1]


@pytest.mark.parametrize(
    "name",
    ["G", "", "a b", "a'; rm -rf / #", "$(id)`id`", '"\\', "-x", "a\nb", "\u202eevil", "\x1b[2J2",
     "\x9b3", "\u2028'\\", "\U000e0041x", "日本 组", "*", "~", "!1", "a&b|c;d>e<f"],
)  # fmt: skip
def test_a_name_is_one_word_of_a_shell_and_shows_what_it_contains(name: str) -> None:
    written = shell_word(name)
    assert written.isprintable()
    assert words(written) == [name]
    told = commands(consumer_group=name, topic=name, client_ids=[name])
    for line in (*told.confirm, *told.go_on, *told.repaired):
        assert line.isprintable()
        assert any(name in word for word in words(line)), line


def test_the_commands_are_filled_in() -> None:
    told = commands(broker_names=["broker-b"], client_ids=["10.0.0.9@app"])
    assert told.confirm == (
        "mqadmin consumerConnection -g G -b 10.0.0.2:10911",
        "mqadmin consumerProgress -g G -s true",
    )
    moment = "--snapshots 'snap shots' --group G --topic T --at 2026-11-20T10:19:00.000Z"
    assert told.go_on == (
        f"rebalance-audit explain {moment}",
        f"rebalance-audit what-if {moment} --mend DUPLICATE_CLIENT_ID",
        "rebalance-audit show group_faults --group G --topic T --reports reports --date 2026-11-20",
    )


def test_without_a_fault_that_names_brokers_all_of_the_cluster_are_asked() -> None:
    asked = [line.split()[-1] for line in commands().confirm if " -b " in line]
    assert asked == ["10.0.0.1:10911", "10.0.0.2:10911"]
    of_a_lake = commands(summary={"brokers": {}, "inputs": {"snapshots": "lake"}})
    assert "mqadmin consumerConnection -g G -b BROKER_ADDR" in of_a_lake.confirm


def test_the_nameservers_of_the_cluster_are_asked_whether_a_repair_worked() -> None:
    witnesses = {"nameservers": {"C": ["10.9.0.1:9876", "10.9.0.2:9876"], "D": ["10.8.0.1:9876"]}}
    run = "--reports reports --date 2026-11-20"
    for summary, asked in (
        ({"witnesses": witnesses}, "--namesrv 10.9.0.1:9876 --namesrv 10.9.0.2:9876"),
        ({}, "--namesrv NAMESRV_ADDR"),
    ):
        check = f"rebalance-audit check --group G --topic T {asked} {run}"
        assert commands(summary=summary).repaired == (check,)
    passed = commands(severity="INFO", persistence="TRANSIENT", ongoing=False)
    assert passed.repaired == ()


@pytest.mark.parametrize("name", KINDS)
def test_what_confirms_a_finding_changes_nothing(name: str) -> None:
    for check in PAGES.checks(name):
        harms = [each for each in ("update", "delete", "reset", "wipe") if each in check.lower()]
        assert harms == [], check


def test_nearly_every_page_names_a_command_that_confirms_it() -> None:
    assert {name for name in KINDS if not PAGES.checks(name)} <= {"QUARANTINED"}


def test_no_command_has_a_path_of_the_machine_and_all_have_the_settings_of_the_run() -> None:
    settings = Settings(
        persistence_seconds=60,
        strategies=(
            {"groups": "G'x", "name": "CONFIG", "params": {"config_queues": [["T", "b", 1]]}},
        ),
        severity={"warning_probability": 0.2},
    )
    summary = {
        "inputs": {"snapshots": "/home/alice/night/snapshots/2026-11-20"},
        "settings_set": settings.overrides(),
    }
    told = commands(reports="/home/alice/night/reports", summary=summary)
    for line in (*told.confirm, *told.go_on):
        assert "/home" not in line
    explain, what_if, show = told.go_on
    assert "--snapshots snapshots/2026-11-20 --group" in explain
    assert show.endswith(" --reports reports --date 2026-11-20")
    for line in (explain, what_if):
        given = words(line)
        overrides = [value for name, value in pairwise(given) if name == "--set"]
        assert load_settings(None, overrides) == settings


def test_the_cluster_is_named_where_there_are_several() -> None:
    def explain(clusters: dict[str, Any], left_out: int = 0) -> str:
        return commands(summary={"groups": {"clusters": clusters, "left_out": left_out}}).go_on[0]

    assert "--cluster C" in explain({"C": {}, "D": {}})
    assert "--cluster C" in explain({"C": {}}, left_out=1)
    assert "--cluster" not in explain({"C": {}})
