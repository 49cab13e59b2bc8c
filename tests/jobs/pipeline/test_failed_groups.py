"""An error of the audit itself on one group: it costs this group, by name, and nothing else."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest

import rebalance_core as core
from jobs.api import audit
from jobs.config.settings import Settings
from jobs.declared.dossier import Dossier
from jobs.judge.observe.evaluation import Failure
from jobs.judge.result.rows import rows_of_failed
from jobs.pipeline import gathered, group_audit
from jobs.pipeline.gathered import AllGroupsFailedError
from jobs.pipeline.inputs import terms_of
from jobs.shell.report import Report
from tests.cases.small_dumps import MINUTES, asked
from tests.judge.test_statuses import earlier
from tests.support.published import minute

GROUPS = ("BAD", "GOOD")
FAILURE = Failure("C", "BAD", "KeyError: 'x'", "its stack")
TABLES = ("group_health", "orphaned_queues", "state_runs", "allocations", "reassignments")


pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two groups alike, and nothing is wrong with them."""
    lines = [line for number in MINUTES for line in asked(number)]
    of_groups = [
        line | ({"consumer_group": group} if "consumer_group" in line else {})
        for line in lines
        for group in GROUPS
    ]
    file = tmp_path_factory.mktemp("dumps") / "dump.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in of_groups))
    return str(file)


class Broken:
    """A step of the judgement that fails for some groups."""

    def __init__(self, step: Any, groups: tuple[str, ...], error: Exception) -> None:
        self.step, self.groups, self.error = step, groups, error

    def __call__(self, subject: Any, *others: Any) -> Any:
        of = getattr(subject, "dossier", subject)
        if of.consumer_group in self.groups:
            raise self.error
        return self.step(subject, *others)


STEPS = [(group_audit, "find_situations"), (group_audit, "judge"), (core, "evaluate")]


def break_step(
    patch: pytest.MonkeyPatch, place: Any, name: str, *groups: str, error: Exception | None = None
) -> None:
    failing = Broken(getattr(place, name), groups, error or KeyError("no such queue"))
    patch.setattr(place, name, failing)


def rows(report: Report, name: str, group: str) -> list[dict[str, Any]]:
    return [row for row in report[name].to_pylist() if row["consumer_group"] == group]


@pytest.mark.parametrize(("place", "name"), STEPS)
def test_a_group_on_which_the_audit_fails_is_not_audited_and_the_others_are(
    dump: str,
    place: Any,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    whole = audit(dump)
    break_step(monkeypatch, place, name, "BAD")
    report = audit(dump)
    for table in TABLES:
        assert rows(report, table, "GOOD") == rows(whole, table, "GOOD"), table
    assert rows(report, "group_load", "BAD") == []
    (health,) = rows(report, "group_health", "BAD")
    assert (health["topic"], health["coverage"]) == ("T", "AUDIT_FAILED")
    assert (health["first_seen"], health["last_seen"]) == (minute(0), minute(14))
    assert health["reason"] == "the audit failed on this group: KeyError: 'no such queue'"
    verdict = report.summary["verdict"]
    assert (verdict["state"], verdict["gates"]["INCOMPLETE"]) == ("INCOMPLETE", 1)
    assert whole.summary["verdict"]["state"] == "WELL"
    (told,) = [each for each in caplog.records if "was not audited" in each.getMessage()]
    assert "group BAD of cluster C" in told.getMessage()
    kept = Path(told.getMessage().rpartition("which is in ")[2])
    assert "in __call__" in kept.read_text()
    kept.unlink()
    assert told.exc_info is not None


def test_a_row_that_does_not_fit_its_table_costs_its_group_alone(
    dump: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gathered, "keep_stack", lambda _: "kept")
    judge = group_audit.judge

    def too_large(case: Any) -> Any:
        tables = judge(case)
        if case.dossier.consumer_group == "BAD":
            tables["group_health"][0]["backlog"] = 2**63
        return tables

    whole = audit(dump)
    monkeypatch.setattr(group_audit, "judge", too_large)
    report = audit(dump)
    assert rows(report, "group_health", "GOOD") == rows(whole, "group_health", "GOOD")
    (health,) = rows(report, "group_health", "BAD")
    assert health["coverage"] == "AUDIT_FAILED"
    assert "RowError: group_health.backlog: expected int64" in health["reason"]
    assert rows(report, "reassignments", "BAD") == []


def test_an_error_on_every_group_fails_the_run(dump: str, monkeypatch: pytest.MonkeyPatch) -> None:
    break_step(monkeypatch, *STEPS[1], *GROUPS)
    with pytest.raises(AllGroupsFailedError, match="on every group, as on GOOD: KeyError") as came:
        audit(dump)
    assert "in __call__" in str(came.value.__cause__)


def test_what_is_the_machines_is_no_failure_of_a_group(
    dump: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_step(monkeypatch, *STEPS[2], "BAD", error=MemoryError("no room"))
    with pytest.raises(MemoryError):
        audit(dump)


def test_what_was_open_of_a_group_that_failed_stays_open() -> None:
    dossier = Dossier("C", "BAD", earlier=[earlier("an id")])
    found = rows_of_failed(dossier, FAILURE, terms_of(Settings()))
    assert [row["status"] for row in found["former_findings"]] == ["NOT_AUDITED"]
    assert found["group_health"] == []  # no snapshot shows it


def test_a_shard_with_a_failure_travels() -> None:
    shard = group_audit.Shard(0, [(Dossier("C", "BAD"), FAILURE)], {})
    there = pickle.loads(pickle.dumps(shard))  # noqa: S301 - of this test
    assert there.groups == shard.groups
